/* docs/examples/graph_train.c - trains a perceptron with two layers to tell rings apart.  ./a.out [DEVICE]
 *
 * The step of training is one graph: the gradients of the model's loss by its four weights, and statements that
 * subtract a part of each from its weight. The weights have the same bits on every device and with any number of
 * threads. */
#include <jitrun_graph.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 256, HIDDEN = 16, STEPS = 400 };

static const char model[] =
	"size n\nsize h\ninput w1 f32[2,h]\ninput b1 f32[h]\ninput w2 f32[h]\ninput b2 f32[1]\n"
	"input x f32[n,2]\ninput wanted f32[n]\n"
	"p = dot x w1 left=[1] right=[0]\nb = broadcast b1 shape=[n,h] axes=[1]\nq = add p b\nt = tanh q\n"
	"r = dot t w2 left=[1] right=[0]\nc = broadcast b2 shape=[n] axes=[0]\ny = add r c\n"
	"d = sub y wanted\ne = mul d d\ns = reduce_sum e axes=[0]\nf = constant f32[] 0.00390625\nloss = mul s f\n"
	"output loss\n";
static const char update[] =
	"rate = constant f32[] 0.25\n"
	"r1 = broadcast rate shape=[2,h] axes=[]\nd1 = mul r1 grad.w1\nn1 = sub w1 d1\noutput n1\n"
	"r2 = broadcast rate shape=[h] axes=[]\nd2 = mul r2 grad.b1\nn2 = sub b1 d2\noutput n2\n"
	"d3 = mul r2 grad.w2\nn3 = sub w2 d3\noutput n3\n"
	"r4 = broadcast rate shape=[1] axes=[]\nd4 = mul r4 grad.b2\nn4 = sub b2 d4\noutput n4\n";

static float w1[2][HIDDEN], b1[HIDDEN], w2[HIDDEN], b2[1], x[POINTS][2], wanted[POINTS];

static float number(unsigned *seed) /* -1 to 1 */
{
	*seed = *seed * 1664525u + 1013904223u;
	return (float)(*seed >> 8) / 8388608 - 1;
}

int main(int argc, char **argv)
{
	static float g1[2][HIDDEN], g2[HIDDEN], g3[HIDDEN], g4[1]; /* the gradients, which nobody looks at */
	jit_error err = { 0 };
	const float one = 1;
	float loss = 0;
	unsigned seed = 1;

	for (int i = 0; i < 2 * HIDDEN; i++)
		w1[i / HIDDEN][i % HIDDEN] = 2 * number(&seed), b1[i % HIDDEN] = number(&seed),
				   w2[i % HIDDEN] = number(&seed) / 4;
	for (int i = 0; i < POINTS; i++) {
		x[i][0] = number(&seed), x[i][1] = number(&seed);
		wanted[i] = x[i][0] * x[i][0] + x[i][1] * x[i][1] < 0.5f ? 1 : -1;
	}
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = argc > 1 ? argv[1] : "cpu"), &err);
	jit_graph *g = !c ? NULL : jit_graph_open(&JIT_GRAPH_OPTIONS(.source = model, .sizes = "n=256 h=16"), &err);
	jit_graph *step = g ? jit_graph_vjp(g, (const size_t[]){ 0, 1, 2, 3 }, 4, 1, &err) : NULL;
	const int ok = c && step && jit_graph_add_text(step, update, &err) == JIT_OK;
	jit_executable *e = ok ? jit_executable_open(c, step, &err) : NULL;
	const void *in[] = { w1, b1, w2, b2, x, wanted, &one };
	void *out[] = { &loss, g1, g2, g3, g4, w1, b1, w2, b2 };
	for (int i = 0; e && i < STEPS && jit_executable_run(e, in, 7, out, 9, &err) == JIT_OK; i++)
		if (i % 100 == 0 || i == STEPS - 1)
			printf("step %d: loss %.9g\n", i, (double)loss);
	if (err.code)
		fprintf(stderr, "%s\n", err.message);
	jit_executable_close(e);
	jit_graph_close(step);
	jit_graph_close(g);
	jit_compute_close(c);
	return err.code ? 1 : 0;
}
