/* tests/runtime/packed_check.h - a folder for packed models, packing one, and the logits of a model. For one test
 * program. */
#ifndef TESTS_RUNTIME_PACKED_CHECK_H
#define TESTS_RUNTIME_PACKED_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "runtime/model/packed.h"
#include "tests/support/shared.h"

static char dir[64], packed[128];

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/jitrun-packed-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(packed, sizeof packed, "%s/model.jkm", dir);
	return 0;
}

static int remove_dir(void **state)
{
	unlink(packed);
	return rmdir(dir);
}

/* Packs a model for this CPU, and for a card where that is given. */
static bool pack(const char *model, const char *out, const char *card, int threads, struct error *err)
{
	const struct target *target[2] = { target_native(NULL) };
	struct packed_options o = { .target = target, .n_targets = 1, .mode = 0644 };
	struct model m;
	uint64_t bytes;

	if (card)
		target[o.n_targets++] = target_find(card);
	if (!model_open(&m, model, MODEL_KEEP_SOURCES, err))
		return false;
	struct pool *pool = pool_open(threads, err);
	bool ok = packed_write(out, &m, &o, pool, &bytes, err);
	pool_close(pool);
	model_close(&m);
	struct stat st;
	assert_true(!ok || (stat(out, &st) == 0 && (uint64_t)st.st_size == bytes));
	return ok;
}

static void pack_well(const char *model, const char *card)
{
	struct error err = { 0 };

	if (!pack(model, packed, card, 2, &err))
		fail_msg("%s: %s", model, err.text);
}

struct answers {
	float *logits; /* after a prompt, and after each of STEPS tokens */
	size_t n;
	char description[256];
};
enum { PROMPT = 11, STEPS = 3 };

static void take_logits(struct answers *a, jit_session *s, size_t vocab)
{
	jit_error err = { 0 };
	const float *now = jit_session_logits(s, &err);

	assert_non_null(now);
	memcpy(a->logits + a->n, now, vocab * sizeof *now);
	a->n += vocab;
}

static struct answers ask(const char *path, const char *device, int copy)
{
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .copy_weights = copy);
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 64, .kv = JIT_KV_F32, .threads = 2);
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };
	struct answers a = { .n = 0 };
	int32_t ids[PROMPT + STEPS];

	jit_model *m = jit_model_open(path, &mo, &err);
	if (!m)
		fail_msg("%s: %s", path, err.message);
	assert_int_equal(jit_model_get_info(m, &info, &err), JIT_OK);
	strcpy(a.description, info.description);
	size_t vocab = (size_t)info.vocab;
	for (int i = 0; i < PROMPT + STEPS; i++)
		ids[i] = (int32_t)((size_t)i * 37 % vocab);
	a.logits = malloc((1 + STEPS) * vocab * sizeof *a.logits);
	jit_session *s = jit_session_open(m, &so, &err);
	if (!s)
		fail_msg("%s: %s", path, err.message);
	if (jit_session_feed(s, ids, PROMPT, &err) != JIT_OK)
		fail_msg("%s on %s: %s", path, device, err.message);
	take_logits(&a, s, vocab);
	for (int i = 0; i < STEPS; i++) {
		assert_int_equal(jit_session_feed(s, ids + PROMPT + i, 1, &err), JIT_OK);
		take_logits(&a, s, vocab);
	}
	jit_session_close(s);
	jit_model_close(m);
	return a;
}

#endif
