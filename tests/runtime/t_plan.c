/* tests/runtime/t_plan.c - plans, judged by a walk over their launches (plan_check.h): for every target, with formats
 * of weights side by side, for all numbers of tokens. And that the walk misses nothing: every phase, launch, argument
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

#include "runtime/session.h"
#include "tests/runtime/mixed_model.h"
#include "tests/runtime/plan_check.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

enum { USUAL_COLUMNS = 264 /* the most of a session's pass unless it is told otherwise */, KV_TYPES = 3 };
static const enum dtype kv_types[KV_TYPES] = { DTYPE_F16, DTYPE_F32, DTYPE_Q8_0 };

static uint64_t built;

/* ---- formats: plans depend on them through what templates say of them alone, so few stand for all */

struct format_answers {
	uint32_t activation, wide[2], tokens[2], mma[2], panel[2][TEMPLATE_MAX_WIDE], turn[2][TEMPLATE_MAX_WIDE];
};

static struct format_answers answers_for(const struct target *t, enum dtype weight)
{
	const enum dtype usual = weight_default_activation(weight);
	struct format_answers a = { .activation = usual };

	for (int f32 = 0; f32 < 2; f32++) {
		enum dtype act = f32 ? DTYPE_F32 : usual;
		a.wide[f32] = template_wide_from(t, weight, act);
		a.tokens[f32] = template_wide_tile_n(t, weight, act);
		a.mma[f32] = template_mma(t, weight, act, true) + 2u * template_mma(t, weight, act, false);
		for (unsigned n = 1; a.wide[f32] && n <= TEMPLATE_MAX_WIDE; n++) {
			a.panel[f32][n - 1] = template_wide_panel(t, weight, act, n);
			a.turn[f32][n - 1] = template_wide_interleave(t, weight, act, n);
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

static void build(struct plan *p, const struct plan_space *s, uint32_t n, enum plan_logits logits,
                  const struct plan_options *o)
{
	struct error err = { 0 };

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
enum { TILES_MOST = 4 };

/* The wishes of the matrix whose first launch this is; returns how many, 0 when they are none. */
static unsigned wishes_of(const struct plan *p, uint32_t launch, struct wish out[TILES_MOST])
{
	uint64_t weights = p->op[launch].arg[MATMUL_W];
	unsigned n = 0;

	memset(out, 0, TILES_MOST * sizeof *out);
	for (const struct key *k; (k = key_of(p, launch))->kind == KEY_MATMUL && k->flags & KEY_WIDE &&
	                          p->op[launch].arg[MATMUL_W] == weights;
	     launch++) {
		const struct target *t = &target_table[k->target];
		enum dtype weight = (enum dtype)(k->weight - 1), act = (enum dtype)(k->activation - 1);
		out[n++] = (struct wish){ act, k->tile_n, template_wide_panel(t, weight, act, k->tile_n),
			                  template_wide_interleave(t, weight, act, k->tile_n),
			                  p->op[launch].arg[MATMUL_TILES] };
	}
	return n;
}

/* q, k and v read one input: tokens are turned again only where a matrix wants them otherwise than the one before. */
static void check_sharing(const struct plan *p, uint32_t layer)
{
	struct wish held[TILES_MOST], wanted[TILES_MOST];
	unsigned turns = 0, needed = 0, n;
	uint32_t i = p->section[1 + layer];

	memset(held, 0, sizeof held);
	for (; key_of(p, i)->kind != KEY_ROPE; i += n ? n : 1) {
		turns += key_of(p, i)->kind == KEY_INTERLEAVE;
		n = wishes_of(p, i, wanted);
		for (unsigned j = 0; j < n; j++)
			needed += memcmp(&held[j], &wanted[j], sizeof held[j]) != 0;
		if (n)
			memcpy(held, wanted, sizeof held);
	}
	if (turns != needed)
		fail_msg("%u tokens: %u launches turn the inputs of a layer, %u are needed", p->tokens, turns, needed);
}

static void check_plan(const struct plan_space *s, uint32_t n, enum plan_logits logits, const struct plan_options *o,
                       const char *what)
{
	struct plan_check_report why;
	struct plan p;

	build(&p, s, n, logits, o);
	if (!plan_check(&p, s, o, &why))
		fail_msg("%s, %s, %u tokens, logits %d, f32 activations %d, bounded %d, general %d: %s",
		         o->target->name, what, n, logits, o->f32_activations, o->bounded, o->general, why.text);
	for (uint32_t i = 0; !o->target->has_mma && n % 8 == 7 && i < PLAN_LAYERS; i++)
		check_sharing(&p, i);
	plan_free(&p);
}

/* The passes of so many tokens that sessions make: with every option, the logits taking turns; all of those, too, with
 * JITRUN_TEST_FULL; one of all when quick. */
static void check_passes(const struct plan_space *s, uint32_t n, const struct target *t, const char *what)
{
	enum { WAYS = 5, GENERAL_MOST = 20 };
	static const struct plan_options ways[WAYS] = {
		{ 0 },
		{ .f32_activations = true },
		{ .bounded = true },
		{ .f32_activations = true, .bounded = true },
		{ .general = true }
	};
	const uint32_t kinds = n <= SESSION_ALL_LOGITS ? 4 : 3;

	for (uint32_t way = 0; way < WAYS; way++) {
		struct plan_options o = ways[way];
		if ((o.bounded && !t->has_mma) || (o.general && n > GENERAL_MOST) ||
		    (test_quick() && way != n % WAYS && way))
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
	struct plan_space s;
	char what[64];

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
			            (struct range){ test_full() ? 1 : 1 + i % 10, USUAL_COLUMNS,
			                            test_full()    ? 1
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

/* ---- the walk itself: what is spoiled must be noticed */

struct spoiled {
	struct plan plan; /* its launches, phases and parts are copies */
	const struct plan_space *s;
	const struct plan_options *opt;
	struct plan_op launch[200];
	uint32_t phase[200], part[PLAN_LAYERS + 3];
	unsigned noticed;
};

static void copy_plan(struct spoiled *x, const struct plan *p)
{
	assert_true(p->n_ops <= sizeof x->launch / sizeof *x->launch &&
	            p->n_stages < sizeof x->phase / sizeof *x->phase);
	x->plan = *p;
	memcpy(x->launch, p->op, p->n_ops * sizeof *p->op);
	memcpy(x->phase, p->stage, (p->n_stages + 1) * sizeof *p->stage);
	memcpy(x->part, p->section, (p->n_sections + 1) * sizeof *p->section);
	x->plan.op = x->launch;
	x->plan.stage = x->phase;
	x->plan.section = x->part;
}

static void must_notice(struct spoiled *x, uint32_t launch, const char *what, unsigned number)
{
	struct plan_check_report why;
	char text[KEY_TEXT_MAX];

	if (plan_check(&x->plan, x->s, x->opt, &why))
		fail_msg("%u tokens, launch %u, %s: %s %u was spoiled, and not noticed", x->plan.tokens, launch,
		         key_text(key_of(&x->plan, launch), text, sizeof text), what, number);
	x->noticed++;
}

/* Two phases become one; then a card's barrier is missing. */
static void spoil_stages(struct spoiled *x, const struct plan *p)
{
	for (uint32_t i = 1; i < p->n_stages; i++) {
		copy_plan(x, p);
		memmove(x->phase + i, x->phase + i + 1, (p->n_stages - i) * sizeof *x->phase);
		x->plan.n_stages--;
		must_notice(x, p->stage[i] - 1, "phase", i);
	}
	for (uint32_t i = 0; i + 1 < p->n_ops; i++) {
		copy_plan(x, p);
		x->launch[i].barrier = false;
		if (p->op[i].barrier)
			must_notice(x, i, "barrier", i);
	}
}

/* Without a launch, and the phase that it was alone in. */
static void spoil_launches(struct spoiled *x, const struct plan *p)
{
	for (uint32_t i = 0; i < p->n_ops; i++) {
		uint32_t phases = 0;
		copy_plan(x, p);
		memmove(x->launch + i, x->launch + i + 1, (p->n_ops - i - 1) * sizeof *x->launch);
		x->plan.n_ops--;
		for (uint32_t j = 0; j <= p->n_sections; j++)
			x->part[j] -= x->part[j] > i;
		for (uint32_t j = 0; j <= p->n_stages; j++) {
			uint32_t at = p->stage[j] - (p->stage[j] > i);
			if (!phases || x->phase[phases - 1] != at)
				x->phase[phases++] = at;
		}
		x->plan.n_stages = phases - 1;
		/* a card's barrier stays where it was */
		if (i && p->op[i].barrier)
			x->launch[i - 1].barrier = true;
		must_notice(x, i ? i - 1 : 0, "the launch behind it, number", i);
	}
}

/* Norms are told where int8 would go also when they write none. */
static bool is_used(const struct key *k, uint32_t argument)
{
	return k->kind != KEY_NORM || k->flags & KEY_QUANTISED_OUT || (argument != NORM_OUTQ && argument != NORM_OUTS);
}

static void spoil_arguments(struct spoiled *x, const struct plan *p)
{
	copy_plan(x, p);
	for (uint32_t i = 0; i < p->n_ops; i++) {
		for (uint32_t a = 0; a < p->op[i].n_args; a++) {
			uint64_t was = p->op[i].arg[a];
			p->op[i].arg[a] += key_of(p, i)->kind == KEY_MATMUL && a == MATMUL_TILES ? 1 : 64;
			if (was && is_used(key_of(p, i), a))
				must_notice(x, i, "argument", a);
			p->op[i].arg[a] = was;
		}
		x->launch[i].end--;
		must_notice(x, i, "end", 0);
		x->launch[i].end++;
		x->launch[i].begin++;
		must_notice(x, i, "begin", 0);
		x->launch[i].begin--;
	}
	for (size_t i = 0; i < p->n_changing; i++) {
		struct plan_changing was = p->changing[i];
		p->changing[i].slot = p->changing[i ? 0 : 1].slot;
		must_notice(x, 0, "position", (unsigned)i);
		p->changing[i] = was;
	}
}

/* Fields that a kind of kernel has, each made one larger; a tile of attention has a power of two of tokens. */
static void spoil_fields(struct spoiled *x, struct key *k, uint32_t launch)
{
	const struct {
		const char *name;
		void *at;
		unsigned bytes;
		bool left;
	} field[] = { { "weight", &k->weight, 1, false },
		      { "activation", &k->activation, 1, false },
		      { "kv", &k->kv, 1, false },
		      { "row_blocks", &k->row_blocks, 1, false },
		      { "rows", &k->rows, 4, false },
		      { "k", &k->k, 4, false },
		      { "tokens", &k->tile_n, 4, k->kind == KEY_ATTENTION && k->tile_n == 1 },
		      { "head_dim", &k->head_dim, 4, false },
		      { "heads", &k->heads, 4, false },
		      { "kv_heads", &k->kv_heads, 4, false },
		      { "act", &k->act, 1, false },
		      { "target", &k->target, 1, false },
		      { "kind", &k->kind, 1, false } };
	const struct key was = *k;

	for (unsigned i = 0; i < sizeof field / sizeof *field; i++) {
		uint32_t value = 0;
		memcpy(&value, field[i].at, field[i].bytes);
		if (!value || field[i].left)
			continue;
		value++;
		memcpy(field[i].at, &value, field[i].bytes);
		must_notice(x, launch, field[i].name, value);
		*k = was;
	}
}

static void spoil_keys(struct spoiled *x, const struct plan *p)
{
	static const uint32_t flags[KEY_KIND_COUNT] = {
		[KEY_MATMUL] = KEY_BIAS | KEY_RESIDUAL | KEY_PAIR | KEY_GATED | KEY_BIAS2 | KEY_WIDE,
		[KEY_INTERLEAVE] = KEY_UNSIGNED | KEY_BLOCK_MAJOR,
		[KEY_ROPE] = KEY_QK_NORM,
		[KEY_KV_STORE] = KEY_QK_NORM,
		[KEY_ATTENTION] = KEY_WINDOW
	};

	copy_plan(x, p);
	for (uint32_t i = 0; i < p->n_ops; i++) {
		struct key *k = &p->kernel[p->op[i].kernel].key;
		/* What reads int8 misses it; where it is written besides, nobody does. */
		uint32_t all = flags[k->kind] | (k->flags & KEY_QUANTISED_OUT);
		spoil_fields(x, k, i);
		for (uint32_t bit = 1; bit <= all; bit <<= 1) {
			k->flags ^= bit & all;
			if (bit & all)
				must_notice(x, i, "flag", bit);
			k->flags ^= bit & all;
		}
		k->numerics ^= 1;
		if (k->kind == KEY_MATMUL || k->kind == KEY_INTERLEAVE)
			must_notice(x, i, "numerics", 0);
		k->numerics ^= 1;
	}
}

static unsigned spoil(const struct target *t, enum dtype one, enum dtype other, uint32_t n)
{
	const struct plan_types types = {
		{ { one, other, one, other, one, other, one }, { other, one, one, one, one, one, other } }, one
	};
	const struct plan_options o = { .target = t, .bounded = true };
	struct plan_check_report why;
	struct plan_space s;
	struct spoiled x = { .s = &s, .opt = &o };
	struct plan p;

	plan_space_open(&s, &types, t, DTYPE_F16, USUAL_COLUMNS, SESSION_ALL_LOGITS);
	build(&p, &s, n, PLAN_LAST_LOGITS, &o);
	spoil_stages(&x, &p);
	spoil_launches(&x, &p);
	spoil_arguments(&x, &p);
	spoil_keys(&x, &p);
	if (!plan_check(&p, &s, &o, &why))
		fail_msg("%s", why.text);
	plan_free(&p);
	return x.noticed;
}

static void test_nothing_is_missed(void **state)
{
	static const struct {
		enum target_id target;
		enum dtype one, other;
		uint32_t n;
	} plans[] = {
		{ TARGET_AVX2, DTYPE_Q4_K, DTYPE_Q6_K, 31 },       { TARGET_AVX2, DTYPE_Q8_0, DTYPE_Q4_0, 1 },
		{ TARGET_AVX512_AMX, DTYPE_Q8_0, DTYPE_Q5_K, 41 }, { TARGET_AVX2_VNNI, DTYPE_BF16, DTYPE_F32, 36 },
		{ TARGET_GFX1100, DTYPE_BF16, DTYPE_Q8_0, 59 },    { TARGET_GFX1030, DTYPE_Q8_0, DTYPE_F16, 1 }
	};
	unsigned noticed = 0;
	(void)state;

	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
		noticed += spoil(&target_table[plans[i].target], plans[i].one, plans[i].other, plans[i].n);
	printf("# %u faults noticed\n", noticed);
	assert_true(noticed > 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_nothing_is_missed), cmocka_unit_test(test_pairs),
		                            cmocka_unit_test(test_triples), cmocka_unit_test(test_long_prompts) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
