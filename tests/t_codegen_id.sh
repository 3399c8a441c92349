#!/bin/sh
# tests/t_codegen_id.sh - the code-generator ids: each changes when a file changes that decides the bytes of its backend, and with no other file; and the lists are whole: what a
# listed file includes is listed.
#
# The lists come from the Makefile: CODEGEN_X86, CODEGEN_RDNA, CODEGEN_SOURCES (all of the library).
if test -z "$CODEGEN_X86" || test -z "$CODEGEN_RDNA"; then
	echo "# skipped: run by make check, which has the lists"
	exit 77
fi
src=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
has() { case " $1 " in *" $2 "*) return 0;; esac; return 1; }
id() { (cd "$dir" && if test "$1" = x86; then sh "$src/jit/codegen_id.sh" x86 $CODEGEN_X86; else sh "$src/jit/codegen_id.sh" rdna $CODEGEN_RDNA; fi); }

for f in $CODEGEN_SOURCES; do
	mkdir -p "$dir/$(dirname "$f")" && cp "$src/$f" "$dir/$f" && chmod u+w "$dir/$f" || exit 1
done
x86=$(id x86) rdna=$(id rdna)
test "$(id x86)" = "$x86" || fail "the id of x86 is not the same twice"
grep -qF "$x86" jit/codegen_id.c || fail "jit/codegen_id.c does not say $x86"
grep -qF "$rdna" jit/codegen_id.c || fail "jit/codegen_id.c does not say $rdna"

# Every listed file counts for its own backend; one of both backends for both.
count=0
for f in $CODEGEN_SOURCES; do
	has "$CODEGEN_X86" "$f" || has "$CODEGEN_RDNA" "$f" || { others="$others $f"; continue; }
	cp "$dir/$f" "$dir/saved"
	echo "/**/" >> "$dir/$f"
	new=$(id x86)
	if has "$CODEGEN_X86" "$f"; then test "$new" != "$x86" || fail "$f changed and the id of x86 did not"; else test "$new" = "$x86" || fail "$f changed the id of x86"; fi
	new=$(id rdna)
	if has "$CODEGEN_RDNA" "$f"; then test "$new" != "$rdna" || fail "$f changed and the id of RDNA did not"; else test "$new" = "$rdna" || fail "$f changed the id of RDNA"; fi
	mv "$dir/saved" "$dir/$f"
	count=$((count + 1))
done
test $count -gt 40 || fail "only $count files are listed"
for f in $others; do echo "/**/" >> "$dir/$f"; done
test "$(id x86)$(id rdna)" = "$x86$rdna" || fail "a file that is not listed changed an id"

# The sorts of files that must be on a list, and those that must not.
for f in base/dtype.c jit/ir.c jit/ops.def jit/target.c jit/compile.c kernels-templates/matmul.c kernels-templates/math.h; do
	has "$CODEGEN_X86" $f && has "$CODEGEN_RDNA" $f || fail "$f is not on both lists"
done
for f in jit/x86_emit.c jit/regalloc.c jit/lir.h encoders/x86.def encoders/x86.c; do
	has "$CODEGEN_X86" $f && ! has "$CODEGEN_RDNA" $f || fail "$f is not on the list of x86 alone"
done
for f in jit/rdna_select.c jit/rdna_emit.c encoders/rdna.def encoders/rdna.c; do
	has "$CODEGEN_RDNA" $f && ! has "$CODEGEN_X86" $f || fail "$f is not on the list of RDNA alone"
done
for f in jit/cache.c jit/pack.h jit/registry.c jit/print.c jit/interp.c; do
	has "$CODEGEN_X86 $CODEGEN_RDNA" $f && fail "$f is listed, and decides no byte"
done

# What a listed file includes decides bytes as well, for the same backend. (Declarations of the parts that only look at a kernel do not.)
harmless="base/error.h jit/interp.h config.h"
check_includes()
{
	for f in $2; do
		for h in $(sed -n 's/^#[ \t]*include[ \t]*"\([^"]*\)".*/\1/p' "$src/$f"); do
			has "$2 $harmless" "$h" || fail "$f decides bytes of $1 and includes $h, which is not listed for it"
		done
	done
}
check_includes x86 "$CODEGEN_X86"
check_includes rdna "$CODEGEN_RDNA"
test $failed = 0 && echo "# $count files decide bytes"
exit $failed
