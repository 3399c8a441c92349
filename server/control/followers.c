/* server/control/followers.c - the clients that wait for one fetch of a model. */
#include "server/control/followers.h"

#include <stdlib.h>
#include <string.h>

enum { LINES_MAX = 80 }; /* that are kept: some for files, some for the steps around them */

struct follower {
	struct answer_stream *stream;
	bool lines;
	struct follower *next;
};

static void put_line(struct follower *f, const char *line)
{
	const struct answer_event r = { .kind = EVENT_TOKEN, .id = -1, .n_text = (uint32_t)strlen(line) };

	stream_put(f->stream, &r, NULL, line);
}

bool followers_add(struct followers *all, struct answer_stream *stream, bool lines)
{
	struct follower *f = calloc(1, sizeof *f), **at = &all->first;
	const char *about;
	json_t *line;

	if (!f)
		return false;
	f->stream = stream;
	f->lines = lines;
	stream_hold(stream);
	while (*at)
		at = &(*at)->next;
	*at = f;
	if (lines)
		json_object_foreach(all->lines, about, line) put_line(f, json_string_value(line));
	return true;
}

void followers_tell(struct followers *all, const char *about, const char *line)
{
	if (!all->lines)
		all->lines = json_object();
	if (json_object_get(all->lines, about) || json_object_size(all->lines) < LINES_MAX)
		json_object_set_new(all->lines, about, json_string(line));
	for (struct follower *f = all->first; f; f = f->next)
		if (f->lines)
			put_line(f, line);
}

void followers_end(struct followers *all, const struct answer_event *r, const char *text)
{
	for (struct follower *f = all->first; f; f = f->next)
		stream_put(f->stream, r, NULL, text);
}

static void free_first(struct follower **at)
{
	struct follower *gone = *at;

	*at = gone->next;
	stream_release(gone->stream);
	free(gone);
}

/* What sleeps for a stream is woken by its last record, also if its client has gone. */
bool followers_remain(struct followers *all)
{
	const struct answer_event gone = { .kind = EVENT_ENDED, .id = -1 };

	for (struct follower **at = &all->first; *at;) {
		if (stream_is_cancelled((*at)->stream)) {
			stream_put((*at)->stream, &gone, NULL, NULL);
			free_first(at);
		} else {
			at = &(*at)->next;
		}
	}
	return all->first != NULL;
}

void followers_free(struct followers *all)
{
	while (all->first)
		free_first(&all->first);
	json_decref(all->lines);
}
