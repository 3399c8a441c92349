#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/support/shared.h"
#include "tests/sim/sim_run.h"

const char *const sim_bench_targets[3] = { "gfx1030", "gfx1100", "gfx1200" };

uint8_t *sim_bench_read(const char *name, const char *target, size_t *size)
{
	char relative[64], path[1024];
	snprintf(relative, sizeof relative, "tests/sim/%s.%s.co", name, target);
	return file_bytes(source_path(path, relative), size);
}

struct sim_bench sim_bench_open(const char *name, const char *target)
{
	struct error err = { .code = ERROR_NONE };
	struct sim_bench b = { .dev = sim_open(target, &err) };
	size_t size;
	uint8_t *p = sim_bench_read(name, target, &size);
	if (b.dev)
		b.object = sim_load(b.dev, p, size, &err);
	free(p);
	if (!b.object)
		fail_msg("%s", err.text);
	return b;
}

void sim_bench_close(struct sim_bench *b)
{
	sim_unload(b->object);
	sim_close(b->dev);
}

bool sim_bench_run(struct sim_bench *b, const char *kernel, const uint64_t *args, unsigned n, uint32_t groups,
                   uint32_t size, const struct sim_options *options, struct error *err)
{
	const struct sim_kernel *k = sim_find(b->object, kernel);
	uint64_t block[64] = { 0 };
	const uint32_t g[3] = { groups, 1, 1 }, s[3] = { size, 1, 1 };
	if (!k)
		fail_msg("no kernel %s", kernel);
	memcpy(block, args, n * sizeof *args);
	return sim_dispatch(b->dev, k, block, sizeof block, g, s, options, err);
}
