/* runtime/batch_memory.c - the memory that the sessions of a batch keep their tokens in.
 *
 * Owns: who has memory, and how much of it counts, in pages of one chunk (128 positions of all layers) and what a
 * session needs in any case. Addresses are reserved for a whole context at once where the system gives memory only as
 * it is touched. What a closed session computed is remembered until others need the room, the one that was not asked
 * for the longest goes first. A new session takes over what was computed for its first tokens: as it lies there, where
 * nobody else has it and most of it agrees, else a copy.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernels-templates/numerics.h"
#include "runtime/batch.h"
#include "runtime/host/system.h"
#include "runtime/session_kv.h"

/* Of what is free, where the host's memory is asked; else so many sessions. */
enum { SHARE_OF_FREE = 2, SESSIONS_ON_CARDS = 4 };

bool batch_memory_open(struct jit_batch *b, uint64_t bytes, struct error *err)
{
	const struct engine *e = &b->engine;
	struct session_memory m = { .kv.type = e->kv.type };

	session_memory_measure(&m, &b->model->file.spec, e->tokens, b->context);
	b->page_bytes = m.kv.page_bytes;
	b->fixed_bytes = session_memory_fixed_bytes(&m);
	b->budget = bytes                               ? bytes
	            : b->model->device->facts.host_runs ? system_available_memory() / SHARE_OF_FREE
	                                                : m.kv_bytes * SESSIONS_ON_CARDS;
	return batch_bytes(b, 1) <= b->budget ||
	       error_set(err, ERROR_MEMORY,
	                 "kv_bytes: %llu are less than the %llu that the first tokens of a session take",
	                 (unsigned long long)b->budget, (unsigned long long)batch_bytes(b, 1));
}

uint64_t batch_bytes(const struct jit_batch *b, size_t positions)
{
	return b->fixed_bytes + (positions + NUMERICS_CHUNK - 1) / NUMERICS_CHUNK * b->page_bytes;
}

/* ---- what is remembered */

static void forget(struct jit_batch *b, size_t i)
{
	struct batch_kept *k = &b->kept[i];

	b->used -= k->bytes;
	session_memory_close(&k->memory);
	free(k->ids);
	*k = b->kept[--b->n_kept];
}

void batch_memory_close(struct jit_batch *b)
{
	while (b->n_kept)
		forget(b, b->n_kept - 1);
	free(b->kept);
}

size_t jit_batch_forget(jit_batch *b, const int32_t *ids, size_t n)
{
	size_t before = b->n_kept;

	for (size_t i = b->n_kept; i-- > 0;) {
		const struct batch_kept *k = &b->kept[i];
		if (n == 0 || memcmp(k->ids, ids, (k->computed < n ? k->computed : n) * sizeof *ids) == 0)
			forget(b, i);
	}
	return before - b->n_kept;
}

static uint64_t kept_bytes(const struct jit_batch *b)
{
	uint64_t n = 0;

	for (size_t i = 0; i < b->n_kept; i++)
		n += b->kept[i].bytes;
	return n;
}

/* Until so many bytes more have room; spared: the number of one that stays. */
static bool forget_for(struct jit_batch *b, uint64_t bytes, size_t *spared)
{
	while (b->used + bytes > b->budget) {
		size_t oldest = b->n_kept;
		for (size_t i = 0; i < b->n_kept; i++)
			if (i != *spared && (oldest == b->n_kept || b->kept[i].used < b->kept[oldest].used))
				oldest = i;
		if (oldest == b->n_kept)
			return false;
		forget(b, oldest);
		if (*spared == b->n_kept) /* it moved to where that one was */
			*spared = oldest;
	}
	return true;
}

/* ---- beginnings */

struct beginning {
	const struct session_memory *memory; /* NULL: there is none */
	size_t tokens, computed, kept;       /* kept: its number; SIZE_MAX: another session's */
};

/* How many of the tokens others computed and still have all for, so that the next one can be computed. */
static size_t usable(const struct batch_member *m, const struct session_memory *from, const int32_t *ids, size_t n)
{
	const jit_session *s = m->session;
	size_t most = s->length - 1 < n ? s->length - 1 : n, same = 0;

	while (same < most && s->ids[same] == ids[same])
		same++;
	if (from->states.bytes)
		same = states_position(&from->states, states_find(&from->states, same));
	return session_memory_serves(&s->model->file.spec, same, from->window_first) ? same : 0;
}

static void consider(const struct batch_member *m, const struct session_memory *from, const int32_t *ids, size_t n,
                     size_t kept, struct beginning *best)
{
	size_t same = usable(m, from, ids, n);

	if (same > best->tokens)
		*best = (struct beginning){ from, same, n, kept };
}

static struct beginning find_beginning(const struct batch_member *m)
{
	const struct jit_batch *b = m->batch;
	struct beginning best = { .kept = SIZE_MAX };

	for (size_t i = 0; i < b->n_kept; i++)
		consider(m, &b->kept[i].memory, b->kept[i].ids, b->kept[i].computed, i, &best);
	for (size_t i = 0; i < b->n; i++) {
		const jit_session *other = b->member[i]->session;
		if (b->member[i] != m && b->member[i]->admitted)
			consider(m, &other->memory, other->ids, other->computed, SIZE_MAX, &best);
	}
	return best;
}

static bool copy_beginning(struct batch_member *m, const struct beginning *from, struct error *err)
{
	jit_session *s = m->session;
	const struct model_spec *spec = &s->model->file.spec;

	session_memory_begin_window(&s->memory, spec, from->tokens, from->memory->window_first);
	return kv_copy(&s->memory, from->memory, spec, from->tokens, from->tokens, err);
}

/* ---- who has memory */

static bool take_memory(struct batch_member *m, struct error *err)
{
	struct jit_batch *b = m->batch;
	jit_session *s = m->session;

	return session_memory_open(&s->memory, b->model->device, &b->model->file.spec, b->engine.tokens, b->context,
	                           SESSION_OWN_PAGES, err);
}

/* A member without memory gets it, with the beginning that was found. */
static bool admit(struct batch_member *m, uint64_t bytes, enum batch_beginning how, struct error *err)
{
	struct jit_batch *b = m->batch;
	jit_session *s = m->session;
	struct beginning from = { .kept = SIZE_MAX };
	if (how == BATCH_TAKE_OVER)
		from = find_beginning(m);
	bool mine = from.kept != SIZE_MAX && from.tokens * 2 >= from.computed;

	if (from.kept != SIZE_MAX && !mine && !forget_for(b, bytes, &from.kept))
		mine = true; /* no room for both */
	if (from.kept != SIZE_MAX)
		b->kept[from.kept].used = ++b->clock;
	if (mine) {
		struct batch_kept *k = &b->kept[from.kept];
		struct session_memory none = { .kv.type = k->memory.kv.type };
		s->memory = k->memory;
		k->memory = none;
		forget(b, from.kept);
		from.memory = NULL;
		from.kept = SIZE_MAX;
	}
	size_t nobody = from.kept;
	if (!forget_for(b, bytes, &nobody)) {
		session_memory_close(&s->memory);
		s->memory.kv.type = b->engine.kv.type;
		return false;
	}
	if (!mine && !take_memory(m, err))
		return false;
	if (from.kept != SIZE_MAX)
		from.memory = &b->kept[nobody].memory;
	m->admitted = true;
	m->bytes = bytes;
	b->used += bytes;
	if (from.memory && from.tokens && !copy_beginning(m, &from, err))
		return false;
	states_forget(&s->memory.states, from.tokens);
	s->computed = from.tokens;
	b->stats.reused_tokens += from.tokens;
	return true;
}

bool batch_grant(struct batch_member *m, size_t positions, enum batch_beginning how, struct error *err)
{
	struct jit_batch *b = m->batch;
	uint64_t bytes = batch_bytes(b, positions < b->context ? positions : b->context);
	size_t nobody = SIZE_MAX;

	if (m->admitted && bytes <= m->bytes)
		return true;
	if (b->used - m->bytes - kept_bytes(b) + bytes > b->budget)
		return false;
	if (!m->admitted)
		return admit(m, bytes, how, err);
	if (!forget_for(b, bytes - m->bytes, &nobody))
		return false;
	b->used += bytes - m->bytes;
	m->bytes = bytes;
	return true;
}

/* A closed session is remembered if it computed anything. */
static bool keep(struct batch_member *m)
{
	struct jit_batch *b = m->batch;
	jit_session *s = m->session;
	void *all = b->kept;
	int32_t *ids = malloc((s->computed + 1) * sizeof *ids);
	bool ok = ids && s->computed && array_grow(&all, &b->kept_capacity, b->n_kept + 1, sizeof *b->kept);

	b->kept = all;
	if (!ok) {
		free(ids);
		return false;
	}
	memcpy(ids, s->ids, s->computed * sizeof *ids);
	b->kept[b->n_kept++] = (struct batch_kept){
		.memory = s->memory, .ids = ids, .computed = s->computed, .bytes = m->bytes, .used = ++b->clock
	};
	return true;
}

void batch_release(struct batch_member *m, bool remember)
{
	jit_session *s = m->session;

	if (!m->admitted)
		return;
	if (!remember || !keep(m)) {
		m->batch->used -= m->bytes;
		session_memory_close(&s->memory);
	}
	s->memory = (struct session_memory){ .kv.type = m->batch->engine.kv.type };
	s->computed = 0;
	s->logits_valid = false;
	speculate_drop(&s->speculate);
	m->admitted = false;
	m->bytes = 0;
}

/* ---- making room */

static bool is_idle(const struct batch_member *m)
{
	const jit_session *s = m->session;

	return s->length == s->computed || m->told == s->length || m->error.code != ERROR_NONE;
}

/* Who makes room for a member: those that compute nothing now, else those that came after it; the last one first. */
static struct batch_member *find_victim(const struct batch_member *m)
{
	const struct jit_batch *b = m->batch;

	for (size_t i = b->n; i-- > 0;)
		if (b->member[i] != m && b->member[i]->admitted && is_idle(b->member[i]))
			return b->member[i];
	for (size_t i = b->n; i-- > 0 && b->member[i] != m;)
		if (b->member[i]->admitted)
			return b->member[i];
	return NULL;
}

bool batch_make_room(struct batch_member *m, size_t positions, enum batch_beginning how, struct error *err)
{
	struct jit_batch *b = m->batch;
	struct batch_member *victim;

	while (!batch_grant(m, positions, how, err)) {
		if (err->code || !(victim = find_victim(m)))
			return false;
		batch_release(victim, false);
		b->stats.set_back++;
	}
	return true;
}
