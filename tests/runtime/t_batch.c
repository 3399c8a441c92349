/* tests/runtime/t_batch.c - sessions of a batch beside the same sessions alone: whatever else was computed with them,
 * their logits are equal, bit for bit, and so are their tokens.
 *
 * A schedule is random: when sessions come, how long their texts are, which begin like others, which are cancelled or
 * closed half-way, how tokens are chosen, how much memory there is. What a session was asked and what it answered is
 * written down, and asked again of a session of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun_batch.h"
#include "tests/runtime/batch_sound.h"
#include "tests/support/shared.h"

enum { CONTEXT = 640, SESSIONS_MAX = 12, ANSWERS_MAX = 64 };

/* What a session was asked: tokens up to `length`, of which those below `fed` were submitted; and its logits then. */
struct answer {
	size_t fed, length;
	float *logits;
};
struct request {
	jit_session *session; /* NULL: it has not come yet, or is gone */
	jit_sampling sampling;
	int32_t ids[CONTEXT + 1];
	struct answer answer[ANSWERS_MAX];
	size_t n, length, fed; /* answers; tokens; those submitted so far */
	unsigned wanted;       /* tokens still to be chosen */
	bool came, swapped, cancelled;
};
struct schedule {
	jit_model *model;
	jit_batch *batch;
	const char *name;
	int vocab;
	uint64_t random, seed;
	struct request *request;
	size_t n, longest;
	int kv;
};

/* What happened in all schedules. */
static struct {
	unsigned schedules;
	uint64_t reused, set_back, cancelled, accepted;
} seen;

static unsigned draw(struct schedule *t, unsigned max)
{
	t->random = t->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(t->random >> 33) % (max + 1);
}

static void must(const struct schedule *t, int status, const jit_error *err)
{
	if (status != JIT_OK)
		fail_msg("%s, schedule %llu: %s", t->name, (unsigned long long)t->seed, err->message);
}

/* ---- what sessions are asked */

/* Tokens that often repeat themselves, at times behind those of another session. */
static size_t write_tokens(struct schedule *t, const struct request *r, int32_t *ids, size_t max)
{
	const struct request *like = &t->request[draw(t, (unsigned)t->n - 1)];
	size_t n = 1 + draw(t, (unsigned)max - 1), same = 0, period = 2 + draw(t, 9);

	if (r->length == 0 && like->length > 8 && draw(t, 2))
		same = draw(t, (unsigned)(like->length < n ? like->length : n));
	memcpy(ids, like->ids, same * sizeof *ids);
	for (size_t i = same; i < n; i++)
		ids[i] = i >= period && draw(t, 3) ? ids[i - period] : (int32_t)draw(t, (unsigned)t->vocab - 1);
	return n;
}

static void leave(struct request *r)
{
	jit_session_stats stats = JIT_SESSION_STATS();

	if (jit_session_get_stats(r->session, &stats, NULL) == JIT_OK)
		seen.accepted += stats.accepted;
	jit_session_close(r->session);
	r->session = NULL;
}

static void submit(struct schedule *t, struct request *r, size_t max)
{
	jit_error err = { 0 };
	size_t reused = 1 << 20, n = write_tokens(t, r, r->ids + r->length, max);

	int status = jit_session_submit(r->session, r->ids + r->length, n, &reused, &err);
	if (status == JIT_ERROR_MEMORY) { /* as much as all sessions may have */
		leave(r);
		return;
	}
	must(t, status, &err);
	assert_true(reused < n);
	r->length += n;
	r->fed = r->length;
}

static void come(struct schedule *t, struct request *r)
{
	static const float temperature[] = { 0, 0, 0.8f, 1.3f };
	jit_error err = { 0 };

	r->sampling = JIT_SAMPLING(.temperature = temperature[draw(t, 3)], .top_k = draw(t, 1) ? 20 : 0,
	                           .repeat_penalty = draw(t, 1) ? 1.2f : 0, .seed = draw(t, 1000));
	r->session = jit_batch_session(t->batch, &r->sampling, &err);
	if (!r->session)
		fail_msg("%s", err.message);
	r->came = true;
	r->wanted = 2 + draw(t, t->longest < 72 ? (unsigned)t->longest / 4 : 18);
	submit(t, r, draw(t, 5) ? t->longest / 8 + 2 : t->longest);
}

/* Its logits, and what it says next; or more tokens, once. */
static void answer(struct schedule *t, struct request *r)
{
	jit_error err = { 0 };
	const float *logits = jit_session_logits(r->session, &err);

	if (r->cancelled && !logits) {
		assert_int_equal(err.code, JIT_ERROR_CANCELLED);
		seen.cancelled++;
		leave(r);
		return;
	}
	if (!logits && err.code == JIT_ERROR_MEMORY) {
		leave(r);
		return;
	}
	must(t, logits ? JIT_OK : err.code, &err);
	assert_int_equal(jit_session_length(r->session), r->length);
	struct answer *a = &r->answer[r->n++];
	*a = (struct answer){ r->fed, r->length, malloc((size_t)t->vocab * sizeof(float)) };
	assert_non_null(a->logits);
	memcpy(a->logits, logits, (size_t)t->vocab * sizeof(float));
	if (r->wanted == 0 && !r->swapped && draw(t, 2) == 0) {
		r->swapped = true;
		r->wanted = draw(t, 6);
		submit(t, r, 40);
	} else if (r->wanted == 0) {
		leave(r);
	} else {
		must(t, jit_session_next(r->session, &r->ids[r->length], &err), &err);
		r->length++;
		r->wanted--;
	}
}

/* ---- a schedule */

static struct request *request_of(struct schedule *t, const jit_session *s)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->request[i].session == s)
			return &t->request[i];
	fail_msg("a session is ready that is not there");
	return NULL;
}

static void disturb(struct schedule *t)
{
	struct request *r = &t->request[draw(t, (unsigned)t->n - 1)];

	if (r->session && draw(t, 30) == 0) {
		jit_session_cancel(r->session);
		r->cancelled = true;
	} else if (r->session && draw(t, 40) == 0) {
		leave(r);
	}
}

static void run(struct schedule *t)
{
	jit_session *ready[3];
	jit_error err = { 0 };
	size_t here, n, to_come = 0, steps = 0;

	do {
		if (to_come < t->n && draw(t, 2) == 0)
			come(t, &t->request[to_come++]);
		disturb(t);
		must(t, jit_batch_step(t->batch, ready, 1 + draw(t, 2), &n, &err), &err);
		struct error unsound = { 0 };
		if (!batch_memory_sound(t->batch, &unsound))
			fail_msg("%s, schedule %llu: %s", t->name, (unsigned long long)t->seed, unsound.text);
		for (size_t i = 0; i < n; i++)
			answer(t, request_of(t, ready[i]));
		here = 0;
		for (size_t i = 0; i < t->n; i++)
			here += t->request[i].session != NULL;
		if (++steps > 20000)
			fail_msg("%s, schedule %llu does not come to an end", t->name, (unsigned long long)t->seed);
	} while (here || to_come < t->n);
	assert_int_equal(jit_batch_pending(t->batch), 0);
}

/* ---- the same alone */

static void check_alone(struct schedule *t, struct request *r, size_t number)
{
	jit_error err = { 0 };
	jit_session *s =
		jit_session_open(t->model,
	                         &JIT_SESSION_OPTIONS(.context = CONTEXT, .threads = 1, .kv = t->kv,
	                                              .sampling = &r->sampling, .speculate = JIT_SPECULATE_OFF),
	                         &err);
	size_t length = 0;

	if (!s)
		fail_msg("%s", err.message);
	for (size_t i = 0; i < r->n; length = r->answer[i++].length) {
		const struct answer *a = &r->answer[i];
		int32_t id;
		if (a->fed < a->length) { /* the last one was chosen */
			must(t, jit_session_next(s, &id, &err), &err);
			if (id != r->ids[length])
				fail_msg("%s, schedule %llu: token %zu of session %zu is %d, alone %d", t->name,
				         (unsigned long long)t->seed, length, number, r->ids[length], id);
		} else {
			must(t, jit_session_feed(s, r->ids + length, a->length - length, &err), &err);
		}
		if (memcmp(a->logits, jit_session_logits(s, &err), (size_t)t->vocab * sizeof(float)) != 0)
			fail_msg("%s, schedule %llu: the logits of session %zu behind %zu tokens are not those alone",
			         t->name, (unsigned long long)t->seed, number, a->length);
	}
	jit_session_close(s);
}

/* As few bytes may be less than the first tokens of a session take: then with more. */
static void open_batch(struct schedule *t, uint64_t bytes)
{
	static const int widths[] = { 48, 96, 20, 264 }, modes[] = { JIT_SPECULATE_AUTO, 4, JIT_SPECULATE_OFF, 16, 8 };
	jit_error err = { 0 };
	jit_batch_options o =
		JIT_BATCH_OPTIONS(.context = CONTEXT, .threads = 1 + (int)draw(t, 1), .kv = t->kv = (int)draw(t, 2),
	                          .tokens = widths[draw(t, 3)], .speculate = modes[draw(t, 4)],
	                          .max_pass_ms = draw(t, 1) ? 1 : 0, .kv_bytes = bytes);

	for (int tries = 0; tries < 3 && !(t->batch = jit_batch_open(t->model, &o, &err)); tries++)
		o.kv_bytes += o.kv_bytes / 2;
	if (!t->batch)
		fail_msg("%s: %s", t->name, err.message);
}

/* Adds what it saw to *sum; returns the bytes that its sessions took. */
static uint64_t check_schedule(struct schedule *t, uint64_t seed, uint64_t bytes, jit_batch_stats *sum)
{
	jit_batch_stats stats = JIT_BATCH_STATS();
	jit_error err = { 0 };

	t->random = t->seed = seed;
	open_batch(t, bytes);
	t->request = calloc(t->n, sizeof *t->request);
	assert_non_null(t->request);
	run(t);
	must(t, jit_batch_get_stats(t->batch, &stats, &err), &err);
	sum->reused_tokens += stats.reused_tokens;
	sum->set_back += stats.set_back;
	for (int i = 0; i < 16; i++)
		sum->width[i] += stats.width[i];
	jit_batch_close(t->batch);
	for (size_t i = 0; i < t->n; i++) {
		check_alone(t, &t->request[i], i);
		for (size_t k = 0; k < t->request[i].n; k++)
			free(t->request[i].answer[k].logits);
	}
	free(t->request);
	return stats.pages_used * (stats.kv_bytes / stats.pages);
}

static bool open_model(struct schedule *t, const char *name, const char *device, const char *isa, int bounded)
{
	char path[1024];
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();

	*t = (struct schedule){ .name = name };
	if (!shared_path(path, name))
		return false;
	const jit_model_options o = JIT_MODEL_OPTIONS(.device = device, .isa = isa, .cache_dir = "",
	                                              .bounded_numerics = bounded ? JIT_NUMERICS_ALWAYS_BOUNDED : 0);
	t->model = jit_model_open(path, &o, &err);
	if (!t->model && (isa || err.code == JIT_ERROR_UNSUPPORTED)) {
		printf("# skipped: %s\n", err.message);
		return false;
	}
	if (!t->model)
		fail_msg("%s: %s", path, err.message);
	must(t, jit_model_get_info(t->model, &info, &err), &err);
	t->vocab = info.vocab;
	assert_int_equal(info.bounded, bounded ? JIT_BOUNDED_ALL : JIT_BOUNDED_NONE);
	return true;
}

/* Dense; windows; states of convolutions, of the delta rule; experts; inputs of layers; latent attention; a scan. */
static const char *const models[] = {
	"golden/qwen3-gqa2-bf16", "golden/gemma3-a",      "golden/lfm2-a",           "golden/qwen35-a",
	"golden/qwen3moe-a",      "golden/gemma4-e-a",    "golden/deepseekv3-a",     "golden/nemotronh-a",
	"golden-next/falconh1-a", "golden-next/mamba2-a", "golden-next/phimoe-a",    "golden-next/apertus-a",
	"golden-next/mamba-a",    "golden-next/jamba-a",  "golden-next/olmohybrid-a"
};
enum { MODELS = sizeof models / sizeof *models };

/* Each with all the memory there is, and with a third of what it took then. */
static void check_model_of(int bounded, const char *name, const char *device, const char *isa, unsigned schedules,
                           size_t sessions, size_t longest)
{
	struct schedule t;
	jit_batch_stats sum = JIT_BATCH_STATS();

	if (!open_model(&t, name, device, isa, bounded))
		return;
	t.n = sessions;
	t.longest = longest;
	for (unsigned i = 0; i < schedules; i++) {
		const uint64_t seed = 1000 * (strlen(name) + strlen(device)) + i;
		uint64_t bytes = check_schedule(&t, seed, 256 << 20, &sum);
		check_schedule(&t, seed, bytes / 3, &sum);
	}
	printf("# %s, %s %s: %llu passes of one session, %llu of two, %llu of more; %llu tokens taken over, %llu times "
	       "set back\n",
	       name, device, isa ? isa : "", (unsigned long long)sum.width[0], (unsigned long long)sum.width[1],
	       (unsigned long long)(sum.width[2] + sum.width[3] + sum.width[4]), (unsigned long long)sum.reused_tokens,
	       (unsigned long long)sum.set_back);
	assert_true(sum.width[1] || sum.width[2]);
	seen.schedules += 2 * schedules;
	seen.reused += sum.reused_tokens;
	seen.set_back += sum.set_back;
	jit_model_close(t.model);
}

static void check_model(const char *name, const char *device, const char *isa, unsigned schedules, size_t sessions,
                        size_t longest)
{
	check_model_of(0, name, device, isa, schedules, sessions, longest);
}

/* Schedules of each model, each with two sizes of memory: JITRUN_TEST_FULL makes 200 of each target. */
enum { SCHEDULES = 100 / MODELS + 1 };

static void sessions_are_what_they_are_alone(void **state)
{
	for (unsigned i = 0; i < MODELS; i++)
		if (test_mine_of_halves(i))
			check_model(models[i], "cpu", NULL, test_full() ? 2 * SCHEDULES : test_quick() ? 1 : 3, 8, 420);
}

static void so_they_are_on_every_target(void **state)
{
	static const char *const isas[] = { "avx2", "avx2vnni", "avx512", "avx512vnni", "avx512bf16", "avx512amx" };

	for (size_t i = 0; i < sizeof isas / sizeof *isas; i++)
		for (size_t k = test_full() ? 0 : i % MODELS; k < MODELS; k += test_full() ? 1 : MODELS)
			check_model(models[k], "cpu", isas[i], test_full() ? SCHEDULES : 1, 6, 200);
}

static void so_they_are_on_other_devices(void **state)
{
	for (unsigned i = 0; i < (test_quick() ? 1 : MODELS); i++) {
		const char *const devices[] = { "ref", i % 2 ? "sim:gfx1201" : "sim:gfx1100",
			                        i % 2 ? "sim:sm80" : "sim:sm90" };
		for (unsigned d = 0; d < 3; d++)
			if (test_mine(3 * i + d))
				check_model(models[i], devices[d], NULL,
				            !test_full() ? 1
				            : d < 2      ? SCHEDULES
				                         : 3,
				            4, 16);
	}
}

/* Pairs of BF16 give what they give alone, too, whatever is beside them. */
static void so_they_are_by_dot2(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		check_model_of(1, models[i], "cpu", "avx512bf16", test_full() ? SCHEDULES : 1, 6, 200);
		if (test_mine(i))
			check_model_of(1, models[i], "ref", "avx512bf16", test_full() ? SCHEDULES : 1, 4, 16);
	}
}

/* Which is chance, so that few schedules may lack one of these. */
static void all_of_it_has_happened(void **state)
{
	printf("# %u schedules: %llu tokens taken over, %llu times set back, %llu cancelled, %llu draft tokens came "
	       "true\n",
	       seen.schedules, (unsigned long long)seen.reused, (unsigned long long)seen.set_back,
	       (unsigned long long)seen.cancelled, (unsigned long long)seen.accepted);
	assert_true(!test_full() || (seen.reused && seen.set_back && seen.cancelled && seen.accepted));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_are_what_they_are_alone), cmocka_unit_test(so_they_are_on_every_target),
		cmocka_unit_test(so_they_are_on_other_devices), cmocka_unit_test(so_they_are_by_dot2),
		cmocka_unit_test(all_of_it_has_happened)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
