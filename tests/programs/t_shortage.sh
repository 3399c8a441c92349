#!/bin/sh
# tests/programs/t_shortage.sh - the programs where something of the system's is short: files may not grow, descriptors
# are few, writers were killed; and packs that were forged.
# Whatever happens there is one sentence or all is done, and nothing that was kept is lost.
. "${srcdir:-.}/tests/support/prelude.sh"
jitwarm=./jitwarm
run() { "$jitwarm" "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
JITRUN_CACHE=$dir/cache
export JITRUN_CACHE
warm() { "$jitwarm" --shape tiny --target avx2 --kv-type f16 --batch 16 -q "$@"; }
warm --out "$dir/good.jkp" || exit 1
warm --out "$dir/layer" || exit 1
count() { ls "$1" | grep -c '\.jko$'; }
all=$(count "$dir/layer")

# ---- files may not grow: ulimit -f counts halves of KiB, or KiB
# limited COMMAND...
limited() { (ulimit -f 1; exec "$@") 2> "$dir/err" < /dev/null | cat > "$dir/out"; }
limited_status() { (ulimit -f "$1"; shift; exec "$@") > /dev/null 2> "$dir/err" < /dev/null; status=$?; }
too_large() {
	check "$1: status 1 (got $status)" [ "$status" = 1 ]
	check "$1: one sentence, which says why: $(head -c 300 "$dir/err")" [ "$(wc -l < "$dir/err")" = 1 ]
	check "$1: $(head -c 300 "$dir/err")" grep -q 'File too large\.$' "$dir/err"
}
limited_status 1 "$jitwarm" --shape tiny --target avx2 --out "$dir/f.jkp"
too_large "a pack"
check "no part of a pack is left" [ -z "$(ls -A "$dir" | grep 'f\.jkp')" ]
limited_status 1 "$jitwarm" --shape tiny --target avx2 --out "$dir/flayer"
too_large "a directory"
limited_status 1 "$jitwarm" export "$dir/f.jkp" --cache "$dir/layer"
too_large "export"
limited_status 1 "$jitwarm" import "$dir/good.jkp" --cache "$dir/fimport"
too_large "import"
check "no temporary files are left" [ -z "$(find "$dir" -name '*.tmp')" ]
./jitrun "$model" --no-cache --prompt "Once upon a time" -n 12 --temp 0 -q > "$dir/want" 2> /dev/null
limited ./jitrun "$model" --cache "$dir/frun" --prompt "Once upon a time" -n 12 --temp 0
check "jitrun tells its story though it can store little: $(tail -n 1 "$dir/err")" cmp -s "$dir/want" "$dir/out"
check "and says so" grep -qE '^cache: [1-9][0-9]* kernels? not stored; --report says why$' "$dir/err"
limited_status 1 ./jitrun "$model" --cache "$dir/frun" --prompt "Once upon a time" -n 400 --ignore-eos --jitdump "$dir"
check "jitrun and jitdump end by themselves (status $status)" [ "$status" -lt 2 ]
limited_status 1 ./jitbench --shape tiny --write "$dir/f.gguf" -p 1 -n 1 --no-start
check "jitbench ends by itself (status $status): $(head -c 300 "$dir/err")" [ "$status" = 1 -a "$(wc -l < "$dir/err")" \
	= 1 ]

# ---- few descriptors
few() {
	n=$1; shift
	(ulimit -n "$n"; exec "$@") > "$dir/out" 2> "$dir/err" < /dev/null
	status=$?
}
./jitrun "$model" --cache "$dir/frun" --prompt "Once upon a time" -n 12 --temp 0 > "$dir/want" 2> /dev/null
for n in 8 7 6 5; do
	few $n ./jitrun "$model" --cache "$dir/frun" --prompt "Once upon a time" -n 12 --temp 0
	[ $status = 127 ] || [ "$(wc -l < "$dir/err")" = 1 ] || cmp -s "$dir/want" "$dir/out"
	check "jitrun with $n descriptors does all, or says one sentence: $(head -c 300 "$dir/err")" [ $? = 0 ]
	check "and calls no kernel damaged that cannot be read" [ "$(grep -c damaged "$dir/err")" = 0 ]
done
few 5 ./jitrun "$model" --cache "$dir/frun" --prompt "Once upon a time" -n 12 --temp 0 --json
check "what could not be read is counted: $(cat "$dir/err")" sh -c \
	"[ $status != 0 ] || grep -q '\"cache_damaged\": *0,' '$dir/out'"
"$jitwarm" verify "$dir/layer:$dir/good.jkp" > "$dir/want" 2> "$dir/want.err"
check "verify: two sources: $(cat "$dir/want.err")" grep -q "^$((2 * all)) the same, 0 different, 0 damaged" \
	"$dir/want.err"
for n in 16 8 7 6 5 4 3; do
	for command in "verify --remove" list gc; do
		few $n "$jitwarm" $command "$dir/layer:$dir/good.jkp"
		case $status in
		0) done=yes ;;
		1) done=$(wc -l < "$dir/err"); [ "$done" = 1 ] && done=yes ;;
		127) done=yes ;;           # not even loaded
		*) done="status $status" ;;
		esac
		check "$command with $n descriptors ($status): $(head -c 300 "$dir/err")" [ "$done" = yes ]
		check "$command with $n descriptors calls nothing damaged" sh -c \
			"! grep -qE 'is damaged|unreadable|[1-9][0-9]* are damaged' '$dir/out' '$dir/err'"
		[ $n -lt 8 ] || check "$n descriptors are enough for $command: $(head -c 200 "$dir/err")" [ "$status" \
			= 0 ]
	done
	check "nothing was lost with $n descriptors" [ "$(count "$dir/layer")" = "$all" ]
done

# ---- writers that were killed
touch -d '1 minute ago' "$dir/layer/.0123456789abcdef.jko-4194305-0-000000001.tmp" \
	"$dir/.again.jkp-4194305-0-000000001.tmp" "$dir/.again.jkp.tmp"
run list "$dir/layer"
check "list tells of them: $(cat "$dir/err")" grep -q '^1 temporary files of dead processes, which gc removes$' \
	"$dir/err"
run verify "$dir/layer"
check "verify too" grep -q '^1 temporary files of dead processes, which gc removes$' "$dir/err"
run verify "$dir/layer" --json
check "and for programs" grep -q '"abandoned_files":1,' "$dir/out"
run gc "$dir/layer"
check "gc removes them and nothing else" [ -z "$(find "$dir/layer" -name '*.tmp')" -a "$(count "$dir/layer")" = "$all" ]
warm --out "$dir/again.jkp"
check "a pack's go when it is written again; other files stay" [ "$(ls -A "$dir" | grep -c 'again\.jkp')" = 2 -a -e \
	"$dir/.again.jkp.tmp" ]

# ---- damage is called so
file=$(ls "$dir"/layer/*.jko | head -n 1)
printf 'X' | dd of="$file" bs=1 seek=200 conv=notrunc 2> /dev/null
run explain --shape tiny --target avx2 --kv-type f16 --batch 16 --cache "$dir/layer"
check "explain: status 3 (got $status)" [ "$status" = 3 ]
check "explain: one is damaged, none missing: $(cat "$dir/err")" grep -q \
	", $((all - 1)) in the cache, 0 missing, 1 damaged\$" "$dir/err"
check "explain: its line" [ "$(grep -c '^damaged  [a-z0-9_.]*  .jitwarm verify. says how' "$dir/out")" = 1 ]
key=$(sed -n 's/^damaged  \([a-z0-9_.]*\) .*/\1/p' "$dir/out")
run show "$key" --cache "$dir/layer"
check "show: damaged (status $status)" sh -c "[ $status = 3 ] && grep -q '^# in the cache, but damaged$' '$dir/out'"
run show "$key" --cache "$dir/nowhere"
check "show: a cache that is not there" grep -q '^# whether it is in the cache is not known: .*nowhere' "$dir/out"
run list "$dir/layer"
check "list: damaged: $(cat "$dir/err")" sh -c \
	"grep -q '? (damaged)' '$dir/out' && grep -q ' 1 that cannot be used' '$dir/err'"

# ---- forged packs
key=$(tests/forge_pack "$dir/good.jkp" "$dir/forged.jkp") || exit 1
refused "is not what is made for this key" 1 import "$dir/forged.jkp"
check "import names the kernel: $(cat "$dir/err")" grep -qF " $key " "$dir/err"
check "nothing of a forged pack is imported" [ "$(count "$dir/cache")" = 0 ]
is 3 verify "$dir/forged.jkp"
check "verify names it as well" grep -qF "$key differs from the code generated now" "$dir/out"
is 0 import "$dir/forged.jkp" --unverified
check "--unverified takes it and says so: $(cat "$dir/err")" grep -q "^$all entries imported unverified$" "$dir/err"
is 0 import "$dir/good.jkp"
is 0 verify

finish
