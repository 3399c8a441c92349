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
#include "vision/prompt.h"

enum { PROMPT_MAX = 200, NEW = 16 };

struct run {
	int32_t prompt[PROMPT_MAX], greedy[NEW];
	double margin[NEW];
	unsigned n;
	struct image_features *image;
	const float *logits;
};

struct model_seen {
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

static void read_run(struct model_seen *s, unsigned i, const json_t *o)
{
	struct run *r = &s->run[i];
	const struct tower_pixels p = reference_pixels(&s->reference, i);
	struct error err = { 0 };

	r->n = (unsigned)json_array_size(member(o, "prompt"));
	assert_in_range(r->n, 1, PROMPT_MAX);
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

static bool seen_open(struct model_seen *s, const char *name, const char *file)
{
	char path[1024], relative[200];
	struct error err = { 0 };
	jit_error e = { 0 };
	json_error_t je;

	*s = (struct model_seen){ .name = name };
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

static void seen_close(struct model_seen *s)
{
	for (unsigned i = 0; i < PICTURES; i++)
		picture_release(s->run[i].image);
	tower_close(s->tower);
	jit_model_close(s->model);
	jit_compute_close(s->compute);
	reference_close(&s->reference);
}

static jit_session *session_open_with(const struct model_seen *s, int batch)
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

static void compare_logits(jit_session *x, const struct model_seen *s, unsigned i, double max)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_error e = { 0 };
	const float *own = jit_session_logits(x, &e);

	assert_non_null(own);
	assert_int_equal(jit_model_get_info(s->model, &info, &e), JIT_OK);
	const double apart = tower_difference(own, s->run[i].logits, (uint64_t)info.vocab);
	printf("# %s, picture %u: logits %.1e\n", s->name, i, apart);
	assert_true(apart < max);
}

/* Ids are compared as long as rounding cannot have chosen another one. */
static void compare_ids(jit_session *x, const struct model_seen *s, unsigned i, double min)
{
	const struct run *r = &s->run[i];
	jit_error e = { 0 };

	for (unsigned k = 0; k < NEW && r->margin[k] > min; k++) {
		int32_t id;
		if (jit_session_next(x, &id, &e) != JIT_OK)
			fail_msg("%s: %s", s->name, e.message);
		if (id != r->greedy[k])
			fail_msg("%s, picture %u: token %u is %d, expected %d", s->name, i, k, id, r->greedy[k]);
	}
}

static void see(const char *name, const char *file)
{
	struct model_seen s;

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

/* The text models of llama.cpp's converter beside the same encoders. */
void test_see_gguf(void **state)
{
	static const char *const models[] = { "see-llava-a",    "see-gemma3-a",  "see-pixtral-a",
		                              "see-qwen25vl-a", "see-qwen3vl-a", "see-qwen35-a" };
	(void)state;

	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		see(models[i], "/model-bf16.gguf");
}

/* ---- the same bits however the tokens are computed */

static uint32_t vocab_of(const struct model_seen *s)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_error e = { 0 };

	assert_int_equal(jit_model_get_info(s->model, &info, &e), JIT_OK);
	return (uint32_t)info.vocab;
}

static void same_logits(jit_session *x, const float *wanted, const struct model_seen *s, const char *how)
{
	jit_error e = { 0 };
	const float *own = jit_session_logits(x, &e);

	if (!own)
		fail_msg("%s, %s: %s", s->name, how, e.message);
	if (memcmp(own, wanted, vocab_of(s) * sizeof *own) != 0)
		fail_msg("%s has other bits %s", s->name, how);
}

static float *logits_alone(const struct model_seen *s, const struct run *r)
{
	const size_t bytes = vocab_of(s) * sizeof(float);
	float *out = malloc(bytes);
	jit_error e = { 0 };
	jit_session *x = session_open_with(s, 0);

	feed_prompt(x, r, s->name);
	const float *own = jit_session_logits(x, &e);
	assert_non_null(own);
	assert_non_null(out);
	memcpy(out, own, bytes);
	jit_session_close(x);
	return out;
}

/* Passes of other widths, taken back and fed once more, and a fork. */
static void see_walks(const struct model_seen *s, const float *wanted, int batch)
{
	jit_session *x = session_open_with(s, batch);
	jit_error e = { 0 };
	int32_t id;

	feed_prompt(x, &s->run[0], s->name);
	same_logits(x, wanted, s, "in passes of another width");
	assert_int_equal(jit_session_next(x, &id, &e), JIT_OK);
	assert_int_equal(jit_session_next(x, &id, &e), JIT_OK);
	assert_int_equal(jit_session_rewind(x, s->run[0].n - 1, &e), JIT_OK);
	assert_int_equal(jit_session_feed(x, s->run[0].prompt + s->run[0].n - 1, 1, &e), JIT_OK);
	same_logits(x, wanted, s, "taken back");
	assert_int_equal(jit_session_rewind(x, 8, &e), JIT_ERROR_ARGUMENT); /* within the picture */
	assert_non_null(strstr(e.message, "within a picture"));
	jit_session *fork =
		jit_session_fork(x, &JIT_SESSION_OPTIONS(.context = 256, .batch = batch, .kv = JIT_KV_F32), &e);
	if (!fork)
		fail_msg("%s", e.message);
	same_logits(fork, wanted, s, "as a fork");
	assert_int_equal(jit_session_rewind(x, 3, &e), JIT_OK);
	assert_int_equal(jit_session_rewind(x, 0, &e), JIT_OK);
	feed_prompt(x, &s->run[0], s->name);
	same_logits(x, wanted, s, "fed once more");
	jit_session_close(x);
	same_logits(fork, wanted, s, "as a fork that is alone");
	jit_session_close(fork);
}

static jit_session *submitted(jit_batch *b, const struct run *r, const char *name)
{
	jit_error e = { 0 };
	jit_session *x = jit_batch_session(b, NULL, &e);
	size_t feature = 0;

	assert_non_null(x);
	for (unsigned i = 0, end; i < r->n; i = end) {
		const bool shows = r->image && r->prompt[i] == IMAGE_TOKEN;
		for (end = i; end < r->n && (r->image && r->prompt[end] == IMAGE_TOKEN) == shows; end++)
			;
		const int status = shows ? session_feed_image(x, r->image, feature, end - i, IMAGE_TOKEN, &e)
		                         : jit_session_submit(x, r->prompt + i, end - i, NULL, &e);
		if (status != JIT_OK)
			fail_msg("%s: %s", name, e.message);
		feature += shows ? end - i : 0;
	}
	return x;
}

static void step_all(jit_batch *b)
{
	jit_session *ready[8];
	jit_error e = { 0 };
	size_t n;

	while (jit_batch_pending(b))
		if (jit_batch_step(b, ready, 8, &n, &e) != JIT_OK)
			fail_msg("%s", e.message);
}

/* Two pictures beside a text, twice: what is remembered of the first ones serves those with the same picture alone. */
static void see_batch(const struct model_seen *s, float *const wanted[2])
{
	struct run text = s->run[2];
	jit_error e = { 0 };

	text.image = NULL;
	jit_session *alone = session_open_with(s, 0);
	assert_int_equal(jit_session_feed(alone, text.prompt, text.n, &e), JIT_OK);
	const float *of_text = jit_session_logits(alone, &e);
	jit_batch *b = jit_batch_open(s->model, &JIT_BATCH_OPTIONS(.context = 256, .kv = JIT_KV_F32), &e);
	assert_non_null(b);
	for (unsigned round = 0; round < 2; round++) {
		jit_session *x[] = { submitted(b, &s->run[0], s->name), submitted(b, &text, s->name),
			             submitted(b, &s->run[1], s->name) };
		step_all(b);
		same_logits(x[0], wanted[0], s, "in a batch");
		same_logits(x[1], of_text, s, "in a batch, without a picture");
		same_logits(x[2], wanted[1], s, "in a batch, the second one");
		for (unsigned i = 0; i < 3; i++)
			jit_session_close(x[i]);
	}
	jit_batch_close(b);
	jit_session_close(alone);
}

/* A prompt with a picture on other devices, a real one too (JITRUN_TEST_CUDA). Quick: on number n % 3 of the others. */
static void see_devices(const struct model_seen *s, const float *wanted, size_t n)
{
	const char *const devices[] = { "ref", "sim:sm90", "sim:gfx1101", test_real_card(), NULL };
	char path[1024], relative[200];
	snprintf(relative, sizeof relative, "golden-more/%s", s->name);
	const bool quick = test_quick();
	for (size_t i = quick ? n % 3 : 0; devices[i] && shared_path(path, relative); i = quick && i < 3 ? 3 : i + 1) {
		struct model_seen on = *s;
		on.model = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = devices[i]), NULL);
		assert_true(on.model && images_attach(s->tower, on.model, &(struct error){ 0 }));
		float *own = logits_alone(&on, &on.run[0]);
		if (memcmp(own, wanted, vocab_of(s) * sizeof *own) != 0)
			fail_msg("%s on %s gives other bits", s->name, devices[i]);
		free(own);
		jit_model_close(on.model);
	}
}

void test_see_bits(void **state)
{
	static const char *const some[] = { "see-gemma3-a", "see-qwen3vl-a", "see-qwen35-a", "see-lfm2vl-a",
		                            "see-smolvlm-a" };
	(void)state;

	for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
		struct model_seen s;
		if (!seen_open(&s, some[i], ""))
			continue;
		float *wanted[] = { logits_alone(&s, &s.run[0]), logits_alone(&s, &s.run[1]) };
		assert_true(memcmp(wanted[0], wanted[1], vocab_of(&s) * sizeof **wanted) != 0);
		see_walks(&s, wanted[0], 16); /* as many as Gemma's picture has tokens */
		if (i)
			see_walks(&s, wanted[0], 5);
		see_batch(&s, wanted);
		see_devices(&s, wanted[0], i);
		free(wanted[0]);
		free(wanted[1]);
		seen_close(&s);
	}
}

/* The same text with two pictures of as many tokens, longer than a page of a cache: only the same picture's is taken
 * over. */
void test_see_kept(void **state)
{
	struct model_seen s;
	jit_error e = { 0 };
	uint64_t reused = 0;
	(void)state;

	if (!seen_open(&s, "see-smolvlm-a", ""))
		return;
	struct run twice[2] = { s.run[0], s.run[0] };
	assert_int_equal(s.run[0].image->tokens, s.run[1].image->tokens);
	twice[1].image = s.run[1].image;
	float *wanted[] = { logits_alone(&s, &twice[0]), logits_alone(&s, &twice[1]) };
	jit_batch *b = jit_batch_open(s.model, &JIT_BATCH_OPTIONS(.context = 256, .kv = JIT_KV_F32), &e);
	assert_non_null(b);
	for (unsigned round = 0; round < 4; round++) {
		jit_batch_stats stats = JIT_BATCH_STATS();
		jit_session *x = submitted(b, &twice[round % 2], s.name);
		step_all(b);
		same_logits(x, wanted[round % 2], &s, "with pages of others");
		/* so many more that the text is longer than a page */
		assert_int_equal(jit_session_submit(x, s.run[0].prompt, 5, NULL, &e), JIT_OK);
		assert_int_equal(session_feed_image(x, twice[round % 2].image, 0, 60, IMAGE_TOKEN, &e), JIT_OK);
		step_all(b);
		assert_non_null(jit_session_logits(x, &e));
		jit_session_close(x);
		assert_int_equal(jit_batch_get_stats(b, &stats, &e), JIT_OK);
		/* The text before the picture, then, of the same picture, the rest of the page as well. */
		const uint64_t more = stats.reused_tokens - reused;
		reused = stats.reused_tokens;
		if (round < 2)
			assert_in_range(more, 0, 5);
		else
			assert_in_range(more, 5 + 128 - s.run[0].n, 256);
	}
	jit_batch_close(b);
	free(wanted[0]);
	free(wanted[1]);
	seen_close(&s);
}

void test_see_refused(void **state)
{
	struct model_seen s;
	jit_error e = { 0 };
	(void)state;

	if (!seen_open(&s, "see-gemma3-a", ""))
		return;
	jit_session *x = session_open_with(&s, 15);
	const struct image_features *image = s.run[0].image;
	assert_int_equal(session_feed_image(x, image, 0, 16, IMAGE_TOKEN, &e), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(e.message, "have at most 15"));
	assert_int_equal(session_feed_image(x, image, 1, 16, IMAGE_TOKEN, &e), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(e.message, "features 1 to 17: the picture has 16"));
	assert_int_equal(session_feed_image(x, image, 0, 4, 340, &e), JIT_ERROR_ARGUMENT);
	assert_int_equal(session_feed_image(x, image, 0, 4, IMAGE_TOKEN, &e), JIT_OK);
	assert_int_equal(jit_session_length(x), 4);
	jit_session_close(x);
	seen_close(&s);
}


/* ---- from the picture's file, whose numbers differ by one of 255 where another library resized it */

static void see_file(const char *name)
{
	struct model_seen s;
	char path[1024], relative[200];
	struct error err = { 0 };
	jit_error e = { 0 };

	if (!seen_open(&s, name, ""))
		return;
	snprintf(relative, sizeof relative, "golden-more/%s", name);
	struct jit_image_encoder *seer = seer_open(shared_path(path, relative), s.model, s.compute, &err);
	if (!seer)
		fail_msg("%s: %s", name, err.text);
	for (unsigned i = 0; i < PICTURES; i++) {
		const struct run *r = &s.run[i];
		struct jit_prompt prompt;
		size_t n;
		snprintf(relative, sizeof relative, "golden-more/%s/image%u.png", name, i);
		uint8_t *bytes = file_bytes(shared_path(path, relative), &n);
		struct jit_image *picture = seer_read(seer, bytes, n, relative, NULL, &err);
		if (!picture)
			fail_msg("%s: %s", name, err.text);
		free(bytes);
		if (!prompt_of_ids(&prompt, seer, r->prompt, r->n, &picture, 1, &err))
			fail_msg("%s: %s", name, err.text);
		jit_session *x = session_open_with(&s, 0);
		if (jit_session_feed_prompt(x, &prompt, &n, &e) != JIT_OK)
			fail_msg("%s: %s", name, e.message);
		assert_int_equal(n, 0);
		assert_int_equal(jit_session_length(x), r->n);
		assert_int_equal(image_bytes(picture), r->image->tokens * r->image->width * r->image->levels * 4);
		compare_logits(x, &s, i, 0.05);
		compare_ids(x, &s, i, 0.5);
		/* again: all but the last token, or the picture that it is of, stays */
		assert_int_equal(jit_session_feed_prompt(x, &prompt, &n, &e), JIT_OK);
		assert_in_range(n, 1, r->n - 1);
		compare_logits(x, &s, i, 0.05);
		jit_session_close(x);
		prompt_close(&prompt);
		/* one image token too few, and one too many */
		assert_false(prompt_of_ids(&prompt, seer, r->prompt + 7, r->n - 7, &picture, 1, &err));
		assert_non_null(strstr(err.text, "fewer image tokens"));
		err = (struct error){ 0 };
		assert_false(prompt_of_ids(&prompt, seer, r->prompt, r->n, &picture, 0, &err));
		assert_non_null(strstr(err.text, "more image tokens"));
		err = (struct error){ 0 };
		/* these models have no tokenizer */
		const struct prompt_text text = { "a", 1, false, NULL, NULL };
		assert_false(prompt_of_text(&prompt, seer, &text, &picture, 1, &err));
		assert_non_null(strstr(err.text, "tokenizer"));
		err = (struct error){ 0 };
		image_release(picture);
	}
	seer_close(seer);
	seen_close(&s);
}

void test_see_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < TOWER_MODELS; i++)
		see_file(tower_models[i]);
}
