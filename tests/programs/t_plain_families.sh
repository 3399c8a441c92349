#!/bin/sh
# tests/programs/t_plain_families.sh - models of random configurations beside plain loops in double precision
# (tests/sweep/plain.py), random adapters beside such (tests/sweep/adapters.py), and adapters of small models beside the
# same change in their weights (tests/sweep/adapters_merged.py).
set -eu
srcdir=${srcdir:-.}
python=
for p in python3 /usr/bin/python3; do
	command -v "$p" >/dev/null && "$p" -c 'import numpy' 2>/dev/null && { python=$p; break; }
done
[ -n "$python" ] || { echo "skipped: python3 has no numpy here"; exit 77; }
cases=8 prompts=3
[ -z "${JITRUN_TEST_QUICK:-}" ] || cases=1 prompts=1
[ -z "${JITRUN_TEST_FULL:-}" ] || cases=100
export PYTHONDONTWRITEBYTECODE=1
"$python" "$srcdir/tests/sweep/plain.py" --jitrun ./jitrun --number $cases --prompts $prompts
"$python" "$srcdir/tests/sweep/adapters.py" --jitrun ./jitrun --number $((cases * 2))
golden=${JITRUN_SHARED:-$srcdir/../shared}/golden
[ -d "$golden" ] || exit 0
models=qwen3moe-a,mixtral-a,gptoss-a,granitemoe-a,seedoss-a
[ -z "${JITRUN_TEST_QUICK:-}" ] || models=qwen3moe-a,gptoss-a
[ -z "${JITRUN_TEST_FULL:-}" ] || models=
exec "$python" "$srcdir/tests/sweep/adapters_merged.py" --jitrun ./jitrun --golden "$golden" \
	${models:+--model "$models"}
