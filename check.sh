#!/bin/sh
# check.sh - builds jitrun twice and runs its tests: with gcc; from the release archive with clang, every warning an
# error, AddressSanitizer and UBSan. First come checks of the sources themselves: layout, sizes, tables. The last line
# is "N passed, N failed, N skipped"; the exit status is 0 when nothing failed.
#
# Without an option all tests have their quick size. The sanitizers see all but 17 that take long with them; gcc runs
# those, what looks at generated code or at what the compiler made, and an eighth of the rest, another one with each
# commit. Continuous integration runs this. --usual and --full have the gcc build run all tests at a larger size, and
# build a third time with clang, optimised and without sanitizers. The size is the option's alone: what the environment
# says of JITRUN_TEST_QUICK, _FULL and _SHARE is for tests run by hand.
set -u
cd "$(dirname "$0")" || exit 1

usage() {
	cat <<'TXT'
usage: ./check.sh [--usual | --full | --coverage]

Builds jitrun with gcc, and with clang and sanitizers, and runs the tests of each build.

  --usual   all tests with gcc at their usual size, and a third build with clang: over an hour on two cores
  --full    the same with the tests of gcc complete: every kernel and model on every simulated card
  --coverage  instead of all that: builds with gcc for gcov, runs all tests at the quick size, and prints how many
            lines of each room were executed
TXT
}

size=quick
case ${1-} in
'') ;;
--usual | --full | --coverage) size=${1#--} && shift ;;
-h | --help) usage && exit 0 ;;
esac
if [ $# -gt 0 ]; then
	echo "check.sh: \"$1\" is no option here; --usual, --full and --coverage are" >&2
	exit 2
fi
unset JITRUN_TEST_QUICK JITRUN_TEST_FULL JITRUN_TEST_SHARE

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

# slowest_tests FILE: of such lines as scripts/timing.sh prints, the tests that took most of the processor's time.
slowest_tests() { head -n 12 "$1" | awk '{ printf "%s%s %.0f s", sep, $2, $1; sep = ", " }'; }

# sharing_tests DIR: the tests that share their work with other builds (JITRUN_TEST_SHARE, tests/support/shared.h), as
# their sources tell.
sharing_tests() {
	grep -lE 'JITRUN_TEST_SHARE|^	*mine ' tests/*/t_*.sh
	{
		grep -rlE 'test_(mine|few|share)' tests --include='*.[ch]' --exclude=shared.h
		echo
		make -s -C "$1" show-test-sources
	} | awk '
		!NF { sources = 1; next }
		!sources { asks[$1]; next }
		{ for (i = 2; i <= NF; i++) if ($i in asks) { print $1; next } }'
}

# tests_of DIR TURN: the tests of a build, those with the largest budget in its column of tests/timing first. TURN is
# "all"; "sanitized", which is all but those that are left to a build without sanitizers; or a fraction such as 1/8:
# then they are those that look at what the compiler made, that need a build without sanitizers or are left to it, or
# that share their work with other builds; and of the others, but for the longest, every eighth.
tests_of() {
	everywhere= nowhere=
	case $2 in
	all) ;;
	sanitized) nowhere=$(make -s -C "$1" show-unsanitized-tests) ;;
	*)
		everywhere=$(make -s -C "$1" show-compiler-tests show-plain-tests show-unsanitized-tests
			sharing_tests "$1")
		;;
	esac
	make -s -C "$1" show-tests | tr ' ' '\n' |
		awk -v turn="$2" -v all=" $(echo $everywhere) " -v none=" $(echo $nowhere) " \
			-v long=" $(make -s -C "$1" show-long-tests) " '
			BEGIN { split(turn, part, "/") }
			turn == "sanitized" { if (!index(none, " " $1 " ")) print; next }
			turn == "all" || index(all, " " $1 " ") ||
				NR % part[2] == part[1] % part[2] && !index(long, " " $1 " ")' |
		awk -v column="$column" '
			NR == FNR && $1 == "test" { for (i = 2; i <= NF; i++) if ($i == column) at = i }
			NR == FNR { budget[$1] = $at; next }
			{ name = $1; gsub(/.*\/|\.sh$/, "", name) }
			{ print (name in budget ? budget[name] : 0), NR, $1 }' tests/timing - |
		sort -k 1,1rn -k 2,2n | cut -d ' ' -f 3
}

# check_build TITLE DIR TURN MAKE-ARGUMENT... -- CONFIGURE-ARGUMENT...: TURN is what tests_of takes. The build makes no
# programs of tests that it does not run.
check_build() {
	title=$1 dir=$2 turn=$3
	shift 3
	make_arguments=
	while [ "$1" != -- ]; do
		make_arguments="$make_arguments $1"
		shift
	done
	shift
	start=$(date +%s)
	say "$title: building and testing"
	configure_into "$dir" "$@" || { broken "$title: configure"; return; }
	run_logged build.log make -C "$dir" Makefile
	tests=$(tests_of "$dir" "$turn")
	programs=$(echo "$tests" | grep -v '\.sh$')
	# All, and of the tests only what they are made of.
	if ! run_logged build.log make -C "$dir" -j"$jobs" $make_arguments check TESTS= \
		check_PROGRAMS="$(echo $programs)"; then
		show_log build.log
		broken "$title: make"
		return
	fi
	built=$(date +%s)
	find "$dir" -name '*.trs' -exec rm -f {} +
	before=$failed
	set -- check TESTS="$(echo $tests)" check_PROGRAMS="$(echo $programs)"
	# One test more than there are cores: some of them wait for others of their processes most of the time.
	if ! run_logged check.log make -C "$dir" -j"$((jobs + 1))" $make_arguments "$@"; then
		if [ -f "$dir/test-suite.log" ]; then cat "$dir/test-suite.log"; else show_log check.log; fi
		count_tests "$dir"
		[ "$failed" -gt "$before" ] || broken "$title: make check"
	else
		count_tests "$dir"
	fi
	scripts/timing.sh of "$dir" >"$dir/timing"
	say "$title: $(($(date +%s) - start)) s, $((built - start)) s of them to build; most processor time:" \
		"$(slowest_tests "$dir/timing")"
	[ $size != quick ] || say "$title: $(scripts/timing.sh grew tests/timing "$column" <"$dir/timing")"
}

# Releases take xz a quarter of a minute each, and these archives are compared alone.
make_archive() { (export XZ_OPT=-0 && run_logged dist.log make -C "$1" dist); }

# unpack_archive: makes the release archive, and build/jitrun-VERSION of it, where nothing may be written.
unpack_archive() {
	make_archive build || { show_log dist.log; return 1; }
	unpacked=$(make -s -C build show-distdir)
	[ ! -e "build/$unpacked" ] || { chmod -R u+w "build/$unpacked" && rm -rf "build/$unpacked"; } || return 1
	tar -xf "build/$unpacked.tar.xz" -C build && chmod -R a-w "build/$unpacked"
}

# same_archive DIR: an archive made of the archive, at another time, with other times of files and another umask, has
# the same bytes.
same_archive() {
	archive=$(make -s -C build show-distdir).tar.xz
	find "build/${archive%.tar.xz}" -exec touch -h -d 2001-02-03 {} + &&
		(umask 077 && make_archive "$1") || { show_log dist.log; return 1; }
	cmp "build/$archive" "$1/$archive" && rm -f "$1/$archive"
}

# installs DIR: what is installed runs where it lies and goes when it is uninstalled; make distclean leaves nothing;
# of a copy of DIR.
installs() {
	copy=$1.copy
	rm -rf "$copy" "$copy.root" && cp -al "$1" "$copy" && rm -f "$copy/.arguments" || return 1
	run_logged install.log make -C "$copy" install DESTDIR="$PWD/$copy.root" &&
		"$(find "$copy.root" -name jitrun -path '*/bin/*')" --version >>"$logs/install.log" 2>&1 &&
		"$(find "$copy.root" -name jitserve -path '*/bin/*')" --version >>"$logs/install.log" 2>&1 &&
		run_logged install.log make -C "$copy" uninstall DESTDIR="$PWD/$copy.root" &&
		run_logged install.log make -C "$copy" distuninstallcheck distuninstallcheck_dir="$PWD/$copy.root" &&
		run_logged install.log make -C "$copy" distcleancheck || { show_log install.log; return 1; }
	rm -rf "$copy" "$copy.root"
}

find_clang() {
	for c in clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
		command -v "$c" >/dev/null 2>&1 && { echo "$c"; return; }
	done
}

need_packages $packages || { broken "packages"; finish; }
need_packages $check_packages || say "(the checks that need $check_packages are left out)"
# Releases of Debian lack one or the other, so each is asked for alone.
for package in abigail-tools makepkg nix-bin; do
	need_packages $package || say "(what needs $package is left out)"
done
need_packages libhsakmt-dev || say "(libhsakmt is not there: cards are tried by calls of the driver alone)"
clang=$(find_clang)
if [ -z "$clang" ]; then
	need_packages clang || { broken "packages"; finish; }
	clang=$(find_clang)
fi

# Two hundred tests hold the whole library: a fast linker spares a minute of a build. The gcc build has the usual one.
linker=
need_packages mold || say "(mold is not there: linking takes longer)"
if command -v mold >/dev/null 2>&1; then linker=LDFLAGS=-fuse-ld=mold; fi

# What tests say counts for nothing here: those that look at what the compiler made look at other code.
if [ $size = coverage ]; then
	export JITRUN_TEST_QUICK=1 TEST_CFLAGS=-O0
	column=gcc
	check_build "gcc, for gcov" build-coverage all -k -- --disable-static CFLAGS="-O1 --coverage" LDFLAGS=--coverage
	scripts/coverage.sh build-coverage
	echo "$passed passed, $failed failed, $skipped skipped"
	exit 0
fi

# beside NAME COMMANDS: runs the commands, one a line, in order and beside what follows, as each keeps one core busy.
# finish_beside NAME waits for them, shows what they said, and counts them.
beside() {
	mkdir -p "$logs"
	echo "$2" | (
		while read -r command; do
			if $command </dev/null >&2; then echo passed; else echo "$command"; fi
		done
	) >"$logs/$1.results" 2>"$logs/$1.said" &
	echo $! >"$logs/$1.pid"
}
finish_beside() {
	wait "$(cat "$logs/$1.pid")"
	cat "$logs/$1.said" >&2
	while read -r result; do
		if [ "$result" = passed ]; then passed=$((passed + 1)); else broken "$result"; fi
	done <"$logs/$1.results"
}
# What the last commit changed takes seconds; all takes a minute of two cores, and the tools a download.
analysed=--changed
if [ $size != quick ]; then
	analysed=
	need_packages clang-tidy cppcheck || say "(sources are analysed by what is here)"
fi
# Checks that look at the sources alone: beside configure.
beside sources "scripts/format.sh --check
	scripts/performance_tables.sh --check
	scripts/kernels_page.sh --check
	scripts/ir_wrappers.sh --check
	scripts/sizes.sh
	scripts/rooms.sh
	scripts/sources.sh --check
	scripts/words.sh
	scripts/analyse.sh $analysed"
# Of what does not depend on the compiler (tests/support/shared.h) gcc has all but one of 32 shares at the quick size,
# and the build with sanitizers that one: these see nothing of generated code, and what simulates it takes six times as
# long with them. Else it is halves.
first=all sanitized=all unchecked=1/2 checked=2/2 every_check=
case $size in
quick)
	sanitized=sanitized
	# Which eighth goes by the number of commits, so that eight of them have all. An archive has the first.
	first=$(($(git rev-list --count HEAD 2>/dev/null || echo 0) % 8 + 1))/8 unchecked=2-32/32 checked=1/32
	export JITRUN_TEST_QUICK=1 JITRUN_TEST_SHARE=$unchecked
	;;
full) export JITRUN_TEST_FULL=1 ;;
esac
column=gcc
# Compiling tests takes as long as compiling the library, and few of them take long.
export TEST_CFLAGS='-O1 -g1'
# As users compile it: the binary interface is compared by debugging information, which has types with -g alone.
check_build "gcc" build $first --
finish_beside sources
if [ -f build/.libs/libjitrun.so ]; then
	for record in tests/abi/libjitrun-*.abi; do
		scripts/abi.sh check build/.libs/libjitrun.so $record include/jitrun*.h
		case $? in
		0) passed=$((passed + 1)) ;;
		77) skipped=$((skipped + 1)) ;;
		*) broken "gcc: the binary interface, against $record" ;;
		esac
	done
fi
unpack_archive && archived=yes || archived=no
# Debian packages of what gcc compiled; with --usual and --full, compiled as Debian does. Much of it keeps one core
# alone busy, so that the next build goes on beside it.
say "Debian packages: building, installing and trying them, beside what follows"
of=$PWD/build
[ $size = quick ] || of=
run_logged debian.log sh tests/packages/t_debian.sh $of &
debian=$!
unset JITRUN_TEST_FULL
export JITRUN_TEST_QUICK=1
# A build without libhsakmt, as distributions make it that have no such package.
check_clang() {
	title=$1 build=$2 tests=$3
	shift 3
	check_build "$title" "$build" "$tests" 'WERROR=$(STRICT)' -- --disable-static --without-hsakmt CC="$clang" \
		$linker "$@"
}
if [ $archived = yes ]; then
	[ -n "${JITRUN_SHARED:-}" ] || [ ! -d ../shared ] || export JITRUN_SHARED="$PWD/../shared"
	sources=../build/$unpacked
	if [ $size != quick ]; then
		export JITRUN_TEST_SHARE=$unchecked
		# A test holds the interpreter with checks, which keep its loops from being vectorised.
		check_clang clang build-clang 2/2 CFLAGS="-g1 -O2 -Wno-pass-failed"
	fi
	# Checks keep loops from being vectorised, which clang warns of. Lines are all that reports need of debugging
	# information.
	export JITRUN_TEST_SHARE=$checked
	export TEST_CFLAGS=-O0
	# Two minutes of compiling (jit/ir/interp.c).
	[ $size = quick ] || every_check=-DINTERP_EVERY_CHECK
	# Reports then have eight frames of where memory was allocated. Noting all of them takes a tenth of the time of
	# tests that allocate much. So does keeping the last 256 MiB of freed memory from being used again; 16 are kept.
	export ASAN_OPTIONS=malloc_context_size=8:quarantine_size_mb=16
	column=sanitizers
	check_clang "clang with sanitizers" build-sanitize $sanitized --enable-sanitize \
		CFLAGS="-g1 -O1 -Wno-pass-failed $every_check"
	unset ASAN_OPTIONS
	sources=..
	beside archive "same_archive build-sanitize
		installs build-sanitize"
else
	broken "the release archive"
fi
# Whatever compiled jitrun, it generates the same code.
if [ -x build/jitwarm ] && [ -x build-sanitize/jitwarm ]; then
	targets="--target x86 --target gfx1030 --target gfx1100 --target gfx1201 --target sm90"
	for weights in q8_0 q4_k_m bf16; do
		for of in build build-sanitize; do
			$of/jitwarm --shape tiny --weights $weights --activations any --numerics any $targets \
				--out "$logs/$of.jkp" -q || broken "$of: jitwarm"
		done
		if cmp -s "$logs/build.jkp" "$logs/build-sanitize.jkp"; then
			passed=$((passed + 1))
		else
			broken "gcc and clang: packs of $weights differ"
		fi
	done
	rm -f "$logs/build.jkp" "$logs/build-sanitize.jkp"
fi
[ $archived = no ] || finish_beside archive
wait $debian
case $? in
0) passed=$((passed + 1)) ;;
77) skipped=$((skipped + 1)) ;;
*) show_log debian.log && broken "gcc: Debian packages" ;;
esac
finish
