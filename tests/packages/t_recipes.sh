#!/bin/sh
# tests/packages/t_recipes.sh - the recipes for Arch Linux and Nix: their version, the libraries they name, and what
# they do around a build, with the tools of both systems where these are here. Nothing is built or fetched.
. "${srcdir:-.}/tests/support/prelude.sh"
top=$(cd "$top" && pwd)
version=$(sed -n 's/^AC_INIT(\[jitrun\], \[\(.*\)\])$/\1/p' "$top/configure.ac")
check "configure.ac has a version" [ -n "$version" ]

# The libraries that configure looks for, by the names of projects; what the tests alone need is left
# out, and MPI, of which packages make no module.
libraries=$(sed -n 's/.*PKG_CHECK_MODULES(\[[A-Z0-9_]*\], \[\([a-z0-9_-]*\).*/\1/p; s/^READS(\[\([a-z]*\)\].*/\1/p
	s/^AC_ARG_WITH(\[\(giflib\)\].*/\1/p' "$top/configure.ac" |
	sed 's/^lib\(zstd\|curl\|utf8proc\)$/\1/; s/^libpcre2-8$/pcre2/; s/^libprotobuf-c$/protobufc/;
		 s/^libdrm_amdgpu$/libdrm/; /^cmocka$/d; /^ompi-c$/d; /^mpich$/d')
check "configure looks for libraries: $libraries" [ "$(echo "$libraries" | wc -l)" -ge 15 ]
# names_all WHO NAME...: what a recipe names has every library.
names_all() {
	who=$1
	shift
	set -- $(echo "$*" | sed 's/protobuf-c/protobufc/; s/libjpeg-turbo/libjpeg/')
	for library in $libraries; do
		case " $* " in
		*" $library "* | *" lib$library "*) ok ;;
		*) bad "$who names $library: $*" ;;
		esac
	done
}

# ---- Arch Linux
if command -v bash > /dev/null; then
	mkdir -p "$dir/source/jitrun-$version/build" "$dir/package"
	for part in deploy debian models LICENSE; do
		ln -s "$top/$part" "$dir/source/jitrun-$version/"
	done
	ln -s "$PWD/jitrun" "$dir/source/jitrun-$version/build/jitrun"
	cat > "$dir/run.sh" << 'SH'
	set -eu
	. "$1/packaging/aur/PKGBUILD"
	case $2 in
	depends) echo "${depends[@]}" ;;
	version) echo "$pkgver" ;;
	*)
		make() { echo "make $*"; }
		pkgdir=$3
		cd "$4"
		$2
		;;
	esac
SH
	recipe() { bash "$dir/run.sh" "$top" "$@"; }
	check "PKGBUILD has version $version" [ "$(recipe version)" = "$version" ]
	names_all PKGBUILD $(recipe depends)
	recipe check "$dir/package" "$dir/source" > "$dir/out" 2> "$dir/err"
	check "check() tells a story: $(cat "$dir/err")" [ "$(wc -w < "$dir/out")" -ge 20 ]
	recipe package "$dir/package" "$dir/source" > "$dir/out" 2> "$dir/err"
	check "package() works: $(cat "$dir/err")" [ $? = 0 ]
	check "it has make install into the package" grep -q "DESTDIR=$dir/package install" "$dir/out"
	unit=$dir/package/usr/lib/systemd/system/jitserve.service
	check "the unit runs the installed program" grep -q '^ExecStart=/usr/bin/jitserve ' "$unit"
	for file in usr/lib/systemd/system/jitserve.socket etc/default/jitserve usr/share/licenses/jitrun/LICENSE; do
		check "the package has $file" [ "$(stat -c %a "$dir/package/$file")" = 644 ]
	done
	if command -v makepkg > /dev/null; then
		cp "$top/packaging/aur/PKGBUILD" "$dir/source/" && chmod -R a+rwX "$dir/source" && chmod 755 "$dir"
		# makepkg will not be run by root, and looks for pacman, of which it needs nothing here.
		plain=
		[ "$(id -u)" != 0 ] || plain="setpriv --reuid 65534 --regid 65534 --clear-groups"
		(cd "$dir/source" && $plain env HOME="$dir/source" PACMAN=true makepkg --printsrcinfo) > "$dir/out" \
			2> "$dir/err"
		check "makepkg reads PKGBUILD: $(cat "$dir/err")" [ $? = 0 -a ! -s "$dir/err" ]
		check "with the version" grep -q "pkgver = $version\$" "$dir/out"
	else
		echo "# skipped: makepkg is not here"
	fi
else
	echo "# skipped: PKGBUILD, as bash is not here"
fi

# ---- Nix
check "package.nix has version $version" grep -q "^  version = \"$version\";\$" "$top/packaging/nix/package.nix"
names_all package.nix $(sed -n '/buildInputs = \[/,/\]/p' "$top/packaging/nix/package.nix")
if command -v nix-instantiate > /dev/null && command -v python3 > /dev/null; then
	# A store of this test's own.
	mkdir -p "$dir/nix/etc"
	echo "build-users-group =" > "$dir/nix/etc/nix.conf"
	export NIX_STORE_DIR="$dir/nix/store" NIX_STATE_DIR="$dir/nix/var" NIX_LOG_DIR="$dir/nix/log" \
		NIX_CONF_DIR="$dir/nix/etc" NIX_PATH="nixpkgs=$top/tests/packages/nixpkgs.nix"
	nix() { nix-instantiate --eval --strict --json -E "with { top = \"$top\"; }; $1" 2> "$dir/err"; }
	nix 'let nixpkgs.legacyPackages.x86_64-linux = import <nixpkgs>;
		outputs = (import (top + "/flake.nix")).outputs { self = outputs; inherit nixpkgs; };
		in outputs.packages.x86_64-linux.default' > "$dir/flake"
	check "the flake is evaluated: $(cat "$dir/err")" [ $? = 0 ]
	nix 'import (top + "/packaging/nix") { pkgs = import <nixpkgs>; }' > "$dir/plain"
	check "and default.nix: $(cat "$dir/err")" [ $? = 0 ]
	check "to the same" cmp "$dir/flake" "$dir/plain"
	field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1" < "$dir/flake"; }
	check "its sources are all of these" [ -f "$(field src)/configure.ac" ]
	# What it does behind make install, on links to what was built.
	out=$dir/nix/out TMPDIR=$dir
	mkdir -p "$out/bin" "$out/lib/jitrun"
	ln -s "$PWD/jitrun" "$out/bin/jitrun"
	for library in .libs/libjitrun-programs-*.so; do
		[ ! -f "$library" ] || ln -s "$PWD/$library" "$out/lib/jitrun/"
	done
	: > "$out/lib/libjitrun.so.1.0.0"
	addDriverRunpath() {
		for file in "$@"; do
			check "addDriverRunpath gets a file: $file" [ -f "$file" ]
		done
	}
	# Programs that hold the library have none beside them.
	[ ! -f .libs/libjitrun-programs.so ] || eval "$(field postFixup)"
	# Evaluation alone copies no file into the store.
	phase=$(field installCheckPhase | sed "s,$NIX_STORE_DIR/[0-9a-z]*-,$top/models/,")
	(eval "$phase") > "$dir/out" 2> "$dir/err"
	check "installCheckPhase tells a story: $(cat "$dir/err")" [ "$(wc -w < "$dir/out")" -ge 20 ]
else
	echo "# skipped: Nix or python3 is not here"
fi
finish
