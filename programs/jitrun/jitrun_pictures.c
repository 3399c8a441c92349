/* programs/jitrun/jitrun_pictures.c - pictures in a conversation: those that /image names, and files whose paths are
 * typed, pasted or dropped into a message. See jitrun_chat.h.
 *
 * Owns: where a message names a picture, and that the list of pictures is that of the messages. In messages a picture
 * is a part with a file: URL, as other programs have them.
 */
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bytes.h"
#include "programs/common/output.h"
#include "programs/common/progress.h"
#include "programs/jitrun/jitrun_chat.h"
#include "vision/prompt.h"

enum { NAME_SHOWN = 300 };

/* ---- the list */

static size_t count_pictures(const json_t *messages)
{
	const json_t *m, *part;
	size_t i, k, n = 0;

	json_array_foreach(messages, i, m) json_array_foreach(json_object_get(m, "content"), k, part) n +=
		prompt_is_picture(json_string_value(json_object_get(part, "type")));
	return n;
}

size_t chat_pictures_shown(const struct chat *c) { return count_pictures(c->messages); }

static void drop_from(struct chat *c, size_t n)
{
	while (c->n_pictures > n) {
		jit_image_close(c->picture[--c->n_pictures].image);
		free(c->picture[c->n_pictures].path);
	}
}

void chat_pictures_trim(struct chat *c) { drop_from(c, chat_pictures_shown(c)); }
void chat_pictures_forget(struct chat *c) { drop_from(c, 0); }

static const char *quoted(char out[NAME_SHOWN], const char *path)
{
	return error_quote(out, NAME_SHOWN, path, strlen(path));
}

static bool say_blind(void)
{
	const char *why;

	if (jitrun_encoder(&why))
		return false;
	fprintf(stderr, "This model takes no pictures: %s.\n", why);
	return true;
}

static bool add(struct chat *c, const char *path)
{
	struct error err = { 0 };
	jit_image_info info = JIT_IMAGE_INFO();
	char name[NAME_SHOWN], *real = realpath(path, NULL);
	jit_image *image = jitrun_read_image(path, &err);

	if (image && (!array_grow((void **)&c->picture, &c->picture_room, c->n_pictures + 1, sizeof *c->picture) ||
	              !(real = real ? real : strdup(path))))
		error_set(&err, ERROR_MEMORY, "no memory for a picture");
	if (!image || err.code) {
		jit_image_close(image);
		free(real);
		jitrun_fail_with(&err);
		return false;
	}
	c->picture[c->n_pictures++] = (struct chat_picture){ real, image };
	jit_image_get_info(image, &info, NULL);
	fprintf(stderr, "(picture %zu: %s, %d x %d pixels, %d tokens)\n", c->n_pictures, quoted(name, path), info.width,
	        info.height, info.tokens);
	return true;
}

bool chat_pictures_add(struct chat *c, const char *path) { return !say_blind() && add(c, path); }

/* ---- file: URLs */

static char *url_of(const char *path)
{
	struct bytes b = { 0 };

	bytes_text(&b, "file://");
	for (const char *p = path; *p; p++)
		if (isalnum((unsigned char)*p) || strchr("-._~/", *p))
			bytes_add(&b, p, 1);
		else
			bytes_print(&b, "%%%02X", (unsigned)(unsigned char)*p);
	bytes_add(&b, "", 1);
	if (!b.lost)
		return b.p;
	bytes_free(&b);
	return NULL;
}

static int digit_of(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? (c | 32) - 'a' + 10 : -1;
}

/* malloc'ed. NULL: it is no such URL, or there is no memory. */
static char *path_of_url(const char *url)
{
	const char *p = strncasecmp(url, "file:", 5) == 0 ? url + 5 : NULL;

	if (p && strncmp(p, "//", 2) == 0)
		p = strchr(p + 2, '/'); /* behind the host's name, which is empty or localhost */
	if (!p || *p != '/')
		return NULL;
	char *out = malloc(strlen(p) + 1), *to = out;
	for (; out && *p; p++) {
		const int high = *p == '%' ? digit_of(p[1]) : -1, low = high >= 0 ? digit_of(p[2]) : -1;
		if (low < 0) {
			*to++ = *p;
			continue;
		}
		*to++ = (char)(high * 16 + low);
		p += 2;
	}
	if (out)
		*to = 0;
	return out;
}

const char *chat_picture_url(const json_t *part)
{
	const json_t *url = json_object_get(json_object_get(part, "image_url"), "url");
	const char *text = json_string_value(url);

	return prompt_is_picture(json_string_value(json_object_get(part, "type"))) && text &&
	                       strncasecmp(text, "file:", 5) == 0 && strlen(text) == json_string_length(url)
	               ? text
	               : NULL;
}

/* ---- paths in a text */

/* A word as shells write it, without its quotes. Bytes that it takes; 0: it does not end, or is longer than paths are.
 */
static size_t read_word(const char *text, size_t n, char out[PATH_MAX])
{
	size_t i = 0, to = 0;
	char quote = 0;

	for (; i < n && (quote || !isspace((unsigned char)text[i])); i++) {
		if (text[i] == quote) {
			quote = 0;
		} else if (!quote && (text[i] == '\'' || text[i] == '"')) {
			quote = text[i];
		} else {
			i += text[i] == '\\' && quote != '\'' && i + 1 < n;
			if (to == PATH_MAX - 1 || !text[i])
				return 0;
			out[to++] = text[i];
		}
	}
	out[to] = 0;
	return quote ? 0 : i;
}

static bool has_ending(const char *path)
{
	static const char *const endings[] = { ".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp" };
	const size_t n = strlen(path);

	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
		if (n > strlen(endings[i]) && strcasecmp(path + n - strlen(endings[i]), endings[i]) == 0)
			return true;
	return false;
}

static bool is_path(const char *word)
{
	return *word == '/' || strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0 ||
	       strncmp(word, "~/", 2) == 0 || strncasecmp(word, "file:/", 6) == 0;
}

/* The path of a picture's file with which a text begins, malloc'ed, and how many bytes it takes. What ends a sentence
 * is no part of it. NULL: there is none. */
static char *path_at(const char *text, size_t n, size_t *used)
{
	char word[PATH_MAX];
	struct stat st;
	size_t taken = read_word(text, n, word), length = taken ? strlen(word) : 0;

	while (length && !has_ending(word) && strchr(".,;:!?)", word[length - 1]) &&
	       text[taken - 1] == word[length - 1]) {
		word[--length] = 0;
		taken--;
	}
	if (!length || !has_ending(word) || !is_path(word))
		return NULL;
	char *path = strncasecmp(word, "file:", 5) == 0 ? path_of_url(word) : chat_at_home(word);
	*used = taken;
	if (path && stat(path, &st) == 0 && S_ISREG(st.st_mode))
		return path;
	free(path);
	return NULL;
}

bool chat_pictures_begin(const char *line)
{
	size_t used;
	char *path = path_at(line, strlen(line), &used);

	free(path);
	return path != NULL;
}

/* The next path at the beginning of a word, from *at on. NULL: there are no more. */
static char *next_path(const char *text, size_t n, size_t *at, size_t *used)
{
	char *path = NULL;

	for (; *at < n; ++*at)
		if ((*at == 0 || isspace((unsigned char)text[*at - 1])) && strchr("/.~fF'\"", text[*at]) &&
		    (path = path_at(text + *at, n - *at, used)))
			break;
	return path;
}

/* ---- messages */

static bool put_picture(json_t *parts, const struct chat_picture *p)
{
	char *url = url_of(p->path);
	const bool ok = url && json_array_append_new(parts, json_pack("{s:s, s:{s:s}}", "type", "image_url",
	                                                              "image_url", "url", url)) == 0;

	free(url);
	return ok || chat_no_memory();
}

static bool put_text(json_t *parts, const char *text, size_t n)
{
	json_t *words = n ? output_string_n(text, n) : NULL;

	return !n ||
	       (words && json_array_append_new(parts, json_pack("{s:s, s:o}", "type", "text", "text", words)) == 0) ||
	       chat_no_memory();
}

/* A text in which pictures stand. Blanks before its first words and behind its last ones are left out, if it names one.
 */
static bool put_all(struct chat *c, json_t *parts, const char *text, size_t n)
{
	size_t from = 0, at = 0, used = 0;
	bool ok = true, words = false;

	for (char *path; ok && (path = next_path(text, n, &at, &used)); free(path), at = from) {
		while (!words && from < at && isspace((unsigned char)text[from]))
			from++;
		words = words || from < at;
		ok = put_text(parts, text + from, at - from) && add(c, path) &&
		     put_picture(parts, &c->picture[c->n_pictures - 1]);
		from = at + used;
	}
	while (from && !words && from < n && isspace((unsigned char)text[from]))
		from++;
	while (used && n > from && isspace((unsigned char)text[n - 1]))
		n--;
	return ok && put_text(parts, text + from, n - from);
}

json_t *chat_pictures_content(struct chat *c, const char *text, size_t n)
{
	const size_t shown = chat_pictures_shown(c), before = c->n_pictures;
	size_t at = 0, used;
	const char *why;
	char name[NAME_SHOWN], *path = next_path(text, n, &at, &used);

	if (path && !jitrun_encoder(&why))
		fprintf(stderr, "(This model takes no pictures: %s. %s is sent as text.)\n", why, quoted(name, path));
	const bool plain = !jitrun_encoder(&why) || (!path && shown == before);
	free(path);
	json_t *content = plain ? output_string_n(text, n) : json_array();
	bool ok = content || chat_no_memory();
	for (size_t i = shown; ok && !plain && i < before; i++)
		ok = put_picture(content, &c->picture[i]);
	if (ok && (plain || put_all(c, content, text, n)))
		return content;
	drop_from(c, before);
	json_decref(content);
	return NULL;
}

bool chat_pictures_load(struct chat *c, const json_t *messages)
{
	struct chat own = { .run = c->run };
	const json_t *m, *part;
	size_t i, k;
	bool ok = !count_pictures(messages) || !say_blind();

	json_array_foreach(messages, i, m) json_array_foreach(json_object_get(m, "content"), k, part)
	{
		const char *url = ok ? chat_picture_url(part) : NULL;
		char *path = url ? path_of_url(url) : NULL;
		if (url)
			ok = (path || chat_fail(&(jit_error){ .message = "a picture's URL has no path" })) &&
			     add(&own, path);
		free(path);
	}
	struct chat *from = ok ? c : &own;
	drop_from(from, 0);
	free(from->picture);
	if (!ok)
		return false;
	c->picture = own.picture;
	c->n_pictures = own.n_pictures;
	c->picture_room = own.picture_room;
	return true;
}

/* ---- the model */

jit_prompt *chat_pictures_prompt(struct chat *c, const jit_chat_options *o, jit_error *err)
{
	const char *why;
	const size_t n = chat_pictures_shown(c);
	jit_image **list = calloc(n + 1, sizeof(jit_image *));
	jit_prompt *p = NULL;

	for (size_t i = 0; list && i < n; i++)
		list[i] = c->picture[i].image;
	if (list)
		p = jit_prompt_chat(jitrun_encoder(&why), o, list, n, err);
	else
		*err = (jit_error){ .message = "no memory for the conversation", .code = JIT_ERROR_MEMORY };
	free(list);
	return p;
}

bool chat_pictures_go_on(struct chat *c, const int32_t *ids, size_t n)
{
	struct error e = { 0 };

	return !c->prompt || prompt_add_ids(c->prompt, ids, n, &e);
}

/* Those that the session has already need not be encoded. */
static bool encode(struct chat *c, jit_error *err)
{
	const size_t n = chat_pictures_shown(c);
	struct progress bar;
	bool ok = true;

	progress_begin(&bar, "looking", "pictures", !opt.quiet);
	for (size_t i = 0; ok && i < n && !interrupted; i++) {
		progress_show(&bar, i, n);
		ok = jit_image_encode(c->picture[i].image, err) == JIT_OK;
	}
	progress_end(&bar);
	return ok;
}

bool chat_pictures_feed(struct chat *c, jit_error *err)
{
	if (!encode(c, err))
		return false;
	const int status = interrupted ? JIT_OK : jit_session_feed_prompt(c->run->session, c->prompt, NULL, err);
	return status == JIT_OK || (interrupted && status == JIT_ERROR_CANCELLED);
}

/* ---- commands */

void chat_pictures_list(const struct chat *c)
{
	const size_t shown = chat_pictures_shown(c);
	char name[NAME_SHOWN];

	if (say_blind())
		return;
	if (!c->n_pictures)
		fputs("There are no pictures. /image FILE shows one with the next message.\n", stderr);
	for (size_t i = 0; i < c->n_pictures; i++) {
		jit_image_info info = JIT_IMAGE_INFO();
		jit_image_get_info(c->picture[i].image, &info, NULL);
		fprintf(stderr, "%3zu  %s, %d x %d pixels, %d tokens%s%s\n", i + 1, quoted(name, c->picture[i].path),
		        info.width, info.height, info.tokens, info.encoded ? ", encoded" : "",
		        i < shown ? "" : ", for the next message");
	}
}

/* The whole rest of the line is the name, as Tab writes it, or a word in quotes. */
void chat_command_image(struct chat *c, const char *given)
{
	char word[PATH_MAX], *path = chat_at_home(given);

	if (path && *given && access(path, F_OK) != 0 && read_word(given, strlen(given), word) == strlen(given)) {
		free(path);
		path = strncasecmp(word, "file:", 5) == 0 ? path_of_url(word) : chat_at_home(word);
	}
	if (!*given)
		chat_pictures_list(c);
	else if (path)
		chat_pictures_add(c, path);
	else
		chat_no_memory();
	free(path);
}
