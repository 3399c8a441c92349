/* tests/programs/t_faults.c - every program and mode while a call of it fails: an allocation, a file's, a thread's. It
 * gives all that it gives without (a cache that cannot be written is no reason not to), or ends with the status of a
 * failure and one sentence; never a signal, never less with status 0, nothing stored is lost or damaged.
 * JITRUN_TEST_QUICK: few calls of each kind; JITRUN_TEST_FULL: every one of them, or as many of each kind as FULL_MAX
 * says, evenly spread: it takes half an hour or so.
 * JITRUN_TEST_FAULTS_SCENE: this one alone; JITRUN_TEST_FAULTS_CALLS: so many of each kind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/faults/judge.h"
#include "tests/faults/site.h"
#include "tests/support/sanitized.h"
#include "tests/support/shared.h"

static const struct way {
	enum fault_call call;
	int error;
	bool later;
} ways[] = {
	{ FAULT_MALLOC, ENOMEM, false },   { FAULT_MALLOC, ENOMEM, true },
	{ FAULT_MMAP, ENOMEM, false },     { FAULT_MMAP, ENOMEM, true },
	{ FAULT_MPROTECT, EACCES, false }, { FAULT_MPROTECT, ENOMEM, true },
	{ FAULT_MADVISE, EINVAL, true },   { FAULT_OPEN, EMFILE, false },
	{ FAULT_OPEN, EACCES, false },     { FAULT_OPEN, EMFILE, true },
	{ FAULT_READ, EIO, false },        { FAULT_READ, EINTR, false },
	{ FAULT_READ, 0, false },          { FAULT_READ, 0, true },
	{ FAULT_READ, EIO, true },         { FAULT_WRITE, ENOSPC, false },
	{ FAULT_WRITE, EINTR, false },     { FAULT_WRITE, 0, false },
	{ FAULT_WRITE, ENOSPC, true },     { FAULT_SYNC, EIO, false },
	{ FAULT_RENAME, ENOSPC, false },   { FAULT_RENAME, EACCES, true },
	{ FAULT_CLOSE, EIO, false },       { FAULT_STAT, EIO, false },
	{ FAULT_STAT, EACCES, true },      { FAULT_SEEK, EIO, false },
	{ FAULT_TRUNCATE, ENOSPC, true },  { FAULT_UNLINK, EACCES, true },
	{ FAULT_MKDIR, ENOSPC, false },    { FAULT_LIST, EIO, false },
	{ FAULT_LOCK, ENOLCK, true },      { FAULT_LOCK, EINTR, false },
	{ FAULT_MEMFD, EMFILE, false },    { FAULT_THREAD, EAGAIN, false },
	{ FAULT_THREAD, EAGAIN, true },    { FAULT_SOCKET, EMFILE, false },
	{ FAULT_WATCH, ENOMEM, false },    { FAULT_RECEIVE, ECONNRESET, false },
	{ FAULT_SEND, ECONNRESET, false },
};
enum { WAYS = sizeof ways / sizeof *ways, FULL_MAX = 200, FULL_MAX_LONG = 40, FULL_MAX_LONGEST = 4 };

/* perf looks for it there, and nowhere else. */
static void remove_map(const struct outcome *o)
{
	char path[64];

	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)o->pid);
	unlink(path);
}

static unsigned runs, failures, driver_crashes;

/* NVIDIA's driver, Vulkan's loader and its drivers crash where they are refused memory, and what has called them cannot
 * prevent that. Said, and not held against the program; what it left behind is looked at all the same. */
static const char *judge_or_note(const struct scene *s, const struct expected *e, const struct outcome *o,
                                 const struct fault *f)
{
	if (!o->in_driver || f->call > FAULT_MMAP)
		return judge(s, e, o);
	if (!driver_crashes++)
		print_message("# %s: %s %u fails%s, and a card's driver crashes\n", s->command, fault_names[f->call],
		              f->at, f->later ? ", all later ones too" : "");
	return NULL;
}

static void try_one(const struct scene *s, const struct command *c, const struct expected *e, const struct fault *f,
                    bool verify)
{
	struct outcome o;
	char input[1200];

	prepare(s);
	path_in(input, "made/prompt");
	fault_run(c->argv, &(struct given){ strstr(s->command, "--file -") ? input : NULL, s->asks }, f, &o);
	remove_map(&o);
	runs++;
	const char *wrong = judge_or_note(s, e, &o, f);
	const char *left = left_behind(f);
	wrong = wrong ? wrong : left;
	if (!wrong && s->cache && verify)
		wrong = verify_cache();
	if (wrong) {
		failures++;
		print_error("%s\n  %s %u fails with %s%s: %s (status %d, signal %d, %zu bytes of output, said: %s)\n",
		            s->command, fault_names[f->call], f->at, f->error ? strerror(f->error) : "half done",
		            f->later ? ", all later ones too" : "", wrong, o.status, o.signal, o.n_out, o.err);
	}
	fault_free(&o);
}

static bool expect(const struct scene *s, const struct command *c, struct expected *e)
{
	char path[2400];

	prepare(s);
	snprintf(path, sizeof path, "%s/made/prompt", base);
	fault_run(c->argv, &(struct given){ strstr(s->command, "--file -") ? path : NULL, s->asks },
	          &(struct fault){ .call = FAULT_CALLS }, &e->o);
	remove_map(&e->o);
	if (e->o.status || e->o.signal || e->o.hung) {
		print_error("%s\n  without any fault: status %d, signal %d, said: %s\n", s->command, e->o.status,
		            e->o.signal, e->o.err);
		return false;
	}
	snprintf(path, sizeof path, "%s/made/%s", base, s->file ? s->file : "");
	e->file = s->file ? (char *)file_bytes(path, &e->n_file) : NULL;
	return true;
}

/* Which of n calls fail: all, or some that lie elsewhere for each scene and way. */
static void sweep(unsigned scene, const struct command *c, const struct expected *e)
{
	unsigned max = !test_full()             ? 1
	               : scenes[scene].longest  ? FULL_MAX_LONGEST
	               : scenes[scene].long_one ? FULL_MAX_LONG
	                                        : FULL_MAX;
	const char *requested = getenv("JITRUN_TEST_FAULTS_CALLS");

	if (requested)
		max = (unsigned)atoi(requested);
	for (unsigned w = 0; w < WAYS; w++) {
		unsigned n = e->o.count[ways[w].call], tries = max && max < n ? max : n;
		unsigned memory = ways[w].call <= FAULT_MMAP ? scenes[scene].memory : 0;
		if (!test_full() && !requested && memory)
			tries = memory < n ? memory : n;
		else if (!test_full() && !requested &&
		         (w + scene) % (scenes[scene].long_one ? 17
		                        : test_quick()         ? 8
		                                               : 6))
			continue;
		for (unsigned i = 0; i < tries; i++) {
			unsigned shift = (scene * 7919u + w * 104729u) % 1009u;
			unsigned at =
				tries == n ? i
					   : (unsigned)(((uint64_t)i * 1009 + shift) * n / ((uint64_t)tries * 1009));
			struct fault f = { ways[w].call, at + 1, ways[w].error, ways[w].later };
			try_one(&scenes[scene], c, e, &f, test_full() || i == 0);
		}
	}
}

static void every_scene_fails_well(void **unused)
{
	const char *only = getenv("JITRUN_TEST_FAULTS_SCENE");
	char model[1024];

	for (unsigned i = 0; i < n_scenes; i++) {
		const struct scene *s = &scenes[i];
		struct command c;
		struct expected e = { 0 };
		if ((only ? (unsigned)atoi(only) != i
		          : ((s->long_one && test_quick()) || s->longest) && !test_full()) ||
		    (strncmp(s->command, "jitserve", 8) == 0 && access("jitserve", X_OK)) ||
		    (strstr(s->command, "%s") && !safetensors[0] &&
		     !(shared_path(model, "golden/qwen3-gqa2-bf16") && strcpy(safetensors, model))))
			continue;
		unsigned before = failures, runs_before = runs;
		split(&c, s->command);
		if (expect(s, &c, &e))
			sweep(i, &c, &e);
		else
			failures++;
		print_message("%2u %s: %u runs, %u failures;", i, s->command, runs - runs_before, failures - before);
		for (int k = 0; k < FAULT_CALLS; k++)
			if (e.o.count[k])
				print_message(" %s %u", fault_names[k], e.o.count[k]);
		print_message("\n");
		free(e.file);
		fault_free(&e.o);
	}
	print_message("%u runs with a fault, %u of which a card's driver ended\n", runs, driver_crashes);
	assert_int_equal(failures, 0);
}

/* ---- a driver that crashes is told from a program that does */

/* The driver that crashes, where the loader looks first. What the variable was; free() it. */
static char *put_driver(void)
{
	char folder[1200], file[1200], path[4096];
	const char *before = getenv("LD_LIBRARY_PATH");
	size_t n;

	path_in(folder, "driver");
	path_in(file, "driver/libcuda.so.1");
	assert_int_equal(mkdir(folder, 0700), 0);
	uint8_t *bytes = file_bytes("tests/faults/.libs/crashing_driver.so", &n);
	FILE *f = fopen(file, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	free(bytes);
	snprintf(path, sizeof path, "%s%s%s", folder, before ? ":" : "", before ? before : "");
	char *kept = before ? strdup(before) : NULL;
	setenv("LD_LIBRARY_PATH", path, 1);
	return kept;
}

static void a_driver_is_told_from_a_program(void **unused)
{
	const char *const ours[] = { "/bin/sh", "-c", "kill -SEGV $$", NULL }, *const finds_cards[] = {
		"./jitrun", "--devices", NULL
	};
	const struct fault none = { .call = FAULT_CALLS }, far = { FAULT_MALLOC, 1u << 30, ENOMEM, true };
	char path[1200];
	struct outcome o;
	(void)unused;

	fault_run(ours, NULL, &none, &o);
	assert_int_equal(o.signal, SIGSEGV);
	assert_false(o.in_driver);
	fault_free(&o);
	char *before = put_driver();
	fault_run(finds_cards, NULL, &far, &o);
	if (before)
		setenv("LD_LIBRARY_PATH", before, 1);
	else
		unsetenv("LD_LIBRARY_PATH");
	free(before);
	path_in(path, "driver/libcuda.so.1");
	unlink(path);
	path_in(path, "driver");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(o.signal, SIGSEGV);
	assert_true(o.in_driver);
	const struct scene *s = scenes;
	while (strcmp(s->command, "jitrun --devices") != 0)
		s++;
	assert_null(judge_or_note(s, NULL, &o, &far));
	assert_int_equal(driver_crashes, 1);
	driver_crashes = 0;
	fault_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_driver_is_told_from_a_program),
		                            cmocka_unit_test(every_scene_fails_well) };

	setvbuf(stdout, NULL, _IOLBF, 0);
#if SANITIZED
	printf("# skipped: a sanitizer's own calls would fail\n");
	return 77;
#endif
	if (!fault_begin())
		return 77;
	return cmocka_run_group_tests(tests, make_models, remove_models);
}
