/* tests/kernels/kernel_card.c - templates' kernels as a card runs them: linked behind the driver, launched in the
 * simulator (kernel_run.h).
 *
 * Owns: what memory simulated kernels may touch, and the turns that everything takes which must not change a result, or
 * else their product; how many runs that were, which is printed at the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jit/rdna/program.h"
#include "sim/sim.h"
#include "tests/kernels/kernel_ptx.h"
#include "tests/kernels/kernel_run.h"
#include "tests/support/shared.h"

/* ---- memory */

struct region {
	uintptr_t base;
	size_t size;
};
static struct region *known;
static size_t n_known, known_capacity;

void kernel_know(const void *base, size_t n)
{
	struct region new = { (uintptr_t)base, n };

	for (size_t i = n_known; i-- > 0;)
		if (known[i].base < new.base + n &&new.base < known[i].base + known[i].size)
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

bool kernel_known(uint64_t address, void **base, size_t *n)
{
	const struct region *r = find_known(address);

	if (r) {
		*base = (void *)r->base;
		*n = r->size;
	}
	return r != NULL;
}

/* ---- how much is run */

enum { CODES = 2, MEMORY_MODES = 3, SEEDS = 2 };

static bool all_modes;
static struct {
	unsigned kernels, calls, runs, by_mode[MEMORY_MODES];
} count;

void kernel_all_modes(void) { all_modes = !test_quick(); }

bool kernel_everything(void) { return all_modes || test_full(); }

static void say_count(void)
{
	printf("# on simulated cards: %u runs of %u kernels in %u calls, %u with loads at once, %u at waits, %u in "
	       "between\n",
	       count.runs, count.kernels, count.calls, count.by_mode[SIM_MEMORY_NOW], count.by_mode[SIM_MEMORY_AT_WAIT],
	       count.by_mode[SIM_MEMORY_RANDOM]);
}

/* ---- a kernel */

struct code {
	struct sim_object *object;
	uint64_t function;
	bool cooperative;
};

struct kernel_card {
	const char *name;
	struct key key;
	struct sim_device *device;
	struct code code[CODES];
	unsigned n_codes;
};

static void refuse(const char *name, const struct key *key, const char *why)
{
	char text[KEY_TEXT_MAX];
	fail_msg("%s, %s: %s", name, key_text(key, text, sizeof text), why);
}

static void fail_card(const struct kernel_card *c, const struct error *err) { refuse(c->name, &c->key, err->text); }

/* What a compilation must not depend on. The first code of all modes is what users get. */
static struct compile_options next_options(bool plain)
{
	static const uint32_t skips[] = {
		0, COMPILE_SKIP_SCHED, 0, COMPILE_SKIP_VOPD, 0, COMPILE_SKIP_CLAUSES | COMPILE_SKIP_DELAYS
	};
	static uint32_t round;

	if (plain)
		return (struct compile_options){ .verify_passes = true };
	uint32_t t = round++, seed = kernel_everything() ? t + 1 : t % 4 == 0 ? 0 : t;
	return (struct compile_options){
		.seed = seed, .skip = skips[t / 2 % (sizeof skips / sizeof *skips)], .verify_passes = true
	};
}

/* Registers given at random leave gaps in which large tuples may not fit; those in order must do. */
static bool compile(struct object *o, const struct ir *ir, const struct target *target, struct compile_options options,
                    struct compile_stats *stats, struct error *err)
{
	struct error scrambled = { 0 };

	if (options.seed && compile_ir(o, ir, target, &options, stats, &scrambled))
		return true;
	if (options.seed && scrambled.code != ERROR_UNSUPPORTED)
		return error_set(err, scrambled.code, "%s", scrambled.text);
	options.seed = 0;
	return compile_ir(o, ir, target, &options, stats, err);
}

static void load(struct kernel_card *c, struct code *code, const struct target *target, const struct ir *ir, bool plain,
                 struct compile_stats *stats)
{
	struct error err = { 0 };
	struct object o = { 0 };
	const struct object *functions[] = { &o };
	uint8_t *bytes = NULL;
	size_t size = 0;

	if (!compile(&o, ir, target, next_options(plain), stats, &err) ||
	    !rdna_program_make(&bytes, &size, target, functions, 1, &code->function, &err))
		fail_card(c, &err);
	if (rdna_program_lds(&o) > RDNA_PROGRAM_LDS)
		refuse(c->name, &c->key, "a workgroup has not so much LDS");
	code->cooperative = o.cooperative;
	code->object = sim_load(c->device, bytes, size, &err);
	if (!code->object)
		fail_card(c, &err);
	object_free(&o);
	free(bytes);
}

void kernel_card_open(struct kernel *k, const struct kernel_way *way, const struct key *key, const struct ir *ir)
{
	struct kernel_card *c = calloc(1, sizeof *c);
	struct error err = { 0 };

	memset(k, 0, sizeof *k);
	assert_non_null(c);
	*c = (struct kernel_card){ .name = way->name,
		                   .key = *key,
		                   .device = sim_open(way->target.name, &err),
		                   .n_codes = kernel_everything() ? CODES : 1 };
	if (!c->device)
		fail_card(c, &err);
	for (unsigned i = c->n_codes; i-- > 0;) /* the plain one's numbers are the last */
		load(c, &c->code[i], &way->target, ir, kernel_everything() && i == 0, &k->stats);
	if (!count.kernels++)
		atexit(say_count);
	k->card = c;
}

void kernel_card_close(struct kernel_card *c)
{
	for (unsigned i = 0; i < c->n_codes; i++)
		sim_unload(c->code[i].object);
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

/* What a call's arguments point into. */
enum { MAX_ARGS = MATMUL_ARGS + KV_STORE_ARGS };
struct memory {
	const struct region *region[MAX_ARGS];
	uint8_t *before[MAX_ARGS], *after[MAX_ARGS];
	unsigned n;
};

/* Each region once. What is no address of anything may be asked about. */
static void map_at(struct kernel_card *c, uint64_t address, struct memory *m)
{
	const struct region *r = find_known(address);

	for (unsigned j = 0; j < m->n && r; j++)
		if (m->region[j] == r)
			r = NULL;
	if (!r)
		return;
	map(c, (const void *)r->base, r->size, "an argument's memory", true);
	m->region[m->n++] = r;
}

/* The pages that a table has, which lies in a region of its own. Latent caches have keys alone, and values of 0. */
static void map_pages(struct kernel_card *c, uint64_t table, uint64_t keys, uint64_t values, struct memory *m)
{
	const uint64_t *page = (const uint64_t *)(uintptr_t)table;

	for (size_t i = 0; i + 1 < find_known(table)->size / sizeof *page; i++) {
		map_at(c, page[i] + keys, m);
		if (values)
			map_at(c, page[i] + values, m);
	}
}

/* Slots a kernel does not use may hold anything. */
static void map_args(struct kernel_card *c, const uint64_t *arg, struct memory *m)
{
	m->n = 0;
	for (unsigned i = 0; i < template_args(&c->key); i++)
		map_at(c, arg[i], m);
	if (c->key.kind == KEY_ATTENTION)
		map_pages(c, arg[ATTENTION_PAGES], arg[ATTENTION_KEYS], arg[ATTENTION_VALUES], m);
	if (c->key.kind == KEY_ADAPT_DOWN || c->key.kind == KEY_ADAPT_UP)
		map_pages(c, arg[ADAPT_TABLE], arg[ADAPT_MATRIX], 0, m);
	if (c->key.kind == KEY_KV_STORE)
		map_pages(c, arg[KV_STORE_PAGES], arg[KV_STORE_KEYS], arg[KV_STORE_VALUES], m);
}

static void keep(const struct memory *m, uint8_t *copy[])
{
	for (unsigned i = 0; i < m->n; i++) {
		copy[i] = malloc(m->region[i]->size);
		assert_non_null(copy[i]);
		memcpy(copy[i], (const void *)m->region[i]->base, m->region[i]->size);
	}
}

static void drop(const struct memory *m, uint8_t *copy[])
{
	for (unsigned i = 0; i < m->n; i++)
		free(copy[i]);
}

static void dispatch(struct kernel_card *c, const struct code *code, const struct rdna_program_args *args,
                     enum sim_memory_mode mode)
{
	static uint64_t seed;
	const uint32_t groups[3] = { args->workgroups, 1, 1 }, items[3] = { RDNA_PROGRAM_WAVES * 32, 1, 1 };
	const struct sim_options o = { .memory = mode,
		                       .seed = seed,
		                       .resident = args->workgroups,
		                       .races = seed % 4 == 0,
		                       .perturb = (uint32_t)(seed % 5) };
	struct error err = { 0 };

	seed++;
	count.runs++;
	count.by_mode[mode]++;
	if (!sim_dispatch(c->device, sim_find(code->object, RDNA_PROGRAM_KERNEL), args, sizeof *args, groups, items, &o,
	                  &err))
		fail_card(c, &err);
}

static void run(struct kernel_card *c, const struct code *code, const uint64_t *arg, int64_t begin, int64_t end,
                enum sim_memory_mode mode)
{
	static const uint32_t counts[] = { 1, 3, 2, 5 };
	static unsigned round;
	struct rdna_program_sync sync = { 0 };
	uint32_t workgroups = counts[round++ % 4];
	uint64_t units = (uint64_t)(end - begin),
		 shares = (uint64_t)workgroups * (code->cooperative ? 1 : RDNA_PROGRAM_WAVES);
	const struct rdna_command phase[2] = {
		{ .function = code->function,
		  .arg = (uint64_t)(uintptr_t)arg,
		  .begin = begin,
		  .per = (uint32_t)(units / shares),
		  .rest = (uint32_t)(units % shares),
		  .flags = code->cooperative ? RDNA_COMMAND_COOPERATIVE : 0 }
	};
	const struct rdna_program_args args = {
		.commands = (uint64_t)(uintptr_t)phase,
		.end = 1,
		.sync = (uint64_t)(uintptr_t)&sync,
		.workgroups = workgroups,
		.polls = 1
	};

	map(c, phase, sizeof phase, "the phases", false);
	map(c, &sync, sizeof sync, "the arrivals", true);
	dispatch(c, code, &args, mode);
	sim_unmap(c->device, &sync);
	sim_unmap(c->device, (void *)(uintptr_t)phase);
}

/* What was not written may be constant. */
static void restore(const struct memory *m)
{
	for (unsigned i = 0; i < m->n; i++)
		if (memcmp((const void *)m->region[i]->base, m->before[i], m->region[i]->size) != 0)
			memcpy((void *)m->region[i]->base, m->before[i], m->region[i]->size);
}

/* Again and again from the same memory, which must become the same each time. */
static void run_all(struct kernel_card *c, struct memory *m, const uint64_t *arg, int64_t begin, int64_t end)
{
	keep(m, m->before);
	for (unsigned i = 0; i < c->n_codes * MEMORY_MODES * SEEDS; i++) {
		restore(m);
		run(c, &c->code[i / (MEMORY_MODES * SEEDS)], arg, begin, end, (enum sim_memory_mode)(i % MEMORY_MODES));
		if (i == 0)
			keep(m, m->after);
		for (unsigned j = 0; j < m->n; j++)
			if (memcmp((const void *)m->region[j]->base, m->after[j], m->region[j]->size) != 0)
				refuse(c->name, &c->key,
				       i < MEMORY_MODES * SEEDS ? "other bytes, the same code"
				                                : "other bytes, with another seed of the compiler");
	}
	drop(m, m->before);
	drop(m, m->after);
}

void kernel_card_run(struct kernel_card *c, const uint64_t *arg, int64_t begin, int64_t end)
{
	uint64_t own[MAX_ARGS];
	struct memory m;

	memcpy(own, arg, template_args(&c->key) * sizeof *own);
	map_args(c, arg, &m);
	map(c, own, template_args(&c->key) * sizeof *own, "the arguments", false);
	if (kernel_everything())
		run_all(c, &m, own, begin, end);
	else
		run(c, &c->code[0], own, begin, end, (enum sim_memory_mode)(count.calls % MEMORY_MODES));
	count.calls++;
	sim_unmap(c->device, own);
	for (unsigned i = 0; i < m.n; i++)
		sim_unmap(c->device, (void *)m.region[i]->base);
}
