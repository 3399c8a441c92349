/* tests/loaders/t_containers.c - a model computes the same logits, bit for bit, whether its weights come from
 * safetensors or from GGUF.
 *
 * What differs between the two files: names, the order of Q and K rows, the place of the settings. The type of the
 * weights is the same or an exact widening of it. The loaders' comparison of tensors is in t_model.c; here everything
 * up to the logits is in between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/runtime/tiny_model.h"

enum { PROMPT = 21 };

static const struct tiny_model models[] = {
	{ "llama", 2, 64, 96, 4, 2, 16, 97, DTYPE_F32, .tied = true },
	{ "llama", 2, 160, 200, 4, 1, 40, 33, DTYPE_BF16, .attention_bias = true, .mlp_bias = true },
	{ "mistral", 2, 64, 172, 8, 2, 8, 65, DTYPE_F16, .tied = true, .extra = ",\"sliding_window\": 7" },
	{ "qwen2", 2, 56, 128, 7, 1, 8, 77, DTYPE_BF16, .tied = true },
	{ "qwen3", 2, 64, 96, 4, 2, 32, 50, DTYPE_F32,
	  .extra = ",\"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4}" },
};

static float *logits_of(const char *path, uint32_t vocab)
{
	jit_error err = { 0 };
	jit_model_options mo = JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1);
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 64, .threads = 1);
	int32_t ids[PROMPT];
	float *out = malloc(vocab * sizeof *out);

	for (int i = 0; i < PROMPT; i++)
		ids[i] = (i * 7 + 3) % (int32_t)vocab;
	jit_model *m = jit_model_open(path, &mo, &err);
	if (!m)
		fail_msg("%s: %s", path, err.message);
	jit_session *s = jit_session_open(m, &so, &err);
	assert_non_null(s);
	assert_int_equal(jit_session_feed(s, ids, PROMPT, &err), JIT_OK);
	const float *logits = jit_session_logits(s, &err);
	assert_non_null(logits);
	memcpy(out, logits, vocab * sizeof *out);
	jit_session_close(s);
	jit_model_close(m);
	return out;
}

static void compare(const struct tiny_model *t, const char *dir, enum dtype type, const float *want)
{
	struct error err = { 0 };
	char path[400];
	size_t n;
	uint8_t *p = tiny_gguf(t, type, &n, &err);

	if (!p)
		fail_msg("%s", err.text);
	tiny_write(dir, "model.gguf", p, n);
	free(p);
	snprintf(path, sizeof path, "%s/model.gguf", dir);
	float *got = logits_of(path, t->vocab);
	for (uint32_t i = 0; i < t->vocab; i++)
		if (memcmp(&got[i], &want[i], sizeof *got) != 0)
			fail_msg("%s as %s: logit %u is %.9g from GGUF and %.9g from safetensors", t->arch,
			         dtype_table[type].name, i, (double)got[i], (double)want[i]);
	free(got);
	unlink(path);
}

static void test_same_logits(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char dir[300], path[400];

	snprintf(dir, sizeof dir, "%s/jitrun-containers-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		tiny_write_hf(dir, &models[i]);
		float *want = logits_of(dir, models[i].vocab);
		float min = want[0], max = want[0];
		for (uint32_t k = 1; k < models[i].vocab; k++) {
			min = want[k] < min ? want[k] : min;
			max = want[k] > max ? want[k] : max;
		}
		assert_true(max > min); /* a model that computes nothing would agree with itself */
		compare(&models[i], dir, models[i].type, want);
		compare(&models[i], dir, DTYPE_F32, want);
		free(want);
	}
	snprintf(path, sizeof path, "%s/config.json", dir);
	unlink(path);
	snprintf(path, sizeof path, "%s/model.safetensors", dir);
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_logits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
