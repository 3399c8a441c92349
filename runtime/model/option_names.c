/* runtime/model/option_names.c - one field of a struct of options, by its name and a text.
 *
 * Owns: how a text becomes the value of a field, by the table of option_rows.def. What a value may be is the affair of
 * options.h and of the samplers, which are asked before the caller's struct is touched.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/jitrun_options.h"
#include "runtime/model/model.h"
#include "runtime/model/options.h"
#include "runtime/sampling/sampling.h"
#include "runtime/model/sized.h"

enum kind { WHOLE, LARGE, SIGNED, REAL, DOUBLE, FLAG, TEXT, ADDRESS };
struct row {
	const char *type, *name, *alias, *words;
	size_t offset, bytes;
	enum kind kind;
};
static const struct row rows[] = {
#define OPTION(type, field, kind, alias, words) \
	{ #type, #field, alias, words, offsetof(type, field), sizeof((type){ 0 }.field), kind },
#include "runtime/model/option_rows.def"
#undef OPTION
};
enum { ROWS = sizeof rows / sizeof *rows, MAX_BYTES = 512 };

/* ---- names */

static char as_name(char c) { return c == '-' ? '_' : c; }

static bool is_name(const char *given, const char *name)
{
	while (name && *name && as_name(*given) == as_name(*name))
		given++, name++;
	return name && !*name && !*given;
}

static bool refuse_name(const char *type, const char *name, struct error *err)
{
	char names[400] = "", quoted[48];
	size_t at = 0;

	for (size_t i = 0; i < ROWS && at < sizeof names; i++)
		if (strcmp(rows[i].type, type) == 0 && rows[i].kind != ADDRESS)
			at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? " " : "", rows[i].name);
	return error_set(err, ERROR_ARGUMENT, "%s has no option \"%s\"; there are %s", type,
	                 error_quote(quoted, sizeof quoted, name, strlen(name)), names);
}

static const struct row *find(const char *type, const char *name, struct error *err)
{
	const char *given = name + strspn(name, "-");

	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].type, type) == 0 && (is_name(given, rows[i].name) || is_name(given, rows[i].alias)))
			return &rows[i];
	refuse_name(type, name, err);
	return NULL;
}

/* ---- values */

static bool refuse_value(const struct row *r, const char *value, const char *expected, struct error *err)
{
	char quoted[80], words[200] = "";

	if (r->words)
		snprintf(words, sizeof words, " or one of %s", r->words);
	return error_set(err, ERROR_ARGUMENT, "%s: \"%s\" is not %s%s", r->name,
	                 error_quote(quoted, sizeof quoted, value, strlen(value)), expected, words);
}

/* "name=number name=number" */
static bool word(const char *words, const char *value, int *number)
{
	for (const char *at = words; at && *at; at += *at == ' ') {
		const size_t n = strcspn(at, "=");
		char name[32];
		snprintf(name, sizeof name, "%.*s", (int)n, at);
		if (is_name(value, name)) {
			*number = atoi(at + n + 1);
			return true;
		}
		at += strcspn(at, " ");
	}
	return false;
}

static bool read_signed(const struct row *r, const char *value, int64_t min, int64_t max, int64_t *out,
                        struct error *err)
{
	char expected[80], *end;

	errno = 0;
	*out = strtoll(value, &end, 10);
	if (!isspace((unsigned char)*value) && end != value && !*end && !errno && *out >= min && *out <= max)
		return true;
	snprintf(expected, sizeof expected, "an integer in %lld..%lld", (long long)min, (long long)max);
	return refuse_value(r, value, expected, err);
}

static bool read_large(const struct row *r, const char *value, uint64_t *out, struct error *err)
{
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 10);
	return (isdigit((unsigned char)*value) && !*end && !errno) ||
	       refuse_value(r, value, "an integer in 0..18446744073709551615", err);
}

/* Digits, a point and an exponent, whatever the program's language writes instead of the point. */
static bool read_double(const struct row *r, const char *value, double *out, struct error *err)
{
	char local[64], *end;
	const size_t n = strspn(value, "+-.0123456789eE");
	double point = 0;

	snprintf(local, sizeof local, "%.1f", point);
	const char mark = local[1];
	snprintf(local, sizeof local, "%s", value);
	for (char *at = local; mark != '.' && *at; at++)
		*at = *at == '.' ? mark : *at;
	*out = r->kind == REAL ? (double)strtof(local, &end) : strtod(local, &end);
	return (n && !value[n] && n < sizeof local && !*end && *out - *out == 0) ||
	       refuse_value(r, value, "a finite number", err);
}

static bool read_real(const struct row *r, const char *value, float *out, struct error *err)
{
	double x;
	const bool done = read_double(r, value, &x, err);

	*out = (float)x;
	return done;
}

static bool read_whole(const struct row *r, const char *value, int *out, struct error *err)
{
	static const char flags[] = "true=1 yes=1 on=1 false=0 no=0 off=0";
	int64_t number = 0;

	if (word(r->words, value, out) || (r->kind == FLAG && word(flags, value, out)))
		return true;
	if (!read_signed(r, value, r->kind == FLAG ? 0 : INT_MIN, r->kind == FLAG ? 1 : INT_MAX, &number, err))
		return false;
	*out = (int)number;
	return true;
}

/* To the field at `to`. */
static bool read_value(const struct row *r, const char *value, void *to, struct error *err)
{
	switch (r->kind) {
	case WHOLE:
	case FLAG: return read_whole(r, value, to, err);
	case LARGE: return read_large(r, value, to, err);
	case SIGNED: return read_signed(r, value, INT64_MIN, INT64_MAX, to, err);
	case REAL: return read_real(r, value, to, err);
	case DOUBLE: return read_double(r, value, to, err);
	case TEXT: memcpy(to, &value, sizeof value); return true;
	case ADDRESS: break;
	}
	return error_set(err, ERROR_ARGUMENT, "%s is an address, which no text is: it is set in %s itself", r->name,
	                 r->type);
}

/* ---- structs */

/* Whether a struct is one that the library takes; size: the library's. */
typedef bool (*check_fn)(const void *own, struct error *err);

static bool set(void *options, size_t size, const char *type, check_fn check, const char *name, const char *value,
                struct error *err)
{
	_Alignas(16) uint8_t own[MAX_BYTES];
	size_t given;

	if (!sized_read(own, size, options, type, err))
		return false;
	const struct row *r = find(type, name, err);
	if (!r)
		return false;
	memcpy(&given, options, sizeof given);
	if (r->offset + r->bytes > given)
		return error_set(err, ERROR_ARGUMENT,
		                 "%s.size is %zu, and %s is behind that: the caller knows an older version", type,
		                 given, r->name);
	if (!read_value(r, value, own + r->offset, err) || !check(own, err))
		return false;
	memcpy((uint8_t *)options + r->offset, own + r->offset, r->bytes);
	return true;
}

static bool check_model(const void *own, struct error *err)
{
	return options_model(&(jit_model_options){ 0 }, own, err);
}
static bool check_session(const void *own, struct error *err)
{
	return options_session(&(jit_session_options){ 0 }, own, err);
}
static bool check_batch(const void *own, struct error *err)
{
	return options_batch(&(jit_batch_options){ 0 }, own, err);
}
static bool check_card(const void *own, struct error *err) { return options_card(&(jit_card_options){ 0 }, own, err); }
static bool check_draft(const void *own, struct error *err)
{
	jit_draft_options o = *(const jit_draft_options *)own;

	o.model = o.model ? o.model : (void *)&o; /* it may come later */
	return options_draft(&(jit_draft_options){ 0 }, &o, err);
}
static bool check_embedding(const void *own, struct error *err)
{
	return options_embedding(&(jit_embedding_options){ 0 }, own, err);
}
static bool check_objects(const void *own, struct error *err)
{
	return options_objects(&(jit_objects_options){ 0 }, own, err);
}
static bool check_sampling(const void *own, struct error *err)
{
	jit_sampling p;

	return options_sampling(&p, own, err) && sampling_check(&p, err);
}
static bool check_compute(const void *own, struct error *err)
{
	return options_compute(&(jit_compute_options){ 0 }, own, err);
}
static bool check_kernel(const void *own, struct error *err)
{
	return options_kernel(&(jit_kernel_options){ 0 }, own, err);
}
static bool any(const void *own, struct error *err)
{
	(void)own, (void)err;
	return true;
}

#define SETTER(function, type, check, parameter) \
	_Static_assert(sizeof(type) <= MAX_BYTES, #type); \
	int function(type *parameter, const char *name, const char *value, jit_error *err) \
	{ \
		struct error e = { 0 }; \
		if (NEEDED(parameter, &e) && NEEDED(name, &e) && NEEDED(value, &e)) \
			set(parameter, sizeof(type), #type, check, name, value, &e); \
		return model_report(err, &e); \
	}
SETTER(jit_model_options_set, jit_model_options, check_model, options)
SETTER(jit_session_options_set, jit_session_options, check_session, options)
SETTER(jit_batch_options_set, jit_batch_options, check_batch, options)
SETTER(jit_card_options_set, jit_card_options, check_card, options)
SETTER(jit_draft_options_set, jit_draft_options, check_draft, options)
SETTER(jit_embedding_options_set, jit_embedding_options, check_embedding, options)
SETTER(jit_image_options_set, jit_image_options, any, options)
SETTER(jit_chat_options_set, jit_chat_options, any, options)
SETTER(jit_answer_options_set, jit_answer_options, any, options)
SETTER(jit_forced_options_set, jit_forced_options, any, options)
SETTER(jit_grammar_options_set, jit_grammar_options, any, options)
SETTER(jit_objects_options_set, jit_objects_options, check_objects, options)
SETTER(jit_compute_options_set, jit_compute_options, check_compute, options)
SETTER(jit_kernel_options_set, jit_kernel_options, check_kernel, options)
SETTER(jit_graph_options_set, jit_graph_options, any, options)
SETTER(jit_train_options_set, jit_train_options, any, options)
SETTER(jit_optimise_options_set, jit_optimise_options, any, options)
SETTER(jit_sampling_set, jit_sampling, check_sampling, p)
