/* docs/examples/graph_onnx.c - runs an ONNX file on random inputs.  ./a.out FILE.onnx [SIZES [DEVICE]]
 *
 * SIZES gives the dimensions that the file names: "batch=1 sequence=8". Prints each output's type, shape and first
 * numbers. */
#include <jitrun_graph.h>
#include <stdio.h>
#include <stdlib.h>

/* Floats between 0 and 1 of a type of 4 bytes; of others all bytes are 0. */
static void *made(const jit_tensor *t)
{
	unsigned seed = 1;
	void *data = calloc(t->bytes ? (size_t)t->bytes : 1, 1);

	for (uint64_t i = 0; data && t->type == JIT_TYPE_F32 && i < t->elements; i++) {
		seed = seed * 1664525u + 1013904223u;
		((float *)data)[i] = (float)(seed >> 8) / 16777216;
	}
	return data;
}

static void print(const jit_tensor *t, const float *x)
{
	printf("%s [", t->name);
	for (int i = 0; i < t->rank; i++)
		printf(i ? ",%llu" : "%llu", (unsigned long long)t->dim[i]);
	printf("]");
	for (uint64_t i = 0; t->type == JIT_TYPE_F32 && i < t->elements && i < 6; i++)
		printf(" %.9g", (double)x[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	enum { MAX = 32 };
	void *in[MAX] = { NULL }, *out[MAX] = { NULL };
	jit_tensor t = JIT_TENSOR();
	jit_error err = { 0 };

	if (argc < 2)
		return fprintf(stderr, "usage: %s FILE.onnx [SIZES [DEVICE]]\n", argv[0]), 2;
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = argc > 3 ? argv[3] : "cpu"), &err);
	jit_graph *g =
		!c ? NULL
		   : jit_graph_open(&JIT_GRAPH_OPTIONS(.path = argv[1], .sizes = argc > 2 ? argv[2] : NULL), &err);
	jit_executable *e = c && g ? jit_executable_open(c, g, &err) : NULL;
	const size_t inputs = jit_graph_inputs(g), outputs = jit_graph_outputs(g);
	for (size_t i = 0; e && i < inputs && i < MAX && jit_graph_input(g, i, &t, &err) == JIT_OK; i++)
		in[i] = made(&t);
	for (size_t i = 0; e && i < outputs && i < MAX && jit_graph_output(g, i, &t, &err) == JIT_OK; i++)
		out[i] = malloc(t.bytes ? (size_t)t.bytes : 1);
	if (e && jit_executable_run(e, (const void *const *)in, inputs, out, outputs, &err) == JIT_OK)
		for (size_t i = 0; i < outputs && jit_graph_output(g, i, &t, &err) == JIT_OK; i++)
			print(&t, out[i]);
	if (err.code)
		fprintf(stderr, "%s\n", err.message);
	for (int i = 0; i < MAX; i++)
		free(in[i]), free(out[i]);
	jit_executable_close(e);
	jit_graph_close(g);
	jit_compute_close(c);
	return err.code ? 1 : 0;
}
