#include "programs/jitrun/card_drm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#ifdef HAVE_LIBDRM
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <xf86drm.h>

static uint32_t sensor(amdgpu_device_handle d, unsigned which)
{
	uint32_t value = 0;

	return amdgpu_query_sensor_info(d, which, sizeof value, &value) == 0 ? value : 0;
}

static void ask_device(struct card_drm *out, amdgpu_device_handle d)
{
	struct drm_amdgpu_memory_info memory = { 0 };
	const char *name = amdgpu_get_marketing_name(d);

	if (name)
		error_quote(out->name, sizeof out->name, name, strlen(name));
	if (amdgpu_query_info(d, AMDGPU_INFO_MEMORY, sizeof memory, &memory) == 0) {
		out->vram_bytes = memory.vram.total_heap_size;
		out->vram_used = memory.vram.heap_usage;
	}
	out->core_mhz = sensor(d, AMDGPU_INFO_SENSOR_GFX_SCLK);
	out->memory_mhz = sensor(d, AMDGPU_INFO_SENSOR_GFX_MCLK);
	out->from = "libdrm";
}

/* False: the driver does not answer, which libdrm would not survive. */
static bool ask_version(struct card_drm *out, int fd)
{
	drmVersionPtr v = drmGetVersion(fd);
	char name[32];

	if (v && v->name)
		snprintf(out->driver, sizeof out->driver, "%s %d.%d.%d",
		         error_quote(name, sizeof name, v->name,
		                     (unsigned long long)(v->name_len > 0 ? v->name_len : 0)),
		         v->version_major, v->version_minor, v->version_patchlevel);
	if (v)
		drmFreeVersion(v);
	return v != NULL;
}

static void ask_libdrm(struct card_drm *out, int render_minor)
{
	amdgpu_device_handle d;
	uint32_t major, minor;
	char path[64];

	snprintf(path, sizeof path, "/dev/dri/renderD%d", render_minor);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	if (ask_version(out, fd) && amdgpu_device_initialize(fd, &major, &minor, &d) == 0) {
		ask_device(out, d);
		amdgpu_device_deinitialize(d);
	}
	close(fd);
}
#else
static void ask_libdrm(struct card_drm *out, int render_minor) {}
#endif

/* A file of the card's folder; "" where it is not there. */
static const char *read_file(int render_minor, const char *file, char *out, size_t cap)
{
	char path[128];

	snprintf(path, sizeof path, "/sys/class/drm/renderD%d/device/%s", render_minor, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, cap - 1);
	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = 0;
	return out;
}

static uint64_t read_bytes(int render_minor, const char *file)
{
	char text[64];

	return strtoull(read_file(render_minor, file, text, sizeof text), NULL, 10);
}

/* "0: 500Mhz\n1: 2124Mhz *\n": the one with the star. */
static uint32_t read_clock(int render_minor, const char *file)
{
	char text[2048];
	unsigned number;
	uint32_t mhz;

	read_file(render_minor, file, text, sizeof text);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strchr(line, '*') && sscanf(line, "%u: %uMhz", &number, &mhz) == 2)
			return mhz;
	return 0;
}

void card_drm_read(struct card_drm *out, int render_minor)
{
	memset(out, 0, sizeof *out);
	out->from = "sysfs";
	ask_libdrm(out, render_minor);
	if (!out->vram_bytes) {
		out->vram_bytes = read_bytes(render_minor, "mem_info_vram_total");
		out->vram_used = read_bytes(render_minor, "mem_info_vram_used");
	}
	if (!out->core_mhz)
		out->core_mhz = read_clock(render_minor, "pp_dpm_sclk");
	if (!out->memory_mhz)
		out->memory_mhz = read_clock(render_minor, "pp_dpm_mclk");
}
