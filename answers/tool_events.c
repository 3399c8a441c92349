/* answers/tool_events.c - what becomes known of a text with calls of tools, in the order in which it does. */
#include "answers/tool_events.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

void tool_events_clear(struct tool_events *e)
{
	e->n_events = 0;
	bytes_clear(&e->text);
}

void tool_events_free(struct tool_events *e)
{
	for (size_t i = 0; i < e->n; i++) {
		free(e->call[i].name);
		free(e->call[i].said);
		bytes_free(&e->call[i].arguments);
	}
	free(e->call);
	free(e->event);
	bytes_free(&e->text);
	*e = (struct tool_events){ 0 };
}

/* What goes on where the last one ended is one with it. */
static void add(struct tool_events *e, struct tool_event event)
{
	struct tool_event *last = e->n_events ? &e->event[e->n_events - 1] : NULL;

	if (last && last->kind == event.kind && (event.kind == TOOL_TEXT || event.kind == TOOL_DELTA) &&
	    last->call == event.call)
		last->n += event.n;
	else if (array_grow((void **)&e->event, &e->event_capacity, e->n_events + 1, sizeof *e->event))
		e->event[e->n_events++] = event;
	else
		e->lost = true;
}

void tool_events_text(struct tool_events *e, const char *p, size_t n)
{
	const size_t from = e->text.n;

	if (n == 0)
		return;
	bytes_add(&e->text, p, n);
	if (e->text.lost)
		e->lost = true; /* no event tells of bytes that are not there */
	else
		add(e, (struct tool_event){ TOOL_TEXT, 0, from, n });
}

void tool_events_begin(struct tool_events *e, char *name)
{
	if (!name || !array_grow((void **)&e->call, &e->capacity, e->n + 1, sizeof *e->call)) {
		e->lost = true;
		free(name);
		return;
	}
	e->call[e->n++] = (struct tool_call){ .name = name };
	e->n_pending = 0;
	add(e, (struct tool_event){ TOOL_BEGINS, e->n - 1, 0, 0 });
}

/* How many bytes a character has that begins so; 1 where none does. */
static unsigned length_of(unsigned char lead) { return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1; }

/* The bytes that wait, up to those that can still become a character. */
static void settle(struct tool_events *e, struct bytes *out, bool ends)
{
	uint32_t code;

	while (e->n_pending) {
		unsigned length = text_char(e->pending, e->n_pending, &code);
		bool grows = !ends && length == 0 && e->n_pending < length_of((unsigned char)e->pending[0]);
		for (unsigned i = 1; i < e->n_pending && grows; i++)
			grows = ((unsigned char)e->pending[i] & 0xc0) == 0x80;
		if (grows)
			return;
		bytes_add(out, length ? e->pending : "\xef\xbf\xbd", length ? length : 3);
		length = length ? length : 1;
		memmove(e->pending, e->pending + length, e->n_pending - length);
		e->n_pending -= length;
	}
}

void tool_events_put(struct tool_events *e, const char *p, size_t n)
{
	if (e->lost || e->n == 0)
		return;
	struct bytes *out = &e->call[e->n - 1].arguments;
	size_t from = out->n;

	for (size_t i = 0; i < n; i++) {
		if (e->n_pending || (unsigned char)p[i] >= 0x80) {
			e->pending[e->n_pending++] = p[i];
			settle(e, out, false);
		} else {
			bytes_add(out, p + i, 1);
		}
	}
	if (out->n > from)
		add(e, (struct tool_event){ TOOL_DELTA, e->n - 1, from, out->n - from });
	e->lost = e->lost || out->lost;
}

void tool_events_end(struct tool_events *e, bool whole)
{
	if (e->lost || e->n == 0)
		return;
	struct bytes *out = &e->call[e->n - 1].arguments;
	size_t from = out->n;

	/* Of an answer that was cut, half a character is left out. */
	if (whole)
		settle(e, out, true);
	e->n_pending = 0;
	if (out->n > from)
		add(e, (struct tool_event){ TOOL_DELTA, e->n - 1, from, out->n - from });
	e->call[e->n - 1].whole = whole;
	e->whole += whole;
	add(e, (struct tool_event){ TOOL_ENDS, e->n - 1, 0, 0 });
}

void tool_events_keep_one(struct tool_events *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->n_events; i++)
		if (e->event[i].kind == TOOL_TEXT || e->event[i].call == 0)
			e->event[kept++] = e->event[i];
	e->n_events = kept;
}
