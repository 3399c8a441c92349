/* tests/graph/random_loops.c - random loops, equations and scatters, for random graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "graph/loop.h"
#include "tests/graph/random_draw.h"

enum { MAX_CARRIED = 3, MAX_STACKED = 2, MAX_SHARED = 2, MAX_ELEMENTS = 2000 };

static uint64_t elements(const struct draw *d, tensor_value v) { return shape_elements(&random_info(d, v)->shape); }

/* Operands of a loop: carried, stacked, shared. Stacked ones have one length. */
static unsigned choose_operands(struct draw *d, struct loop *l, tensor_value *x)
{
	const unsigned stacked = random_below(d, MAX_STACKED + 1), shared = random_below(d, MAX_SHARED + 1);
	unsigned n = 0;

	l->carried = random_below(d, MAX_CARRIED + 1);
	while (n < l->carried)
		x[n++] = random_any_value(d);
	for (unsigned i = 0; i < stacked; i++) {
		const tensor_value v = random_any_value(d);
		const struct shape *s = &random_info(d, v)->shape;
		if (s->rank == 0 || s->dim[0] > 9 || (l->stacked && s->dim[0] != l->length))
			continue;
		l->length = s->dim[0];
		l->stacked++;
		x[n++] = v;
	}
	if (!l->stacked)
		l->length = random_below(d, 5);
	for (unsigned i = 0; i < shared; i++)
		x[n++] = random_any_value(d);
	l->reverse = random_below(d, 2) != 0;
	for (unsigned i = 0; i < n; i++)
		if (elements(d, x[i]) > MAX_ELEMENTS)
			return 0;
	return n;
}

/* Inputs, some nodes, what is carried on, and slices of results. */
static bool draw_body(struct draw *d, struct loop *l, const tensor_value *x, unsigned n)
{
	struct draw body = *d;
	struct error err = { 0 };

	tensor_graph_init(&l->body);
	body.g = &l->body;
	body.depth++;
	for (unsigned i = 0; i < n; i++) {
		struct shape s = random_info(d, x[i])->shape;
		char name[3] = { 'i', (char)('0' + i), 0 };
		if (i >= l->carried && i < l->carried + l->stacked) {
			s.rank--;
			memmove(s.dim, s.dim + 1, s.rank * sizeof *s.dim);
		}
		tensor_graph_input(&l->body, name, random_info(d, x[i])->type, &s, &err);
	}
	const unsigned nodes = 1 + random_below(&body, 6);
	for (unsigned tries = 0; l->body.nodes < nodes && tries < 50; tries++) {
		const tensor_value v = body.smooth ? smooth_node(&body) : random_node(&body);
		if (v && elements(&body, v) > MAX_ELEMENTS)
			break;
	}
	for (unsigned i = 0; i < l->carried; i++) {
		char name[3] = { 'c', (char)('0' + i), 0 };
		const tensor_value v = random_like(&body, l->body.input[i]);
		tensor_graph_output(&l->body, name, body.smooth ? smooth_tame(&body, v) : v, &err);
	}
	for (unsigned i = 0, more = random_below(&body, 3) + !l->carried; i < more; i++) {
		char name[3] = { 's', (char)('0' + i), 0 };
		tensor_value v = random_any_value(&body);
		tensor_graph_output(&l->body, name, elements(&body, v) > MAX_ELEMENTS ? l->body.input[0] : v, &err);
	}
	d->state = body.state;
	return err.code == ERROR_NONE;
}

tensor_value random_scan(struct draw *d)
{
	tensor_value x[MAX_CARRIED + MAX_STACKED + MAX_SHARED], v = 0;
	struct loop l = { .carried = 0 };
	struct error err = { 0 };

	if (d->depth > 1)
		return 0;
	const unsigned n = choose_operands(d, &l, x);
	if (n == 0)
		return 0;
	if (draw_body(d, &l, x, n))
		v = graph_scan(d->g, &l, x, n, &err);
	loop_close(&l);
	return v;
}

/* The rows of x are right sides, of matrices that are made for them. */
tensor_value random_solve(struct draw *d, tensor_value x)
{
	struct shape s = random_info(d, x)->shape;
	struct error err = { 0 };
	struct tensor t;

	if (s.rank < 2 || !tensor_is_float(random_info(d, x)->type))
		return 0;
	s.dim[s.rank - 1] = s.dim[s.rank - 2];
	if (shape_elements(&s) > MAX_ELEMENTS)
		return 0;
	random_constant(d, &t, random_info(d, x)->type, &s);
	const tensor_value a = tensor_graph_constant(d->g, &t, &err);
	tensor_free(&t);
	return random_add(d, OP_solve, (tensor_value[]){ a, x }, 2, NULL, 0);
}

/* Updates for some places of x; several may be for one. */
tensor_value random_scatter(struct draw *d, tensor_value x)
{
	const struct shape *of = &random_info(d, x)->shape;
	const int type = random_info(d, x)->type;
	struct shape at = { .rank = 2, .dim = { random_size_of(d), 1 } }, update = *of;
	int64_t axis = of->rank ? random_below(d, of->rank) : 0, mode = 1 + random_below(d, SCATTER_MODES - 1);
	const bool along = random_below(d, 2) != 0;
	struct error err = { 0 };
	struct tensor t;

	if (of->rank == 0)
		return 0;
	if (along) {
		at = *of;
		at.dim[axis] = random_size_of(d);
		update = at;
	} else {
		update.dim[0] = at.dim[0];
	}
	random_tensor(&t, JIT_TYPE_I32, &at, d->state);
	const tensor_value positions = tensor_graph_constant(d->g, &t, &err);
	tensor_free(&t);
	random_constant(d, &t, type, &update);
	const tensor_value values = tensor_graph_constant(d->g, &t, &err);
	tensor_free(&t);
	const struct attribute a[] = { { ATTRIBUTE_mode, 1, &mode, 0 }, { ATTRIBUTE_axis, 1, &axis, 0 } };
	return random_add(d, along ? OP_scatter_along : OP_scatter_nd, (tensor_value[]){ x, positions, values }, 3, a,
	                  along ? 2 : 1);
}
