/* kernels-templates/attention/attention_prefetch.c - what attention prefetches.
 *
 * Owns: how far ahead, into which cache level, and where a run's memory goes on. Nothing here changes a result:
 * a prefetched address may hold anything, or not be mapped.
 *
 * Keys and values are two streams, read alternately, by a head's chunk. Where each is read once, from the first byte to
 * the last, each is prefetched some strips ahead of itself, as a plain read would be. Where registers do not hold the
 * sums for whole rows of values, a chunk's values are read several times. Memory would have to deliver all of them
 * during the first read. So there, values are prefetched while keys are read, and the next keys while values are.
 */
#include "kernels-templates/attention/attention.h"

enum {
	STRIP_BYTES = 2 << 10,   /* the most of a strip */
	FIRST_AHEAD = 6 << 10,   /* prefetch distance into the first cache level */
	SECOND_AHEAD = 16 << 10, /* the same into the second */
	ROWS_MIN = 4             /* of a strip of values */
};

ir_s prefetch_next(const struct attention *t)
{
	struct ir *b = t->b;
	unsigned bytes = NUMERICS_CHUNK * t->row_bytes;
	if (t->run == 1)
		return attention_page_step(t);
	ir_s last = ir_smax(b, ir_saddi(b, ir_ssub(b, t->at, t->n), 2), ir_sconst(b, 0));
	return ir_saddi(b, ir_smul(b, last, ir_ssub(b, attention_page_step(t), ir_smuli(b, t->n, bytes))), bytes);
}

struct prefetch prefetch_from(const struct attention *t, ir_a at, unsigned times)
{
	return (struct prefetch){ .levels = 1, .times = times, .at = { ir_var_a(t->b, at) } };
}

/* What is `ahead` strips behind the strip at hand, of those that are read: behind a head's last one the next head's
 * begin, behind the run's last head its first one's next chunk. */
static ir_a strip_ahead(const struct attention *t, const struct strip *s, unsigned ahead)
{
	struct ir *b = t->b;
	ir_s past = ir_saddi(b, ir_ssub(b, s->number, s->count), (int64_t)ahead + 1);
	ir_s over = ir_smin(b, ir_smax(b, past, ir_sconst(b, 0)), ir_sconst(b, 1));
	ir_s step = ir_ssub(b, prefetch_next(t), ir_smuli(b, s->count, s->bytes));
	return ir_aaddi(b, ir_aadd(b, s->at, ir_smul(b, over, step)), (int64_t)ahead * s->bytes);
}

static unsigned strips_of(unsigned ahead, unsigned bytes) { return ahead > bytes ? (ahead + bytes / 2) / bytes : 1; }

struct prefetch prefetch_stream(const struct attention *t, const struct strip *s)
{
	struct prefetch a = { .levels = t->second_level ? 2 : 1, .times = 1 };
	const unsigned ahead[2] = { FIRST_AHEAD, SECOND_AHEAD };

	for (unsigned i = 0; i < a.levels; i++)
		a.at[i] = ir_var_a(t->b, strip_ahead(t, s, strips_of(ahead[i], s->bytes)));
	return a;
}

void prefetch_emit(const struct attention *t, const struct prefetch *a, unsigned bytes)
{
	struct ir *b = t->b;

	for (unsigned l = 0; l < a->levels; l++) {
		for (unsigned i = 0; i < a->times * bytes; i += ATTENTION_LINE)
			(l ? ir_prefetch2 : ir_prefetch)(b, a->at[l], (int32_t)i);
		ir_set_a(b, a->at[l], ir_aaddi(b, a->at[l], a->times * bytes));
	}
}

unsigned prefetch_key_strips(const struct attention *t, unsigned unroll)
{
	unsigned n = 1;

	while (32 * t->row_bytes / n > STRIP_BYTES && t->dims % (n * 2 * unroll) == 0)
		n *= 2;
	return n;
}

unsigned prefetch_value_rows(const struct attention *t)
{
	unsigned rows = ROWS_MIN;

	while (rows < NUMERICS_CHUNK && rows * 2 * t->row_bytes <= STRIP_BYTES)
		rows *= 2;
	return rows;
}
