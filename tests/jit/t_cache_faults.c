/* tests/jit/t_cache_faults.c - a cache when the system refuses, when its writers die, when the clock goes back, when
 * other versions and other users are there. Nothing crashes, nothing wrong is ever loaded, nothing stored is lost.
 * JITRUN_TEST_QUICK: fewer deaths and fewer processes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "jit/store/safefile.h"
#include "kernels-templates/templates.h"
#include "runtime/plan/key_list.h"
#include "tests/support/shared.h"
#include "tests/jit/stored.h"
#include "tests/jit/cache_refused_tests.h"

/* --- death at every system call */

struct scene {
	const char *name;
	uint64_t limit;
	int (*steps)(void *);
	bool new_key_may_miss, others_may_go;
};

static int store_steps(void *user)
{
	const struct scene *s = user;
	struct cache *c = cache_open(stored_dir, &(struct cache_options){ .limit_bytes = s->limit }, NULL);

	stored_store(c, 0);
	cache_close(c);
	return 0;
}

static int gc_steps(void *user)
{
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	struct cache_gc gone;

	return !cache_gc(c, 2000, &gone, NULL);
}

static bool any(const struct key *key, void *user) { return true; }

static int export_steps(void *user)
{
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	char path[256];
	uint64_t n;

	snprintf(path, sizeof path, "%s/all.jkp", stored_dir);
	return !cache_export(c, path, any, NULL, &n, NULL);
}

/* A child that does the steps traced, stopped before the first. */
static pid_t traced(const struct scene *s, int *status)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(NOT_POSSIBLE);
		raise(SIGSTOP);
		_exit(s->steps((void *)(uintptr_t)s));
	}
	assert_int_equal(waitpid(child, status, 0), child);
	return child;
}

/* Kills a child at its n-th entry to or exit from a system call. 1: it died; 0: it was done before; -1: such a thing is
 * not to be had. */
static int killed_at(const struct scene *s, unsigned n)
{
	int status = 0;
	pid_t child = traced(s, &status);

	for (; n && WIFSTOPPED(status); n--) {
		if (ptrace(PTRACE_SYSCALL, child, NULL, NULL))
			break;
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	if (WIFEXITED(status)) {
		assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == NOT_POSSIBLE);
		return WEXITSTATUS(status) ? -1 : 0;
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	return 1;
}

enum { KEYS = 4 };

/* What is on the disk after a death: old or new, and whole. */
static void judge(const struct scene *s, unsigned n)
{
	struct cache *c = stored_open(stored_dir, 0);
	struct error err = { 0 };
	char path[256];

	for (uint32_t k = 0; k < KEYS; k++) {
		int got = stored_load(c, k);
		bool may_miss = k == 0 ? s->new_key_may_miss : s->others_may_go;
		if (got < 0 || (got == 0 && !may_miss))
			fail_msg("%s, killed at %u: key %u gives %d", s->name, n, k, got);
	}
	if (!s->new_key_may_miss && stored_count(c).damaged)
		fail_msg("%s, killed at %u: damage", s->name, n);
	snprintf(path, sizeof path, "%s/all.jkp", stored_dir);
	struct pack *p = pack_open(path, &err);
	if (!p || !pack_verify(p, &err) || pack_count(p) < KEYS - 1)
		fail_msg("%s, killed at %u: %s", s->name, n, err.text);
	pack_close(p);
	cache_close(c);
}

/* What was there before: keys but the first (but: unless the scene replaces it), a pack. */
static void set_scene(const struct scene *s, bool damaged)
{
	struct cache *c = stored_open(stored_dir, 0);
	struct pack_item item[KEYS];
	char path[256];

	stored_entry_path(0, path);
	unlink(path);
	for (uint32_t k = s->new_key_may_miss && !damaged ? 1 : 0; k < KEYS; k++)
		if (stored_load(c, k) != 1)
			stored_store(c, k);
	cache_close(c);
	if (damaged)
		stored_write_file(path, (const uint8_t *)"jitr", 4);
	for (uint32_t k = 0; k < KEYS; k++)
		item[k] = (struct pack_item){ stored_key(k), stored_object(k) };
	snprintf(path, sizeof path, "%s/all.jkp", stored_dir);
	assert_true(pack_write(path, item, KEYS, NULL));
	for (uint32_t k = 0; k < KEYS; k++)
		object_free(&item[k].object);
}

static void test_death_at_every_call(void **unused)
{
	static const struct scene scenes[] = {
		{ "a new entry", 0, store_steps, true, false },
		{ "an entry again", 0, store_steps, false, false },
		{ "a damaged entry", 0, store_steps, true, false },
		{ "an entry over the limit", 1, store_steps, true, true },
		{ "collecting", 0, gc_steps, true, true },
		{ "writing a pack", 0, export_steps, false, false },
	};
	unsigned rounds = 0, wanted = test_quick() ? 1 : 1000;

	while (rounds < wanted)
		for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
			for (unsigned n = 1;; n++) {
				if (n == 1 || scenes[i].new_key_may_miss)
					set_scene(&scenes[i], i == 2);
				int died = killed_at(&scenes[i], n);
				if (died < 0) {
					print_message("processes cannot be traced here: skipped\n");
					skip();
				}
				judge(&scenes[i], n);
				rounds++;
				if (!died)
					break;
				if (n > 2000)
					fail_msg("%s does not end", scenes[i].name);
			}
	print_message("%u deaths\n", rounds);
	/* what they left is swept when it is old */
	struct cache *c = stored_open(stored_dir, 0);
	stored_store(c, 0);
	assert_int_equal(stored_load(c, 0), 1);
	cache_close(c);
}

/* However old the temporary file of a writer at work is, nobody takes it for a dead one's. */
static unsigned see_locked(const char *when)
{
	DIR *d = opendir(stored_dir);
	unsigned seen = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		char path[512];
		struct stat st;
		if (!strstr(e->d_name, safefile_temporary))
			continue;
		snprintf(path, sizeof path, "%s/%s", stored_dir, e->d_name);
		stored_set_age(path, 100000);
		assert_int_equal(stat(path, &st), 0);
		if (safefile_abandoned(dirfd(d), e->d_name, &st))
			fail_msg("%s is taken for a dead writer's at %s", e->d_name, when);
		seen++;
	}
	closedir(d);
	return seen;
}

/* A death of the machine is not to be had; but a name is given to nothing that was written and not synced. */
static void test_synced_before_named(void **unused)
{
	static const struct scene scenes[] = { { "a new entry", 0, store_steps, true, false },
		                               { "writing a pack", 0, export_steps, false, false } };

	for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
		int status = 0;
		unsigned named = 0, locked = 0;
		bool unsynced = false;
		set_scene(&scenes[i], false);
		pid_t child = traced(&scenes[i], &status);
		while (WIFSTOPPED(status)) {
			struct user_regs_struct regs;
			if (ptrace(PTRACE_GETREGS, child, NULL, &regs) == 0) {
				long call = (long)regs.orig_rax;
				unsynced = call == SYS_write || call == SYS_pwrite64    ? true
				           : call == SYS_fsync || call == SYS_fdatasync ? false
				                                                        : unsynced;
				bool names = call == SYS_rename || call == SYS_renameat || call == SYS_renameat2;
				if ((long)regs.rax == -ENOSYS && (names || call == SYS_fsync)) /* on the way in */
					locked += see_locked(names ? "rename" : "fsync");
				named += names;
				if (names && unsynced)
					fail_msg("%s: renamed before it was synced", scenes[i].name);
			}
			if (ptrace(PTRACE_SYSCALL, child, NULL, NULL))
				break;
			assert_int_equal(waitpid(child, &status, 0), child);
		}
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == NOT_POSSIBLE) {
			print_message("processes cannot be traced here: skipped\n");
			skip();
		}
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_true(named > 0);
		assert_int_equal(locked, 2);
	}
}

/* --- many processes */

struct warming {
	struct key *key;
	size_t n;
	struct object *expected;
	unsigned number;
};

static int warm_steps(void *user)
{
	const struct warming *w = user;
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	const struct registry_options opt = { .build = template_build, .cache = c };
	struct registry *r = c ? registry_open(&opt, NULL) : NULL;

	for (size_t i = 0; r && i < w->n; i++) {
		size_t at = (i + w->number) % w->n;
		const struct kernel *k = registry_get(r, &w->key[at], NULL, NULL);
		if (!k || !stored_same(&k->object, &w->expected[at]))
			return 1;
	}
	struct cache_counters n = stored_count(c);
	return !r ? 2 : n.damaged ? 3 : n.store_failed ? 4 : 0;
}

static void prepare_warming(struct warming *w)
{
	struct error err = { 0 };
	char path[1024];
	struct model m;
	const struct key_list_options opt = { .target = &target_table[TARGET_AVX2],
		                              .activations = KEY_LIST_INT8_ACTIVATIONS,
		                              .kv = KEY_LIST_KV_F16,
		                              .tokens = 2 };

	if (!model_open(&m, source_path(path, "models/tale-q8_0.gguf"), MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err) ||
	    !key_list_kernels(&m.spec, &opt, &w->key, &w->n, &err))
		fail_msg("%s", err.text);
	model_close(&m);
	w->expected = calloc(w->n, sizeof *w->expected);
	for (size_t i = 0; i < w->n; i++)
		if (!compile_key(&w->expected[i], &w->key[i], template_build, NULL, NULL, &err))
			fail_msg("%s", err.text);
}

static void test_many_processes_warm_one_model(void **unused)
{
	enum { MAX = 64 };
	unsigned processes = test_quick() ? 12 : MAX;
	struct warming w = { 0 };
	pid_t child[MAX];

	prepare_warming(&w);
	for (unsigned i = 0; i < processes; i++) {
		w.number = i;
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (child[i] == 0)
			_exit(warm_steps(&w));
	}
	for (unsigned i = 0; i < processes; i++) {
		int status;
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	assert_int_equal(stored_files(".tmp"), 0);
	assert_int_equal(stored_files(".jko"), w.n);
	struct cache *c = stored_open(stored_dir, 0);
	for (size_t i = 0; i < w.n; i++) {
		struct object o;
		assert_true(cache_load(c, &w.key[i], &o, NULL, NULL) == RECORD_FOUND);
		assert_true(stored_same(&o, &w.expected[i]));
		object_free(&o);
		object_free(&w.expected[i]);
	}
	cache_close(c);
	free(w.expected);
	free(w.key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_synced_before_named),
		T(test_death_at_every_call),
		T(test_many_processes_warm_one_model),
	};
	int failed = cmocka_run_group_tests(tests, stored_make_base, stored_remove_base);

	failed += cache_refused_tests();
	return failed;
}
