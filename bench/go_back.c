/* bench/go_back.c - see go_back.h. */
#include "bench/go_back.h"

bool go_back(jit_session *s, size_t n, jit_error *err)
{
	if (n == 0)
		return jit_session_rewind(s, 0, err) == JIT_OK;
	int32_t last = jit_session_ids(s)[n - 1];

	/* The last token is fed again, which computes all that is missing. */
	return jit_session_rewind(s, n - 1, err) == JIT_OK && jit_session_feed(s, &last, 1, err) == JIT_OK;
}
