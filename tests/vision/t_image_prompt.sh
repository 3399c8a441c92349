#!/bin/sh
# tests/vision/t_image_prompt.sh - jitrun --image with a text: pictures stand where the text has the model's mark, or in
# front; and what is refused. The reference model has no tokenizer, so one of single bytes is made for it.
set -u
srcdir=${srcdir:-.}
model=${JITRUN_SHARED:-$srcdir/../shared}/golden-more/see-llava-a
[ -d "$model" ] || { echo "skipped: there is no $model"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
for f in config.json preprocessor_config.json model.safetensors image0.png image1.png; do
	ln -s "$(cd "$model" && pwd)/$f" "$dir/$f"
done
python3 - "$dir" <<'PY' || exit 1
import json, sys
from pathlib import Path
folder = Path(sys.argv[1])
config = json.loads((folder / "config.json").read_text())
image, seen = config["image_token_index"], config["image_seq_length"]
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
chars = {b: chr(b) for b in plain}
chars.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in chars)})
ids = [i for i in range(3, config["text_config"]["vocab_size"]) if i != image]
vocab = {chars[b]: ids[b] for b in range(256)}
level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
(folder / "tokenizer.json").write_text(json.dumps({
    "version": "1.0", "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
    "added_tokens": [{"id": image, "content": "<image>", "single_word": False, "lstrip": False, "rstrip": False,
                      "normalized": False, "special": True}],
    "model": {"type": "BPE", "vocab": vocab, "merges": []}}))
a, b, c = (str(vocab[x]) for x in "abc")
pictures = [str(image)] * seen
for name, parts in (("between", [a, b, *pictures, c]), ("front", [*pictures, a, b, c]),
                    ("two", [a, *pictures, b, *pictures, c]), ("both", [*pictures, *pictures, a, b])):
    (folder / name).write_text(",".join(parts))
PY
passed=0 failed=0
run() { ./jitrun "$dir" -n 8 --temp 0 --kv-type f32 -q --print-ids "$@" 2>&1; }
# same TITLE IDS TEXT OPTION...: the text is continued as its ids are.
same() {
	title=$1 ids=$(cat "$dir/$2") text=$3
	shift 3
	want=$(run "$@" --prompt-ids "$ids") && got=$(run "$@" --prompt "$text") && [ -n "$got" ] &&
		[ "$want" = "$got" ] && passed=$((passed + 1)) && return
	echo "FAILED: $title: \"$got\", expected \"$want\""
	failed=$((failed + 1))
}
# refused TITLE SENTENCE OPTION...
refused() {
	title=$1 sentence=$2
	shift 2
	got=$(run "$@")
	status=$?
	case "$status $got" in "1 "*"$sentence"* | "2 "*"$sentence"*) passed=$((passed + 1)) && return ;; esac
	echo "FAILED: $title: status $status, \"$got\""
	failed=$((failed + 1))
}
one="--image $dir/image0.png" two="--image $dir/image0.png --image $dir/image1.png"
same "a mark in the text" between "ab<image>c" $one
same "no mark" front "abc" $one
same "two marks" two "a<image>b<image>c" $two
same "two pictures and no mark" both "ab" $two
[ "$(run $one --prompt ab)" != "$(run --image "$dir/image1.png" --prompt ab)" ] && passed=$((passed + 1)) || {
	echo "FAILED: another picture is continued in the same way"
	failed=$((failed + 1))
}
refused "more marks" "more places for pictures than 1" $one --prompt "a<image>b<image>"
refused "fewer marks" "1 places for 2 pictures" $two --prompt "a<image>b"
refused "no picture" "is no picture" --image "$dir/config.json" --prompt a
refused "no file" "No such file" --image "$dir/none.png" --prompt a
refused "perplexity" "not with --perplexity" $one --perplexity "$dir/config.json"
# --prompt-cache: what it has is not computed again, and another picture is told apart
cached() {
	./jitrun "$dir" -n 8 --temp 0 --kv-type f32 --print-ids --prompt-cache "$dir/cache" --prompt "ab<image>c" "$@" \
		2>"$dir/told"
}
# remembers TITLE IDS TOLD OPTION...
remembers() {
	title=$1 want=$2 told=$3
	shift 3
	got=$(cached "$@")
	[ "$want" = "$got" ] && { [ -z "$told" ] || grep -q "prompt cache: $told" "$dir/told"; } &&
		passed=$((passed + 1)) && return
	echo "FAILED: $title: \"$got\", expected \"$want\"; $(cat "$dir/told")"
	failed=$((failed + 1))
}
seen=$(python3 -c "import json, sys; print(json.load(open(sys.argv[1]))['image_seq_length'])" "$dir/config.json")
want=$(run $one --prompt "ab<image>c")
remembers "a file of --prompt-cache that is not there yet" "$want" "" $one
remembers "the same picture" "$want" "$((seen + 2)) of $((seen + 3)) tokens are there" $one
want=$(run --image "$dir/image1.png" --prompt "ab<image>c")
remembers "another picture" "$want" "2 of $((seen + 3)) tokens are there" --image "$dir/image1.png"
# GGUF: a pair of files, found by itself and named
pair=$(cd "$model/../see-qwen25vl-a" && pwd)
mkdir "$dir/alone"
ln -s "$pair/model-bf16.gguf" "$dir/alone/text.gguf"
seen() { ./jitrun "$@" -n 8 --temp 0 --kv-type f32 -q --print-ids --image "$dir/image0.png" --prompt "a b" 2>&1; }
found=$(seen "$pair/model-bf16.gguf") && named=$(seen "$dir/alone/text.gguf" --mmproj "$pair/mmproj-bf16.gguf") &&
	[ -n "$found" ] && [ "$found" = "$named" ] &&
	[ "$found" = "$(seen "$dir/alone" -mm "$pair/mmproj-bf16.gguf")" ] && passed=$((passed + 1)) || {
	echo "FAILED: a pair of files: \"$found\", \"$named\""
	failed=$((failed + 1))
}
dir=$dir/alone
refused "no encoder" "expected a file mmproj-*.gguf" --image "$pair/image0.png" --prompt a
refused "no picture for it" "--mmproj goes with --image, or with a conversation" \
	--mmproj "$pair/mmproj-bf16.gguf" --prompt a
refused "no encoder in it" "expected clip" --mmproj "$dir/text.gguf" --image "$pair/image0.png" --prompt a
dir=${dir%/alone}
# ollama's store: its manifests name the image encoder of a model
store=$dir/store
digest() { printf '%064d' "$1"; }
layer() { printf '{"mediaType":"application/vnd.ollama.image.%s","digest":"sha256:%s"}' "$1" "$2"; }
keep() { # NAME LAYERS
	mkdir -p "$store/manifests/registry.ollama.ai/library/$1"
	printf '{"layers":[%s]}' "$2" > "$store/manifests/registry.ollama.ai/library/$1/latest"
}
mkdir -p "$store/blobs"
ln -s "$pair/model-bf16.gguf" "$store/blobs/sha256-$(digest 1)"
ln -s "$pair/mmproj-bf16.gguf" "$store/blobs/sha256-$(digest 2)"
keep seer "$(layer model "$(digest 1)"),$(layer projector "$(digest 2)")"
export OLLAMA_MODELS="$store"
expect() { # TITLE GOT WANTED
	case "$2" in *"$3"*) [ -n "$2" ] && passed=$((passed + 1)) && return ;; esac
	echo "FAILED: $1: \"$2\", expected \"$3\""
	failed=$((failed + 1))
}
expect "a model of ollama by its name" "$(seen seer)" "$found"
expect "and by its file" "$(seen "$store/blobs/sha256-$(digest 1)")" "$found"
expect "another encoder that is named" "$(seen seer --mmproj "$dir/config.json")" "config.json"
if command -v curl >/dev/null; then
	. "$srcdir/tests/support/serve.sh"
	must_serve store seer --port 0 --no-cache --no-replay
	expect "jitserve sees by it" "$(curl -s "$url/api/show" -d '{"model":"seer"}')" '"vision"'
fi
keep other "$(layer model "$(digest 1)"),$(layer projector "$(digest 3)")"
expect "two encoders of one model" "$(seen seer)" "several image encoders for this model"
rm -r "$store/manifests/registry.ollama.ai/library/other"
keep odd "$(layer model "$(digest 1)"),$(layer projector ../../passwd)"
expect "a digest is no path" "$(seen odd)" "an image encoder without a sha256 digest"
rm "$store/blobs/sha256-$(digest 2)"
expect "an encoder that is not there" "$(seen seer)" "sha256-$(digest 2)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
