/* numbers.c - structs of results to objects: each field by its name, as JavaScript spells it. */
#include <ctype.h>
#include <stddef.h>

#include "addon.h"

struct number {
	const char *name; /* as in C */
	enum { WHOLE, UNSIGNED, FLOAT, DOUBLE, FLAG, TEXT } kind;
	size_t offset;
};
#define KIND_OF(field) \
	_Generic((field), int : WHOLE, uint64_t : UNSIGNED, float : FLOAT, double : DOUBLE, const char * : TEXT)
#define FIELD(type, field) \
	{ \
#field, KIND_OF(((type *)0)->field), offsetof(type, field) \
	}
#define FLAG_OF(type, field) \
	{ \
#field, FLAG, offsetof(type, field) \
	}
#define COUNT(list) (sizeof(list) / sizeof *(list))

static napi_value value_of(napi_env env, const struct number *n, const char *at)
{
	switch (n->kind) {
	case WHOLE: return from_int(env, *(const int *)at);
	case UNSIGNED: return from_uint(env, *(const uint64_t *)at);
	case FLOAT: return from_double(env, *(const float *)at);
	case DOUBLE: return from_double(env, *(const double *)at);
	case FLAG: return from_flag(env, *(const int *)at);
	case TEXT: return from_text(env, *(const char *const *)at, NAPI_AUTO_LENGTH);
	}
	return NULL;
}

/* "file_bytes" becomes fileBytes. */
static napi_value object_of(napi_env env, const void *from, const struct number *list, size_t n)
{
	napi_value out = NULL;
	napi_create_object(env, &out);
	for (size_t i = 0; i < n; i++) {
		char name[64];
		size_t length = 0;
		for (const char *c = list[i].name; *c && length + 1 < sizeof name; c++)
			name[length++] = *c == '_' ? (char)toupper((unsigned char)*++c) : *c;
		name[length] = 0;
		set(env, out, name, value_of(env, &list[i], (const char *)from + list[i].offset));
	}
	return out;
}

napi_value info_of(napi_env env, const jit_model_info *i)
{
	static const struct number fields[] = {
		FIELD(jit_model_info, description),
		FIELD(jit_model_info, vocab),
		FIELD(jit_model_info, layers),
		FIELD(jit_model_info, hidden),
		FIELD(jit_model_info, context_trained),
		FLAG_OF(jit_model_info, has_tokenizer),
		FIELD(jit_model_info, file_bytes),
		FIELD(jit_model_info, weight_bytes),
		FIELD(jit_model_info, token_bytes),
		FIELD(jit_model_info, load_seconds),
		FLAG_OF(jit_model_info, has_chat_template),
		FLAG_OF(jit_model_info, has_sampling),
		FIELD(jit_model_info, weight_cache_trouble),
		FIELD(jit_model_info, pooling),
		FIELD(jit_model_info, bounded),
		FIELD(jit_model_info, bounded_gain),
		FLAG_OF(jit_model_info, encodes),
		FIELD(jit_model_info, embedding)
	};
	return object_of(env, i, fields, COUNT(fields));
}

napi_value sampling_numbers(napi_env env, const jit_sampling *p)
{
	static const struct number fields[] = {
		FIELD(jit_sampling, temperature),
		FIELD(jit_sampling, top_k),
		FIELD(jit_sampling, top_p),
		FIELD(jit_sampling, min_p),
		FIELD(jit_sampling, repeat_penalty),
		FIELD(jit_sampling, repeat_window),
		FIELD(jit_sampling, seed),
		FIELD(jit_sampling, samplers),
		FIELD(jit_sampling, typical_p),
		FIELD(jit_sampling, top_n_sigma),
		FIELD(jit_sampling, frequency_penalty),
		FIELD(jit_sampling, presence_penalty),
		FIELD(jit_sampling, dynatemp_range),
		FIELD(jit_sampling, dynatemp_exponent),
		FIELD(jit_sampling, xtc_probability),
		FIELD(jit_sampling, xtc_threshold),
		FIELD(jit_sampling, dry_multiplier),
		FIELD(jit_sampling, dry_base),
		FIELD(jit_sampling, dry_allowed_length),
		FIELD(jit_sampling, dry_window),
		FIELD(jit_sampling, mirostat),
		FIELD(jit_sampling, min_keep),
		FIELD(jit_sampling, mirostat_tau),
		FIELD(jit_sampling, mirostat_eta),
		FIELD(jit_sampling, adaptive_target),
		FIELD(jit_sampling, adaptive_decay)
	};
	napi_value out = object_of(env, p, fields, COUNT(fields)), bias = NULL, breakers = NULL;
	napi_create_array(env, &bias);
	for (int i = 0; i < p->n_logit_bias; i++) {
		napi_value pair;
		napi_create_array(env, &pair);
		napi_set_element(env, pair, 0, from_int(env, p->logit_bias[i].id));
		napi_set_element(env, pair, 1, from_double(env, p->logit_bias[i].bias));
		napi_set_element(env, bias, (uint32_t)i, pair);
	}
	set(env, out, "logitBias", bias);
	if (p->dry_breakers)
		napi_create_array(env, &breakers);
	for (int i = 0; breakers && i < p->n_dry_breakers; i++)
		napi_set_element(env, breakers, (uint32_t)i, from_text(env, p->dry_breakers[i], NAPI_AUTO_LENGTH));
	set(env, out, "dryBreakers", breakers ? breakers : from_text(env, NULL, 0));
	return out;
}

napi_value session_stats(napi_env env, const jit_session_stats *s)
{
	static const struct number fields[] = {
		FIELD(jit_session_stats, prompt_tokens),
		FIELD(jit_session_stats, decode_tokens),
		FIELD(jit_session_stats, prompt_seconds),
		FIELD(jit_session_stats, decode_seconds),
		FIELD(jit_session_stats, kernels),
		FIELD(jit_session_stats, kernels_generated),
		FIELD(jit_session_stats, kernels_from_cache),
		FIELD(jit_session_stats, kernels_from_pack),
		FIELD(jit_session_stats, cache_damaged),
		FIELD(jit_session_stats, cache_store_failed),
		FIELD(jit_session_stats, cache_evicted),
		FIELD(jit_session_stats, generate_seconds),
		FIELD(jit_session_stats, code_bytes),
		FIELD(jit_session_stats, kv_bytes),
		FIELD(jit_session_stats, threads),
		FIELD(jit_session_stats, context),
		FIELD(jit_session_stats, decode_passes),
		FIELD(jit_session_stats, drafted),
		FIELD(jit_session_stats, accepted),
		FIELD(jit_session_stats, kernels_background),
		FIELD(jit_session_stats, kernel_stalls),
		FIELD(jit_session_stats, cache_unreadable)
	};
	napi_value out = object_of(env, s, fields, COUNT(fields)), list = NULL;
	napi_create_array(env, &list);
	for (size_t i = 0; i < COUNT(s->speculation); i++) {
		napi_value one;
		napi_create_object(env, &one);
		set(env, one, "tokens", from_int(env, s->speculation[i].tokens));
		set(env, one, "passes", from_uint(env, s->speculation[i].passes));
		set(env, one, "drafted", from_uint(env, s->speculation[i].drafted));
		set(env, one, "accepted", from_uint(env, s->speculation[i].accepted));
		napi_set_element(env, list, (uint32_t)i, one);
	}
	set(env, out, "speculation", list);
	return out;
}

napi_value card_stats(napi_env env, const jit_card_stats *s)
{
	static const struct number fields[] = {
		FIELD(jit_card_stats, launches),      FIELD(jit_card_stats, barriers),
		FIELD(jit_card_stats, instructions),  FIELD(jit_card_stats, load_bytes),
		FIELD(jit_card_stats, load128_bytes), FIELD(jit_card_stats, store_bytes),
		FIELD(jit_card_stats, scalar_bytes),  FIELD(jit_card_stats, weight_bytes),
		FIELD(jit_card_stats, cache_bytes),   FIELD(jit_card_stats, commands)
	};
	return object_of(env, s, fields, COUNT(fields));
}

napi_value batch_stats(napi_env env, const jit_batch_stats *s)
{
	static const struct number fields[] = {
		FIELD(jit_batch_stats, passes),        FIELD(jit_batch_stats, tokens),
		FIELD(jit_batch_stats, prompt_tokens), FIELD(jit_batch_stats, decode_tokens),
		FIELD(jit_batch_stats, reused_tokens), FIELD(jit_batch_stats, set_back),
		FIELD(jit_batch_stats, pages),         FIELD(jit_batch_stats, pages_used),
		FIELD(jit_batch_stats, pages_kept),    FIELD(jit_batch_stats, kv_bytes),
		FIELD(jit_batch_stats, seconds),       FIELD(jit_batch_stats, pages_shared),
		FIELD(jit_batch_stats, context)
	};
	napi_value out = object_of(env, s, fields, COUNT(fields)), list = NULL;
	napi_create_array(env, &list);
	for (size_t i = 0; i < COUNT(s->width); i++)
		napi_set_element(env, list, (uint32_t)i, from_uint(env, s->width[i]));
	set(env, out, "width", list);
	return out;
}

napi_value needs_of(napi_env env, const jit_needs *n)
{
	static const struct number fields[] = { FIELD(jit_needs, weight_bytes), FIELD(jit_needs, token_bytes),
		                                FIELD(jit_needs, kv_bytes),     FIELD(jit_needs, pass_bytes),
		                                FIELD(jit_needs, context),      FIELD(jit_needs, context_trained) };
	napi_value out = object_of(env, n, fields, COUNT(fields));
	set(env, out, "availableBytes",
	    n->available_bytes == UINT64_MAX ? from_text(env, NULL, 0) : from_uint(env, n->available_bytes));
	return out;
}

napi_value objects_of(napi_env env, const jit_objects *o)
{
	static const struct number fields[] = { FIELD(jit_objects, kernels), FIELD(jit_objects, programs),
		                                FIELD(jit_objects, bytes) };
	return object_of(env, o, fields, COUNT(fields));
}

/* What the files in JavaScript need of the headers. */
void export_constants(napi_env env, napi_value exports)
{
#define CONSTANT(name) \
	{ \
#name, name \
	}
	static const struct {
		const char *name;
		int value;
	} all[] = { CONSTANT(JIT_POOL_LAST),           CONSTANT(JIT_POOL_MEAN),          CONSTANT(JIT_POOL_NONE),
		    CONSTANT(JIT_POOL_RANK),           CONSTANT(JIT_POOL_CLS),           CONSTANT(JIT_BOUNDED_NONE),
		    CONSTANT(JIT_BOUNDED_PROMPTS),     CONSTANT(JIT_BOUNDED_ALL),        CONSTANT(JIT_GRAMMAR_NONE),
		    CONSTANT(JIT_GRAMMAR_JSON_SCHEMA), CONSTANT(JIT_GRAMMAR_REGEX),      CONSTANT(JIT_GRAMMAR_GBNF),
		    CONSTANT(JIT_GRAMMAR_LARK),        CONSTANT(JIT_GRAMMAR_ADDITIONAL), CONSTANT(JIT_TOKEN_NORMAL),
		    CONSTANT(JIT_TOKEN_UNKNOWN),       CONSTANT(JIT_TOKEN_CONTROL),      CONSTANT(JIT_TOKEN_USER),
		    CONSTANT(JIT_TOKEN_UNUSED),        CONSTANT(JIT_TOKEN_BYTE),         CONSTANT(JIT_LOGPROBS_MOST) };
	napi_value out = NULL;
	napi_create_object(env, &out);
	for (size_t i = 0; i < COUNT(all); i++)
		set(env, out, all[i].name, from_int(env, all[i].value));
	set(env, exports, "constants", out);
}
