/* tests/runtime/t_graph.c - graphs, and how their nodes become ops (runtime/plan/graph.h, lower.h): hand-made graphs,
 * and random ones. The witness evaluates a graph's nodes as formulas, runs the plan's ops on symbols in place of
 * numbers, and compares what the stream holds in the end. It knows kernels by their keys and shares nothing with the
 * lowering. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/plan/lower.h"

enum { HIDDEN = 64, FFN = 96, NODES = 400, TOKENS = 1 };

static struct model_spec spec;
static struct weights_layer layer;
static struct weights weights;
static struct plan_buffers buffers;
static struct plan_layout layout;
static float norm_weight[4];

/* Every buffer has addresses of its own; nothing lies there. */
static uintptr_t area(unsigned n) { return (uintptr_t)n << 24; }

static void point(struct weights_matrix *m, enum dtype type, uint64_t rows, uint64_t k, unsigned n)
{
	*m = (struct weights_matrix){ .type = type, .rows = rows, .k = k, .packed = (const uint8_t *)area(n) };
}

static void open_model(enum dtype type, enum dtype other)
{
	spec = (struct model_spec){
		.layers = NODES / 20,
		.hidden = HIDDEN,
		.ffn = FFN,
		.heads = 2,
		.kv_heads = 2,
		.head_dim = 32,
		.vocab = 32,
		.norm_eps = 1e-5f,
		.parallel = true
	};
	memset(&layer, 0, sizeof layer);
	point(&layer.gate, type, FFN, HIDDEN, 200);
	point(&layer.up, other, FFN, HIDDEN, 201);
	point(&layer.down, type, HIDDEN, FFN, 202);
	point(&layer.conv_b, type, HIDDEN, HIDDEN, 203);
	point(&layer.conv_out, DTYPE_F32, HIDDEN, HIDDEN, 204); /* what it reads has no int8 blocks */
	weights = (struct weights){ .layer = &layer };
	point(&weights.embed, DTYPE_F32, 32, HIDDEN, 205);
	buffers = (struct plan_buffers){ .tokens = TOKENS, .values = (uint8_t *)area(1), .layout = &layout };
}

static graph_ref begin(struct graph *g)
{
	assert_true(graph_open(g, NODES, 2));
	graph_section(g, 0);
	return graph_node(
		g, &(struct graph_node){ .kind = NODE_EMBED, .in = { [IN_W] = graph_matrix(g, &weights.embed) } },
		HIDDEN);
}

static void lower(struct graph *g, struct plan *p, const char *target)
{
	const struct plan_options opt = { .target = target_find(target) };
	const struct plan_span all = { 0, TOKENS, 0 };
	struct plan_builder b = {
		.p = p,
		.spec = &spec,
		.w = &weights,
		.buf = &buffers,
		.opt = &opt,
		.n = TOKENS,
		.span = &all,
		.spans = 1
	};
	struct error err = { 0 };

	graph_section(g, 0);
	graph_end(g);
	plan_layout_close(&layout);
	assert_true(plan_layout_of(&layout, g, &(struct plan_layout_options){ .tokens = TOKENS }, &err));
	assert_true(plan_of_graph(&b, g, PLAN_NO_LOGITS, &err));
}

static unsigned count(const struct plan *p, enum key_kind kind, uint32_t flags)
{
	unsigned n = 0;

	for (size_t i = 0; i < p->n_ops; i++) {
		const struct key *k = &p->kernel[p->op[i].kernel].key;
		n += k->kind == kind && (k->flags & flags) == flags;
	}
	return n;
}

static graph_ref norm(struct graph *g, graph_ref x, unsigned weight)
{
	return graph_norm(g, x, &norm_weight[weight], spec.norm_eps);
}

static graph_ref product(struct graph *g, graph_ref x, const struct weights_matrix *w)
{
	return graph_matmul(g, x, w, NULL);
}

/* ---- graphs */

static void test_identity(void **state)
{
	struct graph g;
	(void)state;

	open_model(DTYPE_F32, DTYPE_F32);
	const graph_ref x = begin(&g), y = norm(&g, x, 0), z = graph_multiply(&g, y, y, ACT_SILU),
			s = graph_add(&g, x, z);
	assert_int_equal(graph_value(&g, x)->users, 2);
	assert_int_equal(graph_value(&g, y)->users, 2); /* by one node, twice */
	assert_int_equal(graph_value(&g, s)->users, 0);
	assert_int_equal(graph_value(&g, y)->last_user, 2);
	assert_int_equal(graph_value(&g, x)->last_user, 3);
	assert_ptr_equal(graph_producer(&g, z), &g.node[2]);
	assert_null(graph_producer(&g, g.node[1].in[IN_W]));
	assert_int_equal(graph_value(&g, s)->width, HIDDEN);
	assert_int_equal(graph_matrix(&g, NULL), 0); /* there are none of these */
	assert_int_equal(graph_matrix(&g, &layer.q), 0);
	assert_int_equal(graph_vector(&g, NULL, 1), 0);
	graph_close(&g);
}

/* ---- what lowering decides */

/* A norm is the matrices' own where they alone read it, before what it reads is written over. */
static void test_norms(void **state)
{
	enum { ALONE, TWICE, READ_ELSEWHERE, LATE, KEPT, UNREAD, OTHER_EPS, CASES };
	(void)state;

	open_model(DTYPE_F32, DTYPE_F32);
	for (int i = 0; i < CASES; i++) {
		struct graph g;
		struct plan p;
		graph_ref x = begin(&g), y = i == OTHER_EPS ? graph_norm(&g, x, norm_weight, 1) : norm(&g, x, 0), h = 0;
		if (i == KEPT)
			graph_keep(&g, y);
		if (i != UNREAD)
			h = product(&g, y, &layer.conv_b);
		if (i == TWICE)
			product(&g, y, &layer.gate);
		if (i == READ_ELSEWHERE)
			graph_multiply(&g, h, y, ACT_SILU);
		if (i == LATE) {
			graph_add(&g, x, product(&g, h, &layer.conv_out));
			product(&g, y, &layer.gate);
		}
		lower(&g, &p, "sm80");
		const bool inside = i == ALONE || i == TWICE;
		assert_int_equal(count(&p, KEY_NORM, 0), !inside);
		assert_int_equal(count(&p, KEY_MATMUL, KEY_NORM_IN), inside ? 1 + (i == TWICE) : 0);
		plan_free(&p);
		graph_close(&g);
	}
}

/* A sum is its summand's where nothing else reads that, nor the other summand on the way. */
static void test_sums(void **state)
{
	enum { PRODUCT, SCALED, NORMED, USED_TWICE, READ_BETWEEN, CASES };
	(void)state;

	open_model(DTYPE_F32, DTYPE_F32);
	for (int i = 0; i < CASES; i++) {
		struct graph g;
		struct plan p;
		graph_ref x = begin(&g), y = product(&g, product(&g, norm(&g, x, 0), &layer.conv_b), &layer.conv_out);
		if (i == SCALED)
			y = graph_scale(&g, y, 2);
		if (i == NORMED)
			y = norm(&g, y, 1);
		if (i == READ_BETWEEN)
			product(&g, x, &layer.gate);
		graph_add(&g, x, y);
		if (i == USED_TWICE)
			product(&g, y, &layer.gate);
		lower(&g, &p, "avx2");
		const bool apart = i == USED_TWICE || i == READ_BETWEEN;
		assert_int_equal(count(&p, KEY_MATMUL, KEY_RESIDUAL), i == PRODUCT);
		assert_int_equal(count(&p, KEY_SCALE, KEY_RESIDUAL), i == SCALED || apart);
		assert_int_equal(count(&p, KEY_NORM, KEY_RESIDUAL), i == NORMED);
		plan_free(&p);
		graph_close(&g);
	}
}

/* int8 blocks are made once: by the kernel that makes the value, or by an op. */
static void test_blocks(void **state)
{
	struct graph g;
	struct plan p;
	(void)state;

	open_model(DTYPE_Q8_0, DTYPE_F32);
	const graph_ref x = begin(&g);
	product(&g, x, &layer.conv_b); /* blocks of the stream as it is */
	product(&g, x, &layer.gate);
	const graph_ref y = norm(&g, x, 0);
	product(&g, y, &layer.up); /* f32 and int8 of one norm */
	const graph_ref h = product(&g, y, &layer.gate);
	graph_add(&g, x, product(&g, h, &layer.down)); /* of a product */
	lower(&g, &p, "avx2");
	assert_int_equal(count(&p, KEY_QUANTISE, 0), 1);
	assert_int_equal(count(&p, KEY_NORM, KEY_QUANTISED_OUT), 1);
	assert_int_equal(count(&p, KEY_MATMUL, KEY_QUANTISED_OUT), 1);
	plan_free(&p);
	graph_close(&g);
}

/* ---- random graphs, on symbols */

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t v = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;
	return v ^ v >> 33;
}

enum { TAG_NORM = 1, TAG_PRODUCT, TAG_ACT, TAG_TIMES, TAG_SUM, TAG_BLOCKS, TAG_SCALE };

static uint64_t formula(uint64_t tag, uint64_t a, uint64_t b) { return mix(mix(tag, a), b); }
static uint64_t product_of(uint64_t x, const void *w, bool int8)
{
	return formula(TAG_PRODUCT, int8 ? formula(TAG_BLOCKS, x, 0) : x, (uint64_t)(uintptr_t)w);
}
static uint64_t act_of(uint64_t x, unsigned act) { return act ? formula(TAG_ACT, x, act) : x; }
/* Sums do not depend on the order of their summands' makers. */
static uint64_t sum_of(uint64_t x, uint64_t y) { return formula(TAG_SUM, x, y); }

static uint64_t evaluate(const struct graph *g, const struct graph_node *n, const uint64_t v[])
{
	const struct weights_matrix *w = g->value[n->in[IN_W]].matrix, *w2 = g->value[n->in[IN_W2]].matrix;
	const uint64_t x = v[n->in[IN_X]], y = v[n->in[IN_W]];
	uint32_t bits;

	switch (n->kind) {
	case NODE_NORM: return formula(TAG_NORM, x, (uint64_t)(uintptr_t)g->value[n->in[IN_W]].vector);
	case NODE_MATMUL:
		if (!w2)
			return act_of(product_of(x, w->packed, w->type == DTYPE_Q8_0), n->act);
		return formula(TAG_TIMES, act_of(product_of(x, w->packed, w->type == DTYPE_Q8_0), n->act),
		               product_of(x, w2->packed, w2->type == DTYPE_Q8_0));
	case NODE_ADD: return sum_of(x, y);
	case NODE_SCALE: memcpy(&bits, &n->number, 4); return formula(TAG_SCALE, x, bits);
	default: return 77; /* the embedding */
	}
}

/* What the bytes of the values hold, 64 by 64. */
enum { LINE = 64, LINES = 1 << 14 };
static uint64_t holds[LINES];

static uint64_t *lines(uint64_t address, uint64_t bytes)
{
	const uint64_t at = address - (uint64_t)area(1);

	assert_true(at % LINE == 0 && at + bytes <= LINES * LINE);
	return &holds[at / LINE];
}

static void put(uint64_t address, uint64_t bytes, uint64_t symbol)
{
	uint64_t *line = lines(address, bytes);

	for (uint64_t i = 0; i < (bytes + LINE - 1) / LINE; i++)
		line[i] = symbol;
}

/* One symbol, or what nothing else can be. */
static uint64_t get(uint64_t address, uint64_t bytes)
{
	const uint64_t *line = lines(address, bytes);
	uint64_t symbol = line[0];

	for (uint64_t i = 1; i < (bytes + LINE - 1) / LINE; i++)
		symbol = line[i] == symbol ? symbol : mix(symbol, line[i]);
	return symbol;
}

static void run_matmul(const struct key *k, const uint64_t *a)
{
	const bool int8 = k->activation == key_type(DTYPE_Q8_0), floats = !int8 || k->flags & KEY_NORM_IN;
	const uint64_t bytes = k->rows * sizeof(float);
	uint64_t x = get(a[MATMUL_X], floats ? k->k * sizeof(float) : k->k), out;

	if (k->flags & KEY_NORM_IN) {
		x = formula(TAG_NORM, x, a[MATMUL_NORM]);
		x = int8 ? formula(TAG_BLOCKS, x, 0) : x;
	}
	out = formula(TAG_PRODUCT, x, a[MATMUL_W]);
	if (k->flags & KEY_PAIR)
		out = formula(TAG_TIMES, act_of(out, k->act), formula(TAG_PRODUCT, x, a[MATMUL_W2]));
	else if (k->flags & KEY_GATED)
		out = formula(TAG_TIMES, act_of(get(a[MATMUL_OUT], bytes), k->act), out);
	else
		out = act_of(out, k->act);
	put(a[MATMUL_OUT], bytes, k->flags & KEY_RESIDUAL ? sum_of(get(a[MATMUL_OUT], bytes), out) : out);
	if (k->flags & KEY_QUANTISED_OUT)
		put(a[MATMUL_OUTQ], k->rows, formula(TAG_BLOCKS, out, 0));
}

static void run_op(const struct key *k, const uint64_t *a, int64_t units)
{
	const uint64_t width = k->kind == KEY_NORM ? k->k : (uint64_t)units * 32, bytes = width * sizeof(float);
	uint64_t out;

	switch (k->kind) {
	case KEY_EMBED: put(a[EMBED_OUT], HIDDEN * sizeof(float), 77); break;
	case KEY_MATMUL: run_matmul(k, a); break;
	case KEY_NORM:
		out = formula(TAG_NORM, get(a[NORM_X], bytes), a[NORM_WEIGHT]);
		put(a[NORM_OUT], bytes, k->flags & KEY_RESIDUAL ? sum_of(get(a[NORM_OUT], bytes), out) : out);
		if (k->flags & KEY_QUANTISED_OUT)
			put(a[NORM_OUTQ], width, formula(TAG_BLOCKS, out, 0));
		break;
	case KEY_QUANTISE: put(a[QUANTISE_OUTQ], width, formula(TAG_BLOCKS, get(a[QUANTISE_X], bytes), 0)); break;
	case KEY_SCALE:
		out = get(a[SCALE_IN], bytes);
		out = a[SCALE_BY] == plan_f32_slot(1) ? out : formula(TAG_SCALE, out, a[SCALE_BY]);
		put(a[SCALE_OUT], bytes, k->flags & KEY_RESIDUAL ? sum_of(get(a[SCALE_OUT], bytes), out) : out);
		break;
	default: fail_msg("a kernel of kind %u", k->kind);
	}
}

/* Some layers, each of a norm or none, products of it, and a sum; and what reads old values again where it may. */
static graph_ref draw(struct graph *g, graph_ref x)
{
	for (int n = 1 + rand() % 6; n; n--) {
		const bool normed = rand() % 4;
		const graph_ref in = normed ? norm(g, x, (unsigned)rand() % 4) : x;
		if (normed && rand() % 4 == 0)
			graph_keep(g, in);
		const graph_ref first = rand() % 2 ? product(g, in, &layer.conv_b) : 0;
		graph_ref h = graph_gated(g, in,
		                          &(struct graph_gate){ .gate = rand() % 3 ? &layer.gate : NULL,
		                                                .up = &layer.up,
		                                                .act = rand() % 2 ? ACT_SILU : ACT_GELU });
		if (first && rand() % 2) { /* in the stream before what follows reads the norm again */
			x = graph_add(g, x, product(g, first, &layer.conv_out));
			if (normed && rand() % 2)
				h = graph_gated(
					g, in,
					&(struct graph_gate){ .gate = &layer.gate, .up = &layer.up, .act = ACT_SILU });
		}
		graph_ref y = product(g, h, &layer.down);
		if (rand() % 3 == 0)
			y = graph_scale(g, y, (float)(2 + rand() % 3));
		else if (rand() % 2)
			y = norm(g, y, (unsigned)rand() % 4);
		x = graph_add(g, x, y);
		if (rand() % 4 == 0)
			x = graph_scale(g, x, 0.5f);
	}
	return x;
}

static void test_random(void **state)
{
	static const char *const targets[] = { "avx2", "sm80", "gfx1101" };
	static const enum dtype types[] = { DTYPE_F32, DTYPE_Q8_0 };
	unsigned inside = 0, blocks = 0;
	(void)state;

	srand(5);
	for (int i = 0; i < 2000; i++) {
		uint64_t v[NODES * 8] = { 0 };
		struct graph g;
		struct plan p;
		open_model(types[rand() % 2], types[rand() % 2]);
		const graph_ref end = draw(&g, begin(&g));
		for (uint32_t n = 0; n < g.n_nodes; n++)
			v[g.node[n].out[0]] = evaluate(&g, &g.node[n], v);
		lower(&g, &p, targets[i % 3]);
		memset(holds, 0, sizeof holds);
		for (size_t op = 0; op < p.n_ops; op++)
			run_op(&p.kernel[p.op[op].kernel].key, p.op[op].arg, p.op[op].end);
		assert_true(get((uintptr_t)buffers.values + layout.at[end][FORM_FLOATS], HIDDEN * sizeof(float)) ==
		            v[end]);
		inside += count(&p, KEY_MATMUL, KEY_NORM_IN);
		blocks += count(&p, KEY_MATMUL, KEY_QUANTISED_OUT);
		plan_free(&p);
		graph_close(&g);
	}
	assert_true(inside && blocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_identity), cmocka_unit_test(test_norms),
		                            cmocka_unit_test(test_sums), cmocka_unit_test(test_blocks),
		                            cmocka_unit_test(test_random) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
