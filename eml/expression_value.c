/* eml/expression_value.c - values of expressions, as complex numbers. */
#include <math.h>
#include <stdlib.h>

#include "eml/expression.h"

/* A number that ought to be real lies on one side of the cut, whatever rounding made of it. */
static double complex settled(double complex z)
{
	const double re = creal(z), im = cimag(z);

	return fabs(im) <= fmax(1e-11 * fabs(re), 1e-13) ? re : z;
}

double complex expression_log(double complex z)
{
	z = settled(z);
	/* cppcheck-suppress invalidFunctionArg ; the logarithm of 0 is -inf */
	return cimag(z) != 0 ? clog(z) : complex_of(log(fabs(creal(z))), creal(z) < 0 ? acos(-1) : 0);
}

static double complex power(double complex a, double complex b)
{
	const double whole = creal(b);

	if (cimag(b) == 0 && whole == floor(whole) && fabs(whole) <= 64) {
		double complex v = 1;
		for (int k = 0; k < (int)fabs(whole); k++)
			v *= a;
		return whole < 0 ? 1 / v : v;
	}
	if (creal(a) == 0 && cimag(a) == 0)
		return whole > 0 ? 0 : NAN;
	return cexp(b * expression_log(a));
}

static double complex apply(enum operation op, double complex a, double complex b)
{
	switch (op) {
	case OP_NEG: return -a;
	case OP_EXP: return cexp(a);
	case OP_LN: return expression_log(a);
	case OP_SQRT: return csqrt(cimag(settled(a)) == 0 ? complex_of(creal(a), 0.0) : a);
	case OP_SIN: return csin(a);
	case OP_COS: return ccos(a);
	case OP_TAN: return ctan(a);
	case OP_ASIN: return casin(a);
	case OP_ACOS: return cacos(a);
	case OP_ATAN: return catan(a);
	case OP_SINH: return csinh(a);
	case OP_COSH: return ccosh(a);
	case OP_TANH: return ctanh(a);
	case OP_ADD: return a + b;
	case OP_SUB: return a - b;
	case OP_MUL: return a * b;
	case OP_DIV: return a / b;
	case OP_POW: return power(a, b);
	default: return cexp(a) - expression_log(b);
	}
}

double complex expression_value(const struct expression *e, const double complex *variable)
{
	double complex small[256], *v = e->n <= 256 ? small : malloc(e->n * sizeof *v), result = NAN;

	if (!v)
		return NAN;
	for (size_t i = 0; i < e->n; i++) {
		const struct node *n = &e->node[i];
		switch (n->op) {
		case OP_NUMBER: v[i] = n->number; break;
		case OP_VARIABLE: v[i] = variable[n->a]; break;
		case OP_PI: v[i] = acos(-1); break;
		case OP_E: v[i] = exp(1); break;
		case OP_I: v[i] = complex_of(0.0, 1.0); break;
		default: v[i] = apply(n->op, v[n->a], operation_form[n->op].operands == 2 ? v[n->b] : 0); break;
		}
	}
	result = v[e->n - 1];
	if (v != small)
		free(v);
	return result;
}
