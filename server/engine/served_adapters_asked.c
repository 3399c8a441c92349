/* server/engine/served_adapters_asked.c - what requests ask of a model's adapters, and what they have of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "server/engine/served_adapters_parts.h"
#include "server/request/fields.h"

/* What a scale of a request may be, and its negative. */
enum { SCALE_MAX = 1000000 };

/* ---- lists of requests, under the lock */

/* scale[i]: of row i. */
static bool read_one(struct served_adapters *all, const json_t *one, size_t i, float *scale, struct refusal *r)
{
	int64_t id = -1;
	double s = 0;

	if (!json_is_object(one))
		return refuse(r, 400, "lora", "lora[%zu] is no object, expected {\"id\": NUMBER, \"scale\": NUMBER}",
		              i);
	if (!field_integer(one, "id", 0, INT32_MAX, &id, r) ||
	    !field_number(one, "scale", -SCALE_MAX, SCALE_MAX, &s, r))
		return refuse_within(r, "lora");
	const struct adapter_row *w = adapter_row_of(all, id);
	if (!w)
		return refuse(r, 400, "lora",
		              "lora[%zu].id is %lld, which is no adapter's; GET /lora-adapters has those that are", i,
		              (long long)id);
	scale[w - all->row] = (float)s;
	return true;
}

static bool read_list(struct served_adapters *all, const json_t *list, float scale[JIT_ADAPTERS_MOST],
                      struct refusal *r)
{
	unsigned n = 0;

	if (!json_is_array(list))
		return refuse(r, 400, "lora", "lora is no array, expected objects with id and scale");
	for (size_t i = 0; i < json_array_size(list); i++)
		if (!read_one(all, json_array_get(list, i), i, scale, r))
			return false;
	for (unsigned i = 0; i < all->n; i++)
		n += scale[i] != 0;
	return n <= JIT_ADAPTERS_TOGETHER ||
	       refuse(r, 400, "lora", "lora has %u adapters with a scale other than 0, expected at most %d together", n,
	              JIT_ADAPTERS_TOGETHER);
}

static bool take(struct used_adapters *out, const struct adapter_row *w, float scale, struct refusal *r)
{
	if (scale == 0)
		return true;
	if (!w->loaded)
		return refuse(r, 503, "model", "The adapter %.199s cannot be used: %s.", w->name ? w->name : "",
		              w->why);
	if (out->n == JIT_ADAPTERS_TOGETHER)
		return refuse(r, 400, "lora", "More than %d adapters count at once; POST /lora-adapters sets which do.",
		              JIT_ADAPTERS_TOGETHER);
	out->of[out->n++] = (struct used_adapter){ loaded_adapter_hold(w->loaded), scale };
	return true;
}

/* Where one begins, its own tokens say: others would have to begin there, too. */
static bool goes_together(const struct used_adapters *u, struct refusal *r)
{
	for (unsigned i = 0; u->n > 1 && i < u->n; i++)
		if (u->of[i].adapter->begins)
			return refuse(
				r, 400, "lora",
				"The adapter %u counts from its invocation tokens on, and goes with no other one.",
				u->of[i].adapter->id);
	return true;
}

static bool choose(struct served_adapters *all, const char *name, const json_t *list, struct used_adapters *out,
                   struct refusal *r)
{
	float scale[JIT_ADAPTERS_MOST] = { 0 };
	const struct adapter_row *w = name ? adapter_row_named(all, name) : NULL;

	if (name)
		return w ? take(out, w, w->own, r)
		         : refuse(r, 404, "model", "The adapter %.199s has just been unloaded.", name);
	if (list && !read_list(all, list, scale, r))
		return false;
	for (unsigned i = 0; i < all->n; i++)
		if (!take(out, &all->row[i], list ? scale[i] : all->row[i].usual, r))
			return false;
	return goes_together(out, r);
}

bool served_adapters_choose(struct served_adapters *all, const char *name, const json_t *list,
                            struct used_adapters *out, struct refusal *r)
{
	*out = (struct used_adapters){ 0 };
	pthread_mutex_lock(&all->lock);
	const bool ok = choose(all, name, list, out, r);
	pthread_mutex_unlock(&all->lock);
	if (!ok)
		used_adapters_drop(out);
	return ok;
}

bool served_adapters_set(struct served_adapters *all, const json_t *list, struct refusal *r)
{
	float scale[JIT_ADAPTERS_MOST] = { 0 };

	pthread_mutex_lock(&all->lock);
	const bool ok = read_list(all, list, scale, r);
	for (unsigned i = 0; ok && i < all->n; i++)
		all->row[i].usual = scale[i];
	pthread_mutex_unlock(&all->lock);
	return ok;
}

bool served_adapters_find(struct served_adapters *all, const struct noted_adapters *noted, struct used_adapters *out)
{
	*out = (struct used_adapters){ 0 };
	for (unsigned i = 0; i < noted->n; i++) {
		pthread_mutex_lock(&all->lock);
		const struct adapter_row *w = adapter_row_of(all, noted->of[i].id);
		if (w && w->loaded)
			out->of[out->n++] = (struct used_adapter){ loaded_adapter_hold(w->loaded), noted->of[i].scale };
		pthread_mutex_unlock(&all->lock);
	}
	if (out->n == noted->n)
		return true;
	used_adapters_drop(out);
	return false;
}

json_t *served_adapters_of_replay(struct served_adapters *all, const char *text, struct error *err)
{
	json_t *list = json_array();

	for (const char *at = text; *at; at += strspn(at, ",")) {
		unsigned long long fingerprint;
		float scale;
		unsigned i = 0;
		if (sscanf(at, "%16llx:%f", &fingerprint, &scale) != 2)
			fingerprint = 0;
		while (all && i < all->n && (!all->row[i].loaded || all->row[i].loaded->fingerprint != fingerprint))
			i++;
		if (!all || i == all->n) {
			json_decref(list);
			error_set(err, ERROR_ARGUMENT,
			          "the answer was made with the adapter %.*s, and no --lora here is that one",
			          (int)strcspn(at, ",:"), at);
			return NULL;
		}
		json_add(list, json_pack("{s:i, s:f}", "id", (int)all->row[i].id, "scale", (double)scale));
		at += strcspn(at, ",");
	}
	return list;
}

/* ---- lists */

json_t *served_adapters_json(struct served_adapters *all)
{
	json_t *list = json_array();

	if (!all)
		return list;
	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < all->n; i++) {
		const struct adapter_row *w = &all->row[i];
		json_t *o = json_object();
		json_put(o, "id", json_integer(w->id));
		json_put(o, "path", json_text(w->shown, strlen(w->shown)));
		json_put(o, "scale", json_number((double)w->usual));
		if (w->name)
			json_put(o, "name", json_text(w->name, strlen(w->name)));
		json_put(o, "task_name", json_string(""));
		json_put(o, "prompt_prefix", json_string(""));
		json_add(list, o);
	}
	pthread_mutex_unlock(&all->lock);
	return list;
}

void served_adapters_each(struct served_adapters *all, void (*tell)(void *user, const struct served_adapter_told *a),
                          void *user)
{
	struct served_adapter_told told;

	for (unsigned i = 0;; i++) {
		pthread_mutex_lock(&all->lock);
		const bool there = i < all->n, named = there && all->row[i].name;
		const struct adapter_row *w = &all->row[i];
		if (named) {
			snprintf(told.name, sizeof told.name, "%s", w->name);
			snprintf(told.path, sizeof told.path, "%s", w->shown);
			told.created = w->created;
			told.answers = w->answers + (w->loaded ? atomic_load(&w->loaded->answers) : 0);
		}
		pthread_mutex_unlock(&all->lock);
		if (!there)
			return;
		if (named)
			tell(user, &told);
	}
}

/* ---- what a request has */

void used_adapters_copy(struct used_adapters *to, const struct used_adapters *from)
{
	*to = *from;
	for (unsigned i = 0; i < to->n; i++)
		loaded_adapter_hold(to->of[i].adapter);
}

void used_adapters_drop(struct used_adapters *u)
{
	for (unsigned i = 0; i < u->n; i++)
		loaded_adapter_drop(u->of[i].adapter);
	*u = (struct used_adapters){ 0 };
}

bool used_adapters_begin(const struct used_adapters *u) { return u->n && u->of[0].adapter->begins; }

bool used_adapters_set(const struct used_adapters *u, jit_session *s, const int32_t *prompt, size_t n, jit_error *err)
{
	jit_adapter *adapter[JIT_ADAPTERS_TOGETHER];
	float scale[JIT_ADAPTERS_TOGETHER];

	for (unsigned i = 0; i < u->n; i++) {
		adapter[i] = u->of[i].adapter->adapter;
		scale[i] = u->of[i].scale;
	}
	if (!used_adapters_begin(u))
		return jit_session_set_adapters(s, adapter, scale, u->n, err) == JIT_OK;
	const size_t from = jit_adapter_begins(adapter[0], prompt, n);
	return jit_session_set_adapters_from(s, adapter, scale, from < n, from, err) == JIT_OK;
}

void used_adapters_count(const struct used_adapters *u, unsigned answers)
{
	for (unsigned i = 0; i < u->n; i++)
		atomic_fetch_add(&u->of[i].adapter->answers, answers);
}

bool used_adapters_text(const struct used_adapters *u, char *out, size_t room)
{
	size_t n = 0;

	*out = 0;
	for (unsigned i = 0; i < u->n && n < room; i++)
		n += (size_t)snprintf(out + n, room - n, "%s%016llx:%.9g", i ? "," : "",
		                      (unsigned long long)u->of[i].adapter->fingerprint, (double)u->of[i].scale);
	return n < room;
}

struct noted_adapters used_adapters_note(const struct used_adapters *u)
{
	struct noted_adapters out = { .n = u->n };

	for (unsigned i = 0; i < u->n; i++) {
		out.of[i].id = u->of[i].adapter->id;
		out.of[i].scale = u->of[i].scale;
	}
	return out;
}
