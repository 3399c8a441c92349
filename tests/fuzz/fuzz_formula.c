/* tests/fuzz/fuzz_formula.c - arbitrary bytes as what jiteml reads: expressions, which are written and read again as
 * the same, and tables of numbers, which are whole.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eml/expression.h"
#include "programs/jiteml/jiteml_data.h"
#include "tests/fuzz/fuzz.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

static char *as_text(const uint8_t *p, size_t n)
{
	char *text = malloc(n + 1);

	need(text != NULL);
	memcpy(text, p, n);
	text[n] = 0;
	return text;
}

void fuzz_formula(const uint8_t *p, size_t n)
{
	static const char *const names[] = { "x", "y", "q_1" };
	struct expression e, again;
	struct error err = { 0 };
	char *text = as_text(p, n), *written = NULL;
	size_t size;

	if (!expression_read(&e, "fuzz", text, names, 3, &err)) {
		need(err.text[0] && !e.node);
		free(text);
		return;
	}
	for (enum expression_form form = EXPRESSION_TEXT; form <= EXPRESSION_LATEX; form++) {
		FILE *out = open_memstream(&written, &size);
		need(out != NULL);
		expression_write(&e, names, form, out);
		need(fclose(out) == 0 && size > 0);
		if (form == EXPRESSION_TEXT) {
			need(expression_read(&again, "again", written, names, 3, &err));
			need(expression_equal(&e, expression_root(&e), &again, expression_root(&again)));
			expression_free(&again);
		}
		free(written);
	}
	const double complex x[3] = { 0.5, 2, -1 };
	(void)expression_value(&e, x);
	const size_t before = expression_size(&e, expression_root(&e));
	if (before <= 2000) {
		expression_tidy(&e);
		/* a few rules add a node or two: exp(a + 0.3) becomes a product */
		need(expression_size(&e, expression_root(&e)) <= 4 * before + 8);
	}
	expression_free(&e);
	free(text);
}

void fuzz_table(const uint8_t *p, size_t n)
{
	struct numbers d;
	struct error err = { 0 };
	char *text;
	bool fine;

	if (n == 0)
		return;
	text = as_text(p + 1, n - 1);
	if (*p == 's')
		fine = numbers_read_sequence(&d, text, 2, &err);
	else if (*p == 'c')
		fine = numbers_read_csv(&d, "fuzz.csv", text, n - 1, &err);
	else
		fine = numbers_read_npy(&d, "fuzz.npy", p, n, &err);
	free(text);
	need(fine ? d.value != NULL : err.text[0] && !d.value);
	if (!fine)
		return;
	need(d.rows >= 3 && d.rows <= NUMBERS_ROWS && d.columns >= 2 && d.columns <= NUMBERS_COLUMNS);
	for (size_t i = 0; i < d.rows * d.columns; i++)
		need(isfinite(d.value[i]));
	for (unsigned c = 0; c < d.columns; c++)
		need(d.name[c][0] && memchr(d.name[c], 0, NUMBERS_NAME) != NULL);
	need(numbers_target(&d, "fuzz", d.name[0], &err));
	numbers_free(&d);
}

/* Of the array the magic number stands first, which is no letter. */
void fuzz_table_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const char *const text[] = {
		"cx,y\n1,2\n2,4\n3,6\n",
		"c1 2 3\n4 5 6\n7\t8;9\n# end\n",
		"c\"a\";\"b_1\"\r\n1e3;-2.5\r\n.5;+6\r\n0;0",
		"s1, 1, 2, 3, 5, 8, 13",
		"c1,2\n3\n",
		"cx,x\n1,2\n",
		"c1,,2\n",
		"snan"
	};
	static const char dict[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), }\n";
	uint8_t file[200] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, sizeof dict - 1, 0 };

	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		take(user, (const uint8_t *)text[i], strlen(text[i]));
	memcpy(file + 10, dict, sizeof dict - 1);
	take(user, file, 10 + sizeof dict - 1 + 64);
}
