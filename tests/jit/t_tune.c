/* tests/jit/t_tune.c - schedules: what was found out is kept, is found again, and changes nothing but speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "jit/store/tune.h"
#include "kernels-templates/templates.h"
#include "include/jitrun.h"
#include "runtime/tuning/tuner.h"
#include "tests/jit/tune_check.h"

static void set(struct tune *t, uint32_t rows, uint32_t schedule)
{
	struct error err = { 0 };
	tune_set(t, &(struct tune_result){
			    .key = example_key(rows, schedule), .gain = schedule ? 1.25 : 1, .samples = 9 });
	assert_true(tune_save(t, &err));
}

static uint32_t requested(struct tune *t, uint32_t rows)
{
	struct key k = example_key(rows, 0);
	struct tune_result r;
	return tune_find(t, &k, &r) ? r.key.schedule : 0;
}

static void test_kept(void **state)
{
	char dir[64];
	struct tune *a = open_tuning(new_dir(dir)), *b = open_tuning(dir), *none = open_tuning(NULL);
	struct key k = example_key(64, 0);
	(void)state;

	assert_int_equal(requested(a, 64), 0);
	assert_false(tune_known(a, &k));
	set(a, 64, 2);
	set(b, 96, 1); /* b has not seen what a wrote, and must not lose it */
	set(a, 128, 0);
	assert_int_equal(requested(a, 64), 2);
	tune_close(a);
	tune_close(b);
	a = open_tuning(dir);
	assert_int_equal(requested(a, 64), 2);
	assert_int_equal(requested(a, 96), 1);
	assert_int_equal(requested(a, 128), 0);
	k.rows = 128;
	assert_true(tune_known(a, &k));
	k.rows = 160;
	assert_false(tune_known(a, &k));
	set(a, 64, 1); /* the newest counts */
	tune_close(a);
	a = open_tuning(dir);
	assert_int_equal(requested(a, 64), 1);
	tune_close(a);
	set(none, 64, 1); /* nowhere to write is no failure */
	assert_int_equal(requested(none, 64), 1);
	tune_close(none);
	remove_dir(dir);
}

/* Processes that end together: what each found out is there afterwards. */
static void test_many_at_once(void **state)
{
	enum { PROCESSES = 12 };
	char dir[64], x;
	pid_t child[PROCESSES];
	int gate[2];
	(void)state;

	new_dir(dir);
	assert_int_equal(pipe(gate), 0);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (child[i])
			continue;
		struct tune *t = open_tuning(dir);
		close(gate[1]);
		bool ended = read(gate[0], &x, 1) == 0; /* when the parent closes it: all at once */
		set(t, 64 + 32 * i, 1);
		tune_close(t);
		_exit(!ended);
	}
	close(gate[0]);
	close(gate[1]);
	for (int i = 0; i < PROCESSES; i++) {
		int status;
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	struct tune *t = open_tuning(dir);
	for (uint32_t i = 0; i < PROCESSES; i++)
		if (requested(t, 64 + 32 * i) != 1)
			fail_msg("the results of process %u are lost", i);
	tune_close(t);
	remove_dir(dir);
}

static int save_unreadable(const char *dir)
{
	struct error err = { 0 };
	char path[512];

	if (geteuid() == 0 && (chown(dir, 65534, 65534) || setgid(65534) || setuid(65534))) /* root reads everything */
		return 1;
	struct tune *t = open_tuning(dir);
	set(t, 64, 2);
	tune_close(t);
	if (chmod(file_in(dir, path), 0))
		return 2;
	t = open_tuning(dir);
	tune_set(t, &(struct tune_result){ .key = example_key(96, 1), .gain = 1.25, .samples = 9 });
	if (tune_save(t, &err) || !strstr(err.text, "Permission denied"))
		return 3;
	tune_close(t);
	if (chmod(path, 0600))
		return 4;
	t = open_tuning(dir);
	return requested(t, 64) == 2 ? 0 : 5;
}

/* A file that cannot be read now is not replaced: what is in it is not known. */
static void test_unreadable(void **state)
{
	char dir[64];
	int status;
	(void)state;

	new_dir(dir);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(save_unreadable(dir));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
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

/* Every flipped bit and every length: results may be missing or name another schedule; nothing else happens, and what
 * is written next is whole. */
static void test_damage(void **state)
{
	char dir[64], path[512], good[2048], bad[2048];
	struct tune *t = open_tuning(new_dir(dir));
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
		t = open_tuning(dir);
		tune_each(t, check_any, NULL);
		tune_close(t);
	}
	write_all(path, "nonsense", 8);
	t = open_tuning(dir);
	assert_int_equal(requested(t, 32), 0);
	set(t, 32, 2);
	tune_close(t);
	t = open_tuning(dir);
	assert_int_equal(requested(t, 32), 2);
	tune_close(t);
	/* one that others may write is not believed */
	chmod(path, 0666);
	t = open_tuning(dir);
	assert_int_equal(requested(t, 32), 0);
	tune_close(t);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	t = open_tuning(dir);
	tune_set(t, &(struct tune_result){ .key = example_key(32, 1), .gain = 2, .samples = 1 });
	struct error err = { 0 };
	assert_false(tune_save(t, &err));
	assert_non_null(strstr(err.text, path));
	tune_close(t);
	rmdir(path);
	remove_dir(dir);
}

struct counts {
	unsigned n, matmuls;
};
static void count(const struct tune_result *r, void *user)
{
	struct counts *c = user;
	c->n++;
	c->matmuls += r->key.kind == KEY_MATMUL && r->key.tile_n == 1;
	check_any(r, NULL);
}

/* All schedules in turn, then the best: the bits of a session that never tried any. What was found is there for the
 * next run. */
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
	struct tune *t = open_tuning(dir);
	tune_each(t, count, &c);
	tune_close(t);
	assert_true(c.n >= 4 && c.matmuls == c.n);
	decode(dir, JIT_TUNE_CACHED, &cached);
	assert_memory_equal(&off, &cached, sizeof off);
	remove_dir(dir);
}

/* A file of another form, version or processor says nothing, and is written anew. */
static void test_forms(void **state)
{
	static const struct {
		const char *from, *to;
	} other[] = { { "jitrun schedules 2", "jitrun schedules 1" },
		      { "jitrun schedules 2", "jitrun schedules 3" },
		      { "codegen ", "codegen 0" },
		      { "processor ", "processor another " } };
	char dir[64], path[512], text[4096], bad[4200];
	struct tune *t = open_tuning(new_dir(dir));
	(void)state;

	set(t, 32, 2);
	tune_close(t);
	size_t n = read_all(file_in(dir, path), text, sizeof text - 1);
	text[n] = 0;
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
		const char *at = strstr(text, other[i].from);
		assert_non_null(at);
		int used = snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - text), text, other[i].to,
		                    at + strlen(other[i].from));
		write_all(path, bad, (size_t)used);
		t = open_tuning(dir);
		assert_int_equal(requested(t, 32), 0);
		set(t, 64, 3);
		tune_close(t);
		t = open_tuning(dir);
		assert_int_equal(requested(t, 32), 0);
		assert_int_equal(requested(t, 64), 3);
		tune_close(t);
	}
	remove_dir(dir);
}

/* Kernels of guesses follow that of one column until they have a result of their own. */
static void test_follow(void **state)
{
	struct key one, four, prompt;
	(void)state;

	assert_true(key_parse(&one, "matmul.q8_0.aq8_0.1024x512.c1.b1.avx2"));
	four = prompt = one;
	four.tile_n = 4;
	prompt.tile_n = 24;
	four.flags = prompt.flags = KEY_WIDE;
	struct key like = template_tuned_like(&four);
	assert_true(key_equal(&like, &one));
	assert_int_equal(template_schedule_follow(&four, &one), 0);
	for (one.schedule = 2; one.schedule <= 3; one.schedule++) { /* the second level, both */
		four.schedule = template_schedule_follow(&four, &one);
		assert_int_equal(four.schedule, 3);
		assert_null(template_schedule_refusal(&four));
		four.schedule = 0;
		assert_int_equal(template_schedule_follow(&prompt, &one), 0);
	}
	one.schedule = 0xf;
	assert_int_equal(template_schedule_follow(&four, &one), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),   cmocka_unit_test(test_many_at_once), cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_damage), cmocka_unit_test(test_sessions),     cmocka_unit_test(test_forms),
		cmocka_unit_test(test_follow),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	failed += tune_order_tests();
	return failed;
}
