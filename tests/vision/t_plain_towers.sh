#!/bin/sh
# tests/vision/t_plain_towers.sh - image encoders of random configurations beside plain loops in double precision
# (plain_towers.py).
set -u
srcdir=${srcdir:-.}
python=
for p in python3 /usr/bin/python3; do
	command -v "$p" >/dev/null && "$p" -c 'import numpy' 2>/dev/null && { python=$p; break; }
done
[ -n "$python" ] || { echo "skipped: python3 has no numpy here"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
[ -x tests/t_tower ] || { echo "skipped: there is no tests/t_tower"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
number=12
[ -n "${JITRUN_TEST_QUICK:-}" ] && number=2
[ -n "${JITRUN_TEST_FULL:-}" ] && number=200
"$python" "$srcdir/tests/vision/plain_towers.py" "$dir/towers" --number $number || exit 1
JITRUN_TOWERS=$dir/towers tests/t_tower >"$dir/out" 2>&1
status=$?
grep -E '^# [a-z0-9]+-[0-9]+:|ERROR|FAILED' "$dir/out"
exit $status
