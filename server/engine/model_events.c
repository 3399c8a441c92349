/* server/engine/model_events.c - what happens to models, told to all clients that listen. */
#include "server/engine/model_events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json_write.h"
#include "server/engine/stream.h"

struct listener_of_events {
	struct answer_stream *stream; /* held */
	struct listener_of_events *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct listener_of_events *first;
static bool over;

/* ---- who listens */

struct answer_stream *model_events_listen(size_t unread)
{
	struct listener_of_events *l = malloc(sizeof *l);
	struct answer_stream *s = l ? stream_open(1, unread, false) : NULL;

	if (!s) {
		free(l);
		return NULL;
	}
	stream_wakes_when_cancelled(s);
	pthread_mutex_lock(&lock);
	const bool ended = over;
	if (!ended) {
		stream_hold(s);
		*l = (struct listener_of_events){ s, first };
		first = l;
	}
	pthread_mutex_unlock(&lock);
	if (!ended)
		return s;
	stream_release(s);
	free(l);
	return NULL;
}

void model_events_leave(struct answer_stream *s)
{
	struct listener_of_events **at = &first, *l;

	pthread_mutex_lock(&lock);
	while ((l = *at) && l->stream != s)
		at = &l->next;
	if (l)
		*at = l->next;
	pthread_mutex_unlock(&lock);
	if (l) {
		stream_release(l->stream);
		free(l);
	}
}

bool model_events_heard(void)
{
	pthread_mutex_lock(&lock);
	const bool heard = first != NULL;
	pthread_mutex_unlock(&lock);
	return heard;
}

/* ---- what they hear */

/* text NULL: it is lost, and so are they. */
static void send(const char *text, size_t n)
{
	const struct answer_event r = { .kind = EVENT_TOKEN, .id = -1, .n_text = (uint32_t)n };

	pthread_mutex_lock(&lock);
	for (struct listener_of_events *l = first; l; l = l->next) {
		if (text)
			stream_put(l->stream, &r, NULL, text);
		else
			stream_drop(l->stream);
	}
	pthread_mutex_unlock(&lock);
}

/* Takes over o; NULL: there was no memory for it. */
static void send_json(json_t *o)
{
	char *text = o ? json_spell(o, JSON_COMPACT) : NULL;
	struct bytes b = { 0 };

	if (text) {
		bytes_text(&b, "data: ");
		bytes_text(&b, text);
		bytes_text(&b, "\n\n");
	}
	send(text && !b.lost ? b.p : NULL, b.n);
	bytes_free(&b);
	free(text);
	json_decref(o);
}

/* A file's name need not be UTF-8. */
static json_t *name_json(const char *model) { return json_text(model, strlen(model)); }

void model_events_tell(const char *model, const char *event)
{
	if (model_events_heard())
		send_json(json_pack("{s:o, s:s}", "model", name_json(model), "event", event));
}

void model_events_tell_data(const char *model, const char *event, json_t *data)
{
	if (model_events_heard())
		send_json(data ? json_pack("{s:o, s:s, s:O}", "model", name_json(model), "event", event, "data", data)
		               : NULL);
	json_decref(data);
}

void model_events_list_changed(void) { model_events_tell("*", "models_reload"); }

void model_events_end(void)
{
	const struct answer_event r = { .kind = EVENT_ENDED };

	pthread_mutex_lock(&lock);
	for (struct listener_of_events *l = first; l && !over; l = l->next)
		stream_put(l->stream, &r, NULL, NULL);
	over = true;
	pthread_mutex_unlock(&lock);
}
