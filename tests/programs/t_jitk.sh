#!/bin/sh
# tests/programs/t_jitk.sh - jitk from outside: every command and option, files in and out, what is kept, and the
# sentence of each thing that is wrong.
. "${srcdir:-.}/tests/support/prelude.sh"
j=./jitk
export JITRUN_CACHE="$dir/cache"
run() { "$@" > "$dir/out" 2> "$dir/err"; status=$?; }
# has TEXT: the last run printed it; says TEXT: on standard error
has() { check "printed '$1': $(head -c 600 "$dir/out")" grep -qF -e "$1" "$dir/out"; }
says() { check "said '$1': $(head -c 600 "$dir/err")" grep -qF -e "$1" "$dir/err"; }

cat > "$dir/saxpy.jk" << 'END'
const i64 n;
kernel saxpy(f32 a, in f32 x[n], inout f32 y[n]) over (i in n) {
	y[i] = a * x[i] + y[i];
}
END
cat > "$dir/many.jk" << 'END'
const i64 n = 6;
const i64 m = n / 2;
const i64 two = 2;
tune wide in {64, 128};
kernel rows(in i32 x[n], out i32 y[m][2]) over (i in m, k in two) block(wide) { y[i][k] = x[2 * i + k] * 3; }
kernel look(i64 at, in i32 x[n], out f64 y[n]) over (i in n) { y[i] = f64(x[i + at]); }
kernel pick(in i32 at[n], in i32 x[n], out i32 y[n]) over (i in n) { y[i] = x[at[i]]; }
END
cat > "$dir/wrong.jk" << 'END'
kernel bad(out f32 y[4]) over (i in 4) {
	y[i] = nothing;
	y[i] = i;
}
END
f=$dir/saxpy.jk

# run: values that are made, and files
is 0 $j run "$f" -c n=10 -i a=0.5 -i x=iota -i y=1 -o "y=$dir/y.npy"
has "y f32(10,) fnv "
has ": 1 1.5 2 2.5 3 3.5 ..."
says "native"
says "code generated"
check "what numpy would write" [ "$(head -c 6 "$dir/y.npy" | tail -c 5)" = NUMPY ]
check "128 bytes before the elements" [ "$(wc -c < "$dir/y.npy")" = 168 ]
is 0 $j run "$f" -c n=10 -i a=1 -i "x=$dir/y.npy" -o "y=raw:$dir/y.raw"
has ": 1 1.5 2 2.5"
says "from the cache"
tail -c 40 "$dir/y.npy" > "$dir/tail"
check "raw has the elements alone" cmp "$dir/tail" "$dir/y.raw"
is 0 $j run "$f" -c n=10 -i a=0 -i x=zeros -i "y=raw:$dir/y.raw" -q -o "y=$dir/again.npy"
check "quiet: nothing printed" [ ! -s "$dir/out" ]
check "the same file" cmp "$dir/y.npy" "$dir/again.npy"
is 0 $j run "$f" --const n=0 -i a=0 -i x=random:1
has "y f32(0,)"
is 0 $j run "$f" -c n=1000 -i a=3 -i x=random:7 -i y=random:8 -o "y=$dir/cpu.npy" -t 1 --no-cache
for device in ref sim:gfx1100 sim:sm90; do
	is 0 $j run "$f" -c n=1000 -i a=3 -i x=random:7 -i y=random:8 -o "y=$dir/card.npy" -d $device -t 3
	check "$device has the same file" cmp "$dir/cpu.npy" "$dir/card.npy"
done
is 0 $j run "$dir/many.jk" -k rows -i x=iota
has "y i32(3, 2)"
has ": 0 3 6 9 12 15"
is 0 $j run "$dir/many.jk" -k rows -i x=iota -c n=4 -c wide=128
has ": 0 3 6 9"
if /usr/bin/python3 -c 'import numpy' 2> /dev/null; then
	/usr/bin/python3 -c "
import numpy
y = numpy.load('$dir/y.npy'); assert y.dtype == numpy.float32 and y.tolist() == [1 + i / 2 for i in range(10)]
numpy.save('$dir/x.npy', numpy.arange(6, dtype=numpy.int32)); numpy.save('$dir/long.npy', numpy.arange(6))
numpy.save('$dir/turned.npy', numpy.zeros((2, 3), numpy.int32, order='F'))
numpy.save('$dir/shape.npy', numpy.zeros((2, 3), numpy.int32))"
	check "numpy reads it, and writes others" [ $? = 0 ]
	is 0 $j run "$dir/many.jk" -k rows -i "x=$dir/x.npy"
	has ": 0 3 6 9 12 15"
	refused "elements i8 of shape (6,), expected i4 of shape (6,) for x" 1 \
		$j run "$dir/many.jk" -k rows -i "x=$dir/long.npy"
	refused "elements i4 of shape (2, 3), expected i4 of shape (6,)" 1 \
		$j run "$dir/many.jk" -k rows -i "x=$dir/shape.npy"
	refused "Fortran's order" 1 $j run "$dir/many.jk" -k rows -i "x=$dir/turned.npy"
fi

# --check, and what is out of range without it; on targets that have the instructions of such accesses
for device in ref cpu sim:gfx1100 sim:sm90; do
	run $j run "$dir/many.jk" -k look -i at=0 -i x=iota -d $device
	grep -q "has no instruction" "$dir/err" && { echo "# not on $device: $(cat "$dir/err")"; continue; }
	has ": 0 1 2 3 4 5"
	is 0 $j run "$dir/many.jk" -k look -i at=4 -i x=iota -d $device
	has ": 4 5 0 0 0 0"
	refused "many.jk:6:" 1 $j run "$dir/many.jk" -k look -i at=4 -i x=iota --check -d $device
	says "6"
	is 0 $j run "$dir/many.jk" -k look -i at=0 -i x=iota --check -d $device
done

# the long names, and perf's map
sh -c "echo \$\$ > '$dir/pid'; exec $j run '$f' --const n=10 --in a=1 --in x=iota --out 'y=$dir/long.npy' \
	--kernel saxpy --device cpu --threads 2 --quiet --no-cache --perf-map" > "$dir/out" 2> "$dir/err"
status=$?
check "long names: $(cat "$dir/err")" [ "$status" = 0 ]
check "quiet: nothing printed" [ ! -s "$dir/out" ]
check "the file of --out" [ "$(wc -c < "$dir/long.npy")" = 168 ]
check "perf's map has the kernel" grep -q 'saxpy.user\.' "/tmp/perf-$(cat "$dir/pid").map"
rm -f "/tmp/perf-$(cat "$dir/pid").map"
# every option is somewhere in this test, but those that all programs share (t_output.sh)
for option in $($j --help-all | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
	case $option in --help | --help-all | --version | --print-man | --print-completion) continue ;; esac
	check "$option has a test" grep -qE -e "$option([ =\"]|\$)" "$0"
done

# what is looked at
is 0 $j check "$f" -c n=100
has "kernel saxpy:"
has "reads x: contiguous"
has "writes y: contiguous"
is 0 $j check "$dir/many.jk"
has "kernel rows:"
has "reads x: gather, compared with the extents"
is 1 $j check "$dir/wrong.jk"
says "wrong.jk:2:"
says "wrong.jk:3:"
check "carets: $(cat "$dir/err")" [ "$(grep -c '\^' "$dir/err")" -ge 2 ]
is 1 $j run "$dir/wrong.jk"
says "wrong.jk:3:"
is 0 $j emit-ir "$f" -c n=100
has "%"
is 0 $j disassemble "$f" -c n=100 --isa avx2
has ".byte"
is 0 $j disassemble "$f" -c n=100 --isa gfx1100
has ".long"
is 0 $j disassemble "$f" -c n=100 -d sim:sm90
has ".entry"
is 0 $j disassemble "$f" -c n=100 --isa gfx1100 --dump-objects "$dir/objects"
says "objects/saxpy.gfx1100.co, "
check "an ELF file" [ "$(head -c 4 "$dir/objects/saxpy.gfx1100.co" | tail -c 3)" = ELF ]
is 0 $j disassemble "$f" -c n=100 --isa sm90
mv "$dir/out" "$dir/ptx"
is 0 $j disassemble "$f" -c n=100 -d sim:sm90 --dump-objects "$dir/objects" -q
check "quiet: $(cat "$dir/err")" [ ! -s "$dir/err" ]
check "the same PTX" cmp "$dir/ptx" "$dir/objects/saxpy.sm90.ptx"
refused "target avx2 is no card; give one with --isa, such as gfx1100 or sm90" 1 \
	$j disassemble "$f" -c n=100 --isa avx2 --dump-objects "$dir/objects"
touch "$dir/file"
refused "saxpy.sm90.ptx: could not be written whole: Not a directory" 1 \
	$j disassemble "$f" -c n=100 --isa sm90 --dump-objects "$dir/file"
refused "the directory could not be made" 1 $j disassemble "$f" -c n=100 --isa sm90 --dump-objects /no/such/dir
refused "--dump-objects is of the command disassemble" 2 $j run "$f" -c n=1 -i a=1 -i x=1 --dump-objects "$dir/objects"
is 0 $j report "$f" -c n=100
check "a line for each target: $(cat "$dir/out")" [ "$(grep -c '^saxpy ' "$dir/out")" -ge 20 ]
for command in check report; do
	is 1 $j $command "$f" -c n=100 -k nosuch
	says "there is no kernel nosuch in this file; the first one is saxpy"
done

# test and bench
is 0 $j test "$f" -c n=77 -i a=1.5 -i x=random:1 -i y=random:2
has " 0 differ, 0 refused"
has "sim:gfx1201, 1 thread"
has "ref avx512"
is 0 $j test "$f" -c n=77 -i a=1.5 -i x=random:1 -i y=random:2 -d sim:sm80
has "1 equal, 0 differ, 0 refused"
is 0 $j bench "$f" -c n=5000 -i a=1.5 -i x=random:1 -t 1 --times 5
has "of 5 runs"
has "memory: "
has "arithmetic: "
is 0 $j bench "$dir/many.jk" -k rows -i x=iota --times 2 --tune
is 0 $j run "$dir/many.jk" -k rows -i x=iota --tune
has ": 0 3 6 9 12 15"
is 0 $j run "$f" -c n=10 -i a=1 -i x=iota -d auto
says "predicted for a launch"
says "chosen: "
is 0 ./jitrun "$model" --device auto -p Once -n 2 --no-cache
says "predicted for a token"
says "chosen: "

# examples: numbers that other programs have for the same kernels, and small sizes on every kind of device
is 0 $j example
for e in binomial bitonic_sort black_scholes histogram layernorm mandelbrot matmul noise prefix_sum saxpy silu snn \
	softmax stencil; do
	check "a line for $e" grep -q "^$e  *[a-zA-Z(]" "$dir/out"
	check "and a file" [ -f "$top/docs/examples/kernels/$e.jk" ]
done
check "no others: $(cat "$dir/out")" [ "$(wc -l < "$dir/out")" = "$(ls "$top"/docs/examples/kernels/*.jk | wc -l)" ]
example() { is 0 $j example "$@"; }
example mandelbrot
has "fnv 24b3b3c1bdb53d88 sum 27304085"
example noise
has "fnv de9724c5d51b3c0d sum 164448.396"
example stencil
has "a f32(64, 64, 64) fnv 329e2a9fc2f4d5f9"
has "o f32(64, 64, 64) fnv 1facf2a8a7b92019"
says "6 launches in"
example histogram
has "fnv 06482f9f3e0c43e0"
example prefix_sum
has "fnv 469442208a795998"
example bitonic_sort
has "fnv 19174e32eaeaa6e2"
example matmul
has "fnv 5eb841f3ddb8d9dc"
example saxpy
has "fnv 0e4d8c6b414f152c"
says "ran in"
example black_scholes --n 3
has "99.9605026 99.9605026 99.9605026"
example binomial --n 3
has "94.1797714 94.1797714 94.1797714"
example snn --n 1000 --steps 2000 -t 1
has "33107 spikes of 1000 neurons in 2000 steps, hash of their counts 709fd8f542241e24"
example snn --n 1000 --steps 2000 -t 3 -q
has "hash of their counts 709fd8f542241e24"
check "quiet: $(cat "$dir/err")" [ ! -s "$dir/err" ]
# sorted by another program
while read -r n hash; do
	example bitonic_sort --n "$n"
	has "fnv $hash"
done << 'END'
0 cbf29ce484222325
1 b2a70432e5cf963a
2 e34b237fd59df674
31 5a0c87a1ebd42b70
33 34389f43fca71552
1023 bcd5968c3e95b2f5
1025 b449a70b16eefafa
END
# counted by a plain C program of the network's definition
while read -r n hash; do
	example snn --n "$n" --steps 300
	has "hash of their counts $hash"
done << 'END'
1 af63b94c8601b113
2 0824f307b4dfe862
255 ada8631b1ac3ce5d
257 af4b2e7d6c810529
4099 295a133827657ee7
END
for e in "binomial --n 5" "bitonic_sort --n 37" "black_scholes --n 33" "histogram --n 1025" \
	"layernorm -c rows=3 --n 97" "mandelbrot -c width=33 -c height=3" "matmul -c m=3 -c n=33 -c k=7" \
	"noise -c width=33 -c height=2" "prefix_sum --n 1025" "saxpy --n 1023" "silu --n 31" \
	"snn --n 37 --steps 60" "softmax -c rows=2 --n 33" "stencil --n 11 --steps 3" "stencil --n 0" \
	"snn --n 0" "snn --n 1 --steps 1" "stencil --n 9 --steps 0"; do
	example $e -q
	mv "$dir/out" "$dir/cpu"
	check "$e prints something" [ -s "$dir/cpu" ]
	for device in ref sim:gfx1101 sim:sm90; do
		example $e -d $device
		check "$e on $device: $(cat "$dir/out")" cmp "$dir/cpu" "$dir/out"
	done
done
is 0 $j example silu --n 4 -i x=0 -o "y=$dir/y.npy"
has ": 0 0 0 0"
is 0 $j example silu --n 4 -d auto
says "chosen: "
is 0 $j test "$top/docs/examples/kernels/black_scholes.jk" -c n=9 -i s=100 -i x=98 -i t=2 -i r=0.02 -i v=5
refused "there is no example wave; \"jitk example\" lists them" 2 $j example wave
refused "this example has no steps that can be chosen" 2 $j example silu --steps 3
refused "this example has no steps that can be chosen" 2 $j example bitonic_sort --steps 3
refused "--n and --const n= say the same" 2 $j example silu --n 3 -c n=4
refused "an example has its own" 2 $j example silu -k silu
refused "are of examples with one launch" 2 $j example snn -o "v=$dir/v.npy"
refused "are of the command example" 2 $j run "$f" --n 3 -i a=1 -i x=1
is 1 $j example snn --n 2000000000
says "source has over 4 GiB"
refused "bytes of memory are free" 1 $j example matmul --n 1000000000
is 1 $j example silu -c q=1
says "q"

# what is kept
is 0 $j run "$f" -c n=12 -i a=1 -i x=1
is 0 $j run "$f" -c n=12 -i a=1 -i x=1 --sealed
says "from the cache"
refused "--sealed forbids generating it" 1 $j run "$f" -c n=13 -i a=1 -i x=1 --sealed
is 0 ./jitwarm list
has "user."
has "saxpy"
is 0 ./jitwarm verify
says "users' kernels are intact"
is 0 ./jitwarm export "$dir/kernels.jkp"
is 0 $j run "$f" -c n=12 -i a=1 -i x=1 --sealed --cache "$dir/kernels.jkp"
says "from a pack"
refused "made of its source" 1 ./jitwarm import "$dir/kernels.jkp" --cache "$dir/other"
is 0 ./jitwarm import "$dir/kernels.jkp" --cache "$dir/other" --unverified
is 0 $j run "$f" -c n=12 -i a=1 -i x=1 --sealed --cache "$dir/other"
is 0 $j run "$f" -c n=12 -i a=1 -i x=1 --dump-ir "$dir/ir" --dump-asm "$dir/asm" -d cpu
check "the IR was dumped, with the key" grep -q 'user\.' "$dir/ir"
check "and the code" grep -q '\.byte' "$dir/asm"
is 0 $j run "$f" -c n=12 -i a=1 -i x=1 --jitdump "$dir" --gdb
check "perf's file is there" sh -c 'ls "$1"/jit-*.dump > /dev/null' - "$dir"
is 0 $j run "$f" -c n=12 -i a=1 -i x=1 -t 2 --trace "$dir/trace"
check "the launch: $(cat "$dir/trace")" [ "$(grep -c '"name":"saxpy"' "$dir/trace")" -ge 2 ]
is 0 $j example stencil --n 9 --trace "$dir/trace" -q
check "six launches" [ "$(grep -c '"tid":1000,"name":"stencil"' "$dir/trace")" = 6 ]
is 0 $j bench "$f" -c n=12 -i a=1 -i x=1 -t 1 --times 3 --trace "$dir/trace"
check "runs, and what they are compared with" grep -q '"name":"multiply"' "$dir/trace"
refused "/no/such/dir/trace: cannot be written" 1 $j run "$f" -c n=12 -i a=1 -i x=1 --trace /no/such/dir/trace
refused "--trace is of the commands run, bench and example" 2 $j check "$f" -c n=12 --trace "$dir/trace"

# what is wrong
refused "a command is missing" 2 $j
refused "walk is no command" 2 $j walk "$f"
refused "a file of kernels is missing" 2 $j run
refused "no-such.jk: No such file" 1 $j run "$dir/no-such.jk"
refused "the scalar a has no value; give --in a=NUMBER" 1 $j run "$f" -c n=3 -i x=1
refused "the array x has no values; give --in x=FILE.npy, or random:1" 1 $j run "$f" -c n=3 -i a=1
refused "the kernel has no parameter z" 1 $j run "$f" -c n=3 -i z=1
refused "--in x is given twice" 1 $j run "$f" -c n=3 -i a=1 -i x=1 -i x=2
refused "expected NAME=" 1 $j run "$f" -c n=3 -i a=1 -i x
refused "a is a scalar, expected a number" 1 $j run "$f" -c n=3 -i a=iota -i x=1
refused "the seed is no whole number" 1 $j run "$f" -c n=3 -i a=1 -i x=random:z
refused "elements are i32" 1 $j run "$dir/many.jk" -k rows -i x=0.5
refused "the kernel does not write it" 1 $j run "$f" -c n=3 -i a=1 -i x=1 -o "x=$dir/x"
refused "missing.npy: No such file" 1 $j run "$f" -c n=3 -i a=1 -i "x=$dir/missing.npy"
printf 12345 > "$dir/short"
refused "less than the 12 bytes that array x has" 1 $j run "$f" -c n=3 -i a=1 -i "x=raw:$dir/short"
head -c 13 /dev/zero > "$dir/long"
refused "more than the 12 bytes that array x has" 1 $j run "$f" -c n=3 -i a=1 -i "x=raw:$dir/long"
printf 'PK' > "$dir/no.npy"
refused "no .npy file" 1 $j run "$f" -c n=3 -i a=1 -i "x=$dir/no.npy"
refused "/nowhere/y.npy: No such file" 1 $j run "$f" -c n=3 -i a=1 -i x=1 -o y=/nowhere/y.npy -q
refused "device \"toaster\" is unknown" 1 $j run "$f" -c n=3 -i a=1 -i x=1 -d toaster
refused "target toaster is unknown" 1 $j emit-ir "$f" -c n=3 --isa toaster
refused "n has two values" 1 $j run "$f" -c n=3 -c n=4 -i a=1 -i x=1
is 1 $j run "$f" -i a=1 -i x=1
says "n"
is 1 $j run "$f" -c n=3 -c q=1 -i a=1 -i x=1
says "q"
is 1 $j run "$dir/many.jk" -i x=1
finish
