# scripts/words.awk - reads the retired words, then C files, scripts and documents, for scripts/words.sh.
#
# Owns: what is a comment, which words of a comment are names, which names the tree has, and which words no name may
# have. Variables: words is the file of retired words, known one with all paths of the tree, and list one with the files
# to read, from all of which names are taken. checked has the files to judge; "": all.

# A retired word as a regular expression that matches it between non-letters, in any case.
function read_words(file,   line, part, n, i) {
	while ((getline line < file) > 0) {
		if (line ~ /^#/)
			continue
		if (line !~ / -> /) {
			n = split(line, part, /[ \t]+/)
			for (i = 1; i <= n; i++)
				is_name[part[i]] = is_file[part[i]] = is_listed[part[i]] = 1
			continue
		}
		n = split(line, part, /[ \t]+->[ \t]+/)
		if (line ~ /^(names|constants) [^:]*: /) {
			n_name_words++
			is_constant[n_name_words] = line ~ /^constants/
			sub(/^[a-z]+ /, "", part[1])
			name_rooms[n_name_words] = substr(part[1], 1, index(part[1], ":") - 1)
			name_word[n_name_words] = substr(part[1], index(part[1], ":") + 2)
			name_instead[n_name_words] = part[2]
			continue
		}
		n_words++
		word[n_words] = part[1]
		instead[n_words] = part[2]
		regex[n_words] = "(^|[^a-z_])(" part[1] ")([^a-z_]|$)"
		any = any (any == "" ? "" : "|") part[1]
	}
	close(file)
	any = "(^|[^a-z_])(" any ")([^a-z_]|$)"
}
function read_paths(file,   path, name) {
	while ((getline path < file) > 0) {
		name = path
		is_file[name] = 1
		while ((cut = index(name, "/")) > 0) {
			name = substr(name, cut + 1)
			is_file[name] = 1
		}
	}
	close(file)
}
function keep(text) {
	if (judged && text != "") {
		n_texts++
		kept[n_texts] = text
		file_of[n_texts] = FILENAME
		line_of[n_texts] = FNR
		kind_of[n_texts] = kind
	}
}
# Whether the file is in one of the rooms, of which * is all, and in none of those with a ! before them.
function is_in_rooms(file, rooms,   n, part, i, found) {
	n = split(rooms, part, " ")
	for (i = 1; i <= n; i++) {
		if (part[i] ~ /^!/ && index(file, substr(part[i], 2)) == 1)
			return 0
		found = found || part[i] == "*" || index(file, part[i]) == 1
	}
	return found
}
function choose_name_words(   k) {
	name_regex = ""
	for (k = 1; k <= n_name_words; k++)
		if (is_in_rooms(FILENAME, name_rooms[k]))
			name_regex = name_regex (name_regex == "" ? "" : "|") tolower(name_word[k])
	name_regex = name_regex == "" ? "" : "(^|[^a-z])(" name_regex ")([^a-z]|$)"
}
function judge_part(name,   k) {
	if (name in is_listed)
		return
	for (k = 1; k <= n_name_words; k++)
		if ((is_constant[k] ? name : tolower(name)) ~ ("(^|_)(" name_word[k] ")(_|$)") &&
		    is_in_rooms(FILENAME, name_rooms[k])) {
			print FILENAME ":" FNR ": the name " name " has a retired word; write: " name_instead[k]
			bad = 1
		}
}
function judge_code(code,   low, n, part, i) {
	gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
	low = tolower(code)
	if (code ~ /^[ \t]*#[ \t]*include/ || low !~ name_regex)
		return
	n = split(code, part, /[^A-Za-z0-9_]+/)
	for (i = 1; i <= n; i++)
		judge_part(part[i])
}
function learn(code,   i, n, part) {
	if (judged && kind == "c" && name_regex != "")
		judge_code(code)
	if (judged && FILENAME ~ /\.h$/ && code ~ /^#ifndef [A-Z0-9_]*_H$/ && !guarded) {
		guarded = 1
		guard_of[FILENAME] = code = substr(code, 9)
		guards[code] = guards[code] " " FILENAME
	}
	if (code ~ /^[ \t]*#[ \t]*include/) {
		gsub(/^[^<"]*[<"]|[>"].*$/, "", code)
		is_file[code] = 1
		sub(/.*\//, "", code)
		is_file[code] = 1
		return
	}
	n = split(code, part, /[^A-Za-z0-9_]+/)
	for (i = 1; i <= n; i++)
		is_name[part[i]] = 1
}
# The part of a line of C in front of the next comment; the rest goes to `rest`, the comment's second character to
# `opened`.
function before_comment(line,   i, n, c, quote) {
	n = length(line)
	for (i = 1; i <= n; i++) {
		c = substr(line, i, 1)
		if (quote != "") {
			if (c == "\\")
				i++
			else if (c == quote)
				quote = ""
		} else if (c == "\"" || c == "'") {
			quote = c
		} else if (c == "/" && (c = substr(line, i + 1, 1)) ~ /[*\/]/) {
			rest = substr(line, i + 2)
			opened = c
			return substr(line, 1, i - 1)
		}
	}
	rest = ""
	opened = ""
	return line
}
function read_c(line,   end, text) {
	text = ""
	while (line != "") {
		if (inside) {
			end = index(line, "*/")
			if (!end) {
				text = text " " line
				break
			}
			text = text " " substr(line, 1, end - 1)
			line = substr(line, end + 2)
			inside = 0
		} else if (line !~ /\/[*\/]/) {
			learn(line)
			break
		} else {
			learn(before_comment(line))
			if (opened == "/") {
				text = text " " rest
				break
			}
			inside = opened == "*"
			line = rest
		}
	}
	keep(text)
}
BEGIN {
	read_words(words)
	read_paths(known)
	ARGC = 1
	while ((getline line < list) > 0)
		ARGV[ARGC++] = line
	n = split(checked, part, " ")
	for (i = 1; i <= n; i++)
		chosen[part[i]] = 1
}
# What is learnt of a file, and whether it is judged, depends on the end of its name.
FNR == 1 {
	kind = FILENAME ~ /\.(c|h|def|inc|cl|cpp|s)$/ ? "c" : FILENAME ~ /\.md$/ ? "text" : \
	       FILENAME ~ /\.(sh|awk|am|ac)$/ ? "script" : "names"
	judged = kind != "names" && (checked == "" || FILENAME in chosen)
	old = 0
	inside = guarded = 0
	choose_name_words()
}
kind == "c" { read_c($0); next }
kind == "names" { learn($0); next }
# What a release did stays as it was written.
FILENAME ~ /CHANGELOG\.md$/ && /^## \[[0-9]/ { old = 1 }
kind == "text" { if (!old) keep($0); next }
/^[ \t]*#/ { keep($0); next }
{ learn($0) }

function complain(i, text) {
	print file_of[i] ":" line_of[i] ": " text
	bad = 1
}
function judge_words(i,   low, k) {
	low = tolower(kept[i])
	if (low !~ any)
		return
	for (k = 1; k <= n_words; k++)
		if (low ~ regex[k])
			complain(i, "\"" word[k] "\" is retired; write: " instead[k])
}
# Subscripts of formulas (share_i), placeholders, and instructions of cards, which often stand for several (v_cmp).
function is_formula(name) {
	return name ~ /_[A-Za-z0-9]?[A-Za-z0-9]$/ || name ~ /^_|NAME|DIGITS/ || name ~ /^(s|v|ds|va|sa)_/
}
function judge_names(i,   text, name) {
	text = kept[i]
	while (match(text, /[A-Za-z_][A-Za-z0-9_]*\(\)/)) {
		name = substr(text, RSTART, RLENGTH - 2)
		text = substr(text, RSTART + RLENGTH)
		if (!(name in is_name))
			complain(i, "no symbol " name "()")
	}
	text = kept[i]
	while (match(text, /[A-Za-z0-9_.*\/-]+\.(c|h|def|sh|awk|py)([^A-Za-z0-9_]|$)/)) {
		name = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		sub(/[^a-z]$/, "", name)
		sub(/^(\.\.?\/)+/, "", name)
		if (!(name in is_file) && name !~ /[*]|NAME|^.\./)
			complain(i, "no file " name)
	}
	if (kind_of[i] == "text")
		return
	text = kept[i]
	while (match(text, /[A-Za-z0-9_]*[A-Za-z0-9]_[A-Za-z0-9][A-Za-z0-9_]*/)) {
		name = substr(text, RSTART, RLENGTH)
		text = substr(text, RSTART + RLENGTH)
		if (!(name in is_name) && !(name in is_part) && !is_formula(name))
			complain(i, "no name " name)
	}
}
# What a name may be called: without its first or last parts (HEADER_ONLY, JIT_PROFILE_).
function learn_parts(   name, rest, at) {
	for (name in is_name) {
		rest = name
		while ((at = index(rest, "_")) > 0) {
			rest = substr(rest, at + 1)
			is_part[rest] = 1
			is_part[substr(name, 1, length(name) - length(rest))] = 1
		}
	}
}
function judge_guards(   file, base) {
	for (file in guard_of) {
		base = toupper(file)
		gsub(/.*\/|\.H$/, "", base)
		gsub(/[^A-Z0-9]/, "_", base)
		if (guard_of[file] !~ ("(^|_)" base "_H$") && !(guard_of[file] in is_listed)) {
			print file ": the guard " guard_of[file] " does not have the file's name"
			bad = 1
		}
	}
	for (base in guards)
		if (split(guards[base], part, " ") > 1) {
			print "the guard " base " is that of several files:" guards[base]
			bad = 1
		}
}
END {
	learn_parts()
	judge_guards()
	for (i = 1; i <= n_texts; i++) {
		judge_words(i)
		judge_names(i)
	}
	exit bad
}
