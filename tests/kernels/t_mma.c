/* tests/kernels/t_mma.c - matmuls of the BOUNDED class: the rounding of activations, the error against EXACT within
 * what numerics.h states, and code for cards equal to the interpreter byte for byte. (Matmuls by integer matrix
 * products are EXACT: t_matmul.)
 *
 * NVIDIA's manual leaves the order of a product's sums open. The simulated cards add in the interpreter's order, and
 * once more in each other order the simulator has, within the same bound; so does a real one (JITRUN_TEST_CUDA).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/lanes.h"
#include "tests/kernels/kernel_ptx.h"
#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain.h"
#include "tests/support/shared.h"
#include "tests/support/widths.h"

static uint64_t state = 11;

static uint32_t draw(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

static uint64_t address(const void *p) { return (uint64_t)(uintptr_t)p; }

enum { WAYS = 6, PTX_WAYS = 2 /* the last ones */ };

/* The interpreter first: what the others are compared with. */
static unsigned all_ways(struct kernel_way way[WAYS])
{
	static const enum target_id cards[] = { TARGET_GFX1100, TARGET_GFX1150, TARGET_GFX1200, TARGET_SM80,
		                                TARGET_SM90 };

	way[0] = (struct kernel_way){ .name = "interpreter gfx1100", .target = target_table[TARGET_GFX1100] };
	for (unsigned i = 0; i + 1 < WAYS; i++)
		way[i + 1] = (struct kernel_way){
			.name = target_table[cards[i]].name, .target = target_table[cards[i]], .simulated = true
		};
	return WAYS;
}

/* ---- rounding */

/* By its definition: of the two neighbours the nearer, else the even one. Finite numbers below the largest of the
 * type. */
static uint16_t nearest(float x, enum dtype type)
{
	uint32_t bits = f32_bits(fabsf(x)), sign = signbit(x) ? 0x8000u : 0;
	uint16_t low = 0, high = type == DTYPE_F16 ? 0x7bff : 0x7f7f;

	if (type == DTYPE_BF16)
		low = (uint16_t)(bits >> 16);
	while (type == DTYPE_F16 && high - low > 1) {
		uint16_t middle = (uint16_t)((low + high) / 2);
		if ((double)f16_f32(middle) <= fabs((double)x))
			low = middle;
		else
			high = middle;
	}
	if (type == DTYPE_BF16)
		high = (uint16_t)(low + 1);
	double below = (double)(type == DTYPE_F16 ? f16_f32(low) : bits_f32((uint32_t)low << 16)),
	       above = (double)(type == DTYPE_F16 ? f16_f32(high) : bits_f32((uint32_t)high << 16));
	double down = fabs((double)x) - below, up = above - fabs((double)x);
	return (uint16_t)((down < up || (down == up && low % 2 == 0) ? low : high) | sign);
}

enum { NARROW = 32 * 64 };

static void check_narrow(enum dtype type)
{
	struct kernel_way way[WAYS];
	unsigned n = all_ways(way);
	float *x = kernel_buffer(NARROW * 4, 0);
	uint16_t *out = kernel_buffer(NARROW * 2, 0);
	const struct key key = {
		.kind = KEY_INTERLEAVE, .activation = (uint8_t)(type + 1), .numerics = NUMERICS_BOUNDED
	};
	uint64_t arg[INTERLEAVE_ARGS] = { [INTERLEAVE_X] = address(x), [INTERLEAVE_OUT] = address(out) };

	for (unsigned i = 0; i < NARROW; i++) {
		uint32_t u = draw(1u << 16) << 15 | draw(1u << 15);
		u = i % 4 == 0   ? u & 0xffff8000u
		    : i % 4 == 1 ? (u & 0xffff0000u) | 0x7fffu
		    : i % 4 == 2 ? (u & 0x83ffffffu) + 0x36000000u
		                 : u;
		x[i] = bits_f32(u << (i & 1) | (i & 2) << 30);
		if (isnan(x[i]) || fabsf(x[i]) > 0x1.fep127f)
			x[i] = -0.0f;
	}
	for (unsigned w = 0; w < n; w++) {
		struct kernel k;
		memset(out, 0x55, NARROW * 2);
		kernel_open(&k, &way[w], &key);
		kernel_run(&k, arg, 17, NARROW / 32);
		kernel_run(&k, arg, 0, 17);
		kernel_close(&k);
		for (unsigned i = 0; i < NARROW; i++) {
			uint16_t want = type == DTYPE_F16 && fabsf(x[i]) >= NUMERICS_F16_MAX
			                        ? (signbit(x[i]) ? 0xfbff : 0x7bff)
			                        : nearest(x[i], type);
			if (out[i] != want)
				fail_msg("%s: %a becomes %04x, expected %04x", way[w].name, (double)x[i], out[i], want);
		}
	}
	x[0] = bits_f32(0x7fffffff);
	x[1] = bits_f32(0xff800001);
	x[2] = INFINITY;
	struct kernel k;
	kernel_open(&k, &way[0], &key);
	kernel_run(&k, arg, 0, 1);
	kernel_close(&k);
	float got[3];
	for (unsigned i = 0; i < 3; i++)
		got[i] = type == DTYPE_F16 ? f16_f32(out[i]) : bits_f32((uint32_t)out[i] << 16);
	assert_true(isnan(got[0]) && isnan(got[1]) && got[2] == (type == DTYPE_F16 ? NUMERICS_F16_MAX : INFINITY));
	free(x);
	free(out);
}

static void test_rounding(void **unused)
{
	check_narrow(DTYPE_F16);
	check_narrow(DTYPE_BF16);
}

/* ---- products */

struct problem {
	struct key key;
	uint32_t tiles;
};
struct data {
	uint16_t *rows[2], *x16;
	uint8_t *packed;
	float *x, *bias[2], *out, *exact;
	int8_t *outq;
	struct activation_block *outs;
	uint64_t columns, kp, rp;
};

static float *floats(uint64_t columns, uint32_t n)
{
	float *p = kernel_buffer(columns * numerics_pad(n) * 4, 0);
	for (uint64_t c = 0; c < columns; c++)
		for (uint32_t i = 0; i < n; i++)
			p[c * numerics_pad(n) + i] =
				ldexpf((float)(int32_t)(draw(1u << 25) - (1u << 24)), -20 - (int)draw(8));
	return p;
}

static void make(struct data *d, const struct problem *p)
{
	const struct key *key = &p->key;
	enum dtype type = (enum dtype)(key->weight - 1);
	unsigned matrices = key->flags & KEY_PAIR ? 2 : 1;

	*d = (struct data){
		.columns = (uint64_t)key->tile_n * p->tiles, .kp = numerics_pad(key->k), .rp = numerics_pad(key->rows)
	};
	uint64_t bytes = weight_packed_bytes(type, WEIGHT_LANE_CONTIGUOUS, matrices * d->rp, key->k),
		 block_bytes = weight_block_bytes(type, WEIGHT_LANE_CONTIGUOUS, key->k);
	d->packed = kernel_buffer(bytes, 0);
	for (unsigned m = 0; m < 2; m++) {
		d->rows[m] = malloc((uint64_t)key->rows * key->k * 2);
		assert_non_null(d->rows[m]);
		for (uint64_t i = 0; i < (uint64_t)key->rows * key->k; i++)
			d->rows[m][i] = nearest(ldexpf((float)(int32_t)(draw(1u << 16) - (1u << 15)), -18), type);
		for (uint32_t block = 0; m < matrices && block * 32 < key->rows; block++) {
			const void *row[32];
			for (uint32_t r = 0; r < 32; r++)
				row[r] = block * 32 + r < key->rows ? d->rows[m] + (uint64_t)(block * 32 + r) * key->k
				                                    : NULL;
			weight_pack_block(type, WEIGHT_LANE_CONTIGUOUS,
			                  d->packed + (block * matrices + m) * block_bytes, row, key->k);
		}
		d->bias[m] = floats(1, key->rows);
	}
	d->x = floats(d->columns, key->k);
	d->x16 = kernel_buffer(d->columns * d->kp * 2, 0);
	for (uint64_t i = 0; i < d->columns * d->kp; i++)
		d->x16[i] = nearest(d->x[i], type);
	d->out = kernel_buffer(d->columns * d->rp * 4, 0);
	d->exact = kernel_buffer(d->columns * d->rp * 4, 0);
	d->outq = kernel_buffer(d->columns * d->rp, 0x55);
	d->outs = kernel_buffer(d->columns * d->rp / 2, 0x55);
}

static void drop(struct data *d)
{
	for (unsigned m = 0; m < 2; m++) {
		free(d->rows[m]);
		free(d->bias[m]);
	}
	free(d->packed);
	free(d->x);
	free(d->x16);
	free(d->out);
	free(d->exact);
	free(d->outq);
	free(d->outs);
}

static void run(const struct kernel_way *way, const struct problem *p, struct data *d)
{
	struct kernel k;
	int64_t blocks = (int64_t)d->rp / 32;
	uint64_t arg[MATMUL_ARGS] = { [MATMUL_W] = address(d->packed),     [MATMUL_X] = address(d->x16),
		                      [MATMUL_OUT] = address(d->out),      [MATMUL_TILES] = p->tiles,
		                      [MATMUL_BIAS] = address(d->bias[0]), [MATMUL_BIAS2] = address(d->bias[1]),
		                      [MATMUL_OUTQ] = address(d->outq),    [MATMUL_OUTS] = address(d->outs) };

	for (uint64_t i = 0; i < d->columns * d->rp; i++)
		d->out[i] = (float)(i % 7) - 3.0f;
	kernel_open(&k, way, &p->key);
	kernel_run(&k, arg, 0, blocks);
	kernel_close(&k);
}

/* What numerics.h rule 13 states. */
static void check_bound(const struct problem *p, struct data *d)
{
	const struct key *key = &p->key;
	enum dtype type = (enum dtype)(key->weight - 1);
	const double u = type == DTYPE_F16 ? 0x1p-11 : 0x1p-8;
	const struct plain_matmul plain = { .w = { type, key->rows, key->k, (const uint8_t *)d->rows[0] },
		                            .columns = (uint32_t)d->columns,
		                            .x = d->x,
		                            .out = d->exact };
	bool differs = false;

	plain_matmul(&plain);
	for (uint64_t c = 0; c < d->columns; c++)
		for (uint32_t r = 0; r < key->rows; r++) {
			double sum = 0, weights = 0, got = d->out[c * d->rp + r], want = d->exact[c * d->rp + r];
			for (uint32_t k = 0; k < key->k; k++) {
				double w = fabs((double)plain_weight(&plain.w, r, k));
				sum += w * fabs((double)d->x[c * d->kp + k]);
				weights += w;
			}
			double bound = (u + (key->k + 16) * 0x1p-22) * sum + 0x1p-24 * weights;
			if (!(fabs(got - want) <= bound))
				fail_msg("row %u, column %llu: %a is %a from %a, more than %a", r,
				         (unsigned long long)c, got, got - want, want, bound);
			differs |= got != want;
		}
	assert_true(differs); /* or it was not that class */
}

/* In each order, want being the sums in the interpreter's. */
static void check_orders(const struct kernel_way *way, const struct problem *p, struct data *d, const float *want)
{
	static unsigned differ[PTX_SUMS_CUT + 1];
	const size_t bytes = d->columns * d->rp * 4;

	for (enum ptx_sums sums = PTX_SUMS_FORWARD; sums <= PTX_SUMS_CUT; sums++) {
		kernel_ptx_sums(sums);
		run(way, p, d);
		check_bound(p, d);
		differ[sums] += memcmp(want, d->out, bytes) != 0;
		if (p->key.k > 1000)
			assert_true(differ[sums]);
	}
	kernel_ptx_sums(PTX_SUMS_ONCE);
}

static void check(enum dtype type, uint32_t rows, uint32_t k, uint32_t columns, uint32_t tiles, uint32_t flags)
{
	const struct problem p = {
		.key = { .kind = KEY_MATMUL,
		         .weight = (uint8_t)(type + 1),
		         .activation = (uint8_t)(type + 1),
		         .rows = rows,
		         .k = k,
		         .tile_n = columns,
		         .row_blocks = 1,
		         .numerics = NUMERICS_BOUNDED,
		         .act = flags & (KEY_PAIR | KEY_GATED) ? ACT_SILU : ACT_NONE,
		         .flags = flags | KEY_MMA },
		.tiles = tiles
	};
	struct kernel_way way[WAYS];
	unsigned n = all_ways(way);
	struct data d;

	make(&d, &p);
	if (columns >= TEMPLATE_MMA_SHARED) { /* on NVIDIA's cards alone */
		way[0].name = "interpreter sm90";
		way[0].target = target_table[TARGET_SM90];
	}
	run(&way[0], &p, &d);
	if (!flags)
		check_bound(&p, &d);
	float *want = kernel_buffer(d.columns * d.rp * 4, 0);
	memcpy(want, d.out, d.columns * d.rp * 4);
	for (unsigned i = 1; i < n; i++) {
		bool ptx = i >= WAYS - PTX_WAYS;
		if (!ptx && columns >= TEMPLATE_MMA_SHARED)
			continue;
		if (columns == TEMPLATE_MMA_WIDE && way[i].target.id != TARGET_SM90)
			continue;
		if (i + 1 == n && !flags)
			check_orders(&way[i], &p, &d, want);
		run(&way[i], &p, &d);
		if (ptx && getenv("JITRUN_TEST_CUDA"))
			continue;
		for (uint64_t at = 0; at < d.columns * d.rp; at++)
			if (memcmp(&want[at], &d.out[at], 4) != 0)
				fail_msg("%s, %u x %u: entry %llu is %a, the interpreter has %a", way[i].name, rows, k,
				         (unsigned long long)at, (double)d.out[at], (double)want[at]);
	}
	free(want);
	drop(&d);
}

static void test_bound(void **unused)
{
	static const uint32_t lengths[] = { 32, 7, 96, 256, 300, 544, 1088, 2048, 2560 };

	for (unsigned i = 0; i < (test_quick() ? 4 : sizeof lengths / sizeof *lengths); i++)
		for (unsigned t = 0; t < 2; t++)
			check(t ? DTYPE_F16 : DTYPE_BF16, 1 + draw(70), lengths[i],
			      i % 2 ? TEMPLATE_MMA_MIN : TEMPLATE_MMA_COLUMNS, 1 + draw(2), 0);
}

static void test_shared_operands(void **unused)
{
	check(DTYPE_BF16, 65, 512, TEMPLATE_MMA_SHARED, 2, 0);
	check(DTYPE_F16, 33, 576, TEMPLATE_MMA_SHARED, 1, KEY_PAIR | KEY_BIAS | KEY_BIAS2);
	check(DTYPE_F16, 65, 512, TEMPLATE_MMA_WIDE, 2, KEY_RESIDUAL);
	if (test_small_share())
		return;
	check(DTYPE_F16, 96, 1088, TEMPLATE_MMA_SHARED, 1, 0);
	check(DTYPE_BF16, 130, 2048, TEMPLATE_MMA_SHARED, 1, KEY_RESIDUAL);
	check(DTYPE_BF16, 130, 2048, TEMPLATE_MMA_WIDE, 1, 0);
	check(DTYPE_F16, 33, 1024, TEMPLATE_MMA_WIDE, 1, KEY_PAIR | KEY_BIAS | KEY_BIAS2);
	check(DTYPE_BF16, 2048, 512, TEMPLATE_MMA_SHARED, 1, KEY_RESIDUAL); /* rows enough for tiles of 128 */
}

static void test_epilogues(void **unused)
{
	check(DTYPE_F16, 40, 64, 16, 2, KEY_PAIR | KEY_BIAS | KEY_BIAS2);
	check(DTYPE_BF16, 33, 96, 32, 1, KEY_RESIDUAL | KEY_BIAS);
	check(DTYPE_BF16, 64, 2048, 16, 1, KEY_PAIR | KEY_QUANTISED_OUT);
	check(DTYPE_F16, 32, 288, 32, 1, KEY_GATED);
}

/* ---- keys */

static void refuse(struct key key, enum target_id target, const char *why)
{
	struct error err = { 0 };
	struct ir b;

	ir_init(&b, target_table[target].lanes);
	b.waves = target_table[target].waves;
	assert_false(template_build(&b, &key, &target_table[target], &err));
	if (err.code != ERROR_UNSUPPORTED || !strstr(err.text, why))
		fail_msg("\"%s\", expected \"%s\"", err.text, why);
	ir_free(&b);
}

static void test_keys(void **unused)
{
	const struct key key = {
		.kind = KEY_MATMUL,
		.target = TARGET_GFX1100,
		.weight = DTYPE_BF16 + 1,
		.activation = DTYPE_BF16 + 1,
		.rows = 64,
		.k = 512,
		.tile_n = 16,
		.row_blocks = 1,
		.numerics = NUMERICS_BOUNDED,
		.flags = KEY_MMA
	};
	struct key k = key;
	char text[KEY_TEXT_MAX];

	assert_string_equal(key_text(&key, text, sizeof text), "matmul.bf16.abf16.64x512.c16.b1.mma.bounded.gfx1100");
	assert_true(key_parse(&k, text));
	k.codegen = 0;
	assert_true(key_equal(&k, &key));
	refuse(key, TARGET_GFX1030, "no products of matrices");
	refuse(key, TARGET_AVX2, "no products of matrices");
	k = key;
	k.numerics = NUMERICS_EXACT;
	refuse(k, TARGET_GFX1100, "of the bounded class");
	k = key;
	k.flags = 0;
	refuse(k, TARGET_GFX1100, "only the exact numerics class is done");
	k = key;
	k.tile_n = 17;
	refuse(k, TARGET_GFX1100, "16 columns");
	k = key;
	k.weight = k.activation = DTYPE_Q8_0 + 1;
	refuse(k, TARGET_GFX1100, "of the exact class");
	k.weight = DTYPE_Q4_0 + 1;
	refuse(k, TARGET_GFX1100, "not multiplied");
	k = (struct key){ .kind = KEY_INTERLEAVE, .activation = DTYPE_F16 + 1, .numerics = NUMERICS_BOUNDED };
	refuse(k, TARGET_GFX1036, "no products of matrices");
	k.activation = DTYPE_F32 + 1;
	refuse(k, TARGET_GFX1200, "rounded to F16 or BF16");
	/* totals of 32 columns of eight spans of two matrices have no room in a group's memory */
	assert_int_equal(widths_mma_narrow_n(2048, KEY_PAIR), 16);
	assert_int_equal(widths_mma_narrow_n(2048, 0), 32);
	assert_int_equal(widths_mma_tile_n(&target_table[TARGET_GFX1100], DTYPE_BF16, 64, 2048, 0), 32);
	assert_int_equal(widths_mma_tile_n(&target_table[TARGET_SM90], DTYPE_BF16, 64, 2048, 0), 64);
	assert_int_equal(widths_mma_tile_n(&target_table[TARGET_SM90], DTYPE_BF16, 64, 480, 0), 32);
	/* tiles that fill the card */
	assert_int_equal(widths_mma_tile_n(&target_table[TARGET_SM90], DTYPE_BF16, 4096, 14336, 0), 128);
	assert_int_equal(widths_mma_tile_n(&target_table[TARGET_SM90], DTYPE_Q8_0, 14336, 4096, KEY_PAIR), 128);
	assert_int_equal(widths_mma_tile_n(&target_table[TARGET_SM90], DTYPE_Q8_0, 3072, 1024, KEY_PAIR), 64);
	assert_int_equal(widths_mma_tile_n(&target_table[TARGET_SM80], DTYPE_BF16, 4096, 14336, 0), 64);
	assert_false(widths_mma(&target_table[TARGET_GFX1100], DTYPE_BF16, DTYPE_F32, false));
	assert_true(widths_mma(&target_table[TARGET_GFX1100], DTYPE_BF16, DTYPE_F32, true));
	assert_false(widths_mma(&target_table[TARGET_GFX1100], DTYPE_Q8_0, DTYPE_F32, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rounding), cmocka_unit_test(test_bound),
		                            cmocka_unit_test(test_shared_operands), cmocka_unit_test(test_epilogues),
		                            cmocka_unit_test(test_keys) };
	kernel_all_modes();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
