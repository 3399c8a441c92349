/* runtime/sampling/chain_options.c - what options of a chain may be, and the text of an order. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/sampling_fields.h"
#include "runtime/sampling/chain.h"

/* ---- the order */

const char sampler_order_usual[] = SAMPLER_NAMES;

static const char *const names[SAMPLERS] = {
#define SAMPLER(id, name, ...) name,
#include "base/sampling.def"
};

static int find_sampler(const char *name, size_t n)
{
	for (int i = 0; i < SAMPLERS; i++)
		if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
			return i;
	return -1;
}

static bool has_sampler(const struct sampler_order *o, int sampler)
{
	for (int i = 0; i < o->n; i++)
		if ((int)o->sampler[i] == sampler)
			return true;
	return false;
}

bool sampler_order_parse(struct sampler_order *o, const char *text, struct error *err)
{
	char quoted[80];

	o->n = 0;
	for (const char *at = text;; at++) {
		size_t n = strcspn(at, ";");
		int sampler = find_sampler(at, n);
		if (n == 0)
			return error_set(err, ERROR_ARGUMENT,
			                 "samplers: name %d is empty; names with ; between are expected, such as %s",
			                 o->n + 1, sampler_order_usual);
		if (sampler < 0)
			return error_set(err, ERROR_ARGUMENT, "samplers: \"%s\" is none of %s",
			                 error_quote(quoted, sizeof quoted, at, n), sampler_order_usual);
		if (has_sampler(o, sampler))
			return error_set(err, ERROR_ARGUMENT, "samplers: %s stands there twice", names[sampler]);
		o->sampler[o->n++] = (enum sampler)sampler;
		at += n;
		if (!*at)
			return true;
	}
}

/* ---- the numbers */

const struct chain_options chain_usual = {
#define LIBRARY(low, high, usual, works) usual
#define AS_REAL(number) (float)(number)
#define AS_WHOLE(number) (number)
#define SAMPLING_FIELD(type, field, library, ...) .field = AS_##type(library),
#include "base/sampling.def"
#undef LIBRARY
#undef AS_REAL
#undef AS_WHOLE
};

static const size_t offset[SAMPLING_FIELDS] = {
#define SAMPLING_FIELD(type, field, ...) offsetof(struct chain_options, field),
#include "base/sampling.def"
};

/* Ends of a range that only keep infinity and NaN out. */
static bool refuse_real(const char *name, float value, float low, float high, struct error *err)
{
	if (low == -FLT_MAX && high == FLT_MAX)
		return error_set(err, ERROR_ARGUMENT, "%s: %.9g is not a finite number", name, (double)value);
	if (low == -FLT_MAX)
		return error_set(err, ERROR_ARGUMENT, "%s: %.9g is not a finite number of at most %.9g", name,
		                 (double)value, (double)high);
	if (high == FLT_MAX)
		return error_set(err, ERROR_ARGUMENT, "%s: %.9g is not a finite number %s %.9g", name, (double)value,
		                 low == FLT_MIN ? "above" : "of at least", low == FLT_MIN ? 0 : (double)low);
	return error_set(err, ERROR_ARGUMENT, "%s: %.9g is not in %.9g..%.9g", name, (double)value, (double)low,
	                 (double)high);
}

static bool refuse_whole(const char *name, int32_t value, int32_t low, int32_t high, struct error *err)
{
	return error_set(err, ERROR_ARGUMENT, "%s: %d is not in %d..%d", name, value, low, high);
}

static bool check_numbers(const struct chain_options *o, struct error *err)
{
	for (size_t i = 0; i < SAMPLING_FIELDS; i++) {
		const struct sampling_row *row = &sampling_rows[i];
		const char *at = (const char *)o + offset[i];
		const float low = (float)row->low, high = (float)row->high;
		float real;
		int32_t whole;
		memcpy(&real, at, sizeof real);
		memcpy(&whole, at, sizeof whole);
		if (!row->whole && !(real >= low && real <= high))
			return refuse_real(row->field, real, low, high, err);
		if (row->whole && (whole < row->low || whole > row->high))
			return refuse_whole(row->field, whole, (int32_t)row->low, (int32_t)row->high, err);
	}
	if (o->n_dry_breakers < 0 || o->n_dry_breakers > DRY_BREAKERS)
		return refuse_whole("n_dry_breakers", o->n_dry_breakers, 0, DRY_BREAKERS, err);
	return o->n_logit_bias >= 0 || refuse_whole("n_logit_bias", o->n_logit_bias, 0, INT32_MAX, err);
}

/* ---- what they point to */

static bool check_breakers(const struct chain_options *o, struct error *err)
{
	if (o->n_dry_breakers > 0 && !o->dry_breakers)
		return error_set(err, ERROR_ARGUMENT, "dry_breakers is NULL, and n_dry_breakers %d", o->n_dry_breakers);
	for (int32_t i = 0; i < o->n_dry_breakers; i++) {
		if (!o->dry_breakers[i])
			return error_set(err, ERROR_ARGUMENT, "dry_breakers: text %d is NULL", i);
		size_t n = strlen(o->dry_breakers[i]);
		if (n == 0 || n > DRY_BREAKER_BYTES)
			return error_set(err, ERROR_ARGUMENT, "dry_breakers: text %d has %zu bytes, not 1..%d", i, n,
			                 DRY_BREAKER_BYTES);
	}
	return true;
}

static bool check_biases(const struct chain_options *o, int32_t vocab, struct error *err)
{
	if (o->n_logit_bias > 0 && !o->logit_bias)
		return error_set(err, ERROR_ARGUMENT, "logit_bias is NULL, and n_logit_bias %d", o->n_logit_bias);
	for (int32_t i = 0; i < o->n_logit_bias; i++) {
		jit_logit_bias b = o->logit_bias[i];
		if (b.id < 0 || b.id >= vocab)
			return error_set(err, ERROR_ARGUMENT,
			                 "logit_bias: entry %d is for token %d, which is not in 0..%d", i, b.id,
			                 vocab - 1);
		if (!isfinite(b.bias) && b.bias != -INFINITY)
			return error_set(err, ERROR_ARGUMENT,
			                 "logit_bias: entry %d, for token %d, is %g, neither a finite number nor -inf",
			                 i, b.id, (double)b.bias);
	}
	return true;
}

bool chain_options_check(const struct chain_options *o, int32_t vocab, struct error *err)
{
	if (!check_numbers(o, err))
		return false;
	if (o->mirostat && o->adaptive_target >= 0)
		return error_set(
			err, ERROR_ARGUMENT,
			"adaptive_target: %g cannot be aimed at with mirostat: %d, which draws tokens its own way",
			(double)o->adaptive_target, o->mirostat);
	if (o->n_dry_breakers && !o->dry_breakers)
		return error_set(err, ERROR_ARGUMENT, "n_dry_breakers: there are %d, but dry_breakers is NULL",
		                 o->n_dry_breakers);
	if (o->n_logit_bias && !o->logit_bias)
		return error_set(err, ERROR_ARGUMENT, "n_logit_bias: there are %d, but logit_bias is NULL",
		                 o->n_logit_bias);
	return check_breakers(o, err) && check_biases(o, vocab, err);
}
