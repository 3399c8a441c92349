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

#include "include/jitrun_cards.h"
#include "tests/fake_kfd/child.h"
#include "tests/fake_kfd/jobs.h"
#include "tests/support/shared.h"

/* ---- whole models */

static const char *const cards[] = {
	"gfx1030",
	"gfx1101 bar=small vram=16384 cus=4 kfd=18",
	"gfx1151 kfd=17",
	"gfx1201 vram=16384 kfd=16",
	"gfx1030 bar=small kfd=11",
	"gfx1100 cus=6 vgpr=256 kfd=18",
	"gfx1102 kfd=12 bar=small",
	"gfx1151 vgpr=256 kfd=17",
	"gfx1036 cus=2",
	"gfx1200"
};
/* The second way is tried with fewer of the same, but with JITRUN_TEST_FULL. */
static bool brief(void) { return by_library && !test_full(); }

static const struct job jobs[] = {
	{ "golden/llama-gqa4-bf16", "311", JIT_LAUNCH_TOKEN, "once", 0 },
	{ "golden/qwen3-gqa2-bf16", "12", JIT_LAUNCH_LAYER, "once", 0 },
	{ "golden/llama-mha-f32", "9", JIT_LAUNCH_TOKEN, "once", 0 },
	{ "golden/mistral-gqa4-f16", "21", JIT_LAUNCH_OP, "once", 0 },
	{ "models/tale-q8_0.gguf", "g1", JIT_LAUNCH_LAYER, "once", 0 },
	{ "models/tale-q8_0.gguf", "1", JIT_LAUNCH_TOKEN, "twice", 0 },
	{ "golden/llama-gqa4-bf16", "3", JIT_LAUNCH_TOKEN, "beside", 0 }
};
enum { CARDS = sizeof cards / sizeof *cards, JOBS = sizeof jobs / sizeof *jobs };

static unsigned check_job(const struct job *j, const char *card, const struct faked *truth)
{
	static struct faked f;

	f = (struct faked){ .cards = card };
	assert_true(do_job(&f, j, "amd"));
	if (!f.status && !f.signal && !strcmp(f.out, truth->out) && nothing_left(&f))
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

	for (unsigned i = 0; i < JOBS; i += brief() ? 4 : 1) {
		truth = (struct faked){ .cards = "gfx1030" };
		if (!do_job(&truth, &jobs[i], "cpu"))
			continue;
		if (truth.status || *truth.log)
			describe(&truth, "the CPU"), wrong++;
		unsigned step = test_full() ? 1 : test_quick() ? CARDS : 3;
		for (unsigned k = i % step; k < CARDS; k += step, done++)
			wrong += check_job(&jobs[i], cards[k], &truth);
	}
	assert_int_equal(wrong, 0);
	if (!done)
		skip();
}

/* ---- what goes wrong */

/* The errors that the real driver has for each of its calls, the most likely first. `keeps`: what it was to give back
 * may stay. */
static const struct call {
	const char *name, *errors[4];
	bool keeps;
} calls[] = { { "open-kfd", { "EACCES", "ENOENT", "ENODEV" }, false },
	      { "open-render", { "EACCES", "ENOENT", "ENODEV" }, false },
	      { "GET_VERSION", { "ENOTTY", "ENODEV" }, false },
	      { "ACQUIRE_VM", { "EBUSY", "EINVAL", "ENOMEM" }, false },
	      { "AVAILABLE_MEMORY", { "EINVAL", "ENODEV" }, false },
	      { "ALLOC_MEMORY", { "ENOMEM", "EINVAL", "ENODEV" }, false },
	      { "mmap-render", { "EPERM", "EINVAL", "ENOMEM" }, false },
	      { "mmap-kfd", { "EINVAL", "ENOMEM", "ENODEV" }, false },
	      { "MAP_MEMORY", { "ENOMEM", "EINVAL", "EINTR" }, false },
	      { "CREATE_EVENT", { "ENOSPC", "ENOMEM", "EINVAL" }, false },
	      { "CREATE_QUEUE", { "ENOMEM", "EINVAL", "EBUSY" }, false },
	      { "WAIT_EVENTS", { "ENOMEM", "EIO", "EINVAL" }, false },
	      { "UNMAP_MEMORY", { "ENOMEM", "EINVAL", "EBUSY" }, true },
	      { "FREE_MEMORY", { "EBUSY", "EINVAL" }, true },
	      { "DESTROY_EVENT", { "EINVAL" }, true },
	      { "DESTROY_QUEUE", { "ETIME", "EINVAL" }, true },
	      /* libhsakmt's own */
	      { "GET_PROCESS_APERTURES", { "EINVAL", "ENOMEM", "EFAULT" }, false },
	      { "SET_MEMORY_POLICY", { "EINVAL", "ENOMEM" }, false } };
enum { CALLS = sizeof calls / sizeof *calls };

/* No call is left out: what is traced and no call is a packet, or libdrm asking for names and versions. */
static void all_are_known(const char *trace)
{
	char name[40];
	unsigned i;

	for (const char *p = trace; p && sscanf(p, "%*u %39s", name) == 1;
	     p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		for (i = 0; i < CALLS && strcmp(calls[i].name, name) != 0; i++)
			;
		if (i == CALLS && strcmp(name, "packet") != 0 && strcmp(name, "ioctl-render") != 0)
			fail_msg("nobody lets %s fail", name);
	}
}

static unsigned check_call(const struct call *c, unsigned at, const char *error, const struct faked *truth)
{
	static struct faked f;
	char inject[64];

	snprintf(inject, sizeof inject, "fail=%s#%u:%s", c->name, at, error);
	f = (struct faked){ .cards = truth->cards, .inject = inject, .limit_ms = 30000 };
	assert_true(do_job(&f, &small, "amd"));
	if (ended_well(&f, truth, NULL, c->keeps))
		return 0;
	describe(&f, c->name);
	return 1;
}

/* Every call fails in turn, with every error: the first and the last of a name, or all with JITRUN_TEST_FULL. */
static void test_calls_fail(void **state)
{
	static struct faked truth;
	unsigned wrong = 0, counter = 0;
	(void)state;

	if (!learn(&truth, "gfx1030"))
		skip();
	all_are_known(truth.trace);
	for (unsigned i = 0; i < CALLS; i += brief() && i < CALLS - 2 ? 2 : 1) {
		const struct call *c = &calls[i];
		unsigned n = count(truth.trace, c->name), step = test_full() ? 1 : test_quick() || n < 2 ? n : n - 1;
		if (!n && strcmp(c->name, "WAIT_EVENTS") && i < CALLS - 2)
			print_message("# %s is not called\n", c->name);
		for (unsigned at = 1 + (test_quick() ? i % (n ? n : 1) : 0); n && at <= n; at += step)
			for (unsigned e = 0; e < 4 && c->errors[e]; e++)
				if (test_full() || e == counter++ % 3)
					wrong += check_call(c, at, c->errors[e], &truth);
	}
	assert_int_equal(wrong, 0);
}

/* Calls that fail from then on, and a card that is pulled out between two calls. */
static void test_lasting(void **state)
{
	static const char *const all[] = {
		"unplug=call30",
		"fail=WAIT_EVENTS#1:EIO+",
		"fail=ioctl-render#1:ENODEV+",
		"unplug=call70",
		"fail=ALLOC_MEMORY#12:ENOMEM+",
		"fail=UNMAP_MEMORY#1:EBUSY+",
		"fail=FREE_MEMORY#1:EBUSY+",
		"denied",
		"fail=CREATE_EVENT#2:ENOSPC+",
		"unplug=call5",
		"fail=MAP_MEMORY#9:ENOMEM+",
		"unplug=call40",
		"unplug=call80"
	};
	static struct faked truth, f;
	unsigned wrong = 0;

	if (!learn(&truth, "gfx1201"))
		skip();
	for (unsigned i = 0; i < (test_quick() ? 5 : sizeof all / sizeof *all); i++) {
		if (by_library && !strcmp(all[i], "unplug=call5")) /* libhsakmt 5.2.3 may go astray then */
			continue;
		f = (struct faked){ .cards = truth.cards, .inject = all[i], .limit_ms = 30000 };
		assert_true(do_job(&f, &small, "amd"));
		if (!ended_well(&f, &truth, NULL, strstr(all[i], "UNMAP") || strstr(all[i], "FREE")))
			describe(&f, "lasting"), wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* The card failed as it should, and then the CPU computed what the card would have. */
static bool went_on(struct faked *f, const struct faked *truth)
{
	char *rest = strstr(f->out, "again\n");

	if (!rest || strcmp(rest + strlen("again\n"), truth->out) != 0)
		return false;
	*rest = 0;
	return true;
}

/* `%u` in a row is a packet: the first, one in the middle and the last. */
static const struct mishap {
	const char *inject, *says; /* NULL: nothing comes of it */
	bool impatient, keeps;
} mishaps[] = { { "destroy=60000 wedge=%u", "has worked on", true, true },
	        { "destroy=60000 wedge=%u:10", "has worked on", true, true },
	        { "fault=%u", "memory fault at 0xdead0000", false, false },
	        { "reset=%u", "was reset", false, true },
	        { "unplug=%u", "not there any more", false, true },
	        { "lost=%u", NULL, false, false },
	        { "slow=3", NULL, false, false } };
enum { MISHAPS = sizeof mishaps / sizeof *mishaps, WATCHDOG_MS = 1000, AFTER_MS = 2000, RUN_MS = 8000 };

static unsigned check_mishap(const struct mishap *m, unsigned packet, const struct faked *truth)
{
	static struct faked f;
	char inject[64];
	struct job j = small;

	j.how = "again";
	snprintf(inject, sizeof inject, m->inject, packet);
	f = (struct faked){ .cards = truth->cards, .inject = inject, .limit_ms = WATCHDOG_MS + AFTER_MS + RUN_MS };
	setenv("JITRUN_CARD_PATIENCE", m->impatient ? "1" : "60", 1);
	assert_true(do_job(&f, &j, "amd"));
	setenv("JITRUN_CARD_PATIENCE", "60", 1);
	if ((!m->says || went_on(&f, truth)) && ended_well(&f, truth, m->says, m->keeps) && (m->says || f.status == 0))
		return 0;
	describe(&f, m->inject);
	return 1;
}

/* The first packet, one in the middle and the last; all of them, which are the phases of a run, with
 * JITRUN_TEST_FULL. */
static unsigned packet_of(unsigned k, unsigned n, bool all)
{
	return all ? k + 1 : k == 0 ? 1 : k == 1 ? (n + 1) / 2 : n;
}

static void test_mishaps(void **state)
{
	static struct faked truth;
	static const char *const on[] = { "gfx1201", "gfx1101 bar=small", "gfx1151" };
	unsigned wrong = 0;

	for (unsigned c = 0; c < (brief() ? 1 : 3); c++) {
		if (!learn(&truth, on[c]))
			skip();
		unsigned n = count(truth.trace, "packet");
		bool all = test_full() && n > 3 && n < 40;
		for (unsigned i = 0; i < MISHAPS; i++)
			for (unsigned k = 0; k < (all ? n : 3); k++)
				if (test_full() || (test_quick() ? (i + 2 * k) % 9 == c : (i + k) % 3 == c))
					wrong += check_mishap(&mishaps[i], packet_of(k, n, all), &truth);
	}
	assert_int_equal(wrong, 0);
}

/* ---- with others, and with too little memory */

static void test_two_processes(void **state)
{
	static struct faked truth, one, two;
	struct faked_process p, q;
	char dir[] = "/tmp/faked.XXXXXX", command[64];
	(void)state;

	if (!learn(&truth, "gfx1030") || !mkdtemp(dir))
		skip();
	one = two = (struct faked){ .cards = "gfx1030", .dir = dir };
	assert_true(start_job(&one, &small, "amd", &p) && start_job(&two, &small, "amd", &q));
	faked_end(&one, &p);
	faked_end(&two, &q);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
	if (!ended_well(&one, &truth, NULL, false) || !ended_well(&two, &truth, NULL, false) || one.status ||
	    two.status) {
		describe(&one, "one");
		describe(&two, "the other");
		fail();
	}
}

static bool fits_in(const struct faked *truth, const char *card, unsigned all, unsigned mib, const char *says)
{
	static struct faked f;
	struct job j = small;
	char text[64];

	j.how = says ? "once" : "late";
	snprintf(text, sizeof text, "%s vram=%u used=%u", card, all ? all : mib, all ? all - mib : 0);
	f = (struct faked){ .cards = text };
	assert_true(do_job(&f, &j, "amd"));
	if (!ended_well(&f, truth, f.status == 0 ? NULL : says ? says : "bytes of the memory of", false)) {
		describe(&f, "too little memory");
		fail();
	}
	return f.status == 0;
}

/* Who says beforehand which session is to come is refused before anything is loaded, to the last step in which the
 * driver tells of free memory; who does not, with the buffer that has no room. */
enum { TOO_LITTLE = 70, ENOUGH = 96, STEP = 2 };
static void check_memory(const struct faked *truth, const char *card, unsigned all, bool to_the_step)
{
	const char *says = "error: open: the weights and a context of 64 tokens need";
	unsigned none = TOO_LITTLE, room = ENOUGH;

	assert_false(fits_in(truth, card, all, none, says));
	assert_false(fits_in(truth, card, all, none, NULL));
	assert_true(fits_in(truth, card, all, room, says));
	while (to_the_step && room - none > STEP) {
		unsigned mib = (none + room) / 2 / STEP * STEP;
		*(fits_in(truth, card, all, mib, says) ? &room : &none) = mib;
	}
}

/* Small cards, and cards of 8 and 16 GiB of which others leave as much. */
static void test_memory(void **state)
{
	static const struct {
		const char *card;
		unsigned all; /* MiB; 0: what is free is all there is */
	} rows[] = { { "gfx1101", 0 }, { "gfx1030", 8192 }, { "gfx1201", 16384 }, { "gfx1102 bar=small", 8192 } };
	static struct faked truth;
	(void)state;

	if (!learn(&truth, "gfx1101"))
		skip();
	for (unsigned i = 0; i < (brief() ? 1 : sizeof rows / sizeof *rows); i++)
		check_memory(&truth, rows[i].card, rows[i].all, i == 0 || !test_quick());
}

/* Two cards of one process, with a model each and both in use. By calls of the driver alone, as elsewhere. */
static void test_two_cards(void **state)
{
	static const char *const pairs[] = { "gfx1030,gfx1201", "gfx1101 bar=small,gfx1101", "gfx1201,gfx1151" };
	static struct faked truth, f;
	struct job j = small;
	unsigned wrong = 0;
	(void)state;

	truth = (struct faked){ .cards = "gfx1030" };
	j.how = "beside";
	if (by_library || !faked_there() || !do_job(&truth, &j, "cpu"))
		skip();
	j.how = "beside:amd:1";
	for (unsigned i = 0; i < (test_quick() ? 1 : 3); i++) {
		f = (struct faked){ .cards = pairs[i] };
		assert_true(do_job(&f, &j, "amd:0"));
		if (f.status || f.signal || strcmp(f.out, truth.out) != 0 || *f.log)
			describe(&f, "two cards"), wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* Fewer workgroups leave compute units to others, and give the same bits; more than live at once are refused. */
static void test_workgroups(void **state)
{
	static const int numbers[] = { 1, 3, 1000 };
	static struct faked truth, f;
	struct job j = small;
	(void)state;

	if (!learn(&truth, "gfx1101"))
		skip();
	for (unsigned i = 0; i < 3; i++) {
		f = (struct faked){ .cards = "gfx1101" };
		j.workgroups = numbers[i];
		assert_true(do_job(&f, &j, "amd"));
		if (!ended_well(&f, &truth, i == 2 ? "1000 workgroups are to run at once" : NULL, false) ||
		    (i < 2 && f.status)) {
			describe(&f, "workgroups");
			fail();
		}
	}
}

static bool library_there(void)
{
	static struct faked f = { .cards = "gfx1030" };

	setenv("JITRUN_AMD_THUNK", "hsakmt", 1);
	bool there = faked_there() && do_job(&f, &small, "amd") && f.status == 0;
	if (!there && f.out[0])
		print_message("# libhsakmt is not tried: %s", f.out);
	return there;
}

/* Which way is taken where nobody says which, and what is said of a way that there is not. */
static void test_choice(void **state)
{
	static const struct {
		const char *wanted, *cards, *says; /* says: NULL: it runs */
		bool library;                      /* where it is installed */
	} rows[] = { { "", "gfx1030", NULL, true },
		     { "", "gfx1030,gfx1101", NULL, false },
		     { "ioctl", "gfx1030", NULL, false },
		     { "hsakmt", "gfx1030,gfx1101", "where there is one card alone", false },
		     { "rocm", "gfx1030", "JITRUN_AMD_THUNK is \"rocm\", expected ioctl or hsakmt", false } };
	static struct faked f;
	(void)state;

	if (!faked_there())
		skip();
	bool there = library_there();
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		setenv("JITRUN_AMD_THUNK", rows[i].wanted, 1);
		f = (struct faked){ .cards = rows[i].cards, .traced = true };
		assert_true(do_job(&f, &small, "amd"));
		bool library = strstr(f.trace, "GET_PROCESS_APERTURES") != NULL;
		if (rows[i].says ? !strstr(f.out, rows[i].says)
		                 : f.status != 0 || library != (rows[i].library && there)) {
			describe(&f, rows[i].wanted);
			fail();
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_models),    cmocka_unit_test(test_calls_fail),    cmocka_unit_test(test_mishaps),
		cmocka_unit_test(test_lasting),   cmocka_unit_test(test_two_processes), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_two_cards), cmocka_unit_test(test_workgroups)
	};
	const struct CMUnitTest choices[] = { cmocka_unit_test(test_choice) };

	if (argc == 7 && !strcmp(argv[1], "run"))
		return child_main(argv);
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	self[n > 0 ? n : 0] = 0;
	setenv("JITRUN_CARD_PATIENCE", "60", 1); /* simulated launches take long */
	int failed = cmocka_run_group_tests_name("choice", choices, NULL, NULL);
	setenv("JITRUN_AMD_THUNK", "ioctl", 1);
	failed += cmocka_run_group_tests_name("calls of the driver", tests, NULL, NULL);
	by_library = library_there();
	return failed + (by_library ? cmocka_run_group_tests_name("libhsakmt", tests, NULL, NULL) : 0);
}
