#!/bin/sh
# tests/programs/t_ladder.sh - the ten rungs of jitrun doctor --report on a fake driver's card: a process that is killed
# in each of them leaves its name on the disk, --from goes on behind it, a fault is the rung's that met it, and the
# verdict names what was not tried.
. "${srcdir:-.}/tests/support/prelude.sh"
JITRUN_REPORT_QUICK=1 JITRUN_AMD_THUNK=ioctl
export JITRUN_REPORT_QUICK JITRUN_AMD_THUNK
file=$dir/report.json
fake=$(pwd)/tests/fake_kfd/.libs/fake_kfd.so
names="end store workgroup instructions barrier stale.data kernels layer token tokens"
run() {
	env ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" FAKE_KFD="gfx1101 cus=2" \
		FAKE_KFD_INJECT="$inject" FAKE_KFD_LOG="$dir/log" JITRUN_CARD_PATIENCE="$patience" LD_PRELOAD="$fake" \
		./jitrun "$@" > "$dir/out" 2> "$dir/err" < /dev/null
	status=$?
}
name() { echo "$names" | cut -d' ' -f"$1" | tr . ' '; }
# What the file says of a rung
state() {
	tr -d '\n' < "$file" | grep -o "\"rung\": $1, *\"name\": \"[^\"]*\", *\"state\": \"[^\"]*\"" |
		sed 's/.*: "//; s/"//'
}
verdict() { sed -n 's/^ *"verdict": "\(.*\)".*/\1/p' "$file"; }
is_state() { check "rung $1 is '$(state "$1")', expected '$2'" [ "$(state "$1")" = "$2" ]; }

inject= patience=60
refused "goes with --device and --report" 2 doctor --from 3
refused "between 1 and 10" 2 doctor --device cpu --report "$file" --from 11
./jitrun doctor --device cpu --report "$file" --from 9 > "$dir/out" 2> "$dir/err"
check "a new file from rung 9: $(cat "$dir/out" "$dir/err")" [ $? = 0 ]
is_state 8 "not tried"
is_state 9 passed
check "the verdict: $(verdict)" [ "$(verdict)" = "the device gives the CPU's bits; not tried: end, store, workgroup, \
instructions, barrier, stale data, kernels, layer" ]
if [ ! -e "$fake" ]; then
	echo "# skipped: $fake is not there"
	finish
	exit
fi
refused "is no report of amd that --from could go on with" 1 doctor --device amd --report "$file" --from 2
echo '{}' > "$file"
refused "is no report of amd" 1 doctor --device amd --report "$file" --from 2
rm "$file"

# Each rung meets a fault, and none behind it is tried.
inject=fault=1
i=1
while [ $i -le 10 ]; do
	is 1 doctor --device amd --report "$file" --from $i
	is_state $i stopped
	[ $i = 10 ] || is_state $((i + 1)) "not tried"
	[ $i = 10 ] || check "rung $i: the verdict names the next: $(verdict)" \
		sh -c 'echo "$1" | grep -q "not tried: .*$2"' - "$(verdict)" "$(name $((i + 1)))"
	check "rung $i stopped: $(verdict)" sh -c 'echo "$1" | grep -q "stopped: .*$2"' - "$(verdict)" "$(name $i)"
	i=$((i + 1))
done
check "what stopped is remembered: $(verdict)" [ "$(verdict)" = "the device cannot be used like this; stopped: end, \
store, workgroup, instructions, barrier, stale data, kernels, layer, token, tokens" ]
rm "$file"

# Each rung hangs, and the process is killed like one of a machine that died.
inject="destroy=60000 wedge=1" patience=600
i=1
while [ $i -le 10 ]; do
	run doctor --device amd --report "$file" --from $i &
	child=$!
	n=0
	while [ "$(state $i 2> /dev/null)" != begun ] && [ $n -lt 300 ]; do
		sleep 0.1
		n=$((n + 1))
	done
	is_state $i begun
	jitrun=$(ps -o pid= --ppid $child | head -1)
	[ -z "$jitrun" ] || kill -9 $jitrun
	wait $child
	check "rung $i: the file is whole" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$file"
	[ $i = 1 ] || is_state $((i - 1)) "did not come back"
	i=$((i + 1))
done
inject=fault=1 patience=60
is 1 doctor --device amd --report "$file" --from 10
check "what did not come back: $(verdict)" [ "$(verdict)" = "the device cannot be used like this; stopped: tokens; \
did not come back: end, store, workgroup, instructions, barrier, stale data, kernels, layer, token" ]

# One bit is wrong of what a packet wrote. Which packet of a rung writes a result is tried.
for rung in 3 4 5 6; do
	n=3
	rm "$file"
	while [ "$(state $rung 2> /dev/null)" != differs ] && [ $n -lt 20 ]; do
		inject="wrong=$n fault=150"
		rm -f "$file"
		run doctor --device amd --report "$file" --from $rung
		n=$((n + 1))
	done
	is_state $rung differs
	check "rung $rung: the verdict says so: $(verdict)" sh -c 'echo "$1" | grep -q "differs: .*$2"' - "$(verdict)" \
		"$(name $rung)"
done

rm "$file"
# A card that is right
if [ -z "${JITRUN_TEST_QUICK:-}" ]; then
	inject=
	is 0 doctor --device amd --report "$file"
	check "a right card: $(verdict)" [ "$(verdict)" = "the device gives the CPU's bits" ]
	for i in 1 2 3 4 5 6 7 8 9 10; do
		is_state $i passed
	done
	for member in kernel_string amdkfd firmware mes sdma sos link_speed link_width displays visible_mib \
		core_clocks; do
		check "the file says $member" grep -q "\"$member\": " "$file"
	done
fi
finish
