/* runtime/ranks/split.h - which layers of a model each rank has.
 *
 * Owns: the words of --split, and the proportion. Rank 0 has both ends of a model, the embeddings and the logits, which
 * are often one matrix, so that no logits are sent. Each rank has a range of layers; what one attends to that another
 * layer keeps is on the same rank.
 */
#ifndef RUNTIME_SPLIT_H
#define RUNTIME_SPLIT_H

#include "loaders/model/model.h"
#include "runtime/plan/cut_shares.h"
#include "runtime/ranks/carrier.h"

/* Layers first .. end - 1 of a rank. */
struct split_range {
	uint32_t first, end;
};

/* split: "pipeline" (NULL: the same), layers by the bytes that a token reads; or "pipeline:12,16", so many layers for
 * each rank. False: err. */
bool split_layers(const struct model_spec *s, unsigned ranks, const char *split,
                  struct split_range range[CARRIER_RANKS_MAX], struct error *err);

/* split: "rows", the same share of all rows for each rank, or "rows:1,7", in that proportion. False: err, or it is
 * another split, of which nothing is said; *rows: which. */
bool split_rows(unsigned ranks, const char *split, bool *rows, struct cut_shares *shares, struct error *err);

/* Bytes of the file's tensors that a token reads of a layer, and of both ends; and all that there are. */
struct split_bytes {
	uint64_t token, all;
};
struct split_bytes split_layer_bytes(const struct model_spec *s, uint32_t layer);
struct split_bytes split_ends_bytes(const struct model_spec *s);
/* Whether a rank's range may begin at that layer. */
bool split_may_cut(const struct model_spec *s, uint32_t layer);

#endif
