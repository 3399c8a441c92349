#!/bin/sh
# tests/packages/t_image.sh - the image for any model: jitserve --probe, which tells whether a server is ready; what the
# image is built of, started as the image starts it; and the image itself where buildah is here.
. "${srcdir:-.}/tests/support/prelude.sh"
[ -x jitserve ] || { echo "skipped: jitserve was not built"; exit 77; }
run() { ./jitserve "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
own_port

# ---- the probe
refused "not 0" 2 --probe --port 0
: > "$dir/cert.pem"
refused "--probe asks over HTTP" 2 --probe --tls-cert "$dir/cert.pem"
refused "no server answers at 127.0.0.1, port $port" 1 --probe --port $port
refused "no server answers at ::1, port $port" 1 --probe --port $port --host ::
refused "no server answers at 127.0.0.1, port $port" 1 --probe --port $port --host 0.0.0.0
if command -v python3 > /dev/null; then
	# Servers that are not ready, or none: each answers one connection.
	answer() {
		rm -f "$dir/up"
		python3 - "$port" "$1" > "$dir/up" <<- 'PY' &
		import socket, sys
		s = socket.socket()
		s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
		s.bind(("127.0.0.1", int(sys.argv[1])))
		s.listen()
		print("up", flush=True)
		s.settimeout(60)
		c, _ = s.accept()
		c.recv(4096)
		c.sendall(sys.argv[2].encode().decode("unicode_escape").encode("latin1"))
		c.close()
		PY
		until [ -s "$dir/up" ] || ! kill -0 $!; do sleep 0.05; done
	}
	answer 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n'
	refused "is not ready: HTTP/1.1 503 Service Unavailable" 1 --probe --port $port
	wait
	answer ''
	refused "does not answer /readyz" 1 --probe --port $port
	wait
	answer 'SSH-2.0-something that goes on and on and on and on and on and on and on and on and on'
	refused "is not ready: SSH-2.0-something" 1 --probe --port $port
	wait
	answer 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'
	is 0 --probe --port $port --host 0.0.0.0
	check "and says nothing" [ ! -s "$dir/err" -a ! -s "$dir/out" ]
	wait
fi

# ---- what the image is built of
if grep -q '^SANITIZE_CFLAGS = .*-fsanitize' Makefile || grep -q '^STATIC_LDFLAGS = none' Makefile ||
	! grep -q '^PROGRAMS_SO = ' Makefile; then
	echo "# skipped: the image, as static programs are not for this build"
	finish
	exit
fi
rm -rf image
(umask 077 && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make image > "$dir/made" 2>&1)
if [ $? != 0 ] && grep -q 'cannot find -l' "$dir/made"; then
	echo "# skipped: the image, as static libraries lack here"
	finish
	exit
fi
file=image/Containerfile
check "make image: $(grep -v warning "$dir/made" | tail -n 5)" [ -f $file ]
for from in $(sed -n 's/^COPY \(--[^ ]* \)\?\(.*\) [^ ]*$/\2/p' $file); do
	check "the Containerfile copies $from, which is there" [ -e "image/$from" ]
done
modes=$(stat -c %a image/jitserve image/jitrun image/folders/cache image/folders/models $file | tr '\n' ' ')
check "any user may read it and write to /cache, whatever the umask was: $modes" [ "$modes" = "755 755 1777 755 644 " ]
check "it has a health check, of the server itself" grep -q \
	'^HEALTHCHECK .*CMD \["/usr/bin/jitserve", "--probe"\]$' $file
check "it begins with nothing" [ "$(grep -c '^FROM' $file) $(grep '^FROM' $file)" = "1 FROM scratch" ]
size=$(du -sb image | cut -f1)
check "it is smaller than 30 MB: $size bytes" [ "$size" -lt 30000000 ]
# Its root, its command and its user, by chroot.
root=$dir/root
mkdir -p "$root/usr/bin" "$root/run"
cp -a image/folders/* "$root/"
cp image/jitrun image/jitserve "$root/usr/bin/"
cp "$model" "$root/models/model.gguf"
echo secret-key-of-the-test > "$root/run/keys.txt"
chmod 755 "$dir"
printf '%s' '{% for m in messages %}{{ m.content }}{% endfor %}' > "$root/models/plain.jinja"
ask() { curl -s -o "$dir/answer" -w '%{http_code}' "http://127.0.0.1:$port/v1/chat/completions" -H \
	'Content-Type: application/json' -d \
	'{"messages":[{"role":"user","content":"Once upon a time"}],"max_tokens":8}' "$@"; }
list() { sed -n "s/^$1 \[\(.*\)\]\$/\1/p" $file | tr -d '",'; }
user=$(sed -n 's/^USER //p' $file)
chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
if [ -z "$chroot" ] || ! env -i "$chroot" --userspec="$user" "$root" /usr/bin/jitserve --version > /dev/null 2>&1; then
	echo "# skipped: the image's command, as chroot does not work here"
elif command -v curl > /dev/null; then
	inside() { env -i PATH=/usr/bin XDG_CACHE_HOME=/cache "$chroot" --userspec="$user" "$root" "$@"; }
	exec_inside() { exec env -i PATH=/usr/bin XDG_CACHE_HOME=/cache "$chroot" --userspec="$user" "$root" "$@"; }
	exec_inside $(list ENTRYPOINT) $(list CMD) --port $port --template /models/plain.jinja > "$dir/served" 2>&1 &
	server=$!
	waited=0
	until inside /usr/bin/jitserve --probe --port $port 2> "$dir/err" || [ $waited = 300 ]; do
		waited=$((waited + 1))
		sleep 0.1
	done
	check "the probe says that it is ready: $(cat "$dir/served" "$dir/err")" [ $waited -lt 300 ]
	check "nobody is answered without a key" [ "$(ask)" = 401 ]
	check "with it: $(cat "$dir/answer")" [ "$(ask -H 'Authorization: Bearer secret-key-of-the-test')" = 200 ]
	kill $server
	wait $server 2> /dev/null
	check "kernels are kept in /cache" [ -n "$(find "$root/cache" -type f | head -n 1)" ]
fi

# ---- a container of it, as its Containerfile says, where podman can start one here: crun first, then runc, which older
# systems need.
run_container() {
	for runtime in crun runc none; do
		[ $runtime != none ] || { echo "# skipped: a container: $(tail -n 1 "$dir/started")"; return; }
		podman $store --runtime $runtime run --rm --network host --ulimit nofile=1024:1024 --ulimit \
			nproc=1000:1000 localhost/jitrun-any --version > "$dir/started" 2>&1 && break
	done
	own_port
	podman="podman $store --runtime $runtime"
	id=$($podman run -d --network host --read-only --tmpfs /cache:mode=1777 --ulimit nofile=1024:1024 --ulimit \
		nproc=1000:1000 -v "$root/models:/models:ro" -v "$root/run/keys.txt:/run/keys.txt:ro" \
		localhost/jitrun-any $(list CMD) --port $port --template /models/plain.jinja 2> "$dir/err")
	check "podman starts it: $(tail -n 1 "$dir/err")" [ -n "$id" ]
	# The health check, as the image has it, asks port 8080; here it is told which.
	waited=0
	until $podman exec "$id" /usr/bin/jitserve --probe --port $port 2> "$dir/err" || [ $waited = 300 ]; do
		waited=$((waited + 1))
		sleep 0.1
	done
	check "its probe says that it is ready: $(cat "$dir/err")" [ $waited -lt 300 ]
	check "the container answers: $(cat "$dir/answer")" [ \
		"$(ask -H 'Authorization: Bearer secret-key-of-the-test')" = 200 ]
	$podman exec "$id" /usr/bin/jitrun /models/model.gguf --prompt Once -n 8 -q > "$dir/out" 2> "$dir/err"
	check "and jitrun in it: $(cat "$dir/err")" [ "$(wc -w < "$dir/out")" -ge 4 ]
	pid=$($podman inspect -f '{{.State.Pid}}' "$id")
	check "kernels are kept in the container's /cache" [ -n "$(find "/proc/$pid/root/cache" -type f | head -n 1)" ]
	$podman stop -t 20 "$id" > "$dir/out" 2>&1
	check "it ends as asked" [ "$($podman inspect -f '{{.State.ExitCode}}' "$id")" = 0 ]
	$podman rm -f "$id" > "$dir/out" 2>&1
}

# ---- the image, built without a network; where that cannot be done, it says why
if ! command -v buildah > /dev/null; then
	echo "# skipped: building it, as buildah is not here"
else
	store="--root $dir/store --runroot $dir/runroot --storage-driver vfs"
	if buildah $store build --isolation chroot --format docker --pull-never -t jitrun-any image \
		> "$dir/built" 2>&1; then
		buildah $store inspect --type image jitrun-any > "$dir/inspected"
		check "the image has the health check" grep -q '"--probe"' "$dir/inspected"
		check "and the user" grep -q "\"$user\"" "$dir/inspected"
		buildah $store push jitrun-any "oci-archive:$dir/image.tar" > "$dir/pushed" 2>&1
		check "it can be written as a file: $(tail -n 2 "$dir/pushed")" [ -s "$dir/image.tar" ]
		size=$(wc -c < "$dir/image.tar")
		check "which is smaller than 30 MB: $size bytes" [ "$size" -gt 1000000 -a "$size" -lt 30000000 ]
		mkdir "$dir/layers" && tar -xf "$dir/image.tar" -C "$dir/layers"
		for blob in "$dir"/layers/blobs/sha256/*; do
			tar -tvzf "$blob" 2> /dev/null
		done > "$dir/listed"
		check "everybody may write to its /cache: $(grep ' cache/$' "$dir/listed")" grep -q \
			'^drwxrwxrwt .* cache/$' "$dir/listed"
		run_container
	else
		echo "# skipped: building it: $(tail -n 1 "$dir/built")"
	fi
fi
finish
