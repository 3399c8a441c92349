#!/bin/sh
# tests/programs/t_bench.sh - the jitbench program and bench/compare from outside: rows, formats, models made up,
# refusals. No time is judged.
. "${srcdir:-.}/tests/support/prelude.sh"
XDG_CACHE_HOME=$dir/cache; export XDG_CACHE_HOME
unset TMPDIR
# How fast memory is read is told by fewer bytes, too, though less well: no time is judged.
[ -z "${JITRUN_TEST_QUICK:-}" ] || { JITRUN_BENCH_BYTES=16777216 && export JITRUN_BENCH_BYTES; }
run() { ./jitbench "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
quick() { run "$@" -r 1 -t 1; }
has() { grep -qF -e "$1" "$dir/out"; }
count() { grep -c -e "$1" "$dir/out"; }

quick "$model" -p 8,16 -n 2 -d 0,32 -b 2,32 --sequences 3
check "markdown: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
for row in load ttft 'ttft sealed' 'ttft cold' codegen rss pp8 pp16 tg2 'pp8 @ d32' 'pp16 @ d32' 'tg2 @ d32' \
	'3 x tg2' '3 x tg2 @ d32' 'pp2, all logits' 'pp32, all logits' 'pp2, all logits @ d32'; do
	check "markdown: a row $row" grep -qE "^\| $row[ ,]" "$dir/out"
done
check "markdown: kernels are counted" grep -qE '^\| codegen \([0-9]+\) ' "$dir/out"
check "markdown: 80 columns" awk 'length($0) > 80 && /^\||GB\/s|Gop/ { print; bad = 1 } END { exit bad }' "$dir/out"
check "markdown: a prompt is compared with the cores" grep -qE '^\| pp16 .*(fma|maddubs|vpdpbusd).* %' "$dir/out"
check "markdown: generation is compared with the memory" grep -qE '^\| tg2 .*read bandwidth.* %' "$dir/out"
check "markdown: every column everywhere" [ "$(count '^|')" = "$(grep -cE '^(\|[^|]*){6}\|$' "$dir/out")" ]
check "the limits are named" sh -c 'tr -d "\n" < "$1" | grep -qE "read bandwidth .*GB/s .*fma 256 .*maddubs 256 "' - \
	"$dir/out"

run suite 128x192 -r 2 -t 1 --force
check "suite: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
for row in 'bf16 matrix 192x128 c1' 'q8_0 matrix 192x128 c8' 'q8_0 matrix 192x128 silu c256' \
	'q8_0 matrix 128x192 resid c1' 'attention 6x32/6 c1 @512' 'attention 6x32/6 c256 @512'; do
	check "suite: a row $row" grep -qE \
		"^\| tiny-128x192x192 $row +\| +[0-9.]+ \| +[0-9.]+ \| +[0-9.]+ \| (fma|vpdpbusd|maddubs|read bandwid"\
"th)[ 0-9]* +\| +[0-9.]+ % \|$" "$dir/out"
done
run suite 128x192 -r 2 -t 1 --force -o json
cp "$dir/out" "$dir/a.json"
check "suite: a report" grep -q '"suite": "jitrun kernels 1"' "$dir/a.json"
run compare "$dir/a.json" "$dir/a.json"
check "compare: a report is as fast as itself (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
check "compare: all rows" grep -qE '^[1-9][0-9]* rows within 10 %, 0 faster, 0 slower; 0 left out' "$dir/out"
check "compare: as many as measured" [ "$(count '^| tiny')" = "$(grep -c '"test"' "$dir/a.json")" ]
sed -E '0,/"share"/s/"share": [0-9.e-]+/"share": 1e-9/' "$dir/a.json" > "$dir/b.json"
run compare "$dir/a.json" "$dir/b.json"
check "compare: one is slower (got $status)" [ "$status" = 4 ]
check "compare: one row says so" [ "$(count '| slower |$')" = 1 ]
run compare "$dir/b.json" "$dir/a.json" -o json
check "compare: one is faster (got $status)" [ "$status" = 0 ]
check "compare: in JSON" [ "$(count '"verdict": "faster"')" = 1 ]
run compare "$dir/a.json" "$dir/b.json" --threshold 99
check "compare: within any threshold but none (got $status)" [ "$status" = 4 ]
sed -E 's/"noisy": ""/"noisy": "so it is"/' "$dir/a.json" > "$dir/c.json"
run compare "$dir/a.json" "$dir/c.json"
check "compare: noisy rows are none (got $status)" [ "$status" = 1 ]
check "compare: which is said" grep -q 'have no row in common that both could measure' "$dir/err"
echo '{"rows": 1}' > "$dir/none.json"
refused "is no report of jitbench suite" 1 compare "$dir/a.json" "$dir/none.json"
refused "cannot be read" 1 compare "$dir/a.json" "$dir/missing.json"
refused "compare takes two reports" 2 compare "$dir/a.json"
refused "more than one model" 2 "$model" "$model"
run passes --shape tiny --weights q8_0 -r 1 -t 1
check "passes: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
check "passes: every number of draft tokens" [ \
	"$(grep -cE '^\| [0-9]+ \| [0-9.]+ \| [0-9.]+ \| [0-9.]+ \|$' "$dir/out")" = 16 ]
check "passes: every depth three times" [ \
	"$(grep -cE '^\| [0-9]+ \| -?[0-9.]+ \| -?[0-9.]+ % \| -?[0-9.]+ % \|$' "$dir/out")" = 21 ]

run schedules --shape tiny --weights q8_0 -r 1 -t 1
check "schedules: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
check "schedules: the default against itself, for each kind of pass" [ \
	"$(grep -cE '^\| weights .*\(the default, against itself\) \| [0-9.]+ \|$' "$dir/out")" = 5 ]
check "schedules: other ways" [ \
	"$(grep -cE '^\| weights .*(KiB ahead|a turn|side by side|KiB) \| [0-9.]+ \|$' "$dir/out")" -ge 12 ]

run --shape tiny --weights q4_k_m --predict --device sim:gfx1100 -d 5
check "a prediction: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
check "it says that it is one" has "PREDICTED, not measured"
check "it says of what" grep -qE '^# Predicted: a token of llama 2 layers.* at position 5 on RX 7900 XTX' "$dir/out"
check "it has the kernels" grep -qE '^\| matmul\.q4_k\..*gfx1100 \|' "$dir/out"
for each in token layer operation; do
	check "it has launches for each $each" grep -qE "^\| $each \| [0-9]+ \| [0-9]+ \|" "$dir/out"
done
check "it compares with the least" grep -qE \
	'^read of weights [0-9.]+ MiB, 1\.0[0-9]+ times the least; of the KV cache [0-9.]+ MiB' "$dir/out"
run --shape tiny --weights q4_k_m --predict --device sim:gfx1100 -b 16
check "of a pass over guesses" grep -qE '^# Predicted: a pass over 16 tokens' "$dir/out"
# What a card was measured to take, and a card of which no data sheet is known
report() { # report FIELDS OF THE CARD: a report's file
	printf '{"card": {"target": "gfx1200", "name": "RX 9060 XT", "units": 32%s}, "launch_seconds": 3e-05,
		"barrier_seconds": 4.5e-06, "large_model": [{"bytes_per_second": 1.6e11}]}' "$1" >"$dir/report"
}
with="--shape tiny --predict --device sim:gfx1200 --report $dir/report"
report ', "clock_mhz": 3130, "bandwidth": 320000000000'
run $with
check "a prediction with a report: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
check "it names the card" grep -qE '^# Predicted: .* on RX 9060 XT \(gfx1200\)' "$dir/out"
check "it says what was measured" has \
	"Measured on a card, by $dir/report: the first launch, and a barrier, and the share"
check "it takes what was measured" grep -qE '^Assumed: 50 % of .* 4\.5 us for a barrier .* 30 us for a pass' "$dir/out"
report ''
refused "the card's clock_mhz is not there" 1 $with
report ', "bandwidth": -3'
refused "bandwidth is -3, expected a number above 0" 1 $with
refused 'is of a card of target "gfx1200", and --device is sim:gfx1100' 1 \
	--shape tiny --predict --device sim:gfx1100 --report "$dir/report"
echo '{"card": {"target": "gfx1200", "units": 32}}' >"$dir/report"
refused "launch_seconds is not there, expected a number" 1 $with
echo '[]' >"$dir/report"
refused "it is no JSON object" 1 $with
rm "$dir/report"
refused "cannot be read" 1 $with
refused "belongs to --predict" 2 --shape tiny --report "$dir/report"
refused "of passes over 1 to 16 tokens" 1 --shape tiny --predict --device sim:gfx1100 -b 17
refused "no data of a card" 1 --shape tiny --predict --device sim:gfx1200
refused "needs --device sim:" 2 --shape tiny --predict
refused 'device "gpu" is unknown' 1 --shape tiny --device gpu --no-start
run --shape tiny -p 0 -n 1 -r 1 --force --device sim:gfx1101
check "a start on a simulated card: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
check "what a start takes" [ "$(grep -cE '^\| (load|ttft|ttft cold|rss) +\| ' "$dir/out")" = 4 ]
check "no sealed start, as the card cannot run sealed" [ "$(grep -cE '^\| ttft sealed ' "$dir/out")" = 0 ]
run "$model" -p 8 -n 2 -r 1 --no-start --profile --force
check "a profile of each test" [ "$(grep -cE '^profile of (pp8|tg2) on cpu: ' "$dir/err")" = 2 ]
check "with the share of what can be read: $(cat "$dir/err")" [ "$(grep -cE \
	'^ +[0-9]+ +[0-9.]+ +[0-9.]+% +[0-9.]+ +[0-9.]+%  all kernels$' "$dir/err")" = 2 ]
refused "which model?" 2 --predict --device sim:gfx1100

quick "$model" -p 8 -n 0 --numerics always-bounded --force -o csv
check "bounded: on a CPU, too (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
check "bounded: a field of every row" [ "$(count ',"bounded",')" = "$(($(wc -l < "$dir/out") - 1))" ]
quick "$model" -p 8 -n 0 --no-start -o jsonl
check "exact, unless asked for otherwise" has '"numerics":"exact"'
refused "is not one of exact|bounded|always-bounded" 2 "$model" --numerics loose

run -m "$model" -p 0 -n 2 -r 1 -t 1,2 --no-start -o md
check "-t 1,2 gives two rows: $(cat "$dir/out")" [ "$(count '^| tg2 ')" = 2 ]
check "--no-start leaves the start out" [ "$(count 'load\|rss')" = 0 ]
quick "$model" -p 0 -n 0 --small --no-start -o csv
check "--small: five rows and the names" [ "$(wc -l < "$dir/out")" = 6 ]
check "csv: all lines have as many fields" [ "$(awk -F'","' '{ print NF }' "$dir/out" | sort -u | wc -l)" = 1 ]
quick "$model" --kernels --force
check "--kernels: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
for row in generate 'open directory' 'open pack' 'token generate' 'token directory' 'token pack' lookup \
	'pass generate' 'pass together' 'layer together'; do
	check "--kernels: a row $row" grep -qE "^\| $row \([0-9]+\) " "$dir/out"
done
check "--kernels: shares of generating" [ "$(grep -c 'generating.* % |$' "$dir/out")" = 7 ]
quick --shape qwen3-0.6b --kernels --force -o csv
check "--kernels of a shape: ten rows and the names" [ "$(wc -l < "$dir/out")" = 11 ]
quick --shape tiny --kernels --force --device sim:gfx1101
check "--kernels of a card: a row pass link" grep -qE "^\| pass link \([0-9]+\) " "$dir/out"
refused "names the target" 2 --shape tiny --kernels --device sim:gfx1101 --isa avx2
quick "$model" -p 8 -n 2 --no-start -o jsonl
check "jsonl: a line each" [ \
	"$(grep -cE '^\{"model_filename":.*"test":"(pp8|tg2)".*"avg_ts":[0-9.]+.*\}$' "$dir/out")" = 2 ]
cp "$dir/out" "$dir/jsonl"
quick "$model" -p 8 -n 2 -o json
check "json: begins and ends" [ "$(head -n 1 "$dir/out"; tail -n 1 "$dir/out")" = "[
]" ]
if command -v python3 > /dev/null; then
	cat > "$dir/judge.py" << 'PY'
import json, sys
rows = json.load(open(sys.argv[1]))
assert [r["test"] for r in rows] == ["load", "ttft", "ttft sealed", "ttft cold", "codegen", "rss", "pp8", "tg2"], rows
assert rows[4]["count"] > 0 and rows[5]["median"] > 1 and rows[0]["unit"] == "s"
for r in rows:
    assert r["count"] > 0, r
for r in rows[6:]:
    assert r["least"] <= r["median"] <= r["greatest"] and r["noisy"] == "", r
    assert abs(r["share"] * r["limit"] / (r["median"] * r["work"]) - 1) < 1e-6, r
for line in open(sys.argv[2]):
    assert json.loads(line)["n_threads"] == 1
PY
	check "json: what it says agrees with itself" python3 "$dir/judge.py" "$dir/out" "$dir/jsonl"
fi

run "$model" -p 0 -n 2 -r 3 -t 1 --no-start --noise 0.001 -o jsonl
check "a limit of 0.001 %: noisy, status 3 (got $status)" [ "$status" = 3 ]
check "a noisy number is null" has '"avg_ts":null'
check "and why is said" grep -qE '^jitbench: tg2 is noisy: .* spread [0-9]+ % ' "$dir/err"
run "$model" -p 0 -n 2 -r 3 -t 1 --no-start --noise 0.001
check "a table has it all the same, with its spread: $(cat "$dir/out")" grep -qE \
	'^\| tg2 +\| +1 \| +~[0-9.]+ t/s \| +[0-9.]+ % \| read bandwidth \| +[0-9.]+ % \|$' "$dir/out"
check "why is said behind the table" [ "$(tail -n 1 "$dir/err" | grep -c 'tg2 is noisy')" = 1 ]
run "$model" -p 0 -n 2 -r 3 -t 1 --no-start --noise 0.001 -o jsonl --force
check "--force prints it, status 0 (got $status)" [ "$status" = 0 ]

quick --shape tiny -p 4 -n 1
check "a model in memory: $(cat "$dir/err")" [ "$status" = 0 ]
mkdir "$dir/tmp"
TMPDIR=$dir/tmp ./jitbench --shape tiny -p 0 -n 1 -r 1 -t 1 --no-start > /dev/null 2> "$dir/err"
check "a model in TMPDIR: $(cat "$dir/err")" [ $? = 0 ]
check "nothing stays there" [ -z "$(ls "$dir/tmp")" ]

refused "which model?" 2
refused "Give one of" 2 "$model" --shape tiny
refused "belong to a model made up" 2 "$model" --weights q8_0
refused "belong to a model made up" 2 "$model" --write "$dir/x.gguf"
refused "is not one of qwen3-0.6b" 2 --shape enormous
refused "is not one of f32" 2 --shape tiny --weights q9
refused '--prompt: "12x" is not a list' 2 "$model" -p 12x
refused '--prompt: "" is not a list' 2 "$model" -p ""
refused '--depth: "1,,2" is not a list' 2 "$model" -d 1,,2
refused '--generate: "-1" is not a list' 2 "$model" -n -1
refused '--small-batches: "33" is not a list' 2 "$model" -b 33
refused '--sequences: "257" is not a list' 2 "$model" --sequences 257
refused "is not a whole number between 1 and 100" 2 "$model" -r 0
refused "is not one of markdown" 2 "$model" -o xml
refused "unknown option" 2 "$model" --frobnicate
refused "$dir/none.gguf" 1 "$dir/none.gguf"
refused "$dir/none/x.gguf" 1 --shape tiny --write "$dir/none/x.gguf"

for what in help help-all version print-man print-completion=bash print-completion=zsh print-completion=fish; do
	run --$what
	check "--$what" [ "$status" = 0 -a -s "$dir/out" ]
done

printf '%s\n' 'name,"avg_ts","other"' '"a, b","20.5","7"' > "$dir/a.csv"
printf '%s\n' '{"avg_ts": 1, "x": 2}' '{"x": 3, "avg_ts": 10.25}' > "$dir/b.jsonl"
sh "$top/bench/compare" -r 2 --field avg_ts "cat '$dir/a.csv'" "cat '$dir/b.jsonl'" > "$dir/out"
check "compare: CSV with JSON lines: $(cat "$dir/out")" has "A/B: median 2.000, least 2.000, greatest 2.000"
printf '%s\n' '[' '  {' '    "avg_ts": 41.0,' '    "avg_ns": 3' '  }' ']' > "$dir/c.json"
sh "$top/bench/compare" -r 1 --field avg_ts "cat '$dir/c.json'" "cat '$dir/a.csv'" > "$dir/out"
check "compare: JSON over many lines" has "A/B: median 2.000"
sh "$top/bench/compare" -r 1 "echo 3 tokens, 8.0 a second" "echo 4" > "$dir/out"
check "compare: the last number of the last line" has "A/B: median 2.000"
printf '%s\n' '{"avg_ts":null}' > "$dir/n.jsonl"
check "compare: a number that is not there is an error" sh -c \
	'! sh "$1" -r 1 --field avg_ts "cat $2" "cat $2" 2> "$3"' - "$top/bench/compare" "$dir/n.jsonl" "$dir/err"
check "compare: and is named" grep -qF 'no number called avg_ts' "$dir/err"
check "pressure: a model is missing" sh -c '! sh "$1" jitrun 2> "$2"' - "$top/bench/pressure" "$dir/err"
check "pressure: says how it is called" grep -qF 'usage: bench/pressure' "$dir/err"

finish
