#include "server/completions/ranking.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "include/jitrun_texts.h"

static const char before[] =
	"<|im_start|>system\nJudge whether the Document meets the requirements based on the Query "
	"and the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
	"<|im_start|>user\n",
		  behind[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
		  usual[] = "Given a web search query, retrieve relevant passages that answer the query";

/* ---- which way */

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

static bool by_classifier(struct ranking *r, const struct served *m, struct refusal *why)
{
	r->classifier = true;
	r->prompt = models_template(m->model, "rerank");
	if (!r->prompt || !strstr(r->prompt, "{query}") || !strstr(r->prompt, "{document}"))
		return refuse(why, 501, "model",
		              "%.100s has no chat template \"rerank\" with {query} and {document} in it, which would "
		              "say how it is asked.",
		              m->name);
	r->takes_instruction = strstr(r->prompt, usual) || strstr(r->prompt, "{instruction}");
	return true;
}

bool ranking_of(struct ranking *r, const struct served *m, struct refusal *why)
{
	*r = (struct ranking){ .pairs = m->info.encodes };
	if (m->info.encodes) {
		r->classifier = m->info.pooling == JIT_POOL_RANK;
		return r->classifier ||
		       refuse(why, 501, "model",
		              "%.100s has no classifier that ranks texts; /v1/embeddings gives vectors "
		              "that can be compared.",
		              m->name);
	}
	if (m->info.pooling == JIT_POOL_RANK)
		return by_classifier(r, m, why);
	if (!strcasestr(m->path, "rerank") && !strcasestr(m->name, "rerank"))
		return refuse(why, 501, "model",
		              "%.100s is not a model that ranks texts: of those that run here Qwen3-Reranker does, and "
		              "has rerank in its name; /v1/embeddings gives vectors that can be compared.",
		              m->name);
	return (token_of(m->model, "yes", &r->answer[0]) && token_of(m->model, "no", &r->answer[1])) ||
	       (token_of(m->model, "Yes", &r->answer[0]) && token_of(m->model, "No", &r->answer[1])) ||
	       refuse(why, 501, "model", "%.100s has no tokens \"yes\" and \"no\", by which it could rank texts.",
	              m->name);
}

/* ---- the prompt */

static bool no_memory(struct refusal *why) { return refuse(why, 503, NULL, "There is no memory for this request."); }

static bool append(struct task *t, const jit_model *m, const char *text, bool special, struct refusal *why)
{
	int32_t *ids = NULL, *all = NULL;
	size_t n = 0;
	jit_error err = { 0 };

	if (jit_model_tokenize(m, text, strlen(text), 0, special, &ids, &n, &err) != JIT_OK)
		return refuse_error(why, "documents", &err);
	all = realloc(t->ids, (t->n_ids + n + 1) * sizeof *all);
	if (all) {
		memcpy(all + t->n_ids, ids, n * sizeof *ids);
		t->ids = all;
		t->n_ids += n;
	}
	free(ids);
	return all || no_memory(why);
}

static bool yes_or_no(const jit_model *m, const struct ranking_texts *texts, struct task *t, struct refusal *why)
{
	struct bytes text = { 0 };

	bytes_text(&text, "<Instruct>: ");
	bytes_text(&text, texts->instruction ? texts->instruction : usual);
	bytes_text(&text, "\n<Query>: ");
	bytes_text(&text, texts->query);
	bytes_text(&text, "\n<Document>: ");
	bytes_text(&text, texts->document);
	bytes_add(&text, "", 1);
	bool ok = (!text.lost || no_memory(why)) && append(t, m, before, true, why) &&
	          append(t, m, text.p, false, why) && append(t, m, behind, true, why);
	bytes_free(&text);
	return ok;
}

/* A text of the model's and of the client's, and which byte is whose. */
struct mixed {
	struct bytes text, plain;
};

static void mix(struct mixed *x, const char *p, size_t n, char plain)
{
	bytes_add(&x->text, p, n);
	for (size_t i = 0; i < n; i++)
		bytes_add(&x->plain, &plain, 1);
}

/* The template with the client's texts in their places. */
static void fill_in(struct mixed *x, const struct ranking *r, const struct ranking_texts *texts)
{
	const struct {
		const char *placeholder, *text;
	} fill[] = { { "{query}", texts->query },
		     { "{document}", texts->document },
		     { "{instruction}", texts->instruction ? texts->instruction : usual },
		     { usual, texts->instruction } };

	for (const char *p = r->prompt; *p;) {
		size_t k = 0;
		while (k < 4 && !(fill[k].text && strncmp(p, fill[k].placeholder, strlen(fill[k].placeholder)) == 0))
			k++;
		if (k < 4)
			mix(x, fill[k].text, strlen(fill[k].text), 1);
		else
			mix(x, p, 1, 0);
		p += k < 4 ? strlen(fill[k].placeholder) : 1;
	}
}

static bool by_template(const struct ranking *r, const jit_model *m, const struct ranking_texts *texts, struct task *t,
                        struct refusal *why)
{
	struct mixed x = { 0 };
	jit_error err = { 0 };

	if (texts->instruction && !r->takes_instruction)
		return refuse(why, 400, "instruction",
		              "The model's template for ranking has no place for an instruction");
	fill_in(&x, r, texts);
	bool ok = (!x.text.lost && !x.plain.lost) || no_memory(why);
	ok = ok && (models_encode(m, x.text.p, x.text.n, (const uint8_t *)x.plain.p, &t->ids, &t->n_ids, &err) ||
	            refuse_error(why, "documents", &err));
	bytes_free(&x.text);
	bytes_free(&x.plain);
	return ok;
}

static bool as_pair(const jit_model *m, const struct ranking_texts *texts, struct task *t, int32_t **types,
                    struct refusal *why)
{
	const char *const text[2] = { texts->query, texts->document };
	const size_t n[2] = { strlen(text[0]), strlen(text[1]) };
	jit_error err = { 0 };

	if (texts->instruction)
		return refuse(why, 400, "instruction", "The model ranks pairs of texts, without an instruction");
	return jit_model_tokenize_pair(m, text, n, 0, &t->ids, types, &t->n_ids, &err) == JIT_OK ||
	       refuse_error(why, "documents", &err);
}

bool ranking_prompt(const struct ranking *r, const jit_model *m, const struct ranking_texts *texts, struct task *t,
                    int32_t **types, struct refusal *why)
{
	*types = NULL;
	if (r->pairs)
		return as_pair(m, texts, t, types, why);
	return r->classifier ? by_template(r, m, texts, t, why) : yes_or_no(m, texts, t, why);
}
