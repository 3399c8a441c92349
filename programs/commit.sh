#!/bin/sh
# programs/commit.sh SOURCES - prints a C file with the commit of the sources. In an archive it stands in the file
# programs/COMMIT, which make dist writes; in a repository git knows it. Elsewhere, it is empty.
cd "$1" || exit 1
commit=
if [ -f programs/COMMIT ]; then
	commit=$(cat programs/COMMIT)
elif [ -e .git ]; then
	commit=$(git describe --always --abbrev=12 --exclude '*' --dirty 2>/dev/null)
fi
case $commit in *[!0-9a-z-]*) commit= ;; esac
printf '#include "programs/version.h"\n\nconst char version_commit[] = "%s";\n' "$commit"
