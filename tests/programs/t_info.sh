#!/bin/sh
# tests/programs/t_info.sh - jitrun info: what it says of models that run, of those that do not, and of broken ones.
. "${srcdir:-.}/tests/support/prelude.sh"
run() { ./jitrun "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
member() { grep -o "\"$1\":[^,}]*" "$dir/out" | head -n 1 | cut -d: -f2-; }
# Every table is for people: no line is wider than a terminal, and nothing of it is a control character.
for_people() {
	check "$1: at most 80 columns: $(awk 'length > 80' "$dir/out")" [ -z "$(awk 'length > 80' "$dir/out")" ]
	check "$1: no control characters" [ -z "$(LC_ALL=C tr -d '\n\40-\176\200-\377' < "$dir/out")" ]
}

is 0 info "$model"
for_people "the story model"
check "its architecture" grep -qx 'architecture    qwen3' "$dir/out"
check "its tokenizer" grep -qx 'tokenizer       byte-level BPE, 4096 tokens' "$dir/out"
check "its formats" grep -q 'Q8_0: 43 tensors' "$dir/out"
check "it runs" grep -qx 'runs here       yes' "$dir/out"
check "the devices: $(cat "$dir/out")" grep -q 'devices  *cpu' "$dir/out"

# The same numbers that a run of the model says, which come from its open session
is 0 info --json "$model"
check "--json is a line" [ "$(wc -l < "$dir/out")" = 1 ]
kv=$(member kv_bytes)
check "--json: it runs" [ "$(member runs)" = true ]
check "--json: the default context: $(member context)" [ "$(member context)" = 1024 ]
check "--json: no reason" [ "$(member why_not)" = null ]
run "$model" --no-cache --prompt x -n 1 --json
check "the KV cache is the session's: $kv, $(member kv_bytes)" [ "$kv" = "$(member kv_bytes)" ]

# The same length, so that all offsets stay right
change() { LC_ALL=C sed "s/$1/$2/g" "$model" > "$dir/$3.gguf"; }
change qwen3 gemma gemma
is 3 info "$dir/gemma.gguf"
for_people "an architecture that does not run"
check "it has a name" grep -qx 'architecture    gemma' "$dir/out"
check "why not: $(cat "$dir/out")" grep -q '^runs here  *no: .*gemma' "$dir/out"
check "what it holds is said all the same" grep -q 'Q8_0: 43 tensors' "$dir/out"
check "nothing on stderr" [ ! -s "$dir/err" ]
is 3 info "$dir/gemma.gguf" --json
check "--json: it does not run" [ "$(member runs)" = false ]
check "--json: no memory is known" [ "$(member memory)" = null ]

head -c 1000000 "$model" > "$dir/cut.gguf"
is 3 info "$dir/cut.gguf"
check "a cut file is described" grep -q '^layers  *6, hidden size 256' "$dir/out"
check "and does not run: $(cat "$dir/out")" grep -q '^runs here  *no: ' "$dir/out"

change 'tale-qwen3' "$(printf 'ta\033]0;x\007qw')" hostile
is 0 info "$dir/hostile.gguf"
for_people "a name with what terminals obey"
check "it is shown as bytes" grep -qF 'ta\x1b]0;x\x07qw' "$dir/out"
is 0 info "$dir/hostile.gguf" --json
check "--json has it escaped" grep -qiF 'ta\u001b]0;x\u0007qw' "$dir/out"

./jitwarm pack-model "$model" --out "$dir/packed.jkm" -q 2> "$dir/err"
check "a model can be packed: $(cat "$dir/err")" [ -s "$dir/packed.jkm" ]
is 0 info "$dir/packed.jkm"
check "a packed model: $(cat "$dir/out")" grep -q '^files  *1 packed file, ' "$dir/out"
check "its formats are those of the file it was made of" grep -q 'Q8_0: 43 tensors' "$dir/out"
chmod 666 "$dir/packed.jkm"
is 3 info "$dir/packed.jkm"
check "others may change it, so it does not run: $(cat "$dir/out")" grep -q '^runs here  *no: ' "$dir/out"
head -c 5000 "$dir/packed.jkm" > "$dir/short.jkm"
refused "short.jkm" 1 info "$dir/short.jkm"
printf 'GGUF' > "$dir/four.gguf"
head -c 5000 /dev/zero > "$dir/zero.gguf"
refused "four.gguf" 1 info "$dir/four.gguf"
refused "zero.gguf" 1 info "$dir/zero.gguf"
refused "cannot be opened" 1 info "$dir/none"
mkdir "$dir/empty"
refused "holds no model" 1 info "$dir/empty"
refused "which model" 2 info
refused "unknown option" 2 info --nothing
is 0 info --help
check "--help" grep -q '^Usage: jitrun info MODEL' "$dir/out"
./jitrun info "$model" > /dev/full 2> "$dir/err"
check "a full disk is an error: $(cat "$dir/err")" grep -q 'standard output could not be written' "$dir/err"

# A model of that name is the model
cp "$model" "$dir/info"
here=$(pwd)
(cd "$dir" && "$here/jitrun" info --no-cache --prompt "Once upon" -n 2 -q > out 2> err)
check "a file named info is a model: $(cat "$dir/err")" [ -s "$dir/out" ]
finish
