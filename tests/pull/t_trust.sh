#!/bin/sh
# tests/pull/t_trust.sh - jitpull over HTTPS: it believes the certificates that the environment names, and no others.
. "${srcdir:-.}/tests/support/prelude.sh"
[ -x jitpull ] || { echo "skipped: jitpull was not built"; exit 77; }
for tool in openssl python3; do
	command -v $tool > /dev/null || { echo "skipped: $tool is not here"; exit 77; }
done
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$dir/key.pem" -out "$dir/cert.pem" \
	-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -days 2 > "$dir/said" 2>&1 || {
	echo "skipped: openssl makes no certificate here: $(tail -n 1 "$dir/said")"
	exit 77
}
python3 "$top/tests/pull/hub.py" "$model" "$dir/cert.pem" "$dir/key.pem" > "$dir/port" &
hub=$!
trap 'kill $hub; rm -rf "$dir"' EXIT
until [ -s "$dir/port" ] || ! kill -0 $hub; do sleep 0.05; done
# pull NAME=VALUE...: with these in the environment.
pull() {
	env -u CURL_CA_BUNDLE -u SSL_CERT_FILE -u REQUESTS_CA_BUNDLE \
		HF_ENDPOINT="https://127.0.0.1:$(cat "$dir/port")" "$@" \
		./jitpull hf.co/a/tale-GGUF --cache "$dir/cache" --tries 1 -q > "$dir/out" 2> "$dir/err"
	status=$?
}
pull
check "a certificate that nobody vouches for is refused" [ $status = 1 ]
check "and nothing is fetched: $(cat "$dir/out")" [ ! -s "$dir/out" ]
pull SSL_CERT_FILE="$dir/nothing"
check "a file that is not there is named: $(cat "$dir/err")" \
	grep -q 'that SSL_CERT_FILE names cannot be read' "$dir/err"
for name in CURL_CA_BUNDLE SSL_CERT_FILE REQUESTS_CA_BUNDLE; do
	rm -rf "$dir/cache"
	pull $name="$dir/cert.pem"
	check "$name is believed: $(cat "$dir/err")" cmp "$model" "$(cat "$dir/out")"
done
rm -rf "$dir/cache"
pull CURL_CA_BUNDLE="$dir/nothing" SSL_CERT_FILE="$dir/cert.pem"
check "the first of them counts" [ $status = 1 ]
pull CURL_CA_BUNDLE= SSL_CERT_FILE="$dir/cert.pem"
check "unless it is empty: $(cat "$dir/err")" cmp "$model" "$(cat "$dir/out")"
finish
