/* server/http/guards.c - which heads of requests are refused before anything of them is used. */
#include "server/http/guards.h"

#include <string.h>
#include <strings.h>

#include "server/http/authority.h"

/* A part of a head: n bytes, not 0-terminated. */
struct part {
	const char *p;
	size_t n;
};

/* Fields that may stand in a head once. */
enum { HOST, LENGTH, CODING, EXPECT, ORIGIN, AUTHORIZATION, API_KEY, ONCE };
static const char *const once[ONCE] = { "Host",   "Content-Length", "Transfer-Encoding", "Expect",
	                                "Origin", "Authorization",  "X-Api-Key" };

/* A head while it is read. */
struct reading {
	struct guard *g;
	struct refusal *r;
	struct part method, path, query, authority; /* authority: of a target that is a whole URL */
	bool is_1_1, closes, stays;                 /* what the fields Connection say */
	struct part value[ONCE];
	unsigned times[ONCE], fields;
};

/* ---- bytes */

static bool is_token(struct part t)
{
	static const char also[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < t.n; i++) {
		char c = t.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
		if (!letter && (c == 0 || !strchr(also, c)))
			return false;
	}
	return t.n > 0;
}

static bool has_control(struct part t)
{
	for (size_t i = 0; i < t.n; i++)
		if (((unsigned char)t.p[i] < 0x20 && t.p[i] != '\t') || t.p[i] == 0x7f)
			return true;
	return false;
}

static bool is_named(struct part t, const char *wanted)
{
	return t.n == strlen(wanted) && strncasecmp(t.p, wanted, t.n) == 0;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to the byte, which is taken, too, but is not in the part. False: it is not there. */
static bool cut(struct part *from, char end, struct part *out)
{
	const char *at = memchr(from->p, end, from->n);

	if (!at)
		return false;
	*out = (struct part){ from->p, (size_t)(at - from->p) };
	from->n -= out->n + 1;
	from->p = at + 1;
	return true;
}

static struct part trimmed(struct part t)
{
	while (t.n && (t.p[0] == ' ' || t.p[0] == '\t')) {
		t.p++;
		t.n--;
	}
	while (t.n && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t'))
		t.n--;
	return t;
}

/* The next line, which ends with CR and LF. */
static bool cut_line(struct part *from, struct part *line, struct refusal *r)
{
	if (!cut(from, '\n', line) || line->n == 0 || line->p[line->n - 1] != '\r')
		return refuse(r, 400, NULL, "A line of the request's head does not end with CR and LF.");
	line->n--;
	return true;
}

/* ---- the first line */

/* Nothing but what a URL may have, with "%" before two digits, and no NUL behind it. */
static bool is_of_url(struct part t)
{
	for (size_t i = 0; i < t.n; i++) {
		unsigned char c = (unsigned char)t.p[i];
		if (c <= ' ' || c >= 0x7f || c == '#')
			return false;
		if (c == '%' && (t.n - i < 3 || hex(t.p[i + 1]) < 0 || hex(t.p[i + 2]) < 0 ||
		                 16 * hex(t.p[i + 1]) + hex(t.p[i + 2]) == 0))
			return false;
	}
	return true;
}

/* What is behind "http://" or "https://"; what is not a whole URL stays. */
static bool cut_scheme(struct part *t)
{
	size_t n = t->n > 8 && strncasecmp(t->p, "https://", 8) == 0 ? 8
	           : t->n > 7 && strncasecmp(t->p, "http://", 7) == 0
	                   ? 7
	                   : 0;

	t->p += n;
	t->n -= n;
	return n > 0;
}

static bool read_target(struct reading *h, struct part t)
{
	static const char root[] = "/";
	struct authority a;
	bool known = is_of_url(t);

	if (t.n > GUARD_MAX_TARGET)
		return refuse(h->r, 414, NULL, "The request's target has %zu bytes, expected at most %d.", t.n,
		              GUARD_MAX_TARGET);
	if (known && cut_scheme(&t)) {
		size_t n = 0;
		while (n < t.n && t.p[n] != '/' && t.p[n] != '?')
			n++;
		h->authority = (struct part){ t.p, n };
		t.p += n;
		t.n -= n;
		known = authority_read(&a, h->authority.p, h->authority.n);
	}
	h->query = t;
	if (!cut(&h->query, '?', &h->path)) {
		h->path = t;
		h->query = (struct part){ NULL, 0 };
	}
	if (h->authority.n && h->path.n == 0)
		h->path = (struct part){ root, 1 };
	bool star = is_named(h->path, "*") && is_named(h->method, "OPTIONS") && !h->query.p;
	if (!known || h->path.n == 0 || (h->path.p[0] != '/' && !star))
		return refuse(h->r, 400, NULL, "The request's target is no path, and no whole URL.");
	return true;
}

static bool read_version(struct reading *h, struct part v)
{
	h->is_1_1 = v.n == 8 && memcmp(v.p, "HTTP/1.1", 8) == 0;
	if (h->is_1_1 || (v.n == 8 && memcmp(v.p, "HTTP/1.0", 8) == 0))
		return true;
	if (v.n == 8 && memcmp(v.p, "HTTP/", 5) == 0 && v.p[6] == '.' && v.p[5] >= '0' && v.p[5] <= '9' &&
	    v.p[7] >= '0' && v.p[7] <= '9')
		return refuse(h->r, 505, NULL, "The request is of %.8s; expected HTTP/1.1.", v.p);
	return refuse(h->r, 400, NULL, "The request's first line does not end with HTTP/1.1.");
}

static bool read_first_line(struct reading *h, struct part line)
{
	struct part target;

	if (!cut(&line, ' ', &h->method) || !is_token(h->method) || !cut(&line, ' ', &target) || target.n == 0)
		return refuse(h->r, 400, NULL, "The request's first line is not a method, a target and HTTP/1.1.");
	return read_version(h, line) && read_target(h, target);
}

/* ---- fields */

/* Nineteen digits always fit into 64 bits. */
static bool read_length(uint64_t *out, struct part t)
{
	*out = 0;
	for (size_t i = 0; i < t.n; i++) {
		if (t.p[i] < '0' || t.p[i] > '9' || i >= 19)
			return false;
		*out = 10 * *out + (uint64_t)(t.p[i] - '0');
	}
	return t.n > 0;
}

static void read_connection(struct reading *h, struct part value)
{
	struct part one;

	for (bool more = true; more;) {
		more = cut(&value, ',', &one);
		one = trimmed(more ? one : value);
		h->closes = h->closes || is_named(one, "close");
		h->stays = h->stays || is_named(one, "keep-alive");
	}
}

static bool cut_field(struct part line, struct part *name, struct part *value, struct refusal *r)
{
	if (line.n && (line.p[0] == ' ' || line.p[0] == '\t'))
		return refuse(r, 400, NULL, "A header field goes on in another line, which is not done any more.");
	if (!cut(&line, ':', name) || !is_token(*name))
		return refuse(r, 400, NULL, "The name of a header field has a character that has no place there.");
	*value = trimmed(line);
	if (has_control(*value))
		return refuse(r, 400, NULL, "The header field %.*s has a control character.", (int)name->n, name->p);
	return true;
}

static bool read_field(struct reading *h, struct part line)
{
	struct part name, value;

	if (++h->fields > GUARD_MAX_FIELDS)
		return refuse(h->r, 431, NULL, "The request has more than %d header fields.", GUARD_MAX_FIELDS);
	if (!cut_field(line, &name, &value, h->r))
		return false;
	for (int i = 0; i < ONCE; i++)
		if (is_named(name, once[i])) {
			h->times[i]++;
			h->value[i] = value;
		}
	if (is_named(name, "Connection"))
		read_connection(h, value);
	return true;
}

static bool judge_body(struct reading *h)
{
	struct guard *g = h->g;

	if (h->times[CODING] && !is_named(h->value[CODING], "chunked"))
		return refuse(h->r, 400, NULL, "The header field Transfer-Encoding is not \"chunked\" alone.");
	if (h->times[CODING] && !h->is_1_1)
		return refuse(h->r, 400, NULL, "The header field Transfer-Encoding has no place in HTTP/1.0.");
	if (h->times[CODING] && h->times[LENGTH])
		return refuse(h->r, 400, NULL, "The request has both Content-Length and Transfer-Encoding.");
	if (h->times[LENGTH] && !read_length(&g->length, h->value[LENGTH]))
		return refuse(h->r, 400, NULL, "The header field Content-Length is not one number of digits.");
	g->body = h->times[CODING] ? GUARD_CHUNKS : h->times[LENGTH] && g->length ? GUARD_LENGTH : GUARD_NO_BODY;
	return true;
}

static bool judge_fields(struct reading *h)
{
	struct authority a;

	for (int i = 0; i < ONCE; i++)
		if (h->times[i] > 1)
			return refuse(h->r, 400, NULL, "The request has %u header fields %s.", h->times[i], once[i]);
	if (h->times[HOST] == 0 && h->is_1_1)
		return refuse(h->r, 400, NULL, "The request has no header field Host; expected one.");
	if (h->times[HOST] && !authority_read(&a, h->value[HOST].p, h->value[HOST].n))
		return refuse(h->r, 400, NULL, "The header field Host is no name and port.");
	if (h->times[EXPECT] && !is_named(h->value[EXPECT], "100-continue"))
		return refuse(h->r, 417, NULL, "The header field Expect is not \"100-continue\".");
	h->g->last = h->closes || (!h->is_1_1 && !h->stays);
	return judge_body(h);
}

/* ---- what is handed on */

static void put_part(struct bytes *out, struct part t) { bytes_add(out, t.p, t.n); }

static void put_field(struct bytes *out, const char *name, struct part value)
{
	bytes_print(out, "%s: ", name);
	put_part(out, value);
	bytes_text(out, "\r\n");
}

static void put_path(struct bytes *out, struct part path)
{
	struct part one;

	while (cut(&path, '%', &one)) {
		put_part(out, one);
		bytes_text(out, "%25");
	}
	put_part(out, path);
}

/* Those that were read here are written anew, and nobody reads cookies. */
static bool is_forwarded(struct part name)
{
	static const char *const not [] = { "Host",   "Content-Length", "Transfer-Encoding",
		                            "Expect", "Connection",     "Cookie" };

	for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
		if (is_named(name, not [i]))
			return false;
	return true;
}

static void put_head(struct bytes *out, const struct reading *h, struct part fields)
{
	struct part line, name, value;
	struct refusal none = { 0 };

	put_part(out, h->method);
	bytes_text(out, " ");
	put_path(out, h->path);
	if (h->query.p) {
		bytes_text(out, "?");
		put_part(out, h->query);
	}
	bytes_text(out, h->is_1_1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
	if (h->authority.n && h->times[HOST])
		put_field(out, GUARD_HOST, h->value[HOST]);
	if (h->authority.n || h->times[HOST])
		put_field(out, "Host", h->authority.n ? h->authority : h->value[HOST]);
	if (h->times[LENGTH])
		bytes_print(out, "Content-Length: %llu\r\n", (unsigned long long)h->g->length);
	if (h->g->body == GUARD_CHUNKS)
		bytes_text(out, "Transfer-Encoding: chunked\r\n");
	if (h->times[EXPECT] && h->is_1_1 && h->g->body != GUARD_NO_BODY)
		bytes_text(out, "Expect: 100-continue\r\n");
	if (h->g->last || !h->is_1_1)
		bytes_text(out, h->g->last ? "Connection: close\r\n" : "Connection: Keep-Alive\r\n");
	while (cut_line(&fields, &line, &none) && line.n && cut_field(line, &name, &value, &none))
		if (is_forwarded(name)) {
			put_part(out, name);
			put_field(out, "", value);
		}
	bytes_text(out, "\r\n");
}

bool guard_head(struct guard *g, const char *p, size_t n, struct bytes *out, struct refusal *r)
{
	struct reading h = { .g = g, .r = r };
	struct part head = { p, n }, line, fields;

	*g = (struct guard){ 0 };
	if (!cut_line(&head, &line, r) || !read_first_line(&h, line))
		return false;
	fields = head;
	do {
		if (!cut_line(&head, &line, r) || (line.n && !read_field(&h, line)))
			return false;
	} while (line.n);
	if (head.n)
		return refuse(r, 400, NULL, "The request's head goes on behind its end.");
	if (!judge_fields(&h))
		return false;
	put_head(out, &h, fields);
	return true;
}

/* ---- chunks */

/* A word, or text in quotes: how many bytes; 0: neither. */
static size_t value_length(struct part t)
{
	size_t n = 0;

	if (t.n == 0 || t.p[0] != '"') {
		while (n < t.n && is_token((struct part){ t.p + n, 1 }))
			n++;
		return n;
	}
	for (n = 1; n < t.n && t.p[n] != '"'; n++)
		n += t.p[n] == '\\' && n + 1 < t.n;
	return n < t.n ? n + 1 : 0;
}

/* ";name" or ";name=value", any number of times. What they say is of no account, RFC 9112 has them passed over. */
static bool is_extension(struct part t)
{
	while (t.n) {
		for (int what = 0; what < 2; what++) {
			if (t.n == 0 || t.p[0] != ";="[what]) {
				if (what == 0)
					return false;
				break;
			}
			t.p++;
			t.n--;
			size_t n = what == 0 && t.n && t.p[0] == '"' ? 0 : value_length(t);
			if (n == 0)
				return false;
			t.p += n;
			t.n -= n;
		}
	}
	return true;
}

bool guard_chunk(uint64_t *size, const char *p, size_t n, struct refusal *r)
{
	enum { DIGITS = 15 }; /* no body is as long */
	struct part line = { p, n };
	size_t i = 0;

	*size = 0;
	for (; i < n && hex(p[i]) >= 0 && i <= DIGITS; i++)
		*size = 16 * *size + (uint64_t)hex(p[i]);
	if (i == 0)
		return refuse(r, 400, NULL, "A chunk of the body does not begin with its size.");
	if (i > DIGITS)
		return refuse(r, 413, NULL, "A chunk of the body has a size of more than %d digits.", DIGITS);
	if (has_control(line) || !is_extension((struct part){ p + i, n - i }))
		return refuse(r, 400, NULL, "What stands behind the size of a chunk has no place there.");
	return true;
}

bool guard_trailer(const char *p, size_t n, struct refusal *r)
{
	struct part rest = { p, n }, line, name, value;

	do {
		if (!cut_line(&rest, &line, r) || (line.n && !cut_field(line, &name, &value, r)))
			return false;
		for (int i = 0; line.n && i < ONCE; i++)
			if (is_named(name, once[i]))
				return refuse(r, 400, NULL, "The field %s has no place behind the body.", once[i]);
	} while (line.n);
	return rest.n == 0 || refuse(r, 400, NULL, "The request goes on behind its end.");
}

/* ---- refusals */

static void put_why(struct bytes *out, const struct refusal *r)
{
	bytes_print(out, GUARD_REFUSAL ": %d ", r->status);
	for (const char *c = r->message; *c; c++)
		bytes_add(out, (unsigned char)*c < ' ' || *c == 0x7f ? "?" : c, 1);
	bytes_text(out, "\r\n\r\n");
}

void guard_put_refusal(struct bytes *out, const char *head, size_t n, const struct refusal *r)
{
	static const char only[] = "HEAD ";

	/* An answer to that has no body. */
	bytes_text(out, n >= sizeof only - 1 && memcmp(head, only, sizeof only - 1) == 0 ? "HEAD" : "GET");
	bytes_text(out, " / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
	put_why(out, r);
}

void guard_put_trailer(struct bytes *out, const struct refusal *r)
{
	bytes_text(out, "0\r\n");
	put_why(out, r);
}

void guard_decode(char *text)
{
	char *to = text;

	for (const char *c = text; *c; c++) {
		bool coded = *c == '%' && hex(c[1]) >= 0 && hex(c[2]) >= 0;
		*to++ = coded ? (char)(16 * hex(c[1]) + hex(c[2])) : *c;
		c += coded ? 2 : 0;
	}
	*to = 0;
}
