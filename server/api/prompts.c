/* server/api/prompts.c - the forms in which requests give the texts that go on. */
#include "server/api/prompts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_read.h"
#include "server/request/fields.h"

struct list {
	int32_t *ids;
	size_t n, capacity;
	size_t bytes; /* of its texts */
};

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

static bool add_text(struct list *l, const char *name, const json_t *v, const jit_model *model, struct refusal *r)
{
	int32_t *ids = NULL;
	size_t n = 0;
	jit_error err = { 0 };

	if (!json_is_text(v))
		return refuse(r, 400, name, "%s has a half of a surrogate pair", name);
	l->bytes += json_string_length(v);
	if (!field_fits(name, l->bytes, r))
		return false;
	if (jit_model_tokenize(model, json_string_value(v), json_string_length(v), l->n == 0, 1, &ids, &n, &err) !=
	    JIT_OK)
		return refuse_error(r, name, &err);
	bool ok = array_grow((void **)&l->ids, &l->capacity, l->n + n, sizeof *ids) || no_memory(r);
	if (ok && n) {
		memcpy(l->ids + l->n, ids, n * sizeof *ids);
		l->n += n;
	}
	free(ids);
	return ok;
}

static bool add_id(struct list *l, const char *name, const json_t *v, int vocab, struct refusal *r)
{
	json_int_t id = json_integer_value(v);

	if (id < 0 || id >= vocab)
		return refuse(r, 400, name, "%s has token %lld, expected 0 to %d", name, (long long)id, vocab - 1);
	if (!array_grow((void **)&l->ids, &l->capacity, l->n + 1, sizeof *l->ids))
		return no_memory(r);
	l->ids[l->n++] = (int32_t)id;
	return true;
}

/* {"prompt_string": TEXT}: beside it images may stand, which no model here can read. */
static const json_t *text_within(const char *name, const json_t *v, struct refusal *r)
{
	const json_t *text = json_object_get(v, "prompt_string");
	const json_t *media = json_object_get(v, "multimodal_data");

	if (media && !json_is_null(media) && (!json_is_array(media) || json_array_size(media)))
		refuse(r, 400, name, "%s has multimodal_data, which is not supported", name);
	else if (!json_is_string(text))
		refuse(r, 400, name, "%s has an object without a text as its prompt_string", name);
	return r->status ? NULL : text;
}

/* A text, an object with one, or tokens and texts one behind the other. */
static bool add_one(struct prompts *p, const char *name, const json_t *v, const jit_model *model, struct refusal *r)
{
	jit_model_info info = JIT_MODEL_INFO();
	struct list l = { 0 };
	json_t *part;
	size_t i;
	bool ok = true;

	jit_model_get_info(model, &info, NULL);
	const size_t max = p->max ? p->max : PROMPTS_MAX;
	if (p->n == max)
		return refuse(r, 400, name, "%s has more than %zu texts", name, max);
	if (!array_grow((void **)&p->list, &p->capacity, p->n + 1, sizeof *p->list))
		return no_memory(r);
	if (json_is_object(v) && !(v = text_within(name, v, r)))
		return false;
	if (json_is_string(v))
		ok = add_text(&l, name, v, model, r);
	json_array_foreach(v, i, part)
	{
		if (!ok)
			break;
		if (json_is_string(part))
			ok = add_text(&l, name, part, model, r);
		else if (json_is_integer(part))
			ok = add_id(&l, name, part, info.vocab, r);
		else
			ok = refuse(r, 400, name, "%s has %s among its tokens, expected integers or strings", name,
			            json_kind(part));
	}
	if (ok && l.n == 0)
		ok = refuse(r, 400, name, "%s is empty", name);
	if (ok && p->context && l.n > p->context) /* the texts behind it are not read */
		ok = refuse_tokens(r, l.n, (int)p->context, p->more ? p->more : "--context");
	if (ok) {
		p->list[p->n++] = (struct prompt){ l.ids, l.n, json_is_string(v) ? v : NULL };
	} else {
		free(l.ids);
	}
	return ok;
}

/* Whether a list is of prompts, not of tokens. */
static bool is_list_of_prompts(const json_t *v)
{
	const json_t *one;
	size_t i;

	json_array_foreach(v, i, one)
	{
		if (json_is_array(one) || json_is_string(one) || json_is_object(one))
			continue;
		return false;
	}
	return json_array_size(v) > 0;
}

bool prompts_read(struct prompts *p, const char *name, const json_t *v, const jit_model *model, struct refusal *r)
{
	const json_t *one;
	size_t i;

	if (!v)
		return refuse(r, 400, name, "%s is missing", name);
	if (json_is_array(v) && json_array_size(v) == 0)
		return refuse(r, 400, name, "%s is empty", name);
	if (!json_is_string(v) && !json_is_array(v) && !json_is_object(v))
		return refuse(r, 400, name, "%s is %s, expected a string or an array", name, json_kind(v));
	if (!json_is_array(v) || !is_list_of_prompts(v))
		return add_one(p, name, v, model, r);
	json_array_foreach(v, i, one) if (!add_one(p, name, one, model, r)) return false;
	return true;
}

void prompts_free(struct prompts *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->list[i].ids);
	free(p->list);
	*p = (struct prompts){ .max = p->max, .context = p->context, .more = p->more };
}
