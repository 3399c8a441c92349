/* kernels-templates/attention/wave_values.c - the values of a chunk, weighted and summed, for groups of waves. */
#include "kernels-templates/attention/attention_wave.h"

/* ---- values */

/* values: of the chunk. */
struct values {
	ir_f o[MAX_ROWS][MAX_VECTORS];
	ir_a values;
};

/* Of the cache, for all lanes. A kernel that stores there must not read it as one that does not (ops.def). */
static ir_f one_word(const struct spread *t, ir_a at, int32_t disp)
{
	struct ir *b = t->b;

	return t->rotates ? ir_fbits(b, ir_igather(b, at, ir_iconst(b, 0), disp)) : ir_fbcast(b, at, disp);
}

/* The position n behind the one at `at`. */
static void load_value(const struct spread *t, ir_a at, unsigned n, ir_f out[MAX_VECTORS])
{
	struct ir *b = t->b;
	int32_t row = (int32_t)(n * t->row_bytes), scales = (int32_t)((t->out_dims + LANES - 1) / LANES * 4);
	ir_a scale_at = t->int8 && t->one_vector ? ir_aadd(b, at, t->scale_step) : at;

	for (unsigned i = 0; i < t->vectors; i++)
		if (t->int8) {
			ir_f scale = one_word(t, scale_at, row + (int32_t)(i * 4));
			out[i] = ir_fmul(b, scale, ir_i2f(b, ir_iload_s8(b, at, row + scales + (int32_t)(i * LANES))));
		} else if (t->element == 2) {
			out[i] = ir_fload_h(b, at, row + (int32_t)(i * LANES * 2));
		} else {
			out[i] = ir_fload(b, at, row + (int32_t)(i * LANES * 4), 0);
		}
}

/* By octets: the eight positions at `at`; one position, of a number known only when the kernel runs. */
static void load_octet(const struct spread *t, ir_a at, ir_f out[OCTET][MAX_VECTORS])
{
	struct ir *b = t->b;
	ir_i word[MAX_VECTORS][OCTET / 2];

	for (unsigned i = 0; i < t->vectors; i++)
		for (unsigned n = 0; n < OCTET / 2; n++)
			word[i][n] = ir_iload_s(b, at, (int32_t)(i * LANES_BYTES + n * 4), OCTET_BYTES);
	for (unsigned n = 0; n < OCTET; n++)
		for (unsigned i = 0; i < t->vectors; i++)
			out[n][i] = ir_fhalf(b, word[i][n / 2], n % 2);
}

static void load_of_octet(const struct spread *t, const struct values *v, ir_s position, ir_f out[MAX_VECTORS])
{
	struct ir *b = t->b;
	ir_s in_octet = ir_sandi(b, position, OCTET - 1), even = ir_sshli(b, ir_sshri(b, in_octet, 1), 2);
	ir_a at = ir_aadd(b, ir_aadd(b, v->values, ir_smuli(b, ir_ssub(b, position, in_octet), t->row_bytes)), even);
	ir_i shift = ir_isplat(b, ir_sshli(b, ir_sandi(b, in_octet, 1), 4));

	for (unsigned i = 0; i < t->vectors; i++)
		out[i] = ir_fhalf(b, ir_ishrv(b, ir_iload_s(b, at, (int32_t)(i * LANES_BYTES), OCTET_BYTES), shift), 0);
}

/* `count` iterations of n positions each, from position `from` on; by octets, n is 1, or of whole ones and from where
 * one begins. */
static void add_values(const struct spread *t, struct values *v, ir_s from, ir_s count, unsigned n)
{
	struct ir *b = t->b;
	ir_f value[MANY * OCTET][MAX_VECTORS], p[OCTET];
	ir_a at = ir_var_a(b, ir_aadd(b, v->values, ir_smuli(b, from, t->row_bytes))),
	     scores = ir_var_a(b, ir_aadd(b, t->own, ir_sshli(b, from, 2)));

	ir_s iteration = ir_loop(b, count);
	if (t->octets && n == 1)
		load_of_octet(t, v, ir_sadd(b, from, iteration), value[0]);
	for (unsigned j = 0; t->octets && j + OCTET <= n; j += OCTET)
		load_octet(t, j ? ir_aaddi(b, at, j * t->row_bytes) : at, value + j);
	for (unsigned j = 0; !t->octets && j < n; j++)
		load_value(t, at, j, value[j]);
	for (unsigned first = 0, some; first < n; first += some) {
		some = n - first < OCTET ? n - first : OCTET;
		for (unsigned r = 0; r < t->tile; r++) {
			for (unsigned j = 0; j < some; j++)
				p[j] = ir_fbcast(b, scores, (int32_t)(r * t->slot + (first + j) * 4));
			for (unsigned j = 0; j < some; j++)
				for (unsigned i = 0; i < t->vectors; i++)
					ir_set_f(b, v->o[r][i], ir_ffma(b, p[j], value[first + j][i], v->o[r][i]));
		}
	}
	ir_set_a(b, at, ir_aaddi(b, at, n * t->row_bytes));
	ir_set_a(b, scores, ir_aaddi(b, scores, n * 4));
	ir_endloop(b);
}

/* Positions from..to - 1, which only some rows see: the others keep what they have. left: they are columns' of the
 * launch, left beside the chunk. */
static void add_some(const struct spread *t, struct values *v, ir_s start, ir_s from, ir_s to, bool left)
{
	struct ir *b = t->b;
	ir_f value[MAX_VECTORS];

	ir_s before = left ? ir_ssub(b, start, t->ahead->pos0) : start, n = ir_loop(b, ir_ssub(b, to, from)),
	     position = ir_sadd(b, from, n);
	ir_a p = ir_aadd(b, t->own, ir_sshli(b, position, 2));
	ir_i at = ir_isplat(b, position);
	if (left)
		value[0] = ir_fload_h(b, attention_ahead_value(t->ahead, ir_sadd(b, position, before), t->vector), 0);
	else if (t->octets)
		load_of_octet(t, v, position, value);
	else
		load_value(t, ir_aadd(b, v->values, ir_smuli(b, position, t->row_bytes)), 0, value);
	for (unsigned r = 0; r < t->tile; r++) {
		struct row row = attention_wave_find_row(t, ir_sconst(b, r));
		ir_m seen = ir_igt(b, ir_isplat(b, attention_wave_row_end(t, &row, start)), at);
		if (t->window)
			seen = ir_mand(b, seen,
			               ir_igt(b, at,
			                      ir_isplat(b, ir_saddi(b, attention_wave_row_begin(t, &row, start), -1))));
		ir_f weight = ir_fbcast(b, p, (int32_t)(r * t->slot));
		for (unsigned i = 0; i < t->vectors; i++)
			ir_set_f(b, v->o[r][i], ir_fsel(b, seen, ir_ffma(b, weight, value[i], v->o[r][i]), v->o[r][i]));
	}
	ir_endloop(b);
}

/* Positions from..to - 1, which all rows see. */
static void add_whole(const struct spread *t, struct values *v, ir_s from, ir_s to)
{
	struct ir *b = t->b;
	unsigned shift = t->octets ? 3 : 2;

	if (t->octets && t->window) { /* else from is 0 */
		ir_s whole = ir_smin(b, ir_sshli(b, ir_sshri(b, ir_saddi(b, from, OCTET - 1), shift), shift), to);
		add_values(t, v, from, ir_ssub(b, whole, from), 1);
		from = whole;
	}
	if (t->many > 1) {
		unsigned far = shift + (unsigned)__builtin_ctz(t->many);
		ir_s iterations = ir_sshri(b, ir_ssub(b, to, from), far);
		add_values(t, v, from, iterations, 1u << far);
		from = ir_sadd(b, from, ir_sshli(b, iterations, far));
	}
	ir_s count = ir_ssub(b, to, from), iterations = ir_sshri(b, count, shift);
	add_values(t, v, from, iterations, 1u << shift);
	ir_s rest = ir_sandi(b, count, (1 << shift) - 1);
	add_values(t, v, ir_sadd(b, from, ir_sshli(b, iterations, shift)), rest, 1);
}

/* Positions begin..end - 1 of a chunk whose old ones are copied: all rows see these to the last one. */
static void add_copied(const struct spread *t, struct values *v, ir_s start, ir_s begin, ir_s end,
                       const struct row *last)
{
	struct ir *b = t->b;
	const struct attention_ahead *a = t->ahead;

	if (t->partial) /* rows that there are not would see more */
		end = ir_smin(b, end, ir_ssub(b, ir_sadd(b, a->pos0, ir_sadd(b, a->first, a->count)), start));
	ir_s old = ir_smin(b, t->old, end);

	if (t->window && t->columns > 1) {
		ir_s all = ir_smin(b, attention_wave_row_begin(t, last, start), old), some = ir_smin(b, begin, all);
		add_some(t, v, start, some, all, false);
		add_whole(t, v, all, old);
	} else {
		add_whole(t, v, t->window ? ir_smin(b, begin, old) : begin, old);
	}
	add_some(t, v, start, t->window ? ir_smax(b, begin, old) : old, end, true);
}

void attention_wave_value_chunk(const struct spread *t, ir_a values, ir_s start)
{
	struct ir *b = t->b;
	struct row first = attention_wave_find_row(t, ir_sconst(b, 0)),
		   last = attention_wave_find_row(t, ir_sconst(b, t->tile - 1));
	ir_s begin = attention_wave_row_begin(t, &first, start), end = attention_wave_row_end(t, &last, start);
	struct values v;

	for (unsigned r = 0; r < t->tile; r++)
		for (unsigned i = 0; i < t->vectors; i++)
			v.o[r][i] = ir_var_f(b, ir_fconst(b, 0.0f));
	v.values = values;
	if (t->ahead) {
		add_copied(t, &v, start, begin, end, &last);
	} else if (t->columns == 1) {
		add_whole(t, &v, begin, end);
	} else {
		ir_s all = t->window ? ir_smin(b, attention_wave_row_begin(t, &last, start), end) : begin,
		     no_more = ir_smax(b, attention_wave_row_end(t, &first, start), all);
		if (t->window)
			add_some(t, &v, start, begin, all, false);
		add_whole(t, &v, all, no_more);
		add_some(t, &v, start, no_more, end, false);
	}
	for (unsigned r = 0; r < t->tile; r++) {
		const bool may_miss = t->partial && r >= t->group && r % t->group == 0;
		if (may_miss) /* a column that the unit does not have */
			ir_loop(b, ir_smin(b, ir_smax(b, ir_saddi(b, t->live, -(int64_t)r), ir_sconst(b, 0)),
			                   ir_sconst(b, 1)));
		for (unsigned i = 0; i < t->vectors; i++)
			(t->gives ? ir_fgive
			          : ir_fstore)(b, t->o, v.o[r][i], (int32_t)(r * t->o_step + i * LANES * 4), 0);
		if (t->partial && r >= t->group && r % t->group == t->group - 1)
			ir_endloop(b);
	}
}
