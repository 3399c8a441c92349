#!/bin/sh
# tests/programs/t_jitopt.sh - jitopt from outside: objectives of every kind, every option, files, and the sentence of
# each thing that is wrong.
. "${srcdir:-.}/tests/support/prelude.sh"
j=./jitopt
export JITRUN_CACHE="$dir/cache"
run() { "$@" > "$dir/out" 2> "$dir/err"; status=$?; }
has() { check "printed '$1': $(head -c 900 "$dir/out")" grep -qF -e "$1" "$dir/out"; }
says() { check "said '$1': $(head -c 600 "$dir/err")" grep -qF -e "$1" "$dir/err"; }
same() { check "$1" cmp "$2" "$3"; }

# The benchmark, as its own program counts: the same run whenever, and other seeds and instances are others.
is 0 $j bbob --function 10 --dimension 5 --instance 1 --target 1e-8 --seed 1
has "f10 ellipsoid, rotated, 5 dimensions, instance 1: "
cp "$dir/out" "$dir/first"
is 0 $j bbob -f 10 -n 5 -i 1 -s 1
same "the same again" "$dir/out" "$dir/first"
is 0 $j bbob -f 10 -n 5 -i 1 -s 2
check "another seed" sh -c '! cmp -s "$1" "$2"' - "$dir/out" "$dir/first"
is 0 $j bbob -f 1 -n 2 -q --restarts none
check "quiet: one line" [ "$(wc -l < "$dir/out")" = 1 ]
is 3 $j bbob -f 10 -n 5 -e 100
has "not reached: "
is 0 $j bbob -f 1 -n 3 --json --passive --population 12 --log "$dir/log"
check "JSON" grep -q '^{"objective":"f1 sphere, 3 dimensions, instance 1",.*"reached":true' "$dir/out"
check "a generation is twelve evaluations" [ "$(awk 'NR == 5 { print $1 }' "$dir/log")" = 60 ]
is 2 $j bbob --method nsga2
says "bbob has one objective"
is 2 $j bbob sphere
says "bbob takes no name"
is 2 $j bbob -f 1 -n 1
says "dimension 1: expected 2 to 320"

# A state goes on with the same bits, also from the middle of a run with restarts.
is 3 $j bbob -f 15 -n 5 -e 6000 --state "$dir/a" --target 1e-300
is 3 $j bbob -f 15 -n 5 -e 2000 --state "$dir/b" --target 1e-300
is 3 $j bbob -f 15 -n 5 -e 6000 --state "$dir/b" --target 1e-300 --resume
same "the state of 6 000 evaluations" "$dir/a" "$dir/b"
is 2 $j bbob -f 15 -n 6 --state "$dir/b" --resume
says "has 5 coordinates and 1 objectives, the problem 6 and 1"
is 2 $j bbob --resume
says "--resume needs the file of the state"
head -c 3000 "$dir/a" > "$dir/cut"
is 1 $j bbob -f 15 -n 5 --state "$dir/cut" --resume
says "its last line does not fit the rest"
is 1 $j bbob -f 15 -n 5 --state "$dir/none" --resume
says "none: cannot be read: No such file"

# Killed at any moment: the last state goes on to the same end.
$j bbob -f 15 -n 5 --target -1 --state "$dir/killed" --save-every 1 > /dev/null 2>&1 &
pid=$!
while [ ! -s "$dir/killed" ] && kill -0 $pid 2> /dev/null; do sleep 0.02; done
kill -9 $pid
wait $pid 2> /dev/null
is 3 $j bbob -f 15 -n 5 -e 300000 --target -1 --state "$dir/killed" --resume
is 3 $j bbob -f 15 -n 5 -e 300000 --target -1 --state "$dir/whole"
same "a run that was killed" "$dir/killed" "$dir/whole"

# Many objectives
for method in nsga2 nsga3 moead; do
	is 0 $j problem zdt1 -m $method -e 3000 --front "$dir/front" --reference 11
	has "zdt1: 3000 evaluations, 30 generations, "
	check "2 values and 30 coordinates" [ "$(awk '{ print NF }' "$dir/front" | sort -u)" = 32 ]
done
is 0 $j problem dtlz2 -m nsga3 --divisions 4 -e 1500 --objectives 3 -n 6 --json
check "JSON has the volume" grep -q '"volume":0\.[0-9]*}' "$dir/out"
is 0 $j problem zdt4 -e 600 --state "$dir/c"
is 0 $j problem zdt4 -e 200 --state "$dir/d"
is 0 $j problem zdt4 -e 600 --state "$dir/d" --resume
same "a population goes on" "$dir/c" "$dir/d"
is 2 $j problem zdt5
says "zdt5 is no problem that is known"
is 2 $j problem zdt1 -m cma
says "a problem has several objectives"

# Kernels: on each device and with any threads the same run.
cat > "$dir/valley.jk" << 'END'
const i64 count;
const i64 n;
const f64 steep = 100;
kernel valley(in f64 x[count][n], in f64 shift[n], f64 height, out f64 f[count]) over (c in count) {
	f[c] = height
	           + sum(i in 0..n - 1: steep * (x[c][i + 1] - x[c][i] * x[c][i]) * (x[c][i + 1] - x[c][i] * x[c][i])
	           + (x[c][i] - shift[i]) * (x[c][i] - shift[i]));
}
END
k="run $dir/valley.jk -n 4 --in shift=1 --in height=0 --lower -3 --upper 3 --bounds penalty --start 2,2,-1,0"
k="$k --sigma 0.5"
is 0 $j $k --target 1e-9 --state "$dir/e" --threads 1
is 0 $j $k --target 1e-9 --state "$dir/f" --threads 3
same "threads do not show" "$dir/e" "$dir/f"
is 3 $j $k --target 1e-9 --state "$dir/e" -e 400
is 3 $j $k --target 1e-9 --state "$dir/f" -e 400 --device sim:gfx1100
same "a simulated card does not show" "$dir/e" "$dir/f"
is 3 $j $k --target 1e-9 -e 80 --cache "$dir/own"
check "code is kept where --cache says" [ -n "$(ls "$dir/own")" ]
is 0 $j $k -c steep=1 --target 1e-9 --restarts ipop --runs 3
is 0 $j $k --separable -e 200
printf '%s\n' 'const i64 count; const i64 n; const i64 m;' \
	'kernel two(in f32 x[count][n], out f32 f[count][m]) over (c in count) {' \
	'	f[c][0] = x[c][0] * x[c][0]; f[c][1] = (x[c][0] - 2) * (x[c][0] - 2) + x[c][1];' '}' > "$dir/two.jk"
is 0 $j run "$dir/two.jk" -m moead --objectives 2 -n 2 --upper 2,1 -e 2000 --divisions 19 --front "$dir/front" \
	--reference 5
check "points between both optima" \
	awk '{ d = sqrt($1) + sqrt($2) - 2; if (d > 0.3 || d < -0.01) bad = 1 } END { exit bad }' "$dir/front"
is 2 $j run "$dir/valley.jk" -n 4 --in shift=1
says "the parameter height needs values: --in NAME=VALUES"
is 2 $j run "$dir/valley.jk" -n 4 --in shift=1 --in height=0 --in wide=1
says "--in wide: the kernel has no such parameter"
is 2 $j run "$dir/valley.jk" -n 4 --in shift=1 --in height=0 --in x=1
says "--in x: x and f are the candidates and their values"
is 2 $j run "$dir/valley.jk" -n 4 --in shift
says "--in shift: expected NAME=..."
printf '%s\n' 'const i64 count; const i64 n;' \
	'kernel k(in f64 y[count][n], out f64 f[count]) over (c in count) { f[c] = y[c][0]; }' > "$dir/y.jk"
is 1 $j run "$dir/y.jk" -n 2
says "the kernel has no x"
sed 's/y/x/g; s/x\[count\]\[n\]/x[n][count]/; s/x\[c\]\[0\]/x[0][c]/' "$dir/y.jk" > "$dir/x.jk"
is 1 $j run "$dir/x.jk" -n 2
says "expected x[count][n], of f64 or f32"

# A shared object, and commands
if command -v cc > /dev/null; then
	printf '%s\n' '#include <stddef.h>' 'int loss(const double *x, size_t count, size_t n, double *v, size_t m) {' \
		'	for (size_t i = 0; i < count; i++) {' \
		'		v[i] = 0; for (size_t k = 0; k < n; k++) v[i] += x[i*n+k] * x[i*n+k];' '	}' \
		'	return m != 1; }' \
		'int objective(const double *x, size_t c, size_t n, double *v, size_t m) { return 1; }' \
		> "$dir/loss.c"
	cc -shared -fPIC -o "$dir/loss.so" "$dir/loss.c"
	is 0 $j run "$dir/loss.so:loss" -n 3 --start 1 --target 1e-12
	cp "$dir/out" "$dir/first"
	is 1 $j run "$dir/loss.so" -n 3
	says "the function returned a failure"
	is 1 $j run "$dir/loss.so:other" -n 3
	says "has no function other"
	sed 's/^[^:]*:[^:]*//' "$dir/first" > "$dir/first.cut"
	# mawk waits for more input than a line unless it is told not to
	awk=awk; ! command -v mawk > /dev/null || awk='mawk -W interactive'
	sum="\$1 * \$1 + \$2 * \$2 + \$3 * \$3"
	is 0 timeout 60 $j run "command:$awk '{ printf \"%.17g\\n\", $sum; fflush() }'" -n 3 --start 1 --target 1e-12 -q
fi
is 1 $j run "command:true" -n 2
says "the command: "
is 1 $j run "command:while read -r a; do echo no; done" -n 2
says "its line for candidate 0 of a population is no: expected 1 number"
is 1 $j run "command:while read -r a; do echo 1 2; done" -n 2
says "expected 1 number"
is 1 $j run "command:head -c 100000 /dev/zero | tr '\\0' 1; sleep 5" -n 2
says "it wrote a line of more than 65536 bytes"
is 1 $j run "command:yes 1" -n 2
says "it wrote more lines than there were candidates"
is 0 $j run "command:while read -r a; do echo nan; done" -n 2 -e 60

# The working memory of docs/examples: an evolved network holds its cue, and threads do not show.
w="run $top/docs/examples/working_memory.jk -n 6 --in v=zeros --in rest=zeros --in fired=zeros --in raster=zeros -e 9"
evolved=1.474141693,1.139785833,0.3268645428,2.16342951,2.614342899,0.4286773707
is 0 $j $w --start $evolved --sigma 1e-9 --target 0.05 --state "$dir/g" --threads 1
is 0 $j $w --start $evolved --sigma 1e-9 --target 0.05 --state "$dir/h" --threads 3
same "threads do not show in a network" "$dir/g" "$dir/h"
is 3 $j $w --start 0.1,0,0,0,0,0 --sigma 1e-9 --target 1.99 # a silent one lacks 2

# What is wrong with a command line
is 2 $j
says "a command is missing: run, bbob or problem"
is 2 $j fly
says "fly is no command"
is 2 $j run
says "an objective is missing"
is 2 $j problem
says "the name of a problem is missing"
is 2 $j run "$dir/valley.jk"
says "the number of coordinates is missing"
is 2 $j run x.py -n 2
says "expected FILE.jk, FILE.so, FILE.so:SYMBOL or command:TEXT"
is 2 $j run "command:cat" -n 3 --lower 1,2 --upper 3
says "--lower: 2 numbers, expected 1 or 3"
is 2 $j run "command:cat" -n 3 --lower x
says "--lower x: expected one number"
is 2 $j run "command:cat" -n 2 --lower 1 --upper 1
says "bounds of coordinate 0: 1 is not below 1"
is 2 $j run "command:cat" -n 2 --population 3
says "population 3: expected 4 to"
is 2 $j run "command:cat" -n 2 --divisions 3
says "CMA-ES has no crossover, mutation or divisions"
is 2 $j run "command:cat" -n 2 -m nsga2 --separable
says "are of CMA-ES alone"
is 1 $j bbob -f 1 -n 2 --log "$dir/no/log"
says "cannot be written"
finish
