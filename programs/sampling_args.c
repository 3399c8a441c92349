#include "programs/sampling_args.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/sampling/chain.h"

/* "15043+1.5", "15043-inf". */
static bool read_bias(const char *text, jit_logit_bias *out)
{
	char *end;

	errno = 0;
	long id = strtol(text, &end, 10);
	if (!isdigit((unsigned char)*text) || errno || id > INT32_MAX || (*end != '+' && *end != '-'))
		return false;
	const char *number = end;
	float bias = strtof(number, &end);
	if (end == number || *end || (!isfinite(bias) && bias != -INFINITY))
		return false;
	*out = (jit_logit_bias){ (int32_t)id, bias };
	return true;
}

static bool read_biases(struct sampling_args *a, char why[400])
{
	for (int i = 0; i < a->logit_bias.n; i++)
		if (!read_bias(a->logit_bias.value[i], &a->bias[i])) {
			snprintf(why, 400,
			         "--logit-bias: \"%.40s\" is not an id and a number, such as 15043+1 or 15043-inf",
			         a->logit_bias.value[i]);
			return false;
		}
	return true;
}

/* Before a model is loaded for nothing. */
static bool check_samplers(const struct sampling_args *a, char why[400])
{
	struct error err = { 0 };
	struct sampler_order order;

	if (!a->samplers || sampler_order_parse(&order, a->samplers, &err))
		return true;
	snprintf(why, 400, "--%.390s", err.text);
	return false;
}

bool sampling_args_check(struct sampling_args *a, char why[400])
{
	return read_biases(a, why) && check_samplers(a, why);
}

bool sampling_args_set(struct sampling_args *a, const char *name, const char *value, char why[400])
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct sampling_args scratch;
	static const struct option_row rows[] = {
#define SAMPLING scratch
#include "programs/sampling_rows.def"
#undef SAMPLING
	};
	const struct option_program p = {
		.name = "", .row = rows, .n_rows = sizeof rows / sizeof rows[0], .said = why, .room = 400
	};

	pthread_mutex_lock(&lock);
	scratch = *a;
	bool ok = options_preset(&p, name, value);
	*a = scratch;
	pthread_mutex_unlock(&lock);
	return ok;
}

static void fill(double *value, float otherwise)
{
	if (isnan(*value))
		*value = (double)otherwise;
}

static void fill_whole(long *value, int otherwise)
{
	if (*value == SAMPLING_NOT_GIVEN)
		*value = otherwise;
}

/* Short enough to be typed again. Where the system has no random numbers, the time will do: nothing secret hangs on it.
 */
long sampling_args_seed(void)
{
	struct timespec now;
	uint32_t seed;

	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
		clock_gettime(CLOCK_REALTIME, &now);
		seed = (uint32_t)now.tv_nsec ^ (uint32_t)now.tv_sec << 8 ^ (uint32_t)getpid() << 16;
	}
	return (long)seed;
}

static void fill_from(struct sampling_args *a, const jit_sampling *d)
{
	fill(&a->temp, d->temperature);
	fill_whole(&a->top_k, d->top_k);
	fill(&a->top_p, d->top_p);
	fill(&a->min_p, d->min_p);
	fill(&a->typical, d->typical_p);
	fill(&a->repeat_penalty, d->repeat_penalty);
	fill(&a->presence_penalty, d->presence_penalty);
	fill(&a->frequency_penalty, d->frequency_penalty);
	fill_whole(&a->repeat_last_n, d->repeat_window);
	fill(&a->xtc_probability, d->xtc_probability);
	fill(&a->xtc_threshold, d->xtc_threshold);
	fill_whole(&a->mirostat, d->mirostat);
	fill(&a->mirostat_lr, d->mirostat_eta);
	fill(&a->mirostat_ent, d->mirostat_tau);
	a->samplers = a->samplers ? a->samplers : d->samplers;
	a->seed = a->seed < 0 ? sampling_args_seed() : a->seed;
}

bool sampling_args_fill(struct sampling_args *a, const jit_model *m, const char *path, jit_error *err)
{
	jit_sampling own = JIT_SAMPLING();
	struct sampler_order order;
	struct error e = { 0 };

	if (jit_model_sampling_defaults(m, &own, err) != JIT_OK)
		return false;
	if (own.samplers && !a->samplers && !sampler_order_parse(&order, own.samplers, &e)) {
		*err = (jit_error){ .code = JIT_ERROR_UNSUPPORTED };
		snprintf(err->message, sizeof err->message, "%.200s: the model's own %.250s; --samplers names others",
		         path, e.text);
		return false;
	}
	fill_from(a, &own);
	return true;
}

void sampling_args_describe(const struct sampling_args *a, char *out, size_t cap)
{
	const struct {
		const char *name;
		double value, off;
	} row[] = {
		{ "temp", a->temp, -1 },
		{ "top-k", (double)a->top_k, 0 },
		{ "top-p", a->top_p, 1 },
		{ "min-p", a->min_p, 0 },
		{ "typical", a->typical, 1 },
		{ "top-nsigma", a->top_nsigma, 0 },
		{ "repeat-penalty", a->repeat_penalty, 1 },
		{ "presence-penalty", a->presence_penalty, 0 },
		{ "frequency-penalty", a->frequency_penalty, 0 },
		{ "dry-multiplier", a->dry_multiplier, 0 },
		{ "dynatemp-range", a->dynatemp_range, 0 },
		{ "xtc-probability", a->xtc_probability, 0 },
		{ "mirostat", (double)a->mirostat, 0 },
		{ "adaptive-target", a->adaptive_target, 0 },
	};
	size_t at = 0;

	for (size_t i = 0; i < sizeof row / sizeof *row && at < cap; i++)
		if (row[i].value != row[i].off)
			at += (size_t)snprintf(out + at, cap - at, "%s %.7g, ", row[i].name, row[i].value);
	if (at < cap)
		snprintf(out + at, cap - at, "seed %ld", a->seed);
}

jit_sampling sampling_args_make(const struct sampling_args *a)
{
	static const char *const no_breakers[1] = { NULL };
	const struct option_list *breakers = &a->dry_breakers;
	bool none = breakers->n == 1 && strcmp(breakers->value[0], "none") == 0;

	return JIT_SAMPLING(.temperature = (float)a->temp, .top_k = (int)a->top_k, .top_p = (float)a->top_p,
	                    .min_p = (float)a->min_p, .repeat_penalty = (float)a->repeat_penalty,
	                    .repeat_window = (int)a->repeat_last_n, .seed = (uint64_t)a->seed, .samplers = a->samplers,
	                    .dry_breakers = none          ? no_breakers
	                                    : breakers->n ? breakers->value
	                                                  : NULL,
	                    .logit_bias = a->bias, .n_dry_breakers = none ? 0 : breakers->n,
	                    .n_logit_bias = a->logit_bias.n, .typical_p = (float)a->typical,
	                    .top_n_sigma = (float)a->top_nsigma, .frequency_penalty = (float)a->frequency_penalty,
	                    .presence_penalty = (float)a->presence_penalty, .dynatemp_range = (float)a->dynatemp_range,
	                    .dynatemp_exponent = (float)a->dynatemp_exp, .xtc_probability = (float)a->xtc_probability,
	                    .xtc_threshold = (float)a->xtc_threshold, .dry_multiplier = (float)a->dry_multiplier,
	                    .dry_base = (float)a->dry_base, .dry_allowed_length = (int)a->dry_allowed_length,
	                    .dry_window = (int)a->dry_penalty_last_n, .mirostat = (int)a->mirostat,
	                    .min_keep = (int)a->min_keep, .mirostat_tau = (float)a->mirostat_ent,
	                    .mirostat_eta = (float)a->mirostat_lr, .adaptive_target = (float)a->adaptive_target,
	                    .adaptive_decay = (float)a->adaptive_decay);
}

void sampling_args_take(struct sampling_args *a, const jit_sampling *p)
{
	a->temp = p->temperature;
	a->top_k = p->top_k;
	a->top_p = p->top_p;
	a->min_p = p->min_p;
	a->typical = p->typical_p;
	a->top_nsigma = p->top_n_sigma;
	a->repeat_penalty = p->repeat_penalty;
	a->repeat_last_n = p->repeat_window;
	a->presence_penalty = p->presence_penalty;
	a->frequency_penalty = p->frequency_penalty;
	a->dry_multiplier = p->dry_multiplier;
	a->dry_base = p->dry_base;
	a->dry_allowed_length = p->dry_allowed_length;
	a->dry_penalty_last_n = p->dry_window;
	a->dynatemp_range = p->dynatemp_range;
	a->dynatemp_exp = p->dynatemp_exponent;
	a->xtc_probability = p->xtc_probability;
	a->xtc_threshold = p->xtc_threshold;
	a->mirostat = p->mirostat;
	a->mirostat_ent = p->mirostat_tau;
	a->mirostat_lr = p->mirostat_eta;
	a->adaptive_target = p->adaptive_target;
	a->adaptive_decay = p->adaptive_decay;
	a->min_keep = p->min_keep;
	a->samplers = p->samplers;
	a->seed = (long)p->seed;
}
