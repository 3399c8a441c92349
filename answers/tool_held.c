/* answers/tool_held.c - answers that may call tools: the grammar that leaves all of the text free but the calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers/tool_grammar.h"
#include "base/json_write.h"

/* NULL: no memory. */
static json_t *join(const char *a, const char *b) { return json_sprintf("%s%s", a, b); }

/* An opening, whose texts are taken over. then: NULL: the call follows; begun: NULL: nothing of it stands there. */
static void add(json_t *list, json_t *text, const char *then, json_t *begun)
{
	json_t *o = json_object();

	json_put(o, "text", text);
	if (then && *then)
		json_put(o, "then", json_string(then));
	if (begun)
		json_put(o, "begun", begun);
	json_add(list, o);
}

/* One that stands only at the beginning of the text. */
static void add_first(json_t *list, json_t *text, bool loose, json_t *begun)
{
	json_t *o;

	add(list, text, NULL, begun);
	o = json_array_get(list, json_array_size(list) - 1);
	json_put(o, "first", json_true());
	if (loose)
		json_put(o, "loose", json_true());
}

/* No mark opens them: an answer that begins as a call of such a function is one. */
static void add_bare(json_t *list, json_t *name, const struct tools_row *row)
{
	char *quoted = json_spell(name, JSON_ENCODE_ANY);
	const char *open = row->list ? "[{\"name\":" : "{\"name\":", *own = quoted ? quoted : "";

	add_first(list, quoted ? join(open, own) : NULL, true, join(open, own));
	if (!row->list) /* as Llama mostly writes them */
		add_first(list, join("{\"type\":\"function\",\"name\":", own), true, join(open, own));
	free(quoted);
}

/* The prompt ends with the mark, and behind it may stand another word. */
static void add_opened(json_t *list, const char *name, const struct tools_row *row)
{
	add_first(list, join(name, row->mark[2]), false, join(name, row->mark[2]));
	add(list, json_sprintf("%s%s%s", row->mark[0], name, row->mark[2]), NULL, join(name, row->mark[2]));
}

static json_t *openings(const json_t *watched, enum tools_form form)
{
	static const char element[] = "<function=";
	const struct tools_row *row = &tools_rows[form];
	const char *then = row->body == BODY_JSON ? NULL : tool_grammar_before_name(form);
	json_t *list = json_array(), *function;
	size_t i;

	if (!row->mark[0] || row->opened) {
		json_array_foreach(watched, i, function)
		{
			json_t *name = json_object_get(function, "name");
			if (row->opened)
				add_opened(list, json_string_value(name), row);
			else
				add_bare(list, name, row);
		}
	} else if (form == TOOLS_JSON) { /* a fence alone is a text's */
		add(list, join(row->mark[4], row->mark[0]), NULL, NULL);
		add(list, json_sprintf("%s\n%s", row->mark[4], row->mark[0]), NULL, NULL);
	} else if (form == TOOLS_FUNCTOOLS) { /* so is the word */
		add(list, join(row->mark[0], "["), NULL, json_string("["));
	} else if (row->before_name) {
		add(list, json_string(row->before_name), NULL, NULL);
	} else {
		add(list, json_string(row->mark[0]), then, NULL);
	}
	if (row->body == BODY_FUNCTIONS) /* some models leave the mark out */
		add(list, json_string(element), NULL, NULL);
	return list;
}

/* What closes a call is part of its grammar there, or ends the answer. */
static const char *close_of(enum tools_form form)
{
	const struct tools_row *row = &tools_rows[form];

	return row->body == BODY_INVOKE || form == TOOLS_HARMONY || !row->mark[1] ? "" : row->mark[1];
}

char *tool_grammar_held(const json_t *functions, const json_t *watched, enum tools_form form, bool one,
                        struct error *err)
{
	const struct tools_row *row = &tools_rows[form];
	json_t *o = tool_grammar_object(functions, form, one, err), *spelled;

	if (!o)
		return NULL;
	if (row->body == BODY_JSON)
		json_put(o, "begun", json_string(""));
	if (form == TOOLS_HARMONY || form == TOOLS_KIMI || row->mark[3]) {
		spelled = json_array();
		for (int i = 0; i < TOOLS_TOKENS && row->token[i]; i++)
			json_add(spelled, json_string(row->token[i]));
		if (row->mark[3])
			json_add(spelled, json_string(row->mark[3]));
		json_put(o, "behind_name", json_string(row->mark[2]));
		json_put(o, "gaps",
		         form == TOOLS_HARMONY
		                 ? json_pack("[s, s, s]", " <|constrain|>json", "<|channel|>commentary json",
		                             "<|channel|>commentary <|constrain|>json")
		                 : json_pack("[s]", form == TOOLS_KIMI ? ":" : row->mark[3]));
		if (form != TOOLS_HARMONY)
			json_put(o, "gap_goes_on", json_string(form == TOOLS_KIMI ? "number" : "words"));
		json_put(o, "spelled", spelled);
	}
	json_put(o, "openings", openings(watched, form));
	json_put(o, "close", json_string(close_of(form)));
	char *text = json_write(o);
	if (!text)
		error_set(err, ERROR_MEMORY, "no memory for the grammar of calls");
	return text;
}
