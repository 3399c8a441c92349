/* programs/jitrun/jitrun_doctor_cards.c - jitrun doctor: graphics cards. AMD's are looked up in the topology of the
 * compute driver and among the display driver's devices, since a card that lacks something is only among the latter.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "programs/jitrun/card_drm.h"
#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_doctor.h"
#include "programs/common/output.h"
#include "runtime/device/amd/amd_topology.h"
#include "runtime/device/cuda/cuda_api.h"
#include "runtime/device/amd/kfd_abi.h"
#include "include/jitrun.h"

enum { RENDER_FIRST = 128, RENDER_END = 192, VENDOR_AMD = 0x1002 };

/* ---- AMD */

static json_t *card_member(const struct amd_card *c, const struct card_drm *drm)
{
	return json_pack("{s:i, s:o, s:o, s:o, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:b, s:o, s:o}", "node", (int)c->node,
	                 "name", output_string(*drm->name ? drm->name : c->name), "pci", output_string(c->pci),
	                 "target", c->target ? json_string(c->target->name) : json_null(), "units", (int)c->units,
	                 "clock_mhz", (int)c->clock_mhz, "current_mhz", (int)drm->core_mhz, "vram_bytes",
	                 (json_int_t)(c->vram_bytes ? c->vram_bytes : drm->vram_bytes), "vram_used",
	                 (json_int_t)drm->vram_used, "visible_bytes", (json_int_t)c->visible_bytes, "bandwidth",
	                 (json_int_t)c->bandwidth, "integrated", c->integrated, "driver",
	                 *drm->driver ? output_string(drm->driver) : json_null(), "why_not",
	                 c->why_not.code ? output_string(c->why_not.text) : json_null());
}

static const char *clocks(char *out, size_t cap, const struct card_drm *drm)
{
	*out = 0;
	if (drm->core_mhz)
		snprintf(out, cap, "; now at %u MHz, memory at %u MHz", drm->core_mhz, drm->memory_mhz);
	return out;
}

static void tell_card(struct doctor *d, const struct amd_card *c, json_t *list)
{
	char size[FACTS_SIZE], used[FACTS_SIZE], now[64];
	struct card_drm drm;

	card_drm_read(&drm, c->render_minor);
	json_array_append_new(list, card_member(c, &drm));
	doctor_tell(d, "AMD card", NULL, NULL, "%s at %s%s%s", *drm.name ? drm.name : c->name,
	            *c->pci ? c->pci : "an unknown place", c->target ? ", " : "", c->target ? c->target->name : "");
	if (c->units)
		doctor_tell(d, "", NULL, NULL, "%u compute units, up to %u MHz%s", c->units, c->clock_mhz,
		            *drm.driver ? "" : "; the display driver says nothing");
	if (*drm.driver)
		doctor_tell(d, "", NULL, NULL, "driver %s%s", drm.driver, clocks(now, sizeof now, &drm));
	if (c->vram_bytes)
		doctor_tell(d, "", NULL, NULL, "%s of memory, %s of it in use%s", facts_size(size, c->vram_bytes),
		            facts_size(used, drm.vram_used), c->integrated ? ", part of the machine's own" : "");
	doctor_tell(d, "", NULL, NULL, "%s%s", c->why_not.code ? "cannot be used: " : "can be opened", c->why_not.text);
	if (!c->integrated && c->vram_bytes && !c->visible_bytes)
		doctor_advise(d,
		              "the processor sees only a part of the memory of %s; switch on Resizable BAR (Above 4G "
		              "Decoding) in the firmware's setup",
		              c->name);
}

/* A number of a card's folder below /sys/class/drm; -1: it is not there. */
static long card_number(int minor, const char *file)
{
	char path[128], line[32];

	snprintf(path, sizeof path, "/sys/class/drm/renderD%d/device/%s", minor, file);
	FILE *f = fopen(path, "re");
	long n = f && fgets(line, sizeof line, f) ? strtol(line, NULL, 0) : -1;
	if (f)
		fclose(f);
	return n;
}

/* Cards of AMD that the display driver has and the compute driver has not. */
static void tell_left_out(struct doctor *d, const struct amd_topology *t, json_t *list)
{
	for (int minor = RENDER_FIRST; minor < RENDER_END; minor++) {
		bool known = card_number(minor, "vendor") != VENDOR_AMD;
		for (size_t i = 0; i < t->n; i++)
			known |= t->card[i].render_minor == minor || !t->card[i].units;
		if (known)
			continue;
		json_array_append_new(list, json_pack("{s:i, s:s}", "render_minor", minor, "why_not",
		                                      "the compute driver leaves it out"));
		doctor_tell(d, "AMD card", NULL, NULL,
		            "renderD%d, device %04lx: the compute driver (amdkfd) leaves it out", minor,
		            card_number(minor, "device"));
		doctor_advise(d,
		              "the kernel's log says why renderD%d is left out (dmesg | grep kfd); often the slot has "
		              "no PCIe atomics, or the kernel is built without HSA_AMD",
		              minor);
	}
}

/* Which version of its interface the compute driver has. */
static void tell_driver(struct doctor *d)
{
	struct kfd_version v = { 0 };
	int fd = open(KFD_PATH, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return; /* the cards say why not */
	bool ok = ioctl(fd, KFD_GET_VERSION, &v) == 0;
	close(fd);
	if (!ok)
		return;
	doctor_tell(d, "AMD driver", "amd_driver", json_sprintf("%u.%u", v.major, v.minor), "amdkfd %u.%u", v.major,
	            v.minor);
	if (v.major != KFD_MAJOR || v.minor < KFD_MINOR_MIN)
		doctor_advise(
			d,
			"the compute driver's interface is %u.%u, expected %d.%d or a later %d.x: Linux 5.19 or a "
			"later one has it",
			v.major, v.minor, KFD_MAJOR, KFD_MINOR_MIN, KFD_MAJOR);
}

static void tell_amd(struct doctor *d)
{
	static struct amd_topology t;
	json_t *list = json_array();
	struct error err = { 0 };

	if (!amd_topology_read(&t, &err)) {
		t.n = 0;
		doctor_tell(d, "AMD cards", "amd_why_not", json_string(err.text), "%s", err.text);
	} else if (!t.n) {
		doctor_tell(d, "AMD cards", NULL, NULL, "none");
	}
	bool denied = false;
	tell_driver(d);
	for (size_t i = 0; i < t.n; i++) {
		tell_card(d, &t.card[i], list);
		denied |= strstr(t.card[i].why_not.text, "/dev/") != NULL;
	}
	if (denied)
		doctor_advise(d, "docs/amd.md says how to get the right to open /dev/kfd and the cards' files");
	tell_left_out(d, &t, list);
	json_object_set_new(d->object, "amd_cards", list);
}

/* ---- the rest */

bool doctor_no_cards(const char *driver, struct error *why_not)
{
	static struct amd_topology t;

	if (strcmp(driver, "cuda") == 0)
		return !cuda_library(why_not);
	if (!amd_topology_read(&t, why_not))
		return true;
	return !t.n && !error_set(why_not, ERROR_DEVICE, "there is no AMD card");
}

static void tell_nvidia(struct doctor *d)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	struct error why_not = { 0 };
	bool none = doctor_no_cards("cuda", &why_not);

	doctor_tell(d, "NVIDIA cards", "libcuda", json_boolean(cuda != NULL), "%s",
	            none ? why_not.text
	                 : "their driver is there, the cards are among the devices; \"jitrun doctor --device cuda "
	                   "--report FILE\" tries one");
	if (cuda)
		dlclose(cuda);
}

static void tell_devices(struct doctor *d)
{
	json_t *list = json_array();
	size_t n = jit_device_count();

	for (size_t i = 0; i < n; i++) {
		jit_device_info e = JIT_DEVICE_INFO();
		if (jit_device_get_info(i, &e, NULL) != JIT_OK || strncmp(e.name, "sim:", 4) == 0)
			continue;
		json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "name", output_string(e.name), "about",
		                                      output_string(e.about), "why_not",
		                                      *e.why_not ? output_string(e.why_not) : json_null()));
		doctor_tell(d, json_array_size(list) == 1 ? "devices" : "", NULL, NULL, "%s: %s%s%s", e.name, e.about,
		            *e.why_not ? "; cannot be used: " : "", e.why_not);
	}
	json_object_set_new(d->object, "devices", list);
}

void doctor_cards(struct doctor *d)
{
	tell_amd(d);
	tell_nvidia(d);
	tell_devices(d);
}
