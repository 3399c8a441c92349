/* runtime/graph/graph_api.c - jitrun_graph.h. */
#include "runtime/graph/graph_api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/eval.h"
#include "jit/store/safefile.h"
#include "loaders/onnx/onnx.h"
#include "runtime/model/model.h"
#include "runtime/model/options.h"
#include "runtime/model/sized.h"

struct jit_executable {
	struct executable *x;
	size_t inputs, outputs;
};

const struct tensor_graph *graph_of(const jit_graph *g) { return &g->g; }
const struct executable *executable_of(const jit_executable *x) { return x->x; }

/* Bytes of a text, and of an ONNX file, which protobuf has no longer ones of. */
enum { TEXT_MAX = 1 << 28, ONNX_MAX = INT32_MAX };

bool graph_is_onnx(const char *bytes, size_t n) { return n > 2 && bytes[0] == 8; }

/* ---- reading */

char *graph_read_file(const char *path, size_t *n, struct error *err)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t room = 1 << 16;

	*n = 0;
	if (!f) {
		error_set(err, ERROR_IO, "%.300s: %s", path, strerror(errno));
		return NULL;
	}
	for (;;) {
		char *more = realloc(text, room);
		if (!more) {
			error_set(err, ERROR_MEMORY, "no memory for the text of %.300s", path);
			break;
		}
		text = more;
		*n += fread(text + *n, 1, room - *n, f);
		if (*n < room)
			break;
		const int max = graph_is_onnx(text, *n) ? ONNX_MAX : TEXT_MAX;
		if (*n >= (size_t)max) {
			error_set(err, ERROR_FORMAT, "%.300s has more than %d bytes", path, max);
			break;
		}
		room *= 2;
	}
	if (ferror(f))
		error_set(err, ERROR_IO, "%.300s: cannot be read: %s", path, strerror(errno));
	fclose(f);
	if (err->code == ERROR_NONE)
		return text;
	free(text);
	return NULL;
}

bool graph_read_sizes(struct graph_sizes *s, const char *text, struct error *err)
{
	s->n = 0;
	if (!text)
		return true;
	if (strlen(text) >= sizeof s->text)
		return error_set(err, ERROR_ARGUMENT, "sizes: more than %zu bytes", sizeof s->text - 1);
	strcpy(s->text, text);
	for (char *save, *word = strtok_r(s->text, " ,\t\n", &save); word; word = strtok_r(NULL, " ,\t\n", &save)) {
		char *is = strchr(word, '='), *end = NULL;
		errno = 0;
		const unsigned long long value = is && is[1] >= '0' && is[1] <= '9' ? strtoull(is + 1, &end, 10) : 0;
		if (!end || *end || errno || is == word)
			return error_set(err, ERROR_ARGUMENT, "sizes: \"%.64s\", expected name=number", word);
		if (s->n == GRAPH_SIZES_MAX)
			return error_set(err, ERROR_ARGUMENT, "sizes: more than %d", GRAPH_SIZES_MAX);
		*is = 0;
		for (size_t i = 0; i < s->n; i++)
			if (strcmp(s->size[i].name, word) == 0)
				return error_set(err, ERROR_ARGUMENT, "sizes: %.64s has two values", word);
		s->size[s->n++] = (struct graph_size){ word, value };
	}
	return true;
}

struct onnx_file *graph_open_onnx(const char *path, const char *bytes, size_t n, struct error *err)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	char *folder = !path ? NULL : slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	struct onnx_file *f = onnx_open_bytes(path ? path : "graph", bytes, n, folder, err);

	free(folder);
	return f;
}

bool graph_import_onnx(struct tensor_graph *g, struct onnx_file *f, const struct graph_sizes *sizes, struct error *err)
{
	const struct onnx_sizes given = { .size = sizes->size, .sizes = sizes->n };
	const bool ok = onnx_import(f, &given, g, NULL, err);

	if (!ok)
		tensor_graph_init(g);
	return ok;
}

static bool read_onnx(struct tensor_graph *g, const jit_graph_options *o, const char *bytes, size_t n,
                      const struct graph_sizes *sizes, struct error *err)
{
	struct onnx_file *f = graph_open_onnx(o->path, bytes, n, err);
	const bool ok = f && graph_import_onnx(g, f, sizes, err);

	onnx_close(f);
	return ok;
}

bool graph_read(struct tensor_graph *g, const jit_graph_options *o, const struct graph_sizes *sizes, struct error *err)
{
	const char *name = o->path ? o->path : "graph";
	char *file = NULL;
	size_t n = o->n;
	bool ok;

	if (!o->source && !(file = graph_read_file(o->path, &n, err)))
		return false;
	if (o->source && !n)
		n = strlen(o->source);
	const char *bytes = file ? file : o->source;
	ok = graph_is_onnx(bytes, n) ? read_onnx(g, o, bytes, n, sizes, err)
	                             : graph_text_read(g, name, bytes, n, sizes->size, sizes->n, err);
	free(file);
	return ok;
}

jit_graph *jit_graph_open(const jit_graph_options *options, jit_error *err)
{
	jit_graph_options o = JIT_GRAPH_OPTIONS();
	struct error e = { 0 };
	jit_graph *g = calloc(1, sizeof *g);

	if (g)
		tensor_graph_init(&g->g);
	if (!g || !(g->sizes = calloc(1, sizeof *g->sizes)))
		error_set(&e, ERROR_MEMORY, "no memory for a graph");
	else if ((!options || SIZED_READ(jit_graph_options, &o, options, &e)) &&
	         graph_read_sizes(g->sizes, o.sizes, &e) && (o.source || o.path))
		graph_read(&g->g, &o, g->sizes, &e);
	model_report(err, &e);
	if (e.code == ERROR_NONE)
		return g;
	jit_graph_close(g);
	return NULL;
}

void jit_graph_close(jit_graph *g)
{
	if (g) {
		tensor_graph_free(&g->g);
		free(g->sizes);
	}
	free(g);
}

/* Writes a file by a function; false: err. */
static FILE *create(const char *path, struct error *err)
{
	FILE *f = safefile_stream(path);

	if (!f)
		error_set(err, ERROR_IO, "%.300s: %s", path, strerror(errno));
	return f;
}

static void finish(FILE *f, const char *path, struct error *err)
{
	const bool failed = ferror(f) != 0;

	if (fclose(f) != 0 || failed)
		error_set(err, ERROR_IO, "%.300s: cannot be written: %s", path, strerror(errno));
}

int jit_graph_write(const jit_graph *g, const char *path, jit_error *err)
{
	struct error e = { 0 };
	FILE *f = NEEDED(g, &e) && NEEDED(path, &e) ? create(path, &e) : NULL;

	if (f) {
		graph_text_write(&g->g, f, 0);
		finish(f, path, &e);
	}
	return model_report(err, &e);
}

/* ---- building */

static bool read_shape(int type, const uint64_t *dims, size_t rank, struct shape *s, struct error *err)
{
	if (type < 0 || type >= TENSOR_TYPES)
		return error_set(err, ERROR_ARGUMENT, "type is %d, expected JIT_TYPE_BOOL to JIT_TYPE_U16", type);
	if (rank > TENSOR_MAX_RANK)
		return error_set(err, ERROR_ARGUMENT, "rank is %zu, expected at most %d", rank, TENSOR_MAX_RANK);
	if (rank && !NEEDED(dims, err))
		return false;
	*s = (struct shape){ .rank = (unsigned)rank };
	for (size_t i = 0; i < rank; i++)
		s->dim[i] = dims[i];
	return shape_fits(type, s, err);
}

int jit_graph_add_input(jit_graph *g, const char *name, int type, const uint64_t *dims, size_t rank, uint32_t *value,
                        jit_error *err)
{
	struct error e = { 0 };
	struct shape s;
	tensor_value v = 0;

	if (NEEDED(g, &e) && NEEDED(name, &e) && NEEDED(value, &e) && read_shape(type, dims, rank, &s, &e) &&
	    (v = tensor_graph_input(&g->g, name, type, &s, &e)))
		*value = v;
	return model_report(err, &e);
}

int jit_graph_add_constant(jit_graph *g, int type, const uint64_t *dims, size_t rank, const void *data, uint32_t *value,
                           jit_error *err)
{
	struct error e = { 0 };
	struct tensor t = { .type = type };
	tensor_value v = 0;

	if (NEEDED(g, &e) && NEEDED(value, &e) && read_shape(type, dims, rank, &t.shape, &e) &&
	    (shape_elements(&t.shape) == 0 || NEEDED(data, &e))) {
		t.data = (void *)(uintptr_t)data; /* which is copied */
		if ((v = tensor_graph_constant(&g->g, &t, &e)))
			*value = v;
	}
	return model_report(err, &e);
}

int jit_graph_add_node(jit_graph *g, const char *operation, const uint32_t *operands, size_t n, uint32_t *value,
                       jit_error *err)
{
	struct error e = { 0 };
	tensor_value v = 0;

	if (NEEDED(g, &e) && NEEDED(operation, &e) && NEEDED(value, &e) && (n == 0 || NEEDED(operands, &e)) &&
	    (v = graph_text_node(&g->g, operation, operands, n, g->sizes->size, g->sizes->n, &e)))
		*value = v;
	return model_report(err, &e);
}

int jit_graph_add_output(jit_graph *g, const char *name, uint32_t value, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(g, &e) && NEEDED(name, &e)) {
		if (value == 0 || value >= g->g.values)
			error_set(&e, ERROR_ARGUMENT, "value is %u, which is no value of this graph", value);
		else
			tensor_graph_output(&g->g, name, value, &e);
	}
	return model_report(err, &e);
}

int jit_graph_add_text(jit_graph *g, const char *text, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(g, &e) && NEEDED(text, &e))
		graph_text_add(&g->g, "text", text, strlen(text), g->sizes->size, g->sizes->n, &e);
	return model_report(err, &e);
}

/* ---- what it is */

size_t jit_graph_inputs(const jit_graph *g) { return g ? g->g.inputs : 0; }
size_t jit_graph_outputs(const jit_graph *g) { return g ? g->g.outputs : 0; }

static bool describe(const struct tensor_graph *g, tensor_value v, const char *name, jit_tensor *out, struct error *err)
{
	const struct tensor_value_info *i = &g->value[v];
	jit_tensor own = JIT_TENSOR();

	own.name = name;
	own.type = i->type;
	own.rank = (int)i->shape.rank;
	memcpy(own.dim, i->shape.dim, sizeof own.dim);
	own.elements = shape_elements(&i->shape);
	own.bytes = own.elements * tensor_type_bytes(i->type);
	own.value = v;
	return SIZED_WRITE(jit_tensor, out, &own, err);
}

int jit_graph_input(const jit_graph *g, size_t number, jit_tensor *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(g, &e) && NEEDED(out, &e)) {
		if (number >= g->g.inputs)
			error_set(&e, ERROR_ARGUMENT, "input %zu of a graph that has %u", number, g->g.inputs);
		else
			describe(&g->g, g->g.input[number], g->g.value[g->g.input[number]].name, out, &e);
	}
	return model_report(err, &e);
}

int jit_graph_output(const jit_graph *g, size_t number, jit_tensor *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(g, &e) && NEEDED(out, &e)) {
		if (number >= g->g.outputs)
			error_set(&e, ERROR_ARGUMENT, "output %zu of a graph that has %u", number, g->g.outputs);
		else
			describe(&g->g, g->g.output[number], g->g.output_name[number], out, &e);
	}
	return model_report(err, &e);
}

int jit_graph_value(const jit_graph *g, uint32_t value, jit_tensor *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(g, &e) && NEEDED(out, &e)) {
		if (value == 0 || value >= g->g.values)
			error_set(&e, ERROR_ARGUMENT, "value is %u, which is no value of this graph", value);
		else
			describe(&g->g, value, g->g.value[value].name, out, &e);
	}
	return model_report(err, &e);
}

/* ---- runs */

/* As many as there are, each with memory. */
static bool all_given(const void *const *list, size_t n, size_t expected, const char *what, struct error *err)
{
	if (n != expected)
		return error_set(err, ERROR_ARGUMENT, "%zu %s, expected %zu", n, what, expected);
	for (size_t i = 0; i < n; i++)
		if (!list[i])
			return error_set(err, ERROR_ARGUMENT, "number %zu of the %s is NULL", i, what);
	return true;
}

static bool interpret(const struct tensor_graph *g, const void *const *in, void *const *out, struct error *err)
{
	struct tensor *from = calloc(g->inputs + (size_t)1, sizeof *from);
	struct tensor *to = calloc(g->outputs + (size_t)1, sizeof *to);
	const struct tensor **operand = calloc(g->inputs + (size_t)1, sizeof *operand);
	bool ok = (from && to && operand) || error_set(err, ERROR_MEMORY, "no memory for a graph");

	for (uint32_t i = 0; ok && i < g->inputs; i++) {
		const struct tensor_value_info *v = &g->value[g->input[i]];
		from[i] = (struct tensor){ v->type, v->shape, (void *)(uintptr_t)in[i] };
		operand[i] = &from[i];
	}
	ok = ok && tensor_graph_eval(g, operand, to, err);
	for (uint32_t i = 0; ok && i < g->outputs; i++) {
		if (to[i].data)
			memcpy(out[i], to[i].data, (size_t)tensor_bytes(&to[i]));
		tensor_free(&to[i]);
	}
	free(from);
	free(to);
	free(operand);
	return ok;
}

int jit_graph_interpret(const jit_graph *g, const void *const *in, size_t n_in, void *const *out, size_t n_out,
                        jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(g, &e) && NEEDED_LIST(in, n_in, &e) && NEEDED_LIST(out, n_out, &e) &&
	    all_given(in, n_in, g->g.inputs, "inputs", &e) &&
	    all_given((const void *const *)out, n_out, g->g.outputs, "outputs", &e))
		interpret(&g->g, in, out, &e);
	return model_report(err, &e);
}

jit_executable *graph_executable(jit_compute *c, const struct tensor_graph *g, bool aside, struct error *err)
{
	jit_executable *x = calloc(1, sizeof *x);

	if (!x) {
		error_set(err, ERROR_MEMORY, "no memory for an executable");
		return NULL;
	}
	x->inputs = g->inputs;
	x->outputs = g->outputs;
	if ((x->x = aside ? executable_open_aside(c, g, err) : executable_open(c, g, err)))
		return x;
	free(x);
	return NULL;
}

jit_executable *jit_executable_open(jit_compute *c, const jit_graph *g, jit_error *err)
{
	struct error e = { 0 };
	jit_executable *x = NEEDED(c, &e) && NEEDED(g, &e) ? graph_executable(c, &g->g, false, &e) : NULL;

	model_report(err, &e);
	return x;
}

void jit_executable_close(jit_executable *x)
{
	if (x)
		executable_close(x->x);
	free(x);
}

int jit_executable_run(jit_executable *x, const void *const *in, size_t n_in, void *const *out, size_t n_out,
                       jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(x, &e) && NEEDED_LIST(in, n_in, &e) && NEEDED_LIST(out, n_out, &e) &&
	    all_given(in, n_in, x->inputs, "inputs", &e) &&
	    all_given((const void *const *)out, n_out, x->outputs, "outputs", &e))
		executable_run(x->x, in, out, &e);
	return model_report(err, &e);
}

int jit_executable_get_report(const jit_executable *x, jit_executable_report *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(x, &e) && NEEDED(out, &e)) {
		struct executable_report r;
		jit_executable_report own = JIT_EXECUTABLE_REPORT();
		executable_get_report(x->x, &r);
		own.kernels = r.kernels;
		own.on_host = r.hosted;
		own.generated = r.generated;
		own.open_ns = r.code_ns;
		own.bytes = r.arena_bytes;
		own.all_bytes = r.value_bytes;
		own.constant_bytes = r.constant_bytes;
		own.last_ns = r.last_ns;
		SIZED_WRITE(jit_executable_report, out, &own, &e);
	}
	return model_report(err, &e);
}

int jit_executable_write_report(const jit_executable *x, const char *path, int text, jit_error *err)
{
	struct error e = { 0 };
	FILE *f = NEEDED(x, &e) && NEEDED(path, &e) ? create(path, &e) : NULL;

	if (f) {
		executable_print(x->x, f, text != 0);
		finish(f, path, &e);
	}
	return model_report(err, &e);
}
