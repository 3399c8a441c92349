/* runtime/kernels/launch.c - launches: arguments checked and bound, what is copied to a card and back, and the run.
 *
 * Owns: which memory may be given to a kernel, and what a caller's value is in a scalar's type. A launch is a plan
 * (launch_plan.h) that is prepared once and run many times.
 */
#include "runtime/kernels/compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/profile.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

static const jit_parameter *parameter_of(const jit_launch *l, size_t i) { return &l->kernel->is.parameter[i]; }

/* ---- opening and closing */

static const char *name_of(const void *launch, size_t kernel)
{
	(void)kernel;
	return ((const jit_launch *)launch)->kernel->is.name;
}

static bool prepare(jit_launch *l, struct error *err)
{
	const jit_kernel *k = l->kernel;
	jit_compute *c = k->compute;
	const struct launch_shape shape = {
		.key = k->key,
		.units = k->is.units,
		.serial = k->is.fault != NULL,
		.args = (uint32_t)k->is.parameters + (k->is.fault != NULL),
		.moves = (double)k->is.bytes_read + (double)k->is.bytes_written,
		.operations = (double)k->is.operations,
		.arithmetic = c->device->facts.clock == DEVICE_CLOCK_CARD ? c->device->facts.arithmetic : 0
	};

	l->argument = calloc(k->is.parameters + 1, sizeof *l->argument);
	if (!l->argument)
		return error_set(err, ERROR_MEMORY, "no memory for a launch");
	if (!launch_plan_make(&l->plan, &shape, err))
		return false;
	if (k->is.fault &&
	    !(l->fault = c->device->alloc(c->device, KERNEL_FAULT_WORDS * sizeof *l->fault, DEVICE_ARRAYS, err)))
		return false;
	l->prepared = compute_prepare(c, &l->plan.plan, name_of, l, err);
	return l->prepared && err->code == ERROR_NONE;
}

jit_launch *jit_launch_open(jit_kernel *k, jit_error *err)
{
	struct error e = { 0 };
	jit_launch *l = NEEDED(k, &e) ? calloc(1, sizeof *l) : NULL;

	if (k && !l)
		error_set(&e, ERROR_MEMORY, "no memory for a launch");
	if (l) {
		l->kernel = k;
		prepare(l, &e);
	}
	model_report(err, &e);
	if (e.code == ERROR_NONE)
		return l;
	jit_launch_close(l);
	return NULL;
}

static void drop_copy(const jit_launch *l, size_t i)
{
	struct device *d = l->kernel->compute->device;
	struct launch_argument *a = &l->argument[i];

	if (a->copy)
		d->release(d, a->copy, (size_t)parameter_of(l, i)->bytes);
	*a = (struct launch_argument){ 0 };
}

void jit_launch_close(jit_launch *l)
{
	if (!l)
		return;
	jit_compute *c = l->kernel->compute;
	struct device *d = c->device;
	pthread_mutex_lock(&c->stream_lock);
	if (l->prepared && c->stream->forget)
		c->stream->forget(c->stream, &l->plan.plan);
	pthread_mutex_unlock(&c->stream_lock);
	for (size_t i = 0; l->argument && i < l->kernel->is.parameters; i++)
		drop_copy(l, i);
	if (l->fault)
		d->release(d, l->fault, KERNEL_FAULT_WORDS * sizeof *l->fault);
	free(l->argument);
	launch_plan_free(&l->plan);
	free(l);
}

/* ---- arguments */

/* Whether there is such a parameter, and whether it is one of these. */
static bool is_parameter(const jit_launch *l, size_t i, bool scalar, struct error *err)
{
	char text[PARAMETER_TEXT_MAX];

	if (i >= l->kernel->is.parameters)
		return error_set(err, ERROR_ARGUMENT, "parameter %zu of %.64s, which has %zu", i, l->kernel->is.name,
		                 l->kernel->is.parameters);
	if ((parameter_of(l, i)->access == JIT_SCALAR) == scalar)
		return true;
	return error_set(err, ERROR_ARGUMENT, "%s was given %s", kernel_parameter_text(l->kernel, i, text),
	                 scalar ? "a number, expected memory" : "memory, expected a number");
}

static bool fits(const jit_launch *l, size_t i, uint64_t bytes, uint64_t address, struct error *err)
{
	const jit_parameter *p = parameter_of(l, i);
	const unsigned size = kernel_type_size(p->type);
	char text[PARAMETER_TEXT_MAX];

	if (bytes < p->bytes)
		return error_set(err, ERROR_ARGUMENT,
		                 "%s was given %llu bytes, expected at least %llu: %llu elements of %u",
		                 kernel_parameter_text(l->kernel, i, text), (unsigned long long)bytes,
		                 (unsigned long long)p->bytes, (unsigned long long)p->elements, size);
	return address % size == 0 ||
	       error_set(err, ERROR_ARGUMENT, "%s was given memory at 0x%llx, expected a multiple of %u bytes",
	                 kernel_parameter_text(l->kernel, i, text), (unsigned long long)address, size);
}

int jit_launch_set_buffer(jit_launch *l, size_t parameter, jit_buffer *b, uint64_t at, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(l, &e) || !is_parameter(l, parameter, false, &e) || !NEEDED(b, &e))
		return model_report(err, &e);
	if (b->compute != l->kernel->compute)
		error_set(&e, ERROR_ARGUMENT, "the buffer is of another jit_compute than the kernel");
	else if (at > b->bytes)
		error_set(&e, ERROR_ARGUMENT, "byte %llu of a buffer, which has %llu bytes", (unsigned long long)at,
		          (unsigned long long)b->bytes);
	else if (fits(l, parameter, b->bytes - at, at, &e)) {
		const uint64_t from = (uint64_t)(uintptr_t)b->at + at;
		drop_copy(l, parameter);
		l->changes++;
		l->argument[parameter] = (struct launch_argument){
			.given = true, .bits = from, .from = from, .to = from + parameter_of(l, parameter)->bytes
		};
	}
	return model_report(err, &e);
}

int jit_launch_set_memory(jit_launch *l, size_t parameter, void *p, uint64_t bytes, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(l, &e) || !is_parameter(l, parameter, false, &e) || !NEEDED_LIST(p, bytes, &e) ||
	    !fits(l, parameter, bytes, (uint64_t)(uintptr_t)p, &e))
		return model_report(err, &e);
	struct launch_argument *a = &l->argument[parameter], next = *a;
	struct device *d = l->kernel->compute->device;
	next.given = true;
	next.from = (uint64_t)(uintptr_t)p;
	next.to = next.from + parameter_of(l, parameter)->bytes;
	next.caller = NULL;
	if (compute_host_runs(l->kernel->compute) || next.from == next.to) {
		next.bits = next.from;
	} else if (next.copy ||
	           (next.copy = d->alloc(d, (size_t)parameter_of(l, parameter)->bytes, DEVICE_ARRAYS, &e))) {
		next.bits = (uint64_t)(uintptr_t)next.copy;
		next.caller = p;
	}
	if (e.code == ERROR_NONE) {
		*a = next;
		l->changes++;
	}
	return model_report(err, &e);
}

static void set_bits(jit_launch *l, size_t i, uint64_t bits)
{
	const unsigned size = kernel_type_size(parameter_of(l, i)->type);

	l->changes++;
	l->argument[i] = (struct launch_argument){ .given = true,
		                                   .bits = size == 8 ? bits : bits & ((UINT64_C(1) << 8 * size) - 1) };
}

/* The ranges of integers: of u64 the part that an int64_t has. */
static void range_of(int type, double *min, double *max)
{
	switch (type) {
	case JIT_TYPE_BOOL: *min = 0, *max = 1; break;
	case JIT_TYPE_U32: *min = 0, *max = UINT32_MAX; break;
	case JIT_TYPE_I32: *min = INT32_MIN, *max = INT32_MAX; break;
	case JIT_TYPE_U64: *min = 0, *max = 0x1p64; break;
	default: *min = -0x1p63, *max = 0x1p63;
	}
}

static bool is_integer_type(int type) { return type != JIT_TYPE_F32 && type != JIT_TYPE_F64; }

int jit_launch_set_real(jit_launch *l, size_t parameter, const double *value, jit_error *err)
{
	struct error e = { 0 };
	char text[PARAMETER_TEXT_MAX];

	if (!NEEDED(l, &e) || !is_parameter(l, parameter, true, &e) || !NEEDED(value, &e))
		return model_report(err, &e);
	const double v = *value;
	const int type = parameter_of(l, parameter)->type;
	uint64_t bits = 0;
	if (type == JIT_TYPE_F64) {
		memcpy(&bits, &v, sizeof v);
	} else if (type == JIT_TYPE_F32) {
		const float f = (float)v;
		memcpy(&bits, &f, sizeof f);
	} else {
		double min, max;
		range_of(type, &min, &max);
		if (!(v >= min && v <= max) || v != floor(v) || v == 0x1p64 || (type == JIT_TYPE_I64 && v == 0x1p63))
			error_set(&e, ERROR_ARGUMENT, "%s was given %g, expected a whole number that its type has",
			          kernel_parameter_text(l->kernel, parameter, text), v);
		else
			bits = v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
	}
	if (e.code == ERROR_NONE)
		set_bits(l, parameter, bits);
	return model_report(err, &e);
}

int jit_launch_set_integer(jit_launch *l, size_t parameter, int64_t value, jit_error *err)
{
	struct error e = { 0 };
	char text[PARAMETER_TEXT_MAX];

	if (!NEEDED(l, &e) || !is_parameter(l, parameter, true, &e))
		return model_report(err, &e);
	const int type = parameter_of(l, parameter)->type;
	if (!is_integer_type(type)) {
		uint64_t bits = 0;
		const float f = (float)value;
		const double d = (double)value;
		if (type == JIT_TYPE_F32)
			memcpy(&bits, &f, sizeof f);
		else
			memcpy(&bits, &d, sizeof d);
		set_bits(l, parameter, bits);
		return model_report(err, &e);
	}
	if ((type == JIT_TYPE_BOOL && (value < 0 || value > 1)) ||
	    (type == JIT_TYPE_U32 && (value < 0 || value > UINT32_MAX)) ||
	    (type == JIT_TYPE_I32 && (value < INT32_MIN || value > INT32_MAX)) || (type == JIT_TYPE_U64 && value < 0))
		error_set(&e, ERROR_ARGUMENT, "%s was given %lld, which its type does not have",
		          kernel_parameter_text(l->kernel, parameter, text), (long long)value);
	else
		set_bits(l, parameter, (uint64_t)value);
	return model_report(err, &e);
}

int jit_launch_set_bits(jit_launch *l, size_t parameter, uint64_t bits, jit_error *err)
{
	struct error e = { 0 };
	char text[PARAMETER_TEXT_MAX];

	if (!NEEDED(l, &e) || !is_parameter(l, parameter, true, &e))
		return model_report(err, &e);
	const unsigned size = kernel_type_size(parameter_of(l, parameter)->type);
	if ((size < 8 && bits >> 8 * size) || (parameter_of(l, parameter)->type == JIT_TYPE_BOOL && bits > 1))
		error_set(&e, ERROR_ARGUMENT, "%s was given the bits 0x%llx, which its type does not have",
		          kernel_parameter_text(l->kernel, parameter, text), (unsigned long long)bits);
	else
		set_bits(l, parameter, bits);
	return model_report(err, &e);
}

/* ---- running */

static bool writes(const jit_launch *l, size_t i)
{
	return parameter_of(l, i)->access == JIT_OUT || parameter_of(l, i)->access == JIT_INOUT;
}

/* What one instance writes no other may see: an array that is written shares no byte with another argument. */
static bool check_apart(const jit_launch *l, size_t i, struct error *err)
{
	const struct launch_argument *a = &l->argument[i];

	for (size_t k = 0; writes(l, i) && k < l->kernel->is.parameters; k++) {
		const struct launch_argument *b = &l->argument[k];
		if (k == i || parameter_of(l, k)->access == JIT_SCALAR || a->from >= b->to || b->from >= a->to)
			continue;
		return error_set(err, ERROR_ARGUMENT, "arrays %.64s and %.64s of %.64s overlap, and %.64s is written",
		                 parameter_of(l, i < k ? i : k)->name, parameter_of(l, i < k ? k : i)->name,
		                 l->kernel->is.name, parameter_of(l, i)->name);
	}
	return true;
}

bool launch_has_arguments(jit_launch *l, struct error *err)
{
	char text[PARAMETER_TEXT_MAX];

	for (size_t i = 0; i < l->kernel->is.parameters; i++) {
		if (!l->argument[i].given)
			return error_set(err, ERROR_ARGUMENT, "%s was not given",
			                 kernel_parameter_text(l->kernel, i, text));
		if (!check_apart(l, i, err))
			return false;
		l->plan.arg[i] = l->argument[i].bits;
	}
	l->plan.arg[l->kernel->is.parameters] = (uint64_t)(uintptr_t)l->fault;
	return true;
}

/* Of arrays that are only written, too: the kernel may leave elements as they are. */
static bool send(const jit_launch *l, struct error *err)
{
	static const uint64_t none[KERNEL_FAULT_WORDS];
	struct device *d = l->kernel->compute->device;
	bool ok = !l->fault || d->upload(d, l->fault, none, sizeof none, err);

	for (size_t i = 0; ok && i < l->kernel->is.parameters; i++)
		if (l->argument[i].caller)
			ok = d->upload(d, l->argument[i].copy, l->argument[i].caller, (size_t)parameter_of(l, i)->bytes,
			               err);
	return ok;
}

static bool fetch(const jit_launch *l, struct error *err)
{
	struct device *d = l->kernel->compute->device;
	bool ok = true;

	for (size_t i = 0; ok && i < l->kernel->is.parameters; i++)
		if (l->argument[i].caller && writes(l, i))
			ok = d->read(d, l->argument[i].caller, l->argument[i].copy, (size_t)parameter_of(l, i)->bytes,
			             err);
	return ok;
}

static bool check_fault(const jit_launch *l, struct error *err)
{
	const struct kernel_description *is = &l->kernel->is;
	struct device *d = l->kernel->compute->device;
	uint64_t fault[KERNEL_FAULT_WORDS];
	char text[400];

	if (!l->fault || !d->read(d, fault, l->fault, sizeof fault, err))
		return !l->fault;
	return !is->fault(is->user, fault, text, sizeof text) || error_set(err, ERROR_ARGUMENT, "%s", text);
}

/* With the stream's lock. */
static bool run(jit_launch *l, struct error *err)
{
	jit_compute *c = l->kernel->compute;

	if (!send(l, err))
		return false;
	const uint64_t start = profile_now();
	bool ok = !l->kernel->is.units || c->stream->run(c->stream, &l->plan.plan, c->pool, err);
	const uint64_t took = profile_now() - start;
	if (c->profile)
		profile_launched(c->profile, &l->plan.plan, 0, start, start + took);
	const bool cancelled = !ok && err->code == ERROR_CANCELLED;
	ok = (ok || cancelled) && fetch(l, ok ? err : NULL) && ok;
	if (ok && (ok = check_fault(l, err))) {
		l->kernel->launches++;
		l->kernel->last_ns = took;
	}
	return ok;
}

int jit_launch_run(jit_launch *l, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(l, &e) || !launch_has_arguments(l, &e))
		return model_report(err, &e);
	jit_compute *c = l->kernel->compute;
	pthread_mutex_lock(&c->stream_lock);
	launch_plan_set_args(&l->plan);
	if (cancel_any(&c->cancel))
		cancel_error(&e);
	else
		run(l, &e);
	pthread_mutex_unlock(&c->stream_lock);
	return model_report(err, &e);
}
