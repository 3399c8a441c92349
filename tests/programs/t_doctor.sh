#!/bin/sh
# tests/programs/t_doctor.sh - jitrun doctor: that what it says of the machine is so, and that it says what would help.
. "${srcdir:-.}/tests/support/prelude.sh"
JITRUN_BENCH_BYTES=4194304 # how fast memory is read is not asked here
export JITRUN_BENCH_BYTES
HOME=$dir/home
export HOME
unset JITRUN_CACHE XDG_CACHE_HOME
mkdir "$HOME"
wrap=
run() { $wrap ./jitrun "$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?; }
member() { grep -o "\"$1\":[^,}]*" "$dir/out" | head -n 1 | cut -d: -f2-; }
narrow() {
	wide=$(grep -v "$dir" "$dir/out" | LC_ALL=C.UTF-8 awk 'length > 80')
	check "$1: at most 80 columns, but for paths: $wide" [ -z "$wide" ]
}

is 0 doctor
narrow "this machine"
check "it says that models run" grep -qx 'models run here yes' "$dir/out"
check "the processor: $(cat "$dir/out")" grep -q '^processor  *[A-Za-z]' "$dir/out"
check "the cache is not there yet" grep -q "$HOME/.cache/jitrun: will be made" "$dir/out"
check "nothing was made" [ ! -e "$HOME/.cache" ]
check "NVIDIA's driver is looked for" grep -Eq "^NVIDIA cards +(NVIDIA's driver|their driver is there)" "$dir/out"
check "nothing on stderr" [ ! -s "$dir/err" ]

# Each kind of card is there, or the reason why not
is 0 --devices
for driver in amd cuda; do
	check "$driver: $(cat "$dir/out")" grep -Eq "^$driver(:0 |  +no card: [A-Za-z'])" "$dir/out"
done

is 0 doctor --json
check "--json is a line" [ "$(wc -l < "$dir/out")" = 1 ]
check "--json: a target that jitrun knows: $(member target)" ./jitrun --isa "$(member target | tr -d '"')" --version
rate=$(member read_bytes_per_second)
check "--json: a plausible speed: $rate" awk "BEGIN { exit !($rate > 1e8 && $rate < 1e13) }"
check "--json: memory: $(member memory_bytes)" [ "$(member memory_bytes)" -gt 1000000 ]
for name in processor cores threads target memory_bytes available_bytes memlock_limit huge_pages cache cache_bytes \
	amd_cards libcuda devices runs advice; do
	check "--json has $name" grep -q "\"$name\":" "$dir/out"
done

# What is taken away is noticed
if command -v taskset > /dev/null; then
	cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	wrap="taskset -c $cpu"
	is 0 doctor --json
	check "one thread on one core: $(member threads)" [ "$(member hardware_threads) $(member threads)" = "1 1" ]
	wrap=
fi
(ulimit -f 4096; ./jitrun doctor > "$dir/out")
check "a limit on files: $(grep -A1 limits "$dir/out")" grep -q 'files (-f): [0-9.]* MiB' "$dir/out"
(ulimit -l 64; ./jitrun doctor > "$dir/out")
check "a limit on locked memory: $(grep limits "$dir/out")" grep -q 'locked memory (ulimit -l): 64.0 KiB' "$dir/out"

# The cache: what is in it; one that is refused
./jitrun "$model" --prompt x -n 1 -q > /dev/null 2>&1
is 0 doctor --json
check "kernels are counted: $(member cache_bytes)" [ "$(member cache_bytes)" -gt 1000 ]
check "it can be written" [ "$(member cache_writable)" = true ]
chmod 777 "$HOME/.cache/jitrun"
is 0 doctor
check "a cache that others may write is refused: $(grep -A2 ^cache "$dir/out")" grep -q \
	'^cache  *cannot be used: ' "$dir/out"
check "and what helps is said" grep -q '^what helps .*cache' "$dir/out"
wrap="env -u HOME"
is 0 doctor
check "no folder for a cache" grep -q '^cache  *none: ' "$dir/out"
wrap="env JITRUN_CACHE=$dir/a:$dir/b"
is 0 doctor
check "several folders" [ ! -s "$dir/err" ]
wrap=

refused "unexpected argument" 2 doctor this
is 0 doctor --help
check "--help" grep -q '^Usage: jitrun doctor' "$dir/out"
finish
