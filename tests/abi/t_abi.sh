#!/bin/sh
# tests/abi/t_abi.sh - the shared library from outside: it exports what the headers declare, and runs a program of
# another version's time.
. "${srcdir:-.}/tests/support/prelude.sh"
lib=.libs/libjitrun.so

sed -n 's/^[a-z].*[ *]\(jit_[a-z_]*\)(.*/\1/p' "$srcdir"/include/jitrun*.h | sort > "$dir/declared"
check "the headers declare functions" [ "$(wc -l < "$dir/declared")" -ge 27 ]
if [ -f $lib ] && command -v nm > /dev/null; then
	nm -D --defined-only $lib | sed 's/.* //; s/@.*//' | sort > "$dir/exported"
	check "exported is what is declared, and nothing else" diff "$dir/declared" "$dir/exported"
	check "the library's name changes with its interface" [ "$(readlink $lib)" = libjitrun.so.1.0.0 ]
fi

mkdir "$dir/objects"
./tests/abi/old_caller "$model" "$dir/objects" > "$dir/old" 2> "$dir/err"
check "a program compiled against jitrun.h 0.2 runs: $(head -c 400 "$dir/err")" [ $? = 0 ]
./jitrun "$model" --no-cache --quiet --prompt "Once upon a time" -n 24 --temp 0.9 --top-k 50 --top-p 0.95 --min-p 0.01 \
	--repeat-penalty 1.1 --repeat-last-n 32 --seed 7 --kv-type f32 --print-ids > "$dir/new"
check "and gets the same tokens as today's jitrun" cmp "$dir/old" "$dir/new"
finish
