/* server/talk/pictures.c - pictures in the messages of a request. See pictures.h. */
#include "server/talk/pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/json_read.h"
#include "server/request/fields.h"
#include "server/request/text_file.h"

static bool no_memory(struct refusal *r) { return refuse(r, 503, NULL, "There is no memory for this request."); }

/* ---- base64, of either alphabet, with or without what fills it up */

static int digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* malloc'ed; NULL with *wrong: it is none, else no memory. */
static uint8_t *decode(const char *p, size_t n, size_t *n_out, bool *wrong)
{
	uint8_t *out = malloc(n / 4 * 3 + 4);
	uint32_t bits = 0;
	size_t digits = 0, filled = 0;

	*n_out = 0;
	*wrong = false;
	for (size_t i = 0; out && i < n && !*wrong; i++) {
		const int digit = digit_of(p[i]);
		if (p[i] == '=') {
			filled++;
		} else if (digit >= 0 && !filled) {
			bits = bits << 6 | (uint32_t)digit;
			if (digits++ % 4)
				out[(*n_out)++] = (uint8_t)(bits >> (6 - 2 * ((digits - 1) % 4)) & 255);
		} else {
			*wrong = !strchr(" \t\r\n", p[i]) || p[i] == 0;
		}
	}
	*wrong = *wrong || digits % 4 == 1 || filled > 2;
	if (!*wrong)
		return out;
	free(out);
	return NULL;
}

/* ---- one picture */

static bool is_http(const char *url) { return strncasecmp(url, "http:", 5) == 0 || strncasecmp(url, "https:", 6) == 0; }

static bool refuse_url(const char *url, struct refusal *r)
{
	if (!*url)
		return refuse(r, 400, "messages", "a picture has a URL that is empty, expected a data: URL");
	if (is_http(url))
		return refuse(r, 400, "messages",
		              "a message has a picture at an http address, and nothing is fetched here "
		              "(--image-hosts); send it as a data: URL");
	if (strncasecmp(url, "file:", 5) == 0)
		return refuse(r, 400, "messages",
		              "a message names a picture's file, and no files are read for clients (--image-dir); send "
		              "it as a data: URL");
	return refuse(r, 400, "messages",
	              "a message has a picture whose URL begins with %.20s, expected data:image/png;base64,...", url);
}

static bool take_bytes(struct pictures *p, const void *bytes, size_t n, struct refusal *r)
{
	const struct sight_options *o = sight_told(p->sight);
	char name[40];

	snprintf(name, sizeof name, "picture %zu", p->n + 1);
	if (p->n == o->images)
		return refuse(r, 400, "messages", "the request has more than %zu pictures (--max-images)", o->images);
	if (!array_grow((void **)&p->image, &p->room, p->n + 1, sizeof(jit_image *)))
		return no_memory(r);
	jit_image *image = sight_read(p->sight, bytes, n, name, r);
	if (!image)
		return false;
	const uint64_t pixels = atomic_load(&image->encoded) ? 0 : (uint64_t)image->image.width * image->image.height;
	bool ok = p->pixels + pixels <= 2 * o->pixels ||
	          refuse(r, 400, "messages", "the pictures of the request have more than %llu pixels together",
	                 (unsigned long long)(2 * o->pixels));
	ok = ok && sight_count(p->sight, pixels, r);
	if (!ok) {
		image_release(image);
		return false;
	}
	p->pixels += pixels;
	p->image[p->n++] = image;
	return true;
}

static bool take_base64(struct pictures *p, const char *text, size_t n, struct refusal *r)
{
	size_t n_bytes;
	bool wrong;
	uint8_t *bytes = decode(text, n, &n_bytes, &wrong);

	if (!bytes)
		return wrong ? refuse(r, 400, "messages", "a message has a picture whose data are no base64")
		             : no_memory(r);
	const bool ok = n_bytes ? take_bytes(p, bytes, n_bytes, r)
	                        : refuse(r, 400, "messages", "a message has a picture without data");
	free(bytes);
	return ok;
}

/* Of the folder that the operator names, and none above it. */
static bool take_file(struct pictures *p, const char *name, struct refusal *r)
{
	const char *folder = sight_told(p->sight)->folder;
	char path[4200], *real = NULL, *within = NULL;
	struct error err = { 0 };
	size_t n = 0;
	char *bytes = NULL;

	while (*name == '/')
		name++;
	snprintf(path, sizeof path, "%s/%s", folder, name);
	real = realpath(path, NULL);
	within = realpath(folder, NULL);
	const size_t length = within ? strlen(within) : 0;
	bool ok = real && within && strncmp(real, within, length) == 0 && real[length] == '/';
	if (!ok)
		refuse(r, 400, "messages", "there is no picture %.100s in the folder of --image-dir", name);
	bytes = ok ? text_file_read(real, PICTURE_MAX_BYTES, &n, &err) : NULL;
	if (ok && !bytes) {
		refusal_hide_paths(err.text, real);
		refuse(r, 400, "messages", "%s", err.text);
	}
	ok = bytes && take_bytes(p, bytes, n, r);
	free(bytes);
	free(real);
	free(within);
	return ok;
}

static bool take_fetched(struct pictures *p, const char *url, size_t n, struct refusal *r)
{
	const void *bytes = NULL;
	size_t n_bytes = 0;

	if (!picture_fetch_find(p->fetches, sight_told(p->sight), url, n, &bytes, &n_bytes, r)) {
		p->wanted = p->wanted || !r->status;
		return !r->status;
	}
	return n_bytes ? take_bytes(p, bytes, n_bytes, r)
	               : refuse(r, 400, "messages", "a message has a picture without data");
}

static bool take_url(struct pictures *p, const char *url, size_t n, struct refusal *r)
{
	if (is_http(url) && p->fetches && sight_told(p->sight)->hosts)
		return take_fetched(p, url, n, r);
	if (strncasecmp(url, "file:", 5) == 0 && sight_told(p->sight)->folder)
		return take_file(p, url + 5, r);
	if (strncasecmp(url, "data:", 5) != 0)
		return refuse_url(url, r);
	const char *comma = memchr(url, ',', n);

	if (!comma || comma - url < 7 || strncasecmp(comma - 7, ";base64", 7) != 0)
		return refuse(r, 400, "messages",
		              "a message has a picture whose data: URL is not in base64, expected "
		              "data:image/png;base64,...");
	return take_base64(p, comma + 1, (size_t)(url + n - comma - 1), r);
}

static bool is_text(const json_t *v)
{
	return json_is_string(v) && strlen(json_string_value(v)) == json_string_length(v);
}

/* Anthropic's source. */
static bool take_source(struct pictures *p, const json_t *source, struct refusal *r)
{
	const char *type = json_string_value(json_object_get(source, "type"));
	const json_t *data = json_object_get(source, "data"), *url = json_object_get(source, "url");
	const json_t *media = json_object_get(source, "media_type");

	if (!type)
		return refuse(r, 400, "messages", "a picture has a source without a type, expected base64");
	if (strcmp(type, "url") == 0 && is_text(url))
		return take_url(p, json_string_value(url), json_string_length(url), r);
	if (strcmp(type, "base64") != 0)
		return refuse(r, 400, "messages", "a picture has a source of type %.60s, expected base64", type);
	if (media && !json_is_null(media) && !json_is_string(media))
		return refuse(r, 400, "messages", "a picture has a media_type that is %s, expected a text",
		              json_kind(media));
	if (!is_text(data))
		return refuse(r, 400, "messages", "a picture has a source whose data are %s, expected a text in base64",
		              data ? json_kind(data) : "missing");
	return take_base64(p, json_string_value(data), json_string_length(data), r);
}

/* What says how closely to look changes nothing: a model's processor decides. */
static bool check_detail(const json_t *of, struct refusal *r)
{
	const json_t *detail = json_object_get(of, "detail");

	return !detail || json_is_null(detail) || json_is_string(detail) ||
	       refuse(r, 400, "messages", "a picture has a detail that is %s, expected a text", json_kind(detail));
}

static bool take(struct pictures *p, const json_t *part, struct refusal *r)
{
	const json_t *source = field_value(part, "source"), *url = field_value(part, "image_url");

	if (json_is_object(source))
		return take_source(p, source, r);
	if (json_is_object(url) && !check_detail(url, r))
		return false;
	if (!check_detail(part, r))
		return false;
	if (json_is_object(url))
		url = json_object_get(url, "url");
	if (field_value(part, "file_id"))
		return refuse(r, 400, "messages",
		              "a picture has a file_id, and no files are kept here; send a data: URL");
	if (!is_text(url) && source)
		return refuse(r, 400, "messages", "a picture has a source that is %s, expected an object",
		              json_kind(source));
	if (!is_text(url))
		return refuse(r, 400, "messages", "a picture has a URL that is %s, expected a data: URL",
		              url ? json_kind(url) : "missing");
	return take_url(p, json_string_value(url), json_string_length(url), r);
}

bool pictures_add(struct pictures *p, const json_t *part, const struct served *m, struct bytes *text, struct refusal *r)
{
	if (!m->sight)
		return refuse(r, 400, "messages", "a message has a picture, and the model %.100s cannot see", m->name);
	if (!*p->mark)
		prompt_mark(p->mark);
	p->sight = m->sight;
	if (!take(p, part, r))
		return false;
	bytes_text(text, p->mark);
	return true;
}

size_t pictures_marks(const struct pictures *p, const char *text)
{
	char middle[PROMPT_MARK];
	size_t n = strlen(p->mark), count = 0;

	if (n < 3)
		return 0;
	memcpy(middle, p->mark + 1, n - 2);
	middle[n - 2] = 0;
	for (const char *at = text; (at = strstr(at, middle)); at += n - 2)
		count++;
	return count;
}

void pictures_free(struct pictures *p)
{
	if (p->sight)
		sight_forget(p->sight, p->pixels);
	while (p->n)
		image_release(p->image[--p->n]);
	free(p->image);
	*p = (struct pictures){ 0 };
}
