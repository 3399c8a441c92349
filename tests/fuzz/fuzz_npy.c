/* tests/fuzz/fuzz_npy.c - arbitrary bytes as an array's file: what is read is a whole array of a known type, and the
 * header that is written of it reads as the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/common/npy.h"
#include "tests/fuzz/fuzz.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

void fuzz_npy(const uint8_t *p, size_t n)
{
	struct error err = { 0 };
	struct npy a, again;
	char *text = NULL, shape[NPY_SHAPE_MAX];
	size_t size = 0;

	if (!npy_read_header(&a, "fuzz.npy", p, n, &err)) {
		need(err.text[0]);
		return;
	}
	need(a.dims <= NPY_MAX_DIMS && a.data <= n && strlen(a.type) == 2);
	uint64_t elements = 1;
	for (unsigned i = 0; i < a.dims; i++)
		elements *= a.extent[i];
	need(elements == a.elements && a.bytes / (uint64_t)(a.type[1] - '0') == a.elements);
	FILE *out = open_memstream(&text, &size);
	need(out && npy_write_header(&a, out) && fclose(out) == 0 && size % 64 == 0);
	need(npy_read_header(&again, "again.npy", (uint8_t *)text, size, &err));
	need(again.data == size && again.dims == a.dims && again.bytes == a.bytes && strcmp(again.type, a.type) == 0);
	need(memcmp(again.extent, a.extent, sizeof a.extent) == 0 && npy_shape(&a, shape)[0] == '(');
	free(text);
}

/* Headers as numpy of several versions writes them. */
void fuzz_npy_seeds(void (*take)(void *user, const uint8_t *p, size_t n), void *user)
{
	static const char *const dict[] = { "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n",
		                            "{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }    \n",
		                            "{'shape': (), 'fortran_order': False, 'descr': '<f8'}",
		                            "{'descr': '>i2', 'fortran_order': True, 'shape': (2L, 1L), }",
		                            "{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (2,), }" };
	uint8_t file[300];

	for (unsigned version = 1; version <= 3; version++)
		for (size_t i = 0; i < sizeof dict / sizeof *dict; i++) {
			const size_t n = strlen(dict[i]), head = version == 1 ? 10 : 12;
			memset(file, 0, sizeof file);
			memcpy(file, "\x93NUMPY", 6);
			file[6] = (uint8_t)version;
			file[8] = (uint8_t)n;
			memcpy(file + head, dict[i], n);
			take(user, file, head + n + 20);
		}
}
