/* eml/expression_read.c - texts into expressions.
 *
 * sum: product {+|- product}; product: signed {*|/ signed}; signed: {+|-} power; power: atom [^ signed]; atom: a
 * number, a name, name(sum[, sum]), or (sum). -x^2 is -(x^2), and 2^3^2 is 2^(3^2).
 */
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "eml/expression.h"

struct reader {
	struct expression *e;
	const char *what, *text, *at;
	const char *const *names;
	unsigned variables, depth;
	struct error *err;
};

static bool wrong(struct reader *r, const char *expected)
{
	char quoted[60];

	return error_set(r->err, ERROR_FORMAT, "%s: column %zu: %s: expected %s", r->what,
	                 (size_t)(r->at - r->text) + 1,
	                 *r->at ? error_quote(quoted, sizeof quoted, r->at, strlen(r->at)) : "the end", expected);
}

static void blanks(struct reader *r) { r->at += strspn(r->at, " \t\r\n"); }

static bool takes(struct reader *r, char c)
{
	blanks(r);
	if (*r->at != c)
		return false;
	r->at++;
	return true;
}

static bool read_sum(struct reader *r, uint32_t *node);

/* Digits, a point, an exponent: strtod would take more than these, and go by the locale. */
static bool read_number(struct reader *r, uint32_t *node)
{
	const char *p = r->at;
	char text[64];
	size_t n;

	p += strspn(p, "0123456789");
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	if ((*p | 32) == 'e') {
		const char *digits = p + 1 + (p[1] == '-' || p[1] == '+');
		if (isdigit((unsigned char)*digits))
			p = digits + strspn(digits, "0123456789");
	}
	n = (size_t)(p - r->at);
	if (n >= sizeof text || (n == 1 && *r->at == '.'))
		return wrong(r, "a number of fewer than 64 characters");
	memcpy(text, r->at, n);
	text[n] = 0;
	const double v = strtod(text, NULL);
	if (!isfinite(v))
		return wrong(r, "a number below 1.8e308");
	r->at = p;
	*node = expression_number(r->e, v);
	return true;
}

static bool is_name(char c, bool first)
{
	return isalpha((unsigned char)c) || c == '_' || (!first && isdigit((unsigned char)c));
}

/* "(", operands, ")". */
static bool read_call(struct reader *r, enum operation op, uint32_t *node)
{
	uint32_t a, b = 0;

	if (!takes(r, '('))
		return wrong(r, "( behind a function's name");
	if (!read_sum(r, &a))
		return false;
	if (operation_form[op].operands == 2) {
		if (!takes(r, ','))
			return wrong(r, "a comma, and the second operand");
		if (!read_sum(r, &b))
			return false;
	}
	if (!takes(r, ')'))
		return wrong(r, "an operator or )");
	*node = expression_add(r->e, op, a, b);
	return true;
}

static bool read_name(struct reader *r, uint32_t *node)
{
	size_t n = 0;

	while (is_name(r->at[n], n == 0))
		n++;
	for (unsigned v = 0; v < r->variables; v++) {
		if (strlen(r->names[v]) != n || memcmp(r->names[v], r->at, n) != 0)
			continue;
		r->at += n;
		*node = expression_variable(r->e, v);
		return true;
	}
	for (enum operation op = 0; op < OPERATIONS; op++) {
		const char *text = operation_form[op].text;
		const bool other = op == OP_LN && n == 3 && memcmp(r->at, "log", 3) == 0;
		if (!other && (!isalpha((unsigned char)*text) || strlen(text) != n || memcmp(text, r->at, n) != 0))
			continue;
		r->at += n;
		if (operation_form[op].operands)
			return read_call(r, op, node);
		*node = expression_add(r->e, op, 0, 0);
		return true;
	}
	return wrong(r, "a variable, a constant or a function that is known");
}

static bool read_atom(struct reader *r, uint32_t *node)
{
	blanks(r);
	if (isdigit((unsigned char)*r->at) || *r->at == '.')
		return read_number(r, node);
	if (is_name(*r->at, true))
		return read_name(r, node);
	if (!takes(r, '('))
		return wrong(r, "a number, a name or (");
	if (!read_sum(r, node))
		return false;
	return takes(r, ')') || wrong(r, "an operator or )");
}

static bool read_signed(struct reader *r, uint32_t *node)
{
	bool fine;

	if (r->depth >= EXPRESSION_DEPTH)
		return wrong(r, "at most 200 parts inside of one another");
	r->depth++;
	if (takes(r, '-')) {
		fine = read_signed(r, node);
		if (fine)
			*node = expression_add(r->e, OP_NEG, *node, 0);
	} else if (takes(r, '+')) {
		fine = read_signed(r, node);
	} else {
		uint32_t power;
		fine = read_atom(r, node);
		if (fine && takes(r, '^')) {
			fine = read_signed(r, &power);
			if (fine)
				*node = expression_add(r->e, OP_POW, *node, power);
		}
	}
	r->depth--;
	return fine;
}

static bool read_product(struct reader *r, uint32_t *node)
{
	if (!read_signed(r, node))
		return false;
	for (;;) {
		const enum operation op = takes(r, '*') ? OP_MUL : takes(r, '/') ? OP_DIV : OP_NUMBER;
		uint32_t next;
		if (op == OP_NUMBER)
			return true;
		if (!read_signed(r, &next))
			return false;
		*node = expression_add(r->e, op, *node, next);
	}
}

static bool read_sum(struct reader *r, uint32_t *node)
{
	if (!read_product(r, node))
		return false;
	for (;;) {
		const enum operation op = takes(r, '+') ? OP_ADD : takes(r, '-') ? OP_SUB : OP_NUMBER;
		uint32_t next;
		if (op == OP_NUMBER)
			return true;
		if (!read_product(r, &next))
			return false;
		*node = expression_add(r->e, op, *node, next);
	}
}

/* Operators side by side make an expression deep, too: 1+1+1+... */
static bool check_depth(struct reader *r)
{
	uint16_t *depth = malloc(r->e->n * sizeof *depth);

	if (!depth || r->e->failed) {
		free(depth);
		return error_set(r->err, ERROR_MEMORY, "%s: more than %d parts, or no memory for them", r->what,
		                 EXPRESSION_NODES);
	}
	for (size_t i = 0; i < r->e->n; i++) {
		const struct node *n = &r->e->node[i];
		const unsigned operands = operation_form[n->op].operands;
		const unsigned a = operands > 0 ? depth[n->a] : 0, b = operands > 1 ? depth[n->b] : 0;
		depth[i] = (uint16_t)(1 + (a > b ? a : b));
		if (depth[i] > 4 * EXPRESSION_DEPTH) {
			free(depth);
			return error_set(r->err, ERROR_FORMAT, "%s: more than %d operators inside of one another",
			                 r->what, 4 * EXPRESSION_DEPTH);
		}
	}
	free(depth);
	return true;
}

bool expression_read(struct expression *e, const char *what, const char *text, const char *const *names,
                     unsigned variables, struct error *err)
{
	struct reader r = { e, what, text, text, names, variables, 0, err };
	uint32_t root;

	*e = (struct expression){ .n = 0 };
	if (read_sum(&r, &root)) {
		blanks(&r);
		if (!*r.at ? check_depth(&r) : wrong(&r, "an operator or the end"))
			return true;
	}
	expression_free(e);
	return false;
}
