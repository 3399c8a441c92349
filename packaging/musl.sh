#!/bin/sh
# packaging/musl.sh FOLDER - static programs with musl, on Debian: FOLDER/build/static. What they hold is compiled from
# Debian's source packages, which apt fetches and checks, into FOLDER/root; FOLDER keeps both for the next time. Needs
# musl-tools, dpkg-dev and what a build of jitrun needs. JOBS, MIRROR and SUITE come from the environment.
#
# Static programs with Debian's own C library (make static-programs) need nothing of this, and lack two things: Debian
# has no static library of Kerberos, which its libcurl needs, nor of p11-kit, which its GnuTLS needs. Here jitpull is
# among the programs, and jitserve speaks HTTPS. No library that reads pictures is among them.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 1 ] || { echo "usage: packaging/musl.sh FOLDER" >&2; exit 2; }
for tool in musl-gcc apt-get dpkg-source pkg-config autoreconf bison; do
	command -v $tool > /dev/null || { echo "musl.sh: $tool is not here" >&2; exit 1; }
done
mkdir -p "$1"
dir=$(cd "$1" && pwd)
root=$dir/root
jobs=${JOBS:-$(nproc)}
cflags="-O2 -g0 -fPIC -ffile-prefix-map=$dir=."

# ---- sources
# fetch NAME...: their source packages, in folders with the package's name.
fetch() {
	mkdir -p "$dir/apt/lists/partial" "$dir/sources"
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	mirror=${MIRROR:-http://deb.debian.org/debian}
	echo "deb-src [signed-by=$keys] $mirror ${SUITE:-bookworm} main" > "$dir/apt/sources.list"
	set -- -q -o Dir::Etc::sourcelist="$dir/apt/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$dir/apt/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o APT::Sandbox::User= -- "$@"
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	apt-get $options update
	(cd "$dir/sources" && apt-get $options source --download-only "$@")
	for name in "$@"; do
		# Debian's libedit is made to need libbsd, which its release contains a substitute for.
		as_released=$([ "$name" != libedit ] || echo --skip-patches)
		dpkg-source --no-check $as_released -x "$dir/sources/${name}"_*.dsc "$dir/sources/$name"
	done
}

# made NAME COMMAND: runs the command in the sources of NAME, once.
made() {
	[ ! -e "$dir/made-$1" ] || return 0
	echo "musl.sh: $1"
	(cd "$dir/sources/$1" && eval "$2") > "$dir/log" 2>&1 || { tail -n 40 "$dir/log" >&2; exit 1; }
	: > "$dir/made-$1"
}

# The headers of the kernel, which musl leaves to the system.
mkdir -p "$root/include"
for header in linux asm-generic; do
	ln -sfn /usr/include/$header "$root/include/$header"
done
ln -sfn "/usr/include/$(dpkg-architecture -q DEB_HOST_MULTIARCH)/asm" "$root/include/asm"
[ -e "$dir/fetched" ] || {
	fetch libzstd jansson pcre2 utf8proc jemalloc ncurses libedit gmp mpfr4 nettle gnutls28 libmicrohttpd curl \
		> "$dir/log" 2>&1 || { tail -n 40 "$dir/log" >&2; exit 1; }
	: > "$dir/fetched"
}

# ---- what the programs hold
# A compiler by one name, as some of these know no other way to be told of flags that every call needs.
mkdir -p "$dir/bin"
printf '#!/bin/sh\nexec musl-gcc "$@" -isystem %s\n' "'$root/include'" > "$dir/bin/cc"
chmod +x "$dir/bin/cc"
cc=$dir/bin/cc
export PKG_CONFIG_LIBDIR="$root/lib/pkgconfig" PKG_CONFIG_PATH=
unset CPPFLAGS CFLAGS LDFLAGS LIBS
configure="[ -x configure ] || autoreconf -fi; ./configure -q --host=x86_64-linux-musl --prefix=$root \
	--libdir=$root/lib --disable-shared --enable-static --disable-dependency-tracking \
	 CC=$cc CPPFLAGS=-I$root/include LDFLAGS=-L$root/lib 'CFLAGS=$cflags' \
	'PKG_CONFIG=pkg-config --static'"
build="make -j$jobs && make install"
made libzstd "make -j$jobs -C lib CC=$cc CFLAGS='$cflags' libzstd.a &&
	make -C lib PREFIX=$root LIBDIR=$root/lib install-static install-includes install-pc"
made jansson "$configure && make -j$jobs -C src && make -C src install && make install-pkgconfigDATA"
made pcre2 "$configure --disable-pcre2grep-jit && make -j$jobs libpcre2-8.la && make install-libLTLIBRARIES \
	install-nodist_includeHEADERS install-pkgconfigDATA 'lib_LTLIBRARIES=libpcre2-8.la'"
made utf8proc "make -j$jobs CC=$cc CFLAGS='$cflags' libutf8proc.a libutf8proc.pc prefix=$root &&
	mkdir -p $root/lib/pkgconfig && cp libutf8proc.a $root/lib && cp libutf8proc.pc $root/lib/pkgconfig &&
	cp utf8proc.h $root/include"
made jemalloc "autoconf && $configure --disable-cxx --disable-prof && make -j$jobs build_lib_static &&
	make install_lib_static install_include install_lib_pc"
made ncurses "$configure --without-cxx --without-cxx-binding --without-ada --without-manpages --without-progs \
	--without-tests --without-debug --with-termlib=tinfo --enable-widec --disable-stripping --with-pkg-config=no \
	--with-fallbacks=xterm,xterm-256color,linux,screen-256color,tmux-256color \
	--with-default-terminfo-dir=/usr/share/terminfo \
	--with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo --enable-overwrite &&
	make -j$jobs -C include && make -j$jobs -C ncurses && make -C include install && make -C ncurses install &&
	ln -sf libtinfo.a $root/lib/libtermcap.a"
made libedit "$configure CPPFLAGS='-I$root/include -D__STDC_ISO_10646__=201103L' && make -j$jobs -C src &&
	make -C src install && make install-pkgconfigDATA"
made gmp "autoreconf -fi && $configure && make -j$jobs && make install"
made mpfr4 "$configure --with-gmp=$root && make -j$jobs -C src && make -C src install &&
	make install-pkgconfigDATA"
made nettle "$configure --disable-documentation --disable-openssl && make -j$jobs libnettle.a libhogweed.a &&
	make install-headers install-static install-pkgconfig"
made gnutls28 "$configure --with-included-libtasn1 --with-included-unistring --without-p11-kit --without-idn \
	--without-zlib --without-brotli --without-zstd --without-tpm --without-tpm2 --disable-doc --disable-tools \
	--disable-cxx --disable-tests --disable-nls --disable-guile --disable-libdane \
	--with-default-trust-store-file=/etc/ssl/certs/ca-certificates.crt &&
	make -j$jobs -C gl && make -j$jobs -C lib && make -C lib install &&
	sed -i 's/ -latomic//' $root/lib/pkgconfig/gnutls.pc" # the compiler's own library is made for glibc
made libmicrohttpd "$configure --with-gnutls --disable-doc --disable-examples --disable-curl &&
	make -j$jobs -C src/microhttpd libmicrohttpd.la && make -C src/microhttpd install-libLTLIBRARIES &&
	make -C src/include install && make install-pkgconfigDATA"
made curl "$configure --with-gnutls --disable-ldap --disable-rtsp --disable-dict \
	--disable-file --disable-ftp --disable-telnet --disable-tftp --disable-pop3 --disable-imap --disable-smb \
	--disable-smtp --disable-gopher --disable-mqtt --disable-manual --without-libpsl --without-nghttp2 \
	--without-libidn2 --without-librtmp --without-zlib --without-brotli --without-zstd --without-libssh2 \
	--with-ca-bundle=/etc/ssl/certs/ca-certificates.crt --disable-ares --enable-threaded-resolver &&
	make -j$jobs -C lib && make -C lib install && make -C include install && make install-pkgconfigDATA"

# ---- jitrun
cd "$top"
[ -x configure ] || autoreconf -i
mkdir -p "$dir/build"
cd "$dir/build"
[ -f Makefile ] || "$top/configure" -q --disable-static --without-libdrm --without-hsakmt --with-microhttpd \
	--with-gnutls --with-libcurl --without-libpng --without-libjpeg --without-libwebp --without-giflib --with-mpfr \
	CC="$cc" PKG_CONFIG="pkg-config --static" CPPFLAGS="-I$root/include" \
	LDFLAGS="-L$root/lib -Wl,-z,stack-size=8388608" \
	CFLAGS="${CFLAGS:--O2 -g} -ffile-prefix-map=$top=. -ffile-prefix-map=$dir=."
make -j"$jobs" static-programs
ls -l static
