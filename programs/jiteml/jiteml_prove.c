/* programs/jiteml/jiteml_prove.c - whether two expressions are equal: their values in 100 digits, by MPFR.
 *
 * Owns: complex numbers of MPFR, and the points. 40 digits that agree at 64 points are no proof in the sense of
 * algebra; a false identity among those that the search looks at would have to agree by chance.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jiteml/jiteml.h"

#ifdef HAVE_MPFR
#include <mpfr.h>

enum { BITS = 384, SETTLED = 256 }; /* what is 2^-256 of something is what rounding left */

struct big {
	mpfr_t re, im;
};

static void open_big(struct big *z)
{
	mpfr_init2(z->re, BITS);
	mpfr_init2(z->im, BITS);
	mpfr_set_zero(z->re, 1);
	mpfr_set_zero(z->im, 1);
}

static void close_big(struct big *z)
{
	mpfr_clear(z->re);
	mpfr_clear(z->im);
}

static void set_big(struct big *z, double re, double im)
{
	mpfr_set_d(z->re, re, MPFR_RNDN);
	mpfr_set_d(z->im, im, MPFR_RNDN);
}

static void copy_big(struct big *z, const struct big *a)
{
	mpfr_set(z->re, a->re, MPFR_RNDN);
	mpfr_set(z->im, a->im, MPFR_RNDN);
}

/* Parts that ought to be 0 are. */
static void settle(struct big *z)
{
	mpfr_t size, part;

	mpfr_inits2(BITS, size, part, (mpfr_ptr)0);
	mpfr_hypot(size, z->re, z->im, MPFR_RNDN);
	if (mpfr_cmp_ui_2exp(size, 1, -SETTLED) < 0) {
		set_big(z, 0, 0);
	} else if (!mpfr_inf_p(size)) {
		mpfr_div_2ui(size, size, SETTLED, MPFR_RNDN);
		if (mpfr_cmpabs(z->re, size) < 0)
			mpfr_set_zero(z->re, 1);
		if (mpfr_cmpabs(z->im, size) < 0)
			mpfr_set_zero(z->im, 1);
	}
	mpfr_clears(size, part, (mpfr_ptr)0);
}

static void add_big(struct big *z, const struct big *a, const struct big *b, int sign)
{
	(sign < 0 ? mpfr_sub : mpfr_add)(z->re, a->re, b->re, MPFR_RNDN);
	(sign < 0 ? mpfr_sub : mpfr_add)(z->im, a->im, b->im, MPFR_RNDN);
}

static void mul_big(struct big *z, const struct big *a, const struct big *b)
{
	struct big r;

	open_big(&r);
	mpfr_fmms(r.re, a->re, b->re, a->im, b->im, MPFR_RNDN);
	mpfr_fmma(r.im, a->re, b->im, a->im, b->re, MPFR_RNDN);
	copy_big(z, &r);
	close_big(&r);
}

static void div_big(struct big *z, const struct big *a, const struct big *b)
{
	struct big c, r;
	mpfr_t norm;

	open_big(&c);
	open_big(&r);
	mpfr_init2(norm, BITS);
	copy_big(&c, b);
	mpfr_neg(c.im, c.im, MPFR_RNDN);
	mpfr_fmma(norm, b->re, b->re, b->im, b->im, MPFR_RNDN);
	mul_big(&r, a, &c);
	mpfr_div(z->re, r.re, norm, MPFR_RNDN);
	mpfr_div(z->im, r.im, norm, MPFR_RNDN);
	mpfr_clear(norm);
	close_big(&c);
	close_big(&r);
}

static void exp_big(struct big *z, const struct big *a)
{
	mpfr_t s, c, size;

	mpfr_inits2(BITS, s, c, size, (mpfr_ptr)0);
	mpfr_exp(size, a->re, MPFR_RNDN);
	if (mpfr_zero_p(a->im) || mpfr_zero_p(size)) {
		mpfr_set(z->re, size, MPFR_RNDN);
		mpfr_set_zero(z->im, 1);
	} else {
		mpfr_sin_cos(s, c, a->im, MPFR_RNDN);
		mpfr_mul(z->re, size, c, MPFR_RNDN);
		mpfr_mul(z->im, size, s, MPFR_RNDN);
	}
	mpfr_clears(s, c, size, (mpfr_ptr)0);
}

static void ln_big(struct big *z, const struct big *a, bool extended)
{
	struct big b;

	open_big(&b);
	copy_big(&b, a);
	settle(&b);
	if (mpfr_zero_p(b.re) && mpfr_zero_p(b.im)) {
		if (extended)
			mpfr_set_inf(z->re, -1);
		else
			mpfr_set_nan(z->re);
		mpfr_set_zero(z->im, 1);
	} else {
		mpfr_atan2(z->im, b.im, b.re, MPFR_RNDN);
		mpfr_hypot(z->re, b.re, b.im, MPFR_RNDN);
		mpfr_log(z->re, z->re, MPFR_RNDN);
	}
	close_big(&b);
}

/* a^n, n whole; or exp(b ln a). */
static void pow_big(struct big *z, const struct big *a, const struct big *b, bool extended)
{
	struct big r, one;

	open_big(&r);
	open_big(&one);
	set_big(&one, 1, 0);
	if (mpfr_zero_p(b->im) && mpfr_integer_p(b->re) && mpfr_cmpabs_ui(b->re, 1000) <= 0) {
		const long n = mpfr_get_si(b->re, MPFR_RNDN);
		set_big(&r, 1, 0);
		for (long k = 0; k < labs(n); k++)
			mul_big(&r, &r, a);
		if (n < 0)
			div_big(&r, &one, &r);
	} else {
		ln_big(&r, a, extended);
		mul_big(&r, &r, b);
		exp_big(&r, &r);
	}
	copy_big(z, &r);
	close_big(&r);
	close_big(&one);
}

static void sqrt_big(struct big *z, const struct big *a)
{
	struct big half, b;

	open_big(&half);
	open_big(&b);
	copy_big(&b, a);
	settle(&b);
	set_big(&half, 0.5, 0);
	if (mpfr_zero_p(b.re) && mpfr_zero_p(b.im))
		set_big(z, 0, 0);
	else
		pow_big(z, &b, &half, false);
	close_big(&half);
	close_big(&b);
}

/* (exp(a) + sign exp(-a)) / 2 */
static void hyperbolic(struct big *z, const struct big *a, int sign)
{
	struct big up, down;

	open_big(&up);
	open_big(&down);
	exp_big(&up, a);
	mpfr_neg(down.re, a->re, MPFR_RNDN);
	mpfr_neg(down.im, a->im, MPFR_RNDN);
	exp_big(&down, &down);
	add_big(z, &up, &down, sign);
	mpfr_div_2ui(z->re, z->re, 1, MPFR_RNDN);
	mpfr_div_2ui(z->im, z->im, 1, MPFR_RNDN);
	close_big(&up);
	close_big(&down);
}

/* times i, or divided by it */
static void multiply_by_i(struct big *z, int sign)
{
	mpfr_swap(z->re, z->im);
	mpfr_neg(sign > 0 ? z->re : z->im, sign > 0 ? z->re : z->im, MPFR_RNDN);
}

static void sine(struct big *z, const struct big *a, bool cosine)
{
	struct big b;

	open_big(&b);
	copy_big(&b, a);
	multiply_by_i(&b, 1);
	hyperbolic(z, &b, cosine ? 1 : -1);
	if (!cosine)
		multiply_by_i(z, -1);
	close_big(&b);
}

static void tangent(struct big *z, const struct big *a, bool hyper)
{
	struct big s, c;

	open_big(&s);
	open_big(&c);
	if (hyper) {
		hyperbolic(&s, a, -1);
		hyperbolic(&c, a, 1);
	} else {
		sine(&s, a, false);
		sine(&c, a, true);
	}
	div_big(z, &s, &c);
	close_big(&s);
	close_big(&c);
}

/* asin a = -i ln(i a + sqrt(1 - a^2)); acos a = pi/2 - asin a */
static void arcsine(struct big *z, const struct big *a, bool cosine)
{
	struct big root, i_a;

	open_big(&root);
	open_big(&i_a);
	mul_big(&root, a, a);
	mpfr_ui_sub(root.re, 1, root.re, MPFR_RNDN);
	mpfr_neg(root.im, root.im, MPFR_RNDN);
	sqrt_big(&root, &root);
	copy_big(&i_a, a);
	multiply_by_i(&i_a, 1);
	add_big(&root, &root, &i_a, 1);
	ln_big(z, &root, false);
	multiply_by_i(z, -1);
	if (cosine) {
		mpfr_const_pi(root.re, MPFR_RNDN);
		mpfr_div_2ui(root.re, root.re, 1, MPFR_RNDN);
		mpfr_sub(z->re, root.re, z->re, MPFR_RNDN);
		mpfr_neg(z->im, z->im, MPFR_RNDN);
	}
	close_big(&root);
	close_big(&i_a);
}

/* atan a = i/2 (ln(1 - i a) - ln(1 + i a)) */
static void arctangent(struct big *z, const struct big *a)
{
	struct big one, i_a, low, high;

	open_big(&one);
	open_big(&i_a);
	open_big(&low);
	open_big(&high);
	set_big(&one, 1, 0);
	copy_big(&i_a, a);
	multiply_by_i(&i_a, 1);
	add_big(&low, &one, &i_a, -1);
	add_big(&high, &one, &i_a, 1);
	ln_big(&low, &low, false);
	ln_big(&high, &high, false);
	add_big(z, &low, &high, -1);
	multiply_by_i(z, 1);
	mpfr_div_2ui(z->re, z->re, 1, MPFR_RNDN);
	mpfr_div_2ui(z->im, z->im, 1, MPFR_RNDN);
	close_big(&one);
	close_big(&i_a);
	close_big(&low);
	close_big(&high);
}

static void eml_big(struct big *z, const struct big *a, const struct big *b, bool extended)
{
	struct big e, l;

	open_big(&e);
	open_big(&l);
	exp_big(&e, a);
	ln_big(&l, b, extended);
	add_big(z, &e, &l, -1);
	close_big(&e);
	close_big(&l);
}

static void apply(struct big *z, enum operation op, const struct big *a, const struct big *b, bool extended)
{
	switch (op) {
	case OP_NEG:
		mpfr_neg(z->re, a->re, MPFR_RNDN);
		mpfr_neg(z->im, a->im, MPFR_RNDN);
		break;
	case OP_EXP: exp_big(z, a); break;
	case OP_LN: ln_big(z, a, extended); break;
	case OP_SQRT: sqrt_big(z, a); break;
	case OP_SIN: sine(z, a, false); break;
	case OP_COS: sine(z, a, true); break;
	case OP_TAN: tangent(z, a, false); break;
	case OP_TANH: tangent(z, a, true); break;
	case OP_SINH: hyperbolic(z, a, -1); break;
	case OP_COSH: hyperbolic(z, a, 1); break;
	case OP_ASIN: arcsine(z, a, false); break;
	case OP_ACOS: arcsine(z, a, true); break;
	case OP_ATAN: arctangent(z, a); break;
	case OP_ADD: add_big(z, a, b, 1); break;
	case OP_SUB: add_big(z, a, b, -1); break;
	case OP_MUL: mul_big(z, a, b); break;
	case OP_DIV: div_big(z, a, b); break;
	case OP_POW: pow_big(z, a, b, extended); break;
	default: eml_big(z, a, b, extended); break;
	}
}

static void constant(struct big *z, const struct node *n, const double *variable)
{
	struct big one;

	open_big(&one);
	set_big(&one, 1, 0);
	switch (n->op) {
	case OP_PI: mpfr_const_pi(z->re, MPFR_RNDN); break;
	case OP_E: exp_big(z, &one); break;
	case OP_I: set_big(z, 0, 1); break;
	case OP_VARIABLE: set_big(z, variable[n->a], 0); break;
	default: set_big(z, n->number, 0); break;
	}
	close_big(&one);
}

static bool value(const struct expression *e, const double *variable, bool extended, struct big *out)
{
	struct big *v = malloc(e->n * sizeof *v);

	if (!v)
		return false;
	for (size_t i = 0; i < e->n; i++) {
		const struct node *n = &e->node[i];
		open_big(&v[i]);
		if (operation_form[n->op].operands)
			apply(&v[i], n->op, &v[n->a], &v[n->b], extended);
		else
			constant(&v[i], n, variable);
	}
	copy_big(out, &v[e->n - 1]);
	for (size_t i = 0; i < e->n; i++)
		close_big(&v[i]);
	free(v);
	return !mpfr_nan_p(out->re) && !mpfr_nan_p(out->im) && !mpfr_inf_p(out->re) && !mpfr_inf_p(out->im);
}

/* In how many digits two numbers agree, at most 100; below 0: one of them is none. */
static double digits_of(const struct expression *a, const struct expression *b, const double *x, bool extended)
{
	struct big u, v, d;
	mpfr_t size, apart;
	double digits = -1;

	open_big(&u);
	open_big(&v);
	open_big(&d);
	mpfr_inits2(BITS, size, apart, (mpfr_ptr)0);
	if (value(a, x, extended, &u) && value(b, x, extended, &v)) {
		add_big(&d, &u, &v, -1);
		mpfr_hypot(size, v.re, v.im, MPFR_RNDN);
		mpfr_hypot(apart, d.re, d.im, MPFR_RNDN);
		if (mpfr_cmp_ui_2exp(size, 1, -SETTLED) > 0)
			mpfr_div(apart, apart, size, MPFR_RNDN);
		mpfr_log10(apart, apart, MPFR_RNDN);
		digits = mpfr_cmp_si(apart, -100) < 0 ? 100 : fmax(0, -mpfr_get_d(apart, MPFR_RNDN));
	}
	close_big(&u);
	close_big(&v);
	close_big(&d);
	mpfr_clears(size, apart, (mpfr_ptr)0);
	return digits;
}

void jiteml_prove_equal(const struct expression *a, const struct expression *b, bool extended, struct jiteml_proof *out)
{
	*out = (struct jiteml_proof){ .done = true, .digits = 100 };
	for (unsigned i = 0; i < JITEML_POINTS; i++) {
		/* multiples of two roots, so that no two points have anything in common */
		const double x = 0.05 + 3.9 * fmod((i + 1) * 0.41421356237309515, 1);
		const double y = 0.05 + 3.9 * fmod((i + 1) * 0.7320508075688772, 1);
		for (unsigned side = 0; side < 4; side++) {
			const double at[2] = { side & 1 ? -x : x, side & 2 ? -y : y };
			const double digits = digits_of(a, b, at, extended);
			const bool equal = digits >= (double)jiteml.digits;
			if (side && digits < 0)
				continue;
			*(side ? &out->others : &out->points) += 1;
			*(side ? &out->equal_others : &out->equal) += equal;
			if (equal)
				out->digits = fmin(out->digits, digits);
			else if (!side && out->equal == out->points - 1)
				memcpy(out->apart, at, sizeof at);
		}
	}
	mpfr_free_cache();
}
#else
void jiteml_prove_equal(const struct expression *a, const struct expression *b, bool extended, struct jiteml_proof *out)
{
	*out = (struct jiteml_proof){ .done = false };
}
#endif

void jiteml_print_proof(const struct jiteml_proof *p, FILE *out)
{
	if (!p->done)
		fputs("not proved: this build has no MPFR", out);
	else if (p->equal == p->points)
		fprintf(out, "equal in %.0f digits at %u points of (0, 4), and at %u of %u with negative numbers",
		        p->digits, p->points, p->equal_others, p->others);
	else
		fprintf(out, "not equal: x = %.4g, y = %.4g; %u of %u points of (0, 4) agree", p->apart[0], p->apart[1],
		        p->equal, p->points);
}

int jiteml_prove(void)
{
	struct expression a = { .n = 0 }, b = { .n = 0 };
	struct jiteml_proof p;
	int status = JITEML_FAILED;

	if (!jiteml.operand[1])
		return jiteml_wrong("two expressions are needed");
	if (jiteml_read(&a, "the first expression", jiteml.operand[0]) &&
	    jiteml_read(&b, "the second expression", jiteml.operand[1])) {
		jiteml_prove_equal(&a, &b, jiteml.extended, &p);
		if (!p.done) {
			status = jiteml_fail("this build proves nothing, as it has no MPFR");
		} else {
			jiteml_print_proof(&p, stdout);
			putchar('\n');
			status = p.equal == p.points ? JITEML_DONE : JITEML_NOT_FOUND;
		}
	}
	expression_free(&a);
	expression_free(&b);
	return status;
}
