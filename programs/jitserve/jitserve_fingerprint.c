/* programs/jitserve/jitserve_fingerprint.c - what names a model in X-Jitrun-Replay. */
#include "base/error.h"
#include "programs/jitserve/jitserve.h"
#include "runtime/model/fingerprint.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"

bool serve_fingerprint(jit_model *m, uint64_t *out, struct error *err)
{
	struct pool *pool = pool_open(serve.threads ? (int)serve.threads : system_default_threads(), err);
	bool ok = pool && model_fingerprint(m, pool, out, err);

	if (pool)
		pool_close(pool);
	*out += *out == 0; /* 0 stands for none */
	return ok;
}
