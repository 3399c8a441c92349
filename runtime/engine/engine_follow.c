/* runtime/engine/engine_follow.c - what a rank other than 0 does: as it is told, until it is told to end.
 *
 * Owns: the engines of such a rank, and reading what is told of a pass. A rank that cannot go on says why to all, which
 * ends them.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/numerics.h"
#include "runtime/engine/engine_ranks.h"
#include "runtime/model/adapters_ranks.h"
#include "runtime/model/fingerprint.h"

struct follower {
	struct follower *next;
	uint32_t number;
	struct engine engine;
};

struct following {
	jit_model *model;
	struct follower *engines;
	uint8_t *message; /* of a pass */
	size_t message_room;
	uint64_t *tables;
	size_t tables_room;
	struct plan_span span[ENGINE_SPANS_MAX];
	struct plan_sequence at[ENGINE_SPANS_MAX];
};

static struct follower *find(const struct following *f, uint32_t number)
{
	struct follower *e = f->engines;

	while (e && e->number != number)
		e = e->next;
	return e;
}

/* ---- engines */

static bool open_engine(struct following *f, uint32_t number, const struct engine_numbers *n, struct error *err)
{
	const jit_card_options card = { .size = sizeof card };
	const struct engine_options o = { .threads = (int)n->threads, .card = &card };
	struct follower *own = calloc(1, sizeof *own);

	if (!own)
		return error_set(err, ERROR_MEMORY, "no memory for an engine");
	own->number = number;
	own->next = f->engines;
	f->engines = own;
	own->engine = (struct engine){
		.model = f->model,
		.kv = n->kv,
		.context = n->context,
		.batch = n->batch,
		.tokens = n->tokens,
		.rows = n->rows,
		.drafts = n->drafts,
		.speculate = (enum speculate_mode)n->speculate,
		.exact = n->exact,
		.never_adapted = !n->adapted
	};
	return engine_open(&own->engine, &o, err);
}

static void close_engine(struct following *f, uint32_t number)
{
	for (struct follower **at = &f->engines; *at; at = &(*at)->next) {
		struct follower *own = *at;
		if (own->number != number)
			continue;
		*at = own->next;
		engine_close(&own->engine);
		free(own);
		return;
	}
}

/* Tells rank 0 what became of it. */
static bool take_engine(struct following *f, const struct ranks_command *c, struct error *err)
{
	struct ranks *r = f->model->ranks;
	struct engine_numbers n;
	struct error e = { 0 };

	if (c->bytes != sizeof n)
		return error_set(err, ERROR_FORMAT, "an engine is described in %llu bytes, and %zu are expected",
		                 (unsigned long long)c->bytes, sizeof n);
	if (!carrier_broadcast(r->carrier, 0, &n, sizeof n, err))
		return false;
	if (!open_engine(f, c->number, &n, &e))
		close_engine(f, c->number);
	return ranks_reply(r, &e, err);
}

static bool take_memory(struct following *f, const struct ranks_command *c, struct error *err)
{
	struct ranks *r = f->model->ranks;
	struct error e = { 0 };

	ranks_take_memory(r, f->model->device, c, &e);
	return ranks_reply(r, &e, err);
}

static bool copy(const struct following *f, const struct ranks_command *c, struct error *err)
{
	uint8_t *to = ranks_at(f->model->ranks, c->to);
	const uint8_t *from = ranks_at(f->model->ranks, c->from);

	if (!to || !from)
		return error_set(err, ERROR_FORMAT, "a copy of %llu bytes names memory that is not there",
		                 (unsigned long long)c->bytes);
	memmove(to, from, (size_t)c->bytes);
	return true;
}

/* ---- passes */

static bool make_room(void **at, size_t *room, size_t bytes, struct error *err)
{
	if (bytes <= *room)
		return true;
	void *more = realloc(*at, bytes);
	if (!more)
		return error_set(err, ERROR_MEMORY, "no memory for what is told of a pass");
	*at = more;
	*room = bytes;
	return true;
}

/* Whether as many bytes were told as the pass says that it has. */
static bool is_whole(const struct engine_pass *head, size_t bytes, uint32_t tables)
{
	const struct engine_span *s = (const struct engine_span *)(head + 1);
	size_t need = sizeof *head;

	if (bytes < need || head->spans < 1 || head->spans > ENGINE_SPANS_MAX || head->sets > ADAPT_SETS ||
	    bytes < (need += head->spans * sizeof *s + head->sets * sizeof(struct adapt_set)))
		return false;
	for (uint32_t i = 0; i < head->spans; i++) {
		need += (size_t)tables * s[i].pages * sizeof(ranks_address);
		if (s[i].set && s[i].set >= head->sets)
			return false;
	}
	return bytes == need;
}

static const ranks_address *take_table(uint64_t **to, const struct ranks *r, const ranks_address *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		*(*to)++ = (uintptr_t)ranks_at(r, *from++);
	return from;
}

/* Where its sequences have what, their angles, and their adapters. A text begins with states of zeros, which rank 0 has
 * in its own memory. */
static void take_sequences(struct following *f, struct engine *e, const struct engine_pass *head)
{
	const struct ranks *r = f->model->ranks;
	const struct plan_buffers *buf = &e->memory.buf;
	const struct engine_span *s = (const struct engine_span *)(head + 1);
	const ranks_address *from = (const ranks_address *)(s + head->spans);
	uint64_t *to = f->tables;

	for (uint32_t i = 0; i < head->spans; i++) {
		uint8_t *before = ranks_at(r, s[i].before);
		f->span[i] = s[i].span;
		f->at[i] = (struct plan_sequence){
			.position = s[i].position, .pages = to, .before = before, .behind = ranks_at(r, s[i].behind)
		};
		from = take_table(&to, r, from, s[i].pages);
		f->at[i].window_pages = to;
		if (e->kv.window_page_bytes)
			from = take_table(&to, r, from, s[i].pages);
		if (before && s[i].position == 0)
			memset(before, 0, (size_t)plan_state_bytes(&f->model->file.spec));
		rope_fill(&e->rope, buf->cos, buf->sin, buf->tokens, s[i].span.first, s[i].position, s[i].span.tokens);
		e->set_of[i] = (int32_t)s[i].set;
	}
	engine_adapt_as_told(e, (const struct adapt_set *)from, head->sets);
}

static bool read_pass(struct following *f, const struct engine *e, const struct ranks_command *c,
                      const struct engine_pass **head, struct error *err)
{
	void *message = f->message, *tables;

	if (!make_room(&message, &f->message_room, (size_t)c->bytes, err))
		return false;
	f->message = message;
	if (!carrier_broadcast(f->model->ranks->carrier, 0, f->message, (size_t)c->bytes, err))
		return false;
	*head = message;
	if (!is_whole(*head, (size_t)c->bytes, e->kv.window_page_bytes ? 2 : 1) || (*head)->tokens > e->tokens ||
	    (*head)->tokens < 1 || (*head)->logits > PLAN_ALL_LOGITS || ((*head)->sets && !e->adapted))
		return error_set(err, ERROR_FORMAT, "what is told of a pass is not whole");
	tables = f->tables;
	if (!make_room(&tables, &f->tables_room, (size_t)c->bytes, err))
		return false;
	f->tables = tables;
	return true;
}

static struct plan *find_plan(const struct following *f, struct engine *e, const struct engine_pass *head,
                              struct error *err)
{
	struct plan *p;

	if ((head->joint || head->logits == PLAN_ALL_LOGITS) && !engine_map_all_logits(e, err))
		return NULL;
	p = head->joint ? engine_find_joint(e, f->span, head->spans, head->normed, err)
	                : engine_find_plan(e, head->tokens, head->position, (enum plan_logits)head->logits,
	                                   (enum profile_pass)head->kind, err);
	if (!p)
		error_set(err, ERROR_DEVICE, "there is no plan of such a pass: this is a fault of jitrun");
	return p;
}

static bool run_pass(struct following *f, const struct ranks_command *c, struct error *err)
{
	struct follower *own = find(f, c->number);
	const struct engine_pass *head;

	if (!own)
		return error_set(err, ERROR_FORMAT, "there is no engine %u", c->number);
	if (!read_pass(f, &own->engine, c, &head, err))
		return false;
	take_sequences(f, &own->engine, head);
	struct plan *p = find_plan(f, &own->engine, head, err);
	if (!p)
		return false;
	plan_set_sequences(p, f->at);
	engine_set_tiles(&own->engine, p);
	return engine_run_share(&own->engine, p, err);
}

static bool obey(struct following *f, const struct ranks_command *c, struct error *err)
{
	switch ((enum ranks_what)c->what) {
	case RANKS_ENGINE: return take_engine(f, c, err);
	case RANKS_ENGINE_CLOSE: close_engine(f, c->number); return true;
	case RANKS_MEMORY: return take_memory(f, c, err);
	case RANKS_MEMORY_CLOSE: ranks_drop_memory(f->model->ranks, f->model->device, c->number); return true;
	case RANKS_COPY: return copy(f, c, err);
	case RANKS_PASS: return run_pass(f, c, err);
	case RANKS_ADAPTERS:
	case RANKS_ADAPTER:
	case RANKS_ADAPTER_CLOSE: return adapters_follow(f->model, c, err);
	case RANKS_FINGERPRINT: return model_fingerprint_follow(f->model, err);
	case RANKS_COLLECT:
	case RANKS_SPREAD: return engine_kept_follow(f->model, c, err);
	case RANKS_END: return true;
	}
	return error_set(err, ERROR_FORMAT, "command %u is not known", c->what);
}

bool model_follow(jit_model *m, struct error *err)
{
	struct following *f = calloc(1, sizeof *f);
	struct ranks_command c = { .what = RANKS_COPY };
	bool ok = f || error_set(err, ERROR_MEMORY, "no memory to compute what is told");

	if (f)
		f->model = m;
	while (ok && c.what != RANKS_END)
		ok = carrier_broadcast(m->ranks->carrier, 0, &c, sizeof c, err) && obey(f, &c, err);
	while (f && f->engines)
		close_engine(f, f->engines->number);
	while (m->ranks->n_memory)
		ranks_drop_memory(m->ranks, m->device, m->ranks->memory[0].number);
	if (f) {
		free(f->message);
		free(f->tables);
	}
	free(f);
	return ok;
}
