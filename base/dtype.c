#include "base/dtype.h"

const struct dtype_facts dtype_table[DTYPE_COUNT] = {
#define X(id, name, block, bytes, gguf, row) { name, block, bytes, gguf, row },
	DTYPE_ROWS(X)
#undef X
};
