/* tests/graph/onnx_cases.c - reading the archive of ONNX's node tests, and running them. */
#include "tests/graph/onnx_cases.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the archive */

static uint8_t *unpack(const char *path, size_t *n)
{
	char command[1200];
	size_t room = 1 << 24, got;
	uint8_t *p = malloc(room);

	snprintf(command, sizeof command, "xz -dc '%s' 2>/dev/null", path);
	FILE *f = popen(command, "r");
	*n = 0;
	while (p && f && (got = fread(p + *n, 1, room - *n, f)) > 0) {
		*n += got;
		if (*n == room)
			p = realloc(p, room *= 2);
	}
	if (!f || pclose(f) != 0 || *n == 0) {
		free(p);
		return NULL;
	}
	return p;
}

static int by_name(const void *x, const void *y)
{
	return strcmp(((const struct archive_file *)x)->name, ((const struct archive_file *)y)->name);
}

bool archive_read(struct archive *a, const char *path)
{
	size_t n, room = 0;

	*a = (struct archive){ .bytes = unpack(path, &n) };
	if (!a->bytes)
		return false;
	const char *long_name = NULL; /* GNU's form: it stands as the bytes of an entry in front */
	for (size_t at = 0; at + 512 <= n && a->bytes[at];) {
		uint8_t *head = a->bytes + at;
		const size_t size = strtoul((char *)head + 124, NULL, 8);
		if (head[156] == '0' || head[156] == 0) {
			if (a->files == room) {
				room = room ? 2 * room : 4096;
				a->file = realloc(a->file, room * sizeof *a->file);
				if (!a->file)
					return false;
			}
			head[100] = 0;
			a->file[a->files++] =
				(struct archive_file){ long_name ? long_name : (char *)head, head + 512, size };
		}
		long_name = head[156] == 'L' ? (char *)head + 512 : NULL;
		at += 512 + (size + 511) / 512 * 512;
	}
	qsort(a->file, a->files, sizeof *a->file, by_name);
	return true;
}

void archive_free(struct archive *a)
{
	free(a->file);
	free(a->bytes);
}

const struct archive_file *archive_find(const struct archive *a, const char *name)
{
	const struct archive_file key = { .name = name };

	return bsearch(&key, a->file, a->files, sizeof key, by_name);
}

/* ---- comparing */

double tensor_real(const struct tensor *t, uint64_t element)
{
	return tensor_convert(tensor_get(t, element), tensor_wide_type(t->type), JIT_TYPE_F64).d;
}

/* Two units in the last place of a float of 16 bits: the tests' tolerances are less than one of bf16, and what is
 * rounded at each of several steps differs by the order of the steps. */
static double units(int type, double x)
{
	int exponent;

	if ((type != JIT_TYPE_F16 && type != JIT_TYPE_BF16) || !isfinite(x))
		return 0;
	frexp(x, &exponent);
	return ldexp(2, exponent - (type == JIT_TYPE_F16 ? 11 : 8));
}

static bool is_close(const struct tensor *got, const struct tensor *expected, uint64_t i, double rtol, double atol)
{
	if (!tensor_is_float(got->type))
		return tensor_get(got, i).u == tensor_get(expected, i).u;
	const double x = tensor_real(got, i), y = tensor_real(expected, i);
	return (isnan(x) && isnan(y)) || x == y ||
	       (isfinite(y) && fabs(x - y) <= fmax(atol + rtol * fabs(y), units(got->type, y)));
}

bool tensor_close(const struct tensor *got, const struct tensor *expected, double rtol, double atol, char *text,
                  size_t room)
{
	char a[SHAPE_TEXT_MAX], b[SHAPE_TEXT_MAX];

	if (got->type != expected->type || !shape_equal(&got->shape, &expected->shape)) {
		snprintf(text, room, "it is %s, expected %s", shape_text(got->type, &got->shape, a),
		         shape_text(expected->type, &expected->shape, b));
		return false;
	}
	for (uint64_t i = 0; i < shape_elements(&got->shape); i++)
		if (!is_close(got, expected, i, rtol, atol)) {
			snprintf(text, room, "element %" PRIu64 " is %.9g, expected %.9g", i, tensor_real(got, i),
			         tensor_real(expected, i));
			return false;
		}
	return true;
}

/* ---- one test */

enum { MAX = 32 };
struct data_set {
	struct tensor in[MAX], out[MAX];
	struct onnx_bind bind[MAX];
	unsigned ins, outs;
};

static bool read_tensors(const struct archive *a, const char *folder, unsigned set, const char *kind,
                         struct tensor out[MAX], unsigned *n, struct error *err)
{
	char name[300];

	for (*n = 0; *n < MAX; ++*n) {
		snprintf(name, sizeof name, "%s/test_data_set_%u/%s_%u.pb", folder, set, kind, *n);
		const struct archive_file *f = archive_find(a, name);
		if (!f)
			return true;
		snprintf(name, sizeof name, "%s %u", kind, *n + 1);
		if (!onnx_read_tensor(name, f->p, f->n, &out[*n], err))
			return false;
	}
	return true;
}

/* Imports, and gives the values of inputs that the importer asks for. */
static bool import(struct onnx_file *f, struct data_set *d, struct tensor_graph *g, unsigned *known, struct error *err)
{
	const struct onnx_about *about = onnx_about(f);
	struct onnx_refusal why;
	*known = 0;
	for (;;) {
		const struct onnx_sizes sizes = { NULL, 0, d->bind, d->ins };
		struct error now = { 0 };
		if (onnx_import(f, &sizes, g, &why, &now))
			return true;
		unsigned i = 0;
		while (i < d->ins && !(why.input && strcmp(about->input[i].name, why.input) == 0))
			i++;
		if (i == d->ins || d->bind[i].value)
			return error_set(err, now.code, "%s", now.text);
		d->bind[i].value = &d->in[i];
		++*known;
	}
}

static void compare(const struct tensor_graph *g, const struct data_set *d, const struct tensor out[], double rtol,
                    double atol, struct case_outcome *o)
{
	char text[500];

	if (g->outputs < d->outs) {
		o->result = CASE_WRONG;
		snprintf(o->text, sizeof o->text, "there are %u outputs, expected %u", g->outputs, d->outs);
	}
	for (unsigned i = 0; i < d->outs && o->result == CASE_PASSED; i++)
		if (!tensor_close(&out[i], &d->out[i], rtol, atol, text, sizeof text)) {
			o->result = CASE_WRONG;
			snprintf(o->text, sizeof o->text, "output %u: %s", i + 1, text);
		}
}

static void run_set(struct onnx_file *f, struct data_set *d, double rtol, double atol, onnx_runner *run,
                    struct case_outcome *o)
{
	const struct tensor *in[MAX];
	struct tensor out[MAX];
	struct tensor_graph g;
	struct error err = { 0 };
	unsigned n = 0;

	if (onnx_about(f)->inputs != d->ins) {
		o->result = CASE_REFUSED;
		snprintf(o->text, sizeof o->text, "the model has %u inputs, and the data %u", onnx_about(f)->inputs,
		         d->ins);
		return;
	}
	for (unsigned i = 0; i < d->ins; i++)
		d->bind[i] = (struct onnx_bind){ onnx_about(f)->input[i].name, &d->in[i].shape, NULL };
	if (!import(f, d, &g, &o->known, &err)) {
		o->result = CASE_REFUSED;
		snprintf(o->text, sizeof o->text, "%s", err.text);
		return;
	}
	for (unsigned i = 0; i < d->ins; i++)
		if (!d->bind[i].value)
			in[n++] = &d->in[i];
	if (run(&g, in, out, &err)) {
		compare(&g, d, out, rtol, atol, o);
		for (uint32_t i = 0; i < g.outputs; i++)
			tensor_free(&out[i]);
	} else {
		o->result = CASE_WRONG;
		snprintf(o->text, sizeof o->text, "%s", err.text);
	}
	tensor_graph_free(&g);
}

static void forget(struct data_set *d)
{
	for (unsigned i = 0; i < MAX; i++) {
		tensor_free(&d->in[i]);
		tensor_free(&d->out[i]);
	}
}

struct case_outcome case_run(const struct archive *a, const char *name, double rtol, double atol, onnx_runner *run)
{
	struct case_outcome o = { .result = CASE_PASSED };
	struct error err = { 0 };
	char folder[200], path[300];

	snprintf(folder, sizeof folder, "node/%s", name);
	snprintf(path, sizeof path, "%s/model.onnx", folder);
	const struct archive_file *model = archive_find(a, path);
	struct onnx_file *f = model ? onnx_open_bytes(name, model->p, model->n, NULL, &err) : NULL;
	for (unsigned set = 0; f && set < 4 && o.result == CASE_PASSED; set++) {
		struct data_set d = { .ins = 0 };
		snprintf(path, sizeof path, "%s/test_data_set_%u/output_0.pb", folder, set);
		if (set && !archive_find(a, path))
			break;
		if (read_tensors(a, folder, set, "input", d.in, &d.ins, &err) &&
		    read_tensors(a, folder, set, "output", d.out, &d.outs, &err)) {
			run_set(f, &d, rtol, atol, run, &o);
		} else {
			o.result = CASE_REFUSED;
			snprintf(o.text, sizeof o.text, "%s", err.text);
		}
		forget(&d);
	}
	if (!f) {
		o.result = model ? CASE_REFUSED : CASE_WRONG;
		snprintf(o.text, sizeof o.text, "%s", model ? err.text : "its model is not in the archive");
	}
	onnx_close(f);
	return o;
}
