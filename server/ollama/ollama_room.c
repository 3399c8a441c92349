/* server/ollama/ollama_room.c - "truncate" and "shift" of ollama's API: what becomes of a text for which the context is
 * too small.
 *
 * Owns: which tokens stay. With "truncate" a conversation loses its oldest messages (conversation.h); where that is not
 * enough, or there is no conversation, the tokens behind the first num_keep go, as many as it takes. With "shift" an
 * answer goes on where the context is full, and half of the tokens behind the first num_keep go each time.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "server/engine/batcher.h"
#include "server/request/fields.h"
#include "server/ollama/ollama.h"

enum {
	KEEP = 4,     /* where a request says nothing */
	CONTEXTS = 10 /* tokens of an answer that shifts, at most, in contexts: else a model might never end */
};

bool ollama_read_room(struct ollama_request *q, struct refusal *r)
{
	json_t *body = q->body;
	const int64_t context = batcher_context(q->model->batcher);

	q->room = context;
	if (!field_flag(body, "truncate", &q->truncates, r) || !field_flag(body, "shift", &q->shifts, r) ||
	    (!q->context && (!field_integer(body, "n_ctx", 0, INT_MAX, &q->room, r) ||
	                     !field_integer(body, "num_ctx", 0, INT_MAX, &q->room, r))))
		return false;
	q->room = q->context ? q->context : q->room ? q->room : context;
	q->room = q->room < context ? q->room : context;
	json_object_del(body, "truncate");
	json_object_del(body, "shift");
	return true;
}

bool ollama_read_keep(struct ollama_request *q, json_t *options, struct refusal *r)
{
	q->num_keep = KEEP;
	if (!field_integer(options, "num_keep", -1, INT_MAX, &q->num_keep, r))
		return false;
	json_object_del(options, "num_keep");
	return true;
}

/* Of n tokens those at the beginning that stay; one that begins all texts counts apart. */
static size_t kept(const struct ollama_request *q, const int32_t *ids, size_t n)
{
	const int32_t first = models_first_token(q->model);
	size_t keep = q->num_keep < 0 ? n : (size_t)q->num_keep + (n && first >= 0 && ids[0] == first);

	return keep < (size_t)q->room ? keep : (size_t)q->room - 1;
}

void ollama_cut(const struct ollama_request *q, struct conversation *c)
{
	if (!q->truncates || c->shown.images || c->n_ids <= (size_t)q->room)
		return;
	const size_t keep = kept(q, c->ids, c->n_ids), left = (size_t)q->room - keep;

	memmove(c->ids + keep, c->ids + c->n_ids - left, left * sizeof *c->ids);
	c->n_ids = keep + left;
}

void ollama_set_room(const struct ollama_request *q, struct task *t)
{
	/* ollama gives a model no larger context than it has, either. */
	if (q->context)
		t->context = q->room;
	if (!q->shifts)
		return;
	t->context = q->room;
	t->shifts = true;
	t->keeps = kept(q, t->ids, t->n_ids);
	if (t->max < 0 || t->max > CONTEXTS * q->room)
		t->max = CONTEXTS * q->room;
}
