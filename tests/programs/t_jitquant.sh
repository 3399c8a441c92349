#!/bin/sh
# tests/programs/t_jitquant.sh - the jitquant program from outside: what it makes and prints, and how it refuses.
. "${srcdir:-.}/tests/support/prelude.sh"
JITRUN_CACHE=$dir/cache
export JITRUN_CACHE
run() { ./jitquant "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
out() { grep -qE -e "$1" "$dir/out"; }
err() { grep -qE -e "$1" "$dir/err"; }
# made SHAPE TYPE FILE: a model with made-up weights
made() { ./jitbench --shape "$1" --weights "$2" --write "$3" -p 0 -n 1 -r 1 --no-start --force --no-cache -t 1 \
	> /dev/null 2>&1; }
bytes() { wc -c < "$1"; }
# has NAME TYPE: what the plan printed last gives a tensor
has() { check "$1 is $2: $(grep -F "$1" "$dir/out")" out "^[a-z0-9]+ +$2 .* $1\$"; }
nothing_left() { check "$1 leaves nothing" [ -z "$(ls -A "$dir/made")" ]; }
mkdir "$dir/made"

made tiny bf16 "$dir/in.gguf"
tests/quant_files "$dir" || exit 1
in=$dir/in.gguf

# ---- each type: written, as large as announced, and it runs
some="q8_0 q4_k_m q4_0 iq4_xs q2_k iq2_xs tq1_0 iq4_ks"
[ -n "${JITRUN_TEST_QUICK-}" ] || some="$some f32 f16 q6_k q5_k_m q5_k_s q5_1 q5_0 q4_k_s q4_1 iq4_nl mxfp4 \
	q3_k_l q3_k_m q3_k_s q2_k_s iq1_s iq1_m iq2_xxs iq2_xs iq2_s iq2_m iq3_xxs iq3_s tq1_0 tq2_0 nvfp4 q1_0 q2_0
	iq5_ks iq2_ks"
for type in $some; do
	is 0 "$in" "$dir/o.gguf" --type $type
	check "$type: a summary on stderr alone: $(cat "$dir/err")" err \
		'o\.gguf: [0-9.]+ MiB of weights became [0-9.]+ MiB, [0-9.]+ bits per weight; [0-9.]+ s$'
	check "$type: nothing on stdout" [ ! -s "$dir/out" ]
	is 0 "$in" --type $type --dry-run
	weights=$(awk '/all tensors/ { print $2 }' "$dir/out")
	check "$type: $weights bytes of weights in $(bytes "$dir/o.gguf")" [ "$weights" -gt 1 -a \
		"$weights" -lt "$(bytes "$dir/o.gguf")" -a "$(($(bytes "$dir/o.gguf") - weights))" -lt 60000 ]
	./jitrun "$dir/o.gguf" --temp 0 --prompt-ids 1,2,3 -n 2 --print-ids -q --no-cache > "$dir/ids" 2> "$dir/err"
	check "$type runs: $(cat "$dir/err")" [ $? = 0 -a -s "$dir/ids" ]
done

is 0 "$in" --type iq2_xs --dry-run
check "few bits want an importance matrix" err 'iq2_xs has so few bits that it is of little use without an importance'
has token_embd.weight q5_k
has blk.0.attn_v.weight q2_k
is 0 "$in" --type q2_k --dry-run
check "others do not" [ ! -s "$dir/err" ]

# ---- the same file, however it is made
is 0 "$in" "$dir/a.gguf" --type q4_k_m -t 1 --quiet
check "--quiet says nothing" [ ! -s "$dir/out" -a ! -s "$dir/err" ]
is 0 "$in" "$dir/b.gguf" Q4_K_M -t 3
check "one thread and three, the type by its option and behind OUT" cmp -s "$dir/a.gguf" "$dir/b.gguf"
is 0 "$in" "$dir/a.gguf" --type q4_0
check "a file that is there is replaced" [ "$(bytes "$dir/a.gguf")" != "$(bytes "$dir/b.gguf")" ]
is 0 "$in" "$dir/c.gguf" --type bf16
is 0 "$dir/c.gguf" "$dir/d.gguf" --type bf16
check "what has its type already is copied" cmp -s "$dir/c.gguf" "$dir/d.gguf"
./jitrun info "$dir/b.gguf" > "$dir/info" 2>&1
check "jitrun info names the types: $(grep -i q4_k "$dir/info")" grep -qi 'q4_k' "$dir/info"

# ---- which tensor gets what
is 0 "$in" --type q4_k_m --dry-run
has token_embd.weight q6_k
has blk.0.attn_q.weight q4_k
has blk.1.ffn_down.weight q6_k
check "norms stay: $(grep attn_norm "$dir/out" | head -1)" out '^f32  +[0-9]+ +[0-9]+  blk.0.attn_norm.weight$'
is 0 "$in" --type q4_k_m --dry-run --pure
has token_embd.weight q4_k
has blk.1.ffn_down.weight q4_k
is 0 "$in" --type q4_k_m --dry-run --token-embedding-type q8_0 --tensor-type attn_q=iq4_xs \
	--tensor-type 'blk.1.ffn_??.weight=q6_k' --tensor-type 'blk.?.ffn_up.weight=f16'
has token_embd.weight q8_0
has blk.0.attn_q.weight iq4_xs
has blk.1.ffn_up.weight q6_k
has blk.0.ffn_up.weight f16
is 0 "$dir/odd.gguf" --type q4_k_m --dry-run --output-type f16
has output.weight f16
has token_embd.weight q5_0
has blk.0.ffn_up.weight q5_0
check "what does not fit is told: $(cat "$dir/err")" err '^jitquant: [0-9]+ tensors got another type, because'
for type in q2_k q3_k_m q5_k_m q6_k iq4_xs mxfp4; do
	[ -z "${JITRUN_TEST_QUICK-}" ] || [ $type = q5_k_m ] || continue
	is 0 "$dir/odd.gguf" "$dir/o.gguf" --type $type --quiet
	./jitrun "$dir/o.gguf" --temp 0 --prompt-ids 1,2,3 -n 2 --print-ids -q --no-cache > "$dir/ids" 2> "$dir/err"
	check "odd rows in $type run: $(cat "$dir/err")" [ $? = 0 -a -s "$dir/ids" ]
done

# ---- metadata, matrices of several experts, importances
is 0 "$dir/experts.gguf" "$dir/o.gguf" --type q4_k_m --quiet
check "every key is kept, and the alignment" tests/quant_files --same "$dir/experts.gguf" "$dir/o.gguf"
is 0 "$dir/experts.gguf" "$dir/e.gguf" --type q4_k_m --pure --quiet
is 0 "$dir/flat.gguf" "$dir/f.gguf" --type q4_k_m --pure --quiet
tail -c 4608 "$dir/e.gguf" > "$dir/e" && tail -c 4608 "$dir/f.gguf" > "$dir/f"
check "an expert is quantised as a matrix alone" cmp -s "$dir/e" "$dir/f"
is 0 "$dir/experts.gguf" "$dir/e.gguf" --type q4_k_m --pure --imatrix "$dir/experts.imatrix" --quiet
is 0 "$dir/flat.gguf" "$dir/f.gguf" --type q4_k_m --pure --imatrix "$dir/flat.imatrix"
check "what has no importances is told: $(head -1 "$dir/err")" err 'has nothing of 1 of the 4 tensors that change\.$'
tail -c 4608 "$dir/e.gguf" > "$dir/e2" && tail -c 4608 "$dir/f.gguf" > "$dir/f2"
check "importances change what is written" sh -c "! cmp -s '$dir/e' '$dir/e2'"
check "each expert has its own" cmp -s "$dir/e2" "$dir/f2"
is 0 "$dir/flat.gguf" "$dir/g.gguf" --type q4_k_m --pure --imatrix "$dir/flat.dat" --quiet
tail -c 4608 "$dir/g.gguf" > "$dir/g"
check "the older form is the same" cmp -s "$dir/g" "$dir/f2"
./jitrun "$model" --perplexity "$top/configure.ac" -c 64 -q --no-cache --imatrix-out "$dir/tale.imatrix" \
	> "$dir/out" 2> "$dir/err"
check "jitrun collects: $(cat "$dir/err")" [ $? = 0 -a -s "$dir/tale.imatrix" ]
refused "blk.0.ffn_down.weight has 256 columns in 1 matrices, but the importance matrix has 768 in 1: is it of" 1 \
	"$dir/flat.gguf" "$dir/made/o.gguf" --type q4_0 --imatrix "$dir/tale.imatrix"
refused "is no importance matrix" 1 "$in" "$dir/made/o.gguf" --type q4_0 --imatrix "$top/configure.ac"
refused "is an importance matrix, expected a model" 1 "$dir/flat.imatrix" "$dir/made/o.gguf" --type q4_0
./jitrun "$model" --prompt x --imatrix-out "$dir/made/x" > "$dir/out" 2> "$dir/err"
check "--imatrix-out alone: $(cat "$dir/err")" [ $? = 2 ]

# ---- beside llama.cpp's files of the same weights: types, errors, and how well a text is expected
shared=${JITRUN_SHARED:-$top/../shared}/models/tale-llama
if [ -r "$shared/model.safetensors" ]; then
	tests/hf_to_gguf "$shared" "$dir/tale.gguf" f32 "$shared/tale-llama-q8_0.gguf" || bad "hf_to_gguf"
	files="q4_k_m:29.940"
	[ -n "${JITRUN_TEST_QUICK-}" ] || files="$files q2_k:33.449 iq4_xs:29.549"
	[ -z "${JITRUN_TEST_FULL-}" ] || files="$files q8_0:29.488 q6_k:29.490 q5_k_m:29.507 q5_1:29.479 \
		q5_0:29.473 q4_1:30.136 q4_0:29.769 iq4_nl:29.680 q3_k_m:30.533"
	for file in $files; do
		type=${file%:*}
		is 0 "$dir/tale.gguf" "$dir/o.gguf" --type $type --quiet
		theirs=$shared/tale-llama-$type.gguf
		if [ -r "$theirs" ]; then
			tests/quant_files --near "$dir/tale.gguf" "$dir/o.gguf" "$theirs" > "$dir/off"
			check "$type: $(head -3 "$dir/off")" [ $? = 0 ]
		fi
		./jitrun "$dir/o.gguf" --perplexity "$shared/heldout.txt" -c 512 -q --no-cache > "$dir/ppl" 2>&1
		# another rounding of the same weights: better, or no more than 0.3 % worse
		check "$type: $(cat "$dir/ppl"), llama.cpp's file has ${file#*:}" \
			awk -v most="${file#*:}" '{ exit !($2 > 20 && $2 < most * 1.003) }' "$dir/ppl"
	done
else
	echo "# skipped: $shared is not there"
fi

# ---- adapters merged: the ids that peft's model has, from both kinds of the adapter's files (t_merge has the numbers)
golden=${JITRUN_SHARED:-$top/../shared}
if [ -r "$golden/golden-more/lora-llama-a/adapter-f32.gguf" ]; then
	for name in llama gemma3; do
		lora=$golden/golden-more/lora-$name-a base=$golden/golden/$name-a/model-bf16.gguf
		is 0 "$base" "$dir/o.gguf" --type f32 --quiet --lora "$lora"
		is 0 "$base" "$dir/p.gguf" --type f32 --quiet --lora "$lora/adapter-f32.gguf"
		check "$name: either kind of file gives the same" cmp -s "$dir/o.gguf" "$dir/p.gguf"
		prompt=$(grep -o '"prompt": \[[^]]*' "$lora/expected.json" | head -1 | sed 's/.*\[//; s/ //g')
		grep -o '"greedy": \[[^]]*' "$lora/expected.json" | head -1 | sed 's/.*\[//; s/,//g' > "$dir/expected"
		./jitrun "$dir/o.gguf" --temp 0 --prompt-ids "$prompt" -n 24 --print-ids -q --no-cache \
			> "$dir/ids" 2> "$dir/err"
		check "$name: peft's ids: $(cat "$dir/ids" "$dir/err")" cmp -s "$dir/ids" "$dir/expected"
	done
else
	echo "# skipped: lora-llama-a is not there"
fi

# ---- refused
refused "which model?" 2
refused "which type?" 2 "$in" "$dir/made/o.gguf"
refused "where to?" 2 "$in" --type q4_0
refused '--type is q4_9, expected one of f32|f16|bf16|' 2 "$in" "$dir/made/o.gguf" --type q4_9
refused "the type is given twice" 2 "$in" "$dir/made/o.gguf" q4_0 --type q4_0
refused "--tensor-type attn_q: expected PATTERN=TYPE" 1 "$in" "$dir/made/o.gguf" q4_0 --tensor-type attn_q
refused "--tensor-type: q9 is no type" 1 "$in" "$dir/made/o.gguf" q4_0 --tensor-type attn_q=q9
refused "--output-type: q4_k_m is no type" 1 "$in" "$dir/made/o.gguf" q4_0 --output-type q4_k_m
refused "is the file to read and the file to write" 1 "$in" "$in" --type q4_0
ln "$in" "$dir/link.gguf"
refused "is the file to read and the file to write" 1 "$in" "$dir/link.gguf" --type q4_0
refused "No such file" 1 "$dir/none.gguf" "$dir/made/o.gguf" --type q4_0
refused "is a directory, and jitquant reads GGUF files" 1 "$dir" "$dir/made/o.gguf" --type q4_0
echo '{}' > "$dir/model.safetensors"
refused "is no GGUF file" 1 "$dir/model.safetensors" "$dir/made/o.gguf" --type q4_0
cp "$dir/model.safetensors" "$dir/model.gguf"
refused 'begins with "{}\x0a", expected "GGUF"' 1 "$dir/model.gguf" "$dir/made/o.gguf" --type q4_0
refused "is Q8_0, which is not made Q4_0: only F32, F16 and BF16 are quantised" 1 "$model" "$dir/made/o.gguf" q4_0
refused "cannot be written" 1 "$in" "$dir/nowhere/o.gguf" --type q4_0
refused "no regular file" 1 "$in" /dev/full --type q4_0
refused "is there already and no regular file" 1 "$in" "$dir/made" --type q4_0
nothing_left "what is refused"

# numbers that cannot be quantised: the last two bytes of the weights
size=$(bytes "$dir/odd.gguf")
cp "$dir/odd.gguf" "$dir/nan.gguf"
printf '\000\000\300\177' | dd of="$dir/nan.gguf" bs=1 seek=$((size - 4)) conv=notrunc 2> /dev/null
refused "tensor blk.1.ffn_down.weight has nan in row 95, column 159; expected numbers of a magnitude of at most" 1 \
	"$dir/nan.gguf" "$dir/made/o.gguf" --type q4_k_m
printf '\000\000\200\177' | dd of="$dir/nan.gguf" bs=1 seek=$((size - 4)) conv=notrunc 2> /dev/null
refused "has inf in row 95" 1 "$dir/nan.gguf" "$dir/made/o.gguf" --type bf16
printf '\000\000\200\110' | dd of="$dir/nan.gguf" bs=1 seek=$((size - 4)) conv=notrunc 2> /dev/null
refused "has 262144 in row 95, column 159; expected numbers of a magnitude of at most 65504, the largest in F16" 1 \
	"$dir/nan.gguf" "$dir/made/o.gguf" --type f16
is 0 "$dir/nan.gguf" "$dir/o.gguf" --type q4_0
head -c $((size - 1)) "$dir/odd.gguf" > "$dir/cut.gguf"
refused "is it complete?" 1 "$dir/cut.gguf" "$dir/made/o.gguf" --type q4_0
(ulimit -f 100; run "$in" "$dir/made/o.gguf" --type q8_0; exit $status)
check "a limit on the size of files (status $?)" err '^jitquant: cannot write all of .*: File too large\.$'
nothing_left "a file that fails"
if mkdir -m 500 "$dir/locked" && [ "$(id -u)" != 0 ]; then
	refused "cannot be written" 1 "$in" "$dir/locked/o.gguf" --type q4_0
fi
finish
