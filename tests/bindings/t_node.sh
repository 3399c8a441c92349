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
export JITRUN_SHARED="${JITRUN_SHARED:-$top/../shared}"

mkdir -p "$dir/node_modules"
WERROR=-Werror sh "$top/bindings/node/make_package.sh" $lib "$dir/node_modules/jitrun" > "$dir/said" 2>&1
check "a package is made: $(cat "$dir/said")" [ $? = 0 ]
sh "$top/bindings/node/make_package.sh" no-such-library "$dir/none" > "$dir/said" 2>&1
check "without a library there is none" [ $? = 1 ]
check "in one sentence: $(cat "$dir/said")" [ "$(wc -l < "$dir/said")" = 1 ]
LD_LIBRARY_PATH='' ldd "$dir/node_modules/jitrun/jitrun.node" > "$dir/said"
check "the addon finds the library beside it: $(cat "$dir/said")" grep -q "=> $dir/.*libjitrun.so.1" "$dir/said"
. "$top/tests/bindings/expected.sh"
if command -v python3 > /dev/null; then
	declared=$top/bindings/node/index.d.ts
	python3 "$top/tests/bindings/tested.py" "$declared" -- "$top"/tests/bindings/node/* > "$dir/said" 2>&1
	check "each public member is tested: $(head -n 20 "$dir/said")" [ $? = 0 ]
fi
cp "$top"/tests/bindings/node/* "$dir" && cd "$dir" || exit 1
for file in generation tables callbacks batch misuse ends; do
	node --expose-gc $file.js > said 2>&1
	check "$file.js: $(grep -v '^ *at ' said | tail -n 60)" [ $? = 0 ]
	grep -E '^(# |ℹ )(pass|fail) ' said | sed "s/^[^ ]* /# $file: /"
done

# The declarations, by TypeScript's compiler; it comes from npm where there is none.
tsc=$(command -v tsc)
if [ -z "$tsc" ] && command -v npm > /dev/null && command -v timeout > /dev/null; then
	mkdir typescript && echo '{}' > typescript/package.json
	(cd typescript && timeout 60 npm install --prefix . --no-audit --no-fund --fetch-retries=0 \
		--fetch-timeout=10000 typescript@5.9.3) > said 2>&1 && tsc=$dir/typescript/node_modules/.bin/tsc
fi
if [ -n "$tsc" ]; then
	types() { "$tsc" --strict --noEmit --target es2022 --module node16 --lib es2022,dom types.ts; }
	types > said 2>&1
	check "TypeScript takes the declarations: $(head -n 20 said)" [ $? = 0 ]
	sed -i 's/finishReason: "stop"/finishReason: "ended"/' node_modules/jitrun/index.d.ts
	types > said 2>&1
	check "and finds what does not fit" [ $? != 0 ]
else
	echo "# skipped: there is no tsc to check the declarations"
fi
node node_modules/jitrun/example.js "$JITRUN_MODEL" > said 2>&1
check "the example runs: $(cat said)" [ $? = 0 ]
check "it writes text: $(cat said)" grep -q '^Once upon a time ' said
sed '/^\[[0-9]* tokens\]$/d' said > alone
node node_modules/jitrun/example.js "$JITRUN_MODEL" 'Once upon a time' 'Once upon a time' > said 2>&1
check "several prompts are computed together: $(cat said)" [ $? = 0 ]
cat alone alone > twice
check "each text is the same as alone: $(cat said)" cmp said twice
node node_modules/jitrun/example.js no-such-model > said 2>&1
check "the example says what is wrong: $(cat said)" grep -q no-such-model said
check "in one sentence: $(cat said)" [ "$(wc -l < said)" = 1 ]
finish
