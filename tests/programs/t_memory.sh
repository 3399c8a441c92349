#!/bin/sh
# tests/programs/t_memory.sh - the programs where memory is short: whatever the limit of their address space, they give all that they give without one, or one sentence.
# JITRUN_TEST_QUICK: fewer limits; JITRUN_TEST_FULL: many.
. "${srcdir:-.}/tests/support/prelude.sh"
step=1100
test -n "${JITRUN_TEST_QUICK:-}" && step=4100
test -n "${JITRUN_TEST_FULL:-}" && step=130

# limited KIB COMMAND...
limited() {
	kib=$1; shift
	(ulimit -v "$kib"; exec "$@") > "$dir/out" 2> "$dir/err" < /dev/null
	status=$?
}
# 127: the program could not even be loaded, which is the loader's business.
refused_in_a_sentence() {
	[ "$status" = 127 ] || { [ "$status" = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] && grep -q "^$name: .*\.$" "$dir/err"; }
}
# sweep TO COMMAND...: limits from 8 MB to that, in KIB
sweep() {
	to=$1 kib=$((8000 + $2)) done=0 refused=0; shift 2
	name=${1#./}
	while [ "$kib" -lt "$to" ]; do
		limited "$kib" "$@"
		if [ "$status" = 0 ] && cmp -s "$dir/out" "$dir/all"; then
			done=$((done + 1))
		elif refused_in_a_sentence; then
			refused=$((refused + 1))
		else
			bad "$* in $kib KiB: status $status, $(wc -c < "$dir/out") bytes written, and said: $(head -c 300 "$dir/err")"
		fi
		kib=$((kib + step))
	done
	check "$* in up to $to KiB: some limits are enough" [ $done -gt 0 ]
	check "$*: some limits are not" [ $refused -gt 0 ]
}

limited 90000 ./jitrun --version
if [ "$status" != 0 ]; then
	echo "# skipped: the address space cannot be limited here, or the programs are built with a sanitizer"
	exit 77
fi
./jitrun "$model" --prompt Once -n 4 -q --no-cache > "$dir/all" || bad "jitrun without a limit"
sweep 100000 0 ./jitrun "$model" --prompt Once -n 4 -q --no-cache -t 1
sweep 100000 700 ./jitrun "$model" --prompt Once -n 4 -q --no-cache -t 3
: > "$dir/all"
sweep 60000 300 ./jitwarm "$model" --out "$dir/kernels.jkp" -q
finish
