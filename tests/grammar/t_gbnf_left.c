/* tests/grammar/t_gbnf_left.c - rules that can begin with themselves, and any others, drawn at random. All short texts
 * of two letters are read by a machine, and judged by a plain chart over the same rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "grammar/machine/effort.h"
#include "grammar/machine/machine.h"
#include "tests/support/shared.h"

enum { RULES = 5, ALTERNATIVES = 3, SYMBOLS = 3, LETTERS = 6 };

/* Letters, or rules behind them; each with how often it stands there. */
struct symbol {
	char letter;
	unsigned rule;
	char times; /* 0, or one of ?*+ */
};
struct rules {
	unsigned n, n_alternatives[RULES], n_symbols[RULES][ALTERNATIVES];
	struct symbol symbol[RULES][ALTERNATIVES][SYMBOLS];
	bool ends[RULES][LETTERS + 1][LETTERS + 1]; /* of a text: where a rule that begins at a byte can end */
	bool changed;
};

static uint32_t seed;
static unsigned draw(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static void make(struct rules *g)
{
	*g = (struct rules){ .n = 1 + draw(RULES) };
	for (unsigned r = 0; r < g->n; r++) {
		g->n_alternatives[r] = 1 + draw(ALTERNATIVES);
		for (unsigned a = 0; a < g->n_alternatives[r]; a++) {
			g->n_symbols[r][a] = draw(SYMBOLS + 1);
			for (unsigned s = 0; s < g->n_symbols[r][a]; s++) {
				const bool is_letter = draw(5) < 2;
				g->symbol[r][a][s] = (struct symbol){ .letter = is_letter ? (char)('a' + draw(2)) : 0,
					                              .rule = draw(g->n),
					                              .times = draw(6) == 0 ? "?*+"[draw(3)] : 0 };
			}
		}
	}
}

static void spell(const struct rules *g, char *text, size_t room)
{
	size_t n = 0;

	for (unsigned r = 0; r < g->n; r++) {
		n += (size_t)snprintf(text + n, room - n, r ? "r%u ::= " : "root ::= ", r);
		for (unsigned a = 0; a < g->n_alternatives[r]; a++) {
			n += (size_t)snprintf(text + n, room - n, a ? " | " : "");
			if (!g->n_symbols[r][a])
				n += (size_t)snprintf(text + n, room - n, "\"\"");
			for (unsigned s = 0; s < g->n_symbols[r][a]; s++) {
				const struct symbol *y = &g->symbol[r][a][s];
				if (y->letter)
					n += (size_t)snprintf(text + n, room - n, "\"%c\"", y->letter);
				else
					n += (size_t)snprintf(text + n, room - n, y->rule ? "r%u" : "root", y->rule);
				n += (size_t)snprintf(text + n, room - n, y->times ? "%c " : " ", y->times);
			}
		}
		n += (size_t)snprintf(text + n, room - n, "\n");
	}
}

/* ---- the chart */

/* Sets of places as bits: where a symbol, once, leads from these. */
static unsigned once(const struct rules *g, const struct symbol *y, const char *text, unsigned from)
{
	unsigned to = 0;

	for (unsigned i = 0; i <= strlen(text); i++) {
		if (!(from >> i & 1))
			continue;
		if (y->letter)
			to |= text[i] == y->letter ? 2u << i : 0;
		for (unsigned k = i; !y->letter && k <= strlen(text); k++)
			to |= g->ends[y->rule][i][k] ? 1u << k : 0;
	}
	return to;
}

static unsigned behind(const struct rules *g, const struct symbol *y, const char *text, unsigned from)
{
	unsigned all = once(g, y, text, from);

	for (unsigned i = 0; i <= LETTERS && (y->times == '*' || y->times == '+'); i++)
		all |= once(g, y, text, all);
	return y->times == '*' || y->times == '?' ? all | from : all;
}

static bool is_text(struct rules *g, const char *text)
{
	const unsigned n = (unsigned)strlen(text);

	memset(g->ends, 0, sizeof g->ends);
	do {
		g->changed = false;
		for (unsigned r = 0; r < g->n; r++)
			for (unsigned i = 0; i <= n; i++)
				for (unsigned a = 0; a < g->n_alternatives[r]; a++) {
					unsigned at = 1u << i;
					for (unsigned s = 0; s < g->n_symbols[r][a]; s++)
						at = behind(g, &g->symbol[r][a][s], text, at);
					for (unsigned k = i; k <= n; k++)
						if (at >> k & 1 && !g->ends[r][i][k])
							g->changed = g->ends[r][i][k] = true;
				}
	} while (g->changed);
	return g->ends[0][0][n];
}

/* ---- the machine */

/* Of a text that is read, each beginning is alive. */
static bool takes(struct machine *m, const char *text)
{
	uint32_t at = m ? m->start : MACHINE_DEAD;

	for (; *text && at != MACHINE_DEAD; text++)
		at = machine_step(m, at, (uint8_t)*text);
	return at != MACHINE_DEAD && machine_ends(m, at);
}

static void test_random(void **state)
{
	const unsigned grammars = test_full() ? 20000 : test_quick() ? 300 : 3000;
	unsigned taken = 0, refused = 0, none = 0, large = 0;
	char text[2000], word[LETTERS + 1];
	static struct rules g;
	(void)state;

	for (unsigned k = 1; k <= grammars; k++) {
		struct error err = { 0 };
		seed = k;
		make(&g);
		spell(&g, text, sizeof text);
		struct machine *m = machine_of_gbnf(text, strlen(text), NULL, &err);
		if (!m && err.code == ERROR_ARGUMENT) {
			assert_string_equal(err.text, "the grammar is one that no text is right by");
			none++;
		} else if (!m) {
			fail_msg("%s is refused: %s", text, err.text);
		}
		for (unsigned n = 0; n <= LETTERS && !(m && m->failed); n++)
			for (unsigned w = 0; w < 1u << n; w++) {
				for (unsigned i = 0; i < n; i++)
					word[i] = (char)('a' + (w >> i & 1));
				word[n] = 0;
				const bool is = is_text(&g, word), does = takes(m, word);
				if (m && m->failed) {
					large++;
					break;
				}
				if (is != does)
					fail_msg("grammar %u: \"%s\" is %s by\n%s", k, word, is ? "refused" : "taken",
					         text);
				taken += is;
				refused += !is;
			}
		machine_close(m);
	}
	printf("# %u texts taken, %u refused; %u grammars that no text is right by, %u of too many stacks\n", taken,
	       refused, none, large);
	assert_true(taken > grammars && refused > grammars && none < grammars / 2 && large < grammars / 12);
}

/* A long text takes no more of each byte than a short one, also where it has many meanings. */
static void test_long(void **state)
{
	static const char in_order[] = "root ::= root \"+\" t | t\nt ::= t \"*\" f | f\nf ::= \"(\" root \")\" | [0-9]",
			  any_order[] = "root ::= root \"+\" root | root \"*\" root | \"(\" root \")\" | [0-9]",
			  by_others[] = "root ::= sum | product | \"(\" root \")\" | [0-9]\nsum ::= root \"+\" root\n"
					"product ::= root \"*\" root";
	static const char *const sums[] = { in_order, any_order, by_others };
	(void)state;

	for (size_t k = 0; k < sizeof sums / sizeof *sums; k++) {
		struct error err = { 0 };
		struct machine *m = machine_of_gbnf(sums[k], strlen(sums[k]), NULL, &err);
		assert_non_null(m);
		uint32_t at = machine_step(m, m->start, '1'), first = at;
		for (int i = 0; i < 1000; i++) {
			at = machine_step(m, at, i % 2 ? '+' : '*');
			assert_int_not_equal(at, MACHINE_DEAD);
			at = machine_step(m, at, '2');
			assert_int_equal(at, first);
		}
		assert_true(takes(m, "(1+2)*(3)+4") && !takes(m, "(1+2*") && !takes(m, "+1") && !takes(m, ""));
		machine_close(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
