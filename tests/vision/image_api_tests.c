/* tests/vision/image_api_tests.c - jitrun_images.h: pictures, prompts and sessions, by a model whose tokens are bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "tests/support/seeing_folder.h"
#include "tests/vision/tower_tests.h"

bool seeing_open(struct seeing *s, const char *name, const char *mark, const char *tmpl)
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

void seeing_close(struct seeing *s)
{
	jit_image_encoder_close(s->encoder);
	jit_model_close(s->model);
	jit_compute_close(s->compute);
	seeing_remove(s->folder);
}

jit_image *seeing_image(const struct seeing *s, unsigned number)
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

jit_image_info seeing_info(const jit_image *image)
{
	jit_image_info info = JIT_IMAGE_INFO();

	assert_int_equal(jit_image_get_info(image, &info, NULL), JIT_OK);
	return info;
}

jit_session *seeing_session(const struct seeing *s)
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
	jit_image *image = seeing_image(&s, 0), *same = seeing_image(&s, 0), *other = seeing_image(&s, 1);
	const jit_image_info info = seeing_info(image);
	/* sizes as the PNG's header has them */
	assert_int_equal(info.width, bytes[18] << 8 | bytes[19]);
	assert_int_equal(info.height, bytes[22] << 8 | bytes[23]);
	assert_true(info.parts > 1); /* tiles */
	assert_int_equal(info.tokens % info.parts, 0);
	assert_int_equal(info.encoded, 0);
	assert_int_equal(info.reserved, 0);
	assert_true(info.key == seeing_info(same).key && info.key != seeing_info(other).key);
	assert_int_equal(jit_image_encode(image, NULL), JIT_OK);
	assert_int_equal(jit_image_encode(image, NULL), JIT_OK);
	assert_int_equal(seeing_info(image).encoded, 1);
	assert_int_equal(seeing_info(same).encoded, 0);
	assert_true(seeing_info(image).key == info.key);
	/* pixels decide, not files */
	jit_image *dot[3];
	for (unsigned i = 0; i < 3; i++) {
		const size_t n_bmp = one_pixel(bmp, i < 2 ? 7 : 8) + (i == 1); /* a byte behind it */
		dot[i] = jit_image_open(s.encoder, bmp, n_bmp, NULL, NULL);
		assert_non_null(dot[i]);
	}
	assert_true(seeing_info(dot[0]).key == seeing_info(dot[1]).key &&
	            seeing_info(dot[0]).key != seeing_info(dot[2]).key);
	assert_int_equal(seeing_info(dot[0]).width, 1);
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

jit_prompt *seeing_chat(const struct seeing *s, const char *messages, const char *tmpl, jit_image *const *images,
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

const char seeing_two[] =
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
	jit_image *image[] = { seeing_image(&s, 0), seeing_image(&s, 1) };
	const int tokens[] = { seeing_info(image[0]).tokens, seeing_info(image[1]).tokens };
	jit_prompt *p = seeing_chat(&s, seeing_two, NULL, image, 2);
	size_t n;
	expect_prompt(p, two_expected, tokens);
	assert_string_equal(jit_prompt_text(p, &n),
	                    "user:a<image><image>b<image>|assistant:no <image>|user:why|assistant:");
	assert_int_equal(n, strlen(jit_prompt_text(p, NULL)));
	jit_prompt_close(p);
	/* a template that knows texts alone, and one that writes parts but none of pictures */
	p = seeing_chat(&s, seeing_two,
	                "{% for m in messages %}{{ m.role + ':' + m.content + '|' }}{% endfor %}assistant:", image, 2);
	expect_prompt(p, two_expected, tokens);
	jit_prompt_close(p);
	p = seeing_chat(&s, seeing_two,
	                "{% for m in messages %}{{ m.role + ':' }}{% if m.content is string %}{{ m.content }}{% else %}"
	                "{% for p in m.content if p.type == 'text' %}{{ p.text }}{% endfor %}{% endif %}{{ '|' }}"
	                "{% endfor %}assistant:",
	                image, 2);
	expect_prompt(p, two_expected, tokens);
	jit_prompt_close(p);
	p = seeing_chat(&s, "[{\"role\":\"user\",\"content\":\"x\"}]", NULL, NULL, 0);
	expect_prompt(p, "user:x|assistant:", NULL);
	jit_prompt_close(p);
	chat_refused(&s, seeing_two, image, 1, "2 parts for pictures, and 1 pictures are given");
	chat_refused(&s, "[]", image, 1, "0 parts for pictures");
	chat_refused(&s, "{", image, 0, "messages");
	chat_refused(&s, NULL, image, 0, "jit_chat_options.messages is NULL");
	jit_image *none[] = { image[0], NULL };
	chat_refused(&s, seeing_two, none, 2, "picture 1 of the prompt is NULL");
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

uint32_t seeing_vocab(const struct seeing *s)
{
	jit_model_info info = JIT_MODEL_INFO();

	assert_int_equal(jit_model_get_info(s->model, &info, NULL), JIT_OK);
	return (uint32_t)info.vocab;
}

void seeing_same(const struct seeing *s, jit_session *x, jit_session *y)
{
	jit_error x_err = { 0 }, y_err = { 0 };
	const float *a = jit_session_logits(x, &x_err), *b = jit_session_logits(y, &y_err);

	if (!a || !b)
		fail_msg("%s%s", x_err.message, y_err.message);
	assert_memory_equal(a, b, seeing_vocab(s) * sizeof *a);
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
		seeing_same(s, x, alone);
		jit_session_close(x);
		jit_session_close(text);
	}
	jit_batch_close(b);
}

/* A session that decodes goes on between the passes over another's pictures, and says what it says alone. */
static void see_alternating(const struct seeing *s, const jit_prompt *p, jit_session *alone)
{
	static const int32_t some[] = { 70, 71, 72 };
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(
		s->model, &JIT_BATCH_OPTIONS(.context = 1024, .threads = 2, .kv = JIT_KV_F32, .tokens = 16), &err);
	jit_session *x = jit_batch_session(b, NULL, &err), *text = jit_batch_session(b, NULL, &err), *ready[4],
		    *plain = seeing_session(s);
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
	seeing_same(s, x, alone);
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
	jit_session *x = seeing_session(&s), *y = seeing_session(&s);
	jit_image *image[] = { seeing_image(&s, 0), seeing_image(&s, 1), seeing_image(&s, 0) };
	jit_prompt *one = seeing_chat(&s, "[{\"role\":\"user\",\"content\":[{\"type\":\"image\"}]}]", NULL, image, 1),
		   *two = seeing_chat(&s, seeing_two, NULL, image, 2);
	/* the same as by hand */
	feed(x, one, &reused);
	assert_int_equal(reused, 0);
	assert_int_equal(seeing_info(image[0]).encoded, 1);
	assert_int_equal(jit_session_feed_text(y, "user:", 5, 0, &err), JIT_OK);
	assert_int_equal(jit_session_feed_image(y, image[2], &err), JIT_OK);
	assert_int_equal(jit_session_feed_text(y, "|assistant:", 11, 0, &err), JIT_OK);
	assert_int_equal(jit_session_length(x), jit_session_length(y));
	seeing_same(&s, x, y);
	/* another conversation has another beginning, and its own pictures; back again, from a file of the same pixels
	 */
	feed(x, two, NULL);
	jit_prompt_ids(two, &n);
	assert_int_equal(jit_session_length(x), n);
	see_together(&s, two, x);
	see_alternating(&s, two, x);
	feed(y, two, NULL);
	seeing_same(&s, x, y);
	jit_prompt *again = seeing_chat(&s, seeing_two, NULL, (jit_image *[]){ image[2], image[1] }, 2),
		   *swapped = seeing_chat(&s, seeing_two, NULL, (jit_image *[]){ image[1], image[0] }, 2);
	feed(y, again, &reused);
	assert_int_equal(reused, n - 1);
	seeing_same(&s, x, y);
	feed(y, swapped, &reused);
	assert_in_range(reused, 1, 60); /* up to the first picture */
	assert_true(memcmp(jit_session_logits(x, NULL), jit_session_logits(y, NULL), 4 * seeing_vocab(&s)) != 0);
	/* sessions that were opened before, and without room */
	jit_session *small = jit_session_open(s.model, &JIT_SESSION_OPTIONS(.context = 16), &err);
	assert_non_null(small);
	assert_int_equal(jit_session_feed_prompt(small, two, NULL, &err), JIT_ERROR_CONTEXT);
	jit_session_close(small);
	jit_prompt_close(one);
	for (unsigned i = 0; i < 3; i++)
		jit_image_close(image[i]);
	feed(y, two, NULL); /* the prompt holds what it needs */
	seeing_same(&s, x, y);
	jit_prompt_close(two);
	jit_prompt_close(again);
	jit_prompt_close(swapped);
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
