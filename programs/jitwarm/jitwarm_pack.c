/* programs/jitwarm/jitwarm_pack.c - packed models: jitwarm pack-model makes them; list and verify look into them.
 *
 * Owns: which targets' kernels and layouts go into one. What lies where in the file is runtime/model/packed.h's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "programs/jitwarm/jitwarm.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"
#include "runtime/model/packed.h"

static int show_packing(void *user, uint64_t done, uint64_t total)
{
	int *last = user, percent = total ? (int)(done * 100 / total) : 100;

	if (warm.quiet || warm.json || percent == *last || !isatty(STDERR_FILENO))
		return 0;
	*last = percent;
	fprintf(stderr, "\rpacking %3d%%%s", percent, percent == 100 ? "\r              \r" : "");
	fflush(stderr);
	return 0;
}

struct packing {
	const struct target *target[TARGET_COUNT];
	int n_targets;
	size_t kernels;
	uint64_t bytes;
};

static bool pack(struct packing *p, const struct model *m, struct error *err)
{
	int percent = -1;
	struct packed_options o = {
		.target = p->target, .n_targets = p->n_targets, .mode = 0644, .progress = show_packing, .user = &percent
	};
	uint8_t *kernels = warm_model_pack(m, p->target, p->n_targets, &p->kernels, &o.kernel_bytes, err);
	struct pool *pool = kernels ? pool_open(system_default_threads(), err) : NULL;

	o.kernels = kernels;
	bool ok = pool && packed_write(warm.out, m, &o, pool, &p->bytes, err);
	pool_close(pool);
	free(kernels);
	return ok;
}

static void report(const struct packing *p, double seconds)
{
	if (warm.json) {
		json_t *o = json_pack("{s:o, s:o, s:I, s:I, s:f}", "out", output_string(warm.out), "model",
		                      output_string(warm.operand[0]), "kernels", (json_int_t)p->kernels, "bytes",
		                      (json_int_t)p->bytes, "seconds", seconds);
		json_dumpf(o, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
		putchar('\n');
		json_decref(o);
	} else if (!warm.quiet) {
		fprintf(stderr, "%s: the model and %zu kernels for", warm.out, p->kernels);
		for (int t = 0; t < p->n_targets; t++)
			fprintf(stderr, "%s %s", t ? "," : "", p->target[t]->name);
		fprintf(stderr, ", %.2f MiB; %.2f s\n", (double)p->bytes / 0x1p20, seconds);
	}
}

int warm_pack_model(void)
{
	struct packing p = { .n_targets = 0 };
	double start = system_seconds();
	struct error e = { 0 };
	struct model m;

	if (!warm.out || !*warm.out)
		return warm_usage("where to? Give --out FILE.jkm");
	if (container_is(warm.operand[0]))
		return warm_usage("this model is packed already; give the files that it was made from");
	if ((p.n_targets = warm_targets(p.target, &e)) == 0 || !model_open(&m, warm.operand[0], MODEL_KEEP_SOURCES, &e))
		return warm_fail(&e);
	bool ok = pack(&p, &m, &e);
	model_close(&m);
	if (ok)
		report(&p, system_seconds() - start);
	return ok ? WARM_DONE : warm_fail(&e);
}

/* ---- what is in one */

bool warm_list_packed(const char *path, json_t *o, struct error *err)
{
	struct container *c = container_open(path, err);

	for (size_t i = 0; c && i < container_count(c); i++) {
		const struct container_section *s = container_get(c, i);
		if (o)
			json_array_append_new(o, json_pack("{s:s, s:I, s:I}", "section", s->name, "offset",
			                                   (json_int_t)s->offset, "bytes", (json_int_t)s->bytes));
		else
			printf("%12" PRIu64 "  %s\n", s->bytes, s->name);
	}
	container_close(c);
	return c != NULL;
}

bool warm_verify_packed(const char *path, char *wrong, size_t cap, struct error *err)
{
	struct container *c = container_open(path, err);
	struct error why = { 0 };

	*wrong = 0;
	for (size_t i = 0; c && i < container_count(c) && !why.code; i++)
		container_verify(c, container_get(c, i), &why);
	container_close(c);
	if (why.code == ERROR_FORMAT)
		snprintf(wrong, cap, "%s", why.text);
	else if (why.code)
		return error_set(err, why.code, "%s", why.text);
	return c != NULL;
}
