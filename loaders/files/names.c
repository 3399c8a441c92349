/* loaders/files/names.c - the sorted order behind names.h. */
#include "loaders/files/names.h"

#include <stdlib.h>
#include <string.h>

static int compare(struct name_ref a, struct name_ref b)
{
	uint64_t n = a.n < b.n ? a.n : b.n;
	int d = n ? memcmp(a.p, b.p, n) : 0;

	return d ? d : (a.n > b.n) - (a.n < b.n);
}

static int compare_items(const void *a, const void *b, void *context)
{
	const struct names *x = context;

	return compare(x->name(x->owner, *(const uint32_t *)a), x->name(x->owner, *(const uint32_t *)b));
}

bool names_build(struct names *x, const void *owner, uint32_t count, names_fn *name)
{
	*x = (struct names){ .count = count, .name = name, .owner = owner };
	if (!count)
		return true;
	x->order = malloc(count * sizeof *x->order);
	if (!x->order) {
		x->count = 0;
		return false;
	}
	for (uint32_t i = 0; i < count; i++)
		x->order[i] = i;
	qsort_r(x->order, count, sizeof *x->order, compare_items, x);
	return true;
}

void names_free(struct names *x)
{
	free(x->order);
	memset(x, 0, sizeof *x);
}

uint32_t names_find(const struct names *x, const char *p, uint64_t n)
{
	uint32_t low = 0, high = x->count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int d = compare((struct name_ref){ p, n }, x->name(x->owner, x->order[mid]));
		if (d == 0)
			return x->order[mid];
		if (d < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NAMES_NONE;
}

uint32_t names_duplicate(const struct names *x)
{
	for (uint32_t i = 1; i < x->count; i++)
		if (compare(x->name(x->owner, x->order[i - 1]), x->name(x->owner, x->order[i])) == 0)
			return x->order[i];
	return NAMES_NONE;
}
