#!/bin/sh
# tests/programs/t_example.sh - the example program of the documentation, built against the shared library and run on
# the shipped model.
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
model=${srcdir:-.}/models/tale-q8_0.gguf
XDG_CACHE_HOME=$dir docs/example "$model" "Once upon a time" > "$dir/out"; status=$?
words=$(wc -w < "$dir/out")
docs/example /nonexistent.gguf 2> /dev/null; refused=$?
# All but the last byte, the newline, finds room in the file. (The cache's files find none either: it does without.)
cut=1
if prlimit --version > /dev/null 2>&1; then
	most=$(($(wc -c < "$dir/out") - 1))
	(trap '' XFSZ; XDG_CACHE_HOME=$dir prlimit --fsize=$most docs/example "$model" "Once upon a time" > "$dir/cut" \
		2> /dev/null); cut=$?
fi
if [ "$status" = 0 ] && [ "$words" -ge 20 ] && [ "$refused" = 1 ] && [ "$cut" = 1 ]; then
	echo "1 passed, 0 failed"
else
	echo "the example gave status $status and $words words, status $refused for a missing model, and status $cut" \
		"where its last byte found no room"
	echo "0 passed, 1 failed"
	exit 1
fi
