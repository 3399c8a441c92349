#!/bin/sh
# tests/programs/t_example.sh - the example program of the documentation, built against the shared library and run on the shipped model.
set -u
out=$(XDG_CACHE_HOME=${TMPDIR:-/tmp}/jitrun-example-$$ docs/example "${srcdir:-.}/models/tale-q8_0.gguf" "Once upon a time"); status=$?
rm -rf "${TMPDIR:-/tmp}/jitrun-example-$$"
words=$(echo "$out" | wc -w)
docs/example /nonexistent.gguf 2> /dev/null; refused=$?
if [ "$status" = 0 ] && [ "$words" -ge 20 ] && [ "$refused" = 1 ]; then
	echo "1 passed, 0 failed"
else
	echo "the example gave status $status and $words words, and status $refused for a missing model"
	echo "0 passed, 1 failed"
	exit 1
fi
