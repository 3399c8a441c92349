/* tests/programs/t_hardening.c - the built programs and the library are hardened as configure found possible: read off
 * the files themselves. And what is read tells: files changed in one place are judged otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/shared.h"

/* What an ELF file says of itself. */
struct facts {
	bool relro, now, pie, stack_executable, stack_said, text_relocations, writable_code, protector, fortified,
		probes, branches, returns, parser, loader;
};

/* Files are the build's own: what lies outside of them fails the test. */
static const void *at(const uint8_t *file, size_t n, uint64_t offset, uint64_t bytes)
{
	assert_true(offset <= n && bytes <= n - offset);
	return file + offset;
}

static void read_dynamic(struct facts *f, const Elf64_Dyn *d, size_t n)
{
	for (size_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
		uint64_t v = d[i].d_un.d_val;
		f->now |= d[i].d_tag == DT_BIND_NOW || (d[i].d_tag == DT_FLAGS && v & DF_BIND_NOW) ||
		          (d[i].d_tag == DT_FLAGS_1 && v & DF_1_NOW);
		f->pie |= d[i].d_tag == DT_FLAGS_1 && v & DF_1_PIE;
		f->text_relocations |= d[i].d_tag == DT_TEXTREL || (d[i].d_tag == DT_FLAGS && v & DF_TEXTREL);
	}
}

#ifndef PT_GNU_PROPERTY
#define PT_GNU_PROPERTY 0x6474e553
#endif
enum { PROPERTY_NOTE = 5, PROPERTY_X86_FEATURES = (int)0xc0000002, FEATURE_IBT = 1, FEATURE_SHSTK = 2 };

/* Feature words of x86 in a note of GNU properties: pairs of type and size, each filled up to 8 bytes. */
static void read_properties(struct facts *f, const uint8_t *p, size_t n)
{
	const Elf64_Nhdr *h = (const void *)p;

	if (n < sizeof *h + 4 || h->n_namesz != 4 || memcmp(p + sizeof *h, "GNU", 4) != 0 ||
	    h->n_type != PROPERTY_NOTE || h->n_descsz > n - sizeof *h - 4)
		return;
	p += sizeof *h + 4;
	for (size_t i = 0; i + 8 <= h->n_descsz;) {
		uint32_t type, size, value = 0;
		memcpy(&type, p + i, 4);
		memcpy(&size, p + i + 4, 4);
		if (size >= 4 && i + 12 <= h->n_descsz)
			memcpy(&value, p + i + 8, 4);
		f->branches |= type == (uint32_t)PROPERTY_X86_FEATURES && value & FEATURE_IBT;
		f->returns |= type == (uint32_t)PROPERTY_X86_FEATURES && value & FEATURE_SHSTK;
		i += 8 + (size + 7) / 8 * 8;
	}
}

/* A function with a large frame touches each page of it on the way: an or, or a store, of 0 to where the stack ends. */
static bool has_probe(const uint8_t *p, size_t n)
{
	static const uint8_t gcc[] = { 0x48, 0x83, 0x0c, 0x24, 0 }, clang[] = { 0x48, 0xc7, 0x04, 0x24, 0, 0, 0, 0 };
	return memmem(p, n, gcc, sizeof gcc) || memmem(p, n, clang, sizeof clang);
}

static void read_segments(struct facts *f, const uint8_t *file, size_t n)
{
	const Elf64_Ehdr *e = at(file, n, 0, sizeof *e);
	const Elf64_Phdr *p = at(file, n, e->e_phoff, (uint64_t)e->e_phnum * sizeof *p);

	assert_memory_equal(e->e_ident, ELFMAG, SELFMAG);
	assert_int_equal(e->e_ident[EI_CLASS], ELFCLASS64);
	assert_int_equal(e->e_phentsize, sizeof *p);
	for (unsigned i = 0; i < e->e_phnum; i++) {
		const uint8_t *bytes = at(file, n, p[i].p_offset, p[i].p_filesz);
		f->relro |= p[i].p_type == PT_GNU_RELRO;
		f->loader |= p[i].p_type == PT_INTERP;
		f->stack_said |= p[i].p_type == PT_GNU_STACK;
		f->stack_executable |= p[i].p_type == PT_GNU_STACK && p[i].p_flags & PF_X;
		f->writable_code |= p[i].p_type == PT_LOAD && (p[i].p_flags & (PF_W | PF_X)) == (PF_W | PF_X);
		f->probes |= p[i].p_type == PT_LOAD && p[i].p_flags & PF_X && has_probe(bytes, p[i].p_filesz);
		if (p[i].p_type == PT_DYNAMIC)
			read_dynamic(f, (const void *)bytes, p[i].p_filesz / sizeof(Elf64_Dyn));
		if (p[i].p_type == PT_GNU_PROPERTY)
			read_properties(f, bytes, p[i].p_filesz);
	}
}

static bool ends_with(const char *s, const char *end)
{
	return strlen(s) >= strlen(end) && strcmp(s + strlen(s) - strlen(end), end) == 0;
}

/* What it has others do. */
static void read_symbols(struct facts *f, const uint8_t *file, size_t n)
{
	const Elf64_Ehdr *e = at(file, n, 0, sizeof *e);
	const Elf64_Shdr *s = at(file, n, e->e_shoff, (uint64_t)e->e_shnum * sizeof *s);

	for (unsigned i = 0; i < e->e_shnum; i++) {
		if (s[i].sh_type != SHT_DYNSYM)
			continue;
		const Elf64_Sym *symbol = at(file, n, s[i].sh_offset, s[i].sh_size);
		assert_true(s[i].sh_link < e->e_shnum);
		const Elf64_Shdr *strings = &s[s[i].sh_link];
		const char *text = at(file, n, strings->sh_offset, strings->sh_size);
		for (size_t j = 0; j < s[i].sh_size / sizeof *symbol; j++) {
			assert_true(symbol[j].st_name < strings->sh_size);
			const char *name = text + symbol[j].st_name;
			f->protector |= symbol[j].st_shndx == SHN_UNDEF && strcmp(name, "__stack_chk_fail") == 0;
			/* jansson's, which writes beyond a block when there is no memory for the end of a string */
			f->parser |= symbol[j].st_shndx == SHN_UNDEF && strncmp(name, "json_load", 9) == 0;
			f->fortified |= symbol[j].st_shndx == SHN_UNDEF && ends_with(name, "_chk");
		}
	}
}

static struct facts facts_of(const uint8_t *file, size_t n)
{
	struct facts f = { 0 };

	read_segments(&f, file, n);
	read_symbols(&f, file, n);
	return f;
}

/* ---- what configure promised */

static bool promised(const char *name)
{
	char all[256], word[32];

	snprintf(all, sizeof all, " %s ", HARDENING);
	snprintf(word, sizeof word, " %s ", name);
	return strstr(all, word) != NULL;
}

/* NULL, or what is missing. What a static program calls in the C library has no names. Programs that share a library
 * may be too small for a function that probes. Kernels do not begin with endbr64, so no file that calls them may say
 * that all it calls by address does (configure.ac). */
static const char *missing(const struct facts *f, bool program)
{
	const bool is_static = program && !f->loader;
	const struct {
		const char *name;
		bool ok;
	} list[] = { { "relro", f->relro },
		     { "now", f->now },
		     { "noexecstack", f->stack_said && !f->stack_executable },
		     { "pie", f->pie || !program },
		     { "protector", f->protector || is_static },
		     { "clash", f->probes || (program && PROGRAMS_SHARE) },
		     { "fortify", f->fortified || is_static },
		     { "shadow", !f->branches } };

	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (promised(list[i].name) && !list[i].ok)
			return list[i].name;
	return f->text_relocations ? "code without relocations"
	       : f->writable_code  ? "code that nobody writes"
	       : f->parser         ? "a reader of JSON that bears short memory"
	                           : NULL;
}

/* The next file of a list, as seen from the build's directory; false: no more. */
static bool next_file(char path[256], const char **list)
{
	*list += strspn(*list, " ");
	size_t n = strcspn(*list, " ");

	snprintf(path, 256, "%.*s", (int)n, *list);
	*list += n;
	return n != 0;
}

static bool is_program(const char *path) { return strstr(path, ".so") == NULL; }

static void test_files(void **state)
{
	const char *list = HARDENED_FILES;
	char path[256];
	size_t n;
	(void)state;

	while (next_file(path, &list)) {
		if (!is_program(path) && access(path, R_OK) != 0) {
			printf("# skipped: %s was not built\n", path);
			continue;
		}
		uint8_t *file = file_bytes(path, &n);
		const struct facts f = facts_of(file, n);
		const char *what = missing(&f, is_program(path));
		if (what)
			fail_msg("%s lacks %s", path, what);
		free(file);
	}
}

/* Shadow stacks are said of each object; whether of what is linked of them, the C library's start files decide. */
static void test_objects(void **state)
{
	const char *list = HARDENED_OBJECTS;
	char path[256];
	size_t n;
	(void)state;

	if (!promised("shadow"))
		skip();
	while (next_file(path, &list)) {
		struct facts f = { 0 };
		uint8_t *file = file_bytes(path, &n);
		const Elf64_Ehdr *e = at(file, n, 0, sizeof *e);
		const Elf64_Shdr *s = at(file, n, e->e_shoff, (uint64_t)e->e_shnum * sizeof *s);
		for (unsigned i = 0; i < e->e_shnum; i++)
			if (s[i].sh_type == SHT_NOTE)
				read_properties(&f, at(file, n, s[i].sh_offset, s[i].sh_size), s[i].sh_size);
		if (!f.returns || f.branches)
			fail_msg("%s: shadow stacks %d, marked branch targets %d", path, f.returns, f.branches);
		free(file);
	}
}

/* Compilers and C libraries that have all of it. Otherwise a mistake in configure would be seen by nobody. */
static void test_promises(void **state)
{
	static const char *const usual[] = { "relro",     "now",   "noexecstack", "pie",
		                             "protector", "clash", "shadow",      "fortify" };
	bool optimised = false, known = false;
	(void)state;

#ifdef __OPTIMIZE__
	optimised = true;
#endif
#if defined __GLIBC__ && (__GNUC__ >= 8 || __clang_major__ >= 12)
	known = true;
#endif
	if (!known || !*HARDENING || promised("own"))
		skip();
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (!promised(usual[i]) && (strcmp(usual[i], "fortify") != 0 || (optimised && !promised("sanitized"))))
			fail_msg("configure found no way to %s", usual[i]);
}

/* ---- a program that is changed */

enum change {
	WITHOUT_RELRO,
	EXECUTABLE_STACK,
	NO_STACK_SAID,
	WRITABLE_CODE,
	LATE_BINDING,
	NO_PIE,
	WITH_TEXT_RELOCATIONS,
	CHANGES
};

static void change_dynamic(Elf64_Dyn *d, size_t n, enum change what)
{
	for (size_t i = 0; i < n && d[i].d_tag != DT_NULL; i++) {
		uint64_t *v = &d[i].d_un.d_val;
		if (what == LATE_BINDING && d[i].d_tag == DT_BIND_NOW)
			d[i].d_tag = DT_DEBUG;
		if (what == LATE_BINDING && d[i].d_tag == DT_FLAGS)
			*v &= ~(uint64_t)DF_BIND_NOW;
		if (d[i].d_tag == DT_FLAGS_1)
			*v &= ~(uint64_t)(what == LATE_BINDING ? DF_1_NOW : what == NO_PIE ? DF_1_PIE : 0);
		if (what == WITH_TEXT_RELOCATIONS && d[i].d_tag == DT_DEBUG)
			d[i].d_tag = DT_TEXTREL;
	}
}

static void change(uint8_t *file, enum change what)
{
	const Elf64_Ehdr *e = (void *)file;
	Elf64_Phdr *p = (void *)(file + e->e_phoff);

	for (unsigned i = 0; i < e->e_phnum; i++) {
		if ((what == WITHOUT_RELRO && p[i].p_type == PT_GNU_RELRO) ||
		    (what == NO_STACK_SAID && p[i].p_type == PT_GNU_STACK))
			p[i].p_type = PT_NULL;
		if (what == EXECUTABLE_STACK && p[i].p_type == PT_GNU_STACK)
			p[i].p_flags |= PF_X;
		if (what == WRITABLE_CODE && p[i].p_type == PT_LOAD && p[i].p_flags & PF_X)
			p[i].p_flags |= PF_W;
		if (p[i].p_type == PT_DYNAMIC)
			change_dynamic((void *)(file + p[i].p_offset), p[i].p_filesz / sizeof(Elf64_Dyn), what);
	}
}

static void test_changes(void **state)
{
	static const char *const expected[CHANGES] = {
		"relro",
		"noexecstack",
		"noexecstack",
		"code that nobody writes",
		"now",
		"pie",
		"code without relocations"
	};
	const char *list = HARDENED_FILES;
	char path[256];
	size_t n;
	(void)state;

	assert_true(next_file(path, &list) && is_program(path));
	for (int what = 0; what < CHANGES; what++) {
		uint8_t *file = file_bytes(path, &n);
		change(file, (enum change)what);
		const struct facts f = facts_of(file, n);
		const char *found = missing(&f, true);
		if (promised(expected[what]) || what == WRITABLE_CODE || what == WITH_TEXT_RELOCATIONS)
			assert_string_equal(found, expected[what]);
		free(file);
	}
}

/* The note by itself: not every C library's start files have one, without which a linker leaves it out. */
static void test_properties(void **state)
{
	uint8_t note[32] = { 4, 0, 0, 0,    16, 0, 0, 0, PROPERTY_NOTE, 0, 0, 0, 'G', 'N', 'U', 0,
		             2, 0, 0, 0xc0, 4,  0, 0, 0 };
	(void)state;

	for (unsigned bits = 0; bits < 4; bits++) {
		struct facts f = { 0 };
		note[24] = (uint8_t)bits;
		read_properties(&f, note, sizeof note);
		assert_true(f.branches == (bits & 1) && f.returns == bits >> 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_promises), cmocka_unit_test(test_files),
		                            cmocka_unit_test(test_objects), cmocka_unit_test(test_changes),
		                            cmocka_unit_test(test_properties) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
