/* tests/encoders/x86_golden_file.c - the golden file of the x86 encoder: every line, as an assembler encodes it. */
#include "tests/encoders/x86_golden.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/encoders/x86_golden_lines.h"

const char *x86_golden_assembler(void)
{
	static const char *const names[] = { "llvm-mc-19", "llvm-mc" };
	char command[64];

	for (unsigned i = 0; i < 2; i++) {
		snprintf(command, sizeof command, "command -v %s objcopy >/dev/null 2>&1", names[i]);
		if (system(command) == 0)
			return names[i];
	}
	return NULL;
}

#define GOLDEN_OPTIONS "--triple=x86_64 --x86-asm-syntax=intel -mcpu=sapphirerapids"

/* The bytes of every line, as "encoding: [0x..,..]" comments, behind the lines of the list. */
static bool golden_join(FILE *list, FILE *listing, FILE *out, char *why, unsigned cap)
{
	char line[512], answer[512];

	while (fgets(line, sizeof line, list)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '=') {
			fprintf(out, "%s\n", line);
			continue;
		}
		char *p = NULL;
		while (!p && fgets(answer, sizeof answer, listing))
			p = strstr(answer, "encoding: [");
		if (!p) {
			snprintf(why, cap, "the assembler said nothing about: %s", line);
			return false;
		}
		fprintf(out, "%s;", line);
		for (p = strchr(p, '['); *p && *p != ']'; p++)
			if (strncmp(p, "0x", 2) == 0)
				fprintf(out, "%.2s", p + 2);
		fprintf(out, "\n");
	}
	return true;
}

static bool golden_run(char *why, unsigned cap, const char *format, ...)
{
	char command[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(command, sizeof command, format, ap);
	va_end(ap);
	if (system(command) == 0)
		return true;
	snprintf(why, cap, "this command failed: %s", command);
	return false;
}

/* Section LABELS: the program's lines, then all its bytes, taken from the object file's .text as the assembler laid it
 * out. */
static bool golden_write_labels(FILE *out, const char *assembler, const char *dir, char *why, unsigned cap)
{
	char path[256], line[512];

	snprintf(path, sizeof path, "%s/labels.s", dir);
	FILE *f = fopen(path, "w+");
	if (!f)
		return false;
	golden_labels(f);
	fprintf(out, "= LABELS 0 vex\n");
	rewind(f);
	while (fgets(line, sizeof line, f))
		fputs(line, out);
	fclose(f);
	if (!golden_run(why, cap, "%s " GOLDEN_OPTIONS " --filetype=obj -o %s/labels.o %s", assembler, dir, path) ||
	    !golden_run(why, cap, "objcopy -O binary -j .text %s/labels.o %s/labels.bin", dir, dir))
		return false;
	snprintf(path, sizeof path, "%s/labels.bin", dir);
	f = fopen(path, "r");
	if (!f)
		return false;
	fprintf(out, ";");
	for (int c; (c = fgetc(f)) != EOF;)
		fprintf(out, "%02x", c);
	fprintf(out, "\n");
	fclose(f);
	return true;
}

bool x86_golden_write(FILE *out, const char *assembler, char *why, unsigned cap)
{
	char dir[] = "/tmp/x86-golden-XXXXXX", path[64];
	struct golden g = { .counter = 0 };
	FILE *listing = NULL;
	bool ok = false;

	snprintf(why, cap, "a temporary file cannot be written");
	memset(golden_seen, 0, sizeof golden_seen);
	if (!mkdtemp(dir))
		return false;
	snprintf(path, sizeof path, "%s/all.s", dir);
	g.assembly = fopen(path, "w");
	g.list = tmpfile();
	if (g.list && g.assembly) {
		golden_all_rows(&g);
		fclose(g.assembly);
		g.assembly = NULL;
		rewind(g.list);
		ok = golden_run(why, cap, "%s " GOLDEN_OPTIONS " --show-encoding -o %s/all.lst %s", assembler, dir,
		                path);
		snprintf(path, sizeof path, "%s/all.lst", dir);
		ok = ok && (listing = fopen(path, "r")) && golden_join(g.list, listing, out, why, cap) &&
		     golden_write_labels(out, assembler, dir, why, cap);
	}
	if (g.assembly)
		fclose(g.assembly);
	if (g.list)
		fclose(g.list);
	if (listing)
		fclose(listing);
	snprintf(path, sizeof path, "rm -rf %s", dir);
	return system(path) == 0 && ok;
}
