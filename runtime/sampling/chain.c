#include "runtime/sampling/chain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/sampling/filters.h"
#include "runtime/sampling/greatest.h"

enum { MIROSTAT_COUNTED = 100, BIASES_SMALL = 64 };

struct chain {
	struct chain_options o; /* without what it points to */
	struct sampler_order order;
	struct penalties penalties;
	struct dry dry;
	jit_logit_bias *bias;
	bool lowers; /* the biases are few, and make no token likelier */
	struct candidates list;
	int32_t *tally; /* for each token: 0, between samplers */
};

/* ---- opening */

/* -1: all. */
static int32_t window_of(int32_t requested, size_t context)
{
	int32_t all = context < INT32_MAX ? (int32_t)context : INT32_MAX;

	return requested < 0 || requested > all ? all : requested;
}

static bool open_dry(struct chain *c, const struct chain_options *o, size_t context, struct chain_pieces pieces)
{
	struct dry *d = &c->dry;

	*d = (struct dry){ .multiplier = o->dry_multiplier,
		           .base = o->dry_base,
		           .allowed = o->dry_allowed_length,
		           .window = window_of(o->dry_window, context),
		           .piece = pieces.fn,
		           .piece_user = pieces.user };
	if (d->multiplier == 0 || d->window == 0)
		return true;
	d->same = malloc((size_t)d->window * sizeof *d->same);
	if (!d->same)
		return false;
	if (!pieces.fn || o->n_dry_breakers == 0)
		return true;
	d->breaker = malloc((size_t)o->n_dry_breakers * sizeof *d->breaker);
	if (!d->breaker)
		return false;
	d->n_breakers = (uint32_t)o->n_dry_breakers;
	for (uint32_t i = 0; i < d->n_breakers; i++) {
		d->breaker[i].n = (uint32_t)strlen(o->dry_breakers[i]);
		memcpy(d->breaker[i].bytes, o->dry_breakers[i], d->breaker[i].n);
	}
	return true;
}

static bool open_memory(struct chain *c, const struct chain_options *o, int32_t vocab, size_t context,
                        struct chain_pieces pieces)
{
	c->tally = calloc((size_t)vocab, sizeof *c->tally);
	if (!c->tally || !candidates_open(&c->list, vocab) || !open_dry(c, o, context, pieces))
		return false;
	c->lowers = o->n_logit_bias <= BIASES_SMALL;
	for (int32_t i = 0; i < o->n_logit_bias; i++)
		c->lowers &= o->logit_bias[i].bias <= 0;
	if (o->n_logit_bias == 0)
		return true;
	c->bias = malloc((size_t)o->n_logit_bias * sizeof *c->bias);
	if (c->bias)
		memcpy(c->bias, o->logit_bias, (size_t)o->n_logit_bias * sizeof *c->bias);
	return c->bias != NULL;
}

struct chain *chain_open(const struct chain_options *o, int32_t vocab, size_t context, struct chain_pieces pieces,
                         struct error *err)
{
	struct sampler_order order;

	if (!chain_options_check(o, vocab, err) ||
	    !sampler_order_parse(&order, o->samplers ? o->samplers : sampler_order_usual, err))
		return NULL;
	struct chain *c = calloc(1, sizeof *c);
	if (!c || !open_memory(c, o, vocab, context, pieces)) {
		chain_close(c);
		error_set(err, ERROR_MEMORY, "no memory for the samplers of %d tokens", vocab);
		return NULL;
	}
	c->o = *o;
	c->o.samplers = NULL;
	c->o.dry_breakers = NULL;
	c->o.logit_bias = NULL;
	c->order = order;
	c->penalties = (struct penalties){ o->repeat_penalty, o->frequency_penalty, o->presence_penalty,
		                           window_of(o->repeat_window, context) };
	return c;
}

void chain_close(struct chain *c)
{
	if (!c)
		return;
	candidates_close(&c->list);
	free(c->dry.same);
	free(c->dry.breaker);
	free(c->bias);
	free(c->tally);
	free(c);
}

/* ---- state */

static struct mirostat mirostat_of(const struct chain *c)
{
	return (struct mirostat){ c->o.mirostat_tau, c->o.mirostat_eta };
}
static struct adaptive adaptive_of(const struct chain *c)
{
	return (struct adaptive){ c->o.adaptive_target, c->o.adaptive_decay };
}

bool chain_has_state(const struct chain *c) { return c->o.mirostat || c->o.adaptive_target >= 0; }

struct chain_state chain_begin(const struct chain *c)
{
	struct mirostat m = mirostat_of(c);
	struct adaptive a = adaptive_of(c);

	return (struct chain_state){ .mu = mirostat_begin(&m), .adaptive = adaptive_begin(&a) };
}

void chain_accept(const struct chain *c, struct chain_state *s, int32_t id)
{
	struct adaptive a = adaptive_of(c);

	adaptive_accept(&a, &s->adaptive, id);
}

/* ---- choosing */

static void apply_temperature(struct chain *c)
{
	if (c->o.temperature > 0) /* else the choice is greedy */
		temperature_dynamic(&c->list, c->o.temperature, c->o.dynatemp_range, c->o.dynatemp_exponent);
}

static void apply(struct chain *c, enum sampler sampler, const int32_t *text, size_t n, double xtc)
{
	const struct chain_options *o = &c->o;
	struct candidates *list = &c->list;

	switch (sampler) {
#define SAMPLER(id, name, idle, apply) \
	case SAMPLER_##id: \
		apply; \
		break;
#include "base/sampling.def"
	case SAMPLERS: break;
	}
}

bool chain_is_greedy(const struct chain *c) { return !(c->o.temperature > 0); }

/* Whether it leaves any list as it is. */
static bool is_idle(const struct chain *c, enum sampler sampler)
{
	const struct chain_options *o = &c->o;

#define SAMPLER(id, name, idle, apply) \
	if (sampler == SAMPLER_##id) \
		return idle;
#include "base/sampling.def"
	return false;
}

/* The first sampler that changes anything; their number: there is none. */
static int first_at_work(const struct chain *c)
{
	int i = 0;

	while (i < c->order.n && (c->o.mirostat || is_idle(c, c->order.sampler[i])))
		i++;
	return i;
}

/* Whether the first of the greatest logits is taken, whatever they are; but for biases. */
static bool takes_greatest(const struct chain *c)
{
	bool stays = chain_is_greedy(c);

	for (int i = first_at_work(c); stays && i < c->order.n; i++) {
		enum sampler s = c->order.sampler[i];
		stays = s == SAMPLER_TOP_K || s == SAMPLER_TOP_P || s == SAMPLER_MIN_P || is_idle(c, s);
	}
	return stays;
}

/* Whether biases leave the first tokens, which these are before them, as they are: others only fall further behind. */
static bool are_unbiased(const struct chain *c, const int32_t *id, int32_t n)
{
	bool same = c->lowers;

	for (int32_t i = 0; same && i < n; i++)
		for (int32_t b = 0; b < c->o.n_logit_bias; b++)
			same &= id[i] != c->bias[b].id;
	return same;
}

/* The list as the samplers before the one whose number is returned leave it. */
static int load(struct chain *c, const float *logits)
{
	int first = first_at_work(c);

	if (c->lowers && first < c->order.n && c->order.sampler[first] == SAMPLER_TOP_K) {
		candidates_load_first(&c->list, logits, c->list.room, c->o.top_k);
		if (are_unbiased(c, c->list.id, c->list.n))
			return first + 1;
	}
	candidates_load(&c->list, logits, c->list.room);
	penalties_bias(&c->list, c->bias, (size_t)c->o.n_logit_bias);
	return first;
}

static int32_t draw_by_mirostat(struct chain *c, double u, struct chain_state *s)
{
	const struct mirostat m = mirostat_of(c);

	temperature_scale(&c->list, c->o.temperature);
	return c->o.mirostat == 1 ? draw_mirostat(&c->list, &m, MIROSTAT_COUNTED, c->list.room, u, &s->mu)
	                          : draw_mirostat_v2(&c->list, &m, u, &s->mu);
}

const float *chain_forbid(const struct chain *c, float *logits)
{
	for (int32_t i = 0; i < c->o.n_logit_bias; i++)
		if (c->bias[i].bias == -INFINITY)
			logits[c->bias[i].id] = -INFINITY;
	return logits;
}

const struct candidates *chain_list(const struct chain *c) { return &c->list; }

int32_t chain_choose(struct chain *c, const float *logits, const int32_t *text, size_t n, struct chain_draws u,
                     struct chain_state *s)
{
	const struct adaptive a = adaptive_of(c);
	int32_t chosen;

	if (takes_greatest(c)) {
		chosen = greatest_first(logits, c->list.room);
		if (are_unbiased(c, &chosen, 1))
			return chosen;
	}
	for (int i = load(c, logits); i < c->order.n; i++)
		apply(c, c->order.sampler[i], text, n, u.xtc);
	if (chain_is_greedy(c))
		chosen = draw_greedy(&c->list);
	else if (c->o.mirostat)
		chosen = draw_by_mirostat(c, u.token, s);
	else
		chosen = draw_adaptive(&c->list, &a, u.token, &s->adaptive);
	return c->list.id[chosen];
}
