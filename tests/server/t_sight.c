/* tests/server/t_sight.c - a picture is encoded while an answer is computed: the answer goes on, since it waits for
 * none of what encoding holds and has the cores first, and both have the bits that they have alone. Encoding ends where
 * its client has gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "include/jitrun_images.h"
#include "runtime/host/pool.h"
#include "runtime/host/system.h"
#include "runtime/kernels/compute.h"
#include "server/engine/batcher.h"
#include "server/engine/sight.h"
#include "tests/support/seeing_folder.h"

enum { THREADS = 2, PLAIN = 400, SEEN = 12, PASSES = 30, CONTEXT = 512, TIMEOUT = 120 /* seconds */ };

static struct served served;
static char folder[] = "/tmp/t_sight-XXXXXX";
static struct sight_options told;

/* What the hook saw, in the thread that encodes. */
static struct {
	struct batcher *batcher;
	unsigned calls;
	uint64_t passes, passes_wanted; /* of the batch, while the picture was at the encoder */
	int nice;                       /* of the thread */
	struct answer_stream *stream;   /* of the answer */
	bool leaves;                    /* its client, now */
	enum error_code code;
	_Atomic int worker[THREADS], arrived;
} hook;

static uint64_t passes(struct batcher *e)
{
	struct batcher_numbers n;

	batcher_get_numbers(e, &n);
	return n.batch.passes;
}

static void moment(void)
{
	const struct timespec t = { .tv_nsec = 200000 };

	nanosleep(&t, NULL);
}

static void note_worker(void *user, int worker, int workers)
{
	(void)user;
	hook.worker[worker] = getpriority(PRIO_PROCESS, 0);
	hook.arrived++;
	while (hook.arrived < workers) /* each thread calls once */
		sched_yield();
}

/* Holds the picture until the batch has taken so many passes, which it never does if it waits for the encoder. Where
 * the client leaves, until that has come to the encoder. */
static bool encode(jit_image *image, struct error *err)
{
	const uint64_t begun = passes(hook.batcher);
	const double end = system_seconds() + TIMEOUT;

	hook.calls++;
	hook.nice = getpriority(PRIO_PROCESS, 0);
	hook.arrived = 0;
	pool_run(told.compute->pool, note_worker, NULL);
	if (hook.leaves)
		stream_cancel(hook.stream);
	while (hook.leaves && !cancel_requested(&told.compute->cancel.own) && system_seconds() < end)
		moment();
	while (hook.passes_wanted && system_seconds() < end &&
	       (hook.passes = passes(hook.batcher) - begun) < hook.passes_wanted)
		moment();
	const bool ok = image_encode(image, err);
	hook.code = err->code;
	return ok;
}

struct asker {
	struct task *task;
	struct answer_stream *stream;
	int32_t ids[PLAIN];
	unsigned n;
};

static void open_task(struct asker *a, int tokens)
{
	memset(a, 0, sizeof *a);
	a->task = task_open(&served);
	a->stream = stream_open(1, SIZE_MAX, false);
	assert_true(a->task && a->stream);
	stream_hold(a->stream);
	a->task->stream = a->stream;
	a->task->max = tokens;
	a->task->ignore_end = true;
	a->task->choices = 1;
	a->task->sampling.seed = 1;
}

static void ask_plainly(struct asker *a)
{
	static const int32_t prompt[] = { 70, 71, 72 };
	struct refusal r = { 0 };

	open_task(a, PLAIN);
	a->task->ids = malloc(sizeof prompt);
	assert_non_null(a->task->ids);
	memcpy(a->task->ids, prompt, sizeof prompt);
	a->task->n_ids = 3;
	if (!batcher_take(served.batcher, a->task, &r))
		fail_msg("%s", r.message);
}

static void ask_of_picture(struct asker *a, unsigned number)
{
	static const char text[] = "What is this? <|image_pad|>";
	struct refusal r = { 0 };
	struct error err = { 0 };
	size_t n;
	uint8_t *bytes = seeing_picture("see-qwen3vl-a", number, &n);
	jit_image *image = sight_read(served.sight, bytes, n, "a picture", &r);

	free(bytes);
	open_task(a, SEEN);
	hook.stream = a->stream;
	if (!image ||
	    !prompt_of_text(&a->task->shown, told.encoder,
	                    &(struct prompt_text){ text, sizeof text - 1, true, NULL, NULL }, &image, 1, &err))
		fail_msg("%s%s", r.message, err.text);
	image_release(image);
	a->task->ids = malloc(a->task->shown.n * sizeof *a->task->ids);
	assert_non_null(a->task->ids);
	memcpy(a->task->ids, a->task->shown.ids, a->task->shown.n * sizeof *a->task->ids);
	a->task->n_ids = a->task->shown.n;
	if (!sight_take(served.sight, a->task, &r))
		fail_msg("%s", r.message);
}

static void read_some(struct asker *a)
{
	struct answer_event r;
	const jit_logprob *top;
	const char *text;

	while (stream_take(a->stream, &r, &top, &text)) {
		if (r.kind == EVENT_FAILED)
			fail_msg("failed: %.*s", (int)r.n_text, text);
		if (r.kind == EVENT_TOKEN && r.id >= 0)
			a->ids[a->n++] = r.id;
	}
}

static void finish(struct asker *a)
{
	while (!stream_is_over(a->stream)) {
		read_some(a);
		moment();
	}
	read_some(a);
	task_release(a->task);
	stream_leave(a->stream);
	stream_release(a->stream);
}

static void open_batcher(void)
{
	jit_error err = { 0 };
	struct batcher_options o = { .model = served.model, .parallel = 4, .queue = 8, .of_client = 8 };

	o.batch = JIT_BATCH_OPTIONS(.threads = THREADS, .context = CONTEXT, .speculate = JIT_SPECULATE_OFF);
	if (!(served.batcher = batcher_open(&o, &err)))
		fail_msg("%s", err.message);
	hook.batcher = served.batcher;
}

static int begin(void **state)
{
	jit_error err = { 0 };
	(void)state;

	if (!seeing_folder(folder, "see-qwen3vl-a", "<|image_pad|>", SEEING_TEMPLATE("<|image_pad|>"))) {
		printf("# skipped: there is no see-qwen3vl-a\n");
		exit(77);
	}
	served.model = jit_model_open(folder, &JIT_MODEL_OPTIONS(.cache_dir = "", .threads = THREADS), &err);
	served.info = JIT_MODEL_INFO();
	served.sampling = JIT_SAMPLING(.temperature = 0.8f);
	told = (struct sight_options){
		.images = 4, .pixels = 1000000, .cache_bytes = 1 << 20, .queue = 4, .encode = encode
	};
	told.compute = jit_compute_open(&JIT_COMPUTE_OPTIONS(.threads = THREADS, .cache_dir = ""), &err);
	if (served.model && told.compute && jit_model_get_info(served.model, &served.info, &err) == JIT_OK)
		told.encoder = jit_image_encoder_open(served.model, told.compute, folder, NULL, &err);
	if (!told.encoder || !(served.sight = sight_open(&told)))
		fail_msg("%s", err.message);
	open_batcher();
	return !sight_start(served.sight, served.batcher);
}

static int end(void **state)
{
	(void)state;
	sight_close(served.sight);
	batcher_close(served.batcher);
	jit_model_close(served.model);
	seeing_remove(folder);
	return 0;
}

static void test_beside(void **state)
{
	static struct asker plain, alone, seen, again;
	struct sight_numbers n;
	(void)state;

	ask_plainly(&alone);
	finish(&alone);
	assert_int_equal(alone.n, PLAIN);
	ask_plainly(&plain);
	while (!plain.n) {
		read_some(&plain);
		moment();
	}
	hook.passes_wanted = PASSES;
	ask_of_picture(&seen, 0);
	finish(&seen);
	finish(&plain);
	assert_int_equal(hook.calls, 1);
	assert_true(hook.passes >= PASSES);
	/* the answer's bits, and the picture's: its features are kept for the second time, with nothing beside it */
	assert_int_equal(plain.n, PLAIN);
	assert_memory_equal(plain.ids, alone.ids, sizeof plain.ids);
	ask_of_picture(&again, 0);
	finish(&again);
	assert_int_equal(hook.calls, 1);
	assert_int_equal(seen.n, SEEN);
	assert_memory_equal(seen.ids, again.ids, sizeof seen.ids);
	sight_get_numbers(served.sight, &n);
	assert_int_equal(n.encoded, 1);
	assert_int_equal(n.reused, 1);
}

/* All threads that encode give way to those of answers, which have kept theirs. A process that has a niceness of its
 * own keeps that where it is higher. */
static void test_niceness(void **state)
{
	const int own = getpriority(PRIO_PROCESS, 0), expected = own < 5 ? 5 : own;
	(void)state;

	assert_int_equal(hook.nice, expected);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(hook.worker[i], expected);
}

/* The picture's client leaves while it is encoded: that ends, nothing is kept, and who asks next gets the picture. */
static void test_left(void **state)
{
	static struct asker left, next, again;
	struct sight_numbers before, n;
	(void)state;

	sight_get_numbers(served.sight, &before);
	hook.calls = 0;
	hook.passes_wanted = 0;
	hook.leaves = true;
	ask_of_picture(&left, 1);
	finish(&left);
	assert_int_equal(hook.calls, 1);
	assert_int_equal(hook.code, ERROR_CANCELLED);
	assert_int_equal(left.n, 0);
	sight_get_numbers(served.sight, &n);
	assert_int_equal(n.encoded, before.encoded);
	hook.leaves = false;
	ask_of_picture(&next, 1);
	finish(&next);
	assert_int_equal(hook.calls, 2);
	assert_int_equal(hook.code, ERROR_NONE);
	assert_int_equal(next.n, SEEN);
	ask_of_picture(&again, 1);
	finish(&again);
	assert_int_equal(hook.calls, 2);
	assert_memory_equal(next.ids, again.ids, sizeof next.ids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_niceness),
		cmocka_unit_test(test_left),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
