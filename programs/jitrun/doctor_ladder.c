/* programs/jitrun/doctor_ladder.c - jitrun doctor --report: ten rungs, from a program that does nothing to tokens for a
 * minute. See doctor_report.h.
 *
 * Owns: what the file says of each rung. Before a rung is tried, the file says so and is on the disk: a machine that
 * does not come back leaves the name of what it died of. --from goes on behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_read.h"
#include "loaders/files/file.h"
#include "programs/common/output.h"
#include "programs/jitrun/doctor_report.h"
#include "runtime/host/system.h"

static const struct rung {
	const char *name, *what;
	bool (*climb)(struct report *r);
} rungs[REPORT_RUNGS] = {
	{ "end", "the device is opened; on an AMD card one wave runs a program that only ends", rung_end },
	{ "store", "a store that the host sees, memory of every kind, copies", rung_store },
	{ "workgroup", "numbers of instances, memory of a workgroup, its barrier", rung_workgroup },
	{ "instructions", "each class of instructions on fixed operands, beside the CPU", rung_instructions },
	{ "barrier", "barriers over 2, some and all workgroups, 10 000 times", rung_barrier },
	{ "stale data", "each workgroup reads what others have just written, through each cache", rung_stale },
	{ "kernels", "each kernel of small models by a launch of its own", report_kernels },
	{ "layer", "a model of one layer", rung_layer },
	{ "token", "a prompt and tokens of a whole model", report_model },
	{ "tokens", "tokens for a minute; times of launches, barriers and passes", rung_tokens },
};

static json_t *rung_at(const struct report *r, unsigned i) { return json_array_get(r->ladder, i); }

static void set_state(struct report *r, unsigned i, const char *state)
{
	json_object_set_new(rung_at(r, i), "state", json_string(state));
}

static bool is_state(const struct report *r, unsigned i, const char *state)
{
	const char *now = json_string_value(json_object_get(rung_at(r, i), "state"));

	return now && strcmp(now, state) == 0;
}

/* ---- the file */

static bool flush_file(const char *path, int flags, struct error *err)
{
	int fd = open(path, flags | O_CLOEXEC), e = 0;

	if (fd < 0 || (fsync(fd) && errno != EINVAL && errno != EROFS))
		e = errno;
	if (fd >= 0)
		close(fd);
	return !e || error_set(err, ERROR_IO, "%s: cannot be written: %s", path, strerror(e));
}

static bool flush_folder(const char *path, struct error *err)
{
	char copy[4096];

	snprintf(copy, sizeof copy, "%s", path);
	return flush_file(dirname(copy), O_RDONLY | O_DIRECTORY, err);
}

static bool put_text(const char *text, const char *path, struct error *err)
{
	FILE *f = fopen(path, "we");
	bool ok = f && fputs(text, f) >= 0 && fputc('\n', f) != EOF && fflush(f) == 0;
	int e = errno;

	if (ok && fsync(fileno(f)) && errno != EINVAL && errno != EROFS) {
		e = errno;
		ok = false;
	}
	if (f && fclose(f) != 0 && ok) {
		e = errno;
		ok = false;
	}
	return ok || error_set(err, ERROR_IO, "%s: cannot be written: %s", path, strerror(e));
}

/* A file takes the place of the one before as a whole; what is no file is written in place. */
bool report_write(const struct report *r, struct error *err)
{
	char *text = json_dumps(r->object, JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII), beside[4096];
	struct stat st;
	bool ok, is_file = stat(r->path, &st) != 0 || S_ISREG(st.st_mode);

	if (!text)
		return error_set(err, ERROR_MEMORY, "no memory for the report");
	if (!is_file || snprintf(beside, sizeof beside, "%s.new", r->path) >= (int)sizeof beside) {
		ok = put_text(text, r->path, err);
	} else {
		ok = put_text(text, beside, err);
		if (ok && rename(beside, r->path))
			ok = error_set(err, ERROR_IO, "%s: cannot be written: %s", r->path, strerror(errno));
		ok = ok && flush_folder(r->path, err);
		if (!ok)
			unlink(beside);
	}
	free(text);
	return ok;
}

static json_t *read_report(const char *path)
{
	struct file file = { 0 };
	struct error ignored = { 0 };
	json_t *o = file_open(&file, path, &ignored) && file_text(&file, JSON_MAX_INDEX, &ignored)
	                    ? json_read(file.base, file.size, JSON_MAX_INDEX, file.label, &ignored)
	                    : NULL;

	file_close(&file);
	return o;
}

/* What an earlier run left of the rungs below. A rung that it had begun and not ended took the machine with it. */
static bool take_earlier(struct report *r, unsigned from, struct error *err)
{
	json_t *old = access(r->path, F_OK) ? NULL : read_report(r->path);
	const json_t *list = json_object_get(old, "ladder");
	const char *device = json_string_value(json_object_get(old, "device"));

	if (!old && access(r->path, F_OK))
		return true;
	if (json_array_size(list) != REPORT_RUNGS || !device || strcmp(device, r->device) != 0) {
		json_decref(old);
		return error_set(err, ERROR_ARGUMENT,
		                 "%s is no report of %s that --from could go on with; name that one, or a new file",
		                 r->path, r->device);
	}
	json_object_update(r->object, old);
	json_decref(old);
	r->ladder = json_object_get(r->object, "ladder");
	for (unsigned i = 0; i < REPORT_RUNGS; i++)
		if (is_state(r, i, "begun"))
			set_state(r, i, "did not come back");
	for (unsigned i = from - 1; i < REPORT_RUNGS; i++)
		if (!is_state(r, i, "did not come back") || i + 1 == from)
			set_state(r, i, "not tried");
	return true;
}

bool ladder_open(struct report *r, unsigned from, struct error *err)
{
	r->ladder = json_array();
	for (unsigned i = 0; i < REPORT_RUNGS; i++)
		json_array_append_new(r->ladder, json_pack("{s:i, s:s, s:s}", "rung", (int)i + 1, "name", rungs[i].name,
		                                           "state", "not tried"));
	json_object_set_new(r->object, "ladder", r->ladder);
	return from == 1 || take_earlier(r, from, err);
}

/* ---- climbing */

void rung_tried(struct report *r, uint64_t tries, uint64_t wrong)
{
	r->tries += tries;
	r->wrong += wrong;
	r->differences += (unsigned)wrong;
}

/* False: err, of the file. */
static bool climb(struct report *r, unsigned i, struct error *err)
{
	const unsigned before = r->differences;
	json_t *o = rung_at(r, i);

	r->tries = r->wrong = 0;
	r->nothing = false;
	set_state(r, i, "begun");
	report_line("rung", "%u, %s: %s", i + 1, rungs[i].name, rungs[i].what);
	fsync(STDOUT_FILENO); /* where that is a file */
	if (!report_write(r, err))
		return false;
	const double start = system_seconds();
	const bool ok = rungs[i].climb(r);
	set_state(r, i,
	          !ok                       ? "stopped"
	          : r->nothing              ? "nothing to try"
	          : r->differences > before ? "differs"
	                                    : "passed");
	json_object_set_new(o, "seconds", output_real(system_seconds() - start));
	json_object_set_new(o, "tries", json_integer((json_int_t)r->tries));
	json_object_set_new(o, "wrong", json_integer((json_int_t)(r->differences - before)));
	json_object_set_new(o, "why", ok ? json_null() : json_string(r->stop.text));
	return report_write(r, err);
}

bool ladder_climb(struct report *r, unsigned from, struct error *err)
{
	for (unsigned i = from - 1; i < REPORT_RUNGS && !r->stopped; i++)
		if (!climb(r, i, err))
			return false;
	return true;
}

/* ---- the verdict */

bool ladder_has(const struct report *r, const char *state)
{
	for (unsigned i = 0; i < REPORT_RUNGS; i++)
		if (is_state(r, i, state))
			return true;
	return false;
}

/* "; not tried: layer, token" */
static void say_state(const struct report *r, const char *state, char *out, size_t cap)
{
	size_t at = strlen(out);
	bool any = false;

	for (unsigned i = 0; i < REPORT_RUNGS && at < cap; i++) {
		if (!is_state(r, i, state))
			continue;
		at += (size_t)snprintf(out + at, cap - at, "%s%s%s", any ? ", " : "; ", any ? "" : state,
		                       any ? rungs[i].name : "");
		if (!any && at < cap)
			at += (size_t)snprintf(out + at, cap - at, ": %s", rungs[i].name);
		any = true;
	}
}

void ladder_verdict(struct report *r)
{
	static const char *const states[] = { "stopped", "did not come back", "differs", "not tried" };
	char text[600];
	const bool lost = ladder_has(r, "stopped") || ladder_has(r, "did not come back");

	snprintf(text, sizeof text, "%s",
	         lost                       ? "the device cannot be used like this"
	         : ladder_has(r, "differs") ? "the device computes, but not all bits are right: do not use it"
	                                    : "the device gives the CPU's bits");
	for (size_t i = 0; i < sizeof states / sizeof *states; i++)
		say_state(r, states[i], text, sizeof text);
	report_line("verdict", "%s", text);
	json_object_set_new(r->object, "verdict", json_string(text));
}
