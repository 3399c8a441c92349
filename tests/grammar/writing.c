#include "tests/grammar/writing.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "grammar/grammar.h"
#include "tests/grammar/large_vocabulary.h"
#include "tests/grammar/plain_judge.h"

enum { TEXT_MAX = 20000, TOKENS_MAX = 1500 };

uint64_t writing_seed = 88172645463325252u;
bool writing_prints;
static uint32_t draw(uint32_t below)
{
	writing_seed ^= writing_seed << 13;
	writing_seed ^= writing_seed >> 7;
	writing_seed ^= writing_seed << 17;
	return (uint32_t)((writing_seed >> 11) % below);
}

/* ---- how it is spelled */

static const char *number_fault(const char *p, size_t n)
{
	char text[100], *end;
	size_t digits, zeros = 0;

	snprintf(text, sizeof text, "%.*s", (int)n, p);
	const double value = fabs(strtod(text, &end));
	const char *point = strchr(text, '.'), *power = strchr(text, 'e');
	if (*end || n > 40 || strpbrk(text, "E+"))
		return "is no number, or a long one";
	for (const char *q = point ? point + 1 : text + n; q < (power ? power : text + n); q++)
		zeros = *q == '0' ? zeros + 1 : 0;
	digits = strspn(text + (*text == '-'), "0123456789");
	if (*text == '-' && value == 0)
		return "is -0";
	if (power && (value < 1e21 && value >= 1e-6))
		return "needs no exponent";
	if (digits > 21 || zeros > 6 || (power && zeros))
		return "has too many digits";
	return NULL;
}

/* Between the parts of a value there is one space behind : and , or all stand on lines of their own, which are indented
 * by as much for each level. What was read of a text. */
struct layout {
	unsigned depth, unit; /* of spaces; 9: a tab; 0: not known yet */
	bool lines[100];
};

static bool is_indentation(struct layout *l, const char *p, size_t n, unsigned depth)
{
	const bool tabs = n && *p == '\t';

	if (*p != '\n' && n && strspn(p, tabs ? "\t" : " ") != n)
		return false;
	if (depth && n && !l->unit)
		l->unit = tabs ? 9 : (unsigned)n / depth;
	return l->unit == 9 ? (depth == 0 || tabs) && n == depth : !tabs && n == l->unit * depth && (n || !depth);
}

static const char *space_fault(struct layout *l, const char *text, const char *p, size_t n)
{
	const char before = p > text ? p[-1] : 0, after = p[n];

	if (!before || !after)
		return n <= 1 && *p != '\t' ? NULL : "begins or ends with white space";
	if (n && *p != '\n')
		return n == 1 && *p == ' ' && (before == ':' || (before == ',' && !l->lines[l->depth]))
		               ? NULL
		               : "has white space where none belongs";
	if (strchr("{[", before)) {
		l->lines[l->depth] = n > 0;
		if (n && strchr("}]", after))
			return "has lines in what is empty";
	} else if (!strchr("}]", after) && before != ',') {
		return n ? "has a line's end where none belongs" : NULL;
	} else if (l->lines[l->depth] != (n > 0)) {
		return "has lines for some parts alone";
	}
	if (n && !is_indentation(l, p + 1, n - 1, l->depth - (strchr("}]", after) != NULL)))
		return "has a line that is not indented as the others";
	return NULL;
}

/* Behind the opening quote; *end: behind the closing one. */
static const char *text_fault(const char *p, const char **end)
{
	for (; *p && *p != '"'; p++) {
		if (*p != '\\')
			continue;
		p++;
		if (*p == 'u' && (strncmp(p, "u00", 3) != 0 || !strchr("01", p[3]) ||
		                  !strchr("0123456789abcdef", p[4]) || (p[3] == '0' && strchr("89acd", p[4]))))
			return "has an escape that is not needed";
		if (*p != 'u' && !strchr("\"\\bfnrt", *p))
			return "has an escape that is not needed";
		p += *p == 'u' ? 4 : 0;
	}
	*end = p + (*p == '"');
	return *p ? NULL : "has no end";
}

const char *writing_fault(const char *text)
{
	const char *p = text, *fault = NULL;
	struct layout l = { .depth = 0 };

	while (*p && !fault) {
		const size_t spaces = strspn(p, " \t\r\n");
		if (spaces || (p > text && (strchr("{[,", p[-1]) || strchr("}]", *p))))
			fault = space_fault(&l, text, p, spaces);
		p += spaces;
		const size_t number = *p == 'e' ? 0 : strspn(p, "-+.eE0123456789");
		if (!*p || fault)
			break;
		if (number)
			fault = number_fault(p, number);
		l.depth += *p == '{' || *p == '[';
		l.depth -= *p == '}' || *p == ']';
		if (l.depth >= 100)
			return NULL;
		if (*p == '"')
			fault = text_fault(p + 1, &p);
		else
			p += number ? number : 1;
	}
	return fault;
}

/* ---- walking */

enum end { ENDED, STUCK, LONG, LIMITED };

/* The id-th or the next that is allowed; LARGE_TOKENS: there is none. */
static uint32_t allowed_from(const uint32_t *bits, uint32_t id)
{
	for (uint32_t i = 0; i < LARGE_TOKENS; i++, id = id + 1 == LARGE_TOKENS ? 0 : id + 1) {
		if (bits[id / 32] >> id % 32 & 1)
			return id;
		if (id % 32 == 0 && bits[id / 32] == 0 && id + 32 < LARGE_TOKENS) {
			id += 31;
			i += 31;
		}
	}
	return LARGE_TOKENS;
}

/* Bytes are the first tokens. */
static uint32_t closer(const uint32_t *bits)
{
	static const char *const orders[] = { "\"]}", "}]\"", "]\"}", "01234567", "e-9", "tfn\"[{", ",\":", "abxy" };

	for (const char *p = orders[draw(8)]; *p; p++)
		if (bits[(uint8_t)*p / 32] >> (uint8_t)*p % 32 & 1)
			return (uint8_t)*p;
	return allowed_from(bits, draw(4) ? draw(256) : draw(LARGE_TOKENS));
}

static enum end walk(struct grammar *g, char text[TEXT_MAX], struct counts *c, struct error *err)
{
	const unsigned close_at = draw(3) ? draw(12) : draw(60);
	size_t n = 0;

	grammar_rewind(g, 0);
	text[0] = 0;
	for (unsigned i = 0; i < TOKENS_MAX && n + 100 < TEXT_MAX; i++) {
		bool ends;
		const uint64_t left = grammar_left(g);
		const uint32_t *bits = grammar_allowed(g, &ends, err);
		if (left - grammar_left(g) > c->steps)
			c->steps = left - grammar_left(g);
		if (!bits)
			return LIMITED;
		if (ends && (i >= close_at || draw(4) == 0))
			return ENDED;
		const uint32_t id = i < close_at ? allowed_from(bits, draw(LARGE_TOKENS)) : closer(bits);
		if (id == LARGE_TOKENS)
			return ends ? ENDED : STUCK;
		struct grammar_token t = { .id = id };
		t.text = large_token(id, &t.n);
		if (!grammar_take(g, &t, err))
			fail_msg("a token that is allowed is not taken: %s", err->text);
		memcpy(text + n, t.text, t.n);
		n += t.n;
		text[n] = 0;
	}
	return LONG;
}

/* Jansson takes no name with a NUL in it: another control stands for it. */
static void spare_nul(char *text)
{
	for (char *p = text; *p; p++)
		if (*p == '\\' && p[1]) {
			if (strncmp(p, "\\u0000", 6) == 0)
				p[5] = '1';
			p++;
		}
}

static json_t *read_value(const char *text)
{
	static const size_t flags[] = { JSON_DECODE_ANY | JSON_ALLOW_NUL,
		                        JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL };
	char *copy = strdup(text);
	json_t *v = NULL;

	assert_non_null(copy);
	for (unsigned i = 0; i < 4 && !v; i++) {
		if (i == 2)
			spare_nul(copy);
		v = json_loads(copy, flags[i % 2], NULL);
	}
	free(copy);
	return v;
}

static void check(const json_t *schema, const char *source, const char *text, struct counts *c)
{
	json_t *v = read_value(text);
	const char *fault = writing_fault(text);

	c->ended++;
	snprintf(c->last, sizeof c->last, "%.*s", (int)sizeof c->last - 1, text);
	if (writing_prints) {
		char *own = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
		printf("%s\t%s\n", source, own ? own : text);
		free(own);
	}
	if (!v || !judge_value(schema, schema, v) || fault) {
		c->wrong++;
		printf("# by %s: %s %s\n", source, text, !v ? "is no JSON" : fault ? fault : "is wrong");
	}
	json_decref(v);
}

void writing_try(const char *source, unsigned how, unsigned texts, struct counts *c)
{
	static char text[TEXT_MAX];
	struct error err = { 0 };
	json_t *schema = read_value(source);
	assert_non_null(schema);

	/* A grammar for each, as each answer has one: what a text may cost is counted for one answer. */
	for (unsigned i = 0; i < texts; i++) {
		struct grammar *g =
			grammar_open(large_vocabulary(), GRAMMAR_SCHEMA | how, source, strlen(source), NULL, &err);
		if (!g) {
			c->refused++;
			break;
		}
		switch (walk(g, text, c, &err)) {
		case ENDED: check(schema, source, text, c); break;
		case STUCK:
			printf("# by %s: stuck behind %s\n", source, text);
			c->stuck++;
			break;
		case LONG: c->longer++; break;
		case LIMITED:
			printf("# by %s: %s behind %s\n", source, err.text, text);
			c->limited++;
			i = texts;
			break;
		}
		err = (struct error){ 0 };
		grammar_close(g);
	}
	json_decref(schema);
}
