/* programs/jiteml/jiteml_data.h - tables of numbers: CSV files, .npy files, and integer sequences. Bytes from outside.
 */
#ifndef PROGRAMS_JITEML_DATA_H
#define PROGRAMS_JITEML_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { NUMBERS_COLUMNS = 33, NUMBERS_ROWS = 1 << 22, NUMBERS_NAME = 32, NUMBERS_LAGS = 8 };
/* Begins as zeros. */
struct numbers {
	size_t rows;
	unsigned columns;
	double *value; /* [columns][rows] */
	char name[NUMBERS_COLUMNS][NUMBERS_NAME];
};
void numbers_free(struct numbers *d);
/* A table as text: lines of finite numbers with commas, semicolons, tabs or blanks between; a first line of names;
 * lines that begin with # are comments. what: of the file, for sentences. False: err. */
bool numbers_read_csv(struct numbers *d, const char *what, const char *text, size_t n, struct error *err);
/* An array of two dimensions (rows, columns), or of one, which is one column. */
bool numbers_read_npy(struct numbers *d, const char *what, const uint8_t *file, size_t n, struct error *err);
/* Either, by its first bytes. */
bool numbers_read(struct numbers *d, const char *path, struct error *err);
/* Numbers with commas or blanks between: the columns are n, from 1, then the `lags` numbers before, a1 being the last
 * one, then a. */
bool numbers_read_sequence(struct numbers *d, const char *text, unsigned lags, struct error *err);
/* Makes a column the last one. name: its name. False: err. */
bool numbers_target(struct numbers *d, const char *what, const char *name, struct error *err);

#endif
