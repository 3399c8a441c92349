#!/bin/sh
# tests/server/t_tls.sh - jitserve speaks HTTPS with a certificate and a key: answers, streams, and clients that leave.
#
# The judge is curl, with its own library for TLS. Without curl or openssl, which makes the certificate, it is skipped.
. "${srcdir:-.}/tests/support/prelude.sh"
. "${srcdir:-.}/tests/support/serve.sh"
for program in curl openssl; do
	command -v $program >/dev/null || { echo "# skipped: there is no $program"; exit 77; }
done
run() { timeout 60 ./jitserve "$model" --port 0 --no-cache --no-replay "$@" >"$dir/out" 2>"$dir/err"; status=$?; }
for name in own other; do
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=localhost" \
		-addext "subjectAltName=DNS:localhost,IP:127.0.0.1" -keyout "$dir/$name.key" -out "$dir/$name.pem" \
		2>"$dir/err" || { echo "# skipped: openssl: $(tail -n 1 "$dir/err")"; exit 77; }
done
: >"$dir/empty"
url=
serve server "$model" --port 0 --no-cache --no-replay --context 2048 --tls-cert "$dir/own.pem" --tls-key "$dir/own.key"
if grep -q 'was built without TLS' "$dir/server.err"; then
	echo "# skipped: jitserve has no TLS, and says so"
	exit 77
fi
check "it is ready on https: $(cat "$dir/server.err")" [ "${url#https}" != "$url" ]
ask() { path=$1; shift; curl -sS --max-time 60 --cacert "$dir/own.pem" "$@" "$url$path" >"$dir/out" 2>"$dir/err"; }

check "a list of models: $(ask /v1/models; cat "$dir/err")" grep -q '"object":"list"' "$dir/out"
ask /v1/completions -d '{"prompt":"Once upon a time","max_tokens":40,"temperature":0,"stream":true}'
check "a stream comes to its end" grep -q '^data: \[DONE\]' "$dir/out"
sed -n 's/^data: .*"text":"\([^"]*\)".*/\1/p' "$dir/out" | tr -d '\n' >"$dir/streamed"
ask /v1/completions -d '{"prompt":"Once upon a time","max_tokens":40,"temperature":0}'
sed -n 's/.*"text":"\([^"]*\)".*/\1/p' "$dir/out" | tr -d '\n' >"$dir/whole"
check "its text is that of a whole answer" cmp -s "$dir/streamed" "$dir/whole"
check "there is a text" [ -s "$dir/whole" ]

# A client that leaves: its request ends, and nothing else.
curl -sN --max-time 0.3 --cacert "$dir/own.pem" "$url/v1/completions" \
	-d '{"prompt":"Once","max_tokens":2000,"ignore_eos":true,"stream":true}' >/dev/null 2>&1
tries=0
until ask /metrics && grep -q '^jitserve_answers_cancelled_total{.*} 1$' "$dir/out"; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || break
	sleep 0.1
done
check "a client that left is counted: $(grep -i cancel "$dir/out")" [ $tries -lt 100 ]

plain=http${url#https}
check "plain HTTP is not answered" [ "$(curl -s --max-time 5 -o /dev/null -w '%{http_code}' "$plain/health")" != 200 ]
check "nobody else's certificate is taken for it" \
	sh -c "! curl -s --max-time 5 --cacert '$dir/other.pem' '$url/health' >/dev/null 2>&1"
check "an old version of TLS is refused" sh -c \
	"! curl -s --max-time 5 --tls-max 1.1 --cacert '$dir/own.pem' '$url/health' >/dev/null 2>&1"
ask /health
check "and the server goes on" grep -q ok "$dir/out"
kill $server
wait $server
check "it ends as asked" [ $? = 0 ]

refused "--tls-key is missing" 1 --tls-cert "$dir/own.pem"
refused "--tls-cert is missing" 1 --tls-key "$dir/own.key"
refused "/nowhere: cannot be read" 1 --tls-cert /nowhere --tls-key "$dir/own.key"
refused "empty: is no certificate in PEM form" 1 --tls-cert "$dir/empty" --tls-key "$dir/own.key"
refused "empty: is no key in PEM form" 1 --tls-cert "$dir/own.pem" --tls-key "$dir/empty"
refused "cannot be served with this certificate and key" 1 --tls-cert "$dir/own.pem" --tls-key "$dir/other.key"
finish
