/* tests/jit/interp_check.c - see interp_check.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

#include "jit/ir/interp.h"
#include "jit/ir/lanes.h"
#include "tests/jit/interp_check.h"

uint32_t as_bits(float f)
{
	uint32_t u;
	memcpy(&u, &f, 4);
	return u;
}

void run_both(struct ir *b, const uint64_t *arg, int64_t begin, int64_t end, void (*reset)(void *),
              void (*check)(void *, const char *), void *context)
{
	struct error err = { 0 };
	struct interp_program *p;

	if (!ir_verify(b, &err))
		fail_msg("%s", err.text);
	p = interp_compile(b);
	assert_non_null(p);
	for (int portable = 0; portable < 2; portable++) {
		const size_t bytes = (interp_frame_bytes(p) + 63) & ~(size_t)63;
		char *frame = aligned_alloc(64, bytes);

		assert_non_null(frame);
		memset(frame, portable ? 0xff : 0x5a, bytes);
		if (portable)
			interp_use_portable(p);
		if (reset)
			reset(context);
		assert_int_equal(interp_run(p, frame, arg, begin, end), INTERP_DONE);
		check(context, portable ? "portable" : "host");
		free(frame);
	}
	interp_free(p);
	ir_free(b);
}

uint32_t halves(int64_t low, int64_t high) { return (uint32_t)((low & 0xffff) | (high & 0xffff) << 16); }

uint32_t widened(uint32_t half)
{
	const int exponent = half >> 10 & 31, mantissa = half & 1023;
	const double size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);

	if (exponent == 31)
		return as_bits(mantissa ? NAN : half >> 15 ? -INFINITY : INFINITY);
	return as_bits((float)(half >> 15 ? -size : size));
}
