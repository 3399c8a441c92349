#!/bin/sh
# make_package.sh LIBRARY OUT - makes the npm package in the directory OUT: the addon, compiled by $CC against the
# headers of Node ($NODE_INCLUDE), and the library with what it needs beside the C library.
set -eu
library=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
include=${NODE_INCLUDE:-}
for dir in "$(dirname "$(command -v node || echo /)")/../include/node" /usr/include/node; do
	[ -n "$include" ] || ! [ -f "$dir/node_api.h" ] || include=$dir
done
[ -n "$include" ] || { echo "make_package.sh: there is no node_api.h (Debian's package libnode-dev)" >&2; exit 1; }
[ -f "$library" ] || { echo "make_package.sh: there is no library $library" >&2; exit 1; }
rm -rf "$out" && mkdir -p "$out"
# DT_RPATH, unlike DT_RUNPATH, holds for what the library needs, too.
${CC:-gcc} -std=c11 -O2 -Wall -Wextra -Wshadow -Wmissing-prototypes ${WERROR:-} -fPIC -shared -isystem "$include" \
	-I"$here/../../include" "$here"/*.c -L"$(dirname "$library")" -ljitrun \
	-Wl,--disable-new-dtags,-rpath,'$ORIGIN' -o "$out/jitrun.node"
cp -L "$library" "$out/libjitrun.so.1"
env -u LD_PRELOAD ldd "$library" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | while read -r name path; do
	case $name in
		libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libgcc_s.so.* | libstdc++.so.*) ;;
		*) cp -L "$path" "$out/$name" ;;
	esac
done
cp "$here/package.json" "$here"/*.js "$here/index.d.ts" "$here/../../LICENSE" "$out"
# As any umask would have it.
chmod 644 "$out"/* && chmod 755 "$out" "$out/jitrun.node" "$out/libjitrun.so.1"
