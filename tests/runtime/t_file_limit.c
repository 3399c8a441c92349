/* tests/runtime/t_file_limit.c - a host that leaves SIGXFSZ alone and limits the size of files: whatever file the
 * library writes for it, the limit is an error of that call, or of jit_model_written(), and never the end of the
 * process. Each way of writing runs in a process of its own, at limits up to the size of its file.
 * JITRUN_TEST_QUICK: few limits; JITRUN_TEST_FULL: many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/store/cache.h"
#include "include/jitrun_cards.h"
#include "include/jitrun_graph.h"
#include "include/jitrun_optimise.h"
#include "include/jitrun_train.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

enum { WRITTEN, REFUSED, WITHOUT_SENTENCE, FAILED, FILE_SIZE_MAX = 1 << 30 };

static char dir[64], model[80], kept[80], made[128];

/* ---- what writes files */

static int said(int status, const jit_error *err)
{
	if (status == JIT_OK)
		return WRITTEN;
	return strstr(err->message, "File too large") || strstr(err->message, "could not be written whole")
	               ? REFUSED
	               : WITHOUT_SENTENCE;
}

/* A prompt and some tokens with what the options ask for; then the trace, when one is asked for, and whether all was
 * written. */
static int run_model(jit_model_options *o, const char *trace)
{
	const jit_session_options so = JIT_SESSION_OPTIONS(.context = 64, .threads = 2, .speculate = JIT_SPECULATE_OFF,
	                                                   .profile = trace ? JIT_PROFILE_EVENTS : JIT_PROFILE_OFF);
	const int32_t ids[] = { 1, 2, 3, 4, 1 };
	jit_error err = { 0 };
	int32_t id;

	o->threads = 1;
	o->cache_dir = o->cache_dir ? o->cache_dir : "";
	jit_model *m = jit_model_open(model, o, &err);
	if (!m)
		return said(err.code, &err);
	jit_session *s = jit_session_open(m, &so, &err);
	bool ok = s && jit_session_feed(s, ids, 5, &err) == JIT_OK;
	for (int i = 0; ok && i < 8; i++)
		ok = jit_session_next(s, &id, &err) == JIT_OK;
	if (!ok)
		return FAILED;
	int result = trace ? said(jit_session_trace(s, trace, &err), &err) : WRITTEN;
	if (result == WRITTEN)
		result = said(jit_model_written(m, &err), &err);
	jit_session_close(s);
	jit_model_close(m);
	return result;
}

static int dump_ir(void) { return run_model(&JIT_MODEL_OPTIONS(.dump_ir = made, .tune = JIT_TUNE_OFF), NULL); }
static int dump_asm(void) { return run_model(&JIT_MODEL_OPTIONS(.dump_asm = made, .tune = JIT_TUNE_OFF), NULL); }
static int jitdump(void) { return run_model(&JIT_MODEL_OPTIONS(.jitdump = dir, .tune = JIT_TUNE_OFF), NULL); }
static int perf_map(void) { return run_model(&JIT_MODEL_OPTIONS(.perf_map = 1, .tune = JIT_TUNE_OFF), NULL); }
static int trace(void) { return run_model(&JIT_MODEL_OPTIONS(.tune = JIT_TUNE_OFF), made); }
/* A cache that cannot be written is no failure. */
static int cache(void) { return run_model(&JIT_MODEL_OPTIONS(.cache_dir = dir), NULL); }

static int objects(void)
{
	jit_error err = { 0 };

	return said(jit_write_objects(model, &JIT_OBJECTS_OPTIONS(.target = "gfx1100", .dir = dir), NULL, &err), &err);
}

static int pack(void)
{
	struct error e = { 0 };
	struct cache *c = cache_open(kept, &(struct cache_options){ .read_only = true }, &e);
	uint64_t n;
	bool ok = c && cache_export(c, made, NULL, NULL, &n, &e);

	cache_close(c);
	return ok ? WRITTEN : strstr(e.text, "File too large") ? REFUSED : WITHOUT_SENTENCE;
}

/* An adapter in a format of files; -1: a state. */
static int train(int format)
{
	const jit_train_options o = JIT_TRAIN_OPTIONS(.model = model, .rank = 2, .threads = 1, .cache_dir = "");
	jit_error err = { 0 };
	jit_train *t = jit_train_open(&o, &err);
	const char *path = format == JIT_TRAIN_PEFT ? dir : made;

	if (!t)
		return FAILED;
	const int result =
		said(format < 0 ? jit_train_write_state(t, path, &err) : jit_train_save(t, path, format, &err), &err);
	jit_train_close(t);
	return result;
}

static int state(void) { return train(-1); }
static int peft(void) { return train(JIT_TRAIN_PEFT); }
static int gguf(void) { return train(JIT_TRAIN_GGUF); }

static int graph(void)
{
	const jit_graph_options o = JIT_GRAPH_OPTIONS(.source = "input x f32[4]\ny = neg x\nz = exp y\nw = mul y z\n"
	                                                        "output w\noutput z\n");
	jit_error err = { 0 };
	jit_graph *g = jit_graph_open(&o, &err);

	if (!g)
		return FAILED;
	const int result = said(jit_graph_write(g, made, &err), &err);
	jit_graph_close(g);
	return result;
}

static int optimiser(void)
{
	static const double start[20];
	jit_error err = { 0 };
	jit_optimiser *o = jit_optimiser_open(&JIT_OPTIMISE_OPTIONS(.dimension = 20, .sigma = 1, .start = start), &err);

	if (!o)
		return FAILED;
	const int result = said(jit_optimiser_save(o, made, &err), &err);
	jit_optimiser_close(o);
	return result;
}

/* behind: how many bytes at its end a file may lack that nobody is told of. */
static const struct way {
	const char *name;
	int (*write)(void);
	bool may_fail_quietly;
	unsigned behind;
} ways[] = {
	{ "dump_ir", dump_ir, false, 0 },     { "dump_asm", dump_asm, false, 0 }, { "jitdump", jitdump, false, 16 },
	{ "perf_map", perf_map, false, 0 },   { "trace", trace, false, 0 },       { "cache", cache, true, 0 },
	{ "objects", objects, false, 0 },     { "pack", pack, false, 0 },         { "state", state, false, 0 },
	{ "peft", peft, false, 0 },           { "gguf", gguf, false, 0 },         { "graph", graph, false, 0 },
	{ "optimiser", optimiser, false, 0 },
};

/* ---- running it */

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_size : 0;
}

/* The size of the largest file that was made, all of which go. */
static off_t largest_made(pid_t pid)
{
	char path[400];
	DIR *d = opendir(dir);

	snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)pid);
	off_t max = size_of(path);
	unlink(path);
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		off_t size = size_of(path);
		max = size > max ? size : max;
		unlink(path);
	}
	closedir(d);
	return max;
}

static int run_limited(const struct way *w, off_t limit, off_t *size)
{
	const struct rlimit max = { (rlim_t)limit, (rlim_t)limit };
	int status;

	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGXFSZ, SIG_DFL);
		char map[60]; /* that an older process of this number has left */
		snprintf(map, sizeof map, "/tmp/perf-%ld.map", (long)getpid());
		unlink(map);
		_exit(setrlimit(RLIMIT_FSIZE, &max) ? FAILED : w->write());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	*size = largest_made(pid);
	if (WIFSIGNALED(status))
		fail_msg("%s with files of at most %ld bytes: ended by signal %d", w->name, (long)limit,
		         WTERMSIG(status));
	return WEXITSTATUS(status);
}

static void at_limit(const struct way *w, off_t limit, off_t whole)
{
	off_t size;
	int got = run_limited(w, limit, &size);
	bool fits = limit + (off_t)w->behind >= whole;

	if (size > limit || got == WITHOUT_SENTENCE || got == FAILED ||
	    (!w->may_fail_quietly && got != (fits ? WRITTEN : REFUSED)))
		fail_msg("%s of %ld bytes with files of at most %ld: %d, and %ld bytes were written", w->name,
		         (long)whole, (long)limit, got, (long)size);
}

/* The same size each time, but for what has times and addresses in it. */
static void every_limit_is_an_error(void **unused)
{
	const int limits = test_quick() ? 3 : test_full() ? 150 : 8;

	(void)unused;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		bool varies = ways[i].write == trace;
		off_t whole, size;
		assert_int_equal(run_limited(&ways[i], FILE_SIZE_MAX, &whole), WRITTEN);
		assert_true(whole > 64);
		for (int k = 0; k < limits; k++)
			at_limit(&ways[i], varies ? whole / 2 * k / limits : whole * k / limits, whole);
		if (varies)
			continue;
		at_limit(&ways[i], whole - 1 - ways[i].behind, whole);
		assert_int_equal(run_limited(&ways[i], whole, &size), WRITTEN);
		assert_int_equal(size, whole);
	}
}

static int make_model(void **unused)
{
	(void)unused;
	strcpy(dir, "/tmp/t_file_limit-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(model, sizeof model, "%s.model", dir);
	snprintf(kept, sizeof kept, "%s.kept", dir);
	snprintf(made, sizeof made, "%s/made.jkp", dir);
	if (mkdir(model, 0700) || mkdir(kept, 0700))
		return -1;
	tiny_write_hf(model, &tiny_min);
	return run_model(&JIT_MODEL_OPTIONS(.cache_dir = kept), NULL) == WRITTEN ? 0 : -1;
}

static int remove_model(void **unused)
{
	char command[300];

	(void)unused;
	snprintf(command, sizeof command, "rm -rf '%s' '%s' '%s'", dir, model, kept);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_limit_is_an_error) };

	return cmocka_run_group_tests(tests, make_model, remove_model);
}
