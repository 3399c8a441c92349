# tests/support/prelude.sh - what the tests of programs from outside begin with; they source it.
#
# top: the sources; model: the one that comes with them; dir: a folder of this test's own, gone when it ends. A test
# defines run, which leaves what was said in
# $dir/out and $dir/err, and its status in $status; its last line is finish.
set -u
top=${srcdir:-.}
model=$top/models/tale-q8_0.gguf
dir=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAIL: $*"; }
check() { what=$1; shift; if "$@"; then ok; else bad "$what"; fi; }
# is STATUS ARGS...: runs, and expects the status
is() {
	want=$1; shift
	run "$@"
	check "$* -> status $want (got $status): $(head -c 300 "$dir/err")" [ "$status" = "$want" ]
}
# refused PATTERN-OF-STDERR STATUS ARGS...: one sentence (a hint may follow), nothing on stdout, the status
refused() {
	pattern=$1; shift
	is "$@"; shift
	check "$* -> stderr has '$pattern': $(head -c 300 "$dir/err")" grep -qF -e "$pattern" "$dir/err"
	check "$* -> stdout is empty" [ ! -s "$dir/out" ]
	check "$* -> one sentence" [ "$(grep -cv '^Try ' "$dir/err")" = 1 ]
}
# mine N: whether piece number N of the test's work is this build's, of those that share it (tests/support/shared.h)
mine() {
	share=${JITRUN_TEST_SHARE:-1/1}
	turn=$(($1 % ${share#*/} + 1)) turns=${share%/*}
	[ "$turn" -ge "${turns%-*}" ] && [ "$turn" -le "${turns#*-}" ]
}
# Sets port to one of this process, below those that the system gives to connections.
own_port() { port=$((20000 + $$ % 12000)); }
finish() {
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ]
}
