/* kernels-templates/attention/wave_ahead.c - keys and values that a wave has copied to its local bytes before its
 * queries are there.
 *
 * Owns: those copies, by octets: of a chunk the keys of a wave's block of positions, and its vectors of values. All of
 * the cache but the launch's columns is there when the launch begins. Their keys and values are left in shared bytes,
 * from where every wave puts keys into its copies, and reads values. A unit that has all columns puts those of its
 * chunks into the cache when nobody copies any more. Where columns are apart, other units copy the same chunks, too, so
 * another op stores them, behind a barrier.
 */
#include "kernels-templates/attention/attention_wave.h"

enum { OCTETS_OF_CHUNK = CHUNK / OCTET };


/* Of keys that wait, and of values. */
static uint32_t news_bytes(const struct spread *t) { return (t->all * t->row_bytes + 63) / 64 * 64; }

bool attention_ahead_plan(const struct attention_ahead *a, const struct target *target, uint32_t shared)
{
	const struct spread *t = a->t;
	const uint32_t keys = LANES * t->row_bytes, values = a->vectors * OCTETS_OF_CHUNK * LANES_BYTES,
		       all = shared + 2 * news_bytes(t) + t->waves * (keys + values);

	return t->rotates && t->octets && t->tiles == 1 && t->dims % LANES == 0 && all <= target->block_bytes;
}

void attention_ahead_begin(struct attention_ahead *a)
{
	struct ir *b = a->t->b;

	a->key = ir_shared(b, news_bytes(a->t));
	a->value = ir_shared(b, news_bytes(a->t));
	a->keys = ir_local(b, LANES * a->t->row_bytes);
	a->values = ir_local(b, a->vectors * OCTETS_OF_CHUNK * LANES_BYTES);
}

ir_a attention_ahead_vector(const struct attention_ahead *a, ir_s number)
{
	struct ir *b = a->t->b;

	return a->vectors == 1 ? a->values : ir_aadd(b, a->values, ir_smuli(b, number, OCTETS_OF_CHUNK * LANES_BYTES));
}

void attention_ahead_ask_keys(const struct attention_ahead *a, ir_a from)
{
	ir_copy(a->t->b, a->keys, from, LANES * a->t->row_bytes);
}

void attention_ahead_ask_vector(const struct attention_ahead *a, ir_s number, ir_a from)
{
	struct ir *b = a->t->b;
	ir_a to = attention_ahead_vector(a, number);

	for (unsigned i = 0; i < OCTETS_OF_CHUNK; i++)
		ir_copy(b, ir_aaddi(b, to, i * LANES_BYTES), ir_aaddi(b, from, (int64_t)i * OCTET * a->t->row_bytes),
		        LANES_BYTES);
}

/* ---- the launch's columns */

static ir_a news_at(const struct attention_ahead *a, ir_a news, ir_s column)
{
	struct ir *b = a->t->b;

	return a->t->all == 1 ? news : ir_aadd(b, news, ir_smuli(b, column, a->t->row_bytes));
}

ir_s attention_ahead_each(const struct attention_ahead *a, ir_s from, unsigned n)
{
	struct ir *b = a->t->b;
	ir_s begin = ir_ssub(b, from, a->pos0), first = ir_smax(b, begin, a->first),
	     end = ir_smin(b, ir_saddi(b, begin, n), ir_sadd(b, a->first, a->count));

	return ir_sadd(b, first, ir_loop(b, ir_smax(b, ir_ssub(b, end, first), ir_sconst(b, 0))));
}

static void key_sink(struct ir *b, void *context, ir_f v, unsigned i, unsigned n)
{
	const ir_a *to = context;

	ir_fstore_h(b, *to, v, (int32_t)(i * 2), n < LANES ? n : 0);
}

void attention_ahead_leave_key(const struct attention_ahead *a, ir_s column, const struct heads_rotation *r)
{
	ir_a to = news_at(a, a->key, column);

	heads_rotate(a->t->b, r, key_sink, &to);
}

void attention_ahead_leave_value(const struct attention_ahead *a, ir_s column, ir_a from, ir_f eps)
{
	struct ir *b = a->t->b;
	ir_a to = news_at(a, a->value, column);
	const uint32_t flags = a->t->kv.key->flags;
	ir_f scale = { 0 }, v[HEADS_MAX_DIM / LANES];

	if (flags & KEY_VALUE_NORM)
		scale = heads_scale_of(b, flags & KEY_AWAITED, from, a->t->dims, eps);
	for (unsigned i = 0; i < a->t->dims / LANES; i++)
		v[i] = flags & KEY_AWAITED ? ir_fawait(b, from, (int32_t)(i * LANES * 4), 0)
		                           : ir_fload(b, from, (int32_t)(i * LANES * 4), 0);
	for (unsigned i = 0; i < a->t->dims / LANES; i++)
		ir_fstore_h(b, to, flags & KEY_VALUE_NORM ? ir_fmul(b, v[i], scale) : v[i], (int32_t)(i * LANES * 2),
		            0);
}

void attention_ahead_put_key(const struct attention_ahead *a, ir_s column, ir_a block)
{
	struct ir *b = a->t->b;
	ir_s position = ir_sadd(b, a->pos0, column);
	ir_a key = news_at(a, a->key, column),
	     to = ir_aadd(b, block, ir_smuli(b, ir_sandi(b, position, LANES - 1), OCTET_BYTES));
	unsigned n = a->t->dims / OCTET; /* a lane has a octet */
	ir_i octet = ir_imin(b, ir_ilane(b), ir_iconst(b, (int32_t)n - 1)), from = ir_ishl(b, octet, 4), word[4];

	for (unsigned i = 0; i < 4; i++)
		word[i] = ir_igather(b, key, from, (int32_t)(i * 4));
	for (unsigned i = 0; i < 4; i++)
		ir_fstore_s(b, to, ir_fbits(b, word[i]), (int32_t)(i * 4), n, LANES_BYTES);
}

ir_a attention_ahead_value(const struct attention_ahead *a, ir_s column, ir_s vector)
{
	return ir_aadd(a->t->b, news_at(a, a->value, column), ir_sshli(a->t->b, vector, 6));
}

void attention_ahead_put_value(const struct attention_ahead *a, ir_s column, ir_a vector, ir_s number)
{
	struct ir *b = a->t->b;
	ir_s position = ir_sadd(b, a->pos0, column);
	ir_s in_chunk = ir_sandi(b, position, CHUNK - 1), in_octet = ir_sandi(b, position, OCTET - 1);
	ir_a octet = ir_aadd(b, vector, ir_smuli(b, ir_ssub(b, in_chunk, in_octet), a->t->row_bytes)),
	     to = ir_aadd(b, octet, ir_sshli(b, in_octet, 1));

	ir_fstore_hs(b, to, ir_fload_h(b, attention_ahead_value(a, column, number), 0), 0, 0, OCTET_BYTES);
}
