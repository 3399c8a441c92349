/* server/completions/embeddings.c - /v1/embeddings: a vector for each text; and of a server that pools nothing,
 * /embedding: one for each token, as it is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_write.h"
#include "base/math_host.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/completions/openai.h"
#include "server/api/prompt_tasks.h"
#include "server/http/server.h"

struct embeddings_reply {
	struct reply base;
	const struct served *model;
	bool base64;
	bool native; /* a list, as llama.cpp's server gives it */
	size_t told; /* numbers of a vector that are given */
	uint64_t tokens;
	float *vector;        /* of all texts, one behind the other */
	size_t *first, *have; /* floats of a text: where they begin, n + 1 of them, and how many have come */
	unsigned n;
};

static bool is_of_tokens(const struct served *m) { return m->pooling == JIT_POOL_NONE; }

static size_t width_of(const struct served *m)
{
	return (size_t)(is_of_tokens(m) ? m->info.hidden : m->info.embedding);
}

/* The bytes of the floats, the lowest first. */
static void put_base64(struct bytes *b, const unsigned char *p, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	bytes_text(b, "\"");
	for (size_t i = 0; i < n; i += 3) {
		uint32_t left = n - i < 3 ? (uint32_t)(n - i) : 3, bits = 0;
		char four[4];
		for (uint32_t k = 0; k < 3; k++)
			bits = bits << 8 | (k < left ? p[i + k] : 0);
		for (uint32_t k = 0; k < 4; k++)
			four[k] = k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=';
		bytes_add(b, four, 4);
	}
	bytes_text(b, "\"");
}

/* Nine digits are enough for a float. */
static void put_numbers(struct bytes *b, const float *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes_print(b, isfinite(p[i]) ? "%c%.9g" : "%cnull", i ? ',' : '[', (double)p[i]);
	bytes_text(b, n ? "]" : "[]");
}

static void take(struct reply *r, const struct answer_event *event, const jit_logprob *top, const char *text)
{
	struct embeddings_reply *o = (struct embeddings_reply *)(void *)r;
	(void)top;

	if (event->kind == EVENT_TOKEN) {
		const size_t i = event->choice, room = o->first[i + 1] - o->first[i] - o->have[i],
			     floats = event->n_text / sizeof(float);
		if (floats > room)
			return;
		memcpy(o->vector + o->first[i] + o->have[i], text, floats * sizeof(float));
		o->have[i] += floats;
	} else if (event->kind == EVENT_ENDED) {
		o->tokens += event->numbers.prompt;
	}
}

static void end_native(struct embeddings_reply *o)
{
	const size_t width = width_of(o->model);
	struct bytes *b = &o->base.out;

	bytes_text(b, "[");
	for (unsigned i = 0; i < o->n; i++) {
		bytes_print(b, "%s{\"index\":%u,\"embedding\":[", i ? "," : "", i);
		for (size_t at = o->first[i]; at < o->first[i + 1]; at += width) {
			bytes_text(b, at > o->first[i] ? "," : "");
			put_numbers(b, o->vector + at, o->told);
		}
		bytes_text(b, "]}");
	}
	bytes_text(b, "]");
}

/* Written at once: as a tree of values, thousands of vectors would take ten times as much memory. */
static void end(struct reply *r)
{
	struct embeddings_reply *o = (struct embeddings_reply *)(void *)r;

	for (unsigned i = 0; o->told < width_of(o->model) && i < o->n; i++)
		math_host_normalise(o->vector + o->first[i], o->told);
	if (o->native) {
		end_native(o);
		return;
	}
	char *name = json_write(json_text(o->model->name, strlen(o->model->name)));
	struct bytes *b = &r->out;

	bytes_text(b, "{\"object\":\"list\",\"model\":");
	bytes_take(b, name);
	bytes_text(b, ",\"data\":[");
	for (unsigned i = 0; i < o->n; i++) {
		const float *v = o->vector + o->first[i];
		bytes_print(b, "%s{\"object\":\"embedding\",\"index\":%u,\"embedding\":", i ? "," : "", i);
		if (o->base64)
			put_base64(b, (const unsigned char *)v, o->told * sizeof *v);
		else
			put_numbers(b, v, o->told);
		bytes_text(b, "}");
	}
	bytes_print(b, "],\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu}}", (unsigned long long)o->tokens,
	            (unsigned long long)o->tokens);
}

static void fail(struct reply *r, const struct refusal *why) { bytes_take(&r->out, refusal_json(why)); }

static void close_reply(struct reply *r)
{
	struct embeddings_reply *o = (struct embeddings_reply *)(void *)r;

	free(o->vector);
	free(o->first);
	free(o->have);
	free(o);
}

static const struct reply_kind embeddings_kind = { take, end, fail, close_reply };

/* ---- the request */

static bool read_fields(struct embeddings_reply *o, const json_t *body, struct refusal *r)
{
	const char *format = "float";
	const int64_t width = (int64_t)width_of(o->model);
	int64_t size = width;

	if (!field_text(body, "encoding_format", &format, r) ||
	    !field_integer(body, "dimensions", 1, INT32_MAX, &size, r))
		return false;
	if (size > width)
		return refuse(r, 400, "dimensions", "dimensions is %lld, and this model's embeddings have %lld",
		              (long long)size, (long long)width);
	if (size < width && is_of_tokens(o->model))
		return refuse(r, 400, "dimensions",
		              "dimensions is %lld, and vectors of tokens are given as they are, with %lld numbers",
		              (long long)size, (long long)width);
	o->told = (size_t)size;
	o->native = field_value(body, "content") != NULL || is_of_tokens(o->model);
	o->base64 = strcmp(format, "base64") == 0;
	if (o->native && o->base64)
		return refuse(r, 400, "encoding_format",
		              "encoding_format is base64, which belongs to input of /v1/embeddings");
	return o->base64 || strcmp(format, "float") == 0 ||
	       refuse(r, 400, "encoding_format", "encoding_format is %.60s, expected float or base64", format);
}

static struct embeddings_reply *open_reply(const struct served *m, const struct prompts *p)
{
	struct embeddings_reply *o = calloc(1, sizeof *o);

	if (!o)
		return NULL;
	o->base.kind = &embeddings_kind;
	o->model = m;
	o->n = (unsigned)p->n;
	o->first = calloc(p->n + 1, sizeof *o->first);
	o->have = calloc(p->n + 1, sizeof *o->have);
	for (size_t i = 0; o->first && i < p->n; i++)
		o->first[i + 1] = o->first[i] + (is_of_tokens(m) ? p->list[i].n : 1) * width_of(m);
	o->vector = o->first ? calloc(o->first[p->n] + 1, sizeof *o->vector) : NULL;
	if (o->vector && o->have)
		return o;
	reply_close(&o->base);
	return NULL;
}

static bool begin(struct exchange *x, const json_t *body, const struct served *m, struct prompts *p)
{
	struct embeddings_reply *o = open_reply(m, p);
	struct task *t = o ? prompt_texts(m, p, &x->refusal) : NULL;

	if (!o)
		refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	bool ok = t && read_fields(o, body, &x->refusal);
	if (ok)
		ok = generate(x, &o->base, m, &t, 1);
	else
		reply_close(o ? &o->base : NULL);
	task_release(t);
	return ok;
}

/* usual: the field that the texts are in by the API that is asked, which takes the other one's as well. */
static bool embed(struct exchange *x, const json_t *body, const struct served *m, const char *usual)
{
	const char *field = field_value(body, "content") ? "content" : field_value(body, "input") ? "input" : usual;

	if (field_value(body, "content") && field_value(body, "input"))
		return refuse(&x->refusal, 400, "content", "content and input cannot both be given");
	return model_embeds(m, &x->refusal) && prompts_run(x, body, m, field, PROMPTS_TEXTS_MAX, begin);
}

static bool run_input(struct exchange *x, json_t *body, const struct served *m)
{
	return model_pools(m, &x->refusal) && embed(x, body, m, "input");
}

static bool run_content(struct exchange *x, json_t *body, const struct served *m)
{
	return embed(x, body, m, "content");
}

bool answer_embeddings(struct exchange *x) { return request_run(x, REQUEST_EMBED, run_input); }

bool answer_embedding(struct exchange *x) { return request_run(x, REQUEST_EMBED, run_content); }
