/* tests/runtime/t_never.c - tokens that a model's own files suppress are never chosen, by any way of choosing, alone
 * and in a batch; what else the files ask of the choice is told by name.
 *
 * The witness is a plain loop over the logits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "include/jitrun_batch.h"
#include "runtime/model/model.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/tiny_model.h"

enum { VOCAB = 24, STEPS = 40 };
static char dir[] = "/tmp/t_never-XXXXXX";
static const struct tiny_model shape = {
	.arch = "llama",
	.layers = 1,
	.hidden = 32,
	.ffn = 32,
	.heads = 1,
	.kv_heads = 1,
	.head_dim = 32,
	.vocab = VOCAB,
	.type = DTYPE_F32
};

static jit_model *open_with(const char *generation_config, jit_error *err)
{
	*err = (jit_error){ 0 };
	tiny_write(dir, "generation_config.json", generation_config, strlen(generation_config));
	return jit_model_open(dir, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), err);
}

static int32_t likeliest_but(const float *logits, const bool *never)
{
	int32_t best = -1;

	for (int32_t i = 0; i < VOCAB; i++)
		if (!never[i] && (best < 0 || logits[i] > logits[best]))
			best = i;
	return best;
}

static jit_session *session_of(jit_model *m, bool batch, float temperature, jit_batch **b)
{
	static const jit_logit_bias bias = { 3, 0.5f };
	jit_sampling p = JIT_SAMPLING(.temperature = temperature, .seed = 5,
	                              .logit_bias = temperature > 1 ? &bias : NULL, .n_logit_bias = temperature > 1);
	const jit_session_options o =
		JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .sampling = &p, .speculate = JIT_SPECULATE_OFF);
	jit_error err = { 0 };

	*b = batch ? jit_batch_open(m, &JIT_BATCH_OPTIONS(.threads = 1, .context = 64), &err) : NULL;
	jit_session *s = batch ? jit_batch_session(*b, &p, &err) : jit_session_open(m, &o, &err);
	if (!s)
		fail_msg("%s", err.message);
	return s;
}

/* What comes of a text, which must hold none of them. */
static void must_avoid(const char *generation_config, const bool *never, const char *not_done)
{
	jit_error err;
	jit_model *m = open_with(generation_config, &err);

	if (!m)
		fail_msg("%s: %s", generation_config, err.message);
	const char *told = m->file.sampling.not_done;
	assert_string_equal(told ? told : "", not_done);
	for (int way = 0; way < 6; way++) {
		const float temperature = way % 3 == 0 ? 0 : way % 3 == 1 ? 1 : 1.5f;
		jit_batch *b;
		jit_session *s = session_of(m, way >= 3, temperature, &b);
		const int32_t begin[] = { 1, 2 };
		if (b)
			assert_int_equal(jit_session_submit(s, begin, 2, NULL, &err), JIT_OK);
		else
			assert_int_equal(jit_session_feed(s, begin, 2, &err), JIT_OK);
		for (int i = 0; i < STEPS; i++) {
			int32_t id;
			for (size_t ready = 0; b && !ready;) {
				jit_session *one;
				assert_int_equal(jit_batch_step(b, &one, 1, &ready, &err), JIT_OK);
			}
			const float *logits = jit_session_logits(s, &err);
			assert_non_null(logits);
			const int32_t want = temperature > 0 ? -1 : likeliest_but(logits, never);
			assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
			assert_in_range(id, 0, VOCAB - 1);
			assert_false(never[id]);
			if (want >= 0)
				assert_int_equal(id, want);
		}
		jit_session_close(s);
		jit_batch_close(b);
	}
	jit_model_close(m);
}

static void test_never(void **unused)
{
	bool never[VOCAB] = { false };

	must_avoid("{}", never, "");
	must_avoid("{\"suppress_tokens\": null, \"bad_words_ids\": null, \"stop_strings\": null}", never, "");
	must_avoid("{\"suppress_tokens\": [], \"bad_words_ids\": [], \"begin_suppress_tokens\": []}", never, "");
	/* all but a few: whatever the model likes best is among them */
	char text[300] = "{\"suppress_tokens\": [99, -1";
	for (int i = 0; i < VOCAB - 4; i++) {
		never[i] = true;
		sprintf(text + strlen(text), ", %d", i);
	}
	strcat(text, "]}");
	must_avoid(text, never, "");
	memset(never, 0, sizeof never);
	never[3] = never[7] = never[20] = true;
	must_avoid("{\"suppress_tokens\": [3, 7, 7], \"bad_words_ids\": [[20], [3]]}", never, "");
	never[20] = false;
	must_avoid("{\"suppress_tokens\": [3, 7], \"num_beams\": 2}", never, "num_beams");
}

/* Each field with what asks for nothing, and with what is told. */
static void test_told(void **unused)
{
	static const struct {
		const char *field, *idle, *asks;
	} rows[] = { { "encoder_no_repeat_ngram_size", "0", "3" },
		     { "encoder_repetition_penalty", "1.0", "1.5" },
		     { "sequence_bias", "{}", "[[[1], 2.0]]" },
		     { "force_words_ids", "[]", "[[1]]" },
		     { "constraints", "[]", "[1]" },
		     { "forced_bos_token_id", "null", "0" },
		     { "forced_eos_token_id", "null", "0" },
		     { "forced_decoder_ids", "[]", "[[1, 2]]" },
		     { "min_length", "0", "5" },
		     { "min_new_tokens", "0", "5" },
		     { "exponential_decay_length_penalty", "null", "[5, 1.1]" },
		     { "num_beams", "1", "4" },
		     { "penalty_alpha", "0.0", "0.6" },
		     { "epsilon_cutoff", "0.0", "0.1" },
		     { "eta_cutoff", "0.0", "0.1" },
		     { "top_h", "null", "0.5" },
		     { "guidance_scale", "1", "2.5" },
		     { "token_healing", "false", "true" },
		     { "watermarking_config", "null", "{}" },
		     { "dola_layers", "null", "\"high\"" } };
	jit_error err;
	char text[200];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		for (int asks = 0; asks < 2; asks++) {
			snprintf(text, sizeof text, "{\"%s\": %s, \"max_length\": 20}", rows[i].field,
			         asks ? rows[i].asks : rows[i].idle);
			jit_model *m = open_with(text, &err);
			if (!m)
				fail_msg("%s: %s", text, err.message);
			const char *told = m->file.sampling.not_done;
			if (asks ? !told || strcmp(told, rows[i].field) != 0 : told != NULL)
				fail_msg("%s: told \"%s\"", text, told ? told : "");
			jit_model_close(m);
		}
	jit_model *m = open_with("{\"top_h\": 0.5, \"num_beams\": 2}", &err);
	assert_string_equal(m->file.sampling.not_done, "num_beams, top_h");
	jit_model_close(m);
}

static void test_refused(void **unused)
{
	static const char *const rows[][2] = {
		{ "{\"suppress_tokens\": 5}", "suppress_tokens" },
		{ "{\"suppress_tokens\": [\"a\"]}", "suppress_tokens" },
		{ "{\"bad_words_ids\": [5]}", "bad_words_ids" },
		{ "{\"bad_words_ids\": [[]]}", "bad_words_ids" },
		{ "{\"bad_words_ids\": {}}", "bad_words_ids" }
	};
	jit_error err;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_null(open_with(rows[i][0], &err));
		if (!strstr(err.message, rows[i][1]) || !strstr(err.message, "expected a list"))
			fail_msg("%s: %s", rows[i][0], err.message);
	}
}

static int leave(void **unused)
{
	char command[100];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_never), cmocka_unit_test(test_told),
		                            cmocka_unit_test(test_refused) };

	if (!mkdtemp(dir))
		return 1;
	tiny_write_hf(dir, &shape);
	return cmocka_run_group_tests(tests, NULL, leave);
}
