/* tests/kernels/kernel_ptx.c - templates' kernels as an NVIDIA card runs them: the simulated one, or with
 * JITRUN_TEST_CUDA in the environment the machine's first (kernel_run.h).
 *
 * Memory goes to the card and comes back, each region to one of its own size, so that what is touched beside it traps.
 * Each run takes another number of blocks, and of parts where it has them; where launches can overlap, every second
 * one does not wait for others before the kernel says so. With all modes a call is run with each number of blocks, and
 * all must leave the same bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ptx/ptx.h"
#include "kernels-templates/matmul/recipe.h"
#include "runtime/device/cuda/cuda_simulated.h"
#include "kernels-templates/templates.h"
#include "tests/kernels/kernel_ptx.h"

struct kernel_ptx {
	const char *name;
	struct key key;
	struct cuda *card;
	void *module, *function;
	unsigned waves;
	uint32_t shared_bytes;
	bool cooperative, parts;
};

static unsigned kernels, runs;

static void say_count(void) { printf("# on NVIDIA cards: %u runs of %u kernels\n", runs, kernels); }

static void refuse(const struct kernel_ptx *k, const char *why)
{
	char text[KEY_TEXT_MAX];
	fail_msg("%s, %s: %s", k->name, key_text(&k->key, text, sizeof text), why);
}

static void must(const struct kernel_ptx *k, bool ok, const struct error *err)
{
	if (!ok)
		refuse(k, err->text);
}

static void must_succeed(const struct kernel_ptx *k, int result)
{
	char text[512];

	if (result)
		refuse(k, cuda_result_text(k->card->api, result, text, sizeof text));
}

/* For all kernels of a target, until the program ends. */
static struct cuda *card_for(const struct target *t, struct error *err)
{
	static struct device *cards[TARGET_COUNT];
	struct device **card = &cards[t->id];
	const bool real = getenv("JITRUN_TEST_CUDA") != NULL;
	const struct cuda_api *api = *card ? NULL : real ? cuda_library(err) : cuda_simulated();

	if (api)
		*card = cuda_open(api, real || t->id == TARGET_SM80 ? CUDA_SIMULATED_80 : CUDA_SIMULATED_90, err);
	return (struct cuda *)*card;
}

static void load(struct kernel_ptx *k, const struct object *o)
{
	const struct cuda_api *api = k->card->api;
	char *text = malloc(o->code_bytes + 1);

	assert_non_null(text);
	memcpy(text, o->code, o->code_bytes);
	text[o->code_bytes] = 0;
	k->cooperative = o->cooperative;
	k->parts = matmul_recipe(&k->key, k->card->device.facts.target).parts;
	k->shared_bytes = ptx_shared_bytes(o, k->waves);
	must_succeed(k, api->module_load(&k->module, text));
	must_succeed(k, api->module_function(&k->function, k->module, PTX_ENTRY));
	if (k->shared_bytes > 48 << 10)
		must_succeed(k, api->function_set(k->function, CUDA_FUNCTION_SHARED, (int)k->shared_bytes));
	free(text);
}

struct kernel_ptx *kernel_ptx_open(const char *name, const struct target *t, const struct key *key, const struct ir *ir,
                                   struct compile_stats *stats)
{
	struct kernel_ptx *k = calloc(1, sizeof *k);
	struct error err = { 0 };
	struct object o;

	assert_non_null(k);
	*k = (struct kernel_ptx){ .name = name, .key = *key, .card = card_for(t, &err), .waves = t->waves };
	must(k, k->card && cuda_enter(k->card, &err), &err);
	must(k, compile_ir(&o, ir, t, NULL, stats, &err), &err);
	load(k, &o);
	object_free(&o);
	if (!kernels++)
		atexit(say_count);
	return k;
}

void kernel_ptx_close(struct kernel_ptx *k)
{
	k->card->api->module_unload(k->module);
	free(k);
}

void kernel_ptx_sums(enum ptx_sums sums) { cuda_simulation.sums = sums; }

/* ---- a launch */

enum { MAX_ARGS = MATMUL_ARGS + KV_STORE_ARGS, ALIGNED = 64 };

/* What a call's arguments point into, each region once: here and on the card, where addresses are `by` higher. A table
 * of pages is sent with addresses there, and does not come back. */
struct memory {
	struct {
		uint8_t *base, *there, *before, *after;
		size_t bytes, room;
		uint64_t by;
	} region[MAX_ARGS];
	unsigned n, table; /* table: the region; n: there is none */
};

static unsigned region_of(const struct memory *m, uint64_t address)
{
	unsigned i = 0;

	while (i < m->n && address - (uint64_t)(uintptr_t)m->region[i].base >= m->region[i].bytes)
		i++;
	return i;
}

/* What is no address of anything may be asked about. */
static void collect_at(struct memory *m, uint64_t address)
{
	size_t bytes;
	void *base;

	if (region_of(m, address) < m->n || !kernel_known(address, &base, &bytes))
		return;
	m->region[m->n].base = base;
	m->region[m->n++].bytes = bytes;
}

/* The slots of a kernel that reads addresses from a table. */
static bool has_table(const struct key *key, unsigned *pages, unsigned *keys, unsigned *values)
{
	bool reads = key->kind == KEY_ATTENTION, stores = key->kind == KEY_KV_STORE;

	if (key->kind == KEY_ADAPT_DOWN || key->kind == KEY_ADAPT_UP) {
		*pages = ADAPT_TABLE;
		*keys = *values = ADAPT_MATRIX; /* all matrices are in one region */
		return true;
	}
	*pages = reads ? ATTENTION_PAGES : KV_STORE_PAGES;
	*keys = reads ? ATTENTION_KEYS : KV_STORE_KEYS;
	*values = reads ? ATTENTION_VALUES : KV_STORE_VALUES;
	return reads || stores;
}

/* Slots that a kernel does not use may hold anything. */
static void collect(const struct kernel_ptx *k, const uint64_t *arg, struct memory *m)
{
	unsigned pages, keys, values;

	*m = (struct memory){ .n = 0 };
	for (unsigned i = 0; i < template_args(&k->key); i++)
		collect_at(m, arg[i]);
	if (has_table(&k->key, &pages, &keys, &values)) {
		const uint64_t *page = (const uint64_t *)(uintptr_t)arg[pages];
		collect_at(m, page[0] + arg[keys]);
		if (arg[values]) /* latent caches have keys alone */
			collect_at(m, page[0] + arg[values]);
		m->table = region_of(m, arg[pages]);
	} else {
		m->table = m->n;
	}
}

/* A region's address on the card. */
static void *there(const struct memory *m, unsigned region)
{
	return (void *)(uintptr_t)((uint64_t)(uintptr_t)m->region[region].base + m->region[region].by);
}

/* All keys lie in one region, all values in another: what these are moved by more is added to the slot of values. */
static void send_table(struct kernel_ptx *k, const uint64_t *arg, uint64_t *own, const struct memory *m)
{
	struct device *d = &k->card->device;
	struct error err = { 0 };
	unsigned pages, keys, values;

	if (!has_table(&k->key, &pages, &keys, &values))
		return;
	const uint64_t *page = (const uint64_t *)(uintptr_t)arg[pages];
	uint64_t of_keys = m->region[region_of(m, page[0] + arg[keys])].by,
		 of_values = m->region[region_of(m, page[0] + arg[values])].by;
	size_t bytes = m->region[m->table].bytes, n = bytes / sizeof *page;
	uint64_t *moved = malloc(bytes);
	assert_non_null(moved);
	for (size_t i = 0; i < n; i++)
		moved[i] = page[i] + of_keys;
	own[values] = arg[values] + of_values - of_keys;
	must(k, d->upload(d, there(m, m->table), moved, n * sizeof *page, &err), &err);
	free(moved);
}

/* own: the arguments there. */
static void send(struct kernel_ptx *k, const uint64_t *arg, uint64_t *own, struct memory *m)
{
	struct device *d = &k->card->device;
	struct error err = { 0 };

	collect(k, arg, m);
	for (unsigned i = 0; i < m->n; i++) {
		uint8_t *base = m->region[i].base;
		size_t off = (uintptr_t)base % ALIGNED;
		m->region[i].room = off + m->region[i].bytes;
		m->region[i].there = d->alloc(d, m->region[i].room, DEVICE_BUFFERS, &err);
		must(k, m->region[i].there && d->upload(d, m->region[i].there + off, base, m->region[i].bytes, &err),
		     &err);
		m->region[i].by = (uint64_t)(uintptr_t)(m->region[i].there + off) - (uint64_t)(uintptr_t)base;
	}
	for (unsigned i = 0; i < template_args(&k->key); i++) {
		unsigned at = region_of(m, arg[i]);
		own[i] = arg[i] + (at < m->n ? m->region[at].by : 0);
	}
	send_table(k, arg, own, m);
}

/* What was not written may be constant. */
static void fetch(struct kernel_ptx *k, struct memory *m)
{
	struct device *d = &k->card->device;
	struct error err = { 0 };

	for (unsigned i = 0; i < m->n; i++) {
		uint8_t *now = i == m->table ? NULL : malloc(m->region[i].bytes);
		assert_true(now || i == m->table);
		if (now)
			must(k, d->read(d, now, there(m, i), m->region[i].bytes, &err), &err);
		if (now && memcmp(m->region[i].base, now, m->region[i].bytes) != 0)
			memcpy(m->region[i].base, now, m->region[i].bytes);
		free(now);
		d->release(d, m->region[i].there, m->region[i].room);
	}
}

static void launch(struct kernel_ptx *k, uint64_t args, int64_t begin, int64_t end, uint32_t blocks)
{
	const uint64_t units = (uint64_t)(end - begin), shares = (uint64_t)blocks * (k->cooperative ? 1 : k->waves);
	struct ptx_launch l = { .arg = args,
		                .begin = begin,
		                .per = (uint32_t)(units / shares),
		                .rest = (uint32_t)(units % shares),
		                .order = PTX_WAIT_FIRST };
	void *params[] = { &l.arg, &l.begin, &l.per, &l.rest, &l.order, &l.next };
	struct cuda_launch_attribute overlaps = { .id = CUDA_LAUNCH_OVERLAPS, .of = { .value = 1 } };
	const uint32_t parts = 1 + runs % 3;
	const struct cuda_launch_config config = {
		.grid = { k->parts ? parts : blocks, k->parts ? blocks : 1, 1 },
		.block = { k->waves * 32, 1, 1 },
		.shared_bytes = k->shared_bytes,
		.attribute = &overlaps,
		.n_attributes = k->card->capability >= 90 && runs % 2
	};

	must_succeed(k, k->card->api->launch(&config, k->function, params, NULL));
	must_succeed(k, k->card->api->stream_wait(NULL));
	runs++;
}

static void run(struct kernel_ptx *k, const uint64_t *arg, int64_t begin, int64_t end, uint32_t blocks)
{
	const size_t bytes = template_args(&k->key) * sizeof *arg;
	struct device *d = &k->card->device;
	struct error err = { 0 };
	uint64_t own[MAX_ARGS];
	struct memory m;

	send(k, arg, own, &m);
	void *args = d->alloc(d, bytes, DEVICE_BUFFERS, &err);
	must(k, args && d->upload(d, args, own, bytes, &err), &err);
	launch(k, (uint64_t)(uintptr_t)args, begin, end, blocks);
	d->release(d, args, bytes);
	fetch(k, &m);
}

static uint8_t *copy_of(const void *p, size_t bytes)
{
	uint8_t *copy = malloc(bytes);

	assert_non_null(copy);
	return memcpy(copy, p, bytes);
}

static const uint32_t counts[] = { 1, 3, 2, 5 };
enum { COUNTS = sizeof counts / sizeof *counts };

/* Again and again from the same memory, which must become the same each time. */
static void run_all(struct kernel_ptx *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	struct memory m;

	collect(k, arg, &m);
	for (unsigned i = 0; i < m.n; i++)
		m.region[i].before = copy_of(m.region[i].base, m.region[i].bytes);
	for (unsigned round = 0; round < COUNTS; round++) {
		for (unsigned i = 0; i < m.n && round; i++)
			if (memcmp(m.region[i].base, m.region[i].before, m.region[i].bytes) != 0)
				memcpy(m.region[i].base, m.region[i].before, m.region[i].bytes);
		run(k, arg, begin, end, counts[round]);
		for (unsigned i = 0; i < m.n; i++)
			if (round == 0)
				m.region[i].after = copy_of(m.region[i].base, m.region[i].bytes);
			else if (memcmp(m.region[i].base, m.region[i].after, m.region[i].bytes) != 0)
				refuse(k, "other bytes with another number of blocks");
	}
	for (unsigned i = 0; i < m.n; i++) {
		free(m.region[i].before);
		free(m.region[i].after);
	}
}

void kernel_ptx_run(struct kernel_ptx *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	static unsigned round;

	if (kernel_everything())
		run_all(k, arg, begin, end);
	else
		run(k, arg, begin, end, counts[round++ % COUNTS]);
}
