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
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "jit/store/safefile.h"
#include "kernels-templates/templates.h"
#include "runtime/plan/key_list.h"
#include "tests/support/shared.h"
#include "tests/jit/stored.h"

enum { AT_VERSION = 8, VERSION = 4, NOT_POSSIBLE = 77 };

static void needs_root(void)
{
	if (geteuid() != 0) {
		print_message("only root can become another user or mount: skipped\n");
		skip();
	}
}

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
	const struct warm_options opt = { .target = &target_table[TARGET_AVX2],
		                          .activations = WARM_INT8_ACTIVATIONS,
		                          .kv = WARM_KV_F16,
		                          .tokens = 2 };

	if (!model_open(&m, source_path(path, "models/tale-q8_0.gguf"), MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err) ||
	    !warm_keys(&m.spec, &opt, &w->key, &w->n, &err))
		fail_msg("%s", err.text);
	model_close(&m);
	w->expected = calloc(w->n, sizeof *w->expected);
	for (size_t i = 0; i < w->n; i++)
		if (!compile_key(&w->expected[i], &w->key[i], template_build, NULL, NULL, &err))
			fail_msg("%s", err.text);
}

static void test_many_processes_warm_one_model(void **unused)
{
	enum { MOST = 64 };
	unsigned processes = test_quick() ? 12 : MOST;
	struct warming w = { 0 };
	pid_t child[MOST];

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

/* --- the system refuses */

static int no_descriptors_steps(void *user)
{
	struct error err = { 0 };
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	int spare = dup(0);

	stored_store(c, 2);
	const struct rlimit few = { (rlim_t)spare + 1, (rlim_t)spare + 1 };
	if (setrlimit(RLIMIT_NOFILE, &few))
		return 1;
	while (dup(0) >= 0)
		;
	if (stored_load(c, 0) != 0 || stored_load(c, 1) != 0)
		return 2;
	stored_store(c, 0);
	stored_store(c, 1);
	if (stored_count(c).store_failed != 2)
		return 3;
	if (cache_open(stored_dir, NULL, &err) || !strstr(err.text, "Too many open files"))
		return 4;
	close(spare);
	return stored_load(c, 0) == 1 ? 0 : 5;
}

static void test_no_file_descriptors(void **unused)
{
	struct cache *c = stored_open(stored_dir, 0);

	stored_store(c, 0);
	assert_int_equal(stored_in_child(no_descriptors_steps, NULL, false), 0);
	assert_int_equal(stored_load(c, 0), 1);
	assert_int_equal(stored_load(c, 1), 0);
	assert_int_equal(stored_files(".tmp"), 0);
	cache_close(c);
}

static int no_rights_steps(void *user)
{
	struct error err = { 0 };
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	char path[256];

	stored_store(c, 0);
	stored_store(c, 1);
	stored_entry_path(0, path);
	if (chmod(path, 0) || stored_load(c, 0) != 0 || stored_count(c).failed != 1 || stored_count(c).damaged != 0 ||
	    stored_load(c, 1) != 1)
		return 1;
	stored_store(c, 0);
	if (stored_load(c, 0) != 1)
		return 2;
	cache_close(c);
	if (chmod(stored_dir, 0300) || (c = cache_open(stored_dir, NULL, &err)) ||
	    !strstr(err.text, "Permission denied"))
		return 3;
	return chmod(stored_dir, 0700) != 0;
}

static void test_no_rights(void **unused)
{
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(stored_dir, STORED_OTHER_USER, STORED_OTHER_USER), 0);
	assert_int_equal(stored_in_child(no_rights_steps, NULL, geteuid() == 0), 0);
}

/* A mount namespace of its own, in which nothing is seen outside. */
static bool may_mount(void)
{
	return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static int full_disk_steps(void *user)
{
	uint32_t n = 0, last;
	struct cache_gc gone;

	if (!may_mount() || mount("none", stored_dir, "tmpfs", 0, "size=64k,mode=0700"))
		return NOT_POSSIBLE;
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	for (; n < 1000 && stored_count(c).store_failed < 3; n++)
		stored_store(c, n);
	if (n == 1000 || stored_files(".tmp") != 0)
		return 1;
	for (last = 0; last < n - 3; last++)
		if (stored_load(c, last) < 0)
			return 2;
	if (stored_load(c, 0) != 1 || stored_count(c).damaged != 0)
		return 3;
	stored_store(c, 0); /* no room for the new one: the old one stays */
	if (stored_load(c, 0) != 1)
		return 4;
	cache_close(c);
	c = cache_open(stored_dir, NULL, NULL);
	if (!cache_gc(c, 8000, &gone, NULL) || !gone.removed)
		return 5;
	stored_store(c, 2000);
	return stored_load(c, 2000) == 1 ? 0 : 6;
}

static void test_full_file_system(void **unused)
{
	needs_root();
	assert_int_equal(mkdir(stored_dir, 0700), 0);
	int got = stored_in_child(full_disk_steps, NULL, false);
	if (got == NOT_POSSIBLE) {
		print_message("no file system can be mounted here: skipped\n");
		skip();
	}
	assert_int_equal(got, 0);
}

static int read_only_steps(void *user)
{
	struct cache_gc gone;
	struct error err = { 0 };

	if (!may_mount() || mount(stored_dir, stored_dir, NULL, MS_BIND, NULL) ||
	    mount(NULL, stored_dir, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL))
		return NOT_POSSIBLE;
	struct cache *c = cache_open(stored_dir, NULL, NULL);
	if (!c || cache_directory(c) || stored_load(c, 0) != 1 || stored_load(c, 1) != 0)
		return 1;
	stored_store(c, 1);
	if (stored_count(c).store_failed != 1 || stored_load(c, 0) != 1 || !cache_gc(c, 0, &gone, NULL) || gone.removed)
		return 2;
	char path[300];
	snprintf(path, sizeof path, "%s/x.jkp", stored_dir);
	const struct pack_item item = { stored_key(0), stored_object(0) };
	return pack_write(path, &item, 1, &err) || !strstr(err.text, "Read-only file system") ? 3 : 0;
}

static void test_read_only_file_system(void **unused)
{
	needs_root();
	struct cache *c = stored_open(stored_dir, 0);
	char path[256];
	stored_store(c, 0);
	cache_close(c);
	stored_entry_path(0, path);
	stored_set_age(path, 1000000); /* to be marked as used, which cannot be */
	int got = stored_in_child(read_only_steps, NULL, false);
	if (got == NOT_POSSIBLE) {
		print_message("no file system can be mounted here: skipped\n");
		skip();
	}
	assert_int_equal(got, 0);
}

/* --- the clock goes back */

static void test_clock_goes_back(void **unused)
{
	const long year = 365 * 86400;
	struct cache *c = stored_open(stored_dir, 0);
	struct stat st;
	char path[256];

	for (uint32_t n = 0; n < 4; n++) {
		stored_store(c, n);
		stored_entry_path(n, path);
		stored_set_age(path, n == 3 ? 100 : -year);
	}
	cache_close(c);
	c = stored_open(stored_dir, 0);
	assert_int_equal(stored_load(c, 0), 1); /* used since: it has today's time again */
	stored_entry_path(0, path);
	assert_int_equal(stat(path, &st), 0);
	assert_in_range(st.st_mtime, time(NULL) - 60, time(NULL) + 60);
	cache_close(c);

	snprintf(path, sizeof path, "%s/x-1-1-1.tmp", stored_dir);
	stored_write_file(path, (const uint8_t *)"half", 4);
	stored_set_age(path, -year);
	struct cache_gc gone;
	uint64_t bytes, entries;
	c = stored_open(stored_dir, 0);
	assert_true(cache_size(c, true, &bytes, &entries, NULL, NULL));
	assert_int_equal(entries, 4);
	assert_true(cache_gc(c, bytes - 1, &gone, NULL)); /* one that was not used since the clock went back */
	assert_int_equal(gone.removed, 1);
	assert_int_equal(stored_files(".tmp"), 0);
	assert_int_equal(stored_load(c, 0), 1);
	assert_int_equal(stored_load(c, 3), 1);
	assert_int_equal(stored_load(c, 1) + stored_load(c, 2), 1);
	cache_close(c);
}

/* --- other versions */

static bool see_trouble(const struct cache_item *item, void *user)
{
	const char **trouble = user;

	*trouble = item->trouble;
	return true;
}

static void test_other_versions(void **unused)
{
	static uint8_t good[1 << 16], other[1 << 16];
	const uint32_t versions[] = { 0, 1, 2, 3, VERSION + 1, 1000, UINT32_MAX };
	char path[256], pack[300];
	uint64_t n;

	for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
		struct cache *c = stored_open(stored_dir, 0);
		struct error err = { 0 };
		const char *trouble = NULL;
		stored_store(c, 0);
		stored_entry_path(0, path);
		size_t bytes = stored_read_file(path, good, sizeof good);
		memcpy(other, good, bytes);
		memcpy(other + AT_VERSION, &versions[i], 4);
		stored_write_file(path, other, bytes);
		assert_int_equal(stored_load(c, 0), 0);
		assert_int_equal(stored_count(c).damaged, 1);
		assert_true(cache_each(c, see_trouble, &trouble, NULL));
		assert_non_null(trouble);
		assert_non_null(strstr(trouble, "version"));
		stored_store(c, 0);
		assert_int_equal(stored_load(c, 0), 1);

		snprintf(pack, sizeof pack, "%s/v.jkp", stored_dir);
		assert_true(cache_export(c, pack, NULL, NULL, &n, NULL));
		bytes = stored_read_file(pack, other, sizeof other);
		memcpy(other + AT_VERSION, &versions[i], 4);
		stored_write_file(pack, other, bytes);
		assert_null(pack_open(pack, &err));
		assert_int_equal(err.code, ERROR_FORMAT);
		assert_non_null(strstr(err.text, "another version"));
		cache_close(c);
	}
}

/* --- other users */

static int refused_steps(void *user)
{
	struct error err = { 0 };

	return cache_open(user, NULL, &err)           ? 1
	       : err.code != ERROR_ARGUMENT           ? 2
	       : !strstr(err.text, "belongs to user") ? 3
	                                              : 0;
}

static int reads_roots_steps(void *user)
{
	struct cache *c = cache_open(user, NULL, NULL);

	if (!c || cache_directory(c))
		return 1;
	if (stored_load(c, 0) != 1 || stored_load(c, 1) != 0)
		return 2;
	stored_store(c, 1);
	return stored_count(c).stored ? 3 : 0;
}

static void test_other_users(void **unused)
{
	char path[256], pack[300];
	const struct pack_item item = { stored_key(0), stored_object(0) };

	needs_root();
	struct cache *c = stored_open(stored_dir, 0);
	stored_store(c, 0);
	cache_close(c);
	stored_entry_path(0, path);
	snprintf(pack, sizeof pack, "%s/p.jkp", stored_dir);
	assert_true(pack_write(pack, &item, 1, NULL));

	assert_int_equal(stored_in_child(reads_roots_steps, pack, true), 1); /* the directory is closed to others */
	assert_int_equal(chmod(stored_dir, 0755), 0);
	assert_int_equal(stored_in_child(reads_roots_steps, pack, true), 0);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(stored_in_child(reads_roots_steps, stored_dir, true), 0);
	assert_int_equal(chmod(pack, 0664), 0);
	assert_null(cache_open(pack, NULL, NULL));

	/* what another user owns is good for nobody else, not even root */
	assert_int_equal(chmod(pack, 0644), 0);
	assert_int_equal(chown(pack, STORED_OTHER_USER, STORED_OTHER_USER), 0);
	assert_int_equal(refused_steps(pack), 0);
	assert_int_equal(stored_in_child(reads_roots_steps, pack, true), 0);
	assert_int_equal(chown(pack, 12345, 12345), 0);
	assert_int_equal(stored_in_child(refused_steps, pack, true), 0);
	assert_int_equal(chown(stored_dir, 12345, 12345), 0);
	assert_int_equal(refused_steps(stored_dir), 0);
	assert_int_equal(stored_in_child(refused_steps, stored_dir, true), 0);
	assert_int_equal(chown(stored_dir, 0, 0), 0);
	object_free(&(struct object){ .code = item.object.code });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, stored_fresh)
		T(test_synced_before_named),   T(test_death_at_every_call), T(test_many_processes_warm_one_model),
		T(test_no_file_descriptors),   T(test_no_rights),           T(test_full_file_system),
		T(test_read_only_file_system), T(test_clock_goes_back),     T(test_other_versions),
		T(test_other_users),
	};
	return cmocka_run_group_tests(tests, stored_make_base, stored_remove_base);
}
