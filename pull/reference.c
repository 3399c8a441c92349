#include "pull/reference.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

bool is_hex(const char *text, size_t n) { return strspn(text, "0123456789abcdef") == n && text[n] == 0; }

bool is_commit(const char *text) { return is_hex(text, 40); }

static const char *part_trouble(const char *part, size_t n)
{
	return n == 0                                       ? "it has an empty part"
	       : n > 255                                    ? "a part of it is longer than 255 bytes"
	       : (n == 1 && *part == '.')                   ? "it has the part \".\""
	       : n == 2 && part[0] == '.' && part[1] == '.' ? "it has the part \"..\""
	                                                    : NULL;
}

const char *path_trouble(const char *path)
{
	size_t n = strlen(path);
	uint32_t code;

	if (n > PULL_PATH_MAX)
		return "it is too long";
	if (*path == '/')
		return "it is absolute";
	for (size_t i = 0; i < n;) {
		unsigned used = text_char(path + i, n - i, &code);
		if (!used)
			return "it is no UTF-8";
		if (text_misleads(code))
			return "it holds a control character";
		if (code == '\\')
			return "it holds a backslash";
		i += used;
	}
	for (const char *at = path;; at++) {
		size_t part = strcspn(at, "/");
		const char *why = part_trouble(at, part);
		if (why)
			return why;
		at += part;
		if (!*at)
			return NULL;
	}
}

/* The hub's own rule for owners and names. "--" stands between them in names of folders. */
static bool is_repo_part(const char *s, size_t n)
{
	static const char taken[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

	if (n == 0 || n >= REFERENCE_PART || strspn(s, taken) < n || strchr(".-", s[0]) || strchr(".-", s[n - 1]))
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		if (s[i] == s[i + 1] && (s[i] == '-' || s[i] == '.'))
			return false;
	return true;
}

static const char *after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncasecmp(text, prefix, n) == 0 ? text + n : NULL;
}

static const char *after_host(const char *text)
{
	static const char *const hosts[] = { "huggingface.co/", "www.huggingface.co/", "hf.co/" };
	const char *rest = NULL;

	for (size_t i = 0; i < sizeof hosts / sizeof *hosts && !rest; i++)
		rest = after(text, hosts[i]);
	return rest;
}

static const char *after_endpoint(const char *text, const char *endpoint)
{
	const char *rest = endpoint ? after(text, endpoint) : NULL;

	return rest && *rest == '/' ? rest + 1 : NULL;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* %2F and the like become what they stand for. */
static void decode(char *s)
{
	char *out = s;

	for (; *s; s++) {
		int high = *s == '%' ? hex_digit(s[1]) : -1, low = high >= 0 ? hex_digit(s[2]) : -1;
		bool coded = low >= 0 && (high || low);
		*out++ = coded ? (char)(high * 16 + low) : *s;
		s += coded ? 2 : 0;
	}
	*out = 0;
}

static bool take(char *out, size_t size, const char *from, size_t n)
{
	if (n >= size)
		return false;
	memcpy(out, from, n);
	out[n] = 0;
	return true;
}

/* What follows OWNER/NAME in an address of the web page: tree/REVISION, blob/REVISION/FILE. */
static bool take_page(struct reference *r, char *rest)
{
	static const char *const pages[] = { "tree/", "blob/", "resolve/", "raw/" };
	const char *at = NULL;

	for (size_t i = 0; i < sizeof pages / sizeof *pages && !at; i++)
		at = after(rest, pages[i]);
	if (!at)
		return false;
	size_t n = strcspn(at, "/");
	bool ok = n && take(r->revision, sizeof r->revision, at, n);
	r->has_revision = true;
	decode(r->revision);
	at += n;
	at += *at == '/';
	ok = ok && take(r->file, sizeof r->file, at, strlen(at));
	decode(r->file);
	return ok;
}

static bool take_repo(struct reference *r, char *text, bool web)
{
	char *slash = strchr(text, '/'), *end = slash ? slash + 1 + strcspn(slash + 1, "/") : NULL;

	if (!slash || !is_repo_part(text, (size_t)(slash - text)) ||
	    !is_repo_part(slash + 1, (size_t)(end - slash - 1)))
		return false;
	take(r->owner, sizeof r->owner, text, (size_t)(slash - text));
	take(r->name, sizeof r->name, slash + 1, (size_t)(end - slash - 1));
	end += *end == '/';
	if (!*end || (web && take_page(r, end)))
		return true;
	return take(r->file, sizeof r->file, end, strlen(end));
}

/* What stands behind the last ':' or '@', which are then cut off. */
static bool take_suffixes(struct reference *r, char *text)
{
	for (int i = 0; i < 2; i++) {
		char *at = text + strlen(text);
		while (at > text && *at != ':' && *at != '@')
			at--;
		if (at == text)
			return true;
		bool quant = *at == ':', again = quant ? *r->quant : r->has_revision;
		if (again || !at[1] ||
		    !take(quant ? r->quant : r->revision, quant ? sizeof r->quant : sizeof r->revision, at + 1,
		          strlen(at + 1)))
			return false;
		r->has_revision |= !quant;
		*at = 0;
	}
	return !strpbrk(text, ":@");
}

static bool check_parts(struct reference *r, const char *quoted, struct error *err)
{
	const char *why = path_trouble(r->revision);

	if (strcasecmp(r->owner, "datasets") == 0 || strcasecmp(r->owner, "spaces") == 0)
		return error_set(err, ERROR_ARGUMENT, "%.200s is no model", quoted);
	if (why)
		return error_set(err, ERROR_ARGUMENT, "%.200s: the revision cannot be used: %s", quoted, why);
	if (*r->file && (why = path_trouble(r->file)))
		return error_set(err, ERROR_ARGUMENT, "%.200s: the file's name cannot be used: %s", quoted, why);
	if (strpbrk(r->quant, "/%?#") || path_trouble(*r->quant ? r->quant : "x"))
		return error_set(err, ERROR_ARGUMENT, "%.200s: behind ':' stands no type of weights, such as Q4_K_M",
		                 quoted);
	if (strcasecmp(r->quant, "latest") == 0)
		r->quant[0] = 0;
	return true;
}

bool reference_read(struct reference *r, const char *text, const char *endpoint, struct error *err)
{
	const char *rest = after_endpoint(text, endpoint), *bare = after(text, "https://");
	char copy[PULL_PATH_MAX + 2 * REFERENCE_REVISION], quoted[400];
	bool web = true;

	*r = (struct reference){ .revision = "main" };
	error_quote(quoted, sizeof quoted, text, strlen(text));
	bare = bare ? bare : after(text, "http://");
	if (!rest)
		rest = after_host(bare ? bare : text);
	if (!rest && bare)
		return error_set(err, ERROR_ARGUMENT,
		                 "%.200s: models come from huggingface.co; HF_ENDPOINT names another such hub", quoted);
	if (!rest) {
		rest = text;
		web = false;
	}
	size_t n = web ? strcspn(rest, "?#") : strlen(rest);
	while (n && rest[n - 1] == '/')
		n--;
	if (!take(copy, sizeof copy, rest, n))
		return error_set(err, ERROR_ARGUMENT, "%.200s: the name is too long", quoted);
	if (!take_suffixes(r, copy) || !take_repo(r, copy, web))
		return error_set(err, ERROR_ARGUMENT,
		                 "%.200s is no name of a model on the hub: OWNER/NAME, with :QUANT and @REVISION "
		                 "behind it or not",
		                 quoted);
	return check_parts(r, quoted, err);
}
