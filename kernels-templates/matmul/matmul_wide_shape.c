/* kernels-templates/matmul/matmul_wide_shape.c - how a wide matmul is cut: tiles, parts, segments, and what is
 * unpacked.
 *
 * Owns: these choices, of a key and of those who build plans (matmul_widths()). Writes no IR.
 */
#include "kernels-templates/matmul/matmul_wide.h"

/* A row block's unpacked weights, to be met again by every tile. */
enum { WIDE_BLOCK_BYTES = 640 << 10 };
/* Wider tiles take Q8_0 as signed bytes, with corrections of their sums that are made for a row block before its first
 * tile: that goes at memory's pace and nothing is multiplied meanwhile, so that it takes more tiles than these to pay.
 */
enum { WIDE_PLAIN_MAX = 16, WIDE_PLAIN_TILES = 4 };

/* Registers beside sums and weights. */
static unsigned beside_int8(const struct wide *m)
{
	if (!m->has_vnni)
		return weight_int8_registers(m->format) - 1;
	const struct weight_quants *q = m->format->quants;
	return q && (q->is_wide || (q->halves && q->minimum)) ? 4 : 2;
}

static bool part_fits(const struct wide *m, unsigned regs, unsigned vectors, unsigned columns)
{
	unsigned n = vectors * columns;
	if (n > (regs < 32 ? 12 : 24) / (m->int8 && !m->tiles ? 2 : 1))
		return false;
	if (m->tiles)
		return n + vectors * (m->format->quants->minimum ? 2 : 1) + (m->format->quants->is_wide ? 6 : 4) <=
		       regs;
	if (m->int8)
		return 2 * n + vectors + beside_int8(m) <= regs;
	return n + vectors * m->format->step + (m->format->step > 1 ? 2 : 1) <= regs;
}

/* Two row vectors share an input, which is one load; beyond that, as many columns as fit. int8 without VNNI makes more
 * of a weight than of an input, so there one vector has all columns. */
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
static unsigned segment_k(const struct wide *m, uint32_t stretch)
{
	if (!m->int8) {
		const unsigned whole = NUMERICS_SEGMENT / NUMERICS_BLOCK * m->block_k;
		return whole < m->span_k ? whole : m->span_k;
	}
	unsigned max = stretch / m->format->unit_bytes * m->format->unit_k;
	for (unsigned n = max - max % m->iteration_k; n > m->iteration_k; n -= m->iteration_k)
		if (m->span_k % n == 0)
			return n;
	return m->iteration_k;
}

/* Weights that are not read as they lie: all formats that say bytes and scales. Of Q8_0, which is as good as unpacked,
 * VNNI would like to have what corrects its sums, and scales as floats. */
static bool copies_format(const struct weight_format *f, bool int8) { return int8 ? !f->dot_int8 : !f->load; }

static bool unpacks_format(const struct weight_format *f, bool int8, const struct target *target, unsigned columns)
{
	return copies_format(f, int8) ||
	       (int8 && columns > WIDE_PLAIN_MAX && target->has_vnni && f->quants && f->quants->as_they_lie);
}

/* Whether few columns are no reason to prepare weights that can be read as they lie: where registers hold parts wide
 * enough to have them changed in each, and nothing faster asks for that. */
static bool spares_unpacking(const struct weight_format *f, const struct target *target, unsigned columns)
{
	return columns <= WIDE_PLAIN_TILES * WIDE_PLAIN_MAX && target->vector_regs >= 32 &&
	       !weight_by_tiles(f, target) && unpacks_format(f, true, target, WIDE_MANY) &&
	       !unpacks_format(f, true, target, WIDE_PLAIN_MAX);
}

/* int8 takes several parts, so that weights come from the second-level cache once for all of them; floats need less of
 * them: a part or two, but few columns share one tile, so that weights are read once. */
static unsigned tile_n(const struct target *target, enum dtype weight, enum dtype activation, unsigned columns)
{
	if (activation == DTYPE_Q8_0)
		return spares_unpacking(weight_format_find(weight), target, columns) ? WIDE_PLAIN_MAX : WIDE_MANY;
	if (columns <= WIDE_MANY)
		return WIDE_MANY;
	return target->vector_regs < 32 ? 10 : 12;
}

/* With 16 registers a part of a narrow tile has up to 4 columns of int8. */
enum { WIDE_UNPACKED_FROM = 5 };

/* Unpacking pays where narrow tiles would have to unpack twice; turning the inputs pays sooner. */
void matmul_wide_widths(const struct key *key, const struct target *target, uint32_t columns, struct matmul_widths *w)
{
	const enum dtype weight = key_dtype(key->weight), activation = key_dtype(key->activation);
	const struct weight_format *f = weight_format_find(weight) ? weight_format_for(weight, activation) : NULL;

	if (!f)
		return;
	const bool int8 = activation == DTYPE_Q8_0;
	w->wide_from = !copies_format(f, int8)            ? 3
	               : int8 && target->vector_regs < 32 ? WIDE_UNPACKED_FROM
	                                                  : w->plain + 1;
	w->wide = tile_n(target, weight, activation, columns);
}

/* What the weights in m->packed are multiplied as, and by how many columns at once. m stays where it is from now on. */
static void shape(struct wide *m, const struct target *target, bool int8, unsigned columns)
{
	m->int8 = int8;
	m->has_vnni = target->has_vnni;
	m->row_vectors = 32 / target->lanes;
	m->columns = columns;
	m->format = m->packed;
	if (unpacks_format(m->packed, int8, target, columns)) {
		weight_unpacked_init(&m->unpacked, m->packed, int8, target);
		m->format = &m->unpacked.format;
		m->tiles = m->unpacked.tiles;
	}
	shape_part(m, target->vector_regs);
}

void wide_shape_key(struct wide *m, const struct key *key, const struct target *target, uint32_t stretch)
{
	const unsigned element_k = weight_element_k(key_dtype(key->activation));

	*m = (struct wide){ .packed = weight_format_for(key_dtype(key->weight), key_dtype(key->activation)),
		            .kp = (uint32_t)(numerics_pad(key->k) / element_k),
		            .block_k = NUMERICS_BLOCK / element_k };
	m->block_bytes = (int64_t)weight_run_bytes(m->packed, m->kp);
	shape(m, target, key->activation == key_type(DTYPE_Q8_0), key->tile_n);
	m->spans = numerics_spans(key->k);
	m->span_k = m->kp / m->spans;
	m->iteration_k = m->format->unit_k > 8 ? m->format->unit_k : 8;
	/* Two products under way at once; what minima take of the registers leaves no time for it. */
	if (m->tiles && !m->format->quants->minimum && m->span_k % (2 * m->iteration_k) == 0)
		m->iteration_k *= 2;
	m->segment = segment_k(m, stretch);
	m->matrices = key->flags & KEY_PAIR ? 2 : 1;
	/* A launch of few columns has one tile, which meets the weights once. Unpacked segment by segment, they stay in
	 * the first-level cache, and memory is read while they are multiplied. */
	m->whole = wide_unpacks(m) && m->int8 && wide_block_unpacked(m) <= WIDE_BLOCK_BYTES && m->columns >= WIDE_MANY;
}

struct matmul_wide_shape matmul_wide_shape(const struct key *key, const struct target *target, uint32_t stretch)
{
	struct wide m;

	wide_shape_key(&m, key, target, stretch);
	return (struct matmul_wide_shape){ m.part_columns, m.segment, m.whole };
}

void matmul_wide_inputs(const struct key *key, const struct target *target, unsigned *panel, bool *offset)
{
	const enum dtype weight = key_dtype(key->weight), activation = key_dtype(key->activation);
	const struct weight_format *f = weight_format_find(weight);
	struct wide m = { .packed = weight_format_for(weight, activation) };

	shape(&m, target, activation == DTYPE_Q8_0, key->tile_n);
	*panel = m.part_columns;
	*offset = target->has_vnni && m.int8 && unpacks_format(f, true, target, key->tile_n) &&
	          !weight_by_tiles(f, target);
}
