# scripts/setup.sh - read by try.sh and check.sh: the packages a build needs, and configuring a build directory.
#
# Owns: the list of packages, how they are installed, when configure runs. Speaks on standard error only, and only when
# there is something to do. Sourced with the working directory at the top of the source tree; sets `jobs`.

packages="autoconf automake libtool pkg-config make gcc libc6-dev xz-utils libzstd-dev libjemalloc-dev libcmocka-dev
	libpcre2-dev libjansson-dev libutf8proc-dev libedit-dev libdrm-dev libmicrohttpd-dev
	libcurl4-gnutls-dev nettle-dev libprotobuf-c-dev
	libpng-dev libjpeg-dev libwebp-dev libgif-dev libmpfr-dev"
# For check.sh alone: layout, lengths, Debian packages, the Python and the Go package.
check_packages="ca-certificates clang-format universal-ctags debhelper lintian python3-pip python3-numpy
	python3-pydantic python3-pil golang-go"
jobs=$(nproc 2>/dev/null || echo 2)

say() { echo "$*" >&2; }

# need_packages PACKAGE...: installs those that are missing, where apt is there to do it; elsewhere configure says what
# it lacks.
need_packages() {
	command -v apt-get >/dev/null 2>&1 || return 0
	missing=
	for package in "$@"; do
		state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
		[ "$state" = installed ] || missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	sudo=
	if [ "$(id -u)" != 0 ]; then
		sudo=sudo
		command -v sudo >/dev/null 2>&1 || { say "Please install:$missing"; return 1; }
	fi
	say "Installing:$missing"
	[ -n "${refreshed:-}" ] || run_logged install.log $sudo apt-get -qq update ||
		say "(the package lists could not be refreshed; going on with those here)"
	refreshed=yes
	run_logged install.log $sudo env DEBIAN_FRONTEND=noninteractive \
		apt-get -qq -y --no-install-recommends install $missing || { show_log install.log; return 1; }
}

# run_logged NAME COMMAND...: the command's output goes to a log, shown only when something fails.
logs=${TMPDIR:-/tmp}/jitrun-logs-$$
run_logged() {
	mkdir -p "$logs" && log=$logs/$1
	shift
	"$@" >"$log" 2>&1
}
show_log() { cat "$logs/$1" >&2; }
trap 'rm -rf "$logs"' EXIT

# configure_into DIR ARGUMENT...: makes ./configure when there is none, and DIR/Makefile when these arguments have not
# made one; without arguments any will do. $sources is where they lie, from DIR.
sources=..
configure_into() {
	dir=$1
	shift
	if [ ! -x configure ] || [ ! -f Makefile.in ]; then
		say "Preparing configure"
		run_logged autoreconf.log autoreconf -i || { show_log autoreconf.log; return 1; }
	fi
	if [ ! -f "$dir/Makefile" ] || { [ $# -gt 0 ] && [ "$(cat "$dir/.arguments" 2>/dev/null)" != "$*" ]; }; then
		say "Configuring $dir"
		mkdir -p "$dir"
		(cd "$dir" && run_logged configure.log "$sources/configure" -q "$@") || {
			show_log configure.log
			return 1
		}
		printf '%s\n' "$*" >"$dir/.arguments"
	fi
}
