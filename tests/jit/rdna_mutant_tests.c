/* tests/jit/rdna_mutant_tests.c - the driver's barrier with one thing wrong at a time: the simulator must notice each,
 * because nothing else would before a card hangs or computes with stale values.
 *
 * Owns: the table of what can be wrong. Instructions are found by the simulator's decoder, their bits changed by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/jit/rdna_mutant_tests.h"
#include "tests/jit/rdna_program_bench.h"

enum change {
	CLEAR,    /* bits of one of its words */
	REMOVE,   /* becomes s_nop */
	RUSH,     /* the instruction behind, a wait, becomes s_nop */
	EXCHANGE, /* with the instruction behind, which is as long */
};

/* which: among those of that name in the driver, from 0 on. */
struct mutant {
	const char *targets, *what, *name;
	unsigned which;
	enum change change;
	unsigned word;
	uint32_t bits;
	const char *says;
};

#define OLD "gfx1030 gfx1100 gfx1150"
#define NEW "gfx1200"
static const struct mutant mutants[] = {
	{ OLD, "GL1 is not invalidated", "buffer_gl1_inv", 0, REMOVE, 0, 0, "last invalidated" },
	{ OLD, "L0 is not invalidated", "buffer_gl0_inv", 0, REMOVE, 0, 0, "a plain load" },
	{ OLD, "L0 is invalidated before GL1", "buffer_gl1_inv", 0, EXCHANGE, 0, 0, "a plain load" },
	{ OLD, "the scalar cache is not invalidated", "s_dcache_inv", 0, REMOVE, 0, 0, "a scalar load" },
	{ OLD, "no load stands behind the invalidations", "global_load_b64", 1, REMOVE, 0, 0, "a scalar load" },
	{ OLD, "the invalidation is not waited for", "s_dcache_inv", 0, RUSH, 0, 0, "a scalar load" },
	{ OLD, "stores are not waited for", "s_waitcnt_vscnt", 0, REMOVE, 0, 0, "nothing ordered before" },
	{ "gfx1030", "the poll has no glc", "global_load_b64", 0, CLEAR, 0, 1 << 16, "old value for ever" },
	{ "gfx1030", "the poll has no dlc", "global_load_b64", 0, CLEAR, 0, 1 << 12, "old value for ever" },
	{ "gfx1030", "the poll has neither", "global_load_b64", 0, CLEAR, 0, 1 << 16 | 1 << 12, "old value for ever" },
	{ "gfx1100 gfx1150", "the poll has no glc", "global_load_b64", 0, CLEAR, 0, 1 << 14, "old value for ever" },
	{ NEW, "the poll has the CU's scope", "global_load_b64", 0, CLEAR, 1, 3 << 18, "old value for ever" },
	{ NEW, "the arrival has the CU's scope", "global_atomic_add_u32", 0, CLEAR, 1, 3 << 18, "scope" },
	{ NEW, "the invalidation has the CU's scope", "global_inv", 0, CLEAR, 1, 3 << 18, "last invalidated" },
	{ NEW, "there is no invalidation", "global_inv", 0, REMOVE, 0, 0, "last invalidated" },
	{ NEW, "stores are not waited for", "s_wait_storecnt", 0, REMOVE, 0, 0, "nothing ordered before" },
	{ NEW, "GL1's invalidation is not waited for", "global_inv", 0, RUSH, 0, 0, "a scalar load" },
	{ NEW, "the scalar cache's is not waited for", "s_dcache_inv", 0, RUSH, 0, 0, "a scalar load" },
	{ NEW, "the scalar cache is not invalidated", "s_dcache_inv", 0, REMOVE, 0, 0, "a scalar load" },
	{ NEW, "instructions are fetched from elsewhere", "s_prefetch_inst", 0, CLEAR, 0, 0x3f, "outside the code" },
};

/* The driver's words in the object's bytes; it ends where the first function begins. */
static uint32_t *driver_of(const struct bench *b, uint8_t *bytes, size_t size)
{
	uint64_t end = UINT64_MAX;
	const uint8_t *code = (const uint8_t *)(uintptr_t)sim_find(b->object, RDNA_PROGRAM_KERNEL)->entry;

	for (int i = 0; i < FUNCTIONS; i++)
		end = b->offset[i] < end ? b->offset[i] : end;
	for (size_t at = 0; at + end <= size; at += 4)
		if (memcmp(bytes + at, code, end) == 0)
			return (uint32_t *)(void *)(bytes + at);
	fail_msg("the driver is not in its object");
	return NULL;
}

static bool is(const struct sim_device *dev, const uint32_t *w, const char *name, unsigned *length)
{
	const char *got = sim_decode_name(dev, w, 4, length);

	assert_non_null(got);
	return strncmp(got, name, strlen(name)) == 0;
}

/* The instruction, and of how many words it is. */
static uint32_t *find(const struct sim_device *dev, uint32_t *w, const char *name, unsigned which, unsigned *length)
{
	for (unsigned words = 0; words < 2000; words += *length, w += *length)
		if (is(dev, w, name, length) && !which--)
			return w;
		else if (is(dev, w, "s_code_end", length) || is(dev, w, "s_endpgm", length))
			break;
	fail_msg("the driver has no such %s", name);
	return NULL;
}

static void erase(uint32_t *w, unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		w[i] = 0xbf800000; /* s_nop 0 */
}

static void change(const struct sim_device *dev, uint32_t *driver, const struct mutant *m)
{
	unsigned length, other;
	uint32_t *w = find(dev, driver, m->name, m->which, &length), kept[4];

	switch (m->change) {
	case CLEAR:
		assert_true(m->word < length && (w[m->word] & m->bits));
		w[m->word] &= ~m->bits;
		break;
	case RUSH:
		w += length;
		(void)is(dev, w, "", &length);
		erase(w, length);
		break;
	case REMOVE: erase(w, length); break;
	case EXCHANGE:
		(void)is(dev, w + length, "", &other);
		assert_int_equal(other, length);
		memcpy(kept, w, 4 * length);
		memcpy(w, w + length, 4 * length);
		memcpy(w + length, kept, 4 * length);
		break;
	}
}

/* Whether some order of the waves shows it: one mistake can be seen in several ways. */
static bool is_noticed(struct bench *b, const char *says, struct error *err)
{
	for (unsigned seed = 0; seed < 8; seed++) {
		struct sim_options o = {
			.memory = seed % 2 ? SIM_MEMORY_RANDOM : SIM_MEMORY_AT_WAIT, .seed = seed, .races = true
		};
		b->sync = (struct rdna_program_sync){ 0 };
		build_program(b, 40, 4, seed);
		if (!launch_program(b, 0, STEPS * FUNCTIONS, 4, &o, err) && strstr(err->text, says))
			return true;
	}
	return false;
}

static void try_mutant(const char *target, const struct mutant *m)
{
	struct bench *b = open_bench(target);
	struct error err = { 0 };
	uint8_t *bytes = malloc(b->size);

	assert_non_null(bytes);
	memcpy(bytes, b->bytes, b->size);
	change(b->dev, driver_of(b, bytes, b->size), m);
	reload_bench(b, bytes, b->size);
	if (!is_noticed(b, m->says, &err))
		fail_msg("%s: %s, and the simulator says \"%s\"", target, m->what, err.text);
	free(bytes);
	close_bench(b);
}

void test_driver_mutants(void **unused)
{
	(void)unused;
	for (unsigned t = 0; t < TARGETS; t++)
		for (unsigned i = 0; i < sizeof mutants / sizeof *mutants; i++)
			if (strstr(mutants[i].targets, program_targets[t]))
				try_mutant(program_targets[t], &mutants[i]);
}
