#!/bin/sh
# tests/packages/t_static.sh - the static programs: each is one file that needs nothing beside it. In a root that holds
# nothing else they tell the story, with the bits of the others, and serve it; where libcurl and GnuTLS can be linked
# statically (packaging/musl.sh), they fetch it and speak HTTPS, too.
. "${srcdir:-.}/tests/support/prelude.sh"
if grep -q '^SANITIZE_CFLAGS = .*-fsanitize' Makefile || grep -q '^STATIC_LDFLAGS = none' Makefile ||
	! grep -q '^PROGRAMS_SO = ' Makefile; then
	echo "skipped: static programs are not for this build"
	exit 77
fi
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make static-programs > "$dir/made" 2>&1
if [ $? != 0 ] && grep -q 'cannot find -l' "$dir/made"; then
	echo "skipped: static libraries lack here: $(grep -o 'cannot find -l[a-z0-9_]*' "$dir/made" | tr '\n' ' ')"
	exit 77
fi
check "make static-programs: $(grep -v warning "$dir/made" | tail -n 5)" [ -s static/SHA256SUMS ]
check "SHA256SUMS is right" sh -c 'cd static && sha256sum --quiet -c SHA256SUMS'
holds() { grep -q "^STATIC_$1_LIBS = ." Makefile; }
for program in jitrun jitwarm jitquant jitbench jitk jitgraph jitopt jiteml jittrain \
	$([ ! -x jitserve ] || echo jitserve) \
	$(if holds LIBCURL; then echo jitpull; fi); do
	check "$program is in SHA256SUMS" grep -q " $program\$" static/SHA256SUMS
	size=$(wc -c < static/$program)
	check "$program has a sensible size: $size" [ "$size" -gt 1000000 -a "$size" -lt 12000000 ]
	check "$program is the same program" [ "$(static/$program --version)" = "$(./$program --version)" ]
	if command -v readelf > /dev/null; then
		check "$program asks for no loader and no library" [ \
			"$(readelf -ld static/$program | grep -cE 'INTERP|NEEDED')" = 0 ]
		check "$program has read-only relocations and no executable stack" sh -c 'readelf -lW "$1" |
			grep -q GNU_RELRO && ! readelf -lW "$1" | grep GNU_STACK | grep -q RWE' - static/$program
	fi
done
./jitrun "$model" --no-cache --prompt "Once upon a time" -n 24 --temp 0 -q > "$dir/want"

# ---- an empty root, or without the right to make one, an empty environment
mkdir "$dir/root" && cp static/jitrun "$model" "$dir/root/" || exit 1
[ ! -x static/jitserve ] || cp static/jitserve "$dir/root/"
printf '%s' '{% for m in messages %}{{ m.content }}{% endfor %}' > "$dir/root/plain.jinja"
chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
exec_alone() { program=$1; shift; cd "$dir/root" && exec env -i "./$program" "$@"; }
if [ -n "$chroot" ] && env -i "$chroot" "$dir/root" /jitrun --version > /dev/null 2>&1; then
	exec_alone() { program=$1; shift; exec env -i "$chroot" "$dir/root" "/$program" "$@"; }
else
	echo "# skipped: an empty root, as chroot does not work here"
fi
alone() { (exec_alone "$@"); }
alone jitrun tale-q8_0.gguf --prompt "Once upon a time" -n 24 --temp 0 -q > "$dir/got" 2> "$dir/err"
check "jitrun runs alone: $(cat "$dir/err")" [ $? = 0 ]
check "with the same story" cmp "$dir/want" "$dir/got"
alone jitrun tale-q8_0.gguf --device cuda --prompt x > "$dir/got" 2> "$dir/err"
check "cards are refused" [ $? = 1 ]
check "with the reason: $(cat "$dir/err")" grep -q 'is linked statically and opens no libraries' "$dir/err"
alone jitrun info tale-q8_0.gguf --json > "$dir/got" 2> "$dir/err"
check "without /proc, it knows how much memory is available: $(grep available "$dir/got")" \
	grep -qE '"available_bytes": *[1-9][0-9]{6,12}[,}]' "$dir/got"
if [ -x static/jitserve ] && command -v curl > /dev/null; then
	own_port
	exec_alone jitserve tale-q8_0.gguf --template plain.jinja --port $port --quiet > "$dir/served" 2>&1 &
	server=$!
	waited=0
	until curl -sf "http://127.0.0.1:$port/readyz" > /dev/null || [ $waited = 300 ]; do
		waited=$((waited + 1))
		sleep 0.1
	done
	curl -sf "http://127.0.0.1:$port/v1/completions" -H 'Content-Type: application/json' \
		-d '{"prompt":"Once upon a time","max_tokens":24,"temperature":0}' > "$dir/answer"
	check "jitserve answers alone: $(cat "$dir/served" "$dir/answer")" grep -q '"completion_tokens": *24' \
		"$dir/answer"
	kill $server
	wait $server 2> /dev/null
fi

# ---- HTTPS
command -v openssl > /dev/null && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
	-keyout "$dir/root/key.pem" -out "$dir/root/cert.pem" -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
	-days 2 > /dev/null 2>&1 || { echo "# skipped: HTTPS, as openssl makes no certificate here"; finish; exit; }
if [ -x static/jitserve ] && ! holds GNUTLS; then
	alone jitserve tale-q8_0.gguf --port 0 --tls-cert cert.pem --tls-key key.pem > "$dir/got" 2> "$dir/err"
	check "HTTPS is refused" [ $? = 1 ]
	check "with the reason: $(cat "$dir/err")" grep -q 'is linked statically and speaks no HTTPS' "$dir/err"
elif [ -x static/jitserve ] && command -v curl > /dev/null; then
	exec_alone jitserve tale-q8_0.gguf --template plain.jinja --port $port --tls-cert cert.pem --tls-key key.pem \
		--quiet > "$dir/served" 2>&1 &
	server=$!
	waited=0
	until curl --cacert "$dir/root/cert.pem" -sf "https://127.0.0.1:$port/readyz" > "$dir/answer" ||
		[ $waited = 300 ]; do
		waited=$((waited + 1))
		sleep 0.1
	done
	check "jitserve speaks HTTPS: $(cat "$dir/served")" [ $waited -lt 300 ]
	kill $server
	wait $server 2> /dev/null
fi
if [ -x static/jitpull ] && command -v python3 > /dev/null; then
	python3 "$top/tests/pull/hub.py" "$model" > "$dir/port" &
	plain=$!
	python3 "$top/tests/pull/hub.py" "$model" "$dir/root/cert.pem" "$dir/root/key.pem" > "$dir/port-tls" &
	secure=$!
	until [ -s "$dir/port" ] && [ -s "$dir/port-tls" ]; do
		kill -0 $plain && kill -0 $secure || break
		sleep 0.05
	done
	mkdir -p "$dir/root/etc" && echo "127.0.0.1 hub.test" > "$dir/root/etc/hosts"
	# pull ENDPOINT PROGRAM ARGUMENT...
	pull() {
		endpoint=$1
		shift
		env -i PATH=/ HF_ENDPOINT="$endpoint" SSL_CERT_FILE=/cert.pem "$chroot" "$dir/root" "$@" --tries 1 \
			--cache /cache > "$dir/got" 2> "$dir/err"
	}
	if [ -n "$chroot" ] && cp static/jitpull "$dir/root/" && env -i "$chroot" "$dir/root" /jitpull --version \
		> /dev/null 2>&1; then
		pull "http://hub.test:$(cat "$dir/port")" /jitpull hf.co/a/tale-GGUF
		check "jitpull fetches from a host by its name: $(cat "$dir/err")" \
			cmp "$model" "$dir/root$(cat "$dir/got")"
		pull "https://127.0.0.1:$(cat "$dir/port-tls")" /jitrun pull hf.co/b/tale-GGUF
		check "jitrun pull does, over HTTPS: $(cat "$dir/err")" cmp "$model" "$dir/root$(cat "$dir/got")"
		rm "$dir/root/cert.pem"
		pull "https://127.0.0.1:$(cat "$dir/port-tls")" /jitpull hf.co/c/tale-GGUF
		check "and not without its certificate" [ $? = 1 ]
	else
		echo "# skipped: fetching, as chroot does not work here"
	fi
	kill $plain $secure
	wait $plain $secure 2> /dev/null
fi
finish
