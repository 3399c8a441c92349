/* tests/graph/t_perceptron.c - an example: a perceptron of two layers is trained by a graph that has the loss, its
 * gradients and the update in one. The loss falls, and the weights have the same bits on every device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "graph/eval.h"
#include "graph/text.h"
#include "graph/transforms.h"
#include "runtime/graph/executable.h"
#include "tests/support/shared.h"

enum { ROWS = 67, HIDDEN = 17, WEIGHTS = 4, INPUTS = WEIGHTS + 3 };

static const char model[] =
	"graph perceptron\n"
	"size n\n"
	"input w1 f32[2,17]\n"
	"input b1 f32[17]\n"
	"input w2 f32[17,1]\n"
	"input b2 f32[1]\n"
	"input x f32[n,2]\n"
	"input wanted f32[n,1]\n"
	"h = dot x w1 left=[1] right=[0]\n"
	"b = broadcast b1 shape=[n,17] axes=[1]\n"
	"h = add h b\n"
	"h = tanh h\n"
	"y = dot h w2 left=[1] right=[0]\n"
	"b = broadcast b2 shape=[n,1] axes=[1]\n"
	"y = add y b\n"
	"e = sub y wanted\n"
	"e = mul e e\n"
	"sum = reduce_sum e axes=[0,1]\n"
	"rows = constant f32[] 67\n"
	"loss = div sum rows\n"
	"output loss\n";

/* loss, and each weight less a part of its gradient. */
static void draw_step(struct tensor_graph *step)
{
	const struct graph_size n = { "n", ROWS };
	struct tensor_graph g, v;
	struct error err = { 0 };

	assert_true(graph_text_read(&g, "model", model, strlen(model), &n, 1, &err));
	tensor_graph_init(&v);
	assert_true(tensor_graph_vjp(&v, &g, g.input, WEIGHTS, true, &err));
	assert_int_equal(v.inputs, INPUTS);
	assert_int_equal(v.outputs, 1 + WEIGHTS);
	for (uint32_t i = 0; i < WEIGHTS; i++) {
		const tensor_value w = v.input[i], gradient = v.output[1 + i];
		const struct shape s = v.value[w].shape;
		const tensor_value part = graph_binary(&v, OP_mul, gradient,
		                                       graph_full(&v, 0.25, JIT_TYPE_F32, &s, &err), &err),
				   next = graph_binary(&v, OP_sub, w, part, &err);
		assert_true(next && tensor_graph_output(&v, v.value[w].name, next, &err));
	}
	tensor_graph_free(&g);
	*step = v;
}

/* Weights, then rows: two numbers, and their product times 2, which no plane can separate by its sign. */
static void fill(const struct tensor_graph *step, struct tensor in[INPUTS])
{
	uint32_t state = 1;
	struct error err = { 0 };

	for (uint32_t i = 0; i < INPUTS; i++) {
		const struct tensor_value_info *v = &step->value[step->input[i]];
		assert_true(tensor_make(&in[i], v->type, &v->shape, &err));
		for (uint64_t k = 0; k < shape_elements(&v->shape); k++) {
			state = state * 1664525 + 1013904223;
			const float x = (float)(state >> 8) / 0x1p23f - 1; /* -1 to 1 */
			const float half = i == 1 || i == 3 ? 0 : x;
			tensor_put(&in[i], k, (union number){ .f = half });
		}
	}
	for (uint64_t k = 0; k < ROWS; k++)
		tensor_put(&in[5], k,
		           (union number){ .f = 2 * tensor_get(&in[4], 2 * k).f * tensor_get(&in[4], 2 * k + 1).f });
	tensor_put(&in[6], 0, (union number){ .f = 1 }); /* ct.loss */
}

struct trained {
	struct tensor in[INPUTS]; /* after the last step */
	float first, last;
};

static void free_all(struct tensor *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		tensor_free(&t[i]);
}

/* compute NULL: the interpreter. */
static void train(const struct tensor_graph *step, jit_compute *compute, unsigned steps, struct trained *r)
{
	struct error err = { 0 };
	struct executable *x = compute ? executable_open(compute, step, &err) : NULL;
	struct tensor out[1 + 2 * WEIGHTS];

	assert_true(!compute || x);
	fill(step, r->in);
	for (unsigned s = 0; s < steps; s++) {
		const struct tensor *of[INPUTS];
		const void *from[INPUTS];
		void *to[1 + 2 * WEIGHTS];
		for (unsigned i = 0; i < INPUTS; i++) {
			of[i] = &r->in[i];
			from[i] = r->in[i].data;
		}
		for (unsigned i = 0; x && i < step->outputs; i++) {
			const struct tensor_value_info *v = &step->value[step->output[i]];
			assert_true(tensor_make(&out[i], v->type, &v->shape, &err));
			to[i] = out[i].data;
		}
		if (!(x ? executable_run(x, from, to, &err) : tensor_graph_eval(step, of, out, &err)))
			fail_msg("%s", err.text);
		r->last = tensor_get(&out[0], 0).f;
		if (s == 0)
			r->first = r->last;
		for (unsigned i = 0; i < WEIGHTS; i++) {
			assert_true(shape_equal(&r->in[i].shape, &out[1 + WEIGHTS + i].shape));
			memcpy(r->in[i].data, out[1 + WEIGHTS + i].data, (size_t)tensor_bytes(&r->in[i]));
		}
		free_all(out, step->outputs);
	}
	executable_close(x);
}

static bool same_weights(const struct trained *a, const struct trained *b)
{
	for (unsigned i = 0; i < WEIGHTS; i++)
		if (memcmp(a->in[i].data, b->in[i].data, (size_t)tensor_bytes(&a->in[i])) != 0)
			return false;
	return memcmp(&a->last, &b->last, sizeof a->last) == 0;
}

static void test_training(void **state)
{
	static const struct {
		const char *device;
		int threads;
	} setups[] = { { "cpu", 1 }, { "cpu", 3 }, { "ref", 1 } };
	const unsigned steps = test_quick() ? 150 : 1000;
	struct tensor_graph step;
	struct trained r[3], short_runs[2];
	(void)state;

	draw_step(&step);
	for (unsigned i = 0; i < 3; i++) {
		jit_error e = { 0 };
		jit_compute *c = jit_compute_open(
			&JIT_COMPUTE_OPTIONS(.device = setups[i].device, .threads = setups[i].threads), &e);
		if (!c)
			fail_msg("%s: %s", setups[i].device, e.message);
		train(&step, c, steps, &r[i]);
		if (i == 0) {
			train(&step, c, 3, &short_runs[0]);
			train(&step, NULL, 3, &short_runs[1]);
		}
		jit_compute_close(c);
	}
	printf("# the loss falls from %g to %g in %u steps\n", (double)r[0].first, (double)r[0].last, steps);
	assert_true(r[0].last > 0 && r[0].last < r[0].first / (test_quick() ? 4 : 20));
	assert_true(same_weights(&r[0], &r[1]));
	assert_true(same_weights(&r[0], &r[2]));
	assert_true(same_weights(&short_runs[0], &short_runs[1]));
	assert_false(same_weights(&short_runs[0], &r[0]));
	for (unsigned i = 0; i < 3; i++)
		free_all(r[i].in, INPUTS);
	free_all(short_runs[0].in, INPUTS);
	free_all(short_runs[1].in, INPUTS);
	tensor_graph_free(&step);
}

/* A few steps on simulated cards are those of the interpreter. */
static void test_cards(void **state)
{
	static const char *const cards[] = { "sim:sm90", "sim:gfx1101" };
	struct tensor_graph step;
	struct trained expected, found;
	(void)state;

	draw_step(&step);
	train(&step, NULL, 2, &expected);
	for (unsigned i = 0; i < 2; i++) {
		jit_error e = { 0 };
		jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = cards[i]), &e);
		if (!c)
			fail_msg("%s: %s", cards[i], e.message);
		train(&step, c, 2, &found);
		assert_true(same_weights(&expected, &found));
		free_all(found.in, INPUTS);
		jit_compute_close(c);
	}
	free_all(expected.in, INPUTS);
	tensor_graph_free(&step);
}

/* The weights stay on the device: the step reads them from buffers, and what comes of it is written there. Memory for
 * what is between is lent. */
static void test_bound(void **state)
{
	struct tensor_graph step;
	struct trained expected;
	struct tensor in[INPUTS];
	bool bound[INPUTS] = { true, true, true, true };
	struct error err = { 0 };
	jit_buffer *at[WEIGHTS], *lent = NULL;
	jit_error e = { 0 };
	(void)state;

	draw_step(&step);
	train(&step, NULL, 2, &expected);
	fill(&step, in);
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = "cpu"), &e);
	struct executable *x = executable_open_bound(c, &step, bound, &err);
	assert_non_null(x);
	assert_false(executable_bind(x, WEIGHTS, NULL, 0, &err)); /* which is not bound */
	err = (struct error){ 0 };
	for (uint32_t i = 0; i < WEIGHTS; i++) {
		at[i] = jit_buffer_open(c, 64 + tensor_bytes(&in[i]), &e);
		assert_int_equal(jit_buffer_write(at[i], 64, in[i].data, tensor_bytes(&in[i]), &e), JIT_OK);
		assert_true(executable_bind(x, i, at[i], 64, &err));
	}
	for (unsigned s = 0; s < 2; s++) {
		/* Its memory becomes another one, which anybody may write to between two runs. */
		jit_buffer *memory = jit_buffer_open(c, executable_memory_bytes(x) + s, &e);
		memset(jit_buffer_memory(memory), 0xA5, (size_t)executable_memory_bytes(x));
		assert_true(executable_lend(x, memory, &err));
		jit_buffer_close(lent);
		lent = memory;
		const void *from[INPUTS] = { NULL, NULL, NULL, NULL, in[4].data, in[5].data, in[6].data };
		void *to[1 + 2 * WEIGHTS] = { NULL };
		for (unsigned i = 0; i < WEIGHTS; i++)
			to[1 + WEIGHTS + i] = in[i].data;
		assert_true(executable_run(x, from, to, &err));
		for (unsigned i = 0; i < WEIGHTS; i++)
			assert_int_equal(jit_buffer_write(at[i], 64, in[i].data, tensor_bytes(&in[i]), &e), JIT_OK);
	}
	for (unsigned i = 0; i < WEIGHTS; i++) {
		assert_memory_equal(in[i].data, expected.in[i].data, (size_t)tensor_bytes(&in[i]));
		jit_buffer_close(at[i]);
	}
	executable_close(x);
	jit_buffer_close(lent);
	jit_compute_close(c);
	free_all(in, INPUTS);
	free_all(expected.in, INPUTS);
	tensor_graph_free(&step);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_training), cmocka_unit_test(test_bound),
		                            cmocka_unit_test(test_cards) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
