/* loaders/model/model_gguf_fields.h - typed reads of an architecture's GGUF keys, for model_gguf.c and
 * model_gguf_rope.c.
 *
 * Owns: the record of which keys were asked for, so that one that nobody asked for can be refused. A read of an absent
 * key leaves *out as it is; a value of another type is refused by its key.
 */
#ifndef LOADERS_MODEL_GGUF_FIELDS_H
#define LOADERS_MODEL_GGUF_FIELDS_H

#include "loaders/model/model_load.h"
#include "loaders/model/presence.h"

struct gguf_reader {
	struct model *m;
	const struct gguf *g;
	const struct arch_row *row;
	bool *read;   /* keys that were asked for */
	char key[96]; /* the key last asked for, for messages */
	struct error *err;
};

/* "ARCHITECTURE.suffix", which counts as asked for. */
const char *gguf_key(struct gguf_reader *r, const char *suffix);
/* Refuses: the key last asked for is missing. */
bool gguf_missing(struct gguf_reader *r);
/* An array is taken when it holds one value for each layer, all equal. */
bool gguf_get_u32(struct gguf_reader *r, const char *suffix, enum presence presence, uint32_t *out);
/* As gguf_get_u32; where layers may differ in sizes, the first one's. */
bool gguf_read_heads(struct gguf_reader *r); /* of queries: a number, or where a family has it so one for each layer */
bool gguf_get_size(struct gguf_reader *r, const char *suffix, enum presence presence, uint32_t *out);
bool gguf_get_f64(struct gguf_reader *r, const char *suffix, enum presence presence, double *out);
bool gguf_str_is(const struct gguf_str *s, const char *word);

/* model_gguf_layers.c: the sizes of layers that differ, behind the windows. */
bool gguf_read_layers(struct gguf_reader *r);

/* ---- model_gguf_rope.c: what depends on the position */

/* Rotary embedding, windows by layer, and scales. */
bool gguf_read_rope(struct gguf_reader *r);
bool gguf_read_switches(struct gguf_reader *r);
/* The tensors that hold factors of the rotary frequencies. */
bool gguf_read_factors(struct gguf_reader *r);

/* ---- model_gguf_mixers.c: layers that keep a state instead of keys and values */

bool gguf_read_kv_heads(struct gguf_reader *r);
bool gguf_read_mixers(struct gguf_reader *r);
/* model_gguf_scan.c; the width of those layers that are feed-forward layers */
#define X(id, name, rule) bool gguf_read_##name(struct gguf_reader *r);
MODEL_MIXERS(X)
#undef X
bool gguf_read_some_ffn(struct gguf_reader *r);

#endif
