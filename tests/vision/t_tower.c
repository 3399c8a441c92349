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
#include "loaders/files/safetensors.h"
#include "tests/support/shared.h"
#include "tests/vision/tower_tests.h"

enum { PICTURES = 3 };

/* ---- the reference */

struct reference {
	uint8_t *bytes;
	struct safetensors index;
};

static bool reference_open(struct reference *r, const char *model)
{
	char path[1024], name[200];
	struct error err = { 0 };
	size_t n;

	snprintf(name, sizeof name, "golden-more/%s/tensors.safetensors", model);
	if (!shared_path(path, name))
		return false;
	r->bytes = file_bytes(path, &n);
	if (!safetensors_parse(&r->index, r->bytes, n, path, false, &err))
		fail_msg("%s", err.text);
	return true;
}

static void reference_close(struct reference *r)
{
	safetensors_free(&r->index);
	free(r->bytes);
}

/* NULL: there is no tensor of that name, with the picture's number behind it. */
static const struct safetensors_tensor *find(const struct reference *r, const char *name, unsigned picture)
{
	char whole[60];
	const int n = snprintf(whole, sizeof whole, "%s%u", name, picture);

	for (uint32_t i = 0; i < r->index.n_tensors; i++)
		if (r->index.tensor[i].name.n == (size_t)n && memcmp(r->index.tensor[i].name.p, whole, (size_t)n) == 0)
			return &r->index.tensor[i];
	return NULL;
}

static const float *floats_of(const struct reference *r, const struct safetensors_tensor *t)
{
	assert_int_equal(t->type, DTYPE_F32);
	assert_int_equal(t->offset % sizeof(float), 0);
	return (const float *)(const void *)(r->bytes + t->offset);
}

/* Two numbers of rows of patches: the last two of the tensor. */
static void grid_of(const struct reference *r, const struct safetensors_tensor *t, struct tower_pixels *p)
{
	int64_t side[3];
	const uint64_t n = t->bytes / sizeof *side;

	assert_int_equal(t->type, DTYPE_I64);
	assert_true(n == 2 || n == 3);
	memcpy(side, r->bytes + t->offset, t->bytes);
	p->height = (uint32_t)side[n - 2];
	p->width = (uint32_t)side[n - 1];
}

static struct tower_pixels pixels_of(const struct reference *r, unsigned picture)
{
	const struct safetensors_tensor *t = find(r, "pixel_values", picture),
					*grid = find(r, "image_grid_thw", picture);
	struct tower_pixels p = { .tiles = 1 };

	assert_non_null(t);
	p.values = floats_of(r, t);
	grid = grid ? grid : find(r, "spatial_shapes", picture);
	if (grid) {
		grid_of(r, grid, &p);
		return p;
	}
	assert_true(t->rank == 4 || t->rank == 5);
	p.height = (uint32_t)t->dim[t->rank - 2];
	p.width = (uint32_t)t->dim[t->rank - 1];
	p.tiles = (uint32_t)t->dim[t->rank - 4];
	return p;
}

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

static const char *const models[] = { "see-llava-a",    "see-smolvlm-a", "see-gemma3-a",
	                              "see-internvl-a", "see-pixtral-a", "see-qwen25vl-a",
	                              "see-qwen3vl-a",  "see-qwen35-a",  "see-lfm2vl-a" };

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
		const struct tower_pixels p = pixels_of(&r, i);
		const struct safetensors_tensor *wanted = find(&r, "features", i);
		assert_non_null(wanted);
		struct tower_features f = tower_encoded(t, &p);
		assert_int_equal(f.tokens, wanted->dim[0]);
		assert_int_equal(f.width, wanted->dim[1]);
		const double apart = tower_difference(f.values, floats_of(&r, wanted), f.tokens * f.width);
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
	for (size_t i = 0; i < sizeof models / sizeof *models; i++)
		compare_model(models[i], c);
	jit_compute_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_features),
		cmocka_unit_test(test_own_tower),
		cmocka_unit_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
