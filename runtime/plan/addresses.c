/* runtime/plan/addresses.c - the addresses of a graph's values while it is lowered.
 *
 * Owns: which value each group of bytes holds (live.h), and whether as int8 blocks too. A value may be made in the
 * place of another one, which no later node may read.
 */
#include <assert.h>

#include "runtime/plan/lower.h"

void *plan_at(const struct plan_builder *b, graph_ref v, enum plan_form form)
{
	if (!v)
		return NULL;
	if (form <= FORM_SCALES && b->of[v].given[form])
		return b->of[v].given[form];
	const uint64_t at = b->buf->layout->at[v][form];
	return at == PLAN_NOWHERE ? NULL : b->buf->values + at;
}

float *plan_floats(const struct plan_builder *b, graph_ref v) { return plan_at(b, v, FORM_FLOATS); }

struct activations plan_operand(const struct plan_builder *b, graph_ref v)
{
	const struct graph_node *by = graph_producer(b->g, v);
	const bool inside = b->of[v].inside;

	return (struct activations){
		.x = plan_floats(b, inside ? by->in[IN_X] : v),
		.q = plan_at(b, v, FORM_INT8),
		.s = plan_at(b, v, FORM_SCALES),
		.interleaved = plan_at(b, v, FORM_INTERLEAVED),
		.interleaved_q = plan_at(b, v, FORM_INTERLEAVED_INT8),
		.interleaved_s = plan_at(b, v, FORM_INTERLEAVED_SCALES),
		.norm = inside ? graph_vector_of(b->g, by->in[IN_W]) : NULL
	};
}

static struct plan_value *slot_of(const struct plan_builder *b, graph_ref v) { return &b->of[b->buf->layout->same[v]]; }

void plan_put(struct plan_builder *b, graph_ref v, uint32_t node)
{
	struct plan_value *slot = slot_of(b, v);
	const struct graph_value *old = graph_value(b->g, slot->holds);

	assert(!slot->holds || !old->users || old->last_user <= node);
	slot->holds = v;
	plan_dataflow_put(b, v);
}

bool plan_has_int8(const struct plan_builder *b, graph_ref v) { return slot_of(b, v)->holds_int8 == v; }

void plan_put_int8(struct plan_builder *b, graph_ref v)
{
	assert(plan_at(b, v, FORM_INT8));
	slot_of(b, v)->holds_int8 = v;
}
