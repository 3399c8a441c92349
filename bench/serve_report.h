/* bench/serve_report.h - what bench/serve measured: a table in markdown, CSV, and a picture drawn by gnuplot. */
#ifndef BENCH_SERVE_REPORT_H
#define BENCH_SERVE_REPORT_H

#include <stdio.h>

#include "base/error.h"
#include "bench/serve_clients.h"

/* Of one server with so many clients: the round with the median rate, and the rates of the others. */
struct serve_row {
	const char *server;
	long clients, rounds;
	struct serve_times times;
	double min, max; /* tokens a second */
};

/* Rows of one number of clients stand together; of two servers, the second one's rate is compared. */
void serve_print_table(const struct serve_row *row, size_t n, FILE *out);
void serve_print_csv(const struct serve_row *row, size_t n, FILE *out);
/* False: err, also when gnuplot is not there. */
bool serve_draw(const struct serve_row *row, size_t n, const char *path, struct error *err);

#endif
