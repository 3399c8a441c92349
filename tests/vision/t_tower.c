/* tests/vision/t_tower.c - image encoders beside transformers: features of every family from the pixel values that its
 * image processor gives, and the same bits wherever they are computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "include/jitrun_kernel.h"
#include "tests/support/shared.h"
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
	double most = 0, apart = 0;

	for (uint64_t i = 0; i < n; i++) {
		most = fmax(most, fabs((double)y[i]));
		apart = fmax(apart, fabs((double)x[i] - (double)y[i]));
	}
	return apart / most;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_features),    cmocka_unit_test(test_own_tower),
		cmocka_unit_test(test_refused),     cmocka_unit_test(test_see),
		cmocka_unit_test(test_see_bits),    cmocka_unit_test(test_see_kept),
		cmocka_unit_test(test_see_refused), cmocka_unit_test(test_see_files),
		cmocka_unit_test(test_pairs),       cmocka_unit_test(test_pair_keys),
		cmocka_unit_test(test_pair_found),  cmocka_unit_test(test_see_gguf),
		cmocka_unit_test(test_images),      cmocka_unit_test(test_image_fields),
		cmocka_unit_test(test_image_chats), cmocka_unit_test(test_image_sessions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
