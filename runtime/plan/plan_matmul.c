/* runtime/plan/plan_matmul.c - rules of matrix products: an op for each sort of tiles, behind those that prepare its
 * inputs.
 *
 * Owns: what the buffers of interleaved inputs hold (plan_builder.interleaved), so that matrices with one input share
 * it.
 */
#include <assert.h>
#include <string.h>

#include "runtime/plan/order.h"
#include "runtime/plan/lower.h"

static struct plan_interleave interleave_of(const struct plan_builder *b, const struct matmul *m, enum dtype act,
                                            struct plan_tiles t)
{
	uint64_t kp = numerics_pad(m->w->k);
	struct plan_interleave interleave = { .key = plan_key(b, KEY_INTERLEAVE),
		                              .units = (int64_t)(t.tiles * (kp / 32)) };

	interleave.key.k = (uint32_t)m->w->k;
	interleave.key.activation = key_type(act);
	interleave.key.tile_n = t.width;
	interleave.key.row_blocks = 1;
	if (t.flags == KEY_WIDE) {
		const struct key key = plan_matmul_key(b->opt, m->w, KEY_WIDE, t.width);
		const struct matmul_recipe r = matmul_recipe(&key, b->opt->target);
		interleave.key.row_blocks = (uint8_t)r.panel;
		interleave.key.flags = r.offset ? KEY_UNSIGNED : 0;
	}
	if (act == DTYPE_Q8_0) {
		interleave.arg[INTERLEAVE_X] = plan_address(m->in.q + t.first * kp);
		interleave.arg[INTERLEAVE_XS] = plan_address(m->in.s + t.first * (kp / 32));
		interleave.arg[INTERLEAVE_OUT] = plan_address(m->in.interleaved_q + t.first * kp);
		interleave.arg[INTERLEAVE_OUTS] = plan_address(m->in.interleaved_s + t.first * (kp / 32));
	} else if (act == DTYPE_BF16) {
		interleave.key.numerics = NUMERICS_BOUNDED;
		interleave.arg[INTERLEAVE_X] = plan_address(m->in.x + t.first * kp);
		interleave.arg[INTERLEAVE_OUT] = plan_address(m->in.interleaved) + t.first * kp * 2;
	} else {
		interleave.arg[INTERLEAVE_X] = plan_address(m->in.x + t.first * kp);
		interleave.arg[INTERLEAVE_OUT] = plan_address(m->in.interleaved + t.first * kp);
	}
	return interleave;
}

/* act: what in holds. F16 and BF16 lie where f32 else does, in half the bytes. */
static void matmul_launch(struct plan_builder *b, const struct matmul *m, const struct activations *in, enum dtype act,
                          struct plan_tiles t)
{
	struct key key = plan_key(b, KEY_MATMUL);
	uint64_t kp = numerics_pad(m->w->k), rp = numerics_pad(m->w->rows);

	key.weight = key_type(m->w->type);
	key.activation = key_type(act);
	key.rows = (uint32_t)m->w->rows;
	key.k = (uint32_t)m->w->k;
	key.tile_n = t.width;
	key.schedule = t.schedule;
	key.row_blocks = 1;
	key.numerics = act == DTYPE_F16 || act == DTYPE_BF16 ? NUMERICS_BOUNDED : NUMERICS_EXACT;
	key.act = (uint8_t)m->act;
	key.flags = t.flags | m->flags | (m->awaited ? KEY_AWAITED : 0) | (m->bias ? KEY_BIAS : 0) |
	            (m->bias2 ? KEY_BIAS2 : 0) | (in->norm ? KEY_NORM_IN | (b->spec->centred ? KEY_CENTRED : 0) : 0);
	uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(rp / 32));
	plan_last_op(b)->unit_cost = plan_tiles_columns(&t);
	a[MATMUL_W] = plan_address(m->w->packed);
	if (in->norm) {
		a[MATMUL_X] = plan_address(in->x + t.first * kp);
		a[MATMUL_NORM] = plan_address(in->norm);
		a[MATMUL_EPS] = plan_f32_slot(b->spec->norm_eps);
	} else if (act == DTYPE_Q8_0) {
		a[MATMUL_X] = plan_address(in->q + t.first * kp);
		a[MATMUL_XS] = plan_address(in->s + t.first * (kp / 32));
	} else {
		a[MATMUL_X] = plan_address(in->x) + t.first * kp * (act == DTYPE_F32 ? 4 : 2);
	}
	a[MATMUL_FROM] = m->from ? plan_address(m->from + t.first * rp) : 0;
	a[MATMUL_OUT] = plan_address(m->out + t.first * rp);
	a[MATMUL_TILES] = t.tiles;
	a[MATMUL_COLUMNS] = plan_tiles_columns(&t);
	a[MATMUL_BIAS] = plan_address(m->bias);
	a[MATMUL_W2] = m->w2 ? plan_address(m->w2->packed) : 0;
	a[MATMUL_BIAS2] = plan_address(m->bias2);
	const uint64_t added = m->flags & KEY_SCALED ? 2 * rp : rp; /* numbers of a column */
	if (m->flags & KEY_ADDED)
		a[MATMUL_ADDED] = plan_address(m->added + t.first * added);
	if (m->flags & KEY_ADDED && m->flags & KEY_PAIR)
		a[MATMUL_ADDED2] = plan_address(m->added2 + t.first * added);
	if (m->flags & KEY_GREATEST)
		a[MATMUL_GREATEST] = m->greatest ? plan_address(m->greatest + t.first * (rp / 32)) : 0;
	if (m->flags & KEY_QUANTISED_OUT) {
		a[MATMUL_OUTQ] = plan_address(m->outq + t.first * rp);
		a[MATMUL_OUTS] = plan_address(m->outs + t.first * (rp / 32));
	}
}

/* Whether an op has written this, and its input is what it was. */
static bool is_there(const struct plan_builder *b, const struct plan_interleave *interleave, unsigned i)
{
	const uint64_t x = interleave->arg[INTERLEAVE_X];

	if (i >= b->n_interleaved || memcmp(interleave, &b->interleaved[i], sizeof *interleave) != 0)
		return false;
	const struct kernel_extent e =
		plan_touched(&interleave->key, interleave->arg, INTERLEAVE_X, 0, interleave->units, 0);
	return !plan_written_since(b->p, b->interleaved_end[i], x + e.begin, x + e.end,
	                           (uint64_t)b->n * b->spec->experts_used);
}

/* Makes sure that the buffers of interleaved inputs hold what these ops write, which are of all tokens. Formats of
 * weights differ in what they want, and any tile may be the one by which they do: so ops are compared whole. One that
 * was made before has written the tokens it was to write then, and those before and behind it write others. */
static void prepare(struct plan_builder *b, const struct plan_interleave interleave[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (is_there(b, &interleave[i], i))
			continue;
		memcpy(plan_add_op(b, &interleave[i].key, 0, interleave[i].units), interleave[i].arg,
		       sizeof interleave[i].arg);
		b->interleaved[i] = interleave[i];
		b->interleaved_end[i] = b->p->n_ops;
	}
	b->n_interleaved = n;
}

/* What `m` reads, tile by tile; of tiles that are not wide each column by itself. */
static void interleave(struct plan_builder *b, const struct matmul *m, enum dtype act, const struct plan_tiles t[],
                       unsigned n)
{
	struct plan_interleave interleave[PLAN_CUTS_MAX];

	for (unsigned i = 0; i < n; i++) {
		const struct plan_tiles columns = { .first = t[i].first, .width = 1, .tiles = t[i].width * t[i].tiles };
		interleave[i] = interleave_of(b, m, act, t[i].flags == KEY_WIDE ? t[i] : columns);
	}
	prepare(b, interleave, n);
}

/* The same of f32 inputs rounded to the weights' type. */
static void narrow(struct plan_builder *b, const struct matmul *m, uint32_t tokens)
{
	struct plan_interleave interleave = { .key = plan_key(b, KEY_INTERLEAVE),
		                              .units = (int64_t)(tokens * (numerics_pad(m->w->k) / 32)) };

	interleave.key.activation = key_type(m->w->type);
	interleave.key.numerics = NUMERICS_BOUNDED;
	interleave.arg[INTERLEAVE_X] = plan_address(m->in.x);
	interleave.arg[INTERLEAVE_OUT] = plan_address(m->in.interleaved);
	prepare(b, &interleave, 1);
}

void plan_multiply(struct plan_builder *b, const struct matmul *m)
{
	enum dtype act = plan_matmul_activation(b->opt, m->w, m->flags);
	const struct activations interleaved = { .x = m->in.interleaved,
		                                 .q = m->in.interleaved_q,
		                                 .s = m->in.interleaved_s },
				 narrowed = { .x = m->in.interleaved };
	bool floats = act == DTYPE_F32;
	struct plan_tiles t[PLAN_CUTS_MAX];
	unsigned n = plan_cut_matmul(b->opt, b->p->logits, m->w, m->flags, m->tokens, t), i = 0, by_matrices = 0;

	if (m->awaited)
		n = plan_dataflow_tiles(b, m->w, m->flags | (m->in.norm ? KEY_NORM_IN : 0), m->tokens, t);
	while (by_matrices < n && t[by_matrices].flags == KEY_MMA)
		by_matrices++;
	if (by_matrices && floats)
		narrow(b, m, plan_tiles_end(&t[by_matrices - 1]));
	for (; i < by_matrices; i++)
		matmul_launch(b, m, floats ? &narrowed : &m->in, floats ? m->w->type : act, t[i]);
	bool interleaves = i < n && (t[i].flags == KEY_WIDE || act == DTYPE_BF16);
	if (interleaves)
		interleave(b, m, act, t + i, n - i);
	for (; i < n; i++)
		matmul_launch(b, m, interleaves ? &interleaved : &m->in, act, t[i]);
}

void plan_set_added(const struct plan_builder *b, const struct graph_node *n, struct matmul *m, bool second)
{
	m->flags &= ~(uint32_t)(KEY_ADDED | KEY_SCALED);
	m->added = plan_added(b, n, second ? IN_ADDED2 : IN_ADDED);
	m->added2 = m->flags & KEY_PAIR ? plan_added(b, n, IN_ADDED2) : NULL;
	m->flags |= m->added ? KEY_ADDED : 0;
	if (m->added && plan_scales(b, n, second ? IN_W2 : IN_W))
		m->flags |= KEY_SCALED;
}

void lower_matmul(struct plan_builder *b, const struct graph_node *n)
{
	const graph_ref to = plan_added_to(b, n);
	const struct weights_matrix *w2 = graph_matrix_of(b->g, n->in[IN_W2]);
	const struct activations out = plan_operand(b, to ? to : n->out[0]);
	struct matmul m = { .w = graph_matrix_of(b->g, n->in[IN_W]),
		            .bias = graph_vector_of(b->g, n->in[IN_BIAS]),
		            .out = out.x,
		            .outq = out.q,
		            .outs = out.s,
		            .awaited = plan_node_of(b, n)->awaited,
		            .tokens = b->n };

	plan_ready(b, n->in[IN_X]);
	m.in = plan_operand(b, n->in[IN_X]);
	if (w2 && plan_pair_of(b, n)) {
		m.w2 = w2;
		m.bias2 = graph_vector_of(b->g, n->in[IN_BIAS2]);
		m.flags = KEY_PAIR;
	} else if (w2) {
		plan_set_added(b, n, &m, false);
		plan_multiply(b, &m);
		m.w = w2;
		m.bias = graph_vector_of(b->g, n->in[IN_BIAS2]);
		m.flags = KEY_GATED;
	}
	plan_set_added(b, n, &m, m.flags & KEY_GATED);
	m.act = (enum key_act)n->act;
	if (to) {
		m.flags |= KEY_RESIDUAL;
		m.out = plan_floats(b, b->g->node[b->sum[n - b->g->node] - 1].out[0]);
		m.from = m.out != out.x ? out.x : NULL;
	} else if (b->of[n->out[0]].int8) {
		m.flags |= KEY_QUANTISED_OUT;
		plan_put_int8(b, n->out[0]);
	}
	plan_multiply(b, &m);
}

/* A matrix for each head: from k's of each head, padded, to rows that lie `groups` elements apart. */
void lower_by_head(struct plan_builder *b, const struct graph_node *n)
{
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]);
	const uint32_t heads = b->spec->heads, rows = n->rows;
	const uint64_t width = heads * numerics_pad(w->k), out_width = numerics_pad((uint64_t)heads * n->groups);
	const enum dtype act = plan_activation(b->opt, w->type);
	struct plan_tiles t[PLAN_CUTS_MAX];
	struct key key = plan_key(b, KEY_MATMUL);

	plan_ready(b, n->in[IN_X]);
	const struct activations in = plan_operand(b, n->in[IN_X]);
	float *out = plan_floats(b, n->out[0]);
	key.weight = key_type(w->type);
	key.activation = key_type(act);
	key.rows = rows;
	key.k = (uint32_t)w->k;
	key.heads = heads;
	key.head_dim = n->groups;
	key.row_blocks = 1;
	key.flags = KEY_BY_HEAD;
	for (unsigned cuts = plan_cut_matmul(b->opt, b->p->logits, w, KEY_BY_HEAD, b->n, t), i = 0; i < cuts; i++) {
		assert(!t[i].flags);
		key.tile_n = t[i].width;
		uint64_t *a = plan_add_op(b, &key, 0, (int64_t)(heads * numerics_pad(rows) / 32));
		plan_last_op(b)->unit_cost = plan_tiles_columns(&t[i]);
		a[MATMUL_W] = plan_address(w->packed);
		a[MATMUL_X] = act == DTYPE_Q8_0 ? plan_address(in.q + t[i].first * width)
		                                : plan_address(in.x + t[i].first * width);
		a[MATMUL_XS] = act == DTYPE_Q8_0 ? plan_address(in.s + t[i].first * (width / 32)) : 0;
		a[MATMUL_OUT] = plan_address(out + t[i].first * out_width);
		a[MATMUL_TILES] = t[i].tiles;
		a[MATMUL_COLUMNS] = plan_tiles_columns(&t[i]);
	}
}
