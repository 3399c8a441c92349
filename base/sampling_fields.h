/* base/sampling_fields.h - the fields of sampling as rows (base/sampling.def), for those who go through all of them. */
#ifndef BASE_SAMPLING_FIELDS_H
#define BASE_SAMPLING_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

/* SAMPLING_temperature and so on, in the order of the rows. */
enum sampling_field {
#define SAMPLING_FIELD(type, field, ...) SAMPLING_##field,
#include "base/sampling.def"
	SAMPLING_FIELDS
};

struct sampling_row {
	const char *field; /* its name in jit_sampling */
	bool whole;
	double low, high, usual; /* of struct chain_options; what 0 of jit_sampling stands for */

	const char *option; /* without dashes */
	int told_at;        /* its place in summaries, from 1; 0: none */
	double off;         /* the value that they leave out */

	const char *request;
	double request_low, request_high;
	bool zero_is_min;

	const char *hf, *gguf; /* NULL: it has no name there */
	double file_low, file_high;
};
extern const struct sampling_row sampling_rows[SAMPLING_FIELDS];

/* The row of that name on a command line, and in requests. - and _ are the same. NULL: it is no number of sampling. */
const struct sampling_row *sampling_by_option(const char *name);
const struct sampling_row *sampling_by_request(const char *name);

/* Other names of fields in requests. */
struct sampling_alias {
	const char *name;
	enum sampling_field field;
};
extern const struct sampling_alias sampling_aliases[];
extern const size_t n_sampling_aliases;

#endif
