/* grammar/schema/json_number_writing.c - numbers that a model writes, each in its spelling (json_spelling.h).
 *
 * A beginning is taken where a number was found that goes on like it (json_number_finding.c); the frame keeps that
 * number. While the text goes along it nothing is looked for, so what is begun can be ended.
 */
#include <string.h>

#include "grammar/schema/json_parts.h"

/* Behind the head: where nobody looks at the value, the spelling; else the text so far, and the number found. */
struct written {
	uint16_t n, n_whole;
	char text[SPELLED_MAX], whole[SPELLED_MAX];
};
enum { SPELLING_WORDS = sizeof(struct spelling) / 4, WRITTEN_WORDS = sizeof(struct written) / 4 };
_Static_assert(sizeof(struct written) % 4 == 0 && sizeof(struct spelling) == 8, "a frame is made of words");

static struct number_sought sought_of(struct json_machine *m, struct frame *f, const struct written *w)
{
	return (struct number_sought){ m, frame_group(m, f), frame_failed(f), w->text, w->n };
}

static bool keeps_on(struct json_machine *m, struct frame *f, struct written *w)
{
	if (w->n <= w->n_whole && memcmp(w->text, w->whole, w->n) == 0)
		return true;
	char found[SPELLED_MAX + 1];
	const struct number_sought sought = sought_of(m, f, w);
	const size_t n = number_find(&sought, found);
	if (n) {
		memcpy(w->whole, found, n);
		w->n_whole = (uint16_t)n;
	}
	return n > 0;
}

/* Whether the number must be whole, and may be any such number. */
static bool is_any_whole(struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);
	uint32_t failed[GROUP_NODES / 32];

	if (!g->wholes || g->mixed)
		return false;
	memcpy(failed, frame_failed(f), bits_words(g->n) * sizeof *failed);
	for (uint32_t i = 0; i < g->n; i++)
		if (m->schema->node[g->node[i]].whole)
			set_bit(failed, i);
	return !group_alive(m, g, &(struct facts){ .failed = failed });
}

/* How it goes on depends on its sign, how many digits it has, and whether they are those of the largest one or larger.
 * So all others are taken for one of them: the frame is the same. */
static void forget_digits(struct written *w)
{
	static const char max[] = SPELLED_INTEGER;
	char *digit = w->text + (w->text[0] == '-');
	const size_t n = (size_t)(w->text + w->n - digit);
	const int c = n && n < sizeof max ? memcmp(digit, max, n) : 0;

	if (c && *digit != '0') {
		memset(digit, c < 0 ? '0' : '9', n);
		*digit = c < 0 ? '1' : '9';
	}
	if (n) { /* it is a number as it stands */
		memcpy(w->whole, w->text, w->n);
		w->n_whole = w->n;
	}
}

bool number_can_be_written(struct json_machine *m, struct frame *f)
{
	struct written w = { .n = 0 };

	if (!frame_group(m, f)->numbers)
		return true;
	w.n = 1;
	for (const char *begin = "-0123456789"; *begin; begin++) {
		w.text[0] = *begin;
		if (keeps_on(m, f, &w))
			return true;
	}
	return false;
}

/* What fails is known at the end. */
static struct outcome end(struct json_machine *m, struct frame *f, const struct written *w)
{
	const struct group *g = frame_group(m, f);
	struct decimal value;
	struct outcome o = dies();

	if (w && !decimal_read(&value, w->text, w->n))
		return o;
	for (uint32_t i = 0; i < g->n && w; i++)
		if (!number_fits(m->schema, &m->schema->node[g->node[i]], &value))
			set_bit(frame_failed(f), i);
	o = group_done(m, f, NULL);
	o.again = true;
	return o;
}

static bool may_follow(uint8_t byte)
{
	return (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == 'e';
}

static struct outcome looked_at(struct json_machine *m, struct frame *f, uint8_t byte)
{
	struct written w;

	memcpy(&w, frame_rest(m, f), sizeof w);
	if (!may_follow(byte)) {
		const struct number_sought sought = sought_of(m, f, &w);
		return number_is_found(&sought) ? end(m, f, &w) : dies();
	}
	if (w.n == SPELLED_MAX)
		return dies();
	w.text[w.n++] = (char)byte;
	if (!keeps_on(m, f, &w))
		return dies();
	if (is_any_whole(m, f))
		forget_digits(&w);
	memcpy(frame_rest(m, f), &w, sizeof w);
	return stays(m, f);
}

struct outcome number_write(struct json_machine *m, struct frame *f, uint8_t byte)
{
	struct spelling s;

	if (frame_group(m, f)->numbers)
		return looked_at(m, f, byte);
	memcpy(&s, frame_rest(m, f), sizeof s);
	if (!may_follow(byte))
		return spelling_ends(&s) ? end(m, f, NULL) : dies();
	if (!spelling_step(&s, byte))
		return dies();
	memcpy(frame_rest(m, f), &s, sizeof s);
	return stays(m, f);
}

struct outcome number_begin_writing(struct json_machine *m, struct frame *f, uint8_t byte)
{
	const bool looks = frame_group(m, f)->numbers;

	f->w[0] = FRAME_NUMBER;
	for (unsigned i = 0; i < (looks ? WRITTEN_WORDS : SPELLING_WORDS); i++)
		frame_push(f, 0);
	return number_write(m, f, byte);
}
