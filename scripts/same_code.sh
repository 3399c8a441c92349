#!/bin/sh
# scripts/same_code.sh OLD NEW [MODEL...] - whether two build directories generate the same code: for the models given,
# and for made-up ones in many weight formats, on every kind of target. It compares each kernel's bytes; the
# code-generator ids may differ. Prints the lines that differ; the exit status is 0 when there are none.
set -eu
old=$(cd "$1" && pwd) new=$(cd "$2" && pwd)
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
kernels=0 failed=0
targets="--target x86 --target gfx1030 --target gfx1101 --target gfx1201"
formats="f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k_m q5_k_m q6_k iq4_nl iq4_xs"

# compare ARGUMENT...: what jitwarm makes for these arguments.
compare() {
	for build in "$old" "$new"; do
		"$build/jitwarm" "$@" $targets --activations any --numerics any --out "$dir/pack.jkp" -q
		which=$([ "$build" = "$old" ] && echo old || echo new)
		"$new/tests/pack_code" "$dir/pack.jkp" | LC_ALL=C sort > "$dir/$which"
		rm "$dir/pack.jkp"
	done
	kernels=$((kernels + $(wc -l < "$dir/new")))
	diff "$dir/old" "$dir/new" > "$dir/diff" || { failed=1; echo "differs: $*"; head -5 "$dir/diff"; }
}

for model in "$@"; do compare "$model"; done
for weights in $formats; do compare --shape tiny --weights "$weights"; done
for shape in qwen3-0.6b llama-3.2-1b; do
	for weights in bf16 q8_0 q4_k_m; do compare --shape "$shape" --weights "$weights"; done
done
echo "$kernels kernels compared"
exit $failed
