/* tests/kernel_card.c - templates' kernels as a card runs them: linked behind the driver, launched in the simulator (kernel_run.h).
 *
 * Owns: what memory simulated kernels may touch, and the turns that everything takes which must not change a result.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jit/rdna_program.h"
#include "sim/sim.h"
#include "tests/kernel_run.h"

/* ---- memory */

struct region { uintptr_t base; size_t size; };
static struct region *known;
static size_t n_known, known_capacity;

void kernel_know(const void *base, size_t n)
{
	struct region new = { (uintptr_t)base, n };

	for (size_t i = n_known; i-- > 0;)
		if (known[i].base < new.base + n && new.base < known[i].base + known[i].size)
			known[i] = known[--n_known];
	if (n_known == known_capacity) {
		known_capacity = 2 * known_capacity + 64;
		known = realloc(known, known_capacity * sizeof *known);
		assert_non_null(known);
	}
	known[n_known++] = new;
}

static const struct region *find_known(uint64_t address)
{
	for (size_t i = n_known; i-- > 0;)
		if (address >= known[i].base && address - known[i].base < known[i].size)
			return &known[i];
	return NULL;
}

/* ---- a kernel */

struct kernel_card {
	const char *name;
	struct key key;
	struct sim_device *device;
	struct sim_object *object;
	uint64_t function;
	bool cooperative;
};

static unsigned key_args(const struct key *key)
{
	static const uint8_t args[KEY_KIND_COUNT] = { [KEY_MATMUL] = MATMUL_ARGS, [KEY_TURN] = TURN_ARGS, [KEY_NORM] = NORM_ARGS, [KEY_QUANTISE] = QUANTISE_ARGS, [KEY_ROPE] = ROPE_ARGS,
		[KEY_KV_STORE] = KV_STORE_ARGS, [KEY_ATTENTION] = ATTENTION_ARGS, [KEY_EMBED] = EMBED_ARGS };
	assert_true(args[key->kind] > 0);
	return args[key->kind];
}

static void refuse(const char *name, const struct key *key, const char *why)
{
	char text[KEY_TEXT_MAX];
	fail_msg("%s, %s: %s", name, key_text(key, text, sizeof text), why);
}

static void fail_card(const struct kernel_card *c, const struct error *err) { refuse(c->name, &c->key, err->text); }

/* Registers dealt at random leave gaps in which large tuples may not fit; those in order must do. */
static bool compile(struct object *o, const struct ir *ir, const struct target *target, struct compile_stats *stats, struct error *err)
{
	static const uint32_t skips[] = { 0, COMPILE_SKIP_SCHED, 0, COMPILE_SKIP_VOPD, 0, COMPILE_SKIP_CLAUSES | COMPILE_SKIP_DELAYS };
	static uint32_t turn;
	struct compile_options options = { .seed = turn % 4 == 0 ? 0 : turn, .skip = skips[turn / 2 % (sizeof skips / sizeof *skips)] };
	struct error scrambled = { 0 };

	turn++;
	if (options.seed && compile_ir(o, ir, target, &options, stats, &scrambled))
		return true;
	if (options.seed && scrambled.code != ERROR_UNSUPPORTED)
		return error_set(err, scrambled.code, "%s", scrambled.text);
	options.seed = 0;
	return compile_ir(o, ir, target, &options, stats, err);
}

void kernel_card_open(struct kernel *k, const struct kernel_way *way, const struct key *key, const struct ir *ir)
{
	struct kernel_card *c = calloc(1, sizeof *c);
	struct error err = { 0 };
	struct object o = { 0 };
	const struct object *functions[] = { &o };
	uint8_t *bytes = NULL;
	size_t size = 0;

	memset(k, 0, sizeof *k);
	assert_non_null(c);
	*c = (struct kernel_card){ .name = way->name, .key = *key };
	if (!compile(&o, ir, &way->target, &k->stats, &err) || !rdna_program_make(&bytes, &size, &way->target, functions, 1, &c->function, &err))
		fail_card(c, &err);
	c->cooperative = o.cooperative;
	if (rdna_program_lds(&o) > RDNA_PROGRAM_LDS)
		refuse(c->name, key, "a workgroup has not so much LDS");
	c->device = sim_open(way->target.name, &err);
	c->object = c->device ? sim_load(c->device, bytes, size, &err) : NULL;
	if (!c->object)
		fail_card(c, &err);
	object_free(&o);
	free(bytes);
	k->card = c;
}

void kernel_card_close(struct kernel_card *c)
{
	sim_unload(c->object);
	sim_close(c->device);
	free(c);
}

/* ---- a launch */

static void map(struct kernel_card *c, const void *base, size_t n, const char *name, bool writable)
{
	struct error err = { 0 };
	if (!sim_map(c->device, (void *)(uintptr_t)base, n, name, writable, &err))
		fail_card(c, &err);
}

/* The regions that the arguments point into, each once. Slots a kernel does not use may hold anything. */
static unsigned map_args(struct kernel_card *c, const uint64_t *arg, const struct region *mapped[])
{
	unsigned n = 0;

	for (unsigned i = 0; i < key_args(&c->key); i++) {
		const struct region *r = find_known(arg[i]);
		for (unsigned j = 0; j < n && r; j++)
			if (mapped[j] == r)
				r = NULL;
		if (!r)
			continue;
		map(c, (const void *)r->base, r->size, "an argument's memory", true);
		mapped[n++] = r;
	}
	return n;
}

static void dispatch(struct kernel_card *c, const struct rdna_program_args *args)
{
	static uint64_t seed;
	const uint32_t groups[3] = { args->workgroups, 1, 1 }, items[3] = { RDNA_PROGRAM_WAVES * 32, 1, 1 };
	const struct sim_options o = { .memory = (enum sim_memory_mode)(seed % 3), .seed = seed, .resident = args->workgroups, .races = seed % 4 == 0, .perturb = (uint32_t)(seed % 5) };
	struct error err = { 0 };

	seed++;
	if (!sim_dispatch(c->device, sim_find(c->object, RDNA_PROGRAM_KERNEL), args, sizeof *args, groups, items, &o, &err))
		fail_card(c, &err);
}

void kernel_card_run(struct kernel_card *c, const uint64_t *arg, int64_t begin, int64_t end)
{
	static const uint32_t counts[] = { 1, 3, 2, 5 };
	static unsigned turn;
	const struct region *mapped[MATMUL_ARGS + KV_STORE_ARGS];
	uint32_t arrivals = 0, workgroups = counts[turn++ % 4];
	uint64_t own[MATMUL_ARGS + KV_STORE_ARGS], units = (uint64_t)(end - begin), shares = (uint64_t)workgroups * (c->cooperative ? 1 : RDNA_PROGRAM_WAVES);
	const struct rdna_phase phase[2] = { { .function = c->function, .arg = (uint64_t)(uintptr_t)own, .begin = begin, .per = (uint32_t)(units / shares), .rest = (uint32_t)(units % shares),
		.flags = c->cooperative ? RDNA_PHASE_COOPERATIVE : 0 } };
	const struct rdna_program_args args = { .phases = (uint64_t)(uintptr_t)phase, .end = 1, .arrivals = (uint64_t)(uintptr_t)&arrivals, .workgroups = workgroups };

	memcpy(own, arg, key_args(&c->key) * sizeof *own);
	unsigned n = map_args(c, arg, mapped);
	map(c, own, key_args(&c->key) * sizeof *own, "the arguments", false);
	map(c, phase, sizeof phase, "the phases", false);
	map(c, &arrivals, sizeof arrivals, "the arrivals", true);
	dispatch(c, &args);
	sim_unmap(c->device, &arrivals);
	sim_unmap(c->device, (void *)(uintptr_t)phase);
	sim_unmap(c->device, own);
	for (unsigned i = 0; i < n; i++)
		sim_unmap(c->device, (void *)mapped[i]->base);
}
