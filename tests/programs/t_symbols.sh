#!/bin/sh
# tests/programs/t_symbols.sh - no function of ours has the name of one in a library that our programs use: it would
# be called in its place, by us and by that library.
. "${srcdir:-.}/tests/support/prelude.sh"
command -v nm > /dev/null && command -v ldd > /dev/null || { echo "skipped: nm and ldd are not here"; exit 77; }
programs=jitrun
[ ! -x jitserve ] || programs="jitrun jitserve"
[ -r .libs/libhouse.a ] || { echo "skipped: there is no .libs/libhouse.a"; exit 77; }
nm --defined-only -g .libs/lib*.a 2> /dev/null | awk 'NF == 3 { print $3 }' | grep -v '^__' | sort -u > "$dir/ours"
ldd $(for p in $programs; do [ -x .libs/$p ] && echo .libs/$p || echo $p; done) 2> /dev/null |
	awk '/=>/ && $3 ~ /^\// { print $3 }' | grep -v -e jitrun -e asan -e ubsan -e tsan | sort -u > "$dir/libraries"
while read -r library; do nm -D --defined-only "$library"; done < "$dir/libraries" |
	awk 'NF >= 3 { sub(/@.*/, "", $3); print $3 }' | sort -u > "$dir/theirs"
check "there are symbols to compare" [ "$(wc -l < "$dir/ours")" -gt 500 -a "$(wc -l < "$dir/theirs")" -gt 1000 ]
check "names of ours that libraries have: $(comm -12 "$dir/ours" "$dir/theirs" | tr '\n' ' ')" \
	[ -z "$(comm -12 "$dir/ours" "$dir/theirs")" ]
finish
