/* server/engine/choice_embed.c - embeddings, ranks and scores: prompts that are computed in parts between which the
 * others go on. Only behind a score something is generated, in another session.
 *
 * A text's bits do not depend on its parts: tokens are appended to one session, and means are summed in the order that
 * jitrun.h states.
 */
#include <math.h>
#include <stdlib.h>

#include "base/math_host.h"
#include "runtime/host/system.h"
#include "runtime/session/session.h"
#include "server/engine/choice.h"

enum { PART_FIRST = 64, PART_MIN = 8 };

/* The next one is to take so long. */
static void adapt(struct choice *c, size_t n, double took, double seconds)
{
	double times = took > 0 ? seconds / took : 2;
	double part = (double)n * (times > 2 ? 2 : times);

	if (n == c->part)
		c->part = part < PART_MIN ? PART_MIN : (size_t)part;
}

static struct task_text text_of(const struct choice *c) { return task_text(c->task, c->text); }

/* What the text is, by its number. */
static void put(struct choice *c, const void *bytes, size_t n)
{
	const struct answer_event r = {
		.kind = EVENT_TOKEN, .choice = c->number + (unsigned)c->text, .id = -1, .n_text = (uint32_t)n
	};

	stream_put(c->task->stream, &r, NULL, bytes);
}

static bool no_memory(jit_error *err)
{
	*err = (jit_error){ .code = JIT_ERROR_MEMORY, .message = "There is no memory for this request." };
	return false;
}

static bool put_mean(struct choice *c, const jit_model *model, size_t width, jit_error *err)
{
	float *out = calloc(width, sizeof *out);
	const bool ok = out ? session_mean(model, c->sum, text_of(c).n, out, err) == JIT_OK : no_memory(err);

	if (ok)
		put(c, out, width * sizeof *out);
	free(out);
	return ok;
}

static bool add_rows(struct choice *c, jit_session *alone, const jit_model *model, const jit_model_info *info, size_t n,
                     jit_error *err)
{
	const size_t hidden = (size_t)info->hidden;
	const jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_NONE);
	float *rows = malloc(n * hidden * sizeof *rows);

	if (!c->sum)
		c->sum = calloc(hidden, sizeof *c->sum);
	bool ok = rows && c->sum;
	if (!ok)
		no_memory(err);
	else
		ok = jit_session_embed(alone, text_of(c).ids + c->done, n, &o, rows, n * hidden, err) == JIT_OK;
	for (size_t k = 0; ok && k < n; k++)
		for (size_t i = 0; i < hidden; i++)
			c->sum[i] += (double)rows[k * hidden + i];
	if (ok && c->done + n == text_of(c).n)
		ok = put_mean(c, model, (size_t)info->embedding, err);
	free(rows);
	return ok;
}

/* As they are, in their order. */
static bool token_rows(struct choice *c, jit_session *alone, size_t n, size_t hidden, jit_error *err)
{
	const jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_NONE);
	float *rows = malloc(n * hidden * sizeof *rows);
	bool ok = rows ? jit_session_embed(alone, text_of(c).ids + c->done, n, &o, rows, n * hidden, err) == JIT_OK
	               : no_memory(err);

	if (ok)
		put(c, rows, n * hidden * sizeof *rows);
	free(rows);
	return ok;
}

static bool last_row(struct choice *c, jit_session *alone, size_t n, size_t width, jit_error *err)
{
	const jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_LAST, .normalise = 1);
	float *row = calloc(width, sizeof *row);
	bool ok = row ? jit_session_embed(alone, text_of(c).ids + c->done, n, &o, row, width, err) == JIT_OK
	              : no_memory(err);

	if (ok)
		put(c, row, width * sizeof *row);
	free(row);
	return ok;
}

/* The first token sees itself alone: its row is that of the whole text. */
static bool first_row(struct choice *c, jit_session *alone, size_t width, jit_error *err)
{
	const jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_CLS, .normalise = 1);
	float *row = c->done ? NULL : calloc(width, sizeof *row);

	if (c->done)
		return true;
	bool ok = row ? jit_session_embed(alone, text_of(c).ids, 1, &o, row, width, err) == JIT_OK : no_memory(err);
	if (ok)
		put(c, row, width * sizeof *row);
	free(row);
	return ok;
}

static bool classify(struct choice *c, jit_session *alone, size_t n, jit_error *err)
{
	const jit_embedding_options o = JIT_EMBEDDING_OPTIONS(.pooling = JIT_POOL_RANK);
	float score = 0;

	if (jit_session_embed(alone, text_of(c).ids + c->done, n, &o, &score, 1, err) != JIT_OK)
		return false;
	put(c, &(double){ (double)score }, sizeof(double));
	return true;
}

/* Of both tokens the first one's probability. */
static bool rank(struct choice *c, jit_session *alone, size_t n, jit_error *err)
{
	if (c->task->pooling == JIT_POOL_RANK)
		return classify(c, alone, n, err);
	const int32_t *answer = c->task->answer;
	const float *logit = jit_session_feed(alone, text_of(c).ids + c->done, n, err) == JIT_OK
	                             ? jit_session_logits(alone, err)
	                             : NULL;

	if (!logit)
		return false;
	const double score = 1 / (1 + math_host_exp((double)logit[answer[1]] - (double)logit[answer[0]]));
	put(c, &score, sizeof score);
	return true;
}

/* How likely each token of the part is, and which were likelier. */
static bool score(struct choice *c, jit_session *alone, size_t n, jit_error *err)
{
	const struct task *t = c->task;
	const size_t n_top = (size_t)(t->prompt_top > t->logprobs ? t->prompt_top : t->logprobs);
	float *logprob = malloc(n * sizeof *logprob);
	jit_logprob *top = calloc(n * n_top + 1, sizeof *top);
	const int32_t *ids = text_of(c).ids + c->done;
	bool ok =
		logprob && top ? session_score_top(alone, ids, n, logprob, top, n_top, err) == JIT_OK : no_memory(err);

	for (size_t i = 0; ok && i < n; i++) {
		const bool first = c->done + i == 0;
		const struct answer_event r = { .kind = EVENT_SCORED,
			                        .choice = c->number,
			                        .id = ids[i],
			                        .logprob = first ? NAN : logprob[i],
			                        .n_top = first ? 0 : (uint32_t)n_top };
		stream_put(c->task->stream, &r, top + i * n_top, NULL);
	}
	free(logprob);
	free(top);
	return ok;
}

static bool compute(struct choice *c, jit_session *alone, const jit_model *model, size_t n, jit_error *err)
{
	const struct task *t = c->task;
	const bool last = c->done + n == text_of(c).n;
	jit_model_info info = JIT_MODEL_INFO();

	if (jit_model_get_info(model, &info, err) != JIT_OK)
		return false;
	if (t->scores)
		return score(c, alone, n, err);
	if (!t->ranks && t->pooling == JIT_POOL_MEAN)
		return add_rows(c, alone, model, &info, n, err);
	if (!t->ranks && t->pooling == JIT_POOL_NONE)
		return token_rows(c, alone, n, (size_t)info.hidden, err);
	if (!t->ranks && t->pooling == JIT_POOL_CLS)
		return first_row(c, alone, (size_t)info.embedding, err);
	if (!last)
		return jit_session_feed(alone, text_of(c).ids + c->done, n, err) == JIT_OK;
	return t->ranks ? rank(c, alone, n, err) : last_row(c, alone, n, (size_t)info.embedding, err);
}

/* Tokens that the session has of the text before, and need not compute again: documents of one question begin alike.
 * Means and scores of tokens need all rows. */
static size_t shared(const struct choice *c, const jit_session *alone)
{
	const struct task *t = c->task;
	const int32_t *ids = jit_session_ids(alone);
	const size_t have = jit_session_length(alone), n = text_of(c).n;
	size_t same = 0;

	if (t->scores || (!t->ranks && t->pooling != JIT_POOL_LAST))
		return 0;
	while (same < have && same + 1 < n && ids[same] == text_of(c).ids[same])
		same++;
	return same;
}

/* What the session has of the text before is of no use with others. */
static bool set_adapters(const struct choice *c, jit_session *alone, jit_error *err)
{
	const struct used_adapters *u = &c->task->adapters;
	const struct task_text t = text_of(c);

	return used_adapters_set(u, alone, t.ids, t.n, NULL) ||
	       (jit_session_rewind(alone, 0, err) == JIT_OK && used_adapters_set(u, alone, t.ids, t.n, err));
}

static bool begin(struct choice *c, jit_session *alone, jit_error *err)
{
	if (c->text == 0) {
		c->begun = system_seconds();
		c->part = PART_FIRST;
		for (size_t i = 0; i < task_texts(c->task); i++)
			c->numbers.prompt += task_text(c->task, i).n;
	}
	free(c->sum);
	c->sum = NULL;
	if (!set_adapters(c, alone, err))
		return false;
	c->done = shared(c, alone);
	c->numbers.reused += c->done;
	return jit_session_rewind(alone, c->done, err) == JIT_OK;
}

/* A text is computed. */
static void go_on(struct choice *c)
{
	c->done = 0;
	c->text++;
	if (c->task->scores)
		c->task->scored = true;
	else if (c->text == task_texts(c->task))
		choice_end(c, END_LENGTH);
}

bool choice_embed(struct choice *c, jit_session *alone, const jit_model *model, double seconds)
{
	jit_error err = { 0 };
	const double start = system_seconds();

	if (c->done == 0 && !begin(c, alone, &err)) {
		choice_fail(c, choice_status(err.code), err.message);
		return false;
	}
	const size_t left = text_of(c).n - c->done, n = left < c->part ? left : c->part;
	if (!compute(c, alone, model, n, &err)) {
		choice_fail(c, choice_status(err.code), err.message);
		return false;
	}
	adapt(c, n, system_seconds() - start, seconds);
	c->done += n;
	if (c->done == text_of(c).n)
		go_on(c);
	return true;
}

bool choice_is_alone(const struct choice *c)
{
	return c->task->embeds || (c->task->scores && !c->task->scored && c->number == c->task->first);
}

bool choice_waits(const struct choice *c) { return c->task->scores && !c->task->scored && c->number != c->task->first; }

struct choice *choices_alone(struct choice *const *running, unsigned n, unsigned *alone)
{
	struct choice *first = NULL, *within = NULL;

	*alone = 0;
	for (unsigned i = 0; i < n; i++) {
		struct choice *c = running[i];
		if (!choice_is_alone(c) || c->outcome != CHOICE_RUNNING)
			continue;
		(*alone)++;
		within = c->done ? c : within;
		first = !first || c->served < first->served ? c : first;
	}
	return within ? within : first;
}
