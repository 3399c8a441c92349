/* grammar/json_string.c - strings as values: bounds of their characters, patterns, formats, and lists of texts. */
#include <string.h>

#include "grammar/json_parts.h"

/* Behind the head: the text's state (3 words), the characters, a state for each automaton of the group's nodes. */
enum { TEXT, COUNT = 3, AUTOMATA };

static struct text_state text_of(const uint32_t *rest)
{
	return (struct text_state){ rest[TEXT], rest[TEXT + 1], rest[TEXT + 2] };
}

struct outcome string_begin(struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);

	f->w[0] = FRAME_STRING;
	for (int i = 0; i < AUTOMATA; i++)
		frame_push(f, 0);
	for (uint32_t i = 0; i < g->automata; i++)
		frame_push(f, AUTOMATON_START);
	return stays(m, f);
}

/* Automata take bytes; one that dies fails its node. */
static void feed(const struct json_machine *m, struct frame *f, const uint8_t *bytes, unsigned n)
{
	const struct schema *s = m->schema;
	const struct group *g = frame_group(m, f);
	uint32_t *state = frame_rest(m, f) + AUTOMATA;

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

static void count(const struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);
	uint32_t *n = &frame_rest(m, f)[COUNT];

	*n += *n < g->length_most;
	for (uint32_t i = 0; i < g->n; i++)
		if (*n > m->schema->node[g->node[i]].length.most)
			set_bit(frame_failed(f), i);
}

static bool alive(const struct json_machine *m, struct frame *f)
{
	return group_alive(m, frame_group(m, f), &(struct facts){ .failed = frame_failed(f) });
}

struct trial {
	const struct json_machine *m;
	const struct frame *f;
};

/* Whether the string can go on with a character. */
static bool takes(void *user, const uint8_t *bytes, unsigned n)
{
	const struct trial *t = user;
	struct frame f;

	memcpy(f.w, t->f->w, t->f->n * sizeof *f.w);
	f.n = t->f->n;
	feed(t->m, &f, bytes, n);
	count(t->m, &f);
	return alive(t->m, &f);
}

static struct outcome string_end(struct json_machine *m, struct frame *f)
{
	const struct schema *s = m->schema;
	const struct group *g = frame_group(m, f);
	const uint32_t *rest = frame_rest(m, f), *state = rest + AUTOMATA;

	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		bool ok = rest[COUNT] >= n->length.least;
		for (uint32_t k = 0; k < n->texts.n; k++)
			ok &= automaton_accepts(s->automaton[s->list[n->texts.at + k]], *state++);
		if (!ok)
			set_bit(frame_failed(f), i);
	}
	return group_done(m, f, NULL);
}

struct outcome string_step(struct json_machine *m, struct frame *f, uint8_t byte)
{
	uint32_t *rest = frame_rest(m, f);
	struct text_state t = text_of(rest);
	uint8_t out[4];
	unsigned n;
	enum text_event e = text_step(&t, byte, out, &n);

	if (e == TEXT_DEAD)
		return dies();
	if (e == TEXT_END)
		return string_end(m, f);
	memcpy(rest + TEXT, &t, sizeof t);
	feed(m, f, out, n);
	if (e == TEXT_CHARACTER)
		count(m, f);
	if (e == TEXT_INSIDE && !text_escape_ends(&t, takes, &(struct trial){ m, f }))
		return dies();
	if (e == TEXT_BYTES && frame_group(m, f)->length_most) { /* the character that is begun counts, too */
		struct frame next;
		memcpy(next.w, f->w, f->n * sizeof *next.w);
		next.n = f->n;
		count(m, &next);
		if (!alive(m, &next))
			return dies();
	}
	return alive(m, f) ? stays(m, f) : dies();
}

uint32_t string_easy(const struct json_machine *m, const uint32_t *frame, enum easy class)
{
	const struct schema *s = m->schema;
	const struct group *g = &m->group[frame[1]];
	const uint32_t *rest = frame + FRAME_HEAD + bits_words(g->n), *state = rest + AUTOMATA;
	uint32_t most = UINT32_MAX;

	if (rest[TEXT] || rest[TEXT + 1] || rest[TEXT + 2])
		return 0;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		uint32_t bound = n->length.most;
		if (bound != COUNT_ANY && !bit(frame + FRAME_HEAD, i))
			most = bound < rest[COUNT] ? 0 : bound - rest[COUNT] < most ? bound - rest[COUNT] : most;
		for (uint32_t k = 0; most && k < n->texts.n; k++)
			most = automaton_shorter(s->automaton[s->list[n->texts.at + k]], *state++, class, most);
	}
	return most;
}
