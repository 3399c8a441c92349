#!/bin/sh
# tests/programs/t_cli.sh - the jitrun program from outside: what it prints where, and how it refuses.
. "${srcdir:-.}/tests/support/prelude.sh"
jitrun=./jitrun
cache=--no-cache
run() { "$jitrun" $cache --temp 0 "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }

run "$model" --prompt "Once upon a time" -n 8
check "status 0" [ "$status" = 0 ]
check "text on stdout" [ -s "$dir/out" ]
check "the summary has two lines of 80 columns: $(cat "$dir/err")" [ "$(grep -c . "$dir/err") $(awk 'length > 79' \
	"$dir/err")" = "2 " ]
check "the first has sizes and speeds" grep -qxE \
	'[0-9]+ \+ 8 tokens; prompt [0-9.]+ tokens/s, decode [0-9.]+ tokens/s; first after [0-9.]+ s' "$dir/err"
check "the second says why it ended" grep -qxE 'stopped: length \(-n 8\)' "$dir/err"
run "$model" --prompt "Once upon a time" -n 8 --temp 0.5
check "and the seed" grep -qxE 'stopped: length \(-n 8\); seed [0-9]+' "$dir/err"
run "$model" --prompt "Once upon a time" -n 0
check "what was not computed is not told: $(cat "$dir/err")" sh -c '! grep -qE "decode|first| 0.0" "$1"' - "$dir/err"
run "$model" --prompt "Once upon a time" -n -1 -c 20 --ignore-eos
check "a full context says what would make room: $(cat "$dir/err")" grep -qE \
	'^stopped: context full \(20 tokens; --context: up to [0-9]+\)' "$dir/err"
run "$model" --prompt "Once upon a time" -n 8 --verbose
check "summary has the decode rate" grep -q 'decode .*tokens/s' "$dir/err"
check "summary has the kernels" grep -q 'kernels .*generated in' "$dir/err"
cp "$dir/out" "$dir/text"

run "$model" --prompt "Once upon a time" -n 8 --quiet
check "--quiet: nothing on stderr" [ ! -s "$dir/err" ]
check "the same text again" cmp -s "$dir/out" "$dir/text"
printf 'Once upon a time' > "$dir/prompt"
run "$model" --file "$dir/prompt" -n 8 -q
check "--file gives the same" cmp -s "$dir/out" "$dir/text"
"$jitrun" "$model" -n 8 -q --no-cache --temp 0 < "$dir/prompt" > "$dir/out"
check "standard input gives the same" cmp -s "$dir/out" "$dir/text"
"$jitrun" "$model" --file - -n 8 -q --no-cache --temp 0 < "$dir/prompt" > "$dir/out"
check "--file - gives the same" cmp -s "$dir/out" "$dir/text"
run "$model" --prompt "Once upon a time" -n 8 -q --echo
check "--echo prints the prompt first" grep -q '^Once upon a time' "$dir/out"
run "$model" --prompt "Once upon a time" -n 1 --json
ids=$(sed 's/.*"prompt_ids":\[\([^]]*\)\].*/\1/' "$dir/out")
run "$model" --prompt-ids "$ids" -n 8 -q --echo
check "--echo spells a prompt given as ids" grep -q 'Once upon a time' "$dir/out"

run "$model" --prompt-ids 0,3177,626,260,538 --print-ids -n 8 -q
check "--print-ids: eight ids on one line, nothing else: $(cat "$dir/out")" grep -qxE '[0-9]+( [0-9]+){7}' "$dir/out"
check "--print-ids: one line" [ "$(wc -l < "$dir/out")" = 1 ]
cp "$dir/out" "$dir/ids"
run "$model" --prompt "Once upon a time" --print-ids -n 8 -q
check "text and ids prompts agree" cmp -s "$dir/out" "$dir/ids"
run "$model" --prompt "Once upon a time" --print-ids -n 8 -q --device ref
check "the reference device agrees" cmp -s "$dir/out" "$dir/ids"
for launch in op layer token; do
	run "$model" --prompt "Once upon a time" --print-ids -n 8 --verbose --device sim:gfx1100 --launch $launch \
		--workgroups 3
	check "a simulated card agrees, launched by $launch: $(cat "$dir/err")" cmp -s "$dir/out" "$dir/ids"
	check "what the card did is told" grep -q '^card .*launches.*by 128 bits' "$dir/err"
done
is 1 "$model" --prompt "Once upon a time" --print-ids -n 8 --device sim:gfx1100 --units 1 --workgroups 100
check "more workgroups than there is room for" grep -q \
	"100 workgroups .* room for [1-9][0-9]* on 1 compute unit of gfx1100" "$dir/err"
dd if="$model" of="$dir/header.gguf" bs=1024 count=600 2>/dev/null
run "$dir/header.gguf" --target gfx1101 --dump-objects "$dir/objects"
check "code objects from a header: $(cat "$dir/err")" [ "$status" = 0 ]
check "a program for each width of a pass" [ "$(ls "$dir/objects"/pass-c*.gfx1101.co | wc -l)" = 4 ]
check "a code object for each kernel" [ "$(ls "$dir/objects"/matmul.*.gfx1101.co | wc -l)" -gt 4 ]
for t in 1 3; do
	run "$model" --prompt "Once upon a time" --print-ids -n 8 -q -t "$t"
	check "$t threads agree" cmp -s "$dir/out" "$dir/ids"
done

run "$model" --prompt "Once upon a time" -n 8 --json -q
check "--json: one line" [ "$(wc -l < "$dir/out")" = 1 ]
check "--json: an object with ids, text, timings, counters" grep -qE \
	'^\{.*"ids":\[.*"text":".*"timings":\{.*"counters":\{.*\}\}$' "$dir/out"
check "--json: the same ids" [ "$(sed 's/.*"ids":\[\([0-9,]*\)\].*/\1/; s/,/ /g' "$dir/out" | sed 's/.*"ids"//')" = \
	"$(cat "$dir/ids")" ]

# Guessing ahead never changes the text, and is counted
repeated="The cat sat on the mat. The dog sat on the mat. The cat sat on the mat. The dog sat on the mat. The cat sat"\
" on the"
for t in 0 0.8; do
	run "$model" --prompt "$repeated" -n 120 --ignore-eos --print-ids --temp "$t" --seed 5 --speculate off
	check "--speculate off says nothing of draft tokens" [ "$(grep -c drafted "$dir/err")" = 0 ]
	cp "$dir/out" "$dir/plain"
	for k in auto 4 8 16; do
		run "$model" --prompt "$repeated" -n 120 --ignore-eos --print-ids --temp "$t" --seed 5 -v \
			--speculate "$k"
		check "--speculate $k --temp $t: the same ids" cmp -s "$dir/out" "$dir/plain"
	done
	check "summary counts draft tokens" grep -qE '^drafted +[0-9]+ tokens, [0-9]+ accepted' "$dir/err"
done
run "$model" --prompt "$repeated" -n 120 --ignore-eos --json -q --speculate 4
check "--json counts draft tokens" grep -qE \
	'"drafted":[1-9][0-9]*,"accepted":[0-9]+,"speculation":\{"4":\{"passes":[1-9][0-9]*,"drafted":[1-9].*"16":\{"'\
'passes":0,"drafted":0,"accepted":0\}\}' "$dir/out"

# So does a draft model, here the model itself; the options by all their names
for t in 0 0.8; do
	run "$model" --prompt "Once upon a time" -n 40 --ignore-eos --print-ids --temp "$t" --seed 5 --speculate off
	cp "$dir/out" "$dir/plain"
	run "$model" --prompt "Once upon a time" -n 40 --ignore-eos --print-ids --temp "$t" --seed 5 -v --speculate 8 \
		--draft "$model" --draft-device cpu --draft-kv-type q8_0 --draft-context 128 --draft-max 6 \
		--draft-min 2 --draft-p-min 0.001
	check "--draft --temp $t: the same ids: $(cat "$dir/err")" cmp -s "$dir/out" "$dir/plain"
	check "the summary counts what the draft model proposed: $(cat "$dir/err")" grep -qE \
		'^draft +[0-9]+ passes asked for, [1-9][0-9]* tokens proposed, [1-9][0-9]* of [0-9]+ accepted' \
		"$dir/err"
done
run "$model" --prompt "Once upon a time" -n 40 --ignore-eos --json -q --speculate 4 -md "$model" -devd cpu -ctkd f32 \
	-ctvd f32 -cd 200 --draft-n 3 -ngld 99
check "--json counts it, too: $(cat "$dir/err")" grep -qE \
	'"draft":\{"requests":[1-9][0-9]*,"proposed":[1-9][0-9]*,"used":[1-9][0-9]*,"accepted":[1-9]' "$dir/out"
check "--draft-n 3: three tokens of a pass at most" [ "$(sed -n \
	's/.*"draft":{"requests":\([0-9]*\),"proposed":\([0-9]*\),.*/\1 \2/p' "$dir/out" |
	awk '{ print $2 <= 3 * $1 }')" = 1 ]
run "$model" --prompt "Once upon a time" -n 40 --ignore-eos --json -q --speculate 4 -md "$model" --draft-p-min 1
check "--draft-p-min 1 proposes nothing: $(cat "$dir/err")" grep -q '"requests":[1-9][0-9]*,"proposed":0,' "$dir/out"
run "$model" --prompt "Once upon a time" -n 40 --ignore-eos --json -q --speculate 16 -md "$model" --draft-max 4 \
	--draft-min 4 --draft-p-min 0.9
check "--draft-min 4: fewer are not used: $(cat "$dir/err")" [ "$(sed -n \
	's/.*"draft":{.*"used":\([0-9]*\),.*/\1/p' "$dir/out" | awk '{ print $1 % 4 }')" = 0 ]
run "$model" --prompt "Once" -n 4 -q --draft "$dir/nothing.gguf"
check "--draft FILE that is not there: status 1 (got $status), $(cat "$dir/err")" \
	[ "$status" = 1 -a "$(grep -c '^jitrun: --draft: .*nothing.gguf' "$dir/err")" = 1 ]
run "$model" --prompt "Once" -n 4 -q --draft "$model" --draft-device nowhere
check "--draft-device that is none: status 1 (got $status), $(cat "$dir/err")" \
	[ "$status" = 1 -a "$(grep -c '^jitrun: --draft: .*nowhere' "$dir/err")" = 1 ]

run "$model" --prompt "Once upon a time" -n 30 -q --temp 0.9 --seed 3
cp "$dir/out" "$dir/a"
run "$model" --prompt "Once upon a time" -n 30 -q --temp 0.9 --seed 3 -t 1
check "a seed gives the same text" cmp -s "$dir/out" "$dir/a"
run "$model" --prompt "Once upon a time" -n 30 -q --temp 0.9 --seed 4
check "another seed another text" [ "$(cmp -s "$dir/out" "$dir/a"; echo $?)" = 1 ]

run "$model" --prompt "Once" -n 200 -c 40 -q --ignore-eos --print-ids
check "a full context ends cleanly" [ "$status" = 0 ]

# The context is what the model was trained for: told, and without another bit of the text
LC_ALL=C sed 's/\(context_length\x04\x00\x00\x00\)\x00\x04\x00\x00/\1\x00\xa0\x00\x00/' "$model" > "$dir/long.gguf"
run "$model" --prompt "Once upon a time" -n 30 -q --print-ids
cp "$dir/out" "$dir/a"
run "$dir/long.gguf" --prompt "Once upon a time" -n 30 --print-ids
check "a long context, the same ids" cmp -s "$dir/out" "$dir/a"
check "it is told: $(cat "$dir/err")" grep -qE \
	'^context (40960 \(trained\)|[0-9]+ \(trained for 40960.*\)); key/value memory for it: [0-9.]+ MiB' "$dir/err"
run "$dir/long.gguf" --prompt "Once" -n 1 -c 5000
check "what was asked for is not" [ "$(grep -c '^context' "$dir/err")" = 0 ]
./jitrun info "$dir/long.gguf" > "$dir/out"
check "info has the same: $(grep 'the default' "$dir/out")" grep -q 'context of 40960 tokens' "$dir/out"

run "$model" --prompt x -n 1 --threads 1000 -c 100000
check "too many threads are told: $(cat "$dir/err")" grep -qE '^jitrun: 1000 threads share [0-9]+ cores?; ' "$dir/err"
check "so is a context beyond the training" grep -qF 'trained for 1024 tokens; beyond them' "$dir/err"
run "$model" --prompt x -n 1 --threads 1 -c 1024
check "what is usual is not" [ "$(grep -c '^jitrun' "$dir/err")" = 0 ]
refused "none/trace: cannot be written: No such file or directory" 1 "$model" --prompt x --trace "$dir/none/trace"
run "$model" --prompt x -n 1 -q --trace "$dir/trace"
check "--trace to where one can write" grep -q traceEvents "$dir/trace"
# Of the report's kernels, "CALLS NANOSECONDS", and of the table's rows and its sum.
profiled() {
	run "$model" --prompt x -n 3 -q --threads 1 --tune off --no-cache --json --report --profile "$@"
	check "--profile $*: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
	grep -oE '"(calls|nanoseconds|time_share)": ?[0-9.e-]+' "$dir/out" | tr -d ' "' | awk -F: '
		$1 == "calls" { calls += $2 } $1 == "nanoseconds" { last = $2 } $1 == "time_share" { time += last }
		END { printf "%d %.6f\n", calls, time / 1e6 }' > "$dir/sums"
	awk '/^ +launches/ { on = 1; next } /all kernels$/ { on = 0 } on { calls += $1; time += $2 }
		END { printf "%d %.6f\n", calls, time }' "$dir/err" >> "$dir/sums"
	awk '/all kernels$/ { print $1, $2 }' "$dir/err" >> "$dir/sums"
	check "--profile $*: the report, the rows and their sum agree: $(cat "$dir/sums" "$dir/err")" awk '
		NR == 1 { calls = $1; time = $2 } calls < 100 || $1 != calls || ($2 - time) ^ 2 > 0.05 ^ 2 { bad = 1 }
		END { exit bad || NR != 3 }' "$dir/sums"
}
profiled
profiled --device sim:sm90
check "a simulator's times are told to be such" grep -q 'simulator took' "$dir/err"
for name in qwen3:0.6b Qwen/Qwen3-0.6B hf:Qwen/Qwen3-0.6B https://huggingface.co/x/y.gguf; do
	refused "$name: there is no such file, and no model of that name on this machine." 1 "$name" --prompt x
	check "$name: where to look" grep -q "^Try 'jitrun list'" "$dir/err"
done
without() { timeout 60 ./jitrun "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
for name in llama3.2 llama tale:latest Qwen/Qwen3-0.6B; do
	for command in run info; do
		without "$command" "$name"
		check "$command $name ($status): $(cat "$dir/err")" [ "$status $(cat "$dir/err")" = "1 jitrun: $name: \
there is no such file, and no model of that name on this machine.
Try 'jitrun list', which lists the models that are on this machine." ]
	done
done
for name in /nosuch ./nosuch none.gguf "$dir/none/x.safetensors"; do
	for command in run info; do
		without "$command" "$name"
		check "$command $name ($status): $(cat "$dir/err")" [ "$status $(cat "$dir/err")" = "1 jitrun: $name: \
cannot be opened: No such file or directory; 'jitrun list' lists the models that are on this machine." ]
	done
done
echo hello > "$dir/hello"
without info "$dir/hello"
check "what is there needs no list: $(cat "$dir/err")" grep -q \
	'is neither a GGUF file nor named .safetensors: it is a text, "hello' "$dir/err"
check "one sentence" [ "$(wc -l < "$dir/err")" = 1 ]

run "$model" --prompt x -n 1 -q --dump-ir "$dir/ir" --dump-asm "$dir/asm"
check "--dump-ir names kernels" grep -q matmul "$dir/ir"
run "$model" --prompt "Once upon a time" -n 3 -q --dump-ir -
check "--dump-ir -: standard output is the IR's alone" sh -c 'grep -q matmul "$1" && ! grep -q there "$1"' - "$dir/out"
check "--dump-asm has bytes" grep -q '\.byte' "$dir/asm"
if command -v as > /dev/null && command -v objdump > /dev/null; then
	check "an assembler accepts the dump" as "$dir/asm" -o "$dir/o"
	check "a disassembler knows every instruction" [ "$(objdump -d "$dir/o" | grep -c '(bad)')" = 0 ]
fi

run "$model" --perplexity "${srcdir:-.}/README.md" -c 64 --json
check "--perplexity gives a number" grep -q '"perplexity":[0-9.]*,"tokens":[0-9]*,"windows":[1-9]' "$dir/out"
run "$model" --perplexity "${srcdir:-.}/README.md" -c 64 -q
check "--perplexity says it in a line" grep -q '^perplexity [0-9.]*$' "$dir/out"
refused "a smaller --context" 1 "$model" --perplexity "${srcdir:-.}/configure.ac" -c 100000
refused "at least 4 tokens" 2 "$model" --perplexity "${srcdir:-.}/README.md" -c 2

# Sealed: what jitwarm made is all there is
./jitwarm "$model" --out "$dir/kernels.jkp" --activations auto --kv-type f16 -q
cache=
run "$model" --cache "$dir/kernels.jkp" --sealed --prompt "Once upon a time" -n 8 -q
check "--sealed: status 0: $(cat "$dir/err")" [ "$status" = 0 ]
check "--sealed: the same text" cmp -s "$dir/out" "$dir/text"
refused "is not in the cache, and --sealed forbids generating it; in the nearest one there, " 1 "$model" --cache \
	"$dir/kernels.jkp" --sealed --prompt x --kv-type f32
check "--sealed: the field is named" grep -qF 'KV type is f16, not f32' "$dir/err"
check "--sealed: what makes the kernels is named: $(cat "$dir/err")" grep -qF \
	"Try 'jitwarm $model --out $dir/kernels.jkp', which makes" "$dir/err"
run "$model" --cache "$dir/kernels.jkp" --prompt x --kv-type f32 -n 1 --report
check "kernels that are not stored are told" grep -qE '^cache: [1-9][0-9]* kernels not stored; --report' "$dir/err"
check "and why" grep -q '^not stored in the cache: the cache has no directory that can be written' "$dir/err"
refused "activation type is q8_0, not f32" 1 "$model" --cache "$dir/kernels.jkp" --sealed --prompt x --activations f32
refused "there is no cache to take kernels from" 1 "$model" --no-cache --sealed --prompt x
refused "only the devices cpu and cuda can" 1 "$model" --cache "$dir/kernels.jkp" --sealed --prompt x --device ref
refused "no.jkp" 1 "$model" --cache "$dir/no.jkp" --sealed --prompt x
cache=--no-cache

refused "which model" 2
refused "no prompt.gguf: " 1 "$dir/no prompt.gguf" --prompt x
refused "did you mean --prompt" 2 "$model" --promt x
refused "needs a value" 2 "$model" --prompt
refused "not a whole number" 2 "$model" --prompt x -n many
refused "device \"gpu\" is unknown; known: cpu, ref, sim:" 1 "$model" --prompt x --device gpu
refused "gfx900" 1 "$model" --prompt x --device sim:gfx900
refused "is not one of op|layer|token" 2 "$model" --prompt x --device sim:gfx1100 --launch twice
refused "Give --target" 2 "$model" --dump-objects "$dir/none"
refused "cannot be opened" 1 "$dir/none.gguf" --target gfx1100 --dump-objects "$dir/none"
: > "$dir/file"
refused "$dir/file: is no directory" 1 "$model" --target gfx1100 --dump-objects "$dir/file"
refused "is not one of off|auto|4|8|16" 2 "$model" --prompt x --speculate 5
refused "give one of" 2 "$model" --prompt x --prompt-ids 1
for ids in 1,two "+1" " 1" "1 " "1,,2" "1," "," "" 0x1 -1 1e3 99999999999999999999 2147483648; do
	refused "does not begin with a token id" 2 "$model" --prompt-ids "$ids"
done
refused "which is not in 0..4095" 1 "$model" --prompt-ids 5000
refused 'unexpected argument "again"' 2 "$model" again --prompt x
refused "available" 1 "$model" --prompt x -c 2000000000
printf 'GGUF' > "$dir/cut.gguf"
refused "cut.gguf" 1 "$dir/cut.gguf" --prompt x
mkdir "$dir/empty"
refused "empty" 1 "$dir/empty" --prompt x
run "$model" --prompt "" --prompt x -n 1 -q
check "an empty prompt starts from BOS" [ "$status" = 0 ]

rm -f "$dir/out"
# Ctrl-C: ends cleanly with the summary
"$jitrun" "$model" --prompt "Once upon a time" -n -1 -c 100000 --ignore-eos --no-cache > "$dir/out" 2> "$dir/err" < \
	/dev/null &
pid=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s "$dir/out" ] && break; sleep 0.2; done
kill -INT "$pid"
wait "$pid"
check "interrupted: status 130" [ "$?" = 130 ]
check "interrupted: summary" grep -q 'stopped: interrupted' "$dir/err"
# Inside a prompt, which is one pass, and takes the interpreter far longer than the pauses here.
words=$(yes 'Once upon a time' | head -n 200 | tr '\n' ' ')
"$jitrun" "$model" --device ref --prompt "$words" -c 2048 --batch 1024 -n 1 > "$dir/out" 2> "$dir/err" < /dev/null &
pid=$!
sleep 1
kill -INT "$pid"
wait "$pid"
check "interrupted inside a prompt: status 130" [ "$?" = 130 ]
check "interrupted inside a prompt: nothing of it was taken" grep -q '^0 + 0 tokens$' "$dir/err"
# What does not look at the first Ctrl-C in time ends with the second.
"$jitrun" "$model" --device sim:gfx1100 --prompt "$words" -c 2048 -n 1 --no-cache > "$dir/out" 2> "$dir/err" < \
	/dev/null &
pid=$!
sleep 1
kill -INT "$pid"
sleep 0.2
kill -INT "$pid"
wait "$pid"
check "interrupted twice: ended by the signal" [ "$?" = 130 ]
check "interrupted twice: no summary" sh -c '! grep -q stopped "$1"' - "$dir/err"

# --prompt-cache: the same text from less work; another prompt uses what it has in common
kept=$dir/kept
run "$model" --prompt "Once upon a time there was a girl" -n 12 --temp 0 --print-ids
cp "$dir/out" "$dir/plain"
for way in "" "" "--prompt-cache-ro" "--prompt-cache-all" "--prompt-cache-all"; do
	run "$model" --prompt "Once upon a time there was a girl" -n 12 --temp 0 --print-ids --prompt-cache "$kept" $way
	check "prompt cache $way: status" [ "$status" = 0 ]
	check "prompt cache $way: the same tokens" cmp "$dir/out" "$dir/plain"
done
check "prompt cache: of a prompt that is there all but its last token" grep -q 'cache: 8 of 9 tokens' "$dir/err"
run "$model" --prompt "Once upon a time there was a boy" -n 12 --prompt-cache "$kept" --prompt-cache-ro
check "prompt cache: what two prompts have in common" grep -q 'cache: 8 of 9 tokens are there' "$dir/err"
cp "$kept" "$dir/was"
refused "has a KV cache of F16" 1 "$model" --prompt x --prompt-cache "$kept" --kv-type f32
check "prompt cache: what is refused stays" cmp "$kept" "$dir/was"
head -c 1000 "$dir/was" > "$kept"
refused "damaged" 1 "$model" --prompt x --prompt-cache "$kept"
refused "go with --prompt-cache" 2 "$model" --prompt x --prompt-cache-ro
refused "without --perplexity" 2 "$model" --perplexity "$dir/err" --prompt-cache "$kept"
# ... and what cannot be used or written is told before the model is loaded: this one cannot be
refused "$dir/no/x: cannot be written: No such file" 1 "$dir/none.gguf" --prompt x --prompt-cache "$dir/no/x"
refused "$dir: is no regular file" 1 "$dir/none.gguf" --prompt x --prompt-cache "$dir"
refused "none.gguf: cannot be opened" 1 "$dir/none.gguf" --prompt x --prompt-cache "$dir/no/x" --prompt-cache-ro
rm -f "$dir/out"

# The cache: where it is, what it says, what is refused.
cache=
mkdir "$dir/xdg" && XDG_CACHE_HOME=$dir/xdg && export XDG_CACHE_HOME
run "$model" --prompt Once -n 2 -q
check "the default cache is $XDG_CACHE_HOME/jitrun" [ "$(ls "$dir/xdg/jitrun" | grep -c '\.jko$')" -gt 5 ]
run "$model" --prompt Once -n 2 --json
check "the second start generates nothing: $(grep -o '"kernels_[^,]*' "$dir/out")" \
	grep -q '"kernels_generated": *0,' "$dir/out"
check "json says what the cache did" grep -q '"cache_damaged": *0' "$dir/out"
JITRUN_CACHE=$dir/one:$dir/two; export JITRUN_CACHE
run "$model" --prompt Once -n 2
check "JITRUN_CACHE: the first directory receives" [ "$(ls "$dir/one" | grep -c '\.jko$')" -gt 5 ]
check "JITRUN_CACHE: the second receives nothing" [ "$(ls "$dir/two" | grep -c '\.jko$')" = 0 ]
chmod 777 "$dir/one"
refused 'lets others write it' 1 "$model" --prompt Once -n 2
run "$model" --prompt Once -n 2 --no-cache
check "--no-cache needs no directory" [ "$status" = 0 ]
JITRUN_CACHE=/dev/null/cache
refused 'cannot open or make the cache directory' 1 "$model" --prompt Once -n 2
refused 'a source of the cache is empty' 1 "$model" --prompt Once -n 2 --cache "$dir/two:"
printf '%70s' 'something else' > "$dir/junk" && chmod 600 "$dir/junk"
refused 'no pack file' 1 "$model" --prompt Once -n 2 --cache "$dir/junk"
unset JITRUN_CACHE
XDG_CACHE_HOME=/dev/null
run "$model" --prompt Once -n 2
check "no default cache to be had: it runs all the same" [ "$status" = 0 ]
XDG_CACHE_HOME=$dir/xdg
chmod 777 "$dir/xdg/jitrun"
refused 'lets others write it' 1 "$model" --prompt Once -n 2
chmod 700 "$dir/xdg/jitrun"
for f in "$dir/xdg/jitrun"/*.jko; do : > "$f"; done
run "$model" --prompt Once -n 2
check "damage is said" grep -qE '^cache: [0-9]+ kernels? damaged' "$dir/err"
run "$model" --prompt Once -n 2 --cache-limit 1
check "--cache-limit" [ "$status" = 0 ]

run "$model" --prompt "Once upon a time" -n 8 --verbose --report
check "summary and report are no wider than 80 columns: $(awk 'length > 80' "$dir/err")" [ -z "$(grep -v \
	'^  weights\|^refused\|^sampling' "$dir/err" | awk 'length > 80')" ]

finish
