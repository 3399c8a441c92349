/* tests/encoders/rdna_assembler.c - runs llvm-mc over a sheet of lines. Each line that is refused is named on standard
 * error by its number; the others come out in order, so that the two lists together say what became of every line. */
#include "tests/encoders/rdna_assembler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *rdna_assembler(void)
{
	static const char *const names[] = { "llvm-mc-19", "llvm-mc-20", "llvm-mc-21", "llvm-mc-22", "llvm-mc" };
	char command[128];

	for (unsigned i = 0; i < 5; i++) {
		snprintf(command, sizeof command, "echo s_wait_dscnt 0 | %s -arch=amdgcn -mcpu=gfx1200 >/dev/null 2>&1",
		         names[i]);
		if (system(command) == 0)
			return names[i];
	}
	return NULL;
}

void rdna_sheet_add(struct rdna_sheet *s, const char *text)
{
	if (s->n == s->capacity) {
		s->capacity = s->capacity ? 2 * s->capacity : 256;
		s->text = realloc(s->text, s->capacity * sizeof *s->text);
		s->hex = realloc(s->hex, s->capacity * sizeof *s->hex);
	}
	s->text[s->n] = strdup(text);
	s->hex[s->n++] = NULL;
}

void rdna_sheet_clear(struct rdna_sheet *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		free(s->text[i]);
		free(s->hex[i]);
	}
	free(s->text);
	free(s->hex);
	*s = (struct rdna_sheet){ 0 };
}

static void set_hex(struct rdna_sheet *s, unsigned i, const char *hex)
{
	free(s->hex[i]);
	s->hex[i] = strdup(hex);
}

static bool write_lines(const struct rdna_sheet *s, const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return false;
	for (unsigned i = 0; i < s->n; i++)
		fprintf(f, "%s\n", s->text[i]);
	return fclose(f) == 0;
}

/* "path/in.s:LINE:COLUMN: error: ..." */
static bool read_refused(struct rdna_sheet *s, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[2048];
	unsigned at;

	if (!f)
		return false;
	while (fgets(line, sizeof line, f)) {
		char *p = strstr(line, "/in.s:");
		if (p && strstr(p, ": error:") && sscanf(p, "/in.s:%u", &at) == 1 && at >= 1 && at <= s->n)
			set_hex(s, at - 1, "-");
	}
	fclose(f);
	return true;
}

/* "text ; encoding: [0x01,0x02]" for each line that was taken */
static bool read_taken(struct rdna_sheet *s, const char *path)
{
	FILE *f = fopen(path, "r");
	char line[2048], hex[128];
	unsigned i = 0;

	if (!f)
		return false;
	while (fgets(line, sizeof line, f)) {
		char *p = strstr(line, "encoding: ["), *out = hex;
		if (!p)
			continue;
		for (p += 11; *p && *p != ']'; p += strcspn(p, ",]"), p += *p == ',')
			out += sprintf(out, "%02lx", strtoul(p, NULL, 16));
		while (i < s->n && s->hex[i])
			i++;
		if (i == s->n)
			break;
		set_hex(s, i, hex);
	}
	fclose(f);
	while (i < s->n && s->hex[i])
		i++;
	return i == s->n;
}

bool rdna_sheet_assemble(struct rdna_sheet *s, const char *assembler, const char *target, char *why, unsigned cap)
{
	char dir[] = "/tmp/rdna_assembler_XXXXXX", path[100], command[600];

	for (unsigned i = 0; i < s->n; i++) {
		free(s->hex[i]);
		s->hex[i] = NULL;
	}
	snprintf(why, cap, "%s gave no answer for %s", assembler, target);
	if (!mkdtemp(dir))
		return false;
	snprintf(path, sizeof path, "%s/in.s", dir);
	bool ok = write_lines(s, path);
	snprintf(command, sizeof command, "%s -arch=amdgcn -mcpu=%s -show-encoding %s/in.s >%s/out 2>%s/errors",
	         assembler, target, dir, dir, dir);
	int status = system(command); /* not 0 when a line was refused, which is an answer too */
	ok = ok && status >= 0;
	snprintf(path, sizeof path, "%s/errors", dir);
	ok = ok && read_refused(s, path);
	snprintf(path, sizeof path, "%s/out", dir);
	ok = ok && read_taken(s, path);
	snprintf(command, sizeof command, "rm -r %s", dir);
	return system(command) == 0 && ok;
}
