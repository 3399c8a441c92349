/* kernels-templates/emit/heads.h - what the kernels over attention heads share: their units, pads, norm and rotation.
 *
 * Owns: numerics.h rules 7 and 8 for one head, as IR; the split of a unit into column and head; the zeros after the
 * last head. Where a rotated value goes is the caller's business (a sink).
 */
#ifndef KERNELS_HEADS_H
#define KERNELS_HEADS_H

#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

enum { HEADS_MAX_DIM = 512, HEADS_MAX_LATENT = 512 };

/* NULL, or why no kernel does these heads. */
const char *heads_refusal(uint32_t heads, uint32_t head_dim);
/* The key's KV cache: bytes of one element, and of a head at one position; 0: not a type we keep a cache in. */
unsigned heads_kv_bytes(const struct key *key);
uint32_t heads_kv_row_bytes(const struct key *key);

/* unit = column * heads + head. */
struct heads_unit {
	ir_s column, head;
};
struct heads_unit heads_unit(struct ir *b, ir_s unit, uint32_t heads);

/* base + column * column_bytes + head * head_bytes. */
ir_a heads_at(struct ir *b, ir_a base, struct heads_unit u, uint32_t column_bytes, uint32_t head_bytes);

/* Writes +0 behind a column that holds width elements and starts at column, when the unit's head is the last one. Emits
 * nothing for whole blocks. */
void heads_zero_pad(struct ir *b, ir_a column, uint32_t width, ir_s head, uint32_t heads);
/* The same for others to await. */
void heads_give_pad(struct ir *b, ir_a column, uint32_t width, ir_s head, uint32_t heads);

/* 1 / sqrt(mean of squares + eps) of so many elements, in every lane (numerics.h rule 7). */
ir_f heads_scale(struct ir *b, ir_a x, uint32_t dims, ir_f eps);

/* The same of elements that are awaited, or not. */
ir_f heads_scale_of(struct ir *b, bool awaited, ir_a at, uint32_t dims, ir_f eps);

/* One head: optional norm, rotation. Element i and the n - 1 after it go to the sink, lanes from n on are to be
 * ignored. */
struct heads_rotation {
	ir_a x, cos, sin;
	uint32_t dims;
	bool awaited;      /* x */
	bool normed, last; /* last: the norm stands behind the rotation; its scale comes from before */
	ir_a norm;         /* weights; read when normed */
	ir_f eps;
};
/* r of rule 7, in every lane. */
typedef void (*heads_sink)(struct ir *b, void *context, ir_f v, unsigned i, unsigned n);
void heads_rotate(struct ir *b, const struct heads_rotation *r, heads_sink sink, void *context);

/* NULL, or why no kernel does a latent vector of so many dimensions with so many behind it that rotate. */
const char *heads_latent_refusal(uint32_t latent, uint32_t rotating);

/* KEY_ATTENTION for groups of waves; attention_build() has checked the key. */
void attention_wave_build(struct ir *b, const struct key *key, const struct target *target);
/* Whether units of key.row_blocks columns can be built (docs/kernel-templates.md). */
bool attention_wave_apart(const struct key *key, const struct target *target);
/* The most queries that share the loads of keys and values there. */
unsigned attention_wave_rows(unsigned waves, unsigned head_dim);
/* How many columns a tile has in passes of many, where every wave has columns of its own. 0: none has. */
unsigned attention_wave_columns(const struct target *target, unsigned heads, unsigned kv_heads);

#endif
