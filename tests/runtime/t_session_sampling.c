/* tests/runtime/t_session_sampling.c - samplers and stop texts through the public interface: guesses and rewinding
 * change no token whatever the samplers; what is wrong is refused and changes nothing; no part of a stop text comes
 * out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/support/shared.h"

enum { TOKENS = 60, CONTEXT = 160, TEXT = 2000 };

static const char cat[] =
	"The cat sat on the mat. The dog sat on the mat. The cat sat on the mat and looked at the dog. The "
	"dog sat on the mat and looked at the cat. The cat sat";
static jit_model *model;

static int open_model(void **state)
{
	char path[1024];
	(void)state;
	model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                       &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), NULL);
	return model ? 0 : -1;
}

static int close_model(void **state)
{
	(void)state;
	jit_model_close(model);
	return 0;
}

static jit_session *open_session(const jit_sampling *p, int speculate, const char *prompt)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(
		model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .sampling = p, .speculate = speculate),
		&err);

	if (!s)
		fail_msg("%s", err.message);
	assert_int_equal(jit_session_feed_text(s, prompt, strlen(prompt), 0, &err), JIT_OK);
	return s;
}

static void generate(jit_session *s, int32_t *ids, size_t n)
{
	jit_error err = { 0 };

	for (size_t i = 0; i < n; i++)
		if (jit_session_next(s, &ids[i], &err) != JIT_OK)
			fail_msg("%s", err.message);
}

/* ---- the same tokens */

static const char *const breakers[] = { ".", "mat and" };
static const jit_logit_bias bias[] = { { 300, 3 }, { 301, -INFINITY } };
#define ALL(...) JIT_STRUCT(jit_sampling, .temperature = 0.8f, .seed = 5, __VA_ARGS__)

/* Each of the samplers that look at the text, have state or draw numbers of their own. */
static jit_sampling sampling_number(int i)
{
	switch (i) {
	case 0: return ALL(.mirostat = 2, .mirostat_tau = 3);
	case 1: return ALL(.mirostat = 1);
	case 2: return ALL(.adaptive_target = 0.3f, .top_k = 40);
	case 3: return ALL(.dry_multiplier = 0.8f, .dry_window = -1, .dry_breakers = breakers, .n_dry_breakers = 2);
	case 4: return ALL(.xtc_probability = 0.5f, .xtc_threshold = 0.05f, .top_k = 50);
	case 5:
		return ALL(.repeat_penalty = 1.1f, .presence_penalty = 0.2f, .frequency_penalty = 0.1f,
		           .repeat_window = 30, .logit_bias = bias, .n_logit_bias = 2);
	default:
		return ALL(.samplers = "temperature;top_k;typ_p;top_n_sigma", .typical_p = 0.9f, .top_n_sigma = 2,
		           .dynatemp_range = 0.3f, .top_k = 100);
	}
}
enum { SAMPLINGS = 7 };

/* A text with some tokens taken back and the first of them fed, and a few others fed later. Samplers without state then
 * choose the same again; those with one have not drawn the token that was fed. */
static void write_text(const jit_sampling *p, int speculate, int32_t *ids)
{
	static const int32_t fed[] = { 400, 401, 402 };
	jit_session *s = open_session(p, speculate, cat);
	size_t begin = jit_session_length(s);
	int32_t first[30];

	generate(s, ids, 30);
	memcpy(first, ids, sizeof first);
	assert_int_equal(jit_session_rewind(s, begin + 11, NULL), JIT_OK);
	assert_int_equal(jit_session_feed(s, ids + 11, 1, NULL), JIT_OK);
	generate(s, ids + 12, 18);
	if (!p->mirostat && p->adaptive_target == 0)
		assert_memory_equal(ids, first, sizeof first);
	assert_int_equal(jit_session_feed(s, fed, 3, NULL), JIT_OK);
	generate(s, ids + 30, TOKENS - 30);
	jit_session_close(s);
}

static void test_guesses(void **state)
{
	int32_t want[TOKENS], got[TOKENS], plain[TOKENS];
	const jit_sampling usual = ALL(.top_k = 0);
	(void)state;

	write_text(&usual, JIT_SPECULATE_OFF, plain);
	for (int i = 0; i < SAMPLINGS; i++) {
		const jit_sampling p = sampling_number(i);
		write_text(&p, JIT_SPECULATE_OFF, want);
		if (memcmp(want, plain, sizeof want) == 0)
			fail_msg("sampling %d does nothing", i);
		for (int columns = 4; columns <= (test_quick() ? 4 : 16); columns *= 2) {
			write_text(&p, columns, got);
			if (memcmp(want, got, sizeof want) != 0)
				fail_msg("sampling %d, guesses of %d: another text", i, columns);
		}
	}
}

/* Fields with the values that 0 stands for, and fields that belong to what is off, change nothing. */
static void test_usual_values(void **state)
{
	const jit_sampling plain = ALL(.top_k = 40, .top_p = 0.95f);
	const jit_sampling usual =
		ALL(.top_k = 40, .top_p = 0.95f, .repeat_penalty = 1, .repeat_window = 64, .typical_p = 1,
	            .dynatemp_exponent = 2, .xtc_threshold = 0.2f, .dry_base = 2, .dry_allowed_length = 3,
	            .dry_window = 9, .dry_breakers = breakers, .n_dry_breakers = 1, .mirostat_tau = 1,
	            .mirostat_eta = 1, .adaptive_decay = 0.5f);
	const jit_sampling dry[] = { ALL(.dry_multiplier = 1), ALL(.dry_multiplier = 1, .dry_base = 1.75f,
		                                                   .dry_allowed_length = 2, .dry_window = 64) };
	int32_t ids[4][TOKENS];
	(void)state;

	write_text(&plain, 0, ids[0]);
	write_text(&usual, 0, ids[1]);
	assert_memory_equal(ids[0], ids[1], sizeof *ids);
	write_text(&dry[0], 0, ids[2]);
	write_text(&dry[1], 0, ids[3]);
	assert_memory_equal(ids[2], ids[3], sizeof *ids);
}

static void test_bias(void **state)
{
	jit_logit_bias ban[20];
	int32_t ids[20], id;
	jit_session *s = open_session(NULL, 0, cat);
	(void)state;

	generate(s, ids, 20);
	jit_session_close(s);
	for (int i = 0; i < 20; i++)
		ban[i] = (jit_logit_bias){ ids[i], -INFINITY };
	s = open_session(&JIT_SAMPLING(.logit_bias = ban, .n_logit_bias = 20), 0, cat);
	for (int i = 0; i < 30; i++) {
		generate(s, &id, 1);
		for (int k = 0; k < 20; k++)
			assert_int_not_equal(id, ids[k]);
	}
	jit_session_close(s);
}

/* ---- what is refused */

static void refused(jit_session *s, jit_sampling p, const char *why)
{
	jit_error err = { 0 };

	assert_int_equal(jit_session_set_sampling(s, &p, &err), JIT_ERROR_ARGUMENT);
	assert_string_equal(err.message, why);
	err = (jit_error){ 0 };
	assert_null(jit_session_open(model, &JIT_SESSION_OPTIONS(.sampling = &p, .context = 8), &err));
	assert_string_equal(err.message, why);
}

static void test_refused(void **state)
{
	const jit_sampling p = sampling_number(0);
	jit_session *s = open_session(&p, 0, cat), *other = open_session(&p, 0, cat);
	int32_t want[40], got[40];
	(void)state;

	generate(s, want, 40);
	generate(other, got, 20);
	refused(other, ALL(.typical_p = NAN), "typical_p: nan is not in 0..1");
	refused(other, ALL(.dry_base = 0.5f), "dry_base: 0.5 is not a finite number of at least 1");
	refused(other, ALL(.mirostat = 3), "mirostat: 3 is not in 0..2");
	refused(other, ALL(.adaptive_target = -1), "adaptive_target: -1 is not in 0..1");
	refused(other, ALL(.xtc_threshold = INFINITY), "xtc_threshold: inf is not in 0..1");
	refused(other, ALL(.n_logit_bias = 1), "n_logit_bias: there are 1, but logit_bias is NULL");
	refused(other, ALL(.n_dry_breakers = 1), "n_dry_breakers: there are 1, but dry_breakers is NULL");
	refused(other, ALL(.samplers = "top_k;temp"),
	        "samplers: \"temp\" is none of penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
	generate(other, got + 20, 20);
	assert_memory_equal(want, got, sizeof want); /* with the state there was */
	jit_session_close(s);
	jit_session_close(other);
}

/* ---- stop texts */

/* The text of a session until it stops or has had so many tokens; each piece is looked at as it comes. */
static size_t read_text(jit_session *s, char out[TEXT], bool *stopped)
{
	size_t n = 0, bytes;
	int32_t id = 0;

	for (int i = 0; i <= TOKENS && jit_session_stopped(s) < 0; i++) {
		if (i < TOKENS)
			generate(s, &id, 1);
		const char *piece = jit_session_text(s, i < TOKENS ? id : -1, &bytes, NULL);
		assert_non_null(piece);
		memcpy(out + n, piece, bytes);
		n += bytes;
	}
	*stopped = jit_session_stopped(s) >= 0;
	out[n] = 0;
	return n;
}

/* Every few places of the text that comes without: what stands there, of every length, ends it before its first place.
 */
static void test_stop(void **state)
{
	static char whole[TEXT], got[TEXT];
	char stop[16];
	const char *const texts[] = { "~~~~", stop };
	jit_session *s = open_session(NULL, 0, "Once upon a time");
	size_t begin = jit_session_length(s), n;
	bool stopped;
	(void)state;

	assert_int_equal(jit_session_stopped(s), -1);
	n = read_text(s, whole, &stopped);
	assert_false(stopped);
	assert_true(n > 60);
	for (size_t at = 0; at + 12 < n; at += test_quick() ? 29 : 13)
		for (size_t length = 1; length <= 12; length += 3) {
			memcpy(stop, whole + at, length);
			stop[length] = 0;
			assert_int_equal(jit_session_rewind(s, begin - 1, NULL), JIT_OK);
			assert_int_equal(jit_session_feed_text(s, " time", 5, 0, NULL), JIT_OK);
			assert_int_equal(jit_session_set_stop(s, texts, 2, NULL), JIT_OK);
			size_t want = (size_t)(strstr(whole, stop) - whole), had = read_text(s, got, &stopped);
			assert_true(stopped);
			assert_int_equal(jit_session_stopped(s), 1);
			assert_int_equal(had, want);
			assert_memory_equal(got, whole, want);
		}
	assert_int_equal(jit_session_set_stop(s, NULL, 0, NULL), JIT_OK);
	assert_int_equal(jit_session_stopped(s), -1);
	jit_session_close(s);
}

static void test_stop_refused(void **state)
{
	jit_error err = { 0 };
	jit_session *s = open_session(NULL, 0, "Once");
	(void)state;

	assert_int_equal(jit_session_set_stop(s, (const char *[]){ "x", "" }, 2, &err), JIT_ERROR_ARGUMENT);
	assert_string_equal(err.message, "stop: text 1 has 0 bytes, not 1..4096");
	assert_int_equal(jit_session_set_stop(s, (const char *[]){ "x", NULL }, 2, &err), JIT_ERROR_ARGUMENT);
	jit_session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_guesses), cmocka_unit_test(test_usual_values),
		                            cmocka_unit_test(test_bias),    cmocka_unit_test(test_refused),
		                            cmocka_unit_test(test_stop),    cmocka_unit_test(test_stop_refused) };
	return cmocka_run_group_tests(tests, open_model, close_model);
}
