#!/bin/sh
# scripts/same_code.sh [-e SED] OLD NEW [MODEL...] - whether two build directories generate the same code: for the
# models given, and for made-up ones in many weight formats, on every kind of target. It compares each kernel's key,
# facts and bytes; the code-generator ids may differ. Each build reads its own packs with its own tests/pack_code, so
# the version of stored files may differ, too. SED is what makes the old build's text of a key the new one's, when keys
# have changed. Prints the lines that differ; the exit status is 0 when there are none.
set -eu
rename=
if [ "$1" = -e ]; then
	rename=$2
	shift 2
fi
old=$(cd "$1" && pwd) new=$(cd "$2" && pwd)
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
kernels=0 failed=0
targets="--target x86 --target gfx1030 --target gfx1101 --target gfx1201 --target sm80 --target sm90"
formats="f32 f16 bf16 q8_0 q4_0 q4_1 q5_0 q5_1 q2_k q3_k q4_k_m q5_k_m q6_k iq4_nl iq4_xs"

# lines BUILD ARGUMENT...: a line for each kernel that this build makes.
lines() {
	build=$1
	shift
	"$build/jitwarm" "$@" $targets --activations any --numerics any --out "$dir/pack.jkp" -q
	"$build/tests/pack_code" "$dir/pack.jkp" > "$dir/lines"
	rm "$dir/pack.jkp"
}

# compare ARGUMENT...: what jitwarm makes for these arguments.
compare() {
	lines "$old" "$@"
	sed "$rename" "$dir/lines" | LC_ALL=C sort > "$dir/old"
	lines "$new" "$@"
	LC_ALL=C sort "$dir/lines" > "$dir/new"
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
