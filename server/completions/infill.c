/* server/completions/infill.c - texts that are filled in between two others, and /infill. */
#include "server/completions/infill.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_read.h"
#include "base/json_write.h"
#include "include/jitrun_tokens.h"
#include "server/engine/batcher.h"
#include "server/api/endpoints.h"
#include "server/request/fields.h"
#include "server/completions/native.h"
#include "server/api/prompt_tasks.h"
#include "server/http/server.h"

enum { ANSWER = 128 }; /* tokens that are kept for an answer whose request does not say */

struct list {
	int32_t *ids;
	size_t n, capacity;
};

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

bool infill_is_known(const jit_model *model)
{
	struct infill_marks m;

	return infill_find(model, &m);
}

/* ---- the prompt */

static bool add(struct list *l, const int32_t *ids, size_t n, struct refusal *r)
{
	if (!array_grow((void **)&l->ids, &l->capacity, l->n + n + 1, sizeof *l->ids))
		return no_memory(r);
	if (n)
		memcpy(l->ids + l->n, ids, n * sizeof *ids);
	l->n += n;
	return true;
}

static bool add_raw(struct list *l, const jit_model *model, const char *text, bool special, const char *field,
                    struct refusal *r)
{
	jit_error err = { 0 };
	int32_t *ids = NULL;
	size_t n = 0;

	if (!*text)
		return true;
	if (!models_go_on(model, text, special, &ids, &n, &err))
		return refuse_error(r, field, &err);
	bool ok = add(l, ids, n, r);
	free(ids);
	return ok;
}

static bool add_text(struct list *l, const jit_model *model, const char *text, const char *field, struct refusal *r)
{
	return add_raw(l, model, text, false, field, r);
}

/* A file's name where the model has a token for it; else a line that no code has. */
static bool add_head(struct list *l, const jit_model *model, int32_t sep, const char *name, const char *field,
                     struct refusal *r)
{
	if (sep < 0)
		return add_text(l, model, "\n\n--- snippet ---\n\n", field, r);
	return add(l, &sep, 1, r) && add_text(l, model, name, field, r) && add_text(l, model, "\n", field, r);
}

/* Other files, and the head of the one with the gap. */
static bool add_files(struct list *l, const json_t *extra, const jit_model *model, const int32_t mark[INFILL_MARKS],
                      struct refusal *r)
{
	static const char field[] = "input_extra";
	json_t *one;
	size_t i;

	if (mark[INFILL_REPO] >= 0 && json_array_size(extra) &&
	    (!add(l, &mark[INFILL_REPO], 1, r) || !add_text(l, model, "myproject\n", field, r)))
		return false;
	json_array_foreach(extra, i, one)
	{
		const char *text = NULL, *name = "tmp";
		if (!json_is_object(one))
			return refuse(r, 400, field,
			              "input_extra[%zu] is %s, expected an object with filename and text", i,
			              json_kind(one));
		if (!field_text(one, "text", &text, r) || !field_text(one, "filename", &name, r) || !text) {
			struct refusal inner = *r;
			*r = (struct refusal){ 0 };
			return refuse(r, 400, field, "input_extra[%zu]: %s", i,
			              inner.status ? inner.message : "there is no text");
		}
		if (!add_head(l, model, mark[INFILL_SEP], name, field, r) || !add_text(l, model, text, field, r))
			return false;
	}
	return mark[INFILL_SEP] < 0 || json_array_size(extra) == 0 ||
	       add_head(l, model, mark[INFILL_SEP], "filename", field, r);
}

/* Where it does not fit, what is farthest from the gap is left out: three parts of what is before it, and one of what
 * is behind. */
static void cut(struct infill *o, struct list *files)
{
	const size_t marks = 4, fixed = o->n_middle + marks; /* with a token that begins all texts */
	const size_t room = o->max > fixed ? o->max - fixed : 0;
	size_t suffix = o->n_suffix, prefix = o->n_prefix, more;

	if (prefix + suffix > room) {
		const size_t min = room / 4;
		suffix = suffix < min ? suffix : prefix + min < room ? room - prefix : min;
		prefix = prefix < room - suffix ? prefix : room - suffix;
		o->prefix += o->n_prefix - prefix;
		o->n_prefix = prefix;
		o->n_suffix = suffix;
	}
	more = room - prefix - suffix;
	if (files->n > more) {
		memmove(files->ids, files->ids + files->n - more, more * sizeof *files->ids);
		files->n = more;
	}
}

static bool add_part(struct list *l, int32_t mark, const int32_t *ids, size_t n, struct refusal *r)
{
	return add(l, &mark, 1, r) && add(l, ids, n, r);
}

/* What stands around the gap, in the model's order. */
static bool add_parts(struct list *l, const struct infill *o, const struct infill_marks *m, bool suffix_first,
                      struct refusal *r)
{
	const bool first = suffix_first || m->order != INFILL_PREFIX_SUFFIX_MIDDLE;

	if (first && !add_part(l, m->id[INFILL_SUFFIX], o->suffix, o->n_suffix, r))
		return false;
	if (!add_part(l, m->id[INFILL_PREFIX], o->prefix, o->n_prefix, r))
		return false;
	if (!first && !add_part(l, m->id[INFILL_SUFFIX], o->suffix, o->n_suffix, r))
		return false;
	if (m->order != INFILL_SUFFIX_PREFIX && !add(l, &m->id[INFILL_MIDDLE], 1, r))
		return false;
	return add(l, o->middle, o->n_middle, r);
}

bool infill_make(const struct infill *given, const struct served *m, const char *field, int32_t **ids, size_t *n,
                 struct refusal *r)
{
	struct infill o = *given;
	struct list all = { 0 }, files = { 0 }, first = { 0 };
	struct infill_marks marks;
	jit_error err = { 0 };

	if (!infill_find(m->model, &marks))
		return refuse(r, 400, field, "the model cannot fill in text: its vocabulary has no token for %s",
		              marks.id[INFILL_PREFIX] < 0   ? "what stands before a gap"
		              : marks.id[INFILL_SUFFIX] < 0 ? "what stands behind a gap"
		                                            : "what fills a gap");
	bool ok = add_files(&files, o.extra, m->model, marks.id, r);
	if (ok && jit_model_tokenize(m->model, "", 0, 1, 0, &first.ids, &first.n, &err) != JIT_OK)
		ok = refuse_error(r, field, &err);
	if (ok)
		cut(&o, &files);
	/* Of what stands around a text, what begins it. */
	while (first.n && jit_model_is_end(m->model, first.ids[first.n - 1]))
		first.n--;
	ok = ok && add(&all, first.ids, first.n, r) && add(&all, files.ids, files.n, r) &&
	     add_parts(&all, &o, &marks, m->suffix_first, r);
	free(first.ids);
	free(files.ids);
	if (ok) {
		*ids = all.ids;
		*n = all.n;
		return true;
	}
	free(all.ids);
	return false;
}

bool infill_end(struct task *t, const jit_model *model, struct refusal *r)
{
	struct infill_marks m;
	int32_t *all = realloc(t->ends, (t->n_ends + INFILL_MARKS + 1) * sizeof *all);

	if (!all)
		return no_memory(r);
	t->ends = all;
	infill_find(model, &m);
	for (size_t i = 0; i < INFILL_MARKS; i++)
		if (m.id[i] >= 0)
			t->ends[t->n_ends++] = m.id[i];
	return true;
}

/* ---- /infill */

/* A sampler of llama.cpp's that joins tokens which begin alike; without it the likeliest of them is taken. */
static void drop_sampler(json_t *body)
{
	json_t *list = json_object_get(body, "samplers");

	for (size_t i = json_array_size(list); i-- > 0;) {
		const char *name = json_string_value(json_array_get(list, i));
		if (name && strcmp(name, "infill") == 0)
			json_array_remove(list, i);
	}
}

/* The tokens of a field that is a text. One that must not be there is raw, as the prompt of /completion is. */
static bool read_text(struct list *l, const json_t *body, const char *name, bool needed, const jit_model *model,
                      struct refusal *r)
{
	const char *text = NULL;

	if (!field_text(body, name, &text, r))
		return false;
	if (!text && needed)
		return refuse(r, 400, name, "%s is missing, expected a text", name);
	return !text || add_raw(l, model, text, !needed, name, r);
}

static size_t max_of(const json_t *body, int context)
{
	static const char *const names[] = { "n_predict", "max_tokens", "max_completion_tokens", "max_new_tokens" };
	json_int_t answer = ANSWER;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (json_is_integer(field_value(body, names[i])) &&
		    json_integer_value(field_value(body, names[i])) >= 0)
			answer = json_integer_value(field_value(body, names[i]));
	return answer < context / 2 ? (size_t)(context - (int)answer) : (size_t)context / 2;
}

static bool make_prompt(struct prompts *p, const json_t *body, const struct served *m, struct refusal *r)
{
	struct list prefix = { 0 }, suffix = { 0 }, middle = { 0 };
	json_t *extra = field_array(body, "input_extra", r);
	bool ok = r->status == 0 && read_text(&prefix, body, "input_prefix", true, m->model, r) &&
	          read_text(&suffix, body, "input_suffix", true, m->model, r) &&
	          read_text(&middle, body, "prompt", false, m->model, r);
	const struct infill o = { prefix.ids, suffix.ids, middle.ids, prefix.n,
		                  suffix.n,   middle.n,   extra,      max_of(body, batcher_context(m->batcher)) };

	p->list = ok ? calloc(1, sizeof *p->list) : NULL;
	ok = ok && (p->list || no_memory(r)) && infill_make(&o, m, "input_prefix", &p->list[0].ids, &p->list[0].n, r);
	p->n = ok;
	free(prefix.ids);
	free(suffix.ids);
	free(middle.ids);
	return ok;
}

static bool run(struct exchange *x, json_t *body, const struct served *m)
{
	struct prompts p = { 0 };

	if (!infill_is_known(m->model)) { /* before its fields are looked at */
		const struct infill none = { .max = 0 };
		int32_t *ids;
		size_t n;
		infill_make(&none, m, "model", &ids, &n, &x->refusal);
	}
	drop_sampler(body);
	bool ok = !x->refusal.status && make_prompt(&p, body, m, &x->refusal) && native_begin(x, body, m, &p, true);
	prompts_free(&p);
	return ok;
}

bool answer_infill(struct exchange *x) { return request_run(x, REQUEST_INFILL, run); }
