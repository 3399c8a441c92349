#!/bin/sh
# bench/kernels/card.sh - what is measured of users' kernels on a machine with an NVIDIA card, in under 6 minutes.
#   bench/kernels/card.sh [BUILD [PYTHON]]
# BUILD has jitk and bench/kernel_worker; PYTHON has torch, triton and numpy. Prints, and goes on where something fails:
# kernels of odd sizes on the card compared with the interpreter, the results of examples and of functions of all floats
# on CPU and card, jitk bench on the card, the examples beside Triton in turns, the spiking network of 60 000 000
# neurons on card and CPU, and where there is gcc some examples on the CPU beside plain C. Status 1: some failed.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$top/build} python=${2:-python3} failed=0
jitk=$build/jitk kernels=$top/docs/examples/kernels
step() { echo; echo "== $1"; date -u +%T; }
try() {
	timeout "$@" 2>&1 || { failed=1; echo "FAILED ($?): $*"; }
}
options="-i s=100 -i x=98 -i t=2 -i r=0.02 -i v=5"

step "compared with the interpreter"
try 60 $jitk test $kernels/saxpy.jk -d cuda -c n=10007 -i a=1.5 -i x=random:1 -i y=random:2
try 60 $jitk test $kernels/silu.jk -d cuda -c n=10007 -i x=random:1
try 60 $jitk test $kernels/softmax.jk -d cuda -c rows=7 -c n=1031 -i x=random:1
try 60 $jitk test $kernels/layernorm.jk -d cuda -c rows=7 -c n=1031 -i x=random:1 -i scale=random:2 -i bias=random:3
try 60 $jitk test $kernels/stencil.jk -d cuda -c n=37 -i a=random:1 -i vsq=random:2 -i o=random:3
try 60 $jitk test $kernels/histogram.jk -d cuda -c n=10007 -i x=random:1
try 60 $jitk test $kernels/prefix_sum.jk -k prefix_sum -d cuda -c n=10007 -i x=random:1
try 60 $jitk test $kernels/prefix_sum.jk -k totals -d cuda -c n=10007 -i x=random:1
try 60 $jitk test $kernels/prefix_sum.jk -k parts -d cuda -c n=10007 -i x=random:1 -i total=random:2
try 60 $jitk test $kernels/matmul.jk -d cuda -c m=33 -c n=65 -c k=31 -i a=random:1 -i b=random:2
try 60 $jitk test $kernels/bitonic_sort.jk -k step -d cuda -c n=10007 -i flip=7 -i x=random:1
try 60 $jitk test $kernels/bitonic_sort.jk -k merge -d cuda -c n=10007 -c logs=5 -i x=random:1
try 60 $jitk test $kernels/bitonic_sort.jk -k near -d cuda -c n=10007 -c logs=5 -i x=random:1
try 60 $jitk test $kernels/bitonic_sort.jk -k begin -d cuda -c n=10007 -c logs=5 -i x=random:1
try 60 $jitk test $kernels/bitonic_sort.jk -k rows -d cuda -c count=33 -c logs=7 -i x=random:1
try 60 $jitk test $kernels/mandelbrot.jk -d cuda -c width=131 -c height=67
try 60 $jitk test $kernels/noise.jk -d cuda -c width=67 -c height=31 -i perm=random:1
try 60 $jitk test $kernels/black_scholes.jk -d cuda -c n=4099 $options
try 60 $jitk test $kernels/binomial.jk -d cuda -c n=257 $options

step "the examples on CPU and card"
for e in $($jitk example | awk '{ print $1 }'); do
	a=$(timeout 60 $jitk example $e --quiet 2>&1) b=$(timeout 60 $jitk example $e --quiet -d cuda 2>&1)
	if [ "$a" = "$b" ]; then echo "$e equal"; else failed=1; printf '%s differs:\n%s\n%s\n' "$e" "$a" "$b"; fi
done

step "functions of all floats on CPU and card"
for f in exp log tanh sin cos erf; do
	fold="run $top/bench/kernels/all_floats.jk -k ${f}_of_all -c n=1048576 -c per=4096"
	a=$(timeout 60 $jitk $fold 2>/dev/null) b=$(timeout 60 $jitk $fold -d cuda 2>/dev/null)
	if [ "$a" = "$b" ] && [ "$a" ]; then echo "$f equal: $a"; continue; fi
	failed=1
	printf '%s differs:\n%s\n%s\n' "$f" "$a" "$b"
done

step "jitk bench on the card"
bench() { echo "$1:"; shift; try 30 $jitk bench "$@" -d cuda --times 20; }
bench saxpy $kernels/saxpy.jk -c n=100000000 -i a=1.5 -i x=random:1 -i y=random:2
bench silu $kernels/silu.jk -c n=100000000 -i x=random:1
bench softmax $kernels/softmax.jk -c rows=16384 -c n=4096 -i x=random:1
bench layernorm $kernels/layernorm.jk -c rows=16384 -c n=4096 -i x=random:1 -i scale=1 -i bias=0
bench stencil $kernels/stencil.jk -c n=384 -i a=random:1 -i vsq=random:2
bench histogram $kernels/histogram.jk -c n=100000000 -i x=random:1
bench prefix_sum $kernels/prefix_sum.jk -k parts -c n=1048576 -i total=random:2 -i x=random:1
bench matmul $kernels/matmul.jk -c m=2048 -c n=2048 -c k=2048 -c wide=256 -i a=random:1 -i b=random:2
bench bitonic_sort $kernels/bitonic_sort.jk -k step -c n=100000000 -i flip=1 -i x=random:1
bench mandelbrot $kernels/mandelbrot.jk -c width=6144 -c height=4096
bench noise $kernels/noise.jk -c width=6144 -c height=6144 -i perm=random:1
bench black_scholes $kernels/black_scholes.jk -c n=4194304 $options
bench binomial $kernels/binomial.jk -c n=1048576 $options

step "beside Triton, in turns"
try 200 $python $top/bench/kernels/compare.py --build $build --against triton --jitrun cuda --rounds 5 --ms 20

step "the spiking network"
try 30 $jitk example snn -d cuda --n 1000000 --steps 100
try 120 $jitk example snn -d cuda --n 60000000 --steps 2000
try 60 $jitk example snn --n 60000000 --steps 20
echo "expected: 1724703 spikes, hash aabd5b01f9fa6934; 1985575928 spikes"

step "this machine's CPU beside plain C, in turns"
if command -v gcc >/dev/null; then
	try 100 $python $top/bench/kernels/compare.py --build $build --jitrun avx2 --jitrun avx512 --jitrun 2t \
		--rounds 5 --ms 10 --case mandelbrot --case stencil --case stencil64 --case black_scholes \
		--case binomial --case noise --case saxpy --case snn
else
	echo "no gcc here"
fi
exit $failed
