/* tests/fake_kfd/t_amd_faked.c - the device amd on cards of the fake driver: whole models give the CPU's bits, and
 * nothing that can go wrong with a card or its driver hangs, crashes or leaves memory behind.
 *
 * Each run is a process of its own, of this program, with the fake driver preloaded. A run is right when it ends well
 * and the driver objected to nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "runtime/jitrun.h"
#include "runtime/jitrun_cards.h"
#include "tests/fake_kfd/run_faked.h"
#include "tests/support/shared.h"

static char self[1024];

/* ---- the child: one model on one device, its logits after each pass, and two tokens that it chooses */

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

static int run(const char *device, const char *path, const char *passes, int launch)
{
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	jit_session *s = NULL;
	jit_model *m = jit_model_open(path, &JIT_MODEL_OPTIONS(.device = device, .cache_dir = "", .threads = 1), &err);

	if (!m)
		return failed("open", &err);
	jit_model_get_info(m, &info, NULL);
	s = jit_session_open(m,
	                     &JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .speculate = JIT_SPECULATE_OFF,
	                                          .card = &JIT_CARD_OPTIONS(.launch = launch)),
	                     &err);
	int status = s ? compute(s, (size_t)info.vocab, passes) : failed("session", &err);
	if (s)
		jit_session_close(s);
	jit_model_close(m);
	return status;
}

/* ---- the parent */

static bool model_path(char path[1024], const char *name)
{
	if (!strncmp(name, "models/", 7) && strchr(name, '.'))
		return source_path(path, name) != NULL;
	return shared_path(path, name) != NULL;
}

struct job {
	const char *model, *passes;
	int launch;
};

static bool start_job(struct faked *f, const struct job *j, const char *device, struct faked_process *p)
{
	char path[1024], launch[8];
	const char *argv[] = { self, "run", device, path, j->passes, launch, NULL };

	snprintf(launch, sizeof launch, "%d", j->launch);
	return model_path(path, j->model) && faked_start(f, argv, p);
}

static bool do_job(struct faked *f, const struct job *j, const char *device)
{
	struct faked_process p;

	if (!start_job(f, j, device, &p))
		return false;
	faked_end(f, &p);
	return true;
}

static void describe(const struct faked *f, const char *what)
{
	print_error("%s: cards \"%s\", injected \"%s\": status %d, signal %d, %.1f s\n%s%s%s", what, f->cards,
	            f->inject ? f->inject : "", f->status, f->signal, f->seconds, f->out, f->err, f->log);
}

/* ---- whole models */

static const char *const cards[] = {
	"gfx1030",
	"gfx1101 bar=small vram=16384 cus=4 kfd=18",
	"gfx1151 kfd=17",
	"gfx1201 vram=16384 kfd=16",
	"gfx1030 bar=small kfd=11",
	"gfx1100 cus=6 kfd=18",
	"gfx1102 kfd=12 bar=small",
	"gfx1151 vgpr=256 kfd=18",
	"gfx1036 cus=2",
	"gfx1200"
};
static const struct job jobs[] = { { "golden/llama-gqa4-bf16", "311", JIT_LAUNCH_TOKEN },
	                           { "golden/qwen3-gqa2-bf16", "12", JIT_LAUNCH_LAYER },
	                           { "golden/llama-mha-f32", "9", JIT_LAUNCH_TOKEN },
	                           { "golden/mistral-gqa4-f16", "21", JIT_LAUNCH_OP },
	                           { "models/tale-q8_0.gguf", "g1", JIT_LAUNCH_LAYER } };
enum { CARDS = sizeof cards / sizeof *cards, JOBS = sizeof jobs / sizeof *jobs };

static unsigned check_job(const struct job *j, const char *card, const struct faked *truth)
{
	static struct faked f;

	f = (struct faked){ .cards = card };
	assert_true(do_job(&f, j, "amd"));
	if (!f.status && !f.signal && !strcmp(f.out, truth->out) && !*f.log)
		return 0;
	describe(&f, j->model);
	print_error("the CPU:\n%s", truth->out);
	return 1;
}

/* Cards take turns with models; every model on every card with JITRUN_TEST_FULL. */
static void test_models(void **state)
{
	static struct faked truth;
	unsigned wrong = 0, done = 0;
	(void)state;

	for (unsigned i = 0; i < JOBS; i++) {
		truth = (struct faked){ .cards = "gfx1030" };
		if (!do_job(&truth, &jobs[i], "cpu"))
			continue;
		if (truth.status || *truth.log)
			describe(&truth, "the CPU"), wrong++;
		unsigned step = test_full() ? 1 : test_quick() ? 5 : 2;
		for (unsigned k = i % step; k < CARDS; k += step, done++)
			wrong += check_job(&jobs[i], cards[k], &truth);
	}
	assert_int_equal(wrong, 0);
	if (!done)
		skip();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_models) };

	if (argc == 6 && !strcmp(argv[1], "run"))
		return run(argv[2], argv[3], argv[4], atoi(argv[5]));
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
	setenv("JITRUN_AMD_PATIENCE", "60", 1); /* simulated launches take long */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
