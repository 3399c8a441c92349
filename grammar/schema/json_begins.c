/* grammar/schema/json_begins.c - whether any value satisfies a schema: a value that cannot exist must not be begun.
 *
 * A value that must hold another one exists if that one does, and so on down. Schemas refer to themselves, and a value
 * that needs itself does not exist. So the value under evaluation counts as impossible. Answers that depend on this
 * assumption are not cached.
 */
#include <string.h>

#include "grammar/schema/json_parts.h"

/* Values inside of one another that are looked at, and groups in all: beyond, a value is taken to be there. */
enum { DEPTH_MAX = 16, EVALUATIONS_MAX = 20000 };

/* Whether a value of that kind can be right, whose frame has these nodes failed. */
static bool kind_begins(struct json_machine *m, uint32_t group, unsigned kind, const uint32_t *failed)
{
	struct frame f;

	frame_begin(&f, FRAME_STRING, group, m->group[group].n);
	memcpy(frame_failed(&f), failed, bits_words(m->group[group].n) * sizeof *failed);
	switch (kind) {
	case JSON_IS_STRING: return string_begin(m, &f).kind != DIES;
	case JSON_IS_NUMBER:
		if (m->writes)
			return number_can_be_written(m, &f);
		return !m->group[group].joint_numbers || number_can_succeed(m, &f, "", 0) ||
		       number_can_succeed(m, &f, "-", 1);
	case JSON_IS_ARRAY: return array_possible(m, &f);
	case JSON_IS_OBJECT: return object_begin(m, &f, 0).kind != DIES;
	default: return true;
	}
}

static bool any_begins(struct json_machine *m, uint32_t group)
{
	uint32_t failed[GROUP_NODES / 32];

	for (unsigned kind = 1; kind <= JSON_IS_OBJECT; kind *= 2) {
		const struct group *g = &m->group[group];
		memset(failed, 0, sizeof failed);
		for (uint32_t i = 0; i < g->n; i++)
			if (!(m->schema->node[g->node[i]].kinds & kind))
				set_bit(failed, i);
		if (group_alive(m, g, &(struct facts){ .failed = failed, .kind = kind }) &&
		    kind_begins(m, group, kind, failed))
			return true;
	}
	return m->machine.failed;
}

bool group_begins(struct json_machine *m, uint32_t group)
{
	struct group *g = &m->group[group];

	if (g->begins >= 0)
		return g->begins == 1;
	if (g->evaluated) {
		m->rests_on = g->evaluated < m->rests_on ? g->evaluated : m->rests_on;
		return false;
	}
	if (m->asking == DEPTH_MAX || m->evaluations == EVALUATIONS_MAX)
		return true;
	const uint32_t outer = m->rests_on, own = ++m->asking;
	g->evaluated = own;
	m->rests_on = UINT32_MAX;
	m->evaluations++;
	bool any = any_begins(m, group);
	g = &m->group[group]; /* making groups may move them */
	g->evaluated = 0;
	m->asking--;
	if (any || m->rests_on >= own)
		g->begins = any;
	m->rests_on = any || m->rests_on >= own || outer < m->rests_on ? outer : m->rests_on;
	return any;
}
