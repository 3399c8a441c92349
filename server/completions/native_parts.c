/* server/completions/native_parts.c - the parts of an answer in the form of llama.cpp's server. */
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "server/api/settings.h"
#include "server/engine/batcher.h"
#include "server/completions/native.h"
#include "server/completions/openai.h"

static const char *stop_type(enum end_reason reason)
{
	switch (reason) {
	case END_TOKEN:
	case END_GRAMMAR: return "eos";
	case END_STOP_TEXT: return "word";
	case END_LENGTH: return "limit";
	case END_CANCELLED: break;
	}
	return "none";
}

/* The prompt as the model reads it, with its special tokens. */
static json_t *prompt_of(const struct served *m, const struct task *t)
{
	size_t n = 0;
	char *text = models_text(m->model, t->ids, t->n_ids, &n);
	json_t *o = text ? json_text(text, n) : NULL;

	free(text);
	return o;
}

void native_put_end(json_t *j, const struct served *m, const struct task *t, const struct native_end *e)
{
	const char *word = e->reason == END_STOP_TEXT && e->stop >= 0 ? t->stop[e->stop] : "";
	uint64_t all = e->numbers->prompt + e->numbers->generated;
	bool full = e->reason == END_LENGTH && all >= (uint64_t)batcher_context(m->batcher);

	json_put(j, "model", json_text(m->name, strlen(m->name)));
	json_put(j, "generation_settings", task_settings(t));
	json_put(j, "prompt", prompt_of(m, t));
	json_put(j, "has_new_line", json_boolean(e->n && memchr(e->text, '\n', e->n)));
	json_put(j, "truncated", json_boolean(full));
	json_put(j, "stop_type", json_string(stop_type(e->reason)));
	json_put(j, "stopping_word", json_text(word, strlen(word)));
	json_put(j, "tokens_cached", json_integer((json_int_t)all));
	json_put(j, "timings", openai_timings(e->numbers));
}

json_t *native_whole(const struct served *m, const struct task *t, const struct native_end *e)
{
	json_t *j = json_object();

	json_put(j, "content", json_text(e->text, e->n));
	json_put(j, "stop", json_true());
	json_put(j, "tokens_predicted", json_integer((json_int_t)e->numbers->generated));
	json_put(j, "tokens_evaluated", json_integer((json_int_t)e->numbers->prompt));
	native_put_end(j, m, t, e);
	return j;
}
