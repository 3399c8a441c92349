#!/bin/sh
# docs/examples/pictures.sh FOLDER - pictures of evolution and formulas, as SVG files, by gnuplot: how CMA-ES converges,
# a front of two objectives, the spikes of an evolved working memory, formulas by size and error, and a tree.
# JITRUN says where the programs are; the working directory, unless it is set.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=${JITRUN:-.}
out=${1:?"usage: docs/examples/pictures.sh FOLDER"}
command -v gnuplot > /dev/null || { echo "pictures.sh: gnuplot is not here" >&2; exit 1; }
mkdir -p "$out"
draw() { gnuplot -e "set terminal svg size 720,480; set output '$out/$1.svg'; $2"; }

"$bin/jitopt" bbob -f 10 -n 20 -q --log "$out/convergence.txt"
draw convergence "set logscale y; set xlabel 'evaluations'; plot '$out/convergence.txt' using 1:2 with lines \
	title 'value above the least', '' using 1:3 with lines title 'step size'"

"$bin/jitopt" problem zdt3 -q --front "$out/front.txt"
draw front "set xlabel 'first objective'; set ylabel 'second'; plot '$out/front.txt' using 1:2 with points pt 7 ps 0.4 \
	title 'ZDT3, 25000 evaluations'"

# The spikes of a candidate that was evolved with seed 3: working_memory.x has its numbers.
"$bin/jitk" run "$here/working_memory.jk" -c count=1 -c n=6 -i "x=raw:$here/working_memory.x" \
	-o "raster=raw:$out/raster.raw"
draw raster "set xlabel 'ms: cue none, A, B'; set ylabel 'neuron'; set yrange [0:300]; set xrange [0:1800]; \
	unset key; set palette gray negative; unset colorbox; \
	plot '$out/raster.raw' binary array=(300,1800) format='%uchar' transpose with image"

awk 'BEGIN { print "v,E"; for (i = 1; i < 60; i++) { v = i / 61; printf "%.17g,%.17g\n", v, 1 / sqrt(1 - v * v) } }' \
	> "$out/mass.csv"
"$bin/jiteml" fit "$out/mass.csv" --enough 1e-12 --front "$out/formulas.txt" || [ $? = 3 ]
draw formulas "set logscale y; set xlabel 'size'; set ylabel 'error'; plot '$out/formulas.txt' using 1:(\$2 + 1e-17) \
	with linespoints pt 7 title '1/sqrt(1 - v^2)'"

"$bin/jiteml" find "x*y" --size 9 --form gnuplot -q | sed '1s/.*: size [0-9]*: //' > "$out/tree.gnuplot"
gnuplot -e "set terminal svg size 900,600; set output '$out/tree.svg'" "$out/tree.gnuplot"
ls "$out"/*.svg
