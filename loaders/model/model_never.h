/* loaders/model/model_never.h - see model_never.c. Both fill struct model_sampling; false: err. */
#ifndef LOADERS_MODEL_NEVER_H
#define LOADERS_MODEL_NEVER_H

#include "loaders/model/model_hf_fields.h"

/* Of generation_config.json. */
bool model_read_never(struct hf_reader *r);
bool model_read_gguf_never(struct model *m, const struct gguf *g, struct error *err);

#endif
