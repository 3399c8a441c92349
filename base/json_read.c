/* base/json_read.c - see json_read.h. The grammar is json_scan's; here values are made of what it finds. */
#include "base/json_read.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/json_scan.h"

/* Bytes that jansson takes for a value and its place in what holds it, beside its text. */
enum { COST_OBJECT = 224, COST_ARRAY = 128, COST_VALUE = 40, COST_MEMBER = 72 };

struct maker {
	struct json_scan scan;
	char *scratch; /* the last string or number, unescaped and 0-terminated */
	uint64_t capacity, values;
	uint64_t memory, max_memory; /* that the values take, about; 0: any */
	bool digits;                 /* json_read_digits() */
	unsigned exactly;            /* how many members around a value keep its digits */
	locale_t plain;              /* numbers have a point whatever the program's locale writes */
};

/* What jansson's reals cannot hold is a string that no text can spell: 0xff begins no character. */
static const char *const not_finite[] = { "\xffNaN", "\xffInfinity", "\xff-Infinity" };

const char *json_not_finite(const json_t *v)
{
	const char *text = json_string_value(v);

	return text && text[0] == '\xff' ? text + 1 : NULL;
}

/* Neither can they hold an integer of any size: 0xfe begins no character either. */
enum { DIGITS_MARK = 0xfe, DIGITS_MAX = 100 };

const char *json_digits(const json_t *v)
{
	const char *text = json_string_value(v);

	return text && (unsigned char)text[0] == DIGITS_MARK ? text + 1 : NULL;
}

/* The only bytes of a checked text that are no UTF-8 are those of halves: 0xed and then at least 0xa0. */
static bool holds_half(const char *p, size_t n)
{
	for (const char *hit = p; (hit = memchr(hit, 0xed, n - (size_t)(hit - p))) != NULL; hit++)
		if (n - (size_t)(hit - p) > 1 && (unsigned char)hit[1] >= 0xa0)
			return true;
	return false;
}

bool json_is_text(const json_t *v)
{
	return json_is_string(v) && !json_not_finite(v) && !json_digits(v) &&
	       !holds_half(json_string_value(v), json_string_length(v));
}

bool json_name_is_text(const char *name) { return !holds_half(name, strlen(name)); }

const char *json_kind(const json_t *v)
{
	static const char *const name[] = { "an object", "an array", "a string", "an integer",
		                            "a number",  "true",     "false",    "null" };

	if (!v)
		return "absent";
	if (json_not_finite(v))
		return json_not_finite(v);
	if (json_digits(v))
		return "an integer";
	return json_is_string(v) && !json_is_text(v) ? "a string with half a surrogate pair" : name[json_typeof(v)];
}

/* The text unescaped in scratch; its length, or -1 with no memory. */
static int64_t unescape(struct maker *m, const struct json_scan_text *t)
{
	if (t->n + 1 > m->capacity) {
		char *grown = realloc(m->scratch, 2 * t->n + 64);
		if (!grown)
			return -1;
		m->scratch = grown;
		m->capacity = 2 * t->n + 64;
	}
	uint64_t n = t->n;
	if (t->escaped)
		n = json_scan_unescape(t, m->scratch);
	else if (n)
		memcpy(m->scratch, t->p, n);
	m->scratch[n] = 0;
	return (int64_t)n;
}

/* Values and names cost jansson more than their bytes. False: all together have become too many. */
static bool costs(struct maker *m, uint64_t bytes)
{
	m->memory += bytes;
	return !m->max_memory || m->memory <= m->max_memory ||
	       json_scan_fail(&m->scan, "its values take more memory than one text may have");
}

static json_t *make_real(double x)
{
	return isfinite(x) ? json_real(x) : json_string_nocheck(not_finite[isnan(x) ? 0 : x > 0 ? 1 : 2]);
}

static json_t *make_number(struct maker *m)
{
	struct json_scan_text t;
	char *end;

	if (!json_scan_number(&m->scan, &t) || unescape(m, &t) < 0)
		return NULL;
	const bool whole = !memchr(t.p, '.', t.n) && !memchr(t.p, 'e', t.n) && !memchr(t.p, 'E', t.n);
	if (whole && t.n <= 20) {
		__int128 v = 0;
		for (uint64_t i = t.p[0] == '-'; i < t.n; i++)
			v = 10 * v + (t.p[i] - '0');
		v = t.p[0] == '-' ? -v : v;
		if (v >= INT64_MIN && v <= INT64_MAX)
			return json_integer((json_int_t)v);
	}
	if (whole && m->exactly && t.n <= DIGITS_MAX) {
		char text[DIGITS_MAX + 1] = { (char)DIGITS_MARK };
		memcpy(text + 1, m->scratch, t.n);
		return json_stringn_nocheck(text, t.n + 1);
	}
	return make_real(strtod_l(m->scratch, &end, m->plain));
}

static bool compares(const char *name)
{
	static const char *const names[] = { "const",           "enum", "minimum", "maximum", "exclusiveMinimum",
		                             "exclusiveMaximum" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static json_t *make_string(struct maker *m)
{
	struct json_scan_text t;
	int64_t n = json_scan_string(&m->scan, &t) ? unescape(m, &t) : -1;

	return n < 0 || !costs(m, (uint64_t)n) ? NULL : json_stringn_nocheck(m->scratch, (size_t)n);
}

static json_t *make_word(struct maker *m, const char *word, json_t *value)
{
	if (json_scan_word(&m->scan, word))
		return value;
	json_decref(value);
	return NULL;
}

static json_t *make_value(struct maker *m, unsigned depth);

static json_t *make_array(struct maker *m, unsigned depth)
{
	json_t *array = json_array();
	bool ok = array;

	for (bool more = ok && json_scan_open(&m->scan, '[', ']'); ok && more; more = json_scan_more(&m->scan, ']')) {
		json_t *v = make_value(m, depth - 1);
		ok = v && json_array_append_new(array, v) == 0;
		if (!ok)
			break;
	}
	if (ok && !m->scan.problem)
		return array;
	json_decref(array);
	return NULL;
}

/* jansson's names end at a NUL, so one that holds a NUL would become another name. */
static bool make_member(struct maker *m, json_t *object, unsigned depth)
{
	struct json_scan_text t;
	int64_t n = json_scan_member(&m->scan, &t) ? unescape(m, &t) : -1;

	if (n < 0)
		return false;
	if (memchr(m->scratch, 0, (size_t)n))
		return json_scan_fail(&m->scan, "a NUL in a member's name, which is not supported");
	if (!costs(m, COST_MEMBER + (uint64_t)n))
		return false;
	char small[64], *name = n < (int64_t)sizeof small ? small : malloc((size_t)n + 1);
	if (!name)
		return false;
	memcpy(name, m->scratch, (size_t)n + 1);
	const bool exactly = m->digits && compares(name);
	m->exactly += exactly;
	json_t *v = make_value(m, depth - 1);
	m->exactly -= exactly;
	bool ok = v && json_object_set_new_nocheck(object, name, v) == 0;
	if (name != small)
		free(name);
	return ok;
}

static json_t *make_object(struct maker *m, unsigned depth)
{
	json_t *object = json_object();
	bool ok = object;

	for (bool more = ok && json_scan_open(&m->scan, '{', '}'); ok && more;
	     more = ok && json_scan_more(&m->scan, '}'))
		ok = make_member(m, object, depth);
	if (ok && !m->scan.problem)
		return object;
	json_decref(object);
	return NULL;
}

/* NULL: the scan has a problem, or else there is no memory. */
static json_t *make_value(struct maker *m, unsigned depth)
{
	char c = json_scan_peek(&m->scan);

	if (depth == 0 || ++m->values > JSON_MAX_VALUES) {
		json_scan_fail(&m->scan, depth ? "more than 8388608 values" : "nested too deep");
		return NULL;
	}
	if (!costs(m, c == '{' ? COST_OBJECT : c == '[' ? COST_ARRAY : COST_VALUE))
		return NULL;
	switch (c) {
	case '{': return make_object(m, depth);
	case '[': return make_array(m, depth);
	case '"': return make_string(m);
	case 't': return make_word(m, "true", json_true());
	case 'f': return make_word(m, "false", json_false());
	case 'n': return make_word(m, "null", json_null());
	case 'N': return make_word(m, "NaN", make_real(NAN));
	case 'I': return make_word(m, "Infinity", make_real(INFINITY));
	case '-':
		if (m->scan.end - m->scan.at > 1 && m->scan.p[m->scan.at + 1] == 'I')
			return make_word(m, "-Infinity", make_real(-INFINITY));
		break;
	default:
		if (c >= '0' && c <= '9')
			break;
		json_scan_fail(&m->scan, "expected a value");
		return NULL;
	}
	return make_number(m);
}

/* Where the scan stopped, as an editor counts, and why. */
static void say_why(const struct maker *m, const char *label, struct error *err)
{
	const struct json_scan *s = &m->scan;
	uint64_t line = 1, start = 0;

	if (!s->problem) {
		error_set(err, ERROR_MEMORY, "%s: no memory for its values", label);
		return;
	}
	if (m->max_memory && m->memory > m->max_memory) {
		error_set(err, ERROR_UNSUPPORTED, "%s: its values take more than %" PRIu64 " MiB of memory", label,
		          m->max_memory >> 20);
		return;
	}
	for (uint64_t i = 0; i < s->at; i++)
		if (s->p[i] == '\n') {
			line++;
			start = i + 1;
		}
	error_set(err, ERROR_FORMAT, "%s: is not valid JSON in line %" PRIu64 ", byte %" PRIu64 ": %s", label, line,
	          s->at - start + 1, s->problem);
}

static json_t *read_text(const void *text, uint64_t n, uint64_t max, struct maker m, const char *label,
                         struct error *err)
{
	json_t *root = NULL;
	size_t mark;

	if (n > max) {
		error_set(err, ERROR_FORMAT, "%s: has %" PRIu64 " bytes, expected at most %" PRIu64, label, n, max);
		return NULL;
	}
	const char *other = text_coding(text, n, &mark);
	if (other) {
		error_set(err, ERROR_FORMAT, "%s: is a text in %s, expected UTF-8", label, other);
		return NULL;
	}
	m.scan = json_scan_of(text, n);
	m.scan.lone_surrogates = true;
	m.plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (mark)
		json_scan_fail(&m.scan, "it begins with a byte order mark");
	else if (m.plain)
		root = make_value(&m, JSON_MAX_DEPTH);
	if (root && !json_scan_finish(&m.scan)) {
		json_decref(root);
		root = NULL;
	}
	if (!root)
		say_why(&m, label, err);
	free(m.scratch);
	if (m.plain)
		freelocale(m.plain);
	return root;
}

json_t *json_read(const void *text, uint64_t n, uint64_t max, const char *label, struct error *err)
{
	return read_text(text, n, max, (struct maker){ .digits = false }, label, err);
}

json_t *json_read_digits(const void *text, uint64_t n, uint64_t max, const char *label, struct error *err)
{
	return read_text(text, n, max, (struct maker){ .digits = true }, label, err);
}

json_t *json_read_within(const void *text, uint64_t n, uint64_t memory, const char *label, struct error *err)
{
	return read_text(text, n, n, (struct maker){ .digits = true, .max_memory = memory }, label, err);
}

/* As deep as json_read() reads. */
static bool is_plain(const json_t *v)
{
	const char *name;
	json_t *one;
	size_t i;

	if (json_is_string(v))
		return json_is_text(v);
	json_array_foreach(v, i, one)
	{
		if (!is_plain(one))
			return false;
	}
	json_object_foreach((json_t *)(uintptr_t)v, name, one)
	{
		if (!json_name_is_text(name) || !is_plain(one))
			return false;
	}
	return true;
}

json_t *json_read_plain(const void *text, uint64_t n)
{
	json_t *o = json_read(text, n, n, "a text", NULL);

	if (!o || is_plain(o))
		return o;
	json_decref(o);
	return NULL;
}
