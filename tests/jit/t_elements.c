/* tests/jit/t_elements.c - memory by the type of its elements (ir_build_memory.h): the interpreter against plain C, and
 * every kind of target against the interpreter.
 *
 * Each type is loaded, gathered, stored and scattered, with all lanes, with the first ones, with a mask and with both;
 * atomics meet several lanes at one place. Roundings are judged by a search of all numbers that a type has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/interp.h"
#include "jit/ir/ir_build_memory.h"
#include "tests/jit/every_target.h"
#include "tests/jit/same_address_tests.h"
#include "tests/support/shared.h"

/* Where things lie: at in elements, indices, then words whose bits are the mask, and values to store; at out what was
 * loaded, gathered, stored, scattered. Displacements are no multiple of a vector, but of an element. */
enum { ELEMENTS = 0, INDICES = 1024, MASKS = 1536, VALUES = 2048, PART = 1024, DISP = 24, RANGE = 64 };

struct type {
	const char *name;
	uint8_t bytes, wide;
	void (*load)(struct ir *b, ir_a from, ir_a to, unsigned n, ir_m mask);
	void (*gather)(struct ir *b, ir_a from, ir_i index, ir_a to, ir_m mask);
	void (*store)(struct ir *b, ir_a from, ir_a to, unsigned n, ir_m mask);
	void (*scatter)(struct ir *b, ir_a from, ir_i index, ir_a to, ir_m mask);
};

static void keep_f(struct ir *b, ir_a to, ir_f v) { ir_fstore(b, to, v, 0, 0); }
static void keep_i(struct ir *b, ir_a to, ir_i v) { ir_fstore(b, to, ir_fbits(b, v), 0, 0); }
static void keep_d(struct ir *b, ir_a to, ir_d v) { ir_dstore(b, to, v, 0, 0); }
static void keep_l(struct ir *b, ir_a to, ir_l v) { ir_lstore(b, to, v, 0, 0); }
static ir_f take_f(struct ir *b, ir_a from) { return ir_fload(b, from, 0, 0); }
static ir_i take_i(struct ir *b, ir_a from) { return ir_iload(b, from, 0); }
static ir_d take_d(struct ir *b, ir_a from) { return ir_dload(b, from, 0, 0); }
static ir_l take_l(struct ir *b, ir_a from) { return ir_lload(b, from, 0, 0); }

#define TYPE(name, lane) \
	static void load_##name(struct ir *b, ir_a from, ir_a to, unsigned n, ir_m mask) \
	{ \
		keep_##lane(b, to, ir_load_##name(b, from, DISP, n, mask)); \
	} \
	static void gather_##name(struct ir *b, ir_a from, ir_i index, ir_a to, ir_m mask) \
	{ \
		keep_##lane(b, to, ir_gather_##name(b, from, index, DISP, mask)); \
	} \
	static void store_##name(struct ir *b, ir_a from, ir_a to, unsigned n, ir_m mask) \
	{ \
		ir_store_##name(b, to, take_##lane(b, from), DISP, n, mask); \
	} \
	static void scatter_##name(struct ir *b, ir_a from, ir_i index, ir_a to, ir_m mask) \
	{ \
		ir_scatter_distinct_##name(b, to, index, take_##lane(b, from), DISP, mask); \
	}
TYPE(f32, f)
TYPE(f64, d)
TYPE(i32, i)
TYPE(i64, l)
TYPE(f16, f)
TYPE(bf16, f)
TYPE(i8, i)
TYPE(u8, i)
TYPE(i16, i)
TYPE(u16, i)
#undef TYPE

#define TYPE(name, bytes, wide) \
	{ \
#name, bytes, wide, load_##name, gather_##name, store_##name, scatter_##name \
	}
static const struct type types[] = {
	TYPE(f32, 4, 0),  TYPE(f64, 8, 1), TYPE(i32, 4, 0), TYPE(i64, 8, 1), TYPE(f16, 2, 0),
	TYPE(bf16, 2, 0), TYPE(i8, 1, 0),  TYPE(u8, 1, 0),  TYPE(i16, 2, 0), TYPE(u16, 2, 0),
};
#undef TYPE
enum { TYPES = sizeof types / sizeof *types };

struct trial {
	const struct type *type;
	unsigned n;
	bool masked;
};

static void build(struct ir *b, const void *user)
{
	const struct trial *t = user;
	const ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	const ir_i index = ir_iload(b, in, INDICES), bits = ir_iload(b, in, MASKS);
	const ir_m mask = t->masked ? ir_igt(b, ir_iconst(b, 0), bits) : ir_everywhere;
	const ir_a local = ir_local(b, PART), values = ir_aaddi(b, in, VALUES);

	t->type->load(b, ir_aaddi(b, in, ELEMENTS), ir_aaddi(b, out, 0), t->n, mask);
	t->type->gather(b, ir_aaddi(b, in, ELEMENTS), index, ir_aaddi(b, out, PART), mask);
	t->type->store(b, values, ir_aaddi(b, out, 2 * PART), t->n, mask);
	t->type->scatter(b, values, index, ir_aaddi(b, out, 3 * PART), mask);
	/* the same in local memory, which the kernel fills first */
	for (int32_t at = 0; at < PART; at += 4 * (int32_t)b->lanes)
		ir_fstore(b, local, ir_fload(b, in, at, 0), at, 0);
	t->type->gather(b, local, index, ir_aaddi(b, out, 4 * PART), mask);
	t->type->scatter(b, values, index, local, mask);
	for (int32_t at = 0; at < PART; at += 4 * (int32_t)b->lanes)
		ir_fstore(b, out, ir_fload(b, local, at, 0), 5 * PART + at, 0);
}

/* --- in plain C */

static bool takes_part(const struct trial *t, const uint8_t *in, unsigned lane)
{
	int32_t bits;

	memcpy(&bits, in + MASKS + 4 * lane, 4);
	return !t->masked || bits < 0;
}

static double half_number(unsigned half, bool brain)
{
	const unsigned fraction = brain ? 7 : 10, bias = brain ? 127 : 15;
	const unsigned exponent = half >> fraction & (brain ? 255 : 31), m = half & ((1u << fraction) - 1);
	const double size = exponent == (brain ? 255 : 31) ? (m ? (double)NAN : (double)INFINITY)
	                    : exponent ? ldexp(m + (1u << fraction), (int)exponent - (int)(bias + fraction))
	                               : ldexp(m, 1 - (int)(bias + fraction));

	return half >> 15 ? -size : size;
}

/* The bits of the nearest one; of two alike, that with an even fraction. Beyond half a step above the greatest it is
 * infinity, whose place is that of the next number. */
static unsigned nearest_half(float f, bool brain)
{
	const unsigned infinity = brain ? 0x7f80 : 0x7c00, sign = signbit(f) ? 0x8000 : 0;
	const double size = fabs((double)f), greatest = half_number(infinity - 1, brain);
	unsigned low = 0, high = infinity;

	while (high - low > 1) {
		const unsigned middle = (low + high) / 2;
		if (half_number(middle, brain) <= size)
			low = middle;
		else
			high = middle;
	}
	const double above = high == infinity ? 2 * greatest - half_number(infinity - 2, brain)
	                                      : half_number(high, brain),
		     below = half_number(low, brain), down = size - below, up = above - size;

	return sign | (up < down || (up == down && high % 2 == 0) ? high : low);
}

static void widen(const struct type *t, const uint8_t *from, uint8_t *to)
{
	uint64_t u = 0;
	float f;

	memcpy(&u, from, t->bytes);
	if (!strcmp(t->name, "i8") || !strcmp(t->name, "i16"))
		u = (uint32_t)(u >> (8 * t->bytes - 1) ? u - (UINT64_C(1) << 8 * t->bytes) : u);
	if (!strcmp(t->name, "f16") || !strcmp(t->name, "bf16")) {
		f = (float)half_number((unsigned)u, t->name[0] == 'b');
		memcpy(to, &f, 4);
		return;
	}
	memcpy(to, &u, t->wide ? 8 : 4);
}

static void narrow(const struct type *t, const uint8_t *from, uint8_t *to)
{
	float f;

	memcpy(&f, from, 4);
	if (strcmp(t->name, "f16") && strcmp(t->name, "bf16")) {
		memcpy(to, from, t->bytes);
		return;
	}
	const uint16_t half = (uint16_t)nearest_half(f, t->name[0] == 'b');
	memcpy(to, &half, 2);
}

static void expect(const struct trial *t, const uint8_t *in, unsigned lanes, uint8_t *out)
{
	const size_t size = t->type->bytes, lane = t->type->wide ? 8 : 4;
	uint8_t local[PART];

	memcpy(local, in, PART);
	memset(out, 0, lanes * lane);
	memset(out + PART, 0, lanes * lane);
	memset(out + 4 * PART, 0, lanes * lane);
	for (unsigned l = 0; l < lanes; l++) {
		uint32_t index;
		memcpy(&index, in + INDICES + 4 * l, 4);
		if (!takes_part(t, in, l))
			continue;
		if (!t->n || l < t->n) {
			widen(t->type, in + ELEMENTS + DISP + size * l, out + lane * l);
			narrow(t->type, in + VALUES + lane * l, out + 2 * PART + DISP + size * l);
		}
		widen(t->type, in + ELEMENTS + DISP + size * index, out + PART + lane * l);
		narrow(t->type, in + VALUES + lane * l, out + 3 * PART + DISP + size * index);
		widen(t->type, in + ELEMENTS + DISP + size * index, out + 4 * PART + lane * l);
		narrow(t->type, in + VALUES + lane * l, local + DISP + size * index);
	}
	memcpy(out + 5 * PART, local, PART);
}

/* Floats of every size and none that is no number, in memory and in lanes; distinct places. */
static void fill(const struct type *t, uint64_t seed, uint8_t in[RANDOM_IR_IN_BYTES])
{
	uint64_t state = seed * 977 + 5;
	uint32_t order[RANGE];

	for (unsigned at = 0; at < RANDOM_IR_IN_BYTES; at += 4) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		uint32_t u = (uint32_t)(state >> 32);
		if (t->name[0] == 'f' || t->name[0] == 'b') {
			const bool half = t->bytes == 2 && at < INDICES;
			const uint32_t mask = half ? (t->name[0] == 'b' ? 0x7f807f80 : 0x7c007c00) : 0;
			if (half && ((u & mask & 0xffff) == (mask & 0xffff) || (u & mask) >> 16 == mask >> 16))
				u &= 0xbfffbfff;
			if (!half && !t->wide && t->bytes == 2 && at >= VALUES) { /* near what a half can be */
				u = (u & 0x807fffff) | (100u + (u >> 23 & 63)) << 23;
				if (at % 16 == 0)
					u = (u & 0xffffe000) | 0x1000; /* in the middle of two halves */
				if (at % 32 == 4)
					u = (u & 0xffff0000) | 0x8000;
			}
			if (!half && (u & 0x7f800000) == 0x7f800000)
				u &= 0xff800000; /* infinities */
		}
		memcpy(in + at, &u, 4);
	}
	for (unsigned k = 0; k < RANGE; k++)
		order[k] = k;
	for (unsigned k = RANGE; k > 1; k--) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		const unsigned other = (unsigned)(state >> 33) % k;
		const uint32_t kept = order[k - 1];
		order[k - 1] = order[other];
		order[other] = kept;
	}
	memcpy(in + INDICES, order, sizeof order);
}

static void run_here(const struct ir *ir, struct random_ir_buffers *x, const char *what)
{
	struct interp_program *p = interp_compile(ir);

	assert_non_null(p);
	if (interp_run(p, NULL, x->arg, 0, 1) != INTERP_DONE)
		fail_msg("%s did not end", what);
	interp_free(p);
}

static void each(void (*fn)(const struct trial *t, unsigned round, const char *what))
{
	static const unsigned counts[] = { 0, 1, 5, 7 };
	char what[60];
	for (unsigned k = 0; k < TYPES; k++)
		for (unsigned n = 0; n < 4; n++)
			for (unsigned masked = 0; masked < 2; masked++) {
				const struct trial t = { &types[k], counts[n], masked };
				snprintf(what, sizeof what, "%s, %u lanes%s", t.type->name, t.n,
				         masked ? ", masked" : "");
				fn(&t, k * 8 + n * 2 + masked, what);
			}
}

static void check_plain(const struct trial *t, unsigned round, const char *what)
{
	struct error err = { 0 };

	for (unsigned lanes = 8; lanes <= 32; lanes *= 2) {
		struct random_ir_buffers *x = random_ir_buffers_new(round), *want = random_ir_buffers_new(round);
		struct ir b;
		fill(t->type, round + lanes, x->in);
		memcpy(want->in, x->in, sizeof x->in);
		ir_init(&b, lanes);
		build(&b, t);
		if (!ir_verify(&b, &err))
			fail_msg("%s: %s", what, err.text);
		expect(t, want->in, lanes, want->out);
		run_here(&b, x, what);
		for (unsigned at = 0; at < sizeof x->out; at++)
			if (x->out[at] != want->out[at])
				fail_msg("%s of %u: byte %u is %02x, expected %02x", what, lanes, at, x->out[at],
				         want->out[at]);
		ir_free(&b);
		free(x);
		free(want);
	}
}

static void test_plain(void **state) { each(check_plain); }

/* --- atomics: several lanes at a place */

struct atomic {
	const char *name;
	void (*build)(struct ir *b, ir_a p, ir_i index, ir_i v, int32_t disp, ir_m mask);
	uint32_t (*update)(uint32_t old, uint32_t v);
};

static uint32_t plain_add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t plain_min(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b ? a : b; }
static uint32_t plain_max(uint32_t a, uint32_t b) { return (int32_t)a > (int32_t)b ? a : b; }
static uint32_t plain_min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t plain_max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static uint32_t plain_and(uint32_t a, uint32_t b) { return a & b; }
static uint32_t plain_or(uint32_t a, uint32_t b) { return a | b; }

static const struct atomic atomics[] = {
	{ "add_i32", ir_atomic_add_i32, plain_add },     { "add_u32", ir_atomic_add_u32, plain_add },
	{ "min_i32", ir_atomic_min_i32, plain_min },     { "max_i32", ir_atomic_max_i32, plain_max },
	{ "min_u32", ir_atomic_min_u32, plain_min_u32 }, { "max_u32", ir_atomic_max_u32, plain_max_u32 },
	{ "and_i32", ir_atomic_and_i32, plain_and },     { "and_u32", ir_atomic_and_u32, plain_and },
	{ "or_i32", ir_atomic_or_i32, plain_or },        { "or_u32", ir_atomic_or_u32, plain_or },
};
static const struct type words = { "i32", 4, 0, NULL, NULL, NULL, NULL };
enum { ATOMICS = sizeof atomics / sizeof *atomics };

/* Memory gets one row; local memory is filled first, and read at the end. */
static void build_atomic(struct ir *b, const void *user)
{
	const struct atomic *a = user;
	const ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8), local = ir_local(b, PART);
	const ir_i index = ir_iand(b, ir_iload(b, in, INDICES), ir_iconst(b, 15)), v = ir_iload(b, in, VALUES);
	const ir_m mask = ir_igt(b, ir_iconst(b, 0), ir_iload(b, in, MASKS));

	for (int32_t at = 0; at < PART; at += 4 * (int32_t)b->lanes)
		ir_fstore(b, local, ir_fload(b, in, at, 0), at, 0);
	a->build(b, out, index, v, DISP, ir_everywhere);
	a->build(b, out, index, v, PART + DISP, mask);
	a->build(b, local, index, v, DISP, mask);
	a->build(b, local, index, v, DISP, ir_everywhere);
	for (int32_t at = 0; at < PART; at += 4 * (int32_t)b->lanes)
		ir_fstore(b, out, ir_fload(b, local, at, 0), 2 * PART + at, 0);
}

static void build_sums(struct ir *b, const void *user)
{
	const ir_a arg = ir_arg(b), in = ir_aload(b, arg, 0), out = ir_aload(b, arg, 8);
	const ir_i index = ir_iand(b, ir_iload(b, in, INDICES), ir_iconst(b, 15));
	const ir_l v = ir_lload(b, in, VALUES, 0);
	const ir_m mask = ir_igt(b, ir_iconst(b, 0), ir_iload(b, in, MASKS));

	(void)user;
	ir_atomic_add_i64(b, out, index, v, DISP, ir_everywhere);
	ir_atomic_add_u64(b, out, index, v, PART + DISP, mask);
}

static void update_at(uint8_t *at, uint32_t v, const struct atomic *a)
{
	uint32_t old;
	memcpy(&old, at, 4);
	old = a->update(old, v);
	memcpy(at, &old, 4);
}

static void expect_atomic(const struct atomic *a, const uint8_t *in, unsigned lanes, uint8_t *out)
{
	memcpy(out + 2 * PART, in, PART);
	for (unsigned l = 0; l < lanes; l++) {
		uint32_t index, v;
		int32_t bits;
		memcpy(&index, in + INDICES + 4 * l, 4);
		memcpy(&bits, in + MASKS + 4 * l, 4);
		memcpy(&v, in + VALUES + 4 * l, 4);
		const size_t at = DISP + 4 * (index & 15);
		update_at(out + at, v, a);
		update_at(out + 2 * PART + at, v, a);
		if (bits < 0) {
			update_at(out + PART + at, v, a);
			update_at(out + 2 * PART + at, v, a);
		}
	}
}

static void expect_sums(const uint8_t *in, unsigned lanes, uint8_t *out)
{
	for (unsigned l = 0; l < lanes; l++) {
		uint32_t index;
		int32_t bits;
		uint64_t v, old;
		memcpy(&index, in + INDICES + 4 * l, 4);
		memcpy(&bits, in + MASKS + 4 * l, 4);
		memcpy(&v, in + VALUES + 8 * l, 8);
		for (unsigned part = 0; part < (bits < 0 ? 2 : 1); part++) {
			uint8_t *at = out + part * PART + DISP + (size_t)8 * (index & 15);
			memcpy(&old, at, 8);
			old += v;
			memcpy(at, &old, 8);
		}
	}
}

static void test_atomics(void **state)
{
	for (unsigned k = 0; k <= ATOMICS; k++)
		for (unsigned lanes = 8; lanes <= 32; lanes *= 2) {
			struct random_ir_buffers *x = random_ir_buffers_new(k), *want = random_ir_buffers_new(k);
			struct ir b;
			fill(&words, k + lanes, x->in);
			ir_init(&b, lanes);
			if (k < ATOMICS) {
				build_atomic(&b, &atomics[k]);
				expect_atomic(&atomics[k], x->in, lanes, want->out);
			} else {
				build_sums(&b, NULL);
				expect_sums(x->in, lanes, want->out);
			}
			run_here(&b, x, "an atomic");
			assert_memory_equal(x->out, want->out, sizeof x->out);
			ir_free(&b);
			free(x);
			free(want);
		}
}

/* --- every target */

static void check_targets(const struct trial *t, unsigned round, const char *what)
{
	uint8_t in[RANDOM_IR_IN_BYTES];

	fill(t->type, round, in);
	every_target_check(build, t, in, sizeof in, 1, EVERY_EXACT, what);
}

static void test_targets(void **state) { each(check_targets); }

static void test_atomics_on_targets(void **state)
{
	uint8_t in[RANDOM_IR_IN_BYTES];

	for (unsigned k = 0; k < ATOMICS; k++) {
		fill(&words, k, in);
		every_target_check(build_atomic, &atomics[k], in, sizeof in, 1, EVERY_EXACT, atomics[k].name);
	}
	fill(&words, 99, in);
	every_target_check(build_sums, NULL, in, sizeof in, 1, EVERY_EXACT, "add_i64");
}

static int open_all(void **state)
{
	every_target_open();
	return 0;
}

static int close_all(void **state)
{
	every_target_close();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_atomics_on_targets),
	};

	return cmocka_run_group_tests_name("t_elements", tests, open_all, close_all) + same_address_tests();
}
