/* tests/runtime/t_formats.c - whole models in every weight format: perplexities as another engine measured them from
 * the same files, scores against logits, and layers whose matrices differ in type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "kernels-templates/templates.h"
#include "programs/jitrun/perplexity.h"
#include "programs/common/shapes.h"
#include "programs/common/shapes.h"
#include "programs/synth/synth.h"
#include "programs/synth/synth_blocks.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/support/shared.h"
#include "tests/support/weight_types.h"

static const volatile sig_atomic_t never;

static jit_model *open_model(const char *path, bool f32)
{
	jit_error err = { 0 };
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.cache_dir = "", .f32_activations = f32), &err);
	if (!m)
		fail_msg("%s", err.message);
	return m;
}

static jit_session *open_session_kv(jit_model *m, int context, int kv)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = context, .kv = kv), &err);
	if (!s)
		fail_msg("%s", err.message);
	return s;
}

static jit_session *open_session(jit_model *m, int context) { return open_session_kv(m, context, JIT_KV_F16); }

static double measure_kv(const char *path, const char *text, size_t n, size_t window, bool f32, int kv)
{
	jit_error err = { 0 };
	struct perplexity x;
	jit_model *m = open_model(path, f32);
	jit_session *s = open_session_kv(m, (int)window, kv);

	if (perplexity_measure(m, s, text, n, false, window, &never, NULL, &x, &err) != JIT_OK)
		fail_msg("%s: %s", path, err.message);
	assert_int_equal(x.windows, x.tokens / window);
	assert_int_equal(x.scored, x.windows * (window - window / 2 - 1));
	jit_session_close(s);
	jit_model_close(m);
	return x.perplexity;
}

static double measure(const char *path, const char *text, size_t n, size_t window, bool f32)
{
	return measure_kv(path, text, n, window, f32, JIT_KV_F16);
}

/* The figures are llama-perplexity's, -c 512, from the same files. */
static void test_perplexity(void **state)
{
	static const struct {
		const char *name;
		double expected;
	} files[] = {
		{ "q4_k_m", 29.940 }, { "q2_k", 33.449 },   { "q8_0", 29.488 },
		{ "q6_k", 29.490 },   { "q5_k_m", 29.507 }, { "q5_1", 29.479 },
		{ "q4_0", 29.769 },   { "iq4_xs", 29.549 }, { "q3_k_m", 30.533 },
	};
	char path[1024], relative[128];
	size_t n;
	(void)state;

	if (!shared_path(path, "models/tale-llama/heldout.txt"))
		skip();
	char *text = (char *)file_bytes(path, &n);
	for (size_t i = 0; i < (test_quick() ? 2 : sizeof files / sizeof files[0]); i++) {
		snprintf(relative, sizeof relative, "models/tale-llama/tale-llama-%s.gguf", files[i].name);
		if (!shared_path(path, relative))
			continue;
		double got = measure(path, text, n, 512, false);
		if (!(fabs(got - files[i].expected) < 0.003 * files[i].expected))
			fail_msg("%s: perplexity %.4f, expected %.3f within 0.3 %%", files[i].name, got,
			         files[i].expected);
	}
	free(text);
}

/* The logits after `n` ids, fed `chunk` at a time. */
static float *logits_of(const char *path, const int32_t *ids, size_t n, size_t chunk, int threads, size_t *n_logits)
{
	jit_error err = { 0 };
	jit_model *m = open_model(path, false);
	jit_model_info info = JIT_MODEL_INFO();
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 512, .threads = threads), &err);

	assert_non_null(s);
	jit_model_get_info(m, &info, NULL);
	for (size_t i = 0; i < n; i += chunk)
		assert_int_equal(jit_session_feed(s, ids + i, n - i < chunk ? n - i : chunk, &err), JIT_OK);
	const float *l = jit_session_logits(s, &err);
	assert_non_null(l);
	*n_logits = (size_t)info.vocab;
	float *copy = malloc(*n_logits * sizeof *copy);
	assert_non_null(copy);
	memcpy(copy, l, *n_logits * sizeof *copy);
	jit_session_close(s);
	jit_model_close(m);
	return copy;
}

/* Narrow and wide tiles, formats side by side that want their inputs turned differently: the same bits. */
static void test_same_bits(void **state)
{
	static const char *const files[] = { "q4_k_m", "q6_k", "q4_0", "q2_k", "iq4_xs" };
	static const struct {
		size_t chunk;
		int threads;
	} ways[] = { { 53, 3 }, { 9, 2 }, { 5, 1 } };
	char path[1024], relative[128];
	int32_t ids[150];
	size_t n;
	(void)state;

	for (size_t i = 0; i < 150; i++)
		ids[i] = (int32_t)(i * 37 % 1000 + 5);
	for (size_t i = 0; i < (test_quick() ? 1 : sizeof files / sizeof *files); i++) {
		snprintf(relative, sizeof relative, "models/tale-llama/tale-llama-%s.gguf", files[i]);
		if (!shared_path(path, relative))
			skip();
		float *want = logits_of(path, ids, 150, 150, 1, &n);
		for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
			float *got = logits_of(path, ids, 150, ways[w].chunk, ways[w].threads, &n);
			assert_memory_equal(got, want, n * sizeof *want);
			free(got);
		}
		free(want);
	}
}

/* An int8 cache costs next to nothing. */
static void test_int8_cache(void **state)
{
	static const char *const models[] = { "models/tale-llama", "models/tale-qwen3" };
	char path[1024], relative[128];
	(void)state;

	for (size_t i = 0; i < 2; i++) {
		size_t n;
		snprintf(relative, sizeof relative, "%s/heldout.txt", models[i]);
		if (!shared_path(path, relative) && !shared_path(path, "models/tale-llama/heldout.txt"))
			skip();
		char *text = (char *)file_bytes(path, &n);
		n = n < 40000 ? n : 40000;
		if (shared_path(path, models[i])) {
			double f16 = measure_kv(path, text, n, 512, false, JIT_KV_F16),
			       int8 = measure_kv(path, text, n, 512, false, JIT_KV_Q8_0);
			printf("# %s: perplexity %.4f with an f16 cache, %.4f with an int8 one\n", models[i], f16,
			       int8);
			if (!(fabs(int8 - f16) < 0.005 * f16) || int8 == f16)
				fail_msg("%s: perplexity %.4f with an int8 cache, %.4f with f16", models[i], int8, f16);
		}
		free(text);
	}
}

static const char tale[] =
	"Once upon a time there was a king who had three sons, and the youngest of them was called Simpleton, because "
	"he was so good. One day the king "
	"said to his sons: Go out into the world, and he who brings me the most beautiful bird shall have my kingdom "
	"after my death. So they set out, and when they "
	"came to a great forest the two elder brothers said to the youngest, You may go your own way, and we will go "
	"ours.";

static void test_shipped_model(void **state)
{
	char path[1024];
	(void)state;
	double whole = measure(source_path(path, "models/tale-q8_0.gguf"), tale, sizeof tale - 1, 64, false);
	double closer = measure(path, tale, sizeof tale - 1, 64, true);

	assert_true(whole > 1 && whole < 40);
	assert_true(fabs(whole - closer) < 0.02 * closer);
	assert_true(whole != closer);
}

/* Each window by itself: the model's first token in front, the second half scored. */
static void test_windows(void **state)
{
	enum { WINDOW = 16 };
	char path[1024];
	jit_error err = { 0 };
	jit_model *m = open_model(source_path(path, "models/tale-q8_0.gguf"), false);
	jit_session *s = open_session(m, WINDOW);
	float score[WINDOW];
	int32_t *ids, *first;
	size_t n, n_first, scored = 0;
	double sum = 0;
	(void)state;

	assert_int_equal(jit_model_tokenize(m, "", 0, 1, 0, &first, &n_first, &err), JIT_OK);
	assert_int_equal(n_first, 1);
	assert_int_equal(jit_model_tokenize(m, tale, sizeof tale - 1, 1, 0, &ids, &n, &err), JIT_OK);
	assert_true(n >= 2 * WINDOW);
	for (size_t at = 0; at + WINDOW <= n; at += WINDOW) {
		ids[at] = first[0];
		assert_int_equal(jit_session_rewind(s, 0, &err), JIT_OK);
		assert_int_equal(jit_session_score(s, ids + at, WINDOW, score, &err), JIT_OK);
		for (int i = WINDOW / 2 + 1; i < WINDOW; i++, scored++)
			sum -= (double)score[i];
	}
	assert_true(measure(path, tale, sizeof tale - 1, WINDOW, false) == exp(sum / (double)scored));
	free(first);
	free(ids);
	jit_session_close(s);
	jit_model_close(m);
}

/* A score is the softmax of the logits a feed leaves, and what follows a score is what follows a feed. */
static void test_scores(void **state)
{
	enum { N = 40 };
	char path[1024];
	jit_error err = { 0 };
	jit_model *m = open_model(source_path(path, "models/tale-q8_0.gguf"), false);
	jit_session *fed = open_session(m, 100), *scored = open_session(m, 100);
	jit_model_info info = JIT_MODEL_INFO();
	float score[N];
	int32_t *ids;
	size_t n;
	(void)state;

	jit_model_get_info(m, &info, NULL);
	assert_int_equal(jit_model_tokenize(m, tale, sizeof tale - 1, 1, 0, &ids, &n, &err), JIT_OK);
	assert_true(n > N);
	assert_int_equal(jit_session_score(scored, ids, 5, score, &err), JIT_OK);
	assert_int_equal(jit_session_score(scored, ids + 5, 0, NULL, &err), JIT_OK);
	assert_int_equal(jit_session_score(scored, ids + 5, N - 5, score + 5, &err), JIT_OK);
	assert_true(score[0] == 0);
	for (int i = 0; i + 1 < N; i++) {
		assert_int_equal(jit_session_feed(fed, ids + i, 1, &err), JIT_OK);
		const float *l = jit_session_logits(fed, &err);
		double sum = 0;
		for (int j = 0; j < info.vocab; j++)
			sum += exp((double)l[j] - (double)l[ids[i + 1]]);
		assert_true(fabs(-log(sum) - (double)score[i + 1]) < 1e-5);
	}
	assert_int_equal(jit_session_feed(fed, ids + N - 1, 1, &err), JIT_OK);
	assert_memory_equal(jit_session_logits(scored, &err), jit_session_logits(fed, &err),
	                    (size_t)info.vocab * sizeof(float));
	assert_int_equal(jit_session_score(scored, ids, 61, score, &err), JIT_ERROR_CONTEXT);
	ids[0] = info.vocab;
	assert_int_equal(jit_session_score(scored, ids, 1, score, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_length(scored), N);
	free(ids);
	jit_session_close(fed);
	jit_session_close(scored);
	jit_model_close(m);
}

/* Rows of whole blocks: d = the number furthest from 0, over -8. */
static void to_q4_0(uint8_t *out, const float *f, uint64_t count)
{
	for (uint64_t at = 0; at < count; at += 32, out += 18) {
		float furthest = 0;
		for (unsigned i = 0; i < 32; i++)
			furthest = fabsf(f[at + i]) > fabsf(furthest) ? f[at + i] : furthest;
		uint16_t d = float_to_half(furthest / -8);
		float scale = half_to_float(d);
		memcpy(out, &d, 2);
		for (unsigned i = 0; i < 16; i++) {
			float low = scale != 0 ? roundf(f[at + i] / scale) + 8 : 8,
			      high = scale != 0 ? roundf(f[at + 16 + i] / scale) + 8 : 8;
			out[2 + i] = (uint8_t)((unsigned)fminf(fmaxf(low, 0), 15) |
			                       (unsigned)fminf(fmaxf(high, 0), 15) << 4);
		}
	}
}

/* A copy of a Q8_0 model, in which every second layer's `which` matrix is of another type instead: F32, the same
 * numbers, or Q4_0, nearly so. */
static void write_mixed(const char *from, const char *to, const char *which, enum dtype type)
{
	struct error err = { 0 };
	struct gguf_writer w;
	struct gguf g;
	size_t n, out_n;
	uint8_t *file = file_bytes(from, &n);

	assert_true(gguf_parse(&g, file, n, from, false, &err));
	gguf_writer_start(&w, 3, 32);
	bytes_put(&w.kv, file + 24, (size_t)(g.kv[g.n_kv - 1].data + g.kv[g.n_kv - 1].bytes - file) - 24);
	w.n_kv = g.n_kv;
	for (uint64_t i = 0; i < g.n_tensors; i++) {
		const struct gguf_tensor *t = &g.tensor[i];
		char name[128];
		snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
		bool change = strstr(name, which) && (name[4] - '0') % 2 == 0;
		uint64_t count = t->ne[0] * t->ne[1];
		float *f = change ? malloc(count * sizeof *f) : NULL;
		if (change)
			weight_to_f32(t->type, f, file + t->offset, count);
		uint8_t *q = change && type == DTYPE_Q4_0 ? malloc(count / 32 * 18) : NULL;
		if (q)
			to_q4_0(q, f, count);
		gguf_write_tensor(&w, name, change ? type : t->type, t->n_dims, t->ne,
		                  q        ? q
		                  : change ? (void *)f
		                           : file + t->offset,
		                  q        ? count / 32 * 18
		                  : change ? count * 4
		                           : t->bytes);
		free(q);
		free(f);
	}
	uint8_t *out = gguf_writer_finish(&w, &out_n);
	FILE *o = fopen(to, "wb");
	assert_non_null(o);
	assert_int_equal(fwrite(out, 1, out_n, o), out_n);
	fclose(o);
	free(out);
	gguf_writer_free(&w);
	gguf_free(&g);
	free(file);
}

/* With f32 activations the mixed models are the same model, to the bit. With int8 ones they are close. */
static void test_mixed_layers(void **state)
{
	static const char *const which[] = { "ffn_up", "ffn_gate", "ffn_down", "attn_k", "attn_output" };
	char dir[] = "/tmp/t_formats.XXXXXX", path[64], shipped[1024];
	(void)state;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/mixed.gguf", dir);
	source_path(shipped, "models/tale-q8_0.gguf");
	double exact = measure(shipped, tale, sizeof tale - 1, 64, true),
	       int8 = measure(shipped, tale, sizeof tale - 1, 64, false);
	for (unsigned i = 0; i < sizeof which / sizeof which[0]; i++) {
		write_mixed(shipped, path, which[i], DTYPE_F32);
		assert_true(measure(path, tale, sizeof tale - 1, 64, true) == exact);
		double mixed = measure(path, tale, sizeof tale - 1, 64, false);
		assert_true(fabs(mixed - int8) < 0.02 * int8 && mixed != int8);
	}
	unlink(path);
	rmdir(dir);
}

/* Matrices of one input whose formats want it turned, and prepared, each in its own way: the same bits for any number
 * of tokens. */
static void test_mixed_inputs(void **state)
{
	static const char *const which[] = { "attn_k.", "attn_q.", "ffn_up" };
	static const size_t chunks[] = { 4, 8, 10, 12, 16, 36 };
	enum { N = 72 };
	char dir[] = "/tmp/t_formats.XXXXXX", path[64], shipped[1024];
	int32_t ids[N];
	size_t n;
	(void)state;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/mixed.gguf", dir);
	source_path(shipped, "models/tale-q8_0.gguf");
	for (size_t i = 0; i < N; i++)
		ids[i] = (int32_t)(i * 37 % 200 + 5);
	for (unsigned i = 0; i < sizeof which / sizeof which[0]; i++) {
		write_mixed(shipped, path, which[i], DTYPE_Q4_0);
		float *want = logits_of(path, ids, N, 1, 1, &n);
		for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
			float *got = logits_of(path, ids, N, chunks[c], 1 + (int)(c % 2), &n);
			assert_memory_equal(got, want, n * sizeof *want);
			free(got);
		}
		free(want);
	}
	unlink(path);
	rmdir(dir);
}

/* Models with made-up weights can be had in every format, and their weights are such as models have. */
static void test_made_up(void **state)
{
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types);
	enum { ELEMENTS = 1 << 14 };
	static uint8_t bytes[ELEMENTS * 4];
	static float weight[ELEMENTS];
	char name[32];
	(void)state;

	for (unsigned i = 0; i < n; i++) {
		const struct mixture *m = mixture_find(weight_type_name(name, types[i]));
		double sum = 0, squares = 0;
		if (!m || m->matrices != types[i] || !strstr(mixture_names, name))
			fail_msg("%s: no mixture has the type's name", name);
		synth_row_head(types[i], bytes);
		synth_fill(types[i], bytes + dtype_table[types[i]].row, ELEMENTS / dtype_table[types[i]].block);
		weight_to_f32(types[i], weight, bytes, ELEMENTS);
		for (int k = 0; k < ELEMENTS; k++) {
			sum += (double)weight[k];
			squares += (double)weight[k] * (double)weight[k];
		}
		double mean = sum / ELEMENTS, deviation = sqrt(squares / ELEMENTS - mean * mean);
		if (!(fabs(mean) < 0.01 && deviation > 0.01 && deviation < 0.04))
			fail_msg("%s: mean %g, deviation %g", name, mean, deviation);
	}
}

/* Such a model never generates a byte that is a part of a character, in no format, whether its tables are one or two:
 * the logits of these tokens are 0, and some of the others are greater. */
static void test_made_up_characters(void **state)
{
	enum dtype types[DTYPE_COUNT];
	unsigned n = weight_types(types);
	const int32_t ids[] = { 'a', 'b', 'c' };
	char name[32], path[] = "/tmp/jitrun-made-XXXXXX";
	struct model_shape shape = *shape_find("tiny");
	(void)state;

	for (unsigned i = 0; i < 2 * n; i++) {
		const struct mixture *m = mixture_find(weight_type_name(name, types[i / 2]));
		struct error err = { 0 };
		size_t vocab, above = 0;
		shape.tied = i % 2;
		strcpy(path + strlen(path) - 6, "XXXXXX");
		int fd = mkstemp(path);
		if (fd < 0 || !synth_write(fd, path, &shape, m, NULL, NULL, &err))
			fail_msg("%s", err.text);
		close(fd);
		float *logit = logits_of(path, ids, 3, 3, 1, &vocab);
		for (size_t k = 0; k < vocab; k++) {
			if (k >= 128 && k < 256 ? logit[k] != 0 : logit[k] == 0 && k < 128)
				fail_msg("%s, tied %d: the logit of token %zu is %g", name, shape.tied, k,
				         (double)logit[k]);
			above += logit[k] > 0;
		}
		assert_true(above > 0);
		free(logit);
		unlink(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made_up_characters),
		cmocka_unit_test(test_shipped_model),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_scores),
		cmocka_unit_test(test_mixed_layers),
		cmocka_unit_test(test_mixed_inputs),
		cmocka_unit_test(test_made_up),
		cmocka_unit_test(test_perplexity),
		cmocka_unit_test(test_same_bits),
		cmocka_unit_test(test_int8_cache),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
