/* runtime/device/cuda/cuda_watch.c - waiting for a queue, and giving a card up that does not come to an end. See
 * cuda.h.
 *
 * Most passes take a few milliseconds: for so long the queue is asked again and again, and nothing is lost. One that
 * takes longer is asked after a small share of what it took already. A card that works on one for longer than the
 * user's patience is given up. The driver would wait for such a card in almost every call, so from then on it is asked
 * nothing at all: what the card holds is given back when the process ends.
 */
#include <time.h>

#include "runtime/device/cuda/cuda.h"
#include "runtime/host/system.h"

#define SPIN_SECONDS 10e-3
#define LONGEST_SLEEP 10e-3
enum { SHARE = 64 };

int cuda_wait(struct cuda *d, void *queue)
{
	double start = system_seconds();
	int result;

	while ((result = d->api->stream_query(queue)) == CUDA_NOT_READY) {
		double took = system_seconds() - start, wait = took / SHARE;
		if (took > d->patience)
			return CUDA_GIVEN_UP;
		if (took < SPIN_SECONDS)
			__builtin_ia32_pause();
		else
			nanosleep(&(struct timespec){ .tv_nsec = (long)(1e9 * (wait < LONGEST_SLEEP ? wait
			                                                                            : LONGEST_SLEEP)) },
			          NULL);
	}
	return result;
}

#define X(member, name, arguments, passed) \
	static int no_##member arguments { return CUDA_GIVEN_UP; }
CUDA_FUNCTIONS(X)
#undef X

const struct cuda_api *cuda_nothing(void)
{
	static const struct cuda_api api = {
#define X(member, name, arguments, passed) .member = no_##member,
		CUDA_FUNCTIONS(X)
#undef X
	};
	return &api;
}
