#!/bin/sh
# scripts/analyse.sh [--changed | FILE...] - fails when clang-tidy or cppcheck finds a fault in the C files given, in
# those that the last commit and the working tree changed, or in all but tests. A tool that is not here is left out,
# and said to be.
#
# Which checks are asked for stands here, and why the others are not. What is said of a place that is right is switched
# off for a whole kind of finding, as below, or where it stands, by NOLINT(check) or cppcheck-suppress with a reason.
set -eu
cd "$(dirname "$0")/.."
if ! git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	echo "analyse.sh: this is no git checkout: sources not analysed"
	exit 0
fi
# Of clang-tidy: what is likely a fault in any C program (bugprone), and CERT's rules.
# - Off, as the code does it on purpose: arguments of one type side by side (easily-swappable-parameters); branches of
#   a chain that do the same for another reason (branch-clone); rows of X macros, whose arguments are names and types
#   (macro-parentheses); memcmp as a condition (suspicious-string-compare); texts with a length beside them
#   (not-null-terminated-result); arrays of pointers (sizeof-expression); several literals in one element of a list
#   (suspicious-missing-comma); quotients that are meant to be whole (integer-division); mmap over a range that is
#   ours, and functions that have a name of POSIX (unused-return-value).
# - Off, as clang's own warnings, which are errors here, say it better: reserved-identifier, narrowing-conversions,
#   implicit-widening-of-multiplication-result, misplaced-widening-cast (size_t and uint64_t are one type).
# - Off of CERT: err33-c wants the result of every printf; err34-c wants strtol for texts that were checked before;
#   env33-c forbids popen, which is how bench/ starts other programs; dcl37-c and dcl51-cpp are reserved-identifier.
# - clang-analyzer-* takes thirty times as long as all others together, and each of the 16 findings in a sample of 37
#   files was a path that cannot be taken.
tidy='-*,bugprone-*,-bugprone-easily-swappable-parameters,-bugprone-branch-clone,-bugprone-macro-parentheses'
tidy=$tidy',-bugprone-suspicious-string-compare,-bugprone-not-null-terminated-result,-bugprone-sizeof-expression'
tidy=$tidy',-bugprone-suspicious-missing-comma,-bugprone-integer-division,-bugprone-reserved-identifier'
tidy=$tidy',-bugprone-narrowing-conversions,-bugprone-implicit-widening-of-multiplication-result'
tidy=$tidy',-bugprone-misplaced-widening-cast,-bugprone-unused-return-value,cert-*,-cert-err33-c,-cert-err34-c'
tidy=$tidy',-cert-env33-c,-cert-dcl37-c,-cert-dcl51-cpp'
# Of cppcheck: errors, warnings, performance and portability.
# - Off, as it does not follow values: uninitvar, legacyUninitvar, ctuuninitvar (arrays of which the first n are
#   filled, and structs that a function fills; gcc's -Wmaybe-uninitialized and the sanitizers look at the same);
#   memleak (what went into a list, or was freed because one of two requests failed; the sanitizers look for leaks);
#   objectIndex (pointers to elements); arrayIndexOutOfBoundsCond (bounds of one part of a packed number taken for those
#   of another).
# - Off, as the code does it on purpose: duplicateAssignExpression, identicalInnerCondition,
#   compareBoolExpressionWithInt.
# - Off, as it does not read all of C: internalAstError, syntaxError, unknownMacro (a file that has one is left out);
#   incorrectLogicOperator (hexadecimal floats).
# - Off, as gcc and clang define it: shiftTooManyBitsSigned (a sign that is shifted down).
off='uninitvar legacyUninitvar ctuuninitvar memleak objectIndex internalAstError syntaxError unknownMacro
	incorrectLogicOperator shiftTooManyBitsSigned arrayIndexOutOfBoundsCond duplicateAssignExpression
	identicalInnerCondition compareBoolExpressionWithInt'

library() { grep '\.c$' | grep -Ev '^(tests|docs|bindings)/'; }
case ${1-} in
--changed)
	# A clone of one commit has none before it.
	changed=$({ git diff --name-only --diff-filter=d HEAD~1 2>/dev/null || true
		git ls-files -o --exclude-standard; } | sort -u | library || true)
	[ -n "$changed" ] || exit 0
	set -- $changed
	;;
'') set -- $(git ls-files | library) ;;
esac
found=$(mktemp)
config=$(mktemp -d)
trap 'rm -rf "$found" "$config"' EXIT
# What configure finds out is not needed: nothing that it leaves out is analysed, and nothing is compiled.
echo '#define HAVE_HSAKMT 1' >"$config/config.h"

if command -v clang-tidy >/dev/null 2>&1; then
	printf '%s\n' "$@" | xargs -P "$(nproc)" -n 20 sh -c 'tidy=$1 config=$2 && shift 2 &&
		clang-tidy --quiet --checks="$tidy" "$@" -- -std=c11 -I"$config" -I. -DHAVE_CONFIG_H -D_GNU_SOURCE \
			-DUTF8PROC_EXPORTS' - "$tidy" "$config" 2>/dev/null |
		grep -E '^[^ ].*: (warning|error): ' | sed "s|^$PWD/||" | sort -u >>"$found" || true
else
	echo "analyse.sh: no clang-tidy here"
fi
if command -v cppcheck >/dev/null 2>&1; then
	cppcheck -q -j "$(nproc)" --enable=warning,performance,portability --inline-suppr --max-configs=2 --std=c11 \
		$(printf -- ' --suppress=%s' $off) -I. -D_GNU_SOURCE -D__x86_64__ -D__GNUC__=12 \
		--template='{file}:{line}: {severity}: {message} [{id}]' "$@" 2>>"$found" || true
else
	echo "analyse.sh: no cppcheck here"
fi
[ -s "$found" ] || exit 0
cat "$found"
exit 1
