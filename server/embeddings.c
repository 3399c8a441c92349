/* server/embeddings.c - /v1/embeddings: a vector for each text. */
#include <stdlib.h>
#include <string.h>

#include "server/endpoints.h"
#include "server/fields.h"
#include "server/generate.h"
#include "server/json_write.h"
#include "server/openai.h"
#include "server/prompts.h"
#include "server/request_fields.h"
#include "server/server.h"

struct embeddings_reply {
	struct reply base;
	const struct served *model;
	bool base64;
	uint64_t tokens;
	json_t **vector; /* n; NULL: not there yet */
	unsigned n;
};

/* The bytes of the floats, the lowest first. */
static json_t *base64(const char *p, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	struct bytes b = { 0 };

	for (size_t i = 0; i < n; i += 3) {
		uint32_t left = n - i < 3 ? (uint32_t)(n - i) : 3, bits = 0;
		char four[4];
		for (uint32_t k = 0; k < 3; k++)
			bits = bits << 8 | (k < left ? (unsigned char)p[i + k] : 0);
		for (uint32_t k = 0; k < 4; k++)
			four[k] = k <= left ? digits[bits >> (18 - 6 * k) & 63] : '=';
		bytes_add(&b, four, 4);
	}
	json_t *o = b.lost ? NULL : json_text(b.n ? b.p : "", b.n);
	bytes_free(&b);
	return o;
}

static json_t *numbers(const char *p, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i + sizeof(float) <= n; i += sizeof(float)) {
		float value;
		memcpy(&value, p + i, sizeof value);
		json_add(list, json_number((double)value));
	}
	return list;
}

static void take(struct reply *r, const struct record *record, const jit_logprob *top, const char *text)
{
	struct embeddings_reply *o = (struct embeddings_reply *)(void *)r;
	(void)top;

	if (record->kind == RECORD_TOKEN)
		o->vector[record->choice] = o->base64 ? base64(text, record->n_text) : numbers(text, record->n_text);
	else if (record->kind == RECORD_ENDED)
		o->tokens += record->numbers.prompt;
}

static void end(struct reply *r)
{
	struct embeddings_reply *o = (struct embeddings_reply *)(void *)r;
	json_t *j = json_object(), *data = json_array(), *usage = json_object();

	for (unsigned i = 0; i < o->n; i++) {
		json_t *one = json_object();
		json_put(one, "object", json_string("embedding"));
		json_put(one, "index", json_integer(i));
		json_put(one, "embedding", o->vector[i]);
		o->vector[i] = NULL;
		json_add(data, one);
	}
	json_put(usage, "prompt_tokens", json_integer((json_int_t)o->tokens));
	json_put(usage, "total_tokens", json_integer((json_int_t)o->tokens));
	json_put(j, "object", json_string("list"));
	json_put(j, "model", json_text(o->model->name, strlen(o->model->name)));
	json_put(j, "data", data);
	json_put(j, "usage", usage);
	bytes_take(&r->out, json_write(j));
}

static void fail(struct reply *r, const struct refusal *why) { bytes_take(&r->out, refusal_json(why)); }

static void close_reply(struct reply *r)
{
	struct embeddings_reply *o = (struct embeddings_reply *)(void *)r;

	for (unsigned i = 0; o->vector && i < o->n; i++)
		json_decref(o->vector[i]);
	free(o->vector);
	free(o);
}

static const struct reply_kind embeddings_kind = { take, end, fail, close_reply };

/* ---- the request */

static bool read_fields(struct embeddings_reply *o, const json_t *body, struct refusal *r)
{
	const char *format = "float";
	int64_t size = o->model->info.hidden;

	if (!field_text(body, "encoding_format", &format, r) ||
	    !field_integer(body, "dimensions", 1, INT32_MAX, &size, r))
		return false;
	if (size != o->model->info.hidden)
		return refuse(r, 400, "dimensions", "dimensions is %lld, and this model's embeddings have %d",
		              (long long)size, o->model->info.hidden);
	o->base64 = strcmp(format, "base64") == 0;
	return o->base64 || strcmp(format, "float") == 0 ||
	       refuse(r, 400, "encoding_format", "encoding_format is %.60s, expected float or base64", format);
}

static bool embeds(const struct served *m, struct refusal *r)
{
	return m->pooling != JIT_POOL_RANK ||
	       refuse(r, 501, "model",
	              "%.100s ranks texts (/v1/rerank), and its files name no way to make a vector of one; --pooling "
	              "does.",
	              m->name);
}

static struct embeddings_reply *open_reply(const struct served *m, unsigned n)
{
	struct embeddings_reply *o = calloc(1, sizeof *o);

	if (!o)
		return NULL;
	o->base.kind = &embeddings_kind;
	o->model = m;
	o->n = n;
	o->vector = calloc(n, sizeof *o->vector);
	if (o->vector)
		return o;
	reply_close(&o->base);
	return NULL;
}

static bool begin(struct exchange *x, const json_t *body, const struct served *m, struct prompts *p)
{
	struct embeddings_reply *o = open_reply(m, (unsigned)p->n);
	struct task *tasks[PROMPTS_MOST] = { 0 };
	bool ok = o && (read_fields(o, body, &x->refusal));

	for (size_t i = 0; ok && i < p->n; i++) {
		ok = (tasks[i] = task_open(m)) != NULL;
		if (!ok)
			break;
		tasks[i]->embeds = true;
		tasks[i]->pooling = m->pooling;
		tasks[i]->first = (unsigned)i;
		tasks[i]->ids = p->list[i].ids;
		tasks[i]->n_ids = p->list[i].n;
		p->list[i].ids = NULL;
	}
	if (!ok)
		refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	if (ok)
		ok = generate(x, &o->base, m, tasks, p->n);
	else
		reply_close(o ? &o->base : NULL);
	for (size_t i = 0; i < p->n; i++)
		task_release(tasks[i]);
	return ok;
}

bool answer_embeddings(struct exchange *x)
{
	json_t *body = request_read(x->body.p, x->body.n, REQUEST_EMBED, &x->refusal);
	const char *name = NULL;
	struct prompts p = { 0 };

	if (!body)
		return false;
	const struct served *m = field_text(body, "model", &name, &x->refusal) ? exchange_model(x, name) : NULL;
	bool ok = m && embeds(m, &x->refusal) &&
	          prompts_read(&p, "input", field_value(body, "input"), m->model, &x->refusal) && begin(x, body, m, &p);
	prompts_free(&p);
	json_decref(body);
	return ok;
}
