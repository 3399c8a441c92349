#include "runtime/device/amd/amd_topology.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/backend.h"
#include "runtime/device/amd/kfd_abi.h"

#define NAMES_PATH "/usr/share/libdrm/amdgpu.ids"

enum { NODES_MAX = 1024, BANKS_MAX = 64, TEXT_MAX = 8192, NAMES_MAX = 1 << 20, TRIES = 5 };
/* Of a public or a private heap of the card's memory; heaps of the machine's are 0. */
enum { HEAP_PUBLIC = 1, HEAP_PRIVATE = 2 };
/* Transfers of GDDR6, which all cards with memory of their own have, in a cycle of the clock that the driver tells. */
enum { GDDR6_TRANSFERS = 16 };

/* ---- files */

/* Where a file lies below the root. */
struct sysfs_path {
	char path[512];
};

static struct sysfs_path sysfs_path(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));
static struct sysfs_path sysfs_path(const char *root, const char *format, ...)
{
	struct sysfs_path p;
	va_list ap;

	va_start(ap, format);
	int n = snprintf(p.path, sizeof p.path, "%s", root);
	if (n < 0 || (size_t)n >= sizeof p.path ||
	    vsnprintf(p.path + n, sizeof p.path - (size_t)n, format, ap) >= (int)(sizeof p.path - (size_t)n))
		*p.path = 0;
	va_end(ap);
	return p;
}

/* A whole text with a 0 behind it; false: errno. A longer one is cut. */
static bool read_text(struct sysfs_path p, char *out, size_t cap)
{
	int fd = open(p.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t n = 0;
	ssize_t got = 1;

	while (fd >= 0 && n + 1 < cap && (got = read(fd, out + n, cap - 1 - n)) > 0)
		n += (size_t)got;
	int e = errno;
	if (fd >= 0)
		close(fd);
	out[n] = 0;
	errno = e;
	return fd >= 0 && got >= 0;
}

/* A number at the beginning of a text, to the end of its line. */
static bool whole_number(const char *at, int base, uint64_t *out)
{
	char *end;

	if (!((*at >= '0' && *at <= '9') || (base == 16 && *at >= 'a' && *at <= 'f')))
		return false;
	errno = 0;
	*out = strtoull(at, &end, base);
	return errno == 0 && (*end == '\n' || *end == 0);
}

static bool read_number(struct sysfs_path p, int base, uint64_t *out)
{
	char text[64];

	if (!read_text(p, text, sizeof text))
		return false;
	if (whole_number(text + (base == 16 && strncmp(text, "0x", 2) == 0 ? 2 : 0), base, out))
		return true;
	errno = EBADMSG;
	return false;
}

/* ---- properties: lines of a name and a number */

struct properties {
	unsigned node;
	char text[TEXT_MAX];
	struct error *err; /* why a value cannot be taken; the first one stays */
};

/* The value behind a name, at most `max`; 0 where the driver does not tell it. */
static uint64_t property(const struct properties *p, const char *name, uint64_t max)
{
	size_t n = strlen(name);
	char quoted[64];
	uint64_t value;

	for (const char *at = p->text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
		if (strncmp(at, name, n) != 0 || at[n] != ' ')
			continue;
		if (whole_number(at + n + 1, 10, &value) && value <= max)
			return value;
		error_set(p->err, ERROR_FORMAT, "the driver says of node %u: %s is \"%s\", expected 0 to %" PRIu64,
		          p->node, name, error_quote(quoted, sizeof quoted, at + n + 1, strcspn(at + n + 1, "\n")),
		          max);
		return 0;
	}
	return 0;
}

/* ---- names of products */

/* "73DF,\tC1,\tAMD Radeon RX 6700 XT": the name in a line for such a device, or NULL. */
static const char *name_in(const char *line, uint64_t device, uint64_t revision)
{
	char *end;

	if (strtoull(line, &end, 16) != device || *end != ',' || end == line)
		return NULL;
	const char *second = end + 1 + strspn(end + 1, " \t");
	if (strtoull(second, &end, 16) != revision || *end != ',' || end == second)
		return NULL;
	return end + 1 + strspn(end + 1, " \t");
}

/* The name that libdrm's table has for the card, "" where it has none. */
static void find_name(const char *root, uint64_t device, uint64_t revision, char *out, size_t cap)
{
	static const char maker[] = "AMD ";
	char *text = malloc(NAMES_MAX);

	*out = 0;
	if (text && read_text(sysfs_path(root, NAMES_PATH), text, NAMES_MAX))
		for (const char *line = text; line && !*out; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
			const char *name = name_in(line, device, revision);
			if (!name)
				continue;
			name += strncmp(name, maker, sizeof maker - 1) == 0 ? sizeof maker - 1 : 0;
			error_quote(out, (unsigned)cap, name, strcspn(name, "\r\n"));
		}
	free(text);
}

static void name_card(struct amd_card *c, const char *root, uint64_t device)
{
	char text[256];
	uint64_t revision;

	*c->name = 0;
	if (read_text(sysfs_path(root, "/sys/class/drm/renderD%d/device/product_name", c->render_minor), text,
	              sizeof text))
		error_quote(c->name, sizeof c->name, text, strcspn(text, "\n"));
	if (!*c->name &&
	    read_number(sysfs_path(root, "/sys/class/drm/renderD%d/device/revision", c->render_minor), 16, &revision))
		find_name(root, device, revision, c->name, sizeof c->name);
	if (!*c->name)
		snprintf(c->name, sizeof c->name, "gfx%u%x%x", c->gfx_version / 10000, c->gfx_version / 100 % 100,
		         c->gfx_version % 100);
}

/* ---- one card */

static const struct target *target_of(uint32_t gfx_version)
{
	char name[32];

	snprintf(name, sizeof name, "gfx%u%x%x", gfx_version / 10000, gfx_version / 100 % 100, gfx_version % 100);
	const struct target *t = target_find(name);
	return t && !t->backend->host_runs ? t : NULL;
}

/* Processors with a GPU inside. The driver tells it by cores on the card's own node, but no longer of newer ones. */
static bool is_integrated(const struct target *t, bool with_cores)
{
	static const enum target_id inside[] = { TARGET_GFX1033, TARGET_GFX1035, TARGET_GFX1036,
		                                 TARGET_GFX1103, TARGET_GFX1150, TARGET_GFX1151 };

	for (size_t i = 0; t && i < sizeof inside / sizeof *inside; i++)
		if (t->id == inside[i])
			return true;
	return with_cores;
}

/* All the card's memory, and whether the CPU can map all of it. */
static void read_memory(struct amd_card *c, const char *root)
{
	struct properties p = { .node = c->node, .err = &c->why_not };
	uint64_t hidden = 0, rate = 0;

	for (unsigned bank = 0; bank < BANKS_MAX; bank++) {
		if (!read_text(sysfs_path(root, KFD_TOPOLOGY_PATH "/nodes/%u/mem_banks/%u/properties", c->node, bank),
		               p.text, sizeof p.text))
			break;
		uint64_t heap = property(&p, "heap_type", UINT32_MAX);
		if (heap != HEAP_PUBLIC && heap != HEAP_PRIVATE)
			continue;
		uint64_t bytes = property(&p, "size_in_bytes", UINT64_C(1) << 48);
		rate = property(&p, "width", 1 << 16) / 8 * property(&p, "mem_clk_max", 1 << 20);
		c->vram_bytes += bytes;
		hidden += heap == HEAP_PRIVATE ? bytes : 0;
	}
	c->visible_bytes = hidden ? 0 : c->vram_bytes;
	c->bandwidth = c->integrated ? 0 : rate * GDDR6_TRANSFERS * 1000000;
}

/* The target's constants decide how a launch is divided, so a card that has others is refused. */
static bool check_shape(const struct amd_card *c, struct error *err)
{
	char known[TARGET_LIST_MAX];

	if (!c->gfx_version)
		return error_set(
			err, ERROR_UNSUPPORTED,
			"the driver does not tell what this card's instructions are: Linux 5.19 or a later one "
			"is needed");
	if (!c->target)
		return error_set(err, ERROR_UNSUPPORTED, "jitrun makes no code for gfx%u%x%x; it does for %s",
		                 c->gfx_version / 10000, c->gfx_version / 100 % 100, c->gfx_version % 100,
		                 target_list(known, sizeof known, TARGETS_OF_CARDS, "", ", "));
	if (c->simds_per_unit != TARGET_UNIT_SIMDS || c->waves_per_simd != TARGET_SIMD_WAVES ||
	    c->lds_bytes != TARGET_UNIT_LDS || !c->units)
		return error_set(
			err, ERROR_UNSUPPORTED,
			"the driver says that %s has %u compute units of %u SIMDs with %u waves and %u bytes of "
			"LDS, expected 1 or more of %d, %d and %d",
			c->target->name, c->units, c->simds_per_unit, c->waves_per_simd, c->lds_bytes,
			TARGET_UNIT_SIMDS, TARGET_SIMD_WAVES, TARGET_UNIT_LDS);
	return true;
}

/* Who may open a device file is the commonest trouble. */
static bool check_file(const char *root, const char *path, struct error *err)
{
	struct sysfs_path p = sysfs_path(root, "%s", path);

	if (access(p.path, R_OK | W_OK) == 0)
		return true;
	return error_set(err, ERROR_DEVICE, "%s cannot be opened: %s; %s", path, strerror(errno),
	                 errno == EACCES || errno == EPERM
	                         ? "add this user to the group that owns the file, render or video, and log in again"
	                         : "in a container, pass the device on; otherwise load the kernel module amdgpu");
}

static void read_shape(struct amd_card *c, const struct properties *p)
{
	uint64_t simds = property(p, "simd_count", 1 << 16), location = property(p, "location_id", UINT32_MAX);

	c->gfx_version = (uint32_t)property(p, "gfx_target_version", 999999);
	c->target = target_of(c->gfx_version);
	c->simds_per_unit = (uint32_t)property(p, "simd_per_cu", 1024);
	c->units = c->simds_per_unit ? (uint32_t)simds / c->simds_per_unit : 0;
	c->waves_per_simd = (uint32_t)property(p, "max_waves_per_simd", 1024);
	c->lds_bytes = (uint32_t)property(p, "lds_size_in_kb", 1 << 20) << 10;
	c->clock_mhz = (uint32_t)property(p, "max_engine_clk_fcompute", 1 << 20);
	c->unique_id = property(p, "unique_id", UINT64_MAX);
	c->render_minor = (int)property(p, "drm_render_minor", 1 << 20);
	c->cwsr_bytes = (uint32_t)property(p, "cwsr_size", 1 << 30);
	c->ctl_stack_bytes = (uint32_t)property(p, "ctl_stack_size", 1 << 30);
	c->with_cores = property(p, "cpu_cores_count", UINT32_MAX) != 0;
	c->integrated = is_integrated(c->target, c->with_cores);
	snprintf(c->pci, sizeof c->pci, "%04x:%02x:%02x.%x", (unsigned)property(p, "domain", UINT32_MAX) & 0xffff,
	         (unsigned)(location >> 8 & 0xff), (unsigned)(location >> 3 & 0x1f), (unsigned)(location & 7));
}

static void read_card(struct amd_card *c, const char *root)
{
	struct properties p = { .node = c->node, .err = &c->why_not };
	char render[64];

	if (!read_text(sysfs_path(root, KFD_TOPOLOGY_PATH "/nodes/%u/properties", c->node), p.text, sizeof p.text)) {
		error_set(&c->why_not, ERROR_IO, "the driver does not let this process read of node %u: %s", c->node,
		          strerror(errno));
		return;
	}
	read_shape(c, &p);
	read_memory(c, root);
	name_card(c, root, property(&p, "device_id", UINT32_MAX));
	snprintf(render, sizeof render, KFD_RENDER_PATH, c->render_minor);
	if (c->why_not.code == ERROR_NONE && check_shape(c, &c->why_not) && check_file(root, KFD_PATH, &c->why_not))
		check_file(root, render, &c->why_not);
}

/* ---- all of them */

/* False: there is no such node. */
static bool read_node(struct amd_topology *out, const char *root, unsigned node)
{
	uint64_t gpu_id;
	bool known = read_number(sysfs_path(root, KFD_TOPOLOGY_PATH "/nodes/%u/gpu_id", node), 10, &gpu_id) &&
	             gpu_id <= UINT32_MAX;
	struct amd_card *c = &out->card[out->n];

	if (!known && (errno == ENOENT || errno == ENOTDIR))
		return false;
	if ((known && !gpu_id) || out->n == AMD_CARDS)
		return true;
	*c = (struct amd_card){ .node = node, .gpu_id = known ? (uint32_t)gpu_id : 0 };
	out->n++;
	if (known) {
		read_card(c, root);
		return true;
	}
	snprintf(c->name, sizeof c->name, "node %u", node);
	error_set(&c->why_not, errno == EBADMSG ? ERROR_FORMAT : ERROR_DEVICE,
	          "the driver does not tell the number of node %u: %s%s", node, strerror(errno),
	          errno == EPERM || errno == EACCES ? "; this container or control group may not use the card" : "");
	return true;
}

static bool read_generation(const char *root, uint64_t *out, struct error *err)
{
	struct sysfs_path p = sysfs_path(root, KFD_TOPOLOGY_PATH "/generation_id");

	if (read_number(p, 10, out))
		return true;
	if (errno == ENOENT || errno == ENOTDIR)
		return error_set(err, ERROR_DEVICE,
		                 "there is no driver for AMD cards: " KFD_TOPOLOGY_PATH
		                 " is not there; where the machine "
		                 "has such a card, load the kernel module amdgpu");
	return error_set(err, errno == EBADMSG ? ERROR_FORMAT : ERROR_IO,
	                 KFD_TOPOLOGY_PATH "/generation_id cannot be read: %s", strerror(errno));
}

bool amd_topology_read_below(struct amd_topology *out, const char *root, struct error *err)
{
	uint64_t before, after;

	for (unsigned t = 0; t < TRIES; t++) {
		memset(out, 0, sizeof *out);
		if (!read_generation(root, &before, err))
			return false;
		for (unsigned node = 0; node < NODES_MAX && read_node(out, root, node); node++)
			;
		if (!read_generation(root, &after, err))
			return false;
		if (before == after)
			return true;
	}
	return error_set(err, ERROR_IO, KFD_TOPOLOGY_PATH " changed %d times while it was read", TRIES);
}

bool amd_topology_read(struct amd_topology *out, struct error *err) { return amd_topology_read_below(out, "", err); }

/* ---- choosing */

static const struct amd_card *refuse(const struct amd_card *c, struct error *err)
{
	if (c->why_not.code == ERROR_NONE)
		return c;
	error_set(err, c->why_not.code, "%s at %s: %s", c->name, *c->pci ? c->pci : "an unknown place",
	          c->why_not.text);
	return NULL;
}

/* "0: gfx1101 (Radeon RX 7800 XT)", of each card. */
static const char *list_cards(const struct amd_topology *t, char *out, size_t cap)
{
	size_t at = 0;

	*out = 0;
	for (size_t i = 0; i < t->n && at < cap; i++)
		at += (size_t)snprintf(out + at, cap - at, "%s%zu: %s", i ? ", " : "", i, t->card[i].name);
	return *out ? out : "none";
}

const struct amd_card *amd_topology_find(const struct amd_topology *t, const char *which, struct error *err)
{
	const struct amd_card *blamed = NULL;
	bool number = *which && strspn(which, "0123456789") == strlen(which);
	char list[300], quoted[64];

	if (number && strlen(which) < 4 && (size_t)atoi(which) < t->n)
		return refuse(&t->card[atoi(which)], err);
	for (size_t i = 0; !number && i < t->n; i++) {
		const struct amd_card *c = &t->card[i];
		if (*which && (!c->target || strcmp(c->target->name, which) != 0))
			continue;
		if (c->why_not.code == ERROR_NONE)
			return c;
		blamed = blamed ? blamed : c;
	}
	if (blamed)
		return refuse(blamed, err);
	error_set(err, ERROR_DEVICE, "there is no AMD card \"%s\"; the cards here: %s",
	          error_quote(quoted, sizeof quoted, which, strlen(which)), list_cards(t, list, sizeof list));
	return NULL;
}
