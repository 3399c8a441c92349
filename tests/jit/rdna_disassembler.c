/* tests/jit/rdna_disassembler.c - see rdna_disassembler.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/encoders/rdna_assembler.h"
#include "tests/jit/rdna_disassembler.h"

static size_t find_slot(const struct rdna_words *w, const char *hex)
{
	uint64_t h = 0xcbf29ce484222325;

	for (const char *p = hex; *p; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3;
	size_t at = (h ^ h >> 32) & (w->slots - 1);
	while (w->slot[at] && strcmp(w->word[w->slot[at] - 1].hex, hex) != 0)
		at = (at + 1) & (w->slots - 1);
	return at;
}

static void make_room(struct rdna_words *w)
{
	if (w->n < w->capacity)
		return;
	w->capacity = 2 * w->capacity + 1024;
	w->slots = 4096;
	while (w->slots < 2 * w->capacity)
		w->slots *= 2;
	w->word = realloc(w->word, w->capacity * sizeof *w->word);
	free(w->slot);
	w->slot = calloc(w->slots, sizeof *w->slot);
	assert_non_null(w->word);
	assert_non_null(w->slot);
	for (size_t i = 0; i < w->n; i++)
		w->slot[find_slot(w, w->word[i].hex)] = (uint32_t)i + 1;
}

static void add(struct rdna_words *w, const char *text, const char *hex)
{
	make_room(w);
	size_t at = find_slot(w, hex);

	w->met++;
	if (w->slot[at])
		return;
	w->word[w->n++] = (struct rdna_word){ strdup(text), strdup(hex) };
	w->slot[at] = (uint32_t)w->n;
}

void rdna_words_clear(struct rdna_words *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->word[i].text);
		free(w->word[i].hex);
	}
	free(w->word);
	free(w->slot);
	*w = (struct rdna_words){ 0 };
}

const char *rdna_disassembler(void)
{
	static char tool[64];
	const char *assembler = rdna_assembler(),
		   *version = assembler ? strchr(assembler + strlen("llvm-"), '-') : NULL;
	char command[128];

	snprintf(tool, sizeof tool, "llvm-objdump%s", version ? version : "");
	snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", tool);
	if (!assembler || system(command) != 0) {
		printf("# skipped: there is no llvm-mc with its llvm-objdump of version 19 or later\n");
		skip();
	}
	return tool;
}

/* "\tWORDS  // ADDRESS: BF89FC07 ..." */
static void read_line(struct rdna_words *w, char *line, const char *files)
{
	char *comment = strstr(line, "// "), *bytes = comment ? strchr(comment, ':') : NULL, hex[128], *out = hex;
	uint32_t word;
	int n;

	if (line[0] != '\t')
		return;
	if (!bytes || strstr(line, ".long") || strstr(line, "unknown"))
		fail_msg("%s: this is no instruction to the disassembler: %s", files, line);
	for (bytes++; sscanf(bytes, " %8x%n", &word, &n) == 1 && out < hex + 64; bytes += n)
		for (unsigned k = 0; k < 4; k++)
			out += sprintf(out, "%02x", word >> 8 * k & 0xff);
	*comment = 0;
	for (size_t end = strlen(line); end && (line[end - 1] == ' ' || line[end - 1] == '\t'); end--)
		line[end - 1] = 0;
	add(w, line + 1, hex);
}

void rdna_disassemble(struct rdna_words *w, const char *tool, const char *files)
{
	size_t size = strlen(files) + 80;
	char *command = malloc(size), line[1024];

	assert_non_null(command);
	snprintf(command, size, "%s -d %s", tool, files);
	FILE *f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		read_line(w, line, files);
	}
	assert_int_equal(pclose(f), 0);
	free(command);
}

void rdna_assemble_back(const struct rdna_words *w, const char *target)
{
	struct rdna_sheet sheet = { 0 };
	char why[128];

	for (size_t i = 0; i < w->n; i++)
		rdna_sheet_add(&sheet, w->word[i].text);
	if (!rdna_sheet_assemble(&sheet, rdna_assembler(), target, why, sizeof why))
		fail_msg("%s", why);
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(sheet.hex[i], w->word[i].hex) != 0)
			fail_msg("%s: \"%s\" stands for %s and assembles to %s", target, w->word[i].text,
			         w->word[i].hex, sheet.hex[i]);
	rdna_sheet_clear(&sheet);
}
