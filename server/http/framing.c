/* server/http/framing.c - where requests begin and end in the bytes of a connection. */
#include "server/http/framing.h"

#include <string.h>

enum { MAX_LINE = 256, MAX_TRAILER = 8 << 10, KEPT = 4 << 10 };

static void forget_text(struct framing *f)
{
	if (f->text.capacity > KEPT)
		bytes_free(&f->text);
	bytes_clear(&f->text);
	f->line = 0;
}

static void enter(struct framing *f, enum framing_state state)
{
	forget_text(f);
	f->state = state;
}

static void end_request(struct framing *f)
{
	f->blank = false;
	enter(f, f->guard.last ? FRAMING_OVER : FRAMING_HEAD);
}

static void refuse_rest(struct framing *f, const struct refusal *r, struct bytes *out)
{
	if (f->state == FRAMING_HEAD)
		guard_put_refusal(out, f->text.p ? f->text.p : "", f->text.n, r);
	else
		guard_put_trailer(out, r);
	enter(f, FRAMING_OVER);
}

/* ---- lines */

/* Behind what was looked at before: whether every CR is one with an LF, and nothing is NUL. A CR at the end may still
 * become one. */
static bool is_of_lines(const struct bytes *b, size_t from)
{
	for (size_t i = from; i < b->n; i++) {
		char c = b->p[i];
		if (c == 0 || (c == '\n' && (i == 0 || b->p[i - 1] != '\r')) ||
		    (c == '\r' && i + 1 < b->n && b->p[i + 1] != '\n'))
			return false;
	}
	return true;
}

/* Most bytes of what is gathered. */
static size_t max_of(const struct framing *f)
{
	if (f->state == FRAMING_HEAD)
		return f->line ? GUARD_MAX_HEAD : GUARD_MAX_TARGET + MAX_LINE;
	return f->state == FRAMING_TRAILER ? MAX_TRAILER : MAX_LINE;
}

static void refuse_length(const struct framing *f, struct refusal *r)
{
	if (f->state == FRAMING_HEAD && f->line == 0)
		refuse(r, 414, NULL, "The request's first line has more than %zu bytes.", max_of(f));
	else if (f->state == FRAMING_HEAD)
		refuse(r, 431, NULL, "The request's head has more than %zu bytes.", max_of(f));
	else if (f->state == FRAMING_TRAILER)
		refuse(r, 431, NULL, "What stands behind the body has more than %zu bytes.", max_of(f));
	else
		refuse(r, 400, NULL, "The line before a chunk has more than %zu bytes.", max_of(f));
}

/* Up to the end of the line, as far as it is there, or one byte too many: how many bytes. ended: the end is there. */
static size_t take_line(struct framing *f, const char *p, size_t n, bool *ended, struct refusal *r)
{
	size_t from = f->text.n ? f->text.n - 1 : 0, room = max_of(f) + 1 - f->text.n;
	const char *end = memchr(p, '\n', n);
	size_t used = end ? (size_t)(end - p) + 1 : n;

	used = used < room ? used : room;
	bytes_add(&f->text, p, used);
	if (f->text.lost)
		refuse(r, 503, NULL, "There is no memory for this request.");
	else if (!is_of_lines(&f->text, from))
		refuse(r, 400, NULL, "The request has a NUL, or a line that does not end with CR and LF.");
	else if (f->text.n > max_of(f))
		refuse_length(f, r);
	*ended = p[used - 1] == '\n';
	return used;
}

/* ---- what lines mean */

static void begin_body(struct framing *f)
{
	f->left = f->guard.length;
	if (f->guard.body == GUARD_NO_BODY)
		end_request(f);
	else
		enter(f, f->guard.body == GUARD_LENGTH ? FRAMING_LENGTH : FRAMING_SIZE);
}

/* One empty line may come before a head, as some clients send one behind a body. */
static void end_head_line(struct framing *f, bool empty, struct bytes *out, struct refusal *r)
{
	if (empty && f->line == 0) {
		if (f->blank)
			refuse(r, 400, NULL, "The request begins with empty lines.");
		f->blank = true;
		forget_text(f);
	} else if (!empty) {
		f->line = f->text.n;
	} else if (guard_head(&f->guard, f->text.p, f->text.n, out, r)) {
		begin_body(f);
	}
}

static void end_line(struct framing *f, struct bytes *out, struct refusal *r)
{
	size_t n = f->text.n - f->line - 2; /* without the line's end */

	switch (f->state) {
	case FRAMING_HEAD: end_head_line(f, n == 0, out, r); break;
	case FRAMING_SIZE:
		if (guard_chunk(&f->left, f->text.p, n, r))
			enter(f, f->left ? FRAMING_DATA : FRAMING_TRAILER);
		break;
	case FRAMING_DATA_END:
		if (n)
			refuse(r, 400, NULL, "A chunk of the body is longer than its size.");
		else
			enter(f, FRAMING_SIZE);
		break;
	default:
		f->line = f->text.n;
		if (n == 0 && guard_trailer(f->text.p, f->text.n, r)) {
			bytes_text(out, "0\r\n\r\n");
			end_request(f);
		}
	}
}

/* ---- bodies */

static size_t take_body(struct framing *f, const char *p, size_t n, struct bytes *out)
{
	n = n < f->left ? n : (size_t)f->left;
	if (f->state == FRAMING_DATA)
		bytes_print(out, "%zx\r\n", n);
	bytes_add(out, p, n);
	if (f->state == FRAMING_DATA)
		bytes_text(out, "\r\n");
	f->left -= n;
	if (f->left == 0 && f->state == FRAMING_DATA)
		enter(f, FRAMING_DATA_END);
	else if (f->left == 0)
		end_request(f);
	return n;
}

void framing_take(struct framing *f, const char *p, size_t n, struct bytes *out)
{
	while (n && f->state != FRAMING_OVER) {
		struct refusal r = { 0 };
		size_t used;
		bool ended = false;
		if (f->state == FRAMING_LENGTH || f->state == FRAMING_DATA) {
			used = take_body(f, p, n, out);
		} else {
			used = take_line(f, p, n, &ended, &r);
			if (ended && r.status == 0)
				end_line(f, out, &r);
		}
		if (r.status)
			refuse_rest(f, &r, out);
		p += used;
		n -= used;
	}
}

void framing_free(struct framing *f)
{
	bytes_free(&f->text);
	*f = (struct framing){ 0 };
}
