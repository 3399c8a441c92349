/* runtime/model/adapter_pack.c - the numbers of an update as kernels read them (adapter_update.h).
 *
 * They are kept in 16 bits where all of an update's are the same numbers then; so no bit of a result depends on it.
 */
#include <string.h>

#include "base/floats.h"
#include "base/number.h"
#include "runtime/model/adapter_update.h"

static bool is_bf16(float x) { return number_bits(number_from_bf16(number_to_bf16(x))) == number_bits(x); }
static bool is_f16(float x) { return number_bits(number_from_half(number_to_half(x))) == number_bits(x); }

static bool all(const float *x, uint64_t n, bool (*is)(float))
{
	for (uint64_t i = 0; i < n; i++)
		if (!is(x[i]))
			return false;
	return true;
}

enum adapt_type update_narrowest(const struct update *p)
{
	const uint64_t each = update_experts(p), n = each * update_down(p) * p->part->cols,
		       m = update_embeds(p) ? 0 : each * p->part->rank * p->part->rows;

	if (all(p->a, n, is_bf16) && all(p->b, m, is_bf16))
		return ADAPT_BF16;
	return all(p->a, n, is_f16) && all(p->b, m, is_f16) ? ADAPT_F16 : ADAPT_F32;
}

size_t update_element(enum adapt_type type) { return type == ADAPT_F32 ? 4 : 2; }

static void put(uint8_t *to, enum adapt_type type, uint64_t i, float x)
{
	static const enum dtype as[] = { [ADAPT_F32] = DTYPE_F32, [ADAPT_F16] = DTYPE_F16, [ADAPT_BF16] = DTYPE_BF16 };

	floats_write(to + i * update_element(type), as[type], &x, 1);
}

/* [rank][kp(cols)] and [row block][rank][32], pads +0. */
static void put_up(uint8_t *to, const struct update *p, uint64_t row, uint32_t j, float x)
{
	put(to + p->at_b, p->type, (row / 32 * p->rank + j) * 32 + row % 32, x);
}

/* Of an embedding the second matrix alone. */
static void pack_embedding(uint8_t *to, const struct update *p)
{
	for (uint32_t j = 0; j < p->part->rank; j++)
		for (uint64_t i = 0; i < p->part->cols; i++)
			put_up(to, p, i, j, p->a[j * p->part->cols + i]);
}

void update_pack(uint8_t *to, const struct update *p)
{
	if (update_embeds(p)) {
		pack_embedding(to, p);
		return;
	}
	const struct adapter_part *part = p->part;
	const uint64_t kp = numerics_pad(part->cols);

	for (uint64_t e = 0; e < update_experts(p); e++) {
		for (uint64_t j = 0; j < update_down(p); j++)
			for (uint64_t i = 0; i < part->cols; i++)
				put(to + p->at_a, p->type, (e * p->rank + j) * kp + i,
				    p->a[(e * update_down(p) + j) * part->cols + i]);
		for (uint64_t r = 0; part->rank && r < part->rows; r++)
			for (uint32_t j = 0; j < part->rank; j++)
				put_up(to, p, e * numerics_pad(part->rows) + r, j,
				       p->b[(e * part->rows + r) * part->rank + j]);
	}
	uint8_t *const extras = to + p->at_b + p->rank * numerics_pad(part->rows) * update_element(p->type);
	for (uint64_t r = 0; p->extra && r < numerics_pad(part->rows); r++)
		for (unsigned e = 0; e < ADAPT_EXTRAS; e++)
			put(extras, ADAPT_F32, (r / 32 * ADAPT_EXTRAS + e) * 32 + r % 32,
			    p->extra[e * numerics_pad(part->rows) + r]);
}
