#!/bin/sh
# tests/programs/t_jitgraph.sh - jitgraph from outside: every command and option, files in and out, and the sentence of
# each thing that is wrong.
. "${srcdir:-.}/tests/support/prelude.sh"
j=./jitgraph
export JITRUN_CACHE="$dir/cache"
run() { "$@" > "$dir/out" 2> "$dir/err"; status=$?; }
# has TEXT: the last run printed it; says TEXT: on standard error
has() { check "printed '$1': $(head -c 900 "$dir/out")" grep -qF -e "$1" "$dir/out"; }
lacks() { check "did not print '$1': $(head -c 900 "$dir/out")" sh -c '! grep -qF -e "$1" "$2"' - "$1" "$dir/out"; }
says() { check "said '$1': $(head -c 600 "$dir/err")" grep -qF -e "$1" "$dir/err"; }

cat > "$dir/mlp.graph" << 'END'
graph mlp
size n
input x f32[n,3]
input w f32[3,2]
one = constant f32[] 1
ones = broadcast one shape=[n,2] axes=[]
unused = neg x
h = dot x w left=[1] right=[0]
again = dot x w left=[1] right=[0]
s = add h again
y = add s ones
i = iota type=i32 shape=[n] axis=0
output y
output i as number
END
f=$dir/mlp.graph

# run: values that are made, and files of each kind. x is 0 to 5, w is 1: rows have 2 * (0 + 1 + 2) + 1 and 2 * 12 + 1
is 0 $j run "$f" -s n=2 -i x=iota -i w=1 -o "y=$dir/y.npy" -o "number=raw:$dir/i.raw"
has "y f32(2, 2) fnv "
has "sum 64: 7 7 25 25"
has "number i32(2,) fnv "
says "kernels, of which"
says "0 groups on the host"
check "what numpy would write" [ "$(head -c 6 "$dir/y.npy" | tail -c 5)" = NUMPY ]
check "raw has the elements alone" [ "$(od -An -tx1 "$dir/i.raw" | tr -d ' \n')" = 0000000001000000 ]
is 0 $j run "$f" -s n=2 --random 7 -o "$dir/all.safetensors" -o "y=$dir/x.npy" -q
check "quiet: nothing printed" [ ! -s "$dir/out" ]
check "nothing said" [ ! -s "$dir/err" ]
is 0 $j run "$f" -s n=2 --random 7 -o "y=$dir/one.safetensors" -q
# A header of 8 bytes' length, JSON, then the elements.
check "the header of safetensors" grep -q '"y":{"dtype":"F32","shape":\[2,2\],"data_offsets":\[0,16\]}' \
	"$dir/all.safetensors"
check "and of the other output" grep -q '"number":{"dtype":"I32","shape":\[2\],"data_offsets":\[16,24\]}' \
	"$dir/all.safetensors"
tail -c 8 "$dir/all.safetensors" > "$dir/tail"
check "the last elements" cmp "$dir/tail" "$dir/i.raw"
printf '%s\n' "input y f32[2,2]" "input number i32[2]" "input z bf16[2]" "output y" "output number" "output z" \
	> "$dir/copy.graph"
is 0 $j run "$dir/copy.graph" -i "$dir/all.safetensors" -i z=0.5 -o "y=$dir/again.npy"
check "what was written is read" cmp "$dir/again.npy" "$dir/x.npy"
has "number i32(2,)"
has "z bf16(2,) fnv"
has ": 0.5 0.5"
is 0 $j run "$dir/copy.graph" -i "y=$dir/one.safetensors:y" -i "number=$dir/all.safetensors" -i z=0 \
	-o "y=$dir/again.npy"
check "a tensor of a file" cmp "$dir/again.npy" "$dir/x.npy"
is 0 $j run "$dir/copy.graph" --random 1 -i "y=$dir/x.npy" -i "number=raw:$dir/i.raw" -i z=random:4
has "number i32(2,) fnv"
has ": 0 1"
# Random values depend on the seed alone, and inputs have different ones.
is 0 $j run "$dir/copy.graph" --random 1 -o "y=$dir/r1.npy"
is 0 $j run "$dir/copy.graph" --random 1 -o "y=$dir/r2.npy"
check "the same seed" cmp "$dir/r1.npy" "$dir/r2.npy"
is 0 $j run "$dir/copy.graph" --random 2 -o "y=$dir/r2.npy"
check "another seed" sh -c '! cmp -s "$1" "$2"' - "$dir/r1.npy" "$dir/r2.npy"
# Packed weights of a GGUF file: 256 rows of 8 blocks of Q8_0, which have 34 bytes.
printf '%s\n' "input blk.0.attn_q.weight u8[256,272]" "f = dequantise blk.0.attn_q.weight format=Q8_0" \
	"s = reduce_max f axes=[1]" "output s" > "$dir/packed.graph"
is 0 $j run "$dir/packed.graph" -i "$model"
has "s f32(256,)"
is 0 $j check "$dir/packed.graph" -i "blk.0.attn_q.weight=$model:blk.0.attn_output.weight" --device sim:gfx1101
# Devices, instruction sets, threads, what is kept
is 0 $j run "$f" -s n=33 --random 3 -o "y=$dir/cpu.npy" -t 1 --no-cache
for device in ref sim:gfx1101 sim:sm90; do
	is 0 $j run "$f" -s n=33 --random 3 -o "y=$dir/card.npy" -d $device -t 3
	check "$device has the same file" cmp "$dir/cpu.npy" "$dir/card.npy"
done
is 0 $j run "$f" -s n=33 --random 3 -o "y=$dir/card.npy" --isa avx2 --dump-ir "$dir/ir" --dump-asm "$dir/asm" \
	--cache "$dir/other"
check "avx2 has the same file" cmp "$dir/cpu.npy" "$dir/card.npy"
check "IR was written" [ -s "$dir/ir" ]
check "machine code was written" [ -s "$dir/asm" ]
is 0 $j run "$f" -s n=33 --random 3 --isa avx2 --cache "$dir/other" --sealed
says "of which 0 were generated"
refused "sealed" 1 $j run "$f" -s n=34 --random 3 --isa avx2 --cache "$dir/other" --sealed
is 0 $j run "$f" -s n=33 --random 3 -d auto
says "predicted for a run:"
says "chosen: "

# check
is 0 $j check "$f" -s n=5 --random 3
has "0 of 15 elements differ from the interpreter"
is 0 $j check "$f" -s n=2 -i x=iota -i w=1 --expect "y=$dir/y.npy"
has "y: 0 of 4 elements are too far from $dir/y.npy; at most 0 apart"
is 1 $j check "$f" -s n=2 -i x=iota -i w=1.0001 --expect "y=$dir/y.npy"
has "y: element 0 is 7.00059986, expected 7"
has "y: 4 of 4 elements are too far"
is 0 $j check "$f" -s n=2 -i x=iota -i w=1.0001 --expect "y=$dir/y.npy" --rtol 1e-3
is 0 $j check "$f" -s n=2 -i x=iota -i w=1.0001 --expect "y=$dir/y.npy" --rtol 0 --atol 0.01
is 1 $j check "$f" -s n=2 -i x=iota -i w=1.0001 --expect "y=$dir/y.npy" --rtol 0 --atol 0.0006
# Expected numbers of more bits
printf '%s\n' "input y f32[2,2]" "z = convert y type=f64" "output z as y" > "$dir/wide.graph"
is 0 $j run "$dir/wide.graph" -i "y=$dir/y.npy" -o "$dir/wide.safetensors"
is 0 $j check "$f" -s n=2 -i x=iota -i w=1 --expect "$dir/wide.safetensors"
has "y: 0 of 4 elements are too far"
lacks "number:"

# bench
is 0 $j bench "$f" -s n=5 --random 3 --times 3 -t 1 -d cpu
has "1 thread: median"
has "of 3 runs; first"
has "bytes for values"
is 0 $j bench "$f" --random 3 --times 3 --each n=5 --each n=9 --each n=5 -t 1
check "each: n=5 is run" grep -q '^n=5: least of 3 runs [0-9.]* ms$' "$dir/out"
check "each: n=9 is run" grep -q '^n=9: least of 3 runs' "$dir/out"
check "each: the first set is reported" \
	grep -q "^n=5 was specialised when it was asked for, .* 0 groups on the host; used 2 times\$" "$dir/out"
check "each: the second one is" grep -q '^n=9 was specialised \(ahead\|when it was asked for\), ' "$dir/out"
refused "--each is of the command bench" 2 $j run "$f" --each n=5
refused "--json goes without --each" 1 $j bench "$f" --random 3 --each n=5 --json
refused "sizes: n has two values" 1 $j bench "$f" -s n=2 --random 3 --each n=5
is 0 $j bench "$f" -s n=5 --random 3 --times 3 --json
has '"runs":3,'
has '"median_ns":'
has '"on_host":0,'
has '"threads":'

# dump: each pass, and what can be read again
is 0 $j dump "$f" -s n=2
has "# read: the graph as it was read; 8 nodes"
has "# needed: what no output needs is left out; 7 nodes"
has "# equal: equal nodes are one; 6 nodes"
has "# constants: what depends on constants alone is computed: nothing changed"
has "# products: "
has "# all: "
has "dot f32[2,2]: native"
lacks "kernel dot_("
is 0 $j dump "$f" -s n=2 --kernels
has "kernel dot_("
for stage in read needed equal constants products all; do
	is 0 $j dump "$f" -s n=2 --stage $stage --elements 0
	check "stage $stage alone" [ "$(grep -c '^graph mlp' "$dir/out")" = 1 ]
	cp "$dir/out" "$dir/again.graph"
	is 0 $j run "$dir/again.graph" -i x=iota -i w=1
	has "sum 64: 7 7 25 25"
done
is 0 $j dump "$f" -s n=2 --stage kernels -d ref
has "dot f32[2,2]: interpreted"
lacks "# read"
seq -s ' ' 1 20 | sed 's/^/c = constant f32[20] /; s/$/\noutput c/' > "$dir/twenty.graph"
is 0 $j dump "$dir/twenty.graph" --stage read
has " 15 16 ..."
is 0 $j dump "$dir/twenty.graph" --stage read --elements 2
has "1 2 ..."
is 0 $j dump "$dir/twenty.graph" --stage read --elements 0
has " 19 20"

# ONNX, where its tests are
node=${JITRUN_SHARED:-$top/../shared}/data/onnx/node.tar.xz
if [ -e "$node" ] && tar -xJf "$node" -C "$dir" node/test_softmax_axis_1 node/test_loop11 2> /dev/null; then
	t=$dir/node/test_softmax_axis_1
	is 0 $j check "$t/model.onnx" -i "x=$t/test_data_set_0/input_0.pb" --expect "y=$t/test_data_set_0/output_0.pb" \
		--rtol 1e-5
	has "y: 0 of 60 elements are too far"
	refused "expected f4 of shape (3, 4, 5) for x" 1 $j run "$t/model.onnx" -i "x=$dir/y.npy"
else
	echo "# skipped: there are no node tests of ONNX"
fi

# what is wrong
refused "a command is missing: run, check, bench or dump" 2 $j
refused "frob is no command; expected run, check, bench or dump" 2 $j frob
refused "a file is missing" 2 $j run
refused "--json is of the command bench" 2 $j run "$f" --json
refused "--expect is of the command check" 2 $j bench "$f" --expect y=1
refused "--out is of the command run" 2 $j check "$f" -o y=y.npy
refused "--kernels is of the command dump" 2 $j run "$f" --kernels
refused "No such file" 1 $j run "$dir/none.graph"
refused "mlp.graph:2: size n has no value" 1 $j run "$f" --random 1
refused "--size n 2: expected NAME=N" 1 $j run "$f" -s 'n 2'
refused 'sizes: "n", expected name=number' 1 $j run "$f" -s n
refused "has no size m" 1 $j run "$f" -s n=2 -s m=3
printf 'input x f32[3]\ny = frob x\noutput y\n' > "$dir/wrong.graph"
refused "wrong.graph:2: " 1 $j dump "$dir/wrong.graph"
refused "the input x has no values; give --input x=FILE.npy, or --random 1" 1 $j run "$f" -s n=2
refused "--input q=1: the graph has no input q" 1 $j run "$f" -s n=2 -i q=1
refused "--input x is given twice" 1 $j run "$f" -s n=2 -i x=1 -i x=2
refused "--input x: expected NAME=..." 1 $j run "$f" -s n=2 -i x
refused "--out q=f: the graph has no output q" 1 $j run "$f" -s n=2 --random 1 -o q=f
refused "expected f4 of shape (2, 3) for x" 1 $j run "$f" -s n=2 -i "x=$dir/y.npy"
refused "elements f8 of shape (2, 2), expected f4 of shape (2, 2) for y" 1 $j run "$dir/copy.graph" --random 1 \
	-i "y=$dir/wide.safetensors"
refused "there is no tensor z" 1 $j run "$dir/copy.graph" --random 1 -i "z=$dir/wide.safetensors"
refused "there is no tensor q" 1 $j run "$dir/copy.graph" --random 1 -i "z=$model:q"
refused "--input x=random:q: the seed is no whole number" 1 $j run "$f" -s n=2 -i x=random:q -i w=1
refused "less than the 8 bytes" 1 $j run "$dir/copy.graph" --random 1 -i "number=raw:$dir/err"
refused "elements f4 of shape (2, 2), expected f4 of shape (4, 2) for y" 1 $j check "$f" -s n=4 --random 1 \
	--expect "y=$dir/y.npy"
refused "bytes of memory are free" 1 $j run "$f" -s n=400000000000 --random 1
# Said before 17 GB of inputs and outputs are filled, which fit or do not.
free=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
if [ "$free" -gt 19000000 ]; then
	refused "has 2^31 elements or more" 1 timeout 60 $j run "$f" -s n=720000000 --random 1
elif [ "$free" -lt 15000000 ]; then
	refused "bytes of memory are free" 1 timeout 60 $j run "$f" -s n=720000000 --random 1
fi
head -c 140 "$dir/y.npy" > "$dir/cut.npy"
refused "less than the" 1 $j run "$dir/copy.graph" --random 1 -i "y=$dir/cut.npy"
refused "behind the header" 1 $j check "$f" -s n=2 --random 1 --expect "y=$dir/cut.npy"
refused "device \"nothing\" is unknown" 1 $j run "$f" -s n=2 --random 1 -d nothing
finish
