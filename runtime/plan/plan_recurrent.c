/* runtime/plan/plan_recurrent.c - the steps of layers that keep a state instead of keys and values.
 *
 * Owns: where these ops find the state before the pass, and leave the one behind it (plan_set_state()): a run reads one
 * and writes another, so that the one before stays for who goes back.
 */
#include "runtime/plan/plan_build.h"

/* An op's two slots of a state, which begins so far in that of all layers. */
static void state_slots(struct plan_builder *b, uint64_t *before, uint64_t *behind, uint64_t offset)
{
	plan_changing_slot(b, before, PLAN_STATE_BEFORE, offset);
	plan_changing_slot(b, behind, PLAN_STATE_BEHIND, offset);
}

/* The convolution of a layer; returns its argument slots, of which the caller fills those of a gated one. */
static uint64_t *convolve(struct plan_builder *b, const struct weights_layer *l, uint32_t layer, const float *in,
                          float *out, uint32_t flags, enum key_act act)
{
	const struct model_recurrent *r = &b->spec->recurrent;
	struct key key = plan_key(b, KEY_CONV);

	key.k = r->channels;
	key.rows = r->taps;
	key.flags = flags;
	key.act = (uint8_t)act;
	uint64_t *a = plan_add_op(b, &key, 0, r->channels / 32);
	a[CONV_X] = plan_address(in);
	a[CONV_WEIGHT] = plan_address(l->taps);
	a[CONV_OUT] = plan_address(out);
	a[CONV_COLUMNS] = b->n;
	state_slots(b, &a[CONV_STATE_IN], &a[CONV_STATE_OUT], plan_state_offset(b->spec, layer));
	plan_last_op(b)->serial = b->n == 1 && r->channels <= 4096;
	return a;
}

void step_short_convolution(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                            struct activations in)
{
	const struct plan_buffers *f = b->buf;
	uint32_t n = b->n;

	step_matmul(b, &(struct matmul){ .w = &l->conv_b, .in = in, .out = f->m, .tokens = n });
	step_matmul(b, &(struct matmul){ .w = &l->conv_c, .in = in, .out = f->m2, .tokens = n });
	step_matmul(b, &(struct matmul){ .w = &l->conv_x, .in = in, .out = f->m3, .tokens = n });
	plan_barrier(b);
	uint64_t *a = convolve(b, l, layer, f->m, f->ao, KEY_GATED, ACT_NONE);
	a[CONV_X2] = plan_address(f->m3);
	a[CONV_GATE] = plan_address(f->m2);
	plan_barrier(b);
}
