/* server/api/replay.c - answers that can be made again. */
#include "server/api/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "include/jitrun_grammar.h"
#include "runtime/sampling/sampling.h"
#include "server/api/settings.h"
#include "server/engine/batcher.h"
#include "server/request/fields.h"
#include "server/http/server.h"

enum { FORM = 1, ADAPTERS_ROOM = 320, VALUE_ROOM = 400 };

/* FNV-1a. */
static uint64_t add_bytes(uint64_t sum, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++)
		sum = (sum ^ p[i]) * 0x100000001b3u;
	return sum;
}

/* What the settings do not tell of the form: the members that it may have, and the reasoning that it begins behind. */
static uint64_t add_form(uint64_t sum, const struct task *t)
{
	const uint32_t before[] = { t->before.inside, t->before.pair, t->before.may };

	if (t->grammar == JIT_GRAMMAR_NONE)
		return sum;
	if (task_grammar_kind(t) != t->grammar)
		sum = add_bytes(sum, "additional", 10);
	if (t->before.inside || t->before.may)
		sum = add_bytes(sum, before, sizeof before);
	sum = add_bytes(sum, t->begins.ids, t->begins.n * sizeof *t->begins.ids);
	return add_bytes(sum, t->continues.ids, t->continues.n * sizeof *t->continues.ids);
}

/* Of what the request means here: its tokens, and all that they are chosen by. False: no memory. */
static bool meaning_of(struct task *const *t, size_t n, uint64_t *sum)
{
	*sum = 0xcbf29ce484222325u;
	for (size_t i = 0; i < n; i++) {
		char *text = json_write(task_settings(t[i]));
		if (!text)
			return false;
		for (size_t k = 0; k < task_texts(t[i]); k++) {
			const struct task_text one = task_text(t[i], k);
			*sum = add_bytes(*sum, one.ids, one.n * sizeof *one.ids);
			*sum = add_bytes(*sum, text, strlen(text));
		}
		*sum = add_form(*sum, t[i]);
		free(text);
	}
	return true;
}

void replay_describe(struct exchange *x, const struct served *m, struct task *const *t, size_t n)
{
	const jit_sampling told = sampling_told(&t[0]->sampling), *s = &told;
	char adapters[ADAPTERS_ROOM];
	uint64_t sum;

	if (!m->fingerprint || t[0]->shown.images /* of which the header says nothing */ || !meaning_of(t, n, &sum) ||
	    !used_adapters_text(&t[0]->adapters, adapters, sizeof adapters))
		return;
	snprintf(x->header, sizeof x->header,
	         "v=%d; jitrun=%s; model=%016" PRIx64 "; numerics=%s; kv=%s; context=%d; now=%lld; "
	         "temperature=%.9g; top_k=%d; top_p=%.9g; min_p=%.9g; repeat_penalty=%.9g; seed=%" PRIu64
	         "; request=%016" PRIx64 "%s%s",
	         FORM, jit_version(), m->fingerprint, m->numerics, m->kv, batcher_context(m->batcher),
	         (long long)x->now, (double)s->temperature, s->top_k, (double)s->top_p, (double)s->min_p,
	         (double)s->repeat_penalty, s->seed, sum, *adapters ? "; adapters=" : "", adapters);
}

/* ---- back again */

/* The value of a name in the header: up to the next semicolon. */
static bool value_of(const char *header, const char *name, char out[VALUE_ROOM])
{
	size_t n = strlen(name);

	for (const char *at = header; at; at = strchr(at, ';')) {
		at += strspn(at, "; ");
		if (strncmp(at, name, n) != 0 || at[n] != '=')
			continue;
		snprintf(out, VALUE_ROOM, "%.*s", (int)strcspn(at + n + 1, "; "), at + n + 1);
		return true;
	}
	return false;
}

/* What this server would write must be what is in the header: all of it but the sampling, which the request and the
 * model say. */
static bool is_ours(const char *header, const struct served *m, struct error *err)
{
	const char *const names[] = { "v", "jitrun", "model", "numerics", "kv", "context" };
	char own[6][80], found[VALUE_ROOM];

	snprintf(own[0], 80, "%d", FORM);
	snprintf(own[1], 80, "%s", jit_version());
	snprintf(own[2], 80, "%016" PRIx64, m->fingerprint);
	snprintf(own[3], 80, "%s", m->numerics);
	snprintf(own[4], 80, "%s", m->kv);
	snprintf(own[5], 80, "%d", batcher_context(m->batcher));
	for (int i = 0; i < 6; i++) {
		if (!value_of(header, names[i], found))
			return error_set(err, ERROR_FORMAT, "the field \"replay\" has no %s", names[i]);
		if (strcmp(found, own[i]) != 0)
			return error_set(err, ERROR_ARGUMENT, "the answer was made with %s %s, and here is %s %s",
			                 names[i], found, names[i], own[i]);
	}
	return true;
}

static json_t *read_file(const char *path, struct error *err)
{
	FILE *f = fopen(path, "rbe");
	char *text = f ? malloc(JSON_MAX_INDEX) : NULL;
	json_t *o = NULL;
	size_t mark = 0;

	size_t n = text ? fread(text, 1, JSON_MAX_INDEX, f) : 0;
	if (!f || ferror(f))
		error_set(err, ERROR_IO, "%s: cannot be read: %s", path, strerror(errno));
	else if (!text)
		error_set(err, ERROR_MEMORY, "no memory for %s", path);
	else {
		text_coding(text, n, &mark); /* another one is refused by json_read() */
		o = json_read(text + mark, n - mark, JSON_MAX_INDEX - 1, path, err);
	}
	if (f)
		fclose(f);
	free(text);
	return o;
}

struct waiting {
	pthread_mutex_t lock;
	pthread_cond_t there;
	bool awake;
};

static void fall_asleep(void *user) { ((struct waiting *)user)->awake = false; }

static void wake_up(void *user)
{
	struct waiting *w = user;

	pthread_mutex_lock(&w->lock);
	w->awake = true;
	pthread_cond_signal(&w->there);
	pthread_mutex_unlock(&w->lock);
}

/* The whole answer's JSON. NULL: x->refusal. */
static json_t *wait_for_answer(struct exchange *x)
{
	struct waiting w = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false };

	while (!x->reply->ended) {
		if (stream_wait(x->reply->stream, fall_asleep, wake_up, &w)) {
			pthread_mutex_lock(&w.lock);
			while (!w.awake)
				pthread_cond_wait(&w.there, &w.lock);
			pthread_mutex_unlock(&w.lock);
		}
		if (!reply_advance(x->reply, &x->refusal))
			return NULL;
		if (stream_is_dropped(x->reply->stream)) {
			refuse(&x->refusal, 503, NULL, "There is no memory for this answer.");
			return NULL;
		}
	}
	return fields_read(x->reply->out.p, x->reply->out.n, &x->refusal);
}

/* The adapters in their order, which sums of several depend on. */
static bool has_same_adapters(const char *made, const char *kept, struct error *err)
{
	char here[VALUE_ROOM] = "none", there[VALUE_ROOM] = "none";

	value_of(made, "adapters", here);
	value_of(kept, "adapters", there);
	return strcmp(here, there) == 0 ||
	       error_set(err, ERROR_ARGUMENT, "the answer was made with the adapters %s, and here are %s", there, here);
}

static bool is_same(const char *made, const char *kept, struct error *err)
{
	char here[VALUE_ROOM] = "", there[VALUE_ROOM] = "";

	value_of(made, "request", here);
	value_of(kept, "request", there);
	return strcmp(here, there) == 0 ||
	       error_set(err, ERROR_ARGUMENT,
	                 "the request means other tokens or another sampling here (request %s, and %s then): give the "
	                 "options that the server had, such as --template, --reasoning or --temp",
	                 here, *there ? there : "none");
}

/* Those of the answer, whatever the server's own request names now. False: err. */
static bool put_adapters(json_t *body, const struct served *m, const char *header, struct error *err)
{
	char text[VALUE_ROOM] = "";

	if (!value_of(header, "adapters", text) && !m->adapters)
		return true;
	json_t *list = served_adapters_of_replay(m->adapters, text, err);
	if (!list)
		return false;
	json_put(body, "model", json_text(m->name, strlen(m->name)));
	json_put(body, "lora", list);
	return true;
}

static json_t *make_again(struct exchange *x, const char *path, json_t *body, const char *header, struct error *err)
{
	json_t *answer = NULL;
	char seed[VALUE_ROOM] = "", now[VALUE_ROOM] = "";

	value_of(header, "seed", seed);
	value_of(header, "now", now);
	x->now = strtoll(now, NULL, 10);
	json_put(body, "seed", json_integer(strtoll(seed, NULL, 10)));
	json_put(body, "stream", json_false());
	bytes_take(&x->body, json_write(json_incref(body)));
	if (route_find(x, "POST", path) && !x->body.lost && x->route->handle(x) && x->reply)
		answer = wait_for_answer(x);
	if (answer && (!has_same_adapters(x->header, header, err) || !is_same(x->header, header, err))) {
		json_decref(answer);
		answer = NULL;
	} else if (!answer) {
		const char *why = x->refusal.status ? x->refusal.message : "there is no answer of that path";
		size_t n = strlen(why);
		error_set(err, ERROR_ARGUMENT, "%.*s", (int)(n && why[n - 1] == '.' ? n - 1 : n), why);
	}
	return answer;
}

static json_t *answer_again(struct server *s, const char *path, const json_t *request, const struct served *m,
                            const char *header, struct error *err)
{
	struct exchange x = { .server = s };
	json_t *body = json_copied(request, true), *answer = NULL;

	if (!body)
		error_set(err, ERROR_MEMORY, "no memory for the request");
	else if (put_adapters(body, m, header, err))
		answer = make_again(&x, path, body, header, err);
	reply_close(x.reply);
	used_adapters_drop(&x.adapters);
	lease_end(&x.lease);
	picture_fetch_leave(&x.shown);
	bytes_free(&x.body);
	bytes_free(&x.answer);
	json_decref(body);
	return answer;
}

/* ---- texts */

/* The text behind `left` others in a list of blocks, or of items that have such a list. */
static const char *text_in(const json_t *list, size_t *left)
{
	const char *text = NULL;

	for (size_t i = 0; i < json_array_size(list) && !text; i++) {
		const json_t *o = json_array_get(list, i);
		text = json_string_value(json_object_get(o, "text"));
		if (!text)
			text = text_in(json_object_get(o, "content"), left);
		else if ((*left)-- > 0)
			text = NULL;
	}
	return text;
}

/* The text of a choice, a block or an item, whatever the endpoint calls it; NULL: none. */
static const char *text_of(const json_t *answer, size_t number)
{
	const json_t *c = json_array_get(json_object_get(answer, "choices"), number),
		     *content = json_object_get(answer, "content");
	const char *text = json_string_value(json_object_get(json_object_get(c, "message"), "content"));

	if (!text)
		text = json_string_value(json_object_get(c, "text"));
	if (!text && !number)
		text = json_string_value(content);
	return text ? text : text_in(json_is_array(content) ? content : json_object_get(answer, "output"), &number);
}

static bool compare(const json_t *made, const json_t *kept, struct error *err)
{
	for (size_t i = 0; text_of(made, i) || text_of(kept, i); i++) {
		const char *a = text_of(made, i), *b = text_of(kept, i);
		if (!a || !b || strcmp(a, b) != 0)
			return error_set(err, ERROR_FORMAT,
			                 "the text of answer %zu is another than the one that was kept", i);
	}
	return true;
}

long replay_context(const char *path)
{
	struct error ignored = { 0 };
	json_t *file = read_file(path, &ignored);
	const char *header = json_string_value(json_object_get(file, "replay"));
	char found[VALUE_ROOM] = "0";

	if (header)
		value_of(header, "context", found);
	json_decref(file);
	long n = strtol(found, NULL, 10);
	return n > 0 && n <= INT_MAX ? n : 0;
}

bool replay_file(struct server *s, const char *path, FILE *out, struct error *err)
{
	json_t *file = read_file(path, err), *answer = NULL;
	const json_t *request = json_object_get(file, "request"), *kept = json_object_get(file, "answer");
	const char *header = json_string_value(json_object_get(file, "replay"));
	const char *where = json_string_value(json_object_get(file, "path"));
	struct refusal r = { 0 };
	jit_error why = { 0 };
	struct served *m = models_find(s->models, json_string_value(json_object_get(request, "model")), &r);
	char adapters[VALUE_ROOM];

	if (!m && header && value_of(header, "adapters", adapters)) { /* the name was an adapter's */
		r = (struct refusal){ 0 };
		m = models_find(s->models, NULL, &r);
	}

	bool ok = file != NULL;
	if (ok && (!json_is_object(request) || !header || !where))
		ok = error_set(err, ERROR_FORMAT, "%s: has no \"path\", \"request\" and \"replay\"", path);
	if (ok && !m)
		ok = error_set(err, ERROR_ARGUMENT, "%s: %s", path, r.message);
	if (ok && !loader_first(s->models->loader, m, &why))
		ok = error_set(err, ERROR_IO, "%s", why.message);
	ok = ok && is_ours(header, m, err);
	if (ok) {
		answer = answer_again(s, where, request, m, header, err);
		ok = answer != NULL;
	}
	for (size_t i = 0; ok && text_of(answer, i); i++)
		fprintf(out, "%s\n", text_of(answer, i));
	ok = ok && (!kept || compare(answer, kept, err));
	json_decref(file);
	json_decref(answer);
	return ok;
}
