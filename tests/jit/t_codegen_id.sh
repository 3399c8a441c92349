#!/bin/sh
# tests/jit/t_codegen_id.sh - the code-generator ids: each changes with every token of the files that decide the bytes
# of its backend, and with nothing else: not with other
# files, comments, white space or folders. And the lists are whole: what a listed file includes is listed.
#
# The lists come from the Makefile: CODEGEN_X86, CODEGEN_RDNA, CODEGEN_PTX, CODEGEN_SPIRV, CODEGEN_SOURCES (all of
# the library).
if test -z "$CODEGEN_X86" || test -z "$CODEGEN_RDNA" || test -z "$CODEGEN_PTX" || test -z "$CODEGEN_SPIRV"; then
	echo "# skipped: run by make check, which has the lists"
	exit 77
fi
src=$(cd "${srcdir:-.}" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failed=0
fail() { echo "FAILED: $*"; failed=1; }
has() { case " $1 " in *" $2 "*) return 0;; esac; return 1; }
id()
{
	case $1 in
	x86) list=$CODEGEN_X86;; rdna) list=$CODEGEN_RDNA;; ptx) list=$CODEGEN_PTX;; *) list=$CODEGEN_SPIRV;;
	esac
	(cd "$dir" && sh "$src/jit/codegen_id.sh" $1 $list)
}

tar -C "$src" -cf - $CODEGEN_SOURCES | tar -C "$dir" --mode=u+w -xf - || exit 1
x86=$(id x86) rdna=$(id rdna) ptx=$(id ptx) spirv=$(id spirv)
test "$(id x86)" = "$x86" || fail "the id of x86 is not the same twice"
grep -qF "$x86" jit/codegen_id.c || fail "jit/codegen_id.c does not say $x86"
grep -qF "$rdna" jit/codegen_id.c || fail "jit/codegen_id.c does not say $rdna"
grep -qF "$ptx" jit/codegen_id.c || fail "jit/codegen_id.c does not say $ptx"
grep -qF "$spirv" jit/codegen_id.c || fail "jit/codegen_id.c does not say $spirv"

# The rest depends on the sources alone: one build of several that take turns is enough.
case ${JITRUN_TEST_SHARE:-1/1} in
1/*) ;;
*)
	test $failed = 0 && echo "# the id of this build; another build looks at the sources"
	exit $failed
	;;
esac

# Of every listed file each token counts, and comments and white space do not: the files' hashes, which the ids are made
# of, as they are, with a token more, and with comments.
hashes() { (cd "$dir/$1" && LC_ALL=C awk -v HASH=sha256sum -f "$src/jit/codegen_tokens.awk" $listed); }
for f in $CODEGEN_SOURCES; do
	has "$CODEGEN_X86 $CODEGEN_RDNA $CODEGEN_PTX $CODEGEN_SPIRV" "$f" || { others="$others $f"; continue; }
	listed="$listed $f"
	[ -d "$dir/more/${f%/*}" ] || mkdir -p "$dir/more/${f%/*}" "$dir/comments/${f%/*}"
	{ cat "$dir/$f"; echo ";"; } > "$dir/more/$f"
	{ echo "/* one"; echo "line */ // and more"; sed 's/^#include/#  include/; s/^\t\t*/    /; s/[ \t]*$//' \
		"$dir/$f"; echo "// end"; } > "$dir/comments/$f"
done
count=$(echo $listed | wc -w)
test $count -gt 40 || fail "only $count files are listed"
hashes . > "$dir/as_is" && hashes more > "$dir/with_more" && hashes comments > "$dir/with_comments"
test "$(wc -l < "$dir/as_is")" = $count || fail "$count files have $(wc -l < "$dir/as_is") hashes"
cmp -s "$dir/as_is" "$dir/with_comments" || fail \
	"comments and white space change a hash: $(diff "$dir/as_is" "$dir/with_comments" | head -3)"
same=$(paste "$dir/as_is" "$dir/with_more" | awk '$1 == $3' | wc -l)
test $same = 0 || fail "a token more does not change the hashes of $same files"

# Which files an id is made of does not depend on what is in them, so from here on each is a line that has its name:
# hashing all of them takes a second each time.
for f in $CODEGEN_SOURCES; do echo "$f" > "$dir/$f"; done
x86=$(id x86) rdna=$(id rdna) ptx=$(id ptx) spirv=$(id spirv)

# with WHAT X86 RDNA PTX SPIRV FILE...: whether the ids change ("changes" or "stays") when the files do.
with()
{
	what=$1 want_x86=$2 want_rdna=$3 want_ptx=$4 want_spirv=$5
	shift 5
	for f in "$@"; do echo "$what" >> "$dir/$f"; done
	test "$(id x86)" = "$x86" && got=stays || got=changes
	test $got = $want_x86 || fail "with \"$what\" at the end of $*, the id of x86 $got"
	test "$(id rdna)" = "$rdna" && got=stays || got=changes
	test $got = $want_rdna || fail "with \"$what\" at the end of $*, the id of RDNA $got"
	test "$(id ptx)" = "$ptx" && got=stays || got=changes
	test $got = $want_ptx || fail "with \"$what\" at the end of $*, the id of PTX $got"
	test "$(id spirv)" = "$spirv" && got=stays || got=changes
	test $got = $want_spirv || fail "with \"$what\" at the end of $*, the id of SPIR-V $got"
	for f in "$@"; do echo "$f" > "$dir/$f"; done
}
with ";" changes changes changes changes jit/key.h
with ";" changes stays stays stays encoders/x86.def
with ";" stays changes stays stays encoders/rdna.def
with ";" stays stays changes stays jit/ptx/ptx.def
with ";" stays stays stays changes jit/spirv/opcodes.h
with ";" stays stays stays stays $others
with "/* a comment */" stays stays stays stays $CODEGEN_SOURCES

# Tokens: what must differ from the line before it, and what must not. The first of each group is what the others are
# held to.
text() { printf "$1\n" > "$dir/text.c"; (cd "$dir" && sh "$src/jit/codegen_id.sh" text text.c); }
differs() { first=$(text "$1"); shift; for t in "$@"; do test "$(text "$t")" != "$first" || fail \
	"\"$t\" has the hash of another text"; done; }
same() { first=$(text "$1"); shift; for t in "$@"; do test "$(text "$t")" = "$first" || fail \
	"\"$t\" has another hash"; done; }
differs 'a+ ++b' 'a++ +b' 'a+++b' 'a+b' 'a + + + b'
differs '#define A (x)' '#define A(x)' '#define A x' '#define A (x) /* */ y' '#define A\n(x)' 'define A (x)'
differs '#include "x/a.h"' '#include "x/b.h"' '#include "a.h.h"' 'include "a.h"'
differs 's = "a b";' 's = "a  b";' 's = "a/* */b";' 's = "a b" ;;' 's = "a\\" b;' "s = 'a b';"
differs 'x = 1.5e-3f;' 'x = 1.5e -3f;' 'x = 1.5 e-3f;' 'x = 1.5e-3;' 'x = 1 .5e-3f;'
differs '#if A\nb' '#if A b' '#ifA\nb'
same 'a = b/c;' 'a=b / c ;' 'a = b /* " */ / c; // "' 'a = /* one\ntwo */ b/c;' 'a = b/\\\nc;' '\n\ta = b\n/c;\n'
same '#include "x/a.h"' '#include "a.h"' '#  include  "x/y/a.h" // why' '#include "x/a.h" /* one\ntwo */'
same '#define A(x) x + 1' '#define A( x )  x+1 // one' '#define A(x) \\\n\tx + 1' '#define A(x) x /* a\nb */ + 1'
same "c = '\"'; d = '\\\\''; e;" "c = '\"' ; /* ' */ d = '\\\\'';e;"

# Folders do not count either, nor the order of the list.
n=0
for f in $CODEGEN_X86; do
	n=$((n + 1))
	mkdir -p "$dir/elsewhere/$n" && echo "$f" > "$dir/elsewhere/$n/${f##*/}" || exit 1
	list="$n/${f##*/} $list"
done
sh "$src/jit/codegen_id.sh" x86 "$dir/nowhere.c" 2>/dev/null && fail "a file that is missing is no error"
test "$(cd "$dir/elsewhere" && sh "$src/jit/codegen_id.sh" x86 $list)" = "$x86" || fail \
	"the id of x86 changes with folders, or with the order of the list"

# The sorts of files that must be on a list, and those that must not.
for f in base/dtype.c jit/ir/ir.c jit/ir/ops.def jit/target.c jit/compile.c kernels-templates/matmul/matmul.c \
	kernels-templates/emit/math.h; do
	has "$CODEGEN_X86" $f && has "$CODEGEN_RDNA" $f && has "$CODEGEN_PTX" $f &&
		has "$CODEGEN_SPIRV" $f || fail "$f is not on all lists"
done
for f in jit/x86/emit.c jit/x86/regalloc.c jit/x86/lir.h encoders/x86.def encoders/x86.c; do
	has "$CODEGEN_X86" $f && ! has "$CODEGEN_RDNA" $f || fail "$f is not on the list of x86 alone"
done
for f in jit/rdna/select.c jit/rdna/emit.c encoders/rdna.def encoders/rdna.c; do
	has "$CODEGEN_RDNA" $f && ! has "$CODEGEN_X86" $f || fail "$f is not on the list of RDNA alone"
done
for f in jit/ptx/scan.c jit/ptx/ptx.def jit/ptx/pipeline.c; do
	has "$CODEGEN_PTX" $f && ! has "$CODEGEN_X86 $CODEGEN_RDNA" $f || fail "$f is not on the list of PTX alone"
done
for f in jit/spirv/math.c jit/spirv/opcodes.h jit/spirv/pipeline.c; do
	has "$CODEGEN_SPIRV" $f && ! has "$CODEGEN_X86 $CODEGEN_RDNA $CODEGEN_PTX" $f || fail \
		"$f is not on the list of SPIR-V alone"
done
for f in jit/store/cache.c jit/store/pack.h jit/store/registry.c jit/ir/print.c jit/ir/interp.c; do
	has "$CODEGEN_X86 $CODEGEN_RDNA $CODEGEN_PTX $CODEGEN_SPIRV" $f && fail "$f is listed, and decides no byte"
done

# What a listed file includes decides bytes as well, for the same backend. (Declarations of the parts that only look at
# a kernel do not.)
harmless="base/error.h base/memfile.h jit/ir/interp.h config.h"
check_includes()
{
	(cd "$src" && grep '^#[ 	]*include[ 	]*"' /dev/null $2) |
		sed 's/^\([^:]*\):[^"]*"\([^"]*\)".*/\1 \2/' > "$dir/includes"
	test -s "$dir/includes" || fail "no file that decides bytes of $1 includes another"
	while read -r f h; do
		has "$2 $harmless" "$h" || fail "$f decides bytes of $1 and includes $h, which is not listed for it"
	done < "$dir/includes"
}
check_includes x86 "$CODEGEN_X86"
check_includes rdna "$CODEGEN_RDNA"
check_includes ptx "$CODEGEN_PTX"
check_includes spirv "$CODEGEN_SPIRV"
test $failed = 0 && echo "# $count files decide bytes"
exit $failed
