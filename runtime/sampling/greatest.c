#include "runtime/sampling/greatest.h"

#include <math.h>

/* The greatest of a block, as many chains side by side: one would wait for each comparison in turn. NaN is not
 * greater. */
static float block_max(const float *x, int32_t n)
{
	enum { CHAINS = 32 };
	float m[CHAINS], max = -INFINITY;
	int32_t i = 0;

	for (int j = 0; j < CHAINS; j++)
		m[j] = -INFINITY;
	for (; i + CHAINS <= n; i += CHAINS)
		for (int j = 0; j < CHAINS; j++)
			m[j] = x[i + j] > m[j] ? x[i + j] : m[j];
	for (; i < n; i++)
		max = x[i] > max ? x[i] : max;
	for (int j = 0; j < CHAINS; j++)
		max = m[j] > max ? m[j] : max;
	return max;
}

int32_t greatest_first(const float *x, int32_t n)
{
	enum { BLOCK = 1024 };
	float max = -INFINITY;
	int32_t first = 0; /* of the first block that has the greatest */

	for (int32_t i = 0; i < n; i += BLOCK) {
		float m = block_max(x + i, n - i < BLOCK ? n - i : BLOCK);
		if (m > max) {
			max = m;
			first = i;
		}
	}
	for (int32_t i = first; i < n; i++)
		if (x[i] == max)
			return i;
	return 0; /* all NaN */
}

int32_t greatest_of_blocks(const float *x, const float *greatest, int32_t n)
{
	int32_t block = greatest_first(greatest, n / 32), i = 32 * block;

	while (x[i] < greatest[block])
		i++;
	return i;
}
