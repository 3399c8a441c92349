/* tests/jit/tune_order_tests.c - turns and judgement of schedules, on a plan that nobody runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jit/store/tune.h"
#include "kernels-templates/templates.h"
#include "include/jitrun.h"
#include "programs/jitwarm/search.h"
#include "runtime/tuning/tuner.h"
#include "tests/support/shared.h"
#include "tests/jit/tune_check.h"

enum { LAUNCHES = 7, PASSES = TUNER_QUICK, SCHEDULES = 6 /* levels, nearer in two steps, two row blocks */ };

static void make_plan(struct plan *p)
{
	*p = (struct plan){ .kernel = calloc(1, sizeof *p->kernel),
		            .n_kernels = 1,
		            .op = calloc(LAUNCHES, sizeof *p->op),
		            .n_ops = LAUNCHES };
	assert_true(p->kernel && p->op);
	p->kernel[0].key = example_key(1024, 0);
}

static uint32_t schedule_of(const struct plan *p, size_t launch)
{
	return p->kernel[p->op[launch].kernel].key.schedule;
}

static unsigned list_small(void *user, const struct key *key, uint32_t out[TEMPLATE_SCHEDULES_MAX])
{
	(void)user;
	return template_schedules(key, out);
}

static void keep_verdict(void *user, const struct tuner_verdict *v) { *(struct tuner_verdict *)user = *v; }

/* Passes whose launches take as many nanoseconds as `usual`, or those of schedule 2 as `other`; every fifth of all
 * takes ten times as long. Returns how many there were. */
static unsigned pass(struct tuner *t, struct plan *p, uint64_t usual, uint64_t other, unsigned max)
{
	unsigned n = 0, at = 0;

	for (bool over = false; !over && n < max; n++) {
		tuner_before(t);
		for (size_t i = 0; i < LAUNCHES; i++, at++)
			atomic_store(&p->took[i], (schedule_of(p, i) == 2 ? other : usual) * (at % 5 == 4 ? 10 : 1));
		over = tuner_after(t);
	}
	return n;
}

static void test_order(void **state)
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
				.plan = &p, .passes = PASSES, .list = list_small, .judged = keep_verdict, .user = &v },
			&err);
		assert_non_null(t);
		assert_int_equal(tuner_rounds(t), 1);
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
	p.kernel[1].key = example_key(2048, 0);
	p.n_kernels = 2;
	p.op[LAUNCHES - 1].kernel = 1;
	struct tuner *t = tuner_open(
		&(struct tuner_options){
			.plan = &p, .passes = PASSES, .list = list_small, .judged = keep_verdict, .user = &v },
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
	struct tune *kept = open_tuning(NULL);
	const struct key key = example_key(1024, 0);
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
		struct tune *t = open_tuning(dir);
		jit_session *s = jit_session_open(m,
		                                  &JIT_SESSION_OPTIONS(.threads = 1, .context = 2 * SEARCH_CONTEXT,
		                                                       .speculate = JIT_SPECULATE_OFF),
		                                  &e);
		assert_non_null(s);
		assert_int_equal(jit_session_feed(s, ids, SEARCH_CONTEXT / 8, &e), JIT_OK);
		struct tune *results = whole ? t : open_tuning(NULL);
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
	struct key k = example_key(1024, 0);
	uint32_t list[TEMPLATE_SCHEDULES_MAX * (TEMPLATE_SCHEDULE_FIELDS + 1)];
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

int tune_order_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_schedule), cmocka_unit_test(test_order),  cmocka_unit_test(test_cost),
		cmocka_unit_test(test_later),          cmocka_unit_test(test_search),
	};

	return cmocka_run_group_tests_name("tune_turns_tests", tests, NULL, NULL);
}
