/* graph/jvp.c - derivatives from the inputs forwards. */
#include "graph/transform_rules.h"

static transform_rule *rule_of(enum tensor_op op) { return transform_rules[op].jvp; }

static bool go_forwards(struct transform *t)
{
	for (uint32_t i = 0; i < t->from->nodes; i++) {
		const struct tensor_node *n = &t->from->node[i];
		bool flows = false, active = false;
		for (uint32_t k = 0; k < n->operands; k++)
			flows = flows || t->d[n->operand[k]];
		for (uint32_t k = 0; k < n->results; k++)
			active = active || t->active[n->first + k];
		if (flows && active && !rule_of(n->op)(t, n))
			return false;
	}
	return true;
}

static bool put_tangents(struct transform *t)
{
	for (uint32_t i = 0; i < t->from->outputs; i++) {
		const tensor_value v = t->from->output[i];
		const struct tensor_value_info *info = &t->from->value[v];
		if (!tensor_is_float(info->type))
			continue;
		const tensor_value d = t->d[v] ? t->d[v] : put_zeros(t, info->type, &info->shape);
		if (!d || !transform_output(t, "t", t->from->output_name[i], d))
			return false;
	}
	return true;
}

static bool enter_inputs(struct transform *t, const tensor_value wrt[], uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!(t->d[wrt[i]] = transform_input(t, "t", transform_input_name(t->from, wrt[i]), wrt[i])))
			return false;
	return true;
}

bool tensor_graph_jvp(struct tensor_graph *to, const struct tensor_graph *from, const tensor_value wrt[], uint32_t n,
                      bool with_outputs, struct error *err)
{
	struct transform t = { .name = "jvp", .to = to, .from = from, .err = err };
	const bool ok = transform_open(&t) && transform_mark(&t, wrt, n, rule_of) && transform_copy_inputs(&t) &&
	                enter_inputs(&t, wrt, n) && transform_copy_nodes(&t) && go_forwards(&t) &&
	                (!with_outputs || transform_outputs(&t)) && put_tangents(&t);

	transform_close(&t);
	return ok;
}
