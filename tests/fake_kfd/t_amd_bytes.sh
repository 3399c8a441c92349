#!/bin/sh
# tests/fake_kfd/t_amd_bytes.sh - the code that the device amd puts into a card's memory is that of --dump-objects, byte
# for byte.
. "${srcdir:-.}/tests/support/prelude.sh"
fake=$(pwd)/tests/fake_kfd/.libs/fake_kfd.so
if [ ! -e "$fake" ]; then
	echo "# skipped: $fake is not there"
	exit 77
fi
# The number of eight bytes at a place of a file
number() { od -An -t u8 -j "$2" -N 8 "$1" | tr -d ' '; }
# Whether a card's memory has both segments of a program that are loaded and do not change: what is read and what runs
holds() {
	for header in 120 176; do
		offset=$(number "$2" $((header + 8)))
		address=$(number "$2" $((header + 16)))
		bytes=$(number "$2" $((header + 32)))
		[ "$bytes" -gt 256 ] && cmp -s -n "$bytes" -i "$address:$offset" "$1" "$2" || return 1
	done
}
found() {
	for code in "$dir/code".*; do
		holds "$code" "$1" && return 0
	done
	return 1
}
cards=gfx1101
[ -n "${JITRUN_TEST_QUICK:-}" ] || cards="gfx1030 gfx1101 gfx1201"
for card in $cards; do
	rm -rf "$dir/objects" "$dir/code".*
	./jitrun "$model" --target $card --dump-objects "$dir/objects" -q
	check "$card: there are programs" [ -s "$dir/objects/pass-c1.$card.co" ]
	env ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0" FAKE_KFD=$card FAKE_KFD_CODE="$dir/code" \
		JITRUN_CARD_PATIENCE=60 FAKE_KFD_LOG="$dir/log" LD_PRELOAD="$fake" ./jitrun "$model" --device amd \
		--no-cache --speculate off -p Once -n 2 --temp 0 -q > "$dir/out" 2> "$dir/err"
	check "$card: it ran: $(cat "$dir/err")" [ $? = 0 -a -s "$dir/out" ]
	check "$card: code was put there" [ "$(ls "$dir/code".* | wc -l)" -ge 2 ]
	check "$card: a token's program is in its memory" found "$dir/objects/pass-c1.$card.co"
	# One byte that is another is seen
	cp "$dir/objects/pass-c1.$card.co" "$dir/other.co"
	at=$(($(number "$dir/other.co" 184) + 300))
	printf '\125' | dd of="$dir/other.co" bs=1 seek=$at conv=notrunc 2> /dev/null
	check "$card: another byte is seen" sh -c '! cmp -s "$1" "$2"' - "$dir/other.co" "$dir/objects/pass-c1.$card.co"
	if found "$dir/other.co"; then other=found; else other=none; fi
	check "$card: another program is not" [ $other = none ]
done
finish
