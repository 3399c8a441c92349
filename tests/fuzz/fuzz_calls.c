/* tests/fuzz/fuzz_calls.c - what a model says as an answer with calls of tools, in every form.
 *
 * The first byte says the form, the second how the text is read, the third where it is cut; the text follows. Whether
 * it is read at once or in any pieces, the same becomes known in the same order, and nothing is taken back.
 */
#include <stdlib.h>
#include <string.h>

#include "answers/tool_calls.h"
#include "base/text.h"
#include "base/json_scan.h"
#include "tests/answers/call_writers.h"
#include "tests/fuzz/fuzz.h"

static const char schemas[] =
	"[{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"},\"i\":{"
	"\"type\":"
	"\"integer\"},\"a\":{\"type\":\"array\"},\"o\":{\"type\":\"object\"},\"n\":{\"type\":[\"string\",\"null\"]},"
	"\"b\":{"
	"\"type\":[\"boolean\",\"null\"]}}}},{\"name\":\"g\"}]";
static const char *const openings[] = { "", "{\"name\": \"f\", \"arguments\": ", "f", "\n<function=f>\n" };

struct reading {
	enum tools_form form;
	const char *opened, *types;
	const uint8_t *p;
	size_t n;
	bool cut;
};

/* All that became known, with a letter before each kind; what goes on is one. */
struct told {
	struct bytes log;
	char last;
	size_t said; /* bytes of the last call's arguments */
	struct tool_calls t;
};

static bool is_utf8(const char *p, size_t n)
{
	uint32_t code;

	for (size_t at = 0; at < n;) {
		unsigned length = text_char(p + at, n - at, &code);
		if (!length)
			return false;
		at += length;
	}
	return true;
}

static void note(struct told *o, char kind, const char *p, size_t n)
{
	const char head[] = { '\n', kind };

	if (o->last != kind || kind == 'B' || kind == 'E' || kind == 'U')
		bytes_add(&o->log, head, 2);
	bytes_add(&o->log, p, n);
	o->last = kind;
}

static void write_down(struct told *o)
{
	const struct tool_events *f = &o->t.found;

	if (o->t.lost)
		abort();
	for (size_t i = 0; i < f->n_events; i++) {
		const struct tool_event *e = &f->event[i];
		const struct tool_call *c = e->kind == TOOL_TEXT ? NULL : &f->call[e->call];
		if (c && (e->call + 1 > f->n || !c->name[0]))
			abort();
		switch (e->kind) {
		case TOOL_TEXT: note(o, 'T', f->text.p + e->from, e->n); break;
		case TOOL_BEGINS:
			note(o, 'B', c->name, strlen(c->name));
			o->said = 0;
			break;
		case TOOL_DELTA:
			if (e->from != o->said || !is_utf8(c->arguments.p + e->from, e->n))
				abort();
			o->said += e->n;
			note(o, 'P', c->arguments.p + e->from, e->n);
			break;
		case TOOL_ENDS:
			if (o->said != c->arguments.n)
				abort();
			note(o, c->whole ? 'E' : 'U', "", 0);
			break;
		}
	}
}

/* size: of pieces; 0: one of each size up to nine in turn, beginning at `from`. */
static void read_all(struct told *o, const struct reading *r, size_t size, uint8_t from)
{
	*o = (struct told){ 0 };
	tool_calls_begin(&o->t, r->form, r->opened, r->types);
	for (size_t at = 0, step; at < r->n; at += step, from = (uint8_t)(from * 5 + 3)) {
		step = size ? size : 1 + from % 9u;
		step = step < r->n - at ? step : r->n - at;
		tool_calls_take(&o->t, (const char *)r->p + at, step);
		write_down(o);
	}
	tool_calls_end(&o->t, r->cut);
	write_down(o);
}

static void forget(struct told *o)
{
	bytes_free(&o->log);
	tool_calls_free(&o->t);
}

/* A call that is whole has an object of JSON as its arguments, and no other looks so. */
static void check_sound(const struct told *o)
{
	const struct tool_events *f = &o->t.found;
	size_t whole = 0;

	for (size_t i = 0; i < f->n; i++) {
		const struct tool_call *c = &f->call[i];
		struct json_scan s = json_scan_of(c->arguments.p ? c->arguments.p : "", c->arguments.n);
		bool object = c->arguments.n && c->arguments.p[0] == '{' && json_scan_skip(&s) && json_scan_finish(&s);
		if (c->whole != object || (!c->whole && !c->said))
			abort();
		whole += c->whole;
	}
	if (f->whole != whole)
		abort();
}

/* Where there was no call, and no mark that stands around calls or texts, all of it is text. */
static void check_text(const struct reading *r, const struct told *o)
{
	const struct tools_row *row = &tools_rows[r->form];
	const size_t n = o->log.n ? o->log.n - 2 : 0; /* behind the line's end and the T */

	if (o->t.found.n || r->opened || row->opened || row->mark[4] || row->mark[5] || row->frame[0])
		return;
	if (n != r->n || (n && memcmp(o->log.p + 2, r->p, n) != 0))
		abort();
}

static void check_same(const struct reading *r, const struct told *whole, size_t size, uint8_t from)
{
	struct told other;

	read_all(&other, r, size, from);
	if (whole->log.n != other.log.n || (whole->log.n && memcmp(whole->log.p, other.log.p, whole->log.n) != 0))
		abort();
	for (size_t i = 0; i < whole->t.found.n; i++) {
		const struct tool_call *a = &whole->t.found.call[i], *b = &other.t.found.call[i];
		if (a->n_said != b->n_said || (a->said && memcmp(a->said, b->said, a->n_said) != 0))
			abort();
	}
	forget(&other);
}

/* Of the text's beginning nothing else is said than of the whole. */
static void check_beginning(struct reading r, const struct told *whole, size_t n)
{
	const struct tool_events *w = &whole->t.found;
	struct told other;

	r.n = n;
	r.cut = true;
	read_all(&other, &r, 0, 1);
	check_sound(&other);
	for (size_t i = 0; i < other.t.found.n; i++) {
		const struct tool_call *c = &other.t.found.call[i], *all = i < w->n ? &w->call[i] : NULL;
		if (!all || strcmp(c->name, all->name) != 0 || c->arguments.n > all->arguments.n ||
		    (c->whole && (!all->whole || c->arguments.n != all->arguments.n)) ||
		    (c->arguments.n && memcmp(c->arguments.p, all->arguments.p, c->arguments.n) != 0))
			abort();
	}
	forget(&other);
}

void fuzz_calls(const uint8_t *p, size_t n)
{
	enum { HEAD = 3, MAX = 4096 };
	struct told whole;

	if (n < HEAD)
		return;
	const struct reading r = { .form = (enum tools_form)(p[0] % TOOLS_FORMS),
		                   .opened = p[1] & 4 ? openings[p[1] >> 3 & 3] : NULL,
		                   .types = p[1] & 1 ? schemas : NULL,
		                   .p = p + HEAD,
		                   .n = n - HEAD < MAX ? n - HEAD : MAX,
		                   .cut = p[1] & 2 };
	if (r.opened && r.form == TOOLS_NONE)
		return; /* no prompt opens a call of no form */
	read_all(&whole, &r, r.n ? r.n : 1, 0);
	check_sound(&whole);
	check_text(&r, &whole);
	check_same(&r, &whole, 1, 0);
	check_same(&r, &whole, 2 + p[2] % 2, 0);
	check_same(&r, &whole, 0, p[2]);
	check_beginning(r, &whole, r.n * p[2] / 256);
	forget(&whole);
}

/* ---- what to begin with */

static void put_call(struct bytes *b, enum tools_form form, const char *arguments)
{
	const struct tools_row *row = &tools_rows[form];
	json_t *o = json_loads(arguments, 0, NULL);

	bytes_text(b, row->mark[0] && !(row->opened && b->n == 3) ? row->mark[0] : "");
	call_write(b, form, "f", o);
	bytes_text(b, row->mark[1] ? row->mark[1] : "");
	json_decref(o);
}

void fuzz_calls_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	/* The prompt has opened a call, and nothing follows: once an address was counted from NULL. */
	static const uint8_t nothing[] = { TOOLS_INVOKE, 4, 0 };

	take(user, nothing, sizeof nothing);
	for (enum tools_form form = TOOLS_NONE; form < TOOLS_FORMS; form++) {
		struct bytes b = { 0 };
		const char head[] = { (char)form, (char)(form % 2), 77 };

		bytes_add(&b, head, sizeof head);
		if (form == TOOLS_NONE) {
			bytes_text(&b, "a <tool_call>{\"name\": \"f\"}</tool_call>");
		} else {
			put_call(&b, form, "{\"s\": \"a \\u00e9\\\"\", \"i\": 12, \"a\": [1, null]}");
			if (tools_rows[form].mark[0])
				put_call(&b, form, "{\"o\": {\"x\": [true, \"y\"]}, \"n\": \"null\"}");
		}
		take(user, (const uint8_t *)b.p, b.n);
		bytes_free(&b);
	}
}
