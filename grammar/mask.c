#include "grammar/mask.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/machine/effort.h"

/* Bytes of what is kept; beyond, all is thrown away and found out again. */
enum { KEPT_MAX = 64 << 20, REACHES = 256 };
enum { NODES_AT_ONCE = 64 /* of the tree, in the account of steps */ };

/* A node of the vocabulary's tree whose byte reaches below the top: from which state of the top alone. */
struct leave {
	uint32_t node, state;
};
struct kept {
	uint32_t *bits;
	struct leave *leave; /* sorted by state, then byte, then node */
	uint32_t n_leaves;
};
struct masks {
	const struct vocabulary *v;
	struct machine *m;
	struct kept **kept; /* [top] */
	size_t room, bytes;
	struct leave *found; /* the leaves of the walk under way */
	size_t n_found, found_room;
	struct reach {
		uint32_t state, max[EASY_CLASSES];
		bool known[EASY_CLASSES];
	} reach[REACHES]; /* what machine_easy() said lately */
};

static size_t words(const struct masks *s) { return (s->v->n_ids + 31) / 32; }

struct masks *masks_open(const struct vocabulary *v, struct machine *m)
{
	struct masks *s = effort_calloc(1, sizeof *s);

	if (s) {
		s->v = v;
		s->m = m;
	}
	return s;
}

static void forget(struct masks *s)
{
	for (size_t i = 0; i < s->room; i++)
		if (s->kept[i]) {
			free(s->kept[i]->bits);
			free(s->kept[i]->leave);
			free(s->kept[i]);
			s->kept[i] = NULL;
		}
	s->bytes = 0;
}

void masks_close(struct masks *s)
{
	if (!s)
		return;
	forget(s);
	free(s->kept);
	free(s->found);
	free(s);
}

static void allow(const struct vocabulary *v, const struct vocabulary_node *n, uint32_t *bits)
{
	for (uint32_t k = 0; k < n->n_tokens; k++) {
		uint32_t id = v->token[n->token + k];
		bits[id / 32] |= 1u << id % 32;
	}
}

/* All tokens that go on behind a node. */
static void allow_below(const struct vocabulary *v, const struct vocabulary_node *n, uint32_t *bits)
{
	uint32_t end = n->behind < v->n_nodes ? v->node[n->behind].token : v->n_tokens;

	for (uint32_t k = n->token + n->n_tokens; k < end; k++)
		bits[v->token[k] / 32] |= 1u << v->token[k] % 32;
}

static bool note_leave(struct masks *s, uint32_t node, uint32_t state)
{
	void *found = s->found;

	if (!effort_array(&found, &s->found_room, s->n_found + 1, sizeof *s->found))
		return false;
	s->found = found;
	s->found[s->n_found++] = (struct leave){ node, state };
	return true;
}

static uint32_t reach_of(struct masks *s, uint32_t state, unsigned class)
{
	struct reach *r = &s->reach[state % REACHES];

	if (r->state != state)
		*r = (struct reach){ .state = state };
	if (!r->known[class]) {
		r->max[class] = machine_easy(s->m, state, (enum easy) class);
		r->known[class] = true;
	}
	return r->max[class];
}

/* Goes through the nodes from..to, which are below one at `depth - 1` where the machine is in `state`. */
static bool walk(struct masks *s, uint32_t from, uint32_t to, uint32_t depth, uint32_t state, uint32_t *bits)
{
	const struct vocabulary *v = s->v;
	uint32_t at[VOCABULARY_DEPTH + 1], nodes = 0;

	at[0] = state;
	for (uint32_t i = from; i < to;) {
		if (++nodes % NODES_AT_ONCE == 0 && !effort_take(NODES_AT_ONCE))
			return false;
		const struct vocabulary_node *n = &v->node[i];
		const uint32_t d = n->depth - depth;
		if (n->into && n->easy && n->into <= d + 1 && n->height <= reach_of(s, at[d + 1 - n->into], n->easy)) {
			allow(v, n, bits);
			allow_below(v, n, bits);
			i = n->behind;
			continue;
		}
		uint32_t next = machine_step(s->m, at[d], n->byte);
		if (next == MACHINE_BELOW && !note_leave(s, i, at[d]))
			return false;
		if (next == MACHINE_DEAD || next == MACHINE_BELOW) {
			i = n->behind;
			continue;
		}
		allow(v, n, bits);
		at[d + 1] = next;
		i++;
		if (!n->into && n->easy && n->height && n->height <= reach_of(s, next, n->easy)) {
			allow_below(v, n, bits);
			i = n->behind;
		}
	}
	return effort_take(nodes % NODES_AT_ONCE);
}

static int by_state(const void *a, const void *b, void *user)
{
	const struct leave *x = a, *y = b;
	const struct vocabulary_node *node = user;

	if (x->state != y->state)
		return x->state < y->state ? -1 : 1;
	if (node[x->node].byte != node[y->node].byte)
		return node[x->node].byte < node[y->node].byte ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static struct kept *find_out(struct masks *s, uint32_t top)
{
	struct kept *k = effort_calloc(1, sizeof *k);

	s->n_found = 0;
	if (k)
		k->bits = effort_calloc(words(s) + 1, sizeof *k->bits);
	uint32_t alone = machine_alone(s->m, top);
	bool ok = k && k->bits && alone != MACHINE_DEAD && walk(s, 0, s->v->n_nodes, 0, alone, k->bits) &&
	          !s->m->failed && (k->leave = effort_malloc((s->n_found + 1) * sizeof *k->leave));
	if (!ok) {
		if (k)
			free(k->bits);
		free(k);
		return NULL;
	}
	effort_take(words(s) / 8 + 8 * s->n_found);
	if (s->n_found) {
		memcpy(k->leave, s->found, s->n_found * sizeof *k->leave);
		qsort_r(k->leave, s->n_found, sizeof *k->leave, by_state, s->v->node);
	}
	k->n_leaves = (uint32_t)s->n_found;
	s->bytes += sizeof *k + words(s) * sizeof *k->bits + s->n_found * sizeof *k->leave;
	return k;
}

static struct kept *kept_of(struct masks *s, uint32_t top)
{
	void *all = s->kept;
	size_t had = s->room;

	if (!effort_array(&all, &s->room, (size_t)top + 1, sizeof *s->kept))
		return NULL;
	s->kept = all;
	if (s->room > had)
		memset(s->kept + had, 0, (s->room - had) * sizeof *s->kept);
	if (!s->kept[top]) {
		if (s->bytes > KEPT_MAX)
			forget(s);
		s->kept[top] = find_out(s, top);
	}
	return s->kept[top];
}

/* The state before a node's byte, from `state` at the tree's root. */
static uint32_t follow(struct masks *s, uint32_t state, uint32_t node)
{
	uint8_t path[VOCABULARY_DEPTH];
	uint32_t depth = s->v->node[node].depth;

	for (uint32_t d = depth; d > 0;) {
		node = s->v->node[node].above;
		path[--d] = s->v->node[node].byte;
	}
	for (uint32_t d = 0; d < depth && state != MACHINE_DEAD; d++)
		state = machine_step(s->m, state, path[d]);
	return state;
}

bool masks_of(struct masks *s, uint32_t state, uint32_t *bits)
{
	const struct kept *k = state == MACHINE_DEAD ? NULL : kept_of(s, machine_top(s->m, state));
	uint32_t next = MACHINE_DEAD;

	if (!k)
		return false;
	memcpy(bits, k->bits, words(s) * sizeof *bits);
	const bool many = machine_many(s->m, state);
	for (uint32_t i = 0; i < k->n_leaves; i++) {
		const struct leave *l = &k->leave[i];
		const struct vocabulary_node *n = &s->v->node[l->node];
		/* Where the same byte leads from the same state is asked once, where nothing else tells it. */
		if (many || i == 0 || l[-1].state != l->state || s->v->node[l[-1].node].byte != n->byte) {
			uint32_t before = follow(s, state, l->node);
			next = before == MACHINE_DEAD ? MACHINE_DEAD : machine_step(s->m, before, n->byte);
		}
		if (next == MACHINE_DEAD)
			continue;
		allow(s->v, n, bits);
		if (n->behind > l->node + 1 && !walk(s, l->node + 1, n->behind, n->depth + 1u, next, bits))
			return false;
	}
	return effort_take(words(s) / 8 + 4 * k->n_leaves) && !s->m->failed;
}
