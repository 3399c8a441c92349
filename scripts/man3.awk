# man3.awk - the library's page of section 3, out of the comments and declarations of its headers:
#
#   headers=$(ls include/jitrun*.h)
#   awk -f scripts/man3.awk look=1 $headers look=0 $headers > jitrun.3
#
# The headers are read twice: first for the names of functions, by which the page is found.
#
# Comments that begin a line become text, "/* ---- name */" a section, and everything else an example in fixed pitch.
# What only compilers need is left out.
function roff(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	if (s ~ /^[.']/)
		s = "\\&" s
	return s
}
# The heading of a header: by its name, where that does not say it.
function title(file) {
	sub(/.*jitrun_/, "", file)
	sub(/\.h$/, "", file)
	return file == "cards"     ? "GRAPHICS CARDS" \
	       : file == "batch"   ? "BATCHES" \
	       : file == "grammar" ? "GRAMMARS" \
	       : file == "tokens"  ? "VOCABULARIES" \
	                           : toupper(file)
}
function mode(m) {
	if (m == now)
		return
	if (now == "code")
		print ".EE"
	if (m == "code")
		print ".PP\n.EX"
	if (m == "text")
		print ".PP"
	now = m
}
function code(s) {
	gsub(/\t/, "    ", s)
	if (s == "" && now != "code")
		return
	mode("code")
	print s == "" ? "" : roff(s)
}
function text(s) {
	sub(/^ ?\* ?/, "", s)
	if (s ~ /^    /)
		code(s)
	else if (s == "") {
		mode("")
	} else {
		mode("text")
		print roff(s)
	}
}
look && FNR == 1 {
	header = FILENAME
	sub(/.*\//, "", header)
	includes = includes "\n#include <" header ">"
}
look {
	if (/^[a-z]/ && !/^typedef/ && match($0, /[ *]jit_[a-z0-9_]+\(/))
		names = names ", " substr($0, RSTART + 1, RLENGTH - 2)
	next
}
!begun++ {
	print ".TH JITRUN 3 \"" day "\" \"jitrun " version "\" \"Library Functions\"\n.ad l"
	print ".SH NAME\njitrun" names " \\- run a large language model from C\n.SH SYNOPSIS"
	print ".EX" includes "\n"
	print "cc program.c $(pkg\\-config \\-\\-cflags \\-\\-libs jitrun)\n.EE"
	print ".SH DESCRIPTION"
}
FNR == 1 {
	mode("")
	if (headers++)
		print ".SH " title(FILENAME)
}
skip { skip = /\\$/; next }
/^#/ { skip = /\\$/; next }
/^extern "C"/ || /^}$/ { next }
/^\/\* ---- / { mode(""); sub(/^\/\* ---- /, ""); sub(/ \*\/$/, ""); print ".SH " toupper($0); next }
/^\/\*/ { inside = 1; sub(/^\/\*/, " *") }
inside {
	if (sub(/ ?\*\/ *$/, ""))
		inside = 0
	text($0)
	if (!inside)
		mode("")
	next
}
{ code($0) }
END { mode(""); print ".SH SEE ALSO\n.BR jitrun (1),\n.BR jitwarm (1)" }
