#!/bin/sh
# tests/programs/t_output.sh - output that gets nowhere: every program says so in one sentence and fails, whatever it
# was to print and wherever to.
. "${srcdir:-.}/tests/support/prelude.sh"
[ -w /dev/full ] || { echo "skipped: there is no /dev/full here"; exit 77; }
XDG_CACHE_HOME=$dir/cache; export XDG_CACHE_HOME

# full PROGRAM ARGS...: standard output is full
full() {
	"$@" > /dev/full 2> "$dir/err" < /dev/null; status=$?
	check "$* > /dev/full -> status 1 (got $status)" [ "$status" = 1 ]
	check "$* > /dev/full -> a sentence: $(head -c 300 "$dir/err")" [ \
		"$(grep -c 'standard output could not be written' "$dir/err")" = 1 ]
}
# lost TEXT PROGRAM ARGS...: a file is full
lost() {
	text=$1; shift
	"$@" > "$dir/out" 2> "$dir/err" < /dev/null; status=$?
	check "$* -> status 1 (got $status)" [ "$status" = 1 ]
	check "$* -> '$text' in one line: $(head -c 300 "$dir/err")" [ "$(grep -c -e "$text" "$dir/err")" = 1 ]
}

for program in jitrun jitwarm jitbench jitquant jitk jitgraph jitopt jiteml jittrain \
	$([ ! -x jitserve ] || echo jitserve); do
	for what in --help --version --help-all --print-man --print-completion=bash --print-completion=fish; do
		full ./$program $what
	done
done
short="$model --prompt Once -n 3 -q --no-cache"
full ./jitrun --devices
full ./jitrun $short
full ./jitrun $short --echo
full ./jitrun $short --print-ids
full ./jitrun $short --json
full ./jitrun $short --json --report
full ./jitrun $short --dump-ir -
full ./jitrun "$model" --perplexity "$top/configure.ac" -c 64 -q --no-cache
full ./jitrun "$model" --perplexity "$top/configure.ac" -c 64 -q --no-cache --json
./jitrun $short --report > "$dir/out" 2> /dev/full; status=$?
check "--report that gets nowhere (status $status)" [ "$status" = 1 ]
"./jitrun" $short >&- 2> "$dir/err" < /dev/null; status=$?
check "standard output is closed: status 1 (got $status)" [ "$status" = 1 ]
check "standard output is closed: a sentence: $(cat "$dir/err")" grep -q 'standard output could not be written' \
	"$dir/err"

lost "dump of IR could not be written" ./jitrun $short --dump-ir /dev/full
lost "dump of machine code could not be written" ./jitrun $short --dump-asm /dev/full
lost "/dev/full: could not be written" ./jitrun $short --trace /dev/full
mkdir "$dir/objects" && ln -s /dev/full "$dir/objects/pass-c4.gfx1101.co"
lost "pass-c4.gfx1101.co: could not be written" ./jitrun "$model" --target gfx1101 --dump-objects "$dir/objects"
# a limit on the size of files is a disk that is full soon
lost "jit-.*dump: could not be written whole" sh -c "trap '' XFSZ; ulimit -f 8; exec ./jitrun $short --jitdump '$dir'"
lost "perf-.*map: could not be written whole" sh -c \
	"echo \$\$ > '$dir/pid'; trap '' XFSZ; ulimit -f 1; exec ./jitrun $short --perf-map"
rm -f "/tmp/perf-$(cat "$dir/pid").map"

full ./jitwarm "$model" --out "$dir/kernels.jkp" --json -q
full ./jitwarm list "$dir/kernels.jkp"
full ./jitwarm list "$dir/kernels.jkp" --json
full ./jitwarm verify "$dir/kernels.jkp" --json
full ./jitwarm explain "$model" --cache "$dir/kernels.jkp"
full ./jitwarm explain "$model" --cache "$dir/kernels.jkp" --json
key=$(./jitwarm list "$dir/kernels.jkp" | grep -oE ' norm\.[^ ]*' | head -1 | tr -d ' ')
full ./jitwarm show "$key" --cache "$dir/kernels.jkp"
full ./jitwarm show "$key" --cache "$dir/kernels.jkp" --json
for format in md csv json jsonl; do
	full ./jitbench "$model" -p 0 -n 2 -r 1 --no-start -o $format --force
done

# A home that is no absolute path: nothing is made below the directory jitrun runs in
unset XDG_CACHE_HOME JITRUN_CACHE
here=$(pwd)
mkdir "$dir/work"
for home in home . ./home ""; do
	(cd "$dir/work" && HOME=$home "$here/jitrun" "$(cd "$here" && realpath "$model")" --prompt Once -n 2 -q > \
		"$dir/out" 2> "$dir/err" < /dev/null); status=$?
	check "HOME=$home: it runs (status $status): $(head -c 200 "$dir/err")" [ "$status" = 0 ]
	check "HOME=$home: nothing is made: $(ls -A "$dir/work")" [ -z "$(ls -A "$dir/work")" ]
done
HOME=home ./jitrun "$model" --prompt Once -n 2 -q --sealed > "$dir/out" 2> "$dir/err" < /dev/null; status=$?
check "--sealed says that HOME is no absolute path (status $status): $(cat "$dir/err")" grep -q \
	'nor is XDG_CACHE_HOME or HOME an absolute path' "$dir/err"

finish
