#!/bin/sh
# tests/server/t_llama_judge.sh - the tests of llama.cpp's server against jitserve: at least as many must pass as
# tests/server/clients/llama.cpp.txt says, which also says what cannot.
#
# JITRUN_LLAMA_CPP: a checkout of llama.cpp. PYTHONPATH: where Python finds what tools/server/tests/requirements.txt
# names, if it does not anyway. Both are for the user of this script; without them it is skipped.
. "${srcdir:-.}/tests/support/prelude.sh"
here=$(pwd)
clients=$(cd "$top/tests/server/clients" && pwd)
shared=${JITRUN_SHARED:-$top/../shared}
stories=$shared/data/stories260K/stories260K.gguf
skip() { echo "# skipped: $*"; exit 77; }
[ -n "${JITRUN_LLAMA_CPP:-}" ] || skip "JITRUN_LLAMA_CPP names no checkout of llama.cpp"
from=$JITRUN_LLAMA_CPP/tools/server/tests
[ -f "$from/utils.py" ] || skip "$from has no tests of a server"
[ -f "$stories" ] || skip "$stories is not there"
stories=$(cd "$shared/data/stories260K" && pwd)/stories260K.gguf
python3 -c 'import openai, pytest, requests, wget' 2>"$dir/err" || skip "Python: $(tail -n 1 "$dir/err")"

mkdir -p "$dir/tools/server"
cp -R "$from" "$dir/tools/server/tests" && cp "$clients/llama_judge.py" "$dir/tools/server/tests/" || exit 1
mkdir "$dir/models" && cp -R "$JITRUN_LLAMA_CPP/models/templates" "$dir/models/templates" || exit 1
files=$(sed -n 's/^file: //p' "$clients/llama.cpp.txt" | sed 's|.*|unit/&|')
wanted=$(sed -n 's/^passed: //p' "$clients/llama.cpp.txt")
own_port
(cd "$dir/tools/server/tests" && TMPDIR=$dir JITSERVE=$here/jitserve JITSERVE_MODEL=$stories \
	PORT=$port LLAMA_SERVER_BIN_PATH=$clients/llama-server.sh \
	PYTHONPATH=.${PYTHONPATH:+:$PYTHONPATH} \
	timeout 1000 python3 -m pytest -p llama_judge -p no:cacheprovider -q --tb=no $files) >"$dir/out" 2>&1
grep '^FAILED' "$dir/out" | cut -c 1-110
tail -n 1 "$dir/out"
got=$(sed -n 's/.*[^0-9]\([0-9][0-9]*\) passed.*/\1/p; s/^\([0-9][0-9]*\) passed.*/\1/p' "$dir/out" | tail -n 1)
check "${got:-0} tests pass, expected at least $wanted" [ "${got:-0}" -ge "$wanted" ]
finish
