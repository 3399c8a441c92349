#!/bin/sh
# t_pillow.sh - pictures of all formats, modes and some sizes, as Pillow writes and reads them, beside pictures/.
# Skips where there is no Pillow (Debian: python3-pil).
set -eu
srcdir=${srcdir:-.}
python=
for one in /usr/bin/python3 python3; do
	if "$one" -c 'import PIL.features; assert PIL.features.check("webp")' 2>/dev/null; then
		python=$one
		break
	fi
done
[ -n "$python" ] || { echo "# skipped: no Pillow"; exit 77; }
[ -x tests/t_pictures ] || { echo "# skipped: this build has no tests/t_pictures"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
few=
[ -z "${JITRUN_TEST_QUICK:-}" ] || few=--few
"$python" -W ignore "$srcdir/tests/pictures/pillow.py" "$dir" $few
tests/t_pictures "$dir"
