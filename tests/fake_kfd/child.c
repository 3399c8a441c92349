/* tests/fake_kfd/child.c - what t_amd_faked runs as a process of its own: one model on one device, its logits after
 * each pass, and two tokens that it chooses. */
#include "tests/fake_kfd/child.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "include/jitrun.h"
#include "include/jitrun_cards.h"

static int last_code;

static int failed(const char *what, const jit_error *err)
{
	last_code = err->code;
	printf("error: %s: %s\n", what, err->message);
	return 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void print_sum(const char *name, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	printf("%s %016llx\n", name, (unsigned long long)h);
}

static int compute(jit_session *s, size_t vocab, const char *passes)
{
	jit_error err = { 0 };
	int32_t ids[64], id;

	for (int at = 0; *passes; passes++) {
		int n = *passes == 'g' ? 16 : *passes - '0';
		for (int i = 0; i < n; i++, at++)
			ids[i] = (int32_t)((size_t)(at * 37 + 11) % vocab);
		if (jit_session_feed(s, ids, (size_t)n, &err) != JIT_OK)
			return failed("feed", &err);
		const float *logits = jit_session_logits(s, &err);
		if (!logits)
			return failed("logits", &err);
		print_sum("logits", logits, vocab * sizeof *logits);
	}
	for (int i = 0; i < 2; i++) {
		if (jit_session_next(s, &id, &err) != JIT_OK)
			return failed("next", &err);
		printf("token %d\n", id);
	}
	return 0;
}

/* Without the session, models are opened that have no room for it. */
static bool tells_session = true;
static const double max_seconds_to_end = 2;

/* `beside`: the device of another model that is open at the same time, and whose session has worked; NULL: none.
 * launch: "0", a JIT_LAUNCH_ value; "0:3": with so many workgroups. */
static int run(const char *device, const char *path, const char *passes, const char *launch, const char *beside)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	const char *workgroups = strchr(launch, ':');
	const struct jit_card_options card =
		JIT_CARD_OPTIONS(.launch = atoi(launch), .workgroups = workgroups ? atoi(workgroups + 1) : 0);
	const jit_session_options o =
		JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .speculate = JIT_SPECULATE_OFF, .card = &card);
	jit_model *m = jit_model_open(path,
	                              &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1,
	                                                 .session = tells_session ? &o : NULL),
	                              &err);

	if (!m)
		return failed("open", &err);
	jit_model_get_info(m, &info, NULL);
	jit_session *s = jit_session_open(m, &o, &err);
	int status = s ? compute(s, (size_t)info.vocab, passes) : failed("session", &err);
	if (!status && beside)
		status = run(beside, path, passes, launch, NULL) || compute(s, (size_t)info.vocab, passes);
	double start = now();
	jit_session_close(s);
	jit_model_close(m);
	if (status && now() - start > max_seconds_to_end)
		printf("it took %.1f seconds to end\n", now() - start);
	return status;
}

/* Where a device has failed, the model can still be opened on another. */
static int again(char **argv)
{
	if (last_code != JIT_ERROR_DEVICE)
		return 1;
	printf("again\n");
	return run("cpu", argv[3], argv[4], argv[5], NULL) ? 2 : 1;
}

int child_main(char **argv)
{
	const char *how = argv[6], *beside = !strncmp(how, "beside", 6) ? how[6] == ':' ? how + 7 : argv[2] : NULL;

	tells_session = strcmp(how, "late") != 0;
	int status = run(argv[2], argv[3], argv[4], argv[5], beside);
	if (status && !strcmp(how, "again"))
		return again(argv);
	return status || strcmp(how, "twice") ? status : run(argv[2], argv[3], argv[4], argv[5], NULL);
}
