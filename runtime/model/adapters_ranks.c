/* runtime/model/adapters_ranks.c - see adapters_ranks.h. */
#include "runtime/model/adapters_ranks.h"

#include <stdlib.h>
#include <string.h>

/* What is told of an adapter; its path behind it, with the 0. */
struct told {
	uint64_t key;
	char path[];
};
enum { PATH_BYTES_MAX = 1 << 16 };

/* ---- rank 0 */

bool adapters_tell_enable(const jit_model *m, uint32_t ranks, struct error *err)
{
	const struct ranks_command c = { .what = RANKS_ADAPTERS, .number = ranks };

	if (!model_leads(m))
		return true;
	ranks_begin(m->ranks);
	const bool ok = ranks_tell(m->ranks, &c, NULL, err) && ranks_replies(m->ranks, err);
	ranks_end(m->ranks);
	return ok;
}

bool adapter_tell_open(const jit_adapter *a, const char *path, struct error *err)
{
	struct ranks *r = a->model->ranks;
	const size_t bytes = sizeof(struct told) + strlen(path) + 1;

	if (!model_leads(a->model))
		return true;
	if (bytes > PATH_BYTES_MAX)
		return error_set(err, ERROR_ARGUMENT, "an adapter's path of %zu bytes is too long", strlen(path));
	struct told *t = malloc(bytes);
	if (!t)
		return error_set(err, ERROR_MEMORY, "no memory for an adapter's path");
	t->key = a->key;
	memcpy(t->path, path, strlen(path) + 1);
	const struct ranks_command c = { .what = RANKS_ADAPTER, .number = a->number, .bytes = bytes };
	const bool ok = ranks_tell(r, &c, t, err) && ranks_replies(r, err);
	free(t);
	if (!ok)
		adapter_tell_close(a);
	return ok;
}

void adapter_tell_close(const jit_adapter *a)
{
	const struct ranks_command c = { .what = RANKS_ADAPTER_CLOSE, .number = a->number };

	if (model_leads(a->model))
		ranks_tell(a->model->ranks, &c, NULL, NULL);
}

/* ---- other ranks */

static bool open_told(jit_model *m, uint32_t number, const struct told *t, struct error *err)
{
	jit_adapter *a = adapter_load(m, t->path, number, err);

	if (a && a->key != t->key)
		error_set(err, ERROR_ARGUMENT,
		          "%.256s is another adapter here: its fingerprint is %016llx, and on rank 0 %016llx", t->path,
		          (unsigned long long)a->key, (unsigned long long)t->key);
	if (!a || a->key == t->key)
		return a != NULL;
	adapter_release(a);
	return false;
}

static bool follow_open(jit_model *m, const struct ranks_command *c, struct error *err)
{
	struct error e = { 0 };

	if (c->bytes <= sizeof(struct told) || c->bytes > PATH_BYTES_MAX || c->number >= ADAPTERS_MOST || !m->adapters)
		return error_set(err, ERROR_FORMAT, "what is told of an adapter is not whole");
	struct told *t = malloc((size_t)c->bytes);
	if (!t)
		return error_set(err, ERROR_MEMORY, "no memory for an adapter's path");
	bool ok = carrier_broadcast(m->ranks->carrier, 0, t, (size_t)c->bytes, err);
	if (ok) {
		((char *)t)[c->bytes - 1] = 0;
		open_told(m, c->number, t, &e);
		ok = ranks_reply(m->ranks, &e, err);
	}
	free(t);
	return ok;
}

bool adapters_follow(jit_model *m, const struct ranks_command *c, struct error *err)
{
	struct error e = { 0 };

	switch (c->what) {
	case RANKS_ADAPTERS: adapters_enable(m, c->number, &e); return ranks_reply(m->ranks, &e, err);
	case RANKS_ADAPTER: return follow_open(m, c, err);
	default:
		if (c->number < ADAPTERS_MOST && m->adapters && m->adapters->of[c->number])
			adapter_release(m->adapters->of[c->number]);
		return true;
	}
}
