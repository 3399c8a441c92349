/* bench/header.h - a model without its weights, of which kernels and sizes are known: that of a file, or of --shape. */
#ifndef BENCH_HEADER_H
#define BENCH_HEADER_H

#include "runtime/model/packed.h"

/* path: where there is no --shape. *header: what it made up, malloc'ed; NULL: nothing. model_close(), packed_close()
 * and free() are due. False: err. */
bool bench_open_header(struct model *m, struct packed **packed, const char *path, uint8_t **header, struct error *err);

#endif
