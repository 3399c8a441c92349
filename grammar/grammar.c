#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "grammar/call.h"
#include "grammar/mask.h"

/* Bytes of a machine's states; beyond, it is made anew and goes through the text so far. */
enum { MACHINE_MOST = 256 << 20 };

struct grammar {
	const struct vocabulary *v;
	const struct machine_tokens *tokens;
	uint32_t *whole; /* the tokens that rules about tokens can take, as bits; NULL: not asked for so far */
	enum grammar_kind kind;
	char *source;
	size_t n_source;
	struct machine *machine;
	struct masks *masks;
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

static bool make(struct grammar *g, struct error *err)
{
	g->machine = machine_of(g, err);
	g->masks = g->machine ? masks_open(g->v, g->machine) : NULL;
	return g->masks || error_set(err, ERROR_MEMORY, "no memory for a grammar");
}

struct grammar *grammar_open(const struct vocabulary *v, enum grammar_kind kind, const char *text, size_t n,
                             const struct machine_tokens *tokens, struct error *err)
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
	if (ok && make(g, err))
		return g;
	grammar_close(g);
	return NULL;
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
	uint32_t state = g->machine->start;
	for (size_t i = 0, at = 0; i < g->n; i++) {
		state = walk_token(g, state, g->taken[i].id, g->text + at, g->taken[i].text - at);
		g->taken[i].state = state;
		at = g->taken[i].text;
	}
	return !g->machine->failed || error_set(err, ERROR_MEMORY, "the grammar needs too many states");
}

static bool ready(struct grammar *g, struct error *err)
{
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

static bool find_allowed(struct grammar *g) { return masks_of(g->masks, state_of(g), g->bits) && allow_whole(g); }

const uint32_t *grammar_allowed(struct grammar *g, bool *ends, struct error *err)
{
	if (!ready(g, err))
		return NULL;
	/* A machine that failed under way is given one more try from the beginning. */
	if (!find_allowed(g) && (!renew(g, err) || !find_allowed(g))) {
		error_set(err, ERROR_MEMORY, "the grammar needs too many states, or memory is short");
		return NULL;
	}
	*ends = machine_ends(g->machine, state_of(g));
	return g->bits;
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
	uint32_t state = walk_token(g, state_of(g), token->id, text, n);
	if (state == MACHINE_DEAD)
		return error_set(err, ERROR_ARGUMENT, "the grammar does not allow this token here");
	if (n)
		memcpy(g->text + g->n_text, text, n);
	g->n_text += n;
	g->taken[g->n++] = (struct taken){ state, token->id, g->n_text };
	return true;
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

size_t grammar_forced(struct grammar *g, char *out, size_t most)
{
	struct error ignored = { 0 };
	size_t n = 0;

	if (!ready(g, &ignored))
		return 0;
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

size_t grammar_fitting(struct grammar *g, const struct grammar_token *token, size_t n)
{
	struct error ignored = { 0 };
	size_t i = 0;

	if (!ready(g, &ignored))
		return 0;
	for (uint32_t state = state_of(g); i < n; i++)
		if ((state = walk_token(g, state, token[i].id, token[i].text, token[i].n)) == MACHINE_DEAD)
			break;
	return i;
}

size_t grammar_taken(const struct grammar *g) { return g->n; }

void grammar_rewind(struct grammar *g, size_t n)
{
	g->n = n;
	g->n_text = n ? g->taken[n - 1].text : 0;
}
