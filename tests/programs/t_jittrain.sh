#!/bin/sh
# tests/programs/t_jittrain.sh - jittrain from outside: what it writes and prints, that it goes on where it was killed,
# and the sentence of each thing that is wrong.
. "${srcdir:-.}/tests/support/prelude.sh"
export JITRUN_CACHE="$dir/cache"
run() { ./jittrain "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
says() { check "said '$1': $(head -c 600 "$dir/err")" grep -qF -e "$1" "$dir/err"; }
same() { check "$1 is $2" cmp "$dir/$1" "$dir/$2"; }
few="-c 16 -b 2 --rank 2 --targets v_proj --no-plot -t 1"

cat > "$dir/text.txt" << 'END'
Once upon a time there was a king who had three daughters, and the youngest of them was as wise as an old owl. Every
evening she went down to the brook behind the mill, and the fishes told her what had happened in the world that day.
END
cat > "$dir/chat.jsonl" << 'END'
{"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "A king."}]}

{"conversations": [{"from": "human", "value": "And?"}, {"from": "gpt", "value": "A queen."}]}
{"prompt": "A fox", "completion": " ran."}
{"text": "The end."}
END
cat > "$dir/template" << 'END'
{% for m in messages %}{{ m.role }}: {{ m.content }}{% if m.role == 'assistant' %}<|end_of_text|>{% endif %}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}
END

# ---- an adapter, its losses, and lines of JSON
is 0 lora "$model" -d "$dir/text.txt" -e "$dir/text.txt" -o "$dir/a" $few --steps 4 --rate 1e-2 --json
says "before, step 0: perplexity"
says "step 4 of 4: loss"
check "peft's config" grep -q '"target_modules": \[' "$dir/a/adapter_config.json"
check "its rank" grep -q '"r": 2' "$dir/a/adapter_config.json"
check "an event begins" grep -q '"event":"begin","rows":[0-9]*,"texts":1,' "$dir/out"
check "4 steps" [ "$(grep -c '"event":"step"' "$dir/out")" = 4 ]
check "2 evaluations" [ "$(grep -c '"event":"evaluation"' "$dir/out")" = 2 ]
perplexity() { sed -n "s/.*\"when\":\"$1\".*\"perplexity\":\([0-9.]*\).*/\1/p" "$dir/out"; }
before=$(perplexity before) after=$(perplexity after)
check "it learns: $before became $after" awk "BEGIN { exit !($after < $before) }"
check "4 losses" [ "$(grep -c '^[0-9]' "$dir/a/losses.csv")" = 4 ]
check "and the last evaluation" grep -qE '^4,.*,[0-9.]+$' "$dir/a/losses.csv"

# ---- the same bytes: more threads, AVX2, and what was stopped between
usual="-d $dir/text.txt $few --steps 4 --rate 1e-2 --dropout 0.1 --seed 7 -q"
is 0 lora "$model" $usual -o "$dir/one"
check "quiet" [ ! -s "$dir/err" -a ! -s "$dir/out" ]
is 0 lora "$model" $usual -o "$dir/more" -t 3 --isa avx2
same one/adapter_model.safetensors more/adapter_model.safetensors
check "another seed gives others" sh -c '! cmp -s "$1" "$2"' - "$dir/one/adapter_model.safetensors" \
	"$dir/a/adapter_model.safetensors"
./jittrain lora "$model" $usual -o "$dir/killed" --save-every 1 --no-cache < /dev/null > /dev/null 2>&1 &
killed=$!
tries=0
while [ ! -f "$dir/killed/state" ] && [ $tries -lt 600 ]; do sleep 0.02; tries=$((tries + 1)); done
kill -9 $killed 2> /dev/null
wait $killed 2> /dev/null
check "a state was there" [ -f "$dir/killed/state" ]
cp -r "$dir/killed" "$dir/half"
is 0 lora "$model" $usual -o "$dir/killed" --resume
same one/adapter_model.safetensors killed/adapter_model.safetensors
same one/losses.csv killed/losses.csv
is 0 lora "$model" $usual -o "$dir/killed" --resume
same one/adapter_model.safetensors killed/adapter_model.safetensors
refused "the state is of another training" 1 lora "$model" $usual -o "$dir/killed" --resume --batch 3
refused "the state is of another training" 1 lora "$model" $usual -o "$dir/killed" --resume --rate 2e-2

# ---- a model of random weights
mkdir "$dir/form"
cat > "$dir/form/config.json" << 'END'
{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": 64, "n_positions": 16, "n_embd": 64,
 "n_layer": 1, "n_head": 4, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05}
END
is 0 new "$dir/form" -o "$dir/new" --seed 5 --json
says "made: $dir/new, 55232 weights"
check "an event" grep -q '"event":"new","path":"[^"]*/new","weights":55232' "$dir/out"
is 0 new "$dir/form" -o "$dir/again" --seed 5 -q
same new/model.safetensors again/model.safetensors
same form/config.json again/config.json
is 0 new "$dir/form" -o "$dir/again" --seed 6 -q
check "another seed" sh -c '! cmp -s "$1" "$2"' - "$dir/new/model.safetensors" "$dir/again/model.safetensors"
refused "a model of which form? Give a folder with its config.json" 2 new -o "$dir/new"
refused "where to? Give --out DIR" 2 new "$dir/form"
refused "nothing/config.json: cannot be opened" 1 new "$dir/nothing" -o "$dir/new"

# ---- a disk that is full: what was stored is there as it was, and training goes on from it
limited() { (ulimit -f 16; run "$@"; exit $status); status=$?; }
for d in half more; do
	cp "$dir/$d/state" "$dir/state.before"
	limited lora "$model" $usual -o "$dir/$d" --resume --save-every 1
	check "a full disk is a failure" [ $status = 1 ]
	says "state: cannot be written: File too large"
	check "the state of $d is as it was" cmp "$dir/$d/state" "$dir/state.before"
	check "nothing is half written" [ ! -e "$dir/$d/state.new" -a ! -e "$dir/$d/adapter_model.safetensors.new" ]
done
same one/adapter_model.safetensors more/adapter_model.safetensors
check "no adapter of a part of the steps" [ ! -e "$dir/half/adapter_model.safetensors" ]
is 0 lora "$model" $usual -o "$dir/half" --resume
same one/adapter_model.safetensors half/adapter_model.safetensors
same one/losses.csv half/losses.csv
printf x >> "$dir/killed/state"
refused "the file is damaged" 1 lora "$model" $usual -o "$dir/killed" --resume
check "the adapter is still there" cmp "$dir/one/adapter_model.safetensors" "$dir/killed/adapter_model.safetensors"

# ---- from an adapter that is there: a step whose rate is next to nothing leaves its losses where they were
is 0 lora "$model" -d "$dir/text.txt" -o "$dir/next" $few --steps 1 --rate 1e-12 --init "$dir/a" \
	-e "$dir/text.txt" --json
check "it begins where the other ended: $(perplexity before), $after" [ "$(perplexity before)" = "$after" ]
refused "none.safetensors: cannot be opened" 1 lora "$model" -d "$dir/text.txt" -o "$dir/next" $few --init \
	"$dir/none.safetensors"

# ---- conversations, and GGUF
is 0 lora "$model" -d "$dir/chat.jsonl" --chat-template "$dir/template" -o "$dir/chat" -c 64 --rank 2 --targets \
	q_proj,k_proj --steps 1 --format gguf --no-plot -t 1
says "4 texts in 1 rows"
check "a GGUF adapter" [ "$(head -c 4 "$dir/chat/adapter.gguf")" = GGUF ]
check "of that kind" grep -qa adapter.lora.alpha "$dir/chat/adapter.gguf"
is 0 lora "$model" -d "$dir/chat.jsonl" --chat-template "$dir/template" -o "$dir/chat" -c 64 --rank 2 --targets v_proj \
	--epochs 2 -b 1 --apart --no-plot -t 1
says "4 texts in 4 rows"
says "step 8 of 8"

# ---- what is wrong
: > "$dir/empty.txt"
refused "empty.txt: the file is empty" 1 lora "$model" -d "$dir/empty.txt" -o "$dir/no" $few
: > "$dir/empty.jsonl"
refused "empty.jsonl: the file is empty" 1 lora "$model" -d "$dir/empty.jsonl" -o "$dir/no" $few
refused "none.txt: No such file" 1 lora "$model" -d "$dir/none.txt" -o "$dir/no" $few
refused "/dev/zero: is a device, expected a file of texts" 1 lora "$model" -d /dev/zero -o "$dir/no" $few
refused "the model's files have no chat template" 1 lora "$model" -d "$dir/chat.jsonl" -o "$dir/no" $few
echo '{"messages": [{"role": "user", "content": "Who?"}]}' > "$dir/user.jsonl"
refused "no turn of the assistant" 1 lora "$model" -d "$dir/user.jsonl" --chat-template "$dir/template" \
	-o "$dir/no" $few
echo '{"text": "' > "$dir/bad.jsonl"
refused "bad.jsonl:1" 1 lora "$model" -d "$dir/bad.jsonl" -o "$dir/no" $few
echo '{"words": 1}' > "$dir/bad.jsonl"
refused 'bad.jsonl:1: expected an object with "messages"' 1 lora "$model" -d "$dir/bad.jsonl" -o "$dir/no" $few
refused "a row has 4: give a longer --context" 1 lora "$model" -d "$dir/chat.jsonl" --chat-template "$dir/template" \
	-o "$dir/no" $few -c 4
refused "q_prj, expected q_proj" 1 lora "$model" -d "$dir/text.txt" -o "$dir/no" $few --targets q_prj
refused "a folder of safetensors" 1 full "$model" -d "$dir/text.txt" -o "$dir/no" $few
refused "the folder cannot be made" 1 lora "$model" -d "$dir/text.txt" -o /dev/full $few
refused "is to be learnt" 2 lora "$model" -o "$dir/no"
refused "where to" 2 lora "$model" -d "$dir/text.txt"
refused "which model" 2 lora -d "$dir/text.txt"
refused "what is to be done" 2 "$model"
check "nothing was made" [ ! -e "$dir/no/adapter_model.safetensors" ]
finish
