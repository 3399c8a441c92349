/* tests/fuzz/t_fuzz_seeds.c - the fuzz targets (tests/fuzz) without libFuzzer: on their seeds, and on seeds changed at
 * random.
 *
 * t_fuzz_seeds TARGET FILE...            runs what a fuzzer found
 * t_fuzz_seeds TARGET --random N [SEED]  tries N changed seeds
 * t_fuzz_seeds --write DIR               makes DIR/TARGET/NUMBER, the corpus that libFuzzer begins with */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tests/fuzz/fuzz.h"
#include "tests/mutate/mutate.h"
#include "tests/support/shared.h"

static char report[200];

static void say_which(void)
{
	if (report[0])
		(void)!write(STDERR_FILENO, report, strlen(report));
}

static void died(int signal_number)
{
	say_which();
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* Of the sanitizers' library, where it is linked: they end a process without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void listen(void)
{
	signal(SIGABRT, died);
	signal(SIGALRM, died);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(say_which);
	else
		signal(SIGSEGV, died);
}

enum { SEEDS_MAX = 256 };

struct corpus {
	struct bytes seed[SEEDS_MAX];
	size_t n;
};

static void keep(void *user, const uint8_t *p, size_t n)
{
	struct corpus *c = user;

	assert_true(c->n < SEEDS_MAX);
	bytes_put(&c->seed[c->n++], p, n);
}

static void forget(struct corpus *c)
{
	for (size_t i = 0; i < c->n; i++)
		bytes_forget(&c->seed[i]);
	memset(c, 0, sizeof *c);
}

/* From a block of its own size, so that sanitizers see what is read beyond. */
static void try_bytes(const struct fuzz_target *t, const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	assert_non_null(copy);
	if (n)
		memcpy(copy, p, n);
	alarm(120);
	t->one(copy, n);
	alarm(0);
	free(copy);
}

/* Some changes of a seed, or the beginning of one and the end of another. */
static void change(struct dice *d, const struct corpus *c, struct bytes *b)
{
	const struct bytes *a = &c->seed[dice_below(d, c->n)], *z = &c->seed[dice_below(d, c->n)];
	size_t cut = dice_one_in(d, 6) ? (size_t)dice_below(d, a->n + 1) : a->n,
	       rest = cut == a->n ? 0 : (size_t)dice_below(d, z->n + 1);

	bytes_put(b, a->p, cut);
	bytes_put(b, z->p + z->n - rest, rest);
	for (uint64_t i = 1 + dice_below(d, 4); i--;)
		mutate_bytes(d, b);
}

static void open_corpus(struct corpus *c, enum fuzz_number number)
{
	const struct fuzz_target *t = &fuzz_target[number];

	memset(c, 0, sizeof *c);
	fuzz_seeds(number, keep, c);
	assert_true(c->n > 0);
	for (size_t i = 0; i < c->n; i++) {
		snprintf(report, sizeof report, "# with: t_fuzz_seeds %s, its seed %zu\n", t->name, i);
		try_bytes(t, c->seed[i].p, c->seed[i].n);
	}
	snprintf(report, sizeof report, "# with: t_fuzz_seeds %s, no bytes\n", t->name);
	try_bytes(t, NULL, 0);
}

static void try_random(const struct corpus *c, enum fuzz_number number, uint64_t n, uint64_t first)
{
	for (uint64_t i = first; i < first + n; i++) {
		struct dice d = { i };
		struct bytes b = { 0 };
		change(&d, c, &b);
		snprintf(report, sizeof report, "# with: t_fuzz_seeds %s --random 1 %" PRIu64 "\n",
		         fuzz_target[number].name, i);
		try_bytes(&fuzz_target[number], b.p, b.n);
		bytes_forget(&b);
	}
	report[0] = 0;
}

/* For a time of the processor's, so that slow targets take no longer than fast ones. */
static void all_targets(void **unused)
{
	const double seconds = test_quick() ? 0.08 : test_full() ? 60 : 0.25;

	(void)unused;
	for (int i = 0; i < FUZZ_COUNT; i++) {
		clock_t begin = clock();
		struct corpus c;
		uint64_t n = 0;
		if (!test_in_part((uint64_t)i))
			continue;
		open_corpus(&c, (enum fuzz_number)i);
		for (uint64_t step = 20; n == 0 || (double)(clock() - begin) < seconds * CLOCKS_PER_SEC; n += step)
			try_random(&c, (enum fuzz_number)i, step, 1 + n);
		forget(&c);
		printf("# %s: the seeds, and %" PRIu64 " changed ones\n", fuzz_target[i].name, n);
	}
}

struct target {
	const char *dir, *name;
	unsigned n;
};

static void write_one(void *user, const uint8_t *p, size_t n)
{
	struct target *to = user;
	char path[1000];

	snprintf(path, sizeof path, "%s/%s/%u", to->dir, to->name, to->n++);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(p, 1, n, f) != n || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static int write_corpus(const char *dir)
{
	char path[1000];

	mkdir(dir, 0777);
	for (int i = 0; i < FUZZ_COUNT; i++) {
		struct target to = { dir, fuzz_target[i].name, 0 };
		snprintf(path, sizeof path, "%s/%s", dir, to.name);
		mkdir(path, 0777);
		fuzz_seeds((enum fuzz_number)i, write_one, &to);
	}
	return 0;
}

static int run_some(int argc, char **argv)
{
	const struct fuzz_target *t = fuzz_find(argv[1]);

	if (strcmp(argv[1], "--write") == 0 && argc == 3)
		return write_corpus(argv[2]);
	if (!t || argc < 3) {
		fprintf(stderr, "usage: t_fuzz_seeds TARGET FILE... | TARGET --random N [SEED] | --write DIR\n");
		return 2;
	}
	listen();
	if (strcmp(argv[2], "--random") == 0) {
		struct corpus c;
		open_corpus(&c, (enum fuzz_number)(t - fuzz_target));
		try_random(&c, (enum fuzz_number)(t - fuzz_target), argc > 3 ? strtoull(argv[3], NULL, 10) : 1000,
		           argc > 4 ? strtoull(argv[4], NULL, 10) : 1);
		forget(&c);
		return 0;
	}
	for (int i = 2; i < argc; i++) {
		size_t n;
		uint8_t *p = file_bytes(argv[i], &n);
		snprintf(report, sizeof report, "# with: %.150s\n", argv[i]);
		try_bytes(t, p, n);
		free(p);
	}
	return 0;
}

static int group_listen(void **unused)
{
	(void)unused;
	listen();
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_targets) };

	unsetenv("JITRUN_SIM_KEEP"); /* these objects are damaged */
	return argc > 1 ? run_some(argc, argv) : cmocka_run_group_tests(tests, group_listen, NULL);
}
