#!/bin/sh
# tests/programs/t_warm_device.sh - jitwarm --device from outside, with a simulated card: what its driver makes of
# kernels goes into directories, packs and packed models, all commands know it, and sealed runs need it.
. "${srcdir:-.}/tests/support/prelude.sh"
JITRUN_CACHE=$dir/cache XDG_CACHE_HOME=$dir/xdg
export JITRUN_CACHE XDG_CACHE_HOME
unset JITRUN_WEIGHT_CACHE
run() { ./jitwarm "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
out() { grep -qE -e "$1" "$dir/out"; }
err() { grep -qE -e "$1" "$dir/err"; }
card="--device sim:sm90"
less="--kv-type f16 --batch 4"
rest='"removed":0,"abandoned_files":0,"wrong":\[\]\}$'
by="a driver's: compute capability 9.0, CUDA 13.0"
# Quantised weights have four times as many kernels, which the quick size does without.
kernel=quantise.sm90 another="--shape tiny"
if [ -n "${JITRUN_TEST_QUICK:-}" ]; then
	kernel=embed.bf16.512x256.sm90 model=$dir/tiny.gguf
	another="--shape hidden=64,layers=1,heads=2,head_dim=32,ffn=64,vocab=512 --weights bf16"
	./jitbench --shape tiny --weights bf16 --write "$model" -p 0 -n 0 -r 1 -t 1 --no-start > "$dir/out" 2>&1
	check "a small model is made: $(cat "$dir/out")" [ -s "$model" ]
fi

# ---- making
is 0 "$model" $card $less --out "$dir/store"
check "it counts both: $(cat "$dir/err")" err ': [0-9]+ kernels for sm90, and what drivers make of [0-9]+; [0-9]+ gen'
is 0 "$model" $card $less --out "$dir/store"
check "nothing is made twice: $(cat "$dir/err")" err '; 0 generated, [1-9]'
is 0 "$model" $card $less --out "$dir/a.jkp" --json
check "--json counts them: $(cat "$dir/out")" out \
	'"target":"sm90","kernels":([0-9]+)\}\],"kernels":\1,.*"by_drivers":\1\}'
cp "$dir/a.jkp" "$dir/b.jkp"
is 0 $another $card --target avx2 $less --out "$dir/b.jkp"
check "a pack is added to: $(cat "$dir/err")" err '; [1-9][0-9]* of them were there before'
is 0 verify "$dir/b.jkp" $card
for other in "--target avx2" "--device sim:sm80"; do # nothing is taken over that cannot be made again
	is 1 "$model" $other $less --out "$dir/b.jkp"
	check "by its driver alone: $(cat "$dir/err")" err \
		"b.jkp: holds what a card's driver made \(compute capability 9.0, CUDA 13.0\), .*; --replace makes"
done
is 0 "$model" --device sim:sm80 $less --out "$dir/b.jkp" --replace
is 1 "$model" --device cpu --out "$dir/no"
check "cpu has no driver: $(cat "$dir/err")" \
	err 'the device "cpu" has no driver that makes code: --device is for cuda'
is 1 "$model" --device ufo --out "$dir/no"
check "unknown devices are refused: $(cat "$dir/err")" err 'device "ufo" is unknown'
check "before anything is made" [ ! -e "$dir/no" ]

# ---- looking
is 0 list "$dir/store" --json
check "list --json says by whom" out '"driver":"compute capability 9.0, CUDA 13.0"'
check "all is good" out '"unusable":0,'
is 0 explain "$model" $card $less --cache "$dir/store"
check "explain knows it" out "^hit   $kernel \($by\)"
is 3 explain "$model" --device sim:sm80 $less --cache "$dir/store"
check "and what is missing" out "^miss  ${kernel%90}80 .*'jitwarm MODEL --device sim:sm80 --out CACHE' makes it"
is 0 show $kernel --cache "$dir/store"
check "show tells of it" \
	out "^# a driver's code of it \(compute capability 9.0, CUDA 13.0\), [0-9]+ bytes, is in the cache"
is 0 show $kernel --cache "$dir/store" --json
check "in JSON too" out '"drivers":\[\{"driver":"compute capability 9.0, CUDA 13.0","code_bytes":'

# ---- verifying
is 0 verify "$dir/store"
check "without the driver it is not compared: $(cat "$dir/err")" \
	err '^[1-9][0-9]* were made by a card.s driver and not comp'
is 0 verify "$dir/store" $card --json
check "with it all is: $(cat "$dir/out")" \
	out '"same":[1-9][0-9]*,"different":0,"damaged":0,"other_version":0,'"$rest"
key=$(tests/forge_pack "$dir/a.jkp" "$dir/forged.jkp" driver)
is 0 verify "$dir/forged.jkp"
is 3 verify "$dir/forged.jkp" $card
check "a byte that differs is found: $(cat "$dir/out")" out "forged.jkp: $key differs from the code generated now"
is 1 import "$dir/forged.jkp" --cache "$dir/nothing" $card
check "and not imported: $(cat "$dir/err")" err "the code of $key in the pack .* is not what is made for this key"
is 0 gc "$dir/store"
check "gc leaves it: $(cat "$dir/err")" err '^0 entries of 0.00 MiB removed'

# ---- moving
is 0 export "$dir/c.jkp" --cache "$dir/store"
check "export takes all" cmp -s "$dir/a.jkp" "$dir/c.jkp"
is 0 export "$dir/d.jkp" --cache "$dir/store" --target sm90
check "by target too" cmp -s "$dir/a.jkp" "$dir/d.jkp"
is 1 import "$dir/a.jkp" --cache "$dir/imported"
check "import cannot compare without the driver: $(cat "$dir/err")" \
	err 'made by a card.s driver \(compute capability 9.0, CUDA'
is 0 import "$dir/a.jkp" --cache "$dir/imported" $card
is 0 import "$dir/a.jkp" --cache "$dir/unverified" --unverified
is 0 verify "$dir/imported" $card --json
check "what was imported is the same" \
	out '"different":0,"damaged":0,"other_version":0,'"$rest"

# ---- running
ask="--prompt Once -n 2 --temp 0 --context 32"
sealed() { JITRUN_CACHE= ./jitrun "$@" --sealed $ask > "$dir/said" 2> "$dir/err"; }
./jitrun "$model" $card --cache "$dir/other" $ask > "$dir/want" 2>/dev/null
for cache in store a.jkp imported; do
	sealed "$model" $card --cache "$dir/$cache" --batch 4
	check "a sealed run from $cache: $(cat "$dir/err")" cmp -s "$dir/want" "$dir/said"
done
is 0 "$model" --target sm90 $less --out "$dir/texts.jkp" -q
sealed "$model" $card --cache "$dir/texts.jkp" --batch 4
check "texts alone are refused: $(cat "$dir/err")" err "the cache has the text, but not the code that the driver of "
check "with what to do" grep -qxF -e \
	"Try 'jitwarm $model --device sim:sm90 --out $dir/texts.jkp', which makes the kernels of this model." "$dir/err"
is 0 pack-model "$model" $card $less --out "$dir/model.jkm" -q
sealed "$dir/model.jkm" $card --no-cache --batch 4
check "a packed model holds it: $(cat "$dir/err")" cmp -s "$dir/want" "$dir/said"
finish
