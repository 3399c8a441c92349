/* tests/vision/see_tests.c - models that see, beside transformers: the tokens that follow a prompt with a picture, and
 * the logits of the first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "include/jitrun_batch.h"
#include "runtime/session/session_pictures.h"
#include "tests/support/shared.h"
#include "tests/vision/tower_tests.h"
#include "vision/images.h"

enum { PROMPT_MOST = 200, NEW = 16 };

struct run {
	int32_t prompt[PROMPT_MOST], greedy[NEW];
	double margin[NEW];
	unsigned n;
	struct jit_image *image;
	const float *logits;
};

struct seen {
	const char *name;
	struct reference reference;
	struct tower *tower;
	jit_compute *compute;
	jit_model *model;
	struct run run[PICTURES];
};

static json_t *member(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	assert_non_null(v);
	return v;
}

static void read_run(struct seen *s, unsigned i, const json_t *o)
{
	struct run *r = &s->run[i];
	const struct tower_pixels p = reference_pixels(&s->reference, i);
	struct error err = { 0 };

	r->n = (unsigned)json_array_size(member(o, "prompt"));
	assert_in_range(r->n, 1, PROMPT_MOST);
	for (unsigned k = 0; k < r->n; k++)
		r->prompt[k] = (int32_t)json_integer_value(json_array_get(member(o, "prompt"), k));
	assert_int_equal(json_array_size(member(o, "greedy")), NEW);
	for (unsigned k = 0; k < NEW; k++) {
		r->greedy[k] = (int32_t)json_integer_value(json_array_get(member(o, "greedy"), k));
		r->margin[k] = json_number_value(json_array_get(member(o, "margin"), k));
	}
	r->logits = reference_floats(&s->reference, "logits", i);
	r->image = images_encode(s->tower, &p, &err);
	if (!r->image)
		fail_msg("%s: %s", s->name, err.text);
}

static bool seen_open(struct seen *s, const char *name, const char *file)
{
	char path[1024], relative[200];
	struct error err = { 0 };
	jit_error e = { 0 };
	json_error_t je;

	*s = (struct seen){ .name = name };
	if (!reference_open(&s->reference, name))
		return false;
	s->compute = compute_open("cpu", NULL, 2);
	snprintf(relative, sizeof relative, "golden-more/%s", name);
	assert_non_null(shared_path(path, relative));
	s->tower = tower_open(path, s->compute, &err);
	if (!s->tower)
		fail_msg("%s: %s", name, err.text);
	snprintf(relative, sizeof relative, "golden-more/%s%s", name, file);
	assert_non_null(shared_path(path, relative));
	s->model = jit_model_open(path, NULL, &e);
	if (!s->model)
		fail_msg("%s", e.message);
	if (!images_attach(s->tower, s->model, &err))
		fail_msg("%s: %s", name, err.text);
	snprintf(relative, sizeof relative, "golden-more/%s/expected.json", name);
	assert_non_null(shared_path(path, relative));
	json_t *j = json_load_file(path, 0, &je);
	assert_non_null(j);
	for (unsigned i = 0; i < PICTURES; i++)
		read_run(s, i, json_array_get(member(j, "runs"), i));
	json_decref(j);
	return true;
}

static void seen_close(struct seen *s)
{
	for (unsigned i = 0; i < PICTURES; i++)
		picture_release(s->run[i].image);
	tower_close(s->tower);
	jit_model_close(s->model);
	jit_compute_close(s->compute);
	reference_close(&s->reference);
}

static jit_session *session_open_with(const struct seen *s, int batch)
{
	jit_error e = { 0 };
	jit_session *x =
		jit_session_open(s->model, &JIT_SESSION_OPTIONS(.context = 256, .batch = batch, .kv = JIT_KV_F32), &e);

	if (!x)
		fail_msg("%s", e.message);
	return x;
}

enum { IMAGE_TOKEN = 331 };

/* The prompt, with the picture's features in the place of its tokens. */
static void feed_prompt(jit_session *x, const struct run *r, const char *name)
{
	jit_error e = { 0 };
	size_t feature = 0;

	for (unsigned i = 0, end; i < r->n; i = end) {
		const bool shows = r->prompt[i] == IMAGE_TOKEN;
		for (end = i; end < r->n && (r->prompt[end] == IMAGE_TOKEN) == shows; end++)
			;
		const int status = shows ? session_feed_image(x, r->image, feature, end - i, IMAGE_TOKEN, &e)
		                         : jit_session_feed(x, r->prompt + i, end - i, &e);
		if (status != JIT_OK)
			fail_msg("%s: %s", name, e.message);
		feature += shows ? end - i : 0;
	}
	assert_int_equal(feature, r->image->tokens);
}

static void compare_logits(jit_session *x, const struct seen *s, unsigned i, double most)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_error e = { 0 };
	const float *own = jit_session_logits(x, &e);

	assert_non_null(own);
	assert_int_equal(jit_model_get_info(s->model, &info, &e), JIT_OK);
	const double apart = tower_difference(own, s->run[i].logits, (uint64_t)info.vocab);
	printf("# %s, picture %u: logits %.1e\n", s->name, i, apart);
	assert_true(apart < most);
}

/* Ids are compared as long as rounding cannot have chosen another one. */
static void compare_ids(jit_session *x, const struct seen *s, unsigned i, double least)
{
	const struct run *r = &s->run[i];
	jit_error e = { 0 };

	for (unsigned k = 0; k < NEW && r->margin[k] > least; k++) {
		int32_t id;
		if (jit_session_next(x, &id, &e) != JIT_OK)
			fail_msg("%s: %s", s->name, e.message);
		if (id != r->greedy[k])
			fail_msg("%s, picture %u: token %u is %d, expected %d", s->name, i, k, id, r->greedy[k]);
	}
}

static void see(const char *name, const char *file)
{
	struct seen s;

	if (!seen_open(&s, name, file))
		return;
	for (unsigned i = 0; i < PICTURES; i++) {
		jit_session *x = session_open_with(&s, 0);
		feed_prompt(x, &s.run[i], name);
		compare_logits(x, &s, i, 2e-5);
		compare_ids(x, &s, i, 1e-3);
		jit_session_close(x);
	}
	seen_close(&s);
}

void test_see(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof tower_models / sizeof *tower_models; i++)
		see(tower_models[i], "");
}
