/* runtime/model/model_text.c - text to token ids and back, by a model's own tokenizer. */
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_texts.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"

bool model_needs_tokenizer(const jit_model *m, struct error *e)
{
	const struct error *why = &m->file.tokenizer_error;

	if (m->file.tokenizer)
		return true;
	if (why->code)
		return error_set(e, why->code, "%s", why->text);
	return error_set(
		e, ERROR_UNSUPPORTED,
		"this model has no tokenizer (of a directory, tokenizer.json), so text cannot be used with it; token "
		"ids can (--prompt-ids)");
}

int jit_model_tokenize(const jit_model *m, const char *text, size_t n, int add_special, int parse_special,
                       int32_t **ids, size_t *n_ids, jit_error *err)
{
	struct error e = { 0 };
	unsigned flags = (add_special ? TOKENIZE_BOS_EOS : 0) | (parse_special ? TOKENIZE_SPECIAL : 0);

	if (NEEDED(m, &e) && NEEDED_LIST(text, n, &e) && NEEDED(ids, &e) && NEEDED(n_ids, &e) &&
	    model_needs_tokenizer(m, &e))
		tokenizer_encode(m->file.tokenizer, text, n, flags, ids, n_ids, &e);
	return model_report(err, &e);
}

int jit_model_tokenize_pair(const jit_model *m, const char *const *texts, const size_t *n_texts, int parse_special,
                            int32_t **ids, int32_t **types, size_t *n, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(m, &e) && NEEDED(texts, &e) && NEEDED(n_texts, &e) && NEEDED(ids, &e) && NEEDED(types, &e) &&
	    NEEDED(n, &e) && model_needs_tokenizer(m, &e))
		tokenizer_encode_pair(m->file.tokenizer, texts, n_texts, parse_special ? TOKENIZE_SPECIAL : 0, ids,
		                      types, n, &e);
	return model_report(err, &e);
}

bool model_check_ids(const jit_model *m, const int32_t *ids, size_t n, struct error *e)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] < 0 || (uint32_t)ids[i] >= m->file.spec.vocab)
			return error_set(e, ERROR_ARGUMENT, "token %zu is %d, which is not in 0..%u", i, ids[i],
			                 m->file.spec.vocab - 1);
	return true;
}

char *jit_model_detokenize(const jit_model *m, const int32_t *ids, size_t n, size_t *n_text, jit_error *err)
{
	struct error e = { 0 };
	char *text = NULL;
	size_t bytes = 0;

	if (NEEDED(m, &e) && NEEDED_LIST(ids, n, &e) && model_needs_tokenizer(m, &e) && model_check_ids(m, ids, n, &e))
		text = tokenizer_decode(m->file.tokenizer, ids, n, false, &bytes, &e);
	if (n_text)
		*n_text = text ? bytes : 0;
	model_report(err, &e);
	return text;
}

int jit_model_is_end(const jit_model *m, int32_t id)
{
	return m && m->file.tokenizer && tokenizer_is_eog(m->file.tokenizer, id);
}

/* plain NULL: flags say. */
static bool encode(const struct tokenizer *t, const char *text, size_t n, const uint8_t *plain, unsigned flags,
                   int32_t **ids, size_t *n_ids, struct error *err)
{
	return plain ? tokenizer_encode_marked(t, text, n, plain, flags | TOKENIZE_SPECIAL, ids, n_ids, err)
	             : tokenizer_encode(t, text, n, flags, ids, n_ids, err);
}

/* A line end stands before the text, and its tokens are taken away again. */
static bool go_on_behind(const struct tokenizer *t, const char *text, size_t length, const uint8_t *plain,
                         unsigned flags, int32_t **ids, size_t *n)
{
	struct error e = { 0 };
	char *whole = malloc(length + 1);
	uint8_t *marks = plain ? calloc(length + 1, 1) : NULL;
	int32_t *first = NULL;
	size_t n_first = 0;
	bool ok = false;

	*ids = NULL;
	if (whole && (marks || !plain)) {
		whole[0] = '\n';
		memcpy(whole + 1, text, length);
		if (plain)
			memcpy(marks + 1, plain, length);
		ok = tokenizer_encode(t, "\n", 1, 0, &first, &n_first, &e) &&
		     encode(t, whole, length + 1, marks, flags, ids, n, &e) && *n >= n_first &&
		     memcmp(*ids, first, n_first * sizeof *first) == 0;
	}
	if (ok) {
		*n -= n_first;
		memmove(*ids, *ids + n_first, *n * sizeof **ids);
	} else {
		free(*ids);
		*ids = NULL;
	}
	free(first);
	free(marks);
	free(whole);
	return ok;
}

bool model_go_on_marked(const jit_model *m, const char *text, size_t length, const uint8_t *plain, bool special,
                        int32_t **ids, size_t *n, struct error *err)
{
	const unsigned flags = special ? TOKENIZE_SPECIAL : 0;

	*ids = NULL;
	*n = 0;
	return model_needs_tokenizer(m, err) && (go_on_behind(m->file.tokenizer, text, length, plain, flags, ids, n) ||
	                                         encode(m->file.tokenizer, text, length, plain, flags, ids, n, err));
}

bool model_go_on(const jit_model *m, const char *text, bool special, int32_t **ids, size_t *n, struct error *err)
{
	return model_go_on_marked(m, text, strlen(text), NULL, special, ids, n, err);
}
