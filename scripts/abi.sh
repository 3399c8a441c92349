#!/bin/sh
# abi.sh - the binary interface of libjitrun, held against the record of it.
#
#   scripts/abi.sh check LIBRARY RECORD HEADER...    what a program compiled earlier relies on must be as it was
#   scripts/abi.sh record LIBRARY RECORD HEADER...   writes the record anew, when a version is published
#
# The library must have debugging information. Without abidiff (libabigail) check says so and passes: status 77.
# Functions may be added, and fields at the end of a struct that begins with its size. All else fails: what abidiff says
# of a change is read line by line, and a line that is not known to be harmless is a failure.
set -u
command=$1 library=$2 record=$3
shift 3
command -v abidiff > /dev/null && command -v abidw > /dev/null || {
	echo "abi.sh: there is no abidiff here (package abigail-tools): the binary interface was not compared"
	exit 77
}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/headers"
cp "$@" "$dir/headers" || exit 1

write() {
	abidw --headers-dir "$dir/headers" --drop-private-types --exported-interfaces-only \
		--drop-undefined-syms --no-show-locs \
		--no-corpus-path --no-comp-dir-path --no-elf-needed --no-parameter-names --out-file "$1" "$library"
}

if [ "$command" = record ]; then
	write "$record"
	exit
fi

write "$dir/new.abi" || exit 1
abidiff --no-show-locs --no-added-syms "$record" "$dir/new.abi" > "$dir/report" 2>&1
status=$?
# 4: something changed, perhaps for the good; any other bit: it did not work, or something is gone.
if [ "$status" = 4 ]; then
	awk '
		/^$/ || /^Functions changes summary: 0 Removed/ { next }
		/^Variables changes summary: 0 Removed, 0 Changed/ { next }
		/^[0-9]+ functions? with some indirect sub-type change/ { next }
		/^ +\[C\] .function .* has some indirect sub-type changes:$/ { next }
		/^ +(parameter [0-9]+ of type|return type) .*:$/ && /(has sub-type changes|changed):$/ { next }
		/^ +in (pointed to|unqualified underlying) type / { next }
		/^ +type of .*\* .* changed:$/ || /^ +[0-9]+ data member (insertions?|changes?):$/ { next }
		/as (being )?reported( earlier)?/ || /details were reported earlier/ { next }
		/^ +type size hasn.t changed$/ { next }
		# of members whose types are reported by themselves
		/^ +no data member changes? \([0-9]+ filtered\);$/ { next }
		/^ +underlying type .struct jit_error. changed/ { bad = 1 }
		/^ +underlying type .struct jit_[a-z_]*. changed(:|, as)/ { size = -1; next }
		/^ +type size changed from [0-9]+ to [0-9]+ \(in bits\)$/ {
			for (i = 1; i < NF; i++)
				if ($i == "from")
					size = $(i + 1)
			next
		}
		/^ +.*, at offset [0-9]+ \(in bits\)$/ {
			for (i = 1; i < NF; i++) if ($i == "offset") at = $(i + 1)
			if (size < 0 || at + 0 < size + 0) { print "in the middle of a struct: " $0; bad = 1 }
			next
		}
		{ print; bad = 1 }
		END { exit bad }' "$dir/report" > "$dir/harm" && status=0
fi
[ "$status" = 0 ] && exit
cat "$dir/report"
[ -s "$dir/harm" ] && { echo "abi.sh: not harmless:"; cat "$dir/harm"; }
echo "abi.sh: a program compiled against the recorded interface ($record) may not run with $library"
exit 1
