/* tests/vision/t_tower.c - image encoders beside transformers: features of every family from the pixel values that its
 * image processor gives, and the same bits wherever they are computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_kernel.h"
#include "tests/support/shared.h"
#include "tests/vision/to_mmproj.h"
#include "tests/vision/tower_tests.h"


/* ---- towers */

jit_compute *compute_open(const char *device, const char *isa, int threads)
{
	jit_error e = { 0 };
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = device, .isa = isa, .threads = threads), &e);

	if (!c)
		fail_msg("%s", e.message);
	return c;
}

static struct tower *tower_of(const char *model, jit_compute *c)
{
	char path[1024], name[200];
	struct error err = { 0 };

	snprintf(name, sizeof name, "golden-more/%s", model);
	struct tower *t = tower_open(shared_path(path, name), c, &err);
	if (!t)
		fail_msg("%s: %s", model, err.text);
	return t;
}

struct tower_features tower_encoded(struct tower *t, const struct tower_pixels *p)
{
	struct tower_features f;
	struct error err = { 0 };
	uint64_t tokens = 0;

	if (!tower_encode(t, p, &f, &err))
		fail_msg("%s", err.text);
	assert_true(tower_tokens(tower_spec_of(t), p, &tokens, &err));
	assert_int_equal(tokens, f.tokens);
	assert_int_equal(f.width, tower_spec_of(t)->out);
	return f;
}

const char *const tower_models[TOWER_MODELS] = {
	"see-llava-a",    "see-smolvlm-a", "see-gemma3-a", "see-internvl-a", "see-pixtral-a",
	"see-qwen25vl-a", "see-qwen3vl-a", "see-qwen35-a", "see-lfm2vl-a"
};

double tower_difference(const float *x, const float *y, uint64_t n)
{
	double max = 0, apart = 0;

	for (uint64_t i = 0; i < n; i++) {
		max = fmax(max, fabs((double)y[i]));
		apart = fmax(apart, fabs((double)x[i] - (double)y[i]));
	}
	return apart / max;
}

static void compare_model(const char *model, jit_compute *c)
{
	struct reference r;

	if (!reference_open(&r, model))
		return;
	struct tower *t = tower_of(model, c);
	for (unsigned i = 0; i < PICTURES; i++) {
		const struct tower_pixels p = reference_pixels(&r, i);
		const float *wanted = reference_floats(&r, "features", i);
		struct tower_features f = tower_encoded(t, &p);
		assert_int_equal(f.tokens, reference_rows(&r, "features", i));
		const double apart = tower_difference(f.values, wanted, f.tokens * f.width);
		printf("# %s, picture %u: %.1e\n", model, i, apart);
		assert_true(apart < 1e-4);
		free(f.values);
	}
	tower_close(t);
	reference_close(&r);
}

static void test_features(void **state)
{
	(void)state;
	jit_compute *c = compute_open("cpu", NULL, 2);
	for (size_t i = 0; i < TOWER_MODELS; i++)
		compare_model(tower_models[i], c);
	jit_compute_close(c);
}

/* The same bits from an mmproj file of that folder. */
static void same_pair(const char *folder, jit_compute *c, const struct tower_pixels *p, const struct tower_features *f)
{
	char path[1100];
	struct error err = { 0 };

	size_t n;

	snprintf(path, sizeof path, "%s/config.json", folder);
	uint8_t *config = file_bytes(path, &n);
	const bool says_less = memmem(config, n, "\"gelu\"", 6) || memmem(config, n, "37.0", 4);
	free(config);
	if (says_less) /* such a file has neither */
		return;
	snprintf(path, sizeof path, "%s/mmproj.gguf", folder);
	write_mmproj(path, folder, DTYPE_F32, NULL);
	struct tower *t = tower_open(path, c, &err);
	if (!t)
		fail_msg("%s", err.text);
	struct tower_features g = tower_encoded(t, p);
	assert_int_equal(f->tokens, g.tokens);
	if (memcmp(f->values, g.values, f->tokens * f->width * sizeof *f->values) != 0)
		fail_msg("%s gives other bits: %.1e", path,
		         tower_difference(f->values, g.values, f->tokens * f->width));
	free(g.values);
	tower_close(t);
}

/* Folders that plain_towers.py wrote, with features of plain loops. */
static void test_plain(void **state)
{
	const char *dir = getenv("JITRUN_TOWERS");
	DIR *d = dir ? opendir(dir) : NULL;
	unsigned n = 0;
	(void)state;

	assert_non_null(d);
	jit_compute *c = compute_open("cpu", NULL, 2);
	for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
		char path[1024], file[1100];
		struct error err = { 0 };
		struct reference r;
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof path, "%.700s/%.200s", dir, e->d_name);
		snprintf(file, sizeof file, "%s/tensors.safetensors", path);
		reference_open_file(&r, file);
		const struct tower_pixels p = reference_pixels(&r, 0);
		struct tower *t = tower_open(path, c, &err);
		if (!t)
			fail_msg("%s: %s", path, err.text);
		struct tower_features f = tower_encoded(t, &p);
		assert_int_equal(f.tokens, reference_rows(&r, "features", 0));
		const double apart =
			tower_difference(f.values, reference_floats(&r, "features", 0), f.tokens * f.width);
		printf("# %s: %.1e\n", e->d_name, apart);
		assert_true(apart < 3e-5);
		if (strncmp(e->d_name, "gemma4", 6) == 0)
			same_pair(path, c, &p, &f);
		n++;
		free(f.values);
		tower_close(t);
		reference_close(&r);
	}
	closedir(d);
	jit_compute_close(c);
	assert_true(n > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_features),      cmocka_unit_test(test_own_tower),
		cmocka_unit_test(test_refused),       cmocka_unit_test(test_see),
		cmocka_unit_test(test_see_bits),      cmocka_unit_test(test_see_kept),
		cmocka_unit_test(test_see_refused),   cmocka_unit_test(test_see_files),
		cmocka_unit_test(test_pairs),         cmocka_unit_test(test_pair_keys),
		cmocka_unit_test(test_pair_found),    cmocka_unit_test(test_see_gguf),
		cmocka_unit_test(test_images),        cmocka_unit_test(test_image_fields),
		cmocka_unit_test(test_image_chats),   cmocka_unit_test(test_image_sessions),
		cmocka_unit_test(test_image_pace),    cmocka_unit_test(test_see_gemma4),
		cmocka_unit_test(test_pair_damaged),  cmocka_unit_test(test_image_saved),
		cmocka_unit_test(test_image_damaged), cmocka_unit_test(test_image_cut),
		cmocka_unit_test(test_image_drafts),  cmocka_unit_test(test_image_not_finite),
	};
	const struct CMUnitTest plain[] = { cmocka_unit_test(test_plain) };
	if (getenv("JITRUN_TOWERS"))
		return cmocka_run_group_tests(plain, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
