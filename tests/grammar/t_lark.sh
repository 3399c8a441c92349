#!/bin/sh
# tests/grammar/t_lark.sh - grammars and texts drawn at random, by Lark itself (Debian: python3-lark): lark_judge.py.
# `t_lark.sh FROM N` draws other ones.
. "${srcdir:-.}/tests/support/prelude.sh"
python=
for p in /usr/bin/python3 python3; do
	command -v $p > /dev/null && $p -c 'import lark' 2> /dev/null && python=${python:-$p}
done
[ -n "$python" ] || { echo "# skipped: there is no python3 with lark"; exit 77; }
n=200
[ -z "${JITRUN_TEST_QUICK:-}" ] || n=30
[ -z "${JITRUN_TEST_FULL:-}" ] || n=2000
said=$($python "$top/tests/grammar/lark_judge.py" "tests/t_lark --judge" "${1:-1}" "${2:-$n}" 2>&1)
check "as Lark takes them: $(echo "$said" | tail -n 30)" [ $? = 0 ]
echo "$said" | tail -n 1
finish
