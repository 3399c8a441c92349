/* tests/vision/reference.c - what transformers' image processors and encoders gave: tensors.safetensors of a folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tests/support/shared.h"
#include "tests/vision/tower_tests.h"

void reference_open_file(struct reference *r, const char *path)
{
	struct error err = { 0 };
	size_t n;

	r->bytes = file_bytes(path, &n);
	if (!safetensors_parse(&r->index, r->bytes, n, path, false, &err))
		fail_msg("%s", err.text);
}

bool reference_open(struct reference *r, const char *model)
{
	char path[1024], name[200];

	snprintf(name, sizeof name, "golden-more/%s/tensors.safetensors", model);
	if (!shared_path(path, name))
		return false;
	reference_open_file(r, path);
	return true;
}

void reference_close(struct reference *r)
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

struct tower_pixels reference_pixels(const struct reference *r, unsigned picture)
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

const float *reference_floats(const struct reference *r, const char *name, unsigned picture)
{
	const struct safetensors_tensor *t = find(r, name, picture);

	assert_non_null(t);
	return floats_of(r, t);
}

uint64_t reference_rows(const struct reference *r, const char *name, unsigned picture)
{
	return find(r, name, picture)->dim[0];
}
