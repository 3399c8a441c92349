#!/bin/sh
# bench/images.sh LLAMA_CPP [ROUNDS] - how long image encoders take, in turns with llama.cpp.
#
# LLAMA_CPP is a checkout that was built in its folder build, with static libraries. Started in
# the build folder, where bench/images is. Two encoders of published widths with random weights and fewer layers; prints
# processor seconds for a picture, which other work on the machine changes less than it does time.
set -eu
llama=$1 rounds=${2:-3}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python=python3
"$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3
"$python" "$here/make_tower.py" qwen2.5vl "$dir/qwen2.5vl.gguf" --layers 4
"$python" "$here/make_tower.py" gemma3 "$dir/gemma3.gguf" --layers 2
mtmd=$llama/tools/mtmd
for f in "$here/clip_encode.cpp" "$mtmd/clip.cpp" "$mtmd"/models/*.cpp; do
	g++ -O2 -std=c++17 -DNDEBUG -I"$llama/include" -I"$llama/ggml/include" -I"$llama/ggml/src" -I"$llama/common" \
		-I"$llama/vendor" -I"$mtmd" -c "$f" -o "$dir/$(basename "$f" .cpp).o"
done
ggml=$llama/build/ggml/src
g++ "$dir"/*.o -o "$dir/clip_encode" "$ggml/libggml.a" "$ggml/libggml-cpu.a" "$ggml/libggml-base.a" -fopenmp -lm -ldl
# seconds COMMAND...: processor time of it and what it started
seconds() {
	"$python" -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
u = resource.getrusage(resource.RUSAGE_CHILDREN)
print(u.ru_utime + u.ru_stime)' "$@"
}
# of PROGRAM MODEL PIXELS: so many rounds more cost so much more
of() {
	few=$(seconds "$1" "$2" "$3" 1 2)
	many=$(seconds "$1" "$2" "$3" $((1 + rounds)) 2)
	echo "$few $many $rounds" | awk '{ print ($2 - $1) / $3 }'
}
for model in "qwen2.5vl 448" "gemma3 896"; do
	set -- $model
	own=$(of bench/images "$dir/$1.gguf" "$2") other=$(of "$dir/clip_encode" "$dir/$1.gguf" "$2")
	echo "$1, $2 x $2 pixels: jitrun $own s, llama.cpp $other s of processor time"
done
