/* runtime/kernels/kernel.c - kernels that are open: their keys, their code, and what is said of them. See compute.h. */
#include "runtime/kernels/compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/model.h"
#include "runtime/model/sized.h"

unsigned kernel_type_size(int type)
{
	static const uint8_t size[] = {
		[JIT_TYPE_BOOL] = 1, [JIT_TYPE_F32] = 4, [JIT_TYPE_F64] = 8, [JIT_TYPE_I32] = 4,  [JIT_TYPE_U32] = 4,
		[JIT_TYPE_I64] = 8,  [JIT_TYPE_U64] = 8, [JIT_TYPE_F16] = 2, [JIT_TYPE_BF16] = 2, [JIT_TYPE_I8] = 1,
		[JIT_TYPE_U8] = 1,   [JIT_TYPE_I16] = 2, [JIT_TYPE_U16] = 2
	};

	return size[type];
}

char *kernel_parameter_text(const jit_kernel *k, size_t parameter, char out[PARAMETER_TEXT_MAX])
{
	const jit_parameter *p = &k->is.parameter[parameter];

	snprintf(out, PARAMETER_TEXT_MAX, "%s %.64s of %.64s", p->access == JIT_SCALAR ? "scalar" : "array", p->name,
	         k->is.name);
	return out;
}

/* ---- opening */

static void enter(jit_kernel *k)
{
	pthread_mutex_lock(&k->compute->lock);
	k->next = k->compute->kernels;
	k->compute->kernels = k;
	pthread_mutex_unlock(&k->compute->lock);
}

static void leave(jit_kernel *k)
{
	pthread_mutex_lock(&k->compute->lock);
	for (jit_kernel **at = &k->compute->kernels; *at; at = &(*at)->next)
		if (*at == k) {
			*at = k->next;
			break;
		}
	pthread_mutex_unlock(&k->compute->lock);
}

/* Interpreted, it is built here once to see whether it can be. */
static bool try_build(const jit_kernel *k, struct error *err)
{
	const struct target *t = k->compute->device->facts.target;
	struct ir ir;

	ir_init(&ir, t->lanes);
	ir.waves = t->waves;
	bool ok = k->is.build(k->is.user, &ir, t, err) && ir_verify(&ir, err);
	ir_free(&ir);
	return ok;
}

static bool have_code(jit_kernel *k, struct error *err)
{
	jit_compute *c = k->compute;

	if (c->device->facts.interprets)
		return try_build(k, err);
	const struct kernel *code = registry_get(c->registry, &k->key, &k->source, err);
	if (!code || (c->device->ready && !c->device->ready(c->device, c->registry, &k->key, err)))
		return false;
	k->code_ns = code->nanoseconds;
	k->code_bytes = code->object.code_bytes;
	return true;
}

jit_kernel *kernel_open(jit_compute *c, const struct kernel_description *is, struct error *err)
{
	jit_kernel *k = calloc(1, sizeof *k);
	struct error why = { 0 };

	if (!k) {
		error_set(err, ERROR_MEMORY, "no memory for a kernel");
		return NULL;
	}
	k->compute = c;
	k->is = *is;
	key_user(&k->key, is->id, c->device->facts.target->id);
	key_text(&k->key, k->key_text, sizeof k->key_text);
	enter(k);
	if (have_code(k, &why))
		return k;
	error_set(err, why.code, "kernel %.64s: %s", is->name, why.text);
	leave(k);
	free(k);
	return NULL;
}

/* ---- what is asked of them */

size_t jit_kernel_parameters(const jit_kernel *k) { return k ? k->is.parameters : 0; }

int jit_kernel_parameter(const jit_kernel *k, size_t number, jit_parameter *out, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(k, &e))
		return model_report(err, &e);
	if (number >= k->is.parameters)
		error_set(&e, ERROR_ARGUMENT, "parameter %zu of %.64s, which has %zu", number, k->is.name,
		          k->is.parameters);
	else
		SIZED_WRITE(jit_parameter, out, &k->is.parameter[number], &e);
	return model_report(err, &e);
}

int jit_kernel_find(const jit_kernel *k, const char *name)
{
	for (size_t i = 0; k && name && i < k->is.parameters; i++)
		if (strcmp(k->is.parameter[i].name, name) == 0)
			return (int)i;
	return -1;
}

int jit_kernel_get_report(const jit_kernel *k, jit_kernel_report *out, jit_error *err)
{
	static const int code[KERNEL_SOURCE_COUNT] = { [KERNEL_GENERATED] = JIT_CODE_GENERATED,
		                                       [KERNEL_FROM_MEMORY] = JIT_CODE_MEMORY,
		                                       [KERNEL_FROM_DISK] = JIT_CODE_DISK,
		                                       [KERNEL_FROM_PACK] = JIT_CODE_PACK };
	struct error e = { 0 };

	if (NEEDED(k, &e)) {
		const jit_kernel_report r = {
			.name = k->is.name,
			.key = k->key_text,
			.runs = k->compute->device->facts.interprets ? JIT_RUNS_INTERPRETED : JIT_RUNS_NATIVE,
			.code = code[k->source],
			.code_ns = k->code_ns,
			.code_bytes = k->code_bytes,
			.units = k->is.units,
			.bytes_read = k->is.bytes_read,
			.bytes_written = k->is.bytes_written,
			.operations = k->is.operations,
			.launches = k->launches,
			.last_ns = k->last_ns,
			.tuned = k->source_text ? k->source_text->tuned : ""
		};
		SIZED_WRITE(jit_kernel_report, out, &r, &e);
	}
	return model_report(err, &e);
}

void jit_kernel_close(jit_kernel *k)
{
	if (!k)
		return;
	leave(k);
	kernel_source_close(k->source_text);
	free(k);
}
