/* docs/examples/graph_kernel.c - a kernel of one's own in a graph, with its gradient.  ./a.out [DEVICE]
 *
 * y = x / (1 + exp(-x)) is a kernel, and so is its derivative, by which the graph of gradients goes through it. Beside
 * it stands the difference quotient. */
#include <jitrun_graph.h>
#include <stdio.h>

enum { N = 5 };
static const char text[] =
	"const i64 n;\n"
	"kernel silu(in f64 x[n], out f64 y[n]) over (i in n) { y[i] = x[i] / (1 + exp(-x[i])); }\n"
	"kernel slope(in f64 x[n], in f64 ct[n], out f64 dx[n]) over (i in n) {\n"
	"	f64 s = 1 / (1 + exp(-x[i]));\n"
	"	dx[i] = ct[i] * s * (1 + x[i] * (1 - s));\n"
	"}\n";

int main(int argc, char **argv)
{
	jit_error err = { 0 };
	jit_tensor x = JIT_TENSOR();
	double at[N] = { -2, -0.5, 0, 1, 3 }, ct[N] = { 1, 1, 1, 1, 1 }, moved[N], y[N], there[N], dx[N], step = 1e-6;
	uint32_t v = 0;
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = argc > 1 ? argv[1] : "cpu"), &err);
	jit_graph *g = !c ? NULL : jit_graph_open(NULL, &err);
	const jit_kernel_options silu = JIT_KERNEL_OPTIONS(.source = text, .kernel = "silu", .constants = "n=5");
	int ok = c && g && jit_graph_add_text(g, "input x f64[5]", &err) == JIT_OK &&
	         jit_graph_input(g, 0, &x, &err) == JIT_OK &&
	         jit_graph_add_kernel(g, &silu, "slope", &x.value, 1, &v, &err) == JIT_OK &&
	         jit_graph_add_output(g, "y", v, &err) == JIT_OK;
	jit_graph *gradient = ok ? jit_graph_vjp(g, NULL, 0, 1, &err) : NULL;
	jit_executable *e = gradient ? jit_executable_open(c, gradient, &err) : NULL;

	for (int i = 0; i < N; i++)
		moved[i] = at[i] + step;
	ok = e && jit_executable_run(e, (const void *[]){ moved, ct }, 2, (void *[]){ there, dx }, 2, &err) == JIT_OK &&
	     jit_executable_run(e, (const void *[]){ at, ct }, 2, (void *[]){ y, dx }, 2, &err) == JIT_OK;
	for (int i = 0; ok && i < N; i++)
		printf("x %g: y %.6f, dy/dx %.6f, by differences %.6f\n", at[i], y[i], dx[i], (there[i] - y[i]) / step);
	if (err.code)
		fprintf(stderr, "%s\n", err.message);
	jit_executable_close(e);
	jit_graph_close(gradient);
	jit_graph_close(g);
	jit_compute_close(c);
	return err.code ? 1 : 0;
}
