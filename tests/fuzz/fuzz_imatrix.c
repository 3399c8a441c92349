/* tests/fuzz/fuzz_imatrix.c - arbitrary bytes as an importance matrix: what is read can be found, and every number is
 * finite and not negative. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/files/imatrix.h"
#include "tests/fuzz/fuzz.h"

void fuzz_imatrix(const uint8_t *p, size_t n)
{
	struct error err = { 0 };
	struct imatrix m;

	if (!imatrix_read(&m, fuzz_file(0, "imatrix", p, n), &err)) {
		if (!err.text[0])
			abort();
		return;
	}
	for (uint32_t i = 0; i < m.n; i++) {
		const struct imatrix_entry *e = &m.entry[i];
		if (!memchr(e->name, 0, 256) || imatrix_find(&m, e->name, strlen(e->name)) != e)
			abort();
		for (uint64_t k = 0; k < e->rows * e->columns; k++)
			if (!(e->mean[k] >= 0) || !isfinite(e->mean[k]))
				abort();
	}
	imatrix_free(&m);
}
