/* programs/jitk/jitk_example_fill.c - the inputs of the examples, which are the same on every machine. */
#include <string.h>

#include "programs/jitk/jitk_example.h"

static uint64_t word(uint64_t state)
{
	uint64_t z = state + UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static float fraction(uint32_t bits, const struct example_values *v)
{
	return (float)((double)(bits >> 8) / (1 << 24) * v->scale + v->offset);
}

static const struct example_values *values_of(const struct example *x, const char *name)
{
	for (size_t i = 0; i < EXAMPLE_VALUES && x->values[i].name; i++)
		if (strcmp(x->values[i].name, name) == 0)
			return &x->values[i];
	return NULL;
}

bool example_fill(const struct example *x, struct jitk_array *a, bool *done, struct error *err)
{
	static const uint8_t permutation[256] = {
#include "programs/jitk/permutation.def"
	};
	const struct example_values *v = values_of(x, a->is.name);
	uint32_t *integer = (uint32_t *)(void *)a->data;
	float *real = (float *)(void *)a->data;

	if (!v) {
		*done = false;
		return !x->fill || x->fill(a, done, err);
	}
	*done = true;
	a->number = v->offset;
	for (uint64_t i = 0; a->data && i < a->is.elements; i++)
		switch (v->input) {
		case EXAMPLE_NUMBER: real[i] = (float)v->offset; break;
		case EXAMPLE_WORDS: integer[i] = (uint32_t)(word(i) >> 32); break;
		case EXAMPLE_UPPER: real[i] = fraction((uint32_t)(word(i) >> 32), v); break;
		case EXAMPLE_LOWER: real[i] = fraction((uint32_t)word(1000000 + i), v); break;
		case EXAMPLE_PERMUTATION: integer[i] = permutation[i & 255]; break;
		}
	return true;
}

/* A field with two slopes, and a velocity that grows towards one corner. */
bool example_fill_stencil(struct jitk_array *a, bool *done, struct error *err)
{
	const uint64_t n = a->is.extent[0];
	const bool field = strcmp(a->is.name, "a") == 0;
	float *to = (float *)(void *)a->data;

	*done = field || strcmp(a->is.name, "vsq") == 0;
	for (uint64_t z = 0; *done && z < n; z++)
		for (uint64_t y = 0; y < n; y++)
			for (uint64_t x = 0; x < n; x++)
				*to++ = field ? (float)(x < n / 2 ? x : y) / (float)n
				              : (float)(x * y * z) / (float)(n * n * n);
	return true;
}
