/* kernels-templates/emit/build.h - one builder per kernel kind, and the parts of kernels that several builders share.
 *
 * Owns: the names by which template_build() reaches the kinds. A builder checks the key's fields (false and a sentence
 * when it does not do this key), then writes the IR. Internal to this room.
 */
#ifndef KERNELS_BUILD_H
#define KERNELS_BUILD_H

#include "jit/ir/ir_build.h"
#include "kernels-templates/templates.h"

/* What is known of a kind of kernel; the table, by enum key_kind, is in templates.c. */
struct template_kind {
	bool (*build)(struct ir *b, const struct key *key, const struct target *target, struct error *err);
	unsigned args;   /* argument slots of a launch */
	unsigned effort; /* template_effort() */
	uint64_t (*traffic)(const struct key *k, uint64_t units, uint64_t position,
	                    uint64_t columns); /* template_traffic() */
	struct template_reads (*reads)(const struct key *k, uint64_t units, uint64_t position,
	                               uint64_t columns); /* template_reads(); NULL: nothing of either */
};
extern const struct template_kind template_kinds[KEY_KIND_COUNT];

bool matmul_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool to_half_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool interleave_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool norm_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool quantise_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool route_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool dispatch_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool scatter_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool combine_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool scale_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool layer_inputs_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool rope_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool kv_store_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool attention_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool merge_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool conv_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool delta_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool scan_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool channel_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool gate_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool adapt_down_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool adapt_up_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);
bool embed_build(struct ir *b, const struct key *key, const struct target *target, struct error *err);

/* traffic.c */
uint64_t traffic_matmul(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_interleave(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_norm(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_quantise(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_scale(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_route(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_dispatch(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_scatter(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_combine(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_layer_inputs(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_rope(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_kv_store(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_attention(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_merge(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_conv(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_delta(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_scan(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_channel(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_gate(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_embed(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
uint64_t traffic_adapt(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
struct template_reads reads_matmul(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
struct template_reads reads_attention(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);
struct template_reads reads_embed(const struct key *k, uint64_t units, uint64_t position, uint64_t columns);

/* For a builder's refusals: "KEY: what", ERROR_UNSUPPORTED, returns false. */
bool build_refuse(const struct key *key, struct error *err, const char *what);

/* 32 consecutive f32 (32/W vectors) to int8 in the lanes of q; returns the block's scale in every lane. */
ir_f quantise_emit(struct ir *b, const ir_f x[], ir_i q[]);
/* n vectors to int8 by the scale d that each lane has. */
void quantise_emit_scaled(struct ir *b, const ir_f x[], unsigned n, ir_f d, ir_i q[]);
/* 32 consecutive f32 (32/W vectors) to one int8 block (numerics.h rule 4): 32 bytes at q + q_disp, its struct
 * activation_block at s + s_disp. */
void quantise_emit_block(struct ir *b, const ir_f x[], ir_a q, int32_t q_disp, ir_a s, int32_t s_disp);
/* n blocks at once, each a vector of 32 lanes, so that their chains of operations run side by side. */
enum { QUANTISE_SEVERAL = 16 };
void quantise_emit_several(struct ir *b, unsigned n, const ir_f x[], const ir_a q[], const ir_a s[]);
/* The same for others to await, on targets with 32 lanes; scratch: 32 local bytes. */
void quantise_give_block(struct ir *b, ir_f x, ir_a q, ir_a s, ir_a scratch);
/* Four blocks of neighbours, lane l with elements 4l to 4l + 3: its quants, in a word; words 0 to 3 of its block's
 * struct activation_block in the first four of the block's eight lanes, and in the others once more. On targets with 32
 * lanes. Then the same, given; scratch: 128 local bytes. */
void quantise_emit_quad(struct ir *b, const ir_f x[4], ir_f *quants, ir_f *of_block);
void quantise_give_quad(struct ir *b, const ir_f x[4], ir_a q, ir_a s, ir_a scratch);

/* The norm of columns (numerics.h rule 7) by all waves of a group, which must meet before one of them reads the result.
 */
struct norm_columns {
	uint32_t k, columns;
	bool quantised, centred; /* quantised: the result is int8 blocks, without the floats */
	unsigned waves;
	ir_a x, weight; /* f32 [columns][kp(k)], f32 [kp(k)] */
	ir_f eps;
	ir_a out,
		outs; /* f32 [columns][kp(k)]; quantised: int8 likewise, and struct activation_block [columns][kp(k)/32]
	               */
};
/* What the norm of one column, x, is made with, by one wave; and so its elements. Reads k, centred, waves, x and eps.
 */
struct norm_scale {
	ir_f by, mean; /* mean: where it is centred */
	bool centred;
};
struct norm_scale norm_emit_scale(struct ir *b, const struct norm_columns *n);
static inline ir_f norm_emit_element(struct ir *b, const struct norm_scale *s, ir_f x, ir_f weight)
{
	return ir_fmul(b, ir_fmul(b, s->centred ? ir_fsub(b, x, s->mean) : x, s->by), weight);
}
void norm_emit_columns(struct ir *b, const struct norm_columns *n);
/* KEY_NORM with AWAITED (norm_awaited.c): NULL, or what is wrong with it; norm_build() hands it over. */
const char *norm_refuse_awaited(const struct key *key, const struct target *target);
void norm_awaited_build(struct ir *b, const struct key *key, const struct target *target);

#endif
