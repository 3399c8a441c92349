/* runtime/graph/partition_parts.c - concatenations whose operands are made where they belong. */
#include "runtime/graph/arena.h"

static uint64_t bytes_of(const struct tensor_graph *g, tensor_value v)
{
	return shape_elements(&g->value[v].shape) * tensor_type_bytes(g->value[v].type);
}

/* Whether a group makes the value by itself, and it may be made anywhere. */
static bool is_free(const struct partition *p, const struct tensor_graph *g, tensor_value v)
{
	const struct tensor_node *n = tensor_node_of(g, v);

	return n && p->home[v] == HOME_STORED && n->op != OP_constant && n->op != OP_scan && n->op != OP_kernel &&
	       n->results == 1 && !p->part_of[v] && !partition_is_joined(p, g, n);
}

/* Whether the concatenation alone computes it, as a part of its kernel. */
static bool is_inside(const struct partition *p, tensor_value v, const uint32_t *users)
{
	return p->home[v] == HOME_INLINE && !p->product[v] && users[v] == 1;
}

/* One operand is behind the other only where nothing is in front of the axis. One of them at least is then not copied.
 */
static bool joins(const struct partition *p, const struct tensor_graph *g, const struct tensor_node *n,
                  const uint32_t *users)
{
	uint32_t made = 0;
	const uint64_t axis = (uint64_t)tensor_node_whole(n, ATTRIBUTE_axis, 0, 0);
	uint64_t at = 0;

	if (n->op != OP_concatenate || p->home[n->first] != HOME_STORED || n->operands < 2 ||
	    shape_part(&g->value[n->first].shape, 0, (unsigned)axis) != 1)
		return false;
	for (uint32_t k = 0; k < n->operands; k++) {
		const tensor_value v = partition_root(p, g, n->operand[k]);
		if (at % ARENA_ALIGN || !bytes_of(g, v) || !(is_free(p, g, v) || is_inside(p, v, users)))
			return false;
		made += p->home[v] == HOME_STORED;
		for (uint32_t i = 0; i < k; i++)
			if (partition_root(p, g, n->operand[i]) == v)
				return false;
		at += bytes_of(g, v);
	}
	return made != 0;
}

bool partition_is_joined(const struct partition *p, const struct tensor_graph *g, const struct tensor_node *n)
{
	return n->op == OP_concatenate && p->home[n->first] == HOME_STORED &&
	       p->part_of[partition_root(p, g, n->operand[0])] == n->first;
}

void partition_parts_find(struct partition *p, const struct tensor_graph *g, const uint32_t *users)
{
	for (uint32_t i = 0; i < g->nodes; i++) {
		const struct tensor_node *n = &g->node[i];
		uint64_t at = 0;
		for (uint32_t k = 0, joined = joins(p, g, n, users); joined && k < n->operands; k++) {
			const tensor_value v = partition_root(p, g, n->operand[k]);
			p->home[v] = HOME_STORED;
			p->part_of[v] = n->first;
			p->part_at[v] = at;
			at += bytes_of(g, v);
		}
	}
}
