/* programs/jitk/jitk_arrays.c - the arrays of a kernel: what --in puts into them, and what --out and the terminal get.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/common/array.h"
#include "programs/jitk/jitk.h"
#include "runtime/host/system.h"

static struct array array_of(const struct jitk_array *a)
{
	struct array x = { a->is.name, a->is.type, (unsigned)a->is.dims, { 0 }, a->is.elements, a->is.bytes, a->data };

	memcpy(x.extent, a->is.extent, sizeof a->is.extent);
	return x;
}

char *jitk_element(const struct jitk_array *a, const uint8_t *data, uint64_t i, char out[JITK_ELEMENT_MAX])
{
	return array_element(a->is.type, data, i, out);
}

/* ---- --in */

static bool take_scalar(struct jitk_array *a, const char *spec, struct error *err)
{
	if (strcmp(spec, "true") == 0 || strcmp(spec, "false") == 0) {
		a->whole = true;
		a->integer = *spec == 't';
		return true;
	}
	return array_read_number(spec, &a->number, &a->integer, &a->whole) ||
	       error_set(err, ERROR_ARGUMENT, "--in %.64s=%.64s: %.64s is a scalar, expected a number", a->is.name,
	                 spec, a->is.name);
}

static const char *given(const struct option_list *list, const char *name)
{
	return array_given(list->value, list->n, name);
}

/* Every entry has the name of a parameter, and none twice. */
static bool check_names(const struct option_list *list, const char *option, const jit_kernel *k, struct error *err)
{
	char name[ARRAY_NAME_MAX];

	for (int i = 0; i < list->n; i++) {
		if (!array_option_name(option, list->value[i], name, err))
			return false;
		if (jit_kernel_find(k, name) < 0)
			return error_set(err, ERROR_ARGUMENT, "%s %.100s: the kernel has no parameter %.64s", option,
			                 list->value[i], name);
		for (int j = 0; j < i; j++)
			if (strncmp(list->value[j], list->value[i], strlen(name) + 1) == 0)
				return error_set(err, ERROR_ARGUMENT, "%s %.64s is given twice", option, name);
	}
	return true;
}

static bool open_array(struct jitk_array *a, struct error *err)
{
	const char *spec = given(&jitk.in, a->is.name);
	bool filled = false;

	if (!spec && a->is.access == JIT_SCALAR && jitk.fill && jitk.fill(a, &filled, err) && filled)
		return true;
	if (a->is.access == JIT_SCALAR)
		return spec ? take_scalar(a, spec, err)
		            : error_set(err, ERROR_ARGUMENT, "the scalar %.64s has no value; give --in %.64s=NUMBER",
		                        a->is.name, a->is.name);
	if (a->is.bytes > SIZE_MAX / 2 || !(a->data = calloc(a->is.bytes ? (size_t)a->is.bytes : 1, 1)))
		return error_set(err, ERROR_MEMORY, "no memory for the %" PRIu64 " bytes of array %.64s", a->is.bytes,
		                 a->is.name);
	if (!spec && jitk.fill && !jitk.fill(a, &filled, err))
		return false;
	if (!spec && a->is.access == JIT_IN && !jitk.fill)
		return error_set(err, ERROR_ARGUMENT,
		                 "the array %.64s has no values; give --in %.64s=FILE.npy, or random:1", a->is.name,
		                 a->is.name);
	struct array x = array_of(a);
	return !spec || array_fill(&x, "--in", spec, err);
}

/* Zeros cost no memory before they are written, so that an array too large would end the process late. */
static bool check_memory(const struct jitk_arrays *a, struct error *err)
{
	const uint64_t available = system_available_memory();
	double all = 0;

	for (size_t i = 0; i < a->n; i++)
		all += a->list[i].is.access == JIT_SCALAR ? 0 : (double)a->list[i].is.bytes;
	return all <= (double)available ||
	       error_set(err, ERROR_MEMORY, "the arrays have %.0f bytes, and %" PRIu64 " bytes of memory are free", all,
	                 available);
}

bool jitk_arrays_open(struct jitk_arrays *a, const jit_kernel *k, struct error *err)
{
	*a = (struct jitk_arrays){ .n = jit_kernel_parameters(k) };
	if (!(a->list = calloc(a->n + 1, sizeof *a->list)))
		return error_set(err, ERROR_MEMORY, "no memory for a list of arrays");
	bool ok = check_names(&jitk.in, "--in", k, err) && check_names(&jitk.out, "--out", k, err);
	for (size_t i = 0; i < a->n; i++) {
		a->list[i].is = JIT_PARAMETER();
		jit_kernel_parameter(k, i, &a->list[i].is, NULL);
		snprintf(a->list[i].name, sizeof a->list[i].name, "%s", a->list[i].is.name);
		a->list[i].is.name = a->list[i].name; /* which lives longer than the kernel */
	}
	ok = ok && check_memory(a, err);
	for (size_t i = 0; ok && i < a->n; i++)
		ok = open_array(&a->list[i], err);
	for (size_t i = 0; ok && i < a->n; i++)
		if (given(&jitk.out, a->list[i].is.name) && !jitk_is_written(&a->list[i]))
			ok = error_set(err, ERROR_ARGUMENT, "--out %.64s: the kernel does not write it",
			               a->list[i].is.name);
	return ok;
}

void jitk_arrays_close(struct jitk_arrays *a)
{
	for (size_t i = 0; a->list && i < a->n; i++)
		free(a->list[i].data);
	free(a->list);
	*a = (struct jitk_arrays){ .n = 0 };
}

bool jitk_arrays_give_scalar(const struct jitk_arrays *a, size_t i, jit_launch *l, jit_error *err)
{
	const struct jitk_array *x = &a->list[i];

	if (x->whole && x->is.type == JIT_TYPE_U64)
		return jit_launch_set_bits(l, i, (uint64_t)x->integer, err) == JIT_OK;
	return (x->whole ? jit_launch_set_integer(l, i, x->integer, err)
	                 : jit_launch_set_real(l, i, &x->number, err)) == JIT_OK;
}

bool jitk_arrays_give(const struct jitk_arrays *a, jit_launch *l, uint8_t *const *data, jit_error *err)
{
	bool ok = true;

	for (size_t i = 0; ok && i < a->n; i++) {
		const struct jitk_array *x = &a->list[i];
		ok = x->is.access == JIT_SCALAR
		             ? jitk_arrays_give_scalar(a, i, l, err)
		             : jit_launch_set_memory(l, i, data ? data[i] : x->data, x->is.bytes, err) == JIT_OK;
	}
	return ok;
}

/* ---- --out */

void jitk_array_print(const struct jitk_array *a)
{
	const struct array x = array_of(a);

	array_print(&x);
}

bool jitk_arrays_out(const struct jitk_arrays *a, struct error *err)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct jitk_array *x = &a->list[i];
		const char *spec = given(&jitk.out, x->is.name);
		const bool raw = spec && strncmp(spec, "raw:", 4) == 0;
		const struct array array = array_of(x);
		if (spec && !array_write(&array, raw ? spec + 4 : spec, raw, err))
			return false;
		if (jitk_is_written(x) && (!jitk.quiet || jitk.fill)) /* of an example always */
			jitk_array_print(x);
	}
	return true;
}
