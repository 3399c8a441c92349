#!/bin/sh
# jit/codegen_id.sh NAME FILE... - writes the C definition of key_codegen_NAME: a hash of the files that decide which
# bytes NAME's code generator writes.
#
# Owns: how the id is computed: each file's tokens are hashed (codegen_tokens.awk), then the list of these hashes,
# sorted. So comments, white space, the order of the files and the folders they lie in do not change it; every token
# does. Which files count is the Makefile's list.
set -e
LC_ALL=C
export LC_ALL
name=$1
shift
hashes=$(awk -v HASH=sha256sum -f "$(dirname "$0")/codegen_tokens.awk" "$@")
hash=$(printf '%s\n' "$hashes" | sort | sha256sum)
hash=$(printf '%s\n' "$hash" | cut -c1-16)
echo "const uint64_t key_codegen_$name = UINT64_C(0x$hash);"
