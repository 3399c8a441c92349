#!/bin/sh
# tests/programs/t_archive.sh - release archives: two of the same files are the same bytes, whatever the files' times,
# the order in which they were made, the umask and the time zone were.
. "${srcdir:-.}/tests/support/prelude.sh"
make_tree() { # NAME FILES...: a folder of the same files, made in that order
	mkdir -p "$dir/$1/archive/programs" "$dir/$1/archive/b" && cd "$dir/$1/archive" || exit 1
	shift
	for name in "$@"; do echo "content of $name" > "$name"; done
	chmod u+x run.sh
	printf 'abcdef\n2026-11-28\n1795800000\n' > programs/COMMIT
	cd - > /dev/null || exit 1
}
archive=$(cd "$top" && pwd)/scripts/archive.sh
(umask 022 && make_tree one run.sh a b/c Z é)
(umask 077 && make_tree two é Z b/c a run.sh)
(umask 002 && make_tree three Z é run.sh b/c a)
find "$dir/two" -exec touch -d 2001-02-03 {} +
find "$dir/three/archive/b" -exec touch -d 2030-01-01 {} +
(cd "$dir/one" && sh "$archive" archive) > "$dir/one.tar"
(cd "$dir/two" && umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 sh "$archive" archive) > "$dir/two.tar"
(cd "$dir/three" && SOURCE_DATE_EPOCH=5 sh "$archive" archive) > "$dir/three.tar"
check "times, order and umask change nothing" cmp "$dir/one.tar" "$dir/two.tar"
check "nor does another umask" cmp "$dir/one.tar" "$dir/three.tar"
TZ=UTC tar --numeric-owner -tvf "$dir/one.tar" > "$dir/list"
check "owners are 0, and the time is the commit's: $(cat "$dir/list")" [ \
	"$(grep -c ' 0/0 .* 2026-11-27 ' "$dir/list") $(wc -l < "$dir/list")" = "9 9" ]
check "what can be run stays so" grep -q '^-rwxr-xr-x .*/run.sh$' "$dir/list"
check "and nothing else" [ "$(grep -c '^-rw-r--r-- ' "$dir/list")" = 5 ]

# The time itself
commit() { sh "$top/programs/commit.sh" "$@"; }
mkdir -p "$dir/sources/programs"
check "without git and archive it is 0" [ "$(commit "$dir/sources" time)" = 0 ]
printf 'abcdef\n2026-11-28\n1795800000\n' > "$dir/sources/programs/COMMIT"
check "an archive says it" [ "$(commit "$dir/sources" time)" = 1795800000 ]
check "SOURCE_DATE_EPOCH goes before" [ "$(SOURCE_DATE_EPOCH=77 commit "$dir/sources" time)" = 77 ]
check "what is no number is 0" [ "$(SOURCE_DATE_EPOCH=now commit "$dir/sources" time)" = 0 ]
if [ -e "$top/.git" ] && command -v git > /dev/null && git -C "$top" log -1 > /dev/null 2>&1; then
	check "git says it" [ "$(commit "$top" time)" = "$(git -C "$top" log -1 --format=%ct)" ]
fi

# What a program says of itself: C text of the commit and its day
says() { grep -q "version_commit\[\] = \"$1\";" "$dir/said" && grep -q "version_day\[\] = \"$2\";" "$dir/said"; }
commit "$dir/sources" > "$dir/said"
check "an archive says its commit and day: $(cat "$dir/said")" says abcdef 2026-11-28
rm "$dir/sources/programs/COMMIT"
cp "$top/programs/ARCHIVED" "$dir/sources/programs"
if grep -q '^.Format:' "$top/programs/ARCHIVED"; then
	commit "$dir/sources" > "$dir/said"
	check "a repository's copy says nothing: $(cat "$dir/said")" says '' ''
	check "nor a time" [ "$(commit "$dir/sources" time)" = 0 ]
fi
printf '## [Unreleased]\n\n## [0.3.0] - 2026-11-27\n\n## [0.2.0] - 2026-01-02\n' > "$dir/sources/CHANGELOG.md"
commit "$dir/sources" > "$dir/said"
check "without git, the day is the newest release's: $(cat "$dir/said")" says '' 2026-11-27
SOURCE_DATE_EPOCH=86400 commit "$dir/sources" > "$dir/said"
check "or SOURCE_DATE_EPOCH's: $(cat "$dir/said")" says '' 1970-01-02
printf '0123456789abcdef0123456789abcdef01234567\n2026-11-26\n1795600000\n' > "$dir/sources/programs/ARCHIVED"
SOURCE_DATE_EPOCH=86400 commit "$dir/sources" > "$dir/said"
check "an archive of git says what git wrote there: $(cat "$dir/said")" says 0123456789ab 2026-11-26
check "and the time" [ "$(commit "$dir/sources" time)" = 1795600000 ]
printf 'ab"cd\nyesterday\n' > "$dir/sources/programs/ARCHIVED"
commit "$dir/sources" > "$dir/said"
check "what is no commit and no day is left out: $(cat "$dir/said")" says '' 2026-11-27
check "the newest release of CHANGELOG.md has a day and the programs' version" grep -q \
	"^## \[$(./jitrun --version | sed -n 's/^jitrun \([0-9.]*\).*/\1/p')\] - 20[0-9-]*$" "$top/CHANGELOG.md"
if [ -e "$top/.git" ] && git -C "$top" log -1 > /dev/null 2>&1; then
	mkdir "$dir/git"
	git -C "$top" archive HEAD programs .gitattributes | tar -xf - -C "$dir/git"
	commit "$dir/git" > "$dir/said"
	check "git archive: $(cat "$dir/said")" says "$(git -C "$top" rev-parse HEAD | cut -c1-12)" \
		"$(git -C "$top" log -1 --format=%cs)"
fi

finish
