/* grammar/schema/json_start.c - how values begin, and the frames without a file of their own: words, and what follows
 * the last value. */
#include "grammar/schema/json_parts.h"

/* White space, then a value. */
uint32_t start_frame(struct json_machine *m, uint32_t group, uint32_t space)
{
	struct frame f;

	frame_begin(&f, FRAME_START, group, m->group[group].n);
	frame_push(&f, space);
	return frame_keep(m, &f);
}

static const struct {
	const char *text;
	uint8_t kind;
} words[] = { { "null", JSON_IS_NULL }, { "false", JSON_IS_FALSE }, { "true", JSON_IS_TRUE } };

static uint8_t kind_of(uint8_t b)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (words[i].text[0] == (char)b)
			return words[i].kind;
	return b == '"'                             ? JSON_IS_STRING
	       : b == '['                           ? JSON_IS_ARRAY
	       : b == '{'                           ? JSON_IS_OBJECT
	       : b == '-' || (b >= '0' && b <= '9') ? JSON_IS_NUMBER
	                                            : 0;
}

static struct outcome begin_array(struct json_machine *m, struct frame *f, uint32_t space)
{
	struct frame trial;

	frame_copy(&trial, f);
	return array_possible(m, &trial) ? array_begin(m, f, space) : dies();
}

struct outcome start_step(struct json_machine *m, struct frame *f, uint8_t byte)
{
	const struct group *g = frame_group(m, f);
	uint8_t kind = kind_of(byte);
	uint32_t *space = &frame_rest(m, f)[0];
	const unsigned where = *space & SPACE_OF_MEMBER  ? SPACE_ONE
	                       : *space & SPACE_IN_LINES ? SPACE_LINE
	                       : space_depth(*space)     ? SPACE_ONE
	                                                 : SPACE_ONE | SPACE_LINE;

	if (is_space(byte))
		return space_step(m, space, byte, where) ? stays(m, f) : dies();
	if (!space_ends(m, space, where))
		return dies();
	const uint32_t deeper = space_deeper(m, *space);
	for (uint32_t i = 0; i < g->n; i++)
		if (!(m->schema->node[g->node[i]].kinds & kind))
			set_bit(frame_failed(f), i);
	if (!kind || !group_alive(m, g, &(struct facts){ .failed = frame_failed(f), .kind = kind }))
		return dies();
	f->n--; /* the space */
	switch (kind) {
	case JSON_IS_STRING: return string_begin(m, f);
	case JSON_IS_NUMBER: return m->writes ? number_begin_writing(m, f, byte) : number_begin(m, f, byte);
	case JSON_IS_ARRAY: return begin_array(m, f, deeper);
	case JSON_IS_OBJECT: return object_begin(m, f, deeper);
	}
	f->w[0] = FRAME_WORD;
	frame_push(f, kind == JSON_IS_NULL ? 0 : kind == JSON_IS_FALSE ? 1 : 2);
	frame_push(f, 1);
	/* Nothing can go wrong inside of a word: whether it may end is known when it begins. */
	struct frame end = *f;
	return group_done(m, &end, NULL).kind == DIES ? dies() : stays(m, f);
}

struct outcome word_step(struct json_machine *m, struct frame *f, uint8_t byte)
{
	uint32_t *rest = frame_rest(m, f);
	const char *text = words[rest[0]].text;

	if ((char)byte != text[rest[1]++])
		return dies();
	return text[rest[1]] ? stays(m, f) : group_done(m, f, NULL);
}

struct outcome end_step(struct json_machine *m, struct frame *f, uint8_t byte)
{
	/* One, so that a model that is done says so. */
	const bool space = m->writes ? !m->compact && (byte == ' ' || byte == '\n') : is_space(byte);

	return space && f->w[FRAME_HEAD]++ == 0 ? stays(m, f) : dies();
}
