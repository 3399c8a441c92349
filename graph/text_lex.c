/* graph/text_lex.c - the parts of a line of a graph's text. */
#include "graph/text_lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool text_fail(struct text_reader *r, const char *expected)
{
	char found[60];
	size_t n = 0;

	while (r->at + n < r->end && n < 40 && r->at[n] != ' ')
		n++;
	if (r->at == r->end)
		return error_set(r->err, ERROR_FORMAT, "%s:%u: the line ends, expected %s", r->file, r->line, expected);
	return error_set(r->err, ERROR_FORMAT, "%s:%u: found \"%s\", expected %s", r->file, r->line,
	                 error_quote(found, sizeof found, r->at, n), expected);
}

void text_skip(struct text_reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r'))
		r->at++;
}

bool text_take(struct text_reader *r, char c)
{
	text_skip(r);
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static bool is_of_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

size_t text_name_length(struct text_reader *r)
{
	size_t n = 0;

	text_skip(r);
	if (r->at < r->end && !isdigit((unsigned char)*r->at))
		while (r->at + n < r->end && is_of_name(r->at[n]))
			n++;
	return n;
}

bool text_name(struct text_reader *r, char out[TEXT_NAME + 1], const char *expected)
{
	const size_t n = text_name_length(r);

	if (n == 0 || n > TEXT_NAME)
		return text_fail(r, expected);
	memcpy(out, r->at, n);
	out[n] = 0;
	r->at += n;
	return true;
}

bool text_number(struct text_reader *r, char out[64])
{
	size_t n = 0;

	text_skip(r);
	while (r->at + n < r->end && n < 63 && (is_of_name(r->at[n]) || r->at[n] == '-' || r->at[n] == '+'))
		n++;
	memcpy(out, r->at, n);
	out[n] = 0;
	return n > 0;
}

static bool read_size(struct text_reader *r, int64_t *out)
{
	char name[TEXT_NAME + 1];
	const char *before = r->at;

	if (!text_name(r, name, "an integer or a size"))
		return false;
	for (size_t i = 0; i < r->n_sizes; i++)
		if (r->declared[i] && strcmp(r->sizes[i].name, name) == 0) {
			*out = (int64_t)r->sizes[i].value;
			return true;
		}
	r->at = before;
	return text_fail(r, "a size that a line such as \"size n\" declares");
}

static bool read_factor(struct text_reader *r, int64_t *out)
{
	char text[64], *end;

	if (text_name_length(r))
		return read_size(r, out);
	if (!text_number(r, text))
		return text_fail(r, "an integer or a size");
	errno = 0;
	*out = strtoll(text, &end, 10);
	if (errno || *end)
		return text_fail(r, "an integer of 64 bits");
	r->at += strlen(text);
	return true;
}

bool text_whole(struct text_reader *r, int64_t *out)
{
	int64_t by;

	if (!read_factor(r, out))
		return false;
	while (text_take(r, '*'))
		if (!read_factor(r, &by))
			return false;
		else if (__builtin_mul_overflow(*out, by, out))
			return text_fail(r, "a product below 2^63");
	return true;
}

bool text_list(struct text_reader *r, int64_t out[TEXT_LIST], uint32_t *n)
{
	*n = 0;
	if (!text_take(r, '['))
		return text_fail(r, "[");
	while (!text_take(r, ']')) {
		if (*n && !text_take(r, ','))
			return text_fail(r, ", or ]");
		if (*n == TEXT_LIST)
			return text_fail(r, "at most 64 numbers");
		if (!text_whole(r, &out[(*n)++]))
			return false;
	}
	return true;
}

bool text_type(struct text_reader *r, int *type, struct shape *s)
{
	char name[TEXT_NAME + 1];
	int64_t dim[TEXT_LIST];
	uint32_t n;

	text_skip(r);
	const char *before = r->at;
	if (!text_name(r, name, "a type such as f32[2,3]"))
		return false;
	*type = tensor_type_of(name, strlen(name));
	if (*type < 0) {
		r->at = before;
		return text_fail(r, "a type such as f32[2,3]");
	}
	if (!text_list(r, dim, &n))
		return false;
	if (n > TENSOR_MAX_RANK)
		return error_set(r->err, ERROR_FORMAT, "%s:%u: %u dimensions, expected at most %d", r->file, r->line, n,
		                 TENSOR_MAX_RANK);
	*s = (struct shape){ .rank = n };
	for (uint32_t i = 0; i < n; i++) {
		if (dim[i] < 0)
			return error_set(r->err, ERROR_FORMAT, "%s:%u: dimension %u is below 0", r->file, r->line,
			                 i + 1);
		s->dim[i] = (uint64_t)dim[i];
	}
	return true;
}
