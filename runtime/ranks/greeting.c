/* runtime/ranks/greeting.c - the handshake: whether all ranks are about to compute the same (ranks.h). */
#include <stdlib.h>
#include <string.h>

#include "jit/store/record.h"
#include "runtime/ranks/ranks.h"

/* Of a tensor's bytes: other weights of the same shapes differ in them. */
enum { HASHED_BYTES = 1024 };

struct hashing {
	const struct model *model;
	bool packed; /* tensors' bytes are elsewhere */
	uint64_t sum;
};

static bool add_tensor(struct hashing *h, const struct model_tensor *t, struct error *err)
{
	const uint64_t numbers[] = { t->type, t->rows, t->cols, t->bytes };
	const size_t n = t->bytes < HASHED_BYTES ? (size_t)t->bytes : HASHED_BYTES;
	uint8_t bytes[HASHED_BYTES];

	if (!t->bytes)
		return true;
	h->sum = record_checksum(t->name, strlen(t->name), h->sum);
	h->sum = record_checksum(numbers, sizeof numbers, h->sum);
	if (h->packed || t->ones || t->given)
		return true;
	if (!model_read(h->model, t, 0, n, bytes, err))
		return false;
	h->sum = record_checksum(bytes, n, h->sum);
	return true;
}

bool ranks_model_hash(const struct model *m, bool packed, uint64_t *out, struct error *err)
{
	const struct model_spec *s = &m->spec;
	const uint32_t numbers[] = { (uint32_t)s->form, s->layers,   s->hidden, s->heads,
		                     s->kv_heads,       s->head_dim, s->vocab };
	struct hashing h = { m, packed, record_checksum(numbers, sizeof numbers, m->file_bytes) };
	bool ok = add_tensor(&h, &s->embed, err) && add_tensor(&h, &s->lm_head, err);

	for (uint32_t i = 0; i < s->layers; i++) {
		for (int k = 0; ok && k < MATRIX_SLOTS; k++)
			ok = add_tensor(&h, &s->layer[i].matrix[k], err);
		for (int k = 0; ok && k < VECTOR_SLOTS; k++)
			ok = add_tensor(&h, &s->layer[i].vector[k], err);
	}
	*out = h.sum;
	return ok;
}

/* ---- comparing with rank 0 */

static bool same_text(unsigned rank, const char *what, const char *own, const char *first, struct error *err)
{
	return strcmp(own, first) == 0 ||
	       error_set(err, ERROR_ARGUMENT, "rank %u has %s \"%.128s\", and rank 0 \"%.128s\"", rank, what, own,
	                 first);
}

static bool same_greeting(unsigned rank, const struct ranks_greeting *g, const struct ranks_greeting *first,
                          struct error *err)
{
	static const char *const kv[] = { "f16", "f32", "q8_0" };

	if (!same_text(rank, "version", g->version, first->version, err) ||
	    !same_text(rank, "numerics", g->numerics, first->numerics, err) ||
	    !same_text(rank, "split", g->split, first->split, err))
		return false;
	if (g->layers != first->layers || g->model != first->model)
		return error_set(err, ERROR_ARGUMENT,
		                 "rank %u has another model: its hash is %016llx, with %u layers, and that of rank 0 "
		                 "%016llx, with %u",
		                 rank, (unsigned long long)g->model, g->layers, (unsigned long long)first->model,
		                 first->layers);
	return g->kv == first->kv || error_set(err, ERROR_ARGUMENT, "rank %u has a KV cache of %s, and rank 0 of %s",
	                                       rank, kv[g->kv % 3], kv[first->kv % 3]);
}

/* What came from elsewhere is text that ends. */
static void end_texts(struct ranks_greeting *g)
{
	g->version[sizeof g->version - 1] = 0;
	g->split[sizeof g->split - 1] = 0;
	g->numerics[sizeof g->numerics - 1] = 0;
}

bool ranks_greet(struct ranks *r, const struct ranks_greeting *own, struct error *err)
{
	const unsigned size = r->carrier->size;
	struct ranks_greeting *all = calloc(size, sizeof *all);
	size_t begin[CARRIER_RANKS_MAX + 1];

	if (!all)
		return error_set(err, ERROR_MEMORY, "no memory for what %u ranks say of themselves", size);
	for (unsigned i = 0; i <= size; i++)
		begin[i] = i * sizeof *all;
	all[r->carrier->rank] = *own;
	bool ok = carrier_gather_begin(r->carrier, all, begin, err) && carrier_gather_wait(r->carrier, err);
	for (unsigned i = 0; ok && i < size; i++) {
		end_texts(&all[i]);
		ok = same_greeting(i, &all[i], &all[0], err);
	}
	free(all);
	return ok;
}
