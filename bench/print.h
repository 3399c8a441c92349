/* bench/print.h - rows of results as a markdown table, CSV, JSON or JSON lines.
 *
 * Owns: the names and the order of the fields. Fields that llama-bench has too bear its names (model_filename,
 * n_threads, n_prompt, n_gen, n_depth, avg_ts, stddev_ts), so that bench/compare --field picks the same number from
 * both. The table has a number's median and how far its repetitions spread between the quartiles; a noisy number has
 * a ~ before it, is "noisy" in CSV and null in JSON.
 */
#ifndef BENCH_PRINT_H
#define BENCH_PRINT_H

#include <stdint.h>

#include "bench/measurement.h"

enum print_format { PRINT_MARKDOWN, PRINT_CSV, PRINT_JSON, PRINT_JSONL };

struct printer {
	enum print_format format;
	const char *filename, *type, *isa, *type_kv, *numerics;
	uint64_t size;
	double parameters;
	long rows; /* printed so far */
};

void print_begin(struct printer *p);
void print_row(struct printer *p, const struct row *r);
void print_end(struct printer *p);

#endif
