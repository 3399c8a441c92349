/* bench/images_main.c - how long an image encoder takes: bench/images MMPROJ PIXELS [ROUNDS [THREADS [DEVICE]]], a
 * picture of so many pixels on each side. THREADS 0 are all that there are. Prints the seconds of each round; the first
 * one, which writes kernels, is printed apart.
 *
 * bench/images.sh runs it in turns with llama.cpp, bench/torch_tower.py in turns with PyTorch.
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/host/system.h"
#include "vision/tower.h"

static float *noise(size_t n)
{
	float *out = malloc(n * sizeof *out);
	uint32_t state = 1;

	for (size_t i = 0; out && i < n; i++) {
		state = state * 1664525u + 1013904223u;
		out[i] = (float)(state >> 8) / (float)(1 << 23) - 1;
	}
	return out;
}

static int encode(struct tower *t, const struct tower_pixels *p, int rounds, struct error *err)
{
	for (int i = 0; i <= rounds; i++) {
		struct tower_features f;
		const double begin = system_seconds();
		if (!tower_encode(t, p, &f, err))
			return 1;
		printf("%s %.4f\n", i ? "encoded" : "first", system_seconds() - begin);
		fflush(stdout);
		free(f.values);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct error err = { 0 };
	jit_error e = { 0 };

	if (argc < 3 || argc > 6) {
		fprintf(stderr, "usage: bench/images MMPROJ PIXELS [ROUNDS [THREADS [DEVICE]]]\n");
		return 2;
	}
	const uint32_t side = (uint32_t)strtoul(argv[2], NULL, 10);
	jit_compute *c = jit_compute_open(
		&JIT_COMPUTE_OPTIONS(.device = argc > 5 ? argv[5] : "cpu", .threads = argc > 4 ? atoi(argv[4]) : 0),
		&e);
	struct tower *t = c ? tower_open(argv[1], c, &err) : NULL;
	if (!t) {
		fprintf(stderr, "bench/images: %s%s\n", e.message, err.text);
		return 1;
	}
	const struct tower_spec *s = tower_spec_of(t);
	const uint32_t by = s->flags & TOWER_ROWS ? s->patch : 1;
	struct tower_pixels p = { .tiles = 1, .height = side / by, .width = side / by };
	p.values = noise((size_t)side * side * s->channels * s->frames);
	const int status = p.values ? encode(t, &p, argc > 3 ? atoi(argv[3]) : 3, &err) : 1;
	if (status)
		fprintf(stderr, "bench/images: %s\n", err.text);
	free((void *)(uintptr_t)p.values);
	tower_close(t);
	jit_compute_close(c);
	return status;
}
