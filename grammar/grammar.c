#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "grammar/call.h"
#include "grammar/effort.h"
#include "grammar/mask.h"

/* Bytes of a machine's states; beyond, it is made anew and goes through the text so far. */
enum { MACHINE_MOST = 128 << 20 };

struct grammar {
	const struct vocabulary *v;
	const struct machine_tokens *tokens;
	uint32_t *whole; /* the tokens that rules about tokens can take, as bits; NULL: not asked for so far */
	enum grammar_kind kind;
	char *source;
	size_t n_source;
	struct machine *machine;
	struct masks *masks;
	struct effort effort; /* for the machine and the masks */
	uint32_t *bits;
	char *text; /* of the tokens taken */
	size_t n_text, text_room;
	struct taken {
		uint32_t state, id;
		size_t text; /* bytes up to its end */
	} * taken;
	size_t n, room;
};

static struct machine *machine_of(const struct grammar *g, struct error *err)
{
	switch (g->kind) {
	case GRAMMAR_SCHEMA: return machine_to_write_schema(g->source, g->n_source, err);
	case GRAMMAR_REGEX: return machine_of_regex(g->source, g->n_source, err);
	case GRAMMAR_GBNF: return machine_of_gbnf(g->source, g->n_source, g->tokens, err);
	case GRAMMAR_CALL: return machine_of_call(g->source, g->n_source, err);
	}
	return NULL;
}

/* Who no longer wanted a result may come back for it: the machine is made anew. */
static bool enough(struct grammar *g, struct error *err)
{
	const bool is = effort_check(&g->effort, err);

	if (g->effort.stopped && g->machine)
		g->machine->failed = true;
	g->effort.stopped = false;
	return is;
}

static bool make(struct grammar *g, struct error *err)
{
	g->effort.bytes = EFFORT_BYTES;
	struct effort *before = effort_begin(&g->effort);
	g->machine = machine_of(g, err);
	g->masks = g->machine ? masks_open(g->v, g->machine) : NULL;
	effort_end(before);
	if (!g->masks)
		error_set(err, ERROR_MEMORY, "no memory for a grammar");
	return enough(g, err) && g->masks;
}

static struct grammar *open_with(const struct vocabulary *v, enum grammar_kind kind, const char *text, size_t n,
                                 const struct machine_tokens *tokens, uint64_t steps, struct error *err)
{
	struct grammar *g = calloc(1, sizeof *g);
	bool ok = g != NULL;

	if (ok) {
		g->v = v;
		g->kind = kind;
		g->tokens = tokens;
		g->n_source = n;
		g->source = malloc(n + 1);
		g->bits = malloc(((v->n_ids + 31) / 32 + 1) * sizeof *g->bits);
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

struct grammar *grammar_open(const struct vocabulary *v, enum grammar_kind kind, const char *text, size_t n,
                             const struct machine_tokens *tokens, struct error *err)
{
	return open_with(v, kind, text, n, tokens, EFFORT_TO_OPEN, err);
}

struct grammar *grammar_open_within(const struct vocabulary *v, enum grammar_kind kind, const char *text, size_t n,
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
	free(g->source);
	free(g->bits);
	free(g->whole);
	free(g->text);
	free(g->taken);
	free(g);
}

static uint32_t state_of(const struct grammar *g) { return g->n ? g->taken[g->n - 1].state : g->machine->start; }

static uint32_t walk(struct grammar *g, uint32_t state, const char *text, size_t n)
{
	for (size_t i = 0; i < n && state != MACHINE_DEAD; i++)
		state = machine_step(g->machine, state, (uint8_t)text[i]);
	return state;
}

/* By its bytes, and where a rule is about tokens, as a whole; both may go on. */
static uint32_t walk_token(struct grammar *g, uint32_t state, uint32_t id, const char *text, size_t n)
{
	const struct machine_whole *whole = g->machine->whole;
	uint32_t a = n ? walk(g, state, text, n) : MACHINE_DEAD, b = MACHINE_DEAD;

	if (whole && state != MACHINE_DEAD && g->tokens->takes(g->tokens->user, id))
		b = whole->step(g->machine, state, id);
	if (a == MACHINE_DEAD || b == MACHINE_DEAD)
		return a == MACHINE_DEAD ? b : a;
	return whole->both(g->machine, a, b);
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
	for (size_t i = 0, at = 0; i < g->n; i++) {
		state = walk_token(g, state, g->taken[i].id, g->text + at, g->taken[i].text - at);
		g->taken[i].state = state;
		at = g->taken[i].text;
	}
	effort_end(before);
	if (!enough(g, err))
		return false;
	return !g->machine->failed || error_set(err, ERROR_MEMORY, "the grammar needs too many states");
}

static bool ready(struct grammar *g, struct error *err)
{
	if (!enough(g, err))
		return false;
	if (g->machine && !g->machine->failed && machine_bytes(g->machine) < MACHINE_MOST)
		return true;
	return renew(g, err);
}

bool grammar_is_of_tokens(const struct grammar *g) { return g->machine && g->machine->whole; }

/* Adds those that rules about tokens take here. */
static bool allow_whole(struct grammar *g)
{
	const uint32_t state = state_of(g), n = g->v->n_ids;
	uint32_t id;
	bool without;

	if (!g->machine->whole)
		return true;
	if (!g->whole) {
		if (!(g->whole = calloc(n / 32 + 1, sizeof *g->whole)))
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

const uint32_t *grammar_allowed(struct grammar *g, bool *ends, struct error *err)
{
	if (!ready(g, err))
		return NULL;
	bool found = find_allowed(g, ends);
	/* A machine that failed under way is given one more try from the beginning. */
	if (!found && enough(g, err))
		found = renew(g, err) && find_allowed(g, ends);
	if (!enough(g, err))
		return NULL;
	if (!found && g->machine && g->machine->limited)
		error_set(err, ERROR_UNSUPPORTED, "the grammar needs too many states, or too many rules for one value");
	else if (!found)
		error_set(err, ERROR_MEMORY, "the grammar needs too many states, or memory is short");
	return found ? g->bits : NULL;
}

bool grammar_take(struct grammar *g, const struct grammar_token *token, struct error *err)
{
	void *all = g->taken, *bytes = g->text;
	const char *text = token->text;
	const size_t n = token->n;

	if (!ready(g, err))
		return false;
	if (!array_grow(&all, &g->room, g->n + 1, sizeof *g->taken))
		return error_set(err, ERROR_MEMORY, "no memory for a grammar");
	g->taken = all;
	if (!array_grow(&bytes, &g->text_room, g->n_text + n, 1))
		return error_set(err, ERROR_MEMORY, "no memory for a grammar");
	g->text = bytes;
	struct effort *before = effort_begin(&g->effort);
	uint32_t state = walk_token(g, state_of(g), token->id, text, n);
	effort_end(before);
	if (!enough(g, err))
		return false;
	if (state == MACHINE_DEAD)
		return error_set(err, ERROR_ARGUMENT, "the grammar does not allow this token here");
	if (n)
		memcpy(g->text + g->n_text, text, n);
	g->n_text += n;
	g->taken[g->n++] = (struct taken){ state, token->id, g->n_text };
	effort_add(&g->effort, EFFORT_OF_TOKEN, EFFORT_SAVED);
	return true;
}

/* ---- for drafts: what they take is not counted, so that answers do not depend on them */

struct aside {
	struct effort *before;
	uint64_t left;
};

static struct aside begin_aside(struct grammar *g)
{
	return (struct aside){ effort_begin(&g->effort), g->effort.left };
}

static void end_aside(struct grammar *g, const struct aside *a)
{
	effort_end(a->before);
	g->machine->failed |= g->effort.spent; /* it is made anew */
	g->effort.left = a->left;
	g->effort.ask_at = a->left;
	g->effort.spent = false;
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

static size_t forced(struct grammar *g, char *out, size_t most)
{
	size_t n = 0;

	for (uint32_t state = state_of(g); n < most && !machine_ends(g->machine, state);) {
		uint32_t id;
		bool without;
		if (g->machine->whole && g->machine->whole->test(g->machine, state, 0, &id, &without))
			break;
		int byte = only_byte(g->machine, state);
		if (byte < 0)
			break;
		out[n++] = (char)byte;
		state = machine_step(g->machine, state, (uint8_t)byte);
	}
	return n;
}

size_t grammar_forced(struct grammar *g, char *out, size_t most)
{
	struct error ignored = { 0 };

	if (!ready(g, &ignored))
		return 0;
	const struct aside a = begin_aside(g);
	const size_t n = forced(g, out, most);
	end_aside(g, &a);
	return n;
}

size_t grammar_fitting(struct grammar *g, const struct grammar_token *token, size_t n)
{
	struct error ignored = { 0 };
	size_t i = 0;

	if (!ready(g, &ignored))
		return 0;
	const struct aside a = begin_aside(g);
	for (uint32_t state = state_of(g); i < n; i++)
		if ((state = walk_token(g, state, token[i].id, token[i].text, token[i].n)) == MACHINE_DEAD)
			break;
	end_aside(g, &a);
	return i;
}

size_t grammar_taken(const struct grammar *g) { return g->n; }

void grammar_rewind(struct grammar *g, size_t n)
{
	g->n = n;
	g->n_text = n ? g->taken[n - 1].text : 0;
}
