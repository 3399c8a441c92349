#!/bin/sh
# scripts/sources.sh [--check] - writes sources.am, the files of the library and of the server by room, which
# Makefile.am includes: all C files of these rooms, so that none has to be named by hand. --check: fails when sources.am
# is not what it would write.
#
# A file that Makefile.am gives to the library itself, as where that depends on what configure finds, is left out, and
# so is a module's. So is one that is not yet added to git.
set -eu
cd "$(dirname "$0")/.."
if ! git ls-files --error-unmatch scripts/sources.sh >/dev/null 2>&1; then # an archive, perhaps within a checkout
	echo "sources.sh: this is no git checkout: sources.am not looked at"
	exit 0
fi
rooms='answers base chat encoders grammar graph include jit kernels-templates language loaders optimise pictures
	quantise runtime train vision'
new=$(mktemp)
trap 'rm -f "$new"' EXIT
own=$(awk '
	{ line = line $0 }
	sub(/\\$/, " ", line) { next }
	line ~ /^(libhouse_la_SOURCES \+=|jitrun_[a-z]+_la_SOURCES =)/ { sub(/^[^=]*=/, "", line); own = own " " line }
	line ~ /^[A-Z_]+ =/ {
		name = "$(" substr(line, 1, index(line, " ") - 1) ")"
		sub(/^[^=]*=/, "", line)
		of[name] = line
	}
	{ line = "" }
	END {
		n = split(own, part, /[ \t]+/)
		for (i = 1; i <= n; i++)
			printf "%s ", part[i] in of ? of[part[i]] : part[i]
	}' Makefile.am | tr '\t' ' ')
# list ROOM FIRST: the room's files; FIRST begins the list.
list() {
	git ls-files "$1/*.c" "$1/*.h" "$1/*.def" | LC_ALL=C sort |
		awk -v first="$2" -v own=" $own " -v tab="$(printf '\t')" '
		index(own, " " $0 " ") { next }
		length(line) + length($0) > 100 || line == "" {
			if (line != "") print line " \\"
			line = (n ? tab : first " ") $0
			n++
			next
		}
		{ line = line " " $0 }
		END { if (line != "") print line }'
}
{
	echo '# The files of the library and of the server. scripts/sources.sh writes this; run it when one is added,'
	echo '# moved or removed.'
	for room in $rooms; do
		list "$room" 'libhouse_la_SOURCES +='
	done
	list server 'SERVER ='
} >"$new"
if [ "${1:-}" = --check ]; then
	cmp -s "$new" sources.am || { echo "sources.am is not what scripts/sources.sh writes; run it"; exit 1; }
else
	cp "$new" sources.am
fi
