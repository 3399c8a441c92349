/* programs/jitopt/jitopt_objective.c - objectives of the user: a kernel, a shared object, or a command. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_kernel.h"
#include "programs/common/array.h"
#include "programs/jitopt/jitopt.h"
#include "programs/jitopt/jitopt_command.h"

/* What a shared object has: values[count][m] of x[count][n]. Non-zero: it failed. */
typedef int objective_fn(const double *x, size_t count, size_t n, double *values, size_t m);

struct jitopt_objective {
	char name[256];
	size_t n, m;
	jit_error err;
	/* a kernel */
	jit_compute *compute;
	jit_kernel *kernel;
	jit_launch *launch;
	size_t count;      /* candidates that the kernel was made for */
	uint8_t *in, *out; /* its arrays x and f */
	jit_parameter x, f;
	struct array *data; /* its other arrays; scalars have `elements` 1 */
	size_t n_data;
	/* a shared object */
	void *library;
	objective_fn *function;
	/* a command */
	struct jitopt_command *command;
};

static bool fail(struct jitopt_objective *o, int code, const char *format, const char *what)
{
	if (o->err.code)
		return false;
	o->err.code = code;
	snprintf(o->err.message, sizeof o->err.message, format, o->name, what);
	return false;
}

/* ---- kernels */

static void close_kernel(struct jitopt_objective *o)
{
	jit_launch_close(o->launch);
	jit_kernel_close(o->kernel);
	o->launch = NULL;
	o->kernel = NULL;
	for (size_t i = 0; i < o->n_data; i++)
		free(o->data[i].data);
	free(o->data);
	free(o->in);
	free(o->out);
	o->data = NULL;
	o->in = o->out = NULL;
	o->n_data = 0;
}

/* Whether an array of candidates or values has the elements it must have. */
static bool fits(struct jitopt_objective *o, const jit_parameter *p, size_t row, const char *want)
{
	const uint64_t elements = (uint64_t)o->count * row;
	const bool shape = p->extent[0] == o->count && p->elements == elements &&
	                   (p->dims == 2 ? p->extent[1] == row : p->dims == 1 && row == 1);

	return (shape && (p->type == JIT_TYPE_F64 || p->type == JIT_TYPE_F32)) ||
	       fail(o, JIT_ERROR_FORMAT, "%s: expected %s, of f64 or f32, with the constants count, n and m", want);
}

/* An array or scalar beside x and f: what --in says. */
static bool give_data(struct jitopt_objective *o, size_t number, const jit_parameter *p)
{
	const char *spec = array_given(jitopt.in.value, jitopt.in.n, p->name);
	struct array *a = &o->data[o->n_data];
	struct error e = { 0 };
	double value;
	int64_t whole;
	bool is_whole;

	if (!spec)
		return fail(o, JIT_ERROR_ARGUMENT, "%s: the parameter %s needs values: --in NAME=VALUES", p->name);
	if (p->access == JIT_SCALAR) {
		if (!array_read_number(spec, &value, &whole, &is_whole))
			return fail(o, JIT_ERROR_ARGUMENT, "%s: the scalar %s needs a number", p->name);
		return (is_whole ? jit_launch_set_integer(o->launch, number, whole, &o->err)
		                 : jit_launch_set_real(o->launch, number, &value, &o->err)) == JIT_OK;
	}
	*a = (struct array){ .name = p->name,
		             .type = p->type,
		             .dims = (unsigned)p->dims,
		             .elements = p->elements,
		             .bytes = p->bytes,
		             .data = calloc(1, p->bytes ? p->bytes : 1) };
	for (int i = 0; i < p->dims; i++)
		a->extent[i] = p->extent[i];
	o->n_data++;
	if (!a->data)
		return fail(o, JIT_ERROR_MEMORY, "%s: there is no memory for %s", p->name);
	if (!array_fill(a, "--in", spec, &e))
		return fail(o, JIT_ERROR_ARGUMENT, "%.0s%s", e.text);
	return jit_launch_set_memory(o->launch, number, a->data, a->bytes, &o->err) == JIT_OK;
}

/* Whether each --in is of a parameter that it can be of. */
static bool knows_inputs(struct jitopt_objective *o)
{
	struct error e = { 0 };
	char name[ARRAY_NAME_MAX];

	for (int i = 0; i < jitopt.in.n; i++) {
		if (!array_option_name("--in", jitopt.in.value[i], name, &e))
			return fail(o, JIT_ERROR_ARGUMENT, "%.0s%s", e.text);
		if (strcmp(name, "x") == 0 || strcmp(name, "f") == 0)
			return fail(o, JIT_ERROR_ARGUMENT, "%s: --in %s: x and f are the candidates and their values",
			            name);
		if (jit_kernel_find(o->kernel, name) < 0)
			return fail(o, JIT_ERROR_ARGUMENT, "%s: --in %s: the kernel has no such parameter", name);
	}
	return true;
}

static bool give_arrays(struct jitopt_objective *o)
{
	const int x = jit_kernel_find(o->kernel, "x"), f = jit_kernel_find(o->kernel, "f");
	const size_t parameters = jit_kernel_parameters(o->kernel);

	o->x = JIT_PARAMETER();
	o->f = JIT_PARAMETER();
	if (!knows_inputs(o))
		return false;
	if (x < 0 || f < 0)
		return fail(o, JIT_ERROR_FORMAT, "%s: the kernel has no %s; it reads x[count][n] and writes f[count]",
		            x < 0 ? "x" : "f");
	if (jit_kernel_parameter(o->kernel, (size_t)x, &o->x, &o->err) != JIT_OK ||
	    jit_kernel_parameter(o->kernel, (size_t)f, &o->f, &o->err) != JIT_OK)
		return false;
	if (o->x.access != JIT_IN || o->f.access != JIT_OUT)
		return fail(o, JIT_ERROR_FORMAT, "%s: expected %s", "in x and out f");
	if (!fits(o, &o->x, o->n, "x[count][n]") || !fits(o, &o->f, o->m, o->m > 1 ? "f[count][m]" : "f[count]"))
		return false;
	o->in = calloc(1, o->x.bytes);
	o->out = calloc(1, o->f.bytes);
	o->data = calloc(parameters, sizeof *o->data);
	if (!o->in || !o->out || !o->data)
		return fail(o, JIT_ERROR_MEMORY, "%s: there is no memory for %s", "a population");
	if (jit_launch_set_memory(o->launch, (size_t)x, o->in, o->x.bytes, &o->err) != JIT_OK ||
	    jit_launch_set_memory(o->launch, (size_t)f, o->out, o->f.bytes, &o->err) != JIT_OK)
		return false;
	for (size_t i = 0; i < parameters; i++) {
		jit_parameter p = JIT_PARAMETER();
		if (i == (size_t)x || i == (size_t)f)
			continue;
		if (jit_kernel_parameter(o->kernel, i, &p, &o->err) != JIT_OK || !give_data(o, i, &p))
			return false;
	}
	return true;
}

/* For so many candidates; other sizes are other kernels, which the cache keeps. */
static bool make_kernel(struct jitopt_objective *o, size_t count)
{
	static char messages[1 << 14];
	char constants[4096];
	size_t at = (size_t)snprintf(constants, sizeof constants, "count=%zu n=%zu", count, o->n);

	if (o->m > 1)
		at += (size_t)snprintf(constants + at, sizeof constants - at, " m=%zu", o->m);
	for (int i = 0; i < jitopt.constants.n && at < sizeof constants; i++)
		at += (size_t)snprintf(constants + at, sizeof constants - at, " %s", jitopt.constants.value[i]);
	if (at >= sizeof constants)
		return fail(o, JIT_ERROR_ARGUMENT, "%s: too many constants%s", "");
	close_kernel(o);
	o->count = count;
	messages[0] = 0;
	o->kernel = jit_kernel_open(o->compute,
	                            &JIT_KERNEL_OPTIONS(.path = o->name, .constants = constants, .messages = messages,
	                                                .n_messages = sizeof messages),
	                            &o->err);
	const char *more = strchr(messages, '\n'); /* the error itself is printed at the end */
	if (!o->kernel && more && more[1])
		fputs(messages, stderr);
	o->launch = o->kernel ? jit_launch_open(o->kernel, &o->err) : NULL;
	return o->launch && give_arrays(o);
}

static bool run_kernel(struct jitopt_objective *o, const double *x, size_t count, double *values)
{
	if ((!o->launch || o->count != count) && !make_kernel(o, count))
		return false;
	for (size_t i = 0; i < count * o->n; i++)
		if (o->x.type == JIT_TYPE_F64)
			((double *)(void *)o->in)[i] = x[i];
		else
			((float *)(void *)o->in)[i] = (float)x[i];
	if (jit_launch_run(o->launch, &o->err) != JIT_OK)
		return false;
	for (size_t i = 0; i < count * o->m; i++)
		values[i] = o->f.type == JIT_TYPE_F64 ? ((double *)(void *)o->out)[i]
		                                      : (double)((float *)(void *)o->out)[i];
	return true;
}

/* ---- all of them */

static bool open_library(struct jitopt_objective *o, char *path, const char *symbol)
{
	o->library = dlopen(strchr(path, '/') ? path : (snprintf(o->name, sizeof o->name, "./%s", path), o->name),
	                    RTLD_NOW | RTLD_LOCAL);
	if (!o->library)
		return fail(o, JIT_ERROR_IO, "%.0s%s", dlerror());
	*(void **)&o->function = dlsym(o->library, symbol);
	return o->function || fail(o, JIT_ERROR_FORMAT, "%s has no function %s", symbol);
}

static bool open_any(struct jitopt_objective *o, const char *operand)
{
	char path[256], *colon;
	const size_t length = strlen(operand);

	if (strncmp(operand, "command:", 8) == 0) {
		o->command = jitopt_command_open(operand + 8, &o->err);
		return o->command != NULL;
	}
	if (length >= sizeof path)
		return fail(o, JIT_ERROR_ARGUMENT, "%.100s...: the path is too long%s", "");
	strcpy(path, operand);
	if (length > 3 && strcmp(operand + length - 3, ".jk") == 0) {
		o->compute =
			jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = jitopt.device, .cache_dir = jitopt.cache,
		                                              .threads = (int)jitopt.threads, .cancel = jitopt_cancel),
		                         &o->err);
		return o->compute != NULL;
	}
	colon = strstr(path, ".so");
	if (colon && (colon[3] == ':' || !colon[3])) {
		const char *symbol = colon[3] && colon[4] ? colon + 4 : "objective";
		colon[3] = 0;
		return open_library(o, path, symbol);
	}
	return fail(o, JIT_ERROR_ARGUMENT, "%s: expected FILE.jk, FILE.so, FILE.so:SYMBOL or command:TEXT%s", "");
}

struct jitopt_objective *jitopt_objective_open(const char *operand, int dimension, int objectives, jit_error *err)
{
	struct jitopt_objective *o = calloc(1, sizeof *o);

	if (!o) {
		*err = (jit_error){ .code = JIT_ERROR_MEMORY };
		snprintf(err->message, sizeof err->message, "there is no memory for an objective");
		return NULL;
	}
	snprintf(o->name, sizeof o->name, "%s", operand);
	o->n = (size_t)dimension;
	o->m = (size_t)objectives;
	if (open_any(o, operand))
		return o;
	*err = o->err;
	jitopt_objective_close(o);
	return NULL;
}

void jitopt_objective_close(struct jitopt_objective *o)
{
	if (!o)
		return;
	close_kernel(o);
	jit_compute_close(o->compute);
	jitopt_command_close(o->command);
	if (o->library)
		dlclose(o->library);
	free(o);
}

int jitopt_objective_values(void *user, const double *x, size_t count, double *values)
{
	struct jitopt_objective *o = user;

	if (o->compute)
		return !run_kernel(o, x, count, values);
	if (o->function)
		return o->function(x, count, o->n, values, o->m) &&
		       !fail(o, JIT_ERROR_DEVICE, "%s: the function returned a failure%s", "");
	return !jitopt_command_values(o->command, x, count, o->n, values, o->m, &o->err);
}

const jit_error *jitopt_objective_error(const struct jitopt_objective *o) { return &o->err; }
