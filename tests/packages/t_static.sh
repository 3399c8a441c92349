#!/bin/sh
# tests/packages/t_static.sh - the static programs: each is one file that needs nothing beside it. In a root that holds
# nothing else they tell the story, with the bits of the others, and serve it.
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
for program in jitrun jitwarm jitquant jitbench $([ ! -x jitserve ] || echo jitserve); do
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
if [ -x static/jitserve ] && command -v curl > /dev/null; then
	port=$((20000 + $$ % 20000))
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
	: > "$dir/root/key.pem"
	if command -v openssl > /dev/null && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
		-keyout "$dir/root/key.pem" -out "$dir/root/cert.pem" -subj /CN=localhost -days 2 > /dev/null 2>&1; then
		alone jitserve tale-q8_0.gguf --port 0 --tls-cert cert.pem --tls-key key.pem > "$dir/got" 2> "$dir/err"
		check "HTTPS is refused" [ $? = 1 ]
		check "with the reason: $(cat "$dir/err")" grep -q 'is linked statically and speaks no HTTPS' "$dir/err"
	fi
fi
finish
