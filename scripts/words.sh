#!/bin/sh
# scripts/words.sh [FILE...] - fails when a comment or a document has a retired word (scripts/words.txt), when a name in
# the code of some folders has one, or when a comment names a function, a file or an identifier that the tree does not
# have. It says where, and what to write instead.
# FILE: judges these files alone; names are still those of the whole tree.
#
# An identifier is a word with an underscore; it must be a word of some code, or begin or end one. That covers fields,
# macros and generated names, which ctags misses. What is a comment, and how names are found, is in words.awk. Earlier
# releases in CHANGELOG.md and the log of measurements stay as they were written.
set -eu
cd "$(dirname "$0")/.."
if ! git ls-files --error-unmatch scripts/words.sh >/dev/null 2>&1; then # an archive, perhaps within a checkout
	echo "words.sh: this is no git checkout: words not looked at"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git ls-files >"$work/paths"
# Files that are not there are in the midst of being moved.
grep -E '\.(c|h|def|inc|cl|s|sh|awk|am|ac|md|py|map|js|ts|rs|go|ptx|json)$' "$work/paths" |
	grep -Ev '^(tests/abi/[0-9]|docs/performance/log/)' |
	while read -r file; do [ ! -f "$file" ] || echo "$file"; done >"$work/read"
for file in "$@"; do
	grep -qxF "$file" "$work/read" || echo "$file"
done >>"$work/read"
awk -v words=scripts/words.txt -v known="$work/paths" -v list="$work/read" -v checked="$*" -f scripts/words.awk
