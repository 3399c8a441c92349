/* tests/runtime/t_cuda_faults.c - a driver library of NVIDIA's whose calls fail.
 *
 * The library is the simulated one. Call n fails, once or from then on, for n from the first to the last of a model's
 * life with a prompt and two tokens more: a graph of launches, timed or not, and one launch for a token, made before
 * the first pass or beside it; and on two cards together. Whatever fails: nothing crashes, what was asked for either
 * works with the same logits or fails with one sentence, and after a single failure no memory of the card's is left
 * behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/device/cuda/cuda_simulated.h"
#include "include/jitrun.h"
#include "tests/support/shared.h"

const struct cuda_api *__real_cuda_simulated(void);
const struct cuda_api *__wrap_cuda_simulated(void);

enum { FAULT = 999 };
static struct {
	unsigned calls, at;          /* at: the call that fails, from 1 on; 0: none */
	bool on;                     /* all from then on */
	const char *device, *launch; /* launch: JITRUN_CUDA_LAUNCH */
	const char *what;
	pthread_mutex_t lock;
} fault = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool fails(const char *name)
{
	pthread_mutex_lock(&fault.lock);
	unsigned call = ++fault.calls;
	bool is = fault.at && (call == fault.at || (fault.on && call > fault.at));
	if (call == fault.at)
		fault.what = name;
	pthread_mutex_unlock(&fault.lock);
	return is;
}

/* What gives back does so even when it tells of a failure: so the driver's manual has it of errors of earlier launches.
 */
static bool gives_back(const char *name)
{
	return strstr(name, "Free") || strstr(name, "Unmap") || strstr(name, "Destroy") || strstr(name, "Unload") ||
	       strstr(name, "Release") || strcmp(name, "cuStreamQuery") == 0;
}

#define X(member, name, arguments, passed) \
	static int fault_##member arguments \
	{ \
		bool is = fails(name); \
		if (is && !gives_back(name)) \
			return FAULT; \
		int of_call = __real_cuda_simulated()->member passed; \
		return is ? FAULT : of_call; \
	}
CUDA_FUNCTIONS(X)
#undef X

/* A capture ends even so, without a graph. */
static int end_capture(void *stream, void **graph)
{
	int result = fault_capture_end(stream, graph);

	if (result == FAULT && !__real_cuda_simulated()->capture_end(stream, graph))
		__real_cuda_simulated()->graph_destroy(*graph);
	if (result == FAULT)
		*graph = NULL;
	return result;
}

const struct cuda_api *__wrap_cuda_simulated(void)
{
	static struct cuda_api api = {
#define X(member, name, arguments, passed) .member = fault_##member,
		CUDA_FUNCTIONS(X)
#undef X
	};

	api.capture_end = end_capture;
	return &api;
}

/* The logits behind a prompt and two tokens more. Returns how many; 0: err. */
static size_t live(const char *path, int profile, float **logits, jit_error *err)
{
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = fault.device, .cache_dir = "");
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 32, .threads = 1, .profile = profile);
	jit_model_info info = JIT_MODEL_INFO();
	setenv("JITRUN_CUDA_LAUNCH", fault.launch, 1);
	jit_model *m = jit_model_open(path, &mo, err);
	jit_session *s = m ? jit_session_open(m, &so, err) : NULL;
	bool ok = s && jit_model_get_info(m, &info, err) == JIT_OK;

	for (int step = 0; ok && step < 3; step++) {
		const int32_t ids[] = { 5, 9, 2 };
		ok = jit_session_feed(s, ids, step ? 1 : 3, err) == JIT_OK;
	}
	const float *from = ok ? jit_session_logits(s, err) : NULL;
	*logits = from ? malloc((size_t)info.vocab * sizeof *from) : NULL;
	if (*logits)
		memcpy(*logits, from, (size_t)info.vocab * sizeof *from);
	if (s)
		jit_session_close(s);
	if (m)
		jit_model_close(m);
	return from ? (size_t)info.vocab : 0;
}

static unsigned run_with(const char *path, int profile, const float *want, unsigned at, bool on)
{
	float *got = NULL;
	jit_error err = { 0 };

	fault.calls = 0;
	fault.at = at;
	fault.on = on;
	fault.what = "";
	cuda_simulation.lost = false; /* where waiting failed, memory may have been unmapped too early */
	size_t before = cuda_simulation.used, n = live(path, profile, &got, &err);
	bool same = n && memcmp(want, got, n * sizeof *got) == 0,
	     told = !n && err.message[0] && !strchr(err.message, '\n') && strstr(err.message, " failed: "),
	     kept = !on && cuda_simulation.used != before; /* where all fails nothing can be given back */
	if ((!same && !told) || kept)
		printf("# %s, %s: call %u%s, %s, failed: %s%s%s\n", fault.device, fault.launch, at,
		       on ? " and all behind it" : "", fault.what,
		       n ? same ? "the same logits" : "other logits" : err.message, kept ? "; memory is left" : "",
		       !n && !told ? "; that is no sentence" : "");
	free(got);
	return (!same && !told) || kept;
}

static unsigned fail_each(const char *path, const char *device, const char *launch, int profile)
{
	static unsigned round;
	const bool small = test_small_share();
	const unsigned step = test_full() ? 1 : small ? 97 : test_quick() ? 43 : 13;
	const unsigned each = small && round ? 0 : 12; /* a start makes the same calls in each turn */
	const unsigned from = small ? 1 + 19 * round : 1;
	unsigned bad = 0, tried = 0;
	float *want;
	jit_error err = { 0 };

	fault.calls = fault.at = 0;
	fault.device = device;
	fault.launch = launch;
	assert_true(live(path, profile, &want, &err) > 0);
	unsigned calls = fault.calls;
	assert_true(calls > 100);
	for (unsigned at = from; at <= calls; at += at < each ? 1 : step, tried++)
		bad += run_with(path, profile, want, at, at & 1);
	printf("# %s, %s: %u of %u calls failed in turn\n", device, launch, tried, calls);
	free(want);
	round++;
	return bad;
}

static void test_faults(void **state)
{
	char path[1024];
	unsigned bad = 0;

	if (!shared_path(path, "golden/llama-a/model-q8_0.gguf"))
		skip();
	for (int profile = JIT_PROFILE_OFF; profile <= JIT_PROFILE_SUMS; profile++)
		bad += fail_each(path, "sim:sm90", "graph", profile);
	bad += fail_each(path, "sim:sm90", "one", JIT_PROFILE_OFF);
	bad += fail_each(path, "sim:sm90", "beside", JIT_PROFILE_OFF);
	bad += fail_each(path, "sim:sm90x2", "graph", JIT_PROFILE_OFF);
	bad += fail_each(path, "sim:sm90x2", "one", JIT_PROFILE_OFF);
	assert_int_equal(bad, 0);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_faults) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
