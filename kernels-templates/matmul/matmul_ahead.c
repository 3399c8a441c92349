/* kernels-templates/matmul/matmul_ahead.c - weights that a wave has copied to local bytes before it needs them.
 *
 * Owns: which chunk is asked for when. All jobs of a wave are known from the start, so its chunks have numbers. The
 * first is asked for in front of all else, since that needs no input; then, when one is in registers, the next. One is
 * enough to keep memory busy: with more of them on their way, what others of the launch give takes longer to come.
 */
#include "kernels-templates/formats/weight_vectors.h"
#include "kernels-templates/matmul/matmul.h"

/* Heads that a chunk which is a span touches at most, wherever it begins. */
static unsigned heads_of_span(const struct matmul_ahead *a)
{
	const unsigned units = a->format->head_units;
	unsigned max = 0;

	for (unsigned s = 0; s < a->g->recipe->spans; s++) {
		unsigned from = s * a->span_units, n = (from + a->span_units - 1) / units - from / units + 1;
		max = n > max ? n : max;
	}
	return max;
}

static uint32_t heads_bytes(const struct matmul_ahead *a)
{
	const struct weight_format *f = a->format;

	if (!f->head_bytes || (a->chunk_units < a->span_units && a->chunk_units % f->head_units))
		return 0; /* those of parts of a period are loaded with the period */
	unsigned n = a->chunk_units % f->head_units == 0 ? a->chunk_units / f->head_units : heads_of_span(a),
		 all = a->span_units * a->g->recipe->spans / f->head_units;
	/* the last span's may not be all there */
	return (a->span_units * (a->g->recipe->spans - 1)) / f->head_units + n <= all
	               ? n * weight_vectors_head(f) * 32
	               : 0;
}

/* Jobs that this wave has: in each iteration of the group it does every g->waves-th. */
static ir_s jobs_of(const struct matmul_ahead *a, ir_s blocks)
{
	const struct matmul_group *g = a->g;
	struct ir *b = a->b;
	unsigned shift = (unsigned)__builtin_ctz(g->waves);

	if (g->recipe->together == 1)
		return ir_smuli(b, blocks, g->jobs / g->waves ? g->jobs / g->waves : 1);
	ir_s whole = ir_sshri(b, blocks, __builtin_ctz(g->recipe->together)),
	     rest = ir_ssub(b, blocks, ir_sshli(b, whole, __builtin_ctz(g->recipe->together))),
	     more = ir_ssub(b, ir_saddi(b, ir_smuli(b, rest, g->jobs), g->waves - 1), g->wave);
	return ir_sadd(b, whole, ir_sshri(b, more, shift));
}

/* The job of chunk `number`; *within: which of its span's it is. */
static struct matmul_job job_of_chunk(const struct matmul_ahead *a, ir_s number, ir_s *within)
{
	const struct matmul_group *g = a->g;
	struct ir *b = a->b;
	const unsigned chunks = a->span_units / a->chunk_units, each = g->jobs > g->waves ? g->jobs / g->waves : 1;
	ir_s job = number, mine = g->wave;

	*within = ir_sconst(b, 0);
	if (chunks > 1) {
		job = ir_sdivi(b, number, chunks);
		*within = ir_ssub(b, number, ir_smuli(b, job, chunks));
	}
	ir_s iteration = each > 1 ? ir_sdivi(b, job, each) : job;
	if (each > 1)
		mine = ir_sadd(b, mine, ir_smuli(b, ir_ssub(b, job, ir_smuli(b, iteration, each)), g->waves));
	ir_s base = ir_sadd(b, a->first, ir_smuli(b, iteration, g->recipe->together));
	return matmul_group_job(g, base, ir_sconst(b, 0), mine);
}

static void ask(struct matmul_ahead *a)
{
	struct ir *b = a->b;
	const struct weight_format *f = a->format;
	const int64_t span = (int64_t)a->span_units * weight_vectors_unit(f);
	ir_s within;
	struct matmul_job j = job_of_chunk(a, a->requested, &within);
	ir_a row = ir_aadd(b, matmul_group_arg(a->g, MATMUL_W), ir_smuli(b, j.number, a->block_bytes)),
	     from = ir_aadd(b, row, ir_smuli(b, j.span, span));

	ir_copy(b, a->at, ir_aadd(b, from, ir_smuli(b, within, a->chunk)), a->chunk);
	if (a->heads) {
		ir_s unit = ir_sadd(b, ir_smuli(b, j.span, a->span_units), ir_smuli(b, within, a->chunk_units)),
		     head = ir_sshri(b, unit, __builtin_ctz(f->head_units));
		ir_a heads = ir_aadd(b, ir_aaddi(b, row, span * a->g->recipe->spans),
		                     ir_smuli(b, head, weight_vectors_head(f) * 32));
		ir_copy(b, ir_aaddi(b, a->at, a->chunk), heads, a->heads);
	}
	ir_set_s(b, a->requested, ir_saddi(b, a->requested, 1));
}

static void ask_for_one(struct matmul_ahead *a)
{
	matmul_begin_below(a->b, a->requested, a->total);
	ask(a);
	ir_endloop(a->b);
}

void matmul_ahead_open(struct matmul_ahead *a, const struct matmul_group *g, int64_t block_bytes,
                       const struct target *target, struct weight_reader *r)
{
	struct ir *b = g->b;
	const uint32_t beside = b->shared_bytes + target->waves * b->local_bytes,
		       all = beside < target->block_bytes ? ((target->block_bytes - beside) / target->waves) & ~63u : 0;
	const unsigned units = weight_vectors_chunk(r);
	ir_s end;

	a->b = b;
	a->g = g;
	a->block_bytes = block_bytes;
	a->format = r->format;
	a->span_units = r->span_units;
	a->chunk_units = units ? units : a->span_units;
	a->chunk = a->chunk_units * weight_vectors_unit(a->format);
	a->heads = heads_bytes(a);
	a->copies = a->chunk + a->heads <= all;
	if (!a->copies)
		return;
	a->at = ir_local(b, (int64_t)a->chunk + a->heads);
	matmul_group_blocks(a->g, &a->first, &end);
	a->total = ir_smuli(b, jobs_of(a, ir_ssub(b, end, a->first)), a->span_units / a->chunk_units);
	a->requested = ir_var_s(b, ir_sconst(b, 0));
	ask_for_one(a);
}

/* The next chunk is there: the reader's addresses are set to it. Then, when it is in registers: asks for another. */
static void take(void *context, struct weight_reader *r)
{
	struct matmul_ahead *a = context;
	struct ir *b = a->b;

	ir_copied(b, 0);
	for (unsigned i = 0; i < VECTORS_SIZES; i++)
		r->at[i] = a->at;
	if (!a->heads)
		return;
	r->heads = ir_aaddi(b, a->at, a->chunk);
	r->first = a->chunk_units % a->format->head_units ? ir_sandi(b, r->first, a->format->head_units - 1)
	                                                  : ir_sconst(b, 0);
}

static void done(void *context) { ask_for_one(context); }

static bool by_chunks(const struct matmul_ahead *a, struct weight_reader *r)
{
	return a->copies && weight_vectors_chunk(r);
}

void matmul_ahead_set(struct matmul_ahead *a, struct weight_reader *r)
{
	if (by_chunks(a, r)) {
		r->take = take;
		r->done = done;
		r->chunks = a;
		r->chunk_units = a->chunk_units;
	} else if (a->copies) {
		take(a, r);
		for (unsigned i = 0; i < VECTORS_SIZES; i++)
			r->at[i] = i ? r->at[0] : ir_var_a(a->b, r->at[0]);
	}
}

void matmul_ahead_read(struct matmul_ahead *a, struct weight_reader *r, const struct weight_visitor *v)
{
	weight_vectors_read(r, v);
	if (a->copies && !r->take)
		done(a);
}
