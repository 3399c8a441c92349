/* graph/vjp.c - gradients: nodes from the last to the first, each of which hands what its results count to its
 * operands.
 */
#include "graph/transform_rules.h"

static transform_rule *rule_of(enum tensor_op op) { return transform_rules[op].vjp; }

bool vjp_give(struct transform *t, const struct tensor_node *n, unsigned i, tensor_value v)
{
	tensor_value *d = &t->d[n->operand[i]];

	if (!v)
		return false;
	*d = *d ? put_two(t, OP_add, *d, v) : v;
	return *d != 0;
}

static bool enter_cotangents(struct transform *t)
{
	for (uint32_t i = 0; i < t->from->outputs; i++) {
		const tensor_value v = t->from->output[i];
		if (tensor_is_float(t->from->value[v].type) && !transform_input(t, "ct", t->from->output_name[i], v))
			return false;
	}
	return true;
}

/* A value that is several outputs has the sum. */
static bool seed(struct transform *t)
{
	uint32_t next = t->from->inputs;

	for (uint32_t i = 0; i < t->from->outputs; i++) {
		const tensor_value v = t->from->output[i];
		if (!tensor_is_float(t->from->value[v].type))
			continue;
		const tensor_value ct = t->to->input[next++];
		t->d[v] = t->d[v] ? put_two(t, OP_add, t->d[v], ct) : ct;
		if (!t->d[v])
			return false;
	}
	return true;
}

static bool go_back(struct transform *t)
{
	for (uint32_t i = t->from->nodes; i-- > 0;) {
		const struct tensor_node *n = &t->from->node[i];
		bool flows = false;
		for (uint32_t k = 0; k < n->results; k++)
			flows = flows || (t->d[n->first + k] && t->active[n->first + k]);
		if (flows && !rule_of(n->op)(t, n))
			return false;
	}
	return true;
}

static bool put_gradients(struct transform *t, const tensor_value wrt[], uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct tensor_value_info *v = &t->from->value[wrt[i]];
		const tensor_value d = t->d[wrt[i]] ? t->d[wrt[i]] : put_zeros(t, v->type, &v->shape);
		if (!d || !transform_output(t, "grad", transform_input_name(t->from, wrt[i]), d))
			return false;
	}
	return true;
}

bool tensor_graph_vjp(struct tensor_graph *to, const struct tensor_graph *from, const tensor_value wrt[], uint32_t n,
                      bool with_outputs, struct error *err)
{
	struct transform t = { .name = "vjp", .to = to, .from = from, .saves = true, .err = err };
	const bool ok = transform_open(&t) && transform_mark(&t, wrt, n, rule_of) && transform_copy_inputs(&t) &&
	                enter_cotangents(&t) && transform_copy_nodes(&t) && seed(&t) && go_back(&t) &&
	                (!with_outputs || transform_outputs(&t)) && put_gradients(&t, wrt, n);

	transform_close(&t);
	return ok;
}
