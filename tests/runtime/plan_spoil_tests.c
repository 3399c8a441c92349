/* tests/runtime/plan_spoil_tests.c - that the checker of plans misses nothing: every stage, launch, argument and field
 * of a key is spoiled in turn, and must be noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "runtime/session/session.h"
#include "tests/runtime/plan_check.h"

enum {
	USUAL_COLUMNS = 264 /* the most of a session's pass unless it is told otherwise */,
	ADDED = 64,
	PARTS = 1 << 20
};

static const struct key *key_of(const struct plan *p, uint32_t launch) { return &p->kernel[p->op[launch].kernel].key; }

struct spoiled {
	struct plan plan; /* its launches, stages and parts are copies */
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

/* Whether a card's barrier behind the op is not for what the next one touches: sections and chains begin with one. */
static bool is_boundary(const struct plan *p, uint32_t op)
{
	bool begins = !p->op[op].fused_units != !p->op[op + 1].fused_units;

	for (size_t i = 0; i < p->n_sections; i++)
		begins = begins || p->section[i] == op + 1;
	return begins;
}

/* Two stages become one; then a card's barrier is missing. */
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
		if (p->op[i].barrier && !is_boundary(p, i))
			must_notice(x, i, "barrier", i);
	}
}

/* Without a launch, and the stage that it was alone in. */
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
		[KEY_MATMUL] = KEY_BIAS | KEY_RESIDUAL | KEY_PAIR | KEY_GATED | KEY_BIAS2 | KEY_WIDE | KEY_EXPERTS |
		               KEY_NORM_IN,
		[KEY_ROUTE] = KEY_BIAS | KEY_SIGMOID | KEY_NORMED | KEY_OF_ALL | KEY_SHARE_EPS | KEY_SCALED,
		[KEY_NORM] = KEY_RESIDUAL | KEY_CENTRED,
		[KEY_SCALE] = KEY_RESIDUAL | KEY_PAIR | KEY_GATED | KEY_CAP,
		[KEY_COMBINE] = KEY_RESIDUAL | KEY_SIGMOID | KEY_SORTED,
		[KEY_INTERLEAVE] = KEY_UNSIGNED,
		[KEY_ROPE] = KEY_QK_NORM,
		[KEY_KV_STORE] = KEY_QK_NORM,
		[KEY_ATTENTION] = KEY_WINDOW | KEY_SINKS | KEY_CAP | KEY_ROTATES,
		[KEY_MERGE] = KEY_WINDOW | KEY_SINKS,
		[KEY_CONV] = KEY_GATED | KEY_BIAS,
		[KEY_DELTA] = KEY_TILED
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

/* experts: 1 by softmax, 2 by sigmoid; with 4, latent attention; and 8, whose queries have no low rank; 16, 32, 48: a
 * layer with a convolution, the delta rule, or the selective scan; ADDED times what plan_space_add() knows;
 * PARTS: contexts in parts, also of a window, which is long then. */
static unsigned spoil(const struct target *t, enum dtype one, enum dtype other, uint32_t n, int experts)
{
	const struct plan_types types = {
		{ { one, other, one, other, one, other, one }, { other, one, one, one, one, one, other } }, one
	};
	const struct plan_options o = {
		.target = t, .bounded = true, .context = experts & PARTS ? PLAN_PARTS : PLAN_WHOLE
	};
	struct plan_check_report why;
	struct error err = { 0 };
	struct plan_space s;
	struct spoiled x = { .s = &s, .opt = &o };
	struct plan p;

	plan_space_open(&s, &types, t, DTYPE_F16, USUAL_COLUMNS, SESSION_ALL_LOGITS);
	if (experts & 4)
		plan_space_latent(&s, &types, t, USUAL_COLUMNS, !(experts & 8));
	static const enum model_mixer mixers[] = { MIXER_ATTENTION, MIXER_CONV, MIXER_DELTA, MIXER_SCAN };
	if (experts / 16 % 4)
		plan_space_recurrent(&s, &types, t, USUAL_COLUMNS, mixers[experts / 16 % 4]);
	if (experts & PARTS)
		s.spec.sliding_window = 2000;
	if (experts & 3)
		plan_space_mix(&s, &types, t, USUAL_COLUMNS, experts & 2);
	plan_space_add(&s, &types, t, USUAL_COLUMNS, (unsigned)experts % PARTS / ADDED);
	assert_true(plan_space_settle(&s, &o));
	if (!plan_build(&p, &s.spec, &s.weights, &s.buffers, &s.kv, n, PLAN_LAST_LOGITS, &o, &err))
		fail_msg("%s", err.text);
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
		int experts;
	} plans[] = {
		{ TARGET_AVX2, DTYPE_Q8_0, DTYPE_BF16, 1, ADDED * (PLAN_GATE | PLAN_POST_NORMS) },
		{ TARGET_GFX1100, DTYPE_BF16, DTYPE_Q8_0, 9, ADDED * (PLAN_GATE | PLAN_SCALES) },
		{ TARGET_AVX512, DTYPE_Q4_K, DTYPE_Q6_K, 5, ADDED * PLAN_SCALES | 1 },
		{ TARGET_AVX2, DTYPE_Q8_0, DTYPE_F32, 1, ADDED * PLAN_SCALES | 2 },
		{ TARGET_AVX2, DTYPE_Q4_K, DTYPE_Q8_0, 21, ADDED * (PLAN_INPUTS_OWN | PLAN_POST_NORMS) },
		{ TARGET_AVX512, DTYPE_BF16, DTYPE_Q8_0, 1, ADDED * PLAN_INPUTS_OWN },
		{ TARGET_AVX2, DTYPE_Q8_0, DTYPE_Q6_K, 1, ADDED * (PLAN_DENSE_BESIDE | PLAN_POST_NORMS) | 1 },
		{ TARGET_GFX1030, DTYPE_Q8_0, DTYPE_BF16, 9, ADDED * (PLAN_DENSE_BESIDE | PLAN_INPUTS_OWN) | 1 },
		{ TARGET_AVX2, DTYPE_Q8_0, DTYPE_BF16, 1, 16 },
		{ TARGET_GFX1100, DTYPE_BF16, DTYPE_Q8_0, 9, 16 },
		{ TARGET_AVX512, DTYPE_Q4_K, DTYPE_F32, 1, 32 },
		{ TARGET_AVX2, DTYPE_Q8_0, DTYPE_Q6_K, 21, 32 },
		{ TARGET_AVX2, DTYPE_Q4_K, DTYPE_Q6_K, 5, 48 },
		{ TARGET_AVX512, DTYPE_F32, DTYPE_BF16, 1, 48 | 1 },
		{ TARGET_AVX2, DTYPE_Q4_K, DTYPE_Q6_K, 5, 1 },
		{ TARGET_AVX512, DTYPE_Q8_0, DTYPE_BF16, 1, 2 },
		{ TARGET_GFX1100, DTYPE_BF16, DTYPE_Q8_0, 9, 2 },
		{ TARGET_AVX2, DTYPE_F32, DTYPE_F32, 2, 2 },
		{ TARGET_AVX2, DTYPE_Q4_K, DTYPE_Q8_0, 1, 4 | 2 },
		{ TARGET_GFX1100, DTYPE_Q8_0, DTYPE_BF16, 9, 4 },
		{ TARGET_AVX512, DTYPE_F32, DTYPE_F32, 21, 8 | 4 | 1 },
		{ TARGET_AVX2, DTYPE_Q4_K, DTYPE_Q6_K, 31, 0 },
		{ TARGET_AVX2, DTYPE_Q8_0, DTYPE_Q4_0, 1, 0 },
		{ TARGET_AVX512_AMX, DTYPE_Q8_0, DTYPE_Q5_K, 41, 0 },
		{ TARGET_AVX2_VNNI, DTYPE_BF16, DTYPE_F32, 36, 0 },
		{ TARGET_GFX1100, DTYPE_BF16, DTYPE_Q8_0, 59, 0 },
		{ TARGET_GFX1030, DTYPE_Q8_0, DTYPE_F16, 1, 0 },
		{ TARGET_SM90, DTYPE_BF16, DTYPE_F16, 2, 4 },
		{ TARGET_GFX1200, DTYPE_F16, DTYPE_BF16, 2, 32 },
		{ TARGET_SM90, DTYPE_BF16, DTYPE_F16, 1, ADDED * (PLAN_INPUTS_OWN | PLAN_POST_NORMS | PLAN_GATE) },
		{ TARGET_GFX1100, DTYPE_Q8_0, DTYPE_BF16, 1, PARTS },
		{ TARGET_AVX512, DTYPE_BF16, DTYPE_Q4_K, 1, PARTS }
	};
	unsigned noticed = 0;
	(void)state;

	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
		noticed += spoil(&target_table[plans[i].target], plans[i].one, plans[i].other, plans[i].n,
		                 plans[i].experts);
	printf("# %u faults noticed\n", noticed);
	assert_true(noticed > 4000);
}

int plan_spoil_tests(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_nothing_is_missed) };

	return cmocka_run_group_tests_name("plan_spoil_tests", tests, NULL, NULL);
}
