/* chat/jinja_json.c - JSON texts to values and back.
 *
 * Owns: both ways. Values are made straight from loaders/json_scan's pieces, without a tree of jansson's between: a
 * template sees members in their order, and whether a number was written as an integer. It never sees half of a
 * surrogate pair. The trees that loaders/json_read makes for configuration files keep none of this.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/jinja.h"
#include "base/json_scan.h"

struct reader {
	struct run *r;
	struct json_scan scan;
	enum chat_source source;
};

static struct value read_value(struct reader *d, unsigned depth, bool message);

static const struct text *read_text(struct reader *d, const struct json_scan_text *raw)
{
	struct text t = { .p = raw->p, .n = raw->n, .user = d->source != CHAT_MODEL };
	char *p = run_take(d->r, raw->n + 1);

	/* a copy, for a template's texts outlive the caller's in what is rendered from them */
	if (!p || !run_bytes(d->r, raw->n))
		return NULL;
	t.n = json_scan_unescape(raw, p);
	t.p = p;
	return text_copy(d->r, &t);
}

/* Roles that chat templates know by name: as special tokens are made with them, these alone are taken for the
 * template's own words. */
static bool known_role(const struct text *t)
{
	static const char *const roles[] = { "system",   "user",    "assistant", "tool",        "developer",
		                             "function", "ipython", "model",     "environment", "observation" };

	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (text_is(t, roles[i]))
			return true;
	return false;
}

static struct value read_object(struct reader *d, unsigned depth, bool message)
{
	struct value v = dict_new(d->r, 0);
	struct json_scan_text raw;

	if (v.kind == KIND_ABSENT)
		return v;
	v.user = d->source != CHAT_MODEL;
	for (bool more = json_scan_open(&d->scan, '{', '}'); more && !d->r->failed;
	     more = json_scan_more(&d->scan, '}')) {
		if (!json_scan_member(&d->scan, &raw))
			break;
		const struct text *name = read_text(d, &raw);
		struct value member = name ? read_value(d, depth - 1, false) : value_none();
		if (message && member.kind == KIND_TEXT && text_is(name, "role") && known_role(member.text))
			member =
				value_text(text_copy(d->r, &(struct text){ .p = member.text->p, .n = member.text->n }));
		if (d->r->failed || d->scan.problem || !dict_append(d->r, v.dict, value_text(name), member))
			break;
	}
	if (!d->scan.problem && !d->r->failed)
		dict_finish(d->r, v.dict);
	return v;
}

static struct value read_array(struct reader *d, unsigned depth, bool messages)
{
	size_t capacity = 0, n = 0;
	struct value *item = NULL;

	for (bool more = json_scan_open(&d->scan, '[', ']'); more && !d->r->failed;
	     more = json_scan_more(&d->scan, ']')) {
		struct value v = read_value(d, depth - 1, messages);
		if (d->scan.problem || d->r->failed)
			break;
		if (n == capacity) {
			capacity = n ? 2 * n : 4;
			struct value *grown = run_take(d->r, capacity * sizeof *grown);
			if (!grown)
				break;
			if (n)
				memcpy(grown, item, n * sizeof *grown);
			item = grown;
		}
		item[n++] = v;
	}
	struct list *l = run_take(d->r, sizeof *l);
	if (!l)
		return value_of(KIND_ABSENT);
	*l = (struct list){ .item = item, .n = n };
	return (struct value){ .kind = KIND_LIST, .user = d->source != CHAT_MODEL, .list = l };
}

static struct value read_number(struct reader *d)
{
	struct json_scan_text raw;
	char text[400];
	int64_t i = 0;
	bool negative;

	if (!json_scan_number(&d->scan, &raw))
		return value_of(KIND_ABSENT);
	if (memchr(raw.p, '.', raw.n) || memchr(raw.p, 'e', raw.n) || memchr(raw.p, 'E', raw.n)) {
		if (raw.n >= sizeof text) {
			json_scan_fail(&d->scan, "a number of more than 399 characters");
			return value_of(KIND_ABSENT);
		}
		memcpy(text, raw.p, raw.n);
		text[raw.n] = 0;
		return value_float(strtod(text, NULL));
	}
	negative = raw.p[0] == '-';
	for (size_t k = negative; k < raw.n; k++)
		if (__builtin_mul_overflow(i, 10, &i) || __builtin_sub_overflow(i, raw.p[k] - '0', &i)) {
			json_scan_fail(&d->scan, "an integer does not fit 64 bits");
			return value_of(KIND_ABSENT);
		}
	if (!negative && i == INT64_MIN)
		json_scan_fail(&d->scan, "an integer does not fit 64 bits");
	return value_int(negative ? i : i == INT64_MIN ? 0 : -i);
}

static struct value read_scalar(struct reader *d, char c)
{
	struct json_scan_text raw;

	switch (c) {
	case '"': return json_scan_string(&d->scan, &raw) ? value_text(read_text(d, &raw)) : value_of(KIND_ABSENT);
	case 't': json_scan_word(&d->scan, "true"); return value_bool(true);
	case 'f': json_scan_word(&d->scan, "false"); return value_bool(false);
	case 'n': json_scan_word(&d->scan, "null"); return value_none();
	default: break;
	}
	if (c == '-' || (c >= '0' && c <= '9'))
		return read_number(d);
	json_scan_fail(&d->scan, "expected a value");
	return value_of(KIND_ABSENT);
}

static struct value read_value(struct reader *d, unsigned depth, bool message)
{
	char c = json_scan_peek(&d->scan);
	struct value v;

	if (depth == 0)
		json_scan_fail(&d->scan, "nested too deep");
	if (!run_step(d->r, 1) || d->scan.problem)
		return value_of(KIND_ABSENT);
	if (c == '{')
		return read_object(d, depth, message);
	if (c == '[')
		return read_array(d, depth, d->source == CHAT_MESSAGES && depth == JSON_MAX_DEPTH);
	v = read_scalar(d, c);
	if (v.kind != KIND_TEXT)
		v.user = d->source != CHAT_MODEL;
	return v;
}

struct value json_value(struct run *r, const struct chat_variable *variable)
{
	struct reader d = { .r = r, .scan = json_scan_of(variable->json, variable->n), .source = variable->source };
	struct value v;

	if (!variable->json)
		return value_of(KIND_ABSENT);
	if (variable->n > CHAT_MAX_JSON) {
		r->failed = true;
		error_set(r->err, ERROR_ARGUMENT, "the JSON text of \"%s\" has %zu bytes, expected at most %d",
		          variable->name, variable->n, CHAT_MAX_JSON);
		return value_of(KIND_ABSENT);
	}
	v = read_value(&d, JSON_MAX_DEPTH, false);
	if (!r->failed && !json_scan_finish(&d.scan)) {
		r->failed = true;
		error_set(r->err, ERROR_ARGUMENT, "\"%s\" is not valid JSON at byte %llu: %s", variable->name,
		          (unsigned long long)d.scan.at + 1, d.scan.problem);
	}
	return v;
}

/* ---- values to JSON, as Python's json.dumps */

static void json_text(struct build *b, const struct text *t, bool ascii, bool user)
{
	static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
	char text[20];
	size_t plain = 0, i = 0;

	build_bytes(b, "\"", 1, user);
	while (i < t->n && !b->r->failed) {
		uint32_t c;
		unsigned n = text_at(t, i, &c);
		const char *f = c && c < 0x80 ? strchr(from, (int)c) : NULL;
		if (!f && c >= 0x20 && (c < 0x7f || !ascii)) {
			i += n;
			continue;
		}
		build_part(b, t, plain, i - plain);
		if (f)
			snprintf(text, sizeof text, "\\%c", to[f - from]);
		else if (c < 0x10000)
			snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
		else
			snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((unsigned)(c - 0x10000) >> 10),
			         0xdc00 + ((unsigned)c & 0x3ff));
		build_string(b, text, text_user_at(t, i));
		plain = i += n;
	}
	build_part(b, t, plain, i - plain);
	build_bytes(b, "\"", 1, user);
}

struct style {
	bool ascii, sorted;
	const struct text *indent, *comma, *colon;
};

static void json_any(struct build *b, const struct style *s, struct value v, unsigned depth);

static void json_line(struct build *b, const struct style *s, unsigned depth)
{
	if (!s->indent)
		return;
	build_bytes(b, "\n", 1, false);
	for (unsigned i = 0; i < depth && !b->r->failed; i++)
		build_text(b, s->indent);
}

static void json_separator(struct build *b, const struct text *t, bool user)
{
	build_bytes(b, t->p, t->n, user || t->user);
}

static void json_scalar(struct build *b, struct value v)
{
	char text[40];

	if (v.kind == KIND_FLOAT) {
		print_float(v.real, text);
		build_string(b,
		             strcmp(text, "inf") == 0    ? "Infinity"
		             : strcmp(text, "-inf") == 0 ? "-Infinity"
		             : strcmp(text, "nan") == 0  ? "NaN"
		                                         : text,
		             v.user);
	} else if (v.kind == KIND_INT) {
		build_str(b, v);
	} else {
		build_string(b, v.kind == KIND_NONE ? "null" : v.truth ? "true" : "false", v.user);
	}
}

static void json_list(struct build *b, const struct style *s, struct value v, unsigned depth)
{
	build_bytes(b, "[", 1, v.user);
	for (size_t i = 0; i < v.list->n && !b->r->failed; i++) {
		if (i)
			json_separator(b, s->comma, v.user);
		json_line(b, s, depth + 1);
		json_any(b, s, v.list->item[i], depth + 1);
	}
	if (v.list->n)
		json_line(b, s, depth);
	build_bytes(b, "]", 1, v.user);
}

static void json_key(struct build *b, const struct style *s, struct value key, bool user)
{
	struct build name = { .r = b->r };

	if (key.kind == KIND_TEXT) {
		json_text(b, key.text, s->ascii, text_user_at(key.text, 0));
		return;
	}
	if (key.kind != KIND_NONE && !is_number(key)) {
		run_fail(b->r, "keys must be str, int, float, bool or None, not %s", value_type(key));
		return;
	}
	json_scalar(&name, key);
	const struct text *t = build_done(&name);
	if (t)
		json_text(b, t, s->ascii, user);
}

/* The pairs in the order of their keys. */
static bool sorted_pairs(struct run *r, const struct dict *d, struct pair *out)
{
	if (d->n)
		memcpy(out, d->pair, d->n * sizeof *out);
	for (size_t width = 1; width < d->n && !r->failed; width *= 2) {
		struct pair *to = run_take(r, d->n * sizeof *to);
		for (size_t lo = 0; to && lo < d->n && !r->failed; lo += 2 * width) {
			size_t mid = lo + width < d->n ? lo + width : d->n,
			       hi = lo + 2 * width < d->n ? lo + 2 * width : d->n, a = lo, z = mid;
			for (size_t k = lo; k < hi; k++)
				to[k] = a < mid && (z == hi || value_compare(r, out[z].key, out[a].key, "<") >= 0)
				                ? out[a++]
				                : out[z++];
		}
		if (to)
			memcpy(out, to, d->n * sizeof *out);
	}
	return !r->failed;
}

static void json_dict(struct build *b, const struct style *s, struct value v, unsigned depth)
{
	struct pair *pair = v.dict->pair;

	if (s->sorted &&
	    (!(pair = run_take(b->r, (v.dict->n + 1) * sizeof *pair)) || !sorted_pairs(b->r, v.dict, pair)))
		return;
	build_bytes(b, "{", 1, v.user);
	for (size_t i = 0; i < v.dict->n && !b->r->failed; i++) {
		if (i)
			json_separator(b, s->comma, v.user);
		json_line(b, s, depth + 1);
		json_key(b, s, pair[i].key, v.user);
		json_separator(b, s->colon, v.user);
		json_any(b, s, pair[i].value, depth + 1);
	}
	if (v.dict->n)
		json_line(b, s, depth);
	build_bytes(b, "}", 1, v.user);
}

static void json_any(struct build *b, const struct style *s, struct value v, unsigned depth)
{
	struct run *r = b->r;

	if (!run_step(r, 1))
		return;
	if (r->depth >= CHAT_MAX_DEPTH) {
		run_fail(r, "a value is nested too deep");
		return;
	}
	r->depth++;
	switch ((enum kind)v.kind) {
	case KIND_NONE:
	case KIND_BOOL:
	case KIND_INT:
	case KIND_FLOAT: json_scalar(b, v); break;
	case KIND_TEXT: json_text(b, v.text, s->ascii, text_user_at(v.text, 0)); break;
	case KIND_LIST:
	case KIND_TUPLE: json_list(b, s, v, depth); break;
	case KIND_DICT: json_dict(b, s, v, depth); break;
	case KIND_STREAM:
		if (r->lenient) {
			v.list = iterate(r, v);
			if (v.list)
				json_list(b, s, v, depth);
			break;
		} /* fall through */
	default: run_fail(r, "Object of type %s is not JSON serializable", value_type(v)); break;
	}
	r->depth--;
}

void build_json(struct build *b, struct value v, bool ascii, bool sorted, const struct text *indent,
                const struct text *comma, const struct text *colon, unsigned depth)
{
	const struct style s = { ascii, sorted, indent, comma, colon };

	json_any(b, &s, v, depth);
}
