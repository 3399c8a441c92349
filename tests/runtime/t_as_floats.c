/* tests/runtime/t_as_floats.c - GGUF files of quantised weights against the same files with these weights as F32: where
 * activations are f32, every bit of the logits is the same. Mixtures of experts of every type, and published files of
 * families that few others cover. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>
#include <fcntl.h>
#include <unistd.h>

#include "kernels-templates/templates.h"
#include "loaders/files/gguf.h"
#include "loaders/files/gguf_write.h"
#include "programs/common/shapes.h"
#include "programs/synth/synth.h"
#include "include/jitrun.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

enum { TOKENS = 23, ALIGNMENT = 32, PROMPTS = 5 };

static char dir[64];

static bool is_quantised(const struct gguf_tensor *t) { return dtype_table[t->type].block > 1; }

static void put_data(struct gguf_out *o, const struct gguf_tensor *t, const uint8_t *bytes)
{
	static const uint8_t zeros[64];
	uint64_t n = t->ne[0];

	for (uint32_t d = 1; d < t->n_dims; d++)
		n *= t->ne[d];
	if (!is_quantised(t)) {
		gguf_put_raw(o, bytes, t->bytes);
		gguf_put_raw(o, zeros, gguf_put_padding(o, t->bytes));
		return;
	}
	float *as = malloc(n * sizeof *as);
	assert_non_null(as);
	for (uint64_t r = 0; r < n / t->ne[0]; r++)
		weight_to_f32(t->type, as + r * t->ne[0], bytes + r * dtype_row_bytes(t->type, t->ne[0]), t->ne[0]);
	gguf_put_raw(o, as, n * sizeof *as);
	gguf_put_raw(o, zeros, gguf_put_padding(o, n * sizeof *as));
	free(as);
}

/* Returns how many tensors there were to make floats of. */
static unsigned write_floats(const char *in, const char *out)
{
	struct gguf g;
	struct gguf_out o;
	struct error err = { 0 };
	unsigned changed = 0;
	size_t n;
	uint8_t *bytes = file_bytes(in, &n);
	FILE *f = fopen(out, "wb");

	assert_non_null(f);
	if (!gguf_parse(&g, bytes, n, in, false, &err))
		fail_msg("%s", err.text);
	assert_int_equal(g.alignment, ALIGNMENT);
	gguf_put_begin(&o, f, ALIGNMENT);
	for (uint64_t i = 0; i < g.n_kv; i++)
		gguf_put_copy(&o, &g.kv[i]);
	for (uint64_t i = 0; i < g.n_tensors; i++) {
		const struct gguf_tensor *t = &g.tensor[i];
		gguf_put_tensor(&o, t->name, is_quantised(t) ? DTYPE_F32 : t->type, t->n_dims, t->ne);
		changed += is_quantised(t);
	}
	gguf_put_end(&o);
	for (uint64_t i = 0; i < g.n_tensors; i++)
		put_data(&o, &g.tensor[i], bytes + g.tensor[i].offset);
	assert_int_equal(fclose(f), 0);
	gguf_free(&g);
	free(bytes);
	return changed;
}

/* Behind one of PROMPTS prompts; malloc'ed. */
static float *logits_of(const char *path, int prompt, bool f32, int batch, size_t *n)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	int32_t ids[TOKENS];
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .f32_activations = f32), &err);

	if (!m)
		fail_msg("%s", err.message);
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .batch = batch), &err);
	assert_non_null(s);
	jit_model_get_info(m, &info, NULL);
	*n = (size_t)info.vocab;
	for (int i = 0; i < TOKENS; i++)
		ids[i] = (i * 29 + prompt * 101 + 3) % (int)*n;
	if (jit_session_feed(s, ids, TOKENS, &err) != JIT_OK)
		fail_msg("%s", err.message);
	const float *l = jit_session_logits(s, &err);
	assert_non_null(l);
	float *out = malloc(*n * sizeof *out);
	assert_non_null(out);
	memcpy(out, l, *n * sizeof *out);
	jit_session_close(s);
	jit_model_close(m);
	return out;
}

static double away(const float *a, const float *b, size_t n)
{
	double max = 0, off = 0;

	for (size_t i = 0; i < n; i++) {
		max = fmax(max, fabs((double)a[i]));
		off = fmax(off, fabs((double)a[i] - (double)b[i]));
	}
	return off / max;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* int8 activations are near, at most prompts: where two experts are nearly as good, they can choose the other one, and
 * these logits are far away. Other cuts change no bit. */
static void check(const char *quants, const char *what, double near)
{
	double off[PROMPTS];
	char floats[100];
	size_t n;

	snprintf(floats, sizeof floats, "%s/floats.gguf", dir);
	assert_true(write_floats(quants, floats) > 0);
	for (int p = 0; p < PROMPTS; p++) {
		float *want = logits_of(floats, p, true, 16, &n), *got = logits_of(quants, p, true, 16, &n);
		if (memcmp(got, want, n * sizeof *want) != 0)
			fail_msg("%s: logits are %g away from those of the floats", what, away(want, got, n));
		float *int8 = logits_of(quants, p, false, 16, &n), *single = logits_of(quants, p, false, 1, &n);
		off[p] = away(want, int8, n);
		assert_memory_equal(single, int8, n * sizeof *int8);
		free(want);
		free(got);
		free(int8);
		free(single);
	}
	qsort(off, PROMPTS, sizeof *off, by_size);
	if (!(off[PROMPTS / 2] < near))
		fail_msg("%s: with int8 activations, logits are %g away, in the middle of %d prompts", what,
		         off[PROMPTS / 2], PROMPTS);
}

static void test_mixtures_of_experts(void **unused)
{
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types);
	char path[100], name[32];

	snprintf(path, sizeof path, "%s/quants.gguf", dir);
	for (unsigned i = 0; i < n; i++) {
		struct error err = { 0 };
		const struct mixture *m = mixture_find(weight_type_name(name, types[i]));
		if (!m || dtype_table[types[i]].block == 1 || (test_quick() && i % 4))
			continue;
		int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
		assert_true(fd >= 0);
		if (!synth_write(fd, path, shape_find("tiny-moe"), m, NULL, NULL, &err))
			fail_msg("%s", err.text);
		close(fd);
		check(path, name, 0.05);
	}
}

static void test_published(void **unused)
{
	static const char *const files[] = { "golden/gemma4-e-a/model-q8_0.gguf" };
	char path[1024], whole[1024];
	size_t n;

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		if (!shared_path(path, files[i]))
			skip();
		check(path, files[i], 0.2);
		assert_non_null(shared_path(whole, "golden/gemma4-e-a/model-bf16.gguf"));
		float *want = logits_of(whole, 0, true, 16, &n), *got = logits_of(path, 0, true, 16, &n);
		if (!(away(want, got, n) < 0.05))
			fail_msg("%s: logits are %g away from those of the model in BF16", files[i],
			         away(want, got, n));
		free(want);
		free(got);
	}
}

static int make_dir(void **unused)
{
	strcpy(dir, "/tmp/jitrun-floats-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **unused)
{
	char command[100];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_mixtures_of_experts),
		                            cmocka_unit_test(test_published) };
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
