/* tests/fake_kfd/drm.c - the render nodes: what libdrm and others ask of a card. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "tests/fake_kfd/fake.h"

struct io_drm_version {
	int major, minor, patch;
	size_t name_size;
	char *name;
	size_t date_size;
	char *date;
	size_t text_size;
	char *text;
};
struct io_drm_info {
	uint64_t to;
	uint32_t size, query, more[4];
};
enum { DRM_VERSION = 0x00, DRM_INFO = 0x45 };
enum {
	INFO_WORKS = 0x00,
	INFO_VRAM_USED = 0x10,
	INFO_GTT_USED = 0x11,
	INFO_VRAM_GTT = 0x14,
	INFO_REGISTERS = 0x15,
	INFO_DEVICE = 0x16,
	INFO_VISIBLE_USED = 0x17,
	INFO_MEMORY = 0x19
};
struct heap {
	uint64_t total, usable, used, largest;
};

static void give_text(char *to, size_t *size, const char *from)
{
	size_t n = strlen(from);

	if (to)
		memcpy(to, from, *size < n ? *size : n);
	*size = n;
}

static int version(struct io_drm_version *v)
{
	v->major = 3;
	v->minor = 57;
	v->patch = 0;
	give_text(v->name, &v->name_size, "amdgpu");
	give_text(v->date, &v->date_size, "20150101");
	give_text(v->text, &v->text_size, "AMD GPU");
	return 0;
}

static void device_words(const struct card *c, uint32_t w[84])
{
	memset(w, 0, 84 * sizeof *w);
	w[0] = c->device_id;
	w[3] = CARD_REVISION;
	w[4] = c->version / 10000 == 10 ? 143 : c->version / 10000 == 11 ? 145 : 152; /* the family */
	w[5] = w[6] = 1;
	w[12] = c->cus;
	w[68] = 32; /* lanes of a wave */
}

static int info(const struct card *c, const struct io_drm_info *q)
{
	struct heap heaps[3] = { { c->vram, memory_available(c), account_used(c), c->vram / 4 * 3 },
		                 { c->bar, c->bar, 0, c->bar / 4 * 3 },
		                 { c->gtt, c->gtt, 0, c->gtt / 4 * 3 } };
	uint64_t sizes[3] = { c->vram, c->bar, c->gtt };
	uint32_t device[84], works = 1, registers[64] = { 0 };
	uint64_t used = account_used(c);
	const void *from = NULL;
	size_t n = 0;

	device_words(c, device);
	switch (q->query) {
	case INFO_WORKS:
		from = &works;
		n = sizeof works;
		break;
	case INFO_VRAM_USED:
	case INFO_VISIBLE_USED:
	case INFO_GTT_USED:
		from = &used;
		n = sizeof used;
		break;
	case INFO_VRAM_GTT:
		from = sizes;
		n = sizeof sizes;
		break;
	case INFO_REGISTERS:
		from = registers;
		n = sizeof registers;
		break;
	case INFO_DEVICE:
		from = device;
		n = sizeof device;
		break;
	case INFO_MEMORY:
		from = heaps;
		n = sizeof heaps;
		break;
	default: return EINVAL;
	}
	if (!q->to)
		return EFAULT;
	memcpy((void *)(uintptr_t)q->to, from, q->size < n ? q->size : n);
	return 0;
}

int drm_ioctl(struct card *c, unsigned long request, void *argument)
{
	int error = inject_call("ioctl-render");
	unsigned at = fake.calls;

	if (!error && c->gone)
		error = ENODEV;
	if (!error && (_IOC_TYPE(request) != 'd' || !argument))
		error = EINVAL;
	if (!error)
		switch (_IOC_NR(request)) {
		case DRM_VERSION: error = version(argument); break;
		case DRM_INFO: error = info(c, argument); break;
		default: error = EINVAL;
		}
	trace_call(at, "ioctl-render", error);
	return error;
}
