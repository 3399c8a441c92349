#!/bin/sh
# programs/commit.sh SOURCES - prints a C file with the commit of the sources, and its day. In an archive they stand in
# the file programs/COMMIT, a line each, which make dist writes; in a repository git knows them. Elsewhere, both are
# empty.
cd "$1" || exit 1
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
