/* runtime/session/session_pictures.c - pictures in a session. See session_pictures.h. */
#include "runtime/session/session_pictures.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "include/jitrun_batch.h"
#include "runtime/plan/rope.h"
#include "runtime/session/session_state.h"

/* ---- pictures */

struct image_features *picture_open(const struct image_features *like, struct error *err)
{
	struct image_features *p = malloc(sizeof *p);

	if (!p) {
		free(like->values);
		error_set(err, ERROR_MEMORY, "there is no memory for a picture");
		return NULL;
	}
	*p = *like;
	atomic_init(&p->holders, 1);
	return p;
}

struct image_features *picture_hold(const struct image_features *p)
{
	struct image_features *own = (struct image_features *)(uintptr_t)p; /* one more holder is no change to others */

	atomic_fetch_add(&own->holders, 1);
	return own;
}

void picture_release(struct image_features *p)
{
	if (!p || atomic_fetch_sub(&p->holders, 1) != 1)
		return;
	free(p->values);
	free(p);
}

/* ---- the session's list */

void session_pictures_rewind(jit_session *s, size_t n)
{
	struct session_pictures *p = &s->pictures;

	while (p->n && p->list[p->n - 1].first >= n)
		picture_release(p->list[--p->n].of);
}

void session_pictures_close(jit_session *s)
{
	session_pictures_rewind(s, 0);
	free(s->pictures.list);
	free(s->pictures.keys);
	s->pictures = (struct session_pictures){ 0 };
}

static const struct session_picture *picture_at(const jit_session *s, size_t position)
{
	for (size_t i = s->pictures.n; i-- > 0;) {
		const struct session_picture *p = &s->pictures.list[i];
		if (position >= p->first)
			return position < p->first + p->n ? p : NULL;
	}
	return NULL;
}

bool session_is_member(const jit_session *s) { return s->member != NULL; }

bool session_shows(const jit_session *s, size_t position) { return picture_at(s, position) != NULL; }

size_t session_pictures_whole(const jit_session *s, size_t n)
{
	const struct session_picture *p = picture_at(s, n);

	return p ? p->first : n;
}

size_t session_pictures_end(const jit_session *s, size_t n)
{
	const struct session_picture *p = picture_at(s, n);

	return p && n > p->first ? p->first + p->n : n;
}

bool session_pictures_due(const jit_session *s, size_t from)
{
	const struct session_picture *last = s->pictures.n ? &s->pictures.list[s->pictures.n - 1] : NULL;

	return last && last->first + last->n > from;
}

uint32_t session_pass_tokens(const jit_session *s, size_t position, uint32_t max)
{
	const struct session_picture *p = picture_at(s, position);
	size_t end = p ? p->first + p->n : position + max;

	for (size_t i = 0; !p && i < s->pictures.n; i++)
		if (s->pictures.list[i].first > position) {
			end = s->pictures.list[i].first;
			break;
		}
	if (p && s->model->file.spec.pictures_whole)
		max = (uint32_t)(end - position);
	return session_adapted_alike(s, position, end - position < max ? (uint32_t)(end - position) : max);
}

bool session_keys_room(jit_session *s, struct error *err)
{
	struct session_pictures *p = &s->pictures;

	return p->keys || (p->keys = malloc(((size_t)s->context + 1) * sizeof *p->keys)) ||
	       error_set(err, ERROR_MEMORY, "there is no memory for the keys of %u tokens", s->context);
}

static bool add_picture(jit_session *s, size_t first, uint32_t n, uint32_t at, const struct image_features *of,
                        struct error *err)
{
	struct session_pictures *p = &s->pictures;

	if (!session_keys_room(s, err))
		return false;
	if (!array_grow((void **)&p->list, &p->room, p->n + 1, sizeof *p->list))
		return error_set(err, ERROR_MEMORY, "there is no memory for a picture");
	p->list[p->n++] = (struct session_picture){ first, n, at, picture_hold(of) };
	return true;
}

bool session_pictures_copy(jit_session *to, const jit_session *from, struct error *err)
{
	for (size_t i = 0; i < from->pictures.n; i++) {
		const struct session_picture *p = &from->pictures.list[i];
		if (!add_picture(to, p->first, p->n, p->at, p->of, err))
			return false;
	}
	return true;
}

bool session_pictures_take(const jit_session *s, size_t n, struct session_picture **list, size_t *count)
{
	*list = malloc((s->pictures.n + 1) * sizeof **list);
	*count = 0;
	for (size_t i = 0; *list && i < s->pictures.n; i++) {
		struct session_picture p = s->pictures.list[i];
		if (p.first >= n)
			break;
		p.n = p.n < n - p.first ? p.n : (uint32_t)(n - p.first);
		picture_hold(p.of);
		(*list)[(*count)++] = p;
	}
	return *list != NULL;
}

/* ---- keys */

int32_t session_picture_key(uint64_t key, uint64_t feature)
{
	uint64_t z = key + (feature + 1) * 0x9E3779B97F4A7C15;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
	z = (z ^ z >> 27) * 0x94D049BB133111EB;
	return (int32_t)((uint32_t)(z >> 32) | UINT32_C(1) << 31); /* no token's */
}

void session_pictures_name(const struct session_picture *p, size_t n, int32_t *ids)
{
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < p[i].n; k++)
			ids[p[i].first + k] = session_picture_key(p[i].of->key, p[i].at + k);
}

const int32_t *session_keys(const jit_session *s)
{
	const struct session_pictures *p = &s->pictures;
	const uint64_t from = s->adapters.from;
	const bool begins = from && from < s->length;

	if (!p->n && !begins)
		return s->ids;
	memcpy(p->keys, s->ids, s->length * sizeof *s->ids);
	session_pictures_name(p->list, p->n, p->keys);
	if (begins)
		p->keys[from] = session_picture_key(s->adapters.set, (uint32_t)p->keys[from]);
	return p->keys;
}

/* ---- what passes read */

/* Steps that a picture's tokens take of the positions of three-part rotations: those of its longer side. */
static uint64_t steps_of(const struct session_picture *p)
{
	const uint32_t rows = p->of->rows, columns = p->of->columns;

	return rows > columns ? rows : columns;
}

/* Where the token stands. */
static uint64_t position_of(const jit_session *s, uint64_t position)
{
	uint64_t rotary = position;

	for (size_t i = 0; s->model->file.spec.rope.sections[0] && i < s->pictures.n; i++) {
		const struct session_picture *p = &s->pictures.list[i];
		if (p->first + p->n <= position)
			rotary -= p->n - steps_of(p);
	}
	return rotary;
}

void session_fill_angles(const jit_session *s, const struct plan_buffers *to, uint32_t slot, uint64_t position,
                         uint32_t n)
{
	const struct session_picture *p = picture_at(s, position);
	const struct rope *r = &s->engine->rope;

	if (!p || !s->model->file.spec.rope.sections[0]) {
		rope_fill(r, to->cos, to->sin, to->tokens, slot, position_of(s, position), n);
		return;
	}
	const uint64_t first = position_of(s, p->first);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t feature = p->at + (position + i - p->first);
		const uint64_t rotary[3] = { first, first + feature / p->of->columns,
			                     first + feature % p->of->columns };
		rope_fill_three(r, to->cos, to->sin, slot + i, rotary);
	}
}

void session_fill_shown(const jit_session *s, const struct plan_buffers *to, uint64_t position, uint32_t n)
{
	const struct session_picture *p = picture_at(s, position);
	const uint64_t padded = numerics_pad(s->model->file.spec.hidden);

	if (s->model->file.spec.layer_input) /* what layers get of a token's own is the padding token's */
		memset(to->ids, 0, n * sizeof *to->ids);
	for (uint32_t level = 0; level < p->of->levels; level++)
		for (uint32_t i = 0; i < n; i++) {
			const uint64_t feature = p->at + (position + i - p->first);
			float *row = to->shown + ((uint64_t)level * to->tokens + i) * padded;
			memset(row + p->of->width, 0, (padded - p->of->width) * sizeof *row);
			memcpy(row, p->of->values + (level * p->of->tokens + feature) * p->of->width,
			       p->of->width * sizeof *row);
		}
}

/* ---- feeding */

static bool check(const jit_session *s, const struct image_features *image, size_t first, size_t n, struct error *err)
{
	const struct model_spec *spec = &s->model->file.spec;

	if (spec->encodes || spec->latent.rank)
		return error_set(err, ERROR_UNSUPPORTED, "a model of %s takes no pictures yet", spec->arch_name);
	if (!s->engine->shown)
		return error_set(err, ERROR_ARGUMENT, "the session was opened before its model could take pictures");
	if (image->width != spec->hidden || image->levels > s->engine->shown)
		return error_set(
			err, ERROR_ARGUMENT,
			"the picture's features have %u numbers and %u levels, expected %u and at most %u: they "
			"are another model's",
			image->width, image->levels, spec->hidden, s->engine->shown);
	if (n > image->tokens || first > image->tokens - n)
		return error_set(err, ERROR_ARGUMENT, "features %zu to %zu: the picture has %llu", first, first + n,
		                 (unsigned long long)image->tokens);
	if (spec->rope.sections[0] && (first || n != image->tokens))
		return error_set(err, ERROR_ARGUMENT, "a model of %s takes all of a picture at once", spec->arch_name);
	if (spec->pictures_whole && n > s->engine->batch)
		return error_set(
			err, ERROR_ARGUMENT,
			"%zu tokens of a picture see each other and are computed in one pass, and those of the "
			"session have at most %u (jit_session_options.batch)",
			n, s->engine->batch);
	return true;
}

bool session_pictures_put(jit_session *s, const struct session_picture *p, struct error *err)
{
	return check(s, p->of, p->at, p->n, err) && engine_map_shown(s->engine, err) &&
	       add_picture(s, p->first, p->n, p->at, p->of, err);
}

static int feed(jit_session *s, const struct image_features *image, size_t first, size_t n, const int32_t *ids,
                jit_error *err)
{
	struct error e = { 0 };

	if (!engine_map_shown(s->engine, &e) || !add_picture(s, s->length, (uint32_t)n, (uint32_t)first, image, &e))
		return model_report(err, &e);
	const size_t before = s->length;
	const int status = s->member ? jit_session_submit(s, ids, n, NULL, err) : jit_session_feed(s, ids, n, err);
	if (status != JIT_OK && s->length == before)
		session_pictures_rewind(s, before);
	return status;
}

int session_feed_image(jit_session *s, const struct image_features *image, size_t first, size_t n, int32_t id,
                       jit_error *err)
{
	struct error e = { 0 };

	if (!check(s, image, first, n, &e))
		return model_report(err, &e);
	if (!n)
		return JIT_OK;
	int32_t *ids = malloc(n * sizeof *ids);
	if (!ids) {
		error_set(&e, ERROR_MEMORY, "there is no memory for a picture");
		return model_report(err, &e);
	}
	for (size_t i = 0; i < n; i++)
		ids[i] = id;
	int status = session_check_tokens(s, ids, n, err);
	if (status == JIT_OK)
		status = feed(s, image, first, n, ids, err);
	free(ids);
	return status;
}

int session_submit_pictures(jit_session *s, const int32_t *ids, size_t n, const struct session_picture *p,
                            size_t pictures, size_t *reused, jit_error *err)
{
	const size_t before = s->length;
	struct error e = { 0 };

	*reused = 0;
	if (before + n > s->context)
		return jit_session_submit(s, ids, n, reused, err); /* which is refused */
	bool ok = !pictures || engine_map_shown(s->engine, &e);
	for (size_t i = 0; ok && i < pictures; i++)
		ok = check(s, p[i].of, p[i].at, p[i].n, &e) &&
		     add_picture(s, before + p[i].first, p[i].n, p[i].at, p[i].of, &e);
	const int status = ok ? jit_session_submit(s, ids, n, reused, err) : model_report(err, &e);
	if (status != JIT_OK && s->length == before)
		session_pictures_rewind(s, before);
	return status;
}

int session_append_pictures(jit_session *s, const int32_t *ids, size_t n, const struct session_picture *p,
                            size_t pictures, jit_error *err)
{
	size_t at = 0, reused;
	int status = JIT_OK;

	if (s->member)
		return session_submit_pictures(s, ids, n, p, pictures, &reused, err);
	for (size_t i = 0; status == JIT_OK && i <= pictures; i++) {
		const size_t first = i < pictures ? p[i].first : n;
		if (first > at)
			status = jit_session_feed(s, ids + at, first - at, err);
		if (status != JIT_OK || i == pictures)
			break;
		status = session_feed_image(s, p[i].of, p[i].at, p[i].n, ids[first], err);
		at = first + p[i].n;
	}
	return status;
}
