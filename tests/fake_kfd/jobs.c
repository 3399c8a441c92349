#include "tests/fake_kfd/jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_cards.h"
#include "tests/support/shared.h"

char self[1024];
bool by_library;

static bool model_path(char path[1024], const char *name)
{
	if (!strncmp(name, "models/", 7) && strchr(name, '.'))
		return source_path(path, name) != NULL;
	return shared_path(path, name) != NULL;
}

bool start_job(struct faked *f, const struct job *j, const char *device, struct faked_process *p)
{
	char path[1024], launch[32];
	const char *argv[] = { self, "run", device, path, j->passes, launch, j->how, NULL };

	snprintf(launch, sizeof launch, "%d:%d", j->launch, j->workgroups);
	return model_path(path, j->model) && faked_start(f, argv, p);
}

bool do_job(struct faked *f, const struct job *j, const char *device)
{
	struct faked_process p;

	if (!start_job(f, j, device, &p))
		return false;
	faked_end(f, &p);
	return true;
}

void describe(const struct faked *f, const char *what)
{
	print_error("%s: cards \"%s\", injected \"%s\": status %d, signal %d, %.1f s\n%s%s%s", what, f->cards,
	            f->inject ? f->inject : "", f->status, f->signal, f->seconds, f->out, f->err, f->log);
}

/* The library keeps its doorbells, the registers that flush and the page of events until the process ends. Where a call
 * of its fails, it tries an older one, or an address that it never got. */
enum { LIBRARYS_BUFFERS = 3, LIBRARYS_BYTES = 12288 + 32768 };
static bool is_the_librarys(const char *line)
{
	unsigned buffers, bytes;

	if (sscanf(line, "fake kfd: the program ended and left %u buffers of %u bytes", &buffers, &bytes) == 2)
		return buffers <= LIBRARYS_BUFFERS && bytes <= LIBRARYS_BYTES;
	return strstr(line, "of the driver has no call 6\n") ||
	       strstr(line, "offset 0x8000000000000000 names no card\n");
}

static bool only_the_librarys(const char *log)
{
	char line[400];

	for (const char *end; by_library && *log; log = end + 1) {
		if (!(end = strchr(log, '\n')) || end - log > 300)
			return false;
		snprintf(line, sizeof line, "%.*s\n", (int)(end - log), log);
		if (!is_the_librarys(line))
			return false;
	}
	return by_library;
}

bool nothing_left(const struct faked *f) { return !*f->log || only_the_librarys(f->log); }

const struct job small = { "models/tale-q8_0.gguf", "1", JIT_LAUNCH_TOKEN, "once", 0 };

static bool one_sentence(const char *out)
{
	const char *e = strstr(out, "error: ");

	return e && strchr(e, '\n') && strchr(e, '\n')[1] == 0 && strlen(e) > 20;
}

bool ended_well(const struct faked *f, const struct faked *truth, const char *says, bool left)
{
	bool right = f->status == 0 && !strcmp(f->out, truth->out), refused = f->status == 1 && one_sentence(f->out);

	return !f->signal && (says ? refused && strstr(f->out, says) : right || refused) &&
	       (nothing_left(f) || (left && !strncmp(f->log, "fake kfd: the program ended and left", 36))) && !*f->err;
}

unsigned count(const char *trace, const char *name)
{
	unsigned n = 0;
	char word[40];

	snprintf(word, sizeof word, " %s ", name);
	for (const char *p = trace; (p = strstr(p, word)); p++)
		n++;
	return n;
}

bool learn(struct faked *truth, const char *card)
{
	*truth = (struct faked){ .cards = card, .traced = true };
	if (!faked_there() || !do_job(truth, &small, "amd"))
		return false;
	if (truth->status || !nothing_left(truth))
		describe(truth, "without anything wrong");
	assert_true(truth->status == 0 && nothing_left(truth));
	return true;
}
