/* runtime/plan/arch_llama.c - the layer of Llama, and of the families that differ from it by what tensors they have, by
 * scales, and by what rotates.
 *
 * A form of layer is this function: its steps (plan_build.h), in their order. Biases, norms, scales, gates and windows
 * need no word here: a step does what there are tensors for, and what the model's description says.
 */
#include "runtime/plan/plan_build.h"

/* Whether one of the matrices `first` to `last` that a layer has reads its input as int8. */
static bool any_int8(const struct plan_builder *b, const struct weights_layer *l, enum matrix_slot first,
                     enum matrix_slot last)
{
	bool any = false;

	for (enum matrix_slot i = first; i <= last; i++)
		any = any || (l->matrix[i].packed && plan_wants_int8(b, &l->matrix[i]));
	return any;
}

/* What else reads the mixer's input, behind the mixer: nothing, what reads f32, or what reads int8. */
enum read_again { NOT_AGAIN, AGAIN, AGAIN_INT8 };

static struct activations mixer_input(struct plan_builder *b, const struct weights_layer *l, enum read_again again,
                                      enum matrix_slot first, enum matrix_slot last)
{
	return again == NOT_AGAIN ? step_input_of(b, l, l->attn_norm, first, last)
	                          : step_input(b, l->attn_norm, again == AGAIN_INT8 || any_int8(b, l, first, last));
}

/* Each returns what it read: the stream behind the layer's norm. */
static struct activations mix_by_attention(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                                           enum read_again again)
{
	struct activations in = mixer_input(b, l, again, MATRIX_q_gate, MATRIX_v);

	step_queries_keys_values(b, l, in);
	step_rotate_and_store(b, l, layer);
	step_attention(b, l, layer);
	if (l->q_gate.packed)
		step_gate_attention(b);
	step_attention_output(b, l, layer);
	return in;
}

static struct activations mix_by_convolution(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                                             enum read_again again)
{
	struct activations in = mixer_input(b, l, again, MATRIX_conv_b, MATRIX_conv_x);

	step_short_convolution(b, l, layer, in);
	step_mixer_output(b, l, &l->conv_out);
	return in;
}

static struct activations mix_by_delta_rule(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                                            enum read_again again)
{
	struct activations in = mixer_input(b, l, again, MATRIX_delta_qkv, MATRIX_delta_a);

	step_delta_rule(b, l, layer, in);
	step_mixer_output(b, l, &l->delta_out);
	return in;
}

static struct activations mix_by_scan(struct plan_builder *b, const struct weights_layer *l, uint32_t layer,
                                      enum read_again again)
{
	struct activations in = mixer_input(b, l, again, MATRIX_scan_z, MATRIX_scan_dt);

	step_selective_scan(b, l, layer, in);
	step_mixer_output(b, l, &l->scan_out);
	return in;
}

static struct activations (*const mix_by[])(struct plan_builder *, const struct weights_layer *, uint32_t,
                                            enum read_again) = {
	[MIXER_ATTENTION] = mix_by_attention,
	[MIXER_CONV] = mix_by_convolution,
	[MIXER_DELTA] = mix_by_delta_rule,
	[MIXER_SCAN] = mix_by_scan
};

void arch_llama_layer(struct plan_builder *b, const struct weights_layer *l, uint32_t layer)
{
	bool int8_ffn = l->router.packed ? plan_experts_want_int8(b, l) : any_int8(b, l, MATRIX_gate, MATRIX_up);
	enum model_mixer mixer = model_layer_mixer(b->spec, layer);
	struct activations in = { 0 };

	if (mixer != MIXER_NONE)
		in = mix_by[mixer](b, l, layer, !b->spec->parallel ? NOT_AGAIN : int8_ffn ? AGAIN_INT8 : AGAIN);
	if (b->spec->one_part && mixer != MIXER_NONE)
		return;
	bool beside = l->router.packed && b->spec->experts_beside;
	if (!b->spec->parallel && !beside)
		in = l->router.packed ? step_input(b, l->ffn_norm, int8_ffn)
		                      : step_input_of(b, l, l->ffn_norm, MATRIX_gate, MATRIX_up);
	if (beside) {
		step_experts_beside(b, l);
	} else if (l->router.packed) {
		step_experts(b, l, in);
	} else {
		step_gate_and_up(b, l, in);
		step_down(b, l);
	}
	step_layer_end(b, l, layer);
}
