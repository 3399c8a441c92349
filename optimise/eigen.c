#include "optimise/eigen.h"

#include <math.h>

/* The reflection I - tau v v^T that maps column k of the rest onto its first element, applied to `a` from both sides
 * and to the rows of q. v: n - k - 1 elements. */
static void reflect(int n, int k, double *a, double *q, double *v, double *p)
{
	const int m = n - k - 1;
	double scale = 0, norm = 0, dot = 0, rest = 0;

	for (int i = 0; i < m; i++)
		scale = fmax(scale, fabs(a[(k + 1 + i) * n + k]));
	if (scale < 1e-150) {
		for (int i = 0; i < m; i++)
			a[(k + 1 + i) * n + k] = 0;
		return;
	}
	for (int i = 0; i < m; i++) { /* squares neither overflow nor vanish */
		v[i] = a[(k + 1 + i) * n + k] / scale;
		rest += i ? v[i] * v[i] : 0;
	}
	if (!(rest > 0))
		return;
	norm = sqrt(rest + v[0] * v[0]);
	v[0] += v[0] < 0 ? -norm : norm;
	const double tau = 2 / (v[0] * v[0] + rest);
	for (int i = 0; i < m; i++) { /* p = tau A v */
		const double *row = a + (k + 1 + i) * n + k + 1;
		double sum = 0;
		for (int j = 0; j < m; j++)
			sum += row[j] * v[j];
		p[i] = tau * sum;
		dot += p[i] * v[i];
	}
	for (int i = 0; i < m; i++) /* w = p - (tau/2)(p v) v; A -= v w^T + w v^T */
		p[i] -= 0.5 * tau * dot * v[i];
	for (int i = 0; i < m; i++) {
		double *row = a + (k + 1 + i) * n + k + 1;
		for (int j = 0; j < m; j++)
			row[j] -= v[i] * p[j] + p[i] * v[j];
	}
	a[(k + 1) * n + k] = (v[0] < 0 ? norm : -norm) * scale;
	for (int c = 0; c < n; c++) /* the rows k + 1 on of q, in columns */
		p[c] = 0;
	for (int i = 0; i < m; i++)
		for (int c = 0; c < n; c++)
			p[c] += v[i] * q[(k + 1 + i) * n + c];
	for (int i = 0; i < m; i++)
		for (int c = 0; c < n; c++)
			q[(k + 1 + i) * n + c] -= tau * v[i] * p[c];
}

/* Rotates two rows by the angle with this sine and cosine. */
static void rotate_rows(int n, double *upper, double *lower, double s, double c)
{
	for (int k = 0; k < n; k++) {
		const double f = lower[k];
		lower[k] = s * upper[k] + c * f;
		upper[k] = c * upper[k] - s * f;
	}
}

/* One implicit QL step on rows l to m of the tridiagonal matrix d, e. */
static void ql_step(int n, int l, int m, double *d, double *e, double *q)
{
	double g = (d[l + 1] - d[l]) / (2 * e[l]), s = 1, c = 1, p = 0;
	const double root = sqrt(g * g + 1);

	g = d[m] - d[l] + e[l] / (g + (g < 0 ? -root : root));
	for (int i = m - 1; i >= l; i--) {
		double f = s * e[i];
		const double b = c * e[i], r = sqrt(f * f + g * g);
		e[i + 1] = r;
		if (r == 0) { /* the matrix falls apart here */
			d[i + 1] -= p;
			e[m] = 0;
			return;
		}
		s = f / r;
		c = g / r;
		g = d[i + 1] - p;
		f = (d[i] - g) * s + 2 * c * b;
		p = s * f;
		d[i + 1] = g + p;
		g = c * f - b;
		rotate_rows(n, q + i * n, q + (i + 1) * n, s, c);
	}
	d[l] -= p;
	e[l] = g;
	e[m] = 0;
}

bool eigen_symmetric(int n, double *a, double *vectors, double *values, double *work)
{
	enum { STEPS_MAX = 60 }; /* for each eigenvalue; two are usual */
	double *e = work;

	for (int i = 0; i < n * n; i++) {
		if (!(fabs(a[i]) < 1e150))
			return false;
		vectors[i] = i / n == i % n;
	}
	for (int k = 0; k + 2 < n; k++)
		reflect(n, k, a, vectors, work, work + n);
	for (int i = 0; i < n; i++) {
		values[i] = a[i * n + i];
		e[i] = i + 1 < n ? a[(i + 1) * n + i] : 0;
	}
	for (int l = 0; l < n; l++)
		for (int steps = 0;; steps++) {
			int m = l;
			while (m + 1 < n && fabs(e[m]) > 0x1p-53 * (fabs(values[m]) + fabs(values[m + 1])))
				m++;
			if (m == l)
				break;
			if (steps == STEPS_MAX)
				return false;
			ql_step(n, l, m, values, e, vectors);
		}
	return true;
}
