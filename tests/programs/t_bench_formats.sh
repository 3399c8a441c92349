#!/bin/sh
# tests/programs/t_bench_formats.sh - jitbench where builds share the work: the models that it makes up, in every format
# of weights, which jitrun reads; and a simulated card of NVIDIA, which takes long with sanitizers.
. "${srcdir:-.}/tests/support/prelude.sh"
XDG_CACHE_HOME=$dir/cache; export XDG_CACHE_HOME
unset TMPDIR
[ -z "${JITRUN_TEST_QUICK:-}" ] || { JITRUN_BENCH_BYTES=16777216 && export JITRUN_BENCH_BYTES; }
run() { ./jitbench "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
quick() { run "$@" -r 1 -t 1; }

formats=$(./jitbench --print-completion bash | sed -n "s/^\t--weights) reply='\(.*\)' ;;/\1/p")
check "the completion lists the formats of weights: $formats" [ "$(echo $formats | wc -w)" -ge 17 ]
number=0
for weights in $formats; do
	number=$((number + 1))
	mine $number || [ $weights = q6_k ] || continue
	quick --shape tiny --weights $weights --write "$dir/$weights.gguf" -p 0 -n 0 --no-start
	check "--weights $weights: $(cat "$dir/err")" [ "$status" = 0 ]
	./jitrun "$dir/$weights.gguf" --prompt "the end" -n 3 -q --print-ids --ignore-eos -t 1 > "$dir/out" 2> \
		"$dir/err"
	check "$weights: jitrun reads the file: $(cat "$dir/err" "$dir/out")" grep -qxE '[0-9]+ [0-9]+ [0-9]+' \
		"$dir/out"
done
quick --shape tiny --weights q6_k --write "$dir/again.gguf" -p 0 -n 0 --no-start
check "the same shape and weights give the same file" cmp -s "$dir/again.gguf" "$dir/q6_k.gguf"

if mine 1; then
	run "$model" -p 0 -n 1 -r 1 --no-start --profile --device sim:sm90
	check "a simulated card: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
	check "it has no limits, and that is told" grep -q '^no share of a limit: the card is simulated' "$dir/out"
	check "so rows have no share" grep -q '^| tg1 .*|  *|  *|$' "$dir/out"
	check "a profile of the test alone: $(cat "$dir/err")" \
		grep -q '^profile of tg1 on sim:sm90: 1 pass over 1 token ' "$dir/err"
	check "without a share of what can be read" [ "$(grep -c ' of read ' "$dir/err")" = 0 ]
fi
if mine 2; then
	run --shape tiny -p 0 -n 1 -r 1 --force --device sim:sm90
	check "a start: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
	check "what a start takes" [ "$(grep -cE '^\| (load|ttft|ttft sealed|ttft cold|rss) +\| ' "$dir/out")" = 5 ]
fi
if mine 3; then
	run --shape tiny --weights bf16 -p 16 -n 0 -r 1 --no-start --profile --device sim:sm90 --numerics bounded
	check "bounded: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
	check "bounded: the table says so: $(cat "$dir/out")" grep -q ', numerics bounded$' "$dir/out"
	check "bounded: products of matrices: $(cat "$dir/err")" grep -q '  matmul\..*\.bounded' "$dir/err"
fi
finish
