/* kernels-templates/matmul/matmul_mma_load.c - what waves stage in shared memory for a step of matmul_mma_shared.c.
 *
 * Owns: the loads of a step, which are under way while the one before is multiplied, and how they are left. Of its half
 * of the spans a wave stages 16 columns, and 16 rows of a row block that lie as operands want them. Of packed rows it
 * stages 32, and every second pair of the step's units: it unpacks them, a lane a row. Scales lie by periods of 256 k's
 * (weight_vectors.h).
 */
#include <stddef.h>
#include <string.h>

#include "kernels-templates/formats/weight_unpack.h"
#include "kernels-templates/matmul/matmul_mma_shared.h"

/* ---- offsets of a row block's weights */

/* Of a pair of units in a whole period: where word n of array i lies, of the lane. */
static uint64_t word_offset(const struct weight_format *f, unsigned i, unsigned unit, unsigned n, unsigned lane)
{
	uint32_t at =
		weight_vectors_stream(f, i, VECTORS_PERIOD_UNITS) + unit * weight_vectors_array_bytes(&f->array[i]);
	return weight_vectors_offset(VECTORS_PERIOD_UNITS * weight_vectors_lane(f), at + 4 * n, lane);
}

static unsigned pair_words(const struct weight_format *f, unsigned i)
{
	return 2 * weight_vectors_array_bytes(&f->array[i]) / 4;
}

/* How much further a step's second pair lies. */
static int64_t pairs_apart(const struct weight_format *f, unsigned i)
{
	return (int64_t)(word_offset(f, i, 2, 0, 0) - word_offset(f, i, 0, 0, 0));
}

/* Whether words of all pairs lie alike, so that a register says which pair it is. */
static bool is_even(const struct weight_format *f, unsigned i)
{
	if (weight_vectors_array_bytes(&f->array[i]) % 2)
		return false;
	for (unsigned first = 0; first < VECTORS_PERIOD_UNITS; first += MMA_STEP)
		for (unsigned n = 0; n < pair_words(f, i); n++) {
			uint64_t a = word_offset(f, i, first, n, 0), b = word_offset(f, i, first + 2, n, 0);
			if ((int64_t)(b - a) != pairs_apart(f, i) || a % 4 ||
			    word_offset(f, i, first, n, 1) - a != word_offset(f, i, first + 2, n, 1) - b)
				return false;
		}
	return true;
}

bool mma_may_load(const struct weight_format *f, unsigned span_units)
{
	const struct weight_quants *q = f->quants;
	bool even = q && !q->is_wide && !(q->halves && q->minimum) && span_units % VECTORS_PERIOD_UNITS == 0 &&
	            (!f->head_bytes || f->head_units == VECTORS_PERIOD_UNITS);

	for (unsigned i = weight_vectors_first_array(f); even && i < WEIGHT_MAX_ARRAYS; i++)
		even = is_even(f, i);
	return even;
}

static ir_s odd_of(const struct mma_shared *m) { return ir_sandi(m->b, m->loader, 1); }
static ir_s side_of(const struct mma_shared *m) { return ir_sshri(m->b, m->loader, 1); }
static int64_t span_bytes(const struct mma_shared *m)
{
	return m->group.span_units * (int64_t)weight_vectors_unit(m->recipe->format);
}
static int64_t period_heads(const struct mma_shared *m) { return weight_vectors_head(m->recipe->format) * INT64_C(32); }
static int64_t span_heads(const struct mma_shared *m)
{
	return m->group.span_units / VECTORS_PERIOD_UNITS * period_heads(m);
}

void mma_begin_rows(struct mma_shared *m, ir_s number)
{
	struct ir *b = m->b;
	ir_a block = matmul_plus(b, matmul_group_arg(&m->group, MATMUL_W), number, m->recipe->block_bytes),
	     w = matmul_plus(b, block, m->half, m->spans * span_bytes(m));

	m->w = ir_var_a(b, m->recipe->unpacks ? w : matmul_plus(b, w, odd_of(m), IR_TILE * IR_VECTOR_BYTES));
	if (!m->recipe->unpacks || !m->recipe->format->head_bytes)
		return;
	block = ir_aaddi(b, block, MMA_HALVES * m->spans * span_bytes(m));
	m->heads = ir_var_a(b, matmul_plus(b, block, m->half, m->spans * span_heads(m)));
}

static bool ends_period(const struct mma_step *s) { return s->first + s->strips == s->units; }

static int64_t walk_rows(const struct mma_shared *m, const struct mma_step *s)
{
	int64_t period = s->units * (int64_t)weight_vectors_unit(m->recipe->format);

	if (m->recipe->unpacks)
		return ends_period(s) ? period : 0;
	return s->strips * (int64_t)MMA_UNIT_BYTES + (ends_period(s) ? period - s->units * (int64_t)MMA_UNIT_BYTES : 0);
}

void mma_walk(const struct mma_shared *m, const struct mma_step *s, const ir_s *over)
{
	struct ir *b = m->b;
	const int64_t half = mma_column_bytes(m) / MMA_HALVES, blocks = m->group.kp / 2 / MMA_HALVES;
	ir_a x = ir_aaddi(b, m->x, s->strips * IR_STRIP_BYTES), w = ir_aaddi(b, m->w, walk_rows(m, s));

	ir_set_a(b, m->x, over ? matmul_plus(b, x, *over, -half) : x);
	ir_set_a(b, m->w, over ? matmul_plus(b, w, *over, -(int64_t)m->spans * span_bytes(m)) : w);
	if (!m->recipe->int8)
		return;
	ir_a xs = ir_aaddi(b, m->xs, s->strips * sizeof(struct activation_block));
	ir_set_a(b, m->xs, over ? matmul_plus(b, xs, *over, -blocks) : xs);
	if (!m->recipe->unpacks || !m->recipe->format->head_bytes || !ends_period(s))
		return;
	ir_a heads = ir_aaddi(b, m->heads, period_heads(m));
	ir_set_a(b, m->heads, over ? matmul_plus(b, heads, *over, -(int64_t)m->spans * span_heads(m)) : heads);
}

/* ---- columns */

/* Blocks of eight columns each; of short steps the last one again and again. */
static void load_column_scales(const struct mma_shared *m, const struct mma_step *s, size_t member, ir_i out[2])
{
	struct ir *b = m->b;
	ir_i lane = ir_ilane(b), unit = ir_iand(b, lane, ir_iconst(b, (int32_t)s->strips - 1)),
	     column = ir_ishr(b, lane, 2);
	ir_i columns = ir_imul(b, column, ir_iconst(b, (int32_t)(m->group.kp / 2)));
	ir_i at = ir_iadd(b, columns, ir_ishl(b, unit, 4));

	for (unsigned i = 0; i < 2; i++)
		out[i] = ir_igather(b, m->xs, at, (int32_t)(i * 8 * (m->group.kp / 2) + member));
}

static void leave_column_scales(const struct mma_shared *m, const ir_i d[2], int32_t at)
{
	struct ir *b = m->b;
	ir_a to = matmul_plus(b, mma_column_scales(m), m->loader, IR_TILE * MMA_STEP * 4);

	for (unsigned i = 0; i < 2; i++)
		ir_fstore(b, to, ir_fbits(b, d[i]), at + (int32_t)(i * 8 * MMA_STEP * 4), 0);
}

/* ---- scales of rows that lie as they are: a lane's word has those of two units of its row */

static ir_i load_row_scales(const struct mma_shared *m, const struct mma_step *s)
{
	struct ir *b = m->b;
	uint32_t stream = s->units * weight_vectors_lane(m->recipe->format),
		 at = weight_vectors_stream(m->recipe->format, 0, s->units) + 2 * s->first;
	uint64_t offset = weight_vectors_offset(stream, at, 0);
	unsigned apart = (unsigned)(weight_vectors_offset(stream, at, 1) - offset);
	int32_t disp = (int32_t)offset - (int32_t)(s->first * MMA_UNIT_BYTES);
	ir_a from = matmul_plus(b, m->w, odd_of(m), (s->strips == MMA_STEP ? 4 : 0) - IR_TILE * IR_VECTOR_BYTES);

	return s->strips == 1 ? ir_iload_u16(b, from, disp) : ir_iload_s(b, from, disp, apart);
}

static void leave_row_scales(const struct mma_shared *m, const struct mma_step *s, ir_i two)
{
	struct ir *b = m->b;
	ir_s odd = odd_of(m), side = side_of(m);
	ir_a to = matmul_plus(b, mma_row_scales(m), side, MMA_SIDE * 4);

	if (s->strips == MMA_STEP) {
		to = matmul_plus(b, to, odd, 2 * MMA_BOTH * 4);
		ir_f low = ir_fhalf(b, two, 0), high = ir_fhalf(b, two, 1);
		ir_fstore(b, to, low, 0, 0);
		ir_fstore(b, to, high, MMA_BOTH * 4, 0);
	} else if (s->strips == 2) {
		ir_i mine = ir_ishrv(b, two, ir_isplat(b, ir_sshli(b, odd, 4)));
		to = matmul_plus(b, to, odd, MMA_BOTH * 4);
		ir_fstore(b, to, ir_fhalf(b, mine, 0), 0, 0);
	} else {
		ir_loop(b, ir_ssub(b, ir_sconst(b, 1), odd));
		ir_fstore(b, to, ir_fhalf(b, two, 0), 0, 0);
		ir_endloop(b);
	}
}

/* ---- rows that are unpacked */

static void load_packed(const struct mma_shared *m, const struct mma_step *s, struct mma_loaded *r)
{
	struct ir *b = m->b;
	const struct weight_format *f = m->recipe->format;
	const unsigned head = f->head_bytes ? weight_vectors_head(f) : 0;
	ir_s odd = odd_of(m);

	for (unsigned i = 0; i < (head + 3) / 4; i++)
		r->head[i] = head == 2 ? ir_iload_u16(b, m->heads, 0) : ir_iload_s(b, m->heads, (int32_t)(i * 4), head);
	for (unsigned i = weight_vectors_first_array(f); i < WEIGHT_MAX_ARRAYS; i++) {
		if (!pair_words(f, i))
			continue;
		ir_a from = matmul_plus(b, m->w, odd, pairs_apart(f, i));
		for (unsigned n = 0; n < pair_words(f, i); n++) {
			uint64_t offset = word_offset(f, i, s->first, n, 0);
			unsigned apart = (unsigned)(word_offset(f, i, s->first, n, 1) - offset);
			r->word[i][n] = ir_iload_s(b, from, (int32_t)offset, apart);
		}
	}
}

/* Numbers from the head, of this wave's pair of units first. */
static void make_numbers(const struct mma_shared *m, const struct mma_step *s, const ir_i head[4],
                         struct weight_vectors *p)
{
	struct ir *b = m->b;
	ir_i bytes[4], past = ir_isplat(b, ir_sshli(b, odd_of(m), 4));

	weight_vectors_numbers(b, head, bytes);
	for (unsigned i = 0; i < 4; i += 2)
		p->array[0].word[i] = ir_ishrv(b, bytes[i + s->first / MMA_STEP], past);
	p->array[0].word[1] = p->array[0].word[0];
	p->array[0].word[3] = p->array[0].word[2];
	p->array[0].n = 4;
}

static void leave_packed(const struct mma_shared *m, const struct mma_step *s, const struct mma_loaded *r)
{
	struct ir *b = m->b;
	const struct weight_format *f = m->recipe->format;
	struct weight_vectors p = { .format = f };
	const struct weight_stream w = { .contiguous = &p };
	ir_s odd = odd_of(m), side = side_of(m);
	ir_a strips = ir_aaddi(b, mma_buffer(m), MMA_FACTOR_BYTES),
	     quants = matmul_plus(b, matmul_plus(b, strips, odd, 2 * mma_strip_bytes(m)), side,
	                          MMA_SIDE * IR_VECTOR_BYTES),
	     numbers = matmul_plus(b, matmul_plus(b, mma_row_scales(m), odd, 2 * MMA_BOTH * 4), side, MMA_SIDE * 4);
	struct product_unpacked to = { .quants = quants,
		                       .numbers = numbers,
		                       .second = (mma_row_vectors(m) - 1) * MMA_VECTORS_BYTES,
		                       .scales = { 0, MMA_SCALES_BYTES },
		                       .minima = { MMA_SCALES_BYTES, MMA_SCALES_BYTES } };

	if (f->six)
		make_numbers(m, s, r->head, &p);
	for (unsigned i = weight_vectors_first_array(f); i < WEIGHT_MAX_ARRAYS; i++) {
		p.array[i].n = pair_words(f, i);
		memcpy(p.array[i].word, r->word[i], p.array[i].n * sizeof(ir_i));
	}
	p.head = r->head[0];
	for (p.unit = 0; p.unit < 2; p.unit++) {
		matmul_product_unpack(b, f->quants, &w, &to);
		to.quants = ir_aaddi(b, to.quants, mma_strip_bytes(m));
		to.numbers = ir_aaddi(b, to.numbers, MMA_BOTH * 4);
	}
}

/* Of this wave's 16 rows. */
void mma_write_zeroes(const struct mma_shared *m)
{
	struct ir *b = m->b;
	ir_f zero = ir_fconst(b, 0);
	ir_a at = matmul_plus(b, ir_aaddi(b, mma_buffer(m), MMA_FACTOR_BYTES + MMA_VECTORS_BYTES), m->loader,
	                      IR_TILE * IR_VECTOR_BYTES);

	for (unsigned u = 0; u < MMA_STEP; u++)
		for (unsigned i = 0; i < IR_TILE * IR_VECTOR_BYTES / 128; i++)
			ir_fstore(b, at, zero, (int32_t)(u * (unsigned)mma_strip_bytes(m) + i * 128), 0);
}

/* ---- a step */

struct mma_loaded mma_load(const struct mma_shared *m, const struct mma_step *s)
{
	struct ir *b = m->b;
	struct mma_loaded r = { 0 };

	for (unsigned u = 0; u < s->strips; u++) {
		r.x[u] = ir_oload(b, m->x, (int32_t)(u * IR_STRIP_BYTES), mma_column_bytes(m), 1);
		if (!m->recipe->unpacks)
			r.w[u] = ir_oload(b, m->w, (int32_t)(u * MMA_UNIT_BYTES), IR_VECTOR_BYTES, MMA_SIDE);
	}
	if (m->recipe->unpacks)
		load_packed(m, s, &r);
	else if (m->recipe->int8)
		r.dw = load_row_scales(m, s);
	if (m->recipe->int8)
		load_column_scales(m, s, offsetof(struct activation_block, d), r.dx);
	if (mma_has_minima(m))
		load_column_scales(m, s, offsetof(struct activation_block, d_sum), r.sx);
	return r;
}

void mma_leave(const struct mma_shared *m, const struct mma_step *s, const struct mma_loaded *r)
{
	struct ir *b = m->b;
	ir_a at = matmul_plus(b, mma_buffer(m), m->loader, IR_TILE * IR_VECTOR_BYTES);

	for (unsigned u = 0; u < s->strips; u++) {
		const int32_t strip = (int32_t)u * mma_strip_bytes(m);
		ir_ostore(b, at, r->x[u], strip, IR_VECTOR_BYTES, MMA_APART);
		if (!m->recipe->unpacks)
			ir_ostore(b, at, r->w[u], strip + MMA_FACTOR_BYTES, IR_VECTOR_BYTES, MMA_APART);
	}
	if (m->recipe->unpacks)
		leave_packed(m, s, r);
	else if (m->recipe->int8)
		leave_row_scales(m, s, r->dw);
	if (m->recipe->int8)
		leave_column_scales(m, r->dx, 0);
	if (mma_has_minima(m))
		leave_column_scales(m, r->sx, MMA_SCALES_BYTES);
}
