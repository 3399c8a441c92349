/* tests/fake_kfd/t_fake_kfd.c - the judge is judged: the fake driver takes a client that does everything right, and
 * notices every mistake of mistakes.def. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/fake_kfd/client.h"
#include "tests/fake_kfd/run_faked.h"
#include "tests/support/shared.h"

static const struct row {
	const char *name;
	enum ending ending;
	int error;
	const char *log, *cards;
} rows[] = {
#define MISTAKE(name, ending, error, log, cards) { #name, ending, error, log, cards },
#include "tests/fake_kfd/mistakes.def"
#undef MISTAKE
};

static char self[1024];

/* Those that wait for a card that does not answer wait side by side. */
enum { AT_ONCE = 12 };
static struct faked faked[AT_ONCE];
static struct faked_process processes[AT_ONCE];

static bool start(unsigned i)
{
	char number[16];
	const char *argv[] = { self, "client", number, NULL };

	snprintf(number, sizeof number, "%u", i);
	faked[i % AT_ONCE] = (struct faked){ .cards = rows[i].cards };
	return faked_start(&faked[i % AT_ONCE], argv, &processes[i % AT_ONCE]);
}

static bool ended_as_expected(unsigned i)
{
	const struct row *r = &rows[i];
	struct faked *f = &faked[i % AT_ONCE];
	char error[32];

	faked_end(f, &processes[i % AT_ONCE]);
	snprintf(error, sizeof error, "%d ", r->error);
	bool ended = r->ending == KILLED ? f->signal != 0 || f->status == 1 : !f->signal && f->status == (int)r->ending;
	if (ended && (r->ending != REFUSED || !strncmp(f->out, error, strlen(error))) &&
	    (*r->log ? strstr(f->log, r->log) != NULL : *f->log == 0))
		return true;
	print_error("%s: status %d signal %d, expected %d; it said \"%s\"; the log \"%s\", expected \"%s\"; %s\n",
	            r->name, f->status, f->signal, r->ending, f->out, f->log, r->log, f->err);
	return false;
}

static void test_mistakes(void **state)
{
	(void)state;
	unsigned wrong = 0, begun = 0;

	if (!faked_there())
		skip();
	for (unsigned i = 0; i < MISTAKES; i++) {
		for (; begun < MISTAKES && begun < i + AT_ONCE; begun++)
			assert_true(start(begun));
		wrong += !ended_as_expected(i);
	}
	assert_int_equal(wrong, 0);
}

/* Version 5.2.3 knows the sizes of gfx1030, and saves too few registers of gfx1101, which the driver refuses. */
static void test_hsakmt(void **state)
{
	(void)state;
	const char *argv[] = { self, "hsakmt", NULL };
	static struct faked f = { .cards = "gfx1030" }, g = { .cards = "gfx1101" };

	if (!faked_run(&f, argv))
		skip();
	if (f.status == NOT_MADE) {
		print_message("# libhsakmt is not installed\n");
		skip();
	}
	if (f.status != RIGHT || (*f.log && strncmp(f.log, "fake kfd: the program ended and left", 36)))
		fail_msg("status %d, it said \"%s\" \"%s\"; the log \"%s\"", f.status, f.out, f.err, f.log);
	assert_true(faked_run(&g, argv));
	if (g.status != RIGHT && !strstr(g.out, "hsaKmtCreateQueue"))
		fail_msg("status %d, it said \"%s\" \"%s\"; the log \"%s\"", g.status, g.out, g.err, g.log);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_mistakes), cmocka_unit_test(test_hsakmt) };

	if (argc == 3 && !strcmp(argv[1], "client"))
		client((enum mistake)atoi(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "hsakmt"))
		hsakmt_client();
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
