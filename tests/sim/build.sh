#!/bin/sh
# Makes the test programs' code objects from their sources into the directory given (default: beside this script).
# Needs llvm-mc-19, ld.lld-19, clang-19 and, for gfx1200's OpenCL kernels, clang-22 and ld.lld-22.
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here}
what=${2:-all}
for target in gfx1030 gfx1100 gfx1200; do
	case $target in gfx1030) gen=10 ;; gfx1100) gen=11 ;; *) gen=12 ;; esac
	for name in ops programs; do
		llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=$target -defsym GEN=$gen -filetype=obj -I "$here" \
			"$here/$name.s" -o "$out/$name.tmp"
		ld.lld-19 -shared -s "$out/$name.tmp" -o "$out/$name.$target.co"
		rm -f "$out/$name.tmp"
	done
done
[ "$what" = asm ] && exit 0
flags="-target amdgcn-amd-amdhsa -x cl -cl-std=CL2.0 -nogpulib -O2 -w -cl-fp32-correctly-rounded-divide-sqrt -Wl,-s"
for target in gfx1030 gfx1100; do
	clang-19 $flags -mcpu=$target --ld-path=/usr/bin/ld.lld-19 "$here/kernels.cl" -o "$out/kernels.$target.co"
done
clang-22 $flags -mcpu=gfx1200 --ld-path=/usr/bin/ld.lld-22 "$here/kernels.cl" -o "$out/kernels.gfx1200.co"
