/* graph/passes.c - a graph copied into a simpler one. */
#include "graph/passes_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "graph/eval.h"

enum { FOLDED_MAX = 1 << 24 }; /* elements of a result that is computed ahead, and that stays in memory */

const struct pass_row pass_rows[PASSES] = {
	{ "needed", "what no output needs is left out" },
	{ "equal", "equal nodes are one" },
	{ "constants", "what depends on constants alone is computed" },
	{ "gaps", "convolutions of inputs with gaps are several without" },
	{ "loops", "equations and sorting are loops" },
	{ "products", "operands of products lie as kernels read them" },
	{ "weights", "packed weights are unpacked for each product anew" }
};

static bool does(const struct copying *c, enum pass pass) { return c->passes >> pass & 1; }

/* ---- what is needed */

static void mark_live(struct copying *c)
{
	for (uint32_t i = 0; i < c->from->outputs; i++)
		c->live[c->from->output[i]] = true;
	for (uint32_t i = c->from->nodes; i-- > 0;) {
		const struct tensor_node *n = &c->from->node[i];
		bool any = false;
		for (uint32_t k = 0; k < n->results; k++)
			any = any || c->live[n->first + k];
		for (uint32_t k = 0; any && k < n->operands; k++)
			c->live[n->operand[k]] = true;
	}
}

static bool is_live(const struct copying *c, const struct tensor_node *n)
{
	for (uint32_t k = 0; k < n->results; k++)
		if (c->live[n->first + k])
			return true;
	return !does(c, PASS_NEEDED);
}

/* ---- equal nodes */

static uint32_t hash_of(const struct tensor_node *n)
{
	uint64_t h = n->op;

	for (uint32_t k = 0; k < n->operands; k++)
		h = h * 1000003 + n->operand[k];
	for (uint32_t k = 0; k < n->attributes; k++)
		for (uint32_t i = 0; i < n->attribute[k].n; i++)
			h = h * 1000003 + (uint64_t)n->attribute[k].whole[i] + n->attribute[k].name;
	if (n->constant && n->constant->data)
		for (uint64_t i = 0; i < tensor_bytes(n->constant) && i < 256; i++)
			h = h * 1000003 + ((const uint8_t *)n->constant->data)[i];
	return (uint32_t)(h ^ h >> 32) % BUCKETS;
}

static bool same_attribute(const struct attribute *a, const struct attribute *b)
{
	return a->name == b->name && a->n == b->n && a->real == b->real &&
	       (a->n == 0 || memcmp(a->whole, b->whole, a->n * sizeof *a->whole) == 0);
}

static bool same_constant(const struct tensor *a, const struct tensor *b)
{
	return !a || (a->type == b->type && shape_equal(&a->shape, &b->shape) &&
	              (!a->data || memcmp(a->data, b->data, (size_t)tensor_bytes(a)) == 0));
}

static bool same_node(const struct tensor_node *a, const struct tensor_node *b)
{
	if (a->op != b->op || a->operands != b->operands || a->attributes != b->attributes)
		return false;
	for (uint32_t k = 0; k < a->attributes; k++)
		if (!same_attribute(&a->attribute[k], &b->attribute[k]))
			return false;
	return (a->operands == 0 || memcmp(a->operand, b->operand, a->operands * sizeof *a->operand) == 0) &&
	       same_constant(a->constant, b->constant);
}

/* The first result of a node that is there; 0: none is. */
static tensor_value find_same(const struct copying *c, const struct tensor_node *n, uint32_t hash)
{
	for (uint32_t i = does(c, PASS_EQUAL) ? c->bucket[hash] : 0; i; i = c->next[i])
		if (same_node(&c->to->node[i - 1], n))
			return c->to->node[i - 1].first;
	return 0;
}

/* Where there is no memory, it is not found. */
static void enter(struct copying *c, tensor_value v, uint32_t hash)
{
	const uint32_t number = c->to->value[v].node + 1;

	if (!array_grow((void **)&c->next, &c->next_room, number + (size_t)1, sizeof *c->next))
		return;
	c->next[number] = c->bucket[hash];
	c->bucket[hash] = number;
}

/* ---- nodes */

static bool is_known(const struct copying *c, const struct tensor_node *n)
{
	for (uint32_t k = 0; k < n->operands; k++) {
		const struct tensor_node *by = tensor_node_of(c->to, n->operand[k]);
		if (!by || by->op != OP_constant)
			return false;
	}
	return true;
}

static void free_known(struct known *k)
{
	for (uint32_t i = 0; k->n.attribute && i < k->n.attributes; i++)
		free(k->n.attribute[i].whole);
	free(k->n.attribute);
	free(k->n.operand);
}

/* Remembers what a node of constants became; where there is no memory, it is computed once more. */
static void remember(struct copying *c, const struct tensor_node *n, uint32_t hash, tensor_value is)
{
	struct known k = { .n = { .op = n->op, .operands = n->operands, .attributes = n->attributes }, .is = is };
	bool ok = array_grow((void **)&c->known, &c->known_room, c->n_known + (size_t)1, sizeof *c->known);

	k.n.operand = calloc(n->operands + (size_t)1, sizeof *k.n.operand);
	k.n.attribute = calloc(n->attributes + (size_t)1, sizeof *k.n.attribute);
	ok = ok && k.n.operand && k.n.attribute;
	if (ok)
		memcpy(k.n.operand, n->operand, n->operands * sizeof *n->operand);
	for (uint32_t i = 0; ok && i < n->attributes; i++) {
		const struct attribute *a = &n->attribute[i];
		k.n.attribute[i] = *a;
		k.n.attribute[i].whole = calloc(a->n + (size_t)1, sizeof *a->whole);
		ok = k.n.attribute[i].whole != NULL;
		if (ok && a->n)
			memcpy(k.n.attribute[i].whole, a->whole, a->n * sizeof *a->whole);
	}
	if (!ok) {
		free_known(&k);
		return;
	}
	k.next = c->known_at[hash];
	c->known[c->n_known++] = k;
	c->known_at[hash] = c->n_known;
}

static tensor_value find_known(const struct copying *c, const struct tensor_node *n, uint32_t hash)
{
	for (uint32_t i = c->known_at[hash]; i; i = c->known[i - 1].next)
		if (same_node(&c->known[i - 1].n, n))
			return c->known[i - 1].is;
	return 0;
}

/* A node of constants becomes constants. */
static tensor_value folded(struct copying *c, const struct tensor_node *n, const struct inferred *shapes)
{
	const struct tensor *in[TENSOR_MAX_OPERANDS];
	struct tensor out[1];
	tensor_value v;

	for (uint32_t k = 0; k < n->operands; k++)
		in[k] = tensor_node_of(c->to, n->operand[k])->constant;
	/* The interpreter asks the graph for the result's shape: it is given one that has nothing else. */
	struct tensor_value_info value[2] = { { 0 }, { NULL, shapes->type[0], shapes->shape[0], 0 } };
	struct tensor_node own = *n;
	own.first = 1;
	own.results = 1;
	const struct tensor_graph one = { .value = value, .node = &own, .values = 2, .nodes = 1 };
	if (!tensor_node_eval(&one, &own, in, out, c->err))
		return 0;
	const struct tensor_node constant = { .op = OP_constant, .constant = &out[0] };
	const uint32_t hash = hash_of(&constant);
	v = find_same(c, &constant, hash);
	if (!v && (v = tensor_graph_constant(c->to, &out[0], c->err)))
		enter(c, v, hash);
	tensor_free(&out[0]);
	return v;
}

/* Packed weights stay packed, and users' kernels run where the graph does. */
tensor_value passes_put(struct copying *c, const struct tensor_node *n)
{
	const uint32_t hash = hash_of(n);
	struct inferred shapes = { .results = 0 };
	tensor_value v = find_same(c, n, hash);

	if (v || (v = find_known(c, n, hash)))
		return v;
	if (!tensor_infer(c->to, n, &shapes, c->err))
		return 0;
	if (does(c, PASS_CONSTANTS) && shapes.results == 1 && n->operands && is_known(c, n) &&
	    shape_elements(&shapes.shape[0]) <= FOLDED_MAX && n->op != OP_broadcast && n->op != OP_dequantise &&
	    n->op != OP_kernel && n->op != OP_scan) {
		if ((v = folded(c, n, &shapes)))
			remember(c, n, hash, v);
		return v;
	}
	v = tensor_graph_add(c->to, n->op, n->operand, n->operands, n->attribute, n->attributes, c->err);
	if (v)
		enter(c, v, hash);
	return v;
}

/* An operand of a product with other axes in front: batches, then its own or those that are summed. */
static tensor_value transposed(struct copying *c, tensor_value v, const unsigned order[TENSOR_MAX_RANK])
{
	int64_t axes[TENSOR_MAX_RANK];
	const uint32_t rank = c->to->value[v].shape.rank;
	struct attribute a = { ATTRIBUTE_axes, rank, axes, 0 };
	bool same = true;

	for (uint32_t i = 0; i < rank; i++) {
		axes[i] = order[i];
		same = same && order[i] == i;
	}
	const struct tensor_node n = {
		.op = OP_transpose, .operands = 1, .operand = &v, .attribute = &a, .attributes = 1
	};
	return same ? v : passes_put(c, &n);
}

/* The right operand's own axes go to its end, so that lanes read them one beside the other. Where it has few of them,
 * kernels have lanes along the left one, whose summed axes then go in front of its own. */
static tensor_value put_dot(struct copying *c, const struct tensor_node *n)
{
	struct tensor_node own = *n;
	tensor_value operand[] = { n->operand[0], n->operand[1] };
	struct attribute attribute[4];
	int64_t number[4][TENSOR_MAX_RANK];
	uint64_t size[2] = { 1, 1 };

	for (uint32_t k = 0; k < n->attributes; k++) {
		attribute[k] = n->attribute[k];
		if (attribute[k].n)
			memcpy(number[k], attribute[k].whole, attribute[k].n * sizeof **number);
		attribute[k].whole = number[k];
	}
	own.attribute = attribute;
	own.operand = operand;
	for (unsigned side = 0; side < 2; side++)
		for (unsigned d = 0; d < c->to->value[operand[side]].shape.rank; d++)
			if (!attribute_has(tensor_node_attribute(n, side ? ATTRIBUTE_right : ATTRIBUTE_left), d) &&
			    !attribute_has(
				    tensor_node_attribute(n, side ? ATTRIBUTE_right_batch : ATTRIBUTE_left_batch), d))
				size[side] *= c->to->value[operand[side]].shape.dim[d];
	const unsigned side = size[1] >= 8 || size[1] >= size[0] ? 1 : 0;
	struct attribute *sums = (struct attribute *)(uintptr_t)tensor_node_attribute(
				 &own, side ? ATTRIBUTE_right : ATTRIBUTE_left),
			 *batches = (struct attribute *)(uintptr_t)tensor_node_attribute(
				 &own, side ? ATTRIBUTE_right_batch : ATTRIBUTE_left_batch);
	unsigned order[TENSOR_MAX_RANK], count = 0;
	for (uint32_t i = 0; batches && i < batches->n; i++)
		order[count++] = (unsigned)batches->whole[i];
	for (uint32_t i = 0; i < sums->n; i++)
		order[count++] = (unsigned)sums->whole[i];
	for (unsigned d = 0; d < c->to->value[operand[side]].shape.rank; d++)
		if (!attribute_has(sums, d) && !attribute_has(batches, d))
			order[count++] = d;
	operand[side] = transposed(c, operand[side], order);
	for (uint32_t i = 0; batches && i < batches->n; i++)
		batches->whole[i] = i;
	for (uint32_t i = 0; i < sums->n; i++)
		sums->whole[i] = (batches ? batches->n : 0) + i;
	return operand[side] ? passes_put(c, &own) : 0;
}

static bool is_read(const struct copying *c, tensor_value v)
{
	for (uint32_t i = 0; i < c->to->nodes; i++)
		for (uint32_t k = 0; k < c->to->node[i].operands; k++)
			if (c->to->node[i].operand[k] == v)
				return true;
	return false;
}

/* Weights that an earlier product has unpacked are unpacked once more, unless that product is this one. */
static bool unpack_again(struct copying *c, struct tensor_node *own, tensor_value *operand)
{
	bool ok = true;

	if (find_same(c, own, hash_of(own)))
		return true;
	for (uint32_t k = 0; ok && k < own->operands; k++) {
		const struct tensor_node *n = tensor_node_of(c->to, operand[k]);
		if (!n || n->op != OP_dequantise || !is_read(c, operand[k]))
			continue;
		tensor_value packed = n->operand[0];
		struct attribute a = n->attribute[0];
		operand[k] = tensor_graph_add(c->to, OP_dequantise, &packed, 1, &a, 1, c->err);
		ok = operand[k] != 0;
	}
	return ok;
}

static bool name_copy(struct copying *c, const struct tensor_node *n, uint32_t k, tensor_value v)
{
	const char *name = c->from->value[n->first + k].name;

	c->is[n->first + k] = v;
	return !name || c->to->value[v].name || tensor_graph_name_value(c->to, v, name, c->err);
}

/* False, and no error: it is not done. */
static bool copy_sort(struct copying *c, const struct tensor_node *n, const struct tensor_node *own)
{
	tensor_value out[TENSOR_MAX_RESULTS];

	if (!does(c, PASS_LOOPS) || is_known(c, own) || !passes_put_sort(c, own, out))
		return false;
	for (uint32_t k = 0; k < n->results; k++)
		if (!name_copy(c, n, k, out[k]))
			return false;
	return true;
}

static bool copy_node(struct copying *c, const struct tensor_node *n)
{
	tensor_value operand[TENSOR_MAX_OPERANDS], v;
	struct tensor_node own = *n;

	for (uint32_t k = 0; k < n->operands; k++)
		operand[k] = c->is[n->operand[k]];
	own.operand = operand;
	if (n->op == OP_dot && does(c, PASS_WEIGHTS) && !unpack_again(c, &own, operand))
		return false;
	if (n->op == OP_sort && (copy_sort(c, n, &own) || c->err->code != ERROR_NONE))
		return c->err->code == ERROR_NONE;
	if (n->op == OP_constant) {
		const uint32_t hash = hash_of(n);
		v = find_same(c, n, hash);
		if (!v && (v = (c->lends ? tensor_graph_lend : tensor_graph_constant)(c->to, n->constant, c->err)))
			enter(c, v, hash);
	} else {
		v = n->op == OP_conv && does(c, PASS_GAPS) ? passes_put_conv(c, &own) : 0;
		if (does(c, PASS_LOOPS) && !is_known(c, &own))
			v = n->op == OP_solve ? passes_put_solve(c, &own)
			    : n->op == OP_scatter_nd || n->op == OP_scatter_along
			            ? passes_put_scatter(c, &own)
			            : v;
		if (!v && c->err->code == ERROR_NONE)
			v = n->op == OP_dot && does(c, PASS_PRODUCTS) ? put_dot(c, &own) : passes_put(c, &own);
	}
	for (uint32_t k = 0; v && k < n->results; k++)
		if (!name_copy(c, n, k, v + k))
			return false;
	return v != 0;
}

static bool copy_all(struct copying *c)
{
	if (c->from->name && !(c->to->name = strdup(c->from->name)))
		return error_set(c->err, ERROR_MEMORY, "there is no memory for a graph");
	for (uint32_t i = 0; i < c->from->inputs; i++) {
		const struct tensor_value_info *v = &c->from->value[c->from->input[i]];
		if (!(c->is[c->from->input[i]] = tensor_graph_input(c->to, v->name, v->type, &v->shape, c->err)))
			return false;
	}
	for (uint32_t i = 0; i < c->from->nodes; i++)
		if (is_live(c, &c->from->node[i]) && !copy_node(c, &c->from->node[i]))
			return false;
	for (uint32_t i = 0; i < c->from->outputs; i++)
		if (!tensor_graph_output(c->to, c->from->output_name[i], c->is[c->from->output[i]], c->err))
			return false;
	return true;
}

static bool run(struct tensor_graph *to, const struct tensor_graph *from, unsigned passes, bool lends,
                struct error *err)
{
	struct copying c = { .to = to, .from = from, .passes = passes, .lends = lends, .err = err };

	c.is = calloc(from->values, sizeof *c.is);
	c.live = calloc(from->values, sizeof *c.live);
	c.bucket = calloc(BUCKETS, sizeof *c.bucket);
	bool ok = (c.is && c.live && c.bucket) || error_set(err, ERROR_MEMORY, "there is no memory for a graph");
	if (ok) {
		mark_live(&c);
		ok = copy_all(&c);
	}
	free(c.is);
	free(c.live);
	for (uint32_t i = 0; i < c.n_known; i++)
		free_known(&c.known[i]);
	free(c.known);
	free(c.bucket);
	free(c.next);
	return ok;
}

bool passes_run(struct tensor_graph *to, const struct tensor_graph *from, struct error *err)
{
	return run(to, from, (1u << PASSES) - 1, false, err);
}

bool passes_run_some(struct tensor_graph *to, const struct tensor_graph *from, unsigned passes, struct error *err)
{
	return run(to, from, passes, true, err);
}

bool passes_run_one(struct tensor_graph *to, const struct tensor_graph *from, enum pass pass, struct error *err)
{
	return run(to, from, 1u << pass, false, err);
}
