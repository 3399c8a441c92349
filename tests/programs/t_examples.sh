#!/bin/sh
# tests/programs/t_examples.sh - the programs of docs/examples, built against the shared library, on the model that
# comes with the sources.
. "${srcdir:-.}/tests/support/prelude.sh"
export XDG_CACHE_HOME="$dir"
run() { timeout 60 docs/examples/"$@" > "$dir/out" 2> "$dir/err" < "$dir/in"; status=$?; }
likeliest() { ./jitrun "$model" -q -t 1 --temp 0 --ignore-eos "$@" < /dev/null; }
: > "$dir/in"
for e in chat two_sessions own_sampling cancel; do
	is 2 $e
	is 1 $e "$dir/none.gguf" x y
	check "$e names the missing file: $(cat "$dir/err")" grep -q 'none\.gguf' "$dir/err"
done

printf 'one "quoted" \\ line\ntwo\n' > "$dir/in"
is 0 chat "$model" '{% for m in messages %}[{{ m.role }}|{{ m.content }}]{% endfor %}'
check "an answer to each line: $(cat "$dir/out")" [ "$(grep -c . "$dir/out")" -ge 2 ]
is 1 chat "$model"
check "a model without a template says so: $(cat "$dir/err")" grep -q 'no chat template' "$dir/err"

is 0 two_sessions "$model" "Once upon a time" "The king"
for p in "Once upon a time" "The king"; do
	printf '%s%s\n' "$p" "$(likeliest --prompt "$p" -n 24)" >> "$dir/want"
done
check "two sessions say what jitrun says: $(cat "$dir/out")" cmp -s "$dir/out" "$dir/want"

is 0 own_sampling "$model" "Once upon a time"
check "words of its own: $(cat "$dir/out")" [ "$(wc -w < "$dir/out")" -ge 12 ]

is 0 cancel "$model"
printf 'cancelled\nthe session is where it was\n%s\n' "$(likeliest --prompt "Once upon a time" -n 8)" > "$dir/want"
check "cancelled, and on: $(cat "$dir/out")" cmp -s "$dir/out" "$dir/want"
finish
