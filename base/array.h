/* base/array.h - arrays that grow.
 *
 * Owns: how they grow, by doubling, so that appending n elements copies less than 2n. The caller remembers what
 * failed.
 */
#ifndef JIT_ARRAY_H
#define JIT_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Makes *array hold n elements of the given size; false when memory runs out, and all is as it was. */
static inline bool array_grow(void **array, size_t *capacity, size_t n, size_t size)
{
	size_t cap = *capacity ? *capacity : 128;

	if (n <= *capacity)
		return true;
	do
		cap *= 2;
	while (cap < n);
	void *p = realloc(*array, cap * size);
	if (!p)
		return false;
	*array = p;
	*capacity = cap;
	return true;
}

#endif
