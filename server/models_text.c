/* server/models_text.c - tokens of a model and their texts, where they do not stand at the beginning. */
#include <stdlib.h>
#include <string.h>

#include "runtime/model.h"
#include "server/models.h"

const char *models_bytes(const jit_model *model, int32_t id, bool special, char scratch[256], size_t *n)
{
	*n = 0;
	return model->file.tokenizer ? tokenizer_piece(model->file.tokenizer, id, false, special, scratch, n) : "";
}

char *models_text(const jit_model *model, const int32_t *ids, size_t n_ids, size_t *n)
{
	struct error e = { 0 };

	*n = 0;
	if (!model->file.tokenizer)
		return strdup("");
	return tokenizer_decode(model->file.tokenizer, ids, n_ids, true, n, &e);
}

/* A line end stands before the text, and its tokens are taken away again. */
static bool tokenize_behind(const jit_model *model, const char *text, size_t length, bool special, int32_t **ids,
                            size_t *n)
{
	char *whole = malloc(length + 2);
	int32_t *first = NULL;
	size_t n_first = 0;
	bool ok = false;

	*ids = NULL;
	if (whole) {
		whole[0] = '\n';
		memcpy(whole + 1, text, length + 1);
		ok = jit_model_tokenize(model, "\n", 1, 0, 0, &first, &n_first, NULL) == JIT_OK &&
		     jit_model_tokenize(model, whole, length + 1, 0, special, ids, n, NULL) == JIT_OK &&
		     *n >= n_first && memcmp(*ids, first, n_first * sizeof *first) == 0;
	}
	if (ok) {
		*n -= n_first;
		memmove(*ids, *ids + n_first, *n * sizeof **ids);
	} else {
		free(*ids);
		*ids = NULL;
	}
	free(first);
	free(whole);
	return ok;
}

bool models_go_on(const jit_model *model, const char *text, bool special, int32_t **ids, size_t *n, jit_error *err)
{
	size_t length = strlen(text);

	return tokenize_behind(model, text, length, special, ids, n) ||
	       jit_model_tokenize(model, text, length, 0, special, ids, n, err) == JIT_OK;
}

bool models_encode(const jit_model *model, const char *text, size_t n, const uint8_t *plain, int32_t **ids,
                   size_t *n_ids, jit_error *err)
{
	struct error e = { 0 };

	if (!model->file.tokenizer)
		error_set(&e, ERROR_UNSUPPORTED, "the model has no tokenizer");
	else
		tokenizer_encode_marked(model->file.tokenizer, text, n, plain, TOKENIZE_SPECIAL, ids, n_ids, &e);
	return model_report(err, &e) == JIT_OK;
}

const char *models_template(const jit_model *model, const char *name)
{
	const struct model_chat_template *t = model_find_chat_template(&model->file, name);

	return t ? t->text : NULL;
}

void models_find_marks(struct served *m)
{
	const struct tools_row *row = &tools_rows[m->tools];

	m->n_marks = 0;
	for (size_t i = 0; i < TOOLS_MARKS + TOOLS_FRAMES + TOOLS_TOKENS; i++) {
		const char *mark = i < TOOLS_MARKS                  ? row->mark[i]
		                   : i < TOOLS_MARKS + TOOLS_FRAMES ? row->frame[i - TOOLS_MARKS]
		                                                    : row->token[i - TOOLS_MARKS - TOOLS_FRAMES];
		int32_t *ids = NULL;
		size_t n = 0, n_text = 0;
		if (!mark || jit_model_tokenize(m->model, mark, strlen(mark), 0, 1, &ids, &n, NULL) != JIT_OK)
			continue;
		char *text = n == 1 ? jit_model_detokenize(m->model, ids, 1, &n_text, NULL) : NULL;
		if (text && n_text == 0) {
			m->mark[m->n_marks].id = ids[0];
			m->mark[m->n_marks++].text = mark;
		}
		free(text);
		free(ids);
	}
}

const char *models_mark(const struct served *m, int32_t id)
{
	for (unsigned i = 0; m && i < m->n_marks; i++)
		if (m->mark[i].id == id)
			return m->mark[i].text;
	return "";
}
