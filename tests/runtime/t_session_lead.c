/* tests/runtime/t_session_lead.c - reasoning before the text of a grammar: texts in random cuts beside what is right by
 * their letters, the same choices with drafts, in a batch and again after a rewind, and what bounds the reasoning.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "answers/think.h"
#include "include/jitrun_answers.h"
#include "include/jitrun_batch.h"
#include "include/jitrun_grammar.h"
#include "runtime/session/session.h"
#include "runtime/session/session_limits.h"
#include "tests/runtime/tale_model.h"
#include "tests/support/shared.h"

enum { CONTEXT = 256, MAX = 120 };

static const char *const prompts[] = { "Once upon a time there was a king. Once upon a time there was a",
	                               "Once upon a time there was a king. Once upon a time there was a<think>" };
static int32_t prompt_ids[CONTEXT];
static size_t n_prompt;
static uint64_t random_state = 7;

static unsigned draw(unsigned below)
{
	random_state = random_state * 6364136223846793005U + 1442695040888963407U;
	return (unsigned)(random_state >> 33) % below;
}

static void use_prompt(bool opened)
{
	int32_t *ids;

	assert_int_equal(jit_model_tokenize(model, prompts[opened], strlen(prompts[opened]), 1, 0, &ids, &n_prompt,
	                                    NULL),
	                 JIT_OK);
	memcpy(prompt_ids, ids, n_prompt * sizeof *ids);
	free(ids);
}

static jit_session *alone(int speculate, const jit_sampling *p)
{
	jit_error err = { 0 };
	jit_session *s = jit_session_open(
		model, &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .speculate = speculate, .sampling = p),
		&err);

	if (!s)
		fail_msg("%s", err.message);
	must(jit_session_feed(s, prompt_ids, n_prompt, &err), &err);
	return s;
}

static void form(jit_session *s, const char *regex, const struct session_lead *lead)
{
	struct error e = { 0 };
	jit_error err = { 0 };

	must(jit_session_set_grammar(s, JIT_GRAMMAR_REGEX, regex, strlen(regex), &err), &err);
	assert_true(session_grammar_lead(s, lead, &e));
}

/* Feeds text, cut where chance has it; false: some of it was refused. */
static bool feed(jit_session *s, const char *text)
{
	const size_t n = strlen(text);
	jit_error err = { 0 };

	for (size_t at = 0, part; at < n; at += part) {
		part = 1 + draw((unsigned)(n - at));
		if (jit_session_feed_text(s, text + at, part, 1, &err) != JIT_OK) {
			assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
			assert_string_equal(err.message, "the grammar does not allow this token here");
			return false;
		}
	}
	return true;
}

static const struct session_lead inside = { .inside = true }, hybrid = { .may = 3 /* <think>, <thinking> */ };

static const struct text {
	const struct session_lead *lead;
	const char *regex, *text;
	int complete; /* 1: it is; 0: it goes on; -1: it is refused */
} texts[] = {
	{ &inside, "yes|no", "why", 0 },
	{ &inside, "yes|no", "why</think>yes", 1 },
	{ &inside, "yes|no", "</think>no", 1 },
	{ &inside, "yes|no", "yes</thin</think", 0 },
	{ &inside, "yes|no", "a<b</</think>\n\nno", 1 },
	{ &inside, "yes|no", "<think></thinking></think> ye", 0 },
	{ &inside, "yes|no", "why</think>maybe", -1 },
	{ &inside, "yes|no", "why</think>yes</think>", -1 },
	{ &inside, "yes|no", "</think>y es", -1 },
	{ &inside, "( |\n)*\\{7\\}", "</think>\n \n{7}", 1 },
	{ &inside, "a*", "</think>", 1 },
	{ &hybrid, "yes|no", "yes", 1 },
	{ &hybrid, "yes|no", "n", 0 },
	{ &hybrid, "yes|no", "<thi", 0 },
	{ &hybrid, "yes|no", "<think>yes", 0 },
	{ &hybrid, "yes|no", "<think>why</think>\nyes", 1 },
	{ &hybrid, "yes|no", "<thinking>why</think></thinking>no", 1 },
	{ &hybrid, "yes|no", "<thought>", -1 },
	{ &hybrid, "yes|no", "yes<think>", -1 },
	{ &hybrid, "yes|no", "<thin yes", -1 },
	{ &hybrid, "<?yes|<thirty>", "<yes", 1 },
	{ &hybrid, "<?yes|<thirty>", "<thirty>", 1 },
	{ &hybrid, "<?yes|<thirty>", "<think><yes</think><yes", 1 },
	{ &hybrid, "<think>.*", "<think>a", 0 },
	{ &hybrid, "<think>.*", "<think>a</think><think>b", 1 },
	{ &hybrid, "<th.*", "<though", 1 },
	{ &hybrid, "a*", "", 1 },
};

static void test_texts(void **state)
{
	use_prompt(false);
	jit_session *s = alone(JIT_SPECULATE_OFF, NULL);
	jit_error err = { 0 };
	(void)state;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		const struct text *t = &texts[i];
		for (int round = 0; round < 12; round++) {
			form(s, t->regex, t->lead);
			bool taken = feed(s, t->text);
			if (taken != (t->complete >= 0) || (taken && jit_session_grammar_complete(s) != t->complete))
				fail_msg("\"%s\" by \"%s\": taken %d, complete %d", t->text, t->regex, taken,
				         jit_session_grammar_complete(s));
			/* Back to anywhere, and the same again. */
			const size_t have = jit_session_length(s),
				     to = n_prompt + draw((unsigned)(have - n_prompt + 1));
			int32_t ids[CONTEXT];
			memcpy(ids, jit_session_ids(s), have * sizeof *ids);
			must(jit_session_rewind(s, to, &err), &err);
			must(jit_session_feed(s, ids + to, have - to, &err), &err);
			if (taken)
				assert_int_equal(jit_session_grammar_complete(s), t->complete);
			must(jit_session_set_grammar(s, JIT_GRAMMAR_NONE, NULL, 0, &err), &err);
			must(jit_session_rewind(s, n_prompt, &err), &err);
		}
	}
	jit_session_close(s);
}

/* ---- what is chosen */

static struct session_limits *budget_of(int64_t budget, const char *message)
{
	struct error e = { 0 };
	struct session_limits *l = session_limits_open(
		model, &(struct session_limits_options){ .budget = budget, .message = message }, &e);

	assert_non_null(l);
	return l;
}

/* Up to an end token, or where nothing can follow. */
static size_t generate(jit_session *s, int32_t *ids, size_t max)
{
	jit_error err = { 0 };
	size_t n = 0;

	while (n < max && jit_session_next(s, &ids[n], &err) == JIT_OK && !jit_model_is_end(model, ids[n]))
		n++;
	return n;
}

static size_t generate_in_batch(const char *regex, const struct session_lead *lead, const struct session_limits *l,
                                const jit_sampling *p, int32_t *ids)
{
	struct error e = { 0 };
	jit_error err = { 0 };
	jit_batch *b = jit_batch_open(model, &JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1), &err);
	jit_session *s = jit_batch_session(b, p, &err), *other = jit_batch_session(b, p, &err), *ready[2];
	size_t have = 0, n;
	bool over = false;
	int32_t id;

	must(jit_session_submit(s, prompt_ids, n_prompt, NULL, &err), &err);
	must(jit_session_submit(other, prompt_ids, n_prompt / 2, NULL, &err), &err);
	form(s, regex, lead);
	assert_true(session_set_limits(s, l, &e));
	while (!over && have < MAX) {
		must(jit_batch_step(b, ready, 2, &n, &err), &err);
		for (size_t i = 0; i < n && !over; i++) {
			over = jit_session_next(ready[i], &id, &err) != JIT_OK ||
			       (ready[i] == s && jit_model_is_end(model, id));
			if (ready[i] == s && !over)
				ids[have++] = id;
		}
	}
	jit_session_close(s);
	jit_session_close(other);
	jit_batch_close(b);
	return have;
}

static char *text_of(const int32_t *ids, size_t n)
{
	jit_error err = { 0 };
	size_t bytes;
	char *text = jit_model_detokenize(model, ids, n, &bytes, &err);

	assert_non_null(text);
	return text;
}

/* The same tokens in all ways; the text is of the lead. */
static char *check_all_ways(const char *regex, const struct session_lead *lead, const struct session_limits *l,
                            const jit_sampling *p)
{
	static const int drafts[] = { JIT_SPECULATE_OFF, 4, JIT_SPECULATE_AUTO };
	int32_t first[MAX], ids[MAX];
	struct error e = { 0 };
	jit_error err = { 0 };
	size_t n = 0;

	use_prompt(lead->inside);
	for (int way = 0; way < 3; way++) {
		jit_session *s = alone(drafts[way], p);
		form(s, regex, lead);
		assert_true(session_set_limits(s, l, &e));
		size_t have = generate(s, way ? ids : first, MAX);
		n = way ? n : have;
		assert_int_equal(have, n);
		assert_memory_equal(way ? ids : first, first, n * sizeof *ids);
		/* Again from everywhere. */
		for (size_t back = 1; back < n; back += 1 + n / 8) {
			must(jit_session_rewind(s, n_prompt + back - 1, &err), &err);
			must(jit_session_feed(s, first + back - 1, 1, &err), &err);
			assert_int_equal(generate(s, ids, MAX - back), n - back);
			assert_memory_equal(ids, first + back, (n - back) * sizeof *ids);
		}
		jit_session_close(s);
	}
	assert_int_equal(generate_in_batch(regex, lead, l, p, ids), n);
	assert_memory_equal(ids, first, n * sizeof *ids);
	return text_of(first, n);
}

static size_t tokens(const char *text, int32_t *ids)
{
	int32_t *made;
	size_t n;

	assert_int_equal(jit_model_tokenize(model, text, strlen(text), 0, 0, &made, &n, NULL), JIT_OK);
	memcpy(ids, made, n * sizeof *ids);
	free(made);
	return n;
}

static void test_choices(void **state)
{
	int32_t first[16], behind[16];
	struct session_lead opened = { .may = 1, .first = first, .behind = behind };
	unsigned reasoned = 0;
	(void)state;

	assert_int_equal(tokens("<", first), 1);
	const int32_t mark_begins = first[0];
	opened.n_first = tokens("[[", first);
	opened.n_behind = tokens("((", behind);
	for (uint64_t seed = 1; seed <= (test_quick() ? 3 : 20); seed++) {
		const jit_sampling p = JIT_SAMPLING(.temperature = 1, .seed = seed);
		const jit_logit_bias like = { mark_begins, 60 };
		const jit_sampling opens =
			JIT_SAMPLING(.temperature = 1, .seed = seed, .logit_bias = &like, .n_logit_bias = 1);
		const int64_t budget = (int64_t)(seed * 5 % 12);
		struct session_limits *l = budget_of(budget, seed % 2 ? NULL : " Enough.");
		char *text = check_all_ways("\\{\"x\":(yes|no)\\}", &inside, l, &p);
		const char *mark = strstr(text, "</think>");
		assert_non_null(mark);
		assert_true(seed % 2 || (mark >= text + 8 && memcmp(mark - 8, " Enough.", 8) == 0));
		mark += strlen("</think>") + strspn(mark + strlen("</think>"), " \n\t\r");
		assert_true(strcmp(mark, "{\"x\":yes}") == 0 || strcmp(mark, "{\"x\":no}") == 0);
		free(text);
		text = check_all_ways("yes|no", &hybrid, l, &p);
		assert_true(strcmp(text, "yes") == 0 || strcmp(text, "no") == 0 || strstr(text, "</think"));
		free(text);
		/* A form that begins with the mark's first letter is as free to go either way. */
		text = check_all_ways("yes|no", &hybrid, l, &opens);
		reasoned += strncmp(text, "<think", 6) == 0;
		assert_true(strstr(text, "yes") || strstr(text, "no"));
		free(text);
		text = check_all_ways("yes|no", &opened, l, seed % 2 ? &p : &opens);
		const char *at = strstr(text, strncmp(text, "[[", 2) == 0 ? "[[" : "((");
		if (!at)
			fail_msg("%s", text);
		assert_true(at && (strcmp(at + 2, "yes") == 0 || strcmp(at + 2, "no") == 0));
		free(text);
		session_limits_close(l);
	}
	assert_true(reasoned > 0);
}

/* Of the reasoning no token is forbidden but those that end answers, and those that would go on behind its mark. */
static void test_unbound(void **state)
{
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };
	int32_t id;
	(void)state;

	use_prompt(false);
	jit_model_get_info(model, &info, &err);
	for (int32_t want = 0; want < info.vocab; want += test_quick() ? 13 : 1) {
		jit_logit_bias bias[] = { { want, 1e4f } };
		const jit_sampling p = JIT_SAMPLING(.temperature = 0, .logit_bias = bias, .n_logit_bias = 1);
		jit_session *s = alone(JIT_SPECULATE_OFF, &p);
		form(s, "yes|no", &inside);
		must(jit_session_next(s, &id, &err), &err);
		if ((id == want) == (jit_model_is_end(model, want) != 0))
			fail_msg("token %d was asked for, and %d chosen", want, id);
		jit_session_close(s);
	}
}

/* ---- as callers set it */

static const char reasons[] = "{{ '<think>' }}{{ '</think>' }}";

/* The public function chooses as the session's own does. */
static void begin_grammar(jit_session *s, bool opened, const char *regex, const char *template_text,
                          const char *opening)
{
	const char *prompt = prompts[opened];
	jit_error err = { 0 };

	must(jit_session_begin_grammar(
		     s,
		     &JIT_GRAMMAR_OPTIONS(.kind = JIT_GRAMMAR_REGEX, .text = regex, .n = strlen(regex),
	                                  .behind_reasoning = 1, .prompt = prompt, .n_prompt = strlen(prompt),
	                                  .template_text = template_text, .opening = opening),
		     &err),
	     &err);
}

static void test_public(void **state)
{
	static const struct {
		bool opened;
		const char *regex, *template_text, *opening;
		struct session_lead lead; /* the same in other words */
	} ways[] = {
		{ false, "yes|no", reasons, NULL, { .may = 1 } },
		{ false, "yes|no", NULL, NULL, { 0 } }, /* the model has no template */
		{ false, "yes|no", "", NULL, { 0 } },
		{ true, "yes|no", reasons, NULL, { .inside = true } },
		{ true, "yes|no", "", NULL, { .inside = true } },
		{ true, "yes|no", NULL, "[[", { .inside = true } },
		{ false, "yes|no", reasons, "[[", { .may = 1 } },
		{ false, "yes|no", "", "[[", { 0 } },
		{ true, "<think>[a-z ]{3}</think>(yes|no)", reasons, NULL, { 0 } }, /* is about all of it */
	};
	int32_t opening[16], first[MAX], ids[MAX];
	unsigned free_ones = 0;
	(void)state;

	const size_t n_opening = tokens("[[", opening);
	for (uint64_t seed = 1; seed <= (test_quick() ? 2 : 8); seed++)
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
			const jit_sampling p = JIT_SAMPLING(.temperature = 1, .seed = seed);
			struct session_limits *l = budget_of((int64_t)seed * 3, NULL);
			struct session_lead lead = ways[i].lead;
			struct error e = { 0 };
			size_t n[2];
			if (ways[i].opening) {
				lead.first = lead.behind = opening;
				lead.n_first = lead.n_behind = n_opening;
			}
			use_prompt(ways[i].opened);
			for (int way = 0; way < 2; way++) {
				jit_session *s = alone(JIT_SPECULATE_OFF, &p);
				if (way)
					begin_grammar(s, ways[i].opened, ways[i].regex, ways[i].template_text,
					              ways[i].opening);
				else
					form(s, ways[i].regex, &lead);
				assert_true(session_set_limits(s, l, &e));
				n[way] = generate(s, way ? ids : first, MAX);
				jit_session_close(s);
			}
			assert_int_equal(n[0], n[1]);
			assert_memory_equal(first, ids, n[0] * sizeof *ids);
			char *text = text_of(ids, n[1]);
			free_ones += strncmp(text, "yes", 3) != 0 && strncmp(text, "no", 2) != 0;
			free(text);
			session_limits_close(l);
		}
	assert_true(free_ones > 0);
}

/* What is wrong is said, and the session keeps the grammar that it had. */
static void test_public_errors(void **state)
{
	static const struct {
		jit_grammar_options o;
		const char *says;
	} wrong[] = {
		{ { .kind = 77 }, "kind: 77 is not one of" },
		{ { .kind = JIT_GRAMMAR_REGEX }, "text is NULL" },
		{ { .kind = JIT_GRAMMAR_REGEX, .text = "(", .n = 1 }, "" },
		{ { .kind = JIT_GRAMMAR_REGEX, .text = "a", .n = 1, .behind_reasoning = 1, .template_name = "none" },
		  "none" },
		{ { .kind = JIT_GRAMMAR_REGEX,
		    .text = "a",
		    .n = 1,
		    .behind_reasoning = 1,
		    .template_name = "none",
		    .template_text = "" },
		  "template_name" },
	};
	jit_error err = { 0 };
	(void)state;

	use_prompt(false);
	jit_session *s = alone(JIT_SPECULATE_OFF, NULL);
	form(s, "yes|no", &(struct session_lead){ .may = 0 });
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		jit_grammar_options o = wrong[i].o;
		o.size = sizeof o;
		assert_int_not_equal(jit_session_begin_grammar(s, &o, &err), JIT_OK);
		if (!strstr(err.message, wrong[i].says))
			fail_msg("\"%s\", expected \"%s\"", err.message, wrong[i].says);
		assert_int_equal(jit_session_grammar_complete(s), 0);
	}
	must(jit_session_begin_grammar(s, &JIT_GRAMMAR_OPTIONS(.kind = JIT_GRAMMAR_NONE), &err), &err);
	assert_int_equal(jit_session_grammar_complete(s), -1);
	jit_session_close(s);
}

/* Whether a call that is forced has reasoning before it: by the prompt's end and the template's marks. */
static void test_forced_calls(void **state)
{
	static const struct {
		const char *template_text, *prompt;
		int behind;
	} ways[] = {
		{ "<tool_call>", NULL, 0 },
		{ "<tool_call>", "user: add", 0 },
		{ "<tool_call>", "user: add <think>\n", 1 },
		{ "<tool_call><think></think>", NULL, 0 },
		{ "<tool_call><think></think>", "user: add", 1 },
		{ "<tool_call><think></think>", "user: add<think>\n\n</think>\n\n", 0 },
		{ "<|channel|>final<|message|><|channel|>analysis<|message|>", "<|start|>assistant", 1 },
	};
	static const char one_tool[] = "[{\"function\":{\"name\":\"f\"}}]";
	(void)state;

	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		const char *prompt = ways[i].prompt;
		jit_forced_call f = JIT_FORCED_CALL();
		const jit_forced_options o =
			JIT_FORCED_OPTIONS(.tools = one_tool, .template_text = ways[i].template_text, .prompt = prompt,
		                           .n_prompt = prompt ? strlen(prompt) : 0);
		assert_int_equal(jit_call_force(model, &o, &f, NULL), JIT_OK);
		if (f.behind_reasoning != ways[i].behind)
			fail_msg("%s by %s: %d", prompt, ways[i].template_text, f.behind_reasoning);
		jit_forced_call_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),         cmocka_unit_test(test_choices),
		cmocka_unit_test(test_unbound),       cmocka_unit_test(test_public),
		cmocka_unit_test(test_public_errors), cmocka_unit_test(test_forced_calls),
	};

	return cmocka_run_group_tests(tests, open_model, close_model);
}
