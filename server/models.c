/* server/models.c - the models that a server has. */
#include "server/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/json_write.h"

void served_name(struct served *m, const char *path, const char *alias)
{
	static const char *const ends[] = { ".gguf", ".jkm", ".safetensors" };
	const char *from = alias ? alias : path;
	size_t n = strlen(from);

	m->path = path;
	while (!alias && n > 1 && from[n - 1] == '/')
		n--;
	if (!alias) {
		const char *slash = memrchr(from, '/', n - 1);
		n -= slash ? (size_t)(slash + 1 - from) : 0;
		from = slash ? slash + 1 : from;
	}
	for (size_t i = 0; !alias && i < sizeof ends / sizeof *ends; i++) {
		size_t e = strlen(ends[i]);
		if (n > e && strncasecmp(from + n - e, ends[i], e) == 0)
			n -= e;
	}
	snprintf(m->name, sizeof m->name, "%.*s", (int)(n < sizeof m->name ? n : sizeof m->name - 1), from);
}

char *models_piece(const jit_model *model, int32_t id, size_t *n)
{
	const int32_t twice[] = { id, id };
	size_t one = 0, both = 0;
	char *first = jit_model_detokenize(model, &id, 1, &one, NULL);
	char *text = jit_model_detokenize(model, twice, 2, &both, NULL);

	if (first && text && both >= one) {
		memmove(text, text + one, both - one);
		text[both - one] = 0;
		*n = both - one;
		free(first);
		return text;
	}
	free(first);
	free(text);
	return NULL;
}

struct served *models_find(struct models *all, const char *name, struct refusal *r)
{
	for (size_t i = 0; name && i < all->n; i++)
		if (strcmp(all->list[i].name, name) == 0)
			return &all->list[i];
	if (!name || all->n == 1)
		return &all->list[0];
	refuse(r, 404, "model", "There is no model \"%.200s\" here; /v1/models has those that are.", name);
	return NULL;
}

json_t *model_json(const struct served *m)
{
	json_t *o = json_object(), *meta = json_object();

	json_put(o, "id", json_text(m->name, strlen(m->name)));
	json_put(o, "object", json_string("model"));
	json_put(o, "created", json_integer(m->created));
	json_put(o, "owned_by", json_string("jitrun"));
	json_put(o, "context_length", json_integer(m->info.context_trained));
	json_put(meta, "vocab_type", json_integer(m->info.has_tokenizer ? 2 : 0));
	json_put(meta, "n_vocab", json_integer(m->info.vocab));
	json_put(meta, "n_ctx_train", json_integer(m->info.context_trained));
	json_put(meta, "n_embd", json_integer(m->info.hidden));
	json_put(meta, "size", json_integer((json_int_t)m->info.file_bytes));
	json_put(meta, "description", json_text(m->info.description, strlen(m->info.description)));
	json_put(o, "meta", meta);
	return o;
}

/* As programs that came from ollama's interface want it. */
static json_t *short_one(const struct served *m)
{
	json_t *o = json_object(), *can = json_array();

	json_put(o, "name", json_text(m->name, strlen(m->name)));
	json_put(o, "model", json_text(m->name, strlen(m->name)));
	json_put(o, "slug", json_text(m->name, strlen(m->name)));
	json_put(o, "type", json_string("model"));
	json_add(can, json_string("completion"));
	json_put(o, "capabilities", can);
	return o;
}

json_t *models_json(const struct models *all)
{
	json_t *o = json_object(), *data = json_array(), *list = json_array();

	for (size_t i = 0; i < all->n; i++) {
		json_add(data, model_json(&all->list[i]));
		json_add(list, short_one(&all->list[i]));
	}
	json_put(o, "object", json_string("list"));
	json_put(o, "data", data);
	json_put(o, "models", list);
	return o;
}
