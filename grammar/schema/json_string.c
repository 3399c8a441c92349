/* grammar/schema/json_string.c - strings as values: bounds of their characters, patterns, formats, and lists of texts.
 */
#include <string.h>

#include "grammar/schema/json_parts.h"

static struct text_state text_of(const uint32_t *rest)
{
	return (struct text_state){ rest[STRING_TEXT], rest[STRING_TEXT + 1], rest[STRING_TEXT + 2] };
}

struct outcome string_begin(struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);

	f->w[0] = FRAME_STRING;
	for (int i = 0; i < STRING_AUTOMATA; i++)
		frame_push(f, 0);
	for (uint32_t i = 0; i < g->n; i++) {
		struct part p = m->schema->node[g->node[i]].texts;
		for (uint32_t k = 0; k < p.n; k++) {
			bool any = automaton_is_live(m->schema->automaton[m->schema->list[p.at + k]]);
			frame_push(f, any ? AUTOMATON_START : AUTOMATON_DEAD);
			if (!any)
				set_bit(frame_failed(f), i);
		}
	}
	return string_can_succeed(m, f) ? stays(m, f) : dies();
}

/* Automata take bytes; one that dies fails its node. */
void string_feed(const struct json_machine *m, struct frame *f, const uint8_t *bytes, unsigned n)
{
	const struct schema *s = m->schema;
	const struct group *g = frame_group(m, f);
	uint32_t *state = frame_rest(m, f) + STRING_AUTOMATA;

	effort_take(2 + g->n + g->automata * n);
	for (uint32_t i = 0; i < g->n; i++) {
		struct part p = s->node[g->node[i]].texts;
		for (uint32_t k = 0; k < p.n; k++, state++) {
			for (unsigned b = 0; b < n; b++)
				*state = automaton_step(s->automaton[s->list[p.at + k]], *state, bytes[b]);
			if (*state == AUTOMATON_DEAD)
				set_bit(frame_failed(f), i);
		}
	}
}

void string_count(const struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);
	uint32_t *n = &frame_rest(m, f)[STRING_COUNT];

	*n += *n < g->length_max;
	for (uint32_t i = 0; i < g->n; i++)
		if (*n > m->schema->node[g->node[i]].length.max)
			set_bit(frame_failed(f), i);
}

static bool alive(const struct json_machine *m, struct frame *f)
{
	return group_alive(m, frame_group(m, f), &(struct facts){ .failed = frame_failed(f) });
}

struct trial {
	struct json_machine *m;
	const struct frame *f;
};

/* Whether the string can go on with a character, or with one that begins so. */
static bool takes(void *user, const uint8_t *bytes, unsigned n)
{
	const struct trial *t = user;
	struct frame f;

	memcpy(f.w, t->f->w, t->f->n * sizeof *f.w);
	f.n = t->f->n;
	string_feed(t->m, &f, bytes, n);
	string_count(t->m, &f);
	if (!alive(t->m, &f))
		return false;
	/* Halves of characters are looked at again with the rest. */
	memset(frame_rest(t->m, &f), 0, sizeof(struct text_state));
	unsigned length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	return n < length || string_can_succeed(t->m, &f);
}

static void fail_ends(const struct json_machine *m, struct frame *f, bool length)
{
	const struct schema *s = m->schema;
	const struct group *g = frame_group(m, f);
	const uint32_t *rest = frame_rest(m, f), *state = rest + STRING_AUTOMATA;

	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		bool ok = !length || rest[STRING_COUNT] >= n->length.min;
		for (uint32_t k = 0; k < n->texts.n; k++)
			ok &= automaton_accepts(s->automaton[s->list[n->texts.at + k]], *state++);
		if (!ok)
			set_bit(frame_failed(f), i);
	}
}

bool string_may_end(struct json_machine *m, const struct frame *frame, bool length)
{
	struct frame f;

	memcpy(f.w, frame->w, frame->n * sizeof *f.w);
	f.n = frame->n;
	fail_ends(m, &f, length);
	return group_alive(m, frame_group(m, &f), &(struct facts){ .failed = frame_failed(&f), .final = true });
}

static struct outcome string_end(struct json_machine *m, struct frame *f)
{
	fail_ends(m, f, true);
	return group_done(m, f, NULL);
}

struct outcome string_step(struct json_machine *m, struct frame *f, uint8_t byte)
{
	uint32_t *rest = frame_rest(m, f);
	struct text_state t = text_of(rest);
	uint8_t out[4];
	unsigned n;
	enum text_event e = text_step(&t, byte, m->writes, out, &n);

	if (e == TEXT_DEAD)
		return dies();
	if (e == TEXT_END)
		return string_end(m, f);
	memcpy(rest + STRING_TEXT, &t, sizeof t);
	string_feed(m, f, out, n);
	if (e == TEXT_CHARACTER)
		string_count(m, f);
	if (e == TEXT_INSIDE && !text_escape_ends(&t, m->writes, takes, &(struct trial){ m, f }))
		return dies();
	if (e == TEXT_BYTES && frame_group(m, f)->length_max) { /* the character that is begun counts, too */
		struct frame next;
		memcpy(next.w, f->w, f->n * sizeof *next.w);
		next.n = f->n;
		string_count(m, &next);
		if (!alive(m, &next))
			return dies();
	}
	if (e == TEXT_INSIDE ? !alive(m, f) : !string_can_succeed(m, f))
		return dies();
	return stays(m, f);
}

uint32_t string_easy(struct json_machine *m, uint32_t number, enum easy class)
{
	const struct schema *s = m->schema;
	const uint32_t *frame = interner_get(&m->frames, number, NULL);
	const struct group *g = &m->group[frame[1]];
	const uint32_t *rest = frame + FRAME_HEAD + bits_words(g->n), *state = rest + STRING_AUTOMATA;
	uint32_t max = UINT32_MAX;

	if (rest[STRING_TEXT] || rest[STRING_TEXT + 1] || rest[STRING_TEXT + 2])
		return 0;
	if (g->joint) {
		struct frame f;
		frame_load(m, number, &f);
		return string_can_succeed_for(m, &f, class);
	}
	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		uint32_t bound = n->length.max;
		if (bound != COUNT_ANY && !bit(frame + FRAME_HEAD, i))
			max = bound < rest[STRING_COUNT]         ? 0
			      : bound - rest[STRING_COUNT] < max ? bound - rest[STRING_COUNT]
			                                         : max;
		for (uint32_t k = 0; max && k < n->texts.n; k++)
			max = automaton_shorter(s->automaton[s->list[n->texts.at + k]], *state++, class, max);
	}
	return max;
}
