/* runtime/model/fingerprint_ranks.c - checksums of weights that several ranks have together (fingerprint.h).
 *
 * They are those of one process that has all: each rank sums up its own bytes, and where a block has several owners the
 * sum so far goes from one to the next. All ranks go through the blocks in the same order, so that each message is
 * expected when it comes, and none sends weights.
 */
#include <stdlib.h>

#include "jit/store/record.h"
#include "runtime/model/fingerprint.h"
#include "runtime/ranks/ranks.h"

/* Memory in extents, one behind the other, each of one owner. */
struct extent {
	uint64_t end;
	unsigned owner;
};
struct extents {
	struct extent *at;
	size_t n, room;
	bool failed;
};

/* Bytes up to `end` are the owner's. */
static void add(struct extents *p, uint64_t end, unsigned owner)
{
	if (p->n && (p->at[p->n - 1].owner == owner || end <= p->at[p->n - 1].end)) {
		p->at[p->n - 1].end = end > p->at[p->n - 1].end ? end : p->at[p->n - 1].end;
		return;
	}
	if (p->n == p->room) {
		const size_t room = p->room ? 2 * p->room : 256;
		struct extent *more = realloc(p->at, room * sizeof *more);
		if (!more) {
			p->failed = true;
			return;
		}
		p->at = more;
		p->room = room;
	}
	p->at[p->n++] = (struct extent){ end, owner };
}

static unsigned owner_of_layer(const struct ranks *r, uint32_t layer)
{
	unsigned owner = 0;

	while (!r->by_rows && owner + 1 < r->carrier->size && layer >= r->range[owner].end)
		owner++;
	return owner;
}

/* By rows: of each expert's matrix, or of the only one, the first rank that has a block. */
static void add_rows(struct extents *p, const struct ranks *r, const struct model_spec *s,
                     const struct weights_entry *e)
{
	const uint64_t experts = e->tensor->experts ? e->tensor->experts : 1, each = e->blocks / experts;
	struct cut_blocks own[CARRIER_RANKS_MAX];

	for (unsigned i = 0; i < r->carrier->size; i++)
		own[i] = cut_share_kept(&r->shares, s, e->tensor, i);
	for (uint64_t block = 0; block < e->blocks; block++) {
		const uint64_t at = block % each;
		unsigned owner = 0;
		while (owner + 1 < r->carrier->size && (at < own[owner].first || at >= own[owner].end))
			owner++;
		add(p, e->at + (block + 1) * e->stride, owner);
	}
}

static bool list_matrices(struct extents *p, const jit_model *m, struct error *err)
{
	const struct model_spec *s = &m->file.spec;
	struct weights_entry *e = calloc((size_t)s->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE, sizeof *e);
	/* The list says where matrices are described, and changes none of them. */
	const size_t n = e ? weights_list(e, s, (struct weights *)(uintptr_t)&m->weights) : 0;

	if (e)
		weights_lay(e, n, weight_layout_of(m->target));
	for (size_t i = 0; i < n; i++) {
		if (e[i].pairing == WEIGHTS_SECOND_OF_TWO) /* its blocks lie between the first one's */
			continue;
		if (m->ranks->by_rows)
			add_rows(p, m->ranks, s, &e[i]);
		else {
			const uint32_t layer = weights_layer_of(s, e[i].tensor);
			add(p, e[i].at + e[i].blocks * e[i].stride,
			    layer == s->layers ? 0 : owner_of_layer(m->ranks, layer));
		}
	}
	free(e);
	add(p, m->weights.packed_bytes, 0);
	return (e && !p->failed) ||
	       error_set(err, ERROR_MEMORY, "no memory for a list of %u layers' matrices", s->layers);
}

static bool list_vectors(struct extents *p, const jit_model *m, struct error *err)
{
	const struct weights *w = &m->weights;

	for (uint32_t i = 0; i + 1 < m->file.spec.layers && !m->ranks->by_rows; i++)
		for (int v = 0; v < VECTOR_SLOTS; v++) /* the first one of the next layer ends this one */
			if (w->layer[i + 1].vector[v]) {
				add(p, (uint64_t)((uintptr_t)w->layer[i + 1].vector[v] - (uintptr_t)w->vectors),
				    owner_of_layer(m->ranks, i));
				break;
			}
	add(p, w->vectors_bytes, m->ranks->by_rows ? 0 : m->ranks->carrier->size - 1);
	return !p->failed || error_set(err, ERROR_MEMORY, "no memory for a list of layers' vectors");
}

/* ---- sums */

struct summing {
	struct carrier *by;
	const uint8_t *from;
	struct record_sum so_far;
	int before; /* whose bytes were the last ones of this block; -1: none yet */
	uint64_t sum;
};

/* Bytes `begin` to `end` - 1 of block number `block`, of n bytes, which are the owner's. */
static bool sum_extent(struct summing *s, uint64_t block, uint64_t n, uint64_t begin, uint64_t end, unsigned owner,
                       struct error *err)
{
	const uint64_t left = end == block * FINGERPRINT_BLOCK + n ? n % RECORD_SUM_STEP : 0;
	const int before = s->before, own = (int)s->by->rank;

	s->before = (int)owner;
	if (before == own && owner != s->by->rank)
		return carrier_send(s->by, owner, &s->so_far, sizeof s->so_far, err);
	if (owner != s->by->rank)
		return true;
	if (before < 0)
		record_sum_begin(&s->so_far, n, block);
	else if (before != own && !carrier_receive(s->by, (unsigned)before, &s->so_far, sizeof s->so_far, err))
		return false;
	record_sum_add(&s->so_far, s->from + begin, end - begin - left);
	if (end == block * FINGERPRINT_BLOCK + n)
		s->sum = record_sum_end(&s->so_far, s->from + end - left, left);
	return true;
}

/* To rank 0, from the rank whose bytes were the last ones. */
static bool give_sum(struct summing *s, uint64_t *out, struct error *err)
{
	const unsigned last = (unsigned)s->before;

	if (s->by->rank == last && last != 0)
		return carrier_send(s->by, 0, &s->sum, sizeof s->sum, err);
	if (s->by->rank == 0 && last != 0)
		return carrier_receive(s->by, last, out, sizeof *out, err);
	if (s->by->rank == 0)
		*out = s->sum;
	return true;
}

static bool sum_blocks(struct carrier *by, const uint8_t *from, uint64_t bytes, const struct extents *p, uint64_t *out,
                       struct error *err)
{
	struct summing s = { .by = by, .from = from };
	size_t extent = 0;

	for (uint64_t block = 0; block * FINGERPRINT_BLOCK < bytes; block++) {
		const uint64_t at = block * FINGERPRINT_BLOCK,
			       n = bytes - at < FINGERPRINT_BLOCK ? bytes - at : FINGERPRINT_BLOCK;
		s.before = -1;
		for (uint64_t begin = at, end; begin < at + n; begin = end) {
			while (p->at[extent].end <= begin)
				extent++;
			end = p->at[extent].end < at + n ? p->at[extent].end : at + n;
			if (!sum_extent(&s, block, n, begin, end, p->at[extent].owner, err))
				return false;
		}
		if (!give_sum(&s, out ? &out[block] : NULL, err))
			return false;
	}
	return true;
}

bool fingerprint_blocks(const jit_model *m, uint64_t **sums, struct error *err)
{
	const struct weights *w = &m->weights;
	const uint64_t matrices = (w->packed_bytes + FINGERPRINT_BLOCK - 1) / FINGERPRINT_BLOCK,
		       vectors = (w->vectors_bytes + FINGERPRINT_BLOCK - 1) / FINGERPRINT_BLOCK;
	struct carrier *by = m->ranks->carrier;
	struct extents of_matrices = { 0 }, of_vectors = { 0 };
	uint64_t *all = by->rank ? NULL : calloc(matrices + vectors + 1, sizeof *all);
	bool ok =
		by->rank || all ||
		error_set(err, ERROR_MEMORY, "no memory for %llu checksums", (unsigned long long)(matrices + vectors));

	ok = ok && list_matrices(&of_matrices, m, err) && list_vectors(&of_vectors, m, err) &&
	     sum_blocks(by, w->arena, w->packed_bytes, &of_matrices, all, err) &&
	     sum_blocks(by, (const uint8_t *)w->vectors, w->vectors_bytes, &of_vectors, all ? all + matrices : NULL,
	                err);
	free(of_matrices.at);
	free(of_vectors.at);
	if (!ok) {
		free(all);
		all = NULL;
	}
	*sums = all;
	return ok;
}
