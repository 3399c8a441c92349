/* tests/runtime/t_profile.c - reports and traces: they say what ran, they add up, and watching changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "kernels-templates/emit/build.h"
#include "runtime/jitrun.h"
#include "runtime/device/profile.h"
#include "tests/support/shared.h"

enum { PROMPT = 7, TOKENS = 20, THREADS = 3 };

struct told {
	int32_t ids[TOKENS];
	json_t *report, *trace;
	char *text;
};

static json_t *read_trace(jit_session *s, jit_error *err)
{
	char path[] = "/tmp/jitrun-test-XXXXXX";
	int fd = mkstemp(path);
	json_error_t where;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(jit_session_trace(s, path, err), JIT_OK);
	json_t *o = json_load_file(path, 0, &where);
	assert_non_null(o);
	unlink(path);
	return o;
}

/* The shipped model continues a few ids. */
static void run(int profile, const char *device, struct told *out)
{
	static const int32_t prompt[PROMPT] = { 0, 5, 9, 300, 7, 12, 80 };
	char path[1024];
	jit_error err = { 0 };
	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = "", .device = device), &err);
	assert_non_null(m);
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.threads = THREADS, .profile = profile, .speculate = JIT_SPECULATE_OFF), &err);
	assert_non_null(s);

	assert_int_equal(jit_session_feed(s, prompt, PROMPT, &err), JIT_OK);
	for (int i = 0; i < TOKENS; i++)
		assert_int_equal(jit_session_next(s, &out->ids[i], &err), JIT_OK);
	char *report = jit_session_report(s, 1, &err);
	assert_non_null(report);
	out->report = json_loads(report, 0, NULL);
	assert_non_null(out->report);
	free(report);
	out->text = jit_session_report(s, 0, &err);
	assert_non_null(out->text);
	if (profile == JIT_PROFILE_EVENTS) {
		assert_int_equal(jit_session_trace(s, "/nonexistent/trace.json", &err), JIT_ERROR_IO);
		out->trace = read_trace(s, &err);
	} else {
		assert_int_equal(jit_session_trace(s, "/tmp/never-written", &err), JIT_ERROR_ARGUMENT);
	}
	jit_session_close(s);
	jit_model_close(m);
}

static void forget(struct told *t)
{
	json_decref(t->report);
	json_decref(t->trace);
	free(t->text);
}

static json_int_t whole(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);
	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static void test_watching_changes_nothing(void **state)
{
	struct told plain = { 0 }, sums = { 0 }, events = { 0 };
	(void)state;

	run(JIT_PROFILE_OFF, "cpu", &plain);
	run(JIT_PROFILE_SUMS, "cpu", &sums);
	run(JIT_PROFILE_EVENTS, "cpu", &events);
	assert_memory_equal(plain.ids, sums.ids, sizeof plain.ids);
	assert_memory_equal(plain.ids, events.ids, sizeof plain.ids);
	/* without a profile the kernels are there, times are not */
	assert_true(json_array_size(json_object_get(plain.report, "kernels")) > 5);
	assert_null(json_object_get(plain.report, "workers"));
	forget(&plain);
	forget(&sums);
	forget(&events);
}

/* Weights are read once for a token: what the report expects of one-token matmuls is the packed size of the model's
 * matrices, and little more. */
static void test_report_adds_up(void **state)
{
	struct told t = { 0 };
	json_t *k;
	size_t i;
	double share = 0;
	json_int_t weights = 0, decode = 0;
	(void)state;

	run(JIT_PROFILE_SUMS, "cpu", &t);
	decode = whole(json_object_get(t.report, "decode"), "passes");
	assert_int_equal(decode, TOKENS - 1);
	assert_int_equal(whole(json_object_get(t.report, "prompt"), "tokens"), PROMPT);
	json_array_foreach(json_object_get(t.report, "kernels"), i, k)
	{
		const char *key = json_string_value(json_object_get(k, "key"));
		struct key parsed;
		assert_true(key_parse(&parsed, key));
		assert_string_equal(json_string_value(json_object_get(k, "source")), "generated");
		assert_true(whole(k, "code_bytes") > 0 && whole(k, "vector_registers") > 0 && whole(k, "calls") > 0 &&
		            whole(k, "bytes_expected") > 0);
		share += json_real_value(json_object_get(k, "time_share"));
		if (parsed.kind == KEY_MATMUL && parsed.tile_n == 1 && parsed.rows != 4096)
			weights += whole(k, "bytes_expected") / decode;
		assert_non_null(strstr(t.text, key));
	}
	assert_true(share > 0 && share <= 1);
	/* six layers of hidden 256, ffn 768, 4 heads and 2 KV heads of 64 in Q8_0 */
	json_int_t rows = 256 * 256 + 2 * 128 * 256 + 256 * 256 + 3 * 768 * 256, least = 6 * rows / 32 * 34;
	assert_in_range(weights, least, least + least / 50);
	forget(&t);
}

static void test_trace(void **state)
{
	struct told t = { 0 };
	json_t *e;
	size_t i;
	double end[2048] = { 0 }, passes_end = 0;
	int spans[2048] = { 0 }, passes = 0, prompts = 0, ones = 0;
	(void)state;

	run(JIT_PROFILE_EVENTS, "cpu", &t);
	json_array_foreach(json_object_get(t.trace, "traceEvents"), i, e)
	{
		if (strcmp(json_string_value(json_object_get(e, "ph")), "X") != 0)
			continue;
		json_int_t track = whole(e, "tid");
		double ts = json_number_value(json_object_get(e, "ts")),
		       took = json_number_value(json_object_get(e, "dur"));
		assert_in_range(track, 0, 2047);
		assert_true(ts >= end[track] - 0.002 && took >= 0); /* one after the other; three digits are written */
		end[track] = ts + took;
		spans[track]++;
		prompts += strcmp(json_string_value(json_object_get(e, "name")), "5 to 8 tokens") == 0;
		ones += strcmp(json_string_value(json_object_get(e, "name")), "1 token") == 0;
		if (json_object_get(e, "args")) {
			passes++;
			passes_end = end[track];
		}
	}
	assert_int_equal(passes, 1 + TOKENS - 1);
	assert_int_equal(prompts, 1); /* the prompt of seven, then tokens one by one: two widths, one switch */
	assert_int_equal(ones, 1);
	int shares = 0;
	for (int w = 0; w < THREADS; w++) {
		assert_true(end[w] <= passes_end);
		shares += spans[w];
	}
	assert_true(shares >=
	            passes * 6 * 10); /* six layers of ten launches and more, each at least one share of somebody's */
	forget(&t);
}

static void test_reference_device(void **state)
{
	struct told t = { 0 };
	json_t *k;
	size_t i;
	(void)state;

	run(JIT_PROFILE_SUMS, "ref", &t);
	json_array_foreach(json_object_get(t.report, "kernels"), i, k)
		assert_string_equal(json_string_value(json_object_get(k, "source")), "interpreted");
	assert_true(i > 5);
	forget(&t);
}

/* A kind without a row would be found when the first kernel of it is wanted. */
static void test_every_kind_has_a_row(void **unused)
{
	for (unsigned k = KEY_NONE + 1; k < KEY_KIND_COUNT; k++) {
		const struct template_kind *kind = &template_kinds[k];
		assert_true(kind->build && kind->args && kind->effort && kind->traffic);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_has_a_row), cmocka_unit_test(test_watching_changes_nothing),
		cmocka_unit_test(test_report_adds_up),       cmocka_unit_test(test_trace),
		cmocka_unit_test(test_reference_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
