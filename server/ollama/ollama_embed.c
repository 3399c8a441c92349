/* server/ollama/ollama_embed.c - /api/embed and /api/embeddings: vectors of texts in the form of ollama's API. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "runtime/host/system.h"
#include "server/engine/batcher.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/ollama/ollama.h"
#include "server/api/prompt_tasks.h"
#include "server/http/server.h"

struct embed_reply {
	struct reply base;
	char name[200];
	bool one; /* /api/embeddings */
	size_t size, told;
	uint64_t tokens;
	float *vector; /* n of `size` numbers, one behind the other */
	unsigned n;
	double arrived, loading, ended;
};

static void take(struct reply *r, const struct answer_event *event, const jit_logprob *top, const char *text)
{
	struct embed_reply *o = (struct embed_reply *)(void *)r;
	(void)top;

	if (event->kind == EVENT_TOKEN && event->n_text == o->size * sizeof *o->vector) {
		memcpy(o->vector + event->choice * o->size, text, event->n_text);
	} else if (event->kind == EVENT_ENDED) {
		o->tokens += event->numbers.prompt;
		o->ended = event->numbers.told;
	}
}

/* The first numbers of a vector, as a vector of length 1. Nine digits are enough for a float. */
static void put_vector(struct bytes *b, const float *v, size_t n, bool shorter)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)v[i] * (double)v[i];
	const double factor = shorter && sum > 0 ? 1 / sqrt(sum) : 1;
	bytes_text(b, "[");
	for (size_t i = 0; i < n; i++) {
		const double x = (double)v[i] * factor;
		bytes_print(b, isfinite(x) ? "%s%.9g" : "%snull", i ? "," : "", x);
	}
	bytes_text(b, "]");
}

static void end(struct reply *r)
{
	struct embed_reply *o = (struct embed_reply *)(void *)r;
	struct bytes *b = &r->out;

	if (o->one) {
		bytes_text(b, "{\"embedding\":");
	} else {
		bytes_text(b, "{\"model\":");
		bytes_take(b, json_write(json_text(o->name, strlen(o->name))));
		bytes_text(b, ",\"embeddings\":[");
	}
	for (unsigned i = 0; i < o->n; i++) {
		bytes_text(b, i ? "," : "");
		put_vector(b, o->vector + i * o->size, o->told, o->told < o->size);
	}
	if (o->one)
		bytes_text(b, "}");
	else
		bytes_print(b, "],\"total_duration\":%.0f,\"load_duration\":%.0f,\"prompt_eval_count\":%llu}",
		            (o->ended - o->arrived) * 1e9, o->loading * 1e9, (unsigned long long)o->tokens);
}

static void fail(struct reply *r, const struct refusal *why) { bytes_take(&r->out, refusal_json_ollama(why)); }

static void close_reply(struct reply *r)
{
	struct embed_reply *o = (struct embed_reply *)(void *)r;

	free(o->vector);
	free(o);
}

static const struct reply_kind embed_kind = { take, end, fail, close_reply };

/* ---- the request */

static size_t context_of(const struct ollama_request *q)
{
	const int64_t context = batcher_context(q->model->batcher);

	return (size_t)(q->context && q->context < context ? q->context : context);
}

/* Without truncate, the first text that is too long is refused. */
static bool read_truncate(struct prompts *p, const struct ollama_request *q, struct refusal *r)
{
	bool may = true;

	if (!field_flag(q->body, "truncate", &may, r))
		return false;
	p->context = may ? 0 : context_of(q);
	p->more = "--context and num_ctx, or leave out truncate: false";
	return true;
}

/* A text that is too long loses its end, but for a token that ends all texts. */
static void cut(struct prompts *p, const struct ollama_request *q)
{
	const size_t max = context_of(q);

	for (size_t i = 0; i < p->n; i++) {
		struct prompt *one = &p->list[i];
		if (one->n <= max)
			continue;
		if (q->model->info.encodes || jit_model_is_end(q->model->model, one->ids[one->n - 1]))
			one->ids[max - 1] = one->ids[one->n - 1];
		one->n = max;
	}
}

static bool begin(struct exchange *x, const struct ollama_request *q, struct prompts *p, bool single)
{
	struct embed_reply *o = calloc(1, sizeof *o);
	int64_t told = q->model->info.embedding;

	if (o) {
		*o = (struct embed_reply){ .base.kind = &embed_kind, .one = single, .n = (unsigned)p->n };
		memcpy(o->name, q->name, sizeof o->name);
		o->arrived = x->arrived;
		o->loading = x->loading;
		o->size = (size_t)q->model->info.embedding;
		o->vector = calloc(p->n, o->size * sizeof *o->vector);
	}
	if (!o || !o->vector)
		refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	bool ok = x->refusal.status == 0 &&
	          field_integer(q->body, "dimensions", 1, q->model->info.embedding, &told, &x->refusal);
	if (ok)
		cut(p, q);
	struct task *t = ok ? prompt_texts(q->model, p, &x->refusal) : NULL;
	if (t) {
		o->told = (size_t)told;
		ok = generate(x, &o->base, q->model, &t, 1);
	} else {
		ok = false;
		reply_close(o ? &o->base : NULL);
	}
	task_release(t);
	return ok;
}

/* Without a text the model is loaded, and there is no vector. */
static bool say_nothing(struct exchange *x, const struct ollama_request *q, bool single)
{
	json_t *o = json_object();

	if (single) {
		json_put(o, "embedding", json_array());
		return exchange_json(x, json_write(o));
	}
	json_put(o, "model", json_text(q->name, strlen(q->name)));
	json_put(o, "embeddings", json_array());
	json_put(o, "total_duration", ollama_nanoseconds(system_seconds() - x->arrived));
	json_put(o, "load_duration", ollama_nanoseconds(x->loading));
	json_put(o, "prompt_eval_count", json_integer(0));
	return exchange_json(x, json_write(o));
}

static bool is_nothing(const json_t *v)
{
	return !v || (json_is_string(v) && json_string_length(v) == 0) || (json_is_array(v) && json_array_size(v) == 0);
}

static bool is_several(const json_t *v) { return json_is_array(v) && json_array_size(v) != 1; }

static bool answer(struct exchange *x, const char *usual, const char *other, bool single)
{
	struct ollama_request q;
	struct prompts p = { .max = PROMPTS_TEXTS_MAX };
	bool ok = ollama_read(&q, x, REQUEST_OLLAMA_EMBED) && model_embeds(q.model, &x->refusal) &&
	          model_pools(q.model, &x->refusal);
	const char *name = ok && !field_value(q.body, usual) ? other : usual;
	const json_t *v = ok ? field_value(q.body, name) : NULL;

	if (ok && single && is_several(v))
		ok = refuse(&x->refusal, 400, name,
		            "%s has several texts, and there is one vector; /api/embed has more", name);
	if (ok && is_nothing(v))
		ok = say_nothing(x, &q, single);
	else if (ok)
		ok = read_truncate(&p, &q, &x->refusal) && prompts_read(&p, name, v, q.model->model, &x->refusal) &&
		     begin(x, &q, &p, single);
	prompts_free(&p);
	ollama_request_free(&q);
	return ok;
}

bool answer_ollama_embed(struct exchange *x) { return answer(x, "input", "prompt", false); }

bool answer_ollama_embeddings(struct exchange *x) { return answer(x, "prompt", "input", true); }
