/* bench/json_file.h - a JSON file or pipe that someone names on the command line, as a tree.
 *
 * Never by jansson's own reader, which writes beyond a block when there is no memory for the end of a string.
 */
#ifndef BENCH_JSON_FILE_H
#define BENCH_JSON_FILE_H

#include <jansson.h>
#include <stdint.h>

#include "base/error.h"

/* At most `max` bytes of it are read as a tree (base/json_read.h); one that has more is refused. NULL: err. */
json_t *json_file_read(const char *path, uint64_t max, struct error *err);

#endif
