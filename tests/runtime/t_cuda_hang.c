/* tests/runtime/t_cuda_hang.c - a card that does not come to an end: the library is the simulated one, whose queue is
 * said to be at work, for a while or for ever. A pass that ends late is waited for without burning a processor. One
 * that never ends is one sentence, and the driver is asked nothing more, since it would wait for the card.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "runtime/device/cuda/cuda_simulated.h"
#include "runtime/host/system.h"
#include "include/jitrun.h"
#include "include/jitrun_cards.h"
#include "tests/support/shared.h"

const struct cuda_api *__real_cuda_simulated(void);
const struct cuda_api *__wrap_cuda_simulated(void);

enum { LOGITS = 4096 };

static struct {
	bool armed;            /* the next pass does not end */
	double until;          /* 0: nothing is at work; else the queue is, till then */
	unsigned queries;      /* while it was at work */
	const char *requested; /* of the driver while it was at work, beside that */
} card;

static bool at_work(void) { return card.until > 0 && system_seconds() < card.until; }

#define X(member, name, arguments, passed) \
	static int seen_##member arguments \
	{ \
		if (at_work() && !card.requested) \
			card.requested = name; \
		return __real_cuda_simulated()->member passed; \
	}
CUDA_FUNCTIONS(X)
#undef X

/* What is never given back, because nobody may ask for it, is given back at the end. */
enum { KEPT = 200 };
static void *modules[KEPT], *execs[KEPT], *queues[KEPT];
static unsigned n_modules, n_execs, n_queues;

static void *note(void *list[KEPT], unsigned *n, void *what)
{
	if (what && *n < KEPT)
		list[(*n)++] = what;
	return what;
}

static void drop(void *list[KEPT], unsigned n, const void *what)
{
	for (unsigned i = 0; i < n; i++)
		if (list[i] == what)
			list[i] = NULL;
}

static int load(void **module, const void *image)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int result = seen_module_load(module, image);

	pthread_mutex_lock(&lock);
	note(modules, &n_modules, *module);
	pthread_mutex_unlock(&lock);
	return result;
}

static int unload(void *module)
{
	drop(modules, n_modules, module);
	return seen_module_unload(module);
}

static int instantiate(void **exec, void *graph, unsigned long long flags)
{
	int result = seen_graph_instantiate(exec, graph, flags);

	note(execs, &n_execs, *exec);
	return result;
}

static int destroy_exec(void *exec)
{
	drop(execs, n_execs, exec);
	return seen_graph_exec_destroy(exec);
}

static int create(void **queue, uint32_t flags)
{
	int result = seen_stream_create(queue, flags);

	note(queues, &n_queues, *queue);
	return result;
}

static int destroy(void *queue)
{
	drop(queues, n_queues, queue);
	return seen_stream_destroy(queue);
}

static void begin_work(double seconds)
{
	card.until = system_seconds() + seconds;
	card.queries = 0;
}

static double seconds;

static int launch_graph(void *exec, void *queue)
{
	int result = seen_graph_launch(exec, queue);

	if (card.armed)
		begin_work(seconds);
	return result;
}

/* One by one, but not into a graph: an op each, or (whole) all of a pass. */
static bool apart, whole;
static int launch_one(const struct cuda_launch_config *c, void *function, void **params, void **extra)
{
	int result = seen_launch(c, function, params, extra);

	if (card.armed && (apart || whole))
		begin_work(seconds);
	return result;
}

static int query(void *queue)
{
	card.queries += at_work();
	return at_work() ? CUDA_NOT_READY : __real_cuda_simulated()->stream_query(queue);
}

const struct cuda_api *__wrap_cuda_simulated(void)
{
	static struct cuda_api api = {
#define X(member, name, arguments, passed) .member = seen_##member,
		CUDA_FUNCTIONS(X)
#undef X
	};

	api.module_load = load;
	api.module_unload = unload;
	api.graph_instantiate = instantiate;
	api.graph_exec_destroy = destroy_exec;
	api.stream_create = create;
	api.stream_destroy = destroy;
	api.graph_launch = launch_graph;
	api.launch = launch_one;
	api.stream_query = query;
	return &api;
}

/* ---- a model on it */

static const int32_t ids[] = { 300, 311 };

static jit_session *open_session(jit_model *m, jit_error *err)
{
	jit_card_options co = JIT_CARD_OPTIONS(.launch = apart ? JIT_LAUNCH_OP : JIT_LAUNCH_TOKEN);
	return jit_session_open(m, &JIT_SESSION_OPTIONS(.context = 32, .threads = 1, .card = &co), err);
}

static jit_model *open_both(jit_session **s)
{
	char path[1024];
	jit_error err = { 0 };

	memset(&card, 0, sizeof card);
	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.device = "sim:sm90", .cache_dir = "", .threads = 1), &err);
	if (!m || !(*s = open_session(m, &err)) || jit_session_feed(*s, ids, 1, &err) != JIT_OK)
		fail_msg("%s", err.message);
	return m;
}

static void expect(const char *message, const char *says)
{
	if (!strstr(message, says))
		fail_msg("\"%s\" does not say \"%s\"", message, says);
}

static double processor(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* A pass takes the processor's time, too, as it is simulated. */
static double seconds_of_pass(jit_session *s)
{
	jit_error err = { 0 };
	double cpu = processor();

	if (jit_session_feed(s, &ids[1], 1, &err) != JIT_OK)
		fail_msg("%s", err.message);
	return processor() - cpu;
}

static void never_ends(const char *says)
{
	jit_error err = { 0 }, again = { 0 };
	jit_session *s, *other;
	jit_model *m = open_both(&s);
	char state[] = "/tmp/t_cuda_hang-XXXXXX";
	int fd = mkstemp(state);

	assert_true(fd >= 0);
	double pass = seconds_of_pass(s);
	card.armed = true;
	seconds = 1e6;
	assert_int_equal(jit_model_alive(m, &err), JIT_OK);
	double start = system_seconds(), cpu = processor();
	assert_int_equal(jit_session_feed(s, &ids[1], 1, &err), JIT_ERROR_DEVICE);
	cpu = processor() - cpu;
	assert_true(system_seconds() - start >= 1);
	expect(err.message, says);
	expect(err.message, " for 1.0 seconds; the card is not used any more");
	assert_null(strchr(err.message, '\n'));
	assert_int_equal(jit_model_alive(m, &again), JIT_ERROR_DEVICE);
	assert_string_equal(again.message, err.message);
	again = (jit_error){ 0 };
	assert_true(card.queries > 20);
	if (cpu > 0.7 + 1.5 * pass)
		fail_msg("waiting for a second took %.2f seconds of the processor, a pass %.2f", cpu, pass);
	assert_int_equal(jit_session_feed(s, &ids[1], 1, &again), JIT_ERROR_DEVICE);
	assert_string_equal(again.message, err.message);
	again = (jit_error){ 0 };
	assert_true(jit_session_save(s, state, &again) != JIT_OK);
	expect(again.message, "the card is not used any more");
	again = (jit_error){ 0 };
	other = open_session(m, &again);
	assert_null(other);
	expect(again.message, "the card is not used any more");
	jit_session_close(s);
	jit_model_close(m);
	assert_true(at_work());
	if (card.requested)
		fail_msg("%s was asked of a driver that waits for its card", card.requested);
	close(fd);
	unlink(state);
}

static void test_a_pass_that_never_ends(void **state)
{
	apart = false;
	never_ends("simulated sm90 has worked on a pass of ");
}

static void test_a_launch_that_never_ends(void **state)
{
	apart = true;
	never_ends("simulated sm90 has worked on launch 0, kernel embed.");
	apart = false;
}

static void test_one_launch_that_never_ends(void **state)
{
	whole = true;
	setenv("JITRUN_CUDA_LAUNCH", "one", 1);
	never_ends("simulated sm90 has worked on a pass in one launch for 1.0 seconds");
	setenv("JITRUN_CUDA_LAUNCH", "graph", 1);
	whole = false;
}

static void test_ways_to_launch(void **state)
{
	static const char *const wrong[] = { "two", "graphs", "o", "1" };
	char path[1024];

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		jit_error err = { 0 };
		setenv("JITRUN_CUDA_LAUNCH", wrong[i], 1);
		assert_null(jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
		                           &JIT_MODEL_OPTIONS(.device = "sim:sm90", .cache_dir = ""), &err));
		expect(err.message, "expected graph, op, beside or one");
		expect(err.message, wrong[i]);
	}
	setenv("JITRUN_CUDA_LAUNCH", "graph", 1);
}

/* Later than what is polled for, and sooner than the limit. */
static void test_a_pass_that_ends_late(void **state)
{
	float logits[LOGITS];
	jit_error err = { 0 };

	for (int late = 0; late < 2; late++) {
		jit_session *s;
		jit_model *m = open_both(&s);
		card.armed = late;
		seconds = 0.2;
		if (jit_session_feed(s, &ids[1], 1, &err) != JIT_OK)
			fail_msg("%s", err.message);
		const float *l = jit_session_logits(s, &err);
		assert_non_null(l);
		if (late) {
			assert_memory_equal(logits, l, sizeof logits);
			assert_true(card.queries > 20);
			assert_false(at_work());
		}
		memcpy(logits, l, sizeof logits);
		card.until = 0;
		jit_session_close(s);
		jit_model_close(m);
		assert_null(card.requested);
	}
}

static void test_patience(void **state)
{
	static const char *const wrong[] = { "0.5", "soon", "1e9", "2x", "nan" };
	char path[1024];

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		jit_error err = { 0 };
		setenv("JITRUN_CARD_PATIENCE", wrong[i], 1);
		assert_null(jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
		                           &JIT_MODEL_OPTIONS(.device = "sim:sm90", .cache_dir = ""), &err));
		expect(err.message, "JITRUN_CARD_PATIENCE is \"");
		expect(err.message, wrong[i]);
	}
	setenv("JITRUN_CARD_PATIENCE", "1", 1);
	setenv("JITRUN_CUDA_LAUNCH", "graph", 1);
}

static int tear_down(void **state)
{
	for (unsigned i = 0; i < KEPT; i++) {
		if (modules[i])
			__real_cuda_simulated()->module_unload(modules[i]);
		if (execs[i])
			__real_cuda_simulated()->graph_exec_destroy(execs[i]);
		if (queues[i])
			__real_cuda_simulated()->stream_destroy(queues[i]);
	}
	return 0;
}

int main(void)
{
	setenv("JITRUN_CARD_PATIENCE", "1", 1);
	setenv("JITRUN_CUDA_LAUNCH", "graph", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patience),
		cmocka_unit_test(test_ways_to_launch),
		cmocka_unit_test(test_one_launch_that_never_ends),
		cmocka_unit_test(test_a_pass_that_ends_late),
		cmocka_unit_test(test_a_pass_that_never_ends),
		cmocka_unit_test(test_a_launch_that_never_ends)
	};
	return cmocka_run_group_tests(tests, NULL, tear_down);
}
