#!/bin/sh
# check.sh - builds jitrun three ways and runs all its tests: gcc; clang with every warning an error; gcc with
# AddressSanitizer and UBSan. First come checks of the sources themselves: layout, sizes, tables. The last line is
# "N passed, N failed, N skipped"; the exit status is 0 when nothing failed. The two later ways run the tests at reduced
# size, and take turns at what does not depend on the compiler.
set -u
cd "$(dirname "$0")" || exit 1
. scripts/setup.sh

passed=0 failed=0 skipped=0

finish() {
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ] && exit 0
	exit 1
}

# A step that is no test program: it counts when it fails.
broken() {
	echo "FAILED: $1"
	failed=$((failed + 1))
}

# Adds up what the test programs of a build directory said: every test inside them, or the program where it lists none.
# A test that says "# skipped: ..." on the way has left something out, and counts as skipped.
count_tests() {
	for trs in "$1"/*.trs "$1"/tests/*.trs "$1"/tests/*/*.trs; do
		[ -f "$trs" ] || continue
		counts=$(awk -v result="$(sed -n 's/^:global-test-result: //p' "$trs")" '
			/^\[ *RUN *\]/ { partial = 0 }
			/^# skipped/ { partial = 1 }
			/^\[ *OK *\]/ { if (partial) skipped++; else passed++ }
			/^ *[0-9]+ SKIPPED TEST/ { skipped += $1 }
			/^ *[0-9]+ FAILED TEST/ { failed += $1 }
			END {
				if (result == "SKIP" && !skipped) skipped = 1
				if (result == "PASS" && !passed && !skipped) passed = 1
				if (result != "PASS" && result != "SKIP" && !failed) failed = 1
				print passed + 0, failed + 0, skipped + 0
			}' "${trs%.trs}.log")
		set -- "$1" $counts
		passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
	done
}

# The tests of a build directory that took most of the processor's time, with their seconds of it.
slowest_tests() {
	for log in "$1"/tests/*.log "$1"/tests/*/*.log; do
		awk -v log_file="$log" '
			function seconds(time,  part) { split(time, part, /[ms]/); return part[1] * 60 + part[2] }
			/^# user and system time/ { at = NR }
			at && NR == at + 2 {
				name = log_file
				sub(/.*\//, "", name)
				sub(/(\.sh)?\.log$/, "", name)
				printf "%.0f %s\n", seconds($1) + seconds($2), name
			}' "$log"
	done 2>/dev/null | sort -rn | head -n 6 | awk '{ printf "%s%s %s s", sep, $2, $1; sep = ", " }'
}

# check_build TITLE DIR MAKE-ARGUMENT... -- CONFIGURE-ARGUMENT...
check_build() {
	title=$1 dir=$2
	shift 2
	make_arguments=
	while [ "$1" != -- ]; do
		make_arguments="$make_arguments $1"
		shift
	done
	shift
	start=$(date +%s)
	say "$title: building and testing"
	configure_into "$dir" "$@" || { broken "$title: configure"; return; }
	if ! run_logged build.log make -C "$dir" -j"$jobs" $make_arguments; then
		show_log build.log
		broken "$title: make"
		return
	fi
	built=$(date +%s)
	find "$dir" -name '*.trs' -exec rm -f {} +
	before=$failed
	# One test more than there are cores: some of them wait for others of their processes most of the time.
	if ! run_logged check.log make -C "$dir" -j"$((jobs + 1))" $make_arguments check; then
		if [ -f "$dir/test-suite.log" ]; then cat "$dir/test-suite.log"; else show_log check.log; fi
		count_tests "$dir"
		[ "$failed" -gt "$before" ] || broken "$title: make check"
	else
		count_tests "$dir"
	fi
	say "$title: $(($(date +%s) - start)) s, $((built - start)) s of them to build; most processor time:" \
		"$(slowest_tests "$dir")"
}

find_clang() {
	for c in clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
		command -v "$c" >/dev/null 2>&1 && { echo "$c"; return; }
	done
}

need_packages $packages || { broken "packages"; finish; }
need_packages $check_packages || say "(the checks that need $check_packages are left out)"
need_packages libhsakmt-dev || say "(libhsakmt is not there: cards are tried by calls of the driver alone)"
clang=$(find_clang)
if [ -z "$clang" ]; then
	need_packages clang || { broken "packages"; finish; }
	clang=$(find_clang)
fi

# check_sources SCRIPT ARGUMENT...: one of the checks that look at the sources alone.
check_sources() {
	if "$@"; then passed=$((passed + 1)); else broken "$*"; fi
}
check_sources scripts/performance_tables.sh --check
check_sources scripts/format.sh --check
check_sources scripts/sizes.sh
check_sources scripts/rooms.sh
# Builds that run the quick size take turns at what does not depend on the compiler (tests/support/shared.h).
if [ "${JITRUN_TEST_QUICK:-0}" != 0 ]; then
	shares=3
	JITRUN_TEST_SHARE=1/3
	export JITRUN_TEST_SHARE
else
	shares=2
fi
check_build "gcc" build --
if [ -f build/.libs/libjitrun.so ]; then
	scripts/abi.sh check build/.libs/libjitrun.so tests/abi/libjitrun-0.2.abi \
		runtime/jitrun.h runtime/jitrun_cards.h runtime/jitrun_grammar.h runtime/jitrun_batch.h
	case $? in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) ;;
	*) broken "gcc: the binary interface" ;;
	esac
fi
export JITRUN_TEST_QUICK=1
export JITRUN_TEST_SHARE=$((shares - 1))/$shares
if [ -n "$clang" ]; then
	# A build without libhsakmt, as distributions make it that have no such package.
	check_build "clang" build-clang 'WERROR=$(STRICT)' -- --disable-static --without-hsakmt \
		CC="$clang" CFLAGS="-g1 -O2"
else
	say "clang: not there, left out"
	skipped=$((skipped + 1))
fi
# Whatever compiled jitrun, it generates the same code.
if [ -x build/jitwarm ] && [ -x build-clang/jitwarm ]; then
	targets="--target x86 --target gfx1030 --target gfx1100 --target gfx1201 --target sm90"
	for weights in q8_0 q4_k_m bf16; do
		for of in build build-clang; do
			$of/jitwarm --shape tiny --weights $weights --activations any --numerics any $targets \
				--out $of/check.jkp -q || broken "$of: jitwarm"
		done
		if cmp -s build/check.jkp build-clang/check.jkp; then
			passed=$((passed + 1))
		else
			broken "gcc and clang: packs of $weights differ"
		fi
	done
fi
# Each file once (libtool would compile for two libraries), and here -O1: checks make the compiler slow. Lines are all
# that reports need of debugging information.
export JITRUN_TEST_SHARE=$shares/$shares
check_build "sanitizers" build-sanitize -- --disable-static --enable-sanitize CFLAGS="-g1 -O1"
finish
