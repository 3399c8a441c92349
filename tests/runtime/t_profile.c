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
#include "include/jitrun.h"
#include "runtime/device/profile.h"
#include "runtime/engine/engine.h"
#include "runtime/session/session_state.h"
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

static json_int_t whole(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);
	assert_true(json_is_integer(v));
	return json_integer_value(v);
}

static struct key of_any_schedule(struct key k)
{
	k.schedule = 0;
	return k;
}

/* What the report says of a kernel, in all its schedules: the tuner tries several. */
static json_int_t calls_of(const json_t *report, const struct key *key)
{
	json_int_t calls = 0;
	json_t *k;
	size_t i;

	json_array_foreach(json_object_get(report, "kernels"), i, k)
	{
		struct key other;
		assert_true(key_parse(&other, json_string_value(json_object_get(k, "key"))));
		other = of_any_schedule(other);
		calls += key_equal(&other, key) ? whole(k, "calls") : 0;
	}
	return calls;
}

/* Every kernel's calls are the ops of its key in each plan, as often as the plan ran: once over the prompt, then over
 * one token at a time. */
static void check_calls(const jit_session *s, const json_t *report)
{
	const struct engine *e = s->engine;
	const size_t plans = ((size_t)e->tokens + 1) * ENGINE_LOGIT_KINDS;
	json_int_t all = 0, ops = 0;
	json_t *k;
	size_t row;

	json_array_foreach(json_object_get(report, "kernels"), row, k)
	{
		struct key key;
		json_int_t expected = 0;
		assert_true(key_parse(&key, json_string_value(json_object_get(k, "key"))));
		key = of_any_schedule(key);
		for (size_t i = 0; i < plans; i++)
			for (size_t op = 0; e->plan[i] && op < e->plan[i]->n_ops; op++) {
				const struct key of_op =
					of_any_schedule(e->plan[i]->kernel[e->plan[i]->op[op].kernel].key);
				if (key_equal(&of_op, &key))
					expected += e->plan[i]->tokens == PROMPT ? 1 : TOKENS - 1;
			}
		assert_int_equal(calls_of(report, &key), expected);
		all += whole(k, "calls");
	}
	for (size_t i = 0; i < plans; i++)
		if (e->plan[i])
			ops += (json_int_t)e->plan[i]->n_ops * (e->plan[i]->tokens == PROMPT ? 1 : TOKENS - 1);
	assert_int_equal(all, ops);
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
	if (profile != JIT_PROFILE_OFF)
		check_calls(s, out->report);
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
	json_int_t rows = 256 * 256 + 2 * 128 * 256 + 256 * 256 + 3 * 768 * 256, min = 6 * rows / 32 * 34;
	assert_in_range(weights, min, min + min / 50);
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

/* A card is one worker, whatever the threads of the host; it does all of what it is asked for, and its trace has its
 * name. */
static void test_cards(void **state)
{
	static const char *const cards[] = { "sim:sm90", "sim:gfx1100", "sim:sm80" };
	struct told cpu = { 0 };
	(void)state;

	run(JIT_PROFILE_OFF, "cpu", &cpu);
	for (size_t i = 0; i < (test_small_share() ? 1u : test_quick() ? 2 : 3); i++) {
		struct told t = { 0 };
		json_t *o;
		size_t n, named = 0;
		double share = 0;
		run(JIT_PROFILE_EVENTS, cards[i], &t);
		assert_memory_equal(cpu.ids, t.ids, sizeof t.ids);
		assert_int_equal(whole(t.report, "workers"), 1);
		json_array_foreach(json_object_get(t.report, "kernels"), n, o)
		{
			assert_true(whole(o, "nanoseconds") > 0);
			share += json_real_value(json_object_get(o, "time_share"));
		}
		assert_true(share > 0.2 && share <= 1);
		json_array_foreach(json_object_get(t.trace, "traceEvents"), n, o) named +=
			strcmp(json_string_value(json_object_get(o, "name")), "thread_name") == 0 &&
			strcmp(json_string_value(json_object_get(json_object_get(o, "args"), "name")), cards[i]) == 0;
		assert_int_equal(named, 1);
		forget(&t);
	}
	forget(&cpu);
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
		assert_true(kind->build && (kind->args || k == KEY_USER) && kind->effort && kind->traffic);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_has_a_row),
		cmocka_unit_test(test_watching_changes_nothing),
		cmocka_unit_test(test_report_adds_up),
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_cards),
		cmocka_unit_test(test_reference_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
