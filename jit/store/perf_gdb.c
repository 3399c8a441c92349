/* jit/store/perf_gdb.c - the jitdump file and gdb's list.
 *
 * The formats are those of Linux (tools/perf/Documentation/jitdump-specification.txt) and of gdb's manual ("JIT
 * Compilation Interface"). The names of the interface are gdb's to choose: it looks for them in every program.
 */
#include "jit/store/perf_gdb.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "jit/store/safefile.h"

struct listed {
	struct listed *next;
	void *entry;
};
struct perf_gdb {
	bool jitdump, gdb;
	struct listed *listed;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- jitdump: one file for the process, as its name says */

enum { DUMP_MAGIC = 0x4a695444, DUMP_VERSION = 1, DUMP_CODE_LOAD = 0, DUMP_CODE_CLOSE = 3 };
struct dump_head {
	uint32_t magic, version, bytes, machine, pad, pid;
	uint64_t time, flags;
};
struct dump_record {
	uint32_t kind, bytes;
	uint64_t time;
};
struct dump_load {
	struct dump_record record;
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};
_Static_assert(sizeof(struct dump_head) == 40 && sizeof(struct dump_load) == 56, "as the format has them");

static struct {
	int fd, failed;
	unsigned users;
	uint64_t index;
	void *marker;
	char dir[4096];
} dump = { .fd = -1 };

/* perf's clock when told to record with -k mono. */
static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool dump_create(const char *dir, struct error *err)
{
	const struct dump_head head = { DUMP_MAGIC, DUMP_VERSION,       sizeof head, EM_X86_64,
		                        0,          (uint32_t)getpid(), now(),       0 };
	char path[4200];

	snprintf(path, sizeof path, "%.4000s/jit-%ld.dump", dir, (long)getpid());
	/* another's file of this name is left alone, in whatever directory; one's own, of a process that had this
	 * number before, goes, but nothing behind a link */
	struct stat st;
	if (lstat(path, &st) == 0 && st.st_uid != geteuid())
		return error_set(err, ERROR_ARGUMENT,
		                 "%s: cannot be made: a file of this name is there and belongs to user %lu", path,
		                 (unsigned long)st.st_uid);
	unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(err, ERROR_IO, "%s: cannot be made: %s", path, strerror(errno));
	bool ok = (safefile_may_grow_by(fd, sizeof head) && write(fd, &head, sizeof head) == (ssize_t)sizeof head) ||
	          error_set(err, ERROR_IO, "%s: could not be written: %s", path, strerror(errno));
	/* perf finds the file by this mapping: that it could run is what makes the kernel tell of it */
	void *marker = ok ? mmap(NULL, sizeof head, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	if (ok && marker == MAP_FAILED)
		ok = error_set(err, ERROR_IO, "%s: cannot be mapped to run, which is how perf finds it: %s", path,
		               strerror(errno));
	if (!ok) {
		close(fd);
		return false;
	}
	dump.fd = fd;
	dump.failed = 0;
	dump.index = 0;
	dump.marker = marker;
	snprintf(dump.dir, sizeof dump.dir, "%s", dir);
	return true;
}

static bool dump_open(const char *dir, struct error *err)
{
	bool ok = true;

	pthread_mutex_lock(&lock);
	if (dump.users && strcmp(dump.dir, dir) != 0)
		ok = error_set(err, ERROR_ARGUMENT, "%s: this process writes its jitdump to %s already", dir, dump.dir);
	else if (!dump.users)
		ok = dump_create(dir, err);
	dump.users += ok;
	pthread_mutex_unlock(&lock);
	return ok;
}

static void dump_close(void)
{
	const struct dump_record end = { DUMP_CODE_CLOSE, sizeof end, now() };

	pthread_mutex_lock(&lock);
	if (--dump.users == 0) {
		ssize_t done = safefile_may_grow_by(dump.fd, sizeof end) ? write(dump.fd, &end, sizeof end) : -1;
		(void)done;
		munmap(dump.marker, sizeof(struct dump_head));
		close(dump.fd);
		dump.fd = -1;
	}
	pthread_mutex_unlock(&lock);
}

/* One write, so that a full disk cuts the file nowhere but at its end. What failed first is kept. */
static void dump_code(const void *code, size_t n, const char *name)
{
	struct dump_load load = { .record = { DUMP_CODE_LOAD, (uint32_t)(sizeof load + strlen(name) + 1 + n), now() },
		                  .pid = (uint32_t)getpid(),
		                  .tid = (uint32_t)syscall(SYS_gettid),
		                  .vma = (uintptr_t)code,
		                  .address = (uintptr_t)code,
		                  .size = n };
	struct iovec part[3] = {
		{ &load, sizeof load }, { (void *)(uintptr_t)name, strlen(name) + 1 }, { (void *)(uintptr_t)code, n }
	};

	pthread_mutex_lock(&lock);
	load.index = dump.index++;
	ssize_t done = safefile_may_grow_by(dump.fd, load.record.bytes) ? writev(dump.fd, part, 3) : -1;
	if (done != (ssize_t)load.record.bytes && !dump.failed)
		dump.failed = done < 0 ? errno : ENOSPC;
	pthread_mutex_unlock(&lock);
}

/* ---- gdb: a list of symbol files, and a function where it has a breakpoint */

enum { JIT_NOACTION, JIT_REGISTER_FN, JIT_UNREGISTER_FN };
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
extern void __jit_debug_register_code(void);
struct jit_descriptor __jit_debug_descriptor = { 1, JIT_NOACTION, NULL, NULL };
__attribute__((noinline)) void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }

/* A program of one section that is elsewhere in memory, and one function in it. */
enum { SECTION_NONE, SECTION_TEXT, SECTION_SYMBOLS, SECTION_STRINGS, SECTIONS };
static const char section_names[] = "\0.text\0.symtab\0.strtab";
enum { NAME_TEXT = 1, NAME_SYMBOLS = 7, NAME_STRINGS = 15, NAME_FUNCTION = sizeof section_names };
struct symbol_file {
	Elf64_Ehdr head;
	Elf64_Shdr section[SECTIONS];
	Elf64_Sym symbol[2];
	char strings[];
};

static void fill_symbol_file(struct symbol_file *f, const void *code, size_t n, const char *name)
{
	size_t strings = NAME_FUNCTION + strlen(name) + 1;
	Elf64_Addr at = (uintptr_t)code;

	memcpy(f->head.e_ident,
	       (unsigned char[EI_NIDENT]){ ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
	       EI_NIDENT);
	f->head.e_type = ET_EXEC;
	f->head.e_machine = EM_X86_64;
	f->head.e_version = EV_CURRENT;
	f->head.e_ehsize = sizeof f->head;
	f->head.e_shentsize = sizeof *f->section;
	f->head.e_shoff = offsetof(struct symbol_file, section);
	f->head.e_shnum = SECTIONS;
	f->head.e_shstrndx = SECTION_STRINGS;
	f->section[SECTION_TEXT] =
		(Elf64_Shdr){ .sh_name = NAME_TEXT,
		              .sh_type = SHT_NOBITS,
		              .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		              .sh_addr = at,
		              .sh_size = n,
		              .sh_addralign = 16 };
	f->section[SECTION_SYMBOLS] = (Elf64_Shdr){
		.sh_name = NAME_SYMBOLS,
		.sh_type = SHT_SYMTAB,
		.sh_offset = offsetof(struct symbol_file, symbol),
		.sh_size = sizeof f->symbol,
		.sh_link = SECTION_STRINGS,
		.sh_info = 1,
		.sh_addralign = 8,
		.sh_entsize = sizeof *f->symbol
	};
	f->section[SECTION_STRINGS] =
		(Elf64_Shdr){ .sh_name = NAME_STRINGS,
		              .sh_type = SHT_STRTAB,
		              .sh_offset = offsetof(struct symbol_file, strings),
		              .sh_size = strings,
		              .sh_addralign = 1 };
	f->symbol[1] = (Elf64_Sym){ .st_name = NAME_FUNCTION,
		                    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
		                    .st_shndx = SECTION_TEXT,
		                    .st_value = at,
		                    .st_size = n };
	memcpy(f->strings, section_names, sizeof section_names);
	memcpy(f->strings + NAME_FUNCTION, name, strlen(name) + 1);
}

static void tell_gdb(uint32_t action, struct jit_code_entry *e)
{
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_descriptor.relevant_entry = e;
	__jit_debug_register_code();
	__jit_debug_descriptor.action_flag = JIT_NOACTION;
	__jit_debug_descriptor.relevant_entry = NULL;
}

static void list_code(struct perf_gdb *o, const void *code, size_t n, const char *name)
{
	size_t bytes = sizeof(struct symbol_file) + NAME_FUNCTION + strlen(name) + 1;
	struct listed *l = malloc(sizeof *l);
	struct jit_code_entry *e = calloc(1, sizeof *e + bytes);

	if (!l || !e) {
		free(l);
		free(e);
		return;
	}
	fill_symbol_file((struct symbol_file *)(void *)(e + 1), code, n, name);
	*e = (struct jit_code_entry){ .symfile_addr = (const char *)(e + 1), .symfile_size = bytes };
	pthread_mutex_lock(&lock);
	e->next_entry = __jit_debug_descriptor.first_entry;
	if (e->next_entry)
		e->next_entry->prev_entry = e;
	__jit_debug_descriptor.first_entry = e;
	*l = (struct listed){ o->listed, e };
	o->listed = l;
	tell_gdb(JIT_REGISTER_FN, e);
	pthread_mutex_unlock(&lock);
}

static void unlist(struct jit_code_entry *e)
{
	if (e->prev_entry)
		e->prev_entry->next_entry = e->next_entry;
	else
		__jit_debug_descriptor.first_entry = e->next_entry;
	if (e->next_entry)
		e->next_entry->prev_entry = e->prev_entry;
	tell_gdb(JIT_UNREGISTER_FN, e);
}

/* ---- both */

struct perf_gdb *perf_gdb_open(const char *jitdump, bool gdb, struct error *err)
{
	struct perf_gdb *o = calloc(1, sizeof *o);

	if (!o) {
		error_set(err, ERROR_MEMORY, "no memory to tell of code");
		return NULL;
	}
	if (jitdump && !dump_open(jitdump, err)) {
		free(o);
		return NULL;
	}
	*o = (struct perf_gdb){ .jitdump = jitdump != NULL, .gdb = gdb };
	return o;
}

void perf_gdb_close(struct perf_gdb *o)
{
	if (!o)
		return;
	if (o->jitdump)
		dump_close();
	pthread_mutex_lock(&lock);
	for (struct listed *l = o->listed, *next; l; l = next) {
		next = l->next;
		unlist(l->entry);
		free(l->entry);
		free(l);
	}
	pthread_mutex_unlock(&lock);
	free(o);
}

bool perf_gdb_written(const struct perf_gdb *o, struct error *err)
{
	pthread_mutex_lock(&lock);
	int failed = o->jitdump ? dump.failed : 0;
	bool ok = !failed || error_set(err, ERROR_IO, "%s/jit-%ld.dump: could not be written whole: %s", dump.dir,
	                               (long)getpid(), strerror(failed));
	pthread_mutex_unlock(&lock);
	return ok;
}

void perf_gdb_code(struct perf_gdb *o, const void *code, size_t n, const char *name)
{
	if (o->jitdump)
		dump_code(code, n, name);
	if (o->gdb)
		list_code(o, code, n, name);
}
