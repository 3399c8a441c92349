/* programs/jitwarm_device.c - the card that --device names: its driver makes code of kernels' texts. */
#include "programs/jitwarm.h"
#include "runtime/device/device.h"

static struct device *device;

bool warm_open_device(struct error *err)
{
	if (!(device = device_open(warm.device, NULL, err)))
		return false;
	return device->linker ||
	       error_set(err, ERROR_ARGUMENT,
	                 "the device \"%.32s\" has no driver that makes code: --device is for cuda, "
	                 "and --target for all else",
	                 warm.device);
}

void warm_close_device(void)
{
	device_close(device);
	device = NULL;
}

const struct driver_linker *warm_linker(void) { return device ? device->linker : NULL; }

const char *warm_driver_note(const struct key *key, char out[WARM_DRIVER_NOTE_MAX])
{
	char text[DRIVER_CODE_TEXT_MAX];
	struct driver_code by;

	*out = 0;
	if (driver_code_is(key, &by))
		snprintf(out, WARM_DRIVER_NOTE_MAX, " (a driver's: %s)", driver_code_text(by, text));
	return out;
}

const struct target *warm_device_target(void) { return device ? device->facts.target : NULL; }
