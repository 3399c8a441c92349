#!/bin/sh
# tests/programs/t_examples.sh - the programs of docs/examples, built against the shared library, on the model that
# comes with the sources.
. "${srcdir:-.}/tests/support/prelude.sh"
export XDG_CACHE_HOME="$dir"
run() { timeout 60 docs/examples/"$@" > "$dir/out" 2> "$dir/err" < "$dir/in"; status=$?; }
likeliest() { ./jitrun "$model" -q -t 1 --temp 0 --ignore-eos "$@" < /dev/null; }
: > "$dir/in"
for e in chat two_sessions own_sampling cancel save_restore embeddings; do
	is 2 $e
	[ $e = embeddings ] && set -- last x y || set -- x y
	is 1 $e "$dir/none.gguf" "$@"
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

is 0 save_restore "$model" "$dir/saved" "Once upon a time"
is 0 save_restore "$model" "$dir/saved"
printf 'restored 5 tokens\n%s\n' "$(likeliest --prompt "Once upon a time" -n 24)" > "$dir/want"
check "restored, it says what jitrun says: $(cat "$dir/out")" cmp -s "$dir/out" "$dir/want"
printf damaged > "$dir/saved"
is 1 save_restore "$model" "$dir/saved"
check "a damaged file is named: $(cat "$dir/err")" grep -q "$dir/saved" "$dir/err"

is 2 embeddings "$model" median a b
for pooling in last mean; do
	is 0 embeddings "$model" $pooling "The king went into the wood." "The queen went into the forest." \
		"The king went into the wood." "Bread, butter and cheese"
	check "$pooling: alike, the same, and not alike: $(cat "$dir/out")" awk '
		{ c[NR] = $1 } END { exit !(NR == 3 && c[2] == 1 && c[1] > c[3] && c[1] < 1 && c[3] < 1) }' "$dir/out"
done

# Graphs: the same numbers on every device, a loss that falls, and derivatives beside differences.
is 0 graph_train cpu
cp "$dir/out" "$dir/want"
check "the loss falls: $(cat "$dir/out")" awk '{ l[NR] = $NF } END { exit !(NR == 5 && l[5] < l[1] / 4 && l[5] > 0) }' \
	"$dir/out"
is 0 graph_train sim:sm90
check "a card has the same losses: $(cat "$dir/out")" cmp -s "$dir/out" "$dir/want"
is 1 graph_train nothing
check "a device that is none: $(cat "$dir/err")" grep -q '"nothing" is unknown' "$dir/err"
is 0 graph_kernel
check "a user's gradient is near the difference quotient: $(cat "$dir/out")" awk '
	{ d = $6 - $9; if (d < -1e-5 || d > 1e-5) bad = 1 } END { exit bad || NR != 5 }' "$dir/out"
is 2 evolve_memory
is 0 evolve_memory "$top/docs/examples/memory_steps.jk" cpu 0.2 8 3 300
cp "$dir/out" "$dir/want"
f=$(./jitk run "$top/docs/examples/working_memory.jk" -c count=1 -c n=6 -i x=raw:evolved.x | sed -n 's/^f .*: //p')
check "steps of a network have the value that the whole has: $f, $(tail -2 "$dir/want")" \
	grep -q "300 neurons: $f after" "$dir/want"
check "rates of each millisecond" [ "$(awk 'NF == 9' evolved.txt | wc -l)" = 600 ]
rm -f evolved.x evolved.txt
is 1 evolve_memory "$top/docs/examples/memory_steps.jk" nothing
check "a device that is none: $(cat "$dir/err")" grep -q '"nothing" is unknown' "$dir/err"
is 2 graph_onnx
is 1 graph_onnx "$dir/none.onnx"
check "the missing file is named: $(cat "$dir/err")" grep -q 'none\.onnx' "$dir/err"
onnx=${JITRUN_SHARED:-$top/../shared}/data/onnx/models/perceptron/model-script.onnx
if [ -e "$onnx" ]; then
	is 0 graph_onnx "$onnx"
	cp "$dir/out" "$dir/want"
	check "an output is printed: $(cat "$dir/out")" grep -qF '[9,5] 0.' "$dir/out"
	is 0 graph_onnx "$onnx" "" ref
	check "and the same one by interpreted kernels" cmp -s "$dir/out" "$dir/want"
else
	echo "# skipped: there is no $onnx"
fi
finish
