/* tests/chat/t_chat_marks.c - what users write stays marked through every published template, and through each filter,
 * method and operator. Skips, saying so, what is not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/chat/marks.h"

/* Special tokens of the templates' families. Sentinels of three bytes stand around them in what users write. */
static const char *const specials[] = {
	"<|im_start|>",
	"<|im_end|>",
	"<|endoftext|>",
	"<start_of_turn>",
	"<end_of_turn>",
	"<bos>",
	"<eos>",
	"[INST]",
	"[/INST]",
	"<s>",
	"</s>",
	"<<SYS>>",
	"<|eot_id|>",
	"<|begin_of_text|>",
	"<|start_header_id|>",
	"<|end_header_id|>",
	"<|eom_id|>",
	"<|python_tag|>",
	"<|user|>",
	"<|assistant|>",
	"<|system|>",
	"<|end|>",
	"<|start_of_role|>",
	"<|end_of_role|>",
	"<|START_OF_TURN_TOKEN|>",
	"<|END_OF_TURN_TOKEN|>",
	"[TOOL_CALLS]",
	"[AVAILABLE_TOOLS]",
	"[TOOL_RESULTS]",
	"<|start|>",
	"<|message|>",
	"<|channel|>",
	"<|return|>",
	"<|tool_call|>",
	"[gMASK]",
	"<sop>",
	"<|observation|>",
	"<tool_call>",
	"</tool_call>",
	"<think>",
	"</think>",
	"<\357\275\234User\357\275\234>",
	"<\357\275\234Assistant\357\275\234>",
	"<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>",
	"]~b]",
	"[e~[",
	"<seed:bos>",
	"<|im_user|>",
	"<|media_begin|>",
};
#define OPEN "\xee\x80\x81"
#define CLOSE "\xee\x80\x82"

/* Templates take these out of what an assistant said, and may write them anew. */
static bool rewritten(const char *special) { return strstr(special, "think>") != NULL; }

/* From each sentinel to the next, everything is the user's. How often a text was found. */
static unsigned check_marked(const struct chat_text *t, const char *name, const char *special)
{
	uint8_t *mark = marks_of(t);
	unsigned n = 0;

	for (char *p = t->p; (p = strstr(p, OPEN)) != NULL; p += 3) {
		size_t from = (size_t)(p - t->p);
		char *close = strstr(p, CLOSE), *again = strstr(p + 3, OPEN);
		size_t to = close && (!again || close < again) ? (size_t)(close - t->p) + 3 : from + 3;
		for (size_t i = from; i < to; i++)
			if (!mark[i] && !(rewritten(special) && i >= from + 4))
				fail_msg("%s: byte %zu of \"%.*s\" is not marked, which a user wrote", name, i - from,
				         (int)(to - from), p);
		n += memmem(p, to - from, special, strlen(special)) != NULL;
	}
	for (char *p = t->p; (p = strstr(p, CLOSE)) != NULL; p += 3)
		assert_true(mark[p - t->p]);
	free(mark);
	return n;
}

static void test_marks(void **state)
{
	json_t *root = golden_load(CHAT_DATA "jinja_golden2.json.gz"), *row;
	unsigned rendered = 0, found = 0, silent = 0;
	size_t i;
	(void)state;

	json_array_foreach(json_object_get(root, "templates"), i, row)
	{
		const char *name = json_string_value(json_object_get(row, "template"));
		struct chat_template *t = golden_template(name);
		unsigned here = 0;
		for (size_t k = 0; t && k < sizeof specials / sizeof *specials;
		     k += test_quick() ? 1 + (i + k) % 4 : 1) {
			char text[200];
			snprintf(text, sizeof text, " \n" OPEN "a %s b%s" CLOSE "\n ", specials[k], specials[k]);
			for (unsigned shape = 0; shape < SHAPES; shape++) {
				struct chat_text out;
				if (!render(t, row, shape, text, &out))
					continue;
				rendered++;
				here += check_marked(&out, name, specials[k]);
				chat_text_free(&out);
			}
		}
		chat_template_free(t);
		silent += !here;
		found += here;
	}
	if (root) {
		printf("# %u conversations, %u texts of users in them\n", rendered, found);
		assert_true(found > rendered);
		assert_true(silent < 12); /* templates that take no such conversation, or only parts of messages */
	}
	json_decref(root);
}

/* Filters, methods and operators: the text, and with a mark for each byte. The variable u holds "a<|x|>b", the user's.
 */
static void test_operations(void **state)
{
	static const struct {
		const char *template, *text, *mark;
	} rows[] = {
		{ "<{{ u }}>", "<a<|x|>b>", "011111110" },
		{ "{{ u ~ '!' ~ u[1:6] }}", "a<|x|>b!<|x|>", "1111111011111" },
		{ "{{ ('x' + u)|upper }}", "XA<|X|>B", "01111111" },
		{ "{{ u.split('|') | join('+') }}", "a<+x+>b", "1101011" },
		{ "{{ u|replace('x', 'yy') }}", "a<|yy|>b", "11100111" },
		{ "{{ 'xux'|replace('u', u) }}", "xa<|x|>bx", "011111110" },
		{ "{{ u.replace('<|', '') }}", "ax|>b", "11111" },
		{ "{{ '%s-%s' % (u, 1) }}", "a<|x|>b-1", "111111100" },
		{ "{{ '{}{}'.format(u, '|') }}", "a<|x|>b|", "11111110" },
		{ "{{ u|tojson }}", "\"a<|x|>b\"", "111111111" },
		{ "{{ [u]|tojson }}", "[\"a<|x|>b\"]", "01111111110" },
		{ "{{ {'k': u}|tojson }}", "{\"k\": \"a<|x|>b\"}", "0000001111111110" },
		{ "{{ d|tojson }}", "{\"<|k|>\": [1, true, null, 2.5]}", "1111111111111111111111111111111" },
		{ "{{ d }}", "{'<|k|>': [1, True, None, 2.5]}", "1111111111111111111111111111111" },
		{ "{{ [u] }}", "['a<|x|>b']", "01111111110" },
		{ "{{ d.keys()|list|first }}{{ d['<|k|>'][0] + 1 }}", "<|k|>2", "111111" },
		{ "{{ u[::-1] }}{{ u|reverse }}", "b>|x|<ab>|x|<a", "11111111111111" },
		{ "{{ u.strip('ab') }}|{{ u.center(9, '*') }}", "<|x|>|*a<|x|>b*", "111110011111110" },
		{ "{% set v %}({{ u }}){% endset %}{{ v|title }}", "(A<|x|>b)", "011111110" },
		{ "{% macro m(t) %}[{{ t }}]{% endmacro %}{{ m(u) }}", "[a<|x|>b]", "011111110" },
		{ "{% filter upper %}y{{ u }}{% endfilter %}", "YA<|X|>B", "01111111" },
		{ "{% for c in u %}{{ c }},{% endfor %}", "a,<,|,x,|,>,b,", "10101010101010" },
		{ "{{ u|indent(1, true) }}{{ (u ~ '\n' ~ u)|indent(1) }}", " a<|x|>ba<|x|>b\n a<|x|>b",
		  "011111111111111001111111" },
		{ "{{ u|default('q') }}{{ missing|default(u) }}{{ u|string }}", "a<|x|>ba<|x|>ba<|x|>b",
		  "111111111111111111111" },
		{ "{{ u * 2 }}{{ u.partition('x')|join }}", "a<|x|>ba<|x|>ba<|x|>b", "111111111111111111111" },
		{ "{{ [u, 'b']|map('upper')|join('/') }}", "A<|X|>B/B", "111111100" },
		{ "{{ u|e }}", "a&lt;|x|&gt;b", "1111111111111" },
		{ "{{ u|length }}{{ u == 'a' }}{{ m[0].role }}{{ m[1].role }}{{ m[0].content }}", "7Falseuser<|x|>user",
		  "0000000000111111111" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		static const char u[] = "\"a<|x|>b\"", d[] = "{\"<|k|>\": [1, true, null, 2.5]}";
		static const char m[] = "[{\"role\": \"user\", \"content\": \"user\"}, {\"role\": \"<|x|>\"}]";
		const struct chat_variable v[] = { { "u", u, sizeof u - 1, CHAT_USER },
			                           { "d", d, sizeof d - 1, CHAT_USER },
			                           { "m", m, sizeof m - 1, CHAT_MESSAGES } };
		struct error err = { 0 };
		struct chat_text out;
		struct chat_template *t = chat_template_parse(rows[i].template, strlen(rows[i].template), "test", &err);
		if (!t || !chat_render(t, &(struct chat_request){ v, 3, NULL, false }, &out, NULL, &err))
			fail_msg("%s: %s", rows[i].template, err.text);
		assert_string_equal(out.p, rows[i].text);
		uint8_t *mark = marks_of(&out);
		for (size_t k = 0; k < out.n; k++)
			mark[k] += '0';
		assert_string_equal((char *)mark, rows[i].mark);
		free(mark);
		chat_text_free(&out);
		chat_template_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
