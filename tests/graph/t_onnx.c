/* tests/graph/t_onnx.c - imported ONNX files give what ONNX's own node tests expect, and what PyTorch's models give.
 *
 * Each node test passes, or is refused in a sentence; a wrong result fails. The names of those that pass are in
 * onnx_passed.txt: one that no longer passes fails, and so does one that is missing there. JITRUN_ONNX_REWRITE=1 writes
 * the file; JITRUN_ONNX_REFUSED=FILE writes a line for each test that is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#include <math.h>
#include <string.h>

#include "runtime/graph/executable.h"
#include "tests/graph/onnx_cases.h"
#include "tests/graph/onnx_models.h"
#include "tests/support/shared.h"

static jit_compute *compute;
static uint32_t kernels, on_host;

/* Which bits a NaN has is the machine's affair. */
static bool same_element(const struct tensor *a, const struct tensor *b, uint64_t i)
{
	const int wide = tensor_wide_type(a->type);
	const union number x = tensor_get(a, i), y = tensor_get(b, i);

	return x.u == y.u || (wide == JIT_TYPE_F32 && isnan(x.f) && isnan(y.f)) ||
	       (wide == JIT_TYPE_F64 && isnan(x.d) && isnan(y.d));
}

/* The compiled graph, whose results must be those of the interpreter, bit for bit. */
static bool run_compiled(const struct tensor_graph *g, const struct tensor *const in[], struct tensor out[],
                         struct error *err)
{
	enum { MAX = 64 };
	struct executable *x = executable_open(compute, g, err);
	struct executable_report r;
	struct tensor found[MAX];
	const void *from[MAX];
	void *to[MAX];
	bool ok = x != NULL && g->inputs <= MAX && g->outputs <= MAX;

	if (ok && !tensor_graph_eval(g, in, out, err))
		fail_msg("%s", err->text);
	for (uint32_t i = 0; ok && i < g->inputs; i++)
		from[i] = in[i]->data;
	for (uint32_t i = 0; ok && i < g->outputs; i++) {
		assert_true(tensor_make(&found[i], out[i].type, &out[i].shape, err));
		to[i] = found[i].data;
	}
	if (ok && !executable_run(x, from, to, err))
		fail_msg("%s", err->text);
	for (uint32_t i = 0; ok && i < g->outputs; i++) {
		for (uint64_t k = 0; k < shape_elements(&out[i].shape); k++)
			if (!same_element(&out[i], &found[i], k))
				fail_msg("element %llu of output %s is not that of the interpreter",
				         (unsigned long long)k, g->output_name[i]);
		tensor_free(&found[i]);
	}
	if (ok) {
		executable_get_report(x, &r);
		kernels += r.kernels;
		on_host += r.hosted;
	}
	executable_close(x);
	return ok;
}

/* What computes an imported graph. Each of them runs all tests. */
static const struct {
	const char *name;
	onnx_runner *run;
} runners[] = { { "the interpreter", tensor_graph_eval }, { "compiled", run_compiled } };

/* ---- the list */

struct list {
	char **name;
	size_t n;
};

static void list_add(struct list *l, const char *name)
{
	l->name = realloc(l->name, (l->n + 1) * sizeof *l->name);
	assert_non_null(l->name);
	l->name[l->n] = strdup(name);
	assert_non_null(l->name[l->n++]);
}

static void list_free(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->name[i]);
	free(l->name);
}

static int by_text(const void *x, const void *y) { return strcmp(*(char *const *)x, *(char *const *)y); }

static bool list_has(const struct list *l, const char *name)
{
	return l->n && bsearch(&name, l->name, l->n, sizeof *l->name, by_text);
}

static struct list list_read(void)
{
	struct list l = { 0 };
	FILE *f = source_open("tests/graph/onnx_passed.txt");
	char line[200];

	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		list_add(&l, line);
		if (l.n > 1 && strcmp(l.name[l.n - 2], line) >= 0)
			fail_msg("onnx_passed.txt: %s is not in ascending order", line);
	}
	fclose(f);
	return l;
}

static void list_write(struct list *l)
{
	char path[1024];
	FILE *f = fopen(source_path(path, "tests/graph/onnx_passed.txt"), "w");

	assert_non_null(f);
	qsort(l->name, l->n, sizeof *l->name, by_text);
	for (size_t i = 0; i < l->n; i++)
		fprintf(f, "%s\n", l->name[i]);
	fclose(f);
}

/* ---- all node tests */

struct count {
	unsigned passed, refused, wrong, known;
};

/* What is expected here is the float32 of another transform, which has 1.9e-7 where the exact result is 0: it is
 * compared with an absolute tolerance of 1e-6 and not of 1e-7. */
static double absolute_of(const char *name, json_t *about)
{
	return strncmp(name, "test_dft_inverse", 16) == 0 ? 1e-6 : json_number_value(json_object_get(about, "atol"));
}

static void judge(const struct archive *a, const char *name, json_t *about, onnx_runner *run, struct list *passed,
                  FILE *refused, struct count *c)
{
	const struct case_outcome o =
		case_run(a, name, json_number_value(json_object_get(about, "rtol")), absolute_of(name, about), run);

	switch (o.result) {
	case CASE_PASSED:
		list_add(passed, name);
		c->passed++;
		c->known += o.known != 0;
		break;
	case CASE_REFUSED:
		c->refused++;
		assert_true(o.text[0]);
		if (refused)
			fprintf(refused, "%s\t%s\n", name, o.text);
		break;
	default: c->wrong++; print_message("%s: %s\n", name, o.text);
	}
}

static unsigned compare_lists(const struct list *before, struct list *now)
{
	unsigned differ = 0;

	qsort(now->name, now->n, sizeof *now->name, by_text);
	for (size_t i = 0; i < before->n; i++)
		if (!list_has(now, before->name[i])) {
			print_message("%s no longer passes\n", before->name[i]);
			differ++;
		}
	for (size_t i = 0; i < now->n; i++)
		if (!list_has(before, now->name[i])) {
			print_message("%s passes and is missing in onnx_passed.txt\n", now->name[i]);
			differ++;
		}
	return differ;
}

static void test_nodes(void **state)
{
	(void)state;
	char path[1024];
	struct archive a;
	json_error_t why;

	if (!shared_path(path, "data/onnx/node.tar.xz"))
		skip();
	if (!archive_read(&a, path)) {
		print_message("# skipped: xz cannot unpack %s\n", path);
		skip();
	}
	assert_non_null(shared_path(path, "data/onnx/node-index.json"));
	json_t *index = json_load_file(path, 0, &why), *about;
	assert_non_null(index);
	const char *where = getenv("JITRUN_ONNX_REFUSED"), *name;
	FILE *refused = where ? fopen(where, "w") : NULL;
	for (size_t r = 0; r < sizeof runners / sizeof *runners; r++) {
		struct list passed = { 0 };
		struct count c = { 0 };
		json_object_foreach(index, name, about)
			judge(&a, name, about, runners[r].run, &passed, r ? NULL : refused, &c);
		print_message("%s: %u passed (%u with values of inputs given to the import), %u refused, %u wrong\n",
		              runners[r].name, c.passed, c.known, c.refused, c.wrong);
		struct list before = list_read();
		if (test_is_set("JITRUN_ONNX_REWRITE"))
			list_write(&passed);
		else
			assert_int_equal(compare_lists(&before, &passed), 0);
		assert_int_equal(c.wrong, 0);
		list_free(&before);
		list_free(&passed);
	}
	if (refused)
		fclose(refused);
	json_decref(index);
	archive_free(&a);
}

/* ---- models that PyTorch exported, in two ways, with their outputs in f32 and f64 */

static double greatest_difference(const struct tensor *x, const struct tensor *y)
{
	double max = 0;

	assert_true(shape_equal(&x->shape, &y->shape));
	for (uint64_t i = 0; i < shape_elements(&x->shape); i++)
		max = fmax(max, fabs(tensor_real(x, i) - tensor_real(y, i)));
	return max;
}

static double greatest_of(const struct tensor *x)
{
	double max = 0;

	for (uint64_t i = 0; i < shape_elements(&x->shape); i++)
		max = fmax(max, fabs(tensor_real(x, i)));
	return max;
}

static void run_model(const char *path, const char *data, onnx_runner *run)
{
	struct tensor in[4], narrow, wide, out[4];
	struct onnx_bind bind[4];
	const struct tensor *inputs[4];
	struct tensor_graph g;
	struct error err = { 0 };
	struct onnx_file *f = onnx_open(path, &err);

	if (!f)
		fail_msg("%s", err.text);
	const uint32_t n = onnx_about(f)->inputs;
	assert_in_range(n, 1, 4);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(npz_read(data, (const char *const[]){ "in0", "in1", "in2", "in3" }[i], &in[i]));
		bind[i] = (struct onnx_bind){ onnx_about(f)->input[i].name, &in[i].shape, NULL };
		inputs[i] = &in[i];
	}
	assert_true(npz_read(data, "out32", &narrow) && npz_read(data, "out64", &wide));
	if (!onnx_import(f, &(struct onnx_sizes){ NULL, 0, bind, n }, &g, NULL, &err) || !run(&g, inputs, out, &err))
		fail_msg("%s: %s", path, err.text);
	/* Of a few outputs, PyTorch's may by chance be nearer than f32 can say. */
	const double bound = fmax(greatest_difference(&narrow, &wide), 0x1p-22 * greatest_of(&wide)),
		     ours = greatest_difference(&out[0], &wide);
	print_message("%s: %u nodes, off by %.3g, at most %.3g\n", strrchr(path, '/') + 1, g.nodes, ours, bound);
	assert_true(ours <= bound);
	for (uint32_t i = 0; i < n; i++)
		tensor_free(&in[i]);
	for (uint32_t i = 0; i < g.outputs; i++)
		tensor_free(&out[i]);
	tensor_free(&narrow);
	tensor_free(&wide);
	tensor_graph_free(&g);
	onnx_close(f);
}

static void test_models(void **state)
{
	static const char *const names[] = { "perceptron", "gru", "lstm", "bert", "vit", "unet", "mobilenet" };
	static const char *const files[] = { "model-script", "model-dynamo" };
	(void)state;
	char data[1024], path[1024], name[200];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
			snprintf(name, sizeof name, "data/onnx/models/%s/data.npz", names[i]);
			if (!shared_path(data, name))
				skip();
			snprintf(name, sizeof name, "data/onnx/models/%s/%s.onnx", names[i], files[k]);
			assert_non_null(shared_path(path, name));
			print_message("%s, ", names[i]);
			for (size_t r = 0; r < sizeof runners / sizeof *runners; r++)
				run_model(path, data, runners[r].run);
		}
}

/* docs/onnx.md lists each operator of the table. */
static void test_docs(void **state)
{
	(void)state;
	char path[1024];
	size_t n;
	char *page = (char *)file_bytes(source_path(path, "docs/onnx.md"), &n);

	page[n] = 0;
#define OPERATOR(name, rule, user, min, max, attributes) \
	if (!strstr(page, " " #name " ")) \
		fail_msg("docs/onnx.md does not list %s", #name);
#define OPERATOR_OF(domain, ...) OPERATOR(__VA_ARGS__)
#include "loaders/onnx/operators.def"
#undef OPERATOR
#undef OPERATOR_OF
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_docs), cmocka_unit_test(test_nodes),
		                            cmocka_unit_test(test_models) };

	jit_error err = { 0 };
	compute = jit_compute_open(&JIT_COMPUTE_OPTIONS(.cache_dir = "", .threads = 2), &err);
	if (!compute)
		return 1;
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);
	printf("# %u kernels, %u groups on the host\n", kernels, on_host);
	jit_compute_close(compute);
	return failed;
}
