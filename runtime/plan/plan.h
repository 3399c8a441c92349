/* runtime/plan/plan.h - one pass through the model as data: ops with keys, arguments and barriers.
 *
 * Owns: the order of the kernels of a forward pass for a given number of tokens, and where each finds its operands. A
 * plan is built once per (tokens, logits) and run many times; only the position changes between runs. It knows no
 * device: the reference device interprets it, the CPU runs it as one parallel region.
 */
#ifndef RUNTIME_PLAN_H
#define RUNTIME_PLAN_H

#include <stdatomic.h>

#include "jit/key.h"
#include "jit/target.h"
#include "kernels-templates/templates.h"
#include "loaders/model/model.h"
#include "runtime/plan/memory.h"
#include "runtime/plan/weights.h"

struct cut_carried;
struct cut_rows;
struct plan_layout;

/* The memory that the passes of a session work in, for up to so many tokens. */
struct plan_buffers {
	uint32_t tokens;
	/* What the host fills in before each run: plan_ids_bytes(), lists of `tokens` each (enum graph_ids), of which
	 * encoders alone read those behind the first; and plan_angles_bytes() each. */
	int32_t *ids;
	float *cos, *sin;
	/* What the pass computes on the way: the values of its graph, as the layout says (live.h). */
	uint8_t *values;
	const struct plan_layout *layout;
	float *logits;
	uint32_t logit_tokens; /* [logit_tokens][kp(vocab)] */
	float *greatest;       /* [logit_tokens][kp(vocab) / 32], where plan_keeps_greatest() */
	uint8_t *records;      /* plan_record_bytes() each of record_tokens, for plans whose context is in parts */
	uint32_t record_tokens;
	struct adapt_tile *adapt_tiles; /* [2 * tokens], and [ADAPT_SETS]: of plans that adapt, what the host fills in
	                                   before each run; NULL of layouts that are not adapted */
	struct adapt_set *adapt_sets;
	float *adapt_factors, *adapt_whole; /* [tokens][kp(hidden)] each: of the embedding's row, and what is added */
	float *adapt_tokens; /* [tokens][kp(ranks)]: a token's row of its adapters' embeddings, times their scales */
	float *shown; /* of plans that show: [levels of pictures' features][tokens][kp(hidden)], which the host fills in
	                 before each run */
	uint64_t context;       /* with records of several tokens, or dataflow: what they are for */
	uint8_t *dataflow;      /* dataflow_room bytes, for plans whose kernels await each other's results */
	uint64_t dataflow_room; /* plan_dataflow_bytes() of the most tokens */
};
uint64_t plan_ids_bytes(uint32_t tokens);
/* The rows of embeddings of positions for n tokens of a text from `position` on, which lie in the lists from `first`
 * on; nothing where a model has none. */
void plan_fill_positions(const struct plan_buffers *buf, const struct model_spec *s, uint32_t first, uint64_t position,
                         uint32_t n);
uint64_t plan_angles_bytes(const struct model_spec *s, uint32_t tokens);

/* Bytes of a token's records of a context of so many positions (docs/kernel-templates.md, KEY_ATTENTION). */
uint64_t plan_record_bytes(const struct model_spec *s, uint64_t context);
/* Of how many tokens, up to so many, a device that is none of threads should have them; at least 1. */
uint32_t plan_record_tokens(const struct model_spec *s, uint64_t context, uint32_t tokens);

/* Bytes of what a pass of so many tokens hands from kernel to kernel, which may be written once in a run: before it,
 * every word there must be IR_EMPTY (jit/ir/lanes.h). A multiple of 256. 0: no such plan is built of the model. */
enum { PLAN_DATAFLOW_MAX = 16 /* tokens */ };
uint64_t plan_dataflow_bytes(const struct model_spec *s, uint64_t context, uint32_t tokens);
/* The most tokens, up to so many, whose passes may be dataflow passes; at least 1. */
uint32_t plan_dataflow_tokens(const struct model_spec *s, uint64_t context, uint32_t tokens);

/* How a session's keys and values are laid out: pages of NUMERICS_CHUNK positions, in each the layers one after the
 * other. Where pages lie, a table says in each run (plan_sequence). */
struct plan_cache {
	enum dtype type;
	uint64_t page_bytes;
	/* Layers with a window may have pages of their own, for the last positions alone; the others' pages are then
	 * without them. 0: all are in the same pages. */
	uint64_t window_page_bytes;
};
/* Whether the layer has keys and values. */
static inline bool plan_layer_attends(const struct model_spec *s, uint32_t layer)
{
	return model_layer_mixer(s, layer) == MIXER_ATTENTION || s->attends_beside;
}
/* Whether it keeps them itself. */
static inline bool plan_layer_keeps(const struct model_spec *s, uint32_t layer)
{
	return plan_layer_attends(s, layer) && model_sizes_of(s, layer).kv_layer == layer;
}
/* The state that the other layers keep together, one after the other: its bytes, and where a layer's begins; behind the
 * inputs of its convolution is that of its delta rule. 0: there are none. */
uint64_t plan_state_bytes(const struct model_spec *s);
uint64_t plan_state_offset(const struct model_spec *s, uint32_t layer);
uint64_t plan_conv_offset(const struct model_spec *s, uint64_t channel); /* where there those of channels from this
                                                                           one on begin */
uint64_t plan_conv_bytes(const struct model_spec *s);                    /* the inputs of a layer's convolution */
/* Whether the layer attends to a window of positions. */
static inline bool plan_layer_slides(const struct model_spec *s, uint32_t layer)
{
	return s->sliding_window && plan_layer_attends(s, layer) &&
	       (!s->layer_is_sliding || s->layer_is_sliding[layer]);
}
/* Bytes of a layer's keys in one page, and of its values behind them; 0: it attends to another layer's. */
uint64_t plan_cache_keys(enum dtype type, const struct model_spec *s, uint32_t layer);
/* Both together; of latent attention there are no values. */
uint64_t plan_cache_bytes(enum dtype type, const struct model_spec *s, uint32_t layer);
/* Where a layer's keys begin in a page. Layers of an encoder have them in one place: its passes are over whole texts,
 * and nobody reads a layer's keys when it is done. */
uint64_t plan_cache_offset(const struct plan_cache *kv, const struct model_spec *s, uint32_t layer);

/* The passes that plans are made for: of 1 to PLAN_TOKENS_MAX tokens, with no logits, with those of the last
 * token, or with the final hidden states instead: all tokens after the final norm (plan_layout.normed). Passes of up to
 * PLAN_ALL_LOGITS_MAX tokens may have the logits of all. */
enum { PLAN_TOKENS_MAX = 1024, PLAN_ALL_LOGITS_MAX = 32 };
/* Passes over texts that are encoded: of so many tokens together, where nobody asks for more, and of a text as long as
 * a context that nobody asks to be longer. */
enum { PLAN_ENCODED_MIN = 512, PLAN_ENCODED_MAX = 8192 };
enum plan_logits { PLAN_NO_LOGITS, PLAN_LAST_LOGITS, PLAN_ALL_NORMED, PLAN_ALL_LOGITS };

/* How the attention of a pass of one token goes through its context: a unit goes through all that a head of keys sees;
 * the same, but what the third way needs is among the plan's kernels, so that none is made when the context has grown;
 * or in parts, which are merged behind one barrier more. With the second and third way passes of a few tokens are in
 * parts, too, on devices that are none of threads, where there is room for their records (record_tokens). */
enum plan_context { PLAN_WHOLE, PLAN_PARTS_TO_COME, PLAN_PARTS };
/* In parts from this position on, where there are more workers than heads and a stage more has its price. */
enum { PLAN_PARTS_FROM = 512 };

/* Whether plans of PLAN_LAST_LOGITS also leave the greatest of each 32 logits; +inf where one of them is not finite.
 * The host then need not read all logits, which on a card takes longer than many a kernel. */
bool plan_keeps_greatest(const struct model_spec *s, const struct target *target);

struct tune;
struct registry;
/* What decides the keys of a plan besides model, tokens, logits and KV type: key_list.c goes through every value of it.
 */
struct plan_options {
	const struct target *target;
	struct tune *tune;     /* which schedules kernels have; NULL: the usual ones */
	struct registry *only; /* ... where that has them; NULL: any may be made */
	bool f32_activations;
	bool bounded; /* the numerics class BOUNDED may be used where there are kernels of it */
	enum plan_context context;
	bool dataflow; /* a pass of a few tokens is a dataflow pass, where it can be (device.h: awaits) */
	bool adapts;   /* its tokens may have adapters; else none has */
	bool shows;   /* its tokens are parts of a picture: rows of plan_buffers.shown are in the place of embeddings */
	bool general; /* every token goes through the kernels of one token, in turn; these a session has anyway */
};

struct plan_kernel {
	struct key key;
	void *handle;
}; /* handle: the device's, set by its prepare */

struct plan_op {
	uint32_t kernel, n_args;
	int64_t begin, end; /* work units */
	uint64_t *arg;
	bool barrier;         /* everything before must be finished before what follows */
	bool awaits;          /* it waits by itself for what it reads of others, so it needs none in front of it */
	bool uneven;          /* units differ in cost: threads take them one by one */
	bool parts;           /* the cost of units is unknown: each thread's share is cut into parts of equal length,
	                         which others may take; it is alone in its stage */
	uint32_t unit_cost;   /* of a unit, beside those of the other ops of its stage */
	bool serial;          /* so little that sharing it out takes longer than doing it */
	uint32_t fused_units; /* not 0: so many units belong to one step of a chain, together with the units of its
	                      neighbours of the same step; a step waits for no other, whatever `barrier` says between
	                      the chain's ops. Devices may ignore it. */
	/* Of a user's kernel, of which no template knows it: bytes that the op moves, and operations that it does. */
	double moves, operations;
};

/* What a slot holds in a run: the first token's position; the table of pages, or of those of layers with a window; an
 * address in the states before or behind the run. */
enum plan_change { PLAN_POSITION, PLAN_PAGES, PLAN_WINDOW_PAGES, PLAN_STATE_BEFORE, PLAN_STATE_BEHIND };
struct plan_changing {
	uint64_t *slot, offset; /* offset: from where the state of all layers begins */
	enum plan_change what;
	uint32_t sequence;
};
/* A sequence's tokens in a pass, which lie side by side; rows: of the last so many of them something is wanted. */
struct plan_span {
	uint32_t first, tokens, rows;
};
/* Whose tokens they are in a run. */
struct plan_sequence {
	uint64_t position;
	const void *pages, *window_pages; /* tables in the device's memory: an address for each NUMERICS_CHUNK positions
	                                     up to the last token's, and one more that is readable */
	const uint8_t *before; /* the state that the run goes on from, and where it leaves its own: plan_state_bytes()
	                          each */
	uint8_t *behind;
};

enum { PLAN_ARGS_MAX = 24 /* slots of an op; those of the next one begin as many behind */ };

struct plan {
	uint32_t tokens;
	enum plan_logits logits;
	struct plan_kernel *kernel;
	size_t n_kernels;
	struct plan_op *op;
	size_t n_ops;
	uint64_t *args;
	size_t n_args; /* all ops' slots */
	uint32_t *stage;
	size_t n_stages; /* ops stage[i] .. stage[i + 1] - 1 have no barrier between them or are a chain;
	                    stage[n_stages] is n_ops */
	uint32_t *section;
	size_t n_sections;      /* ops section[i] .. section[i + 1] - 1 are the embedding, a layer, or the logits;
	                           section[n_sections] is n_ops */
	void *prepared;         /* the device's */
	uint32_t static_share;  /* what its runs have taught a device about handing units out (device.h); 0: nothing yet
	                         */
	_Atomic uint64_t *took; /* by op: nanoseconds of all workers together; NULL: nobody asks (tuner.h) */
	uint32_t profile_at;    /* profile.h's number of the first kernel, where there is a profile */
	struct plan_changing *changing;
	size_t n_changing; /* argument slots that differ from run to run */
	/* The dataflow region: every argument that points in there does so in each run. 0 bytes: they do not. */
	const uint8_t *dataflow;
	uint64_t dataflow_bytes, dataflow_room; /* dataflow_room: bytes that are there for this and other plans */
	/* Where its tokens may have adapters: tiles of a sequence's columns, whose `set` is the sequence's number. */
	struct adapt_tile *adapt_tile;
	uint32_t n_adapt_tiles;
	uint64_t adapted;            /* the version of the model's adapters that it was built for (adapters.h) */
	bool lacks_greatest;         /* its logits are no single product, and nobody keeps the greatest of them */
	struct cut_carried *carried; /* of a plan that several ranks run: both cuts of this one's part (cut.h) */
	struct cut_rows *rows;       /* the same where they split every layer (cut_rows.h) */
	bool one_sequence; /* it has ops that know of no more sequences, and must not run if it was built for several */
};

/* False: err. The plan borrows everything. */
bool plan_build(struct plan *p, const struct model_spec *spec, const struct weights *w,
                const struct plan_buffers *buffers, const struct plan_cache *kv, uint32_t tokens,
                enum plan_logits logits, const struct plan_options *opt, struct error *err);
/* A plan over the tokens of several sequences; the logits are of all rows, in the order of the spans. Its numerics are
 * exact. normed: it ends with the final norm of those rows instead (PLAN_ALL_NORMED). */
bool plan_build_joint(struct plan *p, const struct model_spec *spec, const struct weights *w,
                      const struct plan_buffers *buffers, const struct plan_cache *kv, const struct plan_span *span,
                      uint32_t spans, bool normed, const struct plan_options *opt, struct error *err);
/* The same as plan_build() for a plan that is never run, for its keys and ops: it has no memory to work on. w may come
 * from weights_describe(). */
bool plan_outline(struct plan *p, const struct model_spec *spec, const struct weights *w, enum dtype kv,
                  uint32_t tokens, enum plan_logits logits, const struct plan_options *opt, struct error *err);
/* That of two sequences which have a token each. */
bool plan_outline_pair(struct plan *p, const struct model_spec *spec, const struct weights *w, enum dtype kv,
                       const struct plan_options *opt, struct error *err);
/* True if a pass of so many tokens, with the logits of the last, may need kernels that no pass recorded in *seen needs.
 * It then records the pass. *seen is all zero at first, and belongs to one model and one set of options. For lists of
 * kernels: of some thousand passes a few dozen are new. */
enum { PLAN_SIZES_MAX = 4 }; /* of heads; with more of them every pass is new */
struct plan_widths {
	uint64_t matmul[DTYPE_COUNT][3], experts, attention[PLAN_SIZES_MAX];
	struct {
		uint32_t head_dim, kv_heads, heads;
	} of[PLAN_SIZES_MAX];
};
bool plan_has_new_widths(struct plan_widths *seen, const struct model_spec *spec, const struct weights *w,
                         uint32_t tokens, const struct plan_options *opt);
/* Before a run: fills the slots that differ from run to run; s: of each span, in their order. */
void plan_set_sequences(struct plan *p, const struct plan_sequence *s);
void plan_free(struct plan *p);

#endif
