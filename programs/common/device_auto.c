/* programs/common/device_auto.c - see device_auto.h. */
#include "programs/common/device_auto.h"

#include <stdio.h>
#include <string.h>

static void print(const jit_prediction *p)
{
	if (p->why_not[0]) {
		if (strncmp(p->device, "sim:", 4) != 0 && strcmp(p->device, "ref") != 0)
			fprintf(stderr, "  %-8s not chosen: %s\n", p->device, p->why_not);
		return;
	}
	fprintf(stderr,
	        "  %-8s %.3f ms: memory %.3f (%.0f GB/s), arithmetic %.3f (%.0f Gop/s), copies %.3f, start %.3f\n",
	        p->device, p->seconds * 1e3, p->memory_seconds * 1e3, p->bandwidth * 1e-9, p->arithmetic_seconds * 1e3,
	        p->arithmetic * 1e-9, p->copy_seconds * 1e3, p->start_seconds * 1e3);
}

bool device_auto_choose(const jit_work *work, const char *what, bool quiet, char out[DEVICE_AUTO_MAX], jit_error *err)
{
	jit_prediction best = JIT_PREDICTION();
	bool any = false;

	if (!quiet)
		fprintf(stderr, "predicted for %s:\n", what);
	for (size_t i = 0; i < jit_device_count(); i++) {
		jit_prediction p = JIT_PREDICTION();
		if (jit_device_predict(i, work, &p, err) != JIT_OK)
			return false;
		if (!quiet)
			print(&p);
		if (p.why_not[0] || (any && p.seconds >= best.seconds))
			continue;
		best = p;
		any = true;
	}
	if (!any) {
		*err = (jit_error){ .code = JIT_ERROR_DEVICE, .message = "no device can be chosen" };
		return false;
	}
	snprintf(out, DEVICE_AUTO_MAX, "%s", best.device);
	if (!quiet)
		fprintf(stderr, "  chosen: %s\n", out);
	return true;
}
