/* runtime/sampling/sampling_set.c - jit_sampling as options of a chain: which value stands for a field that is 0, and
 * when a chain is needed at all.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/tokenizer/tokenizer.h"
#include "runtime/sampling/sampling.h"

static const char *const usual_breakers[] = { "\n", ":", "\"", "*" };

static struct chain_options chain_of(const jit_sampling *p)
{
	const bool breakers = p->dry_breakers || p->n_dry_breakers;
	struct chain_options o = {
		.samplers = p->samplers, .logit_bias = p->logit_bias, .n_logit_bias = p->n_logit_bias
	};

#define SAMPLING_FIELD(type, field, ...) o.field = p->field == 0 ? chain_usual.field : p->field;
#include "base/sampling.def"
	o.dry_breakers = breakers ? p->dry_breakers : usual_breakers;
	o.n_dry_breakers = breakers ? p->n_dry_breakers : (int32_t)(sizeof usual_breakers / sizeof *usual_breakers);
	return o;
}

jit_sampling sampling_told(const jit_sampling *p)
{
	const struct chain_options o = chain_of(p);
	jit_sampling t = *p;

#define SAMPLING_FIELD(type, field, ...) t.field = o.field;
#include "base/sampling.def"
	t.dry_breakers = o.dry_breakers;
	t.n_dry_breakers = o.n_dry_breakers;
	t.samplers = p->samplers ? p->samplers : sampler_order_usual;
	return t;
}

double sampling_value(const jit_sampling *p, enum sampling_field f)
{
#define SAMPLING_FIELD(type, field, ...) \
	if (f == SAMPLING_##field) \
		return (double)p->field;
#include "base/sampling.def"
	return 0;
}

void sampling_put(jit_sampling *p, enum sampling_field f, double value)
{
#define REAL float
#define WHOLE int
#define SAMPLING_FIELD(type, field, ...) \
	if (f == SAMPLING_##field) \
		p->field = (type)value;
#include "base/sampling.def"
#undef REAL
#undef WHOLE
}

#define REAL float
#define WHOLE int
#define LIBRARY(low, high, usual, works) works
#define SAMPLING_FIELD(type, field, library, ...) \
	static bool works_##field(type x) \
	{ \
		(void)x; \
		return library; \
	}
#include "base/sampling.def"
#undef REAL
#undef WHOLE
#undef LIBRARY

/* Whether anything is asked for that sampling.c does not do by itself, as it did before there were chains. */
static bool needs_chain(const jit_sampling *p)
{
	bool needs = p->samplers || p->n_logit_bias;

#define SAMPLING_FIELD(type, field, ...) needs = needs || works_##field(p->field);
#include "base/sampling.def"
	return needs;
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
