/* graph/text.c - a graph read from text. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/text_lex.h"
#include "graph/users.h"

/* Says which line is wrong. */
static bool at_line(struct text_reader *r, const struct error *why)
{
	return error_set(r->err, why->code ? why->code : ERROR_FORMAT, "%s:%u: %s", r->file, r->line, why->text);
}

static bool read_element(struct text_reader *r, int type, union number *x)
{
	const int wide = tensor_wide_type(type);
	char text[64], *end;

	if (!text_number(r, text))
		return text_fail(r, "as many numbers as the constant has elements");
	errno = 0;
	if (wide == JIT_TYPE_F32)
		x->f = strtof(text, &end);
	else if (wide == JIT_TYPE_F64)
		x->d = strtod(text, &end);
	else if (tensor_is_signed(type))
		x->i = strtoll(text, &end, 10);
	else
		x->u = strtoull(text, &end, 10);
	if (*end || (errno == ERANGE && !tensor_is_float(type)) ||
	    (*text == '-' && !tensor_is_float(type) && !tensor_is_signed(type)))
		return text_fail(r, "a number of the constant's type");
	struct tensor one = { .type = type, .data = (uint8_t[8]){ 0 } };
	tensor_put(&one, 0, *x);
	if (!tensor_is_float(type) && tensor_get(&one, 0).u != x->u)
		return text_fail(r, "a number of the constant's type");
	r->at += strlen(text);
	return true;
}

static tensor_value read_constant(struct text_reader *r)
{
	struct error why = { 0 };
	struct tensor t;
	struct shape s;
	tensor_value v = 0;
	int type;

	if (!text_type(r, &type, &s))
		return 0;
	/* Each element takes two bytes of the line, so that no text makes a constant that is larger than itself. */
	if (shape_fits(type, &s, &why) && shape_elements(&s) > (uint64_t)(r->end - r->at)) {
		text_fail(r, "as many numbers as the constant has elements");
		return 0;
	}
	if (!tensor_make(&t, type, &s, &why)) {
		at_line(r, &why);
		return 0;
	}
	bool ok = true;
	union number x;
	for (uint64_t i = 0; ok && i < shape_elements(&s); i++) {
		ok = read_element(r, type, &x);
		if (ok)
			tensor_put(&t, i, x);
	}
	if (ok && !(v = tensor_graph_constant(r->g, &t, &why)))
		at_line(r, &why);
	tensor_free(&t);
	return v;
}

struct statement {
	enum tensor_op op;
	tensor_value operand[TENSOR_MAX_OPERANDS];
	struct attribute attribute[TENSOR_ATTRIBUTES];
	int64_t number[TENSOR_ATTRIBUTES][TEXT_LIST];
	uint32_t operands, attributes;
};

static bool read_word(struct text_reader *r, enum tensor_attribute which, int64_t *out)
{
	const struct attribute_row *row = &tensor_attributes[which];
	char word[TEXT_NAME + 1];
	const char *before = r->at;

	if (!text_name(r, word, row->kind == ATTRIBUTE_TYPE ? "a type" : "a word"))
		return false;
	*out = row->kind == ATTRIBUTE_TYPE ? tensor_type_of(word, strlen(word)) : tensor_word_find(which, word);
	if (*out >= 0)
		return true;
	r->at = before;
	return text_fail(r, row->kind == ATTRIBUTE_TYPE ? "a type such as f32"
	                    : which == ATTRIBUTE_mode   ? "set, add, mul, min or max"
	                                                : "a format of weights such as Q4_K");
}

/* In constants, a size's name stands for its number: "n=n" is "n=64". Returns how many bytes there are. */
static size_t put_sizes(const struct text_reader *r, const char *text, size_t n, char *out)
{
	size_t at = 0;

	for (size_t i = 0; i < n;) {
		const size_t length = strcspn(text + i, "= ,\t\n");
		const bool is_value = i > 0 && text[i - 1] == '=';
		size_t k = 0;
		while (k < r->n_sizes && !(is_value && r->declared[k] && strlen(r->sizes[k].name) == length &&
		                           memcmp(r->sizes[k].name, text + i, length) == 0))
			k++;
		if (k < r->n_sizes)
			at += (size_t)sprintf(out + at, "%" PRIu64, r->sizes[k].value);
		else
			memcpy(out + at, text + i, length), at += length;
		i += length;
		if (i < n)
			out[at++] = text[i++];
	}
	return at;
}

/* A text in quotes. Its integers are to be freed (statement_free). */
static bool read_text(struct text_reader *r, struct attribute *a)
{
	const size_t max = (size_t)(r->end - r->at) + 1;
	char *text = malloc(max), *sized = malloc(max * 22); /* each value may become a number */
	bool ok = (text && sized) || error_set(r->err, ERROR_MEMORY, "there is no memory for a graph");
	size_t n = 0;

	if (ok && (r->at == r->end || *r->at != '"'))
		ok = text_fail(r, "a text in quotes");
	for (r->at += ok; ok && r->at < r->end && *r->at != '"'; r->at++) {
		char c = *r->at;
		if (c == '\\' && r->at + 1 < r->end) {
			c = *++r->at;
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		text[n++] = c;
	}
	if (ok && r->at == r->end)
		ok = text_fail(r, "a quote at the end of the text");
	r->at += ok;
	if (ok && a->name == ATTRIBUTE_constants) {
		text[n] = 0;
		n = put_sizes(r, text, n, sized);
	}
	ok = ok &&
	     (a->name == ATTRIBUTE_body
	              ? text_body(r, a, text, n)
	              : attribute_make_text(a, a->name, a->name == ATTRIBUTE_constants ? sized : text, n, r->err));
	free(text);
	free(sized);
	return ok;
}

static void statement_free(struct statement *s)
{
	for (uint32_t i = 0; i < s->attributes; i++)
		if (tensor_attributes[s->attribute[i].name].kind == ATTRIBUTE_TEXT)
			free(s->attribute[i].whole);
}

static bool read_attribute(struct text_reader *r, struct statement *s, const char *name)
{
	const enum tensor_attribute which = tensor_attribute_find(name, strlen(name));

	if (which == TENSOR_ATTRIBUTES)
		return error_set(r->err, ERROR_FORMAT, "%s:%u: no operation has an attribute %s", r->file, r->line,
		                 name);
	if (s->attributes == TENSOR_ATTRIBUTES)
		return text_fail(r, "fewer attributes");
	const struct attribute_row *row = &tensor_attributes[which];
	int64_t *number = s->number[s->attributes];
	struct attribute *a = &s->attribute[s->attributes++];
	*a = (struct attribute){ which, 1, row->kind == ATTRIBUTE_TEXT ? NULL : number, 0 };
	if (row->kind == ATTRIBUTE_TEXT)
		return read_text(r, a);
	if (row->kind == ATTRIBUTE_WHOLES)
		return text_list(r, number, &a->n);
	if (row->kind == ATTRIBUTE_TYPE || row->kind == ATTRIBUTE_WORD)
		return read_word(r, which, number);
	return text_whole(r, number);
}

static bool read_operands(struct text_reader *r, struct statement *s)
{
	char name[TEXT_NAME + 1];

	for (text_skip(r); r->at < r->end; text_skip(r)) {
		const char *before = r->at;
		if (!text_name(r, name, "a value or an attribute"))
			return false;
		if (r->at < r->end && *r->at == '=') {
			r->at++;
			if (!read_attribute(r, s, name))
				return false;
			continue;
		}
		r->at = before;
		if (s->attributes || s->operands == TENSOR_MAX_OPERANDS)
			return text_fail(r, s->attributes ? "an attribute" : "at most 64 operands");
		if (!(s->operand[s->operands++] = tensor_graph_find(r->g, name)))
			return text_fail(r, "a value that a line above gives");
		r->at += strlen(name);
	}
	return true;
}

static tensor_value read_node(struct text_reader *r)
{
	struct statement s = { .operands = 0 };
	struct error why = { 0 };
	char name[TEXT_NAME + 1];
	tensor_value v;

	text_skip(r);
	const char *before = r->at;
	if (!text_name(r, name, "an operation"))
		return 0;
	s.op = tensor_op_find(name, strlen(name));
	if (s.op == OP_constant)
		return read_constant(r);
	if (s.op == TENSOR_OPS) {
		r->at = before;
		text_fail(r, "an operation such as add");
		return 0;
	}
	v = 0;
	if (read_operands(r, &s) &&
	    !(v = tensor_graph_add(r->g, s.op, s.operand, s.operands, s.attribute, s.attributes, &why)))
		at_line(r, &why);
	statement_free(&s);
	return v;
}

static tensor_value read_operation(struct text_reader *r, const char *text, const tensor_value *operand, size_t n)
{
	struct statement s = { .operands = 0 };
	char name[TEXT_NAME + 1];
	tensor_value v = 0;

	if (!text_name(r, name, "an operation such as add"))
		return 0;
	s.op = tensor_op_find(name, strlen(name));
	if (s.op == TENSOR_OPS) {
		error_set(r->err, ERROR_ARGUMENT, "operation \"%s\", expected one such as add", name);
		return 0;
	}
	if (n > TENSOR_MAX_OPERANDS) {
		error_set(r->err, ERROR_ARGUMENT, "%zu operands, expected at most %d", n, TENSOR_MAX_OPERANDS);
		return 0;
	}
	if (read_operands(r, &s) && s.operands)
		error_set(r->err, ERROR_ARGUMENT, "operation \"%.200s\" names a value, expected attributes alone",
		          text);
	else if (r->err->code == ERROR_NONE)
		v = tensor_graph_add(r->g, s.op, operand, (uint32_t)n, s.attribute, s.attributes, r->err);
	statement_free(&s);
	return v;
}

tensor_value graph_text_node(struct tensor_graph *g, const char *text, const tensor_value *operand, size_t n,
                             const struct graph_size *sizes, size_t n_sizes, struct error *err)
{
	struct text_reader r = { .g = g,
		                 .file = "operation",
		                 .line = 1,
		                 .at = text,
		                 .end = text + strlen(text),
		                 .sizes = sizes,
		                 .n_sizes = n_sizes,
		                 .err = err };
	tensor_value v = 0;

	r.declared = malloc(n_sizes + 1);
	if (!r.declared) {
		error_set(err, ERROR_MEMORY, "there is no memory for a graph");
		return 0;
	}
	memset(r.declared, true, n_sizes + 1);
	v = read_operation(&r, text, operand, n);
	free(r.declared);
	return v;
}

/* a, b = sort x i axis=1; the first name was read. */
static bool read_assignment(struct text_reader *r, const char *first)
{
	enum { RESULTS = TENSOR_MAX_RESULTS };
	char name[RESULTS][TEXT_NAME + 1];
	unsigned n = 1;

	strcpy(name[0], first);
	while (text_take(r, ','))
		if (n == RESULTS || !text_name(r, name[n++], "a name"))
			return n < RESULTS ? false : text_fail(r, "at most 64 names");
	if (!text_take(r, '='))
		return text_fail(r, "=");
	const tensor_value v = read_node(r);
	if (!v)
		return false;
	const uint32_t results = tensor_node_of(r->g, v)->results;
	if (results != n)
		return error_set(r->err, ERROR_FORMAT, "%s:%u: %u names, but the operation has %u results", r->file,
		                 r->line, n, results);
	for (unsigned i = 0; i < n; i++)
		if (!tensor_graph_name_value(r->g, v + i, name[i], r->err))
			return false;
	return true;
}

static bool read_input(struct text_reader *r)
{
	struct error why = { 0 };
	char name[TEXT_NAME + 1];
	struct shape s;
	int type;

	return text_name(r, name, "a name") && text_type(r, &type, &s) &&
	       (tensor_graph_input(r->g, name, type, &s, &why) || at_line(r, &why));
}

/* output y, or output y as NAME */
static bool read_output(struct text_reader *r)
{
	char name[TEXT_NAME + 1], as[TEXT_NAME + 1], word[TEXT_NAME + 1];

	text_skip(r);
	const char *before = r->at;
	if (!text_name(r, name, "a value"))
		return false;
	const tensor_value v = tensor_graph_find(r->g, name);
	if (!v) {
		r->at = before;
		return text_fail(r, "a value that a line above gives");
	}
	strcpy(as, name);
	if (text_name_length(r) &&
	    (!text_name(r, word, "as") || strcmp(word, "as") != 0 || !text_name(r, as, "a name")))
		return error_set(r->err, ERROR_FORMAT, "%s:%u: expected output VALUE as NAME", r->file, r->line);
	return tensor_graph_output(r->g, as, v, r->err);
}

static bool declare_size(struct text_reader *r)
{
	char name[TEXT_NAME + 1];

	if (!text_name(r, name, "a name"))
		return false;
	for (size_t i = 0; i < r->n_sizes; i++)
		if (strcmp(r->sizes[i].name, name) == 0) {
			if (r->sizes[i].value > TENSOR_MAX_BYTES)
				return error_set(r->err, ERROR_ARGUMENT, "size %s is above 2^46", name);
			r->declared[i] = true;
			return true;
		}
	return error_set(r->err, ERROR_ARGUMENT, "%s:%u: size %s has no value", r->file, r->line, name);
}

static bool read_line(struct text_reader *r)
{
	char word[TEXT_NAME + 1];

	text_skip(r);
	if (r->at == r->end)
		return true;
	if (!text_name(r, word, "a statement"))
		return false;
	text_skip(r);
	const bool assigns = r->at < r->end && (*r->at == '=' || *r->at == ',');
	bool ok;
	if (assigns) {
		ok = read_assignment(r, word);
	} else if (strcmp(word, "input") == 0) {
		ok = read_input(r);
	} else if (strcmp(word, "output") == 0) {
		ok = read_output(r);
	} else if (strcmp(word, "size") == 0) {
		ok = declare_size(r);
	} else if (strcmp(word, "graph") == 0) {
		ok = text_name(r, word, "a name");
		if (ok) {
			free(r->g->name);
			r->g->name = strdup(word);
		}
	} else {
		return error_set(r->err, ERROR_FORMAT,
		                 "%s:%u: found \"%s\", expected graph, size, input, output or NAME = OPERATION",
		                 r->file, r->line, word);
	}
	text_skip(r);
	return ok && (r->at == r->end || text_fail(r, "the end of the line"));
}

static bool finish(const struct text_reader *r)
{
	for (size_t i = 0; i < r->n_sizes; i++)
		if (!r->declared[i])
			return error_set(r->err, ERROR_ARGUMENT, "%s has no size %s", r->file, r->sizes[i].name);
	return r->g->outputs > 0 || error_set(r->err, ERROR_FORMAT, "%s has no output", r->file);
}

/* Where the line's comment begins, which is not within quotes; its end: it has none. */
static const char *comment_of(const char *from, const char *end)
{
	bool quoted = false;

	for (const char *p = from; p < end; p++)
		if (*p == '#' && !quoted)
			return p;
		else if (*p == '"')
			quoted = !quoted;
		else if (*p == '\\' && quoted)
			p++;
	return end;
}

static bool read_lines(struct text_reader *r, const char *text, size_t bytes)
{
	bool ok = true;

	for (size_t at = 0; ok && at < bytes;) {
		const char *from = text + at, *line_end = memchr(from, '\n', bytes - at);
		const size_t n = line_end ? (size_t)(line_end - from) : bytes - at;
		r->line++;
		r->at = from;
		r->end = comment_of(from, from + n);
		ok = read_line(r);
		at += n + 1;
	}
	return ok;
}

bool graph_text_read(struct tensor_graph *g, const char *file, const char *text, size_t bytes,
                     const struct graph_size *sizes, size_t n_sizes, struct error *err)
{
	struct text_reader r = { .g = g, .file = file, .sizes = sizes, .n_sizes = n_sizes, .err = err };

	tensor_graph_init(g);
	r.declared = calloc(n_sizes + 1, sizeof *r.declared);
	bool ok = r.declared != NULL || error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	ok = ok && read_lines(&r, text, bytes) && finish(&r);
	free(r.declared);
	if (!ok)
		tensor_graph_free(g);
	return ok;
}

bool graph_text_add(struct tensor_graph *g, const char *file, const char *text, size_t bytes,
                    const struct graph_size *sizes, size_t n_sizes, struct error *err)
{
	struct text_reader r = { .g = g, .file = file, .sizes = sizes, .n_sizes = n_sizes, .err = err };
	const struct tensor_graph_mark before = tensor_graph_mark(g);

	r.declared = malloc(n_sizes + 1);
	bool ok = r.declared != NULL || error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	if (ok)
		memset(r.declared, true, n_sizes + 1);
	ok = ok && read_lines(&r, text, bytes);
	free(r.declared);
	if (!ok)
		tensor_graph_cut(g, &before);
	return ok;
}

size_t graph_text_sizes(const char *text, size_t bytes, const char *name[], size_t length[], size_t max)
{
	struct text_reader r = { .file = "" };
	size_t n = 0;

	for (size_t at = 0; at < bytes && n < max;) {
		const char *from = text + at, *line_end = memchr(from, '\n', bytes - at);
		const size_t length_of = line_end ? (size_t)(line_end - from) : bytes - at;
		r.at = from;
		r.end = from + length_of;
		if (text_name_length(&r) == 4 && memcmp(r.at, "size", 4) == 0) {
			r.at += 4;
			length[n] = text_name_length(&r);
			name[n] = r.at;
			n += length[n] > 0;
		}
		at += length_of + 1;
	}
	return n;
}
