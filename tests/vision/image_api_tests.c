/* tests/vision/image_api_tests.c - jitrun_images.h: pictures, prompts and sessions, by a model whose tokens are bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "include/jitrun_images.h"
#include "tests/support/seeing_folder.h"
#include "tests/vision/tower_tests.h"

struct seeing {
	char folder[40];
	const char *name;
	jit_compute *compute;
	jit_model *model;
	jit_image_encoder *encoder;
};

static bool seeing_open(struct seeing *s, const char *name, const char *mark, const char *tmpl)
{
	jit_error err = { 0 };

	*s = (struct seeing){ .folder = "/tmp/t_images-XXXXXX", .name = name };
	if (!seeing_folder(s->folder, name, mark, tmpl)) {
		printf("# skipped: there is no %s\n", name);
		return false;
	}
	s->compute = compute_open("cpu", NULL, 2);
	s->model = jit_model_open(s->folder, NULL, &err);
	if (!s->model)
		fail_msg("%s", err.message);
	s->encoder = jit_image_encoder_open(s->model, s->compute, s->folder, NULL, &err);
	if (!s->encoder)
		fail_msg("%s", err.message);
	return true;
}

static void seeing_close(struct seeing *s)
{
	jit_image_encoder_close(s->encoder);
	jit_model_close(s->model);
	jit_compute_close(s->compute);
	seeing_remove(s->folder);
}

static jit_image *picture_of(const struct seeing *s, unsigned number)
{
	jit_error err = { 0 };
	size_t n;
	uint8_t *bytes = seeing_picture(s->name, number, &n);
	jit_image *image = jit_image_open(s->encoder, bytes, n, NULL, &err);

	if (!image)
		fail_msg("%s", err.message);
	free(bytes);
	return image;
}

static jit_image_info info_of(const jit_image *image)
{
	jit_image_info info = JIT_IMAGE_INFO();

	assert_int_equal(jit_image_get_info(image, &info, NULL), JIT_OK);
	return info;
}

static jit_session *session_of(const struct seeing *s)
{
	jit_error err = { 0 };
	jit_session *x =
		jit_session_open(s->model, &JIT_SESSION_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32), &err);

	if (!x)
		fail_msg("%s", err.message);
	return x;
}

/* Which were asked for, and which are known. */
static void refused(jit_image_encoder *e, const void *bytes, size_t n, const jit_image_options *o, const char *why)
{
	jit_error err = { 0 };

	assert_null(jit_image_open(e, bytes, n, o, &err));
	if (!strstr(err.message, why))
		fail_msg("\"%s\", expected \"%s\"", err.message, why);
}

void test_images(void **state)
{
	struct seeing s;
	jit_error err = { 0 };
	char path[1024];
	(void)state;

	if (!seeing_open(&s, "see-llava-a", "<image>", NULL))
		return;
	/* a model that cannot see, and an encoder of another one */
	assert_null(jit_image_encoder_open(s.model, s.compute, "/nowhere", NULL, &err));
	assert_non_null(strstr(err.message, "/nowhere"));
	const char *blind = shared_path(path, "golden/qwen3-gqa2-bf16");
	err = (jit_error){ 0 };
	assert_null(jit_image_encoder_open(s.model, s.compute, blind ? blind : "/nowhere", NULL, &err));
	if (blind)
		assert_non_null(strstr(err.message, "has no image encoder"));
	jit_image_encoder_close(NULL);
	jit_image_close(NULL);
	jit_prompt_close(NULL);
	seeing_close(&s);
}

/* A BMP file of the same pixels as a picture of one colour. */
static size_t one_pixel(uint8_t out[64], uint8_t blue)
{
	static const uint8_t head[54] = { 'B', 'M', 58, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0,  40,
		                          0,   0,   0,  1, 0, 0, 0, 1, 0, 0, 0,  1, 0, 24, 0 };

	memset(out, 0, 64);
	memcpy(out, head, 54);
	out[54] = blue;
	return 58;
}

void test_image_fields(void **state)
{
	struct seeing s;
	uint8_t bmp[64];
	size_t n;
	(void)state;

	if (!seeing_open(&s, "see-smolvlm-a", "<image>", NULL))
		return;
	uint8_t *bytes = seeing_picture(s.name, 0, &n);
	jit_image *image = picture_of(&s, 0), *same = picture_of(&s, 0), *other = picture_of(&s, 1);
	const jit_image_info info = info_of(image);
	/* sizes as the PNG's header has them */
	assert_int_equal(info.width, bytes[18] << 8 | bytes[19]);
	assert_int_equal(info.height, bytes[22] << 8 | bytes[23]);
	assert_true(info.parts > 1); /* tiles */
	assert_int_equal(info.tokens % info.parts, 0);
	assert_int_equal(info.encoded, 0);
	assert_int_equal(info.reserved, 0);
	assert_true(info.key == info_of(same).key && info.key != info_of(other).key);
	assert_int_equal(jit_image_encode(image, NULL), JIT_OK);
	assert_int_equal(jit_image_encode(image, NULL), JIT_OK);
	assert_int_equal(info_of(image).encoded, 1);
	assert_int_equal(info_of(same).encoded, 0);
	assert_true(info_of(image).key == info.key);
	/* pixels decide, not files */
	jit_image *dot[3];
	for (unsigned i = 0; i < 3; i++) {
		const size_t n_bmp = one_pixel(bmp, i < 2 ? 7 : 8) + (i == 1); /* a byte behind it */
		dot[i] = jit_image_open(s.encoder, bmp, n_bmp, NULL, NULL);
		assert_non_null(dot[i]);
	}
	assert_true(info_of(dot[0]).key == info_of(dot[1]).key && info_of(dot[0]).key != info_of(dot[2]).key);
	assert_int_equal(info_of(dot[0]).width, 1);
	/* options */
	refused(s.encoder, "no", 2, &JIT_IMAGE_OPTIONS(.name = "holiday.png"), "holiday.png");
	refused(s.encoder, "no", 2, NULL, "the picture");
	refused(s.encoder, bytes, n, &JIT_IMAGE_OPTIONS(.max_bytes = n - 1), "bytes");
	refused(s.encoder, bytes, n, &JIT_IMAGE_OPTIONS(.max_pixels = (uint64_t)(info.width * info.height - 1)),
	        "pixels");
	refused(s.encoder, bytes, n / 2, NULL, "the picture");
	refused(s.encoder, NULL, 0, NULL, "the picture");
	jit_image *fits = jit_image_open(
		s.encoder, bytes, n,
		&JIT_IMAGE_OPTIONS(.name = "a", .max_bytes = n, .max_pixels = (uint64_t)(info.width * info.height)),
		NULL);
	assert_non_null(fits);
	jit_image_close(fits);
	for (unsigned i = 0; i < 3; i++)
		jit_image_close(dot[i]);
	jit_image_close(image);
	jit_image_close(same);
	jit_image_close(other);
	free(bytes);
	seeing_close(&s);
}

/* ---- conversations */

/* What a prompt should be: bytes, and where \1 stands the features of a picture. */
static void expect_prompt(const jit_prompt *p, const char *text, const int *tokens)
{
	size_t n, at = 0;
	const int32_t *ids = jit_prompt_ids(p, &n);

	for (; *text; text++)
		for (int k = *text == 1 ? *tokens++ : 1; k; k--, at++) {
			assert_true(at < n);
			assert_int_equal(ids[at], *text == 1 ? SEEING_TOKEN : 3 + (uint8_t)*text);
		}
	assert_int_equal(at, n);
}

static jit_prompt *chat_of(const struct seeing *s, const char *messages, const char *tmpl, jit_image *const *images,
                           size_t n)
{
	jit_error err = { 0 };
	jit_prompt *p = jit_prompt_chat(s->encoder, &JIT_CHAT_OPTIONS(.messages = messages, .template_text = tmpl),
	                                images, n, &err);

	if (!p)
		fail_msg("%s: %s", messages, err.message);
	return p;
}

static void chat_refused(const struct seeing *s, const char *messages, jit_image *const *images, size_t n,
                         const char *why)
{
	jit_error err = { 0 };

	assert_null(jit_prompt_chat(s->encoder, &JIT_CHAT_OPTIONS(.messages = messages), images, n, &err));
	if (!strstr(err.message, why))
		fail_msg("\"%s\", expected \"%s\"", err.message, why);
}

static const char two_pictures[] =
	"[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a<image>\"},{\"type\":\"image_url\","
	"\"image_url\":{\"url\":\"data:\"}},{\"type\":\"text\",\"text\":\"b\"},{\"type\":\"image\"}]},"
	"{\"role\":\"assistant\",\"content\":\"no <image>\"},{\"role\":\"user\",\"content\":\"why\"}]";
/* The mark that its messages spell is text. */
static const char two_expected[] = "user:a<image>\1b\1|assistant:no <image>|user:why|assistant:";

void test_image_chats(void **state)
{
	struct seeing s;
	(void)state;

	if (!seeing_open(&s, "see-llava-a", "<image>", SEEING_TEMPLATE("<image>")))
		return;
	jit_image *image[] = { picture_of(&s, 0), picture_of(&s, 1) };
	const int tokens[] = { info_of(image[0]).tokens, info_of(image[1]).tokens };
	jit_prompt *p = chat_of(&s, two_pictures, NULL, image, 2);
	size_t n;
	expect_prompt(p, two_expected, tokens);
	assert_string_equal(jit_prompt_text(p, &n),
	                    "user:a<image><image>b<image>|assistant:no <image>|user:why|assistant:");
	assert_int_equal(n, strlen(jit_prompt_text(p, NULL)));
	jit_prompt_close(p);
	/* a template that knows texts alone, and one that writes parts but none of pictures */
	p = chat_of(&s, two_pictures,
	            "{% for m in messages %}{{ m.role + ':' + m.content + '|' }}{% endfor %}assistant:", image, 2);
	expect_prompt(p, two_expected, tokens);
	jit_prompt_close(p);
	p = chat_of(&s, two_pictures,
	            "{% for m in messages %}{{ m.role + ':' }}{% if m.content is string %}{{ m.content }}{% else %}"
	            "{% for p in m.content if p.type == 'text' %}{{ p.text }}{% endfor %}{% endif %}{{ '|' }}"
	            "{% endfor %}assistant:",
	            image, 2);
	expect_prompt(p, two_expected, tokens);
	jit_prompt_close(p);
	p = chat_of(&s, "[{\"role\":\"user\",\"content\":\"x\"}]", NULL, NULL, 0);
	expect_prompt(p, "user:x|assistant:", NULL);
	jit_prompt_close(p);
	chat_refused(&s, two_pictures, image, 1, "2 parts for pictures, and 1 pictures are given");
	chat_refused(&s, "[]", image, 1, "0 parts for pictures");
	chat_refused(&s, "{", image, 0, "messages");
	chat_refused(&s, NULL, image, 0, "jit_chat_options.messages is NULL");
	jit_image *none[] = { image[0], NULL };
	chat_refused(&s, two_pictures, none, 2, "picture 1 of the prompt is NULL");
	/* texts */
	jit_error err = { 0 };
	p = jit_prompt_open(s.encoder, "a<image>b", 9, 0, image, 1, &err);
	assert_non_null(p);
	expect_prompt(p, "a\1b", tokens);
	assert_null(jit_prompt_text(p, &n));
	jit_prompt_close(p);
	p = jit_prompt_open(s.encoder, "ab", 2, 0, image, 2, &err);
	assert_non_null(p);
	expect_prompt(p, "\1\1ab", tokens);
	jit_prompt_close(p);
	assert_null(jit_prompt_open(s.encoder, "<image>", 7, 0, image, 2, &err));
	assert_non_null(strstr(err.message, "1 places for 2 pictures"));
	assert_null(jit_prompt_ids(NULL, &n));
	jit_image_close(image[0]);
	jit_image_close(image[1]);
	seeing_close(&s);
}

/* ---- sessions */

static uint32_t vocab_of(const struct seeing *s)
{
	jit_model_info info = JIT_MODEL_INFO();

	assert_int_equal(jit_model_get_info(s->model, &info, NULL), JIT_OK);
	return (uint32_t)info.vocab;
}

static void same_logits(const struct seeing *s, jit_session *x, jit_session *y)
{
	const float *a = jit_session_logits(x, NULL), *b = jit_session_logits(y, NULL);

	assert_true(a && b);
	assert_memory_equal(a, b, vocab_of(s) * sizeof *a);
}

static void feed(jit_session *x, const jit_prompt *p, size_t *reused)
{
	jit_error err = { 0 };

	if (jit_session_feed_prompt(x, p, reused, &err) != JIT_OK)
		fail_msg("%s", err.message);
}

static void see_together(const struct seeing *s, const jit_prompt *p, jit_session *alone)
{
	jit_error err = { 0 };
	jit_batch *b =
		jit_batch_open(s->model, &JIT_BATCH_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32), &err);
	size_t reused, n;

	assert_non_null(b);
	for (unsigned round = 0; round < 2; round++) {
		jit_session *x = jit_batch_session(b, NULL, &err), *text = jit_batch_session(b, NULL, &err), *ready[4];
		static const int32_t some[] = { 70, 71, 72 };
		assert_true(x && text);
		assert_int_equal(jit_session_submit(text, some, 3, NULL, &err), JIT_OK);
		feed(x, p, &reused);
		assert_int_equal(reused > 50, round); /* pictures, too */
		while (jit_batch_pending(b))
			assert_int_equal(jit_batch_step(b, ready, 4, &n, &err), JIT_OK);
		same_logits(s, x, alone);
		jit_session_close(x);
		jit_session_close(text);
	}
	jit_batch_close(b);
}

/* A session that decodes goes on between the passes over another's pictures, and says what it says alone. */
static void see_turns(const struct seeing *s, const jit_prompt *p, jit_session *alone)
{
	static const int32_t some[] = { 70, 71, 72 };
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(
		s->model, &JIT_BATCH_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32, .tokens = 16), &err);
	jit_session *x = jit_batch_session(b, NULL, &err), *text = jit_batch_session(b, NULL, &err), *ready[4],
		    *plain = session_of(s);
	unsigned said = 0;
	size_t n = 0;

	assert_true(x && text);
	assert_int_equal(jit_session_submit(text, some, 3, NULL, &err), JIT_OK);
	assert_int_equal(jit_session_feed(plain, some, 3, &err), JIT_OK);
	feed(x, p, NULL);
	for (bool done = false; !done;) {
		if (jit_batch_step(b, ready, 4, &n, &err) != JIT_OK)
			fail_msg("%s", err.message);
		for (size_t i = 0; i < n; i++) {
			int32_t id, own;
			done = done || ready[i] == x;
			if (ready[i] != text)
				continue;
			assert_int_equal(jit_session_next(text, &id, &err), JIT_OK);
			assert_int_equal(jit_session_next(plain, &own, &err), JIT_OK);
			assert_int_equal(id, own);
			said++;
		}
	}
	assert_in_range(said, 3, 900);
	same_logits(s, x, alone);
	jit_session_close(x);
	jit_session_close(text);
	jit_session_close(plain);
	jit_batch_close(b);
}

static void see_sessions(const char *name, const char *mark, const char *tmpl)
{
	struct seeing s;
	jit_error err = { 0 };
	size_t n, reused;

	if (!seeing_open(&s, name, mark, tmpl))
		return;
	jit_session *x = session_of(&s), *y = session_of(&s);
	jit_image *image[] = { picture_of(&s, 0), picture_of(&s, 1), picture_of(&s, 0) };
	jit_prompt *one = chat_of(&s, "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]", NULL, image, 1),
		   *two = chat_of(&s, two_pictures, NULL, image, 2);
	/* the same as by hand */
	feed(x, one, &reused);
	assert_int_equal(reused, 0);
	assert_int_equal(info_of(image[0]).encoded, 1);
	assert_int_equal(jit_session_feed_text(y, "user:", 5, 0, &err), JIT_OK);
	assert_int_equal(jit_session_feed_image(y, image[2], &err), JIT_OK);
	assert_int_equal(jit_session_feed_text(y, "|assistant:", 11, 0, &err), JIT_OK);
	assert_int_equal(jit_session_length(x), jit_session_length(y));
	same_logits(&s, x, y);
	/* another conversation has another beginning, and its own pictures; back again, from a file of the same pixels
	 */
	feed(x, two, NULL);
	jit_prompt_ids(two, &n);
	assert_int_equal(jit_session_length(x), n);
	see_together(&s, two, x);
	see_turns(&s, two, x);
	feed(y, two, NULL);
	same_logits(&s, x, y);
	jit_prompt *again = chat_of(&s, two_pictures, NULL, (jit_image *[]){ image[2], image[1] }, 2),
		   *turned = chat_of(&s, two_pictures, NULL, (jit_image *[]){ image[1], image[0] }, 2);
	feed(y, again, &reused);
	assert_int_equal(reused, n - 1);
	same_logits(&s, x, y);
	feed(y, turned, &reused);
	assert_in_range(reused, 1, 60); /* up to the first picture */
	assert_true(memcmp(jit_session_logits(x, NULL), jit_session_logits(y, NULL), 4 * vocab_of(&s)) != 0);
	/* sessions that were opened before, and without room */
	jit_session *small = jit_session_open(s.model, &JIT_SESSION_OPTIONS(.context = 16), &err);
	assert_non_null(small);
	assert_int_equal(jit_session_feed_prompt(small, two, NULL, &err), JIT_ERROR_CONTEXT);
	jit_session_close(small);
	jit_prompt_close(one);
	for (unsigned i = 0; i < 3; i++)
		jit_image_close(image[i]);
	feed(y, two, NULL); /* the prompt holds what it needs */
	same_logits(&s, x, y);
	jit_prompt_close(two);
	jit_prompt_close(again);
	jit_prompt_close(turned);
	jit_session_close(x);
	jit_session_close(y);
	seeing_close(&s);
}

void test_image_sessions(void **state)
{
	(void)state;
	see_sessions("see-llava-a", "<image>", SEEING_TEMPLATE("<image>"));
	see_sessions("see-qwen3vl-a", "<|image_pad|>", SEEING_TEMPLATE("<|image_pad|>"));
	see_sessions("see-smolvlm-a", "<image>", SEEING_TEMPLATE("<image>"));
}
