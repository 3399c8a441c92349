/* runtime/sampling/sampling_set.c - jit_sampling as options of a chain: which value stands for a field that is 0, and
 * when a chain is needed at all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/tokenizer.h"
#include "runtime/sampling/sampling.h"

static const char *const usual_breakers[] = { "\n", ":", "\"", "*" };

static float or_usual(float x, float usual) { return x == 0 ? usual : x; }
static int32_t or_usual_number(int32_t x, int32_t usual) { return x == 0 ? usual : x; }

static struct chain_options chain_of(const jit_sampling *p)
{
	const struct chain_options *u = &chain_usual;
	bool breakers = p->dry_breakers || p->n_dry_breakers;

	return (struct chain_options){
		.samplers = p->samplers,
		.temperature = p->temperature,
		.dynatemp_range = p->dynatemp_range,
		.dynatemp_exponent = or_usual(p->dynatemp_exponent, u->dynatemp_exponent),
		.top_k = p->top_k,
		.top_p = or_usual(p->top_p, u->top_p),
		.typical_p = or_usual(p->typical_p, u->typical_p),
		.min_p = p->min_p,
		.top_n_sigma = p->top_n_sigma,
		.xtc_probability = p->xtc_probability,
		.xtc_threshold = or_usual(p->xtc_threshold, u->xtc_threshold),
		.repeat_penalty = or_usual(p->repeat_penalty, u->repeat_penalty),
		.frequency_penalty = p->frequency_penalty,
		.presence_penalty = p->presence_penalty,
		.repeat_window = or_usual_number(p->repeat_window, u->repeat_window),
		.dry_multiplier = p->dry_multiplier,
		.dry_base = or_usual(p->dry_base, u->dry_base),
		.dry_allowed_length = or_usual_number(p->dry_allowed_length, u->dry_allowed_length),
		.dry_window = or_usual_number(p->dry_window, u->dry_window),
		.dry_breakers = breakers ? p->dry_breakers : usual_breakers,
		.n_dry_breakers =
			breakers ? p->n_dry_breakers : (int32_t)(sizeof usual_breakers / sizeof *usual_breakers),
		.mirostat = p->mirostat,
		.mirostat_tau = or_usual(p->mirostat_tau, u->mirostat_tau),
		.mirostat_eta = or_usual(p->mirostat_eta, u->mirostat_eta),
		.adaptive_target = p->adaptive_target == 0 ? u->adaptive_target : p->adaptive_target,
		.adaptive_decay = or_usual(p->adaptive_decay, u->adaptive_decay),
		.min_keep = p->min_keep,
		.logit_bias = p->logit_bias,
		.n_logit_bias = p->n_logit_bias,
	};
}

jit_sampling sampling_told(const jit_sampling *p)
{
	const struct chain_options o = chain_of(p);
	jit_sampling t = *p;

	t.top_p = o.top_p;
	t.typical_p = o.typical_p;
	t.repeat_penalty = o.repeat_penalty;
	t.repeat_window = o.repeat_window;
	t.dynatemp_exponent = o.dynatemp_exponent;
	t.xtc_threshold = o.xtc_threshold;
	t.dry_base = o.dry_base;
	t.dry_allowed_length = o.dry_allowed_length;
	t.dry_window = o.dry_window;
	t.mirostat_tau = o.mirostat_tau;
	t.mirostat_eta = o.mirostat_eta;
	t.adaptive_target = o.adaptive_target;
	t.adaptive_decay = o.adaptive_decay;
	t.dry_breakers = o.dry_breakers;
	t.n_dry_breakers = o.n_dry_breakers;
	t.samplers = p->samplers ? p->samplers : sampler_order_usual;
	return t;
}

/* Whether anything is asked for that sampling.c does not do by itself, as it did before there were chains. */
static bool needs_chain(const jit_sampling *p)
{
	return p->samplers || (p->typical_p > 0 && p->typical_p < 1) || p->top_n_sigma > 0 ||
	       p->frequency_penalty != 0 || p->presence_penalty != 0 || p->dynatemp_range > 0 ||
	       p->xtc_probability > 0 || p->dry_multiplier > 0 || p->mirostat || p->adaptive_target > 0 ||
	       p->min_keep > 0 || p->n_logit_bias;
}

static const char *spell(void *user, int32_t id, size_t *n)
{
	struct sampling *s = user;

	return tokenizer_piece(s->tokenizer, id, false, true, s->scratch, n);
}

/* The biases of the parameters, and behind them those that a model's own files ask for. NULL: none, or no memory. */
static jit_logit_bias *all_biases(const struct sampling *s, const jit_sampling *p)
{
	const size_t given = p->n_logit_bias > 0 ? (size_t)p->n_logit_bias : 0;
	jit_logit_bias *all = s->n_never ? malloc((given + s->n_never) * sizeof *all) : NULL;

	if (all && given)
		memcpy(all, p->logit_bias, given * sizeof *all);
	for (size_t i = 0; all && i < s->n_never; i++)
		all[given + i] = (jit_logit_bias){ s->never[i], -INFINITY };
	return all;
}

static bool use(struct sampling *s, const jit_sampling *p, struct chain_options *o, size_t context, struct error *err)
{
	const struct chain_pieces pieces = { s->tokenizer ? spell : NULL, s };
	jit_logit_bias *all = all_biases(s, p);

	if (s->n_never && !all)
		return error_set(err, ERROR_MEMORY, "no memory for %zu tokens that are never chosen", s->n_never);
	if (all) {
		o->logit_bias = all;
		o->n_logit_bias += (int32_t)s->n_never;
	}
	bool ok = sampling_use(s, all || needs_chain(p) ? o : NULL, context, pieces, err);
	free(all);
	return ok;
}

static bool check(const jit_sampling *p, const struct chain_options *o, int32_t vocab, struct error *err)
{
	if (p->adaptive_target < 0) /* which is off for a chain */
		return error_set(err, ERROR_ARGUMENT, "adaptive_target: %.9g is not in 0..1",
		                 (double)p->adaptive_target);
	return chain_options_check(o, vocab, err);
}

bool sampling_check(const jit_sampling *p, struct error *err)
{
	const struct chain_options o = chain_of(p);
	struct sampler_order order;

	return check(p, &o, INT32_MAX, err) && (!o.samplers || sampler_order_parse(&order, o.samplers, err));
}

bool sampling_set(struct sampling *s, const jit_sampling *p, size_t context, struct error *err)
{
	struct chain_options o = chain_of(p);

	if (!check(p, &o, s->vocab, err) || !use(s, p, &o, context, err))
		return false;
	s->params = *p;
	s->params.samplers = NULL;
	s->params.dry_breakers = NULL;
	s->params.logit_bias = NULL;
	return true;
}
