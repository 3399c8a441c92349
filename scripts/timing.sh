#!/bin/sh
# scripts/timing.sh - processor seconds of tests: what they took, what they may take, and which take more.
#
# of DIR:            "SECONDS TEST" for each test that ran in a build directory, the longest first
# grew RECORD BUILD: reads such lines, and prints the tests that took more than tests/timing grants them in this
#                    column ("gcc" or "sanitizers"), then the sum, in one line. It judges nothing: machines differ.
set -u

times_of() {
	find "$1" -name '*.trs' | while read -r trs; do
		awk -v test="$(basename "${trs%.trs}" .sh)" '
			function seconds(time,  part) { split(time, part, /[ms]/); return part[1] * 60 + part[2] }
			/^# user and system time/ { at = NR }
			at && NR == at + 2 { printf "%.1f %s\n", seconds($1) + seconds($2), test }' "${trs%.trs}.log"
	done 2>/dev/null | sort -k 1,1rn -k 2
}

case ${1-} in
of) times_of "$2" ;;
grew)
	awk -v build="$3" '
		NR == FNR && /^#/ { next }
		NR == FNR && /^test / { for (i = 2; i <= NF; i++) if ($i == build) column = i; next }
		NR == FNR { budget[$1] = $column; next }
		{
			granted = $2 in budget ? budget[$2] : budget["others"]
			sum += $1
			n++
			if ($1 > granted) grown = grown sprintf("%s%s %.0f s of %s", grown ? ", " : "", $2, $1, granted)
		}
		END {
			printf "%d tests, %.0f s of processor time", n, sum
			if ("all" in budget) printf " of %s", budget["all"]
			print grown ? "; over their budget: " grown : "; all within their budgets"
		}' "$2" -
	;;
*) sed -n '2,6s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
