/* programs/common/facts.h - facts for people: a name on the left, what there is to say on the right, within 80 columns.
 *
 * Owns: the layout, sizes in words, and that nothing of a text from outside reaches a terminal as it is (base/error.h).
 * A word that is longer than a line stays whole, so that paths can be copied.
 */
#ifndef PROGRAMS_FACTS_H
#define PROGRAMS_FACTS_H

#include <stdint.h>
#include <stdio.h>

enum { FACTS_WIDTH = 80, FACTS_NAME = 16, FACTS_SIZE = 24, FACTS_QUOTED = 4096 };

/* A name of at most FACTS_NAME - 2 columns; "" goes on with the row before. */
void facts_row(FILE *out, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Text as a terminal may see it, cut to at most `columns` columns and filled up to them with spaces. Returns out. */
const char *facts_cell(char *out, size_t cap, const char *text, unsigned columns);
/* "1.2 GiB", "17 bytes". Returns out. */
const char *facts_size(char out[FACTS_SIZE], uint64_t bytes);
/* "14.2 million". Returns out. */
const char *facts_count(char out[FACTS_SIZE], uint64_t n);

#endif
