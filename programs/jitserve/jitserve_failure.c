/* programs/jitserve/jitserve_failure.c - what becomes of a model whose device has failed for good: with
 * --on-device-failure cpu it is opened again on the CPU.
 *
 * Owns: which device a model is opened on.
 */
#include <string.h>

#include "programs/jitserve/jitserve.h"
#include "server/engine/loader.h"

bool serve_moves(void) { return serve.on_failure && strcmp(serve.on_failure, "cpu") == 0; }

const char *serve_failure_refused(void)
{
	if (serve.on_failure && !serve_moves())
		serve.exit_on_failure = true;
	if (!serve_moves())
		return NULL;
	if (serve.exit_on_failure)
		return "--on-device-failure cpu goes without --exit-on-device-failure";
	if (serve.ranks)
		return "--on-device-failure cpu goes without --ranks: a rank that is lost ends the server";
	return strcmp(serve.numerics, "exact") == 0
	               ? NULL
	               : "--on-device-failure cpu keeps an answer's bits, which only --numerics exact does";
}

const char *serve_device_of(const struct served *m) { return m && m->lost[0] ? "cpu" : serve.device; }
