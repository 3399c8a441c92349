/* runtime/device/amd/amd_end.c - see amd_end.h. */
#include "runtime/device/amd/amd_end.h"

#include <stdlib.h>

#include "jit/rdna/end.h"
#include "runtime/device/amd/amd.h"

/* Nothing of the card's memory is used: the code lies in the host's. */
static bool run(struct amd *d, struct error *err)
{
	const struct amd_launch l = { .what = "a program that only ends" };
	struct amd_kernel k = { 0 };
	struct amd_code code = { 0 };
	uint8_t *elf = NULL;
	size_t size = 0;
	bool ok = rdna_end_make(&elf, &size, d->card.target->name, err) && amd_code_load(d, &code, elf, size, err) &&
	          amd_code_find(&code, elf, size, RDNA_END_KERNEL, &k, err) && amd_lock_take(d, NULL, err);

	free(elf);
	if (ok) {
		k.waves = 1;
		amd_queue_put(d, &k, 1, true);
		ok = amd_wait(d, &l, err);
		amd_lock_give(d);
	}
	amd_code_unload(d, &code);
	return ok;
}

bool amd_run_end(const char *which, struct error *err)
{
	struct amd *d = calloc(1, sizeof *d);

	if (!d)
		return error_set(err, ERROR_MEMORY, "no memory for a card");
	bool ok = amd_open_queue(d, which, err) && run(d, err);
	amd_close_card(&d->device);
	return ok;
}
