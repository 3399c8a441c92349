#!/bin/sh
# jit/codegen_id.sh FILE... - writes the C source of key_codegen_id: a hash of the files that decide which bytes are generated.
#
# Owns: how the id is computed. Which files count is the Makefile's list. Output depends on the files' contents and order alone.
set -e
hash=$(cat -- "$@" | sha256sum)
hash=$(printf '%s\n' "$hash" | cut -c1-16)
cat <<END
/* Written by jit/codegen_id.sh. */
#include "jit/key.h"
const uint64_t key_codegen_id = UINT64_C(0x$hash);
END
