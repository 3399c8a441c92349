#include "runtime/model/host_row.h"

#include "base/math_host.h"
#include "kernels-templates/numerics.h"

double host_sum(const float *weights, const float *x, uint32_t n, const float *bias, uint32_t row)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)weights[(size_t)row * n + i] * (double)x[i];
	return bias ? sum + (double)bias[row] : sum;
}

/* The sign apart, so that exp stays within its range and tanh(-x) is -tanh(x). */
static double tanh_of(double x)
{
	const double e = math_host_exp(x < 0 ? 2 * x : -2 * x), size = (1 - e) / (1 + e);

	return x < 0 ? -size : size;
}

/* x times the share of the normal distribution below it. */
static double gelu_of(double x)
{
	static const float c[] = { NUMERICS_ERF_C6, NUMERICS_ERF_C5, NUMERICS_ERF_C4, NUMERICS_ERF_C3,
		                   NUMERICS_ERF_C2, NUMERICS_ERF_C1, NUMERICS_ERF_C0 };
	const double a = x < 0 ? -x : x, t = 1 / (a * (double)NUMERICS_ERF_SLOPE + 1);
	double p = (double)NUMERICS_ERF_C7;

	for (size_t i = 0; i < sizeof c / sizeof *c; i++)
		p = p * t + (double)c[i];
	return (x > 0 ? x : 0) - a * t * p * math_host_exp(-a * a / 2);
}

static double sigmoid_of(double x)
{
	const double e = math_host_exp(x < 0 ? x : -x);

	return (x < 0 ? e : 1) / (1 + e);
}

double host_act_of(enum host_act act, double x)
{
	switch (act) {
	case HOST_TANH: return tanh_of(x);
	case HOST_GELU: return gelu_of(x);
	case HOST_RELU: return x > 0 ? x : 0;
	case HOST_SIGMOID: return sigmoid_of(x);
	case HOST_IDENTITY: return x;
	}
	return x;
}
