/* bench/codegen_time.h - what a model's kernels cost before they run: generating them, opening them from a cache
 * directory or from a pack, looking one up. Each is also shown as a share of generating. For cards, linking is timed
 * too.
 *
 * Owns: the temporary cache that is measured. Needs no weights, only a header. Opening includes the file or directory,
 * the index, checksums, decompression and executable pages, with the files in the system's page cache.
 */
#ifndef BENCH_CODEGEN_TIME_H
#define BENCH_CODEGEN_TIME_H

#include "base/error.h"
#include "bench/measurement.h"
#include "runtime/plan/key_list.h"

/* Of all kernels of the model, of those that passes over single tokens can need, and of one pass over one token, which
 * are those of a layer and the few around the
 * layers: by one thread, and by one for each core as sessions do; the layers' alone likewise. The last is for cards
 * alone. */
enum kernels_row {
	KERNELS_GENERATE,
	KERNELS_DIRECTORY,
	KERNELS_PACK,
	KERNELS_TOKEN_GENERATE,
	KERNELS_TOKEN_DIRECTORY,
	KERNELS_TOKEN_PACK,
	KERNELS_LOOKUP,
	KERNELS_PASS_GENERATE,
	KERNELS_PASS_TOGETHER,
	KERNELS_LAYER_TOGETHER,
	KERNELS_PASS_LINK,
	KERNEL_ROWS
};

/* options->tokens counts for the first three rows. kv: the type of the one pass's cache. *n_rows: how many there are
 * for the target. */
bool kernels_measure(const struct model_spec *spec, const struct key_list_options *options, enum dtype kv,
                     long repetitions, double noise, struct row out[KERNEL_ROWS], size_t *n_rows, struct error *err);

/* Generates every kernel that sessions with a model can need, for starts that only load; into a new pack. linker: the
 * driver whose code of them such a start needs as well; NULL: none. */
struct driver_linker;
bool kernels_write_pack(const char *model, const struct key_list_options *options, const struct driver_linker *linker,
                        const char *pack, struct error *err);

#endif
