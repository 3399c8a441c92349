#!/bin/sh
# scripts/sources.sh [--check] - writes sources.am, the library's files by room, which Makefile.am includes: all C files
# of the library's rooms, so that none has to be named by hand. --check: fails when sources.am is not what it would
# write.
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
{
	echo '# The files of the library. scripts/sources.sh writes this; run it when one is added, moved or removed.'
	for room in $rooms; do
		git ls-files "$room/*.c" "$room/*.h" "$room/*.def" | LC_ALL=C sort |
			awk -v room="$room" -v own=" $own " -v tab="$(printf '\t')" '
			index(own, " " $0 " ") { next }
			length(line) + length($0) > 100 || line == "" {
				if (line != "") print line " \\"
				line = (n ? tab : "libhouse_la_SOURCES += ") $0
				n++
				next
			}
			{ line = line " " $0 }
			END { if (line != "") print line }'
	done
} >"$new"
if [ "${1:-}" = --check ]; then
	cmp -s "$new" sources.am || { echo "sources.am is not what scripts/sources.sh writes; run it"; exit 1; }
else
	cp "$new" sources.am
fi
