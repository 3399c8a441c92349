/* tests/optimise/optimise_eigen.c - eigenvalues beside LAPACK, and what eigenvectors must be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "optimise/draw.h"
#include "optimise/eigen.h"
#include "tests/optimise/optimise_tests.h"

enum { EIGEN_MAX = 60 };
typedef void dsyev(const char *, const char *, const int *, double *, const int *, double *, double *, const int *,
                   int *);

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void check_eigen(int n, const double *a, dsyev *judge)
{
	static double copy[EIGEN_MAX * EIGEN_MAX], v[EIGEN_MAX * EIGEN_MAX], work[EIGEN_MAX * 8];
	double values[EIGEN_MAX], sorted[EIGEN_MAX], theirs[EIGEN_MAX], size = 1;

	memcpy(copy, a, (size_t)(n * n) * sizeof *copy);
	for (int i = 0; i < n * n; i++)
		size = fmax(size, fabs(a[i]));
	assert_true(eigen_symmetric(n, copy, v, values, work));
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double dot = 0, row = 0;
			for (int k = 0; k < n; k++) {
				dot += v[i * n + k] * v[j * n + k];
				row += a[j * n + k] * v[i * n + k];
			}
			if (!(fabs(dot - (i == j)) < 1e-13 * n))
				fail_msg("%d x %d: rows %d and %d: %g", n, n, i, j, dot);
			assert_true(fabs(row - values[i] * v[i * n + j]) < 1e-13 * n * size);
		}
	memcpy(sorted, values, (size_t)n * sizeof *sorted);
	qsort(sorted, (size_t)n, sizeof *sorted, by_size);
	if (!judge)
		return;
	int room = EIGEN_MAX * 8, info = 0;
	memcpy(copy, a, (size_t)(n * n) * sizeof *copy);
	judge("N", "U", &n, copy, &n, theirs, work, &room, &info);
	assert_int_equal(info, 0);
	for (int i = 0; i < n; i++)
		assert_true(fabs(sorted[i] - theirs[i]) < 1e-13 * n * size);
}

void test_eigen(void **state)
{
	static double a[EIGEN_MAX * EIGEN_MAX], v[4], d[2], work[4];
	void *library = dlopen("liblapack.so.3", RTLD_NOW);
	dsyev *judge = NULL;
	struct random_stream draw = { .seed = 1 };

	if (library)
		*(void **)&judge = dlsym(library, "dsyev_");
	else
		printf("# skipped: there is no LAPACK (apt install liblapack3)\n");
	for (int n = 1; n <= 40; n++)
		for (int kind = 0; kind < 5; kind++) {
			for (int i = 0; i < n; i++)
				for (int j = 0; j <= i; j++) {
					double x = 2 * draw_uniform(&draw) - 1;
					if (kind == 1) /* diagonal, with equal values */
						x = i == j ? i / 3 : 0;
					else if (kind == 2) /* of rank 1 */
						x = (i + 1.0) * (j + 1);
					else if (kind == 3) /* lengths far apart */
						x *= ldexp(1, -(i + j));
					else if (kind == 4) /* two blocks */
						x = (i < n / 2) == (j < n / 2) ? x : 0;
					a[i * n + j] = a[j * n + i] = x;
				}
			check_eigen(n, a, judge);
		}
	assert_false(eigen_symmetric(2, (double[]){ 1, NAN, NAN, 1 }, v, d, work));
	assert_false(eigen_symmetric(2, (double[]){ INFINITY, 0, 0, 1 }, v, d, work));
	if (library)
		dlclose(library);
}
