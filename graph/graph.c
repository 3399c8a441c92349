/* graph/graph.c - how graphs are built. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static bool no_memory(struct error *err) { return error_set(err, ERROR_MEMORY, "there is no memory for a graph"); }

void tensor_graph_init(struct tensor_graph *g)
{
	*g = (struct tensor_graph){ 0 };
	g->values = 1;
}

static void free_node(struct tensor_node *n)
{
	for (uint32_t i = 0; n->attribute && i < n->attributes; i++)
		free(n->attribute[i].whole);
	free(n->attribute);
	free(n->operand);
	if (n->constant && !n->lent)
		tensor_free(n->constant);
	free(n->constant);
}

void tensor_graph_cut(struct tensor_graph *g, const struct tensor_graph_mark *to)
{
	while (g->nodes > to->nodes)
		free_node(&g->node[--g->nodes]);
	while (g->values > to->values)
		free(g->value[--g->values].name);
	while (g->outputs > to->outputs)
		free(g->output_name[--g->outputs]);
	g->inputs = to->inputs;
}

void tensor_graph_free(struct tensor_graph *g)
{
	tensor_graph_cut(g, &(struct tensor_graph_mark){ .values = 1 });
	free(g->name);
	free(g->value);
	free(g->node);
	free(g->input);
	free(g->output);
	free(g->output_name);
	tensor_graph_init(g);
}

/* ---- values */

static bool has_room(struct tensor_graph *g, uint32_t values, struct error *err)
{
	return (array_grow((void **)&g->value, &g->value_room, g->values + (size_t)values, sizeof *g->value) &&
	        array_grow((void **)&g->node, &g->node_room, g->nodes + (size_t)1, sizeof *g->node) &&
	        array_grow((void **)&g->input, &g->input_room, g->inputs + (size_t)1, sizeof *g->input) &&
	        array_grow((void **)&g->output, &g->output_room, g->outputs + (size_t)1, sizeof *g->output) &&
	        array_grow((void **)&g->output_name, &g->output_name_room, g->outputs + (size_t)1,
	                   sizeof *g->output_name)) ||
	       no_memory(err);
}

bool tensor_graph_name_value(struct tensor_graph *g, tensor_value v, const char *name, struct error *err)
{
	char *copy = name ? strdup(name) : NULL;

	if (name && !copy)
		return no_memory(err);
	free(g->value[v].name);
	g->value[v].name = copy;
	return true;
}

tensor_value tensor_graph_find(const struct tensor_graph *g, const char *name)
{
	for (uint32_t v = g->values; v-- > 1;)
		if (g->value[v].name && strcmp(g->value[v].name, name) == 0)
			return v;
	return 0;
}

tensor_value tensor_graph_input(struct tensor_graph *g, const char *name, int type, const struct shape *s,
                                struct error *err)
{
	if (!shape_fits(type, s, err) || !has_room(g, 1, err))
		return 0;
	const tensor_value v = g->values;
	g->value[v] = (struct tensor_value_info){ NULL, type, *s, VALUE_OUTSIDE };
	if (!tensor_graph_name_value(g, v, name, err))
		return 0;
	g->input[g->inputs++] = v;
	g->values++;
	return v;
}

bool tensor_graph_output(struct tensor_graph *g, const char *name, tensor_value v, struct error *err)
{
	char *copy = strdup(name);

	if (!copy || !has_room(g, 0, err)) {
		free(copy);
		return no_memory(err);
	}
	g->output_name[g->outputs] = copy;
	g->output[g->outputs++] = v;
	return true;
}

/* ---- nodes */

const struct attribute *tensor_node_attribute(const struct tensor_node *n, enum tensor_attribute name)
{
	for (uint32_t i = 0; i < n->attributes; i++)
		if (n->attribute[i].name == name)
			return &n->attribute[i];
	return NULL;
}

bool attribute_has(const struct attribute *a, unsigned axis)
{
	for (uint32_t i = 0; a && i < a->n; i++)
		if (a->whole[i] == (int64_t)axis)
			return true;
	return false;
}

int64_t tensor_node_whole(const struct tensor_node *n, enum tensor_attribute name, unsigned i, int64_t usual)
{
	const struct attribute *a = tensor_node_attribute(n, name);

	return a && i < a->n ? a->whole[i] : usual;
}

/* Whether an operation's row lists the attribute. optional: whether it may be left out. */
static bool lists(enum tensor_op op, const char *name, bool *optional)
{
	const size_t n = strlen(name);

	for (const char *p = tensor_ops[op].attributes; *p; p += *p == ' ') {
		const size_t length = strcspn(p, " ?");
		*optional = p[length] == '?';
		if (length == n && memcmp(p, name, n) == 0)
			return true;
		p += strcspn(p, " ");
	}
	return false;
}

static bool check_attributes(const struct tensor_node *n, struct error *err)
{
	const char *op = tensor_ops[n->op].name;
	bool optional;

	for (uint32_t i = 0; i < n->attributes; i++) {
		const char *name = tensor_attributes[n->attribute[i].name].name;
		if (!lists(n->op, name, &optional))
			return error_set(err, ERROR_ARGUMENT, "%s has no attribute %s", op, name);
		if (tensor_node_attribute(n, n->attribute[i].name) != &n->attribute[i])
			return error_set(err, ERROR_ARGUMENT, "%s has the attribute %s twice", op, name);
	}
	for (int a = 0; a < TENSOR_ATTRIBUTES; a++)
		if (lists(n->op, tensor_attributes[a].name, &optional) && !optional &&
		    !tensor_node_attribute(n, (enum tensor_attribute)a))
			return error_set(err, ERROR_ARGUMENT, "%s lacks the attribute %s", op,
			                 tensor_attributes[a].name);
	return true;
}

static bool check_operands(const struct tensor_graph *g, const struct tensor_node *n, struct error *err)
{
	const struct tensor_op_row *row = &tensor_ops[n->op];

	if (n->operands < row->min || n->operands > (row->max == TENSOR_MANY ? TENSOR_MAX_OPERANDS : row->max))
		return error_set(err, ERROR_ARGUMENT, "%s has %u operands, expected %s%u", row->name, n->operands,
		                 row->max == row->min     ? ""
		                 : n->operands < row->min ? "at least "
		                                          : "at most ",
		                 n->operands < row->min    ? row->min
		                 : row->max == TENSOR_MANY ? (unsigned)TENSOR_MAX_OPERANDS
		                                           : row->max);
	for (uint32_t i = 0; i < n->operands; i++)
		if (n->operand[i] == 0 || n->operand[i] >= g->values)
			return error_set(err, ERROR_ARGUMENT, "operand %u of %s is no value of this graph", i + 1,
			                 row->name);
	return true;
}

/* The graph's own copies of what the caller has given. */
static bool copy_node(struct tensor_node *to, const struct tensor_node *from, struct error *err)
{
	*to = *from;
	to->operand = malloc((from->operands + 1) * sizeof *to->operand);
	to->attribute = calloc(from->attributes + (size_t)1, sizeof *to->attribute);
	bool ok = to->operand && to->attribute;
	if (ok && from->operands)
		memcpy(to->operand, from->operand, from->operands * sizeof *to->operand);
	for (uint32_t i = 0; ok && i < from->attributes; i++) {
		struct attribute *a = &to->attribute[i];
		*a = from->attribute[i];
		a->whole = malloc((a->n + (size_t)1) * sizeof *a->whole);
		ok = a->whole != NULL;
		if (ok && a->n)
			memcpy(a->whole, from->attribute[i].whole, a->n * sizeof *a->whole);
	}
	if (ok)
		return true;
	to->constant = NULL; /* the caller's */
	free_node(to);
	return no_memory(err);
}

static tensor_value add(struct tensor_graph *g, const struct tensor_node *n, const struct inferred *found,
                        struct error *err)
{
	struct tensor_node own;

	for (uint32_t i = 0; i < found->results; i++)
		if (!shape_fits(found->type[i], &found->shape[i], err))
			return 0;
	if (!has_room(g, found->results, err) || !copy_node(&own, n, err))
		return 0;
	own.first = g->values;
	own.results = found->results;
	for (uint32_t i = 0; i < found->results; i++)
		g->value[g->values++] = (struct tensor_value_info){ NULL, found->type[i], found->shape[i], g->nodes };
	g->node[g->nodes++] = own;
	return own.first;
}

tensor_value tensor_graph_add(struct tensor_graph *g, enum tensor_op op, const tensor_value *operand, uint32_t operands,
                              const struct attribute *attribute, uint32_t attributes, struct error *err)
{
	const struct tensor_node n = { .op = op,
		                       .operands = operands,
		                       .attributes = attributes,
		                       .operand = (tensor_value *)(uintptr_t)operand,
		                       .attribute = (struct attribute *)(uintptr_t)attribute };
	struct inferred found = { .results = 0 };

	if (op == OP_constant) {
		error_set(err, ERROR_ARGUMENT, "a constant is made of a tensor");
		return 0;
	}
	if (!check_operands(g, &n, err) || !check_attributes(&n, err) || !tensor_infer(g, &n, &found, err))
		return 0;
	return add(g, &n, &found, err);
}

enum elements { COPIED, LENT, TAKEN };

static tensor_value add_constant(struct tensor_graph *g, const struct tensor *t, enum elements how, struct error *err)
{
	struct inferred found = { .type = { t->type }, .shape = { t->shape }, .results = 1 };
	struct tensor *own = calloc(1, sizeof *own);
	const struct tensor_node n = { .op = OP_constant, .constant = own, .lent = how == LENT };
	tensor_value v = 0;

	if (!own) {
		no_memory(err);
		return 0;
	}
	if (how != COPIED) {
		*own = *t;
		v = add(g, &n, &found, err);
	} else if (tensor_make_unset(own, t->type, &t->shape, err)) {
		if (own->data)
			memcpy(own->data, t->data, (size_t)tensor_bytes(t));
		v = add(g, &n, &found, err);
	}
	if (!v) {
		if (how == COPIED)
			tensor_free(own);
		free(own);
	}
	return v;
}

tensor_value tensor_graph_constant(struct tensor_graph *g, const struct tensor *t, struct error *err)
{
	return add_constant(g, t, COPIED, err);
}

tensor_value tensor_graph_take(struct tensor_graph *g, struct tensor *t, struct error *err)
{
	const tensor_value v = add_constant(g, t, TAKEN, err);

	if (!v)
		tensor_free(t);
	t->data = NULL;
	return v;
}

tensor_value tensor_graph_lend(struct tensor_graph *g, const struct tensor *t, struct error *err)
{
	return add_constant(g, t, LENT, err);
}

void tensor_graph_forget(struct tensor_graph *g)
{
	for (uint32_t i = 0; i < g->nodes; i++) {
		struct tensor_node *n = &g->node[i];
		if (!n->constant)
			continue;
		if (!n->lent)
			tensor_free(n->constant);
		n->constant->data = NULL;
	}
}

/* ---- short forms */

tensor_value graph_unary(struct tensor_graph *g, enum tensor_op op, tensor_value x, struct error *err)
{
	return x ? tensor_graph_add(g, op, &x, 1, NULL, 0, err) : 0;
}

tensor_value graph_binary(struct tensor_graph *g, enum tensor_op op, tensor_value x, tensor_value y, struct error *err)
{
	return x && y ? tensor_graph_add(g, op, (tensor_value[]){ x, y }, 2, NULL, 0, err) : 0;
}

tensor_value graph_convert(struct tensor_graph *g, tensor_value x, int type, struct error *err)
{
	int64_t to = type;

	if (!x || g->value[x].type == type)
		return x;
	return tensor_graph_add(g, OP_convert, &x, 1, &(struct attribute){ ATTRIBUTE_type, 1, &to, 0 }, 1, err);
}

static void wholes_of(const struct shape *s, int64_t out[TENSOR_MAX_RANK])
{
	for (unsigned i = 0; i < s->rank; i++)
		out[i] = (int64_t)s->dim[i];
}

tensor_value graph_reshape(struct tensor_graph *g, tensor_value x, const struct shape *s, struct error *err)
{
	int64_t shape[TENSOR_MAX_RANK];

	if (!x || shape_equal(&g->value[x].shape, s))
		return x;
	wholes_of(s, shape);
	return tensor_graph_add(g, OP_reshape, &x, 1, &(struct attribute){ ATTRIBUTE_shape, s->rank, shape, 0 }, 1,
	                        err);
}

tensor_value graph_transpose(struct tensor_graph *g, tensor_value x, const unsigned *axes, struct error *err)
{
	int64_t order[TENSOR_MAX_RANK];
	bool same = true;

	for (unsigned i = 0; x && i < g->value[x].shape.rank; i++) {
		order[i] = axes[i];
		same = same && axes[i] == i;
	}
	if (!x || same)
		return x;
	return tensor_graph_add(g, OP_transpose, &x, 1,
	                        &(struct attribute){ ATTRIBUTE_axes, g->value[x].shape.rank, order, 0 }, 1, err);
}

tensor_value graph_broadcast(struct tensor_graph *g, tensor_value x, const struct shape *s, const unsigned *axes,
                             struct error *err)
{
	int64_t shape[TENSOR_MAX_RANK], to[TENSOR_MAX_RANK];

	if (!x || shape_equal(&g->value[x].shape, s))
		return x;
	wholes_of(s, shape);
	for (unsigned i = 0; i < g->value[x].shape.rank; i++)
		to[i] = axes[i];
	const struct attribute a[] = { { ATTRIBUTE_shape, s->rank, shape, 0 },
		                       { ATTRIBUTE_axes, g->value[x].shape.rank, to, 0 } };
	return tensor_graph_add(g, OP_broadcast, &x, 1, a, 2, err);
}

tensor_value graph_broadcast_last(struct tensor_graph *g, tensor_value x, const struct shape *s, struct error *err)
{
	unsigned axes[TENSOR_MAX_RANK];

	if (x && g->value[x].shape.rank > s->rank) {
		error_set(err, ERROR_ARGUMENT, "%u dimensions cannot be broadcast to %u", g->value[x].shape.rank,
		          s->rank);
		return 0;
	}
	for (unsigned i = 0; x && i < g->value[x].shape.rank; i++)
		axes[i] = s->rank - g->value[x].shape.rank + i;
	return graph_broadcast(g, x, s, axes, err);
}

tensor_value graph_reduce(struct tensor_graph *g, enum tensor_op op, tensor_value x, const unsigned *axes, unsigned n,
                          struct error *err)
{
	int64_t which[TENSOR_MAX_RANK];

	for (unsigned i = 0; i < n; i++)
		which[i] = axes[i];
	return x ? tensor_graph_add(g, op, &x, 1, &(struct attribute){ ATTRIBUTE_axes, n, which, 0 }, 1, err) : 0;
}

tensor_value graph_full(struct tensor_graph *g, double number, int type, const struct shape *s, struct error *err)
{
	struct tensor t;
	tensor_value v = 0;

	if (!tensor_make(&t, type, &(struct shape){ 0 }, err))
		return 0;
	tensor_put(&t, 0, tensor_convert((union number){ .d = number }, JIT_TYPE_F64, tensor_wide_type(type)));
	v = tensor_graph_constant(g, &t, err);
	tensor_free(&t);
	return graph_broadcast(g, v, s, NULL, err);
}
