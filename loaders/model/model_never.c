/* loaders/model/model_never.c - what a model's makers say is not to be chosen, at all or behind some text, which texts
 * end a generation, and what else their files ask of the choice that is not done here.
 *
 * Owns: the fields of generation_config.json beside the numbers of model_sampling.c. One that would change the text is
 * held to or told by its name; one that says what is done anyway is passed over.
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/files/gguf_index.h"
#include "loaders/model/model_hf_fields.h"
#include "loaders/model/model_never.h"
#include "loaders/tokenizer/tokenizer.h"

/* What a value must be to ask for nothing; null and no value do that in any case. */
enum idle { IDLE_NULL, IDLE_EMPTY, IDLE_ZERO, IDLE_ONE, IDLE_FALSE };
static const struct {
	const char *name;
	enum idle idle;
} fields[] = {
	{ "encoder_no_repeat_ngram_size", IDLE_ZERO },
	{ "encoder_repetition_penalty", IDLE_ONE },
	{ "sequence_bias", IDLE_EMPTY },
	{ "force_words_ids", IDLE_EMPTY },
	{ "constraints", IDLE_EMPTY },
	{ "forced_bos_token_id", IDLE_NULL },
	{ "forced_eos_token_id", IDLE_NULL },
	{ "forced_decoder_ids", IDLE_EMPTY },
	{ "min_length", IDLE_ZERO },
	{ "min_new_tokens", IDLE_ZERO },
	{ "exponential_decay_length_penalty", IDLE_EMPTY },
	{ "num_beams", IDLE_ONE },
	{ "penalty_alpha", IDLE_ZERO },
	{ "epsilon_cutoff", IDLE_ZERO },
	{ "eta_cutoff", IDLE_ZERO },
	{ "top_h", IDLE_NULL },
	{ "guidance_scale", IDLE_ONE },
	{ "token_healing", IDLE_FALSE },
	{ "watermarking_config", IDLE_NULL },
	{ "dola_layers", IDLE_NULL },
};

static bool is_idle(const json_t *v, enum idle idle)
{
	switch (idle) {
	case IDLE_NULL: return false;
	case IDLE_EMPTY:
		return (json_is_array(v) && json_array_size(v) == 0) ||
		       (json_is_object(v) && json_object_size(v) == 0) ||
		       (json_is_string(v) && json_string_length(v) == 0);
	case IDLE_ZERO: return json_is_number(v) && json_number_value(v) == 0;
	case IDLE_ONE: return json_is_number(v) && json_number_value(v) == 1;
	case IDLE_FALSE: return json_is_false(v);
	}
	return false;
}

static bool no_memory(const char *label, struct error *err)
{
	return error_set(err, ERROR_MEMORY, "%s: no memory for how tokens are chosen", label);
}

static bool tell(struct model_sampling *s, const char *name)
{
	size_t n = s->not_done ? strlen(s->not_done) : 0;
	char *more = realloc(s->not_done, n + strlen(name) + 3);

	if (!more)
		return false;
	s->not_done = more;
	strcpy(more + n, n ? ", " : "");
	strcat(more, name);
	return true;
}

/* An id that no token has does no harm. */
static bool add(int32_t **list, size_t *n, const struct model *m, int64_t id)
{
	if (id < 0 || id >= (int64_t)m->spec.vocab)
		return true;
	for (size_t i = 0; i < *n; i++)
		if ((*list)[i] == id)
			return true;
	int32_t *more = realloc(*list, (*n + 1) * sizeof *more);
	if (!more)
		return false;
	*list = more;
	more[(*n)++] = (int32_t)id;
	return true;
}

static bool read_ids(struct hf_reader *r, const char *name, int32_t **list, size_t *n)
{
	const json_t *v = hf_get(r, r->root, name);
	size_t i;
	json_t *id;

	if (!v)
		return true;
	if (!json_is_array(v) || json_array_size(v) > r->m->spec.vocab)
		return hf_wrong_kind(r, name, v, "a list of token ids");
	json_array_foreach((json_t *)(uintptr_t)v, i, id)
	{
		if (!json_is_integer(id))
			return hf_wrong_kind(r, name, id, "a list of token ids");
		if (!add(list, n, r->m, json_integer_value(id)))
			return no_memory(r->label, r->err);
	}
	return true;
}

/* A row with an id that no token has never comes. */
static bool add_word(struct model *m, const json_t *word)
{
	struct model_sampling *s = &m->sampling;
	const size_t n = json_array_size(word);

	for (size_t i = 0; i < n; i++) {
		const json_int_t id = json_integer_value(json_array_get(word, i));
		if (id < 0 || id >= (json_int_t)m->spec.vocab)
			return true;
	}
	int32_t *more = realloc(s->words, (s->n_words + 1 + n) * sizeof *more);
	if (!more)
		return false;
	s->words = more;
	s->words[s->n_words++] = (int32_t)n;
	for (size_t i = 0; i < n; i++)
		s->words[s->n_words++] = (int32_t)json_integer_value(json_array_get(word, i));
	return true;
}

static bool is_word(const json_t *word)
{
	const json_t *id;
	size_t i;

	if (!json_is_array(word) || json_array_size(word) == 0 || json_array_size(word) > INT32_MAX)
		return false;
	json_array_foreach((json_t *)(uintptr_t)word, i, id) if (!json_is_integer(id)) return false;
	return true;
}

/* A text that is one token is a token never chosen, but for one that ends a text. */
static bool read_bad_words(struct hf_reader *r)
{
	const json_t *v = hf_get(r, r->root, "bad_words_ids");
	const struct tokenizer *t = r->m->tokenizer;
	struct model_sampling *s = &r->m->sampling;
	size_t i;
	json_t *word;

	if (!v)
		return true;
	if (!json_is_array(v) || json_array_size(v) > r->m->spec.vocab)
		return hf_wrong_kind(r, "bad_words_ids", v, "a list of lists of token ids");
	json_array_foreach((json_t *)(uintptr_t)v, i, word)
	{
		if (!is_word(word))
			return hf_wrong_kind(r, "bad_words_ids", word, "a list of token ids");
		const json_int_t only = json_integer_value(json_array_get(word, 0));
		const bool one = json_array_size(word) == 1;
		if (one && t && only >= 0 && only <= INT32_MAX && tokenizer_is_eog(t, (int32_t)only))
			continue;
		if (!(one ? add(&s->never, &s->n_never, r->m, only) : add_word(r->m, word)))
			return no_memory(r->label, r->err);
	}
	return true;
}

/* A control token has no text that could be looked for, so it becomes an end itself. */
static bool add_stop(struct hf_reader *r, const json_t *text)
{
	struct model_sampling *s = &r->m->sampling;
	struct tokenizer *t = r->m->tokenizer;
	const size_t n = json_string_length(text);
	const int32_t id = t ? tokenizer_find(t, json_string_value(text), n) : -1;
	const char *spelt;
	size_t unused;

	if (id >= 0 && tokenizer_type(t, id, &spelt, &unused) == TOK_CONTROL)
		return tokenizer_add_eog(t, id, r->err);
	char **more = realloc(s->stop, (s->n_stop + 1) * sizeof *more);
	if (more)
		s->stop = more;
	if (!more || !(more[s->n_stop] = strdup(json_string_value(text))))
		return no_memory(r->label, r->err);
	s->n_stop++;
	return true;
}

static bool read_stop(struct hf_reader *r)
{
	static const char name[] = "stop_strings", wanted[] = "a text of 1 to 4096 bytes, or a list of at most 256";
	const json_t *v = hf_get(r, r->root, name);
	const size_t n = json_is_array(v) ? json_array_size(v) : 1;

	if (!v || is_idle(v, IDLE_EMPTY))
		return true;
	for (size_t i = 0; i < n; i++) {
		const json_t *text = json_is_array(v) ? json_array_get(v, i) : v;
		const size_t bytes = json_string_length(text);
		if (n > MODEL_STOP_TEXTS || !json_is_text(text) || bytes == 0 || bytes > MODEL_STOP_BYTES ||
		    memchr(json_string_value(text), 0, bytes))
			return hf_wrong_kind(r, name, text, wanted);
		if (!add_stop(r, text))
			return false;
	}
	return true;
}

bool model_read_never(struct hf_reader *r)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		const json_t *v = hf_get(r, r->root, fields[i].name);
		if (v && !is_idle(v, fields[i].idle) && !tell(&r->m->sampling, fields[i].name))
			return no_memory(r->label, r->err);
	}
	struct model_sampling *s = &r->m->sampling;
	return read_ids(r, "suppress_tokens", &s->never, &s->n_never) &&
	       read_ids(r, "begin_suppress_tokens", &s->never_first, &s->n_never_first) && read_bad_words(r) &&
	       hf_get_u32(r, r->root, "no_repeat_ngram_size", OPTIONAL, INT32_MAX, &s->no_repeat) && read_stop(r);
}

bool model_read_gguf_never(struct model *m, const struct gguf *g, struct error *err)
{
	static const char key[] = "tokenizer.ggml.suppress_tokens";
	const struct gguf_kv *kv = gguf_find(g, key);

	if (!kv)
		return true;
	if (kv->type != GGUF_ARRAY || kv->item == GGUF_STRING || kv->item == GGUF_ARRAY || kv->item == GGUF_F32 ||
	    kv->item == GGUF_F64 || kv->item == GGUF_BOOL || kv->count > m->spec.vocab)
		return error_set(err, ERROR_FORMAT, "%s: key %s is no list of token ids", g->path, key);
	for (uint64_t i = 0; i < kv->count; i++)
		if (!add(&m->sampling.never, &m->sampling.n_never, m, gguf_item_int(kv, i)))
			return no_memory(g->path, err);
	return true;
}
