#!/bin/sh
# packaging/reproducible.sh [FOLDER] - whether two builds give the same bytes. The release archive is unpacked twice and
# made into all that is published: Debian packages, static programs, the image, the wheel, the npm package, and the
# archive itself. The builds differ in folder, day, umask, language, time zone, user, number of jobs, and in the name of
# the machine and its home folder; what they made is compared byte by byte.
#
# FOLDER keeps what was built, and a run that was broken off goes on there; without it all goes again. What cannot be
# made here is named and left out: Debian packages without dpkg-buildpackage, the image without buildah, the npm package
# without npm and Node's headers. A second user and name of the machine need root; another day needs faketime.
#
# QUICK=1 in the environment compiles without optimising. CC comes from there, too, and ccache must not be in it: it
# would compare an object with itself. Exit status 1: they differ.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -gt 0 ]; then
	mkdir -p "$1" && dir=$(cd "$1" && pwd)
else
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
fi
if [ ! "${REPRODUCIBLE_BUILD:-}" ]; then
	chmod 755 "$dir"
	# Programs of the system alone: another user may see no others.
	PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
fi
export CCACHE_DISABLE=1 npm_config_update_notifier=false npm_config_offline=true
unset CFLAGS CPPFLAGS LDFLAGS MAKEFLAGS SOURCE_DATE_EPOCH
has() { command -v "$1" > /dev/null 2>&1; }
say() { echo "reproducible.sh: $*"; }
has dpkg-buildpackage && has dh || say "without Debian packages: dpkg-buildpackage or dh is not here"
has buildah || say "without the image: buildah is not here"
has npm || say "without the npm package: npm is not here"

# ---- one build; the script calls itself for it, as another user perhaps
# make_all FOLDER OUT JOBS: makes everything of the archive in FOLDER, and puts it into OUT.
make_all() {
	tree=$1 out=$2 jobs=$3 noopt=${QUICK:+noopt}
	mkdir -p "$tree" "$out/static" "$out/wheel"
	tar -xJf "$dir"/archive/jitrun-*.tar.xz -C "$tree" --strip-components=1
	cd "$tree"
	if has dpkg-buildpackage && has dh; then
		DEB_BUILD_OPTIONS="nocheck $noopt parallel=$jobs" dpkg-buildpackage -b -us -uc -d
		mkdir "$out/debian"
		cp ../*.deb "$out/debian"
		build=build-package
	else
		build=build
		mkdir $build
		optimised=$([ "$noopt" ] && echo -O0 || echo -O2)
		(cd $build && ../configure -q --prefix=/usr CFLAGS="$optimised -g -ffile-prefix-map=$tree=.")
		make -C $build -j"$jobs"
		make -C $build install DESTDIR="$out/root"
	fi
	make -C $build -j"$jobs" image wheel dist
	cp $build/static/* "$out/static"
	cp -a $build/image "$out/image" # with the modes that it has, whatever the umask
	cp $build/jitrun-*.tar.xz "$out"
	cp $build/wheels/*.whl "$out/wheel"
	if has npm && make -C $build node-package; then
		(cd "$out" && npm pack "$tree/$build/node/jitrun")
	fi
}
if [ "${REPRODUCIBLE_BUILD:-}" ]; then
	eval "$REPRODUCIBLE_BUILD"
	exit
fi

# build OUT FOLDER JOBS UMASK COMMAND...: as the command says.
build() {
	out=$dir/$1 tree=$dir/$2 jobs=$3 mask=$4
	[ ! -e "$out.made" ] || return 0
	shift 4
	say "building in $tree"
	rm -rf "$out" "${tree%/*}" && mkdir -p "$out" "${tree%/*}" && chmod 777 "$out" "${tree%/*}"
	(umask "$mask" && cd / && REPRODUCIBLE_BUILD="make_all '$tree' '$out' $jobs" "$@" \
		sh "$top/packaging/reproducible.sh" "$dir" > "$dir/log-$jobs" 2>&1) ||
		{ tail -n 30 "$dir/log-$jobs" >&2; exit 1; }
	: > "$out.made"
}

# ---- the archive
cd "$top"
[ -x configure ] || autoreconf -i
if [ ! -e "$dir/archive.made" ]; then
	rm -rf "$dir/archive" && mkdir -p "$dir/archive" && cd "$dir/archive"
	"$top/configure" -q --disable-static > "$dir/log" 2>&1 && make dist > "$dir/log" 2>&1 ||
		{ tail "$dir/log" >&2; exit 1; }
	chmod -R a+rX "$dir/archive"
	: > "$dir/archive.made"
fi

# ---- two builds
mkdir -p "$dir/home" && chmod 777 "$dir/home"
build one "sources/jitrun" 2 022 env TZ=UTC LC_ALL=C HOME="$dir/home"
second="env TZ=Asia/Tokyo LC_ALL=C.UTF-8 LANG=de_DE.UTF-8 HOME=/nonexistent USER=somebody"
second="$second npm_config_cache=$dir/home/npm"
if has faketime; then
	# Programs with jemalloc hang below libfaketime, and make runs ours; so it goes without, and its tools begin
	# anew.
	mkdir -p "$dir/day"
	printf '#!/bin/sh\nunset LD_PRELOAD FAKETIME FAKETIME_SHARED\nexec %s "$@"\n' "$(command -v make)" \
		> "$dir/day/make"
	for tool in ar cc cp date dpkg-deb gcc gzip install ld node npm python3 ranlib strip tar touch xz; do
		tool_path=$(command -v $tool) || continue
		printf '#!/bin/sh\n[ -z "$LD_PRELOAD" ] || exec %s "$@"\nexec faketime -f +400d %s "$@"\n' \
			"$tool_path" "$tool_path" > "$dir/day/$tool"
	done
	chmod -R a+rx "$dir/day"
	second="$second PATH=$dir/day:$PATH faketime -f +400d"
else
	say "both builds have the same day: faketime is not here"
fi
if [ "$(id -u)" = 0 ] && unshare --uts true 2> /dev/null; then
	as="setpriv --reuid 65534 --regid 65534 --clear-groups"
	second="unshare --uts sh -c 'hostname another-machine && exec $as \"\$@\"' - $second"
fi
eval "build two a-folder-with-a-much-longer-name/of-the-sources 3 077 $second"

# ---- the image: what it is made of was copied; building it sets the times of files, and leaves out its history, which
# hashes their owners
if has buildah; then
	for n in one two; do
		store="--root $dir/store-$n --runroot $dir/runroot-$n --storage-driver vfs"
		if buildah $store build --isolation chroot --format docker --pull-never --timestamp 0 --omit-history \
			-t jitrun "$dir/$n/image" > "$dir/log" 2>&1 &&
			buildah $store push jitrun "oci-archive:$dir/$n/image.tar" > "$dir/log" 2>&1; then
			# The file's own members have the time of writing; what is published are the blobs.
			mkdir "$dir/$n/blobs" && tar -xf "$dir/$n/image.tar" -C "$dir/$n/blobs"
			rm "$dir/$n/image.tar"
		else
			say "without the image: $(tail -n 1 "$dir/log")"
			break
		fi
		sleep 1
	done
fi

# ---- both
list() { (cd "$dir/$1" && find . -type f ! -name '*.buildinfo' -exec sha256sum {} + | sort -k 2) > "$dir/$1.sums"; }
list one
list two
if ! cmp -s "$dir/one.sums" "$dir/two.sums"; then
	say "two builds differ:"
	diff "$dir/one.sums" "$dir/two.sums" | sed -n 's/^[<>] [0-9a-f]*  //p' | sort -u
	exit 1
fi
say "two builds gave the same bytes: $(wc -l < "$dir/one.sums") files"
cut -c 67- "$dir/one.sums"
