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
