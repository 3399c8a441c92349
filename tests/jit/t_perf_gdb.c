/* tests/jit/t_perf_gdb.c - what profilers and debuggers are told is read back: the jitdump file record by record, gdb's
 * list through the interface it uses. */
#include <dirent.h>
#include <elf.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "jit/store/perf_gdb.h"
#include "include/jitrun.h"
#include "tests/support/shared.h"

/* As gdb's manual declares them. */
struct jit_code_entry {
	struct jit_code_entry *next_entry, *prev_entry;
	const char *symfile_addr;
	uint64_t symfile_size;
};
struct jit_descriptor {
	uint32_t version, action_flag;
	struct jit_code_entry *relevant_entry, *first_entry;
};
extern struct jit_descriptor __jit_debug_descriptor;

static char dir[64], file[96];
static const unsigned char code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xc0, 0xc3 };

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/jitrun-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof file, "%s/jit-%ld.dump", dir, (long)getpid());
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(file);
	rmdir(dir);
	return 0;
}

static struct perf_gdb *opened(const char *jitdump, bool gdb)
{
	struct error err = { 0 };
	struct perf_gdb *o = perf_gdb_open(jitdump, gdb, &err);

	if (!o)
		fail_msg("%s", err.text);
	return o;
}

/* ---- jitdump */

static uint64_t number(const uint8_t *at, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = bytes; i-- > 0;)
		v = v << 8 | at[i];
	return v;
}

struct read_back {
	unsigned loads, closes;
	uint64_t last_time, bytes;
	char names[8192];
};

static void read_load(struct read_back *r, const uint8_t *at, uint64_t size)
{
	const char *name = (const char *)at + 56;
	uint64_t n = number(at + 40, 8);

	assert_int_equal(number(at + 16, 4), getpid());
	assert_int_equal(number(at + 24, 8), number(at + 32, 8));
	assert_int_equal(number(at + 48, 8), r->loads++); /* each its own number */
	assert_int_equal(size, 56 + strlen(name) + 1 + n);
	if (n == sizeof code)
		assert_memory_equal(name + strlen(name) + 1, code, n);
	assert_true(strlen(r->names) + strlen(name) + 2 < sizeof r->names);
	strcat(strcat(r->names, name), "\n");
	r->bytes += n;
}

static struct read_back read_dump(void)
{
	static uint8_t text[1 << 22];
	struct read_back r = { 0 };
	FILE *f = fopen(file, "rb");
	assert_non_null(f);
	size_t size = fread(text, 1, sizeof text, f);

	fclose(f);
	assert_true(size >= 40);
	assert_int_equal(number(text, 4), 0x4a695444);
	assert_int_equal(number(text + 4, 4), 1);
	assert_int_equal(number(text + 8, 4), 40);
	assert_int_equal(number(text + 12, 4), EM_X86_64);
	assert_int_equal(number(text + 20, 4), getpid());
	for (size_t at = 40; at < size; at += number(text + at + 4, 4)) {
		uint64_t bytes = number(text + at + 4, 4);
		assert_true(bytes >= 16 && at + bytes <= size);
		assert_true(number(text + at + 8, 8) >= number(text + 24, 8));
		if (number(text + at, 4) == 0)
			read_load(&r, text + at, bytes);
		else if (number(text + at, 4) == 3)
			r.closes++;
		else
			fail_msg("a record of kind %u", (unsigned)number(text + at, 4));
	}
	return r;
}

static void test_dump(void **state)
{
	struct perf_gdb *o = opened(dir, false);
	(void)state;

	perf_gdb_code(o, code, sizeof code, "first");
	perf_gdb_code(o, code, sizeof code, "second.of.two");
	assert_null(__jit_debug_descriptor.first_entry);
	assert_int_equal(read_dump().loads, 2); /* there without a close: perf may stop a process at any time */
	perf_gdb_close(o);
	struct read_back r = read_dump();
	assert_int_equal(r.closes, 1);
	assert_string_equal(r.names, "first\nsecond.of.two\n");
	struct stat st;
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void *tell_many(void *user)
{
	for (int i = 0; i < 100; i++)
		perf_gdb_code(user, code, sizeof code, "x");
	return NULL;
}

/* The file is the process's: opened again while it is open, it goes on. */
static void test_dump_by_many(void **state)
{
	struct perf_gdb *a = opened(dir, false), *b = opened(dir, true);
	struct error err = { 0 };
	pthread_t thread;
	(void)state;

	uint64_t first = read_dump().loads;
	assert_int_equal(first, 0);
	assert_null(perf_gdb_open("/tmp", false, &err));
	assert_non_null(strstr(err.text, dir));
	assert_int_equal(pthread_create(&thread, NULL, tell_many, a), 0);
	tell_many(b);
	pthread_join(thread, NULL);
	perf_gdb_close(a);
	perf_gdb_code(b, code, sizeof code, "last");
	perf_gdb_close(b);
	assert_int_equal(read_dump().loads, 201);
	assert_int_equal(read_dump().closes, 1);
}

static void test_dump_refused(void **state)
{
	struct error err = { 0 };
	char none[96];
	(void)state;

	snprintf(none, sizeof none, "%s/none", dir);
	assert_null(perf_gdb_open(none, false, &err));
	assert_non_null(strstr(err.text, none));
	/* a link is replaced, and what it names left alone; another's file is left alone */
	struct stat st;
	assert_int_equal(symlink(none, file), 0);
	perf_gdb_close(opened(dir, false));
	assert_int_equal(lstat(file, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_not_equal(stat(none, &st), 0);
	if (geteuid() == 0) {
		err = (struct error){ 0 };
		assert_int_equal(chown(file, 12345, (gid_t)-1), 0);
		assert_null(perf_gdb_open(dir, false, &err));
		assert_non_null(strstr(err.text, "belongs to user 12345"));
		assert_int_equal(stat(file, &st), 0);
		assert_int_equal(st.st_uid, 12345);
	}
}

/* A disk that is full: the file ends early, and it is said, in a process of its own, whose files may be no longer. */
static void test_dump_cut(void **state)
{
	const struct rlimit room = { 300, 300 };
	(void)state;

	pid_t pid = fork();
	if (pid == 0) {
		struct error err = { 0 };
		signal(SIGXFSZ, SIG_IGN);
		struct perf_gdb *o = setrlimit(RLIMIT_FSIZE, &room) ? NULL : perf_gdb_open(dir, false, &err);
		bool before = o && perf_gdb_written(o, &err);
		for (int i = 0; o && i < 10; i++)
			perf_gdb_code(o, code, sizeof code, "a.kernel");
		bool after = o && perf_gdb_written(o, &err);
		_exit(before && !after && strstr(err.text, "jit-") && strstr(err.text, "could not be written whole")
		              ? 0
		              : 1);
	}
	int status;
	char path[200];
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	snprintf(path, sizeof path, "%s/jit-%ld.dump", dir, (long)pid);
	assert_int_equal(unlink(path), 0);
}

/* ---- gdb */

static void check_symbol_file(const struct jit_code_entry *e, const void *at, size_t n, const char *name)
{
	const Elf64_Ehdr *h = (const void *)e->symfile_addr;
	const Elf64_Shdr *s = (const void *)(e->symfile_addr + h->e_shoff), *text = NULL, *symbols = NULL;
	const char *names = e->symfile_addr + s[h->e_shstrndx].sh_offset;

	assert_memory_equal(h->e_ident, ELFMAG, SELFMAG);
	assert_int_equal(h->e_machine, EM_X86_64);
	assert_true(h->e_shoff + h->e_shnum * sizeof *s <= e->symfile_size);
	for (int i = 0; i < h->e_shnum; i++) {
		assert_true(s[i].sh_type == SHT_NOBITS || s[i].sh_offset + s[i].sh_size <= e->symfile_size);
		if (strcmp(names + s[i].sh_name, ".text") == 0)
			text = &s[i];
		if (s[i].sh_type == SHT_SYMTAB)
			symbols = &s[i];
	}
	assert_true(text && symbols);
	assert_true(text->sh_addr == (uintptr_t)at && text->sh_size == n);
	const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(e->symfile_addr + symbols->sh_offset) + 1;
	assert_int_equal(symbols->sh_size, 2 * sizeof *symbol);
	assert_true(symbol->st_value == (uintptr_t)at && symbol->st_size == n && &s[symbol->st_shndx] == text);
	assert_int_equal(ELF64_ST_TYPE(symbol->st_info), STT_FUNC);
	assert_string_equal(e->symfile_addr + s[symbols->sh_link].sh_offset + symbol->st_name, name);
}

static void test_gdb(void **state)
{
	struct perf_gdb *a = opened(NULL, true), *b = opened(NULL, true);
	const struct jit_descriptor *d = &__jit_debug_descriptor;
	(void)state;

	assert_int_equal(d->version, 1);
	perf_gdb_code(a, code, sizeof code, "one");
	perf_gdb_code(b, code + 1, 3, "two.of.b");
	perf_gdb_code(a, code + 2, 4, "three");
	check_symbol_file(d->first_entry, code + 2, 4, "three");
	check_symbol_file(d->first_entry->next_entry, code + 1, 3, "two.of.b");
	check_symbol_file(d->first_entry->next_entry->next_entry, code, sizeof code, "one");
	assert_null(d->first_entry->next_entry->next_entry->next_entry);
	assert_null(d->first_entry->prev_entry);
	perf_gdb_close(a);
	check_symbol_file(d->first_entry, code + 1, 3, "two.of.b");
	assert_true(!d->first_entry->next_entry && !d->first_entry->prev_entry);
	perf_gdb_close(b);
	assert_null(d->first_entry);
}

/* ---- a model's kernels */

static void test_model(void **state)
{
	char path[1024];
	jit_error err = { 0 };
	const int32_t ids[] = { 0, 300, 400, 500, 600 };
	jit_session_stats stats = JIT_SESSION_STATS();
	(void)state;

	jit_model *m = jit_model_open(source_path(path, "models/tale-q8_0.gguf"),
	                              &JIT_MODEL_OPTIONS(.cache_dir = "", .jitdump = dir, .gdb = 1), &err);
	assert_non_null(m);
	jit_session *s = jit_session_open(
		m, &JIT_SESSION_OPTIONS(.context = 64, .threads = 1, .speculate = JIT_SPECULATE_OFF), &err);
	assert_non_null(s);
	assert_int_equal(jit_session_feed(s, ids, 5, &err), JIT_OK);
	free(jit_session_report(s, 0, &err)); /* waits for what is made in the background */
	jit_session_get_stats(s, &stats, NULL);
	uint64_t listed = 0;
	for (const struct jit_code_entry *e = __jit_debug_descriptor.first_entry; e; e = e->next_entry)
		listed++;
	assert_int_equal(listed, stats.kernels);
	jit_session_close(s);
	jit_model_close(m);
	assert_null(__jit_debug_descriptor.first_entry);
	struct read_back r = read_dump();
	assert_int_equal(r.loads, stats.kernels);
	assert_int_equal(r.bytes, stats.code_bytes);
	assert_non_null(strstr(r.names, "matmul.q8_0.aq8_0."));
	assert_null(jit_model_open(path, &JIT_MODEL_OPTIONS(.jitdump = "/none/at/all"), &err));
	assert_int_equal(err.code, JIT_ERROR_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_dump, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_dump_by_many, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_dump_refused, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_dump_cut, make_dir, remove_dir),
		cmocka_unit_test(test_gdb),
		cmocka_unit_test_setup_teardown(test_model, make_dir, remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
