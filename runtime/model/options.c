#include "runtime/model/options.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "runtime/device/device.h"
#include "runtime/host/pool.h"
#include "runtime/model/sized.h"
#include "runtime/speculate/speculate.h"

/* A number in a struct. Flags, of which any value will do, are in no table; nor are pointers. */
struct field {
	const char *name;
	size_t offset;
	bool is_float;
	double min, max;
	const char *expected; /* what a wrong value is told to be; NULL: the range */
};

#define INT(type, name, min, max, expected) \
	{ \
#name, offsetof(type, name), false, min, max, expected \
	}
#define FLOAT(type, name, min, max, expected) \
	{ \
#name, offsetof(type, name), true, min, max, expected \
	}
#define COUNT(fields) (sizeof(fields) / sizeof *(fields))

/* Where a struct ended with padding, a field added later would lie in it, and an older caller's size would not tell. */
#define NO_PADDING(type, last) \
	static_assert(offsetof(type, last) + sizeof((type){ 0 }.last) == sizeof(type), #type " ends with " #last)

NO_PADDING(jit_model_options, split);
static const struct field model_fields[] = {
	INT(jit_model_options, threads, 0, POOL_MAX_THREADS, NULL),
	INT(jit_model_options, tune, JIT_TUNE_QUICK, JIT_TUNE_OFF, "0, 1 or 2"),
};

NO_PADDING(jit_session_options, draft);
static const struct field session_fields[] = {
	INT(jit_session_options, context, 0, INT_MAX, NULL),
	INT(jit_session_options, threads, 0, POOL_MAX_THREADS, NULL),
	INT(jit_session_options, batch, 0, PLAN_TOKENS_MAX, NULL),
	INT(jit_session_options, kv, JIT_KV_F16, JIT_KV_Q8_0, "0, 1 or 2"),
	INT(jit_session_options, speculate, JIT_SPECULATE_OFF, SPECULATE_MAX, "-1, 0, 4, 8 or 16"),
	INT(jit_session_options, profile, JIT_PROFILE_OFF, JIT_PROFILE_EVENTS, "0, 1 or 2"),
};

/* Of the first fields: the others are the chain's (sampling/chain_options.c). That jit_sampling has no padding is seen
 * by t_abi, so that a new field need not be named here. */
static const struct field sampling_fields[] = {
	FLOAT(jit_sampling, temperature, -INFINITY, INFINITY, "a finite number"),
	INT(jit_sampling, top_k, 0, INT_MAX, NULL),
	FLOAT(jit_sampling, top_p, 0, 1, NULL),
	FLOAT(jit_sampling, min_p, 0, 1, NULL),
	FLOAT(jit_sampling, repeat_penalty, 0, INFINITY, "a finite number of at least 0"),
	INT(jit_sampling, repeat_window, 0, INT_MAX, NULL),
};

NO_PADDING(jit_card_options, reserved);
static const struct field card_fields[] = {
	INT(jit_card_options, launch, JIT_LAUNCH_TOKEN, JIT_LAUNCH_OP, "0, 1 or 2"),
	INT(jit_card_options, workgroups, 0, STREAM_MAX_WORKGROUPS, NULL),
	INT(jit_card_options, units, 0, STREAM_MAX_UNITS, NULL),
	INT(jit_card_options, reserved, 0, 0, "0"),
};

NO_PADDING(jit_batch_options, draft);
static const struct field batch_fields[] = {
	INT(jit_batch_options, threads, 0, POOL_MAX_THREADS, NULL),
	INT(jit_batch_options, tokens, 0, PLAN_TOKENS_MAX, NULL),
	INT(jit_batch_options, context, 0, INT_MAX, NULL),
	INT(jit_batch_options, kv, JIT_KV_F16, JIT_KV_Q8_0, "0, 1 or 2"),
	INT(jit_batch_options, speculate, JIT_SPECULATE_OFF, SPECULATE_MAX, "-1, 0, 4, 8 or 16"),
	INT(jit_batch_options, max_pass_ms, 0, INT_MAX, NULL),
};

NO_PADDING(jit_draft_options, reserved);
static const struct field draft_fields[] = {
	INT(jit_draft_options, kv, JIT_KV_F16, JIT_KV_Q8_0, "0, 1 or 2"),
	INT(jit_draft_options, context, 0, INT_MAX, NULL),
	INT(jit_draft_options, max, 0, ASK_MAX, NULL),
	INT(jit_draft_options, min, 0, ASK_MAX, NULL),
	FLOAT(jit_draft_options, min_p, 0, 1, NULL),
	INT(jit_draft_options, reserved, 0, 0, "0"),
};

NO_PADDING(jit_embedding_options, normalise);
static const struct field embedding_fields[] = {
	INT(jit_embedding_options, pooling, JIT_POOL_LAST, JIT_POOL_CLS, "0, 1, 2, 3 or 4"),
};

NO_PADDING(jit_objects_options, reserved);
static const struct field objects_fields[] = {
	INT(jit_objects_options, kv, JIT_KV_F16, JIT_KV_Q8_0, "0, 1 or 2"),
	INT(jit_objects_options, reserved, 0, 0, "0"),
};

static bool refuse(const struct field *f, double value, struct error *err)
{
	char range[64];

	snprintf(range, sizeof range, "in %.0f..%.0f", f->min, f->max);
	return error_set(err, ERROR_ARGUMENT, f->is_float ? "%s: %.9g is not %s" : "%s: %.0f is not %s", f->name, value,
	                 f->expected ? f->expected : range);
}

static bool check(const void *own, const struct field *fields, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct field *f = &fields[i];
		const uint8_t *at = (const uint8_t *)own + f->offset;
		float real = 0;
		int whole = 0;

		if (f->is_float)
			memcpy(&real, at, sizeof real);
		else
			memcpy(&whole, at, sizeof whole);
		double value = f->is_float ? (double)real : whole;
		if (!isfinite(value) || value < f->min || value > f->max)
			return refuse(f, value, err);
	}
	return true;
}

bool options_model(jit_model_options *own, const jit_model_options *from, struct error *err)
{
	return SIZED_READ(jit_model_options, own, from, err) && check(own, model_fields, COUNT(model_fields), err);
}

bool options_sampling(jit_sampling *own, const jit_sampling *from, struct error *err)
{
	return SIZED_READ(jit_sampling, own, from, err) && check(own, sampling_fields, COUNT(sampling_fields), err);
}

bool options_card(jit_card_options *own, const jit_card_options *from, struct error *err)
{
	return SIZED_READ(jit_card_options, own, from, err) && check(own, card_fields, COUNT(card_fields), err);
}

bool options_embedding(jit_embedding_options *own, const jit_embedding_options *from, struct error *err)
{
	return SIZED_READ(jit_embedding_options, own, from, err) &&
	       check(own, embedding_fields, COUNT(embedding_fields), err);
}

bool options_draft(jit_draft_options *own, const jit_draft_options *from, struct error *err)
{
	if (!SIZED_READ(jit_draft_options, own, from, err) || !check(own, draft_fields, COUNT(draft_fields), err))
		return false;
	if (!own->model)
		return error_set(err, ERROR_ARGUMENT, "draft: its model is NULL, expected an open model");
	return !own->max || own->min <= own->max ||
	       error_set(err, ERROR_ARGUMENT, "min: %d is not in 0..%d, which `max` is", own->min, own->max);
}

bool options_objects(jit_objects_options *own, const jit_objects_options *from, struct error *err)
{
	return SIZED_READ(jit_objects_options, own, from, err) &&
	       check(own, objects_fields, COUNT(objects_fields), err);
}

static bool check_speculate(int tokens, struct error *err)
{
	return tokens == JIT_SPECULATE_OFF || tokens == JIT_SPECULATE_AUTO || speculate_width(tokens) ||
	       error_set(err, ERROR_ARGUMENT, "speculate: %d is not -1, 0, 4, 8 or 16", tokens);
}

bool options_session(jit_session_options *own, const jit_session_options *from, struct error *err)
{
	if (!SIZED_READ(jit_session_options, own, from, err) || !check(own, session_fields, COUNT(session_fields), err))
		return false;
	return check_speculate(own->speculate, err);
}

bool options_batch(jit_batch_options *own, const jit_batch_options *from, struct error *err)
{
	return SIZED_READ(jit_batch_options, own, from, err) && check(own, batch_fields, COUNT(batch_fields), err) &&
	       check_speculate(own->speculate, err);
}

NO_PADDING(jit_compute_options, trace);
static const struct field compute_fields[] = {
	INT(jit_compute_options, threads, 0, POOL_MAX_THREADS, NULL),
};

bool options_compute(jit_compute_options *own, const jit_compute_options *from, struct error *err)
{
	return SIZED_READ(jit_compute_options, own, from, err) &&
	       check(own, compute_fields, COUNT(compute_fields), err);
}

NO_PADDING(jit_kernel_options, n_messages);
static const struct field kernel_fields[] = {
	INT(jit_kernel_options, reserved, 0, 0, "0"),
};

bool options_kernel(jit_kernel_options *own, const jit_kernel_options *from, struct error *err)
{
	return SIZED_READ(jit_kernel_options, own, from, err) && check(own, kernel_fields, COUNT(kernel_fields), err);
}

enum dtype options_kv_type(int kv)
{
	static const enum dtype types[] = {
		[JIT_KV_F16] = DTYPE_F16, [JIT_KV_F32] = DTYPE_F32, [JIT_KV_Q8_0] = DTYPE_Q8_0
	};

	return types[kv];
}
