/* grammar/schema/json_key_parts.h - a name that is being read: what the files that do it share. */
#ifndef GRAMMAR_JSON_KEY_PARTS_H
#define GRAMMAR_JSON_KEY_PARTS_H

#include "grammar/schema/json_parts.h"

/* Behind the head, whose group is the object's and whose bits are the object's: the text's state (3 words); the frame
 * of the name as a string, which nodes with "propertyNames" look at; the names of the group that begin so: from, to,
 * and how many bytes; where names can come to an end and one of the object's other names begins so, all bytes
 * (json_value.c) and those names (json_told.c), else 0: such frames are few, however many texts there are; whether
 * names that are not in order may come (json_order.c); what the object has seen; names whose turn it is not; a bit for
 * each node that has room only for members that it still requires; the states of patterns. */
enum { KEY_TEXT, KEY_INNER = 3, KEY_FROM, KEY_TO, KEY_BYTES, KEY_MEETS, KEY_NAMES, KEY_LISTED_ONLY, KEY_SEEN };

struct key {
	uint32_t *rest, *seen, *shut, *full, *pattern;
};

static inline struct key key_parts(const struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);
	struct key k = { .rest = frame_rest(m, f) };

	k.seen = k.rest + KEY_SEEN;
	k.shut = k.seen + bits_words(g->n_names);
	k.full = k.shut + bits_words(g->n_names);
	k.pattern = k.full + bits_words(g->n);
	return k;
}

/* Whether the text stands inside of a character: its bytes, an escape, or between the halves of a pair. */
static inline bool key_inside_character(const uint32_t *rest)
{
	return rest[KEY_TEXT] || rest[KEY_TEXT + 1] || rest[KEY_TEXT + 2];
}

/* The one whose turn it is. */
static inline void key_open_all(const struct json_machine *m, struct frame *f)
{
	const struct key k = key_parts(m, f);

	k.rest[KEY_LISTED_ONLY] = 0;
	memset(k.shut, 0, bits_words(frame_group(m, f)->n_names) * sizeof *k.shut);
}

/* json_key.c: one byte of a name, whatever other names there are; whether a member of that name can have a value that
 * leaves the object right. */
struct outcome key_take(struct json_machine *m, struct frame *f, uint8_t byte);
bool key_leads_on(struct json_machine *m, uint32_t group, const struct member *of, const uint32_t *seen);
/* Whether a node leaves room for names that it does not list. */
bool key_lists(const struct json_machine *m, const struct group *g, uint32_t i);
/* Whether any pattern can still fit. */
bool key_some_pattern(const struct json_machine *m, struct frame *f);
/* json_names.c: whether what was begun may lead nowhere, though each that looks at it takes the beginning; whether what
 * was begun can become a name that the object has not, and that has a value. */
bool key_is_perilous(struct json_machine *m, struct frame *f);
/* ... and for how many characters of a class it leads on. */
uint32_t key_reach(struct json_machine *m, const struct frame *f, enum easy class);
bool key_can_end(struct json_machine *m, const struct frame *f);

#endif
