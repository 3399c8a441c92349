/* tests/kernels/attention_code_tests.c - the code of attention: nothing spills, and what memory is asked for ahead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir_build.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/kernels/attention_check.h"

/* The shapes of real models keep every value of their inner loops in registers. */
static void test_no_spills(void **state)
{
	static const struct shape shapes[] = {
		{ 3, 3, 64, DTYPE_F16 },  { 8, 4, 64, DTYPE_F16 },  { 8, 4, 128, DTYPE_F16 }, { 8, 2, 128, DTYPE_F16 },
		{ 2, 7, 64, DTYPE_F16 },  { 4, 7, 128, DTYPE_F16 }, { 4, 8, 64, DTYPE_F16 },  { 32, 1, 128, DTYPE_F16 },
		{ 32, 1, 96, DTYPE_F16 }, { 32, 1, 80, DTYPE_F16 }, { 16, 1, 64, DTYPE_F16 }, { 2, 6, 128, DTYPE_F16 },
		{ 8, 5, 128, DTYPE_F16 }, { 1, 4, 256, DTYPE_F16 }, { 8, 4, 128, DTYPE_F32 }, { 3, 3, 64, DTYPE_F32 },
	};
	const struct kernel_way *way;
	unsigned ways = kernel_ways(&way);
	(void)state;

	for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (unsigned w = 0; w < 16 * ways; w++) {
			struct scene c = { .s = shapes[i], .heads = shapes[i].kv_heads * shapes[i].group };
			if (w & 4)
				c.s.type = DTYPE_Q8_0;
			if (w & 2)
				c.tile = template_attention_tile_n(&way[w / 16].target, c.heads, c.s.kv_heads, c.s.dims,
				                                   240);
			struct key key = scene_key(&c, w & 1);
			key.rows = w & 8 ? template_attention_parts(&way[w / 16].target, c.s.kv_heads) : 0;
			struct kernel k;
			char text[KEY_TEXT_MAX];
			if (!way[w / 16].native || (key.rows && c.tile > 1))
				continue;
			kernel_open(&k, &way[w / 16], &key);
			if (k.stats.spills_in_inner_loops)
				fail_msg("%s: %u spills in inner loops", key_text(&key, text, sizeof text),
				         k.stats.spills_in_inner_loops);
			kernel_close(&k);
		}
}

/* ---- what memory is asked for ahead */

enum { LINE = 64 };

/* Keys, values, and for each level of the cache what of them was asked for: all at the same distance from each other,
 * with room between. */
struct prefetched {
	uint8_t *memory;
	size_t apart;
};

/* Asking leaves a mark where the level's copy has the line. */
static void mark_prefetched(struct ir *ir, ir_f mark, size_t apart)
{
	for (size_t i = 0; i < ir->n_ins; i++) {
		struct ir_ins *ins = &ir->ins[i];
		if (ins->op != IR_prefetch && ins->op != IR_prefetch2)
			continue;
		ins->imm += (int64_t)(ins->op == IR_prefetch ? 2 : 4) * (int64_t)apart;
		ins->op = IR_store_first;
		ins->type = IR_TYPE_f32;
		ins->b = mark.r;
	}
}

static bool marked(const struct prefetched *a, unsigned level, size_t line)
{
	const uint8_t *at = a->memory + 2 * level * a->apart + line * LINE;
	for (unsigned i = 0; i < LINE; i++)
		if (at[i])
			return true;
	return false;
}

/* Bytes of keys (0) or values (1) that are read but not asked for into this level, and the other way round. */
struct unlike {
	size_t missing, idle;
};

static struct unlike compare_prefetched(const struct prefetched *a, const struct plain_cache *cache, unsigned level,
                                        unsigned what, unsigned first, unsigned end, uint64_t positions)
{
	struct unlike u = { 0 };
	size_t row = plain_cache_row(cache->type, cache->dims), head = 128 * row;

	for (size_t line = 0; line < a->apart / LINE; line++) {
		uint64_t chunk = line * LINE / cache->chunk_bytes, at = line * LINE % cache->chunk_bytes,
			 left = positions - chunk * 128;
		uint64_t seen = positions <= chunk * 128 ? 0 : left > 128 ? 128 : what ? left : (left + 31) / 32 * 32;
		bool reads = at / head >= first && at / head < end && at % head < seen * row,
		     asks = marked(a, level, what * a->apart / LINE + line);
		u.missing += reads && !asks ? LINE : 0;
		u.idle += asks && !reads ? LINE : 0;
	}
	return u;
}

/* Marks of one launch of units first..end - 1, of one column that sees so many positions. */
static struct prefetched ask(struct scene *c, enum target_id target, unsigned first, unsigned end, uint64_t positions)
{
	struct work w;
	struct ir ir;
	struct error err = { 0 };
	struct key key = scene_key(c, false);
	size_t bytes = (positions + 127) / 128 * c->cache.chunk_bytes;
	struct prefetched a = { .apart = (bytes + 2 * c->cache.chunk_bytes) / LINE * LINE };

	make_work(&w, c, 1, positions - 1, 0);
	key.target = (uint8_t)target;
	ir_init(&ir, target_table[target].lanes);
	ir_f mark = ir_fconst(&ir, 1.0f);
	if (!template_build(&ir, &key, &target_table[target], &err))
		fail_msg("%s", err.text);
	mark_prefetched(&ir, mark, a.apart);
	a.memory = kernel_buffer(6 * a.apart, 0);
	memcpy(a.memory, c->cache.k, bytes);
	memcpy(a.memory + a.apart, c->cache.v, bytes);
	float *out = kernel_buffer((size_t)c->padded * 4, 0);
	struct plain_cache copy = c->cache;
	copy.k = a.memory;
	uint64_t *pages = plain_pages(&copy, (unsigned)((positions + 127) / 128));
	uint64_t arg[ATTENTION_ARGS] = {
		[ATTENTION_Q] = (uintptr_t)w.q,
		[ATTENTION_KEYS] = PLAIN_KEYS,
		[ATTENTION_VALUES] = a.apart + PLAIN_KEYS,
		[ATTENTION_OUT] = (uintptr_t)out,
		[ATTENTION_POS0] = w.pos0,
		[ATTENTION_PAGES] = (uintptr_t)pages,
		[ATTENTION_COLUMNS] = 1,
		[ATTENTION_SINKS] = (uintptr_t)c->sinks,
		[ATTENTION_BIAS] = (uintptr_t)c->slopes
	};
	ir_interp(&ir, arg, first, end);
	free(pages);
	free(out);
	ir_free(&ir);
	drop_work(&w);
	return a;
}

/* streams: each stream is asked for a little ahead of itself, with so many lanes; else a head's chunk ahead, keys and
 * values in turn. */
struct asking {
	struct shape s;
	bool streams_8, streams_16;
};

/* Over whole chunks, what lies between reading and asking is all that is missing at the beginning, and as much is idle
 * at the end. In a chunk that is read in part it is that for a few heads. */
static void check_prefetched(const struct asking *as, enum target_id id, unsigned first, unsigned end,
                             uint64_t positions)
{
	const struct target *target = &target_table[id];
	bool streams = target->lanes == 8 ? as->streams_8 : as->streams_16, whole = positions % 128 == 0;
	struct scene c;
	open_scene(&c, as->s, positions);
	c.cache.pages = 0;
	size_t head = 128 * plain_cache_row(as->s.type, as->s.dims),
	       all = (end - first) * head * ((positions + 127) / 128),
	       between[3] = { 0, streams ? 8 << 10 : head, 18 << 10 };
	struct prefetched a = ask(&c, id, first, end, positions);

	for (unsigned level = 1; level <= 2; level++)
		for (unsigned what = 0; what < 2; what++) {
			struct unlike u = compare_prefetched(&a, &c.cache, level, what, first, end, positions);
			size_t max = whole ? between[level] : all / 8;
			bool none = level == 2 && !(streams && target->prefetch_to_l2);
			if (none ? u.idle || u.missing < all / 2 : u.missing > max || u.idle > max)
				fail_msg("%s: attention of %u x %u heads of %u asks level %u for the %s of heads %u to "
				         "%u too late or in vain: %zu bytes and %zu, expected at most %zu",
				         target->name, as->s.kv_heads, as->s.group, as->s.dims, level,
				         what ? "values" : "keys", first, end - 1, u.missing, u.idle, none ? 0 : max);
		}
	free(a.memory);
	close_scene(&c);
}

static void test_asks(void **state)
{
	static const struct asking shapes[] = {
		{ { 8, 2, 128, DTYPE_F16 }, false, true },  { { 8, 4, 64, DTYPE_F16 }, false, true },
		{ { 8, 4, 128, DTYPE_F16 }, false, false }, { { 4, 1, 128, DTYPE_F16 }, false, true },
		{ { 6, 2, 128, DTYPE_Q8_0 }, false, true }, { { 3, 1, 64, DTYPE_F32 }, true, true }
	};
	static const enum target_id targets[] = { TARGET_AVX2, TARGET_AVX512_VNNI, TARGET_AVX512_AMX };
	(void)state;

	for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (unsigned t = 0; t < 3; t++) {
			check_prefetched(&shapes[i], targets[t], 0, shapes[i].s.kv_heads, 5 * 128);
			check_prefetched(&shapes[i], targets[t], 1, shapes[i].s.kv_heads - 1, 5 * 128);
			check_prefetched(&shapes[i], targets[t], 1, shapes[i].s.kv_heads, 4 * 128 + 72);
		}
}

int attention_code_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_spills),
		cmocka_unit_test(test_asks),
	};

	return cmocka_run_group_tests_name("attention_code_tests", tests, NULL, NULL);
}
