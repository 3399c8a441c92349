/* optimise/many_rank.c - fronts of points that none dominates, and how crowded they are. */
#include <stdlib.h>
#include <string.h>

#include "optimise/many_parts.h"

int many_fronts(const double *f, int count, int m, int *rank)
{
	int *dominated = calloc((size_t)count, sizeof *dominated); /* by how many that have no front yet */
	int left = count, fronts = 0;

	if (!dominated)
		return -1;
	for (int i = 0; i < count; i++)
		rank[i] = -1;
	for (int i = 0; i < count; i++)
		for (int j = i + 1; j < count; j++) {
			dominated[j] += many_dominates(f + (size_t)i * (size_t)m, f + (size_t)j * (size_t)m, m);
			dominated[i] += many_dominates(f + (size_t)j * (size_t)m, f + (size_t)i * (size_t)m, m);
		}
	for (; left > 0; fronts++) {
		for (int i = 0; i < count; i++)
			if (rank[i] < 0 && dominated[i] == 0) {
				rank[i] = fronts;
				left--;
			}
		for (int i = 0; i < count; i++)
			if (rank[i] == fronts)
				for (int j = 0; j < count; j++)
					dominated[j] -=
						rank[j] < 0 &&
						many_dominates(f + (size_t)i * (size_t)m, f + (size_t)j * (size_t)m, m);
	}
	free(dominated);
	return fronts;
}

struct keyed {
	double value;
	int rank, number;
};
static int by_rank_and_value(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

bool many_crowd(const double *f, int count, int m, const int *rank, double *crowding)
{
	struct keyed *key = malloc((size_t)count * sizeof *key);

	if (!key)
		return false;
	memset(crowding, 0, (size_t)count * sizeof *crowding);
	for (int k = 0; k < m; k++) {
		for (int i = 0; i < count; i++)
			key[i] = (struct keyed){ f[(size_t)i * (size_t)m + (size_t)k], rank[i], i };
		qsort(key, (size_t)count, sizeof *key, by_rank_and_value);
		for (int first = 0, end; first < count; first = end) {
			for (end = first; end < count && key[end].rank == key[first].rank;)
				end++;
			const double width = key[end - 1].value - key[first].value;
			crowding[key[first].number] = crowding[key[end - 1].number] = (double)INFINITY;
			for (int i = first + 1; i + 1 < end && width > 0 && isfinite(width); i++)
				crowding[key[i].number] += (key[i + 1].value - key[i - 1].value) / width;
		}
	}
	free(key);
	return true;
}
