/* tests/vision/gemma4_tests.c - Gemma 4's text model, of which there are no logits with pictures to compare with:
 * features that are tokens' embeddings do as those tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/safetensors.h"
#include "runtime/model/model.h"
#include "runtime/session/session_pictures.h"
#include "tests/support/shared.h"
#include "tests/vision/tower_tests.h"

enum { SHOWN = 9, HIDDEN = 64, GEMMA_VOCAB = 331 };

/* Rows of the embedding matrix, times the root of the width. */
static struct image_features *image_of_tokens(const char *folder, const int32_t *ids, unsigned n)
{
	static const char name[] = "model.language_model.embed_tokens.weight";
	char path[1100];
	struct safetensors index;
	struct error err = { 0 };
	size_t size;

	snprintf(path, sizeof path, "%s/model.safetensors", folder);
	uint8_t *bytes = file_bytes(path, &size);
	assert_true(safetensors_parse(&index, bytes, size, path, false, &err));
	const struct safetensors_tensor *t = index.tensor;
	for (; t->name.n != strlen(name) || memcmp(t->name.p, name, t->name.n) != 0; t++)
		assert_true(t < index.tensor + index.n_tensors);
	assert_int_equal(t->dim[1], HIDDEN);
	float *values = malloc(n * HIDDEN * sizeof *values);
	for (unsigned i = 0; i < n * HIDDEN; i++) {
		const uint8_t *at = bytes + t->offset + 2 * ((size_t)ids[i / HIDDEN] * HIDDEN + i % HIDDEN);
		const uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
		memcpy(&values[i], &bits, sizeof bits);
		values[i] *= 8;
	}
	safetensors_free(&index);
	free(bytes);
	return picture_open(
		&(struct image_features){
			.values = values, .tokens = n, .width = HIDDEN, .levels = 1, .rows = 1, .columns = n },
		&err);
}

static jit_session *gemma_session(jit_model *m, const struct image_features *image, const int32_t *ids, unsigned n)
{
	static const int32_t before[] = { 2, 17, 5, 30 }, behind[] = { 8, 9 };
	jit_error e = { 0 };
	jit_session *x = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .kv = JIT_KV_F32), &e);

	assert_non_null(x);
	if (jit_session_feed(x, before, 4, &e) != JIT_OK ||
	    (image ? session_feed_image(x, image, 0, n, 7, &e) : jit_session_feed(x, ids, n, &e)) != JIT_OK ||
	    jit_session_feed(x, behind, 2, &e) != JIT_OK)
		fail_msg("%s", e.message);
	return x;
}

/* Whether n tokens give the bits that a picture of their embeddings gives. */
static bool same_as_tokens(jit_model *m, const char *folder, const int32_t *ids, unsigned n)
{
	struct image_features *image = image_of_tokens(folder, ids, n);
	jit_error e = { 0 };
	jit_session *x[] = { gemma_session(m, image, ids, n), gemma_session(m, NULL, ids, n) };
	const bool same =
		memcmp(jit_session_logits(x[0], &e), jit_session_logits(x[1], &e), GEMMA_VOCAB * sizeof(float)) == 0;

	jit_session_close(x[0]);
	jit_session_close(x[1]);
	picture_release(image);
	return same;
}

static void gemma4(const char *name, const int32_t *ids, bool whole)
{
	char folder[1024], relative[200];
	jit_error e = { 0 };

	snprintf(relative, sizeof relative, "golden/%s", name);
	if (!shared_path(folder, relative))
		return;
	jit_model *m = jit_model_open(folder, NULL, &e);
	if (!m)
		fail_msg("%s: %s", name, e.message);
	atomic_store(&m->shown, 1);          /* as images_attach() does */
	m->file.spec.pictures_whole = whole; /* as with use_bidirectional_attention, which these have not */
	assert_true(same_as_tokens(m, folder, ids, 1));
	assert_int_equal(same_as_tokens(m, folder, ids, SHOWN), !whole);
	jit_model_close(m);
}

void test_see_gemma4(void **state)
{
	static const int32_t padding[SHOWN] = { 0 }, some[SHOWN] = { 40, 41, 3, 99, 200, 7, 61, 300, 12 };
	(void)state;

	gemma4("gemma4-e-a", padding, false);
	gemma4("gemma4-k-a", some, false);
	gemma4("gemma4-k-a", some, true);
	gemma4("gemma4-moe-a", some, false);
}
