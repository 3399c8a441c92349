/* server/http/reply.c - how records become what a client reads. */
#include "server/http/reply.h"

#include <stdio.h>

#include "base/json_write.h"

/* Whether all records could be taken. */
static bool take_records(struct reply *r, struct refusal *why)
{
	struct answer_event item;
	const jit_logprob *top;
	const char *text;

	while ((!r->events || r->out.at == r->out.n) && stream_take(r->stream, &item, &top, &text)) {
		if (item.kind == EVENT_FAILED) {
			char param[sizeof why->param];
			snprintf(param, sizeof param, "%.*s", (int)item.n_param, text);
			refuse(why, item.status, *param ? param : NULL, "%.*s", (int)(item.n_text - item.n_param),
			       text + item.n_param);
			return false;
		}
		if (item.kind == EVENT_IDLE && r->idle)
			r->idle(r);
		else if (item.kind == EVENT_IDLE)
			bytes_text(&r->out, ": alive\n\n");
		else
			r->kind->take(r, &item, top, text);
	}
	if (!r->ended && stream_is_over(r->stream)) {
		r->ended = true;
		r->kind->end(r);
	}
	return true;
}

/* A thread writes the JSON of many replies in turn: what one of them lacks is its own loss, and not the next one's. */
bool reply_advance(struct reply *r, struct refusal *why)
{
	json_lacks();
	bool ok = take_records(r, why);
	if (json_lacks())
		r->out.lost = true;
	return ok;
}

void reply_close(struct reply *r)
{
	if (!r)
		return;
	if (r->stream) {
		stream_leave(r->stream);
		stream_release(r->stream);
	}
	bytes_free(&r->out);
	r->kind->close(r);
}
