#!/bin/sh
# tests/bindings/t_go.sh - the Go package from outside: compiled without cgo and with it, read by go vet, and tried.
. "${srcdir:-.}/tests/support/prelude.sh"
skip() { echo "# skipped: $*"; exit 77; }
lib=.libs/libjitrun.so
[ -f $lib ] || skip "there is no shared library in this build"
# A library with sanitizers cannot be loaded by a program that has none.
! nm -D $lib 2> /dev/null | grep -q __asan_init || skip "the library has sanitizers"
command -v go > /dev/null || skip "there is no go (Debian's package golang-go)"
go=$(command -v go)
[ ! -x /usr/bin/go ] || go=/usr/bin/go
export GOENV=off GOTOOLCHAIN=local
$go version | awk '{ split(substr($3, 3), v, "."); exit !(v[1] > 1 || v[2] >= 19) }' ||
	skip "$($go version) is older than 1.19"
[ -f jitrun-abi.json ] || ${MAKE:-make} -s jitrun-abi.json > /dev/null
top=$(cd "$top" && pwd)
build=$PWD
export GOFLAGS='-mod=mod -trimpath' GOPROXY=off GONOSUMDB='*' GOSUMDB=off GO111MODULE=on GOWORK=off CGO_ENABLED=0
export GOCACHE="$build/go-cache" GOPATH="$dir/gopath" GOTMPDIR="$dir"
export JITRUN_LIBRARY="$build/$lib" JITRUN_CACHE="$dir/cache" JITRUN_MODEL="$top/models/tale-q8_0.gguf"
JITRUN_VERSION=$(./jitrun --version | awk 'NR == 1 { print $2 }')
export JITRUN_VERSION

mkdir -p "$dir/generated" && cp -r "$top/bindings/go" "$dir/go" && chmod -R u+w "$dir/go"
if command -v python3 > /dev/null; then
	python3 "$top/bindings/go/declarations.py" jitrun-abi.json "$dir/generated" > "$dir/said" 2>&1
	check "the declarations are written: $(cat "$dir/said")" [ $? = 0 ]
	for name in declarations.go layout_test.go; do
		diff "$dir/generated/$name" "$top/bindings/go/$name" > "$dir/said" 2>&1
		check "declarations.py makes of jitrun-abi.json what $name is: $(head -n 5 "$dir/said")" [ $? = 0 ]
	done
	tests=$(ls "$top"/bindings/go/*_test.go)
	code=$(ls "$top"/bindings/go/*.go | grep -v _test.go)
	python3 "$top/tests/bindings/tested.py" $code -- $tests > "$dir/said" 2>&1
	check "each public name is tested: $(head -n 20 "$dir/said")" [ $? = 0 ]
fi
. "$top/tests/bindings/expected.sh"
cd "$dir/go" || exit 1
if command -v gofmt > /dev/null; then
	check "gofmt would change nothing: $(gofmt -l .)" [ -z "$(gofmt -l .)" ]
fi
$go vet ./... > "$dir/said" 2>&1
check "go vet: $(tail -n 20 "$dir/said")" [ $? = 0 ]
$go build -o "$dir/example" ./example > "$dir/said" 2>&1
check "go build without cgo: $(tail -n 20 "$dir/said")" [ $? = 0 ]
check "go.mod is as it was" cmp -s go.mod "$top/bindings/go/go.mod"
$go test -c -o "$dir/tests" . > "$dir/said" 2>&1
check "the tests are compiled: $(tail -n 20 "$dir/said")" [ $? = 0 ]
"$dir/tests" -test.timeout 300s > "$dir/said" 2>&1
check "go test: $(tail -n 60 "$dir/said")" [ $? = 0 ]
check "no test is skipped: $(cat "$dir/said")" sh -c '! grep -q SKIP "$1"' - "$dir/said"
# Programs with cgo are linked by another linker, and their threads are the C library's.
if ${CC:-gcc} --version > /dev/null 2>&1; then
	printf 'package jitrun\n\nimport _ "runtime/cgo"\n' > cgo_test.go
	CGO_ENABLED=1 $go test -c -ldflags=-linkmode=external -o "$dir/cgo" . > "$dir/said" 2>&1
	check "the tests are linked by the C compiler: $(tail -n 20 "$dir/said")" [ $? = 0 ]
	"$dir/cgo" -test.run 'Program|Callbacks|Goexit' -test.timeout 300s > "$dir/said" 2>&1
	check "go test with cgo: $(tail -n 60 "$dir/said")" [ $? = 0 ]
else
	echo "# skipped: there is no C compiler for cgo"
fi
"$dir/example" "$JITRUN_MODEL" > "$dir/said" 2>&1
check "the example runs: $(tail -n 5 "$dir/said")" [ $? = 0 ]
check "it writes text: $(cat "$dir/said")" grep -q '^Once upon a time ' "$dir/said"
"$dir/example" no-such-model > "$dir/said" 2>&1
check "the example fails without a model" [ $? = 1 ]
check "it says what is wrong: $(cat "$dir/said")" grep -q no-such-model "$dir/said"
JITRUN_LIBRARY=/no/such/library "$dir/example" "$JITRUN_MODEL" > "$dir/said" 2>&1
check "the example starts without the library" [ $? = 1 ]
check "it says what it lacks: $(cat "$dir/said")" grep -q '/no/such/library.*JITRUN_LIBRARY' "$dir/said"
check "in one sentence: $(cat "$dir/said")" [ "$(wc -l < "$dir/said")" = 1 ]
LD_LIBRARY_PATH="$build/.libs" JITRUN_LIBRARY='' "$dir/example" "$JITRUN_MODEL" > "$dir/said" 2>&1
check "the dynamic linker finds the library: $(tail -n 5 "$dir/said")" [ $? = 0 ]
finish
