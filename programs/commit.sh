#!/bin/sh
# programs/commit.sh SOURCES - prints a C file with the commit of the sources, and its day. In an archive they stand in
# the file programs/COMMIT, a line each, which make dist writes; in a repository git knows them. Elsewhere, both are
# empty.
# programs/commit.sh SOURCES time - prints the commit's time in seconds since 1970, which is that file's third line.
# $SOURCE_DATE_EPOCH goes before; where nothing is known it is 0.
cd "$1" || exit 1
if [ "${2-}" = time ]; then
	time=${SOURCE_DATE_EPOCH-}
	if [ -z "$time" ] && [ -f programs/COMMIT ]; then
		time=$(sed -n 3p programs/COMMIT)
	elif [ -z "$time" ] && [ -e .git ]; then
		time=$(git log -1 --format=%ct 2>/dev/null)
	fi
	case $time in '' | *[!0-9]*) time=0 ;; esac
	echo "$time"
	exit
fi
commit=
day=
if [ -f programs/COMMIT ]; then
	commit=$(sed -n 1p programs/COMMIT)
	day=$(sed -n 2p programs/COMMIT)
elif [ -e .git ]; then
	commit=$(git describe --always --abbrev=12 --exclude '*' --dirty 2>/dev/null)
	day=$(git log -1 --format=%cs 2>/dev/null)
fi
case $commit in *[!0-9a-z-]*) commit= ;; esac
case $day in [0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]) ;; *) day= ;; esac
printf '#include "programs/version.h"\n\nconst char version_commit[] = "%s";\nconst char version_day[] = "%s";\n' \
	"$commit" "$day"
