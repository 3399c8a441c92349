#!/bin/sh
# tests/programs/t_stop_strings.sh - a model whose generation_config.json names texts that end a generation: jitrun and
# jitserve hold to them, a request's own take their place, and an answer tells which one was found.
. "${srcdir:-.}/tests/support/prelude.sh"
. "${srcdir:-.}/tests/support/serve.sh"
from=${JITRUN_SHARED:-$top/../shared}/models/tale-llama
[ -f "$from/model.safetensors" ] || { echo "# skipped: there is no reference data"; exit 77; }
mkdir "$dir/m"
cp "$from/config.json" "$from/tokenizer.json" "$from/tokenizer_config.json" "$from/model.safetensors" "$dir/m"
echo '{"eos_token_id": 1, "stop_strings": ["zebra", "three sons"], "no_repeat_ngram_size": 2}' \
	>"$dir/m/generation_config.json"
begin="Once upon a time"
say() { ./jitrun "$dir/m" --no-cache --quiet --temp 0 -n 40 -p "$begin" "$@" 2>"$dir/err"; }

plain=$(./jitrun "$from" --no-cache --quiet --temp 0 -n 40 -p "$begin")
check "the plain answer has the text: $plain" expr "$plain" : ".*three sons" >/dev/null
said=$(say)
check "jitrun ends before it: $said" [ "$said" = "${plain%%three sons*}" ]
check "nothing is told as not done: $(cat "$dir/err")" [ ! -s "$dir/err" ]
said=$(say --stop " king")
check "--stop takes its place: $said" [ "$said" = "${plain%% king*}" ]
said=$(say --stop none)
check "and it is not looked for then: $said" expr "$said" : ".*three sons" >/dev/null
# Pairs of tokens come once; of words of a text so short, that shows.
pairs=$(echo "$begin $said" | tr ' ' '\n' | awk 'NR > 1 { print before " " $0 } { before = $0 }' | sort | uniq -d)
check "no pair of words comes twice: $pairs" [ -z "$pairs" ]

if command -v curl >/dev/null; then
	must_serve models --port 0 --no-cache --no-replay --quiet "$dir/m"
	ask() { curl -s "$url$1" -H 'Content-Type: application/json' -d "$2" >"$dir/out"; }
	ask /completion "{\"prompt\": \"$begin\", \"n_predict\": 40, \"temperature\": 0}"
	check "jitserve ends before it, too: $(head -c 300 "$dir/out")" \
		grep -qF "\"content\":\"${plain%%three sons*}\"" "$dir/out"
	check "and tells its name" grep -qF '"stopping_word":"three sons"' "$dir/out"
	ask /completion "{\"prompt\": \"$begin\", \"n_predict\": 40, \"temperature\": 0, \"stop\": [\" king\"]}"
	check "a request's takes its place" grep -qF "\"content\":\"${plain%% king*}\"" "$dir/out"
	ask /v1/messages "{\"model\": \"m\", \"max_tokens\": 40, \"temperature\": 0, \"messages\": [{\"role\": \"user\",
		\"content\": \"x\"}]}"
	check "no dialect breaks on it: $(head -c 300 "$dir/out")" grep -q '"stop_sequence"' "$dir/out"
	for server in $servers; do
		kill "$server"
		wait "$server"
	done
fi
finish
