#include "programs/common/sampling_args.h"

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
#include "base/sampling_fields.h"
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
#include "programs/common/sampling_rows.def"
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

#define NOT_GIVEN_REAL (double)NAN
#define NOT_GIVEN_WHOLE LONG_MIN
const struct sampling_args sampling_args_usual = {
#define SAMPLING_FIELD(type, field, ...) .field = NOT_GIVEN_##type,
#include "base/sampling.def"
	.seed = -1
};

static void fill_REAL(double *value, double otherwise) { *value = isnan(*value) ? otherwise : *value; }
static void fill_WHOLE(long *value, double otherwise) { *value = *value == NOT_GIVEN_WHOLE ? (long)otherwise : *value; }

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
#define SAMPLING_FIELD(type, field, ...) fill_##type(&a->field, (double)d->field);
#include "base/sampling.def"
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

static double value_of(const struct sampling_args *a, enum sampling_field f)
{
#define SAMPLING_FIELD(type, field, ...) \
	if (f == SAMPLING_##field) \
		return (double)a->field;
#include "base/sampling.def"
	return 0;
}

void sampling_args_describe(const struct sampling_args *a, char *out, size_t cap)
{
	int order[SAMPLING_FIELDS + 1];
	size_t at = 0;

	for (int i = 0; i <= SAMPLING_FIELDS; i++)
		order[i] = SAMPLING_FIELDS;
	for (int i = 0; i < SAMPLING_FIELDS; i++)
		order[sampling_rows[i].told_at] = i;
	for (int i = 1; i <= SAMPLING_FIELDS && at < cap; i++) {
		if (order[i] == SAMPLING_FIELDS)
			continue;
		const struct sampling_row *row = &sampling_rows[order[i]];
		const double value = value_of(a, (enum sampling_field)order[i]);
		if (value != row->off)
			at += (size_t)snprintf(out + at, cap - at, "%s %.7g, ", row->option, value);
	}
	if (at < cap)
		snprintf(out + at, cap - at, "seed %ld", a->seed);
}

jit_sampling sampling_args_make(const struct sampling_args *a)
{
	static const char *const no_breakers[1] = { NULL };
	const struct option_list *breakers = &a->dry_breakers;
	bool none = breakers->n == 1 && strcmp(breakers->value[0], "none") == 0;
	jit_sampling p = JIT_SAMPLING(.seed = (uint64_t)a->seed, .samplers = a->samplers,
	                              .dry_breakers = none          ? no_breakers
	                                              : breakers->n ? breakers->value
	                                                            : NULL,
	                              .logit_bias = a->bias, .n_dry_breakers = none ? 0 : breakers->n,
	                              .n_logit_bias = a->logit_bias.n);

#define REAL float
#define WHOLE int
#define SAMPLING_FIELD(type, field, ...) p.field = (type)a->field;
#include "base/sampling.def"
#undef REAL
#undef WHOLE
	if (p.repeat_window < 0) /* all tokens */
		p.repeat_window = INT_MAX;
	return p;
}

void sampling_args_take(struct sampling_args *a, const jit_sampling *p)
{
#define REAL double
#define WHOLE long
#define SAMPLING_FIELD(type, field, ...) a->field = (type)p->field;
#include "base/sampling.def"
#undef REAL
#undef WHOLE
	a->samplers = p->samplers;
	a->seed = (long)p->seed;
}
