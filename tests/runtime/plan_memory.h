/* tests/runtime/plan_memory.h - what the buffers of a plan hold, byte by byte, while its launches are walked through
 * (plan_check.h). */
#ifndef TESTS_PLAN_MEMORY_H
#define TESTS_PLAN_MEMORY_H

#include "tests/runtime/plan_space.h"

/* What may lie in a buffer. Layers count from 0; the residual stream has two states a layer, before attention and
 * behind it. */
enum value {
	NOTHING,
	STREAM,
	ATTENTION_INPUT,
	QUERIES,
	KEYS,
	VALUES,
	ROTATED,
	CACHED_KEYS,
	CACHED_VALUES,
	ATTENDED,
	FFN_INPUT,
	GATE_ALONE,
	GATED,
	OUTPUT_INPUT,
	LOGITS,
	/* of mixtures of experts: the router's logits and choice, slots in the order of their experts, what lies slot
	 * by slot, the shared expert, and the stream before that is added */
	ROUTED,
	CHOSEN,
	SHARES,
	SLOTS,
	GROUPS_OF_SLOTS,
	SLOT_INPUT,
	SLOT_GATE,
	SLOT_GATED,
	SLOT_RESULT,
	SHARED_LOGIT,
	SHARED_RESULT,
	STREAM_HALF,
	/* of latent attention: queries of a low rank, behind their norm, what rotates of the heads' queries and what
	 * does not, and what attention leaves of the latent vectors */
	LOW_QUERIES,
	LOW_INPUT,
	ROTATED_PART,
	REST_OF_QUERIES,
	ATTENDED_LATENT,
	/* of layers with a state: what goes into the convolution, what its input and its result are multiplied by, what
	 * comes out of it, the rates of the heads, the rule's result, and that behind its norm or times its gate */
	MIX_INPUT,
	MIX_FACTOR,
	MIX_GATE,
	CONVOLVED,
	RATE_A,
	RATE_B,
	MIXED,
	NORMED_MIX,
	GATED_MIX,
	/* what is scaled, or goes through a norm, before it is the stream's: embeddings, the results of both halves of
	 * a layer, of experts, and of the shared one; logits before they are scaled, and before they are bounded */
	EMBEDDED,
	MIXER_RESULT,
	FFN_RESULT,
	EXPERTS_RESULT,
	SHARED_SUM,
	LOGITS_UNSCALED,
	LOGITS_UNBOUNDED,
	/* of a gate beside the queries: attention's result before it */
	GATE_OF_QUERIES,
	UNGATED,
	/* of norms of whole rows: queries and keys before these */
	BARE_QUERIES,
	BARE_KEYS,
	/* of what layers get of a token's own: both of its parts, and all layers' shares; the stream before that is
	 * added, the gate and its product with it, what comes of that, and the stream before its scale */
	INPUT_PRODUCT,
	INPUT_ROW,
	LAYER_SHARES,
	STREAM_BARE,
	INPUT_GATE,
	INPUT_GATED,
	INPUT_RESULT,
	STREAM_UNSCALED,
	/* of experts beside a feed-forward layer: what the router and they read, the layer's result, that behind its
	 * norm, and with the experts' */
	ROUTER_INPUT,
	EXPERTS_INPUT,
	DENSE_RESULT,
	DENSE_ALONE,
	BOTH_RESULTS,
	/* of a context in parts: what is left of a chunk, head by head; one chunk stands for all */
	CHUNK_RECORDS
};
enum form {
	PLAIN_FLOATS,
	PLAIN_BYTES,
	PLAIN_SCALES,
	PANEL_FLOATS,
	PANEL_BYTES,
	PANEL_SCALES,
	NARROWED,
	CACHED,
	RECORDED
};

/* of: the layer, or the stream's state. stride: of a token; origin: where token 0 of the pass would lie. Turned: width,
 * panel and flags as in the key of the launch that turned it;
 * phase: of the token at which tiles begin, modulo the width. Narrowed: flags is the type. Slots: flags is 1 when they
 * are sorted. */
struct content {
	uint32_t value, of, form, width, panel, flags, phase, zero;
	uint64_t stride, origin;
};
_Static_assert(sizeof(struct content) == 48, "contents are compared as bytes");

struct segment {
	uint64_t begin, end;
	struct content content;
};
enum { PLAN_SEGMENTS_MAX = 400 };
struct plan_memory {
	const struct plan_space *s;
	struct held {
		struct segment segment[PLAN_SEGMENTS_MAX];
		unsigned n;
	} held[PLAN_AREAS_MAX];
};

void plan_memory_clear(struct plan_memory *m, const struct plan_space *s);
/* Whether these bytes belong to one buffer. */
bool plan_memory_inside(const struct plan_memory *m, uint64_t begin, uint64_t end);
/* What lies at an address; NULL: nothing. */
const struct segment *plan_memory_at(const struct plan_memory *m, uint64_t at);
/* Whether all of [begin, end) is that; if not, *found is what else lies there first. */
bool plan_memory_holds(const struct plan_memory *m, uint64_t begin, uint64_t end, const struct content *c,
                       const struct segment **found);
/* False: the buffer is in too many pieces. */
bool plan_memory_write(struct plan_memory *m, uint64_t begin, uint64_t end, const struct content *c);
/* In words; returns out. */
enum { PLAN_CONTENT_TEXT = 192 };
const char *plan_content_text(const struct content *c, char out[PLAN_CONTENT_TEXT]);
const char *plan_form_name(enum form f);

#endif
