/* grammar/schema/json_names.c - which names an object can still have, and whether one that was begun can become such a
 * name.
 */
#include <stdlib.h>
#include <string.h>

#include "grammar/schema/json_key_parts.h"
#include "grammar/regex/reach.h"

/* Where members are counted, none may have the name of another: what was begun must be able to become one that is not
 * there yet. Patterns can leave few. */

bool group_limits_names(const struct json_machine *m, const struct group *g)
{
	bool limits = false;

	for (uint32_t i = 0; i < g->n && g->counts; i++) {
		const struct schema_node *n = &m->schema->node[g->node[i]];
		limits |= n->names != SCHEMA_NONE || (n->patterns.n && key_lists(m, g, i));
	}
	return limits;
}

/* Whether the object can have a member of a name that was read, with its result. */
static bool adds_name(struct json_machine *m, const struct frame *key, uint32_t result)
{
	struct frame f;
	size_t n;
	const uint32_t *w = interner_get(&m->results, result, &n);
	uint32_t words[FRAME_WORDS], seen[FRAME_WORDS];

	frame_copy(&f, key);
	const struct group *g = frame_group(m, &f);
	memcpy(words, w, n * sizeof *words);
	memcpy(seen, key_parts(m, &f).seen, bits_words(g->n_names) * sizeof *seen);
	if (words[0] != NO_NAME)
		set_bit(seen, words[0]);
	const uint32_t *failed = words + 1 + bits_words(g->n_patterns);
	return key_leads_on(m, f.w[1], &(struct member){ words[0], words + 1, failed }, seen);
}

struct naming {
	struct json_machine *m;
	unsigned wanted, found, tries;
};
enum { NAMES_TRIED = 3000, NAME_DEPTH = 24 };

/* Counts names that the text can become; where it takes long, there are taken to be enough. */
static void count_names(struct naming *n, const struct frame *f, unsigned depth)
{
	static const uint8_t usual[] = "\"abx019A_-. z"; /* the end, and what most patterns take */
	struct frame *next = effort_malloc(sizeof *next);

	n->m->machine.failed |= !next;
	for (unsigned i = 0; next && i < 256 + sizeof usual - 1 && n->found < n->wanted; i++) {
		const bool first = i < sizeof usual - 1;
		const uint8_t byte = first ? usual[i] : (uint8_t)(i - (sizeof usual - 1));
		if (byte < ' ' || byte == '\\' || (!first && memchr(usual, byte, sizeof usual - 1)))
			continue;
		if (++n->tries > NAMES_TRIED || depth > NAME_DEPTH || effort_over()) {
			n->found = n->wanted;
			break;
		}
		frame_copy(next, f);
		const struct outcome o = key_take(n->m, next, byte);
		n->found += o.kind == POPS && adds_name(n->m, f, o.result);
		if (o.kind != STAYS || !o.frame)
			continue;
		frame_load(n->m, o.frame, next);
		count_names(n, next, depth + 1);
	}
	free(next);
}

/* ---- where what is asked of names, of members and by patterns must be looked at together */

enum { LEADS_UNKNOWN, LEADS_ON, LEADS_NOWHERE, FRAMES_LOOKED_AT = 1500 };

/* Whether all patterns of names can fit one name, and its member have a value. */
static bool patterns_agree(struct json_machine *m, uint32_t group)
{
	const uint32_t none[GROUP_NODES / 32] = { 0 }, seen[FRAME_WORDS] = { 0 };
	const struct facts facts = { .failed = none, .seen = seen };
	uint32_t all[PATTERNS_MAX / 32];
	struct request r[3 * GROUP_NODES];

	memset(all, 0xff, sizeof all);
	const size_t n = member_requests(m, &m->group[group], &(struct member){ NO_NAME, all, none }, r);
	const uint32_t child = group_child(m, group, &facts, r, n);
	return child && group_begins(m, child);
}

static bool find_peril(struct json_machine *m, uint32_t group)
{
	const struct group *g = &m->group[group];
	unsigned lists = 0;
	bool names = false;

	for (uint32_t i = 0; i < g->n; i++) {
		names |= m->schema->node[g->node[i]].names != SCHEMA_NONE;
		lists += key_lists(m, g, i);
	}
	if (names && (g->n_names || g->n_patterns))
		return true;
	return g->n_patterns && (lists > 1 || g->mixed || !patterns_agree(m, group));
}

bool key_is_perilous(struct json_machine *m, struct frame *f)
{
	const uint32_t group = f->w[1], *rest = frame_rest(m, f);

	if (rest[KEY_FROM] == rest[KEY_TO] && !key_some_pattern(m, f))
		return false;
	if (m->group[group].perilous < 0) {
		const bool peril = find_peril(m, group);
		m->group[group].perilous = peril; /* groups may have moved */
	}
	return m->group[group].perilous > 0;
}

/* Bytes before which nobody tells the byte from the one before. */
static void find_borders(struct json_machine *m, const struct frame *f, bool border[256])
{
	static const uint8_t utf8[] = { 0x20, 0x22, 0x23, 0x5c, 0x5d, 0x80, 0x90, 0xa0, 0xc0,
		                        0xc2, 0xe0, 0xe1, 0xed, 0xee, 0xf0, 0xf1, 0xf4, 0xf5 };
	const struct schema *s = m->schema;
	struct frame copy, inner;

	frame_copy(&copy, f);
	frame_load(m, key_parts(m, &copy).rest[KEY_INNER], &inner);
	const struct group *g = frame_group(m, f), *name = frame_group(m, &inner);
	for (size_t i = 0; i < sizeof utf8; i++)
		border[utf8[i]] = true;
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t k = 0; k < s->node[g->node[i]].patterns.n; k++)
			automaton_borders(s->automaton[s->pattern[s->node[g->node[i]].patterns.at + k].automaton],
			                  border);
	for (uint32_t i = 0; i < name->n; i++)
		for (uint32_t k = 0; k < s->node[name->node[i]].texts.n; k++)
			automaton_borders(s->automaton[s->list[s->node[name->node[i]].texts.at + k]], border);
	for (uint32_t i = 0; i < g->n_names && effort_take(1); i++)
		for (size_t b = 0; b < s->name_bytes[g->name[i]]; b++) {
			const uint8_t byte = (uint8_t)s->name[g->name[i]][b];
			border[byte] = true;
			border[(uint8_t)(byte + 1)] = true;
		}
}

/* Frames that a name can become, each with the one before it. */
struct names_met {
	struct interner frames;
	uint32_t *from;
	size_t room;
	bool failed;
};

static void meet(struct names_met *t, uint32_t frame, uint32_t from)
{
	void *all = t->from;
	int made;
	const uint32_t number = interner_add(&t->frames, &frame, 1, &made);

	if (!number || !effort_array(&all, &t->room, (size_t)number + 1, sizeof *t->from)) {
		t->failed = true;
		return;
	}
	t->from = all;
	if (made)
		t->from[number] = from;
}

static struct name_known *known_of(struct json_machine *m, uint32_t frame)
{
	void *names = m->names;
	const size_t had = m->names_room;

	if (!frame || !effort_array(&names, &m->names_room, (size_t)frame + 1, sizeof *m->names)) {
		m->machine.failed = true;
		return NULL;
	}
	m->names = names;
	if (m->names_room > had)
		memset(m->names + had, 0, (m->names_room - had) * sizeof *m->names);
	return &m->names[frame];
}

static void keep_leads(struct json_machine *m, uint32_t frame, uint8_t leads)
{
	struct name_known *known = known_of(m, frame);

	if (known)
		known->leads = leads;
}

/* Tries all bytes behind a frame. True: one ends a name that can have a member. */
static bool try_bytes(struct json_machine *m, struct names_met *t, uint32_t number, const bool border[256])
{
	struct frame f, next;
	const uint32_t frame = *interner_get(&t->frames, number, NULL);

	frame_load(m, frame, &f);
	for (unsigned i = 0; i < 257 && !t->failed && !effort_over() && !m->machine.failed; i++) {
		const uint8_t byte = i ? (uint8_t)(i - 1) : '"'; /* most may end at once */
		if (i && (!border[byte] || byte == '"' || byte == '\\' || byte < ' '))
			continue;
		frame_copy(&next, &f);
		const struct outcome o = key_take(m, &next, byte);
		if (o.kind == POPS && adds_name(m, &f, o.result))
			return true;
		if (o.kind == STAYS && o.frame)
			meet(t, o.frame, number);
	}
	return false;
}

/* The frame, whatever names the object has: of those there are few. */
static uint32_t any_name_of(struct json_machine *m, const struct frame *f)
{
	struct frame own;

	frame_copy(&own, f);
	uint32_t *rest = frame_rest(m, &own);
	rest[KEY_MEETS] = rest[KEY_NAMES] = 0;
	return frame_keep(m, &own);
}

static bool name_leads(struct json_machine *m, const struct frame *f)
{
	struct names_met t = { .failed = false };
	bool border[256] = { false }, found = false;
	const uint32_t first = any_name_of(m, f);
	const struct name_known *known = known_of(m, first);

	if (!known || known->leads != LEADS_UNKNOWN)
		return !known || known->leads == LEADS_ON;
	find_borders(m, f, border);
	meet(&t, first, 0);
	for (uint32_t i = 1; i <= t.frames.n && !found && !t.failed && !effort_over() && !m->machine.failed; i++) {
		found = i > FRAMES_LOOKED_AT || try_bytes(m, &t, i, border);
		for (uint32_t at = i; found && at; at = t.from[at])
			keep_leads(m, *interner_get(&t.frames, at, NULL), LEADS_ON);
	}
	m->machine.failed |= t.failed;
	for (uint32_t i = 1; i <= t.frames.n && !found && !m->machine.failed && !effort_over(); i++)
		keep_leads(m, *interner_get(&t.frames, i, NULL), LEADS_NOWHERE);
	interner_clear(&t.frames);
	free(t.from);
	return found;
}

static uint32_t step_name(void *user, uint32_t frame, uint8_t byte)
{
	struct json_machine *m = user;
	struct frame f;

	frame_load(m, frame, &f);
	const struct outcome o = key_take(m, &f, byte);
	if (o.kind != STAYS || !o.frame || m->machine.failed)
		return 0;
	frame_load(m, o.frame, &f);
	const uint32_t *rest = frame_rest(m, &f);
	return key_inside_character(rest) || name_leads(m, &f) ? o.frame : 0;
}

uint32_t key_reach(struct json_machine *m, const struct frame *f, enum easy class)
{
	const uint32_t first = any_name_of(m, f);
	bool border[256] = { false };
	uint8_t class_of[256] = { 0 };
	struct reach r = { .step = step_name, .user = m, .class_of = class_of };
	const struct name_known *known = known_of(m, first);

	if (!known)
		return 0;
	if (known->easy[class])
		return known->reach[class];
	find_borders(m, f, border);
	for (unsigned b = 1; b < 256; b++)
		class_of[b] = (uint8_t)(class_of[b - 1] + border[b]);
	const uint32_t reach = reach_from(&r, first, class);
	struct name_known *own = known_of(m, first);
	if (!own || m->machine.failed || effort_over())
		return 0;
	own->easy[class] = true;
	return own->reach[class] = reach;
}

bool key_can_end(struct json_machine *m, const struct frame *f)
{
	struct frame copy;
	struct naming n = { .m = m, .wanted = 1 };

	frame_copy(&copy, f);
	if (key_is_perilous(m, &copy) && !name_leads(m, f))
		return false;
	if (!frame_rest(m, &copy)[KEY_MEETS])
		return true;
	count_names(&n, f, 0);
	return n.found > 0;
}

uint32_t key_names(struct json_machine *m, uint32_t key, uint32_t max)
{
	enum { COUNTED_MAX = 64 };
	struct naming n = { .m = m, .wanted = max < COUNTED_MAX ? max : COUNTED_MAX };
	struct frame f;

	frame_load(m, key, &f);
	if (!frame_group(m, &f)->limits_names)
		return max;
	key_open_all(m, &f);
	count_names(&n, &f, 0);
	return n.found < n.wanted ? n.found : max;
}
