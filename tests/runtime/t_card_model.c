/* tests/runtime/t_card_model.c - one model on a card: passes over every few tokens, over a prompt, and over several
 * sequences have the CPU's logits, bit for bit.
 *
 * JITRUN_TEST_MODEL names the model, of any size: matrices of small ones go other ways, as they fit the card's caches.
 * JITRUN_TEST_CUDA names the device. Without them a small model, with norms of whole rows, is on a simulated card, and
 * passes are fewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "include/jitrun.h"
#include "include/jitrun_batch.h"
#include "tests/support/shared.h"

enum { CPU, CARD, DEVICES, SEQUENCES = 16, SMALL = 33, PROMPT = 300, CONTEXT = 1024 };

static char path[1024];
static bool is_real;
static jit_model *model[DEVICES];
static int vocab;

static void must(bool ok, const jit_error *err)
{
	if (!ok)
		fail_msg("%s", err->message);
}

static int open_models(void **state)
{
	const char *named = getenv("JITRUN_TEST_MODEL"), *card = test_real_card();
	const char *device[DEVICES] = { "cpu", "sim:sm90" };
	jit_model_info info = JIT_MODEL_INFO();
	jit_error err = { 0 };

	is_real = card != NULL;
	if (card)
		device[CARD] = card;
	if (named)
		snprintf(path, sizeof path, "%s", named);
	else if (!shared_path(path, "golden/olmo3-a"))
		return 0;
	setenv("JITRUN_CUDA_LAUNCH", "graph", 0);
	for (int d = 0; d < DEVICES; d++) {
		model[d] = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = device[d], .cache_dir = ""), &err);
		must(model[d] != NULL, &err);
	}
	must(jit_model_get_info(model[CPU], &info, &err) == JIT_OK, &err);
	vocab = (int)info.vocab;
	return 0;
}

static int close_models(void **state)
{
	for (int d = 0; d < DEVICES; d++)
		if (model[d])
			jit_model_close(model[d]);
	return 0;
}

static void make_ids(int32_t *ids, int n)
{
	static unsigned last = 1;

	for (int i = 0; i < n; i++)
		ids[i] = (int32_t)((last = last * 1103515245 + 12345) >> 8) % vocab;
}

static void compare(jit_session *const s[DEVICES], const char *what, int n)
{
	jit_error err = { 0 };
	const float *logits[DEVICES];
	int at = 0;

	for (int d = 0; d < DEVICES; d++)
		must((logits[d] = jit_session_logits(s[d], &err)) != NULL, &err);
	while (at < vocab && memcmp(&logits[CPU][at], &logits[CARD][at], sizeof **logits) == 0)
		at++;
	if (at < vocab)
		fail_msg("%s %d: logit %d is %a, the CPU says %a", what, n, at, (double)logits[CARD][at],
		         (double)logits[CPU][at]);
}

static void check_pass(jit_session *const s[DEVICES], int n)
{
	int32_t ids[PROMPT];
	jit_error err = { 0 };

	make_ids(ids, n);
	for (int d = 0; d < DEVICES; d++)
		must(jit_session_feed(s[d], ids, (size_t)n, &err) == JIT_OK, &err);
	compare(s, "a pass of tokens:", n);
}

static void passes_have_the_bits(void **state)
{
	const int step = is_real ? 1 : test_quick() ? 11 : 5;
	jit_error err = { 0 };
	jit_session *s[DEVICES];

	if (!model[CPU])
		skip();
	for (int d = 0; d < DEVICES; d++)
		must((s[d] = jit_session_open(model[d], &JIT_SESSION_OPTIONS(.context = CONTEXT), &err)) != NULL, &err);
	for (int n = 1; n <= SMALL; n += step)
		check_pass(s, n);
	check_pass(s, is_real ? PROMPT : SMALL + 1);
	check_pass(s, 1);
	for (int d = 0; d < DEVICES; d++)
		jit_session_close(s[d]);
}

static void step(jit_batch *batch, int n)
{
	jit_session *ready[SEQUENCES];
	jit_error err = { 0 };
	size_t some, all = 0;

	for (; all < (size_t)n; all += some)
		must(jit_batch_step(batch, ready, SEQUENCES, &some, &err) == JIT_OK && some > 0, &err);
}

/* The first n sessions; tokens of session i: 1, or (mixed) up to 3. */
static void check_step(jit_batch *const batch[DEVICES], jit_session *s[SEQUENCES][DEVICES], int n, bool mixed)
{
	jit_error err = { 0 };

	for (int i = 0; i < n; i++) {
		int32_t ids[3];
		const int tokens = mixed ? 1 + i * 5 % 3 : 1;
		make_ids(ids, tokens);
		for (int d = 0; d < DEVICES; d++)
			must(jit_session_submit(s[i][d], ids, (size_t)tokens, NULL, &err) == JIT_OK, &err);
	}
	for (int d = 0; d < DEVICES; d++)
		step(batch[d], n);
	for (int i = 0; i < n; i++)
		compare(s[i], "a pass of sequences:", n);
}

static void sequences_have_the_bits(void **state)
{
	const jit_batch_options o = JIT_BATCH_OPTIONS(.context = CONTEXT, .tokens = 64, .speculate = JIT_SPECULATE_OFF);
	jit_session *s[SEQUENCES][DEVICES];
	jit_batch *batch[DEVICES];
	jit_error err = { 0 };

	if (!model[CPU])
		skip();
	for (int d = 0; d < DEVICES; d++) {
		must((batch[d] = jit_batch_open(model[d], &o, &err)) != NULL, &err);
		for (int i = 0; i < SEQUENCES; i++)
			must((s[i][d] = jit_batch_session(batch[d], NULL, &err)) != NULL, &err);
	}
	for (int n = 1; n <= SEQUENCES; n += is_real ? 1 : test_quick() ? 15 : 5) {
		check_step(batch, s, n, false);
		check_step(batch, s, n, true);
	}
	for (int d = 0; d < DEVICES; d++) {
		for (int i = 0; i < SEQUENCES; i++)
			jit_session_close(s[i][d]);
		jit_batch_close(batch[d]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(passes_have_the_bits),
		                            cmocka_unit_test(sequences_have_the_bits) };

	return cmocka_run_group_tests(tests, open_models, close_models);
}
