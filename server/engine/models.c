/* server/engine/models.c - the models that a server has. */
#include "server/engine/models.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/json_write.h"
#include "server/engine/loader.h"

/* Of a path: its last part, without what says the format. */
static void name_of_file(char out[200], const char *path)
{
	static const char *const ends[] = { ".gguf", ".jkm", ".safetensors" };
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	const char *slash = memrchr(path, '/', n - 1);
	n -= slash ? (size_t)(slash + 1 - path) : 0;
	path = slash ? slash + 1 : path;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		size_t e = strlen(ends[i]);
		if (n > e && strncasecmp(path + n - e, ends[i], e) == 0)
			n -= e;
	}
	snprintf(out, 200, "%.*s", (int)(n < 200 ? n : 199), path);
}

/* As ollama's clients write names, where ":latest" stands for no tag. */
static bool is_called(const char *own, const char *name)
{
	static const char latest[] = ":latest";
	const size_t n = strlen(own), m = strlen(name), both = n < m ? n : m;

	return strncmp(own, name, both) == 0 &&
	       (n == m || strcmp(own + both, latest) == 0 || strcmp(name + both, latest) == 0);
}

/* The names of one that is gone may just be replaced (models_entry): they are not looked at. */
static struct served *find_named(struct models *all, const char *name)
{
	for (size_t how = 0; how < 3; how++)
		for (size_t i = 0; i < all->n; i++) {
			struct served *m = &all->list[i];
			if (m->gone)
				continue;
			bool called = how == 0   ? strcmp(m->name, name) == 0
			              : how == 1 ? is_called(m->name, name)
			                         : is_called(m->file, name);
			if (called)
				return m;
		}
	return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void models_lock(void) { pthread_mutex_lock(&lock); }

void models_unlock(void) { pthread_mutex_unlock(&lock); }

static bool add(struct models *all, const char *path, const char *alias, const char *also, struct error *err)
{
	struct served *m = &all->list[all->n];

	if (all->n == MODELS_MAX)
		return error_set(err, ERROR_ARGUMENT, "there are %d models already", MODELS_MAX);
	m->path = path;
	m->created = (long)time(NULL);
	if (also)
		snprintf(m->file, sizeof m->file, "%s", also);
	else
		name_of_file(m->file, path);
	snprintf(m->name, sizeof m->name, "%s", alias ? alias : m->file);
	m->gone = false;
	if (find_named(all, m->name))
		return error_set(err, ERROR_ARGUMENT, "two models are called %s; --alias gives them other names",
		                 m->name);
	all->n++;
	return true;
}

bool models_add(struct models *all, const char *path, const char *alias, const char *also, struct error *err)
{
	models_lock();
	const bool ok = add(all, path, alias, also, err);
	models_unlock();
	return ok;
}

void models_refresh(struct models *all)
{
	if (all->refresh)
		all->refresh(all);
}

static struct served *find_or_guess(struct models *all, const char *name)
{
	struct served *m = find_named(all, name);

	return m || !all->guess ? m : all->guess(all, name);
}

struct served *models_named(struct models *all, const char *name)
{
	struct served *m = find_or_guess(all, name);

	if (m || !all->refresh)
		return m;
	models_refresh(all);
	return find_or_guess(all, name);
}

struct served *models_of_adapter(struct models *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++) {
		struct served *m = &all->list[i];
		if (!m->gone && m->adapters && served_adapters_has(m->adapters, name))
			return m;
	}
	return NULL;
}

bool models_may_name(struct models *all, const char *name, struct error *err)
{
	return !(models_of_adapter(all, name) || models_named(all, name)) ||
	       error_set(err, ERROR_ARGUMENT, "there is a model or an adapter called %.199s already", name);
}

/* Whether a name that is nobody's may be that of an adapter, spelled wrong. */
static bool names_count(const struct models *all)
{
	bool count = all->n > 1 || all->by_name;

	for (size_t i = 0; i < all->n; i++)
		count |= all->list[i].adapters && served_adapters_are_named(all->list[i].adapters);
	return count;
}

/* The first that is there, for requests that name none. */
static struct served *first_of(struct models *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (!all->list[i].gone)
			return &all->list[i];
	return NULL;
}

bool models_refuse(const struct models *all, const char *name, int status, struct refusal *r)
{
	const char *later = all->refresh ? ""
	                                 : "; the server was started with these alone, and --models-dir or --pull-with "
	                                   "let it serve models that come later";

	return refuse(r, status, "model", "There is no model \"%.200s\" here; /v1/models has those that are%s.", name,
	              later);
}

struct served *models_find(struct models *all, const char *name, struct refusal *r)
{
	if (!name && all->refresh)
		models_refresh(all);
	struct served *m = name ? models_of_adapter(all, name) : first_of(all);

	if (!m && name)
		m = names_count(all) ? models_named(all, name) : first_of(all);
	if (!m && name)
		models_refuse(all, name, 404, r);
	else if (!m)
		refuse(r, 404, "model", "There is no model here yet.");
	return m;
}

/* What the pages of the KV cache that hold something take. */
static uint64_t cache_in_use(const struct model_status *s)
{
	const jit_batch_stats *b = &s->numbers.batch;

	return s->state == MODEL_AWAY || !b->pages ? 0 : b->kv_bytes / b->pages * b->pages_used;
}

/* What the model takes, and what is set aside for it: all that its cache may come to. While it is loaded, what it will
 * take. */
static void put_bytes(json_t *o, const struct model_status *s)
{
	const bool open = s->state == MODEL_LOADED || s->state == MODEL_CLOSING;
	const uint64_t weights = open ? s->info.weight_bytes : 0, cache = open ? cache_in_use(s) : 0;

	json_put(o, "bytes", json_integer((json_int_t)(open ? weights + cache : s->bytes)));
	json_put(o, "weight_bytes", json_integer((json_int_t)weights));
	json_put(o, "kv_bytes", json_integer((json_int_t)cache));
	json_put(o, "reserved_bytes", json_integer((json_int_t)s->bytes));
}

/* In the words of llama.cpp's server, when it has several. */
static json_t *status_json(const struct model_status *s)
{
	json_t *o = json_object();

	json_put(o, "value",
	         json_string(s->state == MODEL_LOADED    ? "loaded"
	                     : s->state == MODEL_LOADING ? "loading"
	                                                 : "unloaded"));
	json_put(o, "failed", json_boolean(s->failed));
	put_bytes(o, s);
	return o;
}

/* What the lists of llama.cpp's server with several models have beside the status. */
static void put_kind(json_t *o, const struct served *m)
{
	json_t *aliases = json_array(), *kind = json_object(), *in = json_array(), *out = json_array();

	if (strcmp(m->file, m->name) != 0)
		json_add(aliases, json_text(m->file, strlen(m->file)));
	json_put(o, "aliases", aliases);
	json_put(o, "tags", json_array());
	json_add(in, json_string("text"));
	if (m->sees)
		json_add(in, json_string("image"));
	json_add(out, json_string("text"));
	json_put(kind, "input_modalities", in);
	json_put(kind, "output_modalities", out);
	json_put(o, "architecture", kind);
	json_put(o, "can_remove", json_boolean(m->made));
}

json_t *model_meta_json(const jit_model_info *info, int context)
{
	json_t *meta = json_object();

	json_put(meta, "vocab_type", json_integer(info->has_tokenizer ? 2 : 0));
	json_put(meta, "n_vocab", json_integer(info->vocab));
	json_put(meta, "n_ctx", json_integer(context));
	json_put(meta, "n_ctx_train", json_integer(info->context_trained));
	json_put(meta, "n_embd", json_integer(info->hidden));
	json_put(meta, "size", json_integer((json_int_t)info->file_bytes));
	json_put(meta, "description", json_text(info->description, strlen(info->description)));
	return meta;
}

/* Nothing is known of one that was never in memory but its name. */
json_t *model_json(const struct models *all, const struct served *m)
{
	json_t *o = json_object(), *meta = NULL;
	struct model_status s;

	loader_status(all->loader, m, &s);
	json_put(o, "id", json_text(m->name, strlen(m->name)));
	json_put(o, "object", json_string("model"));
	json_put(o, "created", json_integer(m->created));
	json_put(o, "owned_by", json_string("jitrun"));
	json_put(o, "status", status_json(&s));
	put_kind(o, m);
	if (s.info.description) {
		json_put(o, "context_length", json_integer(s.context));
		json_put(o, "max_model_len", json_integer(s.context));
		meta = model_meta_json(&s.info, s.context);
	}
	json_put(o, "meta", s.info.description ? meta : json_object());
	return o;
}

/* As programs that came from ollama's interface want it. */
static json_t *short_one(const char *name)
{
	json_t *o = json_object(), *can = json_array();

	json_put(o, "name", json_text(name, strlen(name)));
	json_put(o, "model", json_text(name, strlen(name)));
	json_put(o, "slug", json_text(name, strlen(name)));
	json_put(o, "type", json_string("model"));
	json_add(can, json_string("completion"));
	json_put(o, "capabilities", can);
	return o;
}

/* Adapters that have a name, as vLLM lists them. */
struct adapter_lists {
	const struct models *all;
	const struct served *model;
	json_t *data, *list;
};

json_t *model_adapter_json(const struct models *all, const struct served *m, const struct served_adapter_told *a)
{
	json_t *o = model_json(all, m);

	json_put(o, "id", json_text(a->name, strlen(a->name)));
	json_put(o, "created", json_integer(a->created));
	json_put(o, "aliases", json_array());
	json_put(o, "can_remove", json_false());
	json_put(o, "root", json_text(a->path, strlen(a->path)));
	json_put(o, "parent", json_text(m->name, strlen(m->name)));
	return o;
}

static void list_adapter(void *user, const struct served_adapter_told *a)
{
	struct adapter_lists *l = user;

	json_add(l->data, model_adapter_json(l->all, l->model, a));
	json_add(l->list, short_one(a->name));
}

json_t *models_json(const struct models *all)
{
	json_t *o = json_object(), *data = json_array(), *list = json_array();

	for (size_t i = 0; i < all->n; i++)
		if (!all->list[i].gone) {
			json_add(data, model_json(all, &all->list[i]));
			json_add(list, short_one(all->list[i].name));
			struct adapter_lists l = { all, &all->list[i], data, list };
			if (l.model->adapters)
				served_adapters_each(l.model->adapters, list_adapter, &l);
		}
	json_put(o, "object", json_string("list"));
	json_put(o, "data", data);
	json_put(o, "models", list);
	return o;
}
