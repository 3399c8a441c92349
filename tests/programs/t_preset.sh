#!/bin/sh
# tests/programs/t_preset.sh - what is kept with a model: files beside it in three forms, and ollama's layers; what a
# command line says wins, and what is not known is refused.
. "${srcdir:-.}/tests/support/prelude.sh"
. "$top/tests/support/serve.sh"
run() {
	env -i PATH="$PATH" HOME="$dir/home" ./jitrun "$@" > "$dir/out" 2> "$dir/err" < /dev/null
	status=$?
}
mkdir "$dir/home"
cp "$model" "$dir/m.gguf"
kept() { printf "$@" > "$dir/m.preset"; }
same() { # WHAT OPTIONS: with the preset the text is that of these options without it
	what=$1; shift
	run "$dir/m.gguf" --no-cache -q --prompt "Once upon a time"
	cp "$dir/out" "$dir/with"
	run "$model" --no-cache -q --prompt "Once upon a time" "$@"
	check "$what: $(cat "$dir/err" "$dir/with"), not $(cat "$dir/out")" cmp -s "$dir/out" "$dir/with"
	check "$what says something" [ -s "$dir/with" ]
}
kept '# a comment\ntemp = 0.9\nseed = 5\ntop_k = 30\nmax-tokens = 12\n'
same "lines" --temp 0.9 --seed 5 --top-k 30 -n 12
kept '{"temperature": 0.9, "seed": 5, "num_predict": 12, "stop": ["king", "queen"], "min_p": 0.1}'
same "JSON" --temp 0.9 --seed 5 -n 12 --stop king --stop queen --min-p 0.1
kept 'PARAMETER temperature 0.9\nparameter seed 5\nPARAMETER num_predict 12\nLICENSE """\na = b\n"""\n'\
'PARAMETER stop " a"\n'
same "a Modelfile" --temp 0.9 --seed 5 -n 12 --stop " a"
kept 'temperature = 1.5\nseed = 5\nn-predict = 12\ndynatemp_range = 1\ndynatemp_exponent = 3\nmin_p = 1\nmin_keep = 4\n'
same "the names of requests" --temp 1.5 --seed 5 -n 12 --dynatemp-range 1 --dynatemp-exp 3 --min-p 1 --min-keep 4
# Every number of sampling, as options and as requests name it
for macro in 'COMMAND_LINE(' 'REQUEST([A-Z_ |]*, ' 'SAMPLING_ALIAS([a-z_]*, '; do
	names=$(sed -n "s/^ *$macro\"\([a-z_-]*\)\".*/\1/p" "$top/base/sampling.def" | grep -v '^dry.sequence')
	check "names by $macro: $names" [ -n "$names" ]
	for name in $names; do echo "$name = 0.5"; done > "$dir/m.preset"
	run info "$dir/m.gguf"
	check "presets may say what $macro names: $(cat "$dir/err")" [ "$status" = 0 ]
done
kept 'temp = 0.9\nseed = 5\nn-predict = 3\n'
run "$dir/m.gguf" --no-cache -q --prompt "Once upon a time" --seed 6 -n 9 --temp 0.5
cp "$dir/out" "$dir/with"
run "$model" --no-cache -q --prompt "Once upon a time" --seed 6 -n 9 --temp 0.5
check "the command line wins" cmp -s "$dir/out" "$dir/with"
# Conversations: system message, messages before, a template beside
printf '{%% for m in messages %%}<{{ m.role }}>{{ m.content }}{%% endfor %%}' > "$dir/t.jinja"
kept 'system = """Be\nshort."""\ntemplate = t.jinja\nmessage = user Hello\nmessage = assistant "Hi there"\ntemp = 0\n'
run "$dir/m.gguf" --no-cache --chat --single-turn --prompt "And?" -n 3 --show-prompt
check "what is rendered: $(cat "$dir/err")" grep -q '<user>Hello<assistant>Hi there<user>And?' "$dir/out"
check "the system message, of two lines" grep -qF '<system>Be' "$dir/out"
run "$dir/m.gguf" --no-cache --chat --single-turn --prompt "And?" -n 3 --show-prompt --system "Be long."
check "another system message" grep -qF '<system>Be long.<user>Hello' "$dir/out"
run "$dir/m.gguf" --no-cache -q --prompt "Once" -n 3
check "a system message alone begins no conversation: $(cat "$dir/err")" [ "$status" = 0 ]
run info "$dir/m.gguf"
check "info has the preset: $(cat "$dir/out")" grep -qF "system: Be" "$dir/out"
run info "$dir/m.gguf" --json
check "and in JSON" grep -qF '"system":"Be\nshort.","template":true,"messages":[{' "$dir/out"
if [ -x ./jitserve ] && command -v curl > /dev/null; then
	must_serve kept "$dir/m.gguf" --port 0 --no-cache --no-replay
	ask() { curl -s "$url/v1/chat/completions" -d "$1" > "$dir/out"; }
	ask '{"messages":[{"role":"user","content":"And?"}],"max_tokens":3,"verbose":true}'
	check "the server's prompt: $(cat "$dir/out")" grep -qF \
		'<system>Be\nshort.<user>Hello<assistant>Hi there<user>And?' "$dir/out"
	check "its temperature" grep -qE '"temperature": ?0.0' "$dir/out"
	ask '{"messages":[{"role":"system","content":"Own."},{"role":"user","content":"And?"}],"max_tokens":3,
		"temperature":0.7,"verbose":true}'
	check "a request's system message wins" grep -qF '<system>Own.<user>Hello<assistant>Hi there<user>And?' \
		"$dir/out"
	for host in "$url" "${url#http://}" "$url/"; do
		JITRUN_HOST=$host ./jitrun ps > "$dir/out" 2> "$dir/err"
		check "ps at $host: $(cat "$dir/out" "$dir/err")" grep -qE '^m +loaded +.* context 1024$' "$dir/out"
	done
	JITRUN_HOST=$url ./jitrun ps --json > "$dir/out"
	check "--json: $(cat "$dir/out")" grep -qE '^\[\{"name":"m","state":"loaded","bytes":[0-9]+,"context":1024' \
		"$dir/out"
	ask '{"messages":[{"role":"system","content":"Own."},{"role":"user","content":"And?"}],"max_tokens":3,
		"temperature":0.7,"verbose":true}'
	check "and its temperature" grep -qE '"temperature": ?0.69' "$dir/out"
fi
for host in 127.0.0.1:1 127.0.0.1:x https://127.0.0.1:1 "[::1]:1" nonesuch.invalid:1; do
	JITRUN_HOST=$host ./jitrun ps > "$dir/out" 2> "$dir/err"
	status=$?
	said="$status $(grep -c JITRUN_HOST "$dir/err") $(wc -l < "$dir/err")"
	check "ps at $host: $(cat "$dir/err")" [ "$said" = "1 1 1" ]
done
rm "$dir/m.preset"
# A preset is a model, too
printf 'FROM ./m.gguf\nPARAMETER temperature 0\nPARAMETER num_predict 4\n' > "$dir/Modelfile"
run "$dir/Modelfile" --no-cache -q --prompt "Once upon a time" --json
check "a Modelfile runs: $(cat "$dir/out" "$dir/err")" grep -q '"ids":\[[0-9]*,[0-9]*,[0-9]*,[0-9]*\]' "$dir/out"
mkdir "$dir/elsewhere"
printf 'FROM ~/mine.gguf\nPARAMETER num_predict 3\n' > "$dir/elsewhere/Modelfile"
printf 'FROM ~/none.gguf\n' > "$dir/elsewhere/none.modelfile"
mkdir -p "$dir/home" && ln -s "$dir/m.gguf" "$dir/home/mine.gguf"
run "$dir/elsewhere/Modelfile" --no-cache -q --prompt "Once upon a time" --json
check "a model in the user's folder: $(cat "$dir/out" "$dir/err")" grep -q '"ids":\[[0-9]*,[0-9]*,[0-9]*\]' "$dir/out"
refused "$dir/home/none.gguf: cannot be opened" 1 "$dir/elsewhere/none.modelfile" --prompt x
rm "$dir/home/mine.gguf"
printf 'PARAMETER temperature 0\n' > "$dir/Modelfile"
refused "names no model: FROM or model is missing" 1 "$dir/Modelfile" --prompt x
# What is wrong
while IFS='|' read -r text says; do
	printf "$text" > "$dir/m.preset"
	run "$dir/m.gguf" --prompt x -n 1
	check "$text: $(cat "$dir/err")" grep -qF -e "$says" "$dir/err"
	check "$text: refused" [ "$status" != 0 ]
done << 'END'
colour = blue\n|"colour" is nothing that a preset can say
temp = hot\n|--temp: "hot" is not a number
adapter = none.gguf\n|/none.gguf: 
ADAPTER ./none:0.5\n|/./none: 
repeat-last-n = -2\n|--repeat-last-n: "-2" is not a whole number from -1 up
FROM a.gguf\nFROM b.gguf\n|names two models, "a.gguf" and "b.gguf"
{"model": "a", "from": "b"}|names two models
{"temp": true}|"temp" is true, expected a text or a number
{"system": ["a"]}|"system" is a list, expected a text or a number
system = """never ends\n|does not end
template = none.jinja\n|which is no file beside it
message = robot Hi\n|a message is of "robot"
temp\n|"temp" has no value
{"temp": {}}|is an object
{"temp": 0.1|m.preset
END
# An adapter beside it, and how far penalties look: the option's texts are the preset's
as_option() {
	printf "$1" > "${of%.gguf}.preset"
	shift
	run "$of" --prompt "Once upon a time" -n 12 --temp 0 -q
	check "a preset for $*: $(cat "$dir/err")" [ "$status" = 0 ]
	mv "$dir/out" "$dir/preset-out"
	rm "${of%.gguf}.preset"
	run "$of" --prompt "Once upon a time" -n 12 --temp 0 -q "$@"
	check "it says what $* says" cmp "$dir/preset-out" "$dir/out"
}
of=$dir/m.gguf
as_option 'repeat_last_n = 0\nrepeat_penalty = 9\n' --repeat-penalty 1
as_option 'PARAMETER repeat_last_n -1\nPARAMETER repeat_penalty 9\n' --repeat-last-n -1 --repeat-penalty 9
shared=$top/../shared/models
if [ -d "$shared/tale-llama-shout" ]; then
	cp -r "$shared/tale-llama-shout" "$dir/shout"
	ln -s "$(realpath "$shared/tale-llama/tale-llama-q8_0.gguf")" "$dir/llama.gguf"
	of=$dir/llama.gguf
	as_option 'ADAPTER ./shout\n' --lora "$dir/shout"
	cp "$dir/out" "$dir/loud"
	as_option 'adapter = shout:0\n' --lora "$dir/shout:0"
	check "the adapter counts" [ "$(cmp -s "$dir/loud" "$dir/out"; echo $?)" = 1 ]
else
	echo "# skipped: adapters of presets, without ../shared"
fi
# The layers of ollama's store
digest() { printf '%064d' "$1"; }
store=$dir/home/.ollama/models
mkdir -p "$store/blobs" "$store/manifests/registry.ollama.ai/library/tale"
cp "$model" "$store/blobs/sha256-$(digest 1)"
printf '{"stop":["king"],"temperature":0.9,"num_ctx":300,"seed":5,"num_predict":12}' > "$store/blobs/sha256-$(digest 2)"
printf 'Be kind.' > "$store/blobs/sha256-$(digest 3)"
printf '{{ if .System }}<s>{{ .System }}{{ end }}<u>{{ .Prompt }}<a>{{ .Response }}<e>' \
	> "$store/blobs/sha256-$(digest 4)"
layer() { printf '{"mediaType":"application/vnd.ollama.image.%s","digest":"sha256:%s"}' "$1" "$(digest "$2")"; }
printf '{"layers":[%s,%s,%s,%s]}' "$(layer model 1)" "$(layer params 2)" "$(layer system 3)" "$(layer template 4)" \
	> "$store/manifests/registry.ollama.ai/library/tale/latest"
run tale --no-cache -q --prompt "Once upon a time"
cp "$dir/out" "$dir/with"
run "$model" --no-cache -q --prompt "Once upon a time" --temp 0.9 --seed 5 -n 12 --stop king
check "parameters of ollama: $(cat "$dir/with")" cmp -s "$dir/out" "$dir/with"
run info tale
check "its system message: $(cat "$dir/out")" grep -qF "system: Be kind." "$dir/out"
check "its template is told: $(cat "$dir/out")" grep -qF "template: of its own, in Go's language" "$dir/out"
run info tale --json
check "and in JSON: $(cat "$dir/out" "$dir/err")" grep -q "\"template_language\":\"go\"" "$dir/out"
run tale --no-cache --chat --single-turn --prompt "And?" -n 3 --show-prompt
check "it writes the prompt: $(cat "$dir/out" "$dir/err")" grep -qF '<s>Be kind.<u>And?<a>' "$dir/out"
check "up to the answer" sh -c '! grep -qF "<e>" "$1"' sh "$dir/out"
# ollama writes the prompts of some models by code of its own: their template is none
manifest=$store/manifests/registry.ollama.ai/library
printf '{"model_format":"gguf","renderer":"tale-1"}' > "$store/blobs/sha256-$(digest 5)"
mkdir -p "$manifest/coded"
printf '{"config":{"digest":"sha256:%s"},"layers":[%s,%s]}' "$(digest 5)" "$(layer model 1)" "$(layer template 4)" \
	> "$manifest/coded/latest"
run info coded
check "a renderer: $(cat "$dir/out")" grep -qF "ollama has code instead" "$dir/out"
# one that is wrong is told with its line
printf 'a\n{{ trim .Prompt }}' > "$store/blobs/sha256-$(digest 6)"
mkdir -p "$manifest/wrong"
printf '{"layers":[%s,%s]}' "$(layer model 1)" "$(layer template 6)" > "$manifest/wrong/latest"
run wrong --no-cache --chat --single-turn --prompt "And?" -n 3
check "a wrong template: $(cat "$dir/err")" grep -qF 'line 2: "trim" is no function' "$dir/err"
# Served: conversations, tools, reasoning and gaps
printf '%s' '{{ if .Suffix }}P{{ .Prompt }}S{{ .Suffix }}M{{ else }}{{ if .Think }}one two three four five {{ end }}'\
'{{ .IsThinkSet }}{{ range .Tools }}{{ .Function.Name }}{{ end }}{{ range .Messages }}<{{ .Role }}>{{ .Content }}'\
'{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ end }}{{ end }}' > "$store/blobs/sha256-$(digest 7)"
mkdir -p "$manifest/fable"
printf '{"layers":[%s,%s]}' "$(layer model 1)" "$(layer template 7)" > "$manifest/fable/latest"
if [ -x ./jitserve ] && command -v curl > /dev/null; then
	export OLLAMA_MODELS="$store"
	must_serve layers fable --port 0 --no-cache --no-replay
	unset OLLAMA_MODELS
	post() { curl -s "$url$1" -d "$2" > "$dir/out"; }
	number() { sed -n 's/.*"'"$1"'": *\([0-9]*\).*/\1/p' "$dir/out"; }
	post /apply-template '{"messages":[{"role":"system","content":"Be."},{"role":"user","content":"Hi"}],"tools":
		[{"type":"function","function":{"name":"look","parameters":{}}}]}'
	check "the layer writes prompts: $(cat "$dir/out")" grep -qF 'falselook<system>Be.<user>Hi"' "$dir/out"
	post /apply-template '{"messages":[{"role":"user","content":"Hi"}],"chat_template_kwargs":
		{"enable_thinking":true}}'
	check "with reasoning: $(cat "$dir/out")" grep -qF 'one two three four five true<user>Hi"' "$dir/out"
	post /apply-template '{"messages":[{"role":"user","content":"Hi"}],"add_generation_prompt":false}'
	check "no answer begins: $(cat "$dir/out")" grep -qF 'add_generation_prompt cannot be false' "$dir/out"
	post /api/show '{"model":"fable"}'
	check "what it can do: $(cat "$dir/out")" grep -qE '"tools", *"thinking", *"insert"' "$dir/out"
	post /api/chat '{"model":"fable","messages":[{"role":"user","content":"Hi"}],"stream":false,"options":
		{"num_predict":1}}'
	reasons=$(number prompt_eval_count)
	post /api/chat '{"model":"fable","messages":[{"role":"user","content":"Hi"}],"stream":false,"think":false,
		"options":{"num_predict":1}}'
	check "it reasons where nothing is said: $reasons $(cat "$dir/out")" \
		[ "$reasons" -gt "$(number prompt_eval_count)" ]
	post /v1/completions '{"prompt":"PaSbM","max_tokens":6,"temperature":0}'
	sed 's/.*"text": *\("[^"]*"\).*/\1/' "$dir/out" > "$dir/with"
	post /v1/completions '{"prompt":"a","suffix":"b","max_tokens":6,"temperature":0}'
	sed 's/.*"text": *\("[^"]*"\).*/\1/' "$dir/out" > "$dir/text"
	check "a gap by .Suffix: $(cat "$dir/out")" cmp -s "$dir/text" "$dir/with"
	post /api/generate '{"model":"fable","prompt":"a","suffix":"b","stream":false,"options":{"num_predict":6,
		"temperature":0}}'
	sed 's/.*"response": *\("[^"]*"\).*/\1/' "$dir/out" > "$dir/text"
	check "and in ollama's API: $(cat "$dir/out")" cmp -s "$dir/text" "$dir/with"
fi
# and a Modelfile's
printf 'FROM ./m.gguf\nTEMPLATE """[{{ .Prompt }}]{{ .Response }}"""\n' > "$dir/Modelfile"
run "$dir/Modelfile" --no-cache --chat --single-turn --prompt "And?" -n 3 --show-prompt
check "a Modelfile's template: $(cat "$dir/out" "$dir/err")" grep -qF '[And?]' "$dir/out"
# which is not used where ollama's own code writes prompts
cp "$dir/m.gguf" "$dir/plain.gguf" && cp "$dir/t.jinja" "$dir/code.jinja"
printf 'FROM ./plain.gguf\nTEMPLATE """[{{ .Prompt }}]"""\nRENDERER qwen3-coder\nPARSER qwen3-coder\nREQUIRES 0.9.0\n' \
	> "$dir/Modelfile"
run "$dir/Modelfile" --no-cache --chat --single-turn --prompt "And?" -n 3 --show-prompt --template "$dir/code.jinja"
check "beside a RENDERER another template is used: $(cat "$dir/out" "$dir/err")" grep -qF '<user>And?' "$dir/out"
run info "$dir/Modelfile" --json
check "and that of the file is none" sh -c '! grep -qF "\"template\":true" "$1"' - "$dir/out"
# messages of several lines, and what old files say
{
	printf 'FROM ./plain.gguf\nMESSAGE user """Two\nlines"""\nMESSAGE assistant "Yes." \nMESSAGE user plain\n'
	printf 'MESSAGE assistant """no"""\nPARAMETER tfs_z 1.0\nPARAMETER logits_all false\n'
} > "$dir/Modelfile"
run "$dir/Modelfile" --no-cache --chat --single-turn --prompt "And?" -n 3 --show-prompt --template "$dir/code.jinja"
tr '\n' '|' < "$dir/out" > "$dir/line"
check "messages of several lines: $(cat "$dir/line" "$dir/err")" grep -qF \
	'<user>Two|lines<assistant>Yes.<user>plain<assistant>no<user>And?' "$dir/line"
printf 'FROM ./plain.gguf\nPARAMETER tfs_z 0.5\n' > "$dir/Modelfile"
refused "tfs_z is 0.5, expected 1 (off)" 1 "$dir/Modelfile" --prompt x
printf 'FROM ./plain.gguf\nMESSAGE user """open\n' > "$dir/Modelfile"
refused 'a text that begins with """ does not end' 1 "$dir/Modelfile" --prompt x
printf 'FROM ./plain.gguf\nMESSAGE wizard """a\nb"""\n' > "$dir/Modelfile"
refused 'a message is of "wizard", expected system, user or assistant' 1 "$dir/Modelfile" --prompt x
run tale --no-cache --chat --single-turn --prompt "And?" -n 3 --show-prompt --template "$dir/t.jinja"
check "it is used: $(cat "$dir/err")" grep -qF '<system>Be kind.<user>And?' "$dir/out"
finish
