#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/call/call.h"
#include "grammar/machine/effort.h"
#include "grammar/mask.h"

/* Bytes of a machine's states; beyond, it is made anew and goes through the text so far. */
enum { MACHINE_MAX = 128 << 20 };

/* For drafts, a machine of their own: what they try must not spare the other one work, or an answer that comes near the
 * end of its account would depend on them. It is small, and where it is not enough there are no drafts. */
enum { ASIDE_TO_OPEN = 4000000, ASIDE_OF_CALL = 2000000, ASIDE_OF_TOKEN = 20000, ASIDE_BYTES = 32 << 20 };

struct grammar {
	const struct vocabulary *v;
	const struct machine_tokens *tokens;
	uint32_t *whole; /* the tokens that rules about tokens can take, as bits; NULL: not asked for so far */
	unsigned kind;
	char *source;
	size_t n_source;
	struct machine *machine;
	struct masks *masks;
	struct effort effort; /* for the machine and the masks */
	uint64_t opened;      /* what the machine took to be made */
	uint32_t *bits;
	char *text; /* of the tokens taken */
	size_t n_text, text_room;
	struct taken {
		uint32_t state, aside, id;
		size_t text; /* bytes up to its end */
	} * taken;
	size_t n, room;
	struct aside {
		struct machine *machine;
		struct effort effort;
		size_t n; /* of the tokens taken, so many have a state in it */
		bool off;
	} aside;
};

static struct machine *machine_of(const struct grammar *g, struct error *err)
{
	const unsigned how = g->kind & ~(unsigned)GRAMMAR_KINDS;

	switch ((enum grammar_kind)(g->kind & GRAMMAR_KINDS)) {
	case GRAMMAR_SCHEMA: return machine_to_write_schema(g->source, g->n_source, how, err);
	case GRAMMAR_REGEX: return machine_of_regex(g->source, g->n_source, err);
	case GRAMMAR_GBNF: return machine_of_gbnf(g->source, g->n_source, g->tokens, err);
	case GRAMMAR_CALL: return machine_of_call(g->source, g->n_source, how, err);
	case GRAMMAR_LARK: return machine_of_lark(g->source, g->n_source, err);
	case GRAMMAR_KINDS: break;
	}
	return NULL;
}

/* Who no longer wanted a result may come back for it, and memory, too: the machine is made anew. */
static bool enough(struct grammar *g, struct error *err)
{
	const bool is = effort_check(&g->effort, err);

	if ((g->effort.stopped || g->effort.lost) && g->machine)
		g->machine->failed = true;
	g->effort.stopped = g->effort.lost = false;
	return is;
}

static bool make(struct grammar *g, struct error *err)
{
	const uint64_t had = g->effort.left;

	g->effort.bytes = EFFORT_BYTES;
	struct effort *before = effort_begin(&g->effort);
	g->machine = machine_of(g, err);
	g->masks = g->machine ? masks_open(g->v, g->machine) : NULL;
	effort_end(before);
	g->opened = had - g->effort.left;
	if (!g->masks)
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
	return enough(g, err) && g->masks;
}

static struct grammar *open_with(const struct vocabulary *v, unsigned kind, const char *text, size_t n,
                                 const struct machine_tokens *tokens, uint64_t steps, struct error *err)
{
	struct grammar *g = effort_calloc(1, sizeof *g);
	bool ok = g != NULL;

	if (ok) {
		g->v = v;
		g->kind = kind;
		g->tokens = tokens;
		g->n_source = n;
		g->source = effort_malloc(n + 1);
		g->bits = effort_malloc(((v->n_ids + 31) / 32 + 1) * sizeof *g->bits);
		ok = g->source && g->bits;
	}
	if (ok)
		memcpy(g->source, text, n);
	else
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
	if (ok)
		effort_give(&g->effort, steps);
	if (ok && make(g, err))
		return g;
	grammar_close(g);
	return NULL;
}

void grammar_watch(struct grammar *g, bool (*stop)(void *user), void *user)
{
	g->effort.stop = stop;
	g->effort.user = user;
}

uint64_t grammar_left(const struct grammar *g) { return g->effort.left; }

struct grammar *grammar_open(const struct vocabulary *v, unsigned kind, const char *text, size_t n,
                             const struct machine_tokens *tokens, struct error *err)
{
	return open_with(v, kind, text, n, tokens, EFFORT_TO_OPEN, err);
}

struct grammar *grammar_open_within(const struct vocabulary *v, unsigned kind, const char *text, size_t n,
                                    const struct machine_tokens *tokens, uint64_t *steps, struct error *err)
{
	struct grammar *g = open_with(v, kind, text, n, tokens, *steps, err);
	bool ends;

	if (g && !grammar_allowed(g, &ends, err)) {
		grammar_close(g);
		g = NULL;
	}
	*steps = g ? g->effort.left : 0;
	if (g)
		effort_cut(&g->effort, EFFORT_SAVED);
	return g;
}

void grammar_close(struct grammar *g)
{
	if (!g)
		return;
	masks_close(g->masks);
	machine_close(g->machine);
	machine_close(g->aside.machine);
	free(g->source);
	free(g->bits);
	free(g->whole);
	free(g->text);
	free(g->taken);
	free(g);
}

static uint32_t state_of(const struct grammar *g) { return g->n ? g->taken[g->n - 1].state : g->machine->start; }

static uint32_t walk(struct machine *m, uint32_t state, const char *text, size_t n)
{
	for (size_t i = 0; i < n && state != MACHINE_DEAD; i++)
		state = machine_step(m, state, (uint8_t)text[i]);
	return state;
}

/* By its bytes, and where a rule is about tokens, as a whole; both may go on. */
static uint32_t walk_token(const struct grammar *g, struct machine *m, uint32_t state, const struct grammar_token *t)
{
	const struct machine_whole *whole = m->whole;
	uint32_t a = t->n ? walk(m, state, t->text, t->n) : MACHINE_DEAD, b = MACHINE_DEAD;

	if (whole && state != MACHINE_DEAD && g->tokens->takes(g->tokens->user, t->id))
		b = whole->step(m, state, t->id);
	if (a == MACHINE_DEAD || b == MACHINE_DEAD)
		return a == MACHINE_DEAD ? b : a;
	return whole->both(m, a, b);
}

static struct grammar_token token_of(const struct grammar *g, size_t i)
{
	const size_t at = i ? g->taken[i - 1].text : 0;

	return (struct grammar_token){ g->taken[i].id, g->text + at, g->taken[i].text - at };
}

/* The text was right before, and is again, unless memory runs out. */
static bool renew(struct grammar *g, struct error *err)
{
	masks_close(g->masks);
	machine_close(g->machine);
	g->masks = NULL;
	g->machine = NULL;
	if (!make(g, err))
		return false;
	struct effort *before = effort_begin(&g->effort);
	uint32_t state = g->machine->start;
	for (size_t i = 0; i < g->n; i++) {
		const struct grammar_token t = token_of(g, i);
		state = walk_token(g, g->machine, state, &t);
		g->taken[i].state = state;
	}
	effort_end(before);
	if (!enough(g, err))
		return false;
	return !g->machine->failed || error_set(err, ERROR_UNSUPPORTED, "the grammar needs too many states");
}

static bool ready(struct grammar *g, struct error *err)
{
	if (!enough(g, err))
		return false;
	if (g->machine && !g->machine->failed && machine_bytes(g->machine) < MACHINE_MAX)
		return true;
	return renew(g, err);
}

bool grammar_is_of_tokens(const struct grammar *g) { return g->machine && g->machine->whole; }

bool grammar_is_free(const struct grammar *g)
{
	return g->machine && g->machine->is_free && g->machine->is_free(g->machine, state_of(g));
}

/* Adds those that rules about tokens take here. */
static bool allow_whole(struct grammar *g)
{
	const uint32_t state = state_of(g), n = g->v->n_ids;
	uint32_t id;
	bool without;

	if (!g->machine->whole)
		return true;
	if (!g->whole) {
		if (!(g->whole = effort_calloc(n / 32 + 1, sizeof *g->whole)))
			return false;
		for (id = 0; id < n; id++)
			g->whole[id / 32] |= (uint32_t)g->tokens->takes(g->tokens->user, id) << id % 32;
	}
	for (size_t i = 0; g->machine->whole->test(g->machine, state, i, &id, &without); i++) {
		const uint32_t bit = 1u << id % 32, word = id / 32, own = g->bits[word] & bit;
		if (!without) {
			g->bits[word] |= g->whole[word] & bit;
			continue;
		}
		for (uint32_t k = 0; k < (n + 31) / 32; k++)
			g->bits[k] |= g->whole[k];
		g->bits[word] = (g->bits[word] & ~bit) | own;
	}
	return true;
}

static bool find_allowed(struct grammar *g, bool *ends)
{
	struct effort *before = effort_begin(&g->effort);
	const bool found = masks_of(g->masks, state_of(g), g->bits) && allow_whole(g);

	*ends = found && machine_ends(g->machine, state_of(g));
	effort_end(before);
	return found && !g->machine->failed;
}

/* A machine that failed under way is given one more try from the beginning. */
static bool may_try_again(struct grammar *g, struct error *err)
{
	struct error ignored = { 0 };

	return g->effort.lost ? (enough(g, &ignored), true) : enough(g, err);
}

/* Memory that was refused is told by enough(). */
static void say_failed(struct error *err)
{
	error_set(err, ERROR_UNSUPPORTED, "the grammar needs too many states, or too many rules for one value");
}

const uint32_t *grammar_allowed(struct grammar *g, bool *ends, struct error *err)
{
	if (!ready(g, err))
		return NULL;
	bool found = find_allowed(g, ends);
	if (!found && may_try_again(g, err))
		found = renew(g, err) && find_allowed(g, ends);
	if (!enough(g, err))
		return NULL;
	if (!found)
		say_failed(err);
	return found ? g->bits : NULL;
}

static uint32_t take(struct grammar *g, const struct grammar_token *token)
{
	struct effort *before = effort_begin(&g->effort);
	const uint32_t state = walk_token(g, g->machine, state_of(g), token);

	effort_end(before);
	return state;
}

bool grammar_take(struct grammar *g, const struct grammar_token *token, struct error *err)
{
	void *all = g->taken, *bytes = g->text;
	const size_t n = token->n;

	if (!ready(g, err))
		return false;
	if (!array_grow(&all, &g->room, g->n + 1, sizeof *g->taken))
		return error_set(err, ERROR_MEMORY, "no memory for a grammar");
	g->taken = all;
	if (!array_grow(&bytes, &g->text_room, g->n_text + n, 1))
		return error_set(err, ERROR_MEMORY, "no memory for a grammar");
	g->text = bytes;
	uint32_t state = take(g, token);
	if (state == MACHINE_DEAD && (g->effort.lost || g->machine->failed) && may_try_again(g, err))
		state = renew(g, err) ? take(g, token) : MACHINE_DEAD;
	if (!enough(g, err))
		return false;
	if (state == MACHINE_DEAD && (!g->machine || g->machine->failed))
		say_failed(err);
	if (state == MACHINE_DEAD)
		return error_set(err, ERROR_ARGUMENT, "the grammar does not allow this token here");
	if (n)
		memcpy(g->text + g->n_text, token->text, n);
	g->n_text += n;
	g->taken[g->n++] = (struct taken){ state, MACHINE_DEAD, token->id, g->n_text };
	effort_add(&g->effort, EFFORT_OF_TOKEN, EFFORT_SAVED);
	return true;
}

/* ---- for drafts */

static void aside_close(struct aside *a)
{
	machine_close(a->machine);
	a->machine = NULL;
	a->off = true;
}

static bool aside_open(struct grammar *g)
{
	struct aside *a = &g->aside;
	struct error ignored = { 0 };

	if (a->off || a->machine)
		return !a->off;
	effort_give(&a->effort, ASIDE_TO_OPEN);
	a->effort.bytes = ASIDE_BYTES;
	struct effort *before = effort_begin(&a->effort);
	a->machine = g->opened < ASIDE_TO_OPEN ? machine_of(g, &ignored) : NULL;
	effort_end(before);
	if (!a->machine || effort_over_of(&a->effort))
		aside_close(a);
	return !a->off;
}

/* The state of its machine behind the tokens taken; MACHINE_DEAD: there are no drafts. *before: for aside_end(). */
static uint32_t aside_begin(struct grammar *g, struct effort **before)
{
	struct aside *a = &g->aside;

	*before = effort_of_thread;
	if (!aside_open(g))
		return MACHINE_DEAD;
	a->effort.stop = g->effort.stop;
	a->effort.user = g->effort.user;
	a->effort.left = a->effort.ask_at = ASIDE_OF_CALL + ASIDE_OF_TOKEN * (uint64_t)(g->n - a->n);
	effort_begin(&a->effort);
	uint32_t state = a->n ? g->taken[a->n - 1].aside : a->machine->start;
	for (; a->n < g->n && state != MACHINE_DEAD; a->n++) {
		const struct grammar_token t = token_of(g, a->n);
		g->taken[a->n].aside = state = walk_token(g, a->machine, state, &t);
	}
	return state;
}

static bool aside_end(struct grammar *g, struct effort *before)
{
	struct aside *a = &g->aside;

	effort_end(before);
	if (a->machine && (a->machine->failed || effort_over_of(&a->effort)))
		aside_close(a);
	return !a->off;
}

/* The one byte that leads on from a state; -1: there is none, or a choice. */
static int only_byte(struct machine *m, uint32_t state)
{
	int only = -1;

	for (int b = 0; b < 256; b++) {
		bool other = b == '\\' || b == ' ' || b == '\t' || b == '\n' || b == '\r';
		if (other || machine_step(m, state, (uint8_t)b) == MACHINE_DEAD)
			continue;
		if (only >= 0)
			return -1;
		only = b;
	}
	return only;
}

static size_t forced(struct machine *m, uint32_t state, char *out, size_t max)
{
	size_t n = 0;

	while (n < max && state != MACHINE_DEAD && !machine_ends(m, state)) {
		uint32_t id;
		bool without;
		if (m->whole && m->whole->test(m, state, 0, &id, &without))
			break;
		int byte = only_byte(m, state);
		if (byte < 0)
			break;
		out[n++] = (char)byte;
		state = machine_step(m, state, (uint8_t)byte);
	}
	return n;
}

size_t grammar_forced(struct grammar *g, char *out, size_t max)
{
	struct effort *before;
	const uint32_t state = aside_begin(g, &before);
	const size_t n = state == MACHINE_DEAD ? 0 : forced(g->aside.machine, state, out, max);

	return aside_end(g, before) ? n : 0;
}

size_t grammar_fitting(struct grammar *g, const struct grammar_token *token, size_t n)
{
	struct effort *before;
	uint32_t state = aside_begin(g, &before);
	size_t i = 0;

	for (; i < n && state != MACHINE_DEAD; i++)
		if ((state = walk_token(g, g->aside.machine, state, &token[i])) == MACHINE_DEAD)
			break;
	return aside_end(g, before) ? i : 0;
}

size_t grammar_taken(const struct grammar *g) { return g->n; }

void grammar_rewind(struct grammar *g, size_t n)
{
	g->n = n;
	g->n_text = n ? g->taken[n - 1].text : 0;
	g->aside.n = g->aside.n < n ? g->aside.n : n;
}
