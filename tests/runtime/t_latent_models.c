/* tests/runtime/t_latent_models.c - models with latent attention: logits close to a program in double precision that
 * makes every head's own keys and values, equal bits from safetensors and GGUF files, on every device and for every
 * cut, behind a rewind, and from a saved session; and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/runtime/latent_model.h"
#include "tests/support/shared.h"

enum { TOKENS = 150 /* in two chunks of the cache */ };

static const struct latent_model models[] = {
	{ .heads = 4, .rank = 32, .query_rank = 48, .rest = 24, .rotating = 8, .value = 16, .seed = 1 },
	{ .heads = 3, .rank = 64, .query_rank = 0, .rest = 32, .rotating = 32, .value = 32, .yarn = true, .seed = 2 },
	{ .heads = 16, .rank = 32, .query_rank = 32, .rest = 32, .rotating = 16, .value = 32, .seed = 3 }
};
enum { MODELS = sizeof models / sizeof *models };

static char folder[] = "/tmp/t_latent_models.XXXXXX";

static char *path_of(char out[200], const char *name)
{
	snprintf(out, 200, "%s/%s", folder, name);
	return out;
}

struct run {
	const char *device;
	int kv, batch, threads, tokens;
	bool restored; /* the logits of a session that was saved and restored on the way */
};

static int token(int i) { return (i * 29 + 3) % LATENT_VOCAB; }

/* Goes on in a session that begins with what another one saved. */
static jit_session *move(jit_model *m, jit_session *s, const jit_session_options *so)
{
	char path[200];
	jit_error err = { 0 };

	path_of(path, "session");
	assert_int_equal(jit_session_save(s, path, &err), JIT_OK);
	jit_session_close(s);
	s = jit_session_open(m, so, &err);
	assert_non_null(s);
	if (jit_session_restore(s, path, &err) != JIT_OK)
		fail_msg("%s", err.message);
	return s;
}

static void logits_of(const char *path, const struct run *r, float out[LATENT_VOCAB])
{
	jit_error err = { 0 };
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = r->device, .cache_dir = "");
	jit_session_options so =
		JIT_SESSION_OPTIONS(.context = 256, .kv = r->kv, .batch = r->batch, .threads = r->threads);
	int32_t ids[TOKENS];
	int half = r->tokens / 2;

	jit_model *m = jit_model_open(path, &mo, &err);
	if (!m)
		fail_msg("%s on %s: %s", path, r->device, err.message);
	jit_session *s = jit_session_open(m, &so, &err);
	if (!s)
		fail_msg("%s on %s: %s", path, r->device, err.message);
	for (int i = 0; i < TOKENS; i++)
		ids[i] = token(i);
	assert_int_equal(jit_session_feed(s, ids, (size_t)r->tokens, &err), JIT_OK);
	if (half > 4) {
		assert_int_equal(jit_session_rewind(s, (size_t)half, &err), JIT_OK);
		if (r->restored)
			s = move(m, s, &so);
		assert_int_equal(jit_session_feed(s, ids + half, (size_t)(r->tokens - half), &err), JIT_OK);
	}
	memcpy(out, jit_session_logits(s, &err), LATENT_VOCAB * sizeof *out);
	jit_session_close(s);
	jit_model_close(m);
}

static void write_files(const struct latent_model *m, enum dtype type)
{
	char path[200];

	latent_write_hf(m, folder);
	latent_write_gguf(m, path_of(path, "model.gguf"), type);
}

static void same(const char *path, const struct run *one, const struct run *other, const float want[LATENT_VOCAB])
{
	float got[LATENT_VOCAB];

	logits_of(path, other, got);
	if (memcmp(got, want, sizeof got) != 0)
		fail_msg("%s: %s, passes of %d, kv %d%s, %d tokens: other bits than %s", path, other->device,
		         other->batch, other->kv, other->restored ? ", restored" : "", other->tokens, one->device);
}

static void test_reference(void **state)
{
	static const int tokens[] = { 1, 2, 33, TOKENS };
	(void)state;

	for (int i = 0; i < MODELS; i++) {
		char gguf[200], hf[200];
		write_files(&models[i], DTYPE_F32);
		path_of(gguf, "model.gguf");
		path_of(hf, "config.json");
		for (size_t t = 0; t < sizeof tokens / sizeof *tokens; t++) {
			struct run run = { "cpu", JIT_KV_F32, 0, 0, tokens[t], false };
			float got[LATENT_VOCAB];
			double want[LATENT_VOCAB], max = 0, worst = 0;
			int ids[TOKENS];
			for (int k = 0; k < tokens[t]; k++)
				ids[k] = token(k);
			latent_logits(&models[i], ids, tokens[t], want);
			logits_of(folder, &run, got);
			for (int k = 0; k < LATENT_VOCAB; k++) {
				max = fmax(max, fabs(want[k]));
				worst = fmax(worst, fabs(want[k] - (double)got[k]));
			}
			if (!(worst <= 2e-5 * max))
				fail_msg("model %d, %d tokens: logits differ by %g of %g", i, tokens[t], worst, max);
			same(gguf, &run, &run, got);
		}
	}
}

/* Bits are the same for every cut and device; of int8 weights, too. */
static void test_invariants(void **state)
{
	static const int kinds[] = { JIT_KV_F16, JIT_KV_F32, JIT_KV_Q8_0 };
	(void)state;

	for (int i = 0; i < MODELS; i++)
		for (int kv = 0; kv < 3; kv++) {
			const char *const devices[] = { "ref", "sim:gfx1030", "sim:gfx1100", "sim:gfx1201" };
			struct run one = { "cpu", kinds[kv], 0, 1, test_quick() ? 131 : TOKENS, false },
				   short_one = one;
			bool int8 = models[i].rest % 32 == 0 && kv != 1;
			char path[200];
			float want[LATENT_VOCAB];
			if (test_quick() && (i + kv) % 3)
				continue;
			write_files(&models[i], int8 ? DTYPE_Q8_0 : DTYPE_F32);
			path_of(path, "model.gguf");
			logits_of(path, &one, want);
			for (int cut = 1; cut <= 33; cut += 16) {
				struct run other = one;
				other.batch = cut;
				other.threads = 2;
				other.restored = cut == 17;
				same(path, &one, &other, want);
			}
			short_one.tokens = 9;
			logits_of(path, &short_one, want);
			for (int d = 0; d < 4; d++) {
				struct run other = short_one;
				other.device = devices[d];
				if (test_full() || d == 0 || (!test_quick() && d == 1 + i % 3))
					same(path, &short_one, &other, want);
			}
		}
}

static void refused(const char *path, const char *why)
{
	jit_error err = { 0 };
	jit_model_options mo = JIT_MODEL_OPTIONS(.cache_dir = "");
	jit_model *m = jit_model_open(path, &mo, &err);

	assert_null(m);
	if (!strstr(err.message, why))
		fail_msg("refused by \"%s\", expected \"%s\"", err.message, why);
}

/* Layers that predict further tokens change nothing; those that no file speaks of are refused. */
static void test_later_layers(void **state)
{
	struct run run = { "cpu", JIT_KV_F32, 0, 0, 9, false };
	struct latent_model m = models[0];
	float want[LATENT_VOCAB];
	char path[200];
	(void)state;

	write_files(&m, DTYPE_F32);
	logits_of(folder, &run, want);
	path_of(path, "model.gguf");
	for (m.later = m.said = 1; m.said <= 2; m.later = ++m.said) {
		write_files(&m, DTYPE_F32);
		same(folder, &run, &run, want);
		same(path, &run, &run, want);
	}
	m.said = 0;
	m.later = 1;
	write_files(&m, DTYPE_F32);
	refused(folder, "the tensor model.layers.2.input_layernorm.weight is none that jitrun computes with");
	refused(path, "the tensor blk.2.attn_norm.weight is none that jitrun computes with");
	m.said = 1;
	m.later = 2;
	write_files(&m, DTYPE_F32);
	refused(folder, "the tensor model.layers.3.input_layernorm.weight is none that jitrun computes with");
	refused(path, "the tensor blk.3.attn_norm.weight is none that jitrun computes with");
}

static void test_refusals(void **state)
{
	struct latent_model m = models[0];
	char path[200];
	(void)state;

	path_of(path, "model.gguf");
	m.rank = 48;
	write_files(&m, DTYPE_F32);
	refused(path, "latent vector of keys and values has 48 dimensions, expected a multiple of 32 up to 512");
	m = models[0];
	m.value = 20;
	write_files(&m, DTYPE_F32);
	refused(folder, "expected a multiple of 32 values together");
	m = models[0];
	m.skip = "nextn_predict_layers";
	m.key = "deepseek2.nextn_predict_layers";
	m.key_value = 2;
	write_files(&m, DTYPE_F32);
	refused(path, "nextn_predict_layers is 2, expected fewer than the 2 layers");
	m.key = "deepseek2.expert_gating_func";
	m.key_value = 3;
	write_files(&m, DTYPE_F32);
	refused(path, "expert_gating_func is 3, which is not supported, expected 1 (softmax) or 2 (sigmoid)");
	m.key = NULL;
	m.skip = "attention.key_length_mla";
	write_files(&m, DTYPE_F32);
	refused(path, "attention.key_length_mla is missing");
	m.skip = "attn_k_b.weight";
	write_files(&m, DTYPE_F32);
	refused(path, "the tensor blk.0.attn_k_b.weight is missing");
	m.skip = NULL;
	m.longer = "attn_v_b.weight";
	write_files(&m, DTYPE_F32);
	refused(path, "tensor blk.0.attn_v_b.weight has shape");
	m.longer = "self_attn.kv_b_proj.weight";
	write_files(&m, DTYPE_F32);
	refused(folder, "self_attn.kv_b_proj.weight has shape");
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "config.json", "model.safetensors", "model.gguf", "session" };
	char path[200];
	(void)state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unlink(path_of(path, names[i]));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_reference), cmocka_unit_test(test_invariants),
		                            cmocka_unit_test(test_later_layers), cmocka_unit_test(test_refusals) };
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
