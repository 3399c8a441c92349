#include "eml/expression.h"

#include <stdlib.h>

#include "base/array.h"

const struct operation_form operation_form[OPERATIONS] = {
#define OPERATION(name, text, operands) { text, operands },
#include "eml/operations.def"
#undef OPERATION
};

void expression_free(struct expression *e)
{
	free(e->node);
	*e = (struct expression){ .n = 0 };
}

static uint32_t append(struct expression *e, struct node node)
{
	if (e->failed || e->n >= EXPRESSION_NODES ||
	    !array_grow((void **)&e->node, &e->capacity, e->n + 1, sizeof *e->node)) {
		e->failed = true;
		return 0;
	}
	e->node[e->n] = node;
	return (uint32_t)e->n++;
}

uint32_t expression_number(struct expression *e, double number)
{
	return append(e, (struct node){ .op = OP_NUMBER, .number = number });
}

uint32_t expression_variable(struct expression *e, uint32_t number)
{
	return append(e, (struct node){ .op = OP_VARIABLE, .a = number });
}

uint32_t expression_add(struct expression *e, enum operation op, uint32_t a, uint32_t b)
{
	return append(e, (struct node){ .op = op, .a = a, .b = operation_form[op].operands == 2 ? b : 0 });
}

uint32_t expression_copy(struct expression *e, const struct expression *from, uint32_t root, const uint32_t *with)
{
	const struct node n = from->node[root];
	const unsigned operands = operation_form[n.op].operands;

	if (n.op == OP_VARIABLE && with)
		return with[n.a];
	if (!operands)
		return append(e, n);
	const uint32_t a = expression_copy(e, from, n.a, with);
	const uint32_t b = operands == 2 ? expression_copy(e, from, n.b, with) : 0;

	return expression_add(e, n.op, a, b);
}

size_t expression_size(const struct expression *e, uint32_t root)
{
	const struct node *n = &e->node[root];
	const unsigned operands = operation_form[n->op].operands;

	return 1 + (operands > 0 ? expression_size(e, n->a) : 0) + (operands > 1 ? expression_size(e, n->b) : 0);
}

bool expression_equal(const struct expression *e, uint32_t a, const struct expression *f, uint32_t b)
{
	const struct node *m = &e->node[a], *n = &f->node[b];
	const unsigned operands = operation_form[m->op].operands;

	if (m->op != n->op || (m->op == OP_NUMBER && !(m->number == n->number)) ||
	    (m->op == OP_VARIABLE && m->a != n->a))
		return false;
	return (operands < 1 || expression_equal(e, m->a, f, n->a)) &&
	       (operands < 2 || expression_equal(e, m->b, f, n->b));
}
