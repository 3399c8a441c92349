/* tests/quantise/t_imatrix.c - importance matrices: both forms are read, what is wrong with one is said, and what a
 * session collects is what a plain loop finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "loaders/files/imatrix.h"
#include "loaders/model/model.h"
#include "loaders/files/gguf.h"
#include "runtime/session/session.h"
#include "tests/quantise/imatrix_files.h"
#include "tests/support/shared.h"

static char path[] = "/tmp/t_imatrix-XXXXXX";

static const float four[] = { 8, 0, 2, 6 }, six[] = { 1, 2, 3, 0, 0, 0 }, calls[] = { 2, 0 };
static const struct imatrix_part parts[] = { { "blk.0.ffn_up.weight", 4, 1, four, calls },
	                                     { "blk.0.attn_q.weight", 3, 2, six, calls } };

static void put(const uint8_t *p, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
}

static bool read_bytes(struct imatrix *m, const uint8_t *p, size_t n, struct error *err)
{
	*err = (struct error){ 0 };
	put(p, n);
	bool ok = imatrix_read(m, path, err);
	if (ok == (err->text[0] != 0))
		fail_msg("read: %d, said: \"%s\"", ok, err->text);
	return ok;
}

static void refuse(const uint8_t *p, size_t n, const char *says)
{
	struct imatrix m;
	struct error err;

	assert_false(read_bytes(&m, p, n, &err));
	if (!strstr(err.text, says))
		fail_msg("said \"%s\", expected \"%s\"", err.text, says);
	assert_int_equal(m.n, 0);
}

static void check(const struct imatrix *m, uint64_t rows)
{
	const struct imatrix_entry *up = imatrix_find(m, "blk.0.ffn_up.weight", 19),
				   *q = imatrix_find(m, "blk.0.attn_q.weight and more", 19);

	assert_int_equal(m->n, 2);
	assert_int_equal(m->chunks, 7);
	assert_non_null(up);
	assert_non_null(q);
	assert_null(imatrix_find(m, "blk.0.attn_k.weight", 19));
	assert_true(up->columns == 4 && up->rows == 1);
	assert_memory_equal(up->mean, ((const float[]){ 4, 0, 1, 3 }), 16);
	assert_true(q->columns * q->rows == 6 && q->rows == rows);
	assert_memory_equal(q->mean, ((const float[]){ 0.5f, 1, 1.5f, 0, 0, 0 }), 24);
}

static void test_forms(void **unused)
{
	struct imatrix m;
	struct error err;
	size_t n;

	uint8_t *p = imatrix_gguf(parts, 2, 7, &n);
	if (!read_bytes(&m, p, n, &err))
		fail_msg("%s", err.text);
	check(&m, 2);
	imatrix_free(&m);
	free(p);
	p = imatrix_old(parts, 2, 7, &n);
	if (!read_bytes(&m, p, n, &err))
		fail_msg("%s", err.text);
	check(&m, 1);
	imatrix_free(&m);
	assert_true(read_bytes(&m, p, n - 4, &err)); /* the first versions did not count chunks */
	assert_int_equal(m.chunks, 0);
	imatrix_free(&m);
	free(p);
}

/* Cut anywhere: a sentence. */
static void test_cut(void **unused)
{
	for (int old = 0; old < 2; old++) {
		size_t n;
		uint8_t *p = old ? imatrix_old(parts, 2, 7, &n) : imatrix_gguf(parts, 2, 7, &n);
		for (size_t k = 0; k < n - 4; k += test_quick() ? 5 : 1) {
			struct imatrix m;
			struct error err;
			if (read_bytes(&m, p, k, &err))
				fail_msg("%zu of %zu bytes are no importance matrix", k, n);
		}
		free(p);
	}
}

static void test_refused(void **unused)
{
	static const float bad[][4] = { { 1, NAN, 1, 1 }, { 1, 1, INFINITY, 1 }, { 1, 1, 1, -1 } };
	struct imatrix_part part = parts[0], twice[] = { parts[0], parts[0] };
	uint32_t many[] = { 0x7fffffff, 4 };
	size_t n;

	for (int i = 0; i < 3; i++)
		for (int old = 0; old < 2; old++) {
			part.sums = bad[i];
			uint8_t *p = old ? imatrix_old(&part, 1, 1, &n) : imatrix_gguf(&part, 1, 1, &n);
			refuse(p, n, "of entry blk.0.ffn_up.weight is ");
			free(p);
		}
	uint8_t *p = imatrix_old(twice, 2, 1, &n);
	refuse(p, n, "entry blk.0.ffn_up.weight occurs more than once");
	free(p);
	refuse((const uint8_t *)many, sizeof many, "nor with a number of entries that its size can hold");
	p = imatrix_gguf(NULL, 0, 1, &n);
	refuse(p, n, "has no entries");
	free(p);
	refuse((const uint8_t *)"\1\0\0\0\0\0\0\0................", 24, "the length of the name of entry 0 is 0");

	struct gguf_writer w; /* no counts */
	gguf_writer_start(&w, 3, 32);
	gguf_write_tensor(&w, "x.in_sum2", DTYPE_F32, 1, (const uint64_t[]){ 4 }, four, 16);
	p = gguf_writer_finish(&w, &n);
	refuse(p, n, "tensor x.in_sum2 is no F32 matrix with a tensor of as many counts");
	gguf_writer_free(&w);
	free(p);
	gguf_writer_start(&w, 3, 32); /* a wrong number of them */
	gguf_write_tensor(&w, "x.in_sum2", DTYPE_F32, 2, (const uint64_t[]){ 2, 2 }, four, 16);
	gguf_write_tensor(&w, "x.counts", DTYPE_F32, 1, (const uint64_t[]){ 1 }, four, 4);
	p = gguf_writer_finish(&w, &n);
	refuse(p, n, "tensor x.in_sum2 is no F32 matrix");
	gguf_writer_free(&w);
	free(p);
}

/* ---- collecting */

enum { TOKENS = 70, COLUMNS = 1024, MAX_EXPERTS = 64 };

static float *row_of(const struct model *m, const struct model_tensor *t, uint64_t row, float *x)
{
	struct error err = { 0 };
	uint8_t bytes[COLUMNS / 32 * 34 + COLUMNS * 4];
	uint16_t h;

	assert_true(t->cols <= COLUMNS);
	if (!model_read(m, t, row * t->row_bytes, t->row_bytes, bytes, &err))
		fail_msg("%s", err.text);
	for (uint64_t i = 0; i < t->cols; i++)
		if (t->type == DTYPE_F32) {
			memcpy(&x[i], bytes + 4 * i, 4);
		} else { /* Q8_0 */
			memcpy(&h, bytes + i / 32 * 34, 2);
			double v = ldexp(1024 + (h & 1023), (h >> 10 & 31) - 25);
			if ((h >> 10 & 31) == 0)
				v = ldexp(h & 1023, -24);
			x[i] = (float)(v * (int8_t)bytes[i / 32 * 34 + 2 + i % 32]);
		}
	return x;
}

/* What the first layer's queries, keys and values are made of: the embedding behind a norm, by doubles. */
static void plain_sums(const struct model *m, const int32_t *ids, double *sum)
{
	float x[COLUMNS], weight[COLUMNS];
	uint64_t n = m->spec.embed.cols;

	row_of(m, &m->spec.layer[0].attn_norm, 0, weight);
	for (int t = 0; t < TOKENS; t++) {
		double squares = 0;
		row_of(m, &m->spec.embed, (uint64_t)ids[t], x);
		for (uint64_t i = 0; i < n; i++)
			squares += (double)x[i] * x[i];
		double scale = 1 / sqrt(squares / (double)n + (double)m->spec.norm_eps);
		for (uint64_t i = 0; i < n; i++)
			sum[i] += pow((double)x[i] * scale * weight[i], 2);
	}
}

static void collect(const char *model, const int32_t *ids, int threads, int batch)
{
	jit_error e = { 0 };
	struct error err = { 0 };
	jit_model *m = jit_model_open(model, &JIT_MODEL_OPTIONS(.cache_dir = "", .f32_activations = 1), &e);
	jit_session *s =
		m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 128, .threads = threads, .batch = batch), &e)
		  : NULL;
	float logprob[TOKENS];

	if (!s)
		fail_msg("%s", e.message);
	struct collect *c = session_collect(s, &err);
	if (!c)
		fail_msg("%s", err.text);
	assert_int_equal(jit_session_score(s, ids, TOKENS, logprob, &e), JIT_OK);
	if (!collect_write(c, path, "text", 1, TOKENS, &err))
		fail_msg("%s", err.text);
	collect_close(c);
	jit_session_close(s);
	jit_model_close(m);
}

static void test_collect(void **unused)
{
	static const struct {
		int threads, batch;
	} ways[] = { { 1, 64 }, { 3, 64 }, { 2, 16 }, { 1, 7 } };
	char model[1024];
	int32_t ids[TOKENS];
	double sum[COLUMNS] = { 0 };
	struct error err = { 0 };
	struct imatrix im;
	struct model m;
	uint8_t *first = NULL;
	size_t n = 0, k;

	source_path(model, "models/tale-q8_0.gguf");
	for (int t = 0; t < TOKENS; t++)
		ids[t] = 2 + (t * 37 + t * t) % 4000;
	for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
		collect(model, ids, ways[w].threads, ways[w].batch);
		uint8_t *now = file_bytes(path, &k);
		if (first)
			assert_true(k == n && memcmp(now, first, n) == 0);
		n = k;
		free(first);
		first = now;
	}
	free(first);
	if (!imatrix_read(&im, path, &err) || !model_open(&m, model, 0, &err))
		fail_msg("%s", err.text);
	plain_sums(&m, ids, sum);
	const struct imatrix_entry *q = imatrix_find(&im, "blk.0.attn_q.weight", 19),
				   *v = imatrix_find(&im, "blk.0.attn_v.weight", 19),
				   *down = imatrix_find(&im, "blk.5.ffn_down.weight", 21),
				   *up = imatrix_find(&im, "blk.5.ffn_up.weight", 19),
				   *gate = imatrix_find(&im, "blk.5.ffn_gate.weight", 21);
	assert_true(q && v && down && up && gate);
	assert_true(im.n >= 6 * 7 && im.chunks == 1);
	assert_int_equal(q->columns, m.spec.hidden);
	assert_int_equal(down->columns, m.spec.ffn);
	assert_memory_equal(q->mean, v->mean, q->columns * sizeof(float));
	assert_memory_equal(up->mean, gate->mean, up->columns * sizeof(float));
	for (uint64_t i = 0; i < q->columns; i++)
		if (fabs((double)q->mean[i] * TOKENS - sum[i]) > 1e-5 * sum[i])
			fail_msg("column %d: %g collected, %g by a plain loop", (int)i, (double)q->mean[i] * TOKENS,
			         sum[i]);
	model_close(&m);
	imatrix_free(&im);
}

/* The counts of a tensor's matrices; returns how many there are. */
static uint64_t counts_of(const uint8_t *file, size_t n, const char *name, float *out)
{
	struct gguf g;
	struct error err = { 0 };
	char full[100];

	snprintf(full, sizeof full, "%s.counts", name);
	assert_true(gguf_parse(&g, file, n, "collected", false, &err));
	const struct gguf_tensor *t = gguf_find_tensor(&g, full);
	assert_non_null(t);
	uint64_t matrices = t->ne[1];
	assert_true(matrices <= MAX_EXPERTS);
	memcpy(out, file + t->offset, matrices * sizeof *out);
	gguf_free(&g);
	return matrices;
}

/* A token's input goes to so many experts, and to the router and the shared expert once: the sums agree. */
static void check_experts(const struct imatrix *im, const uint8_t *file, size_t n, const struct model *m)
{
	const struct imatrix_entry *router = imatrix_find(im, "blk.1.ffn_gate_inp.weight", 25),
				   *gate = imatrix_find(im, "blk.1.ffn_gate_exps.weight", 26),
				   *up = imatrix_find(im, "blk.1.ffn_up_exps.weight", 24),
				   *down = imatrix_find(im, "blk.1.ffn_down_exps.weight", 26),
				   *shared = imatrix_find(im, "blk.1.ffn_gate_shexp.weight", 27);
	float count[MAX_EXPERTS], count_down[MAX_EXPERTS];
	double tokens = 0;

	assert_true(router && gate && up && down && shared);
	assert_memory_equal(router->mean, shared->mean, router->columns * sizeof(float));
	assert_int_equal(gate->rows, m->spec.experts);
	assert_int_equal(down->columns, m->spec.expert_ffn);
	assert_memory_equal(gate->mean, up->mean, gate->rows * gate->columns * sizeof(float));
	assert_int_equal(counts_of(file, n, "blk.1.ffn_gate_exps.weight", count), m->spec.experts);
	assert_int_equal(counts_of(file, n, "blk.1.ffn_down_exps.weight", count_down), m->spec.experts);
	assert_memory_equal(count, count_down, m->spec.experts * sizeof *count);
	for (uint64_t e = 0; e < gate->rows; e++)
		tokens += (double)count[e];
	assert_true(tokens == (double)(TOKENS * m->spec.experts_used));
	for (uint64_t i = 0; i < gate->columns; i++) {
		double sum = 0, want = (double)router->mean[i] * TOKENS * m->spec.experts_used;
		for (uint64_t e = 0; e < gate->rows; e++)
			sum += (double)gate->mean[e * gate->columns + i] * (double)count[e];
		if (!(fabs(sum - want) <= 1e-5 * want))
			fail_msg("column %d: %g collected by experts, %g by the router", (int)i, sum, want);
	}
}

/* Slots of single tokens, and sorted by expert: the same sums. */
static void test_collect_experts(void **unused)
{
	static const int batches[] = { 1, 64, 7 };
	char model[1024];
	int32_t ids[TOKENS];
	struct error err = { 0 };
	struct imatrix im;
	struct model m;
	uint8_t *first = NULL;
	size_t n = 0, k;

	if (!shared_path(model, "golden/qwen2moe-a/model-bf16.gguf"))
		skip();
	for (int t = 0; t < TOKENS; t++)
		ids[t] = 2 + (t * 37 + t * t) % 200;
	for (size_t w = 0; w < sizeof batches / sizeof *batches; w++) {
		collect(model, ids, w == 1 ? 3 : 1, batches[w]);
		uint8_t *now = file_bytes(path, &k);
		if (first)
			assert_true(k == n && memcmp(now, first, n) == 0);
		n = k;
		free(first);
		first = now;
	}
	if (!imatrix_read(&im, path, &err) || !model_open(&m, model, MODEL_HEADER_ONLY, &err))
		fail_msg("%s", err.text);
	check_experts(&im, first, n, &m);
	free(first);
	model_close(&m);
	imatrix_free(&im);
}

/* int8 activations are not what matrices are to be judged by. */
static void test_collect_refused(void **unused)
{
	char model[1024];
	jit_error e = { 0 };
	struct error err = { 0 };
	jit_model *m =
		jit_model_open(source_path(model, "models/tale-q8_0.gguf"), &JIT_MODEL_OPTIONS(.cache_dir = ""), &e);
	jit_session *s = m ? jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1), &e) : NULL;

	assert_non_null(s);
	assert_null(session_collect(s, &err));
	assert_non_null(strstr(err.text, "activations are int8"));
	jit_session_close(s);
	jit_model_close(m);
}

static int begin(void **unused)
{
	int fd = mkstemp(path);

	return fd < 0 ? -1 : close(fd);
}

static int end(void **unused) { return unlink(path); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),           cmocka_unit_test(test_cut),
		cmocka_unit_test(test_refused),         cmocka_unit_test(test_collect),
		cmocka_unit_test(test_collect_experts), cmocka_unit_test(test_collect_refused),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
