/* kernels-templates/matmul_wide.c - matmul for many columns: prompts.
 *
 * Owns: blocking when arithmetic, not memory, is the limit. As in matmul.c a lane owns a row and k runs in time; every row's chain is as numerics.h
 * rules 3 to 5 say it, whatever the tiles. A tile's columns lie side by side in memory (KEY_TURN), so that activations are one stream of small
 * displacements, whatever k is: columns a power of two apart would push each other out of the first-level cache.
 *
 * The loops, outermost first: row blocks; column tiles; matrices; segments of k, whose weights stay in the first-level cache; parts of the
 * tile that fit the registers; k. Weights that take work to read are unpacked once for a segment, and read from there by all parts.
 */
#include "kernels-templates/matmul.h"
#include "kernels-templates/math.h"
#include "kernels-templates/weight_unpack.h"

/* A segment's weights, to be met again by every part of the tile. */
enum { WIDE_SEGMENT_BYTES = 18 << 10, WIDE_LINE = 64, WIDE_FAR = 8192 };

struct wide {
	struct ir *b;
	const struct weight_format *format;  /* of what is multiplied */
	const struct weight_format *packed;  /* of what is in memory */
	struct weight_unpacked unpacked;     /* in use when they differ */
	ir_a scratch;                        /* local: a segment's */
	ir_s block, tile, matrix, segment_number;   /* at work */
	bool int8, has_vnni;
	uint32_t kp;
	int64_t block_bytes;
	unsigned spans, span_k;              /* span_k, segment: k's */
	unsigned segment;
	unsigned turn_k;                     /* k's in one turn of the inner loop */
	unsigned columns, part_columns, row_vectors, part_vectors, matrices;
	struct matmul_results results;
	ir_a w, x, xs, sum;                  /* walking */
	ir_a ahead;                          /* walks through the next segment's weights, which every part asks for a share of */
	unsigned lines;                      /* ... in a turn */
	ir_s turns;                          /* of this segment; in use when segments differ */
};

/* ---- shape */

/* Registers beside sums and weights. */
static unsigned beside_int8(const struct wide *m)
{
	if (!m->has_vnni)
		return weight_int8_registers(m->format) - 1;
	return m->format->quants && m->format->quants->halves && m->format->quants->minimum ? 4 : 2;
}

static bool part_fits(const struct wide *m, unsigned regs, unsigned vectors, unsigned columns)
{
	unsigned n = vectors * columns;
	if (n > (regs < 32 ? 12 : 24) / (m->int8 ? 2 : 1))
		return false;
	if (m->int8)
		return 2 * n + vectors + beside_int8(m) <= regs;
	return n + vectors * m->format->step + (m->format->step > 1 ? 2 : 1) <= regs;
}

/* Two row vectors share an input, which is one load; beyond that, as many columns as fit. int8 without VNNI makes more of a weight than of an
 * input, so there one vector has all columns. */
static void shape_part(struct wide *m, unsigned regs)
{
	m->part_vectors = (m->int8 && !m->has_vnni) || m->row_vectors == 1 ? 1 : 2;
	if (!part_fits(m, regs, m->part_vectors, m->columns < 3 ? m->columns : 3))
		m->part_vectors = 1;
	m->part_columns = m->columns;
	while (m->part_columns > 1 && !part_fits(m, regs, m->part_vectors, m->part_columns))
		m->part_columns--;
	unsigned passes = (m->columns + m->part_columns - 1) / m->part_columns;
	m->part_columns = (m->columns + passes - 1) / passes;
}

/* A float chain ends with its segment; an int8 chain may be cut anywhere. */
static unsigned segment_k(const struct wide *m)
{
	if (!m->int8)
		return NUMERICS_SEGMENT < m->span_k ? NUMERICS_SEGMENT : m->span_k;
	unsigned most = WIDE_SEGMENT_BYTES / m->format->unit_bytes * m->format->unit_k;
	for (unsigned n = most; n > m->turn_k; n -= m->turn_k)
		if (m->span_k % n == 0)
			return n;
	return m->turn_k;
}

static bool unpacks(const struct wide *m) { return m->format != m->packed; }

/* ---- walking */

static void walk(const struct wide *m, ir_a var, int64_t bytes)
{
	if (bytes)
		ir_set_a(m->b, var, ir_aaddi(m->b, var, bytes));
}

static bool even_segments(const struct wide *m) { return m->span_k % m->segment == 0; }

/* Bytes of a turn: of weights, of inputs, of the inputs' blocks. */
static int64_t turn_w(const struct wide *m) { return (int64_t)m->turn_k / m->format->unit_k * m->format->unit_bytes; }
static int64_t turn_x(const struct wide *m) { return (int64_t)m->turn_k * m->columns * (m->int8 ? 1 : 4); }
static int64_t turn_xs(const struct wide *m) { return (int64_t)m->turn_k / 32 * m->columns * (int64_t)sizeof(struct activation_block); }

static void walk_turns(const struct wide *m, ir_a var, int64_t bytes)
{
	if (even_segments(m))
		walk(m, var, m->segment / m->turn_k * bytes);
	else
		ir_set_a(m->b, var, ir_aadd(m->b, var, ir_smuli(m->b, m->turns, bytes)));
}

static void walk_inputs(const struct wide *m, int direction)
{
	walk_turns(m, m->x, direction * turn_x(m));
	if (m->int8)
		walk_turns(m, m->xs, direction * turn_xs(m));
}

static void walk_columns(const struct wide *m, int columns)
{
	walk(m, m->x, columns * 4);
	if (m->int8)
		walk(m, m->xs, columns * (int64_t)sizeof(struct activation_block));
	walk(m, m->sum, columns * 128);
}

/* ---- the inner loop */

static void dot_floats(const struct wide *m, const struct weight_tile *t, unsigned k)
{
	struct ir *b = m->b;
	const struct weight_format *f = m->format;
	ir_f w[2][WEIGHT_MAX_STEP];

	for (unsigned v = 0; v < t->vectors; v++)
		weight_load(f, b, &t->w, (int32_t)(k / f->unit_k * f->unit_bytes), t->first_vector + v, k % f->unit_k / f->step, w[v]);
	for (unsigned i = 0; i < f->step; i++)
		for (unsigned c = 0; c < t->columns; c++) {
			ir_f x = ir_fbcast(b, t->x, weight_input_disp(t, c, k + i));
			for (unsigned v = 0; v < t->vectors; v++)
				ir_set_f(b, weight_acc(t, v, c), ir_ffma(b, w[v][i], x, weight_acc(t, v, c)));
		}
}

static void dot_turn(const struct wide *m, const struct weight_tile *t)
{
	const struct weight_format *f = m->format;
	for (unsigned k = 0; k < m->turn_k; k += m->int8 ? f->unit_k : f->step)
		if (m->int8 && unpacks(m))
			weight_unpacked_dot(&m->unpacked, m->b, t, 0, 0);
		else if (m->int8)
			weight_dot_int8(f, m->b, t, (int32_t)(k / f->unit_k * f->unit_bytes), k / f->unit_k);
		else
			dot_floats(m, t, k);
}

/* One part of the segment; leaves the addresses as they were. */
static void dot_part(const struct wide *m, unsigned columns, unsigned vector)
{
	struct ir *b = m->b;
	struct weight_tile t = { .vectors = m->part_vectors, .first_vector = vector, .columns = columns, .w = { .at = { m->w, m->w, m->w } },
	                         .x = m->x, .xs = m->xs, .sums = WEIGHT_MAX_ACC, .x_column = 4, .x_step = (int32_t)m->columns * 4,
	                         .xs_column = sizeof(struct activation_block), .xs_step = (int32_t)(m->columns * sizeof(struct activation_block)), .has_vnni = m->has_vnni };
	int32_t disp[WEIGHT_MAX_ACC];

	for (unsigned i = 0; i < t.vectors * columns; i++) {
		disp[i] = (int32_t)(i % columns * 128 + (vector + i / columns) * b->lanes * 4);
		t.acc[i] = ir_var_f(b, m->int8 ? ir_fload(b, m->sum, disp[i], 0) : ir_fconst(b, 0.0f));
	}
	ir_loop(b, even_segments(m) ? ir_sconst(b, m->segment / m->turn_k) : m->turns);
	for (unsigned i = 0; i < m->lines; i++)
		ir_prefetch(b, m->ahead, (int32_t)(i * WIDE_LINE));
	for (unsigned i = 0; m->results.key->schedule && i < m->lines; i++)      /* matmul_schedules() */
		ir_prefetch2(b, m->ahead, (int32_t)(WIDE_FAR + i * WIDE_LINE));
	walk(m, m->ahead, m->lines * WIDE_LINE);
	dot_turn(m, &t);
	walk(m, m->w, turn_w(m));
	walk(m, m->x, turn_x(m));
	if (m->int8)
		walk(m, m->xs, turn_xs(m));
	ir_endloop(b);
	for (unsigned i = 0; i < t.vectors * columns; i++)
		ir_fstore(b, m->sum, m->int8 ? t.acc[i] : ir_fadd(b, ir_fload(b, m->sum, disp[i], 0), t.acc[i]), disp[i], 0);
	walk_turns(m, m->w, -turn_w(m));
	walk_inputs(m, -1);
}

static void dot_vectors(const struct wide *m, unsigned columns)
{
	for (unsigned v = 0; v < m->row_vectors; v += m->part_vectors)
		dot_part(m, columns, v);
	walk_columns(m, (int)columns);
}

/* Where the packed unit number `unit` of the matrix lies, and its head. Made again whenever it is asked for: no register waits for that. */
static ir_a packed_unit(const struct wide *m, ir_s unit, ir_a *head)
{
	struct ir *b = m->b;
	const struct weight_format *f = m->packed;
	ir_a at = ir_aadd(b, ir_aload(b, m->results.arg, MATMUL_W * 8), ir_smuli(b, m->block, m->block_bytes * m->matrices));

	if (m->matrices > 1)
		at = ir_aadd(b, at, ir_smuli(b, m->matrix, m->block_bytes));
	*head = at;
	if (f->head_bytes) {
		ir_s heads = ir_sshri(b, unit, (unsigned)__builtin_ctz(f->head_units));
		*head = ir_aadd(b, at, ir_smuli(b, heads, (int64_t)f->head_units * f->unit_bytes + f->head_bytes));
		at = ir_aaddi(b, ir_aadd(b, at, ir_smuli(b, heads, f->head_bytes)), f->head_bytes);
	}
	return ir_aadd(b, at, ir_smuli(b, unit, f->unit_bytes));
}

static unsigned segments_of_span(const struct wide *m) { return (m->span_k + m->segment - 1) / m->segment; }
static ir_s span_number(const struct wide *m)
{
	return segments_of_span(m) > 1 ? ir_sdivi(m->b, m->segment_number, segments_of_span(m)) : m->segment_number;
}

/* Turns of the span before this segment, where segments differ. */
static ir_s turns_before(const struct wide *m)
{
	struct ir *b = m->b;
	return ir_smuli(b, ir_ssub(b, m->segment_number, ir_smuli(b, span_number(m), segments_of_span(m))), m->segment / m->turn_k);
}

/* Number of the segment's first packed unit. */
static ir_s first_unit(const struct wide *m)
{
	struct ir *b = m->b;
	if (even_segments(m))
		return ir_smuli(b, m->segment_number, m->segment / NUMERICS_BLOCK);
	ir_s turns = ir_sadd(b, ir_smuli(b, span_number(m), m->span_k / m->turn_k), turns_before(m));
	return ir_sdivi(b, ir_smuli(b, turns, m->turn_k), NUMERICS_BLOCK);
}

static ir_a tile_at(const struct wide *m, unsigned slot, int64_t column_bytes)
{
	return ir_aadd(m->b, ir_aload(m->b, m->results.arg, (int32_t)(slot * 8)), ir_smuli(m->b, m->tile, m->columns * column_bytes));
}

/* Puts the addresses of weights and inputs to the segment's beginning, and unpacks it. While that goes on no register holds them. */
static void unpack_segment(struct wide *m)
{
	struct ir *b = m->b;
	ir_s units = even_segments(m) ? ir_sconst(b, m->segment / NUMERICS_BLOCK) : ir_sdivi(b, ir_smuli(b, m->turns, m->turn_k), NUMERICS_BLOCK);
	ir_s unit = ir_var_s(b, first_unit(m));
	ir_a to = ir_var_a(b, m->scratch), head;

	ir_loop(b, units);
	ir_a at = packed_unit(m, unit, &head);
	struct weight_stream w = { .at = { at, at, at }, .head = head };
	for (unsigned v = 0; v < m->row_vectors; v++)
		weight_unpack(&m->unpacked, b, &w, v, to);
	walk(m, to, m->unpacked.unit_bytes);
	ir_set_s(b, unit, ir_saddi(b, unit, 1));
	ir_endloop(b);
	m->ahead = ir_var_a(b, packed_unit(m, unit, &head));
	m->w = ir_var_a(b, m->scratch);
	ir_s before = first_unit(m);
	m->x = ir_var_a(b, ir_aadd(b, tile_at(m, MATMUL_X, (int64_t)m->kp * (m->int8 ? 1 : 4)), ir_smuli(b, before, (int64_t)NUMERICS_BLOCK * m->columns * (m->int8 ? 1 : 4))));
	if (m->int8)
		m->xs = ir_var_a(b, ir_aadd(b, tile_at(m, MATMUL_XS, m->kp / 2), ir_smuli(b, before, m->columns * (int64_t)sizeof(struct activation_block))));
}

/* Bytes in memory that a turn stands for, rounded up. */
static unsigned turn_packed(const struct wide *m)
{
	return (unsigned)((weight_run_bytes(m->packed, 256) * m->turn_k + 255) / 256);
}

static void dot_segment(struct wide *m)
{
	unsigned full = m->columns / m->part_columns, rest = m->columns % m->part_columns;
	unsigned parts = (full + (rest > 0)) * (m->row_vectors / m->part_vectors);

	m->lines = (turn_packed(m) + WIDE_LINE * parts - 1) / (WIDE_LINE * parts);
	if (unpacks(m))
		unpack_segment(m);
	else
		m->ahead = ir_var_a(m->b, ir_aaddi(m->b, m->w, m->segment / m->turn_k * turn_w(m)));
	ir_a sums = m->results.sums;
	if (m->matrices > 1)
		sums = ir_aadd(m->b, sums, ir_smuli(m->b, m->matrix, m->columns * 128));
	m->sum = ir_var_a(m->b, ir_aadd(m->b, sums, ir_smuli(m->b, span_number(m), matmul_span_bytes(&m->results))));
	bool loop = full > 1 || unpacks(m);  /* in a loop of its own, what unpacking keeps in registers is in nobody's way */
	if (loop)
		ir_loop(m->b, ir_sconst(m->b, full));
	dot_vectors(m, m->part_columns);
	if (loop)
		ir_endloop(m->b);
	if (rest)
		dot_vectors(m, rest);
	if (unpacks(m))
		return;
	walk_columns(m, -(int)m->columns);
	walk_turns(m, m->w, turn_w(m));
	walk_inputs(m, 1);
}

/* ---- the outer loops */

static void clear_sums(const struct wide *m)
{
	struct ir *b = m->b;
	ir_a at = ir_var_a(b, m->results.sums);

	ir_loop(b, ir_sconst(b, (int64_t)m->spans * m->matrices * m->columns));
	for (unsigned v = 0; v < m->row_vectors; v++)
		ir_fstore(b, at, ir_fconst(b, 0.0f), (int32_t)(v * b->lanes * 4), 0);
	walk(m, at, 128);
	ir_endloop(b);
}

/* One matrix. One loop runs over the segments of all spans. */
static void dot_spans(struct wide *m)
{
	struct ir *b = m->b;

	m->segment_number = ir_loop(b, ir_sconst(b, m->spans * segments_of_span(m)));
	if (!even_segments(m))
		m->turns = ir_smin(b, ir_ssub(b, ir_sconst(b, m->span_k / m->turn_k), turns_before(m)), ir_sconst(b, m->segment / m->turn_k));
	dot_segment(m);
	ir_endloop(b);
}

static void emit_blocks(struct wide *m)
{
	struct ir *b = m->b;
	ir_s block = ir_var_s(b, ir_begin(b));

	m->block = block;
	ir_loop(b, ir_ssub(b, ir_end(b), block));
	m->tile = ir_loop(b, ir_sload64(b, m->results.arg, MATMUL_TILES * 8));
	clear_sums(m);
	if (!unpacks(m))
		m->w = ir_var_a(b, ir_aadd(b, ir_aload(b, m->results.arg, MATMUL_W * 8), ir_smuli(b, block, m->block_bytes * m->matrices)));
	if (m->matrices > 1)
		m->matrix = ir_loop(b, ir_sconst(b, m->matrices));
	if (!unpacks(m))
		m->x = ir_var_a(b, tile_at(m, MATMUL_X, (int64_t)m->kp * (m->int8 ? 1 : 4)));
	if (!unpacks(m) && m->int8)
		m->xs = ir_var_a(b, tile_at(m, MATMUL_XS, m->kp / 2));
	dot_spans(m);
	if (m->matrices > 1)
		ir_endloop(b);
	matmul_finish(&m->results, block, m->tile);
	ir_endloop(b);
	ir_set_s(b, block, ir_saddi(b, block, 1));
	ir_endloop(b);
}

/* ---- keys */

/* Weights that are not read as they lie: all formats that say bytes and scales, but Q8_0, which is as good as unpacked. */
static bool unpacks_format(const struct weight_format *f, bool int8)
{
	return int8 ? !f->dot_int8 : !f->load;
}

bool template_wide_weights(const struct target *target, enum dtype weight)
{
	return weight_format_find(weight) && !target->lane_bytes;
}

/* Unpacking pays where narrow tiles would have to unpack twice; turning the inputs pays sooner. */
unsigned template_wide_from(const struct target *target, enum dtype weight, enum dtype activation)
{
	if (!template_wide_weights(target, weight))
		return 0;
	return unpacks_format(weight_format_find(weight), activation == DTYPE_Q8_0) ? template_columns(target) + 1 : 3;
}

/* int8 takes several parts, so that weights come from the second-level cache once for all of them, and twice as many when they are unpacked for that;
 * floats need less of them: a part or two. */
unsigned template_wide_columns(const struct target *target, enum dtype weight, enum dtype activation)
{
	if (activation == DTYPE_Q8_0)
		return unpacks_format(weight_format_find(weight), true) ? 48 : 24;
	return target->vector_regs < 32 ? 10 : 12;
}

bool template_wide_unsigned(const struct target *target, enum dtype weight, enum dtype activation)
{
	return target->has_vnni && activation == DTYPE_Q8_0 && unpacks_format(weight_format_find(weight), true);
}

bool matmul_wide_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	struct wide m = { .b = b, .has_vnni = target->has_vnni, .row_vectors = math_parts(b), .columns = key->columns };

	m.packed = key->weight ? weight_format_find((enum dtype)(key->weight - 1)) : NULL;
	m.int8 = key->activation == DTYPE_Q8_0 + 1;
	m.kp = (uint32_t)numerics_pad(key->k);
	if (m.packed)
		m.block_bytes = (int64_t)weight_run_bytes(m.packed, m.kp);
	const char *why = target->lane_bytes ? "this target has no wide tiles" : matmul_refuse(key, m.packed, m.block_bytes, TEMPLATE_MAX_WIDE, 1);
	if (why)
		return build_refuse(key, err, why);

	m.format = m.packed;
	if (unpacks_format(m.packed, m.int8)) {
		weight_unpacked_init(&m.unpacked, m.packed, m.int8, target);
		m.format = &m.unpacked.format;
	}
	m.spans = numerics_spans(key->k);
	m.span_k = m.kp / m.spans;
	m.turn_k = m.format->unit_k > 8 ? m.format->unit_k : 8;
	m.segment = segment_k(&m);
	m.matrices = key->flags & KEY_SILU_MUL ? 2 : 1;
	shape_part(&m, target->vector_regs);
	m.results = (struct matmul_results){ .b = b, .key = key, .arg = ir_arg(b), .spans = m.spans, .matrices = m.matrices, .columns = m.columns };
	m.results.sums = ir_local(b, m.spans * matmul_span_bytes(&m.results));
	if (unpacks(&m))
		m.scratch = ir_local(b, (int64_t)m.segment / NUMERICS_BLOCK * m.unpacked.unit_bytes);
	emit_blocks(&m);
	return true;
}
