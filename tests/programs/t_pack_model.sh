#!/bin/sh
# tests/programs/t_pack_model.sh - packed models from outside: made, looked into, run, shared, refused, and cut while
# they are in use.
. "${srcdir:-.}/tests/support/prelude.sh"
jitwarm=./jitwarm
JITRUN_CACHE=$dir/cache
export JITRUN_CACHE
run() { "$program" "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
say() { ./jitrun "$@" --prompt "Once upon a time" -n 16 --temp 0 -q 2>> "$dir/err"; }

# ---- making
program=$jitwarm
is 0 pack-model "$model" --out "$dir/m.jkm" --target x86
check "its size is said" grep -q 'the model and [0-9]* kernels for avx2, .* MiB' "$dir/err"
(umask 077; cd / && env -i PATH="$PATH" TZ=Asia/Tokyo taskset 1 "$OLDPWD/jitwarm" pack-model \
	"$(realpath "$OLDPWD/$model" 2> /dev/null || realpath "$model")" --out "$dir/again.jkm" --target avx512amx \
	--target avx512vnni --target avx512bf16 --target avx512 --target avx2vnni --target avx2 -q)
check "the same file from elsewhere, on one core, with other settings" cmp "$dir/m.jkm" "$dir/again.jkm"
is 0 pack-model "$model" --out "$dir/m2.jkm" --json
check "--json" grep -q '"kernels":[1-9][0-9]*,"bytes":[1-9]' "$dir/out"
refused 'where to? Give --out FILE.jkm' 2 pack-model "$model"
refused 'is packed already' 2 pack-model "$dir/m.jkm" --out "$dir/x.jkm"
refused "$dir/none: cannot be opened" 1 pack-model "$dir/none" --out "$dir/x.jkm"
refused 'cannot open the directory of the packed model' 1 pack-model "$model" --out "$dir/none/x.jkm"
mkfifo "$dir/pipe"
refused 'is no regular file, so it is not replaced' 1 pack-model "$model" --out "$dir/pipe"
check "nothing was left" [ -z "$(find "$dir" -name 'x.jkm*' -o -name '.*.tmp')" ]

# ---- looking
is 0 list "$dir/m.jkm"
check "its sections are listed" grep -q '^ *[1-9][0-9]*  weights-cpu$' "$dir/out"
check "its kernels too" grep -q 'avx512vnni  .*m.jkm$' "$dir/out"
is 0 list "$dir/m.jkm" --json
check "in JSON too" grep -q '"section":"gguf-header"' "$dir/out"
is 0 verify "$dir/m2.jkm"
is 0 explain "$dir/m2.jkm" --cache "$dir/m2.jkm"
check "its kernels are what it needs" grep -q ', 0 missing' "$dir/err"

# ---- running
text=$(say "$model" --no-cache)
check "the model says something" [ -n "$text" ]
check "packed, it says the same" [ "$(say "$dir/m.jkm")" = "$text" ]
check "copied" [ "$(say "$dir/m.jkm" --copy-weights)" = "$text" ]
check "interpreted" [ "$(say "$dir/m.jkm" --device ref)" = "$text" ]
check "sealed, with nothing else" [ "$(say "$dir/m.jkm" --sealed --no-cache)" = "$text" ]
check "sealed, from what is only read" [ "$(chmod 444 "$dir/m.jkm"; HOME=/ say "$dir/m.jkm" --sealed)" = "$text" ]
cp "$dir/m.jkm" "$dir/a:b.jkm"
check "a name with a colon" [ "$(say "$dir/a:b.jkm" --sealed --no-cache)" = "$text" ]
check "as a cache of the model it is made from" [ "$(say "$model" --sealed --cache "$dir/m.jkm")" = "$text" ]
./jitrun "$dir/m.jkm" --prompt x -n 1 --json -q > "$dir/out" 2> "$dir/err"
check "no kernel was generated" grep -q '"kernels_generated":0' "$dir/out"

# ---- refused
program=./jitrun
cp "$dir/m2.jkm" "$dir/bad.jkm"
size=$(stat -c %s "$dir/bad.jkm")
truncate -s $((size - 1)) "$dir/bad.jkm"
refused 'is damaged: its size is' 1 "$dir/bad.jkm" --prompt x
cp "$dir/m2.jkm" "$dir/bad.jkm"
printf '\001' | dd of="$dir/bad.jkm" bs=1 seek=$((size / 2)) conv=notrunc 2> /dev/null
refused 'of its section weights-cpu, does not fit' 1 "$dir/bad.jkm" --prompt x --copy-weights
program=$jitwarm
refused 'of its section weights-cpu, does not fit' 3 verify "$dir/bad.jkm"
program=./jitrun
refused 'pack it with --target gfx1100' 1 "$dir/m2.jkm" --prompt x --device sim:gfx1100
chmod 666 "$dir/bad.jkm"
refused 'which lets others write it' 1 "$dir/bad.jkm" --prompt x
chmod 600 "$dir/bad.jkm"

# ---- weights kept by jitrun itself
XDG_CACHE_HOME=$dir/xdg
export XDG_CACHE_HOME
check "kept" [ "$(say "$model" --no-cache --cache-weights)" = "$text" ]
kept=$(ls "$dir/xdg/jitrun-weights/"*.jkm)
check "one entry: $kept" [ -s "$kept" ]
check "found" [ "$(say "$model" --no-cache --cache-weights)" = "$text" ]
check "still one" [ "$(ls "$dir/xdg/jitrun-weights/"*.jkm)" = "$kept" ]
is 0 "$model" --no-cache --prompt x -n 1 --cache-weights --cache-weights-limit 1
check "nothing to complain of" [ ! "$(grep 'not kept' "$dir/err")" ]
: > "$dir/in-the-way"
JITRUN_WEIGHT_CACHE=$dir/in-the-way/x
export JITRUN_WEIGHT_CACHE
is 0 "$model" --no-cache --prompt x -n 1
check "where weights cannot be kept, it is said" grep -q 'packed weights are not kept: .* cannot be opened' "$dir/err"
unset JITRUN_WEIGHT_CACHE

# ---- shared: the pages are the file's; cut while in use: a sentence, and no signal
printf '%s' '{% for m in messages %}{{ m.content }}{% endfor %}' > "$dir/t.jinja"
cp "$dir/m2.jkm" "$dir/cut.jkm"
mkfifo "$dir/turns"
: > "$dir/out"
./jitrun "$dir/cut.jkm" --chat --template "$dir/t.jinja" -n 8 --temp 0 -q < "$dir/turns" > "$dir/out" 2> "$dir/err" &
talking=$!
exec 3> "$dir/turns"
printf 'Once upon a time\n' >&3
tries=0
until [ -s "$dir/out" ] || [ $tries = 600 ] || ! kill -0 $talking 2> /dev/null; do sleep 0.1; tries=$((tries + 1)); done
check "the weights are mapped, read-only and shared" grep -q ' r--s .*cut.jkm' /proc/$talking/maps
anonymous=$(awk '/^Private_Dirty/ { print $2 }' /proc/$talking/smaps_rollup)
check "private memory is small: $anonymous KiB" [ "${anonymous:-999999}" -lt $((64 * 1024)) ]
sleep 0.2
truncate -s 4096 "$dir/cut.jkm"
printf 'and then\n' >&3
exec 3>&-
wait $talking
check "cut while in use: status 1 (got $?)" [ $? = 1 ]
check "and a sentence: $(cat "$dir/err")" grep -q '^jitrun: .* was cut short' "$dir/err"
finish
