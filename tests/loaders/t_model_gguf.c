/* tests/loaders/t_model_gguf.c - the keys of a GGUF model: what each means, what is refused, what may be absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "loaders/model/model_load.h"
#include "tests/loaders/model_to_gguf.h"
#include "tests/runtime/tiny_model.h"
#include "tests/loaders/model_gguf_keys.h"

static struct gguf_writer written(const struct tiny_model *t)
{
	size_t n;
	uint8_t *weights = tiny_safetensors(t, &n);
	char *config = tiny_config(t);
	struct gguf_writer w = { 0 };
	struct model m;

	assert_true(model_open_memory(&m, weights, n, config, strlen(config), 0, NULL) &&
	            model_to_gguf(&w, &m, DTYPE_F32, NULL));
	model_close(&m);
	free(weights);
	free(config);
	return w;
}

static const struct tiny_model base = { "llama", 2, 16, 24, 4, 2, 4, 9, DTYPE_F32, .tied = true };

static void test_keys(void **state)
{
	for (size_t i = 0; i < gguf_key_changes_n; i++) {
		const struct gguf_key_change *key = &gguf_key_changes[i];
		struct gguf_writer w = written(&base);
		struct error err = { 0 };
		struct model m;
		size_t n;
		key->edit(&w);
		uint8_t *p = gguf_writer_finish(&w, &n);
		bool ok = model_open_memory(&m, p, n, NULL, 0, 0, &err);
		if (ok != (key->error == NULL) || (!ok && !strstr(err.text, key->error)))
			fail_msg("%zu: expected \"%s\", got \"%s\"", i, key->error ? key->error : "ok",
			         ok ? "ok" : err.text);
		if (ok) {
			const struct model_spec *s = &m.spec;
			if (s->rope.scaling != key->scaling || s->rope.factor != key->factor ||
			    s->rope.attention_factor != key->attention || s->sliding_window != key->window)
				fail_msg("%zu: scaling %d, factor %g, attention %.17g, window %u", i, s->rope.scaling,
				         s->rope.factor, s->rope.attention_factor, s->sliding_window);
			assert_true(s->layers == 2 && s->heads == 4 && s->kv_heads == 2 && s->head_dim == 4 &&
			            s->rope.theta == 10000 && !m.tokenizer);
			assert_int_equal(s->rope.freq_factors != NULL, key->edit == gguf_freqs_ok);
			model_close(&m);
		}
		free(p);
		gguf_writer_free(&w);
	}
}

/* llama3 scaling arrives as divisors; together with the base they are the scaled frequencies. */
static void test_llama3_becomes_divisors(void **state)
{
	struct tiny_model t = base;
	t.head_dim = 16;
	t.extra = ",\"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 500000.0, \"factor\": 32.0, "
		  "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 64}";
	struct gguf_writer w = written(&t);
	struct model m;
	size_t n;
	uint8_t *p = gguf_writer_finish(&w, &n);

	assert_true(model_open_memory(&m, p, n, NULL, 0, 0, NULL));
	assert_int_equal(m.spec.rope.scaling, ROPE_NONE);
	const float *f = m.spec.rope.freq_factors;
	assert_non_null(f);
	assert_true(f[0] == 1 && f[7] == 32); /* short waves stay, long ones stretch by the factor */
	for (int i = 1; i < 8; i++)
		assert_true(f[i] >= f[i - 1]);
	model_close(&m);
	free(p);
	gguf_writer_free(&w);
}

static void test_architectures(void **state)
{
	static const struct {
		const char *name;
		const char *arch; /* in GGUF */
		bool pairs;
	} want[] = { { "llama", "llama", true },  { "mistral", "llama", true },     { "qwen2", "qwen2", false },
		     { "qwen3", "qwen3", false }, { "ernie4_5", "ernie4_5", true }, { "xverse", "xverse", true } };

	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct tiny_model t = base;
		t.arch = want[i].name;
		t.extra = strcmp(t.arch, "ernie4_5") == 0 ? ",\"rope_theta\": 500000" : ",\"sliding_window\": null";
		struct gguf_writer w = written(&t);
		struct model m;
		size_t n;
		uint8_t *p = gguf_writer_finish(&w, &n);
		assert_true(model_open_memory(&m, p, n, NULL, 0, 0, NULL));
		assert_string_equal(m.spec.arch_name, want[i].arch);
		assert_true(m.spec.form == FORM_LLAMA && m.spec.layer[1].k.rope_pairs == want[i].pairs);
		assert_int_equal(m.spec.layer[0].q_norm.bytes != 0, (strcmp(want[i].arch, "qwen3") == 0));
		assert_int_equal(m.spec.layer[0].q_bias.bytes != 0, (strcmp(want[i].arch, "qwen2") == 0));
		model_close(&m);
		free(p);
		gguf_writer_free(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_llama3_becomes_divisors),
		cmocka_unit_test(test_architectures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
