#!/bin/sh
# tests/programs/t_options.sh - command lines: wrong ones and their exact answers, names that other programs use, and
# what --help, --version and the man pages say.
. "${srcdir:-.}/tests/support/prelude.sh"
run() { "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
# answered SENTENCE PROGRAM ARGS...: exactly this sentence and the hint, nothing else, status 2
answered() {
	sentence=$1; shift
	run "$@"
	printf '%s\n' "$1: $sentence" "Try '$1 --help'." > "$dir/want"
	sed "s|^\./||; s|'\./|'|" "$dir/want" > "$dir/wanted"
	check "$*: $(cat "$dir/err")" cmp -s "$dir/err" "$dir/wanted"
	check "$*: status 2 (got $status), nothing on stdout" [ "$status" = 2 -a ! -s "$dir/out" ]
}
j=./jitrun

# Names that do not exist, and what is likely meant
answered "unknown option --promt; did you mean --prompt?" $j "$model" --promt x
answered "unknown option --tmep; did you mean --temp?" $j --tmep 0.5
answered "unknown option --temperat; did you mean --temp?" $j --temperat=0.5
answered "unknown option --ctx-sizes; did you mean --context?" $j --ctx-sizes 512
answered "unknown option -promtp; did you mean --prompt?" $j "$model" -promtp x
answered "unknown option -tempp; did you mean --temp?" $j "$model" -tempp 3
answered "unknown option -quite; did you mean --quiet?" $j "$model" -quite
answered "unknown option --gpu-layer; did you mean --gpu-layers?" $j --gpu-layer 99
answered "unknown option -x" $j -x
answered "unknown option --frobnicate" $j --frobnicate
answered "unknown option -nabc" $j "$model" -nabc
answered "unknown option --" $j --=3
# Values
answered "-t needs a value: N" $j "$model" -t
answered "-sys needs a value: TEXT" $j -sys
answered "-ngl needs a value" $j "$model" -ngl
answered '--n-predict: "abc" is not a whole number from -1 up' $j -n abc
answered '--context: "-1" is not a whole number from 0 up' $j "$model" -c -1
answered '--threads: "1025" is not a whole number between 0 and 1024' $j -t 1025
answered '--top-p: "2" is not a number between 0 and 1' $j --top-p 2
answered '--top-p: "nan" is not a number between 0 and 1' $j --top-p nan
answered '--kv-type: "q4_0" is not one of f16|f32|q8_0' $j -ctk q4_0
answered '-ctk is "f16" and --cache-type-v is "q8_0": keys and values have one type here; give both the same, or '\
'--kv-type TYPE' $j -ctk f16 --cache-type-v=q8_0
answered '-ctk is "q8_0" and --cache-type-v is not given: keys and values have one type here; give both the same, or '\
'--kv-type TYPE' $j "$model" -ctk q8_0
answered '-ctv is "f16" and --cache-type-k is not given: keys and values have one type here; give both the same, or '\
'--kv-type TYPE' $j "$model" -ctv f16 -ctv f16
answered "--quiet takes no value" $j --quiet=1
answered "-cnv takes no value" $j -cnv=1
answered "-q takes no value, and short options are given one by one" $j -qv
answered '--batch: "2048" is not a whole number between 0 and 1024' $j -ub 2048
# What jitrun cannot do
answered "--hf-file goes with --hf-repo" $j -hff x.gguf
answered "two models: one by name or path, and that of --hf-repo" $j "$model" -hf ggml-org/gemma-3-1b-it-GGUF
answered "--hf-token: set HF_TOKEN to the token; a command line is seen by all users" $j --hf-token x
answered "an answer keeps to one grammar: give one of --json-schema, --json-schema-file, --regex, --grammar and "\
"--grammar-file" $j "$model" --grammar 'root ::= "x"' --regex x
answered "--additional-properties is about a JSON Schema: give --json-schema or --json-schema-file, too" $j "$model" \
	--additional-properties --regex x
answered "--format: --json-schema '{}' asks for JSON, and a schema for a form of it" $j "$model" --format json
answered "--control-vector: jitrun runs a model as it is; merge it into the model's file" \
	$j "$model" --control-vector a.gguf
answered "--audio: jitrun reads text only" $j "$model" --audio a.wav
answered "--image goes with --prompt, --file, --prompt-ids or a conversation, and not with --perplexity" \
	$j "$model" --image a.png --perplexity a.txt
# Pictures in front of a prompt, and in the places of its image tokens: the tokens of the reference
see=${JITRUN_SHARED:-$top/../shared}/golden-more/see-qwen3vl-a
if [ -r "$see/expected.json" ]; then
	of_first() {
		sed -e 's/.*"runs": \[{"image": "image0.png"\(.*\)/\1/' -e 's/.*"'"$1"'": \[\([^]]*\)\].*/\1/' \
			-e 's/ //g' "$dir/first"
	}
	sed 's/}, {"image".*//' "$see/expected.json" > "$dir/first"
	run $j "$see" --image "$see/image0.png" --prompt-ids "$(of_first prompt)" --print-ids -n 16 --temp 0 \
		--kv-type f32 --quiet
	check "--image: $(cat "$dir/out" "$dir/err")" \
		[ "$(tr ' ' ',' < "$dir/out" | tr -d '\n')" = "$(of_first greedy)" ]
	run $j "$see" --image "$see/config.json" --prompt-ids 1,331 --quiet
	check "--image FILE that is no picture: status 1 (got $status), $(cat "$dir/err")" \
		[ "$status" = 1 -a "$(grep -c 'is no picture' "$dir/err")" = 1 ]
else
	echo "# skipped: $see is not there"
fi
answered "-hfd: jitrun pull NAME fetches a model of Hugging Face's hub, which then is a model by that name" \
	$j "$model" -hfd owner/name
answered "--draft MODEL takes a model; --draft-max N says how many tokens it proposes" $j "$model" --draft 16
answered "--draft-device, --draft-context, --draft-max, --draft-min and --draft-p-min go with --draft MODEL" \
	$j "$model" --draft-n-min 2
answered "--draft goes without --speculate off" $j "$model" -md "$model" --speculate off
answered "--rope-freq-base: positions are computed as the model's file says" $j "$model" --rope-freq-base 10000
answered "--chat-template: give the template as a file, with --template FILE" $j "$model" --chat-template chatml
answered "--port: jitrun is no server; jitserve MODEL is" $j -m "$model" --port 8080
answered "--keep: a text ends when its context is full; --context makes it larger" $j "$model" --keep 4
# Words
answered "which model? Give a .gguf or .safetensors file or a model directory" $j
answered "run what? Give a model: jitrun run MODEL" $j run
answered "serve: jitserve MODEL answers over HTTP" $j serve
answered "show: jitrun info MODEL describes a model" $j show "$model"
answered "ls: jitrun list names the models" $j ls
answered "bench: jitbench MODEL measures its speed" $j bench "$model"
answered "embed: jitserve MODEL answers /v1/embeddings" $j embed "$model"
answered "quantize: jitquant IN.gguf OUT.gguf --type TYPE makes a model smaller" $j quantize a.gguf
answered "signin: jitrun needs no account" $j signin
# A folder with a word's name is no model unless it has a configuration.
mkdir -p "$dir/words/chat" "$dir/words/ls"
echo '{}' > "$dir/words/ls/config.json"
check "a folder named chat is no model" sh -c 'cd "$1" && "$2" chat 2>&1 | grep -q "chat: jitrun MODEL talks"' - \
	"$dir/words" "$PWD/jitrun"
check "a folder with config.json is a model, whatever its name" sh -c \
	'cd "$1" && ! "$2" ls -p x 2>&1 | grep -q "jitrun list names"' - "$dir/words" "$PWD/jitrun"
answered 'unexpected argument "Once upon"; a prompt is given with --prompt TEXT' $j "$model" "Once upon"
answered "two models: $model and that of --model, $model" $j "$model" -m "$model"
answered 'two prompts: "Hi" and that of --prompt' $j run "$model" Hi -p x
answered 'unexpected argument "more"' $j run "$model" Hi more
answered '"inf" is neither a command, a file nor a model on this machine; did you mean info?' $j inf
answered '"lst" is neither a command, a file nor a model on this machine; did you mean list?' ./jitwarm lst
answered '"model" is neither a command, a file nor a model on this machine' ./jitwarm model
answered "unknown option --promt; did you mean --prompt?" ./jitbench "$model" --promt 4
answered "-pg: give -p and -n; prompt and generation are timed apart" ./jitbench "$model" -pg 64,16
answered "unknown option --ouput; did you mean --out?" ./jitwarm "$model" --ouput x

# llama.cpp's words for the same thing give the same text
plain() { run $j "$model" --no-cache --quiet --prompt "Once upon a time" -n 6 --temp 0.8 --seed 4 -c 64 "$@"; }
plain --echo --kv-type q8_0 --batch 8
cp "$dir/out" "$dir/text"
run $j -m "$model" --no-cache -q -p "Once upon a time" --predict 6 --temperature 0.8 -s 4 --ctx-size 64 -ctk q8_0 -ctv \
	q8_0 -ub 8 -no-cnv --display-prompt -ngl 99 -fa on -fa --no-mmap --jinja -t 1 -tb=2 -b 2048 --color auto \
	--no-warmup
check "a command line of llama.cpp's: $(cat "$dir/err")" cmp -s "$dir/out" "$dir/text"
check "--quiet: no notes" [ ! -s "$dir/err" ]
run $j -m "$model" --no-cache -p "Once upon a time" -n=1 -ngl 99 -fa --mlock
check "what is not used is told: $(cat "$dir/err")" [ "$(grep -c ' is not used: ' "$dir/err")" = 3 ]
check "by the name it was given" grep -qx \
	'jitrun: -ngl is not used: jitrun computes on the CPU, unless --device names a card.' "$dir/err"
plain -n 3; cp "$dir/out" "$dir/text"
plain -n=3; check "-n=3" cmp -s "$dir/out" "$dir/text"
plain -n3; check "-n3" cmp -s "$dir/out" "$dir/text"
plain -predict 3; check "one dash before a long name" cmp -s "$dir/out" "$dir/text"
cp "$model" "$dir/pull" && here=$(pwd) && (cd "$dir" && run "$here/jitrun" pull --no-cache -p Once -n 1 -q; \
	exit $status)
check "a file called pull is a model" [ $? = 0 ]
rm "$dir/pull" && mkdir "$dir/pull" && (cd "$dir" && PATH=/nowhere run "$here/jitrun" pull no-model; exit $status)
check "a folder called pull is none: $(cat "$dir/err")" [ $? = 1 ]
check "jitpull says what is wrong, or jitrun how to get it" grep -q -e "no name of a model" \
	-e "jitpull, which cannot be run" "$dir/err"

# --escape
run $j "$model" --no-cache -q -n 0 --echo -e -p 'a\nb\x41\\\q\x0'
check "--escape: $(cat "$dir/out")" [ "$(cat "$dir/out")" = "$(printf 'a\nbA\\\\q\\x0')" ]
run $j "$model" --no-cache -q -n 0 --echo -p 'a\nb'
check "without it a backslash is one" [ "$(cat "$dir/out")" = 'a\nb' ]

# --help, the man page, --version
for program in jitrun jitwarm jitbench jitquant jitk jitgraph jitopt jiteml jittrain \
	$([ ! -x jitserve ] || echo jitserve); do
	for columns in 40 60 80 132; do
		for what in help help-all; do
			COLUMNS=$columns ./$program --$what > "$dir/help"
			check "$program --$what in $columns columns: $(awk -v n=$columns 'length > n' "$dir/help")" \
				[ -z "$(awk -v n=$columns 'length > n' "$dir/help")" ]
		done
	done
	./$program --help-all > "$dir/help"
	./$program --print-man > "$dir/man"
	check "$program: the man page has every option of --help-all" [ "$(grep -cE '^  (-.,|   ) --' "$dir/help")" = \
		"$(sed -n '/^\.SH OPTIONS/,/^\.SH NAMES\|^\.SH EXIT/p' "$dir/man" | grep -c '^\.TP')" ]
	check "$program: the man page says what statuses mean" grep -q '^\.SH EXIT STATUS' "$dir/man"
	check "$program: the man page is well formed" sh -c \
		"! command -v man > /dev/null || [ -z \"\$(man --warnings -l '$dir/man' 2>&1 > /dev/null)\" ]"
	./$program --version > "$dir/version"
	check "$program --version: $(cat "$dir/version")" grep -qE \
		"^$program [0-9]+\.[0-9]+\.[0-9]+( \(commit [0-9a-f]{12}(-dirty)?\))?$" "$dir/version"
	check "$program --version names the target" grep -qE '^x86-64, (code for this CPU: avx|no code)' "$dir/version"
done
check "jitrun --help shows some twenty options: $(./jitrun --help | wc -l) lines" [ \
	"$(./jitrun --help | wc -l)" -lt 50 ]
check "--help names --prompt, --help-all the rest" sh -c \
	'./jitrun --help | grep -q -e --prompt && ! ./jitrun --help | grep -q -e --jitdump && ./jitrun --help-all | \
	grep -q -e --jitdump'
check "--help that cannot be written fails" sh -c "! [ -w /dev/full ] || ! ./jitrun --help > /dev/full 2> /dev/null"

# The recorded session: made again, it says the same but for numbers, the CPU and the commit
plain_session() { tr -s '\n ' '  ' | sed 's/ (commit [^)]*)//g; s/avx[a-z0-9]*/CPU/g; s/[0-9][0-9.]*/N/g'; }
if [ -z "$(./jitrun --version | grep 'no code')" ]; then
	sh "$top/scripts/first_session.sh" . | plain_session > "$dir/session"
	plain_session < "$top/docs/first-session.md" > "$dir/recorded"
	check "docs/first-session.md is what is said today: $(cmp "$dir/session" "$dir/recorded"; tr '.' '\n' < \
		"$dir/session" > "$dir/a"; tr '.' '\n' < "$dir/recorded" | diff - "$dir/a" | head -c 1500)" \
		cmp -s "$dir/session" "$dir/recorded"
fi

finish
