#!/bin/sh
# tests/programs/t_report.sh - jitrun doctor and its --report on the CPU and on a fake driver's cards: right ones, one
# that computes wrongly, one that stops, one that may not be opened.
. "${srcdir:-.}/tests/support/prelude.sh"
JITRUN_REPORT_QUICK=1 JITRUN_BENCH_BYTES=4194304
export JITRUN_REPORT_QUICK JITRUN_BENCH_BYTES
HOME=$dir/somebody
export HOME
mkdir "$HOME"
file=$dir/report.json
fake=$(pwd)/tests/fake_kfd/.libs/fake_kfd.so
cards= inject=
run() {
	if [ -n "$cards" ]; then
		env ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" FAKE_KFD="$cards" \
			FAKE_KFD_INJECT="$inject" FAKE_KFD_LOG="$dir/log" LD_PRELOAD="$fake" \
			./jitrun "$@" > "$dir/out" 2> "$dir/err" < /dev/null
	else
		./jitrun "$@" > "$dir/out" 2> "$dir/err" < /dev/null
	fi
	status=$?
}
# In what is printed, with the lines of a row as one
said() {
	awk '{ sub(/^ +/, " ", $0); printf "%s%s", (/^ / || NR == 1) ? "" : "\n", $0 } END { print "" }' \
		"$dir/out" > "$dir/rows"
	check "$1: $(cat "$dir/out" "$dir/err")" grep -qE "$2" "$dir/rows"
}
written() { check "the file has $1" grep -qE "$1" "$file"; }
# Nothing of its user: no path, no names, whatever happened. /dev and /proc are everybody's.
impersonal() {
	for word in "$dir" "$HOME" somebody "$(hostname)" "$(pwd)"; do
		[ -n "$word" ] || continue
		check "$1: the file does not hold $word" [ "$(grep -cF -e "$word" "$file")" = 0 ]
	done
	check "$1: a sentence for each rung, and at most ten more" [ "$(grep -c '^[a-z]' "$dir/out")" -le 22 ]
}

is 0 doctor --device cpu --report "$file"
said "all of the CPU's kernels" '^kernels +[1-9][0-9]* steps of 2 passes, 0 differ'
said "a model on the CPU" "^model +the logits of all 9 tokens are the CPU's"
said "a verdict" "^verdict +the device gives the CPU's bits"
written '"differences": 0'
written '"stopped": null'
impersonal "the CPU"
simulated=sim:sm90 # whose plans differ most from the CPU's
[ -n "${JITRUN_TEST_QUICK:-}" ] || simulated="sim:gfx1200 sim:sm80 sim:sm90 sim:sm90x2"
for card in $simulated; do
	is 0 doctor --device $card --report "$file"
	said "the kernels of $card" '^kernels +[1-9][0-9]* steps of 2 passes, 0 differ'
	said "a model on $card" "^model +the logits of all 9 tokens are the CPU's"
done
refused "cannot be written" 1 doctor --device cpu --report "$dir/none/report.json"
refused "which device is the report of" 2 doctor --report "$file"
refused "say where its report goes: --report FILE.json" 2 doctor --device cpu
refused "whose file is JSON anyway" 2 doctor --device cpu --report "$file" --json
is 1 doctor --device gpu --report "$file"
said "a device that there is not" '^stopped .*device "gpu" is unknown'
written '"stopped": ".*unknown'
said "what a card of AMD's needs" 'docs/amd.md'
is 1 doctor --device cuda:99 --report "$file"
said "what one of NVIDIA's needs" 'docs/nvidia.md'

if [ ! -e "$fake" ]; then
	echo "# skipped: $fake is not there"
	finish
	exit
fi
cards="gfx1101 cus=2,gfx1030 bar=small cus=2,gfx1036"
is 0 doctor
said "the driver's version" '^AMD driver +amdkfd 1.1[0-9]'
said "a card is listed" '^AMD card .*0000:03:00.0, gfx1101'
said "so are its units and memory" ' 2 compute units, up to 2200 MHz'
said "it can be opened" ' can be opened'
said "a small window is told of" 'Resizable BAR'
said "an integrated one has the machine's memory" "part of the machine's own"
is 0 doctor --json
check "--json has three cards" [ "$(grep -o '"pci":"' "$dir/out" | wc -l)" = 3 ]
check "a card has the name of its revision: $(cat "$dir/out")" sh -c \
	'[ ! -e /usr/share/libdrm/amdgpu.ids ] || grep -q "\"name\":\"\(AMD \)*Radeon RX 6800 XT\"" "$1"' - "$dir/out"
inject=fail=ioctl-render#1:ENODEV+
is 0 doctor
said "a card whose display driver does not answer" ' the display driver says nothing'
inject=denied
is 0 doctor
said "no right to open it" '/dev/kfd cannot be opened: Permission denied; add this user to the group'
is 1 doctor --device amd --report "$file"
said "a report of it" '^stopped .*Permission denied'
said "what to do about that" '^what to do +docs/amd.md'

cards="gfx1101 cus=2"
# The cards are slow where the machine is busy: only one that stops is not waited for.
export JITRUN_CARD_PATIENCE=60
if [ -z "${JITRUN_TEST_QUICK:-}" ]; then
	inject=
	is 0 doctor --device amd --report "$file"
	said "the memory of a card" '^memory +every kind of it holds what is written'
	said "its kernels" '^kernels +[1-9][0-9]* steps of 2 passes, 0 differ'
	said "launches" '^launch +[0-9.]+ us'
	said "by which way the card was used" "^used by +(calls of the driver|AMD's library)"
	impersonal "a card"
	inject=wedge=120 JITRUN_CARD_PATIENCE=3
	is 1 doctor --device amd --report "$dir/stops.json" --from 7
	mv "$dir/stops.json" "$file"
	said "a card that stops" '^stopped +while kernels were compared: gfx1101'
	said "what to do about a stop" '^what to do +send the file as it is'
	written '"stopped": "while kernels were compared: '
	impersonal "a card that stops"
	JITRUN_CARD_PATIENCE=60
fi
# One bit of what the kernels of a step wrote. Through libhsakmt all memory may be executed, and that is not looked at.
export JITRUN_AMD_THUNK=ioctl
inject=wrong=102
rm "$file"
is 3 doctor --device amd --report "$file" --from 7
named='(logits|value [0-9]+ \((floats|int8|scales)\))'
said "a wrong bit, its kernel and both values" \
	"^differs +[a-z]+\.[a-z0-9._]*gfx1101: element [0-9]+ of $named is 0x[0-9a-f]+,"
said "the verdict" '^verdict +.*not all bits are right'
written '"buffer": "'"$named"'"'
written '"found": [0-9]+'
check "one step is blamed, since the next begin with what is right" [ "$(grep -c '"buffer":' "$file")" = 1 ]
impersonal "a wrong card"
rm "$file"
inject=fault=80
is 1 doctor --device amd --report "$file" --from 2
said "by which way the card was used" '^used by +calls of the driver \(ioctl\) alone'
written '"memory_by": "ioctl"'
written '"queues_by": "ioctl"'
finish
