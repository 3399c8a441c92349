/* vision/prompt.c - prompts in which tokens and pictures' features alternate. See prompt.h. */
#include "vision/prompt.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "include/jitrun_batch.h"
#include "loaders/tokenizer/tokenizer.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "runtime/session/session_pictures.h"

static bool no_memory(struct error *err) { return error_set(err, ERROR_MEMORY, "there is no memory for a prompt"); }

/* ---- runs of features */

struct assembly {
	struct jit_prompt *out;
	uint32_t number;         /* of the picture whose segments come next */
	uint32_t segment, taken; /* its next segment, and features of that which have a token */
};

/* The segment whose features come next; NULL: there are no more. */
static const struct prompt_segment *next_segment(struct assembly *a)
{
	for (; a->number < a->out->images; a->number++, a->segment = 0)
		for (; a->segment < a->out->image[a->number]->image.n_segments; a->segment++) {
			const struct prompt_segment *p = &a->out->image[a->number]->image.segments[a->segment];
			if (p->n > a->taken)
				return p;
			a->taken = 0;
		}
	return NULL;
}

/* Tokens from `first` on, `n` of which are image tokens. */
static bool add_runs(struct assembly *a, size_t first, size_t n, struct error *err)
{
	struct jit_prompt *out = a->out;
	const struct prompt_segment *p;

	for (size_t take; n; first += take, n -= take) {
		if (!(p = next_segment(a)))
			return error_set(err, ERROR_ARGUMENT,
			                 "the prompt has more image tokens than its %zu pictures have features",
			                 out->images);
		take = p->n - a->taken < n ? p->n - a->taken : n;
		if (!array_grow((void **)&out->run, &out->run_room, out->runs + 1, sizeof *out->run))
			return no_memory(err);
		out->run[out->runs++] = (struct prompt_run){ first, take, p->first + a->taken, a->number, p->part };
		a->taken += (uint32_t)take;
	}
	return true;
}

static bool find_runs(const struct jit_image_encoder *s, struct jit_prompt *out, struct error *err)
{
	const int32_t token = s->image_token;
	struct assembly a = { .out = out };

	for (size_t i = 0, end; i < out->n; i = end + !(end > i)) {
		for (end = i; end < out->n && out->ids[end] == token; end++)
			;
		if (end > i && !add_runs(&a, i, end - i, err))
			return false;
	}
	return !next_segment(&a) ||
	       error_set(err, ERROR_ARGUMENT, "the prompt has fewer image tokens than its %zu pictures have features",
	                 out->images);
}

static bool hold_images(struct jit_prompt *out, struct jit_image *const *images, size_t n, struct error *err)
{
	*out = (struct jit_prompt){ .image = malloc((n + 1) * sizeof(struct jit_image *)) };
	if (!out->image)
		return no_memory(err);
	for (; out->images < n; out->images++)
		out->image[out->images] = image_hold(images[out->images]);
	return true;
}

void prompt_close(struct jit_prompt *p)
{
	while (p->images)
		image_release(p->image[--p->images]);
	free(p->image);
	free(p->ids);
	free(p->run);
	free(p->text);
	*p = (struct jit_prompt){ 0 };
}

bool prompt_add_ids(struct jit_prompt *p, const int32_t *ids, size_t n, struct error *err)
{
	int32_t *more = realloc(p->ids, (p->n + n + 1) * sizeof *more);

	if (!more)
		return no_memory(err);
	p->ids = more;
	for (size_t i = 0; i < n; i++)
		p->ids[p->n++] = ids[i];
	return true;
}

bool prompt_of_ids(struct jit_prompt *out, const struct jit_image_encoder *s, const int32_t *ids, size_t n,
                   struct jit_image *const *images, size_t n_images, struct error *err)
{
	*out = (struct jit_prompt){ 0 };
	if (s->image_token < 0)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "the model has no tokenizer, so that nobody says which of the ids stand for pictures");
	if (hold_images(out, images, n_images, err) && prompt_add_ids(out, ids, n, err) && find_runs(s, out, err))
		return true;
	prompt_close(out);
	return false;
}

/* ---- texts */

struct reading {
	const struct jit_image_encoder *s;
	const struct prompt_text *t;
	struct jit_prompt *out;
	bool begun;
	size_t used;
};

/* The first segment of a prompt begins it. plain NULL: special says. */
static bool add_text(struct reading *r, const char *text, size_t n, const uint8_t *plain, bool special,
                     struct error *err)
{
	const jit_model *m = r->s->model;
	int32_t *ids = NULL;
	size_t n_ids = 0;
	jit_error e = { 0 };
	bool ok = true;

	if (r->begun) {
		ok = !n || model_go_on_marked(m, text, n, plain, special, &ids, &n_ids, err);
	} else if (plain) {
		ok = model_needs_tokenizer(m, err) &&
		     tokenizer_encode_marked(m->file.tokenizer, text, n, plain, TOKENIZE_SPECIAL | TOKENIZE_BEGIN, &ids,
		                             &n_ids, err);
	} else {
		ok = jit_model_tokenize(m, text, n, 1, special, &ids, &n_ids, &e) == JIT_OK ||
		     error_set(err, ERROR_ARGUMENT, "%s", e.message);
	}
	r->begun = true;
	ok = ok && prompt_add_ids(r->out, ids, n_ids, err);
	free(ids);
	return ok;
}

static bool add_picture(struct reading *r, struct error *err)
{
	const int32_t token = r->s->image_token;
	const struct processed_image *image = &r->out->image[r->used++]->image;

	if (!r->begun && !add_text(r, "", 0, NULL, true, err))
		return false;
	for (uint32_t i = 0; i < image->n_segments; i++) {
		const struct prompt_segment *p = &image->segments[i];
		if (*p->text && !add_text(r, p->text, strlen(p->text), NULL, true, err))
			return false;
		for (uint32_t k = 0; k < p->n; k++)
			if (!prompt_add_ids(r->out, &token, 1, err))
				return false;
	}
	return true;
}

static bool is_plain(const struct prompt_text *t, const char *at, size_t n)
{
	return t->plain && !t->mark && memchr(t->plain + (at - t->text), 1, n);
}

/* Where the next picture stands; the text's end: nowhere. */
static const char *find_mark(const struct reading *r, const char *from)
{
	const char *mark = r->t->mark ? r->t->mark : r->s->processor.placeholder, *end = r->t->text + r->t->n;
	const size_t n = strlen(mark);

	for (const char *at = from; n && (at = memmem(at, (size_t)(end - at), mark, n)); at++)
		if (!is_plain(r->t, at, n))
			return at;
	return end;
}

static bool add_all(struct reading *r, struct error *err)
{
	const struct prompt_text *t = r->t;
	const char *text = t->text, *end = t->text + t->n, *at = find_mark(r, text);
	const size_t n_mark = strlen(t->mark ? t->mark : r->s->processor.placeholder), pictures = r->out->images;

	while (at == end && !t->plain && r->used < pictures)
		if (!add_picture(r, err))
			return false;
	for (; at < end; text = at + n_mark, at = find_mark(r, text)) {
		if (r->used == pictures)
			return error_set(err, ERROR_ARGUMENT, "the prompt has more places for pictures than %zu",
			                 pictures);
		if (at > text && !add_text(r, text, (size_t)(at - text), t->plain ? t->plain + (text - t->text) : NULL,
		                           t->special, err))
			return false;
		if (!add_picture(r, err))
			return false;
	}
	if (r->used < pictures)
		return error_set(err, ERROR_ARGUMENT, "the prompt has %zu places for %zu pictures", r->used, pictures);
	return add_text(r, text, (size_t)(end - text), t->plain ? t->plain + (text - t->text) : NULL, t->special, err);
}

bool prompt_of_text(struct jit_prompt *out, const struct jit_image_encoder *s, const struct prompt_text *text,
                    struct jit_image *const *images, size_t n, struct error *err)
{
	struct reading r = { .s = s, .t = text, .out = out };

	if (hold_images(out, images, n, err) && add_all(&r, err) && find_runs(s, out, err))
		return true;
	prompt_close(out);
	return false;
}

/* ---- sessions */

/* How many of the tokens the session has: of the last one the logits are missing. */
static size_t same_tokens(const jit_session *s, const struct jit_prompt *p)
{
	const int32_t *keys = session_keys(s);
	const size_t n = jit_session_length(s);
	size_t same = 0;

	for (size_t i = 0; same < n && same + 1 < p->n; same++) {
		const struct prompt_run *run;
		while (i < p->runs && same >= p->run[i].first + p->run[i].n)
			i++;
		run = i < p->runs && same >= p->run[i].first ? &p->run[i] : NULL;
		const int32_t key =
			run ? session_picture_key(p->image[run->image]->key + run->part, run->at + (same - run->first))
			    : p->ids[same];
		if (keys[same] != key)
			break;
	}
	return session_pictures_whole(s, same);
}

static int feed_tokens(jit_session *s, const int32_t *ids, size_t n, bool member, jit_error *err)
{
	if (!n)
		return JIT_OK;
	return member ? jit_session_submit(s, ids, n, NULL, err) : jit_session_feed(s, ids, n, err);
}

static int feed_run(jit_session *s, const struct jit_prompt *p, const struct prompt_run *run, size_t skip,
                    jit_error *err)
{
	struct jit_image *image = p->image[run->image];
	struct error e = { 0 };

	if (!image_encode(image, &e))
		return model_report(err, &e);
	return session_feed_image(s, image->part[run->part], run->at + skip, run->n - skip, p->ids[run->first], err);
}

/* What comes behind the first `at` tokens. */
static int feed_from(jit_session *s, const struct jit_prompt *p, size_t at, jit_error *err)
{
	const bool member = session_is_member(s);
	int status = JIT_OK;

	for (size_t i = 0; status == JIT_OK && i <= p->runs; i++) {
		const size_t first = i < p->runs ? p->run[i].first : p->n,
			     end = i < p->runs ? first + p->run[i].n : first;
		if (end < at || (end == at && i < p->runs))
			continue;
		if (first > at)
			status = feed_tokens(s, p->ids + at, first - at, member, err);
		if (status == JIT_OK && i < p->runs)
			status = feed_run(s, p, &p->run[i], at > first ? at - first : 0, err);
		at = end;
	}
	return status;
}

/* All of it at once, for a session of a batch. */
static int submit_all(jit_session *s, const struct jit_prompt *p, size_t *reused, jit_error *err)
{
	struct session_picture *list = malloc((p->runs + 1) * sizeof *list);
	struct error e = { 0 };
	bool ok = list || no_memory(&e);

	for (size_t i = 0; ok && i < p->runs; i++) {
		const struct prompt_run *run = &p->run[i];
		ok = image_encode(p->image[run->image], &e);
		if (ok)
			list[i] = (struct session_picture){ run->first, (uint32_t)run->n, (uint32_t)run->at,
				                            p->image[run->image]->part[run->part] };
	}
	const int status =
		ok ? session_submit_pictures(s, p->ids, p->n, list, p->runs, reused, err) : model_report(err, &e);
	free(list);
	return status;
}

int prompt_feed_session(jit_session *s, const struct jit_prompt *p, size_t *reused, jit_error *err)
{
	*reused = 0;
	if (session_is_member(s) && !jit_session_length(s))
		return submit_all(s, p, reused, err);
	const size_t at = jit_session_length(s) ? same_tokens(s, p) : 0;
	int status = at < jit_session_length(s) ? jit_session_rewind(s, at, err) : JIT_OK;

	if (status == JIT_OK)
		status = feed_from(s, p, at, err);
	*reused = at;
	return status;
}

int prompt_feed_image(jit_session *s, struct jit_image *image, jit_error *err)
{
	const struct jit_image_encoder *seer = image->seer;
	struct jit_prompt p;
	struct error e = { 0 };
	struct reading r = { .s = seer, .out = &p, .begun = jit_session_length(s) > 0 };

	if (!hold_images(&p, &image, 1, &e))
		return model_report(err, &e);
	if (!add_picture(&r, &e) || !find_runs(seer, &p, &e)) {
		prompt_close(&p);
		return model_report(err, &e);
	}
	const int status = feed_from(s, &p, 0, err);
	prompt_close(&p);
	return status;
}
