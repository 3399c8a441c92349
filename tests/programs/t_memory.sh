#!/bin/sh
# tests/programs/t_memory.sh - every program and mode where memory is short: whatever the limit of their address space,
# they give all that they give without one, or one sentence.
# A normal run tries a few limits for each mode, other ones for each. JITRUN_TEST_QUICK: fewer; JITRUN_TEST_FULL: a few
# hundred, up to 400 MB.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm      # many small files, which are synced elsewhere
export TMPDIR
. "${srcdir:-.}/tests/support/prelude.sh"
XDG_CACHE_HOME=$dir/home TMPDIR=$dir JITRUN_BENCH_BYTES=4194304
export XDG_CACHE_HOME JITRUN_BENCH_BYTES
unset JITRUN_CACHE
# A driver of Vulkan takes memory of its own, and is not listed where it gets none.
VK_DRIVER_FILES=/dev/null VK_ICD_FILENAMES=/dev/null
export VK_DRIVER_FILES VK_ICD_FILENAMES
least=8000 most=400000 hang=120 size=1
test -n "${JITRUN_TEST_QUICK:-}" && size=0
test -n "${JITRUN_TEST_FULL:-}" && size=2

printf 'Once upon a time there was a cat who sat on a mat.' > "$dir/text"

# limited KIB COMMAND...: its status is 124 when it does not end
limited() {
	kib=$1; shift
	timeout -k 1 $hang sh -c 'echo $$ > "$TMPDIR/pid"; ulimit -v "$0" && exec "$@"' "$kib" "$@" \
		> "$dir/out" 2> "$dir/err" < "$dir/text"
	status=$?
	read -r pid < "$dir/pid"
	[ ! -e "/tmp/perf-$pid.map" ] || rm -f "/tmp/perf-$pid.map"
}
limited 90000 ./jitrun --version
if [ "$status" != 0 ]; then
	echo "# skipped: the address space cannot be limited here, or the programs are built with a sanitizer"
	exit 77
fi

# All limits there are lie a hundredth apart, and not less than 130 KiB. A mode gets `tries` of them, one of each part,
# and where in the part goes by its number.
limits=$(awk -v at=$least -v most=$most 'BEGIN {
	for (; at < most; at += at > 13000 ? int(at / 100) : 130)
		printf "%d ", at
}')
# some NUMBER TRIES
some() {
	echo "$limits" | awk -v number="$1" -v tries="$2" '{
		n = tries < NF ? tries : NF
		for (k = 0; k < n; k++) {
			from = int(k * NF / n)
			part = int((k + 1) * NF / n) - from
			print $(from + (number * 7919 + k * 104729) % part + 1)
		}
	}'
}

# ---- judging: what a mode gives without a limit is asked for when it first succeeds with one

# What of the output is the same each time: all, all up to its timings, or the number of lines.
essence() {
	case $said in
	exact) cksum < "$dir/out" ;;
	timings) sed 's/"timings".*//' "$dir/out" | cksum; tail -c 1 "$dir/out" | cksum ;;
	lines) wc -l < "$dir/out"; tail -c 1 "$dir/out" | cksum ;;
	esac
	case $wrote in
	same) find "$dir/made" -type f | sort | xargs cat | cksum ;;
	count) find "$dir/made" -type f | wc -l ;;
	some) [ -n "$(find "$dir/made" -type f -size +0)" ] && echo yes ;;
	esac
}
prepare() {
	[ $wrote = nothing ] || { rm -rf "$dir/made"; mkdir "$dir/made"; }
	[ $cache = none ] || { rm -rf "$dir/cache"; mkdir "$dir/cache"; }
	[ $cache = none ] || [ $cache = empty ] || cp "$dir/$cache"/* "$dir/cache"
}
# 127: the program could not even be loaded, which is the loader's business.
refused_in_a_sentence() {
	[ "$status" = 127 ] && return 0
	[ "$status" = 1 ] && [ "$(wc -l < "$dir/err")" = 1 ] && grep -q "^$name: .\{16\}.*[^ :]\.$" "$dir/err"
}
give_all() {
	essence > "$dir/got"
	if [ ! -f "$dir/want" ]; then
		prepare
		limited unlimited "$@"
		[ "$status" = 0 ] || bad "$* without a limit: status $status: $(head -c 300 "$dir/err")"
		essence > "$dir/want"
		status=0
	fi
	cmp -s "$dir/got" "$dir/want"
}

number=0
# mode TRIES COMMAND...: TRIES of a normal run. Before it: said (exact), wrote (nothing), cache (none), answer (a status
# that says no, besides 0 and 1), told (what it says instead of a part of its output that it could not have).
mode() {
	tries=$1; shift
	number=$((number + 1)) done=0 refused=0
	case $1 in env) name=${3#./} ;; *) name=${1#./} ;; esac
	case $size in
	0) [ $((number % 4)) = 0 ] && tries=1 || tries=$((tries / 4)) ;;
	2) tries=100000 ;;
	esac
	rm -f "$dir/want"
	for limit in $(some $number $tries); do
		prepare
		limited "$limit" "$@"
		if [ "$status" = 0 ] && { { [ -n "$told" ] && grep -q "$told" "$dir/out"; } || give_all "$@"; }; then
			done=$((done + 1))
		elif [ -n "$answer" ] && [ "$status" = "$answer" ] && [ -s "$dir/out" ]; then
			ok
		elif refused_in_a_sentence; then
			refused=$((refused + 1))
		else
			bad "$* in $limit KiB: status $status, $(wc -c < "$dir/out") bytes written," \
				"and said: $(head -c 300 "$dir/err")"
		fi
	done
	passed=$((passed + done + refused))
	[ $size != 2 ] || echo "# $*: $done of $tries limits are enough, $refused are not"
	said=exact wrote=nothing cache=none answer= told=
}
said=exact wrote=nothing cache=none answer= told=
# enough: of the mode before, some limits were enough, and some were not
enough() {
	check "mode $number: some limits are enough" [ $done -gt 0 ]
	check "mode $number: some limits are not" [ $refused -gt 0 ]
}

# ---- what is there to run them on

tiny=$dir/tiny.gguf few=$dir/few
mkdir "$few"
./jitbench --shape tiny --write "$tiny" -p 0 -n 0 --no-start > "$dir/out" 2>&1 || { cat "$dir/out"; exit 1; }
warm() { ./jitwarm "$tiny" --kv-type f16 --batch 1 -q --out "$@" || exit 1; }
warm "$dir/kept.jkp"
warm "$dir/warm"
warm "$dir/cards.jkp" --target gfx1100
cp $(ls "$dir"/warm/*.jko | sed -n '1~9p') "$few"
key=$(./jitwarm list "$dir/kept.jkp" 2> "$dir/err" | grep -o 'matmul[^ ]*' | head -n 1)
row='{"test": "x bf16 matrix 64x64 c1", "microseconds": 0.125, "share": 0.75, "noisy": ""}'
about='"suite": "jitrun kernels 1", "version": "1", "target": "avx2", "threads": 2'
echo "{$about, \"rows\": [$row]}" > "$dir/a.json"

# ---- jitrun

mode 12 ./jitrun "$model" --temp 0 --prompt Once -n 4 -q --no-cache -t 1; [ $size = 0 ] || enough
mode 12 ./jitrun "$model" --temp 0 --prompt Once -n 4 -q --no-cache -t 3; [ $size = 0 ] || enough
mode 2 ./jitrun "$model" --temp 0 --file - -n 3 --echo -q --no-cache -t 3 --speculate 4
mode 2 ./jitrun "$model" --perplexity "$dir/text" -c 8 -q --no-cache -t 1
said=timings; mode 2 ./jitrun "$model" --temp 0 --file "$dir/text" -n 3 --json --no-cache -t 1
run_tiny() {
	tries=$1; shift
	mode "$tries" ./jitrun "$tiny" --temp 0 --prompt-ids 1,2,3 -n 4 --print-ids -q -t 1 --speculate off "$@"
}
run_tiny 2 --no-cache --device ref
run_tiny 2 --no-cache --device sim:gfx1100 --units 1
run_tiny 2 --no-cache --device sim:gfx1200 --numerics bounded
run_tiny 2 --no-cache --kv-type q8_0 --isa avx2 --tune off
run_tiny 2 --no-cache --activations f32 --kv-type f32 --gdb
said=lines; mode 2 ./jitrun "$tiny" --temp 0 --prompt-ids 1,2,3 -n 4 --json --report -q -t 1 --no-cache
said=lines; mode 2 ./jitrun "$tiny" --temp 0 --prompt-ids 1,2,3 -n 4 --print-ids --report -q -t 1 --tune off --no-cache
wrote=some; run_tiny 2 --no-cache --trace "$dir/made/trace"
wrote=same; run_tiny 2 --no-cache --tune off --dump-ir "$dir/made/ir"
wrote=same; run_tiny 2 --no-cache --tune off --dump-asm "$dir/made/asm"
wrote=some; run_tiny 2 --no-cache --jitdump "$dir/made"
run_tiny 2 --no-cache --perf-map
cache=empty; run_tiny 2 --cache "$dir/cache"
cache=warm; run_tiny 2 --cache "$dir/cache" --batch 1
cache=few; run_tiny 2 --cache "$dir/cache" --batch 1 --tune off
run_tiny 2 --sealed --cache "$dir/kept.jkp" --batch 1
cache=warm; run_tiny 2 --sealed --cache "$dir/cache" --batch 1
cache=empty; mode 2 ./jitrun "$tiny" --temp 0 --prompt-ids 1,2,3 -n 40 --print-ids -q -t 1 --cache "$dir/cache"
wrote=same; mode 2 ./jitrun "$tiny" --target gfx1100 --dump-objects "$dir/made" -q
mode 2 ./jitrun --devices
for program in jitrun jitwarm jitbench; do
	for what in help help-all version print-man print-completion=bash print-completion=zsh; do
		mode 1 ./$program --$what
	done
done

# ---- jitwarm

mode 6 ./jitwarm "$model" --out "$dir/made/kernels.jkp" -q; [ $size = 0 ] || enough
wrote=same; mode 2 ./jitwarm "$tiny" --kv-type f16 --batch 1 --out "$dir/made/kernels.jkp" -q
wrote=count; mode 2 ./jitwarm "$tiny" --kv-type f16 --batch 1 --out "$dir/made" -q
wrote=same said=lines
mode 2 ./jitwarm --shape tiny --target gfx1100 --kv-type f16 --batch 1 --out "$dir/made/cards.jkp"
cache=warm told=unreadable; mode 2 ./jitwarm list "$dir/cache"
told=unreadable; mode 2 ./jitwarm list "$dir/kept.jkp" --json
cache=few answer=3 told="is not known"; mode 2 ./jitwarm show "$key" --cache "$dir/cache"
said=lines answer=3; mode 2 ./jitwarm show "$key" --json --cache "$dir/kept.jkp"
answer=3 told="is not known"; mode 2 ./jitwarm show matmul.q8_0.aq8_0.128x256.c4.b1.gfx1100 --cache "$dir/cards.jkp"
cache=few answer=3; mode 2 ./jitwarm verify "$dir/cache"
cache=few answer=3; mode 2 ./jitwarm verify "$dir/cache" --remove
answer=3; mode 2 ./jitwarm verify "$dir/cards.jkp"
cache=warm answer=3; mode 2 ./jitwarm explain "$tiny" --kv-type f16 --batch 1 --cache "$dir/cache"
cache=warm wrote=same said=lines; mode 2 ./jitwarm export "$dir/made/kernels.jkp" --cache "$dir/cache"
cache=few said=lines; mode 2 ./jitwarm import "$dir/kept.jkp" --cache "$dir/cache"
cache=few said=lines; mode 2 ./jitwarm import "$dir/kept.jkp" --unverified --cache "$dir/cache"
cache=few; mode 2 ./jitwarm gc "$dir/cache"
said=lines cache=empty; mode 1 ./jitwarm tune "$tiny" --seconds 1 -q --cache "$dir/cache"

# ---- jitbench; what it measures suites, passes and schedules with is more than these limits

said=lines; mode 2 ./jitbench --shape tiny -p 4 -n 2 -r 1 --no-start --force -t 1 --no-cache -o json
said=lines wrote=same
mode 1 ./jitbench --shape tiny --write "$dir/made/x.gguf" -p 0 -n 1 -r 1 --no-start --force -t 1 --no-cache
said=lines; mode 2 ./jitbench "$model" -p 0 -n 0 -r 1 --force -t 1 --no-cache -o csv
said=lines cache=empty; mode 2 ./jitbench --shape tiny -p 0 -n 0 -r 1 --force -t 1 --cache "$dir/cache"
said=lines; mode 1 ./jitbench --shape tiny --kernels -r 1 --force -t 1
said=lines; mode 1 ./jitbench --shape tiny --kernels --device sim:gfx1100 -r 1 --force -t 1
mode 1 env PATH=/nonexistent ./jitbench --shape tiny --predict --device sim:gfx1100
said=lines; mode 2 ./jitbench suite tiny-64x64x128 -r 1 --force -t 1 -o json
mode 2 ./jitbench compare "$dir/a.json" "$dir/a.json"
mode 2 ./jitbench compare "$dir/a.json" "$dir/a.json" -o json
said=lines; mode 1 ./jitbench passes --shape tiny -r 1 -t 1
said=lines; mode 1 ./jitbench schedules --shape tiny -r 1 -t 1
finish
