/* tests/fake_kfd/sysfs.c - the part of /sys and /dev that tells of the cards, as files in a folder. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fake_kfd/fake.h"

#define NODES "sys/devices/virtual/kfd/kfd/topology"
#define SYMLINK(to, from) (void)!link_to(to, from)

static void parents(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0777);
		*p = '/';
	}
}

static void file(const char *relative, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void file(const char *relative, const char *format, ...)
{
	char path[1024];
	va_list ap;

	snprintf(path, sizeof path, "%s/%s", fake.dir, relative);
	parents(path);
	FILE *f = fopen(path, "w");
	if (!f) {
		fprintf(stderr, "fake kfd: %s cannot be written: %s\n", path, strerror(errno));
		abort();
	}
	va_start(ap, format);
	vfprintf(f, format, ap);
	va_end(ap);
	fclose(f);
}

static bool link_to(const char *to, const char *relative)
{
	char path[1024];

	snprintf(path, sizeof path, "%s/%s", fake.dir, relative);
	parents(path);
	return symlink(to, path) == 0;
}

static void cpu_node(void)
{
	file(NODES "/nodes/0/gpu_id", "0\n");
	file(NODES "/nodes/0/name", "\n");
	file(NODES "/nodes/0/properties",
	     "cpu_cores_count 8\nsimd_count 0\nmem_banks_count 1\ncaches_count 0\nio_links_count 0\np2p_links_count 0\n"
	     "cpu_core_id_base 0\nsimd_id_base 0\nmax_waves_per_simd 0\nlds_size_in_kb 0\ngds_size_in_kb 0\nnum_gws 0\n"
	     "wave_front_size 0\narray_count 0\nsimd_arrays_per_engine 0\ncu_per_simd_array 0\nsimd_per_cu 0\n"
	     "max_slots_scratch_cu 0\ngfx_target_version 0\nvendor_id 0\ndevice_id 0\nlocation_id 0\ndomain 0\n"
	     "drm_render_minor 0\nhive_id 0\nnum_sdma_engines 0\nnum_sdma_xgmi_engines 0\n"
	     "num_sdma_queues_per_engine 0\nnum_cp_queues 0\nmax_engine_clk_ccompute 4000\n");
	file(NODES "/nodes/0/mem_banks/0/properties",
	     "heap_type 0\nsize_in_bytes 34359738368\nflags 0\nwidth 64\nmem_clk_max 3200\n");
}

static void gpu_properties(const struct card *c, unsigned node)
{
	char name[128], save[128] = "";

	if (fake.minor >= 18)
		snprintf(save, sizeof save, "cwsr_size %llu\nctl_stack_size %llu\n", (unsigned long long)c->save_size,
		         (unsigned long long)c->control_size);
	snprintf(name, sizeof name, NODES "/nodes/%u/properties", node);
	file(name,
	     "cpu_cores_count 0\nsimd_count %u\nmem_banks_count %u\ncaches_count 0\nio_links_count 1\n"
	     "p2p_links_count 0\ncpu_core_id_base 0\nsimd_id_base 2147487744\nmax_waves_per_simd 16\n"
	     "lds_size_in_kb 64\ngds_size_in_kb 0\nnum_gws 64\nwave_front_size 32\narray_count 1\n"
	     "simd_arrays_per_engine 1\ncu_per_simd_array %u\nsimd_per_cu 2\nmax_slots_scratch_cu 32\n"
	     "gfx_target_version %u\nvendor_id 4098\ndevice_id %u\nlocation_id %u\ndomain 0\ndrm_render_minor %u\n"
	     "hive_id 0\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine 6\n"
	     "num_cp_queues 8\nmax_engine_clk_fcompute 2200\nlocal_mem_size 0\nfw_version 108\n"
	     "capability 1745916576\ndebug_prop 1495\nsdma_fw_version 52\nunique_id %llu\nnum_xcc 1\n%s"
	     "max_engine_clk_ccompute 4000\n",
	     c->cus * 2, c->bar < c->vram ? 2u : 1u, c->cus, c->version, c->device_id,
	     (c->render - FIRST_RENDER + 3) << 8, c->render, 0x5eed000000000000ull + c->gpu_id, save);
}

static void gpu_node(const struct card *c, unsigned node)
{
	static const char bank[] = "heap_type %u\nsize_in_bytes %llu\nflags 0\nwidth 256\nmem_clk_max 1000\n";
	char name[128];

	snprintf(name, sizeof name, NODES "/nodes/%u/gpu_id", node);
	file(name, "%u\n", c->gpu_id);
	snprintf(name, sizeof name, NODES "/nodes/%u/name", node);
	file(name, "%s\n", c->target);
	gpu_properties(c, node);
	snprintf(name, sizeof name, NODES "/nodes/%u/mem_banks/0/properties", node);
	file(name, bank, 1u, (unsigned long long)c->bar);
	if (c->bar < c->vram) {
		snprintf(name, sizeof name, NODES "/nodes/%u/mem_banks/1/properties", node);
		file(name, bank, 2u, (unsigned long long)(c->vram - c->bar));
	}
	snprintf(name, sizeof name, NODES "/nodes/%u/io_links/0/properties", node);
	file(name,
	     "type 2\nversion_major 0\nversion_minor 0\nnode_from %u\nnode_to 0\nweight 20\nmin_latency 0\n"
	     "max_latency 0\nmin_bandwidth 312\nmax_bandwidth 31504\nrecommended_transfer_size 0\n"
	     "recommended_sdma_engine_id_mask 0\nflags 1\n",
	     node);
}

static void number(const struct card *c, const char *relative, unsigned long long n)
{
	char name[512];

	snprintf(name, sizeof name, "sys/devices/pci0000:00/0000:%02x:00.0/%s", c->render - FIRST_RENDER + 3, relative);
	file(name, "%llu\n", n);
}

static void text(const struct card *c, const char *relative, const char *value)
{
	char name[512];

	snprintf(name, sizeof name, "sys/devices/pci0000:00/0000:%02x:00.0/%s", c->render - FIRST_RENDER + 3, relative);
	file(name, "%s\n", value);
}

static void hex(const struct card *c, const char *relative, unsigned value)
{
	char t[16];

	snprintf(t, sizeof t, "0x%04x", value);
	text(c, relative, t);
}

/* The card's folder as a PCI device, and the ways that lead there. */
static void drm_files(const struct card *c)
{
	unsigned bus = c->render - FIRST_RENDER + 3, card = c->render - FIRST_RENDER;
	char path[256], uevent[256], to[256];

	hex(c, "vendor", 0x1002);
	hex(c, "device", c->device_id);
	hex(c, "subsystem_vendor", 0x1002);
	hex(c, "subsystem_device", 0x0e3a);
	hex(c, "revision", CARD_REVISION);
	text(c, "class", "0x030000");
	number(c, "mem_info_vram_total", c->vram);
	number(c, "mem_info_vram_used", 64 << 20);
	number(c, "mem_info_vis_vram_total", c->bar);
	number(c, "mem_info_gtt_total", c->gtt);
	snprintf(uevent, sizeof uevent, "DRIVER=amdgpu\nPCI_ID=1002:%04X\nPCI_SLOT_NAME=0000:%02x:00.0", c->device_id,
	         bus);
	text(c, "uevent", uevent);
	snprintf(uevent, sizeof uevent, "MAJOR=226\nMINOR=%u\nDEVNAME=dri/renderD%u\nDEVTYPE=drm_minor", c->render,
	         c->render);
	snprintf(path, sizeof path, "drm/renderD%u/uevent", c->render);
	text(c, path, uevent);
	snprintf(path, sizeof path, "drm/renderD%u/dev", c->render);
	snprintf(to, sizeof to, "226:%u", c->render);
	text(c, path, to);
	snprintf(path, sizeof path, "drm/card%u/dev", card);
	snprintf(to, sizeof to, "226:%u", card);
	text(c, path, to);
	for (unsigned i = 0; i < 2; i++) {
		const char *name = i ? "card" : "renderD";
		unsigned minor = i ? card : c->render;
		snprintf(path, sizeof path, "sys/devices/pci0000:00/0000:%02x:00.0/drm/%s%u/device", bus, name, minor);
		SYMLINK("../..", path);
		snprintf(to, sizeof to, "../../devices/pci0000:00/0000:%02x:00.0/drm/%s%u", bus, name, minor);
		snprintf(path, sizeof path, "sys/class/drm/%s%u", name, minor);
		SYMLINK(to, path);
		snprintf(path, sizeof path, "sys/dev/char/226:%u", minor);
		SYMLINK(to, path);
		snprintf(path, sizeof path, "dev/dri/%s%u", name, minor);
		file(path, "%s", "");
	}
	snprintf(path, sizeof path, "sys/devices/pci0000:00/0000:%02x:00.0/subsystem", bus);
	SYMLINK("../../../bus/pci", path);
	snprintf(path, sizeof path, "sys/devices/pci0000:00/0000:%02x:00.0/driver", bus);
	SYMLINK("../../../bus/pci/drivers/amdgpu", path);
}

static void everything(void)
{
	file(NODES "/generation_id", "2\n");
	file(NODES "/system_properties", "platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
	file("sys/module/amdgpu/version", "6.8.0\n");
	file("sys/module/amdgpu/initstate", "live\n");
	file("sys/bus/pci/drivers/amdgpu/bind", "%s", "");
	file("run/lock/here", "%s", ""); /* programs that take turns on a card, each on its own */
	SYMLINK("../../devices/virtual/kfd/kfd", "sys/class/kfd/kfd");
	cpu_node();
	file("dev/kfd", "%s", "");
	for (unsigned i = 0; i < fake.n_cards; i++) {
		gpu_node(&fake.card[i], i + 1);
		drm_files(&fake.card[i]);
	}
}

bool sysfs_make(void)
{
	const char *dir = getenv("FAKE_KFD_DIR"), *tmp = getenv("TMPDIR");
	char done[600];

	snprintf(fake.dir, sizeof fake.dir, "%s", dir ? dir : "");
	if (!dir) {
		snprintf(fake.dir, sizeof fake.dir, "%s/fake_kfd.XXXXXX", tmp && *tmp ? tmp : "/tmp");
		if (!mkdtemp(fake.dir))
			return false;
		fake.dir_is_ours = true;
	}
	mkdir(fake.dir, 0777);
	snprintf(done, sizeof done, "%s/accounts", fake.dir);
	int fd = open(done, O_RDWR | O_CREAT | O_CLOEXEC, 0666); /* the first of several processes makes the files */
	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		return false;
	snprintf(done, sizeof done, "%s/dev/kfd", fake.dir);
	if (access(done, F_OK) != 0)
		everything();
	close(fd);
	return true;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *f)
{
	(void)s;
	(void)type;
	(void)f;
	return remove(path);
}

void sysfs_remove(void)
{
	if (fake.dir_is_ours)
		nftw(fake.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void sysfs_gone(const struct card *c)
{
	char path[600];

	snprintf(path, sizeof path, "%s/dev/dri/renderD%u", fake.dir, c->render);
	unlink(path);
	snprintf(path, sizeof path, "%s/" NODES "/nodes/%u", fake.dir, c->render - FIRST_RENDER + 1);
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
