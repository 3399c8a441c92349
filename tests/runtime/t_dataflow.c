/* tests/runtime/t_dataflow.c - plans whose kernels await each other's results.
 *
 * Judged from their ops alone: each word of the region is written by one op, by one that gives; who awaits reads
 * nothing of others but what was given before it in the plan's order; who reads there without awaiting has a barrier in
 * front; of a product in two tiles, the second goes on where the first one ends. And run by the interpreter, which
 * refuses a word that nobody gave: small models have the CPU's logits. dataflow_tiles_tests.c runs products in two
 * tiles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun.h"
#include "tests/runtime/dataflow_tiles.h"
#include "tests/runtime/plan_space.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

/* ---- plans as they are built */

struct use {
	uint64_t begin, bytes;
	bool write, waited; /* waited: word by word */
};
enum { USES = 6, CONTEXT = 300 };

static unsigned uses_of_matmul(const struct key *k, const struct plan_op *op, struct use u[USES])
{
	const bool awaits = k->flags & KEY_AWAITED;
	const uint64_t *a = op->arg, columns = k->tile_n > 1 ? k->tile_n : 1, in = columns * numerics_pad(k->k) * 4,
		       out = columns * numerics_pad(k->rows) * 4;
	unsigned n = 0;

	u[n++] = (struct use){ a[MATMUL_X], a[MATMUL_XS] ? in / 4 : in, false, awaits };
	if (a[MATMUL_XS])
		u[n++] = (struct use){ a[MATMUL_XS], in / 8, false, awaits };
	if (k->flags & KEY_RESIDUAL)
		u[n++] = (struct use){ awaits ? a[MATMUL_FROM] : a[MATMUL_OUT], out, false, awaits };
	if (awaits && k->flags & KEY_QUANTISED_OUT) {
		u[n++] = (struct use){ a[MATMUL_OUTQ], out / 4, true, awaits };
		u[n++] = (struct use){ a[MATMUL_OUTS], out / 8, true, awaits };
	} else {
		u[n++] = (struct use){ a[MATMUL_OUT], out, true, awaits };
	}
	if (k->flags & KEY_GREATEST)
		u[n++] = (struct use){ a[MATMUL_GREATEST], out / 32, true, false };
	return n;
}

/* What an op of a plan does in the region. Returns how many uses. */
static unsigned uses_of(const struct key *k, const struct plan_op *op, struct use u[USES])
{
	const bool awaits = k->flags & KEY_AWAITED;
	const uint64_t columns = k->kind == KEY_EMBED ? (uint64_t)op->end : k->tile_n > 1 ? k->tile_n : 1;
	const uint64_t *a = op->arg, q = columns * numerics_pad((uint64_t)k->heads * k->head_dim) * 4,
		       records = columns * ((CONTEXT + 127) / 128) * k->heads * template_attention_record(k->head_dim),
		       kv = columns * numerics_pad((uint64_t)k->kv_heads * k->head_dim) * 4;
	uint64_t in = columns * numerics_pad(k->k) * 4,
		 stored = k->kind == KEY_KV_STORE ? (uint64_t)op->end / k->kv_heads * kv : 0;
	unsigned n = 0;

	switch (k->kind) {
	case KEY_EMBED: u[n++] = (struct use){ a[EMBED_OUT], in, true, awaits }; break;
	case KEY_MATMUL: return uses_of_matmul(k, op, u);
	case KEY_QUANTISE:
		u[n++] = (struct use){ a[QUANTISE_X], (uint64_t)op->end * 128, false, false };
		u[n++] = (struct use){ a[QUANTISE_OUTQ], (uint64_t)op->end * 32, true, false };
		u[n++] = (struct use){ a[QUANTISE_OUTS], (uint64_t)op->end * 16, true, false };
		break;
	case KEY_NORM:
		in = (uint64_t)op->end * numerics_pad(k->k) * 4;
		u[n++] = (struct use){ a[NORM_X], in, false, awaits };
		if (awaits) {
			u[n++] = (struct use){ a[NORM_OUTQ], in / 4, true, awaits };
			u[n++] = (struct use){ a[NORM_OUTS], in / 8, true, awaits };
		} else {
			u[n++] = (struct use){ a[NORM_OUT], in, true, false };
		}
		break;
	case KEY_ROPE:
		u[n++] = (struct use){ a[ROPE_IN], q, false, false };
		u[n++] = (struct use){ a[ROPE_OUT], q, true, false };
		break;
	case KEY_KV_STORE:
		u[n++] = (struct use){ a[KV_STORE_K], stored, false, false };
		u[n++] = (struct use){ a[KV_STORE_V], stored, false, false };
		break;
	case KEY_ATTENTION:
		u[n++] = (struct use){ a[ATTENTION_Q], q, false, awaits };
		if (k->flags & KEY_ROTATES) {
			u[n++] = (struct use){ a[ATTENTION_K], kv, false, awaits };
			u[n++] = (struct use){ a[ATTENTION_V], kv, false, awaits };
		}
		u[n++] = (struct use){ a[ATTENTION_OUT], k->rows ? records : q, true, awaits };
		break;
	case KEY_MERGE:
		u[n++] = (struct use){ a[MERGE_RECORDS], records, false, awaits };
		if (awaits && k->flags & KEY_QUANTISED_OUT) {
			u[n++] = (struct use){ a[MERGE_OUTQ], q / 4, true, awaits };
			u[n++] = (struct use){ a[MERGE_OUTS], q / 8, true, awaits };
		} else {
			u[n++] = (struct use){ a[MERGE_OUT], q, true, awaits };
		}
		break;
	case KEY_SCALE: break; /* of logits */
	default: fail_msg("kind %u is not expected", k->kind);
	}
	return n;
}

static char wrong[200];

/* False: wrong says what is. */
static bool check_plan(const struct plan *p)
{
	const uint64_t from = (uint64_t)(uintptr_t)p->dataflow;
	size_t words = p->dataflow_bytes / 4, awaiting = 0;
	uint32_t *giver = calloc(words, sizeof *giver), stage = 0,
		 behind = 0; /* 1 + op; where its stage begins; all before `behind` have ended */
	bool ok = true;

	assert_non_null(giver);
	for (uint32_t i = 0; i < p->n_ops && ok; i++) {
		const struct plan_op *op = &p->op[i];
		const struct key *k = &p->kernel[op->kernel].key;
		struct use u[USES];
		unsigned n = uses_of(k, op, u);
		if (i && p->op[i - 1].barrier)
			stage = i;
		if (!op->awaits)
			behind = stage;
		awaiting += op->awaits;
		for (unsigned j = 0; j < n && ok; j++) {
			bool inside = u[j].begin - from < p->dataflow_bytes;
			if (!inside && (u[j].write || !op->awaits))
				continue;
			ok = inside && u[j].begin % 64 == 0 && u[j].begin - from + u[j].bytes <= p->dataflow_bytes;
			const uint64_t first = (u[j].begin - from) / 4;
			for (uint64_t w = first; ok && w < first + u[j].bytes / 4; w++) {
				if (u[j].write) {
					ok = !giver[w] && u[j].waited;
					giver[w] = i + 1;
				} else {
					ok = giver[w] && ((op->awaits && u[j].waited) || giver[w] <= behind);
				}
			}
			if (!ok)
				snprintf(wrong, sizeof wrong, "op %u, kind %u: use %u", i, k->kind, j);
		}
	}
	free(giver);
	if (ok && awaiting < 4)
		snprintf(wrong, sizeof wrong, "%zu ops await", awaiting);
	return ok && awaiting >= 4;
}

/* ---- products in two tiles */

/* What the second tile of a product reads and writes lies behind what the first one does. Returns how many products
 * have two; behind: the op of a second tile that does not, by number and 1, else 0. */
static unsigned second_tiles(const struct plan *p, size_t *behind)
{
	unsigned found = 0;

	*behind = 0;
	for (size_t i = 1; i < p->n_ops; i++) {
		const struct plan_op *first = &p->op[i - 1], *second = &p->op[i];
		const struct key *k[2] = { &p->kernel[first->kernel].key, &p->kernel[second->kernel].key };
		struct use u[2][USES];
		if (k[0]->kind != KEY_MATMUL || k[1]->kind != KEY_MATMUL ||
		    first->arg[MATMUL_W] != second->arg[MATMUL_W])
			continue;
		unsigned n = uses_of(k[0], first, u[0]);
		bool ok = uses_of(k[1], second, u[1]) == n && !first->barrier && first->awaits == second->awaits;
		for (unsigned j = 0; ok && j < n; j++)
			ok = u[1][j].begin == u[0][j].begin + u[0][j].bytes && u[1][j].write == u[0][j].write;
		if (!ok && !*behind)
			*behind = i + 1;
		found++;
	}
	return found;
}

static void open_space(struct plan_space *s, const struct target *t, enum dtype one, enum dtype other)
{
	const struct plan_types types = {
		{ { one, other, one, other, one, one, other }, { other, one, one, one, other, other, one } }, one
	};

	plan_space_open(s, &types, t, DTYPE_F16, 4, PLAN_DATAFLOW_MAX);
	s->buffers.context = CONTEXT;
	s->buffers.dataflow_room = plan_dataflow_bytes(&s->spec, CONTEXT, PLAN_DATAFLOW_MAX);
	s->buffers.dataflow = (uint8_t *)(uintptr_t)(UINT64_C(4000) << PLAN_AREA_BITS);
}

static void test_plans(void **state)
{
	static const enum plan_logits logits[] = { PLAN_NO_LOGITS, PLAN_LAST_LOGITS, PLAN_ALL_NORMED, PLAN_ALL_LOGITS };
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types), plans = 0;
	(void)state;

	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++)
		for (unsigned i = 0; i < 64; i++) {
			struct plan_space s;
			struct plan p;
			struct error err = { 0 };
			const struct target *target = &target_table[t];
			const struct plan_options o = { .target = target,
				                        .dataflow = i & 1,
				                        .f32_activations = i & 2,
				                        .context = i & 4 ? PLAN_PARTS : PLAN_WHOLE };
			open_space(&s, target, types[i * 7 % n], types[i * 5 % n]);
			assert_true(plan_space_settle(&s, &o));
			assert_true(plan_build(&p, &s.spec, &s.weights, &s.buffers, &s.kv, 1, logits[i % 4], &o, &err));
			assert_int_equal(p.dataflow_bytes != 0, target->lane_bytes && o.dataflow);
			assert_true(p.dataflow_bytes <= plan_dataflow_bytes(&s.spec, CONTEXT, 1));
			if (p.dataflow_bytes && !check_plan(&p))
				fail_msg("%s, turn %u: %s", target->name, i, wrong);
			plans += p.dataflow_bytes != 0;
			plan_free(&p);
		}
	printf("# %u dataflow plans\n", plans);
}

/* Of several tokens, of one sequence or of as many as there are tokens. */
static void test_several(void **state)
{
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types), plans = 0, joint = 0;
	(void)state;

	for (unsigned i = 0; i < 300; i++) {
		const struct target *target = &target_table[i % 5 ? TARGET_SM90 : TARGET_GFX1101];
		const struct plan_options o = { .target = target, .dataflow = true, .f32_activations = i % 7 == 6 };
		const uint32_t tokens = 2 + i / 2 % (PLAN_DATAFLOW_MAX + 1);
		struct plan_span one[PLAN_DATAFLOW_MAX + 2];
		struct plan_space s;
		struct plan p;
		struct error err = { 0 };
		open_space(&s, target, types[i * 7 % n], types[i * 5 % n]);
		s.spec.sliding_window = 2048; /* or it would be no context for parts */
		for (uint32_t t = 0; t < tokens; t++)
			one[t] = (struct plan_span){ t, 1, 1 };
		s.buffers.logit_tokens = s.buffers.tokens = tokens;
		assert_true(plan_space_settle(&s, &o));
		assert_true(i % 2 ? plan_build_joint(&p, &s.spec, &s.weights, &s.buffers, &s.kv, one, tokens, false, &o,
		                                     &err)
		                  : plan_build(&p, &s.spec, &s.weights, &s.buffers, &s.kv, tokens,
		                               i % 3 ? PLAN_ALL_LOGITS : PLAN_LAST_LOGITS, &o, &err));
		if (target->id == TARGET_GFX1101 || tokens > PLAN_DATAFLOW_MAX || o.f32_activations)
			assert_int_equal(p.dataflow_bytes, 0);
		assert_true(p.dataflow_bytes <= plan_dataflow_bytes(&s.spec, CONTEXT, tokens));
		if (p.dataflow_bytes && !check_plan(&p))
			fail_msg("turn %u, %u tokens: %s", i, tokens, wrong);
		plans += p.dataflow_bytes != 0;
		joint += p.dataflow_bytes && i % 2;
		plan_free(&p);
	}
	printf("# %u dataflow plans of several tokens, %u of several sequences\n", plans, joint);
	assert_true(joint > 10 && plans > joint + 10);
}

/* The same on a card whose blocks have so little shared memory that products of some lengths, or of all, have a tile of
 * half an operand's columns and one of the rest. */
static void test_two_tiles(void **state)
{
	enum { HALF = 8, MIN = 44 << 10, MAX = 124 << 10, STEP = 4 << 10 };
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types), round = 0, whole = 0, cut[PLAN_DATAFLOW_MAX + 1] = { 0 }, products = 0;
	struct target target = target_table[TARGET_SM90];
	const struct plan_options o = { .target = &target, .dataflow = true };
	(void)state;

	for (uint32_t tokens = HALF + 1; tokens <= PLAN_DATAFLOW_MAX; tokens++)
		for (target.block_bytes = MIN; target.block_bytes <= MAX; target.block_bytes += STEP, round++) {
			struct plan_span one[PLAN_DATAFLOW_MAX];
			struct plan_space s;
			struct plan p;
			struct error err = { 0 };
			size_t behind;
			open_space(&s, &target, types[round * 7 % n], types[round * 5 % n]);
			s.spec.sliding_window = 2048;
			for (uint32_t t = 0; t < tokens; t++)
				one[t] = (struct plan_span){ t, 1, 1 };
			s.buffers.logit_tokens = s.buffers.tokens = tokens;
			assert_true(plan_space_settle(&s, &o));
			assert_true(round % 3 ? plan_build_joint(&p, &s.spec, &s.weights, &s.buffers, &s.kv, one,
			                                         tokens, false, &o, &err)
			                      : plan_build(&p, &s.spec, &s.weights, &s.buffers, &s.kv, tokens,
			                                   PLAN_ALL_LOGITS, &o, &err));
			if (p.dataflow_bytes && !check_plan(&p))
				fail_msg("%u tokens, %u bytes: %s", tokens, target.block_bytes, wrong);
			unsigned tiles = second_tiles(&p, &behind);
			if (p.dataflow_bytes && behind)
				fail_msg("%u tokens, %u bytes: op %zu does not go on where its first tile ends", tokens,
				         target.block_bytes, behind - 1);
			whole += p.dataflow_bytes && !tiles;
			cut[tokens] += p.dataflow_bytes && tiles;
			products += p.dataflow_bytes ? tiles : 0;
			plan_free(&p);
		}
	printf("# %u products in two tiles; %u plans without\n", products, whole);
	assert_true(whole > 4);
	for (uint32_t tokens = HALF + 1; tokens <= PLAN_DATAFLOW_MAX; tokens++)
		assert_true(cut[tokens] > 3);
}

/* What is wrong is found: each op in turn awaits what it must not, loses its barrier, or writes where another did. */
static void test_nothing_is_missed(void **state)
{
	const struct plan_options o = { .target = &target_table[TARGET_SM90], .dataflow = true };
	struct plan_space s;
	struct plan p;
	struct error err = { 0 };
	unsigned spoiled = 0;
	(void)state;

	open_space(&s, o.target, DTYPE_Q8_0, DTYPE_Q4_K);
	assert_true(plan_space_settle(&s, &o));
	assert_true(plan_build(&p, &s.spec, &s.weights, &s.buffers, &s.kv, 1, PLAN_LAST_LOGITS, &o, &err));
	assert_true(check_plan(&p));
	for (size_t i = 0; i < p.n_ops; i++) {
		const struct key *k = &p.kernel[p.op[i].kernel].key;
		if (k->kind != KEY_MATMUL)
			continue;
		bool blocks = k->flags & KEY_AWAITED && k->flags & KEY_QUANTISED_OUT;
		uint64_t *out = &p.op[i].arg[blocks ? MATMUL_OUTQ : MATMUL_OUT], old = *out;
		*out = p.op[0].arg[EMBED_OUT]; /* written already */
		assert_false(check_plan(&p));
		*out = old;
		if (!p.op[i].awaits) {
			p.op[i].awaits = true; /* of what attention leaves, which is not given */
			assert_false(check_plan(&p));
			p.op[i].awaits = false;
			spoiled++;
		}
	}
	assert_true(spoiled > 0);
	for (size_t i = 0; i + 1 < p.n_ops; i++)
		p.op[i].barrier = false;
	assert_false(check_plan(&p));
	plan_free(&p);
}

/* ---- small models */

static const char *const models[] = { "qwen3-gqa2-bf16",  "llama-a/model-q8_0.gguf",
	                              "llama-mha-f32",    "llama-gqa4-bf16",
	                              "mistral-gqa4-f16", "llama-a",
	                              "smollm3-a",        "arcee-a",
	                              "qwen35-a",         "gemma3-a" };
enum { MODELS = sizeof models / sizeof *models, TOKENS = 5, STEPS = 4 };

/* The logits behind the prompt and behind each of STEPS tokens more, malloc'ed; NULL: err. */
static float *logits_of(const char *path, const char *device, const char *isa, int f32, size_t *n, jit_error *err)
{
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = device, .isa = isa, .cache_dir = "", .f32_activations = f32);
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 64);
	jit_model_info info = JIT_MODEL_INFO();
	jit_model *m = jit_model_open(path, &mo, err);
	jit_session *s = m ? jit_session_open(m, &so, err) : NULL;
	bool ok = s && jit_model_get_info(m, &info, err) == JIT_OK;
	float *all = NULL;

	*n = (size_t)info.vocab;
	if (ok)
		all = malloc(*n * (STEPS + 1) * sizeof *all);
	for (int step = 0; ok && step <= STEPS; step++) {
		int32_t ids[TOKENS];
		int count = step ? 1 : TOKENS;
		for (int i = 0; i < count; i++)
			ids[i] = ((step * 7 + i) * 29 + 3) % (int)*n;
		const float *logits =
			jit_session_feed(s, ids, (size_t)count, err) == JIT_OK ? jit_session_logits(s, err) : NULL;
		ok = logits != NULL;
		if (ok)
			memcpy(all + (size_t)step * *n, logits, *n * sizeof *all);
	}
	if (s)
		jit_session_close(s);
	if (m)
		jit_model_close(m);
	if (ok)
		return all;
	free(all);
	return NULL;
}

static void test_models(void **state)
{
	static const char *const cards[] = { "sm90", "gfx1101" };
	unsigned there = 0;
	(void)state;

	for (unsigned i = 0; i < MODELS * 2; i++) {
		char path[1024], relative[80];
		jit_error err = { 0 };
		size_t n, m;
		snprintf(relative, sizeof relative, "golden/%s", models[i % MODELS]);
		if (!shared_path(path, relative) || (test_quick() && i > 4))
			continue;
		there++;
		float *want = logits_of(path, "cpu", NULL, i >= MODELS, &n, &err),
		      *got = want ? logits_of(path, "ref", cards[i % 3 == 2], i >= MODELS, &m, &err) : NULL;
		if (!got)
			fail_msg("%s: %s", models[i % MODELS], err.message);
		if (memcmp(want, got, n * (STEPS + 1) * sizeof *got) != 0)
			fail_msg("%s differs", models[i % MODELS]);
		free(want);
		free(got);
	}
	if (!there)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_plans), cmocka_unit_test(test_several),
		                            cmocka_unit_test(test_two_tiles), cmocka_unit_test(test_nothing_is_missed),
		                            cmocka_unit_test(test_models) };
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	return failed + dataflow_tiles_tests();
}
