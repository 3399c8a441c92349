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

# The writable variables of the library: static locals have a number behind their names (gcc), or a function before
# them (clang), and archives number files of one name. Sanitizers have variables of their own.
if grep -q '^SANITIZE_CFLAGS = .*-fsanitize' Makefile || ! command -v objdump > /dev/null; then
	echo "# skipped: writable variables, in this build or without objdump"
	finish
	exit
fi
objdump -t .libs/libhouse.a 2> /dev/null | LC_ALL=C awk '
	/file format/ { file = $1; sub(/\.l?o:.*/, "", file); sub(/^lt[0-9]*-/, "", file); next }
	{
		for (i = 1; i < NF; i++)
			if ($i ~ /^\.t?(data|bss)/ && $i !~ /^\.data\.rel\.ro/ || $i == "*COM*") break
		name = $NF
		if (i >= NF || $(NF - 1) ~ /^0*$/ || name ~ /^\./) next
		sub(/\.[0-9]+$/, "", name)
		sub(/^.*\./, "", name)
		print file, name
	}' | LC_ALL=C sort -u > "$dir/statics"
grep -v -e '^#' -e '^$' "$top/tests/programs/statics.txt" | LC_ALL=C sort -u > "$dir/allowed"
check "writable variables that statics.txt lacks: $(LC_ALL=C comm -23 "$dir/statics" "$dir/allowed" | tr '\n' ';')" \
	[ -z "$(LC_ALL=C comm -23 "$dir/statics" "$dir/allowed")" ]
# What a build leaves out, or another compiler, is not gone.
grep -q '^HSAKMT_CPPFLAGS = .*HAVE' Makefile || sed -i '/^kfd_hsakmt /d' "$dir/allowed"
if grep -q '^CC = .*gcc' Makefile; then
	check "statics.txt has what is gone: $(LC_ALL=C comm -13 "$dir/statics" "$dir/allowed" | tr '\n' ';')" \
		[ -z "$(LC_ALL=C comm -13 "$dir/statics" "$dir/allowed")" ]
fi
echo "# $(wc -l < "$dir/statics") writable variables"

# Which rooms use symbols of which.
status=0
"$top/scripts/symbols.sh" > "$dir/uses" || status=$?
[ $status = 77 ] || check "rooms use what they may: $(grep -v '^#' "$dir/uses" | tr '\n' ';')" [ $status = 0 ]
grep '^#' "$dir/uses" || :
finish
