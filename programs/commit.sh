#!/bin/sh
# programs/commit.sh SOURCES - prints a C file with the commit of the sources, and its day. In a release archive they
# stand in the file programs/COMMIT, a line each, which make dist writes; in an archive that git made (git archive, a
# forge's download) in programs/ARCHIVED, which git fills in; in a repository git knows them. Elsewhere the commit is
# empty, and the day is $SOURCE_DATE_EPOCH's, or else that of the newest release in CHANGELOG.md.
# programs/commit.sh SOURCES time - prints the commit's time in seconds since 1970, which is those files' third line.
# $SOURCE_DATE_EPOCH goes before; where nothing is known it is 0.
cd "$1" || exit 1
file=
if [ -f programs/COMMIT ]; then
	file=programs/COMMIT
elif [ -f programs/ARCHIVED ] && ! grep -q '^\$Format' programs/ARCHIVED; then
	file=programs/ARCHIVED
fi
if [ "${2-}" = time ]; then
	time=${SOURCE_DATE_EPOCH-}
	if [ -z "$time" ] && [ -n "$file" ]; then
		time=$(sed -n 3p $file)
	elif [ -z "$time" ] && [ -e .git ]; then
		time=$(git log -1 --format=%ct 2>/dev/null)
	fi
	case $time in '' | *[!0-9]*) time=0 ;; esac
	echo "$time"
	exit
fi
commit=
day=
if [ -n "$file" ]; then
	commit=$(sed -n '1s/^\([0-9a-f]\{12\}\)[0-9a-f]\{28\}$/\1/; 1p' $file)
	day=$(sed -n 2p $file)
elif [ -e .git ]; then
	commit=$(git describe --always --abbrev=12 --exclude '*' --dirty 2>/dev/null)
	day=$(git log -1 --format=%cs 2>/dev/null)
fi
is_day() { case $1 in [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]) ;; *) return 1 ;; esac; }
case $commit in *[!0-9a-z-]*) commit= ;; esac
if ! is_day "$day"; then
	case ${SOURCE_DATE_EPOCH-} in
	'' | *[!0-9]*) day=$(sed -n 's/^## \[[0-9.]*\] - \([0-9-]*\)$/\1/p' CHANGELOG.md 2>/dev/null | head -n 1) ;;
	*) day=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d 2>/dev/null) ;;
	esac
	is_day "$day" || day=
fi
printf '#include "programs/common/version.h"\n\n'
printf 'const char version_commit[] = "%s";\nconst char version_day[] = "%s";\n' \
	"$commit" "$day"
