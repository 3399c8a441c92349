/* optimise/eigen.h - eigenvalues and eigenvectors of symmetric matrices, with the same bits on every machine.
 *
 * LAPACK's results depend on which BLAS is installed and on its threads; a run of an evolution strategy must not.
 */
#ifndef OPTIMISE_EIGEN_H
#define OPTIMISE_EIGEN_H

#include <stdbool.h>

/* a: n x n, symmetric, rows one behind the other; both triangles are read. Afterwards row i of `vectors` (n x n) is the
 * eigenvector of length 1 that belongs to values[i]; in no order. a is overwritten; work: 2n doubles. Elements
 * below 1e-150 count as 0. False: one is 1e150 or more, or no number; or the iteration does not converge.
 * Householder's reduction to a tridiagonal matrix, then the implicit QL method (Martin and Wilkinson 1968). */
bool eigen_symmetric(int n, double *a, double *vectors, double *values, double *work);

#endif
