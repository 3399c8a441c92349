/* tests/programs/t_think.c - reasoning and answer, however the text is cut into pieces: the same parts as of the whole
 * text, nothing lost, and nothing held back longer than it must be. Then the option --think of the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "answers/think.h"
#include "tests/support/pty.h"
#include "tests/support/shared.h"

struct answer {
	const char *prompt, *reasoning, *answer;
};

static const struct answer answers[] = {
	{ "", "", "" },
	{ "", "", "plain text" },
	{ "", "", " \n" },
	{ "", "<think>why</think>\n\n", "because" },
	{ "", "\n <think>why</think>", "because" },
	{ "", "\r\n\t<think>why</think>\r\n", "because" },
	{ "", "<think></think>\n", "now" },
	{ "", "<think>a </thin b </think ></think>", "c" },
	{ "", "<think>never closed </thi", "" },
	{ "", "<think>never closed", "" },
	{ "", "<thinking>two</thinking> ", "kinds <think>text</think>" },
	{ "", "[THINK]hm[/THINK]", "so" },
	{ "", "<|START_THINKING|>hm<|END_THINKING|>", "so" },
	{ "", "\xe2\x97\x81think\xe2\x96\xb7hm\xe2\x97\x81/think\xe2\x96\xb7", "so" },
	{ "", "<think>a</think>", "<think>b</think>" },
	{ "", "", "<thin" },
	{ "", "", "< think>no</think>" },
	{ "", "", "first <think>no</think>" },
	{ "", "", "</think>no" },
	{ "user: <think>\n", "inside</think>\n", "out" },
	{ "<think>", "inside", "" },
	{ "<think>\n\n</think>\n\n", "", "out" },
	{ "<think> and more", "", "out" },
};

struct parts {
	char reasoning[200], answer[200];
};

static void put(struct think *t, const char *text, size_t n, struct parts *p)
{
	struct think_parts got;

	assert_true(think_take(t, text, n, &got));
	if (got.n_reasoning)
		strncat(p->reasoning, got.reasoning, got.n_reasoning);
	if (got.n_answer)
		strncat(p->answer, got.answer, got.n_answer);
}

static void every_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		const struct answer *a = &answers[i];
		char text[400];
		size_t n = (size_t)snprintf(text, sizeof text, "%s%s", a->reasoning, a->answer);
		struct think t = { 0 };
		for (size_t x = 0; x <= n; x++)
			for (size_t y = x; y <= n; y++) {
				struct parts p = { "", "" };
				think_begin(&t, a->prompt, strlen(a->prompt));
				put(&t, text, x, &p);
				put(&t, text + x, y - x, &p);
				put(&t, text + y, n - y, &p);
				put(&t, NULL, 0, &p);
				if (strcmp(p.reasoning, a->reasoning) != 0 || strcmp(p.answer, a->answer) != 0)
					fail_msg("\"%s\" cut at %zu and %zu: \"%s\" and \"%s\"", text, x, y,
					         p.reasoning, p.answer);
			}
		think_end(&t);
	}
}

static void nothing_is_held_in_vain(void **state)
{
	struct think t = { 0 };
	struct parts p = { "", "" };
	(void)state;

	think_begin(&t, "", 0);
	put(&t, "<th", 3, &p);
	assert_string_equal(p.reasoning, "");
	put(&t, "ink>ab", 6, &p);
	assert_string_equal(p.reasoning, "<think>ab");
	put(&t, "c</", 3, &p);
	assert_string_equal(p.reasoning, "<think>abc");
	put(&t, "d", 1, &p);
	assert_string_equal(p.reasoning, "<think>abc</d");
	put(&t, "</think>x<", 10, &p);
	assert_string_equal(p.answer, "x<");
	think_begin(&t, "", 0);
	p = (struct parts){ "", "" };
	put(&t, " t", 2, &p);
	assert_string_equal(p.answer, " t");
	think_end(&t);
}

/* ---- the program: the prompt opens the reasoning, and the story goes on in it */

static void run(const char *options, char out[4000])
{
	char model[1024], command[2048];

	snprintf(command, sizeof command, "./jitrun '%s' --no-cache -q -t 1 --tune off --temp 0 -n 8 %s < /dev/null",
	         source_path(model, "models/tale-q8_0.gguf"), options);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	out[fread(out, 1, 3999, f)] = 0;
	assert_int_equal(pclose(f), 0);
}

/* A member of the JSON line; "": there is none. */
static const char *member(const char *line, const char *name, char out[1000])
{
	json_t *o = json_loads(line, 0, NULL);
	const char *text = json_string_value(json_object_get(o, name));

	assert_non_null(o);
	snprintf(out, 1000, "%s", text ? text : "");
	json_decref(o);
	return out;
}

static void program(void **state)
{
	char shown[4000], out[4000], text[1000], reasoning[1000];
	(void)state;

	run("-p 'Once <think>'", shown);
	assert_true(strlen(shown) > 8 && !strchr(shown, '\33'));
	run("-p 'Once <think>' --think hide", out);
	assert_string_equal(out, "");
	run("-p 'Once <think>' --think show", out);
	assert_string_equal(out, shown);
	run("-p 'Once <think>' --json", out);
	assert_string_equal(member(out, "text", text), "");
	assert_string_equal(member(out, "reasoning", reasoning), shown);
	run("-p 'Once <think>' --json --think hide", out);
	assert_string_equal(member(out, "text", text), "");
	assert_string_equal(member(out, "reasoning", reasoning), "");
	run("-p 'Once <think>' --json --think show", out);
	assert_string_equal(member(out, "text", text), shown);
	assert_string_equal(member(out, "reasoning", reasoning), "");
	run("-p 'Once <think> </think>' --think hide", out);
	assert_true(strlen(out) > 8);
}

/* On a terminal it is dimmed, unless NO_COLOR says otherwise, and what follows it is not. */
static void terminal(void **state)
{
	char model[1024];
	char *const argv[] = { "./jitrun", model, "--no-cache", "-q",  "-t",        "1",        "--temp",       "0",
		               "-n",       "4",   "--tune",     "off", "--no-chat", "--prompt", "Once <think>", NULL };
	(void)state;

	source_path(model, "models/tale-q8_0.gguf");
	for (int plain = 0; plain < 2; plain++) {
		struct pty t;
		setenv("NO_COLOR", plain ? "1" : "", 1);
		assert_true(pty_start(&t, 80, argv));
		pty_wait_for(&t, 0, "\1never\1");
		assert_int_equal(strncmp(t.text, "\33[2m", 4) == 0, !plain);
		assert_int_equal(strstr(t.text, "\33[0m") != NULL, !plain);
		assert_true(t.n > 4);
		assert_int_equal(pty_end(&t), 0);
	}
}

/* By which marks the models of a template may reason, and whether the prompt's end has begun or ended it. */
static void before_an_answer(void **state)
{
	static const char thinks[] = "{{ m }}<think>", both[] = "<think>{{ m }}</think>[THINK]";
	static const struct {
		const char *prompt, *template;
		int inside, pair; /* pair: inside */
		unsigned may;
	} rows[] = {
		{ "a", "{{ m }}", 0, 0, 0 },
		{ "a", NULL, 0, 0, 0 },
		{ "a", thinks, 0, 0, 1 },
		{ "a", "{{ m }}</think>", 0, 0, 1 },
		{ "a", both, 0, 0, 1 | 1 << 5 },
		{ "a", "{{ m }}<|end|>", 0, 0, 0 }, /* of Phi, which does not reason */
		{ "a", "<|channel|>analysis<|message|>{{ m }}<|end|>", 0, 0, 1 << 8 },
		{ "a", "{{ m }}<channel|>", 0, 0, 1 << 9 },
		{ "a<think>", thinks, 1, 0, 0 },
		{ "a<think>\r\n", NULL, 1, 0, 0 },
		{ "a[THINK]\n", thinks, 1, 5, 0 },
		{ "a<think>\n</think>\n\n", both, 0, 0, 0 },
		{ "a<think>\n</think> b", both, 0, 0, 1 | 1 << 5 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct think_before b = think_before(rows[i].prompt, strlen(rows[i].prompt), rows[i].template);
		if (b.inside != rows[i].inside || b.may != rows[i].may || (int)b.pair != rows[i].pair)
			fail_msg("row %zu: %d, pair %u, may %x", i, b.inside, b.pair, (unsigned)b.may);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_cut), cmocka_unit_test(before_an_answer),
		                            cmocka_unit_test(nothing_is_held_in_vain), cmocka_unit_test(program),
		                            cmocka_unit_test(terminal) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
