/* tests/jit/t_tune.c - schedules: what was found out is kept, is found again, and changes nothing but speed. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "jit/store/tune.h"
#include "kernels-templates/templates.h"
#include "runtime/jitrun.h"
#include "runtime/tuning/search.h"
#include "runtime/tuning/tuner.h"
#include "tests/support/shared.h"

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
	struct tune_result r;
	return tune_find(t, &k, &r) ? r.key.schedule : 0;
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
	set(b, 96, 1); /* b has not seen what a wrote, and must not lose it */
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
	set(a, 64, 1); /* the newest counts */
	tune_close(a);
	a = opened(dir);
	assert_int_equal(asked(a, 64), 1);
	tune_close(a);
	set(none, 64, 1); /* nowhere to write is no failure */
	assert_int_equal(asked(none, 64), 1);
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
		struct tune *t = opened(dir);
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
	struct tune *t = opened(dir);
	for (uint32_t i = 0; i < PROCESSES; i++)
		if (asked(t, 64 + 32 * i) != 1)
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
	struct tune *t = opened(dir);
	set(t, 64, 2);
	tune_close(t);
	if (chmod(file_in(dir, path), 0))
		return 2;
	t = opened(dir);
	tune_set(t, &(struct tune_result){ .key = example(96, 1), .gain = 1.25, .samples = 9 });
	if (tune_save(t, &err) || !strstr(err.text, "Permission denied"))
		return 3;
	tune_close(t);
	if (chmod(path, 0600))
		return 4;
	t = opened(dir);
	return asked(t, 64) == 2 ? 0 : 5;
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
struct told {
	int32_t ids[TOKENS];
	float logits[4096];
};

static void decode(const char *dir, int mode, struct told *out)
{
	static const int32_t prompt[] = { 0, 5, 9, 300 };
	char path[1024];
	jit_error err = { 0 };
	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = dir, .tune = mode), &err);
	assert_non_null(m);
	jit_session *s = jit_session_open(m, &JIT_SESSION_OPTIONS(.threads = 2, .speculate = JIT_SPECULATE_OFF), &err);
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
	struct tune *t = opened(dir);
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
	struct tune *t = opened(new_dir(dir));
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
		t = opened(dir);
		assert_int_equal(asked(t, 32), 0);
		set(t, 64, 3);
		tune_close(t);
		t = opened(dir);
		assert_int_equal(asked(t, 32), 0);
		assert_int_equal(asked(t, 64), 3);
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

/* ---- turns and judgement, on a plan that nobody runs */

enum { LAUNCHES = 7, PASSES = TUNER_QUICK, SCHEDULES = 6 /* levels, nearer in two steps, two row blocks */ };

static void make_plan(struct plan *p)
{
	*p = (struct plan){ .kernel = calloc(1, sizeof *p->kernel),
		            .n_kernels = 1,
		            .op = calloc(LAUNCHES, sizeof *p->op),
		            .n_ops = LAUNCHES };
	assert_true(p->kernel && p->op);
	p->kernel[0].key = example(1024, 0);
}

static uint32_t schedule_of(const struct plan *p, size_t launch)
{
	return p->kernel[p->op[launch].kernel].key.schedule;
}

static unsigned list_few(void *user, const struct key *key, uint32_t out[TEMPLATE_SCHEDULES_MOST])
{
	(void)user;
	return template_schedules(key, out);
}

static void keep_verdict(void *user, const struct tuner_verdict *v) { *(struct tuner_verdict *)user = *v; }

/* Passes whose launches take as many nanoseconds as `usual`, or those of schedule 2 as `other`; every fifth of all
 * takes ten times as long. Returns how many there were. */
static unsigned pass(struct tuner *t, struct plan *p, uint64_t usual, uint64_t other, unsigned most)
{
	unsigned n = 0, at = 0;

	for (bool over = false; !over && n < most; n++) {
		tuner_before(t);
		for (size_t i = 0; i < LAUNCHES; i++, at++)
			atomic_store(&p->took[i], (schedule_of(p, i) == 2 ? other : usual) * (at % 5 == 4 ? 10 : 1));
		over = tuner_after(t);
	}
	return n;
}

static void test_turns(void **state)
{
	static const struct {
		uint64_t other;
		uint32_t best;
	} trials[] = {
		{ 900000, 2 }, { 990000, 0 }, { 1000000, 0 }, { 1300000, 0 }, { 300000, 0 /* not to be believed */ }
	};
	struct tuner_verdict v;
	struct error err = { 0 };
	struct plan p;
	(void)state;

	for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
		make_plan(&p);
		struct tuner *t = tuner_open(
			&(struct tuner_options){
				.plan = &p, .passes = PASSES, .list = list_few, .judged = keep_verdict, .user = &v },
			&err);
		assert_non_null(t);
		assert_int_equal(tuner_turns(t), 1);
		assert_int_equal(pass(t, &p, 1000000, trials[i].other, UINT32_MAX), PASSES + 1);
		tuner_close(t);
		assert_int_equal(v.n, SCHEDULES);
		assert_int_equal(v.schedule[v.best], trials[i].best);
		assert_true(v.time[1] == (double)trials[i].other &&
		            v.time[0] == (trials[i].other < 500000 ? 0 : 1000000) &&
		            v.samples >= LAUNCHES * PASSES / SCHEDULES - 1);
		for (size_t n = 0; n < LAUNCHES; n++)
			assert_int_equal(schedule_of(&p, n), trials[i].best);
		plan_free(&p);
	}
}

/* A kernel that a pass launches once gets more passes, while the others are judged and have their best. */
static void test_later(void **state)
{
	struct tuner_verdict v;
	struct error err = { 0 };
	struct plan p;
	(void)state;

	make_plan(&p);
	p.kernel = realloc(p.kernel, 2 * sizeof *p.kernel);
	assert_non_null(p.kernel);
	p.kernel[1].key = example(2048, 0);
	p.n_kernels = 2;
	p.op[LAUNCHES - 1].kernel = 1;
	struct tuner *t = tuner_open(
		&(struct tuner_options){
			.plan = &p, .passes = PASSES, .list = list_few, .judged = keep_verdict, .user = &v },
		&err);
	assert_non_null(t);
	assert_int_equal(pass(t, &p, 1000000, 900000, PASSES + 1), PASSES + 1);
	assert_int_equal(v.key->rows, 1024);
	for (size_t n = 0; n + 1 < LAUNCHES; n++)
		assert_int_equal(schedule_of(&p, n), 2);
	unsigned more = pass(t, &p, 1000000, 900000, UINT32_MAX);
	assert_int_equal(more, SCHEDULES * 8 - PASSES);
	assert_int_equal(v.key->rows, 2048);
	assert_int_equal(v.samples, 8);
	tuner_close(t);
	plan_free(&p);
}

/* A session stops when what is slower has cost it too much, and has a result all the same; one that is closed before
 * leaves everything as it was. */
static void test_cost(void **state)
{
	struct error err = { 0 };
	struct plan p;
	struct tune *kept = opened(NULL);
	const struct key key = example(1024, 0);
	(void)state;

	make_plan(&p);
	struct tuner *t = tuner_open_quick(kept, &p, PASSES, 1, NULL, &err);
	assert_non_null(t);
	assert_int_equal(pass(t, &p, 1000000, 6000000, 3), 3);
	tuner_close(t);
	for (size_t n = 0; n < LAUNCHES; n++)
		assert_int_equal(schedule_of(&p, n), 0);
	assert_false(tune_known(kept, &key));
	t = tuner_open_quick(kept, &p, PASSES, 1, NULL, &err);
	unsigned passes = pass(t, &p, 1000000, 6000000, UINT32_MAX);
	assert_in_range(passes, 5,
	                9); /* one or two launches of a pass lose 5 ms each, and one pass more meets cold pages */
	tuner_close(t);
	assert_true(tune_known(kept, &key));
	assert_null(tuner_open_quick(kept, &p, PASSES, 1, NULL, &err)); /* nothing is left to find out */
	assert_int_equal(err.code, ERROR_NONE);
	plan_free(&p);
	tune_close(kept);
}

struct found {
	unsigned n, columns[64];
};

static void check_found(const struct tune_result *r, void *user)
{
	struct found *f = user;

	assert_null(template_schedule_refusal(&r->key));
	assert_true(r->gain >= 1 && r->samples > 0 && (r->gain > 1) == (r->key.schedule != 0));
	assert_true(r->key.tile_n < 64);
	f->n++;
	f->columns[r->key.tile_n]++;
}

/* The thorough search: results for every kind of pass, of what there was time to measure, and no bit changes. */
static void test_search(void **state)
{
	static struct told off, cached;
	char dir[64], path[1024];
	jit_error e = { 0 };
	struct error err = { 0 };
	int32_t ids[SEARCH_CONTEXT / 8];
	(void)state;

	decode(new_dir(dir), JIT_TUNE_OFF, &off);
	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = "", .tune = JIT_TUNE_OFF), &e);
	assert_non_null(m);
	for (int i = 0; i < SEARCH_CONTEXT / 8; i++)
		ids[i] = i + 1;
	for (int whole = 0; whole < 2; whole++) {
		struct found f = { 0 };
		struct tune *t = opened(dir);
		jit_session *s = jit_session_open(m,
		                                  &JIT_SESSION_OPTIONS(.threads = 1, .context = 2 * SEARCH_CONTEXT,
		                                                       .speculate = JIT_SPECULATE_OFF),
		                                  &e);
		assert_non_null(s);
		assert_int_equal(jit_session_feed(s, ids, SEARCH_CONTEXT / 8, &e), JIT_OK);
		struct tune *results = whole ? t : opened(NULL);
		if (!search_schedules(s, results, &(struct search_options){ .seconds = whole ? 0 : 1e-3 }, &err))
			fail_msg("%s", err.text);
		tune_each(results, check_found, &f);
		assert_true(whole ? f.n >= 15 && f.columns[1] && f.columns[4] && f.columns[8] && f.columns[16] &&
		                            f.columns[24]
		                  : f.n == 0);
		jit_session_close(s);
		if (!whole)
			tune_close(results);
		assert_true(tune_save(t, &err));
		tune_close(t);
	}
	jit_model_close(m);
	assert_int_equal(file_in(dir, path)[0], '/');
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
	struct key k = example(1024, 0);
	uint32_t list[TEMPLATE_SCHEDULES_MOST * (TEMPLATE_SCHEDULE_FIELDS + 1)];
	unsigned schedules = template_schedules(&k, list);
	assert_true(schedules > 1);
	for (unsigned f = 0; f < TEMPLATE_SCHEDULE_FIELDS; f++)
		schedules += template_schedules_near(&k, f, list + schedules);
	list[schedules++] = 0xf; /* what there is not is taken for the usual one */
	list[schedules++] = UINT32_MAX;
	for (uint32_t s = 0; s < schedules; s++) {
		char path[512], text[16384], out[16384];
		size_t n = read_all(file_in(dir, path), text, sizeof text - 1), used = 0;
		text[n] = 0;
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			char *space = strchr(line, ' ');
			struct key key;
			char name[KEY_TEXT_MAX];
			if (space && strncmp(line, "matmul", 6) == 0) {
				*space = 0;
				assert_true(key_parse(&key, line));
				key.schedule = list[s];
				used += (size_t)snprintf(out + used, sizeof out - used, "%s %s\n",
				                         key_text(&key, name, sizeof name), space + 1);
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
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept),       cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_unreadable), cmocka_unit_test(test_damage),
		cmocka_unit_test(test_sessions),   cmocka_unit_test(test_every_schedule),
		cmocka_unit_test(test_forms),      cmocka_unit_test(test_follow),
		cmocka_unit_test(test_turns),      cmocka_unit_test(test_cost),
		cmocka_unit_test(test_later),      cmocka_unit_test(test_search)
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
