/* tests/support/warm_pack.h - packs of the kernels that key lists name. */
#ifndef TESTS_WARM_PACK_H
#define TESTS_WARM_PACK_H

#include "runtime/plan/key_list.h"

/* Every kernel that key_list_kernels() lists for the model, compiled, in a new file that nobody can write; but the one
 * whose key reads left_out, which must be listed, unless that is NULL. */
void warm_pack(const char *model, const char *pack, const struct key_list_options *o, const char *left_out);

#endif
