/* kernels-templates/attention/attention_tile.c - tiles of sums that share what they load: heads by vectors of the
 * cache. */
#include <assert.h>

#include "kernels-templates/attention/attention_parts.h"

unsigned attention_tile_regs(const struct attention *t, unsigned h, unsigned v)
{
	return h * v + (h < v ? h : v) + 1 + (t->int8 ? v + 1 : 0);
}

unsigned attention_tile_vectors(const struct attention *t, unsigned h)
{
	unsigned v = h <= 2 ? ENOUGH_SUMS / h : 1;
	while (h > 2 && v < 4 && attention_tile_regs(t, h, v + 1) <= t->regs)
		v++;
	while (attention_tile_regs(t, h, v) > t->regs)
		v--;
	return v;
}

void attention_each_tile(const struct attention *t, unsigned n, unsigned max, bool own, tile_fn emit,
                         const void *context)
{
	struct ir *b = t->b;
	unsigned tiles = (n + max - 1) / max, larger = n % tiles;
	unsigned count[2] = { larger, tiles - larger };
	struct tile_range p = { .first = 0 };

	for (unsigned i = 0; own && i < tiles; i++, p.first += p.size) {
		p.size = n / tiles + (i < larger);
		emit(t, &p, context);
	}
	for (unsigned i = 0; !own && i < 2; i++) {
		p.size = n / tiles + (i == 0);
		p.many = count[i] > 1;
		if (p.many)
			p.index = ir_loop(b, ir_sconst(b, count[i]));
		if (count[i])
			emit(t, &p, context);
		if (p.many)
			ir_endloop(b);
		p.first += count[i] * p.size;
	}
}

ir_a attention_at(const struct attention *t, ir_a base, const struct tile_range *p, unsigned step)
{
	if (p->many)
		base = ir_aadd(t->b, base, ir_smuli(t->b, p->index, (int64_t)p->size * step));
	return p->first ? ir_aaddi(t->b, base, (int64_t)p->first * step) : base;
}

/* Dimension `byte` of four, a word in every lane. */
static ir_f load_key_int8(const struct attention *t, const struct tile *s, ir_a p, int32_t disp, unsigned v,
                          unsigned byte)
{
	struct ir *b = t->b;
	ir_i word = ir_iload(b, p, disp);
	ir_i key = ir_isar(b, byte < 3 ? ir_ishl(b, word, 24 - 8 * byte) : word, 24);
	return ir_fmul(b, s->scale[v], ir_i2f(b, key));
}

/* Vector v, disp behind p. Number n of a step: which of the dimensions that share words. */
static ir_f load_cache(const struct attention *t, struct tile *s, ir_a p, int32_t disp, unsigned v, unsigned n)
{
	struct ir *b = t->b;
	int32_t at = disp + (int32_t)s->at[v], scale_at = disp + (int32_t)s->scale_at[v];

	if (!t->int8)
		return t->element == 2 ? ir_fload_h(b, p, at) : ir_fload(b, p, at, 0);
	if (s->keys)
		return load_key_int8(t, s, p, at, v, n);
	if (v == 0 || s->scale_at[v] != s->scale_at[v - 1])
		s->scale[0] = ir_fbcast(b, p, scale_at);
	return ir_fmul(b, s->scale[0], ir_i2f(b, ir_iload_s8(b, p, at)));
}

void attention_tile_clear(const struct attention *t, struct tile *s)
{
	assert(s->heads * s->n <= MAX_SUMS && s->n <= 8);
	for (unsigned i = 0; i < s->heads * s->n; i++)
		s->sum[i] = ir_var_f(t->b, ir_fconst(t->b, 0.0f));
}

void attention_tile_step(const struct attention *t, struct tile *s, ir_a vectors, unsigned bytes, ir_a scalars,
                         int32_t disp, unsigned number)
{
	struct ir *b = t->b;
	ir_f held[8];
	bool hold_heads = s->heads < s->n;

	for (unsigned i = 0; i < (hold_heads ? s->heads : s->n); i++)
		held[i] = hold_heads ? ir_fbcast(b, scalars, disp + (int32_t)(i * s->head_bytes))
		                     : load_cache(t, s, vectors, (int32_t)bytes, i, number);
	for (unsigned i = 0; i < (hold_heads ? s->n : s->heads); i++) {
		ir_f one = hold_heads ? load_cache(t, s, vectors, (int32_t)bytes, i, number)
		                      : ir_fbcast(b, scalars, disp + (int32_t)(i * s->head_bytes));
		for (unsigned j = 0; j < (hold_heads ? s->heads : s->n); j++) {
			ir_f *sum = &s->sum[hold_heads ? j * s->n + i : i * s->n + j];
			ir_set_f(b, *sum, ir_ffma(b, hold_heads ? one : held[j], hold_heads ? held[j] : one, *sum));
		}
	}
}
