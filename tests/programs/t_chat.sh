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
printf 'a \\\nb\\\nc\n' > "$dir/in"
talk -q --show-prompt
check "lines joined: $(cat "$dir/out")" grep -q '^\[user|a$' "$dir/out"
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
