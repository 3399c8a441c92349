/* server/talk/history_probe.c - what a model's template makes of conversations of every kind, tried when it is opened.
 *
 * Owns: the table of probes. A probe is a conversation whose texts are words that must come out, and the repairs that
 * may help where it is refused, or where a word is lost: the fewest that do are kept. What comes out as it is needs
 * none, whatever else could be made of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "server/talk/history.h"

#define USER "{\"role\":\"user\",\"content\":\"word_user\"}"
#define SYSTEM "{\"role\":\"system\",\"content\":\"word_system\"}"
#define LATER "{\"role\":\"system\",\"content\":\"word_later\"}"
#define ANSWER "{\"role\":\"assistant\",\"content\":\"word_answer\"}"
#define FUNCTION(arguments) "\"type\":\"function\",\"function\":{\"name\":\"word_call\",\"arguments\":" arguments "}"
#define CALL_OF(content, arguments) \
	"{\"role\":\"assistant\",\"content\":\"" content \
	"\",\"tool_calls\":[{\"id\":\"call_0123456789\"," FUNCTION(arguments) "}]}"
#define CALL(content) CALL_OF(content, "{\"word_key\":\"word_value\"}")
#define RESULT "{\"role\":\"tool\",\"tool_call_id\":\"call_0123456789\",\"content\":\"word_result\"}"
#define TWO_CALLS \
	"{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"call_0123456789\"," FUNCTION( \
		"{\"word_key\":\"word_value\"}") "},{\"id\":\"call_9876543210\",\"type\":\"function\",\"function\":{" \
						 "\"name\":\"word_second\",\"arguments\":{\"word_other\":3}}}]}"
#define SECOND "{\"role\":\"tool\",\"tool_call_id\":\"call_9876543210\",\"content\":\"word_last\"}"

enum {
	OF_CALLS = HISTORY_TEXT_ARGUMENTS | HISTORY_NULL_CONTENT | HISTORY_RESULT_NAMES | HISTORY_SHORT_IDS,
	OPTIONAL = HISTORY_SPLIT_CONTENT | HISTORY_RESULT_NAMES | HISTORY_SHORT_IDS,
	NEEDS_TOOLS = 1, /* the probe says nothing without them */
	MAY_LOSE = 2     /* a word that is lost is no reason for a repair */
};

static const char usual_tool[] =
	"\"description\":\"word_what\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\","
	"\"description\":\"\"}},\"required\":[]}";

static const struct probe {
	const char *messages, *tool; /* tool: the members of its function, behind the name */
	const char *words[8];
	unsigned repairs, last; /* last: those that are tried where all others do not help */
	unsigned flags;
} probes[] = {
	{ "[" USER "]", NULL, { "word_user" }, HISTORY_PARTS, 0, 0 },
	{ "[" USER "]", usual_tool, { "word_user" }, HISTORY_FLAT_TOOLS, 0, NEEDS_TOOLS },
	{ "[" SYSTEM "," USER "]", NULL, { "word_system", "word_user" }, HISTORY_NO_SYSTEM, 0, 0 },
	{ "[" SYSTEM "," LATER "," USER "]",
	  NULL,
	  { "word_system", "word_later", "word_user" },
	  HISTORY_JOIN_FIRST,
	  0,
	  0 },
	{ "[" SYSTEM "," USER "," ANSWER "," LATER "," USER "]",
	  NULL,
	  { "word_system", "word_later", "word_user", "word_answer" },
	  HISTORY_JOIN_SYSTEM,
	  0,
	  0 },
	{ "[" USER "," LATER "," ANSWER "," USER "]",
	  NULL,
	  { "word_later", "word_user", "word_answer" },
	  HISTORY_JOIN_SYSTEM,
	  0,
	  0 },
	{ "[" USER "," ANSWER "," USER "," LATER "]",
	  NULL,
	  { "word_later", "word_user", "word_answer" },
	  HISTORY_JOIN_SYSTEM,
	  0,
	  0 },
	{ "[" USER ",{\"role\":\"user\",\"content\":\"word_more\"}]",
	  NULL,
	  { "word_user", "word_more" },
	  HISTORY_JOIN_NEIGHBOURS,
	  0,
	  0 },
	{ "[" USER "," ANSWER ",{\"role\":\"assistant\",\"content\":\"word_more\"}," USER "]",
	  NULL,
	  { "word_user", "word_answer", "word_more" },
	  HISTORY_JOIN_NEIGHBOURS,
	  0,
	  0 },
	{ "[" ANSWER "," USER "]", NULL, { "word_answer", "word_user" }, HISTORY_FIRST_USER, 0, 0 },
	{ "[" SYSTEM "]", NULL, { "word_system" }, HISTORY_SOME_USER, 0, 0 },
	{ "[" USER "]",
	  "\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}",
	  { "word_user" },
	  HISTORY_FILL_TOOLS,
	  0,
	  NEEDS_TOOLS },
	{ "[" USER "]", "\"description\":\"word_what\"", { "word_user" }, HISTORY_FILL_TOOLS, 0, NEEDS_TOOLS },
	{ "[" USER "]",
	  "\"description\":\"word_what\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"anyOf\":[{"
	  "\"type\":"
	  "\"string\"},{\"type\":\"null\"}]},\"b\":{\"$ref\":\"#/$defs/c\"},\"c\":{}},\"$defs\":{\"c\":{}}}",
	  { "word_user" },
	  HISTORY_FILL_TOOLS,
	  0,
	  NEEDS_TOOLS },
	{ "[" USER "," CALL("") "," RESULT "]",
	  NULL,
	  { "word_user", "word_call", "word_key\"", "word_value", "word_result" },
	  OF_CALLS,
	  HISTORY_PLAIN_CALLS,
	  0 },
	{ "[" USER "," CALL("word_beside") "," RESULT "]",
	  NULL,
	  { "word_beside", "word_call", "word_key\"", "word_value", "word_result" },
	  OF_CALLS | HISTORY_SPLIT_CONTENT,
	  0,
	  0 },
	{ "[" USER "," TWO_CALLS "," RESULT "," SECOND "]",
	  NULL,
	  { "word_call", "word_key\"", "word_value", "word_result", "word_second", "word_other\"", "word_last" },
	  OF_CALLS | HISTORY_ONE_CALL,
	  0,
	  0 },
	{ "[" USER "," CALL("") "," RESULT "," USER "]",
	  NULL,
	  { "word_call", "word_result" },
	  HISTORY_ANSWERS,
	  0,
	  MAY_LOSE },
	{ "[" USER "," CALL_OF("", "\"word_broken{\"") "," RESULT "]",
	  NULL,
	  { "word_call", "word_broken", "word_result" },
	  HISTORY_MEND_ARGUMENTS,
	  0,
	  0 },
	{ "[" USER ",{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"word_call\","
	  "\"arguments\":{}}}]},{\"role\":\"tool\",\"content\":\"word_result\"}]",
	  NULL,
	  { "word_call", "word_result" },
	  HISTORY_RESULT_NAMES,
	  0,
	  MAY_LOSE },
};
struct tried {
	bool rendered; /* it was not refused */
	bool whole;    /* and all words came out */
};

/* A word that ends with a quote is a key of JSON: Python's way of writing it does not count, other forms do. */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word) - 1;
	char bare[40], python[42];

	if (word[n] != '"')
		return strstr(text, word) != NULL;
	memcpy(bare, word, n);
	bare[n] = 0;
	memcpy(python + 1, bare, n);
	python[0] = python[n + 1] = '\'';
	python[n + 2] = 0;
	return strstr(text, bare) && !strstr(text, python);
}

static struct tried try(const struct served *m, const struct probe *p, const json_t *messages, const json_t *tools,
                        unsigned repairs)
{
	char *text = json_write(history_messages(messages, repairs)),
	     *told = tools ? json_write(history_tools(tools, repairs)) : NULL;
	jit_chat_options o = JIT_CHAT_OPTIONS(.has_now = 1, .now = 951782400, .messages = text, .tools = told,
	                                      .template_text = m->template_text);
	jit_chat chat = JIT_CHAT();
	jit_error err = { 0 };
	struct tried t = { 0 };

	if (text && (told || !tools))
		t.rendered = jit_chat_render(m->model, &o, &chat, &err) == JIT_OK;
	t.whole = t.rendered;
	for (size_t i = 0; t.whole && i < sizeof p->words / sizeof *p->words && p->words[i]; i++)
		t.whole = has_word(chat.text, p->words[i]);
	jit_chat_free(&chat);
	free(text);
	free(told);
	return t;
}

static unsigned bits_of(unsigned set)
{
	unsigned n = 0;

	for (; set; set &= set - 1)
		n++;
	return n;
}

/* The fewest of these repairs, beside those there are, with which the probe comes out, or at least is not refused; 0:
 * nothing helps. */
static unsigned search(const struct served *m, const struct probe *p, const json_t *messages, const json_t *tools,
                       unsigned had, unsigned mine, bool whole)
{
	for (unsigned n = 1; n <= bits_of(mine); n++)
		for (unsigned set = mine; set; set = (set - 1) & mine) {
			if (bits_of(set) != n)
				continue;
			struct tried t = try(m, p, messages, tools, had | set);
			if (whole ? t.whole : t.rendered)
				return set;
		}
	return 0;
}

static void probe(struct served *m, const struct probe *p, bool with, const json_t *messages, const json_t *tools)
{
	unsigned *repairs = &m->repairs[with], *rescues = &m->rescues[with];
	struct tried t = try(m, p, messages, tools, *repairs);

	if (t.whole || (t.rendered && p->flags & MAY_LOSE))
		return;
	if (t.rendered) {
		/* A template that leaves out what stands beside calls, or whose call it is, does so on purpose. */
		*repairs |= search(m, p, messages, tools, *repairs, p->repairs & ~(unsigned)OPTIONAL, true);
		return;
	}
	unsigned had = *repairs | *rescues;
	t = try(m, p, messages, tools, had);
	if (t.whole || (t.rendered && p->flags & MAY_LOSE))
		return;
	unsigned set = search(m, p, messages, tools, had, p->repairs, true);
	/* Better something of it than nothing. */
	if (!set && !t.rendered)
		set = search(m, p, messages, tools, had, p->repairs, false);
	if (!set && !t.rendered)
		set = search(m, p, messages, tools, had, p->repairs | p->last, false);
	*rescues |= set;
}

/* A text of this file. NULL: no memory. */
static json_t *read_own(const char *text)
{
	const size_t n = strlen(text);

	return json_read(text, n, n, "a probe", &(struct error){ 0 });
}

/* A request's tools, as the probe has it. */
static json_t *tools_for(const struct probe *p)
{
	const char *members = p->tool ? p->tool : usual_tool;
	static const char head[] = "[{\"type\":\"function\",\"function\":{\"name\":\"look\",";
	size_t n = strlen(members);
	char *text = malloc(sizeof head + n + 4);

	if (!text)
		return NULL;
	memcpy(text, head, sizeof head - 1);
	memcpy(text + sizeof head - 1, members, n);
	strcpy(text + sizeof head - 1 + n, "}}]");
	json_t *tools = read_own(text);
	free(text);
	return tools;
}

static bool writes_documents(const struct served *m)
{
	jit_chat_options o = JIT_CHAT_OPTIONS(
			.has_now = 1, .now = 951782400, .messages = "[" USER "]", .template_text = m->template_text,
			.variables =
				"{\"documents\":[{\"title\":\"word_title\",\"text\":\"word_text\",\"doc_id\":\"1\"}]}");
	jit_chat chat = JIT_CHAT();
	jit_error err = { 0 };
	bool writes = jit_chat_render(m->model, &o, &chat, &err) == JIT_OK && strstr(chat.text, "word_text");

	jit_chat_free(&chat);
	return writes;
}

void history_probe(struct served *m)
{
	for (int with = 0; with < 2; with++) {
		m->repairs[with] = m->rescues[with] = 0;
		for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
			const struct probe *p = &probes[i];
			json_t *messages = read_own(p->messages), *tools = with ? tools_for(p) : NULL;
			if (messages && (with ? tools != NULL : !(p->flags & NEEDS_TOOLS)))
				probe(m, p, with, messages, tools);
			json_decref(messages);
			json_decref(tools);
		}
	}
	m->writes_documents = writes_documents(m);
}
