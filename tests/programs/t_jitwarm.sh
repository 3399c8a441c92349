#!/bin/sh
# tests/programs/t_jitwarm.sh - the jitwarm program from outside: what it makes, prints and answers, and how it refuses.
. "${srcdir:-.}/tests/support/prelude.sh"
jitwarm=./jitwarm
JITRUN_CACHE=$dir/cache XDG_CACHE_HOME=$dir/xdg
export JITRUN_CACHE XDG_CACHE_HOME
unset JITRUN_WEIGHT_CACHE
run() { "$jitwarm" "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
out() { grep -qE -e "$1" "$dir/out"; }
err() { grep -qE -e "$1" "$dir/err"; }

# ---- making
is 0 --shape tiny --out "$dir/a.jkp" --target avx2
check "a summary on stderr alone" [ ! -s "$dir/out" -a -s "$dir/err" ]
check "which counts: $(cat "$dir/err")" err \
	'^.*/a\.jkp: [0-9]+ kernels for avx2; [0-9]+ generated, 0 already in the cache; [0-9.]+ MiB of code in [0-9.]'\
'+ MiB; '
is 0 --shape tiny --out "$dir/b.jkp" --target avx2 -q
check "--quiet says nothing" [ ! -s "$dir/out" -a ! -s "$dir/err" ]
check "the same pack twice" cmp -s "$dir/a.jkp" "$dir/b.jkp"
is 0 --shape arch=llama,hidden=256,layers=1,heads=4,kv_heads=2,head_dim=64,ffn=512,vocab=512,tied=1 --out "$dir/b.jkp" \
	--replace --target avx2 -q
check "the same from its sizes; layers that are alike count once" cmp -s "$dir/a.jkp" "$dir/b.jkp"
is 0 --shape tiny --out "$dir/b.jkp" --replace --target avx512 --target avx2 --target avx512 --json
check "--json: $(cat "$dir/out")" out \
	'^\{"out":".*b\.jkp","models":\[\{"model":"tiny","target":"avx512","kernels":[0-9]+\},\{"model":"tiny","targe'\
't":"avx2","kernels":[0-9]+\}\],"kernels":[0-9]+,"kept":0,"generated":[0-9]+,"code_bytes":[0-9]+,'\
'"bytes":[0-9]+,"seconds":[0-9'\
'.e-]+\}$'
check "--json: bytes are the file's" grep -q "\"bytes\":$(wc -c < "$dir/b.jkp")," "$dir/out"
is 0 --shape tiny --out "$dir/x.jkp" --target x86 --json
check "x86 is all of that family" out \
	'"target":"avx2",.*"target":"avx2vnni",.*"target":"avx512",.*"target":"avx512vnni",.*"target":"avx512bf16",'\
'.*"target":"avx512amx",'
is 0 --shape tiny --out "$dir/r.jkp" --target gfx1030 --target gfx1100 --target gfx1200
check "for cards that are not here: $(cat "$dir/err")" err 'kernels for gfx1030, gfx1100, gfx1200; '
is 0 verify "$dir/r.jkp"
is 0 --shape tiny --shape qwen3-0.6b "$model" --weights q4_k_m --out "$dir/b.jkp" --replace --target avx512vnni
is 0 --shape qwen3-0.6b --weights q8_0 --out "$dir/q.jkp" --target avx2 -q
check "28 layers take less than a MiB: $(wc -c < "$dir/q.jkp")" [ "$(wc -c < "$dir/q.jkp")" -lt 1048576 ]
is 0 --shape tiny --out "$dir/small.jkp" --target avx2 --activations auto --kv-type f16 --batch 16 --json
check "less is made where less is asked for" [ "$(wc -c < "$dir/small.jkp")" -lt \
	"$(($(wc -c < "$dir/a.jkp") * 2 / 3))" ]
is 0 "$model" --out "$dir/store" --target avx2
is 0 "$model" --out "$dir/store" --target avx2
check "what is there already stays: $(cat "$dir/err")" err '; 0 generated, [1-9]'

# ---- a pack that is there
is 0 --shape tiny --shape qwen3-0.6b --weights q4_k_m --out "$dir/both.jkp" --target avx2 -q
is 0 --shape tiny --weights q4_k_m --out "$dir/first.jkp" --target avx2 -q
is 0 --shape qwen3-0.6b --weights q4_k_m --out "$dir/second.jkp" --target avx2 -q
is 0 --shape qwen3-0.6b --weights q4_k_m --out "$dir/first.jkp" --target avx2
check "a second model is added: $(cat "$dir/err")" err '; [1-9][0-9]* of them were there before'
check "in whatever order, the same bytes" cmp -s "$dir/first.jkp" "$dir/both.jkp"
is 0 --shape tiny --weights q4_k_m --out "$dir/second.jkp" --target avx2 -q
check "in the other order too" cmp -s "$dir/second.jkp" "$dir/both.jkp"
is 0 --shape tiny --weights q4_k_m --out "$dir/second.jkp" --target avx2 -q
check "adding what is there changes nothing" cmp -s "$dir/second.jkp" "$dir/both.jkp"
is 0 --shape qwen3-0.6b --weights q4_k_m --out "$dir/second.jkp" --target avx2 --json
check "--json says how many stay" out '"kernels":[0-9]*,"kept":[1-9]'
is 0 --shape tiny --weights q4_k_m --out "$dir/second.jkp" --target avx2 --replace -q
is 0 --shape tiny --weights q4_k_m --out "$dir/third.jkp" --target avx2 -q
check "--replace begins anew" cmp -s "$dir/second.jkp" "$dir/third.jkp"
echo 'no pack' > "$dir/bad.jkp"
refused "--replace makes it anew" 1 --shape tiny --out "$dir/bad.jkp" --target avx2
check "what is no pack is left as it is" grep -q 'no pack' "$dir/bad.jkp"
is 0 --shape tiny --out "$dir/bad.jkp" --target avx2 --replace -q
refused "none/x.jkp: cannot be written: No such file" 1 --shape tiny --out "$dir/none/x.jkp" --target avx2
refused "a.jkp: is there already; --replace writes it anew" 1 export "$dir/a.jkp" --cache "$dir/b.jkp"

# ---- looking
is 0 list "$dir/a.jkp"
check "list prints keys" out '^ *[0-9]+ +[0-9]+  norm\.k256\.q8out\.avx2  .*/a\.jkp$'
check "list counts: $(cat "$dir/err")" err '^[0-9]+ entries, [0-9]+ of this version; '
n=$(wc -l < "$dir/out")
is 0 list --cache "$dir/a.jkp" --json
check "--json: as many" out \
	"^\\{\"entries\":$n,\"good\":$n,.*\"list\":\\[\\{\"key\":\"[a-z0-9_.]+\",\"state\":\"good\",\"code_bytes\":[0"\
"-9]+,\"stored_bytes\":[0-9]+,\"path\":\".*a.jkp\"\\}"
is 0 show norm.k256.q8out.avx2 --cache "$dir/a.jkp"
check "show: in the cache, the same" out '^# in the cache, .*/a\.jkp: the same code$'
check "show: sizes, registers, instructions" [ \
	"$(grep -cE -e '^# [0-9]+ bytes, [0-9]+ of them constants; frame [0-9]+ bytes' \
		-e '^# registers: [0-9]+ vector, [0-9]+ scalar, [0-9]+ mask; [0-9]+ spills' \
		-e '^# [0-9]+ IR instructions, [0-9]+ machine' "$dir/out")" = 3 ]
check "show: IR as comments" out '^# .*load'
check "show: bytes" out '\.byte'
if command -v as > /dev/null && command -v objdump > /dev/null; then
	check "an assembler accepts it" as "$dir/out" -o "$dir/o"
	check "a disassembler knows every instruction" [ "$(objdump -d "$dir/o" | grep -c '(bad)')" = 0 ]
fi
is 0 show norm.k256.q8out.avx512 --cache "$dir/a.jkp"
check "show: not in the cache" out '^# not in the cache$'
is 0 show norm.k256.q8out.avx2 --cache "$dir/a.jkp" --json
check "--json: $(head -c 200 "$dir/out")" out \
	'^\{"key":"norm\.k256\.q8out\.avx2","code_bytes":[0-9]+,.*"registers":\{"vector":[0-9]+,"scalar":[0-9]+,"mask'\
'":0\},.*"path":".*a\.jkp","same":true,"ir":".*","listing":".*"\}$'
is 0 explain --shape tiny --target avx2 --cache "$dir/a.jkp"
check "explain: all hits" [ "$(grep -c '^hit   ' "$dir/out")" = "$n" -a "$(wc -l < "$dir/out")" = "$n" ]
is 3 explain --shape tiny --target avx512 --cache "$dir/a.jkp"
check "explain: all miss, for the target" [ \
	"$(grep -cE -e '^miss  [a-z0-9_.]+  nearest [a-z0-9_.]+: target is avx2, not avx512$' \
		-e '^miss  [a-z0-9_.]+  nearest .*: target is avx2, not avx512, blocks of rows is [0-9]+, not [0-9]+$' \
		"$dir/out")" = "$n" ]
check "explain: a summary" err "^tiny for avx512: $n kernels, 0 in the cache, $n missing$"
is 3 explain --shape tiny --target avx2 --cache "$dir/small.jkp" --json
check "--json: $(head -c 200 "$dir/out")" out \
	'^\[\{"model":"tiny","target":"avx2","kernels":[0-9]+,"hits":[1-9][0-9]*,"misses":[1-9][0-9]*,"damaged":0,"li'\
'st":\[\{"key":"[a-z0-9_.]+","hit":(true|false),'

# ---- explaining texts of kernels
printf 'const i64 n;\nkernel one(out f32 y[n]) over (i in n) { y[i] = 1; }\n' > "$dir/one.jk"
"${JITK:-./jitk}" run "$dir/one.jk" -c n=8 --cache "$dir/user" --isa avx2 -q > /dev/null
is 0 explain "$dir/one.jk" -c n=8 -t avx2 --cache "$dir/user"
check "explain: a user's kernel is there: $(cat "$dir/out")" out '^hit   user\.[0-9a-f]{48}\.avx2  one  .*/user$'
check "explain: a summary of the text" err '/one\.jk for avx2: 1 kernels, 1 in the cache, 0 missing$'
is 3 explain "$dir/one.jk" -c n=8 -t avx512 --cache "$dir/user"
check "explain: for another target: $(cat "$dir/out")" out 'one  the cache has it for avx2$'
is 3 explain "$dir/one.jk" -c n=9 -t avx2 --cache "$dir/user"
check "explain: with other constants: $(cat "$dir/out")" out \
	'one  the cache has a kernel of this name with another text, other constants or --check, user\.[0-9a-f]*\.avx2$'
sed 's/one/two/' "$dir/one.jk" > "$dir/two.jk"
is 3 explain "$dir/two.jk" --const n=8 -t avx2 --cache "$dir/user" --json
check "explain: another name: $(cat "$dir/out")" out \
	'^\[\{"file":".*two\.jk","target":"avx2","kernels":1,"hits":0,"misses":1,.*cache has no kernel of this name",'\
'"name":"two"'
is 1 explain "$dir/one.jk" -c n --cache "$dir/user"
check "explain: a constant without a value: $(cat "$dir/err")" err '^jitwarm: --const n: expected NAME=VALUE\.$'
is 1 explain "$dir/one.jk" --cache "$dir/user"
check "explain: no value: $(cat "$dir/err")" err 'the constant n has no value'
is 2 explain --shape tiny -c n=1 --cache "$dir/user"
check "explain: constants of nothing" err '^jitwarm: --const goes with files of kernels \(\.jk\)$'

# ---- verifying, moving, removing
is 0 verify "$dir/a.jkp"
check "verify: all the same: $(cat "$dir/err")" err "^$n the same, 0 different, 0 damaged, "
is 0 import "$dir/a.jkp"
check "import counts: $(cat "$dir/err")" err "^$n entries imported$"
is 0 import "$dir/x.jkp" -q
is 0 export "$dir/c.jkp" --target avx2
check "what was imported and exported is the same pack" cmp -s "$dir/a.jkp" "$dir/c.jkp"
is 0 verify --json
check "verify: the directory too: $(cat "$dir/out")" out \
	'^\{"same":[1-9][0-9]*,"different":0,"damaged":0,"other_version":0,"removed":0,"abandoned_files":0,"wrong"'\
':\[\]\}$'
file=$(ls "$JITRUN_CACHE"/*.jko | head -n 1)
printf 'XXXXXXXX' | dd of="$file" bs=1 seek=200 conv=notrunc 2> /dev/null
is 3 verify
check "verify: a damaged entry is named: $(cat "$dir/out")" out 'is damaged$'
is 3 verify --remove -q
is 0 verify --json
check "verify --remove took it out" out '"damaged":0,'

# Packed weights: shown by list, removed by gc
for mode in "" -q; do
	is 0 list $mode
	check "list: no weights, no word of them" sh -c '! grep -q "packed weights" "$1" "$2"' - "$dir/out" "$dir/err"
done
JITRUN_WEIGHT_CACHE=$dir/weights; export JITRUN_WEIGHT_CACHE
for isa in avx2 ""; do
	./jitrun "$model" -p x -n 1 -q --no-cache ${isa:+--isa $isa} > "$dir/out" 2> "$dir/err"
done
stored=$(ls "$dir/weights" | grep -c '\.jkm$')
is 0 list
check "list shows them: $(grep weights "$dir/out")" [ "$stored" -ge 1 -a "$stored" = "$(grep -cE \
	'^ +[0-9.]+ MiB  packed weights, last used [0-9]{4}-[0-9]{2}-[0-9]{2}  /.*/[0-9a-f]{16}\.jkm$' "$dir/out")" ]
check "list sums them up: $(cat "$dir/err")" err "^packed weights of $stored models?; [0-9.]+ MiB\$"
is 0 list --json
check "list: in JSON" out '"weights":\[\{"path":"[^"]*\.jkm","bytes":[0-9]+,"used":[0-9]+\}.*\]\}$'
is 0 list "$dir/weights"
check "list of their directory" [ "$(grep -c 'packed weights' "$dir/out")" = "$stored" -a \
	"$(wc -l < "$dir/out")" = "$stored" ]
is 0 gc
check "gc leaves what is within the limit: $(cat "$dir/err")" err \
	"^packed weights of 0 models, 0\.0 MiB, removed; of $stored, [0-9.]+ MiB, left, 0 of them in use\$"
file=$(ls "$dir"/weights/*.jkm | head -n 1)
head -c 1000 "$file" > "$dir/cut" && cat "$dir/cut" > "$file"
is 0 gc --json
check "gc removes what is damaged: $(cat "$dir/out")" out \
	"\"weights\":\\{\"entries\":$((stored - 1)),\"bytes\":[0-9]+,\"removed\":1,\"removed_bytes\":1000,"
check "... from the disk" [ ! -e "$file" ]
: > "$dir/weights/0123456789abcdef.jkm"
is 0 gc
check "gc counts one model as one: $(cat "$dir/err")" err '^packed weights of 1 model, 0\.0 MiB, removed; '
is 0 gc --cache-weights-limit 0
check "gc with a limit of 0 leaves none" [ "$(ls "$dir/weights" | grep -c '\.jkm$')" = 0 ]
unset JITRUN_WEIGHT_CACHE
is 0 gc --json --limit 1
check "gc fits the limit: $(cat "$dir/out")" out '^\{"entries":[1-9][0-9]*,"bytes":[0-9]+,"removed":[1-9]'
is 0 gc --limit 0
check "gc --limit 0 leaves nothing: $(cat "$dir/err")" err \
	'^[1-9][0-9]* entries of [0-9.]+ MiB removed, 0 of 0\.00 MiB left'
is 0 list --json
check "nothing is left" out '^\{"entries":0,'

# ---- refusals
refused "which model?" 2
refused "which model?" 2 --out "$dir/z.jkp"
refused "where to?" 2 --shape tiny
refused "is not one of native|x86|rdna|ptx|spirv|avx2|" 2 --shape tiny --out "$dir/z.jkp" --target sse2
refused "neither a known shape" 1 --shape enormous --out "$dir/z.jkp"
refused "does not say ffn=" 1 --shape hidden=64,layers=1,heads=2,vocab=64 --out "$dir/z.jkp"
refused "none.gguf" 1 "$dir/none.gguf" --out "$dir/z.jkp"
refused "is not one of f32|" 2 --shape tiny --weights q9 --out "$dir/z.jkp"
refused "kernel attention." 1 --shape hidden=2048,layers=1,heads=160,kv_heads=1,head_dim=32,ffn=64,vocab=64 --out \
	"$dir/z.jkp" --target avx2
refused "not a whole number" 2 --shape tiny --out "$dir/z.jkp" --batch 2000
refused "is not the key of a kernel" 2 show nonsense
refused "is not the key of a kernel" 2 show norm.k256
refused "show takes one key" 2 show
refused "list takes one cache" 2 list a b
refused "export takes the pack" 2 export
refused "none.jkp" 1 list "$dir/none.jkp"
refused "unknown option" 2 --frobnicate
refused "tune takes one model" 2 tune
refused "a model's file, with its weights" 2 tune "$model" --shape tiny
refused "one instruction set of this processor" 2 tune "$model" --target gfx1100
refused "none.gguf" 1 tune "$dir/none.gguf" --cache "$dir/tuned"
check "nothing was written by what was refused" [ ! -e "$dir/z.jkp" ]
refused "$dir/none/z.jkp" 1 --shape tiny --target avx2 --out "$dir/none/z.jkp"

run tune "$model" --cache "$dir/tuned" --target avx2
check "tune: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
check "tune: a line for each matrix" [ \
	"$(grep -cE '^matmul\.q8_0\.aq8_0\.[0-9]+x[0-9]+\.c1\.[a-z0-9.]*avx2 +[0-9.]+ +[0-9]+  weights ' "$dir/out")" \
	-ge 5 ]
check "tune: every kind of pass" [ \
	"$(grep -cE '^(1|4|8|16|prompt of [0-9]+) tokens: [0-9]+ kernels, [0-9]+ of them have better schedules; [0-9]'\
'+ passes in [0-9.]+ s' "$dir/err")" = 5 ]
check "tune: it is kept" [ "$(cat "$dir"/tuned/tuned-*.txt | grep -c '^matmul')" = "$(grep -c ^matmul "$dir/out")" ]
run tune "$model" --cache "$dir/tuned" --target avx2 --json --seconds 4 -q
check "tune --json: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
check "tune --json: $(head -c 300 "$dir/out")" out \
	'^\{"model":".*tale-q8_0\.gguf","target":"avx2","kernels":\[\{"key":"matmul\.[a-z0-9_.]*","gain":[0-9.]+,"sam'\
'ples":[0-9]+,"schedule":"weights .*","schedule_fields":\{"prefetch_level":[1-4],"prefetch_distance":[0-9]+,"unroll_k'\
'":[0-9]+,"row_blocks":[12],"tile_n":[0-9]+,"k_block_bytes":[0-9]+\}\}'

# ---- results of this machine are in packs only when asked for
tuned=$(grep -h '^matmul' "$dir"/tuned/tuned-*.txt | head -1 | cut -d' ' -f1)
plain=$(echo "$tuned" | sed 's/\.s[0-9a-f]*\././')
liked=$(echo "$plain" | sed 's/\.b1\./.b1.s50./')
case $plain in *.c1.*) ;; *) liked=$(echo "$plain" | sed 's/\.b1\./.b1.s53./') ;; esac
sed -i "s/^$tuned .*/$liked 1.500 9/" "$dir"/tuned/tuned-*.txt
run "$model" --target avx2 --cache "$dir/tuned" --out "$dir/usual.jkp"
run "$model" --target avx2 --cache "$dir/none" --out "$dir/usual2.jkp"
check "a tuned machine makes the same pack" cmp "$dir/usual.jkp" "$dir/usual2.jkp"
run list "$dir/usual.jkp"
check "which does not have the fastest schedule ($liked)" sh -c "! grep -q ' $liked ' '$dir/out'"
run "$model" --target avx2 --cache "$dir/tuned" --tuned --out "$dir/liked.jkp"
check "--tuned: status 0 (got $status): $(cat "$dir/err")" [ "$status" = 0 ]
run list "$dir/liked.jkp"
check "but --tuned does" grep -q " $liked " "$dir/out"
check "in words" grep -q "$liked .*KiB ahead" "$dir/out"
run show "$liked" --cache "$dir/tuned"
check "show: the schedule and its gain" grep -qE \
	'^# weights .* KiB ahead; measured here: 1\.50 times as fast as the default$' "$dir/out"
run show "$liked" --cache "$dir/tuned" --json
check "show --json: the schedule" grep -q '"schedule_fields":{"prefetch_level":' "$dir/out"

"$jitwarm" --help > "$dir/help"
check "--help lists the commands" [ \
	"$(grep -cE '^  jitwarm (MODEL|pack-model|list|show|verify|gc|export|import|explain|tune)' "$dir/help")" = 10 ]
check "the man page has every command" [ "$("$jitwarm" --print-man | grep -c '^\\fBjitwarm')" = 10 ]
check "man page is well formed" sh -c \
	"! command -v man > /dev/null || [ -z \"\$('$jitwarm' --print-man | man --warnings -l - 2>&1 > /dev/null)\" ]"
check "--version" grep -q '^jitwarm [0-9]' <<V
$("$jitwarm" --version)
V

finish
