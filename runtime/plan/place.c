/* runtime/plan/place.c - in which of a session's buffers each value of a graph lies.
 *
 * Owns: the row of PLAN_BUFFERS of every value, and which value each row has. Rows are shared by all layers: a value
 * takes the place of the one before it, which no later node may read. The rows of matrices' products go by the matrix;
 * all others by the node and where its operands lie.
 */
#include <assert.h>

#include "runtime/plan/lower.h"

void *plan_row(const struct plan_builder *b, enum plan_row row)
{
	switch (row) {
	case PLAN_ROWS:
	case ROW_none: break;
#define X(type, name, width, memory) \
	case ROW_##name: return b->buf->name;
		PLAN_BUFFERS(X)
#undef X
	}
	return NULL;
}

float *plan_floats(const struct plan_builder *b, graph_ref v)
{
	return v ? plan_row(b, (enum plan_row)b->of[v].row) : NULL;
}

/* The rows of a row's int8 blocks and of their scales; none: there are no such. */
struct blocks {
	uint8_t q, s;
};
static struct blocks blocks_of(enum plan_row row)
{
	static const struct blocks of[PLAN_ROWS] = {
		[ROW_x] = { ROW_xnq, ROW_xns }, [ROW_xn] = { ROW_xnq, ROW_xns }, [ROW_ao] = { ROW_aoq, ROW_aos },
		[ROW_q] = { ROW_aoq, ROW_aos }, [ROW_h] = { ROW_hq, ROW_hs },    [ROW_ex] = { ROW_exq, ROW_exs },
		[ROW_eh] = { ROW_ehq, ROW_ehs }
	};

	return of[row];
}

struct activations plan_operand(const struct plan_builder *b, graph_ref v)
{
	const struct graph_node *by = graph_producer(b->g, v);
	const struct blocks blocks = blocks_of((enum plan_row)b->of[v].row);

	if (b->of[v].inside)
		return (struct activations){ .x = plan_floats(b, by->in[IN_X]),
			                     .norm = graph_vector_of(b->g, by->in[IN_W]) };
	return (struct activations){ .x = plan_floats(b, v),
		                     .q = plan_row(b, (enum plan_row)blocks.q),
		                     .s = plan_row(b, (enum plan_row)blocks.s) };
}

void plan_put(struct plan_builder *b, graph_ref v, enum plan_row row, uint32_t node)
{
	const struct graph_value *old = graph_value(b->g, b->holds[row]);

	assert(row == ROW_none || !b->holds[row] || !old->users || old->last_user <= node);
	b->of[v].row = (uint8_t)row;
	b->holds[row] = v;
}

bool plan_has_int8(const struct plan_builder *b, graph_ref v)
{
	return b->holds[blocks_of((enum plan_row)b->of[v].row).q] == v;
}

void plan_put_int8(struct plan_builder *b, graph_ref v)
{
	const struct blocks blocks = blocks_of((enum plan_row)b->of[v].row);

	assert(blocks.q);
	b->holds[blocks.q] = v;
}

static enum plan_row row_of_product(const struct plan_builder *b, const struct graph_node *n)
{
	static const uint8_t rows[MATRIX_SLOTS] = {
		[MATRIX_q_gate] = ROW_m3,
		[MATRIX_q] = ROW_q,
		[MATRIX_k] = ROW_k,
		[MATRIX_v] = ROW_v,
		[MATRIX_q_a] = ROW_qr,
		[MATRIX_kv_a] = ROW_k,
		[MATRIX_q_b] = ROW_q,
		[MATRIX_k_b] = ROW_qr,
		[MATRIX_v_b] = ROW_q,
		[MATRIX_conv_b] = ROW_m,
		[MATRIX_conv_c] = ROW_m2,
		[MATRIX_conv_x] = ROW_m3,
		[MATRIX_delta_qkv] = ROW_m,
		[MATRIX_delta_z] = ROW_m3,
		[MATRIX_delta_b] = ROW_mb,
		[MATRIX_delta_a] = ROW_ma,
		[MATRIX_scan_z] = ROW_m3,
		[MATRIX_scan_xbc] = ROW_m,
		[MATRIX_scan_dt] = ROW_ma,
		[MATRIX_gate] = ROW_h,
		[MATRIX_up] = ROW_h,
		[MATRIX_router] = ROW_routed,
		[MATRIX_expert_gate] = ROW_eh,
		[MATRIX_expert_up] = ROW_eh,
		[MATRIX_expert_down] = ROW_ex,
		[MATRIX_shared_router] = ROW_routed,
		[MATRIX_shared_gate] = ROW_h,
		[MATRIX_shared_up] = ROW_h,
		[MATRIX_input_gate] = ROW_h
	};
	const struct weights_matrix *w = graph_matrix_of(b->g, n->in[IN_W]), *of = b->w->layer[n->layer].matrix;

	if (w == &b->w->input_proj)
		return ROW_input_x;
	/* what goes into the stream, and first through a norm or a scale */
	return rows[w - of] ? (enum plan_row)rows[w - of] : ROW_xn;
}

static enum plan_row row_of_norm(enum plan_row in, uint32_t groups, bool shared)
{
	if (groups)
		return shared ? ROW_m2 : ROW_ao;
	return in == ROW_x ? ROW_xn : in == ROW_q ? ROW_qr : in == ROW_k ? ROW_q : in == ROW_qr ? ROW_ao : ROW_beside;
}

enum plan_row plan_place(const struct plan_builder *b, const struct graph_node *n, unsigned out)
{
	const enum plan_row in = (enum plan_row)b->of[n->in[IN_X]].row;

	switch ((enum graph_kind)n->kind) {
	case NODE_EMBED: return n == b->g->node ? ROW_x : ROW_input_e;
	case NODE_NORM: return row_of_norm(in, n->groups, n->shared);
	case NODE_MATMUL:
	case NODE_BY_HEAD:
	case NODE_EXPERTS: return row_of_product(b, n);
	case NODE_ADD:
	case NODE_SCALE: return in;
	case NODE_GATE: return in == ROW_m2 ? ROW_ao : in;
	case NODE_LAYER_INPUTS: return ROW_inputs;
	case NODE_ROTATE: return out ? ROW_ao : ROW_qr;
	case NODE_ATTEND: return ROW_ao;
	case NODE_CONV: return n->in[IN_W] ? ROW_ao : ROW_m2;
	case NODE_DELTA:
	case NODE_SCAN: return ROW_m;
	case NODE_ROUTE: return ROW_chosen;
	case NODE_COMBINE: return n->act == ACT_SIGMOID ? ROW_ex : ROW_xn;
	default: return ROW_none;
	}
}
