#!/bin/sh
# tests/programs/t_bench_formats.sh - the models that jitbench makes up, in every format of weights: jitrun reads them.
. "${srcdir:-.}/tests/support/prelude.sh"
XDG_CACHE_HOME=$dir/cache; export XDG_CACHE_HOME
unset TMPDIR
[ -z "${JITRUN_TEST_QUICK:-}" ] || { JITRUN_BENCH_BYTES=16777216 && export JITRUN_BENCH_BYTES; }
quick() { ./jitbench "$@" -r 1 -t 1 > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }

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

finish
