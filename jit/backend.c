/* jit/backend.c - the list of backends. See backend.h. */
#include "jit/backend.h"

#include <string.h>

const struct backend *const backend_table[] = { &backend_x86, &backend_rdna, &backend_ptx, &backend_spirv };
const size_t backend_count = sizeof backend_table / sizeof *backend_table;

const struct backend *backend_find(const char *name)
{
	for (size_t i = 0; i < backend_count; i++)
		if (strcmp(backend_table[i]->name, name) == 0)
			return backend_table[i];
	return NULL;
}
