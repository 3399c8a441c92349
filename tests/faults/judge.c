#include "tests/faults/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/faults/site.h"
#include "tests/support/shared.h"

static bool same_bytes(const char *a, const char *b)
{
	size_t n, m;
	uint8_t *p = file_bytes(a, &n), *q = file_bytes(b, &m);
	bool same = n == m && memcmp(p, q, n) == 0;

	free(p);
	free(q);
	return same;
}

/* Every entry that was there is there, byte for byte. */
static const char *lost_of_cache(const struct scene *s)
{
	static char file[2400];
	char cache[1200], kept[1200];
	const char *lost = NULL;

	path_in(cache, "cache");
	path_in(kept, s->cache);
	DIR *d = strcmp(s->cache, "empty") ? opendir(kept) : NULL;
	for (struct dirent *e; d && !lost && (e = readdir(d));) {
		char before[2400];
		if (!strstr(e->d_name, ".jko"))
			continue;
		snprintf(before, sizeof before, "%s/%s", kept, e->d_name);
		snprintf(file, sizeof file, "%s/%s", cache, e->d_name);
		if (access(file, F_OK) || !same_bytes(before, file))
			lost = file;
	}
	if (d)
		closedir(d);
	return lost;
}

static size_t lines_in(const struct outcome *o)
{
	size_t lines = 0;

	for (size_t i = 0; i < o->n_out; i++)
		lines += o->out[i] == '\n';
	return lines;
}

static bool same_output(const struct scene *s, const struct outcome *a, const struct outcome *b)
{
	size_t n = a->n_out, m = b->n_out;
	const char *cut;

	if (s->said == ANYTHING)
		return (n > 0) == (m > 0);
	if (s->said == LINES)
		return lines_in(a) == lines_in(b) && m && b->out[m - 1] == '\n';
	if (s->said == UP_TO_TIMINGS) {
		if (!m || b->out[m - 1] != '\n')
			return false;
		n = (cut = strstr(a->out, "\"timings\"")) ? (size_t)(cut - a->out) : n;
		m = (cut = strstr(b->out, "\"timings\"")) ? (size_t)(cut - b->out) : m;
	}
	return n == m && memcmp(a->out, b->out, n) == 0;
}

/* One sentence of who says it, the last of what it says; the example says what the library told it. */
static bool is_sentence(const struct scene *s, const struct outcome *o)
{
	const char *last = NULL;
	unsigned sentences = 0;

	if (o->n_err < 24 || o->err[o->n_err - 1] != '\n' || strcmp(o->err + o->n_err - 4, ": .\n") == 0)
		return false;
	for (const char *line = o->err; *line; line = strchr(line, '\n') + 1) {
		if (strncmp(line, "Try 'jit", 8) == 0 || /* what to do about it */
		    strncmp(line, "jitserve: ready", 15) == 0)
			continue;
		last = line;
		sentences += strncmp(line, "jitrun: ", 8) == 0 || strncmp(line, "jitwarm: ", 9) == 0 ||
		             strncmp(line, "jitbench: ", 10) == 0 || strncmp(line, "jitquant: ", 10) == 0 ||
		             strncmp(line, "jitserve: ", 10) == 0;
	}
	return strncmp(s->command, "docs/", 5) == 0 ||
	       (sentences == 1 && last && strncmp(last, "jit", 3) == 0 && o->err[o->n_err - 2] == '.');
}

static const char *judge_file(const struct scene *s, const struct expected *e, const struct outcome *o)
{
	char path[2400];
	size_t n = 0;
	const char *wrong = NULL;

	snprintf(path, sizeof path, "%s/made/%s", base, s->file);
	if (access(path, F_OK))
		return o->status == 0 ? "the file is not there" : NULL;
	if (o->status && !strstr(s->file, ".jkp"))
		return NULL;
	char *p = (char *)file_bytes(path, &n);
	if (s->asks && is_as_before(p, n))
		wrong = strstr(o->out, ASK_REFUSED) ? NULL : "the file is what it was before";
	else if (s->file_varies ? n == 0 : n != e->n_file || memcmp(p, e->file, n))
		wrong = "the file is not what it should be";
	free(p);
	return wrong;
}

const char *judge(const struct scene *s, const struct expected *e, const struct outcome *o)
{
	const char *wrong = NULL;

	if (o->hung)
		return "it hangs";
	if (o->signal)
		return "it ended by a signal";
	if (o->child_signal &&
	    !strstr(s->command, "--predict")) /* which asks a shell for llvm-mca: that may die as it likes */
		return "a process that it made ended by a signal";
	if (o->status == 0 && e->o.status == 0)
		wrong = same_output(s, &e->o, o) || (s->told && strstr(o->out, s->told))
		                ? NULL
		                : "status 0, but other output than without the fault";
	else if (s->answer && o->status == s->answer)
		wrong = o->n_out ? NULL : "an answer that is empty";
	else if (o->status != 1)
		wrong = "another status than 0 and 1";
	else if (!is_sentence(s, o))
		wrong = "it failed without one sentence";
	if (!wrong && s->file)
		wrong = judge_file(s, e, o);
	if (!wrong && s->cache && !strstr(s->command, "gc"))
		wrong = lost_of_cache(s);
	return wrong;
}

const char *verify_cache(void)
{
	char cache[1200];
	struct outcome o;

	path_in(cache, "cache");
	const char *const argv[] = { "./jitwarm", "verify", cache, "-q", NULL };
	fault_run(argv, NULL, NULL, &o);
	bool good = o.status == 0 && o.signal == 0;
	fault_free(&o);
	return good ? NULL : "jitwarm verify finds the cache damaged";
}

const char *left_behind(const struct fault *f)
{
	bool unlisted = f->later || f->call == FAULT_OPEN || f->call == FAULT_LIST || f->call == FAULT_STAT ||
	                f->call == FAULT_MALLOC;
	const char *wrong = NULL;
	DIR *d = opendir(base);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		if (strncmp(e->d_name, "jitbench-", 9) == 0 || strncmp(e->d_name, ".jitbench-", 10) == 0) {
			char path[1500];
			path_in(path, e->d_name);
			remove_all_in(path);
			if ((unlink(path) == 0 || (rmdir(path) == 0 && !unlisted)) && f->call != FAULT_UNLINK)
				wrong = "it left a temporary file behind";
		}
	closedir(d);
	return wrong;
}
