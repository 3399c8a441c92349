/* kernels-templates/formats/weight_vectors_pack.c - the layout of lane-contiguous weights (weight_vectors.h), and
 * packing into it. */
#include <assert.h>

#include "kernels-templates/formats/weight_vectors_period.h"

uint64_t weight_vectors_offset(uint32_t bytes, uint32_t at, unsigned lane)
{
	uint32_t whole = bytes / VECTOR * VECTOR, base = whole * LANES;

	if (at < whole)
		return (uint64_t)at / VECTOR * VECTOR * LANES + lane * VECTOR + at % VECTOR;
	at -= whole;
	for (uint32_t size = VECTOR / 2; size; size /= 2)
		if (bytes & size) {
			if (at < size)
				return base + lane * size + at;
			at -= size;
			base += size * LANES;
		}
	assert(false && "a byte of the stream");
	return 0;
}

uint32_t weight_vectors_array_bytes(const struct weight_array *a) { return (uint32_t)a->lane * a->count; }

unsigned weight_vectors_first_array(const struct weight_format *f) { return f->six ? 1 : 0; }

uint64_t weight_vectors_bytes(const struct weight_format *f, uint64_t k)
{
	uint64_t units = k / VECTORS_UNIT_K, heads = f->head_bytes ? units / f->head_units : 0;
	return units * weight_vectors_unit(f) + heads * weight_vectors_head(f) * LANES;
}

uint32_t weight_vectors_stream(const struct weight_format *f, unsigned number, unsigned units)
{
	uint32_t at = 0;
	for (unsigned i = number + 1; i < WEIGHT_MAX_ARRAYS; i++)
		at += units * weight_vectors_array_bytes(&f->array[i]);
	return at;
}

/* ---- packing */

static void put_vector(uint8_t *period, uint32_t bytes, uint32_t at, const uint8_t *from, unsigned lane_bytes)
{
	/* Offsets of lanes are evenly apart. */
	uint8_t *to = period + weight_vectors_offset(bytes, at, 0);
	uint64_t step = weight_vectors_offset(bytes, at, 1) - weight_vectors_offset(bytes, at, 0);

	for (unsigned lane = 0; lane < LANES; lane++, to += step, from += lane_bytes)
		if (lane_bytes == 4)
			memcpy(to, from, 4);
		else if (lane_bytes == 2)
			memcpy(to, from, 2);
		else
			*to = *from;
}

/* One unit, packed for CPUs, to its offset in the row block. */
static void put_unit(const struct weight_format *f, uint8_t *dst, const uint8_t *from, uint64_t span_units,
                     uint64_t unit)
{
	uint64_t in_span = unit % span_units, first = in_span / VECTORS_PERIOD_UNITS * VECTORS_PERIOD_UNITS;
	unsigned n = (unsigned)(span_units - first < VECTORS_PERIOD_UNITS ? span_units - first : VECTORS_PERIOD_UNITS);
	uint8_t *period = dst + (unit - in_span + first) * weight_vectors_unit(f);
	uint32_t bytes = n * weight_vectors_lane(f);

	for (unsigned i = weight_vectors_first_array(f); i < WEIGHT_MAX_ARRAYS; i++) {
		const struct weight_array *a = &f->array[i];
		uint32_t at =
			weight_vectors_stream(f, i, n) + (uint32_t)(in_span - first) * weight_vectors_array_bytes(a);
		for (unsigned v = 0; v < a->count; v++)
			put_vector(period, bytes, at + v * a->lane, from + a->disp + v * a->lane * LANES, a->lane);
	}
}

static uint32_t packed_unit(const struct weight_format *f) { return VECTORS_UNIT_K / f->unit_k * f->unit_bytes; }

/* The head's numbers of six bits of one lane; units: where the head's units lie. */
static void put_six(const struct weight_format *f, uint8_t *to, const uint8_t *units, unsigned lane)
{
	uint8_t n[2][8];

	for (unsigned u = 0; u < 8; u++)
		for (unsigned i = 0; i < 2; i++)
			n[i][u] = (uint8_t)((units[u * packed_unit(f) + i * LANES + lane] + f->six_bias) & 63);
	for (unsigned u = 0; u < 4; u++) {
		to[u] = (uint8_t)((n[0][u] & 15) | n[0][u + 4] << 4);
		to[4 + u] = (uint8_t)((n[1][u] & 15) | n[1][u + 4] << 4);
		to[8 + u] = (uint8_t)(n[0][u] >> 4 | n[0][u + 4] >> 4 << 2 | n[1][u] >> 4 << 4 | n[1][u + 4] >> 4 << 6);
	}
}

/* A head and its units, packed for CPUs, to the head's offset. */
static void put_head(const struct weight_format *f, uint8_t *to, const uint8_t *from)
{
	unsigned halves = f->head_bytes / LANES / 2, bytes = weight_vectors_head(f);

	memset(to, 0, (size_t)bytes * LANES);
	for (unsigned lane = 0; lane < LANES; lane++) {
		for (unsigned i = 0; i < halves; i++)
			memcpy(to + lane * bytes + i * 2, from + (i * LANES + lane) * 2, 2);
		if (f->six)
			put_six(f, to + lane * bytes + 4, from + f->head_bytes, lane);
	}
}

/* A stretch at a time is packed for CPUs on the stack, then laid where it belongs. */
void weight_vectors_pack(const struct weight_format *f, void *dst, const void *const row[32], uint64_t k)
{
	enum { STRETCH = NUMERICS_SEGMENT };
	uint8_t copies[LANES * WEIGHT_PART_BYTES];
	uint64_t units = numerics_pad(k) / VECTORS_UNIT_K, span_units = units / numerics_spans(k);
	uint8_t *heads = (uint8_t *)dst + units * weight_vectors_unit(f);
	_Alignas(64) uint8_t packed[STRETCH * LANES * 4];

	for (uint64_t at = 0; at < k; at += STRETCH) {
		const void *part[LANES];
		uint64_t n = k - at < STRETCH ? k - at : STRETCH;
		weight_part(f, row, at, n, copies, part);
		f->pack(packed, part, n);
		if (f->head_bytes)
			put_head(f, heads + at / STRETCH * weight_vectors_head(f) * LANES, packed);
		for (uint64_t u = 0; u < numerics_pad(n) / VECTORS_UNIT_K; u++)
			put_unit(f, dst, packed + f->head_bytes + u * packed_unit(f), span_units,
			         at / VECTORS_UNIT_K + u);
	}
}
