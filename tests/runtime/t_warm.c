/* tests/runtime/t_warm.c - the list of kernels a model can need: every kernel that sessions ask for is in it, whatever
 * they are asked to do; every plan of the whole model finds its kernels there; it is the same from a header alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "programs/synth/synth.h"
#include "loaders/files/gguf.h"
#include "loaders/model/model_load.h"
#include "loaders/tokenizer/tokenizer.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "runtime/plan/key_list.h"
#include "runtime/plan/live.h"
#include "tests/support/shared.h"

static const char *const golden[] = { "golden/llama-gqa4-bf16", "golden/qwen3-gqa2-bf16", "golden/llama-mha-f32",
	                              "golden/mistral-gqa4-f16" };
enum { GOLDEN = sizeof golden / sizeof *golden, CONTEXT = 1100 };

struct list {
	struct key *key;
	size_t n;
};

static struct list list_of(const struct model_spec *spec, const struct key_list_options *o)
{
	struct list l;
	struct error err = { 0 };

	if (!key_list_kernels(spec, o, &l.key, &l.n, &err))
		fail_msg("%s", err.text);
	return l;
}

static bool in_list(const struct list *l, const struct key *key)
{
	for (size_t i = 0; i < l->n; i++)
		if (key_equal(&l->key[i], key))
			return true;
	return false;
}

static void require(const struct list *l, const struct key *key)
{
	char text[KEY_TEXT_MAX];
	if (!in_list(l, key))
		fail_msg("%s is not in the list", key_text(key, text, sizeof text));
}

static void require_kernel(const struct kernel *k, void *list) { require(list, &k->key); }

/* ---- sessions */

static void fill(int32_t *ids, size_t n, uint32_t period)
{
	for (size_t i = 0; i < n; i++)
		ids[i] = (int32_t)(3 + i % period * 7 % 50);
}

/* Prompts of every width that has a path of its own, and texts that are guessed and scored. At the quick size each use
 * has a third of the widths: uses of a model that follow each other have all of them. */
static bool has_width(size_t i, unsigned use) { return !test_quick() || (i + use) % 3 == 0; }

static void use_model(jit_model *m, int kv, unsigned use)
{
	static const uint32_t wide[] = { 47, 48, 49, 63, 64, 65, 96, 97, 255, 256, 257, 511 };
	static const int guesses[] = { JIT_SPECULATE_OFF, JIT_SPECULATE_AUTO, 4, 8, 16 };
	static int32_t ids[CONTEXT];
	static float logprob[CONTEXT];
	jit_error err = { 0 };
	int32_t id;

	for (size_t g = 0; g < sizeof guesses / sizeof *guesses; g++) {
		jit_session *s = jit_session_open(
			m,
			&JIT_SESSION_OPTIONS(.context = CONTEXT, .kv = kv, .batch = g ? 0 : SESSION_MAX_TOKENS,
		                             .speculate = guesses[g], .threads = 2),
			&err);
		if (!s)
			fail_msg("%s", err.message);
		fill(ids, CONTEXT, 31);
		for (uint32_t n = 1; g == 0 && n <= 40; n++) {
			if (!has_width(n, use))
				continue;
			assert_int_equal(jit_session_feed(s, ids, n, &err), JIT_OK);
			assert_int_equal(jit_session_score(s, ids, n, logprob, &err), JIT_OK);
			assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
		}
		for (size_t i = 0; g == 0 && i < sizeof wide / sizeof *wide; i++) {
			if (!has_width(i, use))
				continue;
			assert_int_equal(jit_session_feed(s, ids, wide[i], &err), JIT_OK);
			assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
		}
		fill(ids, CONTEXT, 5);
		assert_int_equal(jit_session_feed(s, ids, 60, &err), JIT_OK);
		session_force(s, ids, CONTEXT);
		for (int i = 0; i < 60; i++)
			assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
		jit_session_close(s);
	}
}

static void check_sessions(const char *path)
{
	static unsigned models;

	for (int f32 = 0; f32 < 2; f32++) {
		jit_error err = { 0 };
		jit_model *m = jit_model_open(
			path, &JIT_MODEL_OPTIONS(.cache_dir = "", .f32_activations = f32, .threads = 2), &err);
		if (!m)
			fail_msg("%s", err.message);
		struct list l =
			list_of(&m->file.spec,
		                &(struct key_list_options){
					.target = m->target,
					.activations = f32 ? KEY_LIST_F32_ACTIVATIONS : KEY_LIST_INT8_ACTIVATIONS,
					.kv = KEY_LIST_KV_ANY });
		struct list all = list_of(
			&m->file.spec,
			&(struct key_list_options){
				.target = m->target, .activations = KEY_LIST_ANY_ACTIVATIONS, .kv = KEY_LIST_KV_ANY });
		for (size_t i = 0; i < l.n; i++)
			require(&all, &l.key[i]);
		for (int kv = JIT_KV_F16; kv <= JIT_KV_Q8_0; kv++)
			use_model(m, kv, (unsigned)(kv + f32) + models);
		registry_each(m->registry, require_kernel, &l);
		struct registry_counters c;
		registry_count(m->registry, &c);
		assert_true(c.generated > 30);
		free(l.key);
		free(all.key);
		jit_model_close(m);
	}
	models++;
}

static void test_what_sessions_ask_for(void **state)
{
	char path[1024];
	(void)state;

	check_sessions(source_path(path, "models/tale-q8_0.gguf"));
	for (int i = 0; i < (test_small_share() ? 1 : GOLDEN); i++)
		if (shared_path(path, golden[i]))
			check_sessions(path);
}

/* ---- plans of the whole model, every layer of it */

enum { KV_TYPES = 3 };
static const enum dtype kv_types[KV_TYPES] = { DTYPE_F16, DTYPE_F32, DTYPE_Q8_0 };

/* What is listed for all types of the KV cache is what is listed for each, which is planned by itself. Of keys that
 * have no type, some may be due to one of them alone. */
static void check_kv_types(const struct model_spec *spec, const struct list *all, struct key_list_options o)
{
	struct list one[KV_TYPES];

	for (int t = 0; t < KV_TYPES; t++) {
		o.kv = key_list_kv(kv_types[t]);
		one[t] = list_of(spec, &o);
		for (size_t i = 0; i < one[t].n; i++)
			require(all, &one[t].key[i]);
	}
	for (size_t i = 0; i < all->n; i++) {
		bool listed = false;
		for (int t = 0; t < KV_TYPES; t++)
			listed |= (!all->key[i].kv || all->key[i].kv == kv_types[t] + 1) &&
			          in_list(&one[t], &all->key[i]);
		assert_true(listed);
	}
	for (int t = 0; t < KV_TYPES; t++)
		free(one[t].key);
}

/* Buffers that nothing runs on. */
static struct plan_buffers some_buffers(const struct plan_layout *layout)
{
	static struct activation_block b;
	float *f = &b.d;
	return (struct plan_buffers){
		.tokens = UINT32_MAX,
		.logit_tokens = UINT32_MAX,
		.ids = b.sum,
		.cos = f,
		.sin = f,
		.values = (uint8_t *)(UINTPTR_MAX / 2),
		.layout = layout,
		.logits = f,
		.records = (uint8_t *)f,
		.record_tokens = UINT32_MAX,
	};
}

/* A pass of n sequences of a token each. */
static void check_joint(const struct list *l, const struct model *m, const struct weights *w,
                        const struct plan_buffers *buf, const struct plan_cache *kv, uint32_t n,
                        const struct plan_options *o)
{
	struct plan_span span[PLAN_DATAFLOW_MAX];
	struct error err = { 0 };
	struct plan p;

	for (uint32_t i = 0; i < n; i++)
		span[i] = (struct plan_span){ i, 1, 1 };
	assert_true(plan_build_joint(&p, &m->spec, w, buf, kv, span, n, false, o, &err));
	for (size_t i = 0; i < p.n_kernels; i++)
		require(l, &p.kernel[i].key);
	plan_free(&p);
}

static void check_plans(const char *path)
{
	struct plan_layout layout[2]; /* of int8 activations, and of f32 */
	struct error err = { 0 };
	struct weights w;
	struct model m;

	if (!model_open(&m, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err) || !weights_describe(&w, &m.spec, &err))
		fail_msg("%s", err.text);
	for (unsigned i = 0; i < 2; i++)
		assert_true(
			plan_layout_open(&layout[i], &m.spec, &w,
		                         &(struct plan_layout_options){ .tokens = 300, .f32_activations = i }, &err));
	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++) {
		const uint32_t max = test_quick() ? 100 : 300;
		const struct key_list_options any = { .target = &target_table[t],
			                              .activations = KEY_LIST_ANY_ACTIVATIONS,
			                              .kv = KEY_LIST_KV_ANY,
			                              .tokens = max,
			                              .numerics = KEY_LIST_ANY_NUMERICS };
		struct list l = list_of(&m.spec, &any);
		check_kv_types(&m.spec, &l, any);
		for (uint32_t n = 1; n <= max; n += t < TARGET_GFX1030 ? 1 : 7)
			for (int way = 0; way < (target_table[t].has_mma || target_table[t].has_dot2 ? 8 : 4); way++) {
				struct plan p;
				const struct plan_buffers buf = some_buffers(&layout[way & 1]);
				const struct plan_cache kv = { .type = kv_types[n % KV_TYPES] };
				const struct plan_options o = {
					.target = &target_table[t],
					.f32_activations = way & 1,
					.bounded = way & 4,
					.context = n % 5 < 3 && !m.spec.latent.rank ? PLAN_PARTS_TO_COME : PLAN_WHOLE
				};
				const enum plan_logits which =
					!(way & 2)                ? PLAN_LAST_LOGITS
					: n <= SESSION_ALL_LOGITS ? PLAN_ALL_LOGITS
								  : PLAN_ALL_NORMED;
				assert_true(plan_build(&p, &m.spec, &w, &buf, &kv, n, which, &o, &err));
				for (size_t i = 0; i < p.n_kernels; i++)
					require(&l, &p.kernel[i].key);
				plan_free(&p);
				if (n > 1 && n <= PLAN_DATAFLOW_MAX && !o.bounded)
					check_joint(&l, &m, &w, &buf, &kv, n, &o);
			}
		free(l.key);
	}
	for (unsigned i = 0; i < 2; i++)
		plan_layout_close(&layout[i]);
	weights_close(&w);
	model_close(&m);
}

static void test_plans_of_all_layers(void **state)
{
	/* formats of weights that are cut into tiles of their own, in one model */
	static const char *const mixed[] = { "models/tale-llama/tale-llama-q4_k_m.gguf",
		                             "models/tale-llama/tale-llama-q3_k_m.gguf" };
	char path[1024];
	(void)state;

	for (size_t i = 0; i < (test_small_share() ? 1 : sizeof mixed / sizeof *mixed); i++)
		if (shared_path(path, mixed[i]))
			check_plans(path);

	check_plans(source_path(path, "models/tale-q8_0.gguf"));
	for (int i = 0; i < (test_small_share() ? 0 : GOLDEN); i++)
		if (shared_path(path, golden[i]))
			check_plans(path);
}

/* ---- numerics: nobody gets kernels of the bounded class who did not ask for them, or whose target has none */

static size_t count_bounded(const struct model_spec *spec, enum target_id target, unsigned numerics)
{
	struct list l = list_of(spec, &(struct key_list_options){ .target = &target_table[target],
	                                                          .activations = KEY_LIST_ANY_ACTIVATIONS,
	                                                          .kv = KEY_LIST_KV_F16,
	                                                          .tokens = 48,
	                                                          .numerics = numerics });
	size_t n = 0;

	for (size_t i = 0; i < l.n; i++)
		n += l.key[i].numerics == NUMERICS_BOUNDED;
	free(l.key);
	return n;
}

static void test_numerics(void **state)
{
	char path[1024];
	struct error err = { 0 };
	struct model m;
	(void)state;

	if (!shared_path(path, "golden/llama-gqa4-bf16"))
		return;
	if (!model_open(&m, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err))
		fail_msg("%s", err.text);
	assert_int_equal(count_bounded(&m.spec, TARGET_GFX1100, 0), 0);
	assert_int_equal(count_bounded(&m.spec, TARGET_GFX1100, KEY_LIST_EXACT), 0);
	assert_true(count_bounded(&m.spec, TARGET_GFX1100, KEY_LIST_BOUNDED) > 4);
	assert_int_equal(count_bounded(&m.spec, TARGET_GFX1030, KEY_LIST_ANY_NUMERICS), 0);
	assert_int_equal(count_bounded(&m.spec, TARGET_AVX512_VNNI, KEY_LIST_ANY_NUMERICS), 0);
	assert_int_equal(count_bounded(&m.spec, TARGET_AVX512_BF16, KEY_LIST_EXACT), 0);
	assert_true(count_bounded(&m.spec, TARGET_AVX512_BF16, KEY_LIST_BOUNDED) > 4);
	model_close(&m);
}

/* ---- headers */

static const struct key_list_options anything = { .activations = KEY_LIST_ANY_ACTIVATIONS, .kv = KEY_LIST_KV_ANY };

static struct list list_of_bytes(const uint8_t *bytes, size_t n, const char *target)
{
	struct error err = { 0 };
	struct key_list_options o = anything;
	struct model m;

	if (!model_open_memory(&m, bytes, n, NULL, 0, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err))
		fail_msg("%s", err.text);
	o.target = target_find(target);
	struct list l = list_of(&m.spec, &o);
	model_close(&m);
	return l;
}

static void test_a_header_will_do(void **state)
{
	char path[1024];
	struct error err = { 0 };
	size_t n;
	struct gguf g;
	(void)state;

	uint8_t *p = file_bytes(source_path(path, "models/tale-q8_0.gguf"), &n);
	assert_true(gguf_parse(&g, p, n, "tale", false, &err));
	struct list whole = list_of_bytes(p, n, "avx512"), header = list_of_bytes(p, g.data_start, "avx512");
	assert_int_equal(whole.n, header.n);
	assert_memory_equal(whole.key, header.key, whole.n * sizeof *whole.key);
	gguf_free(&g);
	free(p);
	free(whole.key);
	free(header.key);
}

/* What is asked for decides what is listed; the number of layers and the sizes of prompts do not make it long. */
static void test_shapes(void **state)
{
	static const char windowed[] = "arch=llama,hidden=1024,layers=2,heads=16,kv_heads=8,head_dim=128,ffn=3072,"
				       "vocab=151936,tied=1,window=512";
	static const char *const shapes[] = {
		"qwen3-0.6b",
		"arch=qwen2,hidden=1024,layers=28,heads=16,kv_heads=8,head_dim=128,ffn=3072,vocab=151936,tied=1",
		windowed, "gemma3-4b", "gemma4-e4b"
	};
	enum { SHAPES = sizeof shapes / sizeof *shapes };
	struct error err = { 0 };
	struct list l[SHAPES];
	(void)state;

	for (int i = 0; i < SHAPES; i++) {
		struct model_shape s;
		size_t n;
		assert_true(shape_parse(&s, shapes[i], &err));
		uint8_t *header = synth_header(&n, &s, mixture_find("q4_k_m"), &err);
		assert_non_null(header);
		l[i] = list_of_bytes(header, n, "avx2");
		assert_in_range(l[i].n, 100, 1500);
		free(header);
	}
	struct key k;
	assert_true(key_parse(&k, "rope.d128.h16.qknorm.avx2"));
	require(&l[0], &k);
	assert_false(in_list(&l[1], &k));
	assert_true(key_parse(&k, "matmul.q4_k.aq8_0.2048x1024.c1.b1.bias.avx2"));
	require(&l[1], &k);
	assert_false(in_list(&l[2], &k));
	assert_true(key_parse(&k, "matmul.q4_k.af32.2048x1024.c8.b1.avx2"));
	require(&l[0], &k);
	assert_true(key_parse(&k, "attention.kvf32.c1.d128.h16.g8.win.avx2"));
	require(&l[2], &k);
	assert_false(in_list(&l[0], &k));
	/* heads of two sizes, and layers that get numbers of a token's own */
	assert_true(key_parse(&k, "attention.kvf16.c1.d256.h8.g2.win.avx2"));
	assert_int_equal(in_list(&l[4], &k), true);
	for (int i = 0; i < SHAPES; i++)
		free(l[i].key);
}

/* The vocabulary of a made-up model: the bytes by number, then one merge. */
static void test_made_up_vocabulary(void **state)
{
	static const char text[] = "Hi\n\xad th\xff";
	static const int32_t want[] = { 'H', 'i', '\n', 0xad, ' ', 256, 0xff };
	struct error err = { 0 };
	struct gguf g;
	int32_t *ids;
	size_t n, n_ids;
	char path[256];
	(void)state;

	int fd = synth_temporary(path, sizeof path, &err);
	assert_true(fd >= 0 &&
	            synth_write(fd, "the temporary file", shape_find("tiny"), mixture_find("q8_0"), NULL, NULL, &err));
	uint8_t *file = file_bytes(path, &n);
	close(fd);
	assert_true(gguf_parse(&g, file, n, "a made-up model", false, &err));
	struct tokenizer *t = tokenizer_from_gguf(&g, shape_find("tiny")->vocab, &err);
	if (!t)
		fail_msg("%s", err.text);
	assert_true(tokenizer_encode(t, text, sizeof text - 1, 0, &ids, &n_ids, &err));
	assert_int_equal(n_ids, sizeof want / sizeof *want);
	assert_memory_equal(ids, want, sizeof want);
	free(ids);
	tokenizer_close(t);
	gguf_free(&g);
	free(file);
}

static void test_refused_shapes(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = { { "foo", "neither a known shape nor a size" },
		    { "hidden=12", "does not say layers=" },
		    { "hidden=1x,layers=2", "hidden=1x" },
		    { "arch=foo,hidden=3", "\"foo\", expected llama" },
		    { "depth=3", "names no size" },
		    { "", "does not say hidden=" },
		    { "hidden=64,layers=100000,heads=2,ffn=64,vocab=64", "100000 layers" },
		    { "hidden=64,layers=1,heads=0,ffn=64,vocab=64", "of 0 heads" } };
	(void)state;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct error err = { 0 };
		struct model_shape s;
		assert_false(shape_parse(&s, bad[i].text, &err));
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: %s", bad[i].text, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_sessions_ask_for),
		cmocka_unit_test(test_plans_of_all_layers),
		cmocka_unit_test(test_numerics),
		cmocka_unit_test(test_a_header_will_do),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_made_up_vocabulary),
		cmocka_unit_test(test_refused_shapes)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
