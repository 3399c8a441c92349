#include "runtime/device/collect.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memfile.h"
#include "jit/store/safefile.h"
#include "loaders/gguf_write.h"
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

static struct entry *entry_of(const struct collect *c, const struct weights_matrix *w)
{
	uintptr_t at = (uintptr_t)w, first = (uintptr_t)c->weights->layer;
	size_t layer = at >= first ? (at - first) / sizeof *c->weights->layer : c->layers;

	if (w == &c->weights->lm_head)
		return &c->entry[c->n - 1];
	return layer < c->layers ? &c->entry[layer * MATRIX_SLOTS + (size_t)(w - c->weights->layer[layer].matrix)]
	                         : NULL;
}

static uint64_t experts_of(const struct entry *e) { return e->tensor->experts ? e->tensor->experts : 1; }

static void add(struct entry *e, uint64_t expert, const float *x, uint64_t k)
{
	double *sum = e->sum + expert * k;

	for (uint64_t i = 0; i < k; i++)
		sum[i] += (double)x[i] * (double)x[i];
	e->tokens[expert]++;
}

/* Token by token, and of each its slots: an expert's sums are those of its tokens in their order. */
static void see_experts(struct entry *e, const struct plan_op *op, const struct weights_matrix *w)
{
	for (uint32_t t = 0; t < op->seen_tokens; t++)
		for (uint32_t slot = 0; slot < op->seen_slots; slot++) {
			uint32_t at = t * ROUTE_MOST + slot;
			uint64_t row = op->seen_places ? (uint32_t)op->seen_places[at]
			                               : ((uint64_t)t * op->seen_slots + slot) / op->seen_sharing;
			add(e, (uint32_t)op->seen_chosen[at], op->seen + row * numerics_pad(w->k), w->k);
		}
}

static void see(struct collect *c, const struct plan_op *op, const struct weights_matrix *w)
{
	struct entry *e = w ? entry_of(c, w) : NULL;

	if (!e || !e->sum)
		return;
	if (op->seen_chosen)
		see_experts(e, op, w);
	else
		for (uint32_t t = 0; t < op->seen_tokens; t++)
			add(e, 0, op->seen + t * numerics_pad(w->k), w->k);
}

void collect_see(struct collect *c, const struct plan_op *op)
{
	if (!op->seen)
		return;
	see(c, op, op->seen_by);
	see(c, op, op->seen_by2);
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
