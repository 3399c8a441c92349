#include "runtime/device/program.h"

#include <stdlib.h>
#include <string.h>

static bool uses_lds(const struct object *o) { return o->frame_bytes || o->shared_bytes; }

/* A wave that is ahead must not write where others still read: between two uses of LDS all waves of the workgroup meet. */
static void keep_lds_apart(struct rdna_phase *phase, const struct plan *p, const struct object *const object[])
{
	bool used = false;                            /* by a later phase, before everyone meets anyway */

	for (size_t i = p->n_launches; i-- > 0;) {
		if (phase[i].flags & RDNA_PHASE_BARRIER)
			used = false;
		if (!uses_lds(object[p->launch[i].kernel]))
			continue;
		phase[i].flags |= used ? RDNA_PHASE_WORKGROUP_BARRIER : 0;
		used = true;
	}
}

static void fill_phases(struct program *out, const struct plan *p, const uint64_t *args, const struct object *const object[])
{
	for (size_t i = 0; i < p->n_launches; i++) {
		const struct plan_launch *l = &p->launch[i];
		out->phase[i] = (struct rdna_phase){ .function = out->offset[l->kernel], .arg = (uint64_t)(uintptr_t)(args + (l->arg - p->args)), .begin = l->begin,
			.flags = (l->barrier ? RDNA_PHASE_BARRIER : 0) | (object[l->kernel]->cooperative ? RDNA_PHASE_COOPERATIVE : 0) };
	}
	out->n_phases = p->n_launches;
	keep_lds_apart(out->phase, p, object);
}

void program_deal(struct program *program, const struct plan *p, uint32_t workgroups)
{
	program->workgroups = workgroups;
	for (size_t i = 0; i < p->n_launches; i++) {
		struct rdna_phase *phase = &program->phase[i];
		uint64_t units = (uint64_t)(p->launch[i].end - p->launch[i].begin), shares = (uint64_t)workgroups * (phase->flags & RDNA_PHASE_COOPERATIVE ? 1 : RDNA_PROGRAM_WAVES);
		phase->per = (uint32_t)(units / shares);
		phase->rest = (uint32_t)(units % shares);
	}
}

const struct kernel *program_function(struct registry *r, const struct key *key, enum kernel_source *from, struct error *err)
{
	const struct kernel *k = registry_get(r, key, from, err);
	char text[KEY_TEXT_MAX];

	if (!k)
		return NULL;
	uint32_t lds = rdna_program_lds(&k->object);
	if (lds <= RDNA_PROGRAM_LDS)
		return k;
	error_set(err, ERROR_DEVICE, "kernel %s needs %u bytes of LDS for a workgroup, which has at most %d", key_text(key, text, sizeof text), lds, RDNA_PROGRAM_LDS);
	return NULL;
}

bool program_make(struct program *out, const struct plan *p, const uint64_t *args, struct registry *r, const struct target *target, struct error *err)
{
	const struct object **object = calloc(p->n_kernels, sizeof *object);
	bool ok = true;

	*out = (struct program){ .offset = calloc(p->n_kernels, sizeof *out->offset), .phase = calloc(p->n_launches + 1, sizeof *out->phase) };
	if (!object || !out->offset || !out->phase)
		ok = error_set(err, ERROR_MEMORY, "no memory for a program of %zu phases", p->n_launches);
	for (size_t i = 0; ok && i < p->n_kernels; i++) {
		const struct kernel *k = program_function(r, &p->kernel[i].key, NULL, err);
		ok = k != NULL;
		object[i] = k ? &k->object : NULL;
	}
	ok = ok && target->backend->link(&out->bytes, &out->size, target, object, p->n_kernels, out->offset, err);
	if (ok)
		fill_phases(out, p, args, object);
	else
		program_free(out);
	free(object);
	return ok;
}

void program_free(struct program *p)
{
	free(p->bytes);
	free(p->offset);
	free(p->phase);
	*p = (struct program){ 0 };
}

size_t program_barriers(const struct program *p, size_t first, size_t end)
{
	size_t n = 0;

	for (size_t i = first; i + 1 < end; i++)
		n += p->phase[i].flags & RDNA_PHASE_BARRIER;
	return n;
}
