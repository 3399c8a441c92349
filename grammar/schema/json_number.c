/* grammar/schema/json_number.c - numbers, and whether what was begun can still become one that is right. */
#include <string.h>

#include "grammar/schema/json_parts.h"

/* Behind the head: the phase, bytes of text, the text, four bytes a word; no text where nobody looks at the value. */
enum { PHASE, LENGTH, TEXT };
enum phase { SIGN, ZERO, DIGITS, POINT, FRACTION, EXPONENT, EXPONENT_SIGN, EXPONENT_DIGITS, NO_PHASE };
enum { EXPONENT_DIGITS_MAX = 3 };

static enum phase next_phase(enum phase p, uint8_t b)
{
	bool digit = b >= '0' && b <= '9', e = (b | 0x20) == 'e';

	switch (p) {
	case SIGN: return b == '0' ? ZERO : digit ? DIGITS : NO_PHASE;
	case ZERO:
	case DIGITS: return digit && p == DIGITS ? DIGITS : b == '.' ? POINT : e ? EXPONENT : NO_PHASE;
	case POINT:
	case FRACTION: return digit ? FRACTION : e && p == FRACTION ? EXPONENT : NO_PHASE;
	case EXPONENT:
		if (b == '+' || b == '-')
			return EXPONENT_SIGN;
		return digit ? EXPONENT_DIGITS : NO_PHASE;
	case EXPONENT_SIGN:
	case EXPONENT_DIGITS: return digit ? EXPONENT_DIGITS : NO_PHASE;
	case NO_PHASE: break;
	}
	return NO_PHASE;
}

static bool may_end(enum phase p) { return p == ZERO || p == DIGITS || p == FRACTION || p == EXPONENT_DIGITS; }

/* Sizes from low on, up to high, which itself is one of them only if `closed`. */
struct span {
	struct decimal low, high;
	bool unbounded, closed;
};

static bool span_meets(const struct span *v, bool negative, const struct schema *s, const struct schema_node *n)
{
	struct decimal min = v->low, max = v->high;
	/* A negative number's largest size is its least value. */
	bool open_below = negative && !v->closed, open_above = !negative && !v->closed;

	if (negative) {
		min = v->high;
		max = v->low;
		min.negative = min.n > 0;
		max.negative = max.n > 0;
	}
	if (n->maximum != SCHEMA_NONE && !(negative && v->unbounded)) {
		int c = decimal_compare(&min, &s->decimal[n->maximum]);
		if (c > 0 || (c == 0 && (n->less_than_maximum || open_below)))
			return false;
	}
	if (n->minimum != SCHEMA_NONE && !(!negative && v->unbounded)) {
		int c = decimal_compare(&max, &s->decimal[n->minimum]);
		if (c < 0 || (c == 0 && (n->more_than_minimum || open_above)))
			return false;
	}
	for (uint32_t i = 0; i < n->numbers.n; i++) {
		const struct decimal *d = &s->decimal[s->list[n->numbers.at + i]];
		struct decimal size = *d;
		size.negative = 0;
		int above = v->unbounded ? -1 : decimal_compare(&size, &v->high);
		if ((d->negative == negative || d->n == 0) && decimal_compare(&size, &v->low) >= 0 &&
		    (above < 0 || (above == 0 && v->closed)))
			return true;
	}
	return n->numbers.n == 0;
}

/* The text is a sign and digits of a whole number, to which k more digits are appended. */
static bool with_digits(const char *text, size_t n, unsigned k, bool whole, struct span *v)
{
	char low[2 * NUMBER_MAX], high[2 * NUMBER_MAX];

	if (n + k > NUMBER_MAX)
		return false;
	memcpy(low, text, n);
	memcpy(high, text, n);
	memset(low + n, '0', k);
	memset(high + n, '9', k);
	if (!decimal_read(&v->low, low, n + k) || !decimal_read(&v->high, high, n + k))
		return false;
	if (!whole)
		decimal_next(&v->high, 0);
	v->closed = whole;
	return true;
}

static bool whole_part(const struct schema *s, const struct schema_node *n, const char *text, size_t bytes,
                       bool negative)
{
	bool grows = bytes && text[0] != '0';

	for (unsigned k = 0; k == 0 || (grows && bytes + k <= NUMBER_MAX); k++) {
		struct span v = { .unbounded = false };
		if (!with_digits(text, bytes, k, n->whole, &v))
			return false;
		if (span_meets(&v, negative, s, n))
			return true;
		/* Beyond all bounds, longer ones are, too. */
		if (k > 1 && n->maximum == SCHEMA_NONE && n->minimum == SCHEMA_NONE && !n->numbers.n)
			return true;
	}
	return false;
}

bool number_is_complete(const char *text, size_t n)
{
	enum phase p = SIGN;

	for (size_t i = n && text[0] == '-'; i < n && p != NO_PHASE; i++)
		p = next_phase(p, (uint8_t)text[i]);
	return may_end(p);
}

bool number_fits(const struct schema *s, const struct schema_node *n, const struct decimal *d)
{
	struct span v = { .closed = true, .low = *d, .high = *d };

	if ((n->whole && !decimal_is_whole(d)) ||
	    (n->multiple_of != SCHEMA_NONE && !decimal_is_multiple(d, &s->decimal[n->multiple_of])))
		return false;
	for (uint32_t i = 0; i < n->unlike.n; i++)
		if (decimal_compare(d, &s->decimal[s->list[n->unlike.at + i]]) == 0)
			return false;
	v.low.negative = v.high.negative = 0;
	return span_meets(&v, d->negative, s, n);
}

static bool number_right(const struct schema *s, const struct schema_node *n, const char *text, size_t bytes)
{
	struct decimal d;

	return decimal_read(&d, text, bytes) && number_fits(s, n, &d);
}

/* Whether the text can be right with k more digits at its end. */
static bool right_with(const struct schema *s, const struct schema_node *n, const char *text, size_t bytes, unsigned k)
{
	char whole[NUMBER_MAX + 8];
	unsigned values = 1;

	for (unsigned i = 0; i < k; i++)
		values *= 10;
	memcpy(whole, text, bytes);
	for (unsigned value = 0; value < values; value++) {
		for (unsigned i = k, v = value; i-- > 0; v /= 10)
			whole[bytes + i] = (char)('0' + v % 10);
		if (number_right(s, n, whole, bytes + k))
			return true;
	}
	return false;
}

/* The whole part before an exponent is one digit, not 0. So a number whose whole part is out of bounds is not saved by
 * what may follow, and models are not led to write 5e-1 where 5 is too much. */
bool number_may_have_exponent(const char *text, size_t n)
{
	size_t from = n && text[0] == '-', e = from;

	while (e < n && (text[e] | 0x20) != 'e')
		e++;
	size_t digits = e + 1 < n ? n - e - 1 - (text[e + 1] == '-' || text[e + 1] == '+') : 0;
	return e == n ||
	       (text[from] != '0' && (e == from + 1 || text[from + 1] == '.') && digits <= EXPONENT_DIGITS_MAX);
}

/* With an exponent, of which there are not many: all are tried. */
static bool exponent_part(const struct schema *s, const struct schema_node *n, enum phase p, const char *text,
                          size_t bytes)
{
	size_t e = strcspn(text, "eE");
	size_t digits = p == EXPONENT_DIGITS
	                        ? strspn(text + e + 1 + (text[e + 1] == '-' || text[e + 1] == '+'), "0123456789")
	                        : 0;
	char minus[NUMBER_MAX + 8];

	if (!number_may_have_exponent(text, bytes))
		return false;
	memcpy(minus, text, bytes);
	minus[bytes] = '-';
	for (unsigned k = digits == 0; digits + k <= EXPONENT_DIGITS_MAX; k++)
		if (right_with(s, n, text, bytes, k) || (p == EXPONENT && right_with(s, n, minus, bytes + 1, k)))
			return true;
	return false;
}

/* Whether a number that begins like this can be right. */
static bool can_complete(const struct schema *s, const struct schema_node *n, enum phase p, const char *text,
                         size_t bytes)
{
	bool negative = bytes && text[0] == '-';
	const char *point;
	struct span v = { .unbounded = true, .closed = true };

	if (p >= EXPONENT)
		return exponent_part(s, n, p, text, bytes);
	text += negative;
	bytes -= negative;
	if (bytes == 0)
		return span_meets(&v, negative, s, n);
	if (!(point = memchr(text, '.', bytes)))
		return whole_part(s, n, text, bytes, negative);
	size_t places = bytes - (size_t)(point - text) - 1;
	if (n->whole && strspn(point + 1, "0") < places && (point != text + 1 || text[0] == '0'))
		return false; /* and no exponent can follow that makes it whole */
	v.unbounded = v.closed = false;
	if (!decimal_read(&v.low, text, bytes))
		return false;
	v.high = v.low;
	decimal_next(&v.high, (int32_t)places);
	if (n->whole && strspn(point + 1, "0") == places)
		v.high = v.low;
	v.closed = n->whole;
	return span_meets(&v, negative, s, n);
}

static void fail_where(const struct json_machine *m, struct frame *f, bool final)
{
	const struct group *g = frame_group(m, f);
	const uint32_t *rest = frame_rest(m, f);
	char text[NUMBER_MAX + 4] = "";

	memcpy(text, rest + TEXT, rest[LENGTH]);
	for (uint32_t i = 0; i < g->n && g->numbers; i++) {
		const struct schema_node *n = &m->schema->node[g->node[i]];
		if (bit(frame_failed(f), i))
			continue;
		if (final ? !number_right(m->schema, n, text, rest[LENGTH])
		          : !can_complete(m->schema, n, (enum phase)rest[PHASE], text, rest[LENGTH]))
			set_bit(frame_failed(f), i);
	}
}

/* Nodes that ask for nothing of a number are no reason to look at it. */
static bool looks(const struct group *g) { return g->numbers; }

static bool alive(struct json_machine *m, struct frame *f)
{
	const struct group *g = frame_group(m, f);
	const uint32_t *rest = frame_rest(m, f);
	char text[NUMBER_MAX + 4] = "";

	if (!group_alive(m, g, &(struct facts){ .failed = frame_failed(f) }))
		return false;
	memcpy(text, rest + TEXT, rest[LENGTH]);
	return !g->joint_numbers || number_can_succeed(m, f, text, rest[LENGTH]);
}

static struct outcome append(struct json_machine *m, struct frame *f, uint8_t byte)
{
	const struct group *g = frame_group(m, f);
	uint32_t *rest = frame_rest(m, f);
	enum phase p = next_phase((enum phase)rest[PHASE], byte);

	if (p == NO_PHASE) {
		if (!may_end((enum phase)rest[PHASE]))
			return dies();
		fail_where(m, f, true);
		struct outcome o = group_done(m, f, NULL);
		o.again = true;
		return o;
	}
	rest[PHASE] = p;
	if (looks(g)) {
		size_t n = rest[LENGTH]++;
		if (n == NUMBER_MAX)
			return dies();
		if (n % 4 == 0)
			frame_push(f, 0);
		rest[TEXT + n / 4] |= (uint32_t)byte << 8 * (n % 4);
		fail_where(m, f, false);
	}
	return alive(m, f) ? stays(m, f) : dies();
}

struct outcome number_begin(struct json_machine *m, struct frame *f, uint8_t byte)
{
	f->w[0] = FRAME_NUMBER;
	frame_push(f, SIGN);
	frame_push(f, 0);
	if (byte != '-')
		return append(m, f, byte);
	struct outcome o = dies();
	if (looks(frame_group(m, f))) {
		frame_push(f, '-');
		frame_rest(m, f)[LENGTH] = 1;
		fail_where(m, f, false);
	}
	if (alive(m, f))
		o = stays(m, f);
	return o;
}

struct outcome number_step(struct json_machine *m, struct frame *f, uint8_t byte) { return append(m, f, byte); }
