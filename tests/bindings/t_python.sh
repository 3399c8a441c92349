#!/bin/sh
# tests/bindings/t_python.sh - the Python package from outside: its wheel is made twice with the same bytes, installed
# by pip without a registry, and tried by the tests in python/.
. "${srcdir:-.}/tests/support/prelude.sh"
skip() { echo "# skipped: $*"; exit 77; }
lib=.libs/libjitrun.so
[ -f $lib ] || skip "there is no shared library in this build"
# A library with sanitizers cannot be loaded by a program that has none.
! nm -D $lib 2> /dev/null | grep -q __asan_init || skip "the library has sanitizers"
python=
for p in /usr/bin/python3 python3; do
	command -v $p > /dev/null && $p -c 'import sys; sys.exit(sys.version_info < (3, 8))' || continue
	python=${python:-$p}
	$p -c 'import numpy, pydantic' 2> /dev/null && python=$p && break
done
[ -n "$python" ] || skip "there is no python3 of version 3.8 or later"
$python -m pip --version > /dev/null 2>&1 || skip "$python has no pip"
[ -f jitrun-abi.json ] || ${MAKE:-make} -s jitrun-abi.json > /dev/null
top=$(cd "$top" && pwd)
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
export JITRUN_CACHE="$dir/cache" JITRUN_PROGRAM="$PWD/jitrun" JITRUN_MODEL="$top/models/tale-q8_0.gguf"

wheel=$top/bindings/python/jitrun_wheel.py
for n in 1 2; do
	$python "$wheel" --library $lib --out "$dir/$n" > "$dir/said" 2>&1
	check "a wheel is made: $(cat "$dir/said")" [ $? = 0 ]
done
check "twice the same bytes" cmp "$dir"/1/*.whl "$dir"/2/*.whl
check "its name says which systems it is for" sh -c 'ls "$1"/1/jitrun-*-py3-none-manylinux_2_*_x86_64.whl' - "$dir"
$python "$wheel" --library "$wheel" --out "$dir/none" > "$dir/out" 2> "$dir/err"
check "a file that is no library is refused" [ $? = 1 ]
check "in one sentence: $(cat "$dir/err")" [ "$(wc -l < "$dir/err")" = 1 ]
$python -m pip install -q --no-compile --no-index --no-deps --target "$dir/package" "$dir"/1/*.whl > "$dir/said" 2>&1
check "pip installs it: $(cat "$dir/said")" [ $? = 0 ]
# As a source: pip calls the same file.
mkdir -p "$dir/sources/bindings" && cp -r "$top/bindings/python" "$dir/sources/bindings" &&
	cp "$top/LICENSE" "$dir/sources" && chmod -R u+w "$dir/sources"
JITRUN_LIBRARY=$PWD/$lib $python -m pip install -q --no-compile --no-index --target "$dir/again" \
	"$dir/sources/bindings/python" > "$dir/said" 2>&1
check "pip installs the sources: $(tail -n 3 "$dir/said")" [ $? = 0 ]
check "the same package" sh -c 'diff -r "$1/package/jitrun" "$1/again/jitrun"' - "$dir"
export PYTHONPATH="$dir/package"

cd "$dir" || exit 1
for tests in "$top"/tests/bindings/python/test_*.py; do
	$python -X faulthandler "$tests" > "$dir/said" 2>&1
	check "$(basename "$tests"): $(tail -n 40 "$dir/said")" [ $? = 0 ]
	grep -E '^(Ran|OK|FAILED)' "$dir/said" | tr '\n' ' ' | sed "s/^/# $(basename "$tests"): /; s/\$/\n/"
done
JITRUN_WITHOUT_NUMPY=1 $python -X faulthandler "$top/tests/bindings/python/test_jitrun.py" Numbers > "$dir/said" 2>&1
check "without numpy: $(tail -n 40 "$dir/said")" [ $? = 0 ]
cp "$top/bindings/python/example.py" . && $python example.py "$JITRUN_MODEL" > "$dir/said" 2>&1
check "the example runs: $(tail -n 5 "$dir/said")" [ $? = 0 ]
finish
