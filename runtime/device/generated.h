/* runtime/device/generated.h - where generated code goes and comes from: the cache of a device's code, and files of
 * dumps.
 *
 * Owns: which cache is opened where the caller names none, what a sealed run may not do, and the sentences about both.
 */
#ifndef RUNTIME_GENERATED_H
#define RUNTIME_GENERATED_H

#include <stdio.h>

#include "runtime/device/device.h"

struct generated_options {
	const struct device *device;
	const char *first;     /* a pack that is asked before all others; NULL: none */
	const char *cache_dir; /* as jit_model_options has it */
	uint64_t cache_limit;
	bool sealed, dumps;
};
/* *out stays NULL where there is nothing to be kept. False: err. */
bool generated_cache(struct cache **out, const struct generated_options *o, struct error *err);

/* path NULL: *out stays as it is; "-": stdout. */
bool generated_dump(FILE **out, const char *path, struct error *err);
/* Whether all of it could be written; f may be NULL. */
bool generated_dump_written(FILE *f, const char *what, struct error *err);

#endif
