/* tests/runtime/ranks_ends.c - a rank that dies or stops ends all of them, with a sentence that names it. */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/jitrun_cards.h"
#include "tests/runtime/carrier_tests.h"
#include "tests/runtime/ranks_tests.h"

static int by_number(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The processes that are children of this one, in the order in which they were made. Returns how many. */
static int children(int pid[16])
{
	DIR *d = opendir("/proc");
	int n = 0;

	for (struct dirent *e; d && n < 16 && (e = readdir(d));) {
		char path[300], state;
		int parent = 0;
		snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
		FILE *f = *e->d_name >= '1' && *e->d_name <= '9' ? fopen(path, "r") : NULL;
		if (f && fscanf(f, "%d (%*[^)]) %c %d", &pid[n], &state, &parent) == 3 && parent == getpid())
			n++;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	qsort(pid, (size_t)n, sizeof *pid, by_number);
	return n;
}

static void end_rank(int signal_number, unsigned rank, const char *split, const char *why)
{
	char path[1024], name[32];
	int pid[16];
	jit_error err = { 0 };
	jit_model *m = must_open(tale(path), "fork:3", split);
	jit_session *s = must_session(m, JIT_SPECULATE_OFF);
	const int32_t id = 1;

	must(jit_session_feed(s, (const int32_t[]){ 1, 2, 3 }, 3, &err), &err);
	assert_int_equal(children(pid), 2);
	kill(pid[rank - 1], signal_number);
	const double begin = carrier_test_seconds();
	while (jit_session_feed(s, &id, 1, &err) == JIT_OK && carrier_test_seconds() - begin < 20)
		jit_session_rewind(s, 3, &err);
	const double took = carrier_test_seconds() - begin;
	snprintf(name, sizeof name, "rank %u ", rank);
	if (!strstr(err.message, name) || !strstr(err.message, why))
		fail_msg("\"%s\" names not %sor not \"%s\"", err.message, name, why);
	printf("# after %.1f s: %s\n", took, err.message);
	if (took > 6) /* two seconds where cores are free */
		fail_msg("%s: it took %.1f s", err.message, took);
	assert_int_not_equal(jit_model_alive(m, &err), JIT_OK);
	jit_session_close(s);
	jit_model_close(m);
	assert_int_equal(children(pid), 0);
}

void test_ranks_killed(void **state)
{
	end_rank(SIGKILL, 1, NULL, "was killed by signal 9");
	end_rank(SIGKILL, 2, "rows", "was killed by signal 9");
	unsetenv("JITRUN_RANK_PATIENCE");
	end_rank(SIGSTOP, 2, NULL, "has given no sign of life for 1.5 s");
	end_rank(SIGSTOP, 1, "rows", "has given no sign of life for 1.5 s");
	setenv("JITRUN_RANK_PATIENCE", "20", 1);
}
