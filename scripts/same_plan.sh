#!/bin/sh
# scripts/same_plan.sh OLD NEW [MODEL...] - whether two build directories build the same plans: for the models given, or
# for the model in the tree and every golden one that $JITRUN_SHARED has, on CPUs and cards, for passes of 1, 4, 16 and
# 64 tokens. It compares every op's key, units, arguments (as buffer and offset), barriers and marks, and the plan's
# stages, sections and changing slots. Each build is asked through its own tests/plan_lines (make tests/plan_lines).
# Prints the lines that differ; the exit status is 0 when there are none.
#
# scripts/same_plan.sh --record BUILD FILE [MODEL...] writes a checksum of each model's lines to FILE instead;
# scripts/same_plan.sh --against FILE BUILD compares a build with such a file, when the old build is no longer there.
set -eu
case ${1-} in
--record) mode=record build=$2 file=$3; shift 3 ;;
--against) mode=against file=$2 build=$3; shift 3 ;;
*) mode=compare old=$1 build=$2; shift 2 ;;
esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
tree=$(cd "$(dirname "$0")/.." && pwd)
shared=${JITRUN_SHARED:-$tree/../shared}
if [ $# -eq 0 ]; then
	set -- "$tree/models/tale-q8_0.gguf"
	for model in "$shared"/golden/*/ "$shared"/golden/*/*.gguf; do
		if [ -e "$model" ]; then set -- "$@" "$model"; fi
	done
fi

# sum MODEL: a checksum of what the build says of it; the model by its last two names, which no place changes.
sum() {
	"$build/tests/plan_lines" "$1" | tail -n +2 > "$dir/new"
	printf '%s %s %s\n' "$(sha256sum < "$dir/new" | cut -c1-32)" "$(wc -l < "$dir/new" | tr -d ' ')" \
		"$(echo "$1" | awk -F/ '{ sub("/$", ""); print $(NF - 1) "/" $NF }')"
}

failed=0 lines=0
case $mode in
record)
	for model in "$@"; do sum "$model"; done > "$file"
	lines=$(awk '{ n += $2 } END { print n + 0 }' "$file")
	;;
against)
	for model in "$@"; do sum "$model"; done > "$dir/sums"
	lines=$(awk '{ n += $2 } END { print n + 0 }' "$dir/sums")
	diff "$file" "$dir/sums" || failed=1
	;;
compare)
	for model in "$@"; do
		"$old/tests/plan_lines" "$model" > "$dir/old"
		"$build/tests/plan_lines" "$model" > "$dir/new"
		lines=$((lines + $(wc -l < "$dir/new")))
		cmp -s "$dir/old" "$dir/new" && continue
		failed=1
		echo "differs: $model"
		diff "$dir/old" "$dir/new" | head -5
	done
	;;
esac
echo "$lines lines of the plans of $# models"
exit $failed
