#!/bin/sh
# packaging/three_commands.sh FOLDER - from an empty Debian to a conversation by three commands, timed. FOLDER
# holds Debian packages of jitrun and jitpull. The root is one that debootstrap makes, of 200 MB, and goes again.
# The model is the one that comes with the sources, with a chat template, and a server on this machine is the hub. Needs
# root, debootstrap, python3 and a mirror of Debian; MIRROR and SUITE come from the environment, and ROOT, if it is set,
# is such a root already: it is changed, and stays.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 1 ] || { echo "usage: packaging/three_commands.sh FOLDER" >&2; exit 2; }
packages=$(cd "$1" && pwd)
[ "$(id -u)" = 0 ] || { echo "three_commands.sh: chroot needs root" >&2; exit 1; }
dir=$(mktemp -d)
hub=
trap 'if [ "$hub" ]; then kill $hub; fi; rm -rf "$dir"' EXIT
root=${ROOT:-$dir/root}
[ "${ROOT:-}" ] || debootstrap --variant=minbase "${SUITE:-bookworm}" "$root" \
	"${MIRROR:-http://deb.debian.org/debian}" > "$dir/log" 2>&1 || { tail "$dir/log" >&2; exit 1; }
cp /etc/resolv.conf "$root/etc/"
mkdir -p "$root/root/packages"
cp "$packages"/jitrun_*.deb "$packages"/jitpull_*.deb "$root/root/packages"

# The model with a template: a value in front of all others, as long as the alignment of what follows.
python3 - "$top/models/tale-q8_0.gguf" "$dir/tale-q8_0.gguf" <<- 'PY'
import struct, sys
data = open(sys.argv[1], "rb").read()
name = b"tokenizer.chat_template"
text = b"{% for m in messages %}{{ m.content }}{% endfor %}"
text += b"{#" + b" " * (-(8 + len(name) + 4 + 8 + len(text) + 4) % 32) + b"#}"
value = struct.pack("<Q", len(name)) + name + struct.pack("<IQ", 8, len(text)) + text
n = struct.unpack_from("<Q", data, 16)[0]
open(sys.argv[2], "wb").write(data[:16] + struct.pack("<Q", n + 1) + value + data[24:])
PY
python3 "$top/tests/pull/hub.py" "$dir/tale-q8_0.gguf" > "$dir/port" &
hub=$!
until [ -s "$dir/port" ] || ! kill -0 $hub; do sleep 0.1; done

# run COMMAND: as a user types it in a new container.
run() {
	start=$(date +%s.%N)
	echo "# $1"
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		HF_ENDPOINT="http://127.0.0.1:$(cat "$dir/port")" chroot "$root" \
		sh -c "cd /root/packages && $1" > "$dir/log" 2>&1 ||
		{ tail -n 30 "$dir/log" >&2; exit 1; }
	tail -n 3 "$dir/log"
	echo "$start" "$(date +%s.%N)" | awk '{ printf "%.1f s\n", $2 - $1 }'
}
begin=$(date +%s.%N)
run "apt-get update && apt-get install -y --no-install-recommends ./jitrun_*.deb ./jitpull_*.deb"
run "jitrun pull hf.co/jitrun/tale-GGUF:Q8_0"
run "echo 'Once upon a time' | jitrun tale-GGUF --chat -n 40 --temp 0"
echo "$begin" "$(date +%s.%N)" | awk '{ printf "to the end of the first answer: %.1f s\n", $2 - $1 }'
