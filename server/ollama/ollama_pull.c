/* server/ollama/ollama_pull.c - /api/pull: what the program that fetches a model says goes to the client, line by
 * line. */
#include <stdlib.h>
#include <string.h>

#include "server/api/endpoints.h"
#include "server/control/fetch.h"
#include "server/request/fields.h"
#include "server/ollama/ollama.h"
#include "server/http/server.h"

static void send_line(struct reply *r, const char *text, size_t n)
{
	if (!r->events)
		return;
	bytes_add(&r->out, text, n);
	bytes_text(&r->out, "\n");
}

static void take(struct reply *r, const struct answer_event *event, const jit_logprob *top, const char *text)
{
	(void)top;
	if (event->kind == EVENT_TOKEN)
		send_line(r, text, event->n_text);
}

static void end(struct reply *r)
{
	static const char success[] = "{\"status\":\"success\"}";

	bytes_text(&r->out, success);
	if (r->events)
		bytes_text(&r->out, "\n");
}

static void fail(struct reply *r, const struct refusal *why)
{
	bytes_take(&r->out, refusal_json_ollama(why));
	bytes_text(&r->out, "\n");
}

/* The last thing that was said would be no more true: there is a status that says nothing. */
static void stay_alive(struct reply *r)
{
	static const char waits[] = "{\"status\":\"waiting\"}";

	send_line(r, waits, sizeof waits - 1);
}

static void close_reply(struct reply *r) { free(r); }

static const struct reply_kind pull_kind = { take, end, fail, close_reply };

/* ---- the request */

static bool begin(struct exchange *x, const char *name, bool events)
{
	struct reply *r = calloc(1, sizeof *r);

	if (!r || !(r->stream = stream_open(1, (size_t)x->server->o.unread_bytes, !events))) {
		free(r);
		return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	}
	r->kind = &pull_kind;
	r->events = events;
	r->events_type = "application/x-ndjson";
	r->idle = stay_alive;
	if (fetch_start(x, name, r->stream, events)) {
		exchange_reads_no_models(x); /* it may take hours */
		x->reply = r;
		return true;
	}
	reply_close(r);
	return false;
}

bool answer_ollama_pull(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal);
	struct refusal *r = &x->refusal;
	const char *name = NULL;
	bool stream = true, insecure = false, ok = false;

	if (body && field_text(body, "model", &name, r) && (name || field_text(body, "name", &name, r)) &&
	    field_flag(body, "stream", &stream, r) && field_flag(body, "insecure", &insecure, r)) {
		if (!name)
			refuse(r, 400, "model", "model is missing, expected hf.co/OWNER/NAME[:QUANT]");
		else if (fetch_allowed(x, name) && insecure)
			refuse(r, 400, "insecure", "insecure is not supported: models come over HTTPS alone");
		else
			ok = r->status == 0 && begin(x, name, stream);
	}
	json_decref(body);
	return ok;
}
