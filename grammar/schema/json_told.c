/* grammar/schema/json_told.c - what a text has told that its frames need not know: the items of an array that must
 * differ, the names of an object that counts its members, and the text of such a name.
 *
 * Frames with texts in them are as many as there are texts, and each is looked at anew. So a state has the text beside
 * its frame, and compares it when the item or the name is whole. A frame has of items and names those alone that what
 * may come next depends on (json_unique.c, json_names.c).
 */
#include <stdlib.h>

#include "grammar/schema/json_parts.h"

uint32_t list_none(struct json_machine *m) { return items_with(m, 0, 0); }

uint32_t names_meet(struct json_machine *m, uint32_t list, uint32_t bytes, uint8_t byte)
{
	const struct interner *lists = &m->values.lists;
	const uint32_t next = value_byte(m, bytes, byte);

	for (; list && next; list = interner_get(lists, list, NULL)[0])
		for (uint32_t at = interner_get(lists, list, NULL)[1]; at && effort_take(1);
		     at = interner_get(&m->values.bytes, at, NULL)[0])
			if (at == next)
				return next;
	return 0;
}

static bool has_list(const struct json_machine *m, const uint32_t *frame)
{
	return items_differ(m, frame) || (frame[0] == FRAME_OBJECT && m->group[frame[1]].counts);
}

bool told_of_name(const struct json_machine *m, uint32_t frame)
{
	const uint32_t *w = interner_get(&m->frames, frame, NULL);

	return w[0] == FRAME_KEY && m->group[w[1]].counts;
}

bool told_is_needed(const struct json_machine *m, uint32_t frame)
{
	const uint32_t *w = interner_get(&m->frames, frame, NULL);

	return items_differ(m, w) || (w[0] == FRAME_OBJECT && m->group[w[1]].limits_names);
}

uint32_t told_by(struct json_machine *m, uint32_t told, uint32_t before, uint32_t frame, uint8_t byte)
{
	const uint32_t *w = interner_get(&m->frames, frame, NULL);

	if (w[0] == FRAME_KEY)
		return told ? value_byte(m, told, byte) : 0;
	return has_list(m, w) && interner_get(&m->frames, before, NULL)[0] == FRAME_START ? list_none(m) : told;
}

uint32_t told_alone(const struct json_machine *m, uint32_t frame)
{
	return interner_get(&m->frames, frame, NULL)[0] == FRAME_OBJECT ? object_names(m, frame) : 0;
}

uint32_t told_pushed(struct json_machine *m, uint32_t frame) { return told_of_name(m, frame) ? value_root(m) : 0; }

/* Which may be written by escapes. */
uint32_t told_name(struct json_machine *m, uint32_t text)
{
	struct text_state t = { 0 };
	uint8_t out[4], *bytes;
	uint32_t name = value_root(m);
	size_t length = 0;
	unsigned n;

	for (uint32_t at = text; at != name && effort_take(2); at = interner_get(&m->values.bytes, at, NULL)[0])
		length++;
	if (effort_over() || !(bytes = effort_malloc(length + 1))) {
		m->machine.failed = true;
		return 0;
	}
	for (size_t i = length; i-- > 0; text = interner_get(&m->values.bytes, text, NULL)[0])
		bytes[i] = (uint8_t)interner_get(&m->values.bytes, text, NULL)[1];
	for (size_t i = 0; i < length; i++) {
		text_step(&t, bytes[i], m->writes, out, &n);
		for (unsigned k = 0; k < n && name; k++)
			name = value_byte(m, name, out[k]);
	}
	free(bytes);
	return name;
}
