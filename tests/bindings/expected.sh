# tests/bindings/expected.sh - what the program jitrun makes of a prompt, for tests of bindings; they source it.
#
# JITRUN_IDS: tokens behind "Once upon a time", greedily. JITRUN_SEEDED_IDS: with the model's defaults, a temperature of
# 1.2 and the seed 7. JITRUN_SEEDED_TEXT: a file with the very bytes of that text.
expect() {
	./jitrun "$JITRUN_MODEL" -p 'Once upon a time' "$@" --json > "$dir/line" 2> "$dir/err"
	sed -n 's/.*"ids": *\[\([^]]*\)\].*/\1/p' "$dir/line"
}
JITRUN_IDS=$(expect -n 24 --temp 0)
JITRUN_SEEDED_IDS=$(expect -n 40 --temp 1.2 --seed 7)
JITRUN_SEEDED_TEXT=$dir/seeded
export JITRUN_IDS JITRUN_SEEDED_IDS JITRUN_SEEDED_TEXT
./jitrun "$JITRUN_MODEL" -p 'Once upon a time' -n 40 --temp 1.2 --seed 7 -q > "$JITRUN_SEEDED_TEXT" 2> "$dir/err"
for said in "$JITRUN_IDS" "$JITRUN_SEEDED_IDS"; do
	check "jitrun says which tokens it made: $(cat "$dir/err")" [ -n "$said" ]
done
check "jitrun writes a text: $(cat "$dir/err")" [ -s "$JITRUN_SEEDED_TEXT" ]
