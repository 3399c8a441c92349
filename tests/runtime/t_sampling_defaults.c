/* tests/runtime/t_sampling_defaults.c - jit_model_sampling_defaults: what is taken of generation_config.json and of
 * GGUF metadata, what stands for the rest, and what is refused; of published files, all of their numbers. */
#include <ftw.h>
#include <jansson.h>
#include <limits.h>
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

#include "loaders/model/model_load.h"
#include "include/jitrun.h"
#include "tests/loaders/gguf_writer.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

static char dir[64], config_path[100];

static int make_directory(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/jitrun-defaults-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(config_path, sizeof config_path, "%s/generation_config.json", dir);
	tiny_write_hf(dir, &tiny_min);
	return 0;
}

static int remove_directory(void **state)
{
	static const char *const names[] = { "config.json", "model.safetensors", "generation_config.json" };
	char path[200];
	(void)state;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		unlink(path);
	}
	return rmdir(dir);
}

/* The defaults of the tiny model with this generation_config.json (NULL: with none). */
static int defaults_of(const char *text, size_t n, jit_sampling *out, bool *own, jit_error *err)
{
	jit_model_info info = JIT_MODEL_INFO();

	unlink(config_path);
	if (text)
		tiny_write(dir, "generation_config.json", text, n);
	*err = (jit_error){ 0 };
	jit_model *m = jit_model_open(
		dir, &JIT_MODEL_OPTIONS(.cache_dir = "", .device = "ref", .threads = 1, .tune = JIT_TUNE_OFF), err);
	if (!m)
		return err->code;
	*out = JIT_SAMPLING();
	assert_int_equal(jit_model_sampling_defaults(m, out, err), JIT_OK);
	assert_int_equal(jit_model_get_info(m, &info, err), JIT_OK);
	*own = info.has_sampling;
	/* what is given can be used as it is */
	if (!out->samplers) {
		jit_session *s =
			jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 8, .threads = 1, .sampling = out), err);
		if (!s)
			fail_msg("%s", err->message);
		jit_session_close(s);
	}
	jit_model_close(m);
	return JIT_OK;
}

static void check(const char *text, jit_sampling want, bool own)
{
	jit_sampling found;
	jit_error err;
	bool says;

	if (defaults_of(text, text ? strlen(text) : 0, &found, &says, &err) != JIT_OK)
		fail_msg("%s: %s", text, err.message);
	found.samplers = NULL;
	found.xtc_threshold = want.xtc_threshold;
	if (says != own || memcmp(&found, &want, sizeof want) != 0)
		fail_msg("%s: temperature %g top_k %d top_p %g min_p %g typical %g penalty %g window %d", text,
		         (double)found.temperature, found.top_k, (double)found.top_p, (double)found.min_p,
		         (double)found.typical_p, (double)found.repeat_penalty, found.repeat_window);
}

#define WANT(...) JIT_SAMPLING(.repeat_penalty = 1, .repeat_window = 64, __VA_ARGS__)
#define NONE WANT(.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .typical_p = 1)

static void what_is_taken(void **state)
{
	(void)state;
	check(NULL, NONE, false);
	check("{}", NONE, false);
	check("{\"do_sample\": true, \"eos_token_id\": 2, \"temperature\": null}", NONE, false);
	check("{\"temperature\": 0.6, \"top_k\": 20, \"top_p\": 0.95, \"min_p\": 0}",
	      WANT(.temperature = 0.6f, .top_k = 20, .top_p = 0.95f, .typical_p = 1), true);
	check("{\"top_p\": 0.9}", WANT(.temperature = 1, .top_k = 40, .top_p = 0.9f, .typical_p = 1), true);
	check("{\"top_k\": -1, \"temperature\": 2}", WANT(.temperature = 2, .top_p = 1, .typical_p = 1), true);
	check("{\"do_sample\": false, \"temperature\": 0.7}",
	      WANT(.temperature = 0, .top_k = 40, .top_p = 1, .typical_p = 1), true);
	check("{\"typical_p\": 0.5}", WANT(.temperature = 1, .top_k = 40, .top_p = 1, .typical_p = 0.5f), true);
	jit_sampling penalised = NONE;
	penalised.repeat_penalty = 1.05f;
	check("{\"repetition_penalty\": 1.05}", penalised, true);
	penalised.presence_penalty = 1.5f;
	penalised.repeat_window = INT_MAX;
	check("{\"repetition_penalty\": 1.05, \"presence_penalty\": 1.5, \"penalty_last_n\": -1}", penalised, true);
	jit_sampling off = NONE;
	off.repeat_window = 0;
	check("{\"repetition_penalty\": 1.05, \"presence_penalty\": 1.5, \"penalty_last_n\": 0}", off, true);
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "{\"temperature\": \"hot\"}", "generation_config.json: temperature is a string, expected a number" },
		{ "{\"temperature\": true}", "temperature is true, expected a number" },
		{ "{\"temperature\": -0.5}", "generation_config.json: temperature is -0.5, expected 0 to 100" },
		{ "{\"temperature\": NaN}", "temperature is NaN" },
		{ "{\"top_k\": 2.5}", "top_k is 2.5, expected an integer" },
		{ "{\"top_k\": -2}", "top_k is -2, expected -1 to 2147483647" },
		{ "{\"top_p\": 1.5}", "top_p is 1.5, expected 0 to 1" },
		{ "{\"min_p\": -1}", "min_p is -1, expected 0 to 1" },
		{ "{\"repetition_penalty\": 0}", "repetition_penalty is 0, expected 0.01 to 100" },
		{ "{\"do_sample\": 1}", "do_sample is an integer, expected true or false" },
		{ "{\"sequence\": \"\"}", "sequence has 0 bytes, expected names" },
		{ "[]", "generation_config.json: its content is an array, expected an object" },
		{ "{\"top_k\": 20 \"top_p\": 0.9}", "generation_config.json: is not valid JSON in line 1" },
		{ "", "generation_config.json: is empty" },
	};
	jit_sampling found;
	jit_error err;
	bool own;
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (defaults_of(rows[i].text, strlen(rows[i].text), &found, &own, &err) == JIT_OK ||
		    !strstr(err.message, rows[i].says))
			fail_msg("%s: \"%s\"", rows[i].text, err.message);
}

/* ---- GGUF */

struct gguf_model {
	struct model m;
	struct model_file f;
	struct model_part part;
	uint8_t *bytes;
};

static bool read_gguf(struct gguf_model *g, struct gguf_writer *w, struct error *err)
{
	size_t n;

	g->bytes = gguf_writer_finish(w, &n);
	g->part = (struct model_part){ .format = MODEL_GGUF };
	g->f = (struct model_file){ .format = MODEL_GGUF, .part = &g->part, .n_parts = 1 };
	g->m = (struct model){ .file = &g->f };
	*err = (struct error){ 0 };
	return gguf_parse(&g->part.gguf, g->bytes, n, "test.gguf", true, err) && model_read_sampling(&g->m, err);
}

static void drop_gguf(struct gguf_model *g, struct gguf_writer *w)
{
	free(g->m.sampling.samplers);
	gguf_free(&g->part.gguf);
	gguf_writer_free(w);
	free(g->bytes);
}

/* As llama.cpp's converter writes each of them. */
static void gguf_keys(void **state)
{
	static const struct {
		const char *name;
		bool whole;
		double value;
	} keys[SAMPLING_FIELDS] = {
		[SAMPLING_temperature] = { "temp", false, 0.625 },
		[SAMPLING_top_k] = { "top_k", true, 20 },
		[SAMPLING_top_p] = { "top_p", false, 0.875 },
		[SAMPLING_min_p] = { "min_p", false, 0.125 },
		[SAMPLING_repeat_penalty] = { "penalty_repeat", false, 1.25 },
		[SAMPLING_repeat_window] = { "penalty_last_n", true, -1 },
		[SAMPLING_xtc_probability] = { "xtc_probability", false, 0.5 },
		[SAMPLING_xtc_threshold] = { "xtc_threshold", false, 0.25 },
		[SAMPLING_mirostat] = { "mirostat", true, 2 },
		[SAMPLING_mirostat_tau] = { "mirostat_tau", false, 4 },
		[SAMPLING_mirostat_eta] = { "mirostat_eta", false, 0.5 }
	};
	struct gguf_writer w;
	struct gguf_model g;
	struct error err;
	unsigned given = 0;
	char key[64];
	(void)state;

	gguf_writer_start(&w, 3, 32);
	for (size_t i = 0; i < SAMPLING_FIELDS; i++) {
		int32_t whole = (int32_t)keys[i].value;
		snprintf(key, sizeof key, "general.sampling.%s", keys[i].name ? keys[i].name : "");
		assert_true(!keys[i].name == !sampling_rows[i].gguf);
		if (!keys[i].name)
			continue;
		given |= 1u << i;
		if (keys[i].whole)
			gguf_write_scalar(&w, key, GGUF_I32, &whole);
		else
			gguf_write_f32(&w, key, (float)keys[i].value);
	}
	gguf_write_string(&w, "general.sampling.sequence", "top_k;temperature");
	if (!read_gguf(&g, &w, &err))
		fail_msg("%s", err.text);
	assert_int_equal(g.m.sampling.given, given);
	for (size_t i = 0; i < SAMPLING_FIELDS; i++)
		if (given >> i & 1)
			assert_true(g.m.sampling.value[i] == keys[i].value);
	assert_string_equal(g.m.sampling.samplers, "top_k;temperature");
	drop_gguf(&g, &w);
}

static void gguf_refused(void **state)
{
	struct gguf_writer w;
	struct gguf_model g;
	struct error err;
	(void)state;

	for (int kind = 0; kind < 4; kind++) {
		static const char *const says[] = {
			"test.gguf: key general.sampling.temp has type STRING, expected a number",
			"test.gguf: general.sampling.top_p is 2, expected 0 to 1",
			"test.gguf: key general.sampling.sequence has type U32, expected STRING",
			"test.gguf: general.sampling.temp is nan, expected 0 to 100",
		};
		gguf_writer_start(&w, 3, 32);
		if (kind == 0)
			gguf_write_string(&w, "general.sampling.temp", "1");
		else if (kind == 1)
			gguf_write_f32(&w, "general.sampling.top_p", 2);
		else if (kind == 2)
			gguf_write_u32(&w, "general.sampling.sequence", 2);
		else
			gguf_write_f32(&w, "general.sampling.temp", strtof("nan", NULL));
		assert_false(read_gguf(&g, &w, &err));
		assert_string_equal(err.text, says[kind]);
		drop_gguf(&g, &w);
	}
}

/* ---- published files */

static unsigned published, with_numbers;

static double number(const json_t *root, const char *name, double otherwise)
{
	const json_t *v = json_object_get(root, name);

	return json_is_number(v) ? json_number_value(v) : otherwise;
}

static void check_published(const char *path, const char *text, size_t n, const json_t *root)
{
	bool own, block = json_object_get(root, "temperature") || json_object_get(root, "top_k") ||
	                  json_object_get(root, "top_p") || json_is_false(json_object_get(root, "do_sample"));
	jit_sampling found;
	jit_error err;

	if (defaults_of(text, n, &found, &own, &err) != JIT_OK)
		fail_msg("%s: %s", path, err.message);
	double temperature =
		json_is_false(json_object_get(root, "do_sample")) ? 0 : number(root, "temperature", block ? 1 : 0.8);
	if (found.temperature != (float)temperature || found.top_k != (int)number(root, "top_k", 40) ||
	    found.top_p != (float)number(root, "top_p", block ? 1 : 0.95) || found.min_p != (block ? 0 : 0.05f) ||
	    found.repeat_penalty != (float)number(root, "repetition_penalty", 1) ||
	    own != (block || json_object_get(root, "repetition_penalty")))
		fail_msg("%s: temperature %g top_k %d top_p %g penalty %g", path, (double)found.temperature,
		         found.top_k, (double)found.top_p, (double)found.repeat_penalty);
	with_numbers += own;
}

static int visit(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	size_t n;
	(void)st;

	if (kind != FTW_F || strcmp(path + at->base, "generation_config.json") != 0)
		return 0;
	char *text = (char *)file_bytes(path, &n);
	json_t *root = json_loadb(text, n, 0, NULL);
	if (root) {
		check_published(path, text, n, root);
	} else { /* one of them lacks a comma */
		jit_sampling found;
		jit_error err;
		bool own;
		assert_int_equal(defaults_of(text, n, &found, &own, &err), JIT_ERROR_FORMAT);
		assert_non_null(strstr(err.message, "generation_config.json: is not valid JSON in line 12"));
	}
	json_decref(root);
	free(text);
	published++;
	return 0;
}

static void published_files(void **state)
{
	char path[1024];
	(void)state;

	if (!shared_path(path, "data/configs"))
		skip();
	assert_int_equal(nftw(path, visit, 16, FTW_PHYS), 0);
	assert_true(published >= 30 && with_numbers >= 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken), cmocka_unit_test(what_is_refused), cmocka_unit_test(gguf_keys),
		cmocka_unit_test(gguf_refused),  cmocka_unit_test(published_files),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
