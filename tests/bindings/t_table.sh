#!/bin/sh
# tests/bindings/t_table.sh - whether the bindings reach all functions, constants and fields of the C interface, or say
# in bindings/*/left_out.txt why not; and that one who forgets either is told.
. "${srcdir:-.}/tests/support/prelude.sh"
command -v python3 > /dev/null || { echo "# skipped: there is no python3"; exit 77; }
[ -f jitrun-abi.json ] || ${MAKE:-make} -s jitrun-abi.json > /dev/null
run() { python3 "$top/tests/bindings/api_table.py" "$@" > "$dir/out" 2> "$dir/err"; status=$?; }
# wrong PATTERN ARGS...: refused, in a line that has the pattern
wrong() {
	pattern=$1; shift
	run "$@"
	check "$* -> status 1 (got $status): $(cat "$dir/err")" [ "$status" = 1 ]
	check "said '$pattern': $(head -n 5 "$dir/out")" grep -qF -e "$pattern" "$dir/out"
}

run jitrun-abi.json "$top/bindings"
check "what is neither reached nor left out: $(head -n 40 "$dir/out" "$dir/err")" [ "$status" = 0 ]
tail -n 1 "$dir/out"
for binding in "$top"/bindings/*/; do
	check "$binding has a list of what it leaves out" [ -s "${binding}left_out.txt" ]
done

# A function, a constant, a field that is set by no name and a field of results that are new.
sed 's/"jit_model_token"/"jit_model_new"/' jitrun-abi.json > "$dir/abi.json"
for binding in node python rust; do
	wrong "$binding: jit_model_new is neither" "$dir/abi.json" "$top/bindings"
done
sed 's/"JIT_POOL_LAST"/"JIT_POOL_FIRST"/' jitrun-abi.json > "$dir/abi.json"
wrong "rust: JIT_POOL_FIRST is neither" "$dir/abi.json" "$top/bindings"
sed 's/"name": "logit_bias"/"name": "new_list"/' jitrun-abi.json > "$dir/abi.json"
wrong "rust: jit_sampling.new_list is neither" "$dir/abi.json" "$top/bindings"
sed 's/"name": "bounded_gain"/"name": "new_gain"/' jitrun-abi.json > "$dir/abi.json"
wrong "rust: jit_model_info.new_gain is neither" "$dir/abi.json" "$top/bindings"

# A list that does not fit.
mkdir -p "$dir/bindings" && cp -r "$top/bindings/rust" "$dir/bindings/rust" && chmod -R u+w "$dir/bindings"
run jitrun-abi.json "$dir/bindings"
check "a copy is right: $(cat "$dir/out")" [ "$status" = 0 ]
echo 'jit_model_token   it is there all the same' >> "$dir/bindings/rust/left_out.txt"
wrong "jit_model_token fits nothing that is left out" jitrun-abi.json "$dir/bindings"
sed 's/^\(JIT_KV_\*\).*/\1/' "$top/bindings/rust/left_out.txt" > "$dir/bindings/rust/left_out.txt"
wrong "JIT_KV_* has no reason" jitrun-abi.json "$dir/bindings"
# What a comment names is not reached.
cp "$top/bindings/rust/left_out.txt" "$dir/bindings/rust/left_out.txt"
sed -i 's/sys::jit_model_stop(self.raw(), number)/none(number) \/\/ jit_model_stop/' \
	"$dir/bindings/rust/jitrun/src/vocabulary.rs"
wrong "rust: jit_model_stop is neither" jitrun-abi.json "$dir/bindings"
finish
