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
is 0 $j report "$f" -c n=100
check "a line for each target: $(cat "$dir/out")" [ "$(grep -c '^saxpy ' "$dir/out")" -ge 20 ]

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

# what is kept
is 0 $j run "$f" -c n=12 -i a=1 -i x=1
is 0 $j run "$f" -c n=12 -i a=1 -i x=1 --sealed
says "from the cache"
refused "--sealed forbids generating it" 1 $j run "$f" -c n=13 -i a=1 -i x=1 --sealed
is 0 ./jitwarm list
has "user."
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
