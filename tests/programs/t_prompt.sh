#!/bin/sh
# tests/programs/t_prompt.sh - prompts of the jitrun program: where they end, what of a context they may fill, and that
# their text is text.
. "${srcdir:-.}/tests/support/prelude.sh"
run() { timeout 60 ./jitrun --no-cache -q --temp 0 "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
run_chat() {
	timeout 60 ./jitrun --no-cache -q --temp 0 "$model" --chat --template "$dir/marked.jinja" -n 1 \
		> "$dir/out" 2> "$dir/err"
}
count() { wc -w < "$dir/out" | tr -d ' '; }

# The last position of a context: a prompt of so many tokens gives its next token, one more is refused before anything
# is computed
ids() { seq -s, 10 $((9 + $1)); }
for context in 5 16 17 33; do
	for speculate in off 4 16; do
		for less in 3 1 0; do
			run "$model" --prompt-ids "$(ids $((context - less)))" -c "$context" -n -1 --ignore-eos \
				--print-ids --speculate $speculate
			check "context $context, prompt less $less, --speculate $speculate: $((less + 1)) tokens" \
				[ "$status $(count)" = "0 $((less + 1))" ]
			for n in 0 1 $less $((less + 1)) $((less + 5)); do
				run "$model" --prompt-ids "$(ids $((context - less)))" -c "$context" -n $n \
					--ignore-eos --print-ids --speculate $speculate
				want=$((n < less + 1 ? n : less + 1))
				check "context $context, prompt less $less, -n $n: $want tokens (got $(count))" \
					[ "$status $(count)" = "0 $want" ]
			done
			[ -n "${JITRUN_TEST_QUICK:-}" ] && [ "$context" != 17 ] && break
		done
		more=$((context + 1))
		refused "the prompt has $more tokens and the context holds $context; give a shorter one, or a larger" \
			1 "$model" --prompt-ids "$(ids $more)" -c "$context" --speculate $speculate
	done
done
run "$model" --prompt-ids "$(ids 30)" -c 30 -n 5 --json
check "a full context is said: $(cat "$dir/out")" grep -q '"stopped":"context full"' "$dir/out"
# so many tokens that to compute them first would be noticed
yes 'Once upon a time there was a little cat who sat on a mat.' | head -c 400000 > "$dir/long"
refused "tokens and the context holds 4000; give a shorter one, or a larger context with -c" 1 "$model" --file \
	"$dir/long" -c 4000
refused "tokens and the context holds 40; give a shorter one" 1 "$model" -c 40 --prompt "$(head -c 4000 "$dir/long")"

# A file that never ends does
refused "/dev/zero: the text goes on after 20480 bytes" 1 "$model" --file /dev/zero -c 20
refused "/dev/zero: the text goes on after " 1 "$model" --file /dev/zero
yes | timeout 60 ./jitrun "$model" --no-cache -q -c 20 > "$dir/out" 2> "$dir/err"; status=$?
check "standard input that never ends (status $status): $(cat "$dir/err")" grep -q \
	'standard input: the text goes on after 20480 bytes' "$dir/err"
check "its status is 1" [ "$status" = 1 ]
refused "cannot be read: Is a directory" 1 "$model" --file "$dir"
refused "none: cannot be read: No such file" 1 "$model" --file "$dir/none"
head -c 20480 /dev/zero | tr '\0' 'a' > "$dir/most"
refused "tokens and the context holds 20;" 1 "$model" --file "$dir/most" -c 20

# Nothing on standard input is told, and is no failure
timeout 60 ./jitrun "$model" --no-cache -n 1 > "$dir/out" 2> "$dir/err" < /dev/null; status=$?
check "an empty standard input is told ($status): $(cat "$dir/err")" grep -q \
	'^jitrun: standard input is empty, so the model begins a text of its own; --prompt TEXT' "$dir/err"
timeout 60 ./jitrun "$model" --no-cache -n 1 --prompt '' > "$dir/out" 2> "$dir/err" < /dev/null
check "an empty prompt is what was asked for: $(cat "$dir/err")" sh -c '! grep -q "is empty" "$1"' - "$dir/err"

# Text is text, unless asked otherwise
prompt_ids() { run "$model" "$@" -n 0 --json; sed 's/.*"prompt_ids":\[\([^]]*\)\].*/\1/' "$dir/out"; }
end='<|end_of_text|>'
plain=$(prompt_ids --prompt "$end") special=$(prompt_ids --prompt "$end" --special)
check "the name of a control token is many tokens: $plain" [ "$(echo "$plain" | tr , '\n' | wc -l)" -gt 3 ]
check "--special: it is that one, behind the first: $special" [ "$(echo "$special" | tr , '\n' | wc -l)" = 2 ]
check "the model's own first token stays: $plain" [ "${plain%%,*}" = "${special%%,*}" ]
begin='<|begin_of_text|>'
check "--special: a text that brings its first token along gets no second one" [ \
	"$(prompt_ids --prompt "${begin}Once" --special)" = "$(prompt_ids --prompt Once --special)" ]
check "--special: two that are written stay" [ \
	"$(prompt_ids --prompt "$begin${begin}Once" --special)" = "0,$(prompt_ids --prompt Once --special)" ]
check "without it they are text" [ "$(prompt_ids --prompt "${begin}Once" | tr , '\n' | wc -l)" -gt 5 ]
printf '%s' "$end" > "$dir/end"
check "from a file too" [ "$(prompt_ids --file "$dir/end")" = "$plain" ]
check "from a file, --special" [ "$(prompt_ids --file "$dir/end" --special)" = "$special" ]
for i in 1 2 3 4 5 6 7 8 9 10; do printf '%s one two' "$end"; done > "$dir/text"
run "$model" --perplexity "$dir/text" -c 8 --json
tokens=$(sed 's/.*"tokens":\([0-9]*\).*/\1/' "$dir/out")
run "$model" --perplexity "$dir/text" -c 8 --json --special
check "--perplexity reads text as text ($tokens tokens), with --special otherwise" [ "$tokens" -gt \
	"$(sed 's/.*"tokens":\([0-9]*\).*/\1/' "$dir/out")" ]

printf '{%% for m in messages %%}<{{ m.content }}>{%% endfor %%}' > "$dir/marked.jinja"
# A mark of the byte order is no part of a text, and other codings are refused, wherever a file comes from
mark='\357\273\277'
printf "${mark}Once" > "$dir/marked"
check "--file: the mark is no part" [ "$(prompt_ids --file "$dir/marked")" = "$(prompt_ids --prompt Once)" ]
check "standard input: nor there" [ "$(timeout 60 ./jitrun "$model" --no-cache -q -n 0 --json < "$dir/marked" |
	sed 's/.*"prompt_ids":\[\([^]]*\)\].*/\1/')" = "$(prompt_ids --prompt Once)" ]
printf '\377\376O\0n\0' > "$dir/utf16le"
printf '\376\377\0O\0n' > "$dir/utf16be"
printf 'O\0n\0c\0e\0' > "$dir/utf16plain"
printf '\377\376\0\0O\0\0\0' > "$dir/utf32le"
printf '\0\0\376\377\0\0\0O' > "$dir/utf32be"
for name in utf16le utf16be utf16plain utf32le utf32be; do
	coding=$(echo "$name" | sed 's/utf\(..\).*/UTF-\1/')
	for option in --file --perplexity --template --grammar-file --json-schema-file; do
		more='--prompt x'
		case $option in --file | --perplexity) more= ;; --template) more="$more --single-turn" ;; esac
		refused "$name: is a text in $coding, expected UTF-8" 1 "$model" $option "$dir/$name" $more
	done
	printf '/load %s\n' "$dir/$name" | run_chat
	check "/load $name: $(cat "$dir/err")" grep -q "$name: is a text in $coding, expected UTF-8" "$dir/err"
done
printf "${mark}root ::= \"ab\"" > "$dir/marked.gbnf"
run "$model" --prompt x --grammar-file "$dir/marked.gbnf"
check "--grammar-file: $(cat "$dir/out" "$dir/err")" [ "$(cat "$dir/out")" = ab ]
printf "${mark}{\"const\": 5}" > "$dir/marked.json"
run "$model" --prompt x --json-schema-file "$dir/marked.json"
check "--json-schema-file: $(cat "$dir/out" "$dir/err")" grep -q 5 "$dir/out"
printf "${mark}{%% for m in messages %%}<{{ m.content }}>{%% endfor %%}" > "$dir/marked.jinja"
run "$model" --prompt x --single-turn --template "$dir/marked.jinja" --show-prompt -n 1
check "--template: $(cat "$dir/out")" grep -q '^<x>' "$dir/out"
printf "${mark}[{\"role\": \"user\", \"content\": \"hello\"}]" > "$dir/saved"
printf '/load %s\n' "$dir/saved" | run_chat
check "/load: $(cat "$dir/err")" grep -q '^1 message loaded' "$dir/err"
printf "${mark}one\\ntwo\\n/save %s\\n" "$dir/talk.json" | run_chat
check "lines of a conversation: $(cat "$dir/talk.json")" grep -q '"content": "one"' "$dir/talk.json"

finish
