/* tests/mutate/t_mutants.c - files that are nearly right (tests/mutate): each is of use, or refused with one sentence
 * that names the file; in little memory and time.
 *
 * t_mutants [KIND [SEED [HOW MANY]]] runs these alone: how a failure is seen again, and how a long run is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "jit/store/cache.h"
#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "jit/store/tune.h"
#include "include/jitrun.h"
#include "tests/mutate/mutate.h"
#include "tests/support/sanitized.h"
#include "tests/support/shared.h"
#include "tests/mutate/mutant_trial.h"

/* --- what is being tried, for the report of a failure */

char mutant_base[64];
static char report[900];
static volatile sig_atomic_t report_bytes;

static void say_which(void)
{
	if (report_bytes)
		(void)!write(STDERR_FILENO, report, (size_t)report_bytes);
}

static void died(int signal_number)
{
	say_which();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void too_long(int unused)
{
	static const char text[] = "# too much time for one file\n";

	(void)unused;
	(void)!write(STDERR_FILENO, text, sizeof text - 1);
	say_which();
	_exit(1);
}

/* Of the sanitizers' library, where it is linked: they end a process without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

enum { SECONDS = SANITIZED ? 60 : 10 };

static void watch(bool on)
{
	const struct itimerval v = { .it_value.tv_sec = on ? SECONDS : 0 };

	assert_int_equal(setitimer(ITIMER_PROF, &v, NULL), 0);
	alarm(on ? 30 * SECONDS : 0); /* one that waits takes no processor time */
}

/* --- all of a kind */

static void clear(const struct mutant *m)
{
	char path[300];

	for (unsigned i = 0; i < m->files; i++) {
		snprintf(path, sizeof path, "%s/%s", mutant_base, m->file[i].name);
		unlink(path);
	}
	empty_directory(mutant_base);
}

static void prepare(struct trial *t, enum mutant_kind kind, uint64_t seed)
{
	memset(t, 0, sizeof *t);
	t->kind = kind;
	mutant_make(&t->m, kind, seed);
	mutant_write(&t->m, mutant_base);
	for (unsigned i = 0; i < t->m.files; i++)
		t->bytes += t->m.file[i].b.n;
	snprintf(t->path, sizeof t->path, "%s", mutant_base);
	report_bytes = 0;
	report_bytes = snprintf(report, sizeof report, "# with: t_mutants %s %" PRIu64 " (%s)\n",
	                        mutant_kind_name[kind], seed, t->m.what);
}

static void try_one(struct trial *t, enum mutant_kind kind, uint64_t seed)
{
	prepare(t, kind, seed);
	watch(true);
	if (kind == MUTANT_TUNE)
		try_tune(t);
	else if (kind == MUTANT_PACK || kind == MUTANT_ENTRY)
		try_cache(t);
	else
		try_model(t);
	watch(false);
	if (seed < MUTANT_WHOLE && t->refused)
		fail_msg("seed %" PRIu64 " is well formed, and was refused", seed);
	report_bytes = 0;
	clear(&t->m);
	mutant_free(&t->m);
}

static uint64_t how_many(void) { return test_quick() ? 100 : test_full() ? 50000 : 500; }

static void try_kind(enum mutant_kind kind, uint64_t first, uint64_t n)
{
	uint64_t opened = 0, refusals = 0, tried = 0;
	struct trial t;

	for (uint64_t seed = first; seed < first + n; seed++) {
		if (!test_in_part(seed))
			continue;
		try_one(&t, kind, seed);
		tried++;
		opened += t.opened != 0;
		refusals += t.refused != 0;
	}
	printf("# %s: %" PRIu64 " files; %" PRIu64 " were of use in some way, %" PRIu64 " refused in some way\n",
	       mutant_kind_name[kind], tried, opened, refusals);
	/* neither all that is changed is seen, nor all refused: else the mutants would not be nearly right; a model
	 * opens without a tokenizer that cannot be read */
	if (first == 0 && tried >= 40)
		assert_true(opened > tried / 10 && (refusals > tried / 10 || kind == MUTANT_TUNE ||
		                                    kind == MUTANT_TOKENIZER || kind == MUTANT_VOCABULARY));
}

#define KIND(name, kind) \
	static void name(void **unused) \
	{ \
		(void)unused; \
		try_kind(kind, 0, how_many()); \
	}
KIND(gguf_files, MUTANT_GGUF)
KIND(split_files, MUTANT_SPLIT)
KIND(safetensors_files, MUTANT_SAFETENSORS)
KIND(shard_indexes, MUTANT_INDEX)
KIND(configs, MUTANT_CONFIG)
KIND(tokenizers, MUTANT_TOKENIZER)
KIND(vocabularies, MUTANT_VOCABULARY)
KIND(packs, MUTANT_PACK)
KIND(cache_entries, MUTANT_ENTRY)
KIND(schedules, MUTANT_TUNE)

/* --- the programs */

/* Standard error into out; the exit status, or 1000 and more for a signal. */
static int run_program(char *const *argv, char *out, size_t cap)
{
	char said[100];
	int status;
	size_t n;

	snprintf(said, sizeof said, "%s-said", mutant_base);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int null = open("/dev/null", O_RDWR), fd = open(said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (fd < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(fd, 2) < 0)
			_exit(99);
		alarm(6 * SECONDS);
		execv(argv[0], argv);
		_exit(99);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	uint8_t *p = file_bytes(said, &n);
	snprintf(out, cap, "%.*s", (int)n, (const char *)p);
	free(p);
	unlink(said);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void judge(int status, const char *said, bool sentence)
{
	if (status >= 99)
		fail_msg("ended with %d: %s", status, said);
	if (status != 0 && sentence && (!said[0] || strchr(said, '\n') != said + strlen(said) - 1))
		fail_msg("status %d, and not one sentence: %s", status, said);
}

static void program_on_model(struct trial *t)
{
	char said[2000], path[400],
		*argv[] = { "./jitrun", path,         "--prompt-ids", "0,1",       "-n", "2", "--device",
		            "ref",      "--no-cache", "--quiet",      "--threads", "1",  NULL };

	snprintf(path, sizeof path, "%s/%s", mutant_base, t->m.open);
	judge(run_program(argv, said, sizeof said), said, true);
}

static void program_on_cache(struct trial *t)
{
	char said[4000], path[400], other[120];
	char *list[] = { "./jitwarm", "list", "--cache", path, NULL },
	     *verify[] = { "./jitwarm", "verify", "--cache", path, NULL };
	char *import[] = { "./jitwarm", "import", path, "--cache", other, NULL };

	snprintf(path, sizeof path, "%s/%s", mutant_base, t->m.open);
	snprintf(other, sizeof other, "%s-other", mutant_base);
	judge(run_program(list, said, sizeof said), said, false);
	judge(run_program(verify, said, sizeof said), said, false);
	if (t->kind == MUTANT_PACK)
		judge(run_program(import, said, sizeof said), said, true);
	empty_directory(other);
	rmdir(other);
}

static void programs(void **unused)
{
	const enum mutant_kind kinds[] = { MUTANT_GGUF,       MUTANT_SPLIT,  MUTANT_SAFETENSORS,
		                           MUTANT_INDEX,      MUTANT_CONFIG, MUTANT_TOKENIZER,
		                           MUTANT_VOCABULARY, MUTANT_PACK,   MUTANT_ENTRY };
	uint64_t n = test_quick() ? 2 : test_full() ? 100 : 6;
	struct trial t;

	(void)unused;
	if (access("./jitrun", X_OK) || access("./jitwarm", X_OK)) {
		printf("# skipped: the programs are not in this directory\n");
		skip();
	}
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		for (uint64_t seed = 1000000; seed < 1000000 + n; seed++) {
			prepare(&t, kinds[i], seed);
			if (kinds[i] == MUTANT_PACK || kinds[i] == MUTANT_ENTRY)
				program_on_cache(&t);
			else
				program_on_model(&t);
			report_bytes = 0;
			clear(&t.m);
			mutant_free(&t.m);
		}
}

static int make_base(void **unused)
{
	(void)unused;
	strcpy(mutant_base, "/tmp/t_mutants-XXXXXX");
	signal(SIGPROF, too_long);
	signal(SIGALRM, too_long);
	for (size_t i = 0; i < 2; i++)
		signal((int[]){ SIGABRT, SIGBUS }[i], died);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(say_which);
	else
		signal(SIGSEGV, died);
	return mkdtemp(mutant_base) ? 0 : -1;
}

static int remove_base(void **unused)
{
	(void)unused;
	empty_directory(mutant_base);
	return rmdir(mutant_base);
}

/* A failed test leaves its file's description; print it, and make room for the next test. */
static int after(void **unused)
{
	(void)unused;
	watch(false);
	limit_memory(UINT64_MAX);
	say_which();
	report_bytes = 0;
	empty_directory(mutant_base);
	return 0;
}

static int run_some(int argc, char **argv)
{
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0,
		 n = argc > 3   ? strtoull(argv[3], NULL, 10)
	             : argc > 2 ? 1
	                        : how_many();

	if (make_base(NULL))
		return 1;
	for (int k = 0; k < MUTANT_KINDS; k++)
		if (strcmp(argv[1], mutant_kind_name[k]) == 0 || strcmp(argv[1], "all") == 0)
			try_kind((enum mutant_kind)k, first, n);
	remove_base(NULL);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(gguf_files, after),        cmocka_unit_test_teardown(split_files, after),
		cmocka_unit_test_teardown(safetensors_files, after), cmocka_unit_test_teardown(shard_indexes, after),
		cmocka_unit_test_teardown(configs, after),           cmocka_unit_test_teardown(tokenizers, after),
		cmocka_unit_test_teardown(vocabularies, after),      cmocka_unit_test_teardown(packs, after),
		cmocka_unit_test_teardown(cache_entries, after),     cmocka_unit_test_teardown(schedules, after),
		cmocka_unit_test_teardown(programs, after),
	};

	return argc > 1 ? run_some(argc, argv) : cmocka_run_group_tests(tests, make_base, remove_base);
}
