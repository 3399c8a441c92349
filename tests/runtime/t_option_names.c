/* tests/runtime/t_option_names.c - jitrun_options.h: every field of every struct of options by its name, the names that
 * jitrun's own options have, and what a value may not be; and what a model needs, compared with sessions that are open.
 *
 * The fields are those of abi_fields.h, which t_abi compares with the structs, byte for byte. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "programs/common/sampling_args.h"
#include "include/jitrun_options.h"
#include "runtime/session/session.h"
#include "tests/runtime/abi_fields.h"
#include "tests/support/shared.h"

/* ---- every field */

#define CALL(type, function) \
	static int call_##type(void *p, const char *name, const char *value, jit_error *err) \
	{ \
		return function(p, name, value, err); \
	}
CALL(jit_model_options, jit_model_options_set)
CALL(jit_session_options, jit_session_options_set)
CALL(jit_card_options, jit_card_options_set)
CALL(jit_draft_options, jit_draft_options_set)
CALL(jit_embedding_options, jit_embedding_options_set)
CALL(jit_image_options, jit_image_options_set)
CALL(jit_chat_options, jit_chat_options_set)
CALL(jit_objects_options, jit_objects_options_set)
CALL(jit_sampling, jit_sampling_set)

static const struct of_type {
	const char *type;
	size_t size;
	const struct field *field;
	size_t n;
	int (*set)(void *p, const char *name, const char *value, jit_error *err);
} types[] = {
#define TYPE(type, fields) \
	{ \
#type, sizeof(type), fields, sizeof fields / sizeof *fields, call_##type \
	}
	TYPE(jit_model_options, model_fields),     TYPE(jit_session_options, session_fields),
	TYPE(jit_card_options, card_fields),       TYPE(jit_embedding_options, embedding_fields),
	TYPE(jit_objects_options, objects_fields), TYPE(jit_chat_options, chat_fields),
	TYPE(jit_draft_options, draft_fields),     TYPE(jit_sampling, sampling_fields),
	TYPE(jit_image_options, image_fields),
};
enum { TYPES = sizeof types / sizeof *types };

static void fresh(const struct of_type *t, uint8_t own[512])
{
	memset(own, 0, 512);
	memcpy(own, &t->size, sizeof t->size);
}

/* The field alone has changed, to this value. */
static void check_set(const struct of_type *t, const struct field *f, double v, const char *spelt)
{
	uint8_t own[512], want[512];
	jit_error err = { 0 };
	const float real = (float)v;
	const int whole = f->kind == WHOLE ? (int)v : 0;

	fresh(t, own);
	fresh(t, want);
	if (t->set(own, f->name, spelt, &err) != JIT_OK)
		fail_msg("%s.%s = %s: %s", t->type, f->name, spelt, err.message);
	memcpy(want + f->offset, f->kind == REAL ? (const void *)&real : (const void *)&whole, 4);
	assert_memory_equal(own, want, sizeof own);
}

static void check_refused(const struct of_type *t, const struct field *f, const char *spelt)
{
	uint8_t own[512], want[512];
	jit_error err = { 0 };

	fresh(t, own);
	fresh(t, want);
	if (t->set(own, f->name, spelt, &err) != JIT_ERROR_ARGUMENT || !strstr(err.message, f->name) ||
	    !strstr(err.message, " is not "))
		fail_msg("%s.%s = \"%s\": \"%s\"", t->type, f->name, spelt, err.message);
	assert_memory_equal(own, want, sizeof own);
}

static void check_numbers(const struct of_type *t, const struct field *f)
{
	static const char *const odd[] = { "", " 1", "1 ", "one", "0x1", "1e", "--1", "1,5", "nan", "inf", "1;2" };
	char spelt[64];

	for (size_t i = 0; i < 4 && f->good[i] != 0; i++) {
		snprintf(spelt, sizeof spelt, f->kind == REAL ? "%.9g" : "%.0f", f->good[i]);
		check_set(t, f, f->good[i], spelt);
	}
	for (size_t i = 0; i < 4 && f->bad[i] != 0; i++) {
		snprintf(spelt, sizeof spelt, f->kind == REAL ? "%.9g" : "%.0f", f->bad[i]);
		check_refused(t, f, spelt);
	}
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
		check_refused(t, f, odd[i]);
	if (f->kind == WHOLE)
		check_refused(t, f, "1.5");
	check_refused(t, f, f->kind == WHOLE ? "9999999999" : "1e39");
}

static void each_field_is_set(void **state)
{
	unsigned addresses = 0, numbers = 0, others = 0;
	(void)state;

	for (size_t i = 0; i < TYPES; i++)
		for (size_t k = 0; k < types[i].n; k++) {
			const struct of_type *t = &types[i];
			const struct field *f = &t->field[k];
			uint8_t own[512];
			jit_error err = { 0 };
			if (f->kind != ANY) {
				numbers++;
				if (strncmp(f->name, "n_", 2)) /* lists are set in the struct */
					check_numbers(t, f);
				continue;
			}
			fresh(t, own);
			others++;
			const int status = t->set(own, f->name, "1", &err);
			if (status != JIT_OK && strstr(err.message, "is an address"))
				addresses++;
			else if (status != JIT_OK && strcmp(f->name, "samplers"))
				fail_msg("%s.%s: %s", t->type, f->name, err.message);
		}
	printf("# %u numbers, %u other fields, of them %u addresses\n", numbers, others, addresses);
	assert_int_equal(addresses, 4 + 4 + 1 + 2); /* of models, sessions, drafts, sampling */
}

static void names_and_words(void **state)
{
	jit_error err = { 0 };
	(void)state;

	jit_sampling p = JIT_SAMPLING();
	assert_int_equal(jit_sampling_set(&p, "--temp", "0.7", &err), JIT_OK);
	assert_true(p.temperature == 0.7f);
	assert_int_equal(jit_sampling_set(&p, "repeat-last-n", "12", &err), JIT_OK);
	assert_int_equal(p.repeat_window, 12);
	assert_int_equal(jit_sampling_set(&p, "seed", "18446744073709551615", &err), JIT_OK);
	assert_true(p.seed == UINT64_MAX);
	assert_int_equal(jit_sampling_set(&p, "seed", "-1", &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_sampling_set(&p, "seed", "18446744073709551616", &err), JIT_ERROR_ARGUMENT);
	static const char order[] = "top_k;temperature";
	assert_int_equal(jit_sampling_set(&p, "samplers", order, &err), JIT_OK);
	assert_ptr_equal(p.samplers, order);
	assert_int_equal(jit_sampling_set(&p, "samplers", "top_q", &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "top_q"));
	assert_ptr_equal(p.samplers, order);
	assert_int_equal(jit_sampling_set(&p, "top_q", "1", &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "jit_sampling has no option \"top_q\"; there are temperature top_k"));
	assert_int_equal(jit_sampling_set(&p, "logit_bias", "1-inf", &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "is an address"));

	jit_session_options o = JIT_SESSION_OPTIONS();
	assert_int_equal(jit_session_options_set(&o, "kv-type", "q8_0", &err), JIT_OK);
	assert_int_equal(o.kv, JIT_KV_Q8_0);
	assert_int_equal(jit_session_options_set(&o, "speculate", "off", &err), JIT_OK);
	assert_int_equal(o.speculate, JIT_SPECULATE_OFF);
	assert_int_equal(jit_session_options_set(&o, "speculate", "8", &err), JIT_OK);
	assert_int_equal(o.speculate, 8);
	assert_int_equal(jit_session_options_set(&o, "kv", "q4_0", &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "\"q4_0\" is not an integer"));
	assert_non_null(strstr(err.message, "q8_0=2"));

	jit_model_options m = JIT_MODEL_OPTIONS();
	assert_int_equal(jit_model_options_set(&m, "numerics", "always-bounded", &err), JIT_OK);
	assert_int_equal(m.bounded_numerics, JIT_NUMERICS_ALWAYS_BOUNDED);
	assert_int_equal(jit_model_options_set(&m, "sealed", "yes", &err), JIT_OK);
	assert_int_equal(m.sealed, 1);
	assert_int_equal(jit_model_options_set(&m, "sealed", "2", &err), JIT_ERROR_ARGUMENT);
	jit_batch_options b = JIT_BATCH_OPTIONS();
	assert_int_equal(jit_batch_options_set(&b, "kv_bytes", "5000000000", &err), JIT_OK);
	assert_true(b.kv_bytes == 5000000000);
	assert_int_equal(jit_batch_options_set(&b, "tokens", "1025", &err), JIT_ERROR_ARGUMENT);
	jit_embedding_options e = JIT_EMBEDDING_OPTIONS();
	assert_int_equal(jit_embedding_options_set(&e, "pooling", "mean", &err), JIT_OK);
	assert_int_equal(e.pooling, JIT_POOL_MEAN);
}

static void conversations_and_grammars(void **state)
{
	jit_error err = { 0 };
	jit_chat_options c = JIT_CHAT_OPTIONS();
	(void)state;

	assert_int_equal(jit_chat_options_set(&c, "now", "-5", &err), JIT_OK);
	assert_true(c.now == -5);
	jit_answer_options a = JIT_ANSWER_OPTIONS();
	assert_int_equal(jit_answer_options_set(&a, "one_call", "true", &err), JIT_OK);
	assert_int_equal(a.one_call, 1);
	jit_forced_options f = JIT_FORCED_OPTIONS();
	assert_int_equal(jit_forced_options_set(&f, "function", "add", &err), JIT_OK);
	assert_string_equal(f.function, "add");
	jit_grammar_options g = JIT_GRAMMAR_OPTIONS();
	assert_int_equal(jit_grammar_options_set(&g, "behind-reasoning", "on", &err), JIT_OK);
	assert_int_equal(g.behind_reasoning, 1);
	assert_int_equal(jit_grammar_options_set(&g, "opening", "<a>", &err), JIT_OK);
	assert_string_equal(g.opening, "<a>");
}

/* An older caller's struct ends earlier: nothing behind it is written. */
static void structs_of_older_callers(void **state)
{
	jit_error err = { 0 };
	jit_sampling p = JIT_SAMPLING();
	(void)state;

	p.size = offsetof(jit_sampling, samplers);
	assert_int_equal(jit_sampling_set(&p, "top_k", "9", &err), JIT_OK);
	assert_int_equal(p.top_k, 9);
	assert_int_equal(p.size, offsetof(jit_sampling, samplers));
	assert_int_equal(jit_sampling_set(&p, "dry_base", "2", &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "dry_base is behind that"));
	assert_true(p.dry_base == 0);
	p.size = 0;
	assert_int_equal(jit_sampling_set(&p, "top_k", "9", &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "jit_sampling.size is 0"));
}

/* A program that writes commas in its numbers reads points here. */
static void numbers_of_another_language(void **state)
{
	static const char *const languages[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "de_DE.utf8" };
	jit_sampling p = JIT_SAMPLING();
	jit_error err = { 0 };
	const char *set = NULL;
	(void)state;

	for (size_t i = 0; i < 4 && !set; i++)
		set = setlocale(LC_NUMERIC, languages[i]);
	const int status = jit_sampling_set(&p, "top_p", "0.25", &err),
		  comma = jit_sampling_set(&p, "min_p", "0,25", &err);
	setlocale(LC_NUMERIC, "C");
	assert_int_equal(status, JIT_OK);
	assert_true(p.top_p == 0.25f);
	assert_int_equal(comma, JIT_ERROR_ARGUMENT);
}

/* Each name of jitrun's table of sampling options is known, but for what is no field. */
static void names_of_jitrun(void **state)
{
	static struct sampling_args args;
	static const struct option_row rows[] = {
#define SAMPLING args
#include "programs/common/sampling_rows.def"
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		jit_sampling p = JIT_SAMPLING();
		jit_error err = { 0 };
		if (rows[i].kind == OPTION_GROUP)
			continue;
		jit_sampling_set(&p, rows[i].name, "?", &err);
		if (strstr(err.message, "has no option"))
			fail_msg("%s", err.message);
	}
	assert_in_range(sizeof rows / sizeof *rows, 20, 60);
}

/* ---- what a model needs */

static void needs_are_those_of_a_session(void **state)
{
	static const jit_session_options sessions[] = {
		{ .size = sizeof *sessions, .threads = 1 },
		{ .size = sizeof *sessions, .threads = 1, .context = 77, .batch = 8, .kv = JIT_KV_F32 },
		{ .size = sizeof *sessions, .threads = 1, .context = 300, .kv = JIT_KV_Q8_0, .speculate = -1 },
	};
	char path[1024];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	(void)state;

	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), &err);
	assert_non_null(m);
	assert_int_equal(jit_model_get_info(m, &info, &err), JIT_OK);
	for (int i = 0; i < 3; i++) {
		jit_needs needs = JIT_NEEDS();
		jit_session_stats stats = JIT_SESSION_STATS();
		jit_session *s = jit_session_open(m, &sessions[i], &err);
		assert_int_equal(jit_model_needs(path, &sessions[i], &needs, &err), JIT_OK);
		assert_int_equal(jit_session_get_stats(s, &stats, &err), JIT_OK);
		assert_int_equal(needs.kv_bytes, stats.kv_bytes);
		assert_int_equal(needs.context, stats.context);
		assert_in_range(needs.weight_bytes, info.weight_bytes, info.weight_bytes + info.weight_bytes / 100);
		assert_int_equal(needs.token_bytes, info.token_bytes);
		assert_int_equal(needs.context_trained, info.context_trained);
		assert_true(needs.pass_bytes > 0 && needs.available_bytes > 0);
		jit_session_close(s);
	}
	jit_needs needs = JIT_NEEDS();
	assert_int_equal(jit_model_needs(path, &JIT_SESSION_OPTIONS(.kv = 9), &needs, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_model_needs("/dev/null/no", NULL, &needs, &err), JIT_ERROR_IO);
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_is_set),
		cmocka_unit_test(conversations_and_grammars),
		cmocka_unit_test(names_and_words),
		cmocka_unit_test(structs_of_older_callers),
		cmocka_unit_test(numbers_of_another_language),
		cmocka_unit_test(names_of_jitrun),
		cmocka_unit_test(needs_are_those_of_a_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
