/* chat/go_template_turns.c - a conversation through a template in Go's language, as ollama drives it.
 *
 * Owns: which values a template finds. One that looks at .Messages is run once, with all of them. One that does not is
 * run for each turn, with .System, .Prompt and .Response, and for the last one up to .Response, where the model goes
 * on.
 */
#include <string.h>

#include "base/text.h"
#include "chat/go_template.h"

/* What a request says. */
struct given {
	struct value messages, tools, think, other_think, effort, begins, prompt, suffix;
};

/* What a template finds beside messages and tools. */
struct turn {
	const struct text *system, *prompt, *response;
};

static const struct text nothing = { .p = "" };

static void read_given(struct run *r, const struct chat_request *request, struct given *g)
{
	const struct {
		const char *name;
		struct value *to;
	} rows[] = { { "messages", &g->messages },       { "tools", &g->tools },
		     { "enable_thinking", &g->think },   { "thinking", &g->other_think },
		     { "reasoning_effort", &g->effort }, { "add_generation_prompt", &g->begins },
		     { "prompt", &g->prompt },           { "suffix", &g->suffix } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		*rows[i].to = value_of(KIND_ABSENT);
		for (size_t k = 0; k < request->n_variables && !r->failed; k++)
			if (strcmp(request->variable[k].name, rows[i].name) == 0)
				*rows[i].to = json_value(r, &request->variable[k]);
	}
}

/* ---- values */

struct root {
	struct go_pair pair[10];
	size_t n;
};

static void put(struct run *r, struct root *root, const char *name, struct go_value v)
{
	root->pair[root->n++] = (struct go_pair){ text_literal(r, name), v };
}

/* Think, ThinkLevel and IsThinkSet. */
static void put_think(struct run *r, struct root *root, const struct given *g)
{
	const struct value said = g->think.kind == KIND_BOOL ? g->think : g->other_think;
	const bool levelled = g->effort.kind == KIND_TEXT && g->effort.text->n > 0;
	const bool set = said.kind == KIND_BOOL || levelled;
	const bool think = said.kind == KIND_BOOL ? said.truth : levelled && !text_is(g->effort.text, "none");
	const struct text *level = !think ? &nothing : levelled ? g->effort.text : text_literal(r, "medium");

	put(r, root, "Think", go_of_bool(think));
	put(r, root, "ThinkLevel", go_of_text(level));
	put(r, root, "IsThinkSet", go_of_bool(set));
}

static void execute(struct run *r, const struct go_template *t, struct root *root, bool cut)
{
	static const struct text name = { .p = "$", .n = 1 }, response = { .p = "Response", .n = 8 };
	struct go_run g = { .r = r, .t = t, .cut = cut };
	const struct go_value dot = go_map_of(r, &go_map_any, root->pair, root->n);

	if (r->failed || !go_push(&g, &name, dot))
		return;
	go_walk(&g, t->body, dot);
	const struct go_value *last = t->ends_with_response && !r->failed ? go_member(&dot, &response) : NULL;
	if (last)
		go_print(r->out, *last);
}

static void execute_turn(struct run *r, const struct go_template *t, const struct given *given, struct turn *turn,
                         bool cut)
{
	struct root root = { .n = 0 };

	put(r, &root, "System", go_of_text(turn->system));
	put(r, &root, "Prompt", go_of_text(turn->prompt));
	put(r, &root, "Response", go_of_text(turn->response));
	put_think(r, &root, given);
	execute(r, t, &root, cut);
	*turn = (struct turn){ &nothing, &nothing, &nothing };
}

/* ---- messages */

enum { ROLE, CONTENT };

static const struct text *joined(struct run *r, const struct text *a, const struct text *b)
{
	struct build all = { .r = r };

	build_text(&all, a);
	build_string(&all, "\n\n", text_user_at(a, 0));
	build_text(&all, b);
	return build_done(&all);
}

/* Neighbours of one role are one message, but for results of tools. system: the texts of all system messages. */
static struct go_value collate(struct run *r, struct go_value messages, const struct text **system)
{
	struct go_list *l = run_take(r, sizeof *l);
	struct go_value *item = run_take(r, messages.list->n * sizeof *item);
	bool has_system = false;

	*system = &nothing;
	if (!l || !item)
		return messages;
	*l = (struct go_list){ .item = item };
	for (size_t i = 0; i < messages.list->n && !r->failed; i++) {
		const struct go_value *m = &messages.list->item[i], *before = l->n ? &item[l->n - 1] : NULL;
		const struct text *role = m->field[ROLE].text, *content = m->field[CONTENT].text;
		if (text_is(role, "system")) {
			*system = has_system ? joined(r, *system, content) : content;
			has_system = true;
		}
		if (before && text_same(before->field[ROLE].text, role) && !text_is(role, "tool")) {
			struct go_value *f = (struct go_value *)(uintptr_t)before->field;
			f[CONTENT] = go_of_text(joined(r, f[CONTENT].text, content));
		} else {
			item[l->n++] = *m;
		}
	}
	messages.list = l;
	messages.nil = l->n == 0;
	return messages;
}

static bool is_empty(const struct text *t) { return !t || t->n == 0; }

static void take_turns(struct run *r, const struct go_template *t, const struct given *given, struct go_value messages,
                       bool begins)
{
	struct turn turn = { &nothing, &nothing, &nothing };

	for (size_t i = 0; i < messages.list->n && !r->failed; i++) {
		const struct go_value *m = &messages.list->item[i];
		const struct text *role = m->field[ROLE].text, *content = m->field[CONTENT].text;
		if (text_is(role, "system")) {
			if (!is_empty(turn.prompt) || !is_empty(turn.response))
				execute_turn(r, t, given, &turn, false);
			turn.system = content;
		} else if (text_is(role, "user")) {
			if (!is_empty(turn.response))
				execute_turn(r, t, given, &turn, false);
			turn.prompt = content;
		} else if (text_is(role, "assistant")) {
			turn.response = content;
		}
	}
	if (!r->failed)
		execute_turn(r, t, given, &turn, begins);
}

/* ---- all of it */

static bool is_text(struct value v) { return v.kind == KIND_TEXT && v.text->n > 0; }

static void fill_gap(struct run *r, const struct go_template *t, const struct given *given)
{
	struct root root = { .n = 0 };

	put(r, &root, "Prompt", go_of_text(given->prompt.text));
	put(r, &root, "Suffix", go_of_text(given->suffix.text));
	put(r, &root, "Response", go_of_text(&nothing));
	put_think(r, &root, given);
	execute(r, t, &root, false);
}

static void take_messages(struct run *r, const struct go_template *t, const struct given *given,
                          struct go_value messages, const struct text *system)
{
	struct root root = { .n = 0 };
	const struct go_value tools = go_read_tools(r, given->tools);

	put(r, &root, "System", go_of_text(system));
	put(r, &root, "Messages", messages);
	put(r, &root, "Tools", tools);
	put(r, &root, "Response", go_of_text(&nothing));
	put_think(r, &root, given);
	if (!r->failed)
		execute(r, t, &root, false);
}

/* Strings are cut by bytes in Go. What is no character then becomes the one that stands for it, and a character of
 * which a part is the user's is theirs. */
static void mend_characters(struct run *r)
{
	const struct text all = { .p = r->out->p, .mark = r->out->mark, .n = r->out->n, .user = r->out->user };
	struct build mended = { .r = r };
	size_t whole = 0;

	for (size_t i = 0; i < all.n && !r->failed;) {
		uint32_t c;
		const unsigned n = text_char(all.p + i, all.n - i, &c);
		bool user = text_user_at(&all, i), mixed = false;
		for (unsigned k = 1; k < n; k++)
			mixed = mixed || text_user_at(&all, i + k) != user;
		if (!n || mixed) {
			build_part(&mended, &all, whole, i - whole);
			build_bytes(&mended, n ? all.p + i : "\357\277\275", n ? n : 3, user || mixed);
			whole = i + (n ? n : 1);
		}
		i += n ? n : 1;
	}
	if (whole == 0 || r->failed)
		return;
	build_part(&mended, &all, whole, all.n - whole);
	*r->out = mended;
}

static void render(struct run *r, const struct go_template *t, const struct chat_request *request)
{
	struct given given;
	const struct text *system = NULL;

	read_given(r, request, &given);
	if (r->failed)
		return;
	const bool begins = !(given.begins.kind == KIND_BOOL && !given.begins.truth);
	const bool none = given.messages.kind == KIND_LIST && given.messages.list->n == 0;
	if (none && is_text(given.prompt) && is_text(given.suffix)) {
		fill_gap(r, t, &given);
		return;
	}
	struct go_value messages = go_read_messages(r, given.messages);
	if (!r->failed)
		messages = collate(r, messages, &system);
	if (r->failed)
		return;
	if (!t->facts.messages) {
		take_turns(r, t, &given, messages, begins);
	} else if (begins) {
		take_messages(r, t, &given, messages, system);
	} else {
		r->failed = true;
		error_set(
			r->err, ERROR_UNSUPPORTED,
			"%s: in Go's language it is the template that begins the answer; add_generation_prompt cannot "
			"be false",
			r->label);
	}
}

void go_render(struct run *r, const struct go_template *t, const struct chat_request *request)
{
	render(r, t, request);
	if (!r->failed)
		mend_characters(r);
}
