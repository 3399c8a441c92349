/* vision/image_api.c - the functions of jitrun_images.h. */
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "runtime/model/model.h"
#include "runtime/model/sized.h"
#include "vision/prompt.h"

jit_image_encoder *jit_image_encoder_open(jit_model *m, jit_compute *c, const char *path, const char *mmproj,
                                          jit_error *err)
{
	struct error e = { 0 };
	jit_image_encoder *s = NULL;

	if (NEEDED(m, &e) && NEEDED(c, &e) && (mmproj || NEEDED(path, &e)))
		s = mmproj ? seer_open_pair(mmproj, m, c, &e) : seer_open(path, m, c, &e);
	model_report(err, &e);
	return s;
}

void jit_image_encoder_close(jit_image_encoder *e) { seer_close(e); }

/* ---- pictures */

jit_image *jit_image_open(jit_image_encoder *encoder, const void *bytes, size_t n, const jit_image_options *options,
                          jit_error *err)
{
	struct error e = { 0 };
	jit_image_options o;
	jit_image *image = NULL;

	if (NEEDED(encoder, &e) && NEEDED_LIST(bytes, n, &e) && SIZED_READ(jit_image_options, &o, options, &e))
		image = seer_read(encoder, bytes, n, o.name ? o.name : "the picture",
		                  &(struct picture_limits){ o.max_bytes, o.max_pixels }, &e);
	model_report(err, &e);
	return image;
}

void jit_image_close(jit_image *image) { image_release(image); }

int jit_image_get_info(const jit_image *image, jit_image_info *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(image, &e) && NEEDED(out, &e)) {
		jit_image_info info = JIT_IMAGE_INFO();
		info.width = (int)image->image.width;
		info.height = (int)image->image.height;
		info.tokens = (int)image->image.tokens;
		info.parts = (int)image->image.n_parts;
		info.key = image->key;
		info.encoded = atomic_load(&image->encoded);
		SIZED_WRITE(jit_image_info, out, &info, &e);
	}
	return model_report(err, &e);
}

int jit_image_encode(jit_image *image, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(image, &e))
		image_encode(image, &e);
	return model_report(err, &e);
}

/* ---- prompts */

static jit_prompt *take(struct jit_prompt *own, bool ok, struct error *e, jit_error *err)
{
	jit_prompt *p = ok ? malloc(sizeof *p) : NULL;

	if (ok && !p) {
		error_set(e, ERROR_MEMORY, "there is no memory for a prompt");
		prompt_close(own);
	}
	if (p)
		*p = *own;
	model_report(err, e);
	return p;
}

static bool are_there(jit_image *const *images, size_t n, const jit_image_encoder *encoder, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		if (!images[i])
			return error_set(err, ERROR_ARGUMENT, "picture %zu of the prompt is NULL", i);
		if (images[i]->seer != encoder)
			return error_set(err, ERROR_ARGUMENT, "picture %zu of the prompt is of another encoder", i);
	}
	return true;
}

jit_prompt *jit_prompt_open(jit_image_encoder *encoder, const char *text, size_t n, int parse_special,
                            jit_image *const *images, size_t n_images, jit_error *err)
{
	struct error e = { 0 };
	struct jit_prompt own = { 0 };
	const struct prompt_text t = { text ? text : "", n, parse_special != 0, NULL, NULL };
	const bool ok =
		NEEDED(encoder, &e) && NEEDED_LIST(text, n, &e) && NEEDED_LIST(images, n_images, &e) &&
		are_there(images, n_images, encoder, &e) && prompt_of_text(&own, encoder, &t, images, n_images, &e);

	return take(&own, ok, &e, err);
}

/* Parts that are pictures become texts with the mark. */
static char *marked(const char *messages, const char *mark, size_t *pictures, struct error *err)
{
	json_t *all = json_read(messages, strlen(messages), JSON_MAX_CONFIG, "jit_chat_options.messages", err), *one,
	       *part;
	size_t i, k;
	bool ok = true;

	*pictures = 0;
	json_array_foreach(all, i, one) json_array_foreach(json_object_get(one, "content"), k, part)
	{
		if (!prompt_is_picture(json_string_value(json_object_get(part, "type"))))
			continue;
		++*pictures;
		json_object_clear(part);
		ok = json_object_set_new(part, "type", json_string("text")) == 0 &&
		     json_object_set_new(part, "text", json_string(mark)) == 0 && ok;
	}
	char *text = all && ok ? json_dumps(all, JSON_COMPACT) : NULL;
	json_decref(all);
	if (all && !text)
		error_set(err, ERROR_MEMORY, "there is no memory for a prompt");
	return text;
}

jit_prompt *jit_prompt_chat(jit_image_encoder *encoder, const jit_chat_options *options, jit_image *const *images,
                            size_t n_images, jit_error *err)
{
	struct error e = { 0 };
	struct jit_prompt own = { 0 };
	jit_chat_options o;
	char mark[PROMPT_MARK], *text = NULL;
	size_t pictures = 0;
	bool ok = NEEDED(encoder, &e) && NEEDED(options, &e) && NEEDED_LIST(images, n_images, &e) &&
	          SIZED_READ(jit_chat_options, &o, options, &e) && are_there(images, n_images, encoder, &e);

	if (ok && !o.messages)
		ok = error_set(&e, ERROR_ARGUMENT, "jit_chat_options.messages is NULL, expected a JSON array");
	prompt_mark(mark);
	ok = ok && (text = marked(o.messages, mark, &pictures, &e));
	if (ok && pictures != n_images)
		ok = error_set(&e, ERROR_ARGUMENT,
		               "the messages have %zu parts for pictures, and %zu pictures are given", pictures,
		               n_images);
	if (ok) {
		o.messages = text;
		ok = prompt_of_chat(&own, encoder, &o, mark, images, n_images, &e);
	}
	free(text);
	return take(&own, ok, &e, err);
}

void jit_prompt_close(jit_prompt *p)
{
	if (p)
		prompt_close(p);
	free(p);
}

const int32_t *jit_prompt_ids(const jit_prompt *p, size_t *n)
{
	if (n)
		*n = p ? p->n : 0;
	return p ? p->ids : NULL;
}

const char *jit_prompt_text(const jit_prompt *p, size_t *n)
{
	if (n)
		*n = p ? p->n_text : 0;
	return p ? p->text : NULL;
}

/* ---- sessions */

int jit_session_feed_prompt(jit_session *s, const jit_prompt *p, size_t *reused, jit_error *err)
{
	struct error e = { 0 };
	size_t own = 0;

	if (reused)
		*reused = 0;
	if (!NEEDED(s, &e) || !NEEDED(p, &e))
		return model_report(err, &e);
	const int status = prompt_feed_session(s, p, &own, err);
	if (reused)
		*reused = own;
	return status;
}

int jit_session_feed_image(jit_session *s, jit_image *image, jit_error *err)
{
	struct error e = { 0 };

	if (!NEEDED(s, &e) || !NEEDED(image, &e) || !image_encode(image, &e))
		return model_report(err, &e);
	return prompt_feed_image(s, image, err);
}
