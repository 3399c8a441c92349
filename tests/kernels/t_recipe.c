/* tests/kernels/t_recipe.c - recipes of matmuls (recipe.h): of many keys on every sort of target, whether one is
 * refused as a table says that was written down from the rules as they stood before there were recipes; whether the
 * kernel that is built has what its recipe says; and whether each field of a recipe decides something.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir.h"
#include "kernels-templates/matmul/matmul.h"
#include "tests/kernels/recipe_keys.h"
#include "tests/support/shared.h"

enum { KEYS = 1000 };

/* Of keys 0 .. KEYS - 1: how many are built, and a hash over which ones. */
static const struct {
	uint8_t target;
	uint16_t built;
	uint64_t hash;
} refused_before[] = {
	{ TARGET_AVX2, 239, UINT64_C(0xa6286db8013db79a) },
	{ TARGET_AVX2_VNNI, 239, UINT64_C(0xa6286db8013db79a) },
	{ TARGET_AVX512, 239, UINT64_C(0xa6286db8013db79a) },
	{ TARGET_AVX512_VNNI, 239, UINT64_C(0xa6286db8013db79a) },
	{ TARGET_AVX512_BF16, 241, UINT64_C(0xf95e63ced6d92a7c) },
	{ TARGET_AVX512_AMX, 245, UINT64_C(0xe3d9056084567d6e) },
	{ TARGET_GFX1030, 344, UINT64_C(0x242ca35d79d40bdd) },
	{ TARGET_GFX1101, 357, UINT64_C(0x413c88f80b77c78a) },
	{ TARGET_SM80, 480, UINT64_C(0xfdd42d802dd1bca3) },
	{ TARGET_SM90, 505, UINT64_C(0x21ce518d73fa1ab4) },
	{ TARGET_SM90X4, 505, UINT64_C(0x21ce518d73fa1ab4) },
};

static struct ir built_for(const struct target *target)
{
	struct ir ir;

	ir_init(&ir, target->lanes);
	ir.waves = target->waves;
	return ir;
}

static struct key key_for(uint32_t n, const struct target *target)
{
	struct key key = recipe_key(n);

	key.target = (uint8_t)target->id;
	return key;
}

/* ---- what is refused */

static void test_refusals(void **state)
{
	(void)state;
	for (unsigned t = 0; t < sizeof refused_before / sizeof *refused_before; t++) {
		const struct target *target = &target_table[refused_before[t].target];
		uint64_t hash = 1469598103934665603u;
		unsigned built = 0;
		for (uint32_t n = 0; n < KEYS; n++) {
			const struct key key = key_for(n, target);
			struct error err = { 0 };
			struct ir ir = built_for(target);
			const bool is_built = template_build(&ir, &key, target, &err);
			ir_free(&ir);
			built += is_built;
			hash = (hash ^ is_built) * 1099511628211u;
		}
		if (built != refused_before[t].built || hash != refused_before[t].hash)
			fail_msg("%s: %u of %u keys are built, and were %u (hash 0x%llx)", target->name, built,
			         (unsigned)KEYS, refused_before[t].built, (unsigned long long)hash);
	}
}

/* ---- what is built */

/* What a kernel's instructions show. */
struct seen {
	bool part, awaits, copies, products, groups;
};

static struct seen look_at(const struct ir *ir)
{
	struct seen s = { .groups = ir->cooperative };

	for (size_t i = 0; i < ir->n_ins; i++) {
		const unsigned row = ir_row(&ir->ins[i]);
		s.part |= row == IR_part;
		s.awaits |= ir_does(row, IR_AWAITS);
		s.copies |= ir_does(row, IR_COPIES);
		s.products |= row == IR_tdot_i8 || row == IR_tdot_f16 || row == IR_tdot_bf16;
	}
	return s;
}

static uint64_t rounded(uint64_t bytes) { return (bytes + 63) & ~(uint64_t)63; }

/* Of a group whose waves have their operands each: the totals of what it does at once, and its inputs. */
static uint64_t shared_bytes(const struct matmul_recipe *r)
{
	const uint64_t totals = (uint64_t)r->together * r->spans * r->matrices * r->columns * 128;

	return rounded(totals) + rounded(r->floats_bytes) + rounded(r->in_bytes) + rounded(r->scales_bytes);
}

/* The engine by the key's words alone. */
static bool suits_engine(const struct matmul_recipe *r, const struct key *key, const struct target *target)
{
	char text[KEY_TEXT_MAX];

	key_text(key, text, sizeof text);
	if (strstr(text, ".mma"))
		return r->engine == MATMUL_PRODUCTS && target->has_mma;
	if (strstr(text, ".wide"))
		return r->engine == MATMUL_LANES_WIDE && !target->lane_bytes;
	if (!target->lane_bytes)
		return r->engine == MATMUL_LANES;
	return r->engine == (strstr(text, ".s200") ? MATMUL_SIDE_BY_SIDE : MATMUL_WAVES);
}

static const char *wrong_with(const struct matmul_recipe *r, const struct key *key, const struct target *target,
                              const struct ir *ir)
{
	static const struct matmul_schedule none;
	const struct seen s = look_at(ir);
	const bool lanes = r->engine == MATMUL_LANES || r->engine == MATMUL_LANES_WIDE,
		   wide = r->engine == MATMUL_LANES_WIDE;

	if (!suits_engine(r, key, target) || s.products != (r->engine == MATMUL_PRODUCTS) || s.groups == lanes)
		return "engine";
	if (s.part != r->parts)
		return "parts";
	if (s.awaits != r->awaited)
		return "awaited";
	if (r->operands == MATMUL_RING ? !s.copies : s.copies && !r->awaited) /* whose weights may be copied */
		return "copies";
	if (!lanes && r->operands == MATMUL_DIRECT && r->engine != MATMUL_LANES && ir->shared_bytes != shared_bytes(r))
		return "shared bytes";
	if (!lanes && r->engine != MATMUL_SIDE_BY_SIDE && r->operands == MATMUL_DIRECT && r->together > 1 &&
	    r->together * r->spans * r->matrices != target->waves)
		return "row blocks at once";
	if (r->operands == MATMUL_DIRECT && r->spans != numerics_spans(key->k))
		return "spans";
	if (r->unpacks && ir->local_bytes < r->own)
		return "own bytes";
	if (wide != (r->panel > 0) || r->panel > key->tile_n || (r->offset && !(r->int8 && target->has_vnni)))
		return "panels";
	if (lanes != !!memcmp(&r->schedule, &none, sizeof none))
		return "schedule";
	return (r->operands == MATMUL_RING) == (r->stages > 0) ? NULL : "stages";
}

/* All targets, as many keys as the size has. */
static void test_kernels_are_as_recipes_say(void **state)
{
	const uint32_t keys = test_quick() ? KEYS : 8 * KEYS;

	(void)state;
	for (unsigned t = TARGET_NONE + 1; t < TARGET_COUNT; t++)
		for (uint32_t n = t % 4; n < keys; n += test_quick() ? 4 : 1) {
			const struct target *target = &target_table[t];
			const struct key key = key_for(n, target);
			const struct matmul_recipe r = matmul_recipe(&key, target);
			struct error err = { 0 };
			struct ir ir = built_for(target);
			char text[KEY_TEXT_MAX];
			if (!r.refusal != matmul_build(&ir, &key, target, &err))
				fail_msg("%s: %s", key_text(&key, text, sizeof text), r.refusal ? r.refusal : err.text);
			if (!r.refusal && !ir_verify(&ir, &err))
				fail_msg("%s: %s", key_text(&key, text, sizeof text), err.text);
			const char *wrong = r.refusal ? NULL : wrong_with(&r, &key, target, &ir);
			if (wrong)
				fail_msg("%s: the kernel is not as its recipe says: %s",
				         key_text(&key, text, sizeof text), wrong);
			ir_free(&ir);
		}
}

/* ---- what each field decides */

/* Changes a field, where that suits such a recipe. */
typedef bool alter(struct matmul_recipe *r);

static bool alter_engine(struct matmul_recipe *r)
{
	const bool may = r->engine == MATMUL_SIDE_BY_SIDE;
	r->engine = MATMUL_WAVES;
	return may;
}
static bool alter_source(struct matmul_recipe *r)
{
	const bool may = r->engine == MATMUL_WAVES && r->source == MATMUL_FROM_MEMORY;
	r->source = MATMUL_FROM_HEADS;
	return may;
}
static bool alter_operands(struct matmul_recipe *r)
{
	const bool may = r->operands == MATMUL_RING && r->spans == 2 && r->columns == TEMPLATE_MMA_SHARED;
	r->operands = MATMUL_SHARED;
	return may;
}
static bool alter_epilogue(struct matmul_recipe *r)
{
	r->epilogue ^= KEY_BIAS;
	return true;
}
static bool alter_format(struct matmul_recipe *r)
{
	const bool may = r->engine == MATMUL_SIDE_BY_SIDE && r->format == &wf_bf16;
	r->format = &wf_f16;
	return may;
}
static bool alter_block_bytes(struct matmul_recipe *r)
{
	r->block_bytes += 512;
	return true;
}
static bool alter_matrices(struct matmul_recipe *r)
{
	const bool may = r->engine == MATMUL_WAVES && r->matrices == 1;
	r->matrices = 2;
	return may;
}
static bool alter_unpacks(struct matmul_recipe *r)
{
	const bool may = r->unpacks && r->format == &wf_q8_0;
	r->unpacks = false;
	return may;
}
static bool alter_own(struct matmul_recipe *r)
{
	r->own += 64;
	return r->unpacks && r->operands == MATMUL_DIRECT;
}
static bool alter_int8(struct matmul_recipe *r)
{
	const bool may =
		r->engine == MATMUL_WAVES && r->format == &wf_q8_0 && r->int8 && r->source == MATMUL_FROM_MEMORY;
	r->int8 = false;
	return may;
}
static bool alter_panel(struct matmul_recipe *r) { return r->panel > 2 ? r->panel--, true : false; }
static bool alter_normed(struct matmul_recipe *r)
{
	const bool may = r->source == MATMUL_STAGED && r->normed && !r->awaited;
	r->normed = false;
	return may;
}
static bool alter_centred(struct matmul_recipe *r)
{
	r->centred = !r->centred;
	return r->normed;
}
static bool alter_awaited(struct matmul_recipe *r)
{
	r->awaited = false;
	return r->source == MATMUL_STAGED && !r->normed && r->engine == MATMUL_WAVES;
}
static bool alter_blocks(struct matmul_recipe *r)
{
	const bool may = r->source == MATMUL_STAGED && !r->int8 && r->awaited;
	r->blocks = true;
	return may;
}
static bool alter_column(struct matmul_recipe *r)
{
	r->column += 128;
	return r->engine == MATMUL_WAVES && r->source == MATMUL_FROM_MEMORY && r->columns > 1;
}
static bool alter_scales(struct matmul_recipe *r)
{
	r->scales *= 2;
	return r->engine == MATMUL_WAVES && r->int8;
}
static bool alter_floats_bytes(struct matmul_recipe *r)
{
	return r->floats_bytes ? r->floats_bytes += 64, true : false;
}
static bool alter_in_bytes(struct matmul_recipe *r) { return r->in_bytes ? r->in_bytes += 64, true : false; }
static bool alter_scales_bytes(struct matmul_recipe *r)
{
	return r->scales_bytes ? r->scales_bytes += 64, true : false;
}
static bool alter_columns(struct matmul_recipe *r)
{
	r->columns++;
	return r->engine == MATMUL_WAVES && r->source == MATMUL_FROM_MEMORY;
}
static bool alter_sides(struct matmul_recipe *r)
{
	const bool may = r->engine == MATMUL_SIDE_BY_SIDE && r->sides == 4;
	r->sides = 2;
	return may;
}
static bool alter_spans(struct matmul_recipe *r)
{
	const bool may = r->engine == MATMUL_WAVES && r->spans > 1;
	r->spans /= 2;
	return may;
}
static bool alter_stages(struct matmul_recipe *r) { return r->stages > 2 ? r->stages--, true : false; }
static bool alter_together(struct matmul_recipe *r)
{
	const bool may = r->engine == MATMUL_WAVES && r->together > 1;
	r->together /= 2;
	return may;
}
static bool alter_parts(struct matmul_recipe *r)
{
	const bool may = r->parts;
	r->parts = false;
	return may;
}
static bool alter_short_last(struct matmul_recipe *r)
{
	const bool may = r->short_last;
	r->short_last = false;
	return may;
}
static bool alter_schedule(struct matmul_recipe *r)
{
	r->schedule.prefetch_distance *= 2;
	return r->engine == MATMUL_LANES && r->columns == 1;
}

/* A field without such a change does not compile, unless it is one of these: test_refusals() judges the first, and
 * kernels read unsigned bytes without being told, but plans ask whether they are to be made (t_plan.c, t_matmul.c). */
#define alter_refusal NULL
#define alter_offset NULL

static bool same_instructions(const struct ir *a, const struct ir *b)
{
	bool same = a->n_ins == b->n_ins;

	for (size_t i = 0; same && i < a->n_ins; i++) {
		const struct ir_ins *x = &a->ins[i], *y = &b->ins[i];
		same = ir_row(x) == ir_row(y) && x->dst == y->dst && x->a == y->a && x->b == y->b && x->c == y->c &&
		       x->mask == y->mask && x->imm == y->imm;
	}
	return same;
}

static bool same_kernel(const struct key *key, const struct target *target, const struct matmul_recipe *a,
                        const struct matmul_recipe *b)
{
	struct ir one = built_for(target), other = built_for(target);

	matmul_build_by(&one, key, target, a);
	matmul_build_by(&other, key, target, b);
	const bool same = same_instructions(&one, &other);
	ir_free(&one);
	ir_free(&other);
	return same;
}

/* Whether some kernel is another one when the field is. */
static bool decides(alter *change)
{
	static const uint8_t targets[] = { TARGET_AVX2, TARGET_AVX512_VNNI, TARGET_GFX1101, TARGET_SM90 };

	for (uint32_t n = 0; n < 4 * KEYS; n++)
		for (unsigned t = 0; t < sizeof targets; t++) {
			const struct target *target = &target_table[targets[t]];
			const struct key key = key_for(n, target);
			const struct matmul_recipe r = matmul_recipe(&key, target);
			struct matmul_recipe altered = r;
			if (!r.refusal && change(&altered) && !same_kernel(&key, target, &r, &altered))
				return true;
		}
	return false;
}

static void test_each_field_decides_something(void **state)
{
	static const struct {
		const char *name;
		alter *change;
	} fields[] = {
#define X(type, name, meaning) { #name, alter_##name },
		MATMUL_RECIPE(X)
#undef X
	};

	(void)state;
	for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++)
		if (fields[i].change && !decides(fields[i].change))
			fail_msg("no kernel depends on the recipe's %s", fields[i].name);
}

/* The three fields of a key's flags have no bit in common. */
static void test_flags_are_three_fields(void **state)
{
	(void)state;
	assert_int_equal(KEY_EPILOGUE & KEY_SOURCE, 0);
	assert_int_equal((KEY_EPILOGUE | KEY_SOURCE) & KEY_ENGINE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_kernels_are_as_recipes_say),
		cmocka_unit_test(test_each_field_decides_something),
		cmocka_unit_test(test_flags_are_three_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
