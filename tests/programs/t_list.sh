#!/bin/sh
# tests/programs/t_list.sh - jitrun list: models in the folders of other programs, as those lay them out, and what is
# broken, hostile or not a model in them.
. "${srcdir:-.}/tests/support/prelude.sh"
run() {
	env -i PATH="$PATH" HOME="$dir/home" $extra ./jitrun "$@" > "$dir/out" 2> "$dir/err" < /dev/null
	status=$?
}
extra=
home=$dir/home
said() { grep -qF -e "$1" "$dir/out"; }
mkdir "$home"

is 0 list
check "nothing there: nothing on stdout" [ ! -s "$dir/out" ]
check "nothing there: where it was looked" grep -qF "$home/.ollama/models" "$dir/err"
is 0 list --json
check "nothing there, --json: $(cat "$dir/out")" said '{"models":[],"notes":[],"folders":["'

# ollama: blobs by digest, manifests beside them
digest() { printf '%064d' "$1"; }
manifest() { # PATH LAYERS
	mkdir -p "$(dirname "$home/.ollama/models/manifests/$1")"
	printf '{"schemaVersion":2,"config":{"digest":"sha256:%s"},"layers":[%s]}' "$(digest 9)" "$2" \
		> "$home/.ollama/models/manifests/$1"
}
layer() { printf '{"mediaType":"application/vnd.ollama.image.%s","digest":"%s","size":1}' "$1" "$2"; }
mkdir -p "$home/.ollama/models/blobs"
cp "$model" "$home/.ollama/models/blobs/sha256-$(digest 1)"
head -c 1000000 "$model" > "$home/.ollama/models/blobs/sha256-$(digest 2)"
manifest registry.ollama.ai/library/tale/small \
	"$(layer license "sha256:$(digest 5)"),$(layer model "sha256:$(digest 1)")"
manifest registry.ollama.ai/me/tale/latest "$(layer model "sha256:$(digest 1)")"
manifest hf.co/some/where/q8 "$(layer model "sha256:$(digest 2)")"
manifest registry.ollama.ai/library/lost/latest "$(layer model "sha256:$(digest 3)")"
manifest registry.ollama.ai/library/out/latest "$(layer model "sha256:../../../../../etc/passwd")"
manifest registry.ollama.ai/library/lora/latest \
	"$(layer model "sha256:$(digest 1)"),$(layer adapter "sha256:$(digest 1)")"
manifest registry.ollama.ai/library/none/latest ''
printf '{"layers":[[[[' > "$home/.ollama/models/manifests/registry.ollama.ai/library/none/cut"
printf '[1,"\\ud800"]' > "$home/.ollama/models/manifests/registry.ollama.ai/library/none/odd"
: > "$home/.ollama/models/manifests/registry.ollama.ai/library/none/empty"
mkfifo "$home/.ollama/models/manifests/registry.ollama.ai/library/none/fifo"

# Hugging Face: links from snapshots to blobs; one model of files, one of GGUF files in two parts beside another
hub=$home/.cache/huggingface/hub
repository() { mkdir -p "$hub/$1/blobs" "$hub/$1/snapshots/$2" "$hub/$1/refs"; snapshot=$hub/$1/snapshots/$2; }
repository models--owner--gguf 0123456789abcdef
cp "$model" "$hub/models--owner--gguf/blobs/aaaa"
ln -s ../../blobs/aaaa "$snapshot/tale-q8_0.gguf"
ln -s ../../blobs/gone "$snapshot/gone.gguf"
ln -s ../../blobs/aaaa "$snapshot/mmproj-tale.gguf"
ln -s ../../blobs/aaaa "$snapshot/parts-00001-of-00002.gguf"
ln -s ../../blobs/aaaa "$snapshot/parts-00002-of-00002.gguf"
ln -s . "$snapshot/loop"
repository models--owner--weights fedcba
printf '{"model_type":"gemma3"}' > "$snapshot/config.json"
printf '\002\000\000\000\000\000\000\000{}' > "$snapshot/model.safetensors"
repository models--two--revisions 1111111111
cp "$model" "$snapshot/a.gguf"
repository models--two--revisions 2222222222
cp "$model" "$snapshot/a.gguf"

# llama.cpp and LM Studio; names that terminals would obey, and that are no UTF-8
mkdir -p "$home/.cache/llama.cpp" "$home/.lmstudio/models/owner/tale"
cp "$model" "$home/.cache/llama.cpp/owner_tale.gguf"
cp "$model" "$home/.cache/llama.cpp/half.gguf.downloadInProgress"
hostile=$(printf 'a\033]0;x\007b\377\nc d.gguf')
cp "$model" "$home/.lmstudio/models/owner/tale/$hostile"
LC_ALL=C sed 's/qwen3/clip\x00/' "$model" > "$home/.lmstudio/models/owner/tale/eyes.gguf"
mkdir "$home/.lmstudio/models/owner/tale/folder.gguf"
mkfifo "$home/.lmstudio/models/owner/tale/fifo.gguf"

is 0 list
wide=$(grep -vE '^  (/|does not run: [/.])' "$dir/out" | LC_ALL=C.UTF-8 awk 'length > 80')
check "a line has at most 80 columns, but for paths: $wide" [ -z "$wide" ]
check "a link to the folder it lies in ends" [ "$(grep -c loop "$dir/out")" = 0 ]
check "no control characters" [ -z "$(LC_ALL=C tr -d '\n\40-\176\200-\377' < "$dir/out")" ]
check "ollama: as its own list has it" grep -qE '^tale:small +Q8_0 +5.8 million +6.0 MiB ollama$' "$dir/out"
check "ollama: the blob is the path" said "  $home/.ollama/models/blobs/sha256-$(digest 1)"
check "ollama: an owner is part of the name" grep -q '^me/tale:latest' "$dir/out"
check "ollama: so is another registry" grep -q '^hf.co/some/where:q8' "$dir/out"
check "ollama: a digest is no path" [ "$(grep -c passwd "$dir/out")" = 0 ]
check "ollama: an adapter is not left out silently" said "it has an adapter"
check "Hugging Face: a GGUF file" grep -qE '^owner/gguf/tale-q8_0.gguf +Q8_0 ' "$dir/out"
check "a split model is listed once" [ "$(grep -c '^owner/gguf/parts' "$dir/out")" = 1 ]
check "Hugging Face: a link that leads nowhere" grep -q '^owner/gguf/gone.gguf' "$dir/out"
check "Hugging Face: safetensors" grep -q '^owner/weights ' "$dir/out"
check "Hugging Face: two revisions" [ "$(grep -c '^two/revisions@[12]*/a.gguf' "$dir/out")" = 2 ]
check "llama.cpp" grep -qE '^owner_tale.gguf .* llama.cpp$' "$dir/out"
check "what is being downloaded is no model" [ "$(grep -c half "$dir/out")" = 0 ]
check "projectors of pictures are none either" [ "$(grep -cE 'mmproj|eyes' "$dir/out")" = 0 ]
check "LM Studio: the name is shown as bytes: $(grep LM "$dir/out")" said 'a\x1b]0;x\x07b\xff\x0ac d.gguf'
check "nothing else is said" [ ! -s "$dir/err" ]
count=$(grep -c '^  /' "$dir/out")

is 0 list --json
check "--json is a line" [ "$(wc -l < "$dir/out")" = 1 ]
check "--json: as many paths: $count" [ "$(grep -o '"path":"' "$dir/out" | wc -l)" = "$count" ]
blob=$home/.ollama/models/blobs/sha256-$(digest 1)
check "--json: its path" said '"name":"tale:small","source":"ollama","path":"'"$blob"'"'
check "--json: its type" said '"format":"GGUF","architecture":"qwen3","type":"Q8_0","parameters":5771264,"files":1,'
check "--json: every broken one has a reason" [ "$(grep -o '"runs":false,"why_not":"' "$dir/out" | wc -l)" = \
	"$(grep -o '"runs":false' "$dir/out" | wc -l)" ]
check "--json: five manifests without a model" [ "$(grep -o '"name":"none:[a-z]*","source":"ollama","path":null' \
	"$dir/out" | wc -l)" = 5 ]

# Every name that it prints can be given to jitrun and means what is listed: the path, or why it does not run
pairs() { # NAME<tab>PATH of each, as they are printed: a path stands below its name
	awk '/^  \// { if (name != "") print name "\t" substr($0, 3); name = "" }
		/^[^ ]/ { sub(/ +(ollama|Hugging Face|llama.cpp|LM Studio)$/, "")
			sub(/ +[^ ]* +[0-9.]* ?[a-z]* +[0-9.]+ ([KMGTi]*B|bytes)$/, ""); sub(/ +$/, "")
			name = $0 }' "$dir/list"
}
is 0 list
cp "$dir/out" "$dir/list"
pairs > "$dir/pairs"
check "as many names as paths: $(cat "$dir/pairs")" [ "$(wc -l < "$dir/pairs")" = "$count" ]
tab=$(printf '\t')
while IFS="$tab" read -r name path; do
	run info "$name" --json
	case $path in
	*\\*) want='"LM Studio' ;; # printed with escapes
	*) want="\"model\":\"$path\"" ;;
	esac
	case $name in
	lora:latest) check "$name: $(cat "$dir/err")" grep -qF "lora:latest: it has an adapter" "$dir/err" ;;
	*gone* | *fifo* | lost:*) check "$name: $(cat "$dir/err")" grep -qF ": " "$dir/err" ;;
	*\\*) check "$name: $(cat "$dir/err")" grep -qF '"runs":true' "$dir/out" ;;
	*) check "$name means $path: $(cat "$dir/out" "$dir/err")" grep -qF "$want" "$dir/out" ;;
	esac
done < "$dir/pairs"

# means NAME PATH: also when it is written in another way
means() {
	run info "$1" --json
	check "$1 means $2: $(head -c 300 "$dir/out" "$dir/err")" grep -qF "\"model\":\"$2\"" "$dir/out"
}
blob=$home/.ollama/models/blobs/sha256-$(digest 1)
means tale:small "$blob"
means TALE:Small "$blob"
means registry.ollama.ai/library/tale:small "$blob"
means me/tale "$blob"
means me/tale:latest "$blob"
means hf.co/some/where:q8 "$home/.ollama/models/blobs/sha256-$(digest 2)"
means some/where "$home/.ollama/models/blobs/sha256-$(digest 2)"
means where "$home/.ollama/models/blobs/sha256-$(digest 2)"
gguf=$hub/models--owner--gguf/snapshots/0123456789abcdef
means owner/gguf/tale-q8_0.gguf "$gguf/tale-q8_0.gguf"
means owner/gguf/tale-q8_0 "$gguf/tale-q8_0.gguf"
means owner/gguf:Q8_0 "$gguf/tale-q8_0.gguf"
means hf.co/owner/gguf:q8_0 "$gguf/tale-q8_0.gguf"
means https://huggingface.co/owner/gguf:q8_0 "$gguf/tale-q8_0.gguf"
means gguf:q8_0 "$gguf/tale-q8_0.gguf"
means tale-q8_0.gguf "$gguf/tale-q8_0.gguf"
means parts "$gguf/parts-00001-of-00002.gguf"
means owner/weights "$hub/models--owner--weights/snapshots/fedcba"
means weights "$hub/models--owner--weights/snapshots/fedcba"
means huggingface:owner/weights "$hub/models--owner--weights/snapshots/fedcba"
means owner_tale.gguf "$home/.cache/llama.cpp/owner_tale.gguf"
means owner_tale "$home/.cache/llama.cpp/owner_tale.gguf"
means llama.cpp:owner_tale "$home/.cache/llama.cpp/owner_tale.gguf"
# Of revisions the newest, where refs say which
run info two/revisions
check "two revisions: $(cat "$dir/err")" grep -qF \
	'"two/revisions" names 2 models; give one of them: two/revisions@11111111/a.gguf, two/revisions@2222222' \
	"$dir/err"
printf 2222222222 > "$hub/models--two--revisions/refs/main"
means two/revisions "$hub/models--two--revisions/snapshots/2222222222/a.gguf"
means two/revisions@11111111/a.gguf "$hub/models--two--revisions/snapshots/1111111111/a.gguf"

# llama.cpp's newer cache, with types of weights to choose from; names that two stores have
new=$home/.cache/llama.cpp/models--lab--Small-GGUF/snapshots/abc
mkdir -p "$new" "$home/.lmstudio/models/lab/Small-GGUF"
for type in Q4_K Q4_K_M IQ4_XS; do cp "$model" "$new/small-$type.gguf"; done
cp "$model" "$home/.lmstudio/models/lab/Small-GGUF/small-Q4_K.gguf"
cp "$model" "$home/.cache/llama.cpp/lab_Old-GGUF_old-Q8_0.gguf"
means lab/Small-GGUF:Q4_K_M "$new/small-Q4_K_M.gguf"
means Small:iq4_xs "$new/small-IQ4_XS.gguf"
means lab/Old-GGUF:Q8_0 "$home/.cache/llama.cpp/lab_Old-GGUF_old-Q8_0.gguf"
means lab/Old-GGUF "$home/.cache/llama.cpp/lab_Old-GGUF_old-Q8_0.gguf"
for name in lab/Small-GGUF:Q4_K Small lab/Small-GGUF small-Q4_K; do
	run info "$name"
	check "$name is not clear: $(cat "$dir/err")" grep -qE \
		"^jitrun: \"$name\" names [24] models; give one of them: .*lmstudio:" "$dir/err"
	check "$name: status" [ "$status" = 1 ]
done
is 0 list
check "a name that two have says whose it is" grep -q '^lmstudio:lab/Small-GGUF/small-Q4' "$dir/out"
means llama.cpp:lab/Small-GGUF/small-Q4_K.gguf "$new/small-Q4_K.gguf"
means lmstudio:lab/Small-GGUF/small-Q4_K.gguf "$home/.lmstudio/models/lab/Small-GGUF/small-Q4_K.gguf"
rm -r "$home/.cache/llama.cpp/models--lab--Small-GGUF" "$home/.lmstudio/models/lab" "$home/.cache/llama.cpp/lab_"*

# What is not there
for pair in tael:small,tale:small ownr/gguf,owner/gguf/ parst,owner/gguf/parts revision,two/revisions; do
	run info "${pair%,*}"
	check "${pair%,*}: $(cat "$dir/err")" grep -qE \
		"no model of that name on this machine [(]did you mean ${pair#*,}" "$dir/err"
done
run tael
check "a word alone: $(cat "$dir/err")" grep -qE \
	'"tael" is neither a command, a file nor a model .*did you mean .*tale' "$dir/err"
run info tale:big
check "another tag is another model: $(cat "$dir/err")" grep -q 'tale:big: there is no such file' "$dir/err"

# All programs take names; a path wins
for command in "jitrun tale:small" "jitrun run tale:small" "jitrun -m tale:small"; do
	env -i PATH="$PATH" HOME="$home" ./$command --no-cache --prompt "Once upon" -n 2 -q --temp 0 > "$dir/out" \
		2> "$dir/err"
	check "$command runs: $(cat "$dir/err")" [ -s "$dir/out" ]
done
by_home() { env -i PATH="$PATH" HOME="$home" "$@" > "$dir/out" 2> "$dir/err" < /dev/null; }
check "jitwarm: $(cat "$dir/err")" by_home ./jitwarm tale:small --out "$dir/tale.jkp" -q
check "jitwarm explain" by_home ./jitwarm explain owner/gguf:Q8_0 --cache "$dir/tale.jkp" -q
check "jitquant: $(cat "$dir/err")" by_home ./jitquant tale:small --type q8_0 --dry-run
check "jitbench: $(cat "$dir/err")" by_home ./jitbench tale:small -p 1 -n 1 -r 1 --force
for program in jitwarm jitquant jitbench; do
	by_home ./$program no-such:model --type q8_0 --dry-run --out "$dir/x.jkp"
	by_home ./$program no-such:model $([ $program = jitquant ] && echo --type q8_0 --dry-run)
	check "$program: $(cat "$dir/err")" grep -q 'no-such:model: there is no such file, and no model of that name' \
		"$dir/err"
done
if [ -x ./jitserve ]; then
	by_home ./jitserve no-such:model --port 0
	check "jitserve: $(cat "$dir/err")" grep -q 'no-such:model: there is no such file' "$dir/err"
fi
mkdir "$dir/here"
cp "$model" "$dir/here/tale:small"
here=$PWD
(cd "$dir/here" && env -i PATH="$PATH" HOME="$home" "$here/jitrun" info tale:small --json > "$dir/out")
check "a file of that name wins: $(cat "$dir/out")" said '"model":"tale:small","called":null'

# The same name in two folders of one store: the first by its name, the other by its path
cp -r "$home/.ollama/models" "$dir/second"
extra="OLLAMA_MODELS=$dir/second"
means tale:small "$dir/second/blobs/sha256-$(digest 1)"
is 0 list
check "the other one by its path" [ "$(grep -c '^tale:small ' "$dir/out")" = 1 ]
means "$blob" "$blob"
extra=

# Folders by variables; the same folder twice is one
extra="OLLAMA_MODELS=$home/.ollama/models HF_HUB_CACHE=$hub LLAMA_CACHE=$home/.cache/llama.cpp"
is 0 list
check "the same by variables" [ "$(grep -c '^  /' "$dir/out")" = "$count" ]
mkdir "$dir/elsewhere"
cp "$model" "$dir/elsewhere/there.gguf"
extra="LLAMA_CACHE=$dir/elsewhere HF_HOME=relative"
is 0 list
check "another folder" grep -q '^there.gguf .* llama.cpp$' "$dir/out"
if [ "$(id -u)" != 0 ]; then
	chmod 0 "$dir/elsewhere"
	is 0 list
	check "a folder that may not be read is said: $(cat "$dir/err")" grep -q 'elsewhere cannot be looked into' \
		"$dir/err"
	chmod 700 "$dir/elsewhere"
fi
refused "unexpected argument" 2 list this
finish
