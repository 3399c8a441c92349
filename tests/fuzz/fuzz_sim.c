/* tests/fuzz/fuzz_sim.c - arbitrary bytes as a code object for a simulated card, run for a while, and as its
 * instructions. */
#include <stdlib.h>
#include <string.h>

#include "sim/wave.h"
#include "tests/fuzz/fuzz.h"

static const char *const targets[] = { "gfx1030", "gfx1100", "gfx1200" };

static void run(struct sim_device *dev, const struct sim_object *o)
{
	static const uint8_t arguments[4096];
	const struct sim_options how = {
		.memory = SIM_MEMORY_RANDOM, .seed = 1, .races = true, .max_instructions = 2000, .stall_limit = 2000
	};

	for (unsigned i = 0; i < o->n_kernels && i < 4; i++) {
		struct error err = { 0 };
		const struct sim_kernel *k = &o->kernels[i];
		if (k->kernarg_size <= sizeof arguments &&
		    !sim_dispatch(dev, k, arguments, k->kernarg_size, (const uint32_t[3]){ 2, 1, 1 },
		                  (const uint32_t[3]){ 64, 1, 1 }, &how, &err) &&
		    !err.text[0])
			abort();
	}
}

/* For the machine its head names, if it is one of these. */
void fuzz_object(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		struct error err = { 0 };
		struct sim_device *dev = sim_open(targets[i], &err);
		if (!dev)
			abort();
		struct sim_object *o = sim_load(dev, p, n, &err);
		if ((o == NULL) != (err.text[0] != 0))
			abort();
		if (o) {
			run(dev, o);
			sim_unload(o);
		}
		sim_close(dev);
	}
}

void fuzz_decode(const uint8_t *p, size_t n)
{
	static struct sim_device *dev[3];
	uint32_t words[64];
	unsigned count = (unsigned)(n / 4 < 64 ? n / 4 : 64), length;

	if (count)
		memcpy(words, p, 4 * (size_t)count);
	for (size_t i = 0; i < 3; i++) {
		if (!dev[i] && !(dev[i] = sim_open(targets[i], NULL)))
			abort();
		for (unsigned at = 0; at < count; at++) {
			const char *name = sim_decode_name(dev[i], words + at, count - at, &length);
			if (name && (length == 0 || length > count - at || !name[0]))
				abort();
		}
	}
}
