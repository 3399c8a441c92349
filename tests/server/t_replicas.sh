#!/bin/sh
# tests/server/t_replicas.sh - the files in deploy/: two replicas behind haproxy and nginx, of which one is killed; the
# units of systemd, the manifest and the image; and the memory that docs/DEPLOYMENT.md says a server takes.
. "${srcdir:-.}/tests/support/prelude.sh"
. "${srcdir:-.}/tests/support/serve.sh"
command -v curl >/dev/null || { echo "# skipped: there is no curl"; exit 77; }
# replica NAME PORT: starts one; its port is in $dir/NAME.port, its process in $dir/NAME.pid
export JITRUN_RANK_PATIENCE=20 # other tests may keep all cores busy
# b is two processes with other instructions, which share each matrix
replica() {
	unlike=
	[ "$1" = a ] || unlike='--ranks fork:2 --split rows:1,2 --isa avx2'
	must_serve "$1" "$model" --port "$2" --no-cache --no-replay --quiet --kv-memory 32 \
		--max-connections-per-address 0 $unlike
	echo $server >"$dir/$1.pid"
}
status_of() { curl -s -m 5 -o "$dir/null" -w '%{http_code}' "$@"; }
port() { cat "$dir/$1.port"; }
metrics() { curl -s "http://127.0.0.1:$(port "$1")/metrics"; }
started_by() { metrics "$1" | sed -n 's/^jitserve_answers_started_total{.*} //p'; }
# body N END: a request of conversation N; its first 1024 bytes are the same for every END
filler=$(printf '%0990d' 0)
body() {
	printf '{"user":"%s-%s","prompt":"The king %s. %s","max_tokens":12,"temperature":0.8,"seed":%s}' \
		"$1" "$filler" "$1" "$2" "$1"
}
text() { sed -n 's/.*"text":"\(.*\)","logprobs".*/\1/p'; }
direct() { body "$2" "$3" | curl -s -d @- "http://127.0.0.1:$(port "$1")/v1/completions" | text; }
# proxied N END [HEADER]: through the proxy, whose socket is $front
proxied() {
	body "$1" "$2" | curl -s -m 60 ${3:+-H "$3"} -d @- --unix-socket "$front" http://localhost/v1/completions | text
}
# who COMMAND...: which replica answers it
who() {
	a=$(started_by a) b=$(started_by b)
	"$@" >"$dir/said"
	[ "$(started_by a)" -gt "$a" ] && echo a
	[ "$(started_by b)" -gt "$b" ] && echo b
	true
}
wait_for_front() {
	for i in $(seq 100); do
		[ "$(status_of --unix-socket "$front" http://localhost/readyz)" = 200 ] && return
		sleep 0.1
	done
	bad "$1 does not answer: $(cat "$dir/proxy")"
}
# Whether texts are as they are alone, and turns of a conversation stay where it began.
check_affinity() {
	proxy=$1 seen=
	for n in 1 2 3 4 5 6 7 8; do
		first=$(who proxied $n one)
		check "$proxy: what is said is what a replica says alone" cmp -s "$dir/said" "$dir/alone.$n"
		second=$(who proxied $n "two and more")
		check "$proxy: conversation $n stays where it was: $first, $second" [ "$first" = "$second" ]
		seen="$seen$first"
		[ $n = 1 ] && of_one=$first
	done
	case $seen in *a*b* | *b*a*) ok ;; *) bad "$proxy: all conversations are with one replica: $seen" ;; esac
}
# A header field says which conversation it is, however the request begins.
check_header() {
	for name in one two ${JITRUN_TEST_QUICK:-three}; do
		first=$(who proxied 1 one "X-Conversation-Id: $name")
		for n in 2 3 4; do
			second=$(who proxied $n one "X-Conversation-Id: $name")
			check "$1: conversation $name stays where it was: $first, $second" [ "$first" = "$second" ]
		done
	done
}
# One replica is killed in the middle of an answer; the other takes over, at once, and then the first comes back.
check_takeover() {
	proxy=$1
	victim=$of_one
	rm -f "$dir/broken"
	curl -s -m 60 -N -o "$dir/broken" --unix-socket "$front" http://localhost/v1/completions -d "$(body 1 one |
		sed 's/"max_tokens":12/"max_tokens":900,"ignore_eos":true,"n":16,"stream":true/')" &
	reader=$!
	for i in $(seq 200); do [ -s "$dir/broken" ] && break; sleep 0.05; done
	kill -9 "$(cat "$dir/$victim.pid")"
	wait $reader
	check "$proxy: the answer was broken off, and says so" [ $? != 0 ]
	check "$proxy: it had begun" grep -q '"text"' "$dir/broken"
	check "$proxy: and has no end" [ "$(grep -c DONE "$dir/broken")" = 0 ]
	for n in 1 2 3 4 5 6 7 8; do
		check "$proxy: the other one says the same" [ "$(proxied $n one)" = "$(cat "$dir/alone.$n")" ]
	done
	replica "$victim" "$(port "$victim")"
}
# PROGRAM: whether it is there
has() { command -v "$1" >/dev/null || PATH=$PATH:/usr/sbin command -v "$1" >/dev/null; }
PATH=$PATH:/usr/sbin

replica a 0
replica b 0
for n in 1 2 3 4 5 6 7 8; do
	direct a $n one >"$dir/alone.$n"
	check "something is said" [ -s "$dir/alone.$n" ]
done

if has haproxy; then
	front=$dir/haproxy.sock
	LISTEN=unix@$front REPLICA_A=127.0.0.1:$(port a) REPLICA_B=127.0.0.1:$(port b) \
		haproxy -db -f "$top/deploy/haproxy.cfg" >"$dir/proxy" 2>&1 &
	servers="$servers $!"
	wait_for_front haproxy
	check_affinity haproxy
	check_header haproxy
	check_takeover haproxy
	check "haproxy: no numbers for clients" \
		[ "$(status_of --unix-socket "$front" http://localhost/metrics)" = 404 ]
else
	echo "# not tried: haproxy is not installed"
fi
if has nginx; then
	front=$dir/nginx.sock
	sed "s/127.0.0.1:8081/127.0.0.1:$(port a)/; s/127.0.0.1:8082/127.0.0.1:$(port b)/
		s,listen 127.0.0.1:8000,listen unix:$front," "$top/deploy/nginx.conf" >"$dir/site.conf"
	{
		echo "daemon off; master_process off; pid $dir/nginx.pid; error_log $dir/proxy; events {}"
		[ "$(id -u)" = 0 ] && echo "user root;"
		echo "http { access_log off; include $dir/site.conf;"
		for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $dir/$kind;"; done
		echo "}"
	} >"$dir/nginx.conf"
	nginx -e "$dir/proxy" -c "$dir/nginx.conf" -p "$dir" 2>>"$dir/proxy" &
	servers="$servers $!"
	wait_for_front nginx
	check_affinity nginx
	check_header nginx
	check_takeover nginx
else
	echo "# not tried: nginx is not installed"
fi

# ---- systemd, the manifest, the image
if has systemd-analyze; then
	cp "$top"/deploy/jitserve.s* "$dir"
	sed -i "s,/usr/local/bin/jitserve,$PWD/jitserve,; /^Documentation/d" "$dir"/jitserve.s*
	check "systemd: $(systemd-analyze verify "$dir/jitserve.service" "$dir/jitserve.socket" 2>&1)" \
		[ -z "$(systemd-analyze verify "$dir/jitserve.service" "$dir/jitserve.socket" 2>&1)" ]
else
	echo "# not tried: systemd-analyze is not installed"
fi
if python3 -c 'import yaml' 2>/dev/null; then
	check "the manifest is YAML, and its probes and ports are jitserve's" \
		python3 - "$top/deploy/kubernetes.yaml" <<'EOF'
import sys, yaml
service, replicas = yaml.safe_load_all(open(sys.argv[1]))
assert service["kind"] == "Service" and replicas["kind"] == "StatefulSet"
pod = replicas["spec"]["template"]
assert replicas["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
one = pod["spec"]["containers"][0]
paths = {k: one[k]["httpGet"]["path"] for k in ("startupProbe", "readinessProbe", "livenessProbe")}
assert paths == {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/livez"}, paths
assert service["spec"]["ports"][0]["port"] == one["ports"][0]["containerPort"] == 8080
args = one["args"]
assert all(isinstance(a, str) for a in args), args
stop = int(args[args.index("--stop-timeout") + 1])
assert pod["spec"]["terminationGracePeriodSeconds"] > stop
mib = int(args[args.index("--kv-memory") + 1])
assert mib * 2**20 < int(one["resources"]["limits"]["memory"][:-2]) * 2**30
mounts, volumes = one["volumeMounts"], pod["spec"]["volumes"]
assert {m["name"] for m in mounts} == {v["name"] for v in volumes}
assert args[args.index("--api-key-file") + 1].startswith(mounts[0]["mountPath"] + "/")
EOF
else
	echo "# not tried: python3 has no yaml"
fi
./jitserve --help-all >"$dir/options"
for file in jitserve.service Containerfile kubernetes.yaml; do
	for option in $(grep -E 'jitserve|args|--' "$top/deploy/$file" | grep -v '^ *#' |
		grep -vE '^(RUN|COPY)|apt-get|configure' | grep -oE -- '--[a-z][a-z-]*'); do
		check "$file: $option is an option of jitserve" grep -q -e "$option" "$dir/options"
	done
done
# The image's command, with its paths below $dir: code comes from the pack alone.
mkdir "$dir/models" "$dir/kernels"
cp "$model" "$dir/models/model.gguf"
echo key >"$dir/keys.txt"
places() { sed "s,/models/,$dir/models/,g; s,/kernels/,$dir/kernels/,g; s,/run/,$dir/,g"; }
warm=$(sed -n 's/^RUN jitwarm //p' "$top/deploy/Containerfile" | places)
entry=$(sed -n '/^ENTRYPOINT/,$p' "$top/deploy/Containerfile" |
	tr -d '[],"\\\n' | sed 's/^ENTRYPOINT jitserve//' | places)
./jitwarm $warm -q >"$dir/out" 2>&1
serve image $entry --port 0
image=$server
check "the image's command serves: $(cat "$dir/out" "$dir/image.err")" grep -q 'ready on' "$dir/image.err"
models="http://127.0.0.1:$(port image)/v1/models"
check "to those who have the key" [ "$(status_of "$models" -H 'Authorization: Bearer key')" = 200 ]
check "to nobody else" [ "$(status_of "$models")" = 401 ]
kill $image
for path in /livez /readyz; do
	check "$path answers" [ "$(status_of "http://127.0.0.1:$(port a)$path")" = 200 ]
done

# ---- memory: what a replica has taken by now, every row of the table by its formula, and the formula by jitserve's own
# numbers
# page LAYERS KV_HEADS HEAD_DIM TYPE: bytes of a page of 128 positions
page() {
	awk -v l="$1" -v h="$2" -v d="$3" -v t="$4" \
		'BEGIN { print l * 2 * h * d * 128 * (t == "f32" ? 4 : t == "f16" ? 2 : 1.125) }'
}
for type in f32 f16 q8_0; do
	for mib in 4 ${JITRUN_TEST_QUICK:-50}; do
		[ $mib = 1 ] && continue
		must_serve one "$model" --port 0 --no-cache --no-replay --quiet --kv-type $type --kv-memory $mib
		one=$server
		pages=$(metrics one | sed -n 's/^jitserve_kv_pages{.*} //p')
		expected=$(awk -v m=$mib -v p="$(page 6 2 64 $type)" 'BEGIN { print int(m * 1048576 / p) }')
		check "$type, $mib MiB: $pages pages, by the formula $expected" [ "$pages" = "$expected" ]
		kill $one
		wait $one
	done
done
kib=$(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$(cat "$dir/a.pid")/status")
if grep -q -e libasan -e libclang_rt -e libtsan "/proc/$(cat "$dir/a.pid")/maps" ||
	grep -q __asan_init ./jitserve; then
	echo "# not measured: a sanitizer takes memory of its own"
else
	check "a replica takes at most its weights, --kv-memory, 4 MiB for passes, and 64 MiB: $kib KiB" \
		[ "$kib" -lt $(((6 + 32 + 4 + 64) * 1024)) ]
fi
rows=0
while IFS='|' read -r nothing name layers heads size page_mib answer all weights; do
	rows=$((rows + 1))
	for row in "1:$page_mib" "32:$answer" "512:$all"; do
		is=$(awk -v p="$(page $layers $heads $size f16)" -v n="${row%%:*}" \
			'BEGIN { printf "%.5g", p * n / 1048576 }')
		check "DEPLOYMENT.md:$name: ${row#*:} MiB, by the formula $is" [ "$(echo ${row#*:})" = "$is" ]
	done
done <<EOF
$(sed -n '/^<!-- memory -->/,/^<!-- end -->/p' "$top/docs/DEPLOYMENT.md" | grep -E '^\| [A-Z].*\| [0-9]+ \|')
EOF
check "the table has rows" [ $rows -ge 4 ]
finish
