/* tests/fake_kfd/child.c - what t_amd_faked runs as a process of its own: one model on one device, its logits after
 * each pass, and two tokens that it chooses. */
#include "tests/fake_kfd/child.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/jitrun.h"
#include "runtime/jitrun_cards.h"

static int failed(const char *what, const jit_error *err)
{
	printf("error: %s: %s\n", what, err->message);
	return 1;
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

/* launch: "0", a JIT_LAUNCH_ value; "0:3": with so many workgroups. */
static jit_session *open_session(jit_model *m, const char *launch, jit_error *err)
{
	const char *workgroups = strchr(launch, ':');
	const struct jit_card_options card =
		JIT_CARD_OPTIONS(.launch = atoi(launch), .workgroups = workgroups ? atoi(workgroups + 1) : 0);

	return jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .speculate = JIT_SPECULATE_OFF, .card = &card),
		err);
}

/* `beside`: the device of another model that is open at the same time, and whose session has worked; NULL: none. */
static int run(const char *device, const char *path, const char *passes, const char *launch, const char *beside)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	jit_session *s = NULL;
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1), &err);

	if (!m)
		return failed("open", &err);
	jit_model_get_info(m, &info, NULL);
	s = open_session(m, launch, &err);
	int status = s ? compute(s, (size_t)info.vocab, passes) : failed("session", &err);
	if (!status && beside)
		status = run(beside, path, passes, launch, NULL) || compute(s, (size_t)info.vocab, passes);
	if (s)
		jit_session_close(s);
	jit_model_close(m);
	return status;
}

int child_main(char **argv)
{
	const char *how = argv[6], *beside = !strncmp(how, "beside", 6) ? how[6] == ':' ? how + 7 : argv[2] : NULL;
	int status = run(argv[2], argv[3], argv[4], argv[5], beside);

	return status || strcmp(how, "twice") ? status : run(argv[2], argv[3], argv[4], argv[5], NULL);
}
