/* tests/t_tune.c - schedules: what was found out is kept, is found again, and changes nothing but speed. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "jit/tune.h"
#include "kernels-templates/templates.h"
#include "runtime/jitrun.h"
#include "tests/shared.h"

static struct key example(uint32_t rows, uint32_t schedule)
{
	struct key k;
	assert_true(key_parse(&k, "matmul.q8_0.aq8_0.1024x512.c1.b1.avx2"));
	k.rows = rows;
	k.schedule = schedule;
	return k;
}

static char *new_dir(char out[64])
{
	strcpy(out, "/tmp/jitrun-test-XXXXXX");
	assert_non_null(mkdtemp(out));
	return out;
}

/* The one file in a directory that is no entry of the cache. */
static char *file_in(const char *dir, char out[512])
{
	DIR *d = opendir(dir);
	struct dirent *e;

	assert_non_null(d);
	out[0] = 0;
	while ((e = readdir(d)))
		if (strncmp(e->d_name, "tuned-", 6) == 0)
			snprintf(out, 512, "%s/%s", dir, e->d_name);
	closedir(d);
	return out;
}

static void remove_dir(const char *dir)
{
	char path[512];
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.') {
			snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
			unlink(path);
		}
	closedir(d);
	rmdir(dir);
}

static size_t read_all(const char *path, char *out, size_t capacity)
{
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	size_t n = fread(out, 1, capacity, f);
	fclose(f);
	return n;
}

static void write_all(const char *path, const char *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
	chmod(path, 0600);
}

static struct tune *opened(const char *dir)
{
	struct error err = { 0 };
	struct tune *t = tune_open(dir, &err);
	assert_non_null(t);
	return t;
}

static void set(struct tune *t, uint32_t rows, uint32_t schedule)
{
	struct error err = { 0 };
	tune_set(t, &(struct tune_result){ .key = example(rows, schedule), .gain = schedule ? 1.25 : 1, .samples = 9 });
	assert_true(tune_save(t, &err));
}

static uint32_t asked(struct tune *t, uint32_t rows)
{
	struct key k = example(rows, 0);
	return tune_schedule(t, &k);
}

static void test_kept(void **state)
{
	char dir[64];
	struct tune *a = opened(new_dir(dir)), *b = opened(dir), *none = opened(NULL);
	struct key k = example(64, 0);
	(void)state;

	assert_int_equal(asked(a, 64), 0);
	assert_false(tune_known(a, &k));
	set(a, 64, 2);
	set(b, 96, 1);                                      /* b has not seen what a wrote, and must not lose it */
	set(a, 128, 0);
	assert_int_equal(asked(a, 64), 2);
	tune_close(a);
	tune_close(b);
	a = opened(dir);
	assert_int_equal(asked(a, 64), 2);
	assert_int_equal(asked(a, 96), 1);
	assert_int_equal(asked(a, 128), 0);
	k.rows = 128;
	assert_true(tune_known(a, &k));
	k.rows = 160;
	assert_false(tune_known(a, &k));
	set(a, 64, 1);                                      /* the newest counts */
	tune_close(a);
	a = opened(dir);
	assert_int_equal(asked(a, 64), 1);
	tune_close(a);
	set(none, 64, 1);                                   /* nowhere to write is no failure */
	assert_int_equal(asked(none, 64), 1);
	tune_close(none);
	remove_dir(dir);
}

static void check_any(const struct tune_result *r, void *user)
{
	char text[KEY_TEXT_MAX];
	struct key back;
	(void)user;
	assert_true(key_parse(&back, key_text(&r->key, text, sizeof text)) && key_equal(&back, &r->key));
	assert_true(r->gain >= 1 && r->samples > 0);
}

/* Every flipped bit and every length: results may be missing or name another schedule; nothing else happens, and what is written next is whole. */
static void test_damage(void **state)
{
	char dir[64], path[512], good[2048], bad[2048];
	struct tune *t = opened(new_dir(dir));
	(void)state;

	for (uint32_t rows = 32; rows <= 96; rows += 32)
		set(t, rows, 1);
	tune_close(t);
	size_t n = read_all(file_in(dir, path), good, sizeof good);
	assert_in_range(n, 100, sizeof good - 1);
	for (size_t bit = 0; bit < n * 8 + n; bit++) {
		memcpy(bad, good, n);
		if (bit < n * 8)
			bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
		write_all(path, bad, bit < n * 8 ? n : bit - n * 8);
		t = opened(dir);
		tune_each(t, check_any, NULL);
		tune_close(t);
	}
	write_all(path, "nonsense", 8);
	t = opened(dir);
	assert_int_equal(asked(t, 32), 0);
	set(t, 32, 2);
	tune_close(t);
	t = opened(dir);
	assert_int_equal(asked(t, 32), 2);
	tune_close(t);
	/* one that others may write is not believed */
	chmod(path, 0666);
	t = opened(dir);
	assert_int_equal(asked(t, 32), 0);
	tune_close(t);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	t = opened(dir);
	tune_set(t, &(struct tune_result){ .key = example(32, 1), .gain = 2, .samples = 1 });
	struct error err = { 0 };
	assert_false(tune_save(t, &err));
	assert_non_null(strstr(err.text, path));
	tune_close(t);
	rmdir(path);
	remove_dir(dir);
}

enum { TOKENS = 40 };
struct told { int32_t ids[TOKENS]; float logits[4096]; };

static void decode(const char *dir, int mode, struct told *out)
{
	static const int32_t prompt[] = { 0, 5, 9, 300 };
	char path[1024];
	jit_error err = { 0 };
	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"), &(jit_model_options){ .cache_dir = dir, .tune = mode }, &err);
	assert_non_null(m);
	jit_session *s = jit_session_open(m, &(jit_session_options){ .threads = 2, .speculate = JIT_SPECULATE_OFF }, &err);
	assert_non_null(s);
	assert_int_equal(jit_session_feed(s, prompt, 4, &err), JIT_OK);
	for (int i = 0; i < TOKENS; i++)
		assert_int_equal(jit_session_next(s, &out->ids[i], &err), JIT_OK);
	const float *logits = jit_session_logits(s, &err);
	assert_non_null(logits);
	memcpy(out->logits, logits, sizeof out->logits);
	jit_session_close(s);
	jit_model_close(m);
}

struct counts { unsigned n, matmuls; };
static void count(const struct tune_result *r, void *user)
{
	struct counts *c = user;
	c->n++;
	c->matmuls += r->key.kind == KEY_MATMUL && r->key.columns == 1;
	check_any(r, NULL);
}

/* All schedules in turn, then the best: the bits of a session that never tried any. What was found is there for the next run. */
static void test_sessions(void **state)
{
	static struct told off, quick, cached;
	char dir[64], path[512];
	struct counts c = { 0 };
	(void)state;

	decode(new_dir(dir), JIT_TUNE_OFF, &off);
	assert_int_equal(file_in(dir, path)[0], 0);
	decode(dir, JIT_TUNE_QUICK, &quick);
	assert_int_equal(file_in(dir, path)[0], '/');
	assert_memory_equal(&off, &quick, sizeof off);
	struct tune *t = opened(dir);
	tune_each(t, count, &c);
	tune_close(t);
	assert_true(c.n >= 4 && c.matmuls == c.n);
	decode(dir, JIT_TUNE_CACHED, &cached);
	assert_memory_equal(&off, &cached, sizeof off);
	remove_dir(dir);
}

/* Whatever the file says, within what there is: every schedule of every kernel gives the same bits. */
static void test_every_schedule(void **state)
{
	static struct told off, forced;
	char dir[64];
	(void)state;

	decode(new_dir(dir), JIT_TUNE_OFF, &off);
	decode(dir, JIT_TUNE_QUICK, &forced);
	struct key k = example(32, 0);
	unsigned schedules = template_schedules(&k);
	assert_true(schedules > 1);
	for (uint32_t s = 0; s <= schedules; s++) {           /* one more than there are: refused by the template, so taken for the usual one */
		char path[512], text[8192], out[8192];
		size_t n = read_all(file_in(dir, path), text, sizeof text - 1), used = 0;
		text[n] = 0;
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			char *space = strchr(line, ' ');
			struct key key;
			char name[KEY_TEXT_MAX];
			if (space && strncmp(line, "matmul", 6) == 0) {
				*space = 0;
				assert_true(key_parse(&key, line));
				key.schedule = s;
				used += (size_t)snprintf(out + used, sizeof out - used, "%s %s\n", key_text(&key, name, sizeof name), space + 1);
			} else {
				used += (size_t)snprintf(out + used, sizeof out - used, "%s\n", line);
			}
		}
		write_all(path, out, used);
		decode(dir, JIT_TUNE_CACHED, &forced);
		assert_memory_equal(&off, &forced, sizeof off);
	}
	remove_dir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_kept), cmocka_unit_test(test_damage), cmocka_unit_test(test_sessions), cmocka_unit_test(test_every_schedule) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
