#!/bin/sh
# jit/codegen_id.sh NAME FILE... - writes the C definition of key_codegen_NAME: a hash of the files that decide which bytes NAME's code generator writes.
#
# Owns: how the id is computed. Which files count is the Makefile's list. Output depends on the files' contents and order alone.
set -e
name=$1
shift
hash=$(cat -- "$@" | sha256sum)
hash=$(printf '%s\n' "$hash" | cut -c1-16)
echo "const uint64_t key_codegen_$name = UINT64_C(0x$hash);"
