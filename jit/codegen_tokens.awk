# jit/codegen_tokens.awk - the tokens of C sources, one a line: what the code-generator ids are hashes of.
#
# Owns: what counts as a change of a source. Comments, white space and the folders of included files do not count;
# every token does. Each file's tokens go through the command HASH, which is run anew for each file, in the order of
# the files. POSIX awk, in the C locale.
function emit(token) { print token | HASH }

function next_file() {
	if (file != "")
		close(HASH)
	file = FILENAME
	comment = 0
	joined = held = ""
}

# What ends a directive is the end of its line, so that is a token, too. A macro's name that is followed at once by
# "(" takes arguments.
function directive(line) {
	emit("#")
	sub(/^[ \t]*#[ \t]*/, "", line)
	if (match(line, /^include[ \t]*["<][^">]*[">]/)) {
		name = substr(line, 1, RLENGTH)
		gsub(/^include[ \t]*["<]|[">]$|.*\//, "", name)
		emit("include " name)
		line = substr(line, RLENGTH + 1)
	} else if (match(line, /^define[ \t]+[A-Za-z_0-9]+/)) {
		name = substr(line, 1, RLENGTH)
		sub(/^define[ \t]+/, "", name)
		line = substr(line, RLENGTH + 1)
		emit("define " name (substr(line, 1, 1) == "(" ? " with arguments" : ""))
	}
	tokens(line)
	emit("end of line")
}

function tokens(line) {
	while (line != "") {
		if (match(line, /^[ \t\r\f\v]+/)) {
			line = substr(line, RLENGTH + 1)
			continue
		}
		if (!match(line, /^(L|u8|u|U)?"([^"\\]|\\.)*"/) && !match(line, /^(L|u|U)?'([^'\\]|\\.)*'/) &&
		    !match(line, /^[A-Za-z_][A-Za-z_0-9]*/) && !match(line, /^\.?[0-9]([eEpP][-+]|[A-Za-z_0-9.])*/) &&
		    !match(line, /^(\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-*\/%+&^|]=|##)/))
			RLENGTH = 1
		emit(substr(line, 1, RLENGTH))
		line = substr(line, RLENGTH + 1)
	}
}

# The line without its comments; `comment` says whether one goes on behind it. What stands in quotes is no comment.
function without_comments(line,    out) {
	out = ""
	while (line != "") {
		if (comment) {
			if (!match(line, /\*\//))
				return out
			line = substr(line, RSTART + 2)
			comment = 0
			continue
		}
		if (match(line, /^[^"'\/]+/) || match(line, /^"([^"\\]|\\.)*"/) || match(line, /^'([^'\\]|\\.)*'/)) {
			out = out substr(line, 1, RLENGTH)
			line = substr(line, RLENGTH + 1)
		} else if (substr(line, 1, 2) == "//") {
			return out
		} else if (substr(line, 1, 2) == "/*") {
			out = out " "
			line = substr(line, 3)
			comment = 1
		} else {
			out = out substr(line, 1, 1)
			line = substr(line, 2)
		}
	}
	return out
}

FNR == 1 { next_file() }
/\\$/ { joined = joined substr($0, 1, length($0) - 1); next }
{
	line = without_comments(joined $0)
	joined = ""
	# a directive may go on in the lines of a comment that begins in it
	if (comment && (held != "" || line ~ /^[ \t]*#/)) {
		held = held line
		next
	}
	line = held line
	held = ""
	if (line ~ /^[ \t]*#/)
		directive(line)
	else
		tokens(line)
}
END { close(HASH) }
