/* programs/jitrun/jitrun_doctor.c - jitrun doctor: what this machine offers, what of it is used, and what would help.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "jit/store/cache.h"
#include "jit/target.h"
#include "programs/jitrun/bandwidth.h"
#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_doctor.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/output.h"
#include "runtime/host/system.h"

static struct {
	const char *device, *report;
	long from;
	bool json;
	struct option_about about;
} arg = { .from = 1 };

static const struct option_row rows[] = {
	{ .name = "json", .kind = OPTION_FLAG, .help = "print one JSON line instead of a table", .target = &arg.json },
	{ .name = "device",
	  .kind = OPTION_TEXT,
	  .value = "NAME",
	  .help = "the device that --report tries: amd, amd:1, cuda, sim:gfx1100, sim:sm90, cpu and so on",
	  .target = &arg.device },
	{ .name = "report",
	  .kind = OPTION_FILE,
	  .value = "FILE",
	  .help = "try a device's memory, launches and kernels beside the CPU's, say in some lines what is right, and "
	          "write "
	          "all of it to FILE, as JSON without a path or a name of yours",
	  .target = &arg.report },
	{ .name = "from",
	  .kind = OPTION_INT,
	  .value = "N",
	  .help = "go on with rung N of the ten that --report tries, after a machine that did not come back; FILE "
	          "keeps "
	          "what it says of those below (1)",
	  .low = 1,
	  .high = 10,
	  .target = &arg.from },
	OPTION_ABOUT(arg.about),
};

static struct option_program program = {
	.name = "jitrun doctor",
	.usage = "[--json | --device NAME --report FILE [--from N]]",
	.purpose = "say what this machine offers jitrun, what of it is used, and what would help",
	.description =
		"Reads what the system tells of processors, memory and cards, and measures for a moment how fast "
		"memory is read. Changes nothing. Exit status: 0 models run here, 2 a wrong command line, 3 they "
		"do not.",
	.row = rows,
	.n_rows = sizeof rows / sizeof rows[0]
};

void doctor_tell(struct doctor *d, const char *name, const char *member, json_t *value, const char *format, ...)
{
	char text[FACTS_QUOTED];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	if (!d->json)
		facts_row(stdout, name, "%s", text);
	if (member)
		json_object_set_new(d->object, member, value);
}

void doctor_advise(struct doctor *d, const char *format, ...)
{
	char text[FACTS_QUOTED];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	json_array_append_new(d->advice, output_string(text));
}

/* The first line of a small file; "" where it cannot be read. */
static const char *first_line(const char *path, char *out, size_t cap)
{
	FILE *f = fopen(path, "re");

	*out = 0;
	if (f && fgets(out, (int)cap, f))
		out[strcspn(out, "\n")] = 0;
	if (f)
		fclose(f);
	return out;
}

static json_t *bytes_or_null(uint64_t n) { return n == UINT64_MAX ? json_null() : json_integer((json_int_t)n); }

/* ---- the processor */

/* The target after the best one that runs here. */
static const struct target *next_target(const struct target *best)
{
	const struct target *t = best ? &target_table[best->id + 1] : &target_table[TARGET_NONE + 1];

	return t->id < TARGET_COUNT && t->backend && t->backend->host_runs ? t : NULL;
}

static void tell_target(struct doctor *d)
{
	const struct target_cpu cpu = target_this_cpu();
	struct error why = { 0 }, missing = { 0 };
	const struct target *t = target_judge(&cpu, &why), *next = next_target(t);

	d->runs = t != NULL;
	if (next)
		target_runs(&cpu, next, &missing);
	doctor_tell(d, "code for", "target", t ? json_string(t->name) : json_null(), "%s%s%s",
	            t ? t->name : "nothing: ", t ? next ? "; " : ", the best there is" : why.text,
	            t && next ? missing.text : "");
	json_object_set_new(d->object, "next_target_missing", missing.code ? json_string(missing.text) : json_null());
	if (!t)
		doctor_advise(d,
		              "jitrun needs a processor with AVX2, FMA and F16C; in a virtual machine, let it have the "
		              "host's processor (-cpu host)");
}

static void tell_processor(struct doctor *d)
{
	const struct system_cores c = system_cores();
	int threads = system_default_threads();
	struct utsname system;
	char name[64], quota[64] = "";

	target_cpu_name(name, sizeof name);
	doctor_tell(d, "processor", "processor", output_string(name), "%s", name);
	if (c.quota > 0)
		snprintf(quota, sizeof quota, ", of which the control group may use %.2f", c.quota);
	doctor_tell(d, "cores", "cores", json_integer(c.cores), "%d (%d hardware threads)%s; %d thread%s used", c.cores,
	            c.cpus, quota, threads, threads == 1 ? " is" : "s are");
	json_object_set_new(d->object, "hardware_threads", json_integer(c.cpus));
	json_object_set_new(d->object, "cpu_quota", c.quota > 0 ? json_real(c.quota) : json_null());
	json_object_set_new(d->object, "threads", json_integer(threads));
	if (c.quota > 0 && c.quota < c.cores)
		doctor_advise(d,
		              "the control group's quota of %.2f processors keeps %d of %d cores idle; raise it to use "
		              "them",
		              c.quota, c.cores - threads, c.cores);
	tell_target(d);
	if (uname(&system) == 0)
		doctor_tell(d, "kernel", "kernel", output_string(system.release), "%s %s", system.sysname,
		            system.release);
}

/* ---- memory */

static uint64_t total_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}

static const char *size_or(char out[FACTS_SIZE], uint64_t bytes, const char *otherwise)
{
	return bytes == UINT64_MAX ? otherwise : facts_size(out, bytes);
}

/* failed: what getrlimit() returned. */
static uint64_t limit_of(int failed, const struct rlimit *r)
{
	return !failed && r->rlim_cur != RLIM_INFINITY ? (uint64_t)r->rlim_cur : UINT64_MAX;
}

static void tell_limits(struct doctor *d)
{
	struct rlimit limit;
	uint64_t locked = limit_of(getrlimit(RLIMIT_MEMLOCK, &limit), &limit),
		 space = limit_of(getrlimit(RLIMIT_AS, &limit), &limit),
		 file = limit_of(getrlimit(RLIMIT_FSIZE, &limit), &limit);
	char a[FACTS_SIZE], b[FACTS_SIZE], c[FACTS_SIZE];

	doctor_tell(d, "limits", "memlock_limit", bytes_or_null(locked),
	            "locked memory (ulimit -l): %s; address space (-v): %s; files (-f): %s",
	            size_or(a, locked, "no limit"), size_or(b, space, "no limit"), size_or(c, file, "no limit"));
	json_object_set_new(d->object, "address_space_limit", bytes_or_null(space));
	json_object_set_new(d->object, "file_limit", bytes_or_null(file));
	if (space != UINT64_MAX)
		doctor_advise(d, "the address space is limited to %s (ulimit -v), and larger models cannot be opened",
		              b);
}

/* "always [madvise] never": the one in brackets. */
static void tell_huge_pages(struct doctor *d)
{
	char line[128], *from, *to;

	first_line("/sys/kernel/mm/transparent_hugepage/enabled", line, sizeof line);
	from = strchr(line, '[');
	to = from ? strchr(from, ']') : NULL;
	if (!to) {
		doctor_tell(d, "huge pages", "huge_pages", json_null(), "the system does not say");
		return;
	}
	*to = 0;
	doctor_tell(d, "huge pages", "huge_pages", output_string(from + 1), "%s%s", from + 1,
	            strcmp(from + 1, "never") == 0 ? ": not used" : ": used for weights");
	if (strcmp(from + 1, "never") == 0)
		doctor_advise(d, "huge pages are off; weights are read faster with: echo madvise > "
		                 "/sys/kernel/mm/transparent_hugepage/enabled");
}

static void tell_memory(struct doctor *d)
{
	uint64_t total = total_memory(), available = system_available_memory(), limit = system_memory_limit();
	char a[FACTS_SIZE], b[FACTS_SIZE], c[FACTS_SIZE], group[64] = "";

	if (limit != UINT64_MAX)
		snprintf(group, sizeof group, "; the control group's limit is %s", facts_size(c, limit));
	doctor_tell(d, "memory", "memory_bytes", bytes_or_null(total), "%s, of which %s can be had%s",
	            size_or(a, total, "an unknown size"), size_or(b, available, "an unknown part"), group);
	json_object_set_new(d->object, "available_bytes", bytes_or_null(available));
	json_object_set_new(d->object, "memory_limit", bytes_or_null(limit));
	tell_limits(d);
	tell_huge_pages(d);
}

static void tell_bandwidth(struct doctor *d)
{
	struct bandwidth *b = bandwidth_open_quickly(system_default_threads());

	if (!b) {
		doctor_tell(d, "read speed", "read_bytes_per_second", json_null(), "no memory to measure it with");
		return;
	}
	double rate = bandwidth_sample(b, 2);
	doctor_tell(d, "read speed", "read_bytes_per_second", output_real(rate),
	            "%.1f GB/s: a model whose token reads 1 GB makes about %.0f tokens a second", rate / 1e9,
	            rate / 1e9);
	bandwidth_close(b);
}

/* ---- the cache of generated code */

static void tell_sizes(struct doctor *d, struct cache *c, const char *path)
{
	uint64_t bytes = 0, entries = 0;
	struct error err = { 0 };
	char size[FACTS_SIZE];
	bool ok = cache_size(c, false, &bytes, &entries, NULL, &err), writable = access(path, W_OK | X_OK) == 0;

	if (ok)
		doctor_tell(d, "cache", "cache_bytes", json_integer((json_int_t)bytes),
		            "%s: %s in %" PRIu64 " kernels%s", path, facts_size(size, bytes), entries,
		            writable ? "" : "; it cannot be written");
	else
		doctor_tell(d, "cache", "cache_bytes", json_null(), "%s: %s", path, err.text);
	json_object_set_new(d->object, "cache_writable", json_boolean(writable));
	if (!writable)
		doctor_advise(
			d, "code is generated anew at each start, as the cache cannot be written; JITRUN_CACHE names "
			   "another folder");
}

static void tell_cache(struct doctor *d)
{
	struct error err = { 0 };
	char path[4096];
	struct stat st;

	if (!cache_default_path(path, sizeof path)) {
		doctor_tell(d, "cache", "cache", json_null(),
		            "none: neither JITRUN_CACHE nor XDG_CACHE_HOME nor HOME names a folder");
		doctor_advise(
			d, "code is generated anew at each start; set HOME, or JITRUN_CACHE to a folder of your own");
		return;
	}
	json_object_set_new(d->object, "cache", output_string(path));
	if (!strchr(path, ':') && stat(path, &st) != 0 && errno == ENOENT) {
		doctor_tell(d, "cache", "cache_bytes", json_integer(0), "%s: will be made by the first run", path);
		return;
	}
	struct cache *c = cache_open(path, &(struct cache_options){ .read_only = true }, &err);
	if (c) {
		tell_sizes(d, c, cache_source_count(c) == 1 ? path : "several");
		cache_close(c);
		return;
	}
	doctor_tell(d, "cache", "cache_bytes", json_null(), "cannot be used: %s", err.text);
	doctor_advise(d, "remove or repair the cache folder, or let JITRUN_CACHE name another one");
}

/* ---- all of it */

static void finish(struct doctor *d)
{
	const json_t *sentence;
	size_t i;

	json_object_set_new(d->object, "runs", json_boolean(d->runs));
	if (d->json) {
		json_object_set(d->object, "advice", d->advice);
		json_dumpf(d->object, stdout, output_json_flags(stdout));
		putchar('\n');
		return;
	}
	json_array_foreach(d->advice, i, sentence)
		facts_row(stdout, i ? "" : "what helps", "%s.", json_string_value(sentence));
	facts_row(stdout, "models run here", "%s", d->runs ? "yes" : "no");
}

int jitrun_doctor(int argc, char **argv)
{
	int status = EXIT_USAGE;

	if (!options_parse(&program, argc, argv) || options_about(&program, &arg.about, jit_version(), &status))
		return status;
	if (arg.device && !arg.report)
		return jitrun_usage("to try the device, say where its report goes: --report FILE.json");
	if (arg.report && !arg.device)
		return jitrun_usage("which device is the report of? Give --device, such as --device amd");
	if (arg.from != 1 && !arg.report)
		return jitrun_usage("--from goes with --device and --report");
	if (arg.report && arg.json)
		return jitrun_usage("--json is for doctor without --report, whose file is JSON anyway");
	if (arg.report && strncmp(arg.device, "vulkan", 6) == 0)
		return jitrun_usage("doctor does not try devices of Vulkan yet");
	if (arg.report)
		return doctor_report(arg.device, arg.report, (unsigned)arg.from);
	struct doctor d = { .json = arg.json, .object = json_object(), .advice = json_array() };
	doctor_tell(&d, "jitrun", "version", json_string(jit_version()), "%s", jit_version());
	tell_processor(&d);
	tell_memory(&d);
	if (d.runs)
		tell_bandwidth(&d);
	tell_cache(&d);
	doctor_cards(&d);
	finish(&d);
	json_decref(d.object);
	json_decref(d.advice);
	return d.runs ? 0 : EXIT_NO;
}
