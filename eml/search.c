#include "eml/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eml/kernel_texts.h"

enum { PARTS = 2 * LEVELS_POINTS, BLOCK = PARTS * LEVELS_WIDTH, ROWS = 64, WAVE = 4096 };

/* A value that is wanted, and how it came about: the operand of `up` that is known, and on which side it stands. */
struct want {
	double value[PARTS];
	const struct want *up;
	uint32_t known;
	bool known_left;
};

struct search {
	struct levels *l;
	struct levels_kernel need_right, need_left;
	uint64_t *hash, *near;
	double *target; /* ROWS of them, in parts */
	uint64_t lookups;
	struct expression *out;
	jit_error *err;
};

static bool fail(jit_error *err, int code, const char *sentence)
{
	err->code = code;
	snprintf(err->message, sizeof err->message, "%s", sentence);
	return false;
}

uint32_t search_value_tree(const struct levels *l, uint32_t number, struct expression *out)
{
	const struct level *v = levels_owner(l, number);
	const uint32_t left = v->left[number - v->first], right = v->right[number - v->first];

	if (v == l->level)
		return left ? expression_variable(out, left - 1) : expression_number(out, 1);
	const uint32_t a = search_value_tree(l, left, out), b = search_value_tree(l, right, out);

	return expression_add(out, OP_EML, a, b);
}

/* ---- what is found */

/* The tree of a wanted value `made`, up to the first one. */
static void finish(struct search *s, const struct want *w, uint32_t made)
{
	for (; w->up; w = w->up) {
		const uint32_t known = search_value_tree(s->l, w->known, s->out);
		made = w->known_left ? expression_add(s->out, OP_EML, known, made)
		                     : expression_add(s->out, OP_EML, made, known);
	}
}

/* A tree's value as levels.jk computes it. False: it has none. */
static bool tree_value(const struct search *s, unsigned point, double complex *out)
{
	const struct levels_options *o = &s->l->options;
	double complex v[4 * LEVELS_MAX];

	for (size_t i = 0; i < s->out->n; i++) {
		const struct node *n = &s->out->node[i];
		double at[2] = { 1, 0 };
		if (n->op == OP_VARIABLE)
			levels_point(point, n->a, at);
		v[i] = complex_of(at[0], at[1]);
		if (n->op != OP_EML)
			continue;
		const double complex a = v[n->a], b = v[n->b];
		const bool small = fmax(fabs(creal(b)), fabs(cimag(b))) <= 1e-11;
		if ((!(fabs(creal(a)) <= o->cap * (1 + 1e-9)) && !(o->extended && isinf(creal(a)))) ||
		    (small && !o->extended))
			return false;
		const double complex e = isinf(creal(a)) ? creal(a) < 0 ? 0 : INFINITY : cexp(a);
		v[i] = small ? creal(e) + INFINITY : e - expression_log(b);
	}
	*out = v[s->out->n - 1];
	return true;
}

static bool right(const struct search *s, const struct want *first)
{
	if (s->out->n > 4 * LEVELS_MAX)
		return false;
	for (unsigned p = 0; p < LEVELS_POINTS; p++) {
		double complex v;
		const double complex want = complex_of(first->value[2 * p], first->value[2 * p + 1]);
		if (!tree_value(s, p, &v) || !(cabs(v - want) <= 1e-8 * fmax(1, cabs(want))))
			return false;
	}
	return true;
}

static bool try_hit(struct search *s, const struct want *w, uint32_t number, uint32_t known, bool known_left)
{
	const struct want *first = w;

	while (first->up)
		first = first->up;
	s->out->n = 0;
	uint32_t made = search_value_tree(s->l, number, s->out);
	if (known != SEEN_NONE) {
		const uint32_t other = search_value_tree(s->l, known, s->out);
		made = known_left ? expression_add(s->out, OP_EML, other, made)
		                  : expression_add(s->out, OP_EML, made, other);
	}
	finish(s, w, made);
	if (!s->out->failed && right(s, first))
		return true;
	s->out->n = 0;
	s->out->failed = false;
	return false;
}

/* ---- one operand is in the levels */

static unsigned size_of(const struct search *s, uint32_t number)
{
	return levels_size(s->l, levels_owner(s->l, number));
}

static bool find_operand(struct search *s, const struct want *w, unsigned n, const struct level *v, uint32_t block,
                         bool known_left, unsigned other)
{
	const uint32_t width =
		v->count - block * LEVELS_WIDTH < LEVELS_WIDTH ? v->count - block * LEVELS_WIDTH : LEVELS_WIDTH;

	for (unsigned i = 0; i < n; i++)
		for (uint32_t j = 0; j < width; j++) {
			const size_t at = (size_t)i * LEVELS_WIDTH + j;
			for (unsigned k = 0; k < 2; k++) {
				const uint64_t hash = k ? s->near[at] : s->hash[at];
				if (!hash)
					continue;
				s->lookups++;
				const uint32_t number = seen_find(&s->l->seen, hash);
				if (number != SEEN_NONE && size_of(s, number) <= other &&
				    try_hit(s, w + i, number, v->first + block * LEVELS_WIDTH + j, known_left))
					return true;
			}
		}
	return false;
}

static bool launch(struct search *s, const struct levels_kernel *k, bool left, struct level *v, uint32_t block)
{
	jit_buffer *from = left ? v->exp_buffer : v->ln_buffer;

	return jit_launch_set_buffer(k->launch, (size_t)jit_kernel_find(k->kernel, left ? "e" : "l"), from,
	                             (uint64_t)block * BLOCK * sizeof(double), s->err) == JIT_OK &&
	       jit_launch_run(k->launch, s->err) == JIT_OK;
}

/* At most ROWS wanted values, each with every value of a level as an operand, and a tree of at most `other` nodes as
 * the other one. -1: err; 1: found. */
static int scan(struct search *s, const struct want *w, unsigned n, struct level *v, unsigned other)
{
	static const double angles[3] = { 0, 6.283185307179586, -6.283185307179586 };

	for (unsigned i = 0; i < ROWS; i++)
		for (unsigned k = 0; k < PARTS; k++)
			s->target[k * ROWS + i] = i < n ? w[i].value[k] : NAN;
	for (uint32_t b = 0; b < v->blocks; b++) {
		if (!launch(s, &s->need_right, true, v, b))
			return -1;
		if (find_operand(s, w, n, v, b, true, other))
			return 1;
		for (unsigned t = 0; t < 3; t++) {
			const int angle = jit_kernel_find(s->need_left.kernel, "turn");
			if (jit_launch_set_real(s->need_left.launch, (size_t)angle, &angles[t], s->err) != JIT_OK ||
			    !launch(s, &s->need_left, false, v, b))
				return -1;
			if (find_operand(s, w, n, v, b, false, other))
				return 1;
		}
	}
	return 0;
}

/* ---- neither is: a small one is known, the other is wanted */

static double complex part(const double *block, uint32_t lane, unsigned point)
{
	return complex_of(block[2 * point * LEVELS_WIDTH + lane], block[(2 * point + 1) * LEVELS_WIDTH + lane]);
}

/* What is wanted of the other operand. False: there is no such number. */
static bool follow(const struct want *w, const struct level *v, uint32_t at, bool known_left, double angle,
                   struct want *out)
{
	const size_t block = (size_t)(at / LEVELS_WIDTH) * BLOCK;
	const uint32_t lane = at % LEVELS_WIDTH;

	*out = (struct want){ .up = w, .known = v->first + at, .known_left = known_left };
	for (unsigned p = 0; p < LEVELS_POINTS; p++) {
		const double complex t = complex_of(w->value[2 * p], w->value[2 * p + 1]);
		double complex z;
		if (known_left) {
			z = part(v->exp_value + block, lane, p) - t;
			if (!(fabs(creal(z)) < 600 && fabs(cimag(z)) <= 3.1415926545))
				return false;
			z = cexp(z);
		} else {
			z = part(v->ln_value + block, lane, p) + t;
			if (!(cabs(z) > 1e-11 && cabs(z) < 1e300))
				return false;
			if (fabs(cimag(z)) <= fmax(1e-11 * fabs(creal(z)), 1e-13))
				z = complex_of(creal(z), 0);
			z = clog(z) + complex_of(0, angle);
		}
		out->value[2 * p] = creal(z);
		out->value[2 * p + 1] = cimag(z);
	}
	return true;
}

static int search_size(struct search *s, const struct want *w, unsigned n, unsigned size);

/* Wanted values of which an operand is one of the level's, the other a tree of `size`. */
static int search_others(struct search *s, const struct want *w, unsigned n, const struct level *v, unsigned size)
{
	static const double angles[4] = { 0, 0, 6.283185307179586, -6.283185307179586 };
	struct want *next = malloc(WAVE * sizeof *next);
	unsigned many = 0;
	int found = next ? 0 : (fail(s->err, JIT_ERROR_MEMORY, "there is no memory for a search"), -1);

	for (unsigned i = 0; !found && i < n; i++)
		for (uint32_t at = 0; !found && at < v->count; at++)
			for (unsigned side = 0; !found && side < 4; side++) {
				many += follow(&w[i], v, at, side == 0, angles[side], &next[many]);
				if (many == WAVE) {
					found = search_size(s, next, many, size);
					many = 0;
				}
			}
	if (!found && many)
		found = search_size(s, next, many, size);
	free(next);
	return found;
}

/* Trees of just that size, larger than those of the levels. */
static int search_size(struct search *s, const struct want *w, unsigned n, unsigned size)
{
	const unsigned max = s->l->size;
	int found = 0;

	if (size <= max) {
		for (unsigned i = 0; i < n; i++) {
			uint64_t hash[2];
			hash[0] = levels_hash(w[i].value, &hash[1]);
			for (unsigned k = 0; k < 2; k++) {
				const uint32_t number = hash[k] ? seen_find(&s->l->seen, hash[k]) : SEEN_NONE;
				s->lookups += hash[k] != 0;
				if (number != SEEN_NONE && size_of(s, number) <= size &&
				    try_hit(s, &w[i], number, SEEN_NONE, false))
					return 1;
			}
		}
		return 0;
	}
	for (unsigned small = 1; !found && small <= max && 2 * small <= size - 1; small += 2) {
		const unsigned other = size - 1 - small;
		struct level *v = levels_of(s->l, small);
		if (!levels_operands(s->l, v, s->err))
			return -1;
		if (other > max) {
			found = search_others(s, w, n, v, other);
			continue;
		}
		for (unsigned i = 0; !found && i < n; i += ROWS)
			found = scan(s, w + i, n - i < ROWS ? n - i : ROWS, v, other);
	}
	return found;
}

/* ---- a search */

static bool open_kernel(struct search *s, struct levels_kernel *k, const char *name)
{
	char constants[80];
	const size_t bytes = (size_t)ROWS * LEVELS_WIDTH * sizeof *s->hash;

	snprintf(constants, sizeof constants, "points=%d width=%d rows=%d extended=%s", LEVELS_POINTS, LEVELS_WIDTH,
	         ROWS, s->l->options.extended ? "true" : "false");
	k->kernel = jit_kernel_open(s->l->compute,
	                            &JIT_KERNEL_OPTIONS(.source = (const char *)eml_levels_text, .n = eml_levels_bytes,
	                                                .path = "levels.jk", .kernel = name, .constants = constants),
	                            s->err);
	k->launch = k->kernel ? jit_launch_open(k->kernel, s->err) : NULL;
	return k->launch &&
	       jit_launch_set_memory(k->launch, (size_t)jit_kernel_find(k->kernel, "t"), s->target,
	                             PARTS * ROWS * sizeof *s->target, s->err) == JIT_OK &&
	       jit_launch_set_memory(k->launch, (size_t)jit_kernel_find(k->kernel, "h"), s->hash, bytes, s->err) ==
	               JIT_OK &&
	       jit_launch_set_memory(k->launch, (size_t)jit_kernel_find(k->kernel, "near"), s->near, bytes, s->err) ==
	               JIT_OK;
}

static void close_kernel(struct levels_kernel *k)
{
	jit_launch_close(k->launch);
	jit_kernel_close(k->kernel);
}

bool search_tree(struct levels *l, const double target[PARTS], unsigned max, struct expression *out,
                 struct search_report *report, jit_error *err)
{
	struct search s = { .l = l, .out = out, .err = err };
	struct want first = { .up = NULL };
	const size_t hashes = (size_t)ROWS * LEVELS_WIDTH;
	int found = -1;

	*report = (struct search_report){ .size = 0 };
	*out = (struct expression){ .n = 0 };
	memcpy(first.value, target, sizeof first.value);
	s.hash = aligned_alloc(64, hashes * sizeof *s.hash);
	s.near = aligned_alloc(64, hashes * sizeof *s.near);
	s.target = aligned_alloc(64, PARTS * ROWS * sizeof *s.target);
	if (!s.hash || !s.near || !s.target)
		fail(err, JIT_ERROR_MEMORY, "there is no memory for a search");
	else if (open_kernel(&s, &s.need_right, "need_right") && open_kernel(&s, &s.need_left, "need_left"))
		found = search_size(&s, &first, 1, l->size); /* any that the levels have */
	for (unsigned size = l->size + 2; found == 0 && size <= max; size += 2)
		found = search_size(&s, &first, 1, size);
	if (found > 0)
		report->size = (unsigned)expression_size(out, expression_root(out));
	report->lookups = s.lookups;
	close_kernel(&s.need_right);
	close_kernel(&s.need_left);
	free(s.hash);
	free(s.near);
	free(s.target);
	if (found <= 0)
		expression_free(out);
	return found >= 0;
}
