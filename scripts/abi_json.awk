# abi_json.awk - a C program that prints jitrun-abi.json, out of the public headers:
#
#   awk -f scripts/abi_json.awk include/jitrun.h include/jitrun_cards.h ... > abi_json.c
#
# Names come from the headers and numbers from the compiler: each offset, size and kind is an expression in C, and each
# function's type is compared with the one that is printed. The headers are written in one form (.clang-format);
# a declaration of another form ends this program with status 1.
function fail(what) {
	print FILENAME ": not understood: " what > "/dev/stderr"
	failed = 1
	exit 1
}
function trim(s) {
	gsub(/[ \t\n]+/, " ", s)
	sub(/^ /, "", s)
	sub(/ $/, "", s)
	return s
}
function quoted(s) {
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	gsub(/\n/, "\\n", s)
	gsub(/\t/, "\\t", s)
	return "\"" s "\""
}
# What a declarator says, "const char *const *texts" or "char name[32]": d_name, d_type and d_count.
function split_declarator(d) {
	d_count = ""
	d = trim(d)
	if (match(d, /\[[^]]*\]$/)) {
		d_count = substr(d, RSTART + 1, RLENGTH - 2)
		d = trim(substr(d, 1, RSTART - 1))
	}
	if (!match(d, /[A-Za-z_][A-Za-z0-9_]*$/))
		fail(d)
	d_name = substr(d, RSTART)
	d_type = trim(substr(d, 1, RSTART - 1))
}
# The fields of a struct's body; inside: the path to an inner struct, within which offsets count.
function fields(body, struct, inside,    n, i, line, part, base, inner, at, first) {
	first = 1
	while ((body = trim(body)) != "") {
		if (body ~ /^struct \{/) {
			at = index(body, "}")
			inner = substr(body, 9, at - 9)
			body = substr(body, at + 1)
			at = index(body, ";")
			split_declarator("struct " substr(body, 1, at - 1))
			body = substr(body, at + 1)
			field(struct, inside, "struct", first)
			print "\tprintf(\", \\\"fields\\\": [\");"
			nested(inner, struct, d_name, d_count != "")
			print "\tprintf(\"]}\");"
			first = 0
			continue
		}
		at = index(body, ";")
		if (!at)
			fail(body)
		line = trim(substr(body, 1, at - 1))
		body = substr(body, at + 1)
		n = split(line, part, ",")
		split_declarator(part[1])
		base = d_type
		sub(/[ *]*$/, "", base)
		for (i = 1; i <= n; i++) {
			split_declarator(i == 1 ? part[i] : base " " part[i])
			field(struct, inside, d_type, first)
			print "\tprintf(\"}\");"
			first = 0
		}
	}
}
function nested(inner, struct, name, many) { fields(inner, struct, name (many ? "[0]" : "") ".") }
function field(struct, inside, type, first,    path, start) {
	path = inside d_name
	start = inside == "" ? "0" : "offsetof(" struct ", " substr(inside, 1, length(inside) - 1) ")"
	printf "\tFIELD(%s, %s, %s, %s, %s, %s, %s);\n", struct, path, start, quoted(d_name), quoted(type),
		d_count == "" ? "0" : "COUNT(" struct ", " path ")", first ? "\"\"" : "\", \""
	if (type != "struct")
		printf "\tprintf(\", \\\"kind\\\": \\\"%%s\\\"\", KIND(((%s *)0)->%s%s));\n", struct, path,
			d_count == "" ? "" : "[0]"
}
function constants(body, tag,    n, i, part, value) {
	n = split(body, part, ",")
	printf "\tprintf(\"%%s\\n\\t\\t{\\\"name\\\": %s, \\\"values\\\": {\", enums++ ? \",\" : \"\");\n",
		tag == "" ? "null" : "\\\"" tag "\\\""
	for (i = 1; i <= n; i++) {
		value = trim(part[i])
		sub(/ *=.*/, "", value)
		if (value != "")
			printf "\tprintf(\"%s\\\"%s\\\": %%lld\", (long long)%s);\n", (i > 1 ? ", " : ""), value, value
	}
	print "\tprintf(\"}}\");"
}
# "int jit_x(const char *a, size_t n)" or "int (*jit_fn)(void *user)": the parts in JSON.
function signature(returns, name, parameters,    n, i, part, out) {
	n = split(parameters, part, ",")
	out = "{\"name\": " quoted(name) ", \"header\": " quoted(header) ", \"returns\": " quoted(returns)
	out = out ", \"parameters\": ["
	for (i = 1; i <= n && trim(parameters) != "void"; i++) {
		split_declarator(part[i])
		if (d_count != "")
			fail(name)
		out = out (i > 1 ? ", " : "") "{\"name\": " quoted(d_name) ", \"type\": " quoted(d_type) "}"
	}
	return out "]}"
}
function declaration(d,    at, tag, body, part, returns, name, parameters) {
	d = trim(d)
	if (d ~ /^(typedef )?enum( [a-z_]+)? \{/) {
		tag = d
		sub(/^(typedef )?enum ?/, "", tag)
		sub(/ ?\{.*/, "", tag)
		body = d
		sub(/^[^{]*\{/, "", body)
		sub(/\}.*/, "", body)
		enum_body[++n_enums] = body
		enum_tag[n_enums] = tag
	} else if (d ~ /^(typedef )?struct [a-z_]+ \{/) {
		tag = d
		sub(/^(typedef )?struct /, "", tag)
		sub(/ \{.*/, "", tag)
		body = d
		sub(/^[^{]*\{/, "", body)
		sub(/\}[^}]*$/, "", body)
		struct_name[++n_structs] = tag
		struct_body[n_structs] = body
		struct_header[n_structs] = header
		complete[tag] = 1
	} else if (d ~ /^typedef struct [a-z_]+ [a-z_]+$/) {
		split(d, part, " ")
		handle[++n_handles] = part[4]
	} else if (d ~ /^typedef .*\(\*jit_[a-z_]+\)\(/) {
		at = index(d, "(*")
		returns = trim(substr(d, 9, at - 9))
		name = substr(d, at + 2)
		sub(/\).*/, "", name)
		parameters = substr(d, index(d, ")(") + 2)
		sub(/\)$/, "", parameters)
		callback[++n_callbacks] = signature(returns, name, parameters)
	} else if (d ~ /^[a-z].*jit_[a-z0-9_]+\(.*\)$/) {
		at = index(d, "(")
		split_declarator(substr(d, 1, at - 1))
		returns = d_type
		name = d_name
		parameters = substr(d, at + 1)
		sub(/\)$/, "", parameters)
		asserted[++n_functions] = "_Static_assert(_Generic(&" name ", " returns " (*)(" parameters \
			"): 1, default: 0), \"" name "\");"
		functions[n_functions] = signature(returns, name, parameters)
	} else if (d != "") {
		fail(d)
	}
}
FNR == 1 {
	header = FILENAME
	sub(/.*\//, "", header)
	included = included "#include \"" header "\"\n"
	inside = skip = 0
}
{
	line = $0
	if (skip || line ~ /^[ \t]*#/) {
		skip = line ~ /\\$/
		next
	}
	if (line == "extern \"C\" {" || line == "}")
		next
	# comments, of which several may lie in a line
	while (1) {
		if (inside) {
			if (!(at = index(line, "*/"))) {
				line = ""
				break
			}
			line = substr(line, at + 2)
			inside = 0
		}
		if (!(at = index(line, "/*")))
			break
		text = text " " substr(line, 1, at - 1)
		line = substr(line, at + 2)
		inside = 1
	}
	if (!inside)
		text = text " " line
	# up to a semicolon outside of braces
	while (1) {
		depth = 0
		for (at = 1; at <= length(text); at++) {
			c = substr(text, at, 1)
			depth += (c == "{") - (c == "}")
			if (c == ";" && depth == 0)
				break
		}
		if (at > length(text))
			break
		declaration(substr(text, 1, at - 1))
		text = substr(text, at + 1)
	}
}
END {
	if (failed)
		exit 1
	if (trim(text) != "")
		fail(text)
	print "/* Made by scripts/abi_json.awk. */\n#include <stddef.h>\n#include <stdio.h>\n"
	print included
	print "#define KIND(x) _Generic((x), char: \"char\", int32_t: \"int32\", uint32_t: \"uint32\", \\"
	print "\tint64_t: \"int64\", uint64_t: \"uint64\", float: \"float\", double: \"double\", default: \"pointer\")"
	print "#define COUNT(type, field) (sizeof(((type *)0)->field) / sizeof *((type *)0)->field)"
	print "#define FIELD(type, field, start, name, text, count, before) \\"
	print "\tput_field(before, name, text, offsetof(type, field) - (start), sizeof(((type *)0)->field), count)\n"
	print "static void put_field(const char *before, const char *name, const char *type, size_t offset,"
	print "\tsize_t size, size_t count)\n{"
	print "\tprintf(\"%s{\\\"name\\\": \\\"%s\\\", \\\"type\\\": \\\"%s\\\", \", before, name, type);"
	print "\tprintf(\"\\\"offset\\\": %zu, \\\"size\\\": %zu\", offset, size);"
	print "\tif (count)\n\t\tprintf(\", \\\"count\\\": %zu\", count);\n}\n"
	for (i = 1; i <= n_functions; i++)
		print asserted[i]
	print "\nint main(void)\n{\n\tint enums = 0;\n"
	print "\tprintf(\"{\\n\\t\\\"version\\\": \\\"%s\\\",\\n\\t\\\"library\\\": \\\"libjitrun.so.1\\\",\","
	print "\t\tJITRUN_VERSION);"
	print "\tprintf(\"\\n\\t\\\"pointer\\\": %zu,\\n\\t\\\"enums\\\": [\", sizeof(void *));"
	for (i = 1; i <= n_enums; i++)
		constants(enum_body[i], enum_tag[i])
	print "\tprintf(\"\\n\\t],\\n\\t\\\"structs\\\": [\");"
	for (i = 1; i <= n_structs; i++) {
		printf "\tprintf(\"%s\\n\\t\\t{\\\"name\\\": \\\"%s\\\", \\\"header\\\": \\\"%s\\\", \");\n",
			(i > 1 ? "," : ""), struct_name[i], struct_header[i]
		printf "\tprintf(\"\\\"size\\\": %%zu, \\\"fields\\\": [\", sizeof(struct %s));\n", struct_name[i]
		fields(struct_body[i], "struct " struct_name[i], "")
		print "\tprintf(\"]}\");"
	}
	print "\tprintf(\"\\n\\t],\\n\\t\\\"handles\\\": [\");"
	for (i = k = 1; i <= n_handles; i++)
		if (!(handle[i] in complete))
			printf "\tprintf(\"%s\\\"%s\\\"\");\n", (k++ > 1 ? ", " : ""), handle[i]
	print "\tprintf(\"],\\n\\t\\\"callbacks\\\": [\");"
	for (i = 1; i <= n_callbacks; i++)
		printf "\tfputs(%s, stdout);\n", quoted((i > 1 ? "," : "") "\n\t\t" callback[i])
	print "\tprintf(\"\\n\\t],\\n\\t\\\"functions\\\": [\");"
	for (i = 1; i <= n_functions; i++)
		printf "\tfputs(%s, stdout);\n", quoted((i > 1 ? "," : "") "\n\t\t" functions[i])
	print "\tprintf(\"\\n\\t]\\n}\\n\");\n\treturn fflush(stdout) || ferror(stdout);\n}"
}
