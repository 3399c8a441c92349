/* tests/programs/t_wrap.c - words that come in parts are not cut at the edge of a terminal. Random texts in random
 * parts are compared with what a terminal of their width would show, laid out from the whole text by a plain loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "programs/jitrun/wrap.h"
#include "tests/support/pty.h"
#include "tests/support/shared.h"

enum { MAX = 1 << 14 };

static const char *const words[] = { "a",    "of", "the",  "llama",     "Happily-March", "Größe",
	                             "日本", "語", "x日y", "e\xcc\x81", "🦙",          "\xe2\x80\x8b" };
static const int widths[] = { 1, 2, 3, 5, 13, 5, 4, 2, 4, 1, 2, 0 };
enum { WORDS = sizeof words / sizeof *words, WIDE = 6 /* words of wide characters alone, and mixed ones, from here */ };

static char *wrapped(const char *text, size_t n, int columns, unsigned seed)
{
	char number[20], *out = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&out, &size);
	struct wrap *w = malloc(sizeof *w);

	snprintf(number, sizeof number, "%d", columns);
	setenv("COLUMNS", number, 1);
	srand(seed);
	wrap_begin(w, f, true);
	for (size_t at = 0, part; at < n; at += part) {
		part = 1 + (size_t)rand() % 9;
		part = part > n - at ? n - at : part;
		while (at + part < n && ((unsigned char)text[at + part] & 0xc0) == 0x80)
			part++;
		assert_true(wrap_text(w, text + at, part, false));
	}
	assert_true(wrap_flush(w));
	free(w);
	fclose(f);
	return out;
}

/* Words with a blank between, and a new line where the next one has no room. */
static void test_words(void **unused)
{
	for (unsigned seed = 1; seed < 400; seed++) {
		static char text[MAX], want[MAX];
		const int columns = 14 + (int)(seed % 50);
		size_t n = 0, m = 0;
		int column = 0;

		srand(seed);
		for (int i = 0; i < 300; i++) {
			const int k = rand() % (WIDE - 1);
			const bool line_end = rand() % 40 == 0, fits = column + 1 + widths[k] <= columns;
			if (i) {
				text[n++] = line_end ? '\n' : ' ';
				want[m++] = line_end || !fits ? '\n' : ' ';
				column = line_end || !fits ? 0 : column + 1;
			}
			n += (size_t)sprintf(text + n, "%s", words[k]);
			m += (size_t)sprintf(want + m, "%s", words[k]);
			column += widths[k];
		}
		char *got = wrapped(text, n, columns, seed);
		want[m] = 0;
		assert_string_equal(got, want);
		free(got);
	}
}

/* Anything: no line is too wide for what stands in it, no character is lost but blanks where a line ends, and none is
 * added but ends of lines. */
static void test_anything(void **unused)
{
	for (unsigned seed = 1; seed < 1000; seed++) {
		static char text[MAX];
		const int columns = 2 + (int)(seed % 30);
		size_t n = 0;

		srand(seed);
		for (int i = 0; i < 200; i++)
			n += (size_t)sprintf(text + n, "%s%s", words[rand() % WORDS],
			                     rand() % 3   ? ""
			                     : rand() % 4 ? " "
			                     : rand() % 2 ? "\n"
			                                  : "\t  ");
		char *got = wrapped(text, n, columns, seed);
		const char *a = text, *b = got;
		while (*b) {
			if (*a == *b) {
				a++;
				b++;
			} else if (*b == '\n') { /* for blanks, or before what has no room */
				a += strspn(a, " \t");
				b++;
			} else {
				assert_true(*a == ' ' || *a == '\t');
				a++;
			}
		}
		assert_int_equal(strspn(a, " \t"), strlen(a));
		free(got);
	}
}

/* Texts without blanks come through without waiting for one, and a word at the beginning of a line is not held back. */
static void test_no_waiting(void **unused)
{
	struct wrap *w = malloc(sizeof *w);
	char *out = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&out, &size);

	setenv("COLUMNS", "20", 1);
	wrap_begin(w, f, true);
	wrap_text(w, "Dona", 4, false);
	fflush(f);
	assert_string_equal(out, "Dona");
	wrap_text(w, "udampf", 6, false);
	fflush(f);
	assert_string_equal(out, "Donaudampf");
	wrap_text(w, " schiff", 7, false);
	fflush(f);
	assert_string_equal(out, "Donaudampf");
	wrap_text(w, "fahrt", 5, false); /* has no room in this line, whatever follows */
	fflush(f);
	assert_string_equal(out, "Donaudampf\nschifffahrt");
	wrap_text(w, "日本", 6, false);
	fflush(f);
	assert_string_equal(out, "Donaudampf\nschifffahrt日本");
	for (int i = 0; i < 400; i++)
		wrap_text(w, "\xe0\xb8\x81", 3, false); /* Thai has no blanks */
	fflush(f);
	assert_true(strlen(out) > 3 * 380);
	wrap_flush(w);
	fclose(f);
	free(out);
	free(w);
}

/* A program on a terminal of 50 columns. */
static void test_program(void **unused)
{
	char model[4096];
	char *argv[] = { "./jitrun",   model,    "-p",  "Once upon a time there was",
		         "--echo",     "-n",     "200", "--temp",
		         "0.8",        "--seed", "3",   "-q",
		         "--no-cache", "--tune", "off", "-t",
		         "1",          NULL };
	struct pty t;
	static char shown[MAX], plain[MAX];
	size_t n = 0;

	unsetenv("COLUMNS");
	source_path(model, "models/tale-q8_0.gguf");
	assert_true(pty_start(&t, 50, argv));
	pty_wait_for(&t, 0, "\x01"); /* never: all of it */
	for (size_t i = 0; i < t.n; i++)
		if (t.text[i] != '\r')
			shown[n++] = t.text[i];
	int status = pty_end(&t);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	size_t lines = 0;
	for (const char *line = shown; *line; line += strcspn(line, "\n") + 1, lines++)
		assert_true(strcspn(line, "\n") <= 52); /* a few characters have two bytes */
	assert_true(lines > 6);

	char command[8192];
	snprintf(command, sizeof command,
	         "./jitrun '%s' -p 'Once upon a time there was' --echo -n 200 --temp 0.8 --seed 3 -q --no-cache "
	         "--tune off -t 1",
	         model);
	FILE *p = popen(command, "r");
	plain[fread(plain, 1, sizeof plain - 1, p)] = 0;
	assert_int_equal(pclose(p), 0);
	/* the same words, wherever the lines end */
	char *save_a, *save_b, *a = strtok_r(shown, " \n", &save_a), *b = strtok_r(plain, " \n", &save_b);
	for (; a && b; a = strtok_r(NULL, " \n", &save_a), b = strtok_r(NULL, " \n", &save_b))
		assert_string_equal(a, b);
	assert_null(a);
	assert_null(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_words), cmocka_unit_test(test_anything),
		                            cmocka_unit_test(test_no_waiting), cmocka_unit_test(test_program) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
