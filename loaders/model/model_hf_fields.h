/* loaders/model/model_hf_fields.h - typed reads of config.json's fields, for model_hf.c.
 *
 * Owns: the record of which fields were asked for, so that hf_check_unread() can refuse one that nobody asked for. A
 * field that is null counts as absent. A read of an absent field leaves *out as it is; a field of another kind is
 * refused by its name.
 */
#ifndef LOADERS_MODEL_HF_FIELDS_H
#define LOADERS_MODEL_HF_FIELDS_H

#include "base/json_read.h"
#include "loaders/model/model_load.h"
#include "loaders/model/presence.h"

struct hf_reader {
	struct model *m;
	const char *label;
	json_t *root;
	json_t *read, *read_within; /* names of fields that were asked for: of root, and of the objects in it */
	const struct arch_row *row;
	struct error *err;
};

/* NULL when absent. */
json_t *hf_get(struct hf_reader *r, const json_t *object, const char *key);
bool hf_get_f64(struct hf_reader *r, const json_t *object, const char *key, double *out); /* finite */
bool hf_get_u32(struct hf_reader *r, const json_t *object, const char *key, enum presence presence, uint32_t max,
                uint32_t *out);
bool hf_get_bool(struct hf_reader *r, const json_t *object, const char *key, bool *out);
/* Of the root: where null is as good as false. */
bool hf_get_bool_or_none(struct hf_reader *r, const char *key, bool *out);
bool hf_get_string(struct hf_reader *r, const json_t *object, const char *key, const char **out);

/* What the class takes where the file leaves it out: the row's defaults. model_hf.c */
bool hf_put_defaults(struct hf_reader *r);

/* Both refuse, and return false. */
bool hf_wrong_kind(struct hf_reader *r, const char *key, const json_t *v, const char *expected);
bool hf_unsupported(struct hf_reader *r, const char *key, const char *value, const char *expected);

/* Every field of the object has been read, is on a list of model_arch.c, or has a value that turns nothing on. */
bool hf_check_unread(struct hf_reader *r, json_t *object, const json_t *read, const char *within, const char *dot);

/* ---- model_hf_heads.c: of families whose fields say whether there is one head of keys and values */
bool hf_read_key_heads(struct hf_reader *r);

/* ---- model_hf_rope.c: what depends on the position */

bool hf_read_window(struct hf_reader *r);                     /* model_hf_window.c */
bool hf_read_rotating(struct hf_reader *r, uint8_t *rotates); /* which layers do, where the file says it */
bool hf_read_layers(struct hf_reader *r);                     /* model_hf_layers.c; behind the windows */
bool hf_read_layer_heads(struct hf_reader *r);                /* the same; of queries, behind the head dimension */
bool hf_read_rope(struct hf_reader *r);
bool hf_read_switches(struct hf_reader *r);
bool hf_read_scales(struct hf_reader *r);     /* model_hf_scales.c */
bool hf_read_embed_root(struct hf_reader *r); /* behind model_set_rotations(); drops the scale where the file says so */

/* ---- model_hf_quants.c: of quantised weights */
bool hf_read_quants(struct hf_reader *r, json_t *root);

/* ---- model_hf_beside.c: factors of layers that attend and scan, behind their sizes */
bool hf_read_beside(struct hf_reader *r);

/* ---- model_hf_mixers.c */
bool hf_read_mixers(struct hf_reader *r);
#define X(id, name, rule) bool hf_read_##name(struct hf_reader *r);
MODEL_MIXERS(X)
#undef X

#endif
