/* runtime/device/amd/amd_topology.h - which AMD cards this machine has, as Linux's amdkfd driver tells in sysfs.
 *
 * Owns: reading KFD_TOPOLOGY_PATH, whose text is hostile until checked, and the sentence why a card cannot be used.
 * Opens no card and allocates nothing there. CPUs' nodes are left out; cards are listed in the order of their nodes.
 */
#ifndef RUNTIME_AMD_TOPOLOGY_H
#define RUNTIME_AMD_TOPOLOGY_H

#include "jit/target.h"

enum { AMD_CARDS = 32 };

struct amd_card {
	struct error why_not; /* code 0: it can be opened; else what is filled in below is what could be read */
	uint32_t node, gpu_id;
	uint32_t gfx_version;        /* gfx_target_version: 110001 is gfx1101 */
	const struct target *target; /* NULL: jitrun makes no code for it */
	char name[64];               /* of the product, "Radeon RX 7800 XT"; else its target's, "gfx1101" */
	char pci[16];                /* "0000:03:00.0" */
	uint64_t unique_id;          /* 0: the driver tells none */
	int render_minor;            /* 128: /dev/dri/renderD128 */
	uint32_t units, simds_per_unit, waves_per_simd;
	uint32_t lds_bytes; /* of a compute unit */
	uint32_t clock_mhz; /* of the compute units, at most; 0: the driver tells none */
	bool integrated;    /* an APU: what it calls VRAM is carved out of the machine's memory */
	bool with_cores;    /* the driver has it in one node with the processor's cores */
	uint64_t vram_bytes;
	uint64_t visible_bytes;               /* of it, that the CPU can map: all of them (large BAR), or 0 */
	uint64_t bandwidth;                   /* of its memory, bytes a second; 0: the driver tells none */
	uint32_t cwsr_bytes, ctl_stack_bytes; /* of a compute queue's save area; 0: the driver is too old to tell */
};

struct amd_topology {
	struct amd_card card[AMD_CARDS];
	size_t n;
};

/* False: err says why there is nothing to list (no driver, no right to read it, or text that breaks its form). No card
 * at all is no error: n is 0. */
bool amd_topology_read(struct amd_topology *out, struct error *err);
/* The same of a folder that stands for /. */
bool amd_topology_read_below(struct amd_topology *out, const char *root, struct error *err);

/* The card that `which` names: "" the first that can be opened, "1" the second of the list, "gfx1101" the first of that
 * target that can be opened. NULL: err says which there are, or why the one that is meant cannot be used. */
const struct amd_card *amd_topology_find(const struct amd_topology *t, const char *which, struct error *err);

#endif
