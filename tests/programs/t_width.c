/* tests/programs/t_width.c - lists and tables on terminals of several widths: no line is wider, and nothing is lost
 * that a pipe gets. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/support/pty.h"
#include "tests/support/shared.h"

enum { MAX = 1 << 20 };
static char dir[] = "/tmp/t_width-XXXXXX", pack[64];

/* What is no space. */
static size_t essence(const char *text, char *out)
{
	size_t n = 0;

	for (; *text; text++)
		if (!isspace((unsigned char)*text))
			out[n++] = *text;
	out[n] = 0;
	return n;
}

/* The same command's standard output, where nobody looks. */
static void piped(char *const *argv, char *out)
{
	int ends[2];
	size_t n = 0;
	ssize_t got;

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(ends[1], 1);
		close(ends[0]);
		close(ends[1]);
		execv(argv[0], argv);
		_exit(99);
	}
	close(ends[1]);
	while (n < MAX && (got = read(ends[0], out + n, MAX - n)) > 0)
		n += (size_t)got;
	out[n] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void check_width(char *const *argv, int columns, bool same)
{
	static char shown[MAX + 1], plain[MAX + 1], a[MAX + 1], b[MAX + 1];
	struct pty t;

	if (!pty_start(&t, columns, argv)) {
		printf("# skipped: there are no pseudo-terminals here\n");
		return;
	}
	pty_wait_for(&t, 0, "\x01"); /* never: all of it */
	memcpy(shown, t.text, t.n);
	shown[t.n] = 0;
	pty_end(&t);
	size_t lines = 0;
	for (const char *line = shown; *line; lines++) {
		size_t n = strcspn(line, "\r\n");
		if (n > (size_t)columns)
			fail_msg("%s %s: a line of %zu columns on a terminal of %d: %.*s", argv[0], argv[1], n, columns,
			         (int)n, line);
		line += n + strspn(line + n, "\r\n");
	}
	assert_true(lines > 3);
	if (!same)
		return;
	piped(argv, plain);
	essence(plain, a);
	essence(shown, b);
	assert_true(*a && strcmp(a, b) == 0);
}

static void test_lists(void **state)
{
	char *const list[] = { "./jitwarm", "list", pack, "-q", NULL };
	char *const explain[] = { "./jitwarm", "explain", "--shape", "tiny", "--target",
		                  "avx512",    "--cache", pack,      "-q",   NULL };
	(void)state;

	for (int columns = 40; columns <= 100; columns += 20) {
		check_width(list, columns, true);
		check_width(explain, columns, true);
	}
}

/* Rows of facts, devices and summaries. */
static void test_sentences(void **state)
{
	char model[4096];
	char *const info[] = { "./jitrun", "info", model, NULL };
	char *const devices[] = { "./jitrun", "--devices", NULL };
	char *const summary[] = {
		"./jitrun", model, "-p", "Once upon", "-n", "2", "-v", "--no-cache", "-t", "1", NULL
	};
	(void)state;

	source_path(model, "models/tale-q8_0.gguf");
	for (int columns = 60; columns <= 100; columns += 20) {
		check_width(info, columns, false);
		check_width(devices, columns, true);
	}
	check_width(summary, 80, false);
}

/* Tables of jitbench that are wider than most terminals. What is measured differs from run to run. */
static void test_tables(void **state)
{
	char report[80];
	char *const predict[] = { "./jitbench", "--shape",  "tiny",        "--weights", "q4_k_m",
		                  "--predict",  "--device", "sim:gfx1100", NULL };
	char *const suite[] = { "./jitbench", "suite", "64x64", "-r", "2", "-t", "1", "--force", NULL };
	char *const compare[] = { "./jitbench", "compare", report, report, NULL };

	(void)state;
	snprintf(report, sizeof report, "%s/report.json", dir);
	FILE *f = fopen(report, "w");
	assert_non_null(f);
	fputs("{\"suite\": \"jitrun kernels 1\", \"version\": \"0\", \"target\": \"avx2\", \"threads\": 1, \"rows\": "
	      "[{\"test\": \"qwen3-0.6b q4_k_m matrix 3072x1024 2 silu c256\", \"limit\": \"fma 256\", \"noisy\": "
	      "\"\", "
	      "\"microseconds\": 123.5, \"microseconds_least\": 120, \"gflops\": 10, \"gbs\": 20, \"share\": 0.5}]}\n",
	      f);
	fclose(f);
	check_width(compare, 80, true);
	check_width(predict, 80, true);
	check_width(suite, 80, false);
	unlink(report);
}

static int make_pack(void **state)
{
	char command[200];
	(void)state;

	unsetenv("COLUMNS");
	if (!mkdtemp(dir))
		return -1;
	snprintf(pack, sizeof pack, "%s/a-pack.jkp", dir);
	snprintf(command, sizeof command, "./jitwarm -q --shape tiny --target avx2 --batch 16 --kv-type f16 --out %s",
	         pack);
	return system(command);
}

static int remove_pack(void **state)
{
	(void)state;
	unlink(pack);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lists), cmocka_unit_test(test_sentences),
		                            cmocka_unit_test(test_tables) };

	return cmocka_run_group_tests(tests, make_pack, remove_pack);
}
