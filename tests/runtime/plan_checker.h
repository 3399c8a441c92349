/* tests/runtime/plan_checker.h - the state of the checker of plans. */
#ifndef TESTS_RUNTIME_PLAN_CHECKER_H
#define TESTS_RUNTIME_PLAN_CHECKER_H

#include "kernels-templates/signature.h"
#include "tests/runtime/plan_check.h"
#include "tests/runtime/plan_memory.h"

enum { ACCESSES_MAX = 400 };
struct access {
	uint64_t begin, end;
	struct content content;
	bool write;
	uint32_t launch, group;
};

/* What the signature of a kernel says, kept for its next launches: slots that must be judged, and values that count. */
struct known {
	struct key key;
	uint32_t read, written, counts;
	struct known_slot {
		int64_t begin, end; /* the units it was asked for last, and the values that count then */
		uint64_t values, stride;
		struct kernel_extent extent;
		uint32_t access;
		uint8_t form;
	} slot[PLAN_ARGS_MAX];
};

struct checker {
	const struct plan *p;
	const struct plan_space *s;
	const struct plan_options *opt;
	struct plan_check_report *why;
	struct plan_memory memory;
	struct access access[ACCESSES_MAX];
	unsigned accesses;
	uint32_t launch, group; /* the one that is looked at */
	/* Its units at hand, and which of its slots it was judged for. */
	const struct plan_op *op;
	struct known *known;
	int64_t begin, end;
	uint64_t values;
	uint32_t read, written;
	bool wrong;
};

uint64_t plan_address(const void *p);
uint32_t plan_bits_of(float f);
/* Says what is wrong, and where; the first of all stays. */
__attribute__((format(printf, 2, 3))) void plan_complain(struct checker *c, const char *format, ...);
void plan_require(struct checker *c, bool ok, const char *what);
/* How many columns the tiles of a matmul have. */
void plan_check_tiles(struct checker *c, const struct key *k, const uint64_t *arg);
/* A value that must lie there in the end. */
void read_plain(struct checker *c, uint32_t value, uint32_t of, uint32_t form, uint64_t stride, uint64_t at,
                uint64_t first, uint64_t tokens);

void touch(struct checker *c, bool write, uint64_t at, uint64_t bytes, struct content content);
/* `tokens` tokens that begin at `at`, the first of which is token `first` of the pass. */
struct content columns_at(uint32_t value, uint32_t of, uint32_t form, uint64_t stride, uint64_t at, uint64_t first);

/* ---- what the units at hand touch: where and how it lies, their signature says (kernels-templates/signature.h); which
 * value of the model that must be, the functions here are told */

/* These units of an op, from now on; none of its slots was judged yet. All that its signature has were, or it
 * complains. */
void begin_slots(struct checker *c, const struct plan_op *op, int64_t begin, int64_t end);
void end_slots(struct checker *c);
/* Bytes from the first to the last that they touch in a slot; stride: of a token. */
struct range {
	uint64_t at, bytes, stride;
};
struct range range_of(struct checker *c, unsigned slot, uint64_t stride);
/* They read this value of a layer or state there, or write it; the slot begins with token `first` of the pass. stride:
 * of a token, where the signature does not know it, else 0. */
void reads_wide(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first, uint64_t stride);
void writes_wide(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first, uint64_t stride);
void reads(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first);
void writes(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first);
/* Writes a part of each token's row; what else is there was left by ops before, and has been looked at. */
void writes_between(struct checker *c, unsigned slot, uint32_t value, uint32_t of, uint64_t first);
/* The same of tokens that are laid out anew: like says how. */
void touches(struct checker *c, unsigned slot, bool write, struct content like, uint64_t first, uint64_t stride);
/* The slot points to what the host fills in before each run. */
void given(struct checker *c, unsigned slot, const void *expected, const char *what);
/* It was judged by other means. */
void judged(struct checker *c, unsigned slot);

/* What a launch that asks for nothing in particular finds: its first byte's content, and which token begins there. */
struct found {
	struct content content;
	uint64_t token;
};
struct found find(struct checker *c, uint64_t at, enum form form);
/* Of what layer the value is that lies there, which must be this one. */
uint32_t layer_of(struct checker *c, uint64_t at, uint32_t value);
uint32_t logit_rows(const struct plan *p);
/* One page stands for all. write: or the layer's keys and values must be there in the end. */
void touch_cache(struct checker *c, bool write, uint32_t layer, uint64_t keys, uint64_t values, uint64_t begin,
                 uint64_t end);
/* plan_check_heads.c: a slot is filled in before each run; plan_check_latent.c: as touch_cache(). */
void check_changing(struct checker *c, const uint64_t *slot, enum plan_change what, uint64_t offset);
void touch_latent_cache(struct checker *c, bool write, uint32_t layer, uint64_t keys);
/* plan_check_stream.c: a value, and of what layer or state; what the stream is behind a layer's feed-forward part, and
 * behind what is added of a token's own; the activation function of keys. */
struct state {
	enum value value;
	uint32_t of;
};
struct state behind_ffn(const struct plan_space *s, uint32_t layer);
struct state behind_input(const struct plan_space *s, uint32_t layer);
uint32_t act_of(const struct plan_space *s);
/* plan_check_recurrent.c: false: it is no norm of a result of these layers. */
bool do_mixer_norm(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
/* Units [begin, end) of a kernel: plan_check_heads.c, then plan_check_latent.c, plan_check_recurrent.c,
 * plan_check_experts.c and plan_check_stream.c. */
void do_rope(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_kv_store(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_attention(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_merge(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_latent_rope(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_latent_store(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_latent_attention(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_by_head(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_convolve(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_delta(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_scan(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_gate(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_route(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_dispatch(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_scatter(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_chosen(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_combine(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_embed(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_layer_inputs(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_norm(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_scale(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_attention_gate(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end);
void do_units(struct checker *c, uint32_t launch, uint32_t group, int64_t begin, int64_t end);

#endif
