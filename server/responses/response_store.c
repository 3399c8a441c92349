/* server/responses/response_store.c - responses that are kept for requests which go on from them.
 *
 * They are kept as texts: what they take is known then, and threads share no values.
 */
#include "server/responses/response_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "runtime/host/system.h"

struct kept {
	char id[64], *response, *items;
	uint64_t owner;
	size_t bytes;
	double when; /* it was asked for last */
};

struct response_store {
	pthread_mutex_t lock;
	struct kept *list; /* n, the one that was asked for last at the end */
	size_t n, max, bytes, max_bytes;
	double seconds;
};

struct response_store *response_store_open(size_t max, size_t bytes, double seconds)
{
	struct response_store *s = calloc(1, sizeof *s);

	if (!s || !(s->list = calloc(max + 1, sizeof *s->list))) {
		free(s);
		return NULL;
	}
	pthread_mutex_init(&s->lock, NULL);
	s->max = max;
	s->max_bytes = bytes;
	s->seconds = seconds;
	return s;
}

static void drop(struct response_store *s, size_t i)
{
	s->bytes -= s->list[i].bytes;
	free(s->list[i].response);
	free(s->list[i].items);
	memmove(s->list + i, s->list + i + 1, (s->n - i - 1) * sizeof *s->list);
	s->n--;
}

void response_store_close(struct response_store *s)
{
	if (!s)
		return;
	while (s->n)
		drop(s, s->n - 1);
	pthread_mutex_destroy(&s->lock);
	free(s->list);
	free(s);
}

static void forget_old(struct response_store *s, size_t more)
{
	const double now = system_seconds();

	while (s->n &&
	       (s->list[0].when + s->seconds < now || s->n + (more > 0) > s->max || s->bytes + more > s->max_bytes))
		drop(s, 0);
}

void response_store_put(struct response_store *s, uint64_t owner, const char *id, const json_t *response,
                        const json_t *items)
{
	struct kept one = { .owner = owner, .when = system_seconds() };

	if (!s || s->max == 0 || strlen(id) >= sizeof one.id)
		return;
	memcpy(one.id, id, strlen(id) + 1);
	one.response = json_spell(response, JSON_COMPACT);
	one.items = json_spell(items, JSON_COMPACT);
	if (one.response && one.items)
		one.bytes = strlen(one.response) + strlen(one.items) + sizeof one;
	pthread_mutex_lock(&s->lock);
	if (one.bytes && one.bytes <= s->max_bytes) {
		forget_old(s, one.bytes);
		s->list[s->n++] = one;
		s->bytes += one.bytes;
		one.response = one.items = NULL;
	}
	pthread_mutex_unlock(&s->lock);
	free(one.response);
	free(one.items);
}

/* Where it is, now at the end; SIZE_MAX: nowhere. */
static size_t find(struct response_store *s, uint64_t owner, const char *id)
{
	forget_old(s, 0);
	for (size_t i = 0; i < s->n; i++) {
		if (s->list[i].owner != owner || strcmp(s->list[i].id, id) != 0)
			continue;
		struct kept one = s->list[i];
		memmove(s->list + i, s->list + i + 1, (s->n - i - 1) * sizeof one);
		one.when = system_seconds();
		s->list[s->n - 1] = one;
		return s->n - 1;
	}
	return SIZE_MAX;
}

static json_t *get(struct response_store *s, uint64_t owner, const char *id, bool items)
{
	json_t *o = NULL;

	if (!s)
		return NULL;
	pthread_mutex_lock(&s->lock);
	const size_t i = find(s, owner, id);
	char *text = i == SIZE_MAX ? NULL : strdup(items ? s->list[i].items : s->list[i].response);
	pthread_mutex_unlock(&s->lock);
	if (text)
		o = json_read(text, strlen(text), UINT64_MAX, "a kept response", NULL);
	free(text);
	return o;
}

json_t *response_store_get(struct response_store *s, uint64_t owner, const char *id)
{
	return get(s, owner, id, false);
}

json_t *response_store_items(struct response_store *s, uint64_t owner, const char *id)
{
	return get(s, owner, id, true);
}

/* An item's id has its response's digits in it: "msg_DIGITS_0" of "resp_DIGITS". */
json_t *response_store_find(struct response_store *s, uint64_t owner, const char *item)
{
	const char *digits = strchr(item, '_'), *last = strrchr(item, '_');
	char id[64];
	json_t *found = NULL, *one;
	size_t i;

	if (!digits || digits == last || last - digits > 40)
		return NULL;
	strcpy(id, "resp");
	strncat(id, digits, (size_t)(last - digits));
	json_t *response = response_store_get(s, owner, id);
	json_array_foreach(json_object_get(response, "output"), i, one)
	{
		const char *name = json_string_value(json_object_get(one, "id"));
		if (name && strcmp(name, item) == 0)
			found = json_incref(one);
	}
	json_decref(response);
	return found;
}

bool response_store_drop(struct response_store *s, uint64_t owner, const char *id)
{
	if (!s)
		return false;
	pthread_mutex_lock(&s->lock);
	const size_t i = find(s, owner, id);
	if (i != SIZE_MAX)
		drop(s, i);
	pthread_mutex_unlock(&s->lock);
	return i != SIZE_MAX;
}
