/* tests/graph/attention_graph.c - see attention_graph.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/text.h"
#include "tests/graph/attention_graph.h"

struct drawing {
	uint64_t state;
	const char *type;
	unsigned heads, groups, queries, keys, depth, width;
	char scores[40], own[20]; /* the shape of scores, and the axes of queries in it */
	unsigned rank;
	char text[4000];
	size_t n;
};

static unsigned below(struct drawing *d, unsigned n)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((d->state >> 33) % n);
}

static unsigned one_of(struct drawing *d, const unsigned *list, unsigned n) { return list[below(d, n)]; }
#define ONE_OF(d, ...) \
	one_of(d, (const unsigned[]){ __VA_ARGS__ }, sizeof((const unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned))

static void put(struct drawing *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct drawing *d, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	d->n += (size_t)vsnprintf(d->text + d->n, sizeof d->text - d->n, format, list);
	va_end(list);
	assert_true(d->n < sizeof d->text);
}

/* y = a number in the shape of scores */
static void put_number(struct drawing *d, const char *name, const char *type, const char *number)
{
	put(d, "one = constant %s[] %s\n%s = broadcast one shape=%s axes=[]\n", type, number, name, d->scores);
}

enum layout { HEADS_FIRST, HEADS_BETWEEN, GROUPED, REPEATED, LAYOUTS };

static void put_scores(struct drawing *d, enum layout layout)
{
	const unsigned h = d->heads, g = d->groups, m = d->queries, n = d->keys, k = d->depth, w = d->width;

	d->rank = layout == HEADS_BETWEEN ? 3 : 4;
	switch (layout) {
	case HEADS_FIRST:
		put(d, "input q %s[%u,%u,%u,%u]\ninput k %s[%u,%u,%u,%u]\ninput v %s[%u,%u,%u,%u]\n", d->type, g, h, m,
		    k, d->type, g, h, n, k, d->type, g, h, n, w);
		break;
	case HEADS_BETWEEN:
		put(d, "input q %s[%u,%u,%u]\ninput k %s[%u,%u,%u]\ninput v %s[%u,%u,%u]\n", d->type, m, h, k, d->type,
		    n, h, k, d->type, n, h, w);
		put(d, "s = dot q k left=[2] right=[2] left_batch=[1] right_batch=[1]\n");
		snprintf(d->scores, sizeof d->scores, "[%u,%u,%u]", h, m, n);
		return;
	case GROUPED:
		put(d, "input q %s[%u,%u,%u,%u]\ninput k %s[%u,%u,%u]\ninput v %s[%u,%u,%u]\n", d->type, m, g, h, k,
		    d->type, n, g, k, d->type, n, g, w);
		put(d, "s = dot q k left=[3] right=[2] left_batch=[1] right_batch=[1]\n");
		snprintf(d->scores, sizeof d->scores, "[%u,%u,%u,%u]", g, m, h, n);
		return;
	default:
		put(d, "input q %s[1,%u,%u,%u]\ninput k1 %s[1,%u,1,%u,%u]\ninput v1 %s[1,%u,1,%u,%u]\n", d->type, g * h,
		    m, k, d->type, g, n, k, d->type, g, n, w);
		put(d, "k2 = broadcast k1 shape=[1,%u,%u,%u,%u] axes=[0,1,2,3,4]\nk = reshape k2 shape=[1,%u,%u,%u]\n",
		    g, h, n, k, g * h, n, k);
		put(d, "v2 = broadcast v1 shape=[1,%u,%u,%u,%u] axes=[0,1,2,3,4]\nv = reshape v2 shape=[1,%u,%u,%u]\n",
		    g, h, n, w, g * h, n, w);
		break;
	}
	put(d, "s = dot q k left=[3] right=[3] left_batch=[0,1] right_batch=[0,1]\n");
	snprintf(d->scores, sizeof d->scores, "[%u,%u,%u,%u]", layout == REPEATED ? 1 : g,
	         layout == REPEATED ? g * h : h, m, n);
}

/* What each score becomes, and which are not seen. */
static void put_masks(struct drawing *d, enum layout layout)
{
	const unsigned query = layout == GROUPED || layout == HEADS_BETWEEN ? 1 : 2, last = d->rank - 1;

	if (below(d, 2)) {
		put_number(d, "by", d->type, "0.3");
		put(d, "s = %s s by\n", below(d, 2) ? "mul" : "div");
	}
	if (below(d, 4) == 0)
		put(d, "s = tanh s\n");
	switch (below(d, 6)) {
	case 0: return;
	case 1: /* causal */
	case 2: /* the same in a window */
		put(d, "i = iota type=i32 shape=%s axis=%u\nj = iota type=i32 shape=%s axis=%u\nsees = ge i j\n",
		    d->scores, query, d->scores, last);
		if (below(d, 2)) {
			put_number(d, "far", "i32", "5");
			put(d, "apart = sub i j\nnear = le apart far\nsees = and sees near\n");
		}
		break;
	case 3: /* given, for each query and key */
		put(d, "input mask %s[%u,%u]\nwide = broadcast mask shape=%s axes=[%u,%u]\ns = add s wide\n", d->type,
		    d->queries, d->keys, d->scores, query, last);
		return;
	case 4: /* for each key */
		put(d, "input mask bool[%u]\nsees = broadcast mask shape=%s axes=[%u]\n", d->keys, d->scores, last);
		break;
	default: /* for each score */ put(d, "input mask %s%s\ns = add mask s\n", d->type, d->scores); return;
	}
	put_number(d, "none", d->type, below(d, 2) ? "-1e30" : "-inf");
	put(d, "s = select sees s none\n");
}

static void put_softmax(struct drawing *d)
{
	const char *const lead = d->rank == 3 ? "[0,1]" : "[0,1,2]";

	put(d, "m = reduce_max s axes=[%u]\nm = broadcast m shape=%s axes=%s\n", d->rank - 1, d->scores, lead);
	put(d, "e = sub s m\ne = exp e\nt = reduce_sum e axes=[%u]\nt = broadcast t shape=%s axes=%s\np = div e t\n",
	    d->rank - 1, d->scores, lead);
}

static void put_values(struct drawing *d, enum layout layout)
{
	if (layout == HEADS_BETWEEN)
		put(d, "y = dot p v left=[2] right=[0] left_batch=[0] right_batch=[1]\n");
	else if (layout == GROUPED)
		put(d, "y = dot p v left=[3] right=[0] left_batch=[0] right_batch=[1]\n");
	else
		put(d, "y = dot p v left=[3] right=[2] left_batch=[0,1] right_batch=[0,1]\n");
	if (below(d, 4) == 0)
		put(d, "y = tanh y\n");
	if (below(d, 4) == 0)
		put(d, "y = transpose y axes=%s\n", d->rank == 3 ? "[1,0,2]" : "[1,0,3,2]");
	put(d, "output y\n");
}

void attention_graph(struct tensor_graph *g, uint64_t seed, enum together *together)
{
	struct drawing d = { .state = seed * 2 + 1 };
	struct error err = { 0 };
	const enum layout layout = (enum layout)below(&d, LAYOUTS);

	d.type = below(&d, 4) ? "f32" : "f64";
	d.heads = ONE_OF(&d, 1, 2, 3);
	d.groups = ONE_OF(&d, 1, 2);
	d.queries = ONE_OF(&d, 1, 3, 4, 5, 7, 8, 13, 15, 16, 29, 33);
	d.keys = ONE_OF(&d, 8, 9, 15, 16, 17, 31, 32, 33, 70, 129);
	d.depth = ONE_OF(&d, 1, 2, 5, 8, 16);
	d.width = ONE_OF(&d, 1, 3, 8, 15, 16, 17, 33);
	put_scores(&d, layout);
	put_masks(&d, layout);
	put_softmax(&d);
	put_values(&d, layout);
	*together = (layout == GROUPED ? d.queries * d.heads : d.queries) < 4 ? TOGETHER_NEVER
	            : d.width < 8                                             ? TOGETHER_PERHAPS
	                                                                      : TOGETHER_ALWAYS;
	if (!graph_text_read(g, "attention", d.text, d.n, NULL, 0, &err))
		fail_msg("%s\n%s", err.text, d.text);
}

uint32_t attention_groups(const struct executable *x)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	uint32_t found = 0;

	assert_non_null(f);
	executable_print(x, f, false);
	fclose(f);
	for (const char *p = text; (p = strstr(p, "attention")); p++)
		found++;
	free(text);
	return found;
}
