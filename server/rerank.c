/* server/rerank.c - /v1/rerank: how well texts answer a question, by a model that was trained to say "yes" or "no".
 *
 * Qwen3-Reranker is a model of texts like others. It is asked whether a document meets a query, by the prompt that its
 * makers say, and the score is the probability of "yes" of the two, behind that prompt. A model says by its name that
 * it was trained for this: with another one the numbers would look right and mean nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/json_read.h"
#include "server/endpoints.h"
#include "server/fields.h"
#include "server/generate.h"
#include "server/json_write.h"
#include "server/openai.h"
#include "server/prompts.h"
#include "server/server.h"

static const char before[] =
	"<|im_start|>system\nJudge whether the Document meets the requirements based on the Query "
	"and the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
	"<|im_start|>user\n",
		  behind[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
		  usual[] = "Given a web search query, retrieve relevant passages that answer the query";

struct rerank_reply {
	struct reply base;
	const struct served *model;
	json_t *documents; /* texts */
	bool returns;      /* the documents, too */
	bool texts;        /* asked with "texts": the answer is a list, as text-embeddings-inference gives it */
	int64_t most;      /* results */
	uint64_t tokens;
	struct rank {
		unsigned index;
		double score;
	} * rank;
	unsigned n;
};

static void take(struct reply *r, const struct record *record, const jit_logprob *top, const char *text)
{
	struct rerank_reply *o = (struct rerank_reply *)(void *)r;
	(void)top;

	if (record->kind == RECORD_TOKEN && record->n_text == sizeof(double))
		memcpy(&o->rank[record->choice].score, text, sizeof(double));
	else if (record->kind == RECORD_ENDED)
		o->tokens += record->numbers.prompt;
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

static void end(struct reply *r)
{
	struct rerank_reply *o = (struct rerank_reply *)(void *)r;
	json_t *j = json_object(), *results = json_array(), *usage = json_object();

	qsort(o->rank, o->n, sizeof *o->rank, by_score);
	for (unsigned i = 0; i < o->n && (int64_t)i < o->most; i++)
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
	if (json_array_size(list) > PROMPTS_MOST)
		refuse(r, 400, name, "%s has more than %d texts", name, PROMPTS_MOST);
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

	o->most = o->n;
	return field_integer(body, "top_n", 1, INT32_MAX, &o->most, r) && field_flag(body, name, &o->returns, r);
}

/* A word that is one token. */
static bool token_of(const jit_model *m, const char *word, int32_t *id)
{
	int32_t *ids = NULL;
	size_t n = 0;
	bool one = jit_model_tokenize(m, word, strlen(word), 0, 0, &ids, &n, NULL) == JIT_OK && n == 1;

	if (one)
		*id = ids[0];
	free(ids);
	return one;
}

static bool ranks(const struct served *m, int32_t answer[2], struct refusal *r)
{
	if (!strcasestr(m->path, "rerank") && !strcasestr(m->name, "rerank"))
		return refuse(r, 501, "model",
		              "%.100s is not a model that ranks texts: of those that run here Qwen3-Reranker does, and "
		              "has rerank in its name; /v1/embeddings gives vectors that can be compared.",
		              m->name);
	return (token_of(m->model, "yes", &answer[0]) && token_of(m->model, "no", &answer[1])) ||
	       (token_of(m->model, "Yes", &answer[0]) && token_of(m->model, "No", &answer[1])) ||
	       refuse(r, 501, "model", "%.100s has no tokens \"yes\" and \"no\", by which it could rank texts.",
	              m->name);
}

static bool append(struct task *t, const jit_model *m, const char *text, bool special, struct refusal *r)
{
	int32_t *ids = NULL, *all = NULL;
	size_t n = 0;
	jit_error err = { 0 };

	if (jit_model_tokenize(m, text, strlen(text), 0, special, &ids, &n, &err) != JIT_OK)
		return refuse(r, 400, "documents", "%s", err.message);
	all = realloc(t->ids, (t->n_ids + n + 1) * sizeof *all);
	if (all) {
		memcpy(all + t->n_ids, ids, n * sizeof *ids);
		t->ids = all;
		t->n_ids += n;
	}
	free(ids);
	return all || refuse(r, 503, NULL, "There is no memory for this request.");
}

/* What the client wrote stays text, whatever it looks like. */
static bool set_prompt(struct task *t, const jit_model *m, const char *const part[3], struct refusal *r)
{
	struct bytes text = { 0 };

	bytes_text(&text, "<Instruct>: ");
	bytes_text(&text, part[0]);
	bytes_text(&text, "\n<Query>: ");
	bytes_text(&text, part[1]);
	bytes_text(&text, "\n<Document>: ");
	bytes_text(&text, part[2]);
	bytes_add(&text, "", 1);
	bool ok = (!text.lost || refuse(r, 503, NULL, "There is no memory for this request.")) &&
	          append(t, m, before, true, r) && append(t, m, text.p, false, r) && append(t, m, behind, true, r);
	bytes_free(&text);
	return ok;
}

static bool begin(struct exchange *x, const json_t *body, const struct served *m, json_t *documents, bool texts)
{
	const char *part[3] = { usual, NULL, NULL };
	struct rerank_reply *o = calloc(1, sizeof *o);
	struct task *tasks[PROMPTS_MOST] = { 0 };
	size_t n = json_array_size(documents);
	int32_t answer[2];

	if (!o || !(o->rank = calloc(n, sizeof *o->rank))) {
		free(o);
		json_decref(documents);
		return refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
	}
	*o = (struct rerank_reply){ .base.kind = &rerank_kind,
		                    .model = m,
		                    .documents = documents,
		                    .texts = texts,
		                    .rank = o->rank,
		                    .n = (unsigned)n };
	bool ok = read_fields(o, body, &x->refusal) && field_text(body, "query", &part[1], &x->refusal) &&
	          field_text(body, "instruction", &part[0], &x->refusal) &&
	          (part[1] || refuse(&x->refusal, 400, "query", "query is missing")) && ranks(m, answer, &x->refusal);
	for (size_t i = 0; ok && i < n; i++) {
		part[2] = json_string_value(json_array_get(documents, i));
		o->rank[i].index = (unsigned)i;
		ok = (tasks[i] = task_open(m)) ||
		     refuse(&x->refusal, 503, NULL, "There is no memory for this request.");
		if (!ok)
			break;
		tasks[i]->embeds = tasks[i]->ranks = true;
		tasks[i]->first = (unsigned)i;
		memcpy(tasks[i]->answer, answer, sizeof answer);
		ok = set_prompt(tasks[i], m->model, part, &x->refusal);
	}
	if (ok)
		ok = generate(x, &o->base, m, tasks, n);
	else
		reply_close(&o->base);
	for (size_t i = 0; i < n; i++)
		task_release(tasks[i]);
	return ok;
}

bool answer_rerank(struct exchange *x)
{
	json_t *body = fields_read(x->body.p, x->body.n, &x->refusal);
	const char *name = NULL;
	bool texts = false;

	if (!body)
		return false;
	const struct served *m = field_text(body, "model", &name, &x->refusal) ? exchange_model(x, name) : NULL;
	json_t *documents = m ? read_documents(body, &texts, &x->refusal) : NULL;
	bool ok = documents && begin(x, body, m, documents, texts);
	json_decref(body);
	return ok;
}
