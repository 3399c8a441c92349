#!/bin/sh
# tests/abi/t_abi_check.sh - scripts/abi.sh tells additions from changes: on libraries of a few lines that differ in one
# thing each.
. "${srcdir:-.}/tests/support/prelude.sh"
command -v abidiff > /dev/null && command -v cc > /dev/null || { echo "# skipped: no abidiff or no cc"; exit 77; }

cat > "$dir/a.h" << 'END'
#include <stddef.h>
#include <stdint.h>
enum jit_kind {
#ifdef RENUMBER
	JIT_NEW,
#endif
	JIT_A, JIT_B };
typedef struct jit_inner { size_t size; float t; int k; uint64_t seed;
#ifdef APPEND
	int extra, more;
#endif
} jit_inner;
typedef struct jit_error { int code; char text[12];
#ifdef ERROR
	int extra;
#endif
} jit_error;
typedef struct jit_options { size_t size;
#ifdef INSERT
	int first;
#endif
#ifndef DELETE
	int a;
#endif
#ifdef HOLE
	int hole;
#endif
#ifdef SWAP
	const jit_inner *inner; int *p;
#else
	int *p; const jit_inner *inner;
#endif
#ifdef TYPE
	long c;
#elif defined SIGN
	unsigned c;
#else
	int c;
#endif
	enum jit_kind kind;
#ifdef APPEND2
	double last;
#endif
} jit_options;
END
cat > "$dir/a.c" << 'END'
#include "a.h"
int jit_open(const jit_options *o, jit_error *e) { return o->c + e->code; }
#ifdef PARAMETER
int jit_set(const jit_inner *i, int more, jit_error *e) { return i->k + more + e->code; }
#else
int jit_set(const jit_inner *i, jit_error *e) { return i->k + e->code; }
#endif
#ifndef REMOVE
int jit_gone(int x) { return x; }
#endif
#ifdef ADD
int jit_new(int x) { return x; }
#endif
END
build() { cc -g -shared -fPIC ${1:+-D$1} -Wl,-soname,liba.so.1 "$dir/a.c" -o "$dir/liba.so"; }
abi() { "$top/scripts/abi.sh" "$1" "$dir/liba.so" "$dir/record.abi" "$dir/a.h" > "$dir/out" 2>&1; }

build "" && abi record
check "a record is written" [ -s "$dir/record.abi" ]
for same in "" APPEND APPEND2 ADD; do
	build "$same"
	check "harmless: $same: $(cat "$dir/out")" abi check
done
for harm in INSERT DELETE HOLE SWAP TYPE SIGN RENUMBER ERROR PARAMETER REMOVE; do
	build "$harm"
	abi check
	check "$harm is refused" [ $? = 1 ]
	check "$harm is shown" grep -q 'may not run' "$dir/out"
done
finish
