#!/bin/sh
# tests/packages/t_debian.sh BUILD - the Debian packages of this tree: built, read by lintian, installed into a bare
# Debian, and tried there by what debian/tests says. check.sh runs it behind the build with gcc.
#
# BUILD is a build directory. Its objects are used again, so that a minute is enough; without it all is compiled anew.
# The bare Debian is made of the packages that this machine has: the essential ones, and those that the new packages
# depend on. dpkg refuses what lacks something, so a forgotten dependency fails. That part needs root.
srcdir=$(cd "$(dirname "$0")/../.." && pwd)
. "$srcdir/tests/support/prelude.sh"
build=${1-}
for tool in dpkg-buildpackage dh; do
	command -v $tool > /dev/null || { echo "skipped: $tool is not here"; exit 77; }
done
tree=$dir/debs/jitrun
root=$dir/root
mkdir -p "$tree" "$root"

# ---- building
if [ -e "$srcdir/.git" ]; then
	(cd "$srcdir" && git ls-files && git ls-files -o --exclude-standard) | sort -u
else
	(cd "$srcdir" && find . -path './build*' -prune -o -type f -print)
fi > "$dir/files"
tar -C "$srcdir" -ch -T "$dir/files" -f - | tar -xf - -C "$tree" || exit 1
version=$(dpkg-parsechangelog -l "$tree/debian/changelog" -S Version)
check "debian/changelog has the version of configure.ac: $version" grep -qF "AC_INIT([jitrun], [${version%-*}]" \
	"$srcdir/configure.ac"
# What is compiled again, or not: everything that make finds newer than its sources.
if [ -n "$build" ]; then
	for made in configure aclocal.m4 config.h.in Makefile.in m4 build-aux; do
		[ ! -e "$srcdir/$made" ] || cp -a "$srcdir/$made" "$tree/" || exit 1
	done
	cp -a "$build" "$tree/build-package" || exit 1
	rm -rf "$tree/build-package/linked" "$tree"/build-package/tests/*.log
fi
(cd "$tree" && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u srcdir \
	DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" \
	dpkg-buildpackage -b -nc -us -uc -d) > "$dir/built" 2>&1
status=$?
check "dpkg-buildpackage: $(tail -n 15 "$dir/built")" [ $status = 0 ]
[ $status = 0 ] || { finish; exit 1; }
cd "$dir/debs" || exit 1
go_package=golang-github-jitrun-jitrun-dev
for package in jitrun jitserve jitpull libjitrun1 libjitrun-dev jitrun-doc $go_package; do
	check "$package is there" [ -f "$(echo ${package}_"$version"_*.deb)" ]
done
for name in $(dpkg-deb --fsys-tarfile libjitrun1_*.deb | tar -tf - | grep '\.so\.1$'); do
	check "libjitrun1 has $name where its architecture's libraries are" [ "$(dirname "$name")" = \
		"./usr/lib/$(dpkg-architecture -q DEB_HOST_MULTIARCH)" ]
done
depends() { dpkg-deb -f "$1"_*.deb Depends; }
check "jitrun has no server's libraries: $(depends jitrun)" sh -c '! echo "$1" | grep -qE "microhttpd|gnutls|curl"' - \
	"$(depends jitrun)"
check "jitserve needs the jitrun of its version: $(depends jitserve)" sh -c \
	'case $1 in *"jitrun (= $2)"*) ;; *) exit 1 ;; esac' - "$(depends jitserve)" "$version"
for program in jitrun jitquant jitwarm jitbench jitk jitgraph jitopt jiteml jittrain; do
	size=$(dpkg-deb --fsys-tarfile jitrun_*.deb | tar -xOf - ./usr/bin/$program | wc -c)
	check "$program holds no library: $size bytes" [ "$size" -gt 10000 -a "$size" -lt 1000000 ]
done
if command -v lintian > /dev/null; then
	lintian --allow-root --fail-on error,warning ./*.changes > "$dir/lintian" 2>&1
	check "lintian: $(grep '^[EW]:' "$dir/lintian")" [ $? = 0 ]
else
	echo "# skipped: lintian is not here"
fi

# ---- a bare Debian
[ "$(id -u)" = 0 ] || { echo "# skipped: installing, which needs root"; finish; exit; }
# dependencies NAME...: what these installed packages need, and they, by the names that dpkg knows here.
dependencies() {
	dpkg-query -W -f '${db:Status-Status}|${Package}|${Provides}|${Pre-Depends}, ${Depends}\n' |
		awk -F'|' -v want="$*" '
		$1 == "installed" {
			have[$2] = 1
			n = split($3, part, ", *")
			for (i = 1; i <= n; i++) { sub(/ .*/, "", part[i]); provider[part[i]] = $2 }
			needs[$2] = $0
			sub(/^[^|]*\|[^|]*\|[^|]*\|/, "", needs[$2])
		}
		function add(name,  n, i, m, j, part, one) {
			if (!(name in have)) name = provider[name]
			if (name == "" || name in done) return
			done[name] = 1
			print name
			n = split(needs[name], part, ", *")
			for (i = 1; i <= n; i++) {
				m = split(part[i], one, " *[|] *")
				for (j = 1; j <= m; j++) {
					sub(/^ */, "", one[j])
					sub(/[ :].*/, "", one[j])
					if (one[j] in have || one[j] in provider) { add(one[j]); break }
				}
			}
		}
		END { n = split(want, name, " "); for (k = 1; k <= n; k++) add(name[k]) }'
}
essential=$(dpkg-query -W -f '${Essential} ${Package}\n' | sed -n 's/^yes //p')
ours=$(for package in jitrun jitserve jitpull libjitrun1 libjitrun-dev $go_package; do
	dpkg-deb -f ${package}_*.deb Depends | tr ',' '\n' | sed 's/^ *//; s/[ (].*//; /jitrun/d'
done | sort -u)
dependencies $essential $ours > "$dir/packages"
mkdir -p "$root/var/lib/dpkg/info" "$root/proc" "$root/tmp" "$root/dev"
: > "$root/var/lib/dpkg/available"
xargs dpkg-query -s < "$dir/packages" > "$root/var/lib/dpkg/status"
while read -r package; do
	for list in "/var/lib/dpkg/info/$package.list" "/var/lib/dpkg/info/$package:"*.list; do
		[ ! -f "$list" ] || { cat "$list" && cp "${list%.list}".* "$root/var/lib/dpkg/info/"; }
	done
done < "$dir/packages" | sort -u | grep -v -e '^/\.$' -e ^/usr/share/doc -e ^/usr/share/locale \
	-e '^/s\?bin$' -e '^/lib\(64\)\?$' > "$dir/list"
for link in bin sbin lib lib64; do
	[ ! -L /$link ] || { mkdir -p "$root/usr/$link" && ln -s "usr/$link" "$root/$link"; }
done
tar -C / --ignore-failed-read --no-recursion -cf - -T "$dir/list" 2> /dev/null | tar -xf - -C "$root"
cp /etc/passwd /etc/group "$root/etc/"
chmod 1777 "$root/tmp"
mknod -m 666 "$root/dev/null" c 1 3 2> /dev/null || : > "$root/dev/null"
cp ./*.deb "$root/tmp/"
exec_inside() { exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp chroot "$root" "$@"; }
inside() { (exec_inside "$@"); }
inside true || { echo "# skipped: installing, as chroot does not work here"; finish; exit; }
inside sh -c 'dpkg -i /tmp/jitserve_*.deb' > "$dir/said" 2>&1
check "jitserve alone is refused, as jitrun lacks" [ $? != 0 ]
inside sh -c 'dpkg --purge jitserve' > /dev/null 2>&1
inside sh -c 'dpkg -i /tmp/*.deb' > "$dir/said" 2>&1
check "dpkg installs all: $(tail -n 5 "$dir/said")" [ $? = 0 ]
check "and all are configured" [ "$(inside dpkg-query -W -f '${db:Status-Status}\n' jitrun jitserve jitpull \
	libjitrun1 libjitrun-dev jitrun-doc $go_package | sort | uniq -c | tr -s ' ')" = " 7 installed" ]

# ---- the packages' own tests: in the root, with the sources; the example is compiled here, as the root has no compiler
mkdir -p "$root/tmp/source/models" "$root/tmp/source/docs"
cp -r "$tree/debian" "$root/tmp/source/"
cp "$model" "$root/tmp/source/models/"
inside sh -c 'cd /tmp/source && debian/tests/story' > "$dir/said" 2>&1
check "debian/tests/story: $(tail -n 5 "$dir/said")" [ $? = 0 ]
check "jitrun says which release it is" grep -q "^jitrun ${version%-*}" "$dir/said"
multiarch=$(dpkg-architecture -q DEB_HOST_MULTIARCH)
example() {
	PKG_CONFIG_LIBDIR="$root/usr/lib/$multiarch/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root" \
		pkg-config --cflags --libs jitrun > "$dir/flags" &&
		${CC:-cc} -Wall -Wextra -Werror "$srcdir/docs/example.c" -o "$root/tmp/example" $(cat "$dir/flags") &&
		(cd "$root" && inside /tmp/example /tmp/source/models/tale-q8_0.gguf "Once upon a time")
}
example > "$dir/said" 2>&1
check "docs/example.c is built against libjitrun-dev and runs: $(tail -n 5 "$dir/said")" [ \
	"$(wc -w < "$dir/said")" -ge 20 ]
# The Go package's example likewise, of what is installed alone; it finds the library as any program does.
go_example() {
	GO111MODULE=off GOPATH="$root/usr/share/gocode" GOFLAGS= GOENV=off GOCACHE="$dir/go-cache" CGO_ENABLED=0 \
		go build -o "$root/tmp/go-example" github.com/jitrun/jitrun/bindings/go/example &&
		inside /tmp/go-example /tmp/source/models/tale-q8_0.gguf
}
if command -v go > /dev/null; then
	go_example > "$dir/said" 2>&1
	check "the Go package's example is built and runs: $(tail -n 5 "$dir/said")" [ "$(wc -w < "$dir/said")" -ge 20 ]
else
	echo "# skipped: go is not here"
fi
# The server in the root, asked from outside of it.
if command -v curl > /dev/null; then
	printf '%s' '{% for m in messages %}{{ m.content }}{% endfor %}' > "$root/tmp/plain.jinja"
	own_port
	exec_inside jitserve /tmp/source/models/tale-q8_0.gguf --template /tmp/plain.jinja --port $port --quiet \
		> "$dir/served" 2>&1 &
	server=$!
	waited=0
	until curl -sf "http://127.0.0.1:$port/readyz" > /dev/null || [ $waited = 300 ]; do
		waited=$((waited + 1))
		sleep 0.1
	done
	curl -sf "http://127.0.0.1:$port/v1/chat/completions" -H 'Content-Type: application/json' -d \
		'{"messages":[{"role":"user","content":"Once upon a time"}],"max_tokens":20}' > "$dir/answer"
	check "jitserve answers: $(cat "$dir/answer" "$dir/served")" grep -q '"completion_tokens": *20' "$dir/answer"
	kill $server
	wait $server 2> /dev/null
else
	echo "# skipped: curl is not here"
fi
# The units: where their program is, and what they read.
unit=$root/lib/systemd/system/jitserve.service
check "the unit runs the installed program" grep -q '^ExecStart=/usr/bin/jitserve ' "$unit"
check "and reads /etc/default/jitserve" [ -f "$root/etc/default/jitserve" ]
check "the socket's unit is there" [ -f "${unit%service}socket" ]
check "nothing is enabled without a model" [ -z "$(find "$root/etc/systemd" -name 'jitserve*' 2> /dev/null)" ]
inside dpkg --purge $go_package jitserve jitpull jitrun libjitrun-dev libjitrun1 jitrun-doc > "$dir/said" 2>&1
check "all can be removed: $(tail -n 3 "$dir/said")" [ $? = 0 ]
check "and leave nothing: $(find "$root/usr" "$root/etc" -name '*jit[rsqwbp]*')" [ \
	-z "$(find "$root/usr" "$root/etc" -name '*jit[rsqwbp]*')" ]
finish
