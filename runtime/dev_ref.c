/* runtime/dev_ref.c - the reference device: interprets each kernel's IR at the width of the target that would run it.
 * Slow and exact: what every other device must equal, bit for bit. */
#include <stdlib.h>

#include "jit/array.h"
#include "kernels-templates/templates.h"
#include "runtime/dev.h"

struct ref_kernel { struct key key; struct ir ir; };

struct dev_ref {
	struct device device;
	const struct target *target;
	struct ref_kernel **kernel; size_t n, capacity;
};

static struct ref_kernel *ref_find(struct dev_ref *r, const struct key *key)
{
	for (size_t i = 0; i < r->n; i++)
		if (key_equal(&r->kernel[i]->key, key))
			return r->kernel[i];
	return NULL;
}

static struct ref_kernel *ref_build(struct dev_ref *r, const struct key *key, struct error *err)
{
	struct ref_kernel *k = array_grow((void **)&r->kernel, &r->capacity, r->n + 1, sizeof *r->kernel) ? calloc(1, sizeof *k) : NULL;
	if (!k) {
		error_set(err, ERROR_MEMORY, "no memory for a kernel");
		return NULL;
	}
	k->key = *key;
	ir_init(&k->ir, r->target->lanes);
	k->ir.waves = r->target->waves;
	if (!template_build(&k->ir, key, r->target, err) || !ir_verify(&k->ir, err)) {
		ir_free(&k->ir);
		free(k);
		return NULL;
	}
	return r->kernel[r->n++] = k;
}

static bool ref_prepare(struct device *d, struct plan *p, struct pool *pool, struct error *err)
{
	(void)pool;
	struct dev_ref *r = (struct dev_ref *)d;

	for (size_t i = 0; i < p->n_kernels; i++) {
		struct ref_kernel *k = ref_find(r, &p->kernel[i].key);
		if (!k && !(k = ref_build(r, &p->kernel[i].key, err)))
			return false;
		p->kernel[i].handle = k;
	}
	return true;
}

static void ref_call(void *handle, const uint64_t *arg, int64_t begin, int64_t end)
{
	const struct ref_kernel *k = handle;
	ir_interp(&k->ir, arg, begin, end);
}

static void ref_close(struct device *d)
{
	struct dev_ref *r = (struct dev_ref *)d;
	for (size_t i = 0; i < r->n; i++) {
		ir_free(&r->kernel[i]->ir);
		free(r->kernel[i]);
	}
	free(r->kernel);
	free(r);
}

struct device *dev_ref_open(const struct target *t, struct error *err)
{
	struct dev_ref *r = calloc(1, sizeof *r);

	if (!r) {
		error_set(err, ERROR_MEMORY, "no memory for the reference device");
		return NULL;
	}
	r->device = (struct device){ .name = "ref", .prepare = ref_prepare, .run = dev_run, .call = ref_call, .close = ref_close };
	r->target = t;
	return &r->device;
}
