/* runtime/graph/partition.c - a graph cut into groups of nodes. */
#include "runtime/graph/partition_attention.h"

#include <stdlib.h>

#include "base/dtype.h"

enum {
	WEIGHT_MAX = 48,     /* operations of an expression: what is larger is slower to compile than to store */
	WEIGHT_FUNCTION = 8, /* of exp and its kind, and of divisions */
	WEIGHT_CHEAP = 2,    /* what is computed again rather than stored, when several groups read it */
	READS_MAX = 16,      /* arrays that an expression reads */
	JOINED_MAX = 8,      /* operands of a concatenation that is an expression */
	FINISH_MAX = 10      /* operations of an expression of a product's sum, of which a tile has a copy for each */
};

struct weighing {
	const struct tensor_graph *g;
	struct partition *p;
	uint32_t *users, *weight, *reads;
	bool *needed; /* its bytes are: an output, or an operand of what is no expression */
	unsigned lanes;
};

static const struct tensor_value_info *info(const struct tensor_graph *g, tensor_value v) { return &g->value[v]; }

bool partition_is_literal(const struct tensor_graph *g, tensor_value v)
{
	const struct tensor_node *n = tensor_node_of(g, v);

	return n && n->op == OP_constant && shape_elements(&info(g, v)->shape) == 1;
}

/* Stores round elements of narrow types, and so they are stored. */
static bool is_wide(const struct tensor_graph *g, tensor_value v)
{
	return tensor_wide_type(info(g, v)->type) == info(g, v)->type;
}

bool partition_knows_weights(const struct tensor_node *n)
{
	switch ((enum dtype)tensor_node_whole(n, ATTRIBUTE_format, 0, 0)) {
	case DTYPE_F16:
	case DTYPE_BF16:
	case DTYPE_Q4_0:
	case DTYPE_Q4_1:
	case DTYPE_Q5_0:
	case DTYPE_Q5_1:
	case DTYPE_Q8_0:
	case DTYPE_Q4_K:
	case DTYPE_Q5_K:
	case DTYPE_Q6_K: return true;
	default: return false;
	}
}

bool partition_is_element(const struct tensor_graph *g, const struct tensor_node *n)
{
	const int from = n->operands ? info(g, n->operand[0])->type : 0;

	switch (tensor_ops[n->op].kind) {
	case KIND_BITCAST: return tensor_type_bytes(from) >= 4;
	case KIND_DEQUANTISE: return partition_knows_weights(n);
	case KIND_NUMBERS:
	case KIND_FLOATS:
	case KIND_BITS:
	case KIND_INTEGERS:
	case KIND_COMPARE:
	case KIND_SELECT:
	case KIND_CONVERT:
	case KIND_IOTA:
	case KIND_RANDOM:
	case KIND_BROADCAST:
	case KIND_RESHAPE:
	case KIND_TRANSPOSE:
	case KIND_SLICE:
	case KIND_PAD:
	case KIND_REVERSE:
	case KIND_TAKE:
	case KIND_TAKE_ALONG:
	case KIND_GATHER_ND: return true;
	case KIND_CONCATENATE: return n->operands <= JOINED_MAX;
	default: return false;
	}
}

static bool has_rows(const struct tensor_graph *g, const struct tensor_node *n)
{
	const struct tensor_value_info *at = info(g, n->operand[1]);

	return at->type == JIT_TYPE_I32 &&
	       (n->op == OP_scatter_along || (at->shape.rank == 2 && at->shape.dim[1] == 1)) &&
	       (info(g, n->first)->type != JIT_TYPE_BOOL ||
	        tensor_node_whole(n, ATTRIBUTE_mode, 0, SCATTER_SET) == SCATTER_SET);
}

/* Whether a kernel can be written for what is no expression. */
static bool has_kernel(const struct tensor_graph *g, const struct tensor_node *n)
{
	switch (tensor_ops[n->op].kind) {
	case KIND_REDUCE:
	case KIND_REDUCE_BOOL:
	case KIND_ARG:
	case KIND_SCAN:
	case KIND_DOT:
	case KIND_CONV:
	case KIND_WINDOW:
	case KIND_LOOP:
	case KIND_KERNEL: return true;
	/* Sums of bool have none, and indices are such as passes leave. */
	case KIND_SCATTER_ND:
	case KIND_SCATTER_ALONG: return has_rows(g, n);
	default: return false;
	}
}

/* Whether a node may read its operand as an expression: reductions read each element once. */
static bool takes_expression(const struct tensor_graph *g, const struct tensor_node *n)
{
	const uint8_t kind = tensor_ops[n->op].kind;

	/* The bytes of packed weights are read from memory. */
	return (partition_is_element(g, n) && kind != KIND_DEQUANTISE) || kind == KIND_REDUCE ||
	       kind == KIND_REDUCE_BOOL;
}

static bool is_move(const struct tensor_node *n)
{
	const uint8_t kind = tensor_ops[n->op].kind;

	return kind >= KIND_IOTA && kind <= KIND_GATHER_ND;
}

static uint32_t own_weight(const struct tensor_node *n)
{
	switch (n->op) {
	case OP_exp:
	case OP_log:
	case OP_sin:
	case OP_cos:
	case OP_tanh:
	case OP_erf:
	case OP_pow:
	case OP_logistic:
	case OP_div:
	case OP_rem:
	case OP_sqrt:
	case OP_rsqrt:
	case OP_fake_quantise: return WEIGHT_FUNCTION;
	case OP_random_bits: return 3 * WEIGHT_FUNCTION;
	default: return 1;
	}
}

/* Whether a node reads elements of its operand several times. */
static bool repeats(const struct tensor_graph *g, const struct tensor_node *n, tensor_value operand)
{
	const uint64_t had = shape_elements(&info(g, operand)->shape), has = shape_elements(&info(g, n->first)->shape);

	return is_move(n) && had < has;
}

static void count_users(struct weighing *w)
{
	for (uint32_t i = 0; i < w->g->nodes; i++) {
		const struct tensor_node *n = &w->g->node[i];
		for (uint32_t k = 0; k < n->operands; k++) {
			w->users[n->operand[k]]++;
			if (!takes_expression(w->g, n))
				w->needed[n->operand[k]] = true;
		}
	}
	for (uint32_t i = 0; i < w->g->outputs; i++) {
		w->users[w->g->output[i]]++;
		w->needed[w->g->output[i]] = true;
	}
}

/* What an expression of this node costs, with those of its operands that are none in memory. */
static void weigh(struct weighing *w, const struct tensor_node *n)
{
	uint32_t weight = own_weight(n), reads = 0;

	for (uint32_t k = 0; k < n->operands; k++) {
		const tensor_value v = n->operand[k];
		const bool is_inline = w->p->home[v] == HOME_INLINE;
		weight += is_inline ? w->weight[v] : 0;
		reads += is_inline ? w->reads[v] : !partition_is_literal(w->g, v);
	}
	w->weight[n->first] = weight;
	w->reads[n->first] = reads;
}

/* Operands that an expression may not have inside itself become stored. */
static void settle_operands(struct weighing *w, const struct tensor_node *n)
{
	for (uint32_t k = 0; k < n->operands; k++) {
		const tensor_value v = n->operand[k];
		if (w->p->home[v] == HOME_INLINE && repeats(w->g, n, v) && w->weight[v] >= WEIGHT_FUNCTION)
			w->p->home[v] = HOME_STORED;
	}
	weigh(w, n);
	for (uint32_t k = 0; k < n->operands && (w->weight[n->first] > WEIGHT_MAX || w->reads[n->first] > READS_MAX);
	     k++) {
		if (w->p->home[n->operand[k]] == HOME_INLINE &&
		    w->reads[n->operand[k]] + w->weight[n->operand[k]] > 2) {
			w->p->home[n->operand[k]] = HOME_STORED;
			weigh(w, n);
		}
	}
}

static bool is_product(const struct tensor_node *n) { return n->op == OP_dot || n->op == OP_conv; }

/* An expression has at most one product, of which elements are asked for where they are computed and nowhere else. */
static void settle_products(struct weighing *w, const struct tensor_node *n)
{
	const tensor_value v = n->first;
	bool has_one = false;

	w->p->product[v] = 0;
	for (uint32_t k = 0; k < n->operands; k++) {
		const tensor_value x = n->operand[k];
		if (w->p->home[x] != HOME_INLINE || !w->p->product[x])
			continue;
		if (has_one || !tensor_op_is_elementwise(n->op) || w->weight[v] > FINISH_MAX) {
			w->p->home[x] = HOME_STORED;
			weigh(w, n);
			continue;
		}
		has_one = true;
		w->p->product[v] = w->p->product[x];
	}
}

/* Whether what follows a product may be computed with it. */
static bool is_finished_with(const struct weighing *w, const struct tensor_node *n)
{
	const tensor_value v = n->first;

	return is_product(n) && is_wide(w->g, v) && !w->needed[v] && w->users[v] == 1 && tile_takes(w->g, n, w->lanes);
}

static bool is_alias(const struct weighing *w, const struct tensor_node *n)
{
	return (n->op == OP_reshape || n->op == OP_bitcast) && w->p->home[n->operand[0]] != HOME_INLINE &&
	       !partition_is_literal(w->g, n->operand[0]);
}

static void settle(struct weighing *w, const struct tensor_node *n)
{
	const tensor_value v = n->first;
	uint8_t home = HOME_STORED;

	if (takes_expression(w->g, n)) {
		settle_operands(w, n);
		settle_products(w, n);
	}
	if (is_finished_with(w, n)) {
		w->p->product[v] = w->g->value[v].node + 1;
		home = HOME_INLINE;
	} else if (n->op == OP_constant)
		home = HOME_STORED;
	else if (is_alias(w, n))
		home = HOME_ALIAS;
	else if (takes_expression(w->g, n) && partition_is_element(w->g, n) && is_wide(w->g, v) && !w->needed[v] &&
	         (w->users[v] == 1 || (w->weight[v] <= WEIGHT_CHEAP && !w->p->product[v])))
		home = HOME_INLINE;
	for (uint32_t k = 0; k < n->results; k++)
		w->p->home[v + k] = home;
}

static bool list_groups(struct partition *p, const struct tensor_graph *g, const uint64_t *rows,
                        const tensor_value *scores, struct error *err)
{
	p->group = calloc(g->nodes + (size_t)1, sizeof *p->group);
	if (!p->group)
		return error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	for (uint32_t i = 0; i < g->nodes; i++) {
		const struct tensor_node *n = &g->node[i];
		if (n->op == OP_constant || p->home[n->first] != HOME_STORED || partition_is_joined(p, g, n))
			continue;
		const bool host = !partition_is_element(g, n) && !has_kernel(g, n) &&
		                  shape_elements(&info(g, n->first)->shape) > 0;
		const uint32_t first = p->product[n->first] ? p->product[n->first] - 1 : i;
		p->group[p->groups++] = (struct group){ i, first, host, rows[i], scores[first] };
		p->kernels += !host;
	}
	return true;
}

bool partition_make(struct partition *p, const struct tensor_graph *g, unsigned lanes, struct error *err)
{
	struct weighing w = { .g = g, .p = p, .lanes = lanes };

	*p = (struct partition){ .home = calloc(g->values, 1),
		                 .product = calloc(g->values, sizeof *p->product),
		                 .none = calloc(g->values, sizeof *p->none),
		                 .part_of = calloc(g->values, sizeof *p->part_of),
		                 .part_at = calloc(g->values, sizeof *p->part_at) };
	bool *banned = calloc(g->values, sizeof *banned);
	uint64_t *rows = calloc(g->nodes + (size_t)1, sizeof *rows);
	tensor_value *scores = calloc(g->nodes + (size_t)1, sizeof *scores);
	w.users = calloc(g->values, sizeof *w.users);
	w.weight = calloc(g->values, sizeof *w.weight);
	w.reads = calloc(g->values, sizeof *w.reads);
	w.needed = calloc(g->values, sizeof *w.needed);
	bool ok = (p->home && p->product && p->none && p->part_of && p->part_at && banned && rows && scores &&
	           w.users && w.weight && w.reads && w.needed) ||
	          error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	if (ok) {
		count_users(&w);
		for (uint32_t i = 0; i < g->inputs; i++)
			p->home[g->input[i]] = HOME_STORED;
		for (uint32_t i = 0; i < g->nodes; i++)
			settle(&w, &g->node[i]);
		/* What is not stored in the end, because nothing reads it, makes no group. */
		for (uint32_t i = 0; i < g->nodes; i++)
			if (g->node[i].results == 1 && w.users[g->node[i].first] == 0)
				p->home[g->node[i].first] = HOME_NONE;
		struct row_view view = { g, p->home, p->product, w.needed, banned, w.users, w.reads };
		partition_rows_find(&view, p->home, rows, lanes);
		view.needed = NULL;
		view.banned = p->none;
		partition_attention_find(&view, p->home, rows, scores, lanes);
		partition_parts_find(p, g, w.users);
		ok = list_groups(p, g, rows, scores, err);
	}
	free(banned);
	free(rows);
	free(scores);
	free(w.users);
	free(w.weight);
	free(w.reads);
	free(w.needed);
	if (!ok)
		partition_free(p);
	return ok;
}

void partition_free(struct partition *p)
{
	free(p->home);
	free(p->product);
	free(p->none);
	free(p->part_of);
	free(p->part_at);
	free(p->group);
	*p = (struct partition){ 0 };
}

tensor_value partition_root(const struct partition *p, const struct tensor_graph *g, tensor_value v)
{
	while (p->home[v] == HOME_ALIAS)
		v = tensor_node_of(g, v)->operand[0];
	return v;
}
