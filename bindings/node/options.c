/* options.c - options of JavaScript to those of the library: fields by name, and what is not set by name. */
#include <stdlib.h>

#include "addon.h"

/* {fields: [name, value, ...], breakers: [text, ...] or undefined, biasIds: Int32Array, bias: Float32Array} */
bool take_sampling(napi_env env, napi_value value, struct sampling_given *out)
{
	napi_value breakers = named(env, value, "breakers"), list = named(env, value, "bias");
	size_t n = 0;
	napi_typedarray_type type = napi_int8_array;
	void *data = NULL;

	*out = (struct sampling_given){ .has_breakers = !is_nothing(env, breakers) };
	if (!take_texts(env, named(env, value, "fields"), &out->fields) ||
	    (out->has_breakers && !take_texts(env, breakers, &out->breakers)))
		return false;
	int32_t *ids = take_ids(env, named(env, value, "biasIds"), &n);
	if (ids)
		napi_get_typedarray_info(env, list, &type, &out->n_bias, &data, NULL, NULL);
	if (ids && (type != napi_float32_array || out->n_bias != n))
		throw_argument(env, "a Float32Array with a number for each token was expected");
	else if (ids && !(out->bias = calloc(n + 1, sizeof *out->bias)))
		throw_argument(env, "not enough memory for logit_bias");
	for (size_t i = 0; out->bias && i < n; i++)
		out->bias[i] = (jit_logit_bias){ .id = ids[i], .bias = ((const float *)data)[i] };
	free(ids);
	return out->bias != NULL;
}

/* {fields: [name, value, ...], card: [name, value, ...], sampling} */
bool take_session(napi_env env, napi_value value, struct session_given *out)
{
	return take_texts(env, named(env, value, "fields"), &out->fields) &&
	       take_texts(env, named(env, value, "card"), &out->card) &&
	       take_sampling(env, named(env, value, "sampling"), &out->sampling);
}

void free_sampling(struct sampling_given *s)
{
	free_texts(&s->fields);
	free_texts(&s->breakers);
	free(s->bias);
	*s = (struct sampling_given){ 0 };
}

void free_session(struct session_given *s)
{
	free_texts(&s->fields);
	free_texts(&s->card);
	free_sampling(&s->sampling);
}

/* The sampling of the model's makers, and what is given of it. m NULL: only what is given. */
bool sampling_of(const jit_model *m, const struct sampling_given *given, jit_sampling *out, jit_error *err)
{
	const struct texts *t = &given->fields;

	*out = JIT_SAMPLING();
	if (m && jit_model_sampling_defaults(m, out, err))
		return false;
	for (size_t i = 0; i + 1 < t->n; i += 2)
		if (jit_sampling_set(out, t->list[i], t->list[i + 1], err))
			return false;
	if (given->has_breakers) {
		out->dry_breakers = (const char *const *)given->breakers.list;
		out->n_dry_breakers = (int)given->breakers.n;
	}
	if (given->n_bias) {
		out->logit_bias = given->bias;
		out->n_logit_bias = (int)given->n_bias;
	}
	return true;
}

bool session_options(const jit_model *m, const struct session_given *given, struct session_options *out, jit_error *err)
{
	const struct texts *t = &given->fields, *card = &given->card;

	out->o = JIT_SESSION_OPTIONS();
	out->card = JIT_CARD_OPTIONS();
	for (size_t i = 0; i + 1 < t->n; i += 2)
		if (jit_session_options_set(&out->o, t->list[i], t->list[i + 1], err))
			return false;
	for (size_t i = 0; i + 1 < card->n; i += 2)
		if (jit_card_options_set(&out->card, card->list[i], card->list[i + 1], err))
			return false;
	out->o.sampling = &out->sampling;
	out->o.card = &out->card;
	return sampling_of(m, &given->sampling, &out->sampling, err);
}
