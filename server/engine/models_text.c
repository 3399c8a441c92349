/* server/engine/models_text.c - tokens of a model and their texts, where they do not stand at the beginning. */
#include <stdlib.h>
#include <string.h>

#include "runtime/session/answer_marks.h"
#include "runtime/model/model.h"
#include "server/engine/models.h"

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

bool models_go_on(const jit_model *model, const char *text, bool special, int32_t **ids, size_t *n, jit_error *err)
{
	struct error e = { 0 };

	model_go_on(model, text, special, ids, n, &e);
	return model_report(err, &e) == JIT_OK;
}

int32_t models_first_token(const struct served *m)
{
	int32_t *ids = NULL, first = -1;
	size_t n = 0;

	if (jit_model_tokenize(m->model, "", 0, 1, 0, &ids, &n, NULL) == JIT_OK && n == 1)
		first = ids[0];
	free(ids);
	return first;
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

void models_find_marks(struct served *m) { answer_marks_find(&m->marks, m->model, (enum tools_form)m->tools); }

const char *models_mark(const struct served *m, int32_t id) { return m ? answer_marks_text(&m->marks, id) : ""; }
