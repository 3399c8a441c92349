#include "base/sampling_fields.h"

#include <float.h>
#include <limits.h>
#include <stdint.h>

#define REAL false
#define WHOLE true
#define AS_USUAL false
#define AS_MIN true
#define TOLD(at, off_) .told_at = (at) + 1, .off = off_
#define UNTOLD .told_at = 0
#define LIBRARY(low_, high_, usual_, works) .low = low_, .high = high_, .usual = usual_
#define COMMAND_LINE(name, value, low, high, told, help) .option = name, told
#define REQUEST(kinds, name, low, high, zero, at, what) \
	.request = name, .request_low = low, .request_high = high, .zero_is_min = zero
#define MODEL_FILE(hf_, gguf_, low, high) .hf = hf_, .gguf = gguf_, .file_low = low, .file_high = high
#define IN_NO_FILE .hf = NULL

const struct sampling_row sampling_rows[SAMPLING_FIELDS] = {
#define SAMPLING_FIELD(type, field_, library, command_line, request, model_file) \
	{ .field = #field_, .whole = type, library, command_line, request, model_file },
#include "base/sampling.def"
};

const struct sampling_alias sampling_aliases[] = {
#define SAMPLING_ALIAS(field, name, what) { name, SAMPLING_##field },
#include "base/sampling.def"
};
const size_t n_sampling_aliases = sizeof sampling_aliases / sizeof *sampling_aliases;

static char letter(char c) { return c == '-' ? '_' : c; }

static bool same(const char *a, const char *b)
{
	while (*a && letter(*a) == letter(*b))
		a++, b++;
	return !*a && !*b;
}

const struct sampling_row *sampling_by_option(const char *name)
{
	for (size_t i = 0; i < SAMPLING_FIELDS; i++)
		if (same(name, sampling_rows[i].option))
			return &sampling_rows[i];
	return NULL;
}

const struct sampling_row *sampling_by_request(const char *name)
{
	for (size_t i = 0; i < SAMPLING_FIELDS; i++)
		if (same(name, sampling_rows[i].request))
			return &sampling_rows[i];
	for (size_t i = 0; i < n_sampling_aliases; i++)
		if (same(name, sampling_aliases[i].name))
			return &sampling_rows[sampling_aliases[i].field];
	return NULL;
}
