/* grammar/schema/json_key.c - names of an object's members: which are possible, and which schemas follow from them. */
#include <string.h>

#include "grammar/schema/json_key_parts.h"

/* Whether a member of that name can have a value that leaves the object right. */
bool key_leads_on(struct json_machine *m, uint32_t group, const struct member *of, const uint32_t *seen)
{
	const struct group *g = &m->group[group];
	const struct facts facts = { .failed = of->failed, .seen = seen };
	struct request r[3 * GROUP_NODES];

	if (!group_alive(m, g, &facts))
		return false;
	uint32_t child = group_child(m, group, &facts, r, member_requests(m, g, of, r));
	return child && group_begins(m, child);
}

/* Whether a pattern of names asks of its members what some value is right by. */
static bool has_value(struct json_machine *m, uint32_t group, uint32_t i, uint32_t node)
{
	const uint32_t none[GROUP_NODES / 32] = { 0 };
	const struct facts facts = { .failed = none };
	const struct request r = { i, node };
	const uint32_t child = node == SCHEMA_FALSE ? 0 : group_child(m, group, &facts, &r, 1);

	return child && group_begins(m, child);
}

bool key_lists(const struct json_machine *m, const struct group *g, uint32_t i)
{
	return m->schema->node[g->node[i]].other == SCHEMA_FALSE || (g->known && g->known[i]);
}

bool key_some_pattern(const struct json_machine *m, struct frame *f)
{
	const struct key k = key_parts(m, f);
	bool any = false;

	for (uint32_t at = 0; at < frame_group(m, f)->n_patterns && !any; at++)
		any = k.pattern[at] != AUTOMATON_DEAD;
	return any;
}

/* A name that is not in the list: one with a pattern that can still fit, or any. */
static bool other_possible(struct json_machine *m, struct frame *f)
{
	const struct schema *s = m->schema;
	const struct key k = key_parts(m, f);
	uint32_t failed[GROUP_NODES / 32], at = 0;
	bool patterns = false;

	if (k.rest[KEY_LISTED_ONLY])
		return false;
	const bool any = key_some_pattern(m, f);
	memcpy(failed, frame_failed(f), bits_words(frame_group(m, f)->n) * sizeof *failed);
	for (uint32_t i = 0; i < frame_group(m, f)->n; i++) { /* which may be moved in between */
		const struct schema_node *n = &s->node[frame_group(m, f)->node[i]];
		bool fits = false;
		for (uint32_t p = 0; p < n->patterns.n; p++, at++)
			fits |= k.pattern[at] != AUTOMATON_DEAD &&
			        (!key_lists(m, frame_group(m, f), i) ||
			         has_value(m, f->w[1], i, s->pattern[n->patterns.at + p].node));
		if ((!fits && n->other == SCHEMA_FALSE) ||
		    (frame_group(m, f)->known && frame_group(m, f)->known[i] && !any) || bit(k.full, i))
			set_bit(failed, i);
		patterns |= fits;
	}
	if (patterns) /* what they ask depends on how the name ends */
		return group_alive(m, frame_group(m, f), &(struct facts){ .failed = failed, .seen = k.seen });
	const uint32_t none[PATTERNS_MAX / 32] = { 0 };
	return key_leads_on(m, f->w[1], &(struct member){ NO_NAME, none, failed }, k.seen);
}

/* Nodes that have no room but for what they require fail by another name. */
static void fail_full(const struct json_machine *m, struct frame *f, uint32_t name, uint32_t *failed)
{
	const struct group *g = frame_group(m, f);
	const struct schema *s = m->schema;
	const struct key k = key_parts(m, f);

	for (uint32_t i = 0; i < g->n; i++) {
		struct part p = s->node[g->node[i]].required;
		effort_take(1 + p.n / 2);
		bool required = !bit(k.full, i);
		for (uint32_t j = 0; !required && j < p.n; j++)
			required = s->list[p.at + j] == g->name[name];
		if (!required)
			set_bit(failed, i);
	}
}

/* The patterns that fit the whole name. */
static void fit_patterns(const struct json_machine *m, const struct group *g, uint32_t name, uint32_t *fits)
{
	const struct schema *s = m->schema;
	uint32_t at = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		struct part p = s->node[g->node[i]].patterns;
		for (uint32_t j = 0; j < p.n; j++, at++) {
			struct automaton *a = s->automaton[s->pattern[p.at + j].automaton];
			uint32_t state = AUTOMATON_START;
			for (size_t b = 0; b < s->name_bytes[g->name[name]] && state != AUTOMATON_DEAD; b++)
				state = automaton_step(a, state, (uint8_t)s->name[g->name[name]][b]);
			if (automaton_accepts(a, state))
				set_bit(fits, at);
		}
	}
}

static bool name_possible(struct json_machine *m, struct frame *f, uint32_t name)
{
	const struct group *g = frame_group(m, f);
	const struct key k = key_parts(m, f);
	uint32_t failed[GROUP_NODES / 32], seen[FRAME_WORDS], fits[PATTERNS_MAX / 32] = { 0 };

	if (bit(k.seen, name) || bit(k.shut, name) || g->closed[name])
		return false;
	memcpy(failed, frame_failed(f), bits_words(g->n) * sizeof *failed);
	effort_take(10 + bits_words(g->n_names) / 8 + g->n_patterns * m->schema->name_bytes[g->name[name]]);
	memcpy(seen, k.seen, bits_words(g->n_names) * sizeof *seen);
	set_bit(seen, name);
	fail_full(m, f, name, failed);
	fit_patterns(m, g, name, fits);
	return key_leads_on(m, f->w[1], &(struct member){ name, fits, failed }, seen);
}

bool key_possible(struct json_machine *m, uint32_t key, uint32_t name)
{
	struct frame f;

	frame_load(m, key, &f);
	key_open_all(m, &f);
	return name_possible(m, &f, name);
}

/* Whether some value is right by all that one node of a group asks of a member, each looked at by itself. */
bool member_begins(struct json_machine *m, uint32_t group, uint32_t i, uint32_t name)
{
	static const uint32_t must_pass = 1; /* of the sets of failed roots, the empty one alone */
	const uint32_t none[GROUP_NODES / 32] = { 0 };
	uint32_t fits[PATTERNS_MAX / 32] = { 0 };
	struct request r[3 * GROUP_NODES];
	bool begins = true;

	fit_patterns(m, &m->group[group], name, fits);
	size_t n = member_requests(m, &m->group[group], &(struct member){ name, fits, none }, r);
	for (size_t k = 0; k < n && begins; k++) {
		if (r[k].from != i || r[k].to == SCHEMA_TRUE)
			continue;
		uint32_t own = r[k].to == SCHEMA_FALSE ? 0 : group_make(m, &r[k].to, 1, &must_pass, 1);
		begins = (own && group_begins(m, own)) || m->machine.failed;
	}
	return begins;
}

static bool possible(struct json_machine *m, struct frame *f)
{
	const uint32_t *rest = frame_rest(m, f);

	for (uint32_t i = rest[KEY_FROM]; i < rest[KEY_TO] && !effort_over(); i++)
		if (name_possible(m, f, i))
			return true;
	return other_possible(m, f);
}

/* The first of the names from..to, which are alike up to a byte, whose next byte is `byte` or behind it. */
static uint32_t first_from(const struct schema *s, const struct group *g, const uint32_t *rest, unsigned byte)
{
	uint32_t low = rest[KEY_FROM], high = rest[KEY_TO];

	while (low < high) {
		const uint32_t middle = (low + high) / 2, name = g->name[middle];
		if (s->name_bytes[name] <= rest[KEY_BYTES] || (uint8_t)s->name[name][rest[KEY_BYTES]] < byte)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void narrow(const struct json_machine *m, const struct group *g, uint32_t *rest, uint8_t byte)
{
	const uint32_t from = first_from(m->schema, g, rest, byte), to = first_from(m->schema, g, rest, byte + 1u);

	effort_take(8);
	rest[KEY_FROM] = from;
	rest[KEY_TO] = to;
	rest[KEY_BYTES] += from < to; /* nobody asks where no name is left */
	if (from == to)
		rest[KEY_FROM] = rest[KEY_TO] = rest[KEY_BYTES] = 0;
}

static void feed(struct json_machine *m, struct frame *f, const uint8_t *bytes, unsigned n)
{
	const struct group *g = frame_group(m, f);
	const struct schema *s = m->schema;
	const struct key k = key_parts(m, f);
	uint32_t at = 0;

	effort_take(4 + n * (g->n + g->n_patterns));
	for (unsigned b = 0; b < n; b++) {
		narrow(m, g, k.rest, bytes[b]);
		if (k.rest[KEY_MEETS])
			k.rest[KEY_MEETS] = names_meet(m, k.rest[KEY_NAMES], k.rest[KEY_MEETS], bytes[b]);
	}
	if (!k.rest[KEY_MEETS])
		k.rest[KEY_NAMES] = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		struct part p = s->node[g->node[i]].patterns;
		for (uint32_t j = 0; j < p.n; j++, at++)
			for (unsigned b = 0; b < n; b++)
				k.pattern[at] = automaton_step(s->automaton[s->pattern[p.at + j].automaton],
				                               k.pattern[at], bytes[b]);
	}
}

static size_t requests(const struct json_machine *m, const struct frame *f, struct request *r)
{
	const struct group *g = frame_group(m, f);
	size_t n = 0;

	for (uint32_t i = 0; i < g->n; i++) {
		uint32_t names = m->schema->node[g->node[i]].names;
		if (names != SCHEMA_NONE)
			r[n++] = (struct request){ i, names };
	}
	return n;
}

uint32_t key_begin(struct json_machine *m, struct frame *object, const struct members_so_far *so_far,
                   const uint32_t *full, uint32_t names)
{
	const uint32_t *seen = so_far->seen;
	uint32_t shut[FRAME_WORDS] = { 0 };
	const struct group *g = frame_group(m, object);
	struct frame f, inner;
	struct request r[GROUP_NODES];
	const struct facts facts = { .failed = frame_failed(object), .seen = seen };
	uint32_t child = group_child(m, object->w[1], &facts, r, requests(m, object, r));

	if (!child)
		return 0;
	g = frame_group(m, object); /* making a group may move them */
	frame_begin(&inner, FRAME_STRING, child, m->group[child].n);
	for (uint32_t i = 0; i < m->group[child].n; i++)
		if (!(m->schema->node[m->group[child].node[i]].kinds & JSON_IS_STRING))
			set_bit(frame_failed(&inner), i);
	const struct facts name = { .failed = frame_failed(&inner) };
	if (!group_alive(m, &m->group[child], &name))
		return 0;
	struct outcome o = string_begin(m, &inner);
	const bool others = order_shut(m, object->w[1], so_far, shut);
	g = frame_group(m, object);
	const uint32_t meets = names && names != list_none(m) ? value_root(m) : 0;
	frame_begin(&f, FRAME_KEY, object->w[1], g->n);
	memcpy(frame_failed(&f), frame_failed(object), bits_words(g->n) * sizeof *f.w);
	for (int i = 0; i < KEY_SEEN; i++)
		frame_push(&f, i == KEY_INNER         ? o.frame
		               : i == KEY_TO          ? g->n_names
		               : i == KEY_LISTED_ONLY ? !others
		               : i == KEY_MEETS       ? meets
		               : i == KEY_NAMES       ? (meets ? names : 0)
		                                      : 0);
	for (size_t i = 0; i < bits_words(g->n_names); i++)
		frame_push(&f, seen[i]);
	for (size_t i = 0; i < bits_words(g->n_names); i++)
		frame_push(&f, shut[i]);
	for (size_t i = 0; i < bits_words(g->n); i++)
		frame_push(&f, full[i]);
	for (uint32_t i = 0; i < g->n; i++) {
		struct part p = m->schema->node[g->node[i]].patterns;
		for (uint32_t k = 0; k < p.n; k++)
			frame_push(&f, automaton_is_live(m->schema->automaton[m->schema->pattern[p.at + k].automaton])
			                       ? AUTOMATON_START
			                       : AUTOMATON_DEAD);
	}
	if (f.failed) /* the object has too many names, and may have members all the same */
		return frame_keep(m, &f);
	return o.frame && possible(m, &f) && key_can_end(m, &f) ? frame_keep(m, &f) : 0;
}

struct trial {
	struct json_machine *m;
	const struct frame *f;
};

static bool takes(void *user, const uint8_t *bytes, unsigned n)
{
	const struct trial *t = user;
	struct frame f;

	memcpy(f.w, t->f->w, t->f->n * sizeof *f.w);
	f.n = t->f->n;
	feed(t->m, &f, bytes, n);
	return possible(t->m, &f);
}

/* The result: the name's index or NO_NAME, the bits of patterns that fit, the bits of the object's nodes that have
 * failed. */
static struct outcome key_end(struct json_machine *m, struct frame *f, uint32_t inner_group, uint32_t inner_result)
{
	const struct group *g = frame_group(m, f);
	const struct schema *s = m->schema;
	const struct key k = key_parts(m, f);
	uint32_t from = k.rest[KEY_FROM], at = 0;
	struct frame out = { .n = 0 };
	struct request r[GROUP_NODES];
	bool named = from < k.rest[KEY_TO] && s->name_bytes[g->name[from]] == k.rest[KEY_BYTES];

	if (named ? bit(k.seen, from) || bit(k.shut, from) : k.rest[KEY_LISTED_ONLY] != 0)
		return dies();
	if (!named && k.rest[KEY_MEETS] && items_have(m, k.rest[KEY_NAMES], k.rest[KEY_MEETS]))
		return dies();
	frame_push(&out, named ? from : NO_NAME);
	for (size_t i = 0; i < bits_words(g->n_patterns); i++)
		frame_push(&out, 0);
	for (uint32_t i = 0; i < g->n; i++) {
		struct part p = s->node[g->node[i]].patterns;
		for (uint32_t j = 0; j < p.n; j++, at++)
			if (automaton_accepts(s->automaton[s->pattern[p.at + j].automaton], k.pattern[at]))
				set_bit(out.w + 1, at);
	}
	size_t n = requests(m, f, r);
	group_child_failed(m, inner_group, interner_get(&m->results, inner_result, NULL), r, n, frame_failed(f));
	for (size_t i = 0; i < bits_words(g->n); i++)
		frame_push(&out, frame_failed(f)[i]);
	return out.failed ? dies() : pops(m, out.w, out.n);
}

struct outcome key_take(struct json_machine *m, struct frame *f, uint8_t byte)
{
	uint32_t *rest = frame_rest(m, f);
	struct text_state t = { rest[KEY_TEXT], rest[KEY_TEXT + 1], rest[KEY_TEXT + 2] };
	struct frame inner;
	uint8_t out[4];
	unsigned n;

	frame_load(m, rest[KEY_INNER], &inner);
	struct outcome o = string_step(m, &inner, byte);
	if (o.kind == DIES || m->machine.failed) /* without memory there is no result to look at */
		return dies();
	if (o.kind == POPS)
		return key_end(m, f, inner.w[1], o.result);
	enum text_event e = text_step(&t, byte, m->writes, out, &n);
	memcpy(rest + KEY_TEXT, &t, sizeof t);
	rest[KEY_INNER] = o.frame;
	feed(m, f, out, n);
	if (e == TEXT_INSIDE && !text_escape_ends(&t, m->writes, takes, &(struct trial){ m, f }))
		return dies();
	return possible(m, f) ? stays(m, f) : dies();
}

struct outcome key_step(struct json_machine *m, struct frame *f, uint8_t byte)
{
	const struct outcome o = key_take(m, f, byte);
	struct frame after;

	if (o.kind != STAYS || m->machine.failed)
		return o;
	frame_load(m, o.frame, &after);
	const uint32_t *rest = frame_rest(m, &after);
	return key_inside_character(rest) || key_can_end(m, &after) ? o : dies();
}

/* The last character could be that of a name which is there already. What a name is counted by is asked at its end
 * alone. Where another name than those of the list is possible, it stays so whatever comes, as long as no pattern dies;
 * else characters may lead to a name of the list or nowhere. */
uint32_t key_easy(struct json_machine *m, uint32_t number, enum easy class)
{
	const struct schema *s = m->schema;
	struct frame f;

	frame_load(m, number, &f);
	if (key_inside_character(frame_rest(m, &f)))
		return 0;
	const bool other = frame_rest(m, &f)[KEY_FROM] == frame_rest(m, &f)[KEY_TO] || other_possible(m, &f);
	const bool meets = frame_rest(m, &f)[KEY_MEETS] != 0;
	const bool peril = key_is_perilous(m, &f);
	const uint32_t reach = peril ? key_reach(m, &f, class) : 0;
	/* which may have made groups, and moved them */
	const uint32_t *frame = interner_get(&m->frames, number, NULL);
	const struct group *g = &m->group[frame[1]];
	const uint32_t *rest = frame + FRAME_HEAD + bits_words(g->n),
		       *pattern = rest + KEY_SEEN + 2 * bits_words(g->n_names) + bits_words(g->n);
	if (peril)
		return meets && reach && reach != UINT32_MAX ? reach - 1 : reach;
	uint32_t max = other && !m->machine.failed ? string_easy(m, rest[KEY_INNER], class) : 0;

	for (uint32_t i = 0; max && i < g->n; i++) {
		struct part p = s->node[g->node[i]].patterns;
		for (uint32_t k = 0; max && k < p.n; k++, pattern++)
			max = automaton_shorter(s->automaton[s->pattern[p.at + k].automaton], *pattern, class, max);
	}
	return meets && max && max != UINT32_MAX ? max - 1 : max;
}
