#!/bin/sh
# tests/programs/t_sampling.sh - the options of the jitrun program that say how tokens are chosen and where a text ends.
. "${srcdir:-.}/tests/support/prelude.sh"
run() {
	timeout 60 ./jitrun "$model" --no-cache -q -t 1 --tune off --prompt "Once upon a time" "$@" \
		> "$dir/out" 2> "$dir/err" < /dev/null
	status=$?
}
text() { is 0 -n 24 "$@"; cp "$dir/out" "$dir/text"; }
same() { check "$1: the same text" cmp -s "$dir/text" "$dir/$2"; }
other() { check "$1: another text" sh -c "! cmp -s '$dir/text' '$dir/$2'"; }

# ---- every sampler does something, and the same with guesses and another number of threads
text --temp 0.8 --seed 3
cp "$dir/text" "$dir/plain"
for o in "--typical 0.5" "--top-nsigma 0.7" "--xtc-probability 1" "--repeat-penalty 1.5" "--presence-penalty 3" \
	"--frequency-penalty 3" "--dry-multiplier 5 --dry-allowed-length 1" "--dynatemp-range 0.7" \
	"--mirostat 1 --mirostat-ent 2" \
	"--mirostat 2 --mirostat-ent 2" "--adaptive-target 0.2" "--logit-bias 300+20" "--samplers top_k --top-k 2"; do
	text --temp 0.8 --seed 3 $o
	other "$o" plain
	cp "$dir/text" "$dir/want"
	[ -n "${JITRUN_TEST_QUICK:-}" ] && continue
	text --temp 0.8 --seed 3 $o --speculate 8 -t 2
	same "$o --speculate 8" want
done
text --temp 0.8 --seed 3 --typical 1 --xtc-threshold 0.3 --dry-base 2 --dry-sequence-breaker none --mirostat-lr 0.5 \
	--adaptive-decay 0.5 --dynatemp-exp 2 --presence-penalty 0
same "options of samplers that are off" plain
text --temp 0.8 --seed 3 --top-k 30 --top-p 0.8 --samplers "top_k;top_p;temperature"
cp "$dir/text" "$dir/want"
text --temp 0.8 --seed 3 --top-k 30 --top-p 0.8 --samplers "penalties;top_k;top_p;temperature"
same "samplers that are off may have a place" want

# ---- what stands for options that are not given
text --seed 3
cp "$dir/text" "$dir/usual"
text --seed 3 --temp 0.8 --top-k 40 --top-p 0.95 --min-p 0.05
same "the usual options are these" usual
text --seed 4
other "another seed" usual
text --temp 0 --seed 3
other "--temp 0" usual
cp "$dir/text" "$dir/likeliest"
text --temp 0
same "--temp 0 needs no seed" likeliest
told() {
	timeout 60 ./jitrun "$model" --verbose --no-cache -t 1 --tune off --prompt Once -n 40 "$@" \
		2>&1 > "$dir/out" < /dev/null |
		sed -n 's/^sampling //p'
}
check "the summary tells them: $(told --seed 5)" [ "$(told --seed 5 -n 1)" = \
	"temp 0.8, top-k 40, top-p 0.95, min-p 0.05, seed 5 (defaults: jitrun's)" ]
check "and those that are given" [ "$(told --temp 0.35 --top-k 0 --min-p 0 --repeat-penalty 1.2 -s 7 -n 1)" = \
	"temp 0.35, top-p 0.95, repeat-penalty 1.2, seed 7 (defaults: jitrun's)" ]
seed=$(told | sed 's/.*seed \([0-9]*\) .*/\1/')
cp "$dir/out" "$dir/random"
check "a random seed is told, and gives the text again: $seed" [ "$(told --seed "$seed" | wc -l)" = 1 ]
check "the same text" cmp -s "$dir/out" "$dir/random"
check "-1 is a random one, too" [ "$(told --seed -1 -n 1)" != "$(told --seed -1 -n 1)" ]
is 0 -n 1 --json --seed 9
members='"temperature":0.8,"top_k":40,"top_p":0.95,"min_p":0.05,"repeat_penalty":1.0,"seed":9,"defaults":"jitrun"'
check "the JSON line has them: $(cat "$dir/out")" grep -qF "\"sampling\":{$members}" "$dir/out"
refused '--seed: "-2" is not a whole number from -1' 2 --seed -2

# ---- a model that has its own
tiny=$dir/tiny
mkdir "$tiny"
tale=${JITRUN_SHARED:-$top/../shared}/models/tale-llama
if cp "$tale"/*.json "$tale"/*.safetensors "$tiny" 2> /dev/null; then
	echo '{"temperature": 0.5, "top_p": 0.75, "sequence": "top_k;top_p;temperature"}' \
		> "$tiny/generation_config.json"
	model=$tiny
	check "the model's own: $(told -n 1)" [ "$(told -s 1 -n 1)" = \
		"temp 0.5, top-k 40, top-p 0.75, seed 1 (defaults: the model's own)" ]
	check "an explicit option wins" [ "$(told -s 1 -n 1 --temp 1.5 --top-p 1)" = \
		"temp 1.5, top-k 40, seed 1 (defaults: the model's own)" ]
	echo '{"sequence": "top_k;infill"}' > "$tiny/generation_config.json"
	refused "the model's own samplers: \"infill\" is none of" 1
	is 0 -n 1 --samplers top_k
	echo '{"top_k": 20 "top_p": 0.9}' > "$tiny/generation_config.json"
	refused "generation_config.json: is not valid JSON in line 1, byte 14" 1
	model=$top/models/tale-q8_0.gguf
fi

# ---- where a text ends
text --temp 0
cp "$dir/text" "$dir/whole"
for stop in king daughter "ing wh" "a" " "; do
	text --temp 0 -r "never there" --stop "$stop"
	whole=$(cat "$dir/whole"; echo .)
	printf '%s' "${whole%%"$stop"*}" > "$dir/want"
	same "--stop '$stop'" want
done
is 0 -n 24 --temp 0 --stop king --json
check "the JSON line says why it ended: $(cat "$dir/out")" grep -q '"stopped":"stop text"' "$dir/out"
check "its text ends before" sh -c "! grep -q '\"text\":\"[^\"]*king' '$dir/out'"
text --temp 0 --stop "never there"
same "a text that does not come" whole

# ---- what is refused
names="penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"
refused "--samplers: \"top-k\" is none of $names" 2 --samplers top-k
refused "--samplers: xtc stands there twice" 2 --samplers "xtc;xtc"
for bias in x 5 5+ +5 5+x 5+nan 5+inf "5 6" 99999999999+1; do
	refused "--logit-bias: \"$bias\" is not an id and a number, such as 15043+1 or 15043-inf" 2 --logit-bias "$bias"
done
refused "logit_bias: entry 0 is for token 99999, which is not in 0..4095" 1 --logit-bias 99999+1
refused "stop: text 0 has 0 bytes, not 1..4096" 1 --stop ""
refused "dry_breakers: text 0 has 0 bytes, not 1..64" 1 --dry-multiplier 1 --dry-sequence-breaker ""
refused "adaptive_target: 0.5 cannot be aimed at with mirostat: 2" 1 --mirostat 2 --adaptive-target 0.5
refused '--mirostat: "3" is not a whole number between 0 and 2' 2 --mirostat 3
refused '--typical: "nan" is not a number between 0 and 1' 2 --typical nan
finish
