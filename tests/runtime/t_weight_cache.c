/* tests/runtime/t_weight_cache.c - weights kept packed between runs: the same bits, a changed file noticed, a limit
 * kept, and what happens when the directory, its entries or the disk are not as they should be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "tests/runtime/tiny_model.h"
#include "tests/support/shared.h"

static char dir[64], cache[80], model[2][96];

static const struct tiny_model shape = {
	.arch = "llama",
	.layers = 2,
	.hidden = 256,
	.ffn = 512,
	.heads = 4,
	.kv_heads = 2,
	.head_dim = 64,
	.vocab = 96,
	.type = DTYPE_F32,
	.tied = true
};

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/jitrun-weights-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(cache, sizeof cache, "%s/a/cache", dir);
	for (int i = 0; i < 2; i++) {
		char name[16];
		size_t n;
		snprintf(name, sizeof name, "m%d.gguf", i);
		snprintf(model[i], sizeof model[i], "%s/%s", dir, name);
		uint8_t *p = tiny_gguf(&shape, i ? DTYPE_F16 : DTYPE_Q8_0, &n, NULL);
		assert_non_null(p);
		tiny_write(dir, name, p, n);
		free(p);
	}
	return 0;
}

static int remove_dir(void **state)
{
	char command[100];

	snprintf(command, sizeof command, "rm -rf %s", dir);
	return system(command);
}

/* How many entries there are, and that nothing else is but the lock; path (NULL: not wanted) gets the last one's. */
static int entries(char path[400])
{
	DIR *d = opendir(cache);
	int n = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.' || strcmp(e->d_name, "lock") == 0) {
			assert_null(strstr(e->d_name, ".tmp"));
			continue;
		}
		assert_non_null(strstr(e->d_name, ".jkm"));
		if (path)
			snprintf(path, 400, "%s/%s", cache, e->d_name);
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

static void clear(void)
{
	char command[100];

	snprintf(command, sizeof command, "rm -rf %s", cache);
	assert_int_equal(system(command), 0);
}

struct answer {
	float logits[96];
	char trouble[512];
};

static jit_model *open_with(const char *path, const char *where, uint64_t limit, jit_error *err)
{
	jit_model_options mo =
		JIT_MODEL_OPTIONS(.cache_dir = "", .weight_cache = where, .weight_cache_limit = limit, .device = "ref");

	return jit_model_open(path, &mo, err);
}

static struct answer answer_of(jit_model *m)
{
	static const int32_t ids[] = { 1, 5, 9 };
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 16, .threads = 1);
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };
	struct answer a = { .trouble = "" };
	jit_session *s = jit_session_open(m, &so, &err);

	if (!s || jit_session_feed(s, ids, 3, &err) != JIT_OK)
		fail_msg("%s", err.message);
	memcpy(a.logits, jit_session_logits(s, &err), sizeof a.logits);
	assert_int_equal(jit_model_get_info(m, &info, &err), JIT_OK);
	if (info.weight_cache_trouble)
		strcpy(a.trouble, info.weight_cache_trouble);
	jit_session_close(s);
	return a;
}

static struct answer ask(const char *path, const char *where, uint64_t limit)
{
	jit_error err = { 0 };
	jit_model *m = open_with(path, where, limit, &err);

	if (!m)
		fail_msg("%s: %s", path, err.message);
	struct answer a = answer_of(m);
	jit_model_close(m);
	return a;
}

static void same(const struct answer *a, const struct answer *b)
{
	assert_memory_equal(a->logits, b->logits, sizeof a->logits);
}

/* Whether the weights of an open model are the file's pages. */
static bool mapped(const char *part)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[600];
	bool yes = false;

	while (f && fgets(line, sizeof line, f))
		yes = yes || (strstr(line, " r--s ") && strstr(line, part));
	if (f)
		fclose(f);
	return yes;
}

static void test_kept_and_found(void **state)
{
	struct stat before, after;
	char path[400];
	jit_error err = { 0 };

	clear();
	struct answer want = ask(model[0], NULL, 0), first = ask(model[0], cache, 0);
	same(&want, &first);
	assert_string_equal(first.trouble, "");
	assert_int_equal(entries(path), 1);
	assert_int_equal(stat(path, &before), 0);
	jit_model *m = open_with(model[0], cache, 0, &err);
	assert_non_null(m);
	assert_true(mapped(path));
	struct answer second = answer_of(m);
	same(&want, &second);
	jit_model_close(m);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino); /* not made anew */
	assert_int_equal(setenv("JITRUN_WEIGHT_CACHE", cache, 1), 0);
	struct answer third = ask(model[1], NULL, 0);
	assert_int_equal(unsetenv("JITRUN_WEIGHT_CACHE"), 0);
	assert_string_equal(third.trouble, "");
	assert_int_equal(entries(NULL), 2);
}

/* Other weights in a file of the same size, the same header and, by its author's doing, the same time. */
static void test_changed_file(void **state)
{
	struct stat st;
	size_t n;

	clear();
	ask(model[0], cache, 0);
	assert_int_equal(stat(model[0], &st), 0);
	uint8_t *p = file_bytes(model[0], &n);
	for (size_t i = n / 2; i < n; i++) /* within the last tensors, and in nothing of the header */
		p[i] = (uint8_t)(p[i] ^ 0x01);
	FILE *f = fopen(model[0], "r+b");
	assert_int_equal(fwrite(p, 1, n, f), n);
	fclose(f);
	free(p);
	const struct timespec back[2] = { st.st_atim, st.st_mtim };
	assert_int_equal(utimensat(AT_FDCWD, model[0], back, 0), 0);
	struct answer want = ask(model[0], NULL, 0), got = ask(model[0], cache, 0);
	same(&want, &got);
	assert_int_equal(entries(NULL), 2);
}

static void test_limit(void **state)
{
	char path[400], first[400];
	struct stat one;
	jit_error err = { 0 };

	clear();
	struct answer want = ask(model[0], NULL, 0), got = ask(model[0], cache, 4096);
	same(&want, &got);
	assert_non_null(strstr(got.trouble, "do not fit"));
	assert_int_equal(entries(NULL), 0);
	ask(model[0], cache, 0);
	assert_int_equal(entries(path), 1);
	assert_int_equal(stat(path, &one), 0);
	strcpy(first, path);
	/* room for one of the two: the one that is not used goes */
	uint64_t limit = (uint64_t)one.st_size * 5 / 2;
	struct answer other = ask(model[1], cache, limit);
	assert_string_equal(other.trouble, "");
	assert_int_equal(entries(path), 1);
	assert_string_not_equal(path, first);
	/* one that is used stays */
	jit_model *m = open_with(model[1], cache, limit, &err);
	assert_non_null(m);
	got = ask(model[0], cache, limit);
	same(&want, &got);
	assert_non_null(strstr(got.trouble, "in use"));
	jit_model_close(m);
	got = ask(model[0], cache, limit);
	assert_string_equal(got.trouble, "");
	assert_int_equal(entries(NULL), 1);
}

static void test_damaged_entry(void **state)
{
	char path[400];
	size_t n;

	clear();
	struct answer want = ask(model[0], cache, 0);
	assert_int_equal(entries(path), 1);
	uint8_t *p = file_bytes(path, &n);
	for (size_t cut = 0; cut < n; cut += n / 5 + 1) {
		assert_int_equal(truncate(path, (off_t)cut), 0);
		struct answer got = ask(model[0], cache, 0);
		same(&want, &got);
		assert_string_equal(got.trouble, "");
		size_t now;
		uint8_t *q = file_bytes(path, &now);
		assert_int_equal(now, n);
		assert_memory_equal(p, q, n);
		free(q);
	}
	free(p);
}

static void test_refused(void **state)
{
	struct rlimit before, small = { 8192, RLIM_INFINITY };
	jit_error err = { 0 };

	clear();
	struct answer want = ask(model[0], NULL, 0);
	assert_int_equal(mkdir(cache, 0700), 0);
	assert_int_equal(chmod(cache, 0777), 0);
	assert_null(open_with(model[0], cache, 0, &err));
	assert_int_equal(err.code, JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "which lets others write it"));
	assert_int_equal(chmod(cache, 0700), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	struct answer got = ask(model[0], cache, 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	same(&want, &got);
	assert_non_null(strstr(got.trouble, "cannot write all of"));
	assert_int_equal(entries(NULL), 0);
	char file[200];
	snprintf(file, sizeof file, "%s/in-the-way", cache);
	tiny_write(cache, "in-the-way", "x", 1);
	got = ask(model[0], file, 0);
	same(&want, &got);
	assert_non_null(strstr(got.trouble, "cannot be opened"));
	unlink(file);
}

static void test_many_at_once(void **state)
{
	enum { MANY = 5 };
	pid_t child[MANY];

	clear();
	struct answer want = ask(model[0], NULL, 0);
	for (int i = 0; i < MANY; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (child[i] == 0) {
			jit_error err = { 0 };
			jit_model *m = open_with(model[0], cache, 0, &err);
			struct answer got = m ? answer_of(m) : (struct answer){ .trouble = "none" };
			jit_model_close(m);
			_exit(memcmp(got.logits, want.logits, sizeof want.logits) || got.trouble[0]);
		}
	}
	for (int i = 0; i < MANY; i++) {
		int status;
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(entries(NULL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_and_found), cmocka_unit_test(test_limit),
		cmocka_unit_test(test_damaged_entry),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_many_at_once),   cmocka_unit_test(test_changed_file),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
