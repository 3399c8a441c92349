#!/bin/sh
# tests/bindings/t_rust.sh - the Rust crates from outside: built, documented and tested by cargo without a registry.
. "${srcdir:-.}/tests/support/prelude.sh"
skip() { echo "# skipped: $*"; exit 77; }
lib=.libs/libjitrun.so
[ -f $lib ] || skip "there is no shared library in this build"
# A library with sanitizers cannot be loaded by a program that has none.
! nm -D $lib 2> /dev/null | grep -q __asan_init || skip "the library has sanitizers"
cargo=
# Debian's first: the crates are for this version and later ones.
for p in /usr/bin cargo; do
	if [ $p = cargo ]; then
		cargo --version > /dev/null 2>&1 && rustc --version > /dev/null 2>&1 && cargo=cargo
	elif [ -x $p/cargo ] && [ -x $p/rustc ]; then
		cargo=$p/cargo RUSTC=$p/rustc RUSTDOC=$p/rustdoc
		export RUSTC RUSTDOC
	fi
	[ -z "$cargo" ] || break
done
[ -n "$cargo" ] || skip "there is no cargo (Debian's package cargo)"
$cargo --version | awk '{ split($2, v, "."); exit !(v[1] > 1 || v[2] >= 63) }' ||
	skip "$($cargo --version) is older than 1.63"
[ -f jitrun-abi.json ] || ${MAKE:-make} -s jitrun-abi.json > /dev/null
top=$(cd "$top" && pwd)
build=$PWD
export CARGO_HOME="$dir/home" CARGO_TARGET_DIR="$dir/target" CARGO_NET_OFFLINE=true CARGO_INCREMENTAL=0
export RUSTFLAGS='-D warnings' RUSTDOCFLAGS='-D warnings' RUST_BACKTRACE=0
export JITRUN_LIB_DIR="$build/.libs" LD_LIBRARY_PATH="$build/.libs" JITRUN_CACHE="$dir/cache"
export JITRUN_MODEL="$top/models/tale-q8_0.gguf" JITRUN_SHARED="${JITRUN_SHARED:-$top/../shared}"

mkdir -p "$dir/generated" && cp -r "$top/bindings/rust" "$dir/rust" && chmod -R u+w "$dir/rust"
if command -v python3 > /dev/null; then
	python3 "$top/bindings/rust/declarations.py" jitrun-abi.json "$dir/generated" > "$dir/said" 2>&1
	check "the declarations are written: $(cat "$dir/said")" [ $? = 0 ]
	diff -r "$dir/generated" "$top/bindings/rust/jitrun-sys/src" > "$dir/said" 2>&1
	check "declarations.py makes of jitrun-abi.json what jitrun-sys/src is: $(head -n 5 "$dir/said")" [ $? = 0 ]
	crate=$dir/rust/jitrun
	python3 "$top/tests/bindings/tested.py" "$crate"/src/*.rs -- "$crate"/tests/*.rs > "$dir/said" 2>&1
	check "each public function is tested: $(head -n 20 "$dir/said")" [ $? = 0 ]
fi
. "$top/tests/bindings/expected.sh"
cd "$dir/rust" || exit 1
for what in "test --workspace" "doc --workspace --no-deps" "build --examples"; do
	$cargo $what --offline > "$dir/said" 2>&1
	check "cargo $what: $(tail -n 40 "$dir/said")" [ $? = 0 ]
	sed -n 's/^test result: /# /p' "$dir/said"
done
"$CARGO_TARGET_DIR/debug/examples/generate" "$JITRUN_MODEL" > "$dir/said" 2>&1
check "the example runs: $(tail -n 5 "$dir/said")" [ $? = 0 ]
check "it writes text: $(cat "$dir/said")" grep -q '^Once upon a time ' "$dir/said"
"$CARGO_TARGET_DIR/debug/examples/generate" no-such-model > "$dir/said" 2>&1
check "the example says what is wrong: $(cat "$dir/said")" grep -q no-such-model "$dir/said"
finish
