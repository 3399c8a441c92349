/* tests/runtime/t_plan.c - plans, judged by a walk over their launches (plan_check.h): for every target, with formats
 * of weights side by side, for all numbers of tokens. And that the walk misses nothing: every stage, launch, argument
 * and field of a key is spoiled in turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels-templates/matmul/recipe.h"
#include "runtime/plan/lower.h"
#include "runtime/session/session.h"
#include "tests/runtime/mixed_model.h"
#include "tests/runtime/plan_check.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"
#include "tests/support/widths.h"

enum { USUAL_COLUMNS = 264 /* the most of a session's pass unless it is told otherwise */, KV_TYPES = 3 };
static const enum dtype kv_types[KV_TYPES] = { DTYPE_F16, DTYPE_F32, DTYPE_Q8_0 };

static uint64_t built;

/* ---- formats: plans depend on them through what templates say of them alone, so few stand for all */

struct format_answers {
	uint32_t activation, wide[2], tokens[2], mma[2], panel[2][TEMPLATE_MAX_WIDE], interleave[2][TEMPLATE_MAX_WIDE];
};

static struct format_answers answers_for(const struct target *t, enum dtype weight)
{
	const enum dtype usual = weight_default_activation(weight);
	struct format_answers a = { .activation = usual };

	for (int f32 = 0; f32 < 2; f32++) {
		enum dtype act = f32 ? DTYPE_F32 : usual;
		a.wide[f32] = widths_of(t, weight, act, 100).wide_from;
		a.tokens[f32] = widths_of(t, weight, act, 100).wide;
		a.mma[f32] = widths_mma(t, weight, act, true) + 2u * widths_mma(t, weight, act, false);
		for (unsigned n = 1; a.wide[f32] && n <= TEMPLATE_MAX_WIDE; n++) {
			a.panel[f32][n - 1] = widths_panel(t, weight, act, n);
			a.interleave[f32][n - 1] = widths_interleave(t, weight, act, n);
		}
	}
	return a;
}

/* At most `alike` formats of which the target's templates say the same. Returns how many. */
static unsigned formats_of(const struct target *t, unsigned alike, enum dtype out[DTYPE_COUNT])
{
	struct format_answers said[DTYPE_COUNT];
	enum dtype types[DTYPE_COUNT];
	unsigned n = 0, all = weight_types(types);

	for (unsigned i = 0; i < all; i++) {
		unsigned same = 0;
		said[n] = answers_for(t, types[i]);
		for (unsigned j = 0; j < n; j++)
			same += memcmp(&said[j], &said[n], sizeof said[n]) == 0;
		if (same < alike)
			out[n++] = types[i];
	}
	return n;
}

static bool alike(const struct target *a, const struct target *b)
{
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types);

	for (unsigned i = 0; i < n; i++) {
		const struct format_answers x = answers_for(a, types[i]), y = answers_for(b, types[i]);
		if (memcmp(&x, &y, sizeof x) != 0)
			return false;
	}
	return a->lane_bytes == b->lane_bytes && a->waves == b->waves && a->lanes == b->lanes;
}

/* Whether an earlier target makes the same plans. */
static bool seen_before(int target)
{
	for (int t = TARGET_NONE + 1; t < target; t++)
		if (alike(&target_table[t], &target_table[target]))
			return true;
	return false;
}

/* ---- plans as they are built */

static void build(struct plan *p, struct plan_space *s, uint32_t n, enum plan_logits logits,
                  const struct plan_options *o)
{
	struct error err = { 0 };

	assert_true(plan_space_settle(s, o));
	if (!plan_build(p, &s->spec, &s->weights, &s->buffers, &s->kv, n, logits, o, &err))
		fail_msg("%s", err.text);
	built++;
}

static const struct key *key_of(const struct plan *p, uint32_t launch) { return &p->kernel[p->op[launch].kernel].key; }

/* How the tiles of one matrix want their input. */
struct wish {
	uint32_t activation, tokens, panel, flags;
	uint64_t tiles;
};
enum { TILES_MAX = 4 };

/* The wishes of the matrix whose first launch this is; returns how many, 0 when they are none. */
static unsigned wishes_of(const struct plan *p, uint32_t launch, struct wish out[TILES_MAX])
{
	uint64_t weights = p->op[launch].arg[MATMUL_W];
	unsigned n = 0;

	memset(out, 0, TILES_MAX * sizeof *out);
	for (const struct key *k; (k = key_of(p, launch))->kind == KEY_MATMUL && k->flags & KEY_WIDE &&
	                          p->op[launch].arg[MATMUL_W] == weights;
	     launch++) {
		const struct target *t = &target_table[k->target];
		enum dtype weight = (enum dtype)(k->weight - 1), act = (enum dtype)(k->activation - 1);
		out[n++] =
			(struct wish){ act, k->tile_n, widths_panel(t, weight, act, k->tile_n),
			               widths_interleave(t, weight, act, k->tile_n), p->op[launch].arg[MATMUL_TILES] };
	}
	return n;
}

/* q, k and v read one input: tokens are turned again only where a matrix wants them otherwise than the one before. */
static void check_sharing(const struct plan *p, uint32_t layer)
{
	struct wish held[TILES_MAX], wanted[TILES_MAX];
	unsigned interleaves = 0, needed = 0, n;
	uint32_t i = p->section[1 + layer];

	memset(held, 0, sizeof held);
	for (; key_of(p, i)->kind != KEY_ROPE && key_of(p, i)->kind != KEY_ATTENTION; i += n ? n : 1) {
		interleaves += key_of(p, i)->kind == KEY_INTERLEAVE;
		n = wishes_of(p, i, wanted);
		for (unsigned j = 0; j < n; j++)
			needed += memcmp(&held[j], &wanted[j], sizeof held[j]) != 0;
		if (n)
			memcpy(held, wanted, sizeof held);
	}
	if (interleaves != needed)
		fail_msg("%u tokens: %u launches turn the inputs of a layer, %u are needed", p->tokens, interleaves,
		         needed);
}

static void check_plan(struct plan_space *s, uint32_t n, enum plan_logits logits, const struct plan_options *o,
                       const char *what)
{
	struct plan_check_report why;
	struct plan p;

	build(&p, s, n, logits, o);
	if (!plan_check(&p, s, o, &why))
		fail_msg("%s, %s, %u tokens, logits %d, f32 activations %d, bounded %d, general %d: %s",
		         o->target->name, what, n, logits, o->f32_activations, o->bounded, o->general, why.text);
	const bool sharing = !o->target->has_mma && n % 8 == 7 && !s->spec.latent.rank && !s->spec.layer_mixer;
	for (uint32_t i = 0; sharing && i < PLAN_LAYERS; i++)
		check_sharing(&p, i);
	plan_free(&p);
}

/* No kernel is missing when the context has grown. */
static void check_kernels_to_come(struct plan_space *s, const struct target *t)
{
	const struct plan_options before = { .target = t, .context = PLAN_PARTS_TO_COME },
				  then = { .target = t, .context = PLAN_PARTS };
	struct plan a, b;

	build(&a, s, 1, PLAN_LAST_LOGITS, &before);
	build(&b, s, 1, PLAN_LAST_LOGITS, &then);
	for (size_t i = 0, j; i < b.n_kernels; i++) {
		char text[KEY_TEXT_MAX];
		for (j = 0; j < a.n_kernels && !key_equal(&a.kernel[j].key, &b.kernel[i].key); j++)
			;
		if (j == a.n_kernels)
			fail_msg("%s is not expected", key_text(&b.kernel[i].key, text, sizeof text));
	}
	plan_free(&a);
	plan_free(&b);
}

/* The passes of so many tokens that sessions make: with every option, the logits taking turns; all of those, too, with
 * JITRUN_TEST_FULL; one of all when quick. */
static void check_passes(struct plan_space *s, uint32_t n, const struct target *t, const char *what)
{
	enum { WAYS = 7, GENERAL_MAX = 20 };
	static const struct plan_options ways[WAYS] = {
		{ 0 },
		{ .f32_activations = true },
		{ .bounded = true },
		{ .f32_activations = true, .bounded = true },
		{ .general = true },
		{ .context = PLAN_PARTS_TO_COME },
		{ .context = PLAN_PARTS, .f32_activations = true }
	};
	const uint32_t kinds = n <= SESSION_ALL_LOGITS ? 4 : 3;

	if (n == 1)
		check_kernels_to_come(s, t);
	for (uint32_t way = 0; way < WAYS; way++) {
		struct plan_options o = ways[way];
		if ((o.bounded && !t->has_mma && !t->has_dot2) || (o.general && n > GENERAL_MAX) ||
		    (test_quick() && way != n % WAYS && way && !(n == 1 && o.context)))
			continue;
		o.target = t;
		for (uint32_t kind = 0; kind < kinds; kind++)
			if (test_full() || kind == (n + way) % kinds)
				check_plan(s, n, (enum plan_logits)kind, &o, what);
	}
}

/* first, first + step, ... */
struct range {
	uint32_t first, last, step;
};

static void check_range(const struct target *t, const enum dtype one, const enum dtype other, const enum dtype third,
                        struct range r)
{
	const struct plan_types types = {
		{ { one, other, third, other, one, other, one }, { other, third, one, one, other, third, other } }, one
	};
	static unsigned at;
	struct plan_space s;
	char what[64];

	if (!test_in_part(at++))
		return;
	snprintf(what, sizeof what, "%s, %s, %s", dtype_table[one].name, dtype_table[other].name,
	         dtype_table[third].name);
	plan_space_open(&s, &types, t, kv_types[(unsigned)other % KV_TYPES], SESSION_MAX_TOKENS, SESSION_ALL_LOGITS);
	for (uint32_t n = r.first; n <= r.last; n += r.step)
		check_passes(&s, n, t, what);
}

static void check_pairs(const struct target *t, unsigned alike, struct range r)
{
	enum dtype format[DTYPE_COUNT];
	unsigned n = formats_of(t, alike, format);

	for (unsigned i = 0; i < n * n; i++)
		check_range(t, format[i / n], format[i % n], format[i / n], r);
}

/* ---- the tests */

static void test_pairs(void **state)
{
	(void)state;
	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++)
		check_pairs(&target_table[t],
		            test_full()    ? DTYPE_COUNT
		            : test_quick() ? 1
		                           : 2,
		            (struct range){ 1, USUAL_COLUMNS,
		                            seen_before(t) && !test_full() ? test_quick() ? 131 : 43 : 1 });
	printf("# %llu plans\n", (unsigned long long)built);
}

static void test_triples(void **state)
{
	(void)state;
	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++) {
		enum dtype format[DTYPE_COUNT];
		unsigned n = formats_of(&target_table[t], 1, format);
		for (unsigned i = 0; (!seen_before(t) || test_full()) && i < n * n * n; i++)
			check_range(&target_table[t], format[i / n / n], format[i / n % n], format[i % n],
			            (struct range){ 1 + i % (test_full() ? 4 : 10), USUAL_COLUMNS,
			                            test_full()    ? 4
			                            : test_quick() ? 60
			                                           : 15 });
	}
}

static void test_long_prompts(void **state)
{
	(void)state;
	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++)
		if (!seen_before(t) || test_full())
			check_pairs(&target_table[t], 1,
			            (struct range){ USUAL_COLUMNS + 1, SESSION_MAX_TOKENS,
			                            test_full()    ? 1
			                            : test_quick() ? 253
			                                           : 23 });
}

/* Mixtures of experts, as above; latent: with latent attention. */
static void check_mixture(const struct target *t, enum dtype one, enum dtype other, bool sigmoid, bool latent)
{
	static const uint32_t tokens[] = { 1, 2, 3, 4, 7, 8, 9, 16, 31, 33, 100, USUAL_COLUMNS };
	const struct plan_types types = {
		{ { one, one, one, one, one, other, one }, { one, one, one, one, other, other, one } }, one
	};
	struct plan_space s;

	plan_space_open(&s, &types, t, DTYPE_F16, USUAL_COLUMNS, SESSION_ALL_LOGITS);
	if (latent)
		plan_space_latent(&s, &types, t, USUAL_COLUMNS, sigmoid);
	plan_space_mix(&s, &types, t, USUAL_COLUMNS, sigmoid);
	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
		check_passes(&s, tokens[i], t, sigmoid ? "a mixture by sigmoid" : "a mixture by softmax");
}

static void test_mixtures(void **state)
{
	(void)state;
	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++) {
		enum dtype format[DTYPE_COUNT];
		unsigned n = formats_of(&target_table[t], 1, format);
		for (unsigned i = 0; !seen_before(t) && i < n * n; i++)
			check_mixture(&target_table[t], format[i / n], format[i % n], i % 2, i / 2 % 2);
	}
}

/* One layer has a state. */
static void check_recurrent(const struct target *t, enum dtype one, enum dtype other, enum model_mixer mixer)
{
	static const uint32_t tokens[] = { 1, 2, 4, 7, 9, 16, 33, 100, USUAL_COLUMNS };
	const struct plan_types types = {
		{ { one, one, one, one, one, other, one }, { one, other, one, other, other, other, one } }, one
	};
	struct plan_space s;

	plan_space_open(&s, &types, t, DTYPE_F16, USUAL_COLUMNS, SESSION_ALL_LOGITS);
	plan_space_recurrent(&s, &types, t, USUAL_COLUMNS, mixer);
	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
		check_passes(&s, tokens[i], t, "a layer with a state");
}

static void test_recurrent(void **state)
{
	static const enum model_mixer mixers[] = { MIXER_CONV, MIXER_DELTA, MIXER_SCAN };
	(void)state;

	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++) {
		enum dtype format[DTYPE_COUNT];
		unsigned n = formats_of(&target_table[t], 1, format);
		for (unsigned i = 0; !seen_before(t) && i < n * n; i++)
			check_recurrent(&target_table[t], format[i / n], format[i % n], mixers[i % 3]);
	}
}

/* What some families have besides (plan_space_add); experts: a mixture by softmax. */
static void check_added(const struct target *t, enum dtype one, enum dtype other, unsigned what, bool experts)
{
	static const uint32_t tokens[] = { 1, 2, 4, 7, 9, 16, 33, 100, USUAL_COLUMNS };
	const struct plan_types types = {
		{ { one, other, one, one, other, one, one }, { one, one, other, other, other, other, one } }, one
	};
	struct plan_space s;
	char name[48];

	plan_space_open(&s, &types, t, DTYPE_F16, USUAL_COLUMNS, SESSION_ALL_LOGITS);
	if (experts)
		plan_space_mix(&s, &types, t, USUAL_COLUMNS, false);
	plan_space_add(&s, &types, t, USUAL_COLUMNS, what);
	snprintf(name, sizeof name, "what families have besides, %u", what);
	for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
		check_passes(&s, tokens[i], t, name);
}

static void test_added(void **state)
{
	static const struct {
		unsigned what;
		bool experts;
	} each[] = { { PLAN_GATE, false },
		     { PLAN_GATE | PLAN_POST_NORMS, true },
		     { PLAN_ROW_NORMS, false },
		     { PLAN_SLOPES | PLAN_GATE, false },
		     { PLAN_ROW_NORMS | PLAN_POST_NORMS, true },
		     { PLAN_POST_NORMS, false },
		     { PLAN_SCALES, false },
		     { PLAN_SCALES, true },
		     { PLAN_INPUTS_OWN, false },
		     { PLAN_INPUTS_OWN | PLAN_POST_NORMS, true },
		     { PLAN_DENSE_BESIDE, true },
		     { PLAN_DENSE_BESIDE | PLAN_POST_NORMS | PLAN_INPUTS_OWN, true } };
	(void)state;

	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++) {
		enum dtype format[DTYPE_COUNT];
		unsigned n = formats_of(&target_table[t], 1, format), ways = sizeof each / sizeof *each;
		for (unsigned i = 0; !seen_before(t) && i < (n * n > ways ? n * n : ways); i++)
			check_added(&target_table[t], format[i / n % n], format[i % n], each[i % ways].what,
			            each[i % ways].experts);
	}
}

/* ---- tiles */

static void check_cut(const char *target, enum dtype weight, uint32_t tokens, uint32_t width, uint32_t tiles,
                      uint32_t rest)
{
	const struct plan_options o = { .target = target_find(target) };
	const struct weights_matrix w = { .type = weight, .rows = 1024, .k = 1024 };
	struct plan_tiles t[PLAN_CUTS_MAX];
	unsigned n = plan_cut_matmul(&o, PLAN_LAST_LOGITS, &w, 0, tokens, t);

	if (n != 1u + (rest > 0) || t[0].width != width || t[0].tiles != tiles || (rest && t[1].width != rest))
		fail_msg("%s: %u tokens are %u tiles of %u, and %u", target, tokens, t[0].tiles, t[0].width,
		         n > 1 ? t[1].width : 0);
}

/* Tiles of floats on cards: each of any number of tokens is in one of them, once. From 4 tokens on they have row blocks
 * side by side, but for a rest of wide ones. Wide tiles are full; of others the last one may lack columns. */
static void check_floats(const struct weights_matrix *w, uint32_t flags, uint32_t tokens)
{
	const struct plan_options o = { .target = target_find("sm90") };
	struct plan_tiles t[PLAN_CUTS_MAX];
	uint32_t end = 0;

	for (unsigned n = plan_cut_matmul(&o, PLAN_ALL_LOGITS, w, flags, tokens, t), i = 0; i < n; i++) {
		const struct key key = {
			.kind = KEY_MATMUL,
			.weight = (uint8_t)(w->type + 1),
			.activation = DTYPE_F32 + 1,
			.rows = (uint32_t)w->rows,
			.k = (uint32_t)w->k,
			.tile_n = t[i].width,
			.row_blocks = 1,
			.act = flags ? ACT_SILU : ACT_NONE,
			.flags = flags,
			.schedule = t[i].schedule
		};
		const struct matmul_recipe r = matmul_recipe(&key, o.target);
		const bool sides = r.engine == MATMUL_SIDE_BY_SIDE;
		if (t[i].first != end || t[i].missing >= t[i].width || plan_tiles_columns(&t[i]) < t[i].width ||
		    t[i].flags || sides != (t[i].schedule != 0) || (tokens >= 4 && n == 1 && !sides) ||
		    (t[i].missing && !r.short_last))
			fail_msg("%u tokens, %llux%llu: %u tiles of %u, less %u, from %u on, schedule %x", tokens,
			         (unsigned long long)w->rows, (unsigned long long)w->k, t[i].tiles, t[i].width,
			         t[i].missing, t[i].first, t[i].schedule);
		end = plan_tiles_end(&t[i]);
	}
	assert_int_equal(end, tokens);
}

static void test_tiles_of_floats(void **state)
{
	static const uint32_t sizes[] = { 33, 256, 1024, 4096, 14336 };
	enum { SIZES = sizeof sizes / sizeof *sizes, TOKENS = 530 };

	(void)state;
	for (unsigned i = 0; i < SIZES * SIZES; i++)
		for (uint32_t tokens = 1; tokens < TOKENS; tokens += test_quick() && tokens > 40 ? 7 : 1) {
			const struct weights_matrix w = {
				.type = i % 2 ? DTYPE_BF16 : DTYPE_F32, .rows = sizes[i % SIZES], .k = sizes[i / SIZES]
			};
			check_floats(&w, 0, tokens);
			check_floats(&w, KEY_PAIR, tokens);
		}
}

/* Of few tokens' int8 tiles are alike, and Q8_0 with VNNI is read as it lies; matrix products want whole tiles. */
static void test_tiles(void **state)
{
	(void)state;
	check_cut("avx512vnni", DTYPE_Q8_0, 16, 16, 1, 0);
	check_cut("avx512vnni", DTYPE_Q8_0, 24, 12, 2, 0);
	check_cut("avx512vnni", DTYPE_Q8_0, 32, 16, 2, 0);
	check_cut("avx512vnni", DTYPE_Q8_0, 64, 16, 4, 0);
	check_cut("avx512vnni", DTYPE_Q8_0, 96, 24, 4, 0);
	check_cut("avx512vnni", DTYPE_Q4_K, 24, 24, 1, 0);
	check_cut("avx512vnni", DTYPE_Q4_K, 32, 16, 2, 0);
	check_cut("avx512vnni", DTYPE_Q4_K, 64, 24, 2, 16);
	check_cut("avx512vnni", DTYPE_Q4_K, 512, 24, 21, 8);
	check_cut("avx512vnni", DTYPE_BF16, 24, 24, 1, 0);
	check_cut("avx512vnni", DTYPE_BF16, 32, 12, 2, 8);
	check_cut("avx512", DTYPE_Q8_0, 24, 24, 1, 0);
	check_cut("avx2", DTYPE_Q8_0, 32, 16, 2, 0);
	check_cut("avx512amx", DTYPE_Q8_0, 32, 24, 1, 8);
	check_cut("avx512amx", DTYPE_Q4_K, 32, 24, 1, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_pairs),     cmocka_unit_test(test_mixtures),
		                            cmocka_unit_test(test_recurrent), cmocka_unit_test(test_added),
		                            cmocka_unit_test(test_triples),   cmocka_unit_test(test_long_prompts),
		                            cmocka_unit_test(test_tiles),     cmocka_unit_test(test_tiles_of_floats) };
	return cmocka_run_group_tests(tests, NULL, NULL) + plan_spoil_tests();
}
