/* jitrun_images.h - models that see: pictures in prompts and conversations.
 *
 * Everything here follows jitrun.h: ERRORS, STRUCTS AND VERSIONS, and what a session is.
 */
#ifndef JITRUN_IMAGES_H
#define JITRUN_IMAGES_H

#include "jitrun.h"
#include "jitrun_kernel.h"

#ifdef __cplusplus
#pragma GCC system_header /* fields that a macro leaves out are 0, of which C++ compilers warn */
extern "C" {
#endif

/* PICTURES. A model that sees has an image encoder, which is opened beside it; docs/models.md says which families do.
 * The encoder makes features of a picture, and these take the place of image tokens in a text:
 *
 *     jit_compute *c = jit_compute_open(NULL, &err);
 *     jit_image_encoder *e = jit_image_encoder_open(m, c, "folder", NULL, &err);    before the session
 *     jit_session *s = jit_session_open(m, NULL, &err);
 *     jit_image *image = jit_image_open(e, bytes, n, NULL, &err);             bytes of a file
 *     jit_prompt *p = jit_prompt_chat(e, &JIT_CHAT_OPTIONS(.messages = "[{\"role\": \"user\", \"content\": ["
 *         "{\"type\": \"image\"}, {\"type\": \"text\", \"text\": \"What is this?\"}]}]"), &image, 1, &err);
 *     jit_session_feed_prompt(s, p, NULL, &err);
 *
 * Features have the same bits on every device and for any number of threads. */
typedef struct jit_image_encoder jit_image_encoder;
typedef struct jit_image jit_image;
typedef struct jit_prompt jit_prompt;

/* path: the model's: a folder, or a file of safetensors in one, with config.json and preprocessor_config.json beside
 * it; or a GGUF file with llama.cpp's file of the image encoder beside it, whose name has "mmproj". mmproj: that file,
 * where it is another one, and path is then not needed; NULL. Sessions and batches of m that are opened from now on
 * take pictures. c computes; it and m must be open until the encoder is closed. A model that cannot see is refused.
 * NULL: err. */
jit_image_encoder *jit_image_encoder_open(jit_model *m, jit_compute *c, const char *path, const char *mmproj,
                                          jit_error *err);
/* When its pictures and prompts are closed. NULL: nothing happens. */
void jit_image_encoder_close(jit_image_encoder *e);

typedef struct jit_image_options {
	size_t size;
	const char *name;    /* what error messages call the picture; NULL: "the picture" */
	uint64_t max_bytes;  /* of the file; 0: 64 MiB, which is the most */
	uint64_t max_pixels; /* width x height; 0: 67 108 864, which is the most */
} jit_image_options;
#define JIT_IMAGE_OPTIONS(...) JIT_STRUCT(jit_image_options, __VA_ARGS__)

/* Decodes a PNG, JPEG, WebP, GIF (its first picture) or BMP file of n bytes, which are not needed afterwards. Limits
 * are compared with its header before anything is decoded. Features are made by jit_image_encode or when it is first
 * fed. From any thread. NULL: err. */
jit_image *jit_image_open(jit_image_encoder *encoder, const void *bytes, size_t n, const jit_image_options *options,
                          jit_error *err);
/* Sessions and prompts that have it keep what they need. NULL: nothing happens. */
void jit_image_close(jit_image *image);

typedef struct jit_image_info {
	size_t size;
	int width, height; /* of the picture, in pixels, turned as EXIF says */
	int tokens;        /* features, each of which takes the place of one image token */
	int parts;         /* that are encoded by themselves: 1, or tiles and the whole picture in small */
	uint64_t key;      /* of the pixels: pictures of the same pixels have the same one */
	int encoded;       /* 1: its features are there */
	int reserved;      /* 0 */
} jit_image_info;
#define JIT_IMAGE_INFO() JIT_STRUCT(jit_image_info, )
int jit_image_get_info(const jit_image *image, jit_image_info *out, jit_error *err);

/* Makes the features, unless they are there. From any thread; one picture of an encoder at a time is encoded. */
int jit_image_encode(jit_image *image, jit_error *err);

/* Appends a picture as the model's processor puts it into a text: its features, and tokens such as row marks around
 * them. A session of a batch has it computed by jit_batch_step. */
int jit_session_feed_image(jit_session *s, jit_image *image, jit_error *err);

/* A text of n bytes with pictures, which take the places of the model's marks for pictures, in their order; where the
 * text has no mark, they stand in front. parse_special as in jit_model_tokenize. The prompt holds what it needs of the
 * pictures. NULL: err. */
jit_prompt *jit_prompt_open(jit_image_encoder *encoder, const char *text, size_t n, int parse_special,
                            jit_image *const *images, size_t n_images, jit_error *err);
/* A conversation as jit_chat_render writes it. Parts of type "image", "image_url" and "input_image" of the messages'
 * contents stand for the pictures, in their order; what else such a part has is not looked at. What messages spell is
 * never taken for a picture's place. NULL: err. */
jit_prompt *jit_prompt_chat(jit_image_encoder *encoder, const jit_chat_options *options, jit_image *const *images,
                            size_t n_images, jit_error *err);
/* NULL: nothing happens. */
void jit_prompt_close(jit_prompt *p);
/* Its tokens, *n of them, with an image token in the place of each feature; they live as long as the prompt. */
const int32_t *jit_prompt_ids(const jit_prompt *p, size_t *n);
/* Of a conversation: what the template wrote, *n bytes and a 0; NULL: it is none. */
const char *jit_prompt_text(const jit_prompt *p, size_t *n);

/* Makes the prompt the session's text: the beginning that it has already stays, with pictures of the same pixels, and
 * the rest is fed. A session of a batch must have no tokens; the prompt is submitted. *reused, which may be NULL, is
 * how many tokens need not be computed. After an error the session may have a part of the prompt. */
int jit_session_feed_prompt(jit_session *s, const jit_prompt *p, size_t *reused, jit_error *err);

#ifdef __cplusplus
}
#endif

#endif
