/* tests/pictures/t_processor.c - what image processors make of pictures, beside what transformers made of the same
 * files, and sizes beside Python's arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "loaders/files/safetensors.h"
#include "pictures/processor.h"
#include "tests/pictures/processor_tests.h"
#include "tests/support/shared.h"

/* ---- beside transformers */

struct tensors {
	uint8_t *bytes;
	struct safetensors st;
};

static const struct safetensors_tensor *find(const struct tensors *t, const char *name, int k)
{
	char full[60];
	snprintf(full, sizeof full, "%s%d", name, k);
	for (uint32_t i = 0; i < t->st.n_tensors; i++)
		if (t->st.tensor[i].name.n == strlen(full) && memcmp(t->st.tensor[i].name.p, full, strlen(full)) == 0)
			return &t->st.tensor[i];
	return NULL;
}

static int64_t int_at(const struct tensors *t, const char *name, int k, uint64_t i)
{
	const struct safetensors_tensor *found = find(t, name, k);
	int64_t v;
	assert_non_null(found);
	assert_true(i * sizeof v < found->bytes);
	memcpy(&v, t->bytes + found->offset + i * sizeof v, sizeof v);
	return v;
}

static float float_at(const struct tensors *t, const struct safetensors_tensor *x, uint64_t i)
{
	float v;
	memcpy(&v, t->bytes + x->offset + i * sizeof v, sizeof v);
	return v;
}

static void decode_file(struct picture *p, const char *path)
{
	struct error err = { 0 };
	size_t n;
	uint8_t *bytes = file_bytes(path, &n);
	if (!picture_decode(p, bytes, n, path, NULL, &err))
		fail_msg("%s", err.text);
	free(bytes);
}

/* The channel of value i of a part, by its layout. */
static int channel_of(const struct processed_image *image, const struct image_part *part, size_t i)
{
	size_t patch = (size_t)image->patch * image->patch;
	switch (image->layout) {
	case IMAGE_PLANES: return (int)(i / ((size_t)part->width * part->height));
	case IMAGE_PATCHES: return (int)(i % 3);
	case IMAGE_WINDOWS: return (int)(i / (patch * image->frames) % 3);
	}
	return 0;
}

/* Values of the reference beside ours; one of 255 steps of a colour is 1 / 255 / std. */
static void compare_values(const struct image_processor *p, const struct processed_image *image,
                           const struct tensors *t, int k, bool exact, double *worst)
{
	const struct safetensors_tensor *x = find(t, "pixel_values", k);
	assert_non_null(x);
	size_t at = 0, stride = image->n_values / image->n_parts;
	/* LFM2-VL's parts are padded to one number of patches. */
	if (p->kind == PROCESSOR_LFM2_VL)
		stride = x->dim[1] * x->dim[2];
	assert_int_equal(x->bytes, stride * image->n_parts * sizeof(float));
	for (uint32_t n = 0; n < image->n_parts; n++, at += stride)
		for (size_t i = 0; i < image->parts[n].n_values; i++) {
			float ours = image->parts[n].values[i], theirs = float_at(t, x, at + i);
			double steps = fabs(ours - theirs) * 255 * p->std[channel_of(image, &image->parts[n], i)];
			if (exact ? memcmp(&ours, &theirs, sizeof ours) != 0 : steps > 1.001)
				fail_msg("picture %d, part %u, value %zu is %.9g, expected %.9g", k, n, i, ours,
				         theirs);
			*worst = fmax(*worst, steps);
		}
}

static void compare_grid(const struct processed_image *image, const struct tensors *t, int k)
{
	const struct image_part *part = &image->parts[0];
	if (find(t, "image_grid_thw", k)) {
		assert_int_equal(int_at(t, "image_grid_thw", k, 0), 1);
		assert_int_equal(int_at(t, "image_grid_thw", k, 1), part->rows);
		assert_int_equal(int_at(t, "image_grid_thw", k, 2), part->columns);
	}
	if (find(t, "image_sizes", k)) {
		assert_int_equal(int_at(t, "image_sizes", k, 0), part->height);
		assert_int_equal(int_at(t, "image_sizes", k, 1), part->width);
	}
	if (find(t, "spatial_shapes", k)) {
		assert_int_equal(int_at(t, "spatial_shapes", k, 0), part->rows);
		assert_int_equal(int_at(t, "spatial_shapes", k, 1), part->columns);
	}
	if (find(t, "num_patches", k))
		assert_int_equal(int_at(t, "num_patches", k, 0), image->n_parts);
}

/* The segments have each feature once, in order. */
static void check_segments(const struct processed_image *image)
{
	uint32_t part = 0, next = 0, all = 0;
	for (uint32_t k = 0; k < image->n_segments; k++) {
		const struct prompt_segment *segment = &image->segments[k];
		assert_true((segment->n > 0) != (segment->text[0] != 0));
		assert_true(k == 0 || segment->n > 0 || image->segments[k - 1].n > 0);
		if (segment->n == 0)
			continue;
		if (segment->part != part) {
			assert_int_equal(segment->part, part + 1);
			assert_int_equal(next, image->parts[part].tokens);
			part++;
			next = 0;
		}
		assert_int_equal(segment->first, next);
		next += segment->n;
		all += segment->n;
	}
	assert_int_equal(part + 1, image->n_parts);
	assert_int_equal(next, image->parts[part].tokens);
	assert_int_equal(all, image->tokens);
}

static void judge_folder(const char *name, enum processor_kind kind, int whole)
{
	char relative[100], folder[1024], path[1100];
	struct error err = { 0 };
	struct image_processor p;
	struct tensors t;
	size_t n;
	double worst = 0;

	snprintf(relative, sizeof relative, "golden-more/see-%s-a", name);
	if (!shared_path(folder, relative))
		skip();
	if (!processor_read_folder(&p, folder, &err))
		fail_msg("%s", err.text);
	assert_int_equal(p.kind, kind);
	/* torchvision had no Lanczos and took the bicubic filter instead. */
	if (p.resample == RESAMPLE_LANCZOS)
		p.resample = RESAMPLE_BICUBIC;
	snprintf(path, sizeof path, "%s/tensors.safetensors", folder);
	t.bytes = file_bytes(path, &n);
	assert_true(safetensors_parse(&t.st, t.bytes, n, path, false, &err));
	for (int k = 0; k < 3; k++) {
		struct picture picture;
		struct processed_image image, plan;
		snprintf(path, sizeof path, "%s/image%d.png", folder, k);
		decode_file(&picture, path);
		if (!processor_run(&p, &picture, &image, &err))
			fail_msg("%s", err.text);
		compare_grid(&image, &t, k);
		compare_values(&p, &image, &t, k, k == whole, &worst);
		assert_int_equal(find(&t, "features", k)->dim[0], image.tokens);
		check_segments(&image);
		assert_true(processor_plan(&p, picture.width, picture.height, &plan, &err));
		assert_int_equal(plan.n_values, image.n_values);
		assert_int_equal(plan.tokens, image.tokens);
		assert_null(plan.values);
		assert_int_equal(image.width, picture.width);
		assert_int_equal(image.height, picture.height);
		processed_image_free(&plan);
		processed_image_free(&image);
		picture_free(&picture);
	}
	print_message("see-%s-a: differs by %.3f of 255 steps at most\n", name, worst);
	safetensors_free(&t.st);
	free(t.bytes);
}

static void test_qwen25vl(void **state) { judge_folder("qwen25vl", PROCESSOR_QWEN2_VL, 1); }
static void test_qwen3vl(void **state) { judge_folder("qwen3vl", PROCESSOR_QWEN2_VL, 1); }
static void test_qwen35(void **state) { judge_folder("qwen35", PROCESSOR_QWEN2_VL, 1); }
static void test_gemma3(void **state) { judge_folder("gemma3", PROCESSOR_GEMMA3, 1); }
static void test_smolvlm(void **state) { judge_folder("smolvlm", PROCESSOR_IDEFICS3, -1); }
static void test_internvl(void **state) { judge_folder("internvl", PROCESSOR_GOT_OCR2, 1); }
static void test_llava(void **state) { judge_folder("llava", PROCESSOR_CLIP, 1); }
static void test_pixtral(void **state) { judge_folder("pixtral", PROCESSOR_PIXTRAL, 1); }
static void test_lfm2vl(void **state) { judge_folder("lfm2vl", PROCESSOR_LFM2_VL, 1); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_qwen25vl),
		cmocka_unit_test(test_qwen3vl),
		cmocka_unit_test(test_qwen35),
		cmocka_unit_test(test_gemma3),
		cmocka_unit_test(test_smolvlm),
		cmocka_unit_test(test_internvl),
		cmocka_unit_test(test_llava),
		cmocka_unit_test(test_pixtral),
		cmocka_unit_test(test_lfm2vl),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refused_fields),
		cmocka_unit_test(test_gguf),
		cmocka_unit_test(test_refused_gguf),
		cmocka_unit_test(test_gguf_beside_folders),
		cmocka_unit_test(test_all_sizes),
		cmocka_unit_test(test_known_sizes),
		cmocka_unit_test(test_refused_sizes),
		cmocka_unit_test(test_segments),
		cmocka_unit_test(test_crops),
		cmocka_unit_test(test_steps_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
