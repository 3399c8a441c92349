#!/bin/sh
# tests/bindings/t_node.sh - the npm package from outside: it is made, and tried by the tests in node/.
. "${srcdir:-.}/tests/support/prelude.sh"
skip() { echo "# skipped: $*"; exit 77; }
lib=.libs/libjitrun.so
[ -f $lib ] || skip "there is no shared library in this build"
# A library with sanitizers cannot be loaded by a program that has none.
! nm -D $lib 2> /dev/null | grep -q __asan_init || skip "the library has sanitizers"
command -v node > /dev/null || skip "there is no node (Debian's package nodejs)"
node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' || skip "node $(node --version) is older than 18"
[ -f /usr/include/node/node_api.h ] || [ -f "$(dirname "$(command -v node)")/../include/node/node_api.h" ] ||
	[ -n "${NODE_INCLUDE:-}" ] || skip "there is no node_api.h (Debian's package libnode-dev)"
top=$(cd "$top" && pwd)
export JITRUN_CACHE="$dir/cache" JITRUN_MODEL="$top/models/tale-q8_0.gguf" NODE_PATH="$dir/node_modules"

mkdir -p "$dir/node_modules"
WERROR=-Werror sh "$top/bindings/node/make_package.sh" $lib "$dir/node_modules/jitrun" > "$dir/said" 2>&1
check "a package is made: $(cat "$dir/said")" [ $? = 0 ]
sh "$top/bindings/node/make_package.sh" no-such-library "$dir/none" > "$dir/said" 2>&1
check "without a library there is none" [ $? = 1 ]
check "in one sentence: $(cat "$dir/said")" [ "$(wc -l < "$dir/said")" = 1 ]
LD_LIBRARY_PATH='' ldd "$dir/node_modules/jitrun/jitrun.node" > "$dir/said"
check "the addon finds the library beside it: $(cat "$dir/said")" grep -q "=> $dir/.*libjitrun.so.1" "$dir/said"
./jitrun "$JITRUN_MODEL" -p 'Once upon a time' -n 24 --temp 0 --json > "$dir/line" 2> "$dir/err"
JITRUN_IDS=$(sed -n 's/.*"ids": *\[\([^]]*\)\].*/\1/p' "$dir/line")
export JITRUN_IDS
check "jitrun says which tokens it made: $(cat "$dir/err")" [ -n "$JITRUN_IDS" ]
cp "$top/tests/bindings/node/test.js" "$dir" && cd "$dir" || exit 1
node --expose-gc test.js > said 2>&1
check "test.js: $(grep -v '^ *at ' said | tail -n 60)" [ $? = 0 ]
grep -E '^(# |ℹ )(pass|fail) ' said
node node_modules/jitrun/example.js "$JITRUN_MODEL" > said 2>&1
check "the example runs: $(cat said)" [ $? = 0 ]
check "it writes text: $(cat said)" grep -q '^Once upon a time ' said
node node_modules/jitrun/example.js no-such-model > said 2>&1
check "the example says what is wrong: $(cat said)" grep -q no-such-model said
check "in one sentence: $(cat said)" [ "$(wc -l < said)" = 1 ]
finish
