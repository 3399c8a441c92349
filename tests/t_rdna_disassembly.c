/* tests/t_rdna_disassembly.c - what another disassembler reads in our code objects: every instruction is one it knows, and its words for it, assembled,
 * are the same bytes. Programs of models whose sizes are real and small, of every mixture of weights, on a card of each generation. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/synth.h"
#include "runtime/jitrun.h"
#include "tests/rdna_assembler.h"
#include "tests/shared.h"

struct line { char *text, *hex; };
struct lines { struct line *line; size_t n, capacity; };

static void add_line(struct lines *l, const char *text, const char *hex)
{
	if (l->n == l->capacity) {
		l->capacity = 2 * l->capacity + 1024;
		l->line = realloc(l->line, l->capacity * sizeof *l->line);
		assert_non_null(l->line);
	}
	l->line[l->n++] = (struct line){ strdup(text), strdup(hex) };
}

static int by_bytes(const void *a, const void *b) { return strcmp(((const struct line *)a)->hex, ((const struct line *)b)->hex); }

/* Equal bytes are read as equal words. */
static void drop_repeated(struct lines *l)
{
	size_t n = 0;

	qsort(l->line, l->n, sizeof *l->line, by_bytes);
	for (size_t i = 0; i < l->n; i++) {
		if (n && strcmp(l->line[n - 1].hex, l->line[i].hex) == 0) {
			free(l->line[i].text);
			free(l->line[i].hex);
			continue;
		}
		l->line[n++] = l->line[i];
	}
	l->n = n;
}

static void free_lines(struct lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->line[i].text);
		free(l->line[i].hex);
	}
	free(l->line);
}

/* "\tWORDS  // ADDRESS: BF89FC07 ..." */
static void read_line(struct lines *l, char *line, const char *file)
{
	char *comment = strstr(line, "// "), *bytes = comment ? strchr(comment, ':') : NULL, hex[128], *out = hex;
	uint32_t word;
	int n;

	if (line[0] != '\t')
		return;
	if (!bytes || strstr(line, ".long") || strstr(line, "unknown"))
		fail_msg("%s has what is no instruction to the disassembler: %s", file, line);
	for (bytes++; sscanf(bytes, " %8x%n", &word, &n) == 1 && out < hex + 64; bytes += n)
		for (unsigned k = 0; k < 4; k++)
			out += sprintf(out, "%02x", word >> 8 * k & 0xff);
	*comment = 0;
	for (size_t end = strlen(line); end && (line[end - 1] == ' ' || line[end - 1] == '\t'); end--)
		line[end - 1] = 0;
	add_line(l, line + 1, hex);
}

static void disassemble(struct lines *l, const char *tool, const char *path)
{
	char command[1200], line[1024];
	size_t before = l->n;

	snprintf(command, sizeof command, "%s -d '%s'", tool, path);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		read_line(l, line, path);
	}
	assert_int_equal(pclose(f), 0);
	assert_true(l->n > before + 100);
}

/* ---- code objects */

/* Programs hold the functions of all kernels, beside the driver. */
static void disassemble_programs(struct lines *l, const char *tool, const char *dir)
{
	char path[600];
	unsigned n = 0;
	DIR *d = opendir(dir);

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		if (strncmp(e->d_name, "pass-", 5) == 0) {
			disassemble(l, tool, path);
			n++;
		}
		if (e->d_name[0] != '.')
			unlink(path);
	}
	closedir(d);
	assert_int_equal(n, 4);
	drop_repeated(l);
}

static void add_model(struct lines *l, const char *tool, const char *target, const char *shape, const char *mixture)
{
	char dir[] = "/tmp/t_rdna_disassembly.XXXXXX", model[64];
	struct error err = { 0 };
	jit_error e = { 0 };
	size_t n;

	assert_non_null(mkdtemp(dir));
	snprintf(model, sizeof model, "%s.gguf", dir);
	uint8_t *bytes = synth_header(&n, shape_find(shape), mixture_find(mixture), &err);
	FILE *f = fopen(model, "wb");
	assert_non_null(bytes);
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	free(bytes);
	if (jit_write_objects(model, &(jit_objects_options){ .target = target, .dir = dir }, NULL, &e) != JIT_OK)
		fail_msg("%s", e.message);
	disassemble_programs(l, tool, dir);
	unlink(model);
	rmdir(dir);
}

/* ---- and back */

static void assemble(const struct lines *l, const char *assembler, const char *target)
{
	struct rdna_sheet sheet = { 0 };
	char why[128];

	for (size_t i = 0; i < l->n; i++)
		rdna_sheet_add(&sheet, l->line[i].text);
	if (!rdna_sheet_assemble(&sheet, assembler, target, why, sizeof why))
		fail_msg("%s", why);
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(sheet.hex[i], l->line[i].hex) != 0)
			fail_msg("%s: \"%s\" stands for %s and assembles to %s", target, l->line[i].text, l->line[i].hex, sheet.hex[i]);
	rdna_sheet_clear(&sheet);
}

static const struct { const char *shape, *mixture; } models[] = {
	{ "qwen3-0.6b", "bf16" }, { "mistral-7b", "q8_0" }, { "llama-3.2-1b", "q4_k_m" }, { "tiny", "f32" }, { "tiny", "f16" }, { "tiny", "q4_0" }, { "tiny", "q4_1" }, { "tiny", "q5_0" },
	{ "tiny", "q5_1" }, { "tiny", "q2_k" }, { "tiny", "q3_k" }, { "tiny", "q5_k_m" }, { "tiny", "iq4_nl" }, { "tiny", "iq4_xs" },
};
enum { MODELS = sizeof models / sizeof *models, QUICK = 3 };

static void check_target(const char *target)
{
	const char *assembler = rdna_assembler(), *version = assembler ? strchr(assembler + strlen("llvm-"), '-') : NULL;
	char tool[64], command[128];
	struct lines l = { 0 };

	snprintf(tool, sizeof tool, "llvm-objdump%s", version ? version : "");
	snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", tool);
	if (!assembler || system(command) != 0) {
		printf("# skipped: there is no llvm-mc with its llvm-objdump of version 19 or later\n");
		skip();
	}
	for (int i = 0; i < (test_quick() ? QUICK : MODELS); i++)
		add_model(&l, tool, target, models[i].shape, models[i].mixture);
	printf("# %s: %zu different instructions\n", target, l.n);
	assemble(&l, assembler, target);
	free_lines(&l);
}

static void test_gfx10(void **state) { (void)state; check_target("gfx1030"); }
static void test_gfx11(void **state) { (void)state; check_target("gfx1101"); }
static void test_gfx115(void **state) { (void)state; check_target("gfx1151"); }
static void test_gfx12(void **state) { (void)state; check_target("gfx1201"); }

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_gfx10), cmocka_unit_test(test_gfx11), cmocka_unit_test(test_gfx115), cmocka_unit_test(test_gfx12) };
	return cmocka_run_group_tests_name("rdna_disassembly", tests, NULL, NULL);
}
