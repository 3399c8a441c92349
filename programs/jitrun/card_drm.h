/* programs/jitrun/card_drm.h - what a graphics card's display driver says of it: its name, how full its memory is, its
 * clocks.
 *
 * Owns: asking, through libdrm where the program is built with it, else through sysfs. What neither says is 0 or "".
 */
#ifndef PROGRAMS_CARD_DRM_H
#define PROGRAMS_CARD_DRM_H

#include <stdint.h>

struct card_drm {
	char name[64];   /* of the product */
	char driver[64]; /* "amdgpu 3.57.0" */
	uint64_t vram_bytes, vram_used;
	uint32_t core_mhz, memory_mhz; /* now */
	const char *from;              /* "libdrm", "sysfs" */
};

/* render_minor: 128 for /dev/dri/renderD128. */
void card_drm_read(struct card_drm *out, int render_minor);

#endif
