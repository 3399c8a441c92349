#!/bin/sh
# tests/chat/t_go_template.sh - templates in Go's language, rendered here and by Go's own text/template: the same bytes,
# and the same ones refused. JITRUN_GO_TEMPLATES: a folder of *.gotmpl that are drawn as well.
set -eu
srcdir=${srcdir:-.}
command -v go >/dev/null 2>&1 || { echo "go is not installed: skipped"; exit 77; }
command -v python3 >/dev/null 2>&1 || { echo "python3 is not installed: skipped"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# The quick size draws the same lines each time.
count=20000 seed=$(date +%s)
[ -z "${JITRUN_TEST_QUICK:-}" ] || count=2000 seed=1
lines="python3 $srcdir/tests/chat/go_lines.py"
HOME=${HOME:-$dir} GOFLAGS=-mod=mod GOPATH="$dir/go" GOCACHE="${GOCACHE:-$dir/cache}" GO111MODULE=off \
	go build -o "$dir/witness" "$srcdir/tests/chat/go_witness.go"
seed=${JITRUN_TEST_SEED:-$seed}
$lines lines "$seed" $count ${JITRUN_GO_TEMPLATES:+"$JITRUN_GO_TEMPLATES"} >"$dir/lines"
tests/chat/go_cases <"$dir/lines" >"$dir/ours"
"$dir/witness" <"$dir/lines" >"$dir/gos"
$lines compare "$dir/lines" "$dir/ours" "$dir/gos" || { echo "seed $seed"; exit 1; }
