#!/bin/sh
# tests/programs/t_chat.sh - conversations of the jitrun program, with a chat template given in a file.
. "${srcdir:-.}/tests/support/prelude.sh"
cat > "$dir/t.jinja" <<'END'
{% for m in messages %}[{{ m.role }}|{{ m.content }}]{% endfor %}{% if add_generation_prompt %}[answer|{% endif %}
END
talk() {
	timeout 60 ./jitrun "$model" --no-cache --chat --template "$dir/t.jinja" -n 12 --temp 0 --ignore-eos "$@" \
		< "$dir/in" > "$dir/out" 2> "$dir/err"
	status=$?
}

printf 'one\n/save %s/a.json\ntwo\n/stats\n/exit\nnever\n' "$dir" > "$dir/in"
talk --show-prompt --system 'be brief' -q
check "a conversation ends well ($status): $(cat "$dir/err")" [ "$status" = 0 ]
check "the first turn: $(head -c 200 "$dir/out")" grep -qF '[system|be brief][user|one][answer|' "$dir/out"
check "the second holds the first answer" grep -qE '^\[system\|be brief\]\[user\|one\]\[assistant\|' "$dir/out"
check "... and its own message" grep -qF '[user|two][answer|' "$dir/out"
check "nothing behind /exit is read" sh -c "! grep -q never '$dir/out'"
check "saved: $(tr -d '\n ' < "$dir/a.json")" grep -q '"content": "be brief"' "$dir/a.json"
check "three messages by then" [ "$(grep -c '"role"' "$dir/a.json")" = 3 ]
# Reasoning is no part of the answer that is kept
printf '%s' '{% for m in messages %}[{{ m.role }}|{{ m.content }}]{% endfor %}[answer|<think>' > "$dir/think.jinja"
printf 'one\n/save %s/r.json\n' "$dir" > "$dir/in"
talk -q --template "$dir/think.jinja" --think hide
check "reasoning is hidden: $(cat "$dir/out")" [ "$(tr -d '\n' < "$dir/out")" = "" ]
check "the answer is saved without it" grep -q '"content": ""' "$dir/r.json"
check "and it is saved apart" grep -q '"reasoning_content": "..*"' "$dir/r.json"
# Reasoning that has a budget is closed, and the answer follows
printf 'one\n/save %s/b.json\n' "$dir" > "$dir/in"
talk -q --template "$dir/think.jinja" --think hide --reasoning-budget 3 --reasoning-budget-message ' Enough.' -n 40
check "the answer follows: $(cat "$dir/out")" [ "$(tr -d '\n' < "$dir/out")" != "" ]
check "the reasoning is closed: $(cat "$dir/b.json")" grep -q '"reasoning_content": ".* Enough[.]</think>' "$dir/b.json"
# A form begins behind the reasoning, unless it describes that as well
formed() {
	printf 'one\n/save %s/f.json\n' "$dir" > "$dir/in"
	talk -q --template "$dir/$1.jinja" -n 60 --reasoning-budget 3 "$2" "$3"
	tr -d '\n' < "$dir/f.json"
}
form='{"type": "object", "properties": {"x": {"const": 7}}, "required": ["x"], "additionalProperties": false}'
check "a schema: $(formed think --json-schema "$form")" grep -q '"content": "{[^{]*x[^{]*7[^{]*}' "$dir/f.json"
check "... behind reasoning: $(cat "$dir/f.json")" grep -q '"reasoning_content": "[^{]*</think>' "$dir/f.json"
check "an expression: $(formed think --regex 'yes|no')" grep -qE '"content": "(yes|no)"' "$dir/f.json"
check "... behind reasoning: $(cat "$dir/f.json")" grep -q '"reasoning_content": "[^{]*</think>' "$dir/f.json"
check "rules with the mark: $(formed think --grammar 'root ::= "a</think>b"')" grep -q '"content": "b"' "$dir/f.json"
check "no reasoning: $(formed t --regex 'yes|no')" grep -qE '"content": "(yes|no)"' "$dir/f.json"
check "... at all: $(cat "$dir/f.json")" sh -c "! grep -q reasoning_content '$dir/f.json'"
# A template by its name, of a directory that has several
shared=${JITRUN_SHARED:-$top/../shared}/models/tale-llama
if [ -r "$shared/tokenizer.json" ]; then
	mkdir "$dir/named"
	cp "$shared/config.json" "$shared/model.safetensors" "$shared/tokenizer.json" "$dir/named"
	printf '%s' '{"chat_template": [{"name": "default", "template": "[usual]"},' \
		' {"name": "rag", "template": "[rag]{{ messages[0].content }}"}]}' > "$dir/named/tokenizer_config.json"
	named() {
		timeout 60 ./jitrun "$dir/named" --no-cache -q --single-turn -p hi -n 1 --temp 0 --show-prompt "$@" \
			< /dev/null > "$dir/out" 2> "$dir/err"
	}
	named
	check "the usual template" grep -qF '[usual]' "$dir/out"
	./jitrun info "$dir/named" > "$dir/out" 2> "$dir/err"
	check "info has their names: $(cat "$dir/out")" grep -q '^chat template  *yes; --template takes rag$' "$dir/out"
	named --template rag
	check "a template by its name: $(cat "$dir/err")" grep -qF '[rag]hi' "$dir/out"
	named --template none
	check "no such name: $(cat "$dir/err")" grep -qF \
		'no chat template named "none"; they have: default, rag.' "$dir/err"
fi
# What is the same as before is not computed again: the second prompt is longer than what it fed
fed=$(sed -n 's/^prompt *\([0-9]*\) tokens.*/\1/p' "$dir/err" | tail -1)
printf 'one\n/regen\n/regen\n/stats\n' > "$dir/in"
talk -q
again=$(sed -n 's/^prompt *\([0-9]*\) tokens.*/\1/p' "$dir/err" | tail -1)
printf 'one\n/stats\n' > "$dir/in"
talk -q
once=$(sed -n 's/^prompt *\([0-9]*\) tokens.*/\1/p' "$dir/err" | tail -1)
check "asking again feeds one token each ($once, then $again; two turns $fed)" [ "$again" = $((once + 2)) ]

# The same answers whatever was kept: a conversation read back says what the whole one said
printf 'one\ntwo\n' > "$dir/in"
talk -q && tail -n 2 "$dir/out" > "$dir/whole"
printf 'one\n/save %s/b.json\n' "$dir" > "$dir/in"
talk -q
printf '/load %s/b.json\ntwo\n' "$dir" > "$dir/in"
talk -q
check "a conversation read back goes on the same: $(cat "$dir/out")" \
	[ "$(tail -n 1 "$dir/out")" = "$(tail -n 1 "$dir/whole")" ]
check "said: $(cat "$dir/err")" grep -q '2 messages loaded' "$dir/err"
printf '/system Be brief\n/save %s/c.json\n/load %s/c.json\n' "$dir" "$dir" > "$dir/in"
talk -q
check "one message is one: $(cat "$dir/err")" grep -q '1 message loaded' "$dir/err"

# Messages over several lines, commands that are none, files that are not what they should be
printf 'a \\\nb\\ \t\nc\n' > "$dir/in" # with blanks that nobody sees
talk -q --show-prompt
check "lines joined: $(cat "$dir/out")" [ "$(head -n 3 "$dir/out" | cut -c 1-9 | tr '\n' ,)" = '[user|a,b,c][answer,' ]
printf '[1, 2]' > "$dir/bad.json"
printf '/nothing\n/load\n/load %s/none\n/load %s/bad.json\n/load %s/t.jinja\n/save\n/save %s/none/x\n/regen\n/help\n' \
	"$dir" "$dir" "$dir" "$dir" > "$dir/in"
talk -q
check "all of it is said and nothing ends ($status)" [ "$status" = 0 ]
for sentence in '/nothing is no command' 'Which file? /load' 'No such file' 'a message has no role' \
	't.jinja was not loaded' \
	'Which file? /save' 'none/x could not be written' 'no message to answer' '/regen           answer'; do
	check "said: $sentence" grep -qF "$sentence" "$dir/err"
done
printf '/system you are a cat\nhi\n/clear\nho\n/system\nhe\n' > "$dir/in"
talk -q --show-prompt
check "the system message is set: $(cat "$dir/out")" grep -qF '[system|you are a cat][user|hi]' "$dir/out"
check "... stays when the rest is forgotten" grep -qF '[system|you are a cat][user|ho]' "$dir/out"
check "... and goes" grep -q '^\[user|he\]' "$dir/out"

# What was likely meant, and nothing where nothing is near
printf '/hlep\n/sav x\n/QUIT\n/xyzzy\n/show lisence\n/set tmep 1\n/set parameter top_j 1\n/set nowarp\n' > "$dir/in"
talk -q
for sentence in '/hlep is no command (did you mean /help?)' '/sav is no command (did you mean /save?)' \
	'/QUIT is no command (did you mean /quit?)' '/xyzzy is no command. ' \
	'"lisence" cannot be shown (did you mean /show license?)' 'no setting "tmep" (did you mean temp?)' \
	'no parameter "top_j" (did you mean top_k?)' 'no setting "nowarp" (did you mean nowrap?)'; do
	check "said: $sentence: $(cat "$dir/err")" grep -qF "$sentence" "$dir/err"
done

# Every parameter by its name here and in the library, and by that of ollama; what is set is what is shown
printf '%b\n' '/set temp 0.5' '/set parameter top_k 12' '/set --top-p=0.25' '/set MIN_P = 0.125' \
	'/set\ttypical 0.75\t' \
	'/set top_n_sigma 3' '/set repeat_penalty 1.5' '/set presence_penalty 0.25' \
	'/set frequency-penalty 2' '/set dry_multiplier 0.5' '/set dynatemp_range 0.375' \
	'/set xtc_probability 0.0625' '/set adaptive_target 0.875' \
	'/set seed 7' '/set samplers top_k;temperature' '/set num_predict 5' '/set stop "the end"' \
	'/show parameters' > "$dir/in"
talk -q
check "all of it is told: $(cat "$dir/err")" [ "$(grep -c ' is ' "$dir/err")" = 17 ]
tr -s '\n ' '  ' < "$dir/err" > "$dir/told"
for part in 'temp 0.5, top-k 12, top-p 0.25, min-p 0.125, typical 0.75, top-nsigma 3, repeat-penalty 1.5' \
	'presence-penalty 0.25, frequency-penalty 2, dry-multiplier 0.5, dynatemp-range 0.375' \
	'xtc-probability 0.0625, adaptive-target 0.875, seed 7' 'samplers top_k;temperature' 'n_predict 5' \
	'stop the end'; do
	check "shown: $part: $(cat "$dir/told")" grep -qF "$part" "$dir/told"
done
printf '%s\n' '/set temp hot' '/set temp' '/set top_p 2' '/set seed 18446744073709551615' \
	'/set samplers none' '/set num_ctx 9' '/set num_predict x' '/set num_predict -2' '/set logit_bias 1+1' \
	'/set n_logit_bias 99' '/set wrap x' '/set think x' '/set format x' '/set seed -2' '/set parameter' \
	'/show parameters' > "$dir/in"
talk -q -n 9
for sentence in 'temperature: "hot" is not' 'Which value? /set parameter temp VALUE' 'top_p' 'not an integer in -1..' \
	'"-2" is not an integer in -1..' '"none" is none of' '--context gives another' 'n_predict is a number' \
	'no setting "logit_bias"' \
	'no setting "n_logit_bias"' 'wrap is on or off, not "x"' 'think is on, off' 'format is json or none' \
	'Which one? /set parameter'; do
	check "said: $sentence: $(cat "$dir/err")" grep -qF -e "$sentence" "$dir/err"
done
check "nothing is changed: $(cat "$dir/err")" \
	grep -qE 'sampling +temp 0, top-k 40, top-p 0.95, min-p 0.05, seed' "$dir/err"
check "... nor the length" grep -qE 'n_predict +9$' "$dir/err"

# The same answers as those of options; a seed that is set begins anew
printf 'one\n' > "$dir/in"
talk -q --temp 1.5 --top-k 5 --seed 11 -n 20
cp "$dir/out" "$dir/options"
printf '/set temp 1.5\n/set top_k 5\n/set seed 11\n/set num_predict 20\none\n' > "$dir/in"
talk -q
check "set as by options: $(cat "$dir/out")" cmp -s "$dir/out" "$dir/options"
first=$(tr -d '\n' < "$dir/out" | head -c 3)
printf '/set temp 1.5\n/set top_k 5\n/set seed 11\n/set num_predict 20\n/set stop "%s"\none\n' "$first" \
	> "$dir/in"
talk -q
check "ended before a text: $(cat "$dir/out")" [ "$(tr -d '\n' < "$dir/out")" = "" ]

# The system message, in several lines as well; the conversation goes on
printf '%s\n' 'one' '/set system "be kind"' 'two' '/show system' '/set system """' 'a' ' b' '"""' 'three' \
	'/set system' '/show system' 'four' '/system """c' 'd"""' 'five' > "$dir/in"
talk -q --show-prompt -n 1
check "set, and the first message is there: $(cat "$dir/out")" \
	grep -qF '[system|be kind][user|one][assistant|' "$dir/out"
check "shown: $(cat "$dir/err")" grep -qx 'be kind' "$dir/err"
check "two lines: $(cat "$dir/out")" grep -qx '\[system|a' "$dir/out"
check "... the second: $(cat "$dir/out")" grep -qx ' b\]\[user|one\].*' "$dir/out"
check "taken away: $(cat "$dir/out")" grep -q '^\[user|one\].*\[user|four\]' "$dir/out"
check "... said: $(cat "$dir/err")" grep -qF 'There is no system message. /set system' "$dir/err"
check "anew, in two lines" grep -qx '\[system|c' "$dir/out"
check "... the second: $(cat "$dir/out")" grep -qx 'd\]\[user|five\].*' "$dir/out"

# Reasoning is switched in the template; a template that begins it all the same is told to end
printf '%s' '{{ messages[0].content }}|{{ enable_thinking }}|{{ thinking }}|{{ reasoning_effort }}|<think>' \
	> "$dir/think.jinja"
printf '/set think\n1\n/set nothink\n1\n/set think low\n1\n/set think hide\n1\n/show parameters\n' > "$dir/in"
talk -q --show-prompt --template "$dir/think.jinja" -n 3
check "on: $(cat "$dir/out")" grep -q '1|[Tt]rue|[Tt]rue||<think>' "$dir/out"
check "off" grep -q '1|[Ff]alse|[Ff]alse||<think>' "$dir/out"
check "a little" grep -q '1|[Tt]rue|[Tt]rue|low|<think>..*' "$dir/out"
check "hidden: $(cat "$dir/out")" [ "$(grep -c 'low|<think>$' "$dir/out")" = 1 ]
check "shown: $(cat "$dir/err")" grep -qE '^think +low' "$dir/err"
printf '/set nothink\n/set think hide\none\n/save %s/n.json\n' "$dir" > "$dir/in"
talk -q --template "$dir/think.jinja" -n 6
check "the answer is no reasoning: $(cat "$dir/n.json")" sh -c "! grep -q reasoning_content '$dir/n.json'"
check "... and is shown: $(cat "$dir/out")" [ "$(tr -d '\n ' < "$dir/out")" != "" ]
printf '%s\n' '/set nowrap' '/set nowrap off' '/set wordwrap OFF' '/set nothink yes' '/set nothink no' \
	'/set think LOW' \
	'/set nohistory' '/set quiet' > "$dir/in"
talk -q --template "$dir/think.jinja"
check "each is said: $(cat "$dir/err")" [ "$(tr '\n' ';' < "$dir/err" | sed 's/[^;]*: //g')" = \
	'off.;on.;off.;off.;on.;low.;off.;off.;' ]
printf '/set think on\n' > "$dir/in"
talk -q
check "a template without it: $(cat "$dir/err")" grep -q 'has no switch for it' "$dir/err"

# JSON, and free text again; statistics behind answers; what the model is
printf '/set format json\none\n/set noformat\none\n/set verbose\none\n/set quiet\none\n' > "$dir/in"
talk -q
check "JSON: $(cat "$dir/out")" [ "$(grep -c '^ *{' "$dir/out")" = 1 ]
check "one summary: $(cat "$dir/err")" [ "$(grep -c '^stopped: ' "$dir/err")" = 1 ]
printf '/show\n/show info\n/show template\n/show license\n/show modelfile\n/set\n' > "$dir/in"
talk -q
for sentence in '/show license ' 'qwen3 6 layers' '1024 tokens, of which 0 are used' '{% for m in messages %}' \
	'cc0-1.0' 'a Modelfile says' 'adaptive_decay' '/set think'; do
	check "said: $sentence: $(cat "$dir/err")" grep -qF "$sentence" "$dir/err"
done

# One turn; a template that refuses, one that is wrong; a context that is full
: > "$dir/in"
talk --single-turn --prompt hello -q --show-prompt
check "one turn ($status): $(cat "$dir/out")" grep -qF '[user|hello][answer|' "$dir/out"
printf '{%% if x %%}' > "$dir/wrong.jinja"
printf 'hi\n' > "$dir/in"
talk -q --template "$dir/wrong.jinja"
check "a template with a mistake is told by its line: $(cat "$dir/err")" grep -q 'line 1' "$dir/err"
printf '{{ raise_exception("no, thank you") }}' > "$dir/no.jinja"
printf 'hi\n' > "$dir/in"
talk -q --template "$dir/no.jinja"
check "a template's refusal: $(cat "$dir/err")" grep -q 'no, thank you' "$dir/err"
printf 'hi\n' > "$dir/in"
talk -q -c 8 --system 'a long, long, long, long, long, long, long system message'
check "more than the context holds: $(cat "$dir/err")" grep -q 'the context holds 8' "$dir/err"
run() { timeout 60 ./jitrun --no-cache -q "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
refused 'have no chat template: give --prompt TEXT' 2 "$model" --chat
refused 'a conversation goes without' 2 "$model" --chat --json
refused 'a conversation goes without' 2 "$model" --chat --file x
refused "$dir/none: " 1 "$model" --chat --template "$dir/none"

# What is wrong with a template is told before the weights are read: here there are none
head -c 400000 "$model" > "$dir/cut.gguf"
refused 'have no chat template: give --prompt TEXT' 2 "$dir/cut.gguf" --chat
refused "$dir/none: " 1 "$dir/cut.gguf" --chat --template "$dir/none"
refused 'no chat template named "none"; they have: none' 1 "$dir/cut.gguf" --chat --template none
refused 'the chat template given, line 1' 1 "$dir/cut.gguf" --chat --template "$dir/wrong.jinja"
refused 'ends at byte' 1 "$dir/cut.gguf" --chat --template "$dir/t.jinja"

finish
