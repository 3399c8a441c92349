/* server/http/reply.c - how records become what a client reads. */
#include "server/http/reply.h"

#include <stdio.h>

#include "base/json_write.h"

/* Whether all records could be taken. */
static bool take_records(struct reply *r, struct refusal *why)
{
	struct record record;
	const jit_logprob *top;
	const char *text;

	while ((!r->events || r->out.at == r->out.n) && stream_take(r->stream, &record, &top, &text)) {
		if (record.kind == RECORD_FAILED) {
			char param[sizeof why->param];
			snprintf(param, sizeof param, "%.*s", (int)record.n_param, text);
			refuse(why, record.status, *param ? param : NULL, "%.*s", (int)(record.n_text - record.n_param),
			       text + record.n_param);
			return false;
		}
		if (record.kind == RECORD_IDLE && r->idle)
			r->idle(r);
		else if (record.kind == RECORD_IDLE)
			bytes_text(&r->out, ": alive\n\n");
		else
			r->kind->take(r, &record, top, text);
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
