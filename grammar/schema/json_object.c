/* grammar/schema/json_object.c - objects: which members there are, in any order, each once, and which schemas look at
 * them. */
#include <string.h>

#include "grammar/schema/json_key_parts.h"

/* Behind the head: the phase, white space, how many members, the rank from which on the next one comes (json_order.c),
 * where names can come to an end and none is under way those that no schema has (json_told.c), the bits of names
 * that were seen, then while a member is under way its name (an index of the group's, or NO_NAME) and the bits of
 * patterns that fit it. */
enum { PHASE, SPACE, MEMBERS, ORDER, NAMES, SEEN };
enum phase { FIRST, NEXT_NAME, COLON, VALUE, NEXT };
static uint32_t *seen_of(const struct json_machine *m, struct frame *f) { return frame_rest(m, f) + SEEN; }
static uint32_t *current_of(const struct json_machine *m, struct frame *f)
{
	return seen_of(m, f) + bits_words(frame_group(m, f)->n_names);
}
static struct facts facts_of(const struct json_machine *m, struct frame *f)
{
	return (struct facts){ .failed = frame_failed(f), .seen = seen_of(m, f) };
}

/* Marks nodes that have, with `more`, too many members, or no room for those that must come. */
static void mark_full(const struct json_machine *m, struct frame *f, uint32_t more, bool required, uint32_t *marks)
{
	const struct group *g = frame_group(m, f);
	const struct schema *s = m->schema;
	uint32_t have = frame_rest(m, f)[MEMBERS];

	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *n = &s->node[g->node[i]];
		uint32_t missing = 0;
		if (n->members.max == COUNT_ANY)
			continue;
		effort_take(4 * n->required.n);
		for (uint32_t k = 0; k < n->required.n; k++)
			missing += !bit(seen_of(m, f), group_name(s, g, s->list[n->required.at + k]));
		/* The member that comes may be one of those that are missing. */
		missing = !required ? missing + more : missing > more ? missing : more;
		if (have + missing > n->members.max)
			set_bit(marks, i);
	}
}

static struct outcome begin_name(struct json_machine *m, struct frame *f)
{
	uint32_t *rest = frame_rest(m, f);
	struct frame trial;

	memcpy(trial.w, f->w, f->n * sizeof *f->w);
	trial.n = f->n;
	trial.failed = f->failed;
	uint32_t full[GROUP_NODES / 32] = { 0 };
	mark_full(m, f, 1, false, full);
	mark_full(m, &trial, 1, true, frame_failed(&trial));
	const struct facts facts = facts_of(m, &trial);
	if (!group_alive(m, frame_group(m, f), &facts))
		return dies();
	const struct members_so_far so_far = { frame_failed(&trial), seen_of(m, f), rest[MEMBERS], rest[ORDER] };
	uint32_t key = key_begin(m, &trial, &so_far, full, rest[NAMES]);
	rest = frame_rest(m, f);
	rest[PHASE] = COLON;
	rest[NAMES] = 0;
	rest[SPACE] &= ~(uint32_t)SPACE_STATE;
	return key ? (struct outcome){ PUSHES, false, frame_keep(m, f), key, 0 } : dies();
}

/* Whether a name is one that a closed node, or another beside it, speaks of. */
static bool is_known(const struct group *g, uint32_t i, const struct member *of)
{
	for (uint32_t k = 0; k < g->n_patterns; k++)
		if (bit(of->patterns, k))
			return true;
	return of->name != NO_NAME && bit(g->known[i], of->name);
}

size_t member_requests(const struct json_machine *m, const struct group *g, const struct member *of, struct request *r)
{
	const struct schema *s = m->schema;
	uint32_t pattern = 0;
	size_t n = 0;

	effort_take(4 + 4 * g->n + g->n_patterns);
	for (uint32_t i = 0; i < g->n; i++) {
		const struct schema_node *node = &s->node[g->node[i]];
		bool named = false;
		const uint32_t own = of->name == NO_NAME ? SCHEMA_NONE : schema_property(s, node, g->name[of->name]);
		if (own != SCHEMA_NONE) {
			r[n++] = (struct request){ i, own };
			named = true;
		}
		for (uint32_t k = 0; k < node->patterns.n; k++, pattern++)
			if (bit(of->patterns, pattern) && n < 2 * GROUP_NODES) {
				r[n++] = (struct request){ i, s->pattern[node->patterns.at + k].node };
				named = true;
			}
		if (!named && g->known && g->known[i] && !is_known(g, i, of))
			r[n++] = (struct request){ i, SCHEMA_FALSE };
		else if (!named && node->other != SCHEMA_NONE)
			r[n++] = (struct request){ i, node->other };
		if (n > 2 * GROUP_NODES)
			break;
	}
	/* A node that has failed is asked nothing more. */
	size_t left = 0;
	for (size_t i = 0; i < n; i++)
		if (!bit(of->failed, r[i].from))
			r[left++] = r[i];
	return left;
}

/* Words of an object that a member's group follows from: neither the phase nor white space. */
static size_t member_words(const struct json_machine *m, struct frame *f, uint32_t *w)
{
	const size_t failed = bits_words(frame_group(m, f)->n), rest = (size_t)(f->w + f->n - seen_of(m, f));

	w[0] = f->w[1];
	memcpy(w + 1, frame_failed(f), failed * sizeof *w);
	memcpy(w + 1 + failed, seen_of(m, f), rest * sizeof *w);
	return 1 + failed + rest;
}

/* The group of the member's value. Finding it takes as many steps as the square of the schemas that are asked, and
 * calls of many functions begin as one object that is asked for each of them. */
static uint32_t value_group(struct json_machine *m, struct frame *f, struct request *r, size_t *n)
{
	const struct facts facts = facts_of(m, f);
	const uint32_t *current = current_of(m, f);
	struct member_group *last = &m->member[*current % RECENT_MEMBERS];
	uint32_t w[FRAME_WORDS];
	const size_t words = member_words(m, f, w);

	*n = member_requests(m, frame_group(m, f), &(struct member){ *current, current + 1, facts.failed }, r);
	effort_take(words / 8);
	if (last->child && last->n == words && memcmp(last->w, w, words * sizeof *w) == 0)
		return last->child;
	const uint32_t child = group_child(m, f->w[1], &facts, r, *n);
	if (child) {
		memcpy(last->w, w, words * sizeof *w);
		last->n = words;
		last->child = child;
	}
	return child;
}

static struct outcome begin_value(struct json_machine *m, struct frame *f)
{
	struct request r[3 * GROUP_NODES];
	size_t n;
	uint32_t child = value_group(m, f, r, &n), *rest = frame_rest(m, f);

	if (!child)
		return dies();
	rest[PHASE] = VALUE;
	rest[SPACE] &= ~(uint32_t)SPACE_STATE;
	const uint32_t space = rest[SPACE] | (m->writes ? SPACE_OF_MEMBER : 0);
	return (struct outcome){ PUSHES, false, frame_keep(m, f), start_frame(m, child, space), 0 };
}

static bool has_what_it_needs(const struct json_machine *m, struct frame *f, const struct schema_node *n)
{
	const struct group *g = frame_group(m, f);
	const struct schema *s = m->schema;
	const uint32_t *seen = seen_of(m, f);
	bool ok = frame_rest(m, f)[MEMBERS] >= n->members.min;

	effort_take(4 * n->required.n);
	for (uint32_t k = 0; k < n->required.n && ok; k++)
		ok = bit(seen, group_name(s, g, s->list[n->required.at + k]));
	for (uint32_t k = 0; k < n->dependent.n && ok; k++) {
		const struct schema_dependency *d = &s->dependency[n->dependent.at + k];
		if (d->needs != SCHEMA_NONE && bit(seen, group_name(s, g, d->name)))
			ok = bit(seen, group_name(s, g, d->needs));
	}
	return ok;
}

static struct outcome object_end(struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);

	for (uint32_t i = 0; i < g->n; i++)
		if (!has_what_it_needs(m, f, &m->schema->node[g->node[i]]))
			set_bit(frame_failed(f), i);
	return group_done(m, f, seen_of(m, f));
}

/* Whether the name itself is right by what node i says of names. key: where a name begins. Names with characters that
 * are written as escapes are taken to be right. */
static bool name_fits(struct json_machine *m, uint32_t key, uint32_t i, uint32_t name)
{
	const struct schema *s = m->schema;
	const struct group *g;
	struct outcome o = { STAYS, false, key, 0, 0 };
	struct frame f;
	size_t n = s->name_bytes[name];

	frame_load(m, key, &f);
	key_open_all(m, &f);
	g = frame_group(m, &f);
	if (s->node[g->node[i]].names == SCHEMA_NONE)
		return true;
	const size_t failed_at = 1 + bits_words(g->n_patterns);
	for (size_t b = 0; b <= n && o.kind == STAYS; b++) {
		const uint8_t byte = b < n ? (uint8_t)s->name[name][b] : '"';
		if (b < n && (byte < ' ' || byte == '"' || byte == '\\'))
			return true;
		o = key_step(m, &f, byte);
		if (o.kind == STAYS)
			frame_load(m, o.frame, &f);
	}
	if (m->machine.failed || effort_over())
		return true;
	return o.kind == POPS && !bit(interner_get(&m->results, o.result, NULL) + failed_at, i);
}

/* Which names a key may become, each tried once: many nodes ask for the same ones. */
struct tried {
	uint32_t key, known[FRAME_WORDS], possible[FRAME_WORDS];
};

static bool try_name(struct json_machine *m, struct tried *t, uint32_t name)
{
	if (!bit(t->known, name) && key_possible(m, t->key, name))
		set_bit(t->possible, name);
	set_bit(t->known, name);
	return bit(t->possible, name);
}

/* Nodes fail at once that require a member which there cannot be, or not by themselves. Without memory they do not. */
static void fail_required(struct json_machine *m, struct frame *f, uint32_t key)
{
	const bool several = frame_group(m, f)->n > 1;
	const size_t words = bits_words(frame_group(m, f)->n_names);
	struct tried tried;

	tried.key = key;
	memset(tried.known, 0, words * sizeof *tried.known);
	memset(tried.possible, 0, words * sizeof *tried.possible);
	for (uint32_t i = 0; i < frame_group(m, f)->n; i++) {
		struct part p = m->schema->node[frame_group(m, f)->node[i]].required;
		for (uint32_t k = 0; k < p.n && !bit(frame_failed(f), i) && !effort_over(); k++) {
			uint32_t name = group_name(m->schema, frame_group(m, f), m->schema->list[p.at + k]);
			if (!try_name(m, &tried, name) || (several && !member_begins(m, f->w[1], i, name)) ||
			    !name_fits(m, key, i, m->schema->list[p.at + k]))
				set_bit(frame_failed(f), i);
		}
	}
}

/* ... and those that ask for more members than there are names. */
static void fail_too_short(struct json_machine *m, struct frame *f, uint32_t key)
{
	for (uint32_t i = 0; i < frame_group(m, f)->n; i++) {
		const struct schema_node *n = &m->schema->node[frame_group(m, f)->node[i]];
		const uint32_t min = n->members.min;
		const bool listed = key_lists(m, frame_group(m, f), i) && !n->patterns.n;
		if (min > 1 && !bit(frame_failed(f), i) && (listed ? n->properties.n : key_names(m, key, min)) < min)
			set_bit(frame_failed(f), i);
	}
}

/* An object is begun where it can be empty, or have a first member and all that it must have. */
struct outcome object_begin(struct json_machine *m, struct frame *f, uint32_t space)
{
	const struct group *g = frame_group(m, f);
	struct frame trial;

	f->w[0] = FRAME_OBJECT;
	for (size_t i = 0; i < SEEN + bits_words(g->n_names) + 1 + bits_words(g->n_patterns); i++)
		frame_push(f, i == SPACE ? space : i == NAMES && g->limits_names ? list_none(m) : 0);
	if (f->failed) /* more names than there are bits for: nothing may look at them */
		return stays(m, f);
	memcpy(trial.w, f->w, f->n * sizeof *f->w);
	trial.n = f->n;
	trial.failed = f->failed;
	struct outcome name = begin_name(m, &trial);
	if (name.kind != DIES) {
		fail_required(m, f, name.child);
		fail_too_short(m, f, name.child);
	}
	const struct facts facts = facts_of(m, f);
	if (!group_alive(m, frame_group(m, f), &facts))
		return dies();
	memcpy(trial.w, f->w, f->n * sizeof *f->w);
	trial.n = f->n;
	return name.kind != DIES || object_end(m, &trial).kind != DIES ? stays(m, f) : dies();
}

/* Where white space may stand for those who write. */
static unsigned space_offset(const uint32_t *rest)
{
	const bool lines = rest[SPACE] & SPACE_IN_LINES;

	switch ((enum phase)rest[PHASE]) {
	case FIRST: return SPACE_LINE | SPACE_FIRST;
	case NEXT_NAME: return lines ? SPACE_LINE : SPACE_ONE;
	case NEXT: return lines ? SPACE_LINE | SPACE_CLOSES : 0;
	case COLON:
	case VALUE: break;
	}
	return 0;
}

/* A line that was ended is that of a member, or behind one that of the brace, for those who write. */
static bool line_may_end(struct json_machine *m, const struct frame *f)
{
	struct frame trial;

	frame_copy(&trial, f);
	switch (m->writes ? (enum phase)frame_rest(m, &trial)[PHASE] : COLON) {
	case FIRST: return begin_name(m, &trial).kind != DIES;
	case NEXT: return object_end(m, &trial).kind != DIES;
	default: return true;
	}
}

static struct outcome begin_next(struct json_machine *m, struct frame *f)
{
	struct frame trial;

	frame_copy(&trial, f);
	if (begin_name(m, &trial).kind == DIES)
		return dies();
	frame_rest(m, f)[PHASE] = NEXT_NAME;
	frame_rest(m, f)[SPACE] &= ~(uint32_t)SPACE_STATE;
	return stays(m, f);
}

struct outcome object_step(struct json_machine *m, struct frame *f, uint8_t byte)
{
	uint32_t *rest = frame_rest(m, f);
	const unsigned where = space_offset(rest);
	const bool spaced = m->writes && rest[SPACE] & SPACE_STATE;

	if (is_space(byte))
		return space_step(m, &rest[SPACE], byte, where) && line_may_end(m, f) ? stays(m, f) : dies();
	if (byte == ':' && rest[PHASE] == COLON)
		return begin_value(m, f);
	if (byte == '}' && rest[PHASE] == FIRST)
		return spaced ? dies() : object_end(m, f);
	if (byte == '}' && rest[PHASE] == NEXT)
		return space_ends(m, &rest[SPACE], where) ? object_end(m, f) : dies();
	if (byte == '"' && (rest[PHASE] == FIRST || rest[PHASE] == NEXT_NAME))
		return space_ends(m, &rest[SPACE], where) ? begin_name(m, f) : dies();
	return byte == ',' && rest[PHASE] == NEXT && !spaced ? begin_next(m, f) : dies();
}

/* A name's result: its index or NO_NAME, the bits of patterns, then the bits of nodes (of this group) that failed by
 * it. */
static uint32_t resume_name(struct json_machine *m, struct frame *f, const uint32_t *result)
{
	const struct group *g = frame_group(m, f);
	uint32_t *rest = frame_rest(m, f), *current = current_of(m, f);
	size_t patterns = bits_words(g->n_patterns);
	struct request r[3 * GROUP_NODES];
	size_t n;

	memcpy(current, result, (1 + patterns) * sizeof *current);
	for (uint32_t i = 0; i < g->n; i++)
		if (bit(result + 1 + patterns, i))
			set_bit(frame_failed(f), i);
	if (*current != NO_NAME)
		set_bit(seen_of(m, f), *current);
	if (m->ordered) {
		const uint32_t rank = *current == NO_NAME ? RANK_NONE : g->rank[*current];
		const uint32_t next = rank == RANK_NONE ? g->n_ranked : rank + 1;
		rest[ORDER] = next > rest[ORDER] ? next : rest[ORDER];
	}
	rest[MEMBERS] += rest[MEMBERS] < g->members_max;
	mark_full(m, f, 0, true, frame_failed(f));
	uint32_t child = value_group(m, f, r, &n);
	const struct facts facts = facts_of(m, f);
	return child && group_begins(m, child) && group_alive(m, frame_group(m, f), &facts) ? frame_keep(m, f) : 0;
}

uint32_t object_names(const struct json_machine *m, uint32_t frame)
{
	const uint32_t *w = interner_get(&m->frames, frame, NULL);

	return w[FRAME_HEAD + bits_words(m->group[w[1]].n) + NAMES];
}

uint32_t object_resume(struct json_machine *m, struct frame *f, const uint32_t *result, uint32_t names)
{
	uint32_t *rest = frame_rest(m, f);
	struct request r[3 * GROUP_NODES];
	size_t n;

	if (rest[PHASE] == COLON)
		return resume_name(m, f, result);
	uint32_t child = value_group(m, f, r, &n);
	if (!child)
		return 0;
	group_child_failed(m, child, result, r, n, frame_failed(f));
	rest[PHASE] = NEXT;
	rest[NAMES] = frame_group(m, f)->limits_names ? names : 0;
	memset(current_of(m, f), 0, (1 + bits_words(frame_group(m, f)->n_patterns)) * sizeof *rest);
	const struct facts facts = facts_of(m, f);
	return group_alive(m, frame_group(m, f), &facts) ? frame_keep(m, f) : 0;
}
