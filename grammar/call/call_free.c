/* grammar/call/call_free.c - calls in a text that is free otherwise.
 *
 * A state is a set of threads: the free text, each opening of which a part was read, and the call. With an opening's
 * last byte the free text ends: what follows is the call.
 */
#include "grammar/call/call_free.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"
#include "grammar/call/threads.h"

enum { OPENINGS_MAX = 1 << 12, SPACES_MAX = 8 };

enum mode {
	MODE_FREE,
	MODE_OPENING, /* aux: its number; at: so many bytes of it were read */
	MODE_THEN,    /* the same of what stands between the opening and the call */
	MODE_CALL,    /* inner: the call's state */
	MODE_CLOSE    /* at: bytes of the closing mark; aux: bytes of white space before it */
};

struct opening {
	char *text, *then; /* then: what stands between it and the call */
	bool first;        /* only at the beginning of the text */
	bool loose;        /* white space may stand between the parts of its JSON, and before it */
	uint32_t start;
};

struct free_machine {
	struct machine machine;
	struct machine *call;
	struct opening *opening;
	uint32_t n_openings;
	char *close;
	struct threads threads;
	bool opened; /* by the byte that is looked at */
};

static struct free_machine *of(struct machine *m) { return (struct free_machine *)(void *)m; }

static bool is_white(uint8_t b) { return b == ' ' || b == '\n' || b == '\t' || b == '\r'; }

/* ---- threads */

static void add(struct free_machine *m, struct thread t) { threads_add(&m->threads, &t); }

static void add_free(struct free_machine *m) { add(m, (struct thread){ MODE_FREE, 0, 0, 0 }); }

static void add_call(struct free_machine *m, uint32_t call)
{
	if (call == MACHINE_DEAD)
		return;
	add(m, (struct thread){ MODE_CALL, 0, 0, call });
	if (!machine_ends(m->call, call))
		return;
	if (*m->close)
		add(m, (struct thread){ MODE_CLOSE, 0, 0, 0 });
	else
		add_free(m);
}

/* Line ends may be left out. */
static void add_then(struct free_machine *m, uint32_t opening, uint32_t at)
{
	const struct opening *o = &m->opening[opening];

	if (o->then[at])
		add(m, (struct thread){ MODE_THEN, at, opening, 0 });
	else
		add_call(m, o->start);
	if (o->then[at] == '\n')
		add_then(m, opening, at + 1);
}

static void add_opening(struct free_machine *m, uint32_t opening, uint32_t at)
{
	if (m->opening[opening].text[at]) {
		add(m, (struct thread){ MODE_OPENING, at, opening, 0 });
		return;
	}
	m->opened = true;
	add_then(m, opening, 0);
}

/* Whether so much of an opening ends between the parts of its JSON. */
static bool is_between(const char *text, uint32_t at)
{
	bool quoted = false;

	for (uint32_t i = 0; i < at; i++)
		quoted ^= text[i] == '"';
	return !quoted;
}

static void step_thread(struct free_machine *m, struct thread t, uint8_t byte)
{
	const struct opening *o = &m->opening[t.aux];

	switch ((enum mode)t.mode) {
	case MODE_FREE:
		add(m, t);
		for (uint32_t i = 0; i < m->n_openings; i++)
			if (!m->opening[i].first && (uint8_t)m->opening[i].text[0] == byte)
				add_opening(m, i, 1);
		break;
	case MODE_OPENING:
		if (o->loose && is_white(byte) && is_between(o->text, t.at))
			add(m, t);
		if ((uint8_t)o->text[t.at] == byte)
			add_opening(m, t.aux, t.at + 1);
		break;
	case MODE_THEN:
		if ((uint8_t)o->then[t.at] == byte)
			add_then(m, t.aux, t.at + 1);
		break;
	case MODE_CALL: add_call(m, machine_step(m->call, t.inner, byte)); break;
	case MODE_CLOSE:
		if (!t.at && is_white(byte) && t.aux < SPACES_MAX)
			add(m, (struct thread){ MODE_CLOSE, 0, t.aux + 1, 0 });
		if ((uint8_t)m->close[t.at] == byte && m->close[t.at + 1])
			add(m, (struct thread){ MODE_CLOSE, t.at + 1, 0, 0 });
		else if ((uint8_t)m->close[t.at] == byte)
			add_free(m);
		break;
	}
}

/* The state of the threads found. */
static uint32_t settle(struct free_machine *m)
{
	struct threads *s = &m->threads;
	unsigned kept = 0;

	for (unsigned i = 0; i < s->n_found; i++)
		if (!m->opened || (s->found[i].mode != MODE_FREE && s->found[i].mode != MODE_OPENING))
			s->found[kept++] = s->found[i];
	s->n_found = kept;
	m->opened = false;
	s->failed |= m->machine.failed || m->call->failed;
	const uint32_t state = threads_settle(s);
	m->machine.failed |= s->failed;
	return state;
}

static uint32_t step(struct machine *machine, uint32_t state, uint8_t byte)
{
	struct free_machine *m = of(machine);
	uint32_t next;

	if (state == MACHINE_DEAD || machine->failed)
		return MACHINE_DEAD;
	if (threads_recall(&m->threads, state, byte, &next))
		return next;
	size_t n;
	const struct thread *t = threads_of(&m->threads, state, &n);
	for (size_t i = 0; i < n; i++)
		step_thread(m, t[i], byte);
	next = settle(m);
	if (!machine->failed)
		threads_note(&m->threads, state, byte, next);
	return next;
}

/* Models end their turn instead of closing a call. */
static bool ends(struct machine *machine, uint32_t state)
{
	struct free_machine *m = of(machine);
	size_t n;
	const struct thread *t = threads_of(&m->threads, state, &n);
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any |= t[i].mode == MODE_FREE || (t[i].mode == MODE_CLOSE && t[i].at == 0) ||
		       (t[i].mode == MODE_CALL && machine_ends(m->call, t[i].inner));
	return any;
}

static bool is_free(const struct machine *machine, uint32_t state)
{
	size_t n;
	const struct thread *t = threads_of(&((const struct free_machine *)(const void *)machine)->threads, state, &n);
	bool any = false;

	for (size_t i = 0; i < n; i++)
		any |= t[i].mode == MODE_FREE;
	return any;
}

static uint32_t top(const struct machine *m, uint32_t state)
{
	(void)m;
	return state;
}
static uint32_t alone(struct machine *m, uint32_t state) { return top(m, state); }

/* Characters of a class that can follow before this rest of an opening is read. */
static uint32_t before_end(const char *rest, enum easy class)
{
	uint32_t n = 0;

	for (; *rest; rest++) {
		const uint8_t b = (uint8_t)*rest;
		const enum easy own = b < 0x80 ? easy_of(b) : EASY_ANY;
		if (own < class)
			return UINT32_MAX;
		n += (b & 0xc0) != 0x80;
	}
	return n ? n - 1 : 0;
}

static uint32_t easy(struct machine *machine, uint32_t state, enum easy class)
{
	struct free_machine *m = of(machine);
	size_t n;
	const struct thread *t = threads_of(&m->threads, state, &n);
	uint32_t max = 0, before = UINT32_MAX;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		uint32_t here = 0;
		if (t[i].mode == MODE_CALL)
			here = machine_easy(m->call, t[i].inner, class);
		max = here > max ? here : max;
		any |= t[i].mode == MODE_FREE;
		here = t[i].mode == MODE_OPENING ? before_end(m->opening[t[i].aux].text + t[i].at, class) : UINT32_MAX;
		before = here < before ? here : before;
	}
	for (uint32_t i = 0; any && i < m->n_openings; i++) {
		const uint32_t here = m->opening[i].first ? UINT32_MAX : before_end(m->opening[i].text, class);
		before = here < before ? here : before;
	}
	return any && before > max ? before : max;
}

static size_t bytes(const struct machine *machine)
{
	const struct free_machine *m = (const struct free_machine *)(const void *)machine;

	return threads_bytes(&m->threads) + machine_bytes(m->call);
}

static void close_machine(struct machine *machine)
{
	struct free_machine *m = of(machine);

	for (uint32_t i = 0; i < m->n_openings; i++)
		free(m->opening[i].text), free(m->opening[i].then);
	free(m->opening);
	free(m->close);
	machine_close(m->call);
	threads_clear(&m->threads);
	free(m);
}

static const struct machine_kind free_kind = { step, ends, top, alone, easy, bytes, close_machine, NULL };

/* ---- reading */

static char *copy(const char *text)
{
	const size_t n = text ? strlen(text) : 0;
	char *own = effort_malloc(n + 1);

	if (own)
		memcpy(own, text ? text : "", n + 1);
	return own;
}

static bool read_opening(struct free_machine *m, const json_t *o, struct error *err)
{
	struct opening *to = &m->opening[m->n_openings];
	const char *text = json_string_value(json_object_get(o, "text")),
		   *begun = json_string_value(json_object_get(o, "begun"));

	if (!text || !*text)
		return error_set(err, ERROR_ARGUMENT, "an opening of the calls has no text");
	m->n_openings++;
	to->text = copy(text);
	to->then = copy(json_string_value(json_object_get(o, "then")));
	if (!to->text || !to->then)
		return error_set(err, ERROR_MEMORY, "no memory for a grammar");
	to->first = json_is_true(json_object_get(o, "first"));
	to->loose = json_is_true(json_object_get(o, "loose"));
	to->start = m->call->start;
	for (; begun && *begun && to->start != MACHINE_DEAD; begun++)
		to->start = machine_step(m->call, to->start, (uint8_t)*begun);
	if (to->start == MACHINE_DEAD)
		machine_refuse(m->call, "no call is right that begins as its openings do", err);
	return to->start != MACHINE_DEAD;
}

static bool read_all(struct free_machine *m, const json_t *o, struct error *err)
{
	const json_t *openings = json_object_get(o, "openings"), *one;
	const size_t max = json_array_size(openings);
	size_t i;

	if (!max || max > OPENINGS_MAX)
		return error_set(err, ERROR_ARGUMENT, "the calls have %zu openings, expected 1 to %d", max,
		                 (int)OPENINGS_MAX);
	m->opening = effort_calloc(max, sizeof *m->opening);
	m->close = copy(json_string_value(json_object_get(o, "close")));
	if (!m->opening || !m->close)
		return error_set(err, ERROR_MEMORY, "no memory for a grammar");
	json_array_foreach(openings, i, one) if (!read_opening(m, one, err)) return false;
	return true;
}

struct machine *machine_of_free(const json_t *o, struct machine *call, struct error *err)
{
	struct free_machine *m = effort_calloc(1, sizeof *m);

	if (!m) {
		machine_close(call);
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
		return NULL;
	}
	m->machine.kind = &free_kind;
	m->machine.is_free = is_free;
	m->call = call;
	bool ok = read_all(m, o, err);
	if (ok) {
		add_free(m);
		for (uint32_t i = 0; i < m->n_openings; i++)
			if (m->opening[i].first)
				add_opening(m, i, 0);
		m->machine.start = settle(m);
		ok = m->machine.start != MACHINE_DEAD;
		if (!ok && m->machine.failed && !m->call->failed && m->n_openings > THREADS_MAX - 2)
			error_set(err, ERROR_UNSUPPORTED, "the calls have %u openings, expected at most %d",
			          (unsigned)m->n_openings, THREADS_MAX - 2);
		else if (!ok)
			machine_refuse(m->call->failed ? m->call : &m->machine, "no call is right by its schema", err);
	}
	if (ok)
		return &m->machine;
	close_machine(&m->machine);
	return NULL;
}

/* ---- marks */

static const char *const texts[] = { "text", "then" };

size_t call_free_marks_length(const json_t *o)
{
	const json_t *openings = json_object_get(o, "openings"), *spelled = json_object_get(o, "spelled"), *one;
	size_t i, n = json_string_length(json_object_get(o, "close")) + 1;

	json_array_foreach(openings, i, one) for (size_t k = 0; k < 2; k++) n +=
		json_string_length(json_object_get(one, texts[k])) + 1;
	json_array_foreach(spelled, i, one) n += json_string_length(one) + 1;
	return n;
}

static char *put(char *out, const json_t *text)
{
	const size_t n = json_string_length(text);

	*out++ = '\n';
	memcpy(out, n ? json_string_value(text) : "", n);
	return out + n;
}

char *call_free_marks(const json_t *o, char *out)
{
	const json_t *openings = json_object_get(o, "openings"), *spelled = json_object_get(o, "spelled"), *one;
	size_t i;

	json_array_foreach(openings, i, one) for (size_t k = 0; k < 2; k++) out =
		put(out, json_object_get(one, texts[k]));
	json_array_foreach(spelled, i, one) out = put(out, one);
	return put(out, json_object_get(o, "close"));
}
