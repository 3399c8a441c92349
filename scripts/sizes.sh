#!/bin/sh
# scripts/sizes.sh - whether the sources keep their limits: lines of 120 columns, C files of 500 lines, tables (*.def)
# of 600, functions of 60.
#
# Prints what is over a limit, one finding a line; the exit status is 1 when there is a finding. A tab ends at the next
# multiple of 8 columns. Functions are measured with universal-ctags; without it, that part is left out and says so.
set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/.."
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	echo "sizes.sh: this is no git checkout: sizes not looked at"
	exit 0
fi

# Files that may have more than 500 lines: tables and golden files.
tables="
"

# What is over a limit and still to be mended. Only take lines away; one that is no longer needed is a finding, too.
to_do="
"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Findings begin with what the list above names: "columns FILE", "lines FILE" or "function FILE NAME"; then a tab.
find_long_lines() {
	awk '{
		gsub(/[\200-\277]/, "") # of a character in UTF-8, the first byte counts
		column = 0
		n = split($0, part, "\t")
		for (i = 1; i < n; i++)
			column += length(part[i]) + 8 - (column + length(part[i])) % 8
		column += length(part[n])
		if (column > 120)
			print "columns " FILENAME "\tline " FNR " has " column " columns, at most 120 are expected"
	}' "$@"
}

find_long_files() {
	awk -v tables="$tables" 'BEGIN { n = split(tables, name, " "); for (i = 1; i <= n; i++) table[name[i]] = 1 }
		{ lines[FILENAME] = FNR }
		END {
			for (file in lines) {
				max = file ~ /\.def$/ ? 600 : 500
				if (lines[file] > max && !(file in table))
					print "lines " file "\t" lines[file] " lines, at most " max " are expected"
			}
		}' "$@" | sort
}

find_long_functions() {
	if ! ctags --version 2>/dev/null | grep -q Universal; then
		echo "sizes.sh: universal-ctags is not here: lengths of functions not looked at" >&2
		return
	fi
	ctags -x --langmap=C:.c.h --kinds-C=f --fields=+ne --_xformat='%{end} %n %F %N' "$@" >"$work/functions"
	touch "$work/functions-seen"
	awk '$1 - $2 + 1 > 60 {
		print "function " $3 " " $4 "\t" $1 - $2 + 1 " lines, at most 60 are expected"
	}' "$work/functions"
}

c_files=$(git ls-files '*.c' '*.h')
{
	find_long_lines $c_files $(git ls-files '*.def' '*.sh' '*.awk' '*.s' '*.inc' '*.cl' '*.map' '*.in' \
		Makefile.am configure.ac .ci bench)
	find_long_files $c_files $(git ls-files '*.def')
	find_long_functions $c_files
} >"$work/found"

printf '%s\n' "$to_do" | awk -v functions="$(test -e "$work/functions-seen" && echo yes)" '
	FNR == NR {
		if ($0 != "")
			listed[$0] = 1
		next
	}
	{
		split($0, part, "\t")
		if (part[1] in listed) {
			found[part[1]] = 1
		} else {
			failed = 1
			print part[1] ": " part[2]
		}
	}
	END {
		for (one in listed)
			if (!(one in found) && (functions || one !~ /^function /)) {
				failed = 1
				print one ": not over its limit; take it off the list in scripts/sizes.sh"
			}
		exit failed
	}' - "$work/found"
