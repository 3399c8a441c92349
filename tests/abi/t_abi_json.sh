#!/bin/sh
# tests/abi/t_abi_json.sh - jitrun-abi.json from outside: what it says of structs and functions is what another program
# finds in the headers and in the library, and it is enough to call the library with.
. "${srcdir:-.}/tests/support/prelude.sh"
command -v python3 > /dev/null || { echo "# skipped: there is no python3"; exit 77; }
make=${MAKE:-make}
[ -f jitrun-abi.json ] || $make -s jitrun-abi.json > /dev/null
lib=
[ ! -f .libs/libjitrun.so ] || lib=.libs/libjitrun.so
# A library with sanitizers cannot be loaded by a program that has none.
[ -z "$lib" ] || ! nm -D "$lib" | grep -q __asan_init || lib=
said=$(python3 "$top/tests/abi/abi_json.py" jitrun-abi.json "$model" "$lib" "$top"/include/jitrun*.h 2>&1)
check "$said" [ $? = 0 ]

# What the maker does not understand is an error, not something left out.
for wrong in 'int jit_one(int a[3]);' 'typedef union jit_two { int a; } jit_two;' 'extern int jit_three;' \
	'typedef struct jit_four {
	int a : 3;
} jit_four;' 'int jit_five(void'; do
	echo "$wrong" > "$dir/wrong.h"
	awk -f "$top/scripts/abi_json.awk" "$top/include/jitrun.h" "$dir/wrong.h" > "$dir/made.c" 2> "$dir/err"
	check "refused: $wrong" [ $? != 0 ]
	check "one sentence for: $wrong" grep -q "not understood" "$dir/err"
done
finish
