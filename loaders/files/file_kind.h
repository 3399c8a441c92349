/* loaders/files/file_kind.h - what a file is that was taken for another: what stands in for a file that was not
 * downloaded, and what other programs write.
 *
 * Owns: the beginnings by which such files are known. Asked only where a file is not what it should be, but for the
 * first kind, so that it refuses nothing by itself.
 */
#ifndef LOADERS_FILE_KIND_H
#define LOADERS_FILE_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "loaders/files/file.h"

/* A Git LFS pointer or a web page, neither of which is JSON or a template: err says what it is and what to do. */
bool file_is_stand_in(const uint8_t *p, uint64_t n, const char *label, struct error *err);
/* err says what is wrong with a file of weights, whose beginning is not that of one: it now says what the file is,
 * where that can be known, or adds that it is a text. */
void file_say_kind(struct file *f, struct error *err);

#endif
