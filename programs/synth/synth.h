/* programs/synth/synth.h - a GGUF file of a given shape and mixture with random weights, so that speed can be measured
 * without a download.
 *
 * Owns: the metadata, the tensor list and the bytes. Blocks have random quants and fixed small scales: every weight is
 * finite and about as large as a trained one, and nothing has to be quantised. They repeat every few MiB, which no
 * memory notices. The same shape and mixture give the same file everywhere. The text of such a model means nothing; its
 * tokenizer knows single bytes.
 */
#ifndef BENCH_SYNTH_H
#define BENCH_SYNTH_H

#include <stdio.h>

#include "base/error.h"
#include "programs/common/shapes.h"

uint64_t synth_bytes(const struct model_shape *s, const struct mixture *m); /* of the weights */
/* Writes the whole file to `fd`, from its beginning. `label` names it in messages. progress: told how many bytes of
 * weights are written; NULL: nobody asks. */
bool synth_write(int fd, const char *label, const struct model_shape *s, const struct mixture *m,
                 void (*progress)(void *user, uint64_t done, uint64_t total), void *user, struct error *err);
/* The file without its weights, in memory; what reads headers alone takes it. malloc'ed, NULL: err. */
uint8_t *synth_header(size_t *n, const struct model_shape *s, const struct mixture *m, struct error *err);
/* A file that goes away with the process: in $TMPDIR when that is set, in memory otherwise. Its descriptor, or -1. path
 * names it. */
int synth_temporary(char *path, size_t size, struct error *err);

#endif
