/* tests/mutate/t_mutants.c - files that are nearly right (tests/mutate): each is of use, or refused with one sentence
 * that names the file; in little memory and time.
 *
 * t_mutants [KIND [SEED [HOW MANY]]] runs these alone: how a failure is seen again, and how a long run is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "jit/store/cache.h"
#include "jit/store/pack.h"
#include "jit/store/registry.h"
#include "jit/store/tune.h"
#include "kernels-templates/templates.h"
#include "loaders/model.h"
#include "loaders/tokenizer.h"
#include "runtime/jitrun.h"
#include "tests/mutate/mutate.h"
#include "tests/support/shared.h"

/* --- what is being tried, for whoever reads of a failure */

static char base[64], report[900];
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

#if defined(__SANITIZE_ADDRESS__)
enum { SECONDS = 60 };
#else
enum { SECONDS = 10 };
#endif

static void watch(bool on)
{
	const struct itimerval v = { .it_value.tv_sec = on ? SECONDS : 0 };

	assert_int_equal(setitimer(ITIMER_PROF, &v, NULL), 0);
	alarm(on ? 30 * SECONDS : 0); /* one that waits takes no processor time */
}

/* --- memory: what is asked for while a file is opened must follow from the file's size */

static atomic_uint_fast64_t asked;
static uint64_t most_asked = UINT64_MAX;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t each);
void *__real_realloc(void *p, size_t n);
int __real_posix_memalign(void **out, size_t alignment, size_t n);
void *__real_aligned_alloc(size_t alignment, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_realloc(void *p, size_t n);
int __wrap_posix_memalign(void **out, size_t alignment, size_t n);
void *__wrap_aligned_alloc(size_t alignment, size_t n);

static void count(size_t n)
{
	if (atomic_fetch_add(&asked, n) + n > most_asked) {
		char text[100];
		int length = snprintf(text, sizeof text, "# %zu bytes more are too much for this file\n", n);
		most_asked = UINT64_MAX;
		(void)!write(STDERR_FILENO, text, (size_t)length);
		abort();
	}
}

void *__wrap_malloc(size_t n)
{
	count(n);
	return __real_malloc(n);
}
void *__wrap_calloc(size_t n, size_t each)
{
	count(n * each);
	return __real_calloc(n, each);
}
void *__wrap_realloc(void *p, size_t n)
{
	count(n);
	return __real_realloc(p, n);
}
int __wrap_posix_memalign(void **out, size_t alignment, size_t n)
{
	count(n);
	return __real_posix_memalign(out, alignment, n);
}
void *__wrap_aligned_alloc(size_t alignment, size_t n)
{
	count(n);
	return __real_aligned_alloc(alignment, n);
}

static void limit_memory(uint64_t bytes)
{
	asked = 0;
	most_asked = bytes;
}

/* --- one file's trials */

struct trial {
	struct mutant m;
	enum mutant_kind kind;
	char path[300];
	unsigned opened, refused;
	uint64_t bytes;
};

/* One sentence, and about this file. */
static void refused(struct trial *t, const char *text)
{
	t->refused++;
	if (!text[0] || strchr(text, '\n') || !strstr(text, base))
		fail_msg("\"%s\" is no sentence that names the file", text);
}

static void tokenize(const struct tokenizer *k)
{
	static const char text[] = "ab  the lower\xff \xe4\xb8\xad<s>[X] 12345\n\n e\xcc\x81!<|im_end|> "
				   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

	for (unsigned flags = 0; flags < 4; flags++) {
		struct error err = { 0 };
		size_t n, bytes;
		int32_t *ids;
		if (!tokenizer_encode(k, text, sizeof text - 1, flags, &ids, &n, &err)) {
			assert_true(err.text[0]);
			continue;
		}
		for (size_t i = 0; i < n; i++)
			assert_in_range(ids[i], 0, tokenizer_size(k) - 1);
		char *back = tokenizer_decode(k, ids, n, flags & 1, &bytes, &err);
		assert_non_null(back);
		free(back);
		free(ids);
	}
}

static void read_tensors(const struct model *m)
{
	struct error err = { 0 };

	for (uint32_t i = 0; i < m->spec.layers; i++)
		for (int k = 0; k < TENSOR_SLOTS; k++) {
			const struct model_tensor *x = (const struct model_tensor *)&m->spec.layer[i] + k;
			uint8_t *p = malloc(x->bytes + 1);
			assert_true(p && x->bytes == x->rows * x->row_bytes &&
			            (x->bytes == 0 || model_read(m, x, 0, x->bytes, p, &err)));
			free(p);
		}
	assert_true(model_read_done(m, &err));
}

/* Two tokens by the interpreter. */
static void run(struct trial *t)
{
	const jit_model_options how =
		JIT_MODEL_OPTIONS(.device = "ref", .cache_dir = "", .threads = 1, .tune = JIT_TUNE_OFF);
	jit_error err = { 0 };
	jit_model_info info = JIT_MODEL_INFO();
	int32_t id;
	jit_model *m = jit_model_open(t->path, &how, &err);

	if (!m) {
		refused(t, err.message);
		return;
	}
	jit_model_get_info(m, &info, NULL);
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = 8, .threads = 1, .speculate = JIT_SPECULATE_OFF), &err);
	if (s) {
		const int32_t ids[] = { info.vocab > 1, info.vocab - 1 };
		bool ok = jit_session_feed(s, ids, 2, &err) == JIT_OK && jit_session_next(s, &id, &err) == JIT_OK &&
		          jit_session_next(s, &id, &err) == JIT_OK;
		assert_true(ok ? id >= 0 && id < info.vocab : err.message[0] && !t->m.whole);
		jit_session_close(s);
	} else {
		assert_true(err.message[0]);
	}
	t->opened++;
	jit_model_close(m);
}

static void try_model(struct trial *t)
{
	static const unsigned flags[] = { 0, MODEL_HEADER_ONLY, MODEL_NO_TOKENIZER };
	bool whole = false;

	snprintf(t->path + strlen(t->path), sizeof t->path - strlen(t->path), "%s%s", t->m.open[0] ? "/" : "",
	         t->m.open);
	for (size_t i = 0; i < 3; i++) {
		struct error err = { 0 };
		struct model m;
		limit_memory(40 * t->bytes + (8 << 20));
		bool ok = model_open(&m, t->path, flags[i], &err);
		limit_memory(UINT64_MAX);
		if (!ok) {
			refused(t, err.text);
			continue;
		}
		assert_false(err.text[0]);
		if (m.tokenizer)
			tokenize(m.tokenizer);
		if (i == 0) {
			whole = true;
			read_tensors(&m);
		}
		t->opened++;
		model_close(&m);
	}
	limit_memory(100 * t->bytes + (64 << 20));
	if (whole)
		run(t);
	limit_memory(UINT64_MAX);
}

/* --- kernels: everything but running them */

struct seen {
	struct key key[64];
	size_t n;
};

static bool see(const struct cache_item *item, void *user)
{
	struct seen *s = user;
	char text[KEY_TEXT_MAX];

	key_text(&item->key, text, sizeof text);
	if (s->n < 64)
		s->key[s->n++] = item->key;
	return true;
}

static void load(struct cache *c, const struct seen *s)
{
	const struct registry_options how = { .build = template_build, .cache = c, .sealed = true };
	struct error err = { 0 };
	struct registry *r = registry_open(&how, &err);

	assert_non_null(r);
	registry_load(r, s->key, s->n);
	for (size_t i = 0; i < s->n; i++) {
		struct error why = { 0 };
		const struct kernel *k = registry_get(r, &s->key[i], NULL, &why);
		assert_true(k ? k->object.code_bytes > 0 && key_equal(&k->key, &s->key[i]) : why.text[0]);
	}
	registry_close(r);
}

static void empty(const char *dir)
{
	DIR *d = opendir(dir);
	char path[600];

	for (struct dirent *e; d && (e = readdir(d));) {
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.' || e->d_name[1] > '.')
			unlink(path);
	}
	if (d)
		closedir(d);
}

/* Into a directory of its own, and out again. */
static void move(struct trial *t)
{
	struct error err = { 0 };
	char other[100], again[120];
	uint64_t n = 0;

	snprintf(other, sizeof other, "%s-other", base);
	snprintf(again, sizeof again, "%s/again.jkp", other);
	struct cache *c = cache_open(other, NULL, &err);
	assert_non_null(c);
	/* compared with what is made here, which no code of a mutant is; or taken as it is */
	bool compared = dice_one_in(&t->m.dice, 2),
	     taken = t->kind == MUTANT_PACK && cache_import(c, t->path, compared ? template_build : NULL, &n, &err);
	assert_false(taken && compared && n);
	if (t->kind == MUTANT_PACK && !taken) {
		refused(t, err.text);
		t->refused -= compared;
	}
	struct error why = { 0 };
	assert_true(cache_export(c, again, NULL, NULL, &n, &why) || why.text[0]);
	cache_close(c);
	empty(other);
	rmdir(other);
}

static void try_cache(struct trial *t)
{
	struct error err = { 0 };
	struct seen s = { .n = 0 };
	uint64_t sound, bad;

	if (t->m.open[0])
		snprintf(t->path + strlen(t->path), sizeof t->path - strlen(t->path), "/%s", t->m.open);
	limit_memory(20 * t->bytes + (80 << 20)); /* the largest code there may be is 16 MiB */
	struct cache *c = cache_open(t->path, &(struct cache_options){ .read_only = true }, &err);
	if (!c) {
		refused(t, err.text);
		limit_memory(UINT64_MAX);
		return;
	}
	assert_true(cache_each(c, see, &s, &err));
	load(c, &s);
	limit_memory(UINT64_MAX);
	assert_true(cache_verify(c, false, NULL, NULL, &sound, &bad, &err));
	t->opened += bad == 0;
	t->refused += bad != 0;
	cache_close(c);
	/* what is stored is synced, which takes long */
	if (dice_one_in(&t->m.dice, 8))
		move(t);
}

/* It is locked: nothing may be asked of it meanwhile. */
static void see_result(const struct tune_result *r, void *user)
{
	struct seen *s = user;

	assert_true(r->gain >= 1 && r->gain < 100 && r->samples >= 1);
	if (s->n < 64)
		s->key[s->n++] = r->key;
}

static void try_tune(struct trial *t)
{
	struct error err = { 0 };
	struct seen s = { .n = 0 };

	limit_memory(40 * t->bytes + (1 << 20));
	struct tune *k = tune_open(t->path, &err);
	limit_memory(UINT64_MAX);
	assert_non_null(k);
	t->opened += tune_any(k);
	tune_each(k, see_result, &s);
	for (size_t i = 0; i < s.n; i++)
		assert_true(tune_known(k, &s.key[i]));
	struct tune_result mine = { .gain = 2, .samples = 3 };
	assert_true(key_parse(&mine.key, "matmul.q8_0.aq8_0.4096x512.c1.b1.s3.avx2"));
	tune_set(k, &mine);
	assert_true(tune_save(k, &err));
	tune_close(k);
}

/* --- all of a kind */

static void clear(const struct mutant *m)
{
	char path[300];

	for (unsigned i = 0; i < m->files; i++) {
		snprintf(path, sizeof path, "%s/%s", base, m->file[i].name);
		unlink(path);
	}
	empty(base);
}

static void prepare(struct trial *t, enum mutant_kind kind, uint64_t seed)
{
	memset(t, 0, sizeof *t);
	t->kind = kind;
	mutant_make(&t->m, kind, seed);
	mutant_write(&t->m, base);
	for (unsigned i = 0; i < t->m.files; i++)
		t->bytes += t->m.file[i].b.n;
	snprintf(t->path, sizeof t->path, "%s", base);
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
	uint64_t opened = 0, refusals = 0;
	struct trial t;

	for (uint64_t seed = first; seed < first + n; seed++) {
		try_one(&t, kind, seed);
		opened += t.opened != 0;
		refusals += t.refused != 0;
	}
	printf("# %s: %" PRIu64 " files; %" PRIu64 " were of use in some way, %" PRIu64 " refused in some way\n",
	       mutant_kind_name[kind], n, opened, refusals);
	/* neither all that is changed is seen, nor all refused: else the mutants would not be nearly right; a model
	 * opens without a tokenizer that cannot be read */
	if (first == 0 && n >= 40)
		assert_true(opened > n / 10 && (refusals > n / 10 || kind == MUTANT_TUNE || kind == MUTANT_TOKENIZER ||
		                                kind == MUTANT_VOCABULARY));
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

	snprintf(said, sizeof said, "%s-said", base);
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

	snprintf(path, sizeof path, "%s/%s", base, t->m.open);
	judge(run_program(argv, said, sizeof said), said, true);
}

static void program_on_cache(struct trial *t)
{
	char said[4000], path[400], other[120];
	char *list[] = { "./jitwarm", "list", "--cache", path, NULL },
	     *verify[] = { "./jitwarm", "verify", "--cache", path, NULL };
	char *import[] = { "./jitwarm", "import", path, "--cache", other, NULL };

	snprintf(path, sizeof path, "%s/%s", base, t->m.open);
	snprintf(other, sizeof other, "%s-other", base);
	judge(run_program(list, said, sizeof said), said, false);
	judge(run_program(verify, said, sizeof said), said, false);
	if (t->kind == MUTANT_PACK)
		judge(run_program(import, said, sizeof said), said, true);
	empty(other);
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
	strcpy(base, "/tmp/t_mutants-XXXXXX");
	signal(SIGPROF, too_long);
	signal(SIGALRM, too_long);
	for (size_t i = 0; i < 2; i++)
		signal((int[]){ SIGABRT, SIGBUS }[i], died);
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(say_which);
	else
		signal(SIGSEGV, died);
	return mkdtemp(base) ? 0 : -1;
}

static int remove_base(void **unused)
{
	(void)unused;
	empty(base);
	return rmdir(base);
}

/* A failed test leaves its file's description; print it, and make room for the next test. */
static int after(void **unused)
{
	(void)unused;
	watch(false);
	limit_memory(UINT64_MAX);
	say_which();
	report_bytes = 0;
	empty(base);
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
