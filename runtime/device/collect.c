#include "runtime/device/collect.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memfile.h"
#include "jit/store/safefile.h"
#include "kernels-templates/signature.h"
#include "loaders/files/gguf_write.h"
#include "runtime/device/device.h"
#include "runtime/plan/plan.h"

static const char what[] = "the importance matrix";

struct entry {
	const struct model_tensor *tensor;
	double *sum; /* of each column, of one expert after another; NULL: another entry of the same tensor has them */
	uint64_t *tokens; /* of each expert; one where there are none */
};

struct collect {
	struct stream *stream;
	const struct weights *weights;
	uint32_t layers;
	struct entry *entry; /* layers * MATRIX_SLOTS, and the logits' */
	size_t n;
};

static bool lies_at(const struct weights_matrix *w, uint64_t packed)
{
	return w->packed && (uint64_t)(uintptr_t)w->packed == packed;
}

/* Of the matrix that lies there; NULL: of none. */
static struct entry *entry_of(const struct collect *c, uint64_t packed)
{
	const struct weights *w = c->weights;

	for (uint32_t layer = 0; layer < c->layers; layer++)
		for (size_t m = 0; m < MATRIX_SLOTS; m++)
			if (lies_at(&w->layer[layer].matrix[m], packed))
				return &c->entry[layer * MATRIX_SLOTS + m];
	return lies_at(&w->lm_head, packed) ? &c->entry[c->n - 1] : NULL;
}

static uint64_t experts_of(const struct entry *e) { return e->tensor->experts ? e->tensor->experts : 1; }

static void add(struct entry *e, uint64_t expert, const float *x, uint64_t k)
{
	double *sum = e->sum + expert * k;

	for (uint64_t i = 0; i < k; i++)
		sum[i] += (double)x[i] * (double)x[i];
	e->tokens[expert]++;
}

/* ---- what an op multiplies */

/* The op's input as f32 [column][kp(k)]: as it is, or as it was before KEY_INTERLEAVE laid it out anew or rounded it.
 * NULL: there are no such numbers, or no matrix of its own is multiplied with them. */
static const float *floats_of(const struct plan *p, size_t op)
{
	const struct plan_op *l = &p->op[op];
	const struct key *key = &p->kernel[l->kernel].key;

	if (key->kind != KEY_MATMUL || key->flags & (KEY_BY_HEAD | KEY_NORM_IN))
		return NULL;
	const struct kernel_use x = kernel_use(key, MATMUL_X);
	if (x.type == KERNEL_F32 && x.layout == KERNEL_ROWS)
		return (const float *)(uintptr_t)l->arg[MATMUL_X];
	for (size_t i = x.type == KERNEL_INT8 ? 0 : op; i-- > 0;) {
		const struct plan_op *made = &p->op[i];
		const struct key *by = &p->kernel[made->kernel].key;
		if (by->kind != KEY_INTERLEAVE)
			continue;
		const uint64_t at = l->arg[MATMUL_X] - made->arg[INTERLEAVE_OUT];
		if (at < kernel_extent(by, made->arg, INTERLEAVE_OUT, made->begin, made->end).end)
			return (const float *)(uintptr_t)made->arg[INTERLEAVE_X] + at / kernel_type_bytes(x.type);
	}
	return NULL;
}

/* The input of each slot, in the order of the tokens: an expert's sums are those of its tokens in their order. */
static void see_slots(struct entry *e, const struct plan_op *l, const struct key *key, const float *x)
{
	const int32_t *chosen = (const int32_t *)(uintptr_t)l->arg[MATMUL_ROUTES];
	const uint64_t slots = (uint64_t)(l->end - l->begin) / (numerics_pad(key->rows) / 32);

	for (uint64_t i = 0; i < slots; i++)
		add(e, (uint32_t)chosen[i / key->heads * ROUTE_MAX + i % key->heads],
		    x + i / key->kv_heads * numerics_pad(key->k), key->k);
}

/* The columns of each group, which are sorted by token. */
static void see_groups(struct entry *e, const struct plan_op *l, const struct key *key, const float *x)
{
	const struct route_group *group = (const struct route_group *)(uintptr_t)l->arg[MATMUL_ROUTES];
	const uint64_t groups = (uint64_t)(l->end - l->begin) / (numerics_pad(key->rows) / 32);

	for (uint64_t i = 0; i < groups; i++)
		for (int32_t column = 0; column < group[i].columns; column++)
			add(e, (uint32_t)group[i].expert,
			    x + (uint64_t)(group[i].first + column) * numerics_pad(key->k), key->k);
}

static void see(struct collect *c, const struct plan_op *l, const struct key *key, uint64_t packed, const float *x)
{
	struct entry *e = entry_of(c, packed);

	if (!e || !e->sum)
		return;
	if (key->flags & KEY_EXPERTS)
		(key->tile_n > 1 ? see_groups : see_slots)(e, l, key, x);
	else
		for (uint64_t column = 0; column < l->arg[MATMUL_COLUMNS]; column++)
			add(e, 0, x + column * numerics_pad(key->k), key->k);
}

void collect_see(struct collect *c, const struct plan *p, size_t op)
{
	const struct plan_op *l = &p->op[op];
	const struct key *key = &p->kernel[l->kernel].key;
	const float *x = floats_of(p, op);

	if (!x)
		return;
	see(c, l, key, l->arg[MATMUL_W], x);
	if (key->flags & KEY_PAIR)
		see(c, l, key, l->arg[MATMUL_W2], x);
}

/* Whether an entry before has the same tensor: matrices that are parts of one have the same inputs. */
static bool is_known(const struct entry *e, size_t n)
{
	for (size_t i = n < MATRIX_SLOTS ? 0 : n - MATRIX_SLOTS; i < n; i++)
		if (e[i].tensor && strcmp(e[i].tensor->name, e[n].tensor->name) == 0)
			return true;
	return false;
}

static bool fill(struct collect *c, const struct model_spec *s)
{
	c->n = (size_t)s->layers * MATRIX_SLOTS + 1;
	c->entry = calloc(c->n, sizeof *c->entry);
	for (size_t i = 0; c->entry && i < c->n; i++) {
		const struct model_tensor *t =
			i == c->n - 1 ? &s->lm_head : &s->layer[i / MATRIX_SLOTS].matrix[i % MATRIX_SLOTS];
		if (!t->bytes)
			continue;
		c->entry[i].tensor = t;
		if (is_known(c->entry, i))
			continue;
		c->entry[i].sum = calloc(experts_of(&c->entry[i]) * t->cols, sizeof(double));
		c->entry[i].tokens = calloc(experts_of(&c->entry[i]), sizeof(uint64_t));
		if (!c->entry[i].sum || !c->entry[i].tokens)
			return false;
	}
	return c->entry != NULL;
}

struct collect *collect_open(struct stream *s, const struct model_spec *spec, const struct weights *w,
                             struct error *err)
{
	const char *name = spec->layer[0].q.name ? spec->layer[0].q.name : "";
	struct collect *c;

	if (strncmp(name, "model.", 6) == 0) {
		error_set(err, ERROR_UNSUPPORTED,
		          "%s: tensors have names such as %.60s, and an importance matrix those of GGUF files; convert "
		          "the model first",
		          spec->name, name);
		return NULL;
	}
	if ((c = calloc(1, sizeof *c))) {
		c->stream = s;
		c->weights = w;
		c->layers = spec->layers;
		if (fill(c, spec)) {
			s->collect = c;
			return c;
		}
	}
	error_set(err, ERROR_MEMORY, "no memory for %s", what);
	collect_close(c);
	return NULL;
}

void collect_close(struct collect *c)
{
	if (!c)
		return;
	c->stream->collect = NULL;
	for (size_t i = 0; c->entry && i < c->n; i++) {
		free(c->entry[i].sum);
		free(c->entry[i].tokens);
	}
	free(c->entry);
	free(c);
}

/* ---- the file */

static bool is_written(const struct entry *e)
{
	bool any = false;

	for (uint64_t i = 0; e->sum && i < experts_of(e); i++)
		any = any || e->tokens[i];
	return any;
}

static void put_tensors(struct gguf_out *o, const struct entry *e, bool header)
{
	uint64_t experts = experts_of(e), n_sums = e->tensor->cols * experts;
	const uint64_t columns[2] = { e->tensor->cols, experts }, one[2] = { 1, experts };
	static const char zeros[64];
	char name[160];

	if (header) {
		int n = snprintf(name, sizeof name, "%s.in_sum2", e->tensor->name);
		gguf_put_tensor(o, (struct gguf_str){ name, (uint64_t)n }, DTYPE_F32, 2, columns);
		n = snprintf(name, sizeof name, "%s.counts", e->tensor->name);
		gguf_put_tensor(o, (struct gguf_str){ name, (uint64_t)n }, DTYPE_F32, 2, one);
		return;
	}
	for (uint64_t i = 0; i < n_sums; i++) {
		float sum = (float)e->sum[i];
		gguf_put_raw(o, &sum, sizeof sum);
	}
	gguf_put_raw(o, zeros, gguf_put_padding(o, n_sums * sizeof(float)));
	for (uint64_t i = 0; i < experts; i++) {
		float count = (float)e->tokens[i];
		gguf_put_raw(o, &count, sizeof count);
	}
	gguf_put_raw(o, zeros, gguf_put_padding(o, experts * sizeof(float)));
}

static char *make_file(const struct collect *c, const char *text, uint32_t chunks, uint32_t chunk_tokens, size_t *n)
{
	enum { ALIGNMENT = 32 };
	struct gguf_out o;
	struct memfile f;

	if (memfile_open(&f)) {
		gguf_put_begin(&o, f.out, ALIGNMENT);
		gguf_put_string(&o, "general.type", "imatrix");
		gguf_put_array(&o, "imatrix.datasets", GGUF_STRING, 1);
		gguf_put_text(&o, text, strlen(text));
		gguf_put_u32(&o, "imatrix.chunk_count", chunks);
		gguf_put_u32(&o, "imatrix.chunk_size", chunk_tokens);
		for (int header = 1; header >= 0; header--) {
			for (size_t i = 0; i < c->n; i++)
				if (is_written(&c->entry[i]))
					put_tensors(&o, &c->entry[i], header);
			if (header)
				gguf_put_end(&o);
		}
	}
	return memfile_take(&f, n);
}

bool collect_write(const struct collect *c, const char *path, const char *text, uint32_t chunks, uint32_t chunk_tokens,
                   struct error *err)
{
	char quoted[256];
	const char *name;
	bool any = false;
	size_t n;

	for (size_t i = 0; i < c->n; i++)
		any = any || is_written(&c->entry[i]);
	if (!any)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "nothing was collected for %s: the device does not show what matrices read", what);
	char *bytes = make_file(c, text, chunks, chunk_tokens, &n);
	if (!bytes)
		return error_set(err, ERROR_MEMORY, "no memory for %s", what);
	int dir = safefile_directory(path, what, &name, quoted, err);
	bool ok = dir >= 0;
	if (ok) {
		enum safefile_step step =
			safefile_replace(dir, name, 0666, &(struct safefile_part){ .bytes = bytes, .n = n }, 1);
		ok = !step || safefile_failed(step, what, quoted, err);
		close(dir);
	}
	free(bytes);
	return ok;
}
