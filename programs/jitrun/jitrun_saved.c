/* programs/jitrun/jitrun_saved.c - /save and /load: a conversation as a file of JSON. Pictures are named in it by their
 * files. See jitrun_chat.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "programs/jitrun/jitrun_chat.h"
#include "programs/common/output.h"

enum { SAVED_MAX = 1 << 26, SHOWN_MAX = 20 /* messages of a file */ };

/* Names of files may hold what terminals obey, as texts may. */
static void say_count(size_t n, const char *what, const char *path)
{
	char name[600];

	fprintf(stderr, "%zu message%s %s %s.\n", n, n == 1 ? "" : "s", what,
	        error_quote(name, sizeof name, path, strlen(path)));
}

char *chat_at_home(const char *path)
{
	const char *home = getenv("HOME");
	char *out = NULL;

	if (home && path[0] == '~' && path[1] == '/')
		return asprintf(&out, "%s%s", home, path + 1) < 0 ? NULL : out;
	return strdup(path);
}

static void save(struct chat *c, const char *path)
{
	FILE *f = *path ? fopen(path, "w") : NULL;
	bool ok = f && json_dumpf(c->messages, f, JSON_INDENT(1)) == 0;

	ok = f && fclose(f) == 0 && ok;
	if (!*path)
		fprintf(stderr, "Which file? /save FILE\n");
	else if (!ok)
		fprintf(stderr, "%s could not be written: %s.\n", path, strerror(errno));
	else
		say_count(json_array_size(c->messages), "written to", path);
}

void chat_command_save(struct chat *c, const char *given)
{
	char *path = chat_at_home(given);

	if (path)
		save(c, path);
	else
		chat_no_memory();
	free(path);
}

/* Texts, and pictures that are named by file: URLs. */
static bool is_content(const json_t *content)
{
	const json_t *part;
	size_t i;

	json_array_foreach(content, i, part)
	{
		const char *type = json_string_value(json_object_get(part, "type"));
		if (!(type && strcmp(type, "text") == 0 && json_is_text(json_object_get(part, "text"))) &&
		    !(chat_picture_url(part)))
			return false;
	}
	return json_is_array(content) || json_is_text(content);
}

/* A list of objects with "role" and "content". */
static const char *wrong_with(const json_t *list)
{
	size_t i;
	json_t *m;

	if (!json_is_array(list))
		return "it is no list of messages";
	json_array_foreach(list, i, m)
	{
		const json_t *content = json_object_get(m, "content");
		if (!json_is_text(json_object_get(m, "role")) || !content)
			return "a message has no role or no content";
		if (!is_content(content))
			return "a message's content is neither a text nor a list of texts and of pictures with file: "
			       "URLs";
	}
	return NULL;
}

static void show_part(const json_t *part, int indent)
{
	const json_t *text = json_is_string(part) ? part : json_object_get(part, "text");

	if (!text)
		text = json_object_get(json_object_get(part, "image_url"), "url");
	output_beginning(stderr, json_string_value(text), json_string_length(text), indent);
}

/* The last ones, each in a line of the terminal, or in several where there are pictures. */
static void show_messages(const struct chat *c)
{
	const size_t n = json_array_size(c->messages);

	if (n > SHOWN_MAX)
		fprintf(stderr, "  ...\n");
	for (size_t i = n > SHOWN_MAX ? n - SHOWN_MAX : 0; i < n; i++) {
		const json_t *m = json_array_get(c->messages, i), *content = json_object_get(m, "content"), *part;
		const char *role = json_string_value(json_object_get(m, "role"));
		const int indent = (int)strlen(role) + 4;
		size_t k;
		fputs("  ", stderr);
		output_text(stderr, role, strlen(role), true);
		fputs(": ", stderr);
		if (!json_is_array(content))
			show_part(content, indent);
		json_array_foreach(content, k, part)
		{
			if (k)
				fprintf(stderr, "%*s", indent, "");
			show_part(part, indent);
		}
		if (json_is_array(content) && !json_array_size(content))
			fputc('\n', stderr);
	}
}

static void load(struct chat *c, const char *path)
{
	struct prompt p = { 0 };
	jit_error e = { 0 };
	struct error err = { 0 };

	if (!*path) {
		fprintf(stderr, "Which file? /load FILE\n");
		return;
	}
	if (!prompt_read(&p, path, SAVED_MAX, &e)) {
		chat_fail(&e);
		return;
	}
	json_t *list = json_read(p.text, p.n, SAVED_MAX, path, &err);
	const char *wrong = list ? wrong_with(list) : err.text;
	if (wrong) {
		fprintf(stderr, "%s was not loaded: %s.\n", path, wrong);
		json_decref(list);
	} else if (!chat_pictures_load(c, list)) {
		fprintf(stderr, "%s was not loaded.\n", path);
		json_decref(list);
	} else {
		json_decref(c->messages);
		c->messages = list;
		say_count(json_array_size(list), "loaded from", path);
		show_messages(c);
	}
	prompt_free(&p);
}

void chat_command_load(struct chat *c, const char *given)
{
	char *path = chat_at_home(given);

	if (path)
		load(c, path);
	else
		chat_no_memory();
	free(path);
}
