/* tests/graph/transform_checks.c - graphs' derivatives and batches beside what shares nothing with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "graph/text.h"
#include "graph/transforms.h"
#include "runtime/graph/executable.h"
#include "tests/graph/random_graph.h"
#include "tests/graph/transform_checks.h"

static uint64_t state_of_numbers = 1;

void checks_seed(uint64_t seed) { state_of_numbers = seed; }

static double uniform(void)
{
	state_of_numbers = state_of_numbers * 6364136223846793005u + 1442695040888963407u;
	return (double)(state_of_numbers >> 11) / 0x1p53;
}

static unsigned below(unsigned n) { return (unsigned)(uniform() * n); }

static void fill(struct tensor *t, int type, const struct shape *s)
{
	smooth_tensor(t, type, s, (uint64_t)(uniform() * 0x1p52));
	for (uint64_t i = 0; type == JIT_TYPE_BOOL && i < shape_elements(s); i++)
		tensor_put(t, i, (union number){ .u = below(2) });
}

void checks_say(const struct tensor_graph *g, const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	graph_text_write(g, stdout, 8);
	fflush(stdout);
	fail_msg("%s: %s", what, why);
}

/* ---- graphs with what they are given and give */

void checks_free_values(struct values *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		tensor_free(&v->t[i]);
	v->n = 0;
}

void checks_fill_from(const struct tensor_graph *g, uint32_t first, struct values *in)
{
	assert_true(g->inputs <= MAX);
	for (in->n = first; in->n < g->inputs; in->n++)
		fill(&in->t[in->n], g->value[g->input[in->n]].type, &g->value[g->input[in->n]].shape);
}

void checks_run(const struct tensor_graph *g, const struct values *in, struct values *out, const char *what)
{
	const struct tensor *of[MAX];
	struct error err = { 0 };

	assert_true(in->n >= g->inputs && g->outputs <= MAX);
	for (uint32_t i = 0; i < g->inputs; i++)
		of[i] = &in->t[i];
	if (!tensor_graph_eval(g, of, out->t, &err))
		checks_say(g, what, err.text);
	out->n = g->outputs;
}

static void copy_to(struct tensor *to, const struct tensor *from)
{
	struct error err = { 0 };

	assert_true(tensor_make(to, from->type, &from->shape, &err));
	if (to->data)
		memcpy(to->data, from->data, (size_t)tensor_bytes(from));
}

void checks_must(bool ok, const struct tensor_graph *g, const char *what, const struct error *err)
{
	if (!ok)
		checks_say(g, what, err->text);
}

/* The inputs that have derivatives. */
uint32_t checks_floats_of(const struct tensor_graph *g, tensor_value wrt[MAX], uint32_t first)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < g->inputs; i++)
		if (tensor_is_float(g->value[g->input[i]].type))
			wrt[n++] = g->input[i];
	return n;
}

static double inner(const struct tensor *a, const struct tensor *b)
{
	double sum = 0;

	assert_true(shape_equal(&a->shape, &b->shape));
	for (uint64_t i = 0; i < shape_elements(&a->shape); i++)
		sum += tensor_get(a, i).d * tensor_get(b, i).d;
	return sum;
}

/* ---- gradients beside differences */

/* Of the outputs of floats that belong to the first `outputs`, each times its cotangent. */
static double weighted(const struct tensor_graph *g, const struct values *in, const struct values *ct, const char *what)
{
	struct values out = { .n = 0 };
	double sum = 0;
	uint32_t k = g->inputs;

	checks_run(g, in, &out, what);
	for (uint32_t i = 0; i < g->outputs; i++)
		if (tensor_is_float(out.t[i].type))
			sum += inner(&out.t[i], &ct->t[k++]);
	checks_free_values(&out);
	return sum;
}

/* Of the fourth order. */
static double difference(const struct tensor_graph *g, struct values *in, uint32_t input, uint64_t element, double h,
                         const char *what)
{
	const union number x = tensor_get(&in->t[input], element);
	double at[4];

	for (int k = 0; k < 4; k++) {
		static const int steps[] = { -2, -1, 1, 2 };
		tensor_put(&in->t[input], element, (union number){ .d = x.d + steps[k] * h });
		at[k] = weighted(g, in, in, what);
	}
	tensor_put(&in->t[input], element, x);
	return (8 * (at[2] - at[1]) - (at[3] - at[0])) / (12 * h);
}

static void near(const struct tensor_graph *g, double found, double expected, double scale, const char *what)
{
	char why[120];

	if (fabs(found - expected) <= scale * (1 + fabs(expected)))
		return;
	snprintf(why, sizeof why, "is %.17g, expected %.17g", found, expected);
	checks_say(g, what, why);
}

/* The gradient's graph v of g, at inputs that v has; they begin with those of g. */
void checks_beside_differences(const struct tensor_graph *g, const struct tensor_graph *v, struct values *in,
                               struct witnessed *seen, const char *what)
{
	struct values out = { .n = 0 };
	tensor_value wrt[MAX];
	const uint32_t n = checks_floats_of(g, wrt, 0);
	char where[200];

	checks_run(v, in, &out, what);
	assert_int_equal(out.n, g->outputs + n);
	for (uint32_t i = 0, k = g->outputs; i < g->inputs; i++) {
		if (!tensor_is_float(in->t[i].type))
			continue;
		for (uint64_t e = 0; e < shape_elements(&in->t[i].shape); e++) {
			snprintf(where, sizeof where, "%s: %s element %llu", what, v->output_name[k],
			         (unsigned long long)e);
			const double wide = difference(g, in, i, e, 2e-4, what),
				     narrow = difference(g, in, i, e, 5e-5, what);
			seen->elements++;
			seen->moving += narrow != 0;
			if (fabs(wide - narrow) > 2e-7 * (1 + fabs(narrow))) /* there is a kink, or much of a curve */
				seen->kinks++;
			else
				near(v, tensor_get(&out.t[k], e).d, narrow, 1e-6, where);
		}
		k++;
	}
	checks_free_values(&out);
}

/* The derivative in a random direction: <ct, jvp> is <vjp, t>. */
void checks_beside_each_other(const struct tensor_graph *g, const struct tensor_graph *v, const struct values *in,
                              const char *what)
{
	struct tensor_graph j;
	struct error err = { 0 };
	tensor_value wrt[MAX];
	const uint32_t n = checks_floats_of(g, wrt, 0);
	struct values with = { .n = 0 }, gradients = { .n = 0 }, tangents = { .n = 0 };
	double left = 0, right = 0, size = 0;

	tensor_graph_init(&j);
	checks_must(tensor_graph_jvp(&j, g, wrt, n, false, &err), g, what, &err);
	assert_int_equal(j.inputs, g->inputs + n);
	for (; with.n < g->inputs; with.n++)
		copy_to(&with.t[with.n], &in->t[with.n]);
	checks_fill_from(&j, with.n, &with);
	checks_run(v, in, &gradients, what);
	checks_run(&j, &with, &tangents, what);
	assert_int_equal(gradients.n, g->outputs + n);
	for (uint32_t i = 0; i < tangents.n; i++)
		left += inner(&tangents.t[i], &in->t[g->inputs + i]);
	for (uint32_t i = 0; i < n; i++) {
		const double part = inner(&gradients.t[g->outputs + i], &with.t[g->inputs + i]);
		right += part;
		size += fabs(part);
	}
	near(&j, left / (1 + size), right / (1 + size), 1e-11, what);
	checks_free_values(&with);
	checks_free_values(&gradients);
	checks_free_values(&tangents);
	tensor_graph_free(&j);
}

/* Derivatives of the gradient: the graph h moves with the inputs, and differences of v along them say how far. */
void checks_beside_moved(const struct tensor_graph *v, const struct values *in, const char *what)
{
	struct tensor_graph h;
	struct error err = { 0 };
	tensor_value wrt[MAX];
	const uint32_t n = checks_floats_of(v, wrt, 0);
	struct values with = { .n = 0 }, moved = { .n = 0 }, up = { .n = 0 }, down = { .n = 0 }, t = { .n = 0 };
	const double step = 1e-5;

	tensor_graph_init(&h);
	checks_must(tensor_graph_jvp(&h, v, wrt, n, false, &err), v, what, &err);
	for (; with.n < v->inputs; with.n++)
		copy_to(&with.t[with.n], &in->t[with.n]);
	checks_fill_from(&h, with.n, &with);
	checks_run(&h, &with, &t, what);
	for (int side = 0; side < 2; side++) {
		for (uint32_t i = 0, k = v->inputs; i < v->inputs; i++) {
			copy_to(&moved.t[i], &in->t[i]);
			if (!tensor_is_float(in->t[i].type))
				continue;
			for (uint64_t e = 0; e < shape_elements(&in->t[i].shape); e++) {
				union number x = tensor_get(&moved.t[i], e);
				x.d += (side ? -step : step) * tensor_get(&with.t[k], e).d;
				tensor_put(&moved.t[i], e, x);
			}
			k++;
		}
		moved.n = v->inputs;
		checks_run(v, &moved, side ? &down : &up, what);
		checks_free_values(&moved);
	}
	for (uint32_t i = 0, k = 0; i < up.n; i++) {
		if (!tensor_is_float(up.t[i].type))
			continue;
		for (uint64_t e = 0; e < shape_elements(&up.t[i].shape); e++)
			near(&h, tensor_get(&t.t[k], e).d,
			     (tensor_get(&up.t[i], e).d - tensor_get(&down.t[i], e).d) / (2 * step), 2e-6, what);
		k++;
	}
	checks_free_values(&with);
	checks_free_values(&up);
	checks_free_values(&down);
	checks_free_values(&t);
	tensor_graph_free(&h);
}

/* ---- batches beside each set alone */

/* One set of a batched tensor. */
static void set_of(struct tensor *to, const struct tensor *from, unsigned axis, uint64_t set)
{
	struct shape s = from->shape;
	const uint64_t inner_size = shape_part(&s, axis + 1, s.rank), outer = shape_part(&s, 0, axis);
	struct error err = { 0 };

	for (unsigned i = axis; i + 1 < s.rank; i++)
		s.dim[i] = s.dim[i + 1];
	s.rank--;
	assert_true(tensor_make(to, from->type, &s, &err));
	for (uint64_t o = 0; o < outer; o++)
		for (uint64_t i = 0; i < inner_size; i++)
			tensor_put(to, o * inner_size + i,
			           tensor_get(from, (o * from->shape.dim[axis] + set) * inner_size + i));
}

bool checks_same_bits(const struct tensor *a, const struct tensor *b)
{
	if (a->type != b->type || !shape_equal(&a->shape, &b->shape))
		return false;
	for (uint64_t i = 0; i < shape_elements(&a->shape); i++) {
		const union number x = tensor_get(a, i), y = tensor_get(b, i);
		if (x.u != y.u && !(tensor_wide_type(a->type) == JIT_TYPE_F64
		                            ? isnan(x.d) && isnan(y.d)
		                            : tensor_wide_type(a->type) == JIT_TYPE_F32 && isnan(x.f) && isnan(y.f)))
			return false;
	}
	return true;
}

bool checks_beside_loop(const struct tensor_graph *g, uint64_t size, const char *what)
{
	struct tensor_graph b;
	struct error err = { 0 };
	int axis[MAX];
	struct values in = { .n = 0 }, out = { .n = 0 };

	for (uint32_t i = 0; i < g->inputs; i++)
		axis[i] = below(4) ? (int)below(g->value[g->input[i]].shape.rank + 1) : -1;
	tensor_graph_init(&b);
	if (!tensor_graph_vmap(&b, g, size, axis, &err)) {
		tensor_graph_free(&b);
		if (!strstr(err.text, "dimensions, expected at most"))
			checks_say(g, what, err.text);
		return false;
	}
	checks_fill_from(&b, 0, &in);
	checks_run(&b, &in, &out, what);
	assert_int_equal(out.n, g->outputs);
	for (uint32_t i = 0; i < out.n; i++)
		assert_int_equal(out.t[i].shape.dim[0], size);
	for (uint64_t set = 0; set < size; set++) {
		struct values one = { .n = 0 }, alone = { .n = 0 };
		for (; one.n < g->inputs; one.n++)
			if (axis[one.n] < 0)
				copy_to(&one.t[one.n], &in.t[one.n]);
			else
				set_of(&one.t[one.n], &in.t[one.n], (unsigned)axis[one.n], set);
		checks_run(g, &one, &alone, what);
		for (uint32_t i = 0; i < out.n; i++) {
			struct tensor t;
			set_of(&t, &out.t[i], 0, set);
			if (!checks_same_bits(&t, &alone.t[i]))
				checks_say(&b, what, "a set of the batch has other bits than alone");
			tensor_free(&t);
		}
		checks_free_values(&one);
		checks_free_values(&alone);
	}
	checks_free_values(&in);
	checks_free_values(&out);
	tensor_graph_free(&b);
	return true;
}

/* ---- a graph, in all ways */

void checks_gradient_of(struct tensor_graph *v, const struct tensor_graph *g, const char *what)
{
	struct error err = { 0 };
	tensor_value wrt[MAX];
	const uint32_t n = checks_floats_of(g, wrt, 0);

	tensor_graph_init(v);
	checks_must(tensor_graph_vjp(v, g, wrt, n, true, &err), g, what, &err);
	assert_int_equal(v->outputs, g->outputs + n);
}

/* A batch's gradient is each set's, and differences agree. */
void checks_batched_gradient(const struct tensor_graph *g, struct witnessed *seen, const char *what)
{
	struct tensor_graph b, v;
	struct error err = { 0 };
	int axis[MAX];
	struct values in = { .n = 0 };

	for (uint32_t i = 0; i < g->inputs; i++)
		axis[i] = below(3) ? 0 : -1;
	tensor_graph_init(&b);
	checks_must(tensor_graph_vmap(&b, g, 2, axis, &err), g, what, &err);
	checks_gradient_of(&v, &b, what);
	checks_fill_from(&v, 0, &in);
	checks_beside_differences(&b, &v, &in, seen, what);
	checks_free_values(&in);
	tensor_graph_free(&v);
	tensor_graph_free(&b);
}

/* ---- compiled */

void checks_beside_compiled(const struct tensor_graph *g, const struct values *in, jit_compute *c, const char *what)
{
	const void *from[MAX];
	void *to[MAX];
	struct values expected = { .n = 0 }, found = { .n = 0 };
	struct error err = { 0 };
	struct executable *x = executable_open(c, g, &err);

	checks_must(x != NULL, g, what, &err);
	checks_run(g, in, &expected, what);
	for (uint32_t i = 0; i < g->inputs; i++)
		from[i] = in->t[i].data;
	for (; found.n < expected.n; found.n++) {
		struct tensor *t = &found.t[found.n];
		assert_true(tensor_make(t, expected.t[found.n].type, &expected.t[found.n].shape, &err));
		to[found.n] = t->data;
	}
	checks_must(executable_run(x, from, to, &err), g, what, &err);
	for (uint32_t i = 0; i < found.n; i++)
		if (!checks_same_bits(&found.t[i], &expected.t[i]))
			checks_say(g, what, g->output_name[i]);
	executable_close(x);
	checks_free_values(&expected);
	checks_free_values(&found);
}
