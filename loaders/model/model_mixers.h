/* loaders/model/model_mixers.h - what mixes the tokens of a layer in place of attention or beside it: which mixers
 * there are, and what a model's description says of them. model.h includes it.
 */
#ifndef LOADERS_MODEL_MIXERS_H
#define LOADERS_MODEL_MIXERS_H

#include <stdbool.h>
#include <stdint.h>

/* Mixers of tokens that keep a state instead of keys and values. X(id, name, whether it has one of a delta rule's form
 * behind that of its convolution): a short convolution over time, between two gates; the gated delta rule; the
 * selective scan (Mamba 2), and that of channels (Mamba 1). Functions, slots and groups of tensors that end in the id
 * or the name follow from a row: who reads what files say, as gguf_read_scan() and hf_read_scan() do; its nodes,
 * arch_scan(); the matrix behind them, scan_out. */
#define MODEL_MIXERS(X) \
	X(CONV, conv, false) \
	X(DELTA, delta, true) \
	X(SCAN, scan, true) \
	X(CHANNEL, channel, true)

/* What mixes the tokens of a layer. */
enum model_mixer {
	MIXER_ATTENTION,
#define X(id, name, rule) MIXER_##id,
	MODEL_MIXERS(X)
#undef X
		MIXER_NONE /* nothing: of one_part, a feed-forward layer */
};

/* The layers that keep a state instead of keys and values. All 0: there are none. A session's fingerprint has all of
 * the first list, and of the second what is not 0. The sizes from key_heads to value_dim are those of the delta rule;
 * of the selective scan: groups of heads, heads, rows of a head's state, a head's values. */
/* clang-format off */
#define MODEL_RECURRENT(X) \
	X(uint32_t, taps) /* of the convolution: so many tokens, the present one among them */ \
	X(uint32_t, channels) /* it goes over */ \
	X(uint32_t, key_heads) \
	X(uint32_t, value_heads) \
	X(uint32_t, key_dim) \
	X(uint32_t, value_dim) \
	X(bool, tiled) /* value head h has key head h % key_heads, else h / (value_heads / key_heads) */
#define MODEL_RECURRENT_MORE(X) \
	X(float, floor) /* of the selective scan: the least step; 0: none */ \
	X(float, ceiling) /* the same: the greatest */ \
	X(uint32_t, step_rank) /* of that of channels: steps go through a vector of so many numbers */ \
	X(bool, doubled) /* of the delta rule: corrections are twice as large */
/* clang-format on */

struct model_recurrent {
#define X(type, name) type name;
	MODEL_RECURRENT(X)
	MODEL_RECURRENT_MORE(X)
#undef X
};

/* Where the norm of the selective scan stands, beside its gate. */
enum model_scan_norm { SCAN_NORM_LAST, SCAN_NORM_FIRST, SCAN_NORM_NONE };

/* Factors of Falcon H1: of attention's result, of the scan's result, gate and steps, of the feed-forward layer's gate
 * and result. 0: none. */
#define MODEL_FACTORS(X) X(attention) X(scan) X(scan_gate) X(scan_steps) X(ffn_gate) X(ffn)
struct model_factors {
#define X(name) float name;
	MODEL_FACTORS(X)
#undef X
};

#endif
