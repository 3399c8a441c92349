/* tests/runtime/t_sealed_faults.c - a sealed model while the system refuses: every single read, opening, allocation,
 * mapping and protection that jit_model_open asks for fails once, in a process of its own, or it and all later ones
 * fail. Then a filter is set that kills threads that map executable memory. There is one sentence, or the text is the
 * right one; nobody is killed and nothing crashes.
 *
 * The linker leads the library's calls through here (--wrap in Makefile.am). JITRUN_TEST_QUICK: fewer of them fail;
 * JITRUN_TEST_FULL: each. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "kernels-templates/templates.h"
#include "runtime/model/model.h"
#include "runtime/plan/key_list.h"
#include "tests/support/no_exec.h"
#include "tests/support/shared.h"
#include "tests/runtime/tiny_model.h"

/* ---- calls that fail */

enum kind { READ, OPEN, MEMORY, MAP, PROTECT, THREAD, KINDS };
static const char *const kind_name[KINDS] = { "read", "opening", "allocation", "mapping", "protection", "thread" };
static const int kind_errno[KINDS] = { EIO, EMFILE, ENOMEM, ENOMEM, EACCES, EAGAIN };

static struct {
	bool armed, on;
	enum kind kind;
	_Atomic long left;
} fault;

static bool fails(enum kind kind)
{
	if (!fault.armed || fault.kind != kind)
		return false;
	long left = --fault.left;
	if (left > 0 || (left < 0 && !fault.on))
		return false;
	errno = kind_errno[kind];
	return true;
}

/* Each call by the name of its other side, what it fails as, and what it then returns. */
#define WRAPPED(type, name, kind, failed, parameters, arguments) \
	type __real_##name parameters; \
	type __wrap_##name parameters; \
	type __wrap_##name parameters { return fails(kind) ? failed : __real_##name arguments; }
WRAPPED(ssize_t, read, READ, -1, (int fd, void *p, size_t n), (fd, p, n))
WRAPPED(ssize_t, pread, READ, -1, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
WRAPPED(ssize_t, pread64, READ, -1, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
WRAPPED(int, fstat, READ, -1, (int fd, struct stat *st), (fd, st))
WRAPPED(int, fstat64, READ, -1, (int fd, struct stat *st), (fd, st))
WRAPPED(int, open, OPEN, -1, (const char *path, int flags, unsigned mode), (path, flags, mode))
WRAPPED(int, open64, OPEN, -1, (const char *path, int flags, unsigned mode), (path, flags, mode))
WRAPPED(int, openat, OPEN, -1, (int dir, const char *path, int flags, unsigned mode), (dir, path, flags, mode))
WRAPPED(int, openat64, OPEN, -1, (int dir, const char *path, int flags, unsigned mode), (dir, path, flags, mode))
WRAPPED(void *, malloc, MEMORY, NULL, (size_t n), (n))
WRAPPED(void *, calloc, MEMORY, NULL, (size_t n, size_t each), (n, each))
WRAPPED(void *, realloc, MEMORY, NULL, (void *p, size_t n), (p, n))
WRAPPED(char *, strdup, MEMORY, NULL, (const char *text), (text))
WRAPPED(char *, strndup, MEMORY, NULL, (const char *text, size_t n), (text, n))
WRAPPED(void *, mmap, MAP, MAP_FAILED, (void *p, size_t n, int protection, int flags, int fd, off_t at),
        (p, n, protection, flags, fd, at))
WRAPPED(void *, mmap64, MAP, MAP_FAILED, (void *p, size_t n, int protection, int flags, int fd, off_t at),
        (p, n, protection, flags, fd, at))
WRAPPED(int, mprotect, PROTECT, -1, (void *p, size_t n, int protection), (p, n, protection))
WRAPPED(int, pthread_create, THREAD, EAGAIN,
        (pthread_t * t, const pthread_attr_t *a, void *(*main)(void *), void *user), (t, a, main, user))

/* ---- the model and what it says */

enum { STEPS = 6, PROMPT = 5, SKIPPED = 77 };
/* What became of a process; NOT_REACHED: all was done before the fault. */
enum outcome { RIGHT, REFUSED, NOT_REACHED, SESSION_REFUSED, WRONG, NO_SENTENCE, OUTCOMES };

static char dir[64], model_path[96], pack[96], layer[96];
static int32_t expected[STEPS];

static bool write_text(jit_model *m, int kv, int32_t out[STEPS], jit_error *err)
{
	static const int32_t prompt[PROMPT] = { 1, 5, 2, 9, 11 };
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 64, .kv = kv, .threads = 1), err);
	bool ok = s && jit_session_feed(s, prompt, PROMPT, err) == JIT_OK;

	for (int i = 0; ok && i < STEPS; i++)
		ok = jit_session_next(s, &out[i], err) == JIT_OK;
	jit_session_close(s);
	return ok;
}

static bool is_sentence(const jit_error *err)
{
	size_t n = strlen(err->message);

	return err->code != JIT_OK && n > 10 && n < sizeof err->message - 1 && !strchr(err->message, '\n');
}

/* Under the filter; twice, because a second session must not ask for more either. */
static enum outcome judge_model(jit_model *m)
{
	for (int i = 0; i < 2; i++) {
		int32_t ids[STEPS];
		jit_error err = { 0 };
		if (!write_text(m, JIT_KV_F16, ids, &err)) {
			fprintf(stderr, "session: %s\n", err.message);
			return is_sentence(&err) ? SESSION_REFUSED : NO_SENTENCE;
		}
		if (memcmp(ids, expected, sizeof ids) != 0)
			return WRONG;
	}
	return RIGHT;
}

struct run {
	const char *cache;
	enum kind kind;
	bool on;
	long at;
};

static int open_under_fault(const struct run *r)
{
	jit_error err = { 0 };

	fault.kind = r->kind;
	fault.on = r->on;
	fault.left = r->at;
	fault.armed = true;
	jit_model *m =
		jit_model_open(model_path, &JIT_MODEL_OPTIONS(.cache_dir = r->cache, .sealed = 1, .threads = 1), &err);
	fault.armed = false;
	if (m && fault.left > 0)
		return NOT_REACHED;
	if (!m) {
		if (getenv("JITRUN_TEST_SAY"))
			printf("%s %s %ld: %s\n", kind_name[r->kind], r->on ? "and all later" : "once", r->at,
			       err.message);
		return is_sentence(&err) ? REFUSED : NO_SENTENCE;
	}
	if (!no_executable_memory(SECCOMP_RET_KILL_PROCESS))
		return SKIPPED;
	return (int)judge_model(m);
}

/* ---- all of them */

struct tally {
	unsigned outcome[OUTCOMES], killed, bad;
};

static enum outcome run_once(const struct run *r, struct tally *t)
{
	int status;

	fflush(stdout);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(open_under_fault(r));
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		printf("# skipped: this system has no seccomp filters\n");
		skip();
	}
	int outcome = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	t->killed += outcome < 0;
	if (outcome >= 0 && outcome < OUTCOMES)
		t->outcome[outcome]++;
	if (outcome != RIGHT && outcome != REFUSED && outcome != NOT_REACHED) {
		printf("%s: %s %ld fails%s: %s %d\n", r->cache, kind_name[r->kind], r->at,
		       r->on ? ", as do all later" : "", outcome < 0 ? "signal" : "outcome",
		       outcome < 0 ? WTERMSIG(status) : outcome);
		t->bad++;
	}
	return outcome < 0 ? WRONG : (enum outcome)outcome;
}

/* Every one of the first few, then with strides that have no period in common with what a kernel takes. */
static long next_at(long at)
{
	if (test_full() || at < (test_quick() ? 4 : 24))
		return at + 1;
	return at + (test_quick() ? at / 2 | 1 : at / 12 | 1);
}

static void every_fault(const char *cache)
{
	unsigned bad = 0;

	for (enum kind kind = READ; kind < KINDS; kind++)
		for (int on = 0; on < 2; on++) {
			struct tally t = { 0 };
			struct run r = { cache, kind, on, 1 };
			while (run_once(&r, &t) != NOT_REACHED)
				r.at = next_at(r.at);
			printf("# %s: %s %s: %u right, %u refused when opened, %u by a session; %u killed\n", cache,
			       kind_name[kind], on ? "and all later" : "once", t.outcome[RIGHT], t.outcome[REFUSED],
			       t.outcome[SESSION_REFUSED], t.killed);
			assert_true(t.outcome[RIGHT] + t.outcome[REFUSED] + t.bad > 0);
			bad += t.bad;
		}
	assert_int_equal(bad, 0);
}

static void test_from_a_pack(void **unused) { every_fault(pack); }
static void test_from_a_directory(void **unused) { every_fault(layer); }

/* ---- what is there before */

static void make_kernels(void)
{
	struct error err = { 0 };
	struct model m;
	struct key *keys;
	size_t n;
	uint64_t stored;
	struct cache *c = cache_open(layer, NULL, &err);

	assert_true(c && model_open(&m, model_path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, &err));
	assert_true(key_list_kernels(&m.spec,
	                             &(struct key_list_options){ .target = target_native(NULL),
	                                                         .activations = KEY_LIST_INT8_ACTIVATIONS,
	                                                         .kv = KEY_LIST_KV_ANY },
	                             &keys, &n, &err));
	for (size_t i = 0; i < n; i++) {
		struct object o;
		if (!compile_key(&o, &keys[i], template_build, NULL, NULL, &err))
			fail_msg("%s", err.text);
		cache_store(c, &keys[i], &o, NULL);
		object_free(&o);
	}
	assert_true(cache_export(c, pack, NULL, NULL, &stored, &err));
	assert_int_equal(stored, n);
	printf("# %zu kernels\n", n);
	free(keys);
	model_close(&m);
	cache_close(c);
}

static int set_up(void **unused)
{
	const struct tiny_model tiny = {
		.arch = "llama",
		.layers = 1,
		.hidden = 64,
		.ffn = 64,
		.heads = 2,
		.kv_heads = 1,
		.head_dim = 32,
		.vocab = 32,
		.type = DTYPE_F32,
		.tied = true
	};
	struct error err = { 0 };
	jit_error e = { 0 };
	size_t n;

	strcpy(dir, "/tmp/t_sealed_faults-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(model_path, sizeof model_path, "%s/tiny.gguf", dir);
	snprintf(pack, sizeof pack, "%s/tiny.jkp", dir);
	snprintf(layer, sizeof layer, "%s/layer", dir);
	uint8_t *gguf = tiny_gguf(&tiny, DTYPE_Q8_0, &n, &err);
	assert_non_null(gguf);
	tiny_write(dir, "tiny.gguf", gguf, n);
	free(gguf);
	make_kernels();
	jit_model *m = jit_model_open(model_path, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = 1), &e);
	if (!m || !write_text(m, JIT_KV_F16, expected, &e))
		fail_msg("%s", e.message);
	jit_model_close(m);
	return 0;
}

static int tear_down(void **unused)
{
	char command[96];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	if (!target_native(NULL)) {
		printf("# skipped: no code is generated for this CPU\n");
		return SKIPPED;
	}
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_from_a_pack),
		                            cmocka_unit_test(test_from_a_directory) };
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
