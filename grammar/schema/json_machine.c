/* grammar/schema/json_machine.c - frames and states: the machine of a schema, put together. */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_parts.h"

/* Frames, and states: what a machine may grow to before it is of no use any more (machine.h: failed). */
enum { FRAMES_MAX = 1 << 18, STATES_MAX = 1 << 24 };
/* The stack's bottom that machine_alone puts below a top. */
enum { NOTHING_KNOWN = UINT32_MAX };

void frame_begin(struct frame *f, enum frame_kind kind, uint32_t group, size_t n_nodes)
{
	f->w[0] = kind;
	f->w[1] = group;
	f->n = FRAME_HEAD + bits_words(n_nodes);
	f->failed = false;
	memset(f->w + FRAME_HEAD, 0, bits_words(n_nodes) * sizeof *f->w);
}

void frame_push(struct frame *f, uint32_t word)
{
	if (f->n == FRAME_WORDS)
		f->failed = true;
	else
		f->w[f->n++] = word;
}

uint32_t frame_keep(struct json_machine *m, const struct frame *f)
{
	bool full = f->failed || m->frames.n >= FRAMES_MAX;
	uint32_t number = full ? 0 : interner_add(&m->frames, f->w, f->n, NULL);

	m->machine.limited |= full;
	m->machine.failed |= number == 0;
	return number;
}

void frame_load(const struct json_machine *m, uint32_t number, struct frame *f)
{
	const uint32_t *w = interner_get(&m->frames, number, &f->n);

	memcpy(f->w, w, f->n * sizeof *w);
	f->failed = false;
}

struct outcome stays(struct json_machine *m, const struct frame *f)
{
	return (struct outcome){ .kind = STAYS, .frame = frame_keep(m, f) };
}

struct outcome pops(struct json_machine *m, const uint32_t *words, size_t n)
{
	uint32_t result = interner_add(&m->results, words, n, NULL);

	m->machine.failed |= result == 0;
	return (struct outcome){ .kind = POPS, .result = result };
}

static struct outcome make_outcome(struct json_machine *m, uint32_t frame, uint8_t byte)
{
	struct frame f;

	frame_load(m, frame, &f);
	switch ((enum frame_kind)f.w[0]) {
	case FRAME_START: return start_step(m, &f, byte);
	case FRAME_WORD: return word_step(m, &f, byte);
	case FRAME_STRING: return string_step(m, &f, byte);
	case FRAME_NUMBER: return m->writes ? number_write(m, &f, byte) : number_step(m, &f, byte);
	case FRAME_ARRAY: return array_step(m, &f, byte);
	case FRAME_OBJECT: return object_step(m, &f, byte);
	case FRAME_KEY: return key_step(m, &f, byte);
	case FRAME_END: return end_step(m, &f, byte);
	case FRAME_ROOT: break;
	}
	return dies();
}

/* What a frame is told of the one above it when that is done: the item's value, 0: it cannot be compared; whether an
 * item before has it, or a member before its name; the list of all of them, that one too (json_told.c). */
struct above {
	uint32_t value, list;
	bool again;
};

/* What the frame becomes when the one above it is done. */
static uint32_t resume(struct json_machine *m, uint32_t frame, uint32_t result, const struct above *above)
{
	struct frame f;
	uint32_t words_of[FRAME_WORDS];
	size_t n;
	const uint32_t *w = interner_get(&m->results, result, &n);

	memcpy(words_of, w, n * sizeof *w);
	frame_load(m, frame, &f);
	if (f.w[0] == FRAME_ARRAY)
		return array_resume(m, &f, words_of, above->value, above->again);
	if (f.w[0] == FRAME_OBJECT)
		return object_resume(m, &f, words_of, above->list);
	frame_begin(&f, FRAME_END, 0, 0);
	frame_push(&f, 0);
	return frame_keep(m, &f);
}

/* ---- what was found out once */

static bool make_row(struct json_machine *m, uint32_t frame)
{
	void *rows = m->row;
	size_t had = m->row_room;

	if (!effort_array(&rows, &m->row_room, (size_t)frame + 1, sizeof *m->row))
		return false;
	m->row = rows;
	for (size_t i = had; i < m->row_room; i++)
		m->row[i] = NULL;
	if (m->row[frame])
		return true;
	if (effort_grow(0, 256 * sizeof **m->row) && (m->row[frame] = effort_calloc(256, sizeof **m->row)))
		m->rows++;
	return m->row[frame] != NULL;
}

/* By the frame alone. Outcomes are kept as words, and numbered, like frames. */
static struct outcome outcome_of(struct json_machine *m, uint32_t frame, uint8_t byte)
{
	const struct outcome failed = dies();
	uint32_t known = frame < m->row_room && m->row[frame] ? m->row[frame][byte] : 0;

	if (known) {
		const uint32_t *w = interner_get(&m->outcomes, known, NULL);
		return (struct outcome){ (enum outcome_kind)w[0], w[1], w[2], w[3], w[4] };
	}
	effort_take(20);
	struct outcome o = make_outcome(m, frame, byte);
	m->machine.limited |= effort_limited();
	m->machine.failed |= effort_over();
	const uint32_t w[] = { o.kind, o.again, o.frame, o.child, o.result };
	uint32_t number = m->machine.failed || !make_row(m, frame) ? 0 : interner_add(&m->outcomes, w, 5, NULL);
	if (!number) {
		m->machine.failed = true;
		return failed;
	}
	m->row[frame][byte] = number;
	return o;
}

/* A frame on a stack, and the bytes so far where they are of an item that must differ from others: number of
 * values.bytes; 0: of none. And what was told beside it (json_told.c). */
struct text_position {
	uint32_t frame, below, item, told;
};

static uint32_t state_of(struct json_machine *m, const struct text_position *at)
{
	const uint32_t w[] = { at->frame, at->below, at->item, at->told };
	bool full = m->states.n >= STATES_MAX;
	uint32_t state = at->frame && !full ? interner_add(&m->states, w, at->told ? 4 : 3, NULL) : 0;

	m->machine.limited |= full;
	m->machine.failed |= at->frame && !state;
	return state;
}

static struct text_position position_of(const struct json_machine *m, uint32_t state)
{
	size_t n;
	const uint32_t *w = interner_get(&m->states, state, &n);

	return (struct text_position){ w[0], w[1], w[2], n > 3 ? w[3] : 0 };
}

static bool frame_differs(const struct json_machine *m, uint32_t frame)
{
	return items_differ(m, interner_get(&m->frames, frame, NULL));
}

/* A frame is put on top: an item's bytes are kept from here on. False: no memory. */
static bool put_on(struct json_machine *m, struct text_position *at, const struct outcome *o)
{
	uint32_t below = state_of(m, &(struct text_position){ o->frame, at->below, at->item, at->told });

	if (!at->item && below && frame_differs(m, o->frame))
		at->item = value_root(m);
	at->below = below;
	at->frame = o->child;
	at->told = o->child ? told_pushed(m, o->child) : 0;
	return below != 0;
}

/* What is compared when an item is whole, or a name. False: what is below of a frame that stands alone tells it. */
static bool compare(struct json_machine *m, const struct text_position *at, const struct text_position *before,
                    uint32_t result, struct above *above)
{
	const bool item = at->item && frame_differs(m, before->frame);
	const bool name = told_of_name(m, at->frame) && interner_get(&m->results, result, NULL)[0] == NO_NAME;
	uint32_t one = 0;

	*above = (struct above){ .list = before->told };
	if (!before->told && (name || told_is_needed(m, before->frame)))
		return false;
	if (item)
		one = above->value = value_between(m, before->item ? before->item : value_root(m), at->item);
	else if (name)
		one = told_name(m, at->told);
	above->again = one && items_have(m, before->told, one);
	if (one && !above->again)
		above->list = items_with(m, before->told, one);
	return true;
}

/* The top is done: the frame below goes on. False: as compare() says. */
static bool take_away(struct json_machine *m, struct text_position *at, uint32_t result)
{
	const struct text_position before = position_of(m, at->below);
	const bool name = told_of_name(m, at->frame);
	struct above above;

	if (!compare(m, at, &before, result, &above))
		return false;
	at->frame = name && above.again ? 0 : resume(m, before.frame, result, &above);
	at->below = before.below;
	at->item = before.item ? at->item : 0;
	at->told = above.list;
	return true;
}

static uint32_t make_step(struct json_machine *m, uint32_t state, uint8_t byte)
{
	struct machine *machine = &m->machine;
	struct text_position at = position_of(m, state);
	bool kept = false;

	for (bool again = true; again && at.frame && !machine->failed;) {
		struct outcome o = outcome_of(m, at.frame, byte);
		again = o.again;
		if (!again && at.item && o.kind != PUSHES) {
			at.item = value_byte(m, at.item, byte);
			kept = true;
		}
		switch (o.kind) {
		case DIES: return MACHINE_DEAD;
		case STAYS:
			at.told = told_by(m, at.told, at.frame, o.frame, byte);
			at.frame = o.frame;
			break;
		case PUSHES:
			if (!put_on(m, &at, &o))
				return MACHINE_DEAD;
			break;
		case POPS:
			if (at.below == NOTHING_KNOWN || !take_away(m, &at, o.result))
				return machine->failed ? MACHINE_DEAD : MACHINE_BELOW;
			break;
		}
	}
	if (at.item && !kept)
		at.item = value_byte(m, at.item, byte);
	return machine->failed ? MACHINE_DEAD : state_of(m, &at);
}

static uint32_t step(struct machine *machine, uint32_t state, uint8_t byte)
{
	struct json_machine *m = (struct json_machine *)machine;
	struct recent *r = &m->recent[(state * 0x9e3779b1u + byte * 37u) % RECENT];

	if (state == MACHINE_DEAD)
		return MACHINE_DEAD;
	if (r->state != state || r->byte != byte) {
		struct effort *before = machine_begin(machine);
		*r = (struct recent){ state, byte, make_step(m, state, byte) };
		effort_end(before);
	}
	return r->next;
}

static uint32_t top(const struct machine *machine, uint32_t state)
{
	return interner_get(&((const struct json_machine *)machine)->states, state, NULL)[0];
}

static uint32_t alone(struct machine *machine, uint32_t frame)
{
	struct json_machine *m = (struct json_machine *)machine;

	return state_of(m, &(struct text_position){ frame, NOTHING_KNOWN, 0, told_alone(m, frame) });
}

/* Its text tells items and names apart, and a state that stands alone does not have it. */
static bool many(const struct machine *machine, uint32_t state)
{
	const struct json_machine *m = (const struct json_machine *)machine;
	const struct text_position at = position_of(m, state);

	return at.item || told_of_name(m, at.frame);
}

static uint32_t easy(struct machine *machine, uint32_t state, enum easy class)
{
	struct json_machine *m = (struct json_machine *)machine;
	uint32_t frame = top(machine, state), kind = interner_get(&m->frames, frame, NULL)[0];

	return kind == FRAME_STRING ? string_easy(m, frame, class) : kind == FRAME_KEY ? key_easy(m, frame, class) : 0;
}

/* A number ends by what follows it. */
static bool ends(struct machine *machine, uint32_t state)
{
	struct json_machine *m = (struct json_machine *)machine;

	if (state == MACHINE_DEAD)
		return false;
	struct text_position at = position_of(m, state);
	if (interner_get(&m->frames, at.frame, NULL)[0] == FRAME_NUMBER) {
		const struct outcome o = outcome_of(m, at.frame, ' ');
		if (o.kind != POPS || at.below == NOTHING_KNOWN || !take_away(m, &at, o.result))
			return false;
	}
	return at.frame && interner_get(&m->frames, at.frame, NULL)[0] == FRAME_END;
}

static size_t bytes(const struct machine *machine)
{
	const struct json_machine *m = (const struct json_machine *)machine;

	return interner_bytes(&m->frames) + interner_bytes(&m->states) + interner_bytes(&m->results) +
	       interner_bytes(&m->outcomes) + interner_bytes(&m->endings.whole) + interner_bytes(&m->endings.bare) +
	       interner_bytes(&m->values.bytes) + interner_bytes(&m->values.plain) + interner_bytes(&m->values.lists) +
	       m->rows * 256 * sizeof **m->row;
}

static void close_machine(struct machine *machine)
{
	struct json_machine *m = (struct json_machine *)machine;

	for (size_t i = 1; i <= m->groups_by_words.n && i < m->group_room; i++)
		group_clear(&m->group[i]);
	for (size_t i = 0; i < m->row_room; i++)
		free(m->row[i]);
	free(m->row);
	free(m->names);
	free(m->group);
	interner_clear(&m->frames);
	interner_clear(&m->states);
	interner_clear(&m->groups_by_words);
	interner_clear(&m->results);
	interner_clear(&m->outcomes);
	endings_clear(&m->endings);
	values_clear(&m->values);
	contained_clear(&m->contained);
	schema_close(m->schema);
	free(m);
}

static const struct machine_kind json_kind = { step, ends, top, alone, easy, bytes, close_machine, many };

static bool begin(struct json_machine *m, bool *empty, struct error *err)
{
	static const uint32_t must_pass = 1; /* of the sets of failed roots, the empty one alone */
	struct frame f;
	uint32_t group = group_make(m, &m->schema->root, 1, &must_pass, 1);

	*empty = group && !group_begins(m, group) && !m->machine.failed;
	if (*empty)
		return false;
	frame_begin(&f, FRAME_ROOT, 0, 0);
	struct text_position at = { frame_keep(m, &f), NOTHING_KNOWN, 0, 0 };
	at.below = state_of(m, &at);
	at.frame = group ? start_frame(m, group, 0) : 0;
	m->machine.start = group && at.below ? state_of(m, &at) : MACHINE_DEAD;
	if (m->machine.start == MACHINE_DEAD && m->machine.limited)
		return error_set(
			err, ERROR_UNSUPPORTED,
			"the schema applies more than %d schemas to one value, or an object has too many names",
			GROUP_NODES);
	return m->machine.start != MACHINE_DEAD || error_set(err, ERROR_MEMORY, "no memory for a schema");
}

struct use {
	unsigned flags; /* of the schema */
	bool writes, ordered;
};
struct source {
	const char *text;
	size_t n;
	struct use use;
};

static struct machine *open_schema(const char *text, size_t n, const struct use *use, bool *empty, struct error *err)
{
	struct json_machine *m = effort_calloc(1, sizeof *m);

	*empty = false;
	if (!m) {
		error_set(err, ERROR_MEMORY, "no memory for a schema");
		return NULL;
	}
	m->machine.kind = &json_kind;
	m->writes = use->writes;
	m->ordered = use->ordered;
	m->schema = schema_open(text, n, use->flags, err);
	m->compact = m->schema && m->schema->compact;
	if (!m->schema || !begin(m, empty, err)) {
		close_machine(&m->machine);
		return NULL;
	}
	return &m->machine;
}

static bool has_value(void *use, const char *text, size_t n)
{
	struct error ignored = { 0 };
	bool empty;
	struct machine *m = open_schema(text, n, use, &empty, &ignored);

	machine_close(m);
	return m != NULL;
}

static struct machine *open_now(const void *source, struct error *err)
{
	static const char why[] = "no value satisfies the schema";
	const struct source *of = source;
	struct use use = of->use;
	char pointer[400];
	bool empty;
	struct machine *m = open_schema(of->text, of->n, &use, &empty, err);

	if (empty && schema_unsat_core(of->text, of->n, has_value, &use, pointer, sizeof pointer))
		error_set(err, ERROR_ARGUMENT, "%s: see %s", why, pointer);
	else if (empty)
		error_set(err, ERROR_ARGUMENT, "%s", why);
	return m;
}

struct machine *machine_of_schema(const char *text, size_t n, bool formats, struct error *err)
{
	return machine_make(open_now, &(struct source){ text, n, { .flags = formats ? SCHEMA_FORMATS : 0 } }, err);
}

struct machine *machine_to_write_schema(const char *text, size_t n, unsigned how, struct error *err)
{
	const struct use use = { .flags = SCHEMA_FORMATS | (how & WRITE_ADDITIONAL ? 0 : SCHEMA_CLOSED),
		                 .writes = true,
		                 .ordered = !(how & WRITE_IN_ANY_ORDER) };

	return machine_make(open_now, &(struct source){ text, n, use }, err);
}
