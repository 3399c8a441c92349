/* tests/runtime/t_cuda_times.c - what a profile says of an NVIDIA card, against a library whose clock is the test's
 * own.
 *
 * The library is the simulated one, but its events tell the time of a clock that only launches move, each by an amount
 * of its own. So what the report must say of every kernel is known to the nanosecond: a time that goes to another
 * kernel, is counted twice or is the host's differs. The blocks of launches are seen here, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "runtime/device/cuda/cuda_simulated.h"
#include "runtime/engine/engine.h"
#include "include/jitrun_cards.h"
#include "include/jitrun_kernel.h"
#include "runtime/session/session_state.h"
#include "tests/support/shared.h"

const struct cuda_api *__real_cuda_simulated(void);
const struct cuda_api *__wrap_cuda_simulated(void);

enum { STEPS_MAX = 4096, EVENTS_MAX = 4096, GRAPHS_MAX = 16, FUNCTIONS_MAX = 256, UNIT = 15625, TOKENS = 3 };

/* A launch of a function, or an event; whether the launch may overlap with the one before it. */
struct step {
	void *function, *event;
	bool overlaps;
};
static struct {
	struct step step[STEPS_MAX];
	size_t n;
	void *exec;
} graph[GRAPHS_MAX], recorded;
static struct {
	void *event;
	uint64_t at;
} event[EVENTS_MAX];
static struct {
	void *function;
	uint64_t nanoseconds, launches;
} spent[FUNCTIONS_MAX];
static size_t n_events, n_functions, event_calls, overlapping;
static uint64_t now;
static bool recording;
static uint32_t blocks; /* of the last launch */

static void forget_all(void)
{
	memset(graph, 0, sizeof graph);
	n_events = n_functions = event_calls = overlapping = 0;
	now = UNIT;
	recording = false;
}

static uint64_t *time_of(void *e)
{
	for (size_t i = 0; i < n_events; i++)
		if (event[i].event == e)
			return &event[i].at;
	assert_true(n_events < EVENTS_MAX);
	event[n_events].event = e;
	event[n_events].at = 0;
	return &event[n_events++].at;
}

static void launch(void *function)
{
	size_t i = 0;

	while (i < n_functions && spent[i].function != function)
		i++;
	if (i == n_functions) {
		assert_true(n_functions < FUNCTIONS_MAX);
		spent[n_functions].nanoseconds = spent[n_functions].launches = 0;
		spent[n_functions++].function = function;
	}
	uint64_t took = UNIT * (1 + i % 11 + 3 * (spent[i].launches % 5));
	now += took;
	spent[i].nanoseconds += took;
	spent[i].launches++;
}

static void do_step(const struct step *s)
{
	if (s->event)
		*time_of(s->event) = now;
	else
		launch(s->function);
	overlapping += s->overlaps;
}

static void add(struct step s)
{
	if (!recording) {
		do_step(&s);
		return;
	}
	assert_true(recorded.n < STEPS_MAX);
	recorded.step[recorded.n++] = s;
}

static int fake_launch(const struct cuda_launch_config *c, void *function, void **params, void **extra)
{
	int result = __real_cuda_simulated()->launch(c, function, params, extra);

	blocks = c->grid[0] * c->grid[1];
	if (!result)
		add((struct step){ .function = function, .overlaps = c->n_attributes != 0 });
	return result;
}

static int fake_capture_begin(void *stream, int mode)
{
	recording = true;
	recorded.n = 0;
	return __real_cuda_simulated()->capture_begin(stream, mode);
}

static int fake_capture_end(void *stream, void **to)
{
	recording = false;
	return __real_cuda_simulated()->capture_end(stream, to);
}

static int fake_instantiate(void **exec, void *from, unsigned long long flags)
{
	int result = __real_cuda_simulated()->graph_instantiate(exec, from, flags);
	size_t i = 0;

	while (graph[i].exec)
		assert_true(++i < GRAPHS_MAX);
	memcpy(&graph[i], &recorded, sizeof recorded);
	graph[i].exec = *exec;
	return result;
}

static int fake_graph_launch(void *exec, void *stream)
{
	size_t i = 0;

	while (graph[i].exec != exec)
		assert_true(++i < GRAPHS_MAX);
	for (size_t k = 0; k < graph[i].n; k++)
		do_step(&graph[i].step[k]);
	return __real_cuda_simulated()->graph_launch(exec, stream);
}

static int fake_event_create(void **e, uint32_t flags)
{
	event_calls++;
	return __real_cuda_simulated()->event_create(e, flags);
}

static int fake_event_record(void *e, void *stream, uint32_t flags)
{
	int result = __real_cuda_simulated()->event_record(e, stream, flags);

	event_calls++;
	if (!result)
		add((struct step){ .event = e });
	return result;
}

static int fake_event_elapsed(float *milliseconds, void *start, void *end)
{
	int result = __real_cuda_simulated()->event_elapsed(milliseconds, start, end);
	uint64_t from = *time_of(start), to = *time_of(end);

	assert_true(from && to >= from);
	*milliseconds = 1e-6f * (float)(to - from);
	return result;
}

const struct cuda_api *__wrap_cuda_simulated(void)
{
	static struct cuda_api api;

	api = *__real_cuda_simulated();
	api.launch = fake_launch;
	api.capture_begin = fake_capture_begin;
	api.capture_end = fake_capture_end;
	api.graph_instantiate = fake_instantiate;
	api.graph_launch = fake_graph_launch;
	api.event_create = fake_event_create;
	api.event_record = fake_event_record;
	api.event_elapsed = fake_event_elapsed;
	return &api;
}

/* ---- a short life of the shipped model */

struct life {
	jit_model *model;
	jit_session *session;
	int32_t ids[TOKENS];
};

static struct life live(int profile, int launches)
{
	static const int32_t prompt[] = { 0, 5, 9, 300, 7 };
	struct life l = { 0 };
	char path[1024];
	jit_error err = { 0 };
	jit_card_options card = JIT_CARD_OPTIONS(.launch = launches);

	forget_all();
	l.model = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                         &JIT_MODEL_OPTIONS(.cache_dir = "", .device = "sim:sm90"), &err);
	assert_non_null(l.model);
	l.session = jit_session_open(l.model,
	                             &JIT_SESSION_OPTIONS(.threads = 2, .profile = profile, .context = 32,
	                                                  .speculate = JIT_SPECULATE_OFF, .card = &card),
	                             &err);
	assert_non_null(l.session);
	assert_int_equal(jit_session_feed(l.session, prompt, 5, &err), JIT_OK);
	for (int i = 0; i < TOKENS; i++)
		assert_int_equal(jit_session_next(l.session, &l.ids[i], &err), JIT_OK);
	return l;
}

static void end(struct life *l)
{
	jit_session_close(l->session);
	jit_model_close(l->model);
}

static json_t *report_of(const struct life *l)
{
	char *text = jit_session_report(l->session, 1, NULL);
	json_t *o = json_loads(text, 0, NULL);

	free(text);
	assert_non_null(o);
	return o;
}

static uint64_t whole(const json_t *o, const char *name)
{
	assert_true(json_is_integer(json_object_get(o, name)));
	return (uint64_t)json_integer_value(json_object_get(o, name));
}

/* Of each kernel the report must have what the clock spent on its function, and all launches. */
static void compare(const struct life *l, const json_t *report)
{
	const struct cuda *d = (const struct cuda *)l->model->device;
	uint64_t all = 0;
	json_t *row;
	size_t i, found = 0;

	json_array_foreach(json_object_get(report, "kernels"), i, row)
	{
		struct key key;
		assert_true(key_parse(&key, json_string_value(json_object_get(row, "key"))));
		const struct cuda_kernel *k = d->kernels;
		while (k && !key_equal(&k->key, &key))
			k = k->next;
		assert_non_null(k);
		for (size_t f = 0; f < n_functions; f++)
			if (spent[f].function == k->function[0]) {
				assert_int_equal(whole(row, "nanoseconds"), spent[f].nanoseconds);
				assert_int_equal(whole(row, "calls"), spent[f].launches);
				all += spent[f].nanoseconds;
				found++;
			}
	}
	assert_int_equal(found, n_functions);
	assert_true(found > 10);
	assert_int_equal(all, now - UNIT);
	assert_int_equal(whole(report, "workers"), 1);
}

static void test_times(void **state)
{
	static const int launches[] = { JIT_LAUNCH_TOKEN, JIT_LAUNCH_OP };

	for (unsigned i = 0; i < 2; i++) {
		struct life l = live(JIT_PROFILE_SUMS, launches[i]);
		json_t *report = report_of(&l);
		compare(&l, report);
		assert_string_equal(json_string_value(json_object_get(report, "clock")), "simulator");
		json_decref(report);
		end(&l);
		assert_int_equal(overlapping, 0); /* else a launch's time would hold some of the next one's */
	}
}

static void test_nothing_without(void **state)
{
	struct life off = live(JIT_PROFILE_OFF, JIT_LAUNCH_TOKEN);
	size_t calls = event_calls, overlap = overlapping;
	struct life on = live(JIT_PROFILE_EVENTS, JIT_LAUNCH_TOKEN);

	assert_int_equal(calls, 0);
	assert_true(overlap > 0 && event_calls > 0);
	assert_memory_equal(off.ids, on.ids, sizeof off.ids);
	end(&off);
	end(&on);
}

/* A user's kernel has more blocks than live at once, one of a multiprocessor here: one more round of them for each 150
 * bytes and operations of a unit, 16 rounds at most, and never more than there are units for their 4 warps. */
static void check_rounds(const char *constants, uint32_t want)
{
	static const char text[] =
		"const i64 n; const i64 turns;\n"
		"kernel k(in u32 x[n], out u32 y[n]) over (i in n) block(32) {\n"
		"	u32 s = x[i];\n"
		"	for (t in 0..turns) { s = s * 3 + 1; }\n"
		"	y[i] = s;\n"
		"}\n";
	jit_error err = { 0 };
	jit_compute *c = jit_compute_open(&JIT_COMPUTE_OPTIONS(.device = "sim:sm90", .cache_dir = ""), &err);
	jit_kernel *k = jit_kernel_open(c, &JIT_KERNEL_OPTIONS(.source = text, .constants = constants), &err);
	jit_launch *l = k ? jit_launch_open(k, &err) : NULL;
	jit_parameter x = JIT_PARAMETER();

	if (!l)
		fail_msg("%s", err.message);
	assert_int_equal(jit_kernel_parameter(k, 0, &x, &err), JIT_OK);
	uint32_t *from = calloc(x.elements, sizeof *from), *to = calloc(x.elements, sizeof *to);
	assert_true(from && to);
	assert_int_equal(jit_launch_set_memory(l, 0, from, x.bytes, &err), JIT_OK);
	assert_int_equal(jit_launch_set_memory(l, 1, to, x.bytes, &err), JIT_OK);
	blocks = 0;
	assert_int_equal(jit_launch_run(l, &err), JIT_OK);
	assert_int_equal(blocks, want);
	for (uint64_t i = 1; i < x.elements; i++)
		assert_int_equal(to[i], to[0]);
	assert_true(to[0] > 0);
	free(from);
	free(to);
	jit_launch_close(l);
	jit_kernel_close(k);
	jit_compute_close(c);
}

static void test_rounds(void **state)
{
	const uint32_t units = cuda_simulation.units;

	forget_all();
	check_rounds("n=32 turns=1", 1);
	check_rounds("n=2048 turns=1", 2 * units);       /* 256 bytes and some 60 operations */
	check_rounds("n=3072 turns=9", 5 * units);       /* 32 x 16 operations more */
	check_rounds("n=8192 turns=200", 16 * units);    /* as many as there are at most */
	check_rounds("n=1024 turns=300", 1024 / 32 / 4); /* units run out */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_times), cmocka_unit_test(test_nothing_without),
		                            cmocka_unit_test(test_rounds) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
