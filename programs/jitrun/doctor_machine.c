/* programs/jitrun/doctor_machine.c - jitrun doctor --report: what firmware, drivers and the slot of an AMD card are.
 * Known hangs of cards are of one firmware or one kernel, so a report is of little use without them.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <fcntl.h>
#include <unistd.h>

#include "programs/common/output.h"
#include "programs/jitrun/card_drm.h"
#include "programs/jitrun/doctor_report.h"
#include "runtime/device/amd/amd_topology.h"
#include "runtime/device/amd/kfd_abi.h"

enum { LINE = 128, PATH = 256 };

/* The first line of a file of the card's, NULL where there is none. */
static json_t *line_of(const struct amd_card *c, const char *name)
{
	char path[PATH], line[LINE] = "";

	snprintf(path, sizeof path, "/sys/class/drm/renderD%d/device/%s", c->render_minor, name);
	FILE *f = fopen(path, "re");
	const bool ok = f && fgets(line, sizeof line, f);
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	return ok ? output_string(line) : json_null();
}

static json_t *firmware_member(const struct amd_card *c)
{
	static const char *const parts[] = { "mec", "mec2", "mes", "mes_kiq", "sdma", "sdma2",
		                             "sos", "rlc",  "smc", "pfp",     "me",   "imu" };
	json_t *o = json_object();

	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		char name[64];
		snprintf(name, sizeof name, "fw_version/%s_fw_version", parts[i]);
		json_object_set_new(o, parts[i], line_of(c, name));
	}
	json_object_set_new(o, "vbios", line_of(c, "vbios_version"));
	return o;
}

/* Connectors with a display, of all cards; -1: the system does not say. */
static int count_displays(const struct amd_card *c)
{
	char path[PATH], line[LINE];
	int n = 0;

	snprintf(path, sizeof path, "/sys/class/drm/renderD%d/device/drm", c->render_minor);
	DIR *cards = opendir(path);
	if (!cards)
		return -1;
	for (const struct dirent *d; (d = readdir(cards));) {
		if (strncmp(d->d_name, "card", 4) != 0 || strlen(d->d_name) > 16)
			continue;
		snprintf(path, sizeof path, "/sys/class/drm/renderD%d/device/drm/%.16s", c->render_minor, d->d_name);
		DIR *outputs = opendir(path);
		for (const struct dirent *o; outputs && (o = readdir(outputs));) {
			char status[2 * PATH + 300];
			snprintf(status, sizeof status, "%s/%s/status", path, o->d_name);
			FILE *f = strncmp(o->d_name, "card", 4) == 0 ? fopen(status, "re") : NULL;
			n += f && fgets(line, sizeof line, f) && strncmp(line, "connected", 9) == 0;
			if (f)
				fclose(f);
		}
		if (outputs)
			closedir(outputs);
	}
	closedir(cards);
	return n;
}

static json_t *driver_version(void)
{
	struct kfd_version v = { 0 };
	int fd = open(KFD_PATH, O_RDWR | O_CLOEXEC);
	const bool ok = fd >= 0 && ioctl(fd, KFD_GET_VERSION, &v) == 0;

	if (fd >= 0)
		close(fd);
	return ok ? json_sprintf("%u.%u", v.major, v.minor) : json_null();
}

/* Without the machine's name, which uname() has too. */
static json_t *kernel_string(void)
{
	struct utsname u;

	if (uname(&u))
		return json_null();
	json_t *whole = json_sprintf("%s %s %s", u.release, u.version, u.machine);
	json_t *safe = whole ? output_string(json_string_value(whole)) : json_null();
	json_decref(whole);
	return safe;
}

json_t *report_card_drivers(const struct amd_card *c)
{
	struct card_drm drm;

	card_drm_read(&drm, c->render_minor);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:o, s:o}", "kernel_string",
	                 kernel_string(), "amdkfd", driver_version(), "amdgpu",
	                 *drm.driver ? output_string(drm.driver) : json_null(), "asked_by",
	                 drm.from ? json_string(drm.from) : json_null(), "firmware", firmware_member(c), "link_speed",
	                 line_of(c, "current_link_speed"), "link_width", line_of(c, "current_link_width"), "displays",
	                 count_displays(c), "core_mhz", (int)drm.core_mhz, "memory_mhz", (int)drm.memory_mhz,
	                 "visible_mib", (int)(c->visible_bytes >> 20), "core_clocks", line_of(c, "pp_dpm_sclk"),
	                 "power_profile", line_of(c, "power_dpm_force_performance_level"));
}
