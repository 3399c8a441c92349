/* tests/kernels/kernel_run.c - runs kernels for tests (kernel_run.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jit/backend.h"
#include "jit/store/execmem.h"
#include "tests/kernels/kernel_ptx.h"
#include "tests/kernels/kernel_run.h"
#include "tests/support/shared.h"
#include "tests/kernels/tile_trap.h"

static unsigned without_cards(struct kernel_way way[])
{
	const struct target_cpu cpu = target_this_cpu();
	unsigned n = 0;

	way[n++] = (struct kernel_way){
		"interpreter 8", { .name = "interpreter8", .lanes = 8, .vector_regs = 16 }, false, false
	};
	way[n++] = (struct kernel_way){
		"interpreter 16", { .name = "interpreter16", .lanes = 16, .vector_regs = 32 }, false, false
	};
	way[n++] = (struct kernel_way){
		"interpreter 16 with vnni",
		{ .name = "interpreter16vnni", .lanes = 16, .vector_regs = 32, .has_vnni = true, .has_bsel = true },
		false,
		false
	};
	way[n++] = (struct kernel_way){
		"interpreter 16 with tiles and pairs",
		{ .name = "interpreter16tiles",
		  .lanes = 16,
		  .vector_regs = 32,
		  .has_vnni = true,
		  .has_bsel = true,
		  .has_dot2 = true,
		  .has_tiles = true },
		false,
		false
	};
	way[n++] = (struct kernel_way){
		"interpreter 32", { .name = "interpreter32", .lanes = 32, .vector_regs = 64 }, false, false
	};
	way[n++] = (struct kernel_way){ "interpreter gfx1030", target_table[TARGET_GFX1030], false, false };
	way[n++] = (struct kernel_way){ "interpreter gfx1100", target_table[TARGET_GFX1100], false, false };
	for (int id = TARGET_NONE + 1; id < TARGET_COUNT; id++)
		if (target_runs(&cpu, &target_table[id], NULL))
			way[n++] = (struct kernel_way){ target_table[id].name, target_table[id], true, false };
	if (!target_runs(&cpu, &target_table[TARGET_AVX512_AMX], NULL) &&
	    target_runs(&cpu, &target_table[TARGET_AVX512_VNNI], NULL)) {
		way[n++] = (struct kernel_way){ "avx512amx, its tiles simulated", target_table[TARGET_AVX512_AMX], true,
			                        false };
	}
	return n;
}

/* For the build that has few of the cases: two targets of this machine, an interpreter that has all that templates ask
 * for, and one that has waves. */
static unsigned min_alike(struct kernel_way way[], unsigned n)
{
	unsigned natives = 0, kept = 0, native = 0;

	for (unsigned i = 0; i < n; i++)
		natives += way[i].native;
	for (unsigned i = 0; i < n; i++) {
		native += way[i].native;
		if (way[i].native ? native == 1 || native == natives
		                  : way[i].target.has_tiles || way[i].target.id == TARGET_GFX1100)
			way[kept++] = way[i];
	}
	return kept;
}

static unsigned without_cards_here(struct kernel_way way[])
{
	const unsigned n = without_cards(way);

	return test_small_share() ? min_alike(way, n) : n;
}

unsigned kernel_ways(const struct kernel_way **ways)
{
	static struct kernel_way way[KERNEL_MAX_WAYS];
	static unsigned n;

	*ways = way;
	return n ? n : (n = without_cards_here(way));
}

unsigned kernel_ways_and_cards(const struct kernel_way **ways, int round)
{
	static const struct {
		const char *name;
		enum target_id id;
	} cards[KERNEL_CARDS] = { { "simulated gfx1030", TARGET_GFX1030 },
		                  { "simulated gfx1100", TARGET_GFX1100 },
		                  { "simulated gfx1200", TARGET_GFX1200 },
		                  { "sm80", TARGET_SM80 },
		                  { "sm90", TARGET_SM90 } };
	static struct kernel_way lists[2 * KERNEL_CARDS + 1][KERNEL_MAX_WAYS];
	static unsigned counts[2 * KERNEL_CARDS + 1];
	const bool all = round == KERNEL_ALL_CARDS || test_full(), halves = !all && test_quick() && !test_small_share();
	const unsigned half = test_share_of((unsigned)round, 2);
	const unsigned at = all ? 2 * KERNEL_CARDS : (unsigned)round % KERNEL_CARDS + half * KERNEL_CARDS;
	struct kernel_way *way = lists[at];
	unsigned n = counts[at];

	*ways = way;
	if (n)
		return n;
	n = without_cards_here(way);
	if (halves) {
		unsigned kept = 0;

		for (unsigned i = half; i < n; i += 2)
			way[kept++] = way[i];
		n = kept;
	}
	for (unsigned i = 0; i < KERNEL_CARDS; i++)
		if (all ? test_mine(i) : at % KERNEL_CARDS == i)
			way[n++] = (struct kernel_way){ cards[i].name, target_table[cards[i].id], false, true };
	return counts[at] = n;
}

/* For each kernel: before each test cmocka makes SIGILL its own. */
static void simulate_tiles(const struct kernel_way *way)
{
	const struct target_cpu cpu = target_this_cpu();

	if (way->native && !target_runs(&cpu, &way->target, NULL))
		tile_trap_install();
}

void kernel_open_ir(struct kernel *k, const struct kernel_way *way, const struct ir *ir)
{
	struct error err = { 0 };
	struct object o;

	memset(k, 0, sizeof *k);
	assert_false(way->simulated);
	if (!ir_verify(ir, &err))
		fail_msg("%s: %s", way->name, err.text);
	if (!way->native) {
		k->program = interp_compile(ir);
		assert_non_null(k->program);
		return;
	}
	if (!compile_ir(&o, ir, &way->target, NULL, &k->stats, &err))
		fail_msg("%s: %s", way->name, err.text);
	simulate_tiles(way);
	k->code_bytes = o.code_bytes;
	k->code = execmem_map(o.code, o.code_bytes, &err);
	if (!k->code)
		fail_msg("%s: %s", way->name, err.text);
	object_free(&o);
}

/* own: the key with the way's target. The caller frees ir. */
static bool build(struct ir *ir, struct key *own, const struct kernel_way *way, const struct key *key,
                  struct error *err)
{
	*own = *key;
	own->target = (uint8_t)way->target.id;
	ir_init(ir, way->target.lanes);
	ir->waves = way->target.waves ? way->target.waves : 1;
	return template_build(ir, own, &way->target, err);
}

static void open_ptx(struct kernel *k, const struct kernel_way *way, const struct key *key, const struct ir *ir)
{
	memset(k, 0, sizeof *k);
	k->ptx = kernel_ptx_open(way->name, &way->target, key, ir, &k->stats);
}

void kernel_open(struct kernel *k, const struct kernel_way *way, const struct key *key)
{
	struct error err = { 0 };
	struct key own;
	struct ir ir;

	if (!build(&ir, &own, way, key, &err))
		fail_msg("%s: %s", way->name, err.text);
	if (way->simulated && way->target.backend == &backend_ptx)
		open_ptx(k, way, &own, &ir);
	else if (way->simulated)
		kernel_card_open(k, way, &own, &ir);
	else
		kernel_open_ir(k, way, &ir);
	ir_free(&ir);
}

void kernel_refused(const struct key *key)
{
	const struct kernel_way *ways;
	unsigned n = kernel_ways(&ways);

	for (unsigned i = 0; i < n; i++) {
		struct error err = { 0 };
		struct key own;
		struct ir ir;
		assert_false(build(&ir, &own, &ways[i], key, &err));
		assert_int_equal(err.code, ERROR_UNSUPPORTED);
		ir_free(&ir);
	}
}

void kernel_run(const struct kernel *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	if (k->program) {
		assert_int_equal(interp_run(k->program, NULL, arg, begin, end), INTERP_DONE);
		return;
	}
	if (k->card) {
		kernel_card_run(k->card, arg, begin, end);
		return;
	}
	if (k->ptx) {
		kernel_ptx_run(k->ptx, arg, begin, end);
		return;
	}
	void (*entry)(const uint64_t *, int64_t, int64_t);
	memcpy(&entry, &k->code, sizeof entry);
	entry(arg, begin, end);
}

void kernel_close(struct kernel *k)
{
	if (k->program)
		interp_free(k->program);
	if (k->card)
		kernel_card_close(k->card);
	if (k->ptx)
		kernel_ptx_close(k->ptx);
	if (k->code)
		execmem_unmap(k->code, k->code_bytes);
	memset(k, 0, sizeof *k);
}

void *kernel_buffer(size_t n, int fill)
{
	size_t whole = (n + 256 + 63) / 64 * 64;
	void *p = aligned_alloc(64, whole);
	assert_non_null(p);
	memset(p, fill, whole);
	kernel_know(p, whole);
	return p;
}

float kernel_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	uint32_t r = (uint32_t)(*state >> 33);
	float f = (float)((int32_t)(r & 0xffffff) - 0x800000) / 0x400000;
	switch (r >> 24) {
	case 1: return 0.0f;
	case 2: return f * 1e-30f;
	case 3: return f * 8.0f;
	default: return f;
	}
}
