/* answers/tool_calls.c - calls of tools in what a model says. */
#include "answers/tool_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

/* Elements of a call that some models begin without the mark around it. */
static const char element[] = "<function=";

static const struct tools_row *row_of(const struct tool_calls *t) { return &tools_rows[t->form]; }

/* What is held from `at` on; nothing was where there was no answer yet. */
static const char *held_from(const struct tool_calls *t, size_t at) { return t->held.p ? t->held.p + at : ""; }

/* The text behind an opening mark begins. */
static void begin_inside(struct tool_calls *t)
{
	t->inside = true;
	t->unopened = false;
	t->fed = t->skipped = 0;
	t->first = t->found.n;
	t->reads = READING;
	tool_reader_begin(&t->reader, t->form, t->functions, &t->found);
}

void tool_calls_begin(struct tool_calls *t, enum tools_form form, const char *opened, const char *functions)
{
	struct error err = { 0 };

	t->form = form;
	if (functions) {
		t->functions = json_read(functions, strlen(functions), strlen(functions), "tools", &err);
		t->lost = !t->functions;
	}
	if (opened != NULL || tools_rows[form].opened)
		begin_inside(t);
	t->may_be_text = !opened && tools_rows[form].opened;
	bytes_text(&t->held, opened ? opened : "");
}

static size_t skip_space(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && tool_is_space((unsigned char)p[i]))
		i++;
	return i;
}

/* How many bytes at the end of p may be the beginning of a mark. */
static size_t partial(const char *p, size_t n, const char *mark)
{
	size_t max = strlen(mark) - 1;

	for (size_t k = n < max ? n : max; k; k--)
		if (memcmp(p + n - k, mark, k) == 0)
			return k;
	return 0;
}

enum { MARKS = 9 };

/* The first of the marks in what is held from `from` on, and where; NULL: there is none, and the last *held bytes may
 * become one. */
static const char *find_mark(const struct tool_calls *t, const char *const marks[MARKS], size_t from, size_t *at,
                             size_t *held)
{
	const char *found = NULL, *text = held_from(t, from);
	size_t n = t->held.n - from;

	*held = 0;
	for (int i = 0; i < MARKS && n; i++) {
		if (!marks[i])
			continue;
		const char *p = memmem(text, n, marks[i], strlen(marks[i]));
		size_t k = partial(text, n, marks[i]), here = p ? (size_t)(p - t->held.p) : 0;
		*held = k > *held ? k : *held;
		/* Of two that begin together the longer one. */
		if (p && (!found || here < *at || (here == *at && strlen(marks[i]) > strlen(found)))) {
			*at = here;
			found = marks[i];
		}
	}
	return found;
}

static void drop(struct tool_calls *t, size_t n)
{
	if (t->held.n > n)
		memmove(t->held.p, t->held.p + n, t->held.n - n);
	t->held.n -= n;
}

/* The mark that opens a call, as it is text where there is none. */
static const char *opening(const struct tool_calls *t)
{
	return row_of(t)->mark[0] && !t->unopened ? row_of(t)->mark[0] : "";
}

/* What is held and is no text whatever follows. */
static size_t kept_of(const struct tool_calls *t) { return t->reader.kept ? t->skipped + t->reader.kept : 0; }

static void add_text(struct tool_calls *t, const char *p, size_t n) { tool_events_text(&t->found, p, n); }

/* ---- behind an opening mark */

/* The last call of what was read has not come to its end: what the model wrote stays with it. */
static void keep_said(struct tool_calls *t, size_t n, const char *closed)
{
	struct tool_call *last = t->found.n > t->first ? &t->found.call[t->found.n - 1] : NULL;
	struct bytes said = { 0 };

	if (!last || last->whole || last->said)
		return;
	if (kept_of(t) == 0)
		bytes_text(&said, opening(t));
	bytes_add(&said, held_from(t, kept_of(t)), n - kept_of(t));
	bytes_text(&said, closed ? closed : "");
	last->n_said = said.n;
	bytes_add(&said, "", 1);
	last->said = said.p;
	t->lost = t->lost || said.lost;
}

/* Else the model's words stay with the call. */
static bool last_is_whole(const struct tool_calls *t)
{
	return t->found.n > t->first && t->found.call[t->found.n - 1].whole;
}

/* What stands behind the last call that was read, before its mark: a text, but for what closes once too often. */
static void leave_rest(struct tool_calls *t, size_t n)
{
	size_t from = t->fed;

	while (from < n && strchr("`}]) \t\r\n,;", t->held.p[from]) && t->held.p[from])
		from++;
	while (n > from && tool_is_space((unsigned char)t->held.p[n - 1]))
		n--;
	if (from < n && row_of(t)->mark[1] && last_is_whole(t)) {
		add_text(t, t->held.p + from, n - from);
		t->begun = true;
	}
}

/* What is held up to n is over; mark: what stands behind it, which is over, too, where it closes. closed: as the reader
 * wants to know it. */
static bool leave(struct tool_calls *t, size_t n, const char *mark, bool closed)
{
	const struct tools_row *row = row_of(t);
	const char *closes = mark && row->mark[1] && strcmp(mark, row->mark[1]) == 0 ? mark : NULL;

	if (t->reads == READING)
		t->reads = tool_reader_end(&t->reader, closed);
	keep_said(t, n, closes);
	t->begun = false;
	if (t->reads == READ_NONE) {
		const size_t kept = kept_of(t);
		if (kept == 0) {
			if (t->space.n)
				add_text(t, t->space.p, t->space.n);
			add_text(t, opening(t), strlen(opening(t)));
		}
		if (kept == 0 || skip_space(held_from(t, kept), n - kept) < n - kept) {
			add_text(t, held_from(t, kept), n - kept);
			t->begun = true;
		}
		if (kept == 0 && closes && !t->unopened)
			add_text(t, closes, strlen(closes));
	} else {
		leave_rest(t, n);
	}
	bytes_clear(&t->space);
	t->lost = t->lost || t->space.lost || tool_reader_lost(&t->reader);
	drop(t, n + (closes ? strlen(closes) : 0));
	t->inside = false;
	return t->held.n > 0;
}

/* Gives the reader what cannot be the beginning of a closing mark. The mark that closes, and where; NULL: none yet. */
static const char *feed(struct tool_calls *t, size_t *at)
{
	const char *mark = row_of(t)->mark[1] ? row_of(t)->mark[1] : row_of(t)->mark[0];
	size_t length = mark ? strlen(mark) : 0;

	for (; t->fed < t->held.n && t->reads == READING; t->fed++) {
		const char *p = t->held.p + t->fed;
		size_t left = t->held.n - t->fed, same = left < length ? left : length;
		bool quoted = !mark || tool_reader_quoted(&t->reader);
		if (!quoted && memcmp(p, mark, same) == 0) {
			*at = t->fed;
			return same == length ? mark : NULL;
		}
		t->reads = tool_reader_take(&t->reader, (unsigned char)*p);
	}
	return NULL;
}

/* Behind the last call: up to the mark that closes, or another one that tells that it was left out. Models end their
 * turn instead of closing the last one. */
static bool leave_whole(struct tool_calls *t, bool ends)
{
	const struct tools_row *row = row_of(t);
	/* What begins like the closing mark is that one. */
	const bool alike =
		row->mark[0] && row->mark[1] && strncmp(row->mark[0], row->mark[1], strlen(row->mark[1])) == 0;
	const char *const marks[MARKS] = { row->mark[1],  alike ? NULL : row->mark[0],
		                           row->mark[4],  row->mark[5],
		                           row->frame[0], row->frame[1],
		                           row->frame[2], row->frame[3] };
	size_t at = t->fed, held = 0;
	const char *mark = row->mark[1] ? find_mark(t, marks, t->fed, &at, &held) : NULL;

	if (row->mark[1] && !mark && !ends)
		return false;
	if (!mark) { /* space and a fence are nobody's */
		at = t->fed;
		while (row->mark[1] && at < t->held.n && strchr("`} \t\r\n]", t->held.p[at]) && t->held.p[at])
			at++;
	}
	return leave(t, at, mark, true) || ends;
}

/* What is no call is text up to the mark that would have closed it. */
static bool leave_none(struct tool_calls *t, bool ends)
{
	const struct tools_row *row = row_of(t);
	const char *const marks[MARKS] = { row->mark[1] ? row->mark[1] : row->mark[0] };
	size_t at = t->held.n, held = 0;
	const char *mark = find_mark(t, marks, kept_of(t), &at, &held);

	if (!mark && !ends && marks[0])
		return false;
	return leave(t, mark ? at : t->held.n, mark, true);
}

/* Behind a whole call that no mark opened: the one that closes, if it stands there. */
static bool leave_unopened(struct tool_calls *t, bool ends)
{
	const char *mark = row_of(t)->mark[1];
	size_t at = t->fed, length = mark ? strlen(mark) : 0;

	while (at < t->held.n && tool_is_space((unsigned char)t->held.p[at]))
		at++;
	const size_t left = t->held.n - at, same = left < length ? left : length;
	const bool like = mark && memcmp(held_from(t, at), mark, same) == 0;
	if (like && same < length && !ends)
		return false;
	return leave(t, like && same == length ? at : t->fed, like && same == length ? mark : NULL, true) || ends;
}

/* No call begins there after all: a text as far as it was looked at. */
static bool leave_element(struct tool_calls *t)
{
	add_text(t, t->held.p, t->fed);
	drop(t, t->fed);
	t->inside = false;
	t->begun = true;
	return t->held.n > 0;
}

/* Another call behind the first one, between the same marks. False: none, or not known yet (*waits). */
static bool next_object(struct tool_calls *t, bool ends, bool *waits)
{
	size_t at = t->fed;

	*waits = false;
	if (t->reader.way != WAY_JSON || !row_of(t)->mark[1] || row_of(t)->list || !last_is_whole(t))
		return false;
	while (at < t->held.n && (tool_is_space((unsigned char)t->held.p[at]) || t->held.p[at] == ','))
		at++;
	*waits = at == t->held.n && !ends;
	if (at == t->held.n || t->held.p[at] != '{')
		return false;
	t->lost = t->lost || tool_reader_lost(&t->reader);
	drop(t, at);
	begin_inside(t);
	t->unopened = true;
	return true;
}

static bool take_inside(struct tool_calls *t, bool ends, bool cut)
{
	size_t at = t->held.n;
	const char *mark = feed(t, &at);

	t->lost = t->lost || tool_reader_lost(&t->reader);
	bool bare = t->unopened && t->reader.way == WAY_ELEMENTS, waits;
	if (t->reads == READ_WHOLE && next_object(t, ends, &waits))
		return true;
	if (t->reads == READ_WHOLE && !bare)
		return !waits && leave_whole(t, ends);
	if (t->reads == READ_WHOLE)
		return leave_unopened(t, ends);
	if (t->reads == READ_NONE)
		return bare && kept_of(t) == 0 ? leave_element(t) : leave_none(t, ends);
	return (mark || ends) && leave(t, mark ? at : t->held.n, mark, mark || !cut);
}

/* Where the prompt has opened what may be a call or a text: whether that is known. A text is for "all". */
static bool begins_call(struct tool_calls *t, bool ends)
{
	char all[40];
	size_t n = (size_t)snprintf(all, sizeof all, "all%s", row_of(t)->mark[2]);
	bool short_of = t->held.n < n;

	if (t->held.n && memcmp(t->held.p, all, short_of ? t->held.n : n) != 0) {
		t->may_be_text = false;
		return true;
	}
	if (short_of && !ends)
		return false;
	t->inside = t->may_be_text = false;
	t->begun = true;
	drop(t, short_of ? t->held.n : n);
	return t->held.n > 0;
}

/* ---- outside */

/* Takes out of what is held one text or one call. False: nothing more is known. */
static bool take_marked(struct tool_calls *t, bool ends, bool cut)
{
	const struct tools_row *row = row_of(t);
	const bool bare = t->functions && row->body == BODY_FUNCTIONS && strcmp(row->mark[0], element) != 0;
	const char *const marks[MARKS] = { row->mark[0],  row->mark[4],  row->mark[5],  row->frame[0],
		                           row->frame[1], row->frame[2], row->frame[3], bare ? element : NULL };
	size_t n = 0, held = 0;

	if (t->inside && t->may_be_text)
		return begins_call(t, ends);
	if (t->inside)
		return take_inside(t, ends, cut);
	const char *mark = find_mark(t, marks, 0, &n, &held);
	if (!mark)
		n = ends ? t->held.n : t->held.n - held;
	/* Space before a call, and between two of them, is nobody's. */
	bool space = skip_space(t->held.p, n) == n;
	if (space && !mark && !t->begun && !ends)
		return false;
	space = space && !t->begun && (mark || t->found.n);
	t->begun = t->begun || !space;
	bytes_clear(&t->space);
	if (!space)
		add_text(t, t->held.p, n);
	else if (!t->found.n)
		bytes_add(&t->space, t->held.p, n);
	t->begun = t->begun && !(mark && (mark == row->mark[4] || mark == row->mark[5]));
	drop(t, mark && mark != element ? n + strlen(mark) : n);
	if (mark == element) {
		begin_inside(t);
		t->unopened = true;
		tool_reader_alone(&t->reader);
	}
	if (mark && mark == row->mark[0]) {
		begin_inside(t);
		t->may_be_text = row->opened;
	}
	return mark != NULL;
}

/* Whether the answer, or what stands behind a call, begins as a call does. JSON may be between lines of backquotes. */
static void begin_bare(struct tool_calls *t, bool ends)
{
	const bool fences = t->form == TOOLS_ANSWER;
	size_t at = skip_space(t->held.p, t->held.n);

	while (t->found.n && at < t->held.n &&
	       (tool_is_space((unsigned char)t->held.p[at]) || (fences && t->held.p[at] == '`')))
		at++;
	if (t->found.n) { /* nobody's */
		drop(t, at);
		at = 0;
	}
	if (at == t->held.n)
		return;
	if (fences && t->held.p[at] == '`') {
		while (at < t->held.n && t->held.p[at] != '[' && t->held.p[at] != '{')
			at++;
		if (at == t->held.n && !ends)
			return;
	}
	t->begun = true;
	if (at < t->held.n && (t->held.p[at] == '{' || (fences && t->held.p[at] == '['))) {
		begin_inside(t);
		t->skipped = t->fed = at;
	}
}

static void take_bare(struct tool_calls *t, bool ends, bool cut)
{
	do
		if (!t->begun && !t->inside && t->held.n)
			begin_bare(t, ends);
	while (t->inside && take_inside(t, ends, cut) && !t->begun);
	if (!t->inside && (t->begun || ends)) {
		add_text(t, t->held.p, t->held.n);
		bytes_clear(&t->held);
	}
}

static void take(struct tool_calls *t, bool ends, bool cut)
{
	if (t->form == TOOLS_NONE) {
		add_text(t, t->held.p, t->held.n);
		bytes_clear(&t->held);
	} else if (!row_of(t)->mark[0]) {
		take_bare(t, ends, cut);
	} else {
		while ((t->held.n || (ends && t->inside)) && take_marked(t, ends, cut))
			;
	}
	t->lost = t->lost || t->held.lost || t->found.lost;
}

void tool_calls_take(struct tool_calls *t, const char *p, size_t n)
{
	tool_events_clear(&t->found);
	bytes_add(&t->held, p, n);
	if (!t->lost)
		take(t, false, false);
}

void tool_calls_end(struct tool_calls *t, bool cut)
{
	tool_events_clear(&t->found);
	if (!t->lost)
		take(t, true, cut);
}

void tool_calls_free(struct tool_calls *t)
{
	tool_events_free(&t->found);
	tool_reader_free(&t->reader);
	json_decref(t->functions);
	bytes_free(&t->held);
	bytes_free(&t->space);
	*t = (struct tool_calls){ 0 };
}
