#!/bin/sh
# tests/fuzz/run.sh - libFuzzer on every decoder: run.sh SECONDS [TARGET...], in a build directory configured with
# --enable-fuzzers; `make fuzz` calls it.
# What is found lies in fuzz-found, what was learned in fuzz-corpus; `tests/t_fuzz_seeds TARGET FILE` runs a found one
# again.
set -u
seconds=${1:-}
seconds=${seconds:-60}
[ $# -eq 0 ] || shift
tests/t_fuzz_seeds --write fuzz-corpus || exit 1
# Those that have seeds are all that there are.
[ $# -gt 0 ] || set -- `ls fuzz-corpus`
mkdir -p fuzz-found
failed=
for target; do
	echo "== $target, $seconds seconds"
	JITRUN_FUZZ=$target tests/fuzz/fuzz -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=65536 \
		-artifact_prefix="fuzz-found/$target-" -print_final_stats=0 -verbosity=0 \
		"fuzz-corpus/$target" || failed="$failed $target"
done
[ -z "$failed" ] || { echo "found something in:$failed"; exit 1; }
