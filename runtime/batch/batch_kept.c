/* runtime/batch/batch_kept.c - what is remembered of a batch's closed sessions, and which beginning a new one takes
 * over.
 *
 * Owns: which of it goes first when others need the room: page by page from the end of what was not asked for the
 * longest. Where layers keep windows or states, which belong to the end of a text, all of it goes at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "runtime/batch/batch.h"
#include "runtime/session/session_kv.h"
#include "runtime/model/sized.h"

/* ---- forgetting */

static void drop_last(struct jit_batch *b, struct batch_kept *k)
{
	kv_pages_drop(&b->pages, k->pages.page[--k->pages.n], KV_REMEMBERS);
	if (k->computed > k->pages.n * NUMERICS_CHUNK)
		k->computed = k->pages.n * NUMERICS_CHUNK;
}

void batch_forget(struct jit_batch *b, size_t kept)
{
	struct batch_kept *k = &b->kept[kept];

	while (k->pages.n)
		drop_last(b, k);
	if (k->memory.device)
		kv_pages_give_back(&b->pages, b->fixed_bytes);
	session_memory_close(&k->memory);
	free(k->pages.page);
	free(k->ids);
	*k = b->kept[--b->n_kept];
}

bool batch_forget_some(struct jit_batch *b, size_t *spared)
{
	size_t oldest = b->n_kept;

	for (size_t i = 0; i < b->n_kept; i++)
		if (i != *spared && (oldest == b->n_kept || b->kept[i].used < b->kept[oldest].used))
			oldest = i;
	if (oldest == b->n_kept)
		return false;
	if (!b->fixed_bytes && b->kept[oldest].pages.n > 1) {
		drop_last(b, &b->kept[oldest]);
		return true;
	}
	batch_forget(b, oldest);
	if (*spared == b->n_kept) /* it moved to where that one was */
		*spared = oldest;
	return true;
}

uint64_t batch_kept_fixed(const struct jit_batch *b) { return b->n_kept * b->fixed_bytes; }

size_t jit_batch_forget(jit_batch *b, const int32_t *ids, size_t n)
{
	if (!b || (n && !ids))
		return 0;
	size_t before = b->n_kept;

	for (size_t i = b->n_kept; i-- > 0;) {
		const struct batch_kept *k = &b->kept[i];
		if (n == 0 || memcmp(k->ids, ids, (k->computed < n ? k->computed : n) * sizeof *ids) == 0)
			batch_forget(b, i);
	}
	return before - b->n_kept;
}

/* ---- remembering */

/* What says no more than the new one does. */
static void forget_beginnings(struct jit_batch *b, const jit_session *s)
{
	for (size_t i = b->n_kept; i-- > 0;)
		if (b->kept[i].computed <= s->computed && b->kept[i].adapters == s->adapters.root &&
		    memcmp(b->kept[i].ids, session_keys(s), b->kept[i].computed * sizeof *s->ids) == 0)
			batch_forget(b, i);
}

/* Whether all of it is remembered of another session. */
static bool is_known(struct jit_batch *b, const jit_session *s)
{
	for (size_t i = 0; i < b->n_kept; i++)
		if (b->kept[i].computed >= s->computed && b->kept[i].adapters == s->adapters.root &&
		    memcmp(b->kept[i].ids, session_keys(s), s->computed * sizeof *s->ids) == 0) {
			b->kept[i].used = ++b->clock;
			return true;
		}
	return false;
}

static bool has_room(struct jit_batch *b)
{
	void *all = b->kept;
	bool ok = array_grow(&all, &b->kept_capacity, b->n_kept + 1, sizeof *b->kept);

	b->kept = all;
	return ok;
}

bool batch_remember(struct jit_batch *b, const struct batch_kept *k)
{
	if (!has_room(b))
		return false;
	b->kept[b->n_kept] = *k;
	b->kept[b->n_kept++].used = ++b->clock;
	return true;
}

bool batch_keep(struct batch_member *m)
{
	struct jit_batch *b = m->batch;
	jit_session *s = m->session;

	if (!s->computed || (!b->fixed_bytes && is_known(b, s)))
		return false;
	int32_t *ids = malloc((s->computed + 1) * sizeof *ids);
	if (!ids || !has_room(b)) {
		free(ids);
		return false;
	}
	memcpy(ids, session_keys(s), s->computed * sizeof *ids);
	batch_pages_keep(m, kv_chunks(s->computed));
	for (size_t i = 0; i < m->pages.n; i++) {
		kv_pages_hold(&b->pages, m->pages.page[i], KV_REMEMBERS);
		kv_pages_drop(&b->pages, m->pages.page[i], KV_USES);
	}
	if (!b->fixed_bytes)
		forget_beginnings(b, s);
	struct batch_kept *k = &b->kept[b->n_kept++];
	*k = (struct batch_kept){
		.pages = m->pages, .ids = ids, .computed = s->computed, .adapters = s->adapters.root, .used = ++b->clock
	};
	if (b->fixed_bytes)
		k->memory = s->memory;
	else
		session_memory_close(&s->memory);
	m->pages = (struct batch_pages){ 0 };
	return true;
}

/* ---- beginnings */

/* A text that was computed, and all that is there for it. */
struct text {
	const struct session_memory *memory;
	const struct batch_pages *pages;
	const int32_t *ids;
	size_t computed;
	uint64_t adapters;
};

/* How many of the tokens are the same, of which the first `known` are. */
static size_t same_tokens(const struct batch_member *m, const struct text *from, size_t known)
{
	const jit_session *s = m->session;
	const int32_t *keys = session_keys(s);
	size_t max = s->length - 1 < from->computed ? s->length - 1 : from->computed, same = known < max ? known : max;

	if (from->adapters != s->adapters.root)
		return 0;
	while (same < max && keys[same] == from->ids[same])
		same++;
	return same;
}

/* How many of them others still have all for, so that the next one can be computed. */
static size_t usable(const struct batch_member *m, const struct text *from, size_t same)
{
	const jit_session *s = m->session;

	if (!m->batch->fixed_bytes)
		return same;
	if (from->memory->states.bytes)
		same = states_position(&from->memory->states, states_find(&from->memory->states, same));
	return session_memory_serves(&s->model->file.spec, same, from->memory->window_first) ? same : 0;
}

/* The last of the published pages that hold the text's first tokens, and how many they are. */
static const struct kv_page *find_pages(const struct batch_member *m, size_t *chunks)
{
	const jit_session *s = m->session;
	const struct kv_page *last = NULL, *next = NULL;
	const int32_t *keys = session_keys(s);

	for (*chunks = 0; (*chunks + 1) * NUMERICS_CHUNK < s->length; ++*chunks, last = next)
		if (!(next = kv_pages_find(&m->batch->pages, last ? last->number : s->adapters.root,
		                           keys + *chunks * NUMERICS_CHUNK)))
			break;
	return last;
}

static void consider(const struct batch_member *m, const struct text *from, size_t kept, size_t known,
                     struct batch_found *best)
{
	size_t same = same_tokens(m, from, known), tokens = usable(m, from, same);
	size_t max = same > best->same ? same : best->same;

	if (tokens > best->tokens)
		*best = (struct batch_found){ from->memory, from->pages, tokens, from->computed, kept, max };
	best->same = max;
}

/* The session that has the most of it. Only who holds the last of the pages that are known can have more than these. */
struct batch_found batch_find_beginning(const struct batch_member *m)
{
	const struct jit_batch *b = m->batch;
	struct batch_found best = { .kept = SIZE_MAX };
	size_t known;
	const struct kv_page *last = find_pages(m, &known);

	for (size_t i = 0; i < b->n_kept; i++) {
		const struct batch_kept *k = &b->kept[i];
		if (!last || (k->pages.n >= known && k->pages.page[known - 1] == last))
			consider(m, &(struct text){ &k->memory, &k->pages, k->ids, k->computed, k->adapters }, i,
			         known * NUMERICS_CHUNK, &best);
	}
	for (size_t i = 0; i < b->n; i++) {
		const struct batch_member *o = b->member[i];
		const jit_session *s = o->session;
		if (o != m && o->admitted && (!last || (o->pages.n >= known && o->pages.page[known - 1] == last)))
			consider(m,
			         &(struct text){ &s->memory, &o->pages, session_keys(s), s->computed,
			                         s->adapters.root },
			         SIZE_MAX, known * NUMERICS_CHUNK, &best);
	}
	return best;
}
