/* server/completions/rerank.c - /v1/rerank: how well texts answer a question, by a model that was trained for it
 * (ranking.h).
 *
 * The score is that of the model's classifier, or the probability of "yes" of two answers behind the prompt. A model
 * says by its files or by its name that it was trained for this: with another one the numbers would look right and mean
 * nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/api/generate.h"
#include "server/completions/openai.h"
#include "server/api/prompt_tasks.h"
#include "server/completions/ranking.h"
#include "server/http/server.h"

struct rerank_reply {
	struct reply base;
	const struct served *model;
	json_t *documents; /* texts */
	bool returns;      /* the documents, too */
	bool texts;        /* asked with "texts": the answer is a list, as text-embeddings-inference gives it */
	bool pairs;        /* asked for the scores of pairs, as vLLM gives them */
	json_t *queries;   /* of pairs: texts, one or as many as documents */
	int64_t max;       /* results */
	uint64_t tokens;
	struct rank {
		unsigned index;
		double score;
	} * rank;
	unsigned n;
};

static void take(struct reply *r, const struct answer_event *event, const jit_logprob *top, const char *text)
{
	struct rerank_reply *o = (struct rerank_reply *)(void *)r;
	(void)top;

	if (event->kind == EVENT_TOKEN && event->n_text == sizeof(double))
		memcpy(&o->rank[event->choice].score, text, sizeof(double));
	else if (event->kind == EVENT_ENDED)
		o->tokens += event->numbers.prompt;
}

/* The highest first; of equal ones in the order of the request. */
static int by_score(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static json_t *result(const struct rerank_reply *o, const struct rank *k)
{
	json_t *one = json_object(), *text = json_array_get(o->documents, k->index), *document;

	json_put(one, "index", json_integer(k->index));
	json_put(one, o->texts ? "score" : "relevance_score", json_number(k->score));
	if (o->returns && o->texts) {
		json_put(one, "text", json_incref(text));
	} else if (o->returns) {
		document = json_object();
		json_put(document, "text", json_incref(text));
		json_put(one, "document", document);
	}
	return one;
}

/* In the order of the request. */
static void end_pairs(struct rerank_reply *o)
{
	json_t *j = json_object(), *data = json_array(), *usage = json_object();

	for (unsigned i = 0; i < o->n; i++) {
		json_t *one = json_object();
		json_put(one, "index", json_integer(i));
		json_put(one, "object", json_string("score"));
		json_put(one, "score", json_number(o->rank[i].score));
		json_add(data, one);
	}
	json_put(usage, "prompt_tokens", json_integer((json_int_t)o->tokens));
	json_put(usage, "total_tokens", json_integer((json_int_t)o->tokens));
	json_put(j, "object", json_string("list"));
	json_put(j, "model", json_text(o->model->name, strlen(o->model->name)));
	json_put(j, "data", data);
	json_put(j, "usage", usage);
	bytes_take(&o->base.out, json_write(j));
}

static void end(struct reply *r)
{
	struct rerank_reply *o = (struct rerank_reply *)(void *)r;

	if (o->pairs) {
		end_pairs(o);
		return;
	}
	json_t *j = json_object(), *results = json_array(), *usage = json_object();

	qsort(o->rank, o->n, sizeof *o->rank, by_score);
	for (unsigned i = 0; i < o->n && (int64_t)i < o->max; i++)
		json_add(results, result(o, &o->rank[i]));
	json_put(usage, "prompt_tokens", json_integer((json_int_t)o->tokens));
	json_put(usage, "total_tokens", json_integer((json_int_t)o->tokens));
	json_put(j, "object", json_string("list"));
	json_put(j, "model", json_text(o->model->name, strlen(o->model->name)));
	json_put(j, "usage", usage);
	json_put(j, "results", results);
	if (o->texts) {
		json_incref(results);
		json_decref(j);
		j = results;
	}
	bytes_take(&r->out, json_write(j));
}

static void fail(struct reply *r, const struct refusal *why) { bytes_take(&r->out, refusal_json(why)); }

static void close_reply(struct reply *r)
{
	struct rerank_reply *o = (struct rerank_reply *)(void *)r;

	json_decref(o->documents);
	json_decref(o->queries);
	free(o->rank);
	free(o);
}

static const struct reply_kind rerank_kind = { take, end, fail, close_reply };

/* ---- the request */

/* Texts, or objects that have one. NULL: refused. */
static json_t *read_documents(const json_t *body, bool *texts, struct refusal *r)
{
	const char *name = field_value(body, "documents") ? "documents" : "texts";
	json_t *list = field_array(body, name, r), *all = json_array(), *one;
	size_t i;

	*texts = strcmp(name, "texts") == 0;
	if (!r->status && json_array_size(list) == 0)
		refuse(r, 400, "documents", "documents is missing or empty, expected an array of texts");
	if (json_array_size(list) > PROMPTS_TEXTS_MAX)
		refuse(r, 400, name, "%s has more than %d texts", name, PROMPTS_TEXTS_MAX);
	json_array_foreach(list, i, one)
	{
		json_t *text = json_is_object(one) ? json_object_get(one, "text") : one;
		if (!json_is_string(text) || !json_is_text(text))
			refuse(r, 400, name, "%s[%zu] is no text", name, i);
		else
			json_add(all, json_incref(text));
	}
	if (!r->status)
		return all;
	json_decref(all);
	return NULL;
}

static bool read_fields(struct rerank_reply *o, const json_t *body, struct refusal *r)
{
	const char *name = o->texts ? "return_text" : "return_documents";

	o->max = o->n;
	return field_integer(body, "top_n", 1, INT32_MAX, &o->max, r) && field_flag(body, name, &o->returns, r);
}

/* The prompt of each document. */
static bool add_texts(struct rerank_reply *o, struct task *t, const json_t *body, struct refusal *r)
{
	const int context = batcher_context(o->model->batcher); /* a long query is read once, not once for each */
	struct ranking_texts pair = { 0 };
	struct ranking ranking;
	bool ok = field_text(body, "query", &pair.query, r) && field_text(body, "instruction", &pair.instruction, r) &&
	          (o->pairs || pair.query || refuse(r, 400, "query", "query is missing")) &&
	          ranking_of(&ranking, o->model, r);

	for (size_t i = 0; ok && i < o->n; i++) {
		if (o->pairs)
			pair.query =
				json_string_value(json_array_get(o->queries, json_array_size(o->queries) > 1 ? i : 0));
		pair.document = json_string_value(json_array_get(o->documents, i));
		o->rank[i].index = (unsigned)i;
		int32_t *types = NULL;
		ok = ranking_prompt(&ranking, o->model->model, &pair, t, &types, r) &&
		     (t->n_ids <= (size_t)context || refuse_tokens(r, t->n_ids, context, "--context"));
		t->texts[i] = (struct task_text){ t->ids, t->n_ids, types };
		t->ids = NULL;
		t->n_ids = 0;
	}
	if (!ok)
		return false;
	t->embeds = t->ranks = true;
	t->pooling = ranking.classifier ? JIT_POOL_RANK : JIT_POOL_NONE;
	memcpy(t->answer, ranking.answer, sizeof ranking.answer);
	return true;
}

static bool begin(struct exchange *x, const json_t *body, const struct served *m, json_t *documents, json_t *queries,
                  bool texts)
{
	struct rerank_reply *o = calloc(1, sizeof *o);
	struct task *t = task_open(m);
	size_t n = json_array_size(documents);

	if (!o || !t || !task_set_texts(t, n) || !(o->rank = calloc(n, sizeof *o->rank))) {
		free(o);
		task_release(t);
		json_decref(documents);
		json_decref(queries);
		return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	}
	*o = (struct rerank_reply){
		.base.kind = &rerank_kind,
		.model = m,
		.documents = documents,
		.texts = texts,
		.pairs = queries != NULL,
		.queries = queries,
		.rank = o->rank,
		.n = (unsigned)n
	};
	bool ok = read_fields(o, body, &x->refusal) && add_texts(o, t, body, &x->refusal);
	if (ok)
		ok = generate(x, &o->base, m, &t, 1);
	else
		reply_close(&o->base);
	task_release(t);
	return ok;
}

static bool run_rerank(struct exchange *x, json_t *body, const struct served *m)
{
	bool texts = false;
	json_t *documents = read_documents(body, &texts, &x->refusal);

	return documents && begin(x, body, m, documents, NULL, texts);
}

bool answer_rerank(struct exchange *x) { return request_run(x, REQUEST_RANK, run_rerank); }

/* A text, or an array of texts that is not empty. NULL: refused. */
static json_t *read_texts(const json_t *body, const char *name, struct refusal *r)
{
	json_t *v = field_value(body, name), *list = json_array(), *one;
	size_t i;

	if (json_is_string(v))
		json_add(list, json_incref(v));
	else if (!json_is_array(v) || json_array_size(v) == 0)
		refuse(r, 400, name, "%s is %s, expected a text or an array of texts", name,
		       !v                 ? "missing"
		       : json_is_array(v) ? "empty"
		                          : json_kind(v));
	json_array_foreach(v, i, one)
	{
		if (json_is_string(one) && json_is_text(one))
			json_add(list, json_incref(one));
		else
			refuse(r, 400, name, "%s[%zu] is no text", name, i);
	}
	if (json_array_size(list) > PROMPTS_TEXTS_MAX)
		refuse(r, 400, name, "%s has more than %d texts", name, PROMPTS_TEXTS_MAX);
	if (!r->status)
		return list;
	json_decref(list);
	return NULL;
}

static bool run_score(struct exchange *x, json_t *body, const struct served *m)
{
	json_t *one = read_texts(body, "text_1", &x->refusal), *other = NULL;
	const size_t n = json_array_size(one);
	bool ok = false;

	if (one)
		other = read_texts(body, "text_2", &x->refusal);
	if (other && n != 1 && n != json_array_size(other))
		refuse(&x->refusal, 400, "text_1", "text_1 has %zu texts and text_2 %zu, expected one, or as many", n,
		       json_array_size(other));
	else if (other)
		ok = begin(x, body, m, json_incref(other), json_incref(one), false);
	json_decref(one);
	json_decref(other);
	return ok;
}

bool answer_score(struct exchange *x) { return request_run(x, REQUEST_SCORE, run_score); }
