#include "grammar/grammar_parts.h"

#include <stdlib.h>
#include <string.h>

#include "grammar/call/call.h"
#include "grammar/machine/effort.h"
#include "grammar/mask.h"

/* Bytes of a machine's states; beyond, it is made anew and goes through the text so far. */
enum { MACHINE_MAX = 128 << 20 };

static _Thread_local unsigned shares;

void grammar_share(unsigned n) { shares = n; }

struct machine *grammar_machine(const struct grammar *g, struct error *err)
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

	g->effort.bytes = g->bytes;
	struct effort *before = effort_begin(&g->effort);
	g->machine = grammar_machine(g, err);
	g->masks = g->machine ? masks_open(g->v, g->machine) : NULL;
	effort_end(before);
	g->opened = had - g->effort.left;
	g->found = false;
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
		g->bytes = EFFORT_BYTES / (shares ? shares : 1);
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
uint32_t grammar_walk(const struct grammar *g, struct machine *m, uint32_t state, const struct grammar_token *t)
{
	const struct machine_whole *whole = m->whole;
	uint32_t a = t->n ? walk(m, state, t->text, t->n) : MACHINE_DEAD, b = MACHINE_DEAD;

	if (whole && state != MACHINE_DEAD && g->tokens->takes(g->tokens->user, t->id))
		b = whole->step(m, state, t->id);
	if (a == MACHINE_DEAD || b == MACHINE_DEAD)
		return a == MACHINE_DEAD ? b : a;
	return whole->both(m, a, b);
}

struct grammar_token grammar_token_at(const struct grammar *g, size_t i)
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
		const struct grammar_token t = grammar_token_at(g, i);
		state = grammar_walk(g, g->machine, state, &t);
		g->taken[i].state = state;
	}
	effort_end(before);
	g->walked = g->n;
	if (!enough(g, err))
		return false;
	return !g->machine->failed || error_set(err, ERROR_UNSUPPORTED, "the grammar needs too many states");
}

/* Tokens that were only noted. */
static void catch_up(struct grammar *g)
{
	struct effort *before = effort_begin(&g->effort);

	for (; g->walked < g->n; g->walked++) {
		const struct grammar_token t = grammar_token_at(g, g->walked);
		const uint32_t from = g->walked ? g->taken[g->walked - 1].state : g->machine->start;
		g->taken[g->walked].state = grammar_walk(g, g->machine, from, &t);
	}
	effort_end(before);
}

static bool ready(struct grammar *g, struct error *err)
{
	if (!enough(g, err))
		return false;
	if (!g->machine || g->machine->failed || machine_bytes(g->machine) >= MACHINE_MAX)
		return renew(g, err);
	catch_up(g);
	return true;
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

	*ends = g->ends = found && machine_ends(g->machine, state_of(g));
	effort_end(before);
	return found && !g->machine->failed;
}

bool grammar_is_found(const struct grammar *g) { return g->found; }

uint64_t grammar_cost(const struct grammar *g) { return g->cost; }

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
	const uint64_t had = g->effort.left;

	if (!enough(g, err))
		return NULL;
	*ends = g->ends;
	if (g->found)
		return g->bits;
	if (!ready(g, err))
		return NULL;
	bool found = find_allowed(g, ends);
	if (!found && may_try_again(g, err))
		found = renew(g, err) && find_allowed(g, ends);
	g->cost = had - g->effort.left;
	if (!enough(g, err))
		return NULL;
	if (!found)
		say_failed(err);
	g->found = found;
	return found ? g->bits : NULL;
}

static uint32_t take(struct grammar *g, const struct grammar_token *token)
{
	struct effort *before = effort_begin(&g->effort);
	const uint32_t state = grammar_walk(g, g->machine, state_of(g), token);

	effort_end(before);
	return state;
}

/* Whether the mask of this place has the token: it is walked when the next mask is wanted, and by who wants that. */
static bool is_allowed(const struct grammar *g, uint32_t id)
{
	return g->found && id < g->v->n_ids && g->bits[id / 32] >> id % 32 & 1;
}

/* Its state; MACHINE_DEAD: err. */
static uint32_t take_now(struct grammar *g, const struct grammar_token *token, struct error *err)
{
	uint32_t state = take(g, token);

	if (state == MACHINE_DEAD && (g->effort.lost || g->machine->failed) && may_try_again(g, err))
		state = renew(g, err) ? take(g, token) : MACHINE_DEAD;
	if (!enough(g, err))
		return MACHINE_DEAD;
	if (state == MACHINE_DEAD && (!g->machine || g->machine->failed))
		say_failed(err);
	if (state == MACHINE_DEAD)
		error_set(err, ERROR_ARGUMENT, "the grammar does not allow this token here");
	return state;
}

bool grammar_take(struct grammar *g, const struct grammar_token *token, struct error *err)
{
	void *all = g->taken, *bytes = g->text;
	const size_t n = token->n;
	const bool noted = is_allowed(g, token->id);

	if (!(noted ? enough(g, err) : ready(g, err)))
		return false;
	if (!array_grow(&all, &g->room, g->n + 1, sizeof *g->taken))
		return error_set(err, ERROR_MEMORY, "no memory for a grammar");
	g->taken = all;
	if (!array_grow(&bytes, &g->text_room, g->n_text + n, 1))
		return error_set(err, ERROR_MEMORY, "no memory for a grammar");
	g->text = bytes;
	const uint32_t state = noted ? MACHINE_DEAD : take_now(g, token, err);
	if (!noted && state == MACHINE_DEAD)
		return false;
	if (n)
		memcpy(g->text + g->n_text, token->text, n);
	g->n_text += n;
	g->taken[g->n++] = (struct taken){ state, MACHINE_DEAD, token->id, g->n_text };
	g->walked = noted ? g->walked : g->n;
	g->found = false;
	effort_add(&g->effort, EFFORT_OF_TOKEN, EFFORT_SAVED);
	return true;
}

size_t grammar_taken(const struct grammar *g) { return g->n; }

void grammar_rewind(struct grammar *g, size_t n)
{
	g->found = g->found && n == g->n;
	g->n = n;
	g->walked = g->walked < n ? g->walked : n;
	g->n_text = n ? g->taken[n - 1].text : 0;
	g->aside.n = g->aside.n < n ? g->aside.n : n;
}
