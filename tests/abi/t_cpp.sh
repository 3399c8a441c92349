#!/bin/sh
# tests/abi/t_cpp.sh - the headers in a program of C++20: every macro of a struct, with all warnings as errors. And what
# pkg-config says of the library needs no other package.
. "${srcdir:-.}/tests/support/prelude.sh"
{
	for header in "$top"/include/jitrun*.h; do echo "#include \"${header##*/}\""; done
	sed -n 's/^#define \(JIT_[A-Z_]*\)([.]*)  *JIT_STRUCT(\(jit_[a-z_]*\).*/\1 \2/p' "$top"/include/jitrun*.h |
		while read -r macro type; do echo "size_t size_$type() { $type s = $macro(); return s.size; }"; done
	echo 'int some() { return JIT_SESSION_OPTIONS(.context = 5, .threads = 2).context; }'
	echo 'float more() { jit_sampling s = JIT_SAMPLING(.temperature = 1, .top_k = 5); return s.temperature; }'
} > "$dir/all.cpp"
check "there are macros" [ "$(grep -c 'size_jit' "$dir/all.cpp")" -gt 12 ]
tried=0
for compiler in g++ clang++; do
	command -v $compiler > /dev/null || continue
	tried=1
	said=$($compiler -std=c++20 -Wall -Wextra -pedantic -Werror -I "$top/include" -fsyntax-only "$dir/all.cpp" 2>&1)
	check "$compiler: $(echo "$said" | head -c 500)" [ -z "$said" ]
done
[ $tried = 1 ] || echo "# skipped: there is no C++ compiler here"

if command -v pkg-config > /dev/null; then
	mkdir "$dir/pc" && cp include/jitrun.pc "$dir/pc"
	said=$(PKG_CONFIG_LIBDIR="$dir/pc" PKG_CONFIG_PATH= pkg-config --cflags --libs jitrun 2>&1)
	check "pkg-config without any other package: $said" [ $? = 0 ]
	abi=$(PKG_CONFIG_LIBDIR="$dir/pc" PKG_CONFIG_PATH= pkg-config --variable=abi jitrun)
	check "where jitrun-abi.json is: $abi" [ "${abi%/share/jitrun/jitrun-abi.json}" != "$abi" ]
	check "only what a program needs: $said" sh -c '! echo "$1" | grep -qE -e "-D|zstd|jansson"' - "$said"
	said=$(PKG_CONFIG_LIBDIR="$dir/pc" PKG_CONFIG_PATH= pkg-config --static --libs jitrun)
	for library in zstd jansson pcre2-8 utf8proc; do
		check "--static: $library in $said" sh -c 'echo "$1" | grep -q -e "-l$2"' - "$said" $library
	done
fi
finish
