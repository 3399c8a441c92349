/* grammar/json_name_list.c - the names that an object has beside those of its schemas, where members are counted and
 * none may come twice.
 *
 * A state has them beside its frame, and so it has the text of a name that is being read: frames with texts in them are
 * as many as there are texts, and each is looked at anew. A name is compared when it is whole. Only where names can
 * come to an end, a frame has them as well, for what is begun must leave one (json_names.c).
 */
#include <stdlib.h>

#include "grammar/json_parts.h"

uint32_t names_none(struct json_machine *m) { return items_with(m, 0, 0); }

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

static bool is_counted(const struct json_machine *m, const uint32_t *frame, enum frame_kind kind)
{
	return frame[0] == kind && m->group[frame[1]].counts;
}

bool told_of_name(const struct json_machine *m, uint32_t frame)
{
	return is_counted(m, interner_get(&m->frames, frame, NULL), FRAME_KEY);
}

uint32_t told_by(struct json_machine *m, uint32_t told, uint32_t before, uint32_t frame, uint8_t byte)
{
	const uint32_t *w = interner_get(&m->frames, frame, NULL);

	if (w[0] == FRAME_KEY)
		return told ? value_byte(m, told, byte) : 0;
	if (is_counted(m, w, FRAME_OBJECT) && interner_get(&m->frames, before, NULL)[0] == FRAME_START)
		return names_none(m);
	return told;
}

uint32_t told_alone(const struct json_machine *m, uint32_t frame)
{
	return interner_get(&m->frames, frame, NULL)[0] == FRAME_OBJECT ? object_names(m, frame) : 0;
}

uint32_t told_pushed(struct json_machine *m, uint32_t frame) { return told_of_name(m, frame) ? value_root(m) : 0; }

/* The bytes of the name itself, which may be written by escapes. */
static uint32_t name_of_text(struct json_machine *m, uint32_t text)
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

bool told_with(struct json_machine *m, uint32_t object, uint32_t result, uint32_t name, uint32_t *list, bool *known)
{
	const uint32_t *w = interner_get(&m->frames, object, NULL);

	*known = true;
	if (!m->group[w[1]].counts || interner_get(&m->results, result, NULL)[0] != NO_NAME)
		return true;
	*known = *list && name;
	if (!*known)
		return true;
	const uint32_t whole = name_of_text(m, name);
	if (!whole || items_have(m, *list, whole))
		return false;
	*list = items_with(m, *list, whole);
	return true;
}
