#!/bin/sh
# try.sh [PROMPT [JITRUN-OPTION...]] - builds jitrun when need be, and lets the model that comes with it go on with the
# prompt.
set -eu
cd "$(dirname "$0")"
. scripts/setup.sh

prompt=${1-Once upon a time}
[ $# -eq 0 ] || shift

need_packages $packages
configure_into build
if ! make -C build -q jitrun >/dev/null 2>&1; then
	say "Building"
	run_logged make.log make -C build -j"$jobs" jitrun || { show_log make.log; exit 1; }
fi
build/jitrun models/tale-q8_0.gguf --prompt "$prompt" --echo -n 220 \
	--temp 0.8 --top-p 0.9 --repeat-penalty 1.1 --seed 1 "$@"

if [ -t 2 ]; then
	say
	say "This was build/jitrun with models/tale-q8_0.gguf. build/jitrun MODEL runs yours; build/jitrun --help"
	say "says what else it does. To install: make -C build install-strip"
fi
