#!/bin/sh
# packaging/reproducible.sh - whether two builds give the same bytes: the release archive, unpacked into two folders of
# different names, built at different times with different umasks, time zones and languages, installed, and compared
# file by file. It takes two builds' time. CC, CFLAGS and JOBS come from the environment. Exit status 1: they differ.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
jobs=${JOBS:-$(nproc)}

# build FOLDER ROOT: builds the archive in FOLDER and installs it below ROOT.
build() {
	mkdir -p "$1/build"
	tar -xJf "$dir"/archive/jitrun-*.tar.xz -C "$1" --strip-components=1
	cd "$1/build"
	../configure -q --prefix=/usr CFLAGS="${CFLAGS:--O2 -g} -ffile-prefix-map=$1=." > "$dir/log" 2>&1 &&
		make -j"$jobs" > "$dir/log" 2>&1 &&
		make install DESTDIR="$2" > "$dir/log" 2>&1 || { tail -n 20 "$dir/log"; exit 1; }
}

cd "$top"
[ -x configure ] || autoreconf -i
mkdir "$dir/archive" && cd "$dir/archive"
"$top/configure" -q --disable-static > "$dir/log" 2>&1 && make dist > "$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
(umask 022 && TZ=UTC LC_ALL=C build "$dir/one" "$dir/root-one")
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 build "$dir/a-much-longer-name/two" "$dir/root-two")
cd "$dir"
(cd root-one && find . -type f -exec sha256sum {} + | sort -k 2) > one.sums
(cd root-two && find . -type f -exec sha256sum {} + | sort -k 2) > two.sums
if ! cmp -s one.sums two.sums; then
	echo "two builds differ:"
	diff one.sums two.sums | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u
	exit 1
fi
echo "two builds gave the same bytes: $(wc -l < one.sums) files"
