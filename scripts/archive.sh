#!/bin/sh
# scripts/archive.sh FOLDER - writes FOLDER as a tar archive to standard output, for make dist. Two archives of one
# commit are the same bytes for every user, place, time and umask: names are sorted, owners are 0, and
# all files have the commit's time, which FOLDER/programs/COMMIT holds in its third line.
set -eu
time=$(sed -n 3p "$1/programs/COMMIT")
case $time in '' | *[!0-9]*) time=0 ;; esac
LC_ALL=C exec "${TAR-tar}" --create --file=- --dereference --format=ustar --sort=name --mtime="@$time" --owner=0 \
	--group=0 --numeric-owner --mode=u+rw,go-w,a+rX "$1"
