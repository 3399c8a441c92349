/* tests/runtime/t_adapters.c - sessions with adapters have the same bits in every way of computing them: threads,
 * widths of passes, devices, alone and in batches beside others. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "jit/store/tune.h"
#include "kernels-templates/templates.h"
#include "runtime/model/model.h"
#include "runtime/plan/plan.h"
#include "tests/support/lora_folder.h"
#include "tests/support/shared.h"
#include "tests/runtime/adapter_sessions.h"

/* ---- the same bits in every way; models/tale-q8_0.gguf, with adapters of random numbers */

enum { STYLES = 3, PROMPT = 21, VOCAB = 4096, STEPS = 3 };

struct styles {
	char path[1024];
	jit_model *m;
	jit_adapter *a[STYLES];
};

/* more: the second one has magnitudes, the third one biases. */
static void open_styles_of(struct styles *w, const char *device, bool floats, bool more)
{
	static const unsigned ranks[STYLES] = { 4, 16, 6 };
	static const char *const rows[STYLES] = { NULL, ".lora_magnitude_vector", ".lora_B.bias" },
				 *const configs[STYLES] = { "", ", \"use_dora\": true", ", \"lora_bias\": true" };
	char folder[] = "/tmp/t_adapters-XXXXXX", line[100];

	source_path(w->path, "models/tale-q8_0.gguf");
	w->m = open_model(w->path, device, floats);
	assert_non_null(mkdtemp(folder));
	for (unsigned i = 0; i < STYLES; i++) {
		char config[100];
		snprintf(config, sizeof config, ", \"use_rslora\": true%s", more ? configs[i] : "");
		/* The first one has the embedding and the output, too, the last one the first two layers alone. */
		lora_folder(folder,
		            &(struct lora_written){
				    .module = lora_tale,
				    .n = i == 0   ? LORA_TALE_ALL
		                         : i == 2 ? 14
		                                  : LORA_TALE,
				    .rank = ranks[i],
				    .size = 0.08f,
				    .seed = i + 1,
				    .config = config,
				    .row = more ? rows[i] : NULL });
		w->a[i] = open_adapter(w->m, folder);
	}
	snprintf(line, sizeof line, "rm -rf '%s'", folder);
	assert_int_equal(system(line), 0);
}

static void open_styles(struct styles *w, const char *device, bool floats) { open_styles_of(w, device, floats, false); }

static void close_styles(struct styles *w)
{
	for (unsigned i = 0; i < STYLES; i++)
		jit_adapter_close(w->a[i]);
	jit_model_close(w->m);
}

/* What a session has: bits of w->a, each with a scale of its own. */
static void wear(jit_session *s, const struct styles *w, unsigned which)
{
	static const float scales[STYLES] = { 1, 0.75f, -0.5f };
	jit_adapter *a[STYLES];
	float scale[STYLES];
	size_t n = 0;

	for (unsigned i = 0; i < STYLES; i++)
		if (which >> i & 1) {
			a[n] = w->a[i];
			scale[n++] = scales[i];
		}
	use(s, a, scale, n);
}

static const int32_t *prompt_of(unsigned which)
{
	static int32_t ids[8][PROMPT];

	for (unsigned i = 0; i < PROMPT; i++)
		ids[which][i] = (int32_t)((i * 131 + which * 17 + 7) % VOCAB);
	return ids[which];
}

/* The logits after a prompt, and after some tokens that follow. */
struct told {
	float logits[STEPS + 1][VOCAB];
};

static void tell(jit_session *s, const int32_t *ids, struct told *out)
{
	jit_error err = { 0 };
	int32_t id;

	feed(s, ids, PROMPT);
	for (unsigned i = 0;; i++) {
		const float *logits = jit_session_logits(s, &err);
		if (!logits)
			fail_msg("%s", err.message);
		memcpy(out->logits[i], logits, sizeof out->logits[i]);
		if (i == STEPS)
			return;
		assert_int_equal(jit_session_next(s, &id, &err), JIT_OK);
	}
}

static struct told *told_alone(const struct styles *w, const struct way *way, unsigned which)
{
	struct told *out = malloc(sizeof *out);
	jit_session *s = open_session(w->m, way);

	assert_non_null(out);
	wear(s, w, which);
	tell(s, prompt_of(which), out);
	jit_session_close(s);
	return out;
}

static void check_ways(bool more)
{
	static const struct way ways[] = { { 1, 1, 0 }, { 2, 5, 0 }, { 7, 16, 0 } };
	struct styles w;

	open_styles_of(&w, "cpu", false, more);
	for (unsigned which = test_quick() ? 7 : 1; which < 8; which++) {
		struct told *want = told_alone(&w, &(struct way){ .threads = 2 }, which);
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
			struct told *got = told_alone(&w, &ways[i], which);
			if (memcmp(got, want, sizeof *got) != 0)
				fail_msg("adapters %x: %d threads and passes of %d tokens differ", which,
				         ways[i].threads, ways[i].batch);
			free(got);
		}
		free(want);
	}
	close_styles(&w);
}

static void test_ways(void **unused)
{
	check_ways(false);
	check_ways(true);
}

/* Every device gives the CPU's bits, and so does a real card (JITRUN_TEST_CUDA). */
static void test_devices(void **unused)
{
	const char *const devices[] = { "ref", "sim:sm90", "sim:gfx1101", test_real_card() };
	const struct way way = { .threads = 1 };
	struct styles w;

	open_styles_of(&w, "cpu", false, true);
	struct told *want = told_alone(&w, &way, 7);
	close_styles(&w);
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
		if (!devices[i] || !test_mine((unsigned)i))
			continue;
		open_styles_of(&w, devices[i], false, true);
		struct told *got = told_alone(&w, &way, 7);
		close_styles(&w);
		if (memcmp(got, want, sizeof *got) != 0)
			fail_msg("%s differs from the CPU", devices[i]);
		free(got);
	}
	free(want);
}

/* A session without adapters has the bits of a model that never had any; one of scale 0 counts as none. */
static void test_without(void **unused)
{
	const struct way way = { .threads = 2 };
	struct styles w, bare = { .m = NULL };
	struct told got;

	open_styles(&w, "cpu", false);
	bare.m = open_model(w.path, "cpu", false);
	struct told *want = told_alone(&bare, &way, 0);
	jit_session *s = open_session(w.m, &way);
	tell(s, prompt_of(0), &got);
	assert_memory_equal(&got, want, sizeof got);
	feed(s, prompt_of(0), 0 + 1);
	assert_int_equal(jit_session_rewind(s, 0, NULL), JIT_OK);
	use(s, w.a, (const float[]){ 0, 0 }, 2);
	tell(s, prompt_of(0), &got);
	assert_memory_equal(&got, want, sizeof got);
	jit_session_close(s);
	free(want);
	close_styles(&w);
	jit_model_close(bare.m);
}

/* ---- batches: sessions with different adapters in one pass */

static void step_all(jit_batch *b, jit_session **s, struct told *got, unsigned n)
{
	jit_session *ready[8];
	jit_error err = { 0 };
	unsigned steps[8] = { 0 };
	size_t n_ready;
	int32_t id;

	while (jit_batch_pending(b)) {
		if (jit_batch_step(b, ready, 8, &n_ready, &err) != JIT_OK)
			fail_msg("%s", err.message);
		for (size_t i = 0; i < n_ready; i++) {
			unsigned which = 0;
			while (which < n && s[which] != ready[i])
				which++;
			const float *logits = jit_session_logits(ready[i], &err);
			assert_non_null(logits);
			memcpy(got[which].logits[steps[which]], logits, sizeof got->logits[0]);
			if (steps[which]++ < STEPS)
				assert_int_equal(jit_session_next(ready[i], &id, &err), JIT_OK);
		}
	}
}

/* Also sessions without magnitudes beside one with these: alone they have the bits of a model without such adapters. */
static void test_batches(void **unused)
{
	const jit_batch_options o =
		JIT_BATCH_OPTIONS(.threads = 2, .tokens = 64, .context = 256, .speculate = JIT_SPECULATE_OFF);
	struct told *got = calloc(8, sizeof *got);
	jit_session *s[8];
	jit_batch_stats stats = JIT_BATCH_STATS();
	struct styles w, plain;

	open_styles_of(&w, "cpu", false, true);
	jit_batch *b = jit_batch_open(w.m, &o, NULL);
	assert_non_null(b);
	for (unsigned i = 0; i < 8; i++) {
		assert_non_null(s[i] = jit_batch_session(b, NULL, NULL));
		wear(s[i], &w, i);
		assert_int_equal(jit_session_submit(s[i], prompt_of(i), PROMPT, NULL, NULL), JIT_OK);
	}
	step_all(b, s, got, 8);
	open_styles(&plain, "cpu", false);
	jit_batch_get_stats(b, &stats, NULL);
	assert_true(stats.width[3] > 0); /* passes of five to eight sessions */
	for (unsigned i = 0; i < 8; i++) {
		struct told *want = told_alone(i < 2 ? &plain : &w, &(struct way){ .threads = 2 }, i);
		if (memcmp(&got[i], want, sizeof *want) != 0)
			fail_msg("adapters %x have other bits in a batch than alone", i);
		free(want);
		jit_session_close(s[i]);
	}
	jit_batch_close(b);
	close_styles(&w);
	close_styles(&plain);
	free(got);
}

/* Pages of the cache belong to adapters and scales: the same text is taken over by sessions that have the same. */
static void test_shared_beginnings(void **unused)
{
	enum { LONG = 300 };
	const jit_batch_options o =
		JIT_BATCH_OPTIONS(.threads = 2, .tokens = 64, .context = 512, .speculate = JIT_SPECULATE_OFF);
	static const struct {
		unsigned which;
		bool takes_over;
	} rounds[] = { { 1, false }, { 2, false }, { 0, false }, { 1, true }, { 3, false }, { 2, true } };
	int32_t ids[LONG];
	size_t reused, n;
	jit_session *ready[1];
	struct styles w;

	open_styles(&w, "cpu", false);
	jit_batch *b = jit_batch_open(w.m, &o, NULL);
	for (int i = 0; i < LONG; i++)
		ids[i] = i * 37 % VOCAB;
	for (size_t i = 0; i < sizeof rounds / sizeof *rounds; i++) {
		jit_session *s = jit_batch_session(b, NULL, NULL);
		wear(s, &w, rounds[i].which);
		assert_int_equal(jit_session_submit(s, ids, LONG, &reused, NULL), JIT_OK);
		if (rounds[i].takes_over != (reused > 0))
			fail_msg("adapters %x: %zu tokens were taken over", rounds[i].which, reused);
		while (jit_batch_pending(b))
			assert_int_equal(jit_batch_step(b, ready, 1, &n, NULL), JIT_OK);
		jit_session_close(s);
	}
	jit_batch_close(b);
	close_styles(&w);
}

/* ---- schedules */

static unsigned added, tuned;

/* Of a pass of one token with adapters; each: its kernels that add something. */
static void each_added(const struct styles *w, struct tune *t, void (*each)(struct tune *t, const struct key *key))
{
	const struct plan_options o = { .target = w->m->target, .tune = t, .adapts = true };
	struct error err = { 0 };
	struct plan p;

	assert_true(plan_outline(&p, &w->m->file.spec, &w->m->weights, DTYPE_F16, 1, PLAN_LAST_LOGITS, &o, &err));
	for (size_t i = 0; i < p.n_kernels; i++) {
		struct key k = p.kernel[i].key;
		if (k.kind == KEY_MATMUL && k.flags & KEY_ADDED)
			each(t, &k);
	}
	plan_free(&p);
}

/* Of the same kernel without what is added. */
static void set_result(struct tune *t, const struct key *key)
{
	struct tune_result r = { .key = *key, .gain = 1.5, .samples = 9 };
	uint32_t all[TEMPLATE_SCHEDULES_MAX];

	r.key.flags &= ~(uint32_t)KEY_ADDED;
	if (template_schedules(&r.key, all) < 2)
		return;
	r.key.schedule = all[1];
	tune_set(t, &r);
	added++;
}

static void count_tuned(struct tune *t, const struct key *key) { tuned += key->schedule != 0; }

/* What this machine likes of a matrix, it likes with adapters. */
static void test_schedules(void **unused)
{
	struct styles w;
	struct error err = { 0 };
	struct tune *t = tune_open(NULL, &err);

	assert_non_null(t);
	open_styles(&w, "cpu", false);
	added = tuned = 0;
	each_added(&w, t, count_tuned);
	assert_int_equal(tuned, 0);
	each_added(&w, t, set_result);
	each_added(&w, t, count_tuned);
	if (!added)
		fail_msg("no kernel has a second schedule");
	assert_int_equal(tuned, added);
	tune_close(t);
	close_styles(&w);
}

/* ---- what is refused */

static void test_refused_calls(void **unused)
{
	const struct way way = { .threads = 1 };
	jit_error err = { 0 };
	struct styles w, bare = { .m = NULL };

	open_styles(&w, "cpu", false);
	bare.m = open_model(w.path, "cpu", false);
	jit_session *s = open_session(w.m, &way), *plain = open_session(bare.m, &way);
	jit_adapter *many[] = { w.a[0], w.a[0], w.a[0], w.a[0], w.a[0], w.a[0], w.a[0], w.a[0], w.a[0] };

	assert_int_equal(jit_session_set_adapters(s, many, NULL, 9, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_set_adapters(s, many, (const float[]){ NAN }, 1, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_session_set_adapters(plain, w.a, NULL, 1, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "another model"));
	feed(s, prompt_of(0), 3);
	assert_int_equal(jit_session_set_adapters(s, w.a, NULL, 1, &err), JIT_ERROR_ARGUMENT);
	assert_non_null(strstr(err.message, "rewind it to 0 first"));
	assert_int_equal(jit_model_adapters(bare.m, 6, &err), JIT_ERROR_ARGUMENT);
	assert_int_equal(jit_model_adapters(bare.m, 8, &err), JIT_OK);
	assert_int_equal(jit_model_adapters(bare.m, 12, &err), JIT_ERROR_ARGUMENT);
	jit_session_close(s);
	jit_session_close(plain);
	jit_model_close(bare.m);
	close_styles(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_batches),
		cmocka_unit_test(test_shared_beginnings),
		cmocka_unit_test(test_schedules),
		cmocka_unit_test(test_refused_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) + run_from() + run_once() + run_experts();
}
