#include "grammar/regex/expression.h"

#include <stdlib.h>

#include "base/text.h"
#include "grammar/machine/effort.h"

static uint32_t add(struct expression *x, struct expression_node node)
{
	void *nodes = x->node;

	if (x->n == 0) { /* node 0 is the empty text, and what a failed tree gives */
		if (!effort_array(&nodes, &x->capacity, 1, sizeof *x->node)) {
			x->failed = true;
			return 0;
		}
		x->node = nodes;
		x->node[x->n++] = (struct expression_node){ .kind = EXPRESSION_EMPTY };
	}
	if (x->failed || !effort_take(2) || x->n >= EXPRESSION_MAX ||
	    !effort_array(&nodes, &x->capacity, x->n + 1, sizeof *x->node)) {
		x->failed = true;
		return 0;
	}
	x->node = nodes;
	x->node[x->n] = node;
	return (uint32_t)x->n++;
}

uint32_t expression_empty(struct expression *x) { return add(x, (struct expression_node){ .kind = EXPRESSION_EMPTY }); }

uint32_t expression_set(struct expression *x, const struct character_range *r, size_t n)
{
	void *ranges = x->range;
	size_t at = x->n_ranges;

	if (at + n > EXPRESSION_MAX || !effort_array(&ranges, &x->range_capacity, at + n, sizeof *x->range)) {
		x->failed = true;
		return 0;
	}
	x->range = ranges;
	for (size_t i = 0; i < n; i++)
		x->range[at + i] = r[i];
	x->n_ranges += n;
	return add(x, (struct expression_node){ .kind = EXPRESSION_SET, .first = (uint32_t)at, .rest = (uint32_t)n });
}

uint32_t expression_character(struct expression *x, uint32_t code)
{
	return expression_set(x, &(struct character_range){ code, code }, 1);
}

uint32_t expression_text(struct expression *x, const char *text, size_t n)
{
	enum { REPLACEMENT = 0xfffd };
	uint32_t all = expression_empty(x), code;

	/* The last character first: a chain that leans to the right is walked without recursion. */
	for (size_t end = n, length; end; end -= length) {
		for (length = 1; length < 4 && length < end && (text[end - length] & 0xc0) == 0x80; length++)
			;
		if (text_char(text + end - length, length, &code) != length) {
			code = REPLACEMENT;
			length = 1;
		}
		all = expression_join(x, expression_character(x, code), all);
	}
	return all;
}

uint32_t expression_join(struct expression *x, uint32_t first, uint32_t rest)
{
	return add(x, (struct expression_node){ .kind = EXPRESSION_JOIN, .first = first, .rest = rest });
}

uint32_t expression_either(struct expression *x, uint32_t first, uint32_t rest)
{
	return add(x, (struct expression_node){ .kind = EXPRESSION_EITHER, .first = first, .rest = rest });
}

uint32_t expression_repeat(struct expression *x, uint32_t node, uint32_t min, uint32_t max)
{
	return add(x, (struct expression_node){ .kind = EXPRESSION_REPEAT, .first = node, .min = min, .max = max });
}

uint32_t expression_byte(struct expression *x, uint8_t low, uint8_t high)
{
	return add(x, (struct expression_node){ .kind = EXPRESSION_BYTE, .first = low, .rest = high });
}

uint32_t expression_edge(struct expression *x, enum expression_kind begin_or_end)
{
	return add(x, (struct expression_node){ .kind = begin_or_end });
}

uint32_t expression_rule(struct expression *x, uint32_t number)
{
	return add(x, (struct expression_node){ .kind = EXPRESSION_RULE, .first = number });
}

uint32_t expression_token(struct expression *x, uint32_t id, bool without)
{
	return add(x, (struct expression_node){ .kind = EXPRESSION_TOKEN, .first = id, .min = without });
}

uint32_t expression_ahead(struct expression *x, uint32_t node, bool without)
{
	return add(x, (struct expression_node){ .kind = EXPRESSION_AHEAD, .first = node, .min = without });
}

void expression_clear(struct expression *x)
{
	free(x->node);
	free(x->range);
	*x = (struct expression){ 0 };
}
