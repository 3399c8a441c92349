#!/bin/sh
# scripts/run_test.sh TEST ARGUMENT... - runs one test, for at most $test_seconds (0: without a limit).
#
# The last two lines of its output are the user and system time of this script and of the test: check.sh names the
# tests that took most of it.
timeout --foreground -k 10 "$test_seconds" "$@"
status=$?
echo "# user and system time, of this script and of the test:"
times
exit $status
