/* grammar/schema/json_space.c - white space between the parts of a text: for those who write, as a person or a program
 * lays JSON out. */
#include "grammar/schema/json_parts.h"

/* What was read: LINE and how many bytes indent it; for those who write, TABS for tabs. */
enum { NONE, ONE, RETURN, LINE, TABS = 80, TAB_UNIT = SPACE_UNIT_MAX + 1 };

static bool is_line(uint32_t at) { return at >= LINE; }

/* Whether so many bytes, of spaces or tabs, are the indentation of a line so deep: the first line of a text says how
 * far one level goes. `more`: or can become it. */
static bool indents(uint32_t word, uint32_t n, bool tabs, uint32_t depth, bool more)
{
	const uint32_t unit = space_unit(word);

	if (tabs)
		return (unit == 0 || unit == TAB_UNIT) && (more ? n <= depth : n == depth);
	if (unit == TAB_UNIT || depth == 0)
		return n == 0 && (depth == 0 || more);
	if (unit)
		return more ? n <= unit * depth : n == unit * depth;
	return n <= SPACE_UNIT_MAX * depth && (more || (n && n % depth == 0));
}

static bool write_space(uint32_t *word, uint8_t byte, unsigned where)
{
	const uint32_t at = *word & SPACE_STATE, depth = space_depth(*word) - (where & SPACE_CLOSES ? 1 : 0);
	uint32_t next = at + 1;

	if (at == NONE && byte == ' ' && where & SPACE_ONE)
		next = ONE;
	else if (at == NONE && byte == '\n' && where & SPACE_LINE && depth < DEPTH_TOLD)
		next = LINE;
	else if (at == LINE && byte == '\t' && indents(*word, 1, true, depth, true))
		next = TABS;
	else if (!(at >= TABS ? byte == '\t' && indents(*word, at - TABS + 2, true, depth, true)
	                      : at >= LINE && byte == ' ' && indents(*word, at - LINE + 1, false, depth, true)))
		return false;
	*word = (*word & ~(uint32_t)SPACE_STATE) | next;
	return true;
}

bool space_step(const struct json_machine *m, uint32_t *word, uint8_t byte, unsigned where)
{
	uint32_t at = *word & SPACE_STATE;
	bool ok = true;

	if (m->writes)
		return !m->compact && write_space(word, byte, where);
	if (byte == '\n')
		ok = at < LINE && (at = LINE);
	else if (byte == '\r')
		ok = at < RETURN && (at = RETURN);
	else if (at == NONE)
		at = ONE;
	else
		ok = at >= LINE && at < LINE + SPACE_MAX && ++at;
	*word = (*word & ~(uint32_t)SPACE_STATE) | at;
	return ok;
}

bool space_ends(const struct json_machine *m, uint32_t *word, unsigned where)
{
	const uint32_t at = *word & SPACE_STATE, depth = space_depth(*word) - (where & SPACE_CLOSES ? 1 : 0);
	const bool tabs = at >= TABS;
	const uint32_t n = tabs ? at - TABS + 1 : is_line(at) ? at - LINE : 0;

	*word &= ~(uint32_t)SPACE_STATE;
	if (!m->writes)
		return true;
	if (!is_line(at))
		return !(where & SPACE_LINE) || where & SPACE_ONE || where & SPACE_FIRST;
	if (!indents(*word, n, tabs, depth, false))
		return false;
	if (depth && !space_unit(*word))
		*word |= (tabs ? (uint32_t)TAB_UNIT : n / depth) << SPACE_UNIT;
	if (where & SPACE_FIRST)
		*word |= SPACE_IN_LINES;
	return true;
}
