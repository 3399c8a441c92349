#!/bin/sh
# tests/programs/t_jiteml.sh - jiteml from outside: every command and option, and the sentence of each thing that is
# wrong.
. "${srcdir:-.}/tests/support/prelude.sh"
j=./jiteml
export JITRUN_CACHE="$dir/cache"
run() { "$@" > "$dir/out" 2> "$dir/err"; status=$?; }
has() { check "printed '$1': $(head -c 900 "$dir/out")" grep -qF -e "$1" "$dir/out"; }
says() { check "said '$1': $(head -c 600 "$dir/err")" grep -qF -e "$1" "$dir/err"; }
same() { check "$1" cmp "$2" "$3"; }
quick() { [ "${JITRUN_TEST_QUICK:-0}" != 0 ]; }

# Counts, which neither threads nor devices change.
is 0 $j enumerate --size 9
has "size  9: "
has " 350 new values"
is 0 $j enumerate -k 7 -v 2 --json
check "a line for each size, as JSON" [ "$(grep -c '"values":' "$dir/out")" = 4 ]
check "351 values of two variables" grep -q '^{"size":7,"trees":[0-9]*,"values":351,' "$dir/out"
is 0 $j enumerate -k 11 -v 0
has " 18 new values"
for options in "--threads 1" "--threads 3" "--device ref" "--device sim:gfx1100"; do
	is 0 $j enumerate -k 7 $options
	sed 's/,[^,]* s.*//' "$dir/out" > "$dir/counts"
	[ -e "$dir/first" ] || cp "$dir/counts" "$dir/first"
	same "$options does not show" "$dir/counts" "$dir/first"
done
is 0 $j enumerate -k 7 --cap 2
check "a lower cap leaves less" [ "$(sed -n 's/.*trees, \([0-9]*\) new.*/\1/p' "$dir/out" | tail -n 1)" -lt 70 ]
is 0 $j enumerate -k 5 --cache "$dir/own"
check "code is kept where --cache says" [ -n "$(ls "$dir/own")" ]

# Expressions: sizes are those of the published table; what is found is proved, where this build can.
proves=
! $j prove x x > /dev/null 2>&1 || proves=yes
finds() {
	is 0 $j find "$1" $3
	check "$1 has size $2: $(head -n 1 "$dir/out")" grep -qF ": size $2: eml(" "$dir/out"
	[ -z "$proves" ] || has " digits at 64 points of (0, 4)"
}
finds "exp(x)" 3 "--size 5"
has "exp(x): size 3: eml(x, 1)"
finds "ln(x)" 7 "--size 5"
finds "x - 1" 11 "--size 9"
finds "1/x" 17 "--size 11"
finds "(-x)" 17 "--size 11"
finds "(-x)" 15 "--size 11 --extended"
finds "x - y" 11 "--size 7"
finds "x*y" 17 "--size 9"
if ! quick; then
	is 0 $j identities
	sizes=$(sed -n 's/.*: size \([0-9]*\): .*/\1/p' "$dir/out" | tr '\n' ' ')
	expected="3 7 17 19 5 3 7 5 11 11 17 17 17 19 19 15 19 11 19 17 17 "
	check "all 21 identities with their sizes: $sizes" [ "$sizes" = "$expected" ]
fi
is 0 $j find "x" --size 3 --quiet
check "quiet: one line" [ "$(wc -l < "$dir/out")" = 1 ]
is 3 $j find "sqrt(x)" --size 9 --max 13
has "sqrt(x): no tree was found"
is 3 $j find "sqrt(x)" --size 9 --max 11 --json
check "JSON says so" grep -q '"size":null,"tree":null' "$dir/out"
is 0 $j find "e" --size 3 --json --form rpn
check "JSON has the tree" grep -q '"size":3,"tree":"1 1 eml ",' "$dir/out"
is 1 $j find "ln(x - x)"
says "has no value at x = "

# Proofs
if [ -n "$proves" ]; then
	is 0 $j prove "eml(1, eml(eml(1, x), 1))" "ln(x)"
	has "equal in 100 digits at 64 points of (0, 4)"
	is 0 $j prove "sin(x)^2 + cos(x)^2" "1"
	is 0 $j prove "tan(asin(x/9))" "x/9/sqrt(1 - (x/9)^2)"
	is 0 $j prove "atan(sinh(x)) + acos(y/9)" "asin(tanh(x)) + pi/2 - asin(y/9)"
	is 0 $j prove "exp(i*x)" "cos(x) + i*sin(x)"
	is 0 $j prove "cosh(x) + x^-2" "cos(i*x) + 1/x/x"
	is 3 $j prove "x" "x + x*1e-30"
	has "not equal: x = "
	is 0 $j prove "x" "x + x*1e-30" --digits 20
	is 3 $j prove "sqrt(x^2)" "x + (y - y)*ln(0)"
	has "0 of 64 points of (0, 4) agree"
	is 0 $j prove "eml(eml(1, eml(1, 0)), exp(x))" "(-x)" --extended
	is 3 $j prove "eml(eml(1, eml(1, 0)), exp(x))" "(-x)"
fi

# Forms
is 0 $j show "eml(1, x)^2/3"
has "eml(1, x)^2/3"
is 0 $j show "eml(1, x)^2/3" --form c
has "pow((exp(1.0) - log(x)), 2.0)/3.0"
is 0 $j show "x^2/3" --form latex
has '\frac{x^{2}}{3}'
is 0 $j show "x^2/3" --form rpn
has "x 2 ^ 3 / "

is 0 $j show "eml(1, x)^2/3" --form gnuplot
check "seven nodes" [ "$(grep -c '^[-0-9.]* [-0-9.]* "' "$dir/out")" = 7 ]
check "six edges" [ "$(sed '/^$labels/q' "$dir/out" | grep -c '^$')" = 6 ]
if command -v gnuplot > /dev/null; then
	gnuplot -e "set terminal svg; set output '$dir/tree.svg'" "$dir/out" > "$dir/said" 2>&1
	check "gnuplot draws it: $(head -c 300 "$dir/said")" grep -q '>eml<' "$dir/tree.svg"
fi

# Formulas of data: files of both kinds, sequences, and what is left of a target.
awk 'BEGIN { print "k,x,U"; for (i = 0; i < 40; i++) { k = 1 + i % 7 * 0.37; x = 2 + i * i % 11 * 0.21
	printf "%.17g,%.17g,%.17g\n", k, x, k * x * x / 2 } }' > "$dir/spring.csv"
is 0 $j fit "$dir/spring.csv" --quiet
check "one line, the formula: $(cat "$dir/out")" [ "$(cat "$dir/out")" = "U = k*x^2/2" ]
is 0 $j fit "$dir/spring.csv" --front "$dir/front" --form latex
has 'U = \frac{k \cdot x^{2}}{2}'
check "a line for each formula, the last one exact" \
	awk '{ n = $1; e = $2 } END { exit !(NR > 1 && n == 7 && e < 1e-9) }' "$dir/front"
is 0 $j fit "$dir/spring.csv" --target k --json
check "another target, as JSON" grep -q '"size":[0-9]*,"error":[-0-9.e]*,"formula":"2\*U/x^2"}' "$dir/out"
cp "$dir/out" "$dir/first"
is 0 $j fit "$dir/spring.csv" --target k --json --threads 1
same "threads do not show" "$dir/out" "$dir/first"
is 0 $j fit "$dir/spring.csv" --target k --json --device sim:gfx1100
same "a simulated card does not show" "$dir/out" "$dir/first"
is 3 $j fit "$dir/spring.csv" --operations +,- --looked 1 --terms 1 --no-constants
is 0 $j fit "$dir/spring.csv" --operations +,- --looked 1 --terms 1 --no-constants --enough 0.9
sed 1d "$dir/spring.csv" | tr , ';' > "$dir/plain.csv"
is 0 $j fit "$dir/plain.csv" -q
check "usual names" [ "$(cat "$dir/out")" = "y = x1*x2^2/2" ]
{ printf '\223NUMPY\001\000\166\000'
printf "%-117s\n" "{'descr': '<i2', 'fortran_order': False, 'shape': (6, 2), }"
printf '\001\000\001\000\002\000\010\000\003\000\033\000'
printf '\004\000\100\000\005\000\175\000\006\000\330\000'
} > "$dir/cubes.npy"
is 0 $j fit "$dir/cubes.npy" -q
check "cubes in a .npy file: $(cat "$dir/out" "$dir/err")" [ "$(cat "$dir/out")" = "y = x^3" ]
# y = 2*x in each type of elements: the bytes of 1, 2, 3, 4, 6 and 8, which every one of them can hold.
elements() {
	{ printf '\223NUMPY\001\000\166\000'
	printf "%-117s\n" "{'descr': '$1', 'fortran_order': False, 'shape': (4, 2), }"
	shift
	for i in 1 2 2 4 3 6 4 8; do
		eval "printf \"\${$i}\""
	done
	} > "$dir/typed.npy"
	is 0 $j fit "$dir/typed.npy" -q
	check "elements of a .npy file, byte 9 to 14 of the header: $(head -c 26 "$dir/typed.npy" | tail -c 6)" [ \
		"$(cat "$dir/out")" = "y = 2*x" ]
}
integers() { elements "$1" "\\1$2" "\\2$2" "\\3$2" "\\4$2" "" "\\6$2" "" "\\10$2"; }
integers '|u1' '' && integers '|i1' '' && integers '<u2' '\0' && integers '<u4' '\0\0\0' && integers '<i4' '\0\0\0'
integers '<i8' '\0\0\0\0\0\0\0' && integers '<u8' '\0\0\0\0\0\0\0'
elements '<f2' '\0\074' '\0\100' '\0\102' '\0\104' '' '\0\106' '' '\0\110'
elements '<f4' '\0\0\200\077' '\0\0\0\100' '\0\0\100\100' '\0\0\200\100' '' '\0\0\300\100' '' '\0\0\0\101'
sequence() {
	is 0 $j fit --sequence "$1" --quiet ${3:-}
	check "$1 is $2: $(cat "$dir/out")" [ "$(cat "$dir/out")" = "a = $2" ]
}
sequence "1 4 9 16 25 36" "n^2"
sequence "1 3 6 10 15 21 28" "(n + n^2)/2"
sequence "1,1,2,3,5,8,13,21,34" "a1 + a2" "--lags 2"
sequence "1 3 7 15 31 63 127" "2*a1 + 1" "--lags 1"
sequence "1 5 12 22 35 51 70" "(3*n/2 - 1/2)*n"
sequence "2 4 8 16 32 64 128" "2^n" "--operations +,*,^"
sequence "1 2 6 24 120 720 5040" "n*a1" "--lags 1"

is 2 $j fit
says "a file of data is needed, or --sequence"
is 2 $j fit x.csv --sequence 1,2
says "a file of data is needed, or --sequence"
is 2 $j fit a b
says "fit takes one file"
is 2 $j fit "$dir/spring.csv" --operations +,minus
says "--operations: minus: expected some of +,-,*,/"
is 1 $j fit "$dir/none.csv"
says "none.csv: cannot be read: No such file"
is 1 $j fit "$dir/spring.csv" --target U2
says "spring.csv has no column U2"
is 1 $j fit --sequence "1 2 x 4"
says "--sequence: x: expected numbers with commas between"
is 1 $j fit --sequence "1 2 3" --lags 2
says "--sequence: 3 numbers: expected 6 at least"
# wrong TEXT SENTENCE: a table
wrong() {
	printf "$1" > "$dir/wrong.csv"
	is 1 $j fit "$dir/wrong.csv"
	says "wrong.csv: $2"
}
wrong '1,2\n3,4,5\n' "line 2 has 3 columns, expected 2"
wrong '1,2\n3,four\n' "line 2, column 2: four: expected a finite number"
wrong '1,2\n3,\n' "line 2 has 1 columns, expected 2"
wrong '1,,2\n' "line 1, column 2: nothing: expected a finite number"
wrong '1,nan\n' "line 1, column 2: nan: expected a finite number"
wrong 'x,x\n1,2\n' "two columns have the name x"
wrong 'x,a b\n1,2\n' "line 2 has 2 columns, expected 3"
wrong 'x,b-c\n1,2\n' "line 1: b-c is no name: expected letters, digits and _"
wrong '1\n2\n3\n' "1 columns: expected two at least"
wrong '1,2\n2,3\n' "2 rows: expected three at least"
wrong '' "0 columns: expected two at least"
head -c 140 "$dir/cubes.npy" > "$dir/cut.npy"
is 1 $j fit "$dir/cut.npy"
says "cut.npy: its header says 24 bytes of elements, and it has 12"
is 1 $j fit "$dir/spring.csv" --front "$dir/no/front"
says "cannot be written"

# What is wrong
is 2 $j
says "a command is missing"
is 2 $j lookup
says "lookup is no command; expected enumerate"
is 2 $j find
says "find takes one expression"
is 2 $j enumerate x
says "enumerate takes options alone"
is 2 $j prove x
says "prove takes two expressions"
is 2 $j enumerate --size 99
is 1 $j find "x +"
says "the expression: column 4: the end: expected a number, a name or ("
is 1 $j find "foo(x)"
says "expected a variable, a constant or a function that is known"
is 1 $j enumerate --device moon
says "moon"
finish
