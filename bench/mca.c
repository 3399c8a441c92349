#include "programs/common/output.h"
#include "bench/mca.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/rdna/program.h"
#include "runtime/device/program.h"

enum { LINE_LENGTH_MAX = 256, LINES_MAX = 20000, ITERATIONS = 20 };

struct line {
	uint64_t at, to;
	char text[LINE_LENGTH_MAX];
}; /* to: of a branch; 0: none */
struct listing {
	struct line *line;
	size_t n;
};

static const char *const versions[] = { "-22", "-21", "-20", "-19", "" };

/* The command with the newest version's suffix, or NULL. */
static const char *installed(char command[64], const char *name)
{
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		char test[128];
		snprintf(command, 64, "%s%s", name, versions[i]);
		snprintf(test, sizeof test, "command -v %s >/dev/null 2>&1", command);
		if (system(test) == 0)
			return command;
	}
	return NULL;
}

static bool write_temporary(char path[64], const void *bytes, size_t n)
{
	strcpy(path, "/tmp/jitbench.XXXXXX");
	int fd = mkstemp(path);
	bool ok = fd >= 0 && write(fd, bytes, n) == (ssize_t)n;

	if (fd >= 0)
		close(fd);
	if (fd >= 0 && !ok)
		unlink(path);
	return ok;
}

/* "\tinstruction   // address: words <kernel+offset>" */
static bool read_line(struct line *l, char *text, uint64_t *kernel)
{
	char *comment = strstr(text, "// "), *name = strstr(text, " <" RDNA_PROGRAM_KERNEL ">:"), *to;

	if (name) {
		*kernel = strtoull(text, NULL, 16);
		return false;
	}
	if (!comment || text[0] != '\t')
		return false;
	l->at = strtoull(comment + 3, NULL, 16);
	to = strstr(comment, "<" RDNA_PROGRAM_KERNEL "+0x");
	l->to = to ? *kernel + strtoull(to + strlen("<" RDNA_PROGRAM_KERNEL "+0x"), NULL, 16) : 0;
	*comment = 0;
	snprintf(l->text, sizeof l->text, "%.*s", LINE_LENGTH_MAX - 1, text);
	return true;
}

/* The function's instructions, from its offset to its return. */
static bool disassemble(struct listing *out, const char *objdump, const char *target, const char *path, uint64_t offset)
{
	char command[256], text[1024];
	uint64_t kernel = 0;

	out->n = 0;
	snprintf(command, sizeof command, "%s -d --mcpu=%s %s 2>/dev/null", objdump, target, path);
	FILE *f = popen(command, "r");
	if (!f)
		return false;
	bool ended = false;
	while (fgets(text, sizeof text, f))
		if (!ended && out->n < LINES_MAX && read_line(&out->line[out->n], text, &kernel) &&
		    out->line[out->n].at >= kernel + offset)
			ended = strstr(out->line[out->n++].text, "s_setpc_b64") != NULL;
	return pclose(f) == 0 && out->n > 0;
}

static bool backward(const struct line *l) { return l->to && l->to <= l->at; }

/* Whether the branch at i closes a loop with no other in it; first: its first instruction. */
static bool innermost(const struct listing *l, size_t i, size_t *first)
{
	if (!backward(&l->line[i]))
		return false;
	for (*first = i; *first > 0 && l->line[*first].at > l->line[i].to;)
		--*first;
	for (size_t k = *first; k < i; k++)
		if (backward(&l->line[k]))
			return false;
	return true;
}

/* Cycles of one of many iterations; less than 0: it said nothing. */
static double ask(const char *mca, const char *target, const struct listing *l, size_t first, size_t end)
{
	char path[64], command[256], text[256];
	double cycles = -1;
	size_t n = 0;
	char *body = malloc((end - first) * LINE_LENGTH_MAX + 1);

	for (size_t i = first; body && i < end; i++)
		n += (size_t)snprintf(body + n, LINE_LENGTH_MAX, "%.250s\n", l->line[i].text);
	if (!body || !write_temporary(path, body, n)) {
		free(body);
		return -1;
	}
	snprintf(command, sizeof command, "%s -mtriple=amdgcn -mcpu=%s -iterations=%d %s 2>/dev/null", mca, target,
	         ITERATIONS, path);
	FILE *f = popen(command, "r");
	while (f && fgets(text, sizeof text, f))
		if (strncmp(text, "Total Cycles:", 13) == 0)
			cycles = strtod(text + 13, NULL) / ITERATIONS;
	if (f)
		pclose(f);
	unlink(path);
	free(body);
	return cycles;
}

static void print_loops(FILE *out, const char *mca, const char *target, const struct key *key, const struct listing *l)
{
	char name[KEY_TEXT_MAX];
	size_t first;

	for (size_t i = 0; i < l->n; i++) {
		unsigned loads = 0;
		if (!innermost(l, i, &first))
			continue;
		for (size_t k = first; k < i; k++)
			loads += strstr(l->line[k].text, "global_load") != NULL;
		double cycles = ask(mca, target, l, first, i); /* without the branch, which it cannot follow */
		char known[32] = "unknown";
		if (cycles >= 0)
			snprintf(known, sizeof known, "%.1f", cycles);
		output_lines(out, 4, "| %s | %zu | %u | %s |\n", key_text(key, name, sizeof name), i - first + 1, loads,
		             known);
	}
}

static bool print_kernel(FILE *out, const char *objdump, const char *mca, const struct target *target,
                         const struct kernel *k, struct listing *l, struct error *err)
{
	const struct object *const one[] = { &k->object };
	char path[64], name[KEY_TEXT_MAX];
	uint64_t offset;
	uint8_t *bytes;
	size_t size;

	if (!target->backend->link(&bytes, &size, target, one, 1, &offset, err))
		return false;
	bool ok = write_temporary(path, bytes, size);
	if (ok && disassemble(l, objdump, target->name, path, offset))
		print_loops(out, mca, target->name, &k->key, l);
	else if (ok)
		output_lines(out, 4, "| %s | unknown: %s shows none of it | unknown | unknown |\n",
		             key_text(&k->key, name, sizeof name), objdump);
	if (ok)
		unlink(path);
	free(bytes);
	return ok || error_set(err, ERROR_IO, "/tmp: a temporary file could not be written");
}

bool loops_print(FILE *out, const struct plan *p, const struct target *target, struct error *err)
{
	char dump_name[64], mca_name[64];
	const char *objdump = installed(dump_name, "llvm-objdump"), *mca = installed(mca_name, "llvm-mca");
	struct registry_options ro = { .build = template_build };

	if (!objdump || !mca) {
		output_lines(out, 4, "\nllvm-mca has no say: it or llvm-objdump is not installed, or cannot be run.\n");
		return true;
	}
	struct listing l = { .line = malloc(LINES_MAX * sizeof *l.line) };
	struct registry *r = registry_open(&ro, err);
	bool ok = l.line && r ? true : error_set(err, ERROR_MEMORY, "no memory for a listing");
	output_lines(out, 4,
	             "\n%s of an iteration of the innermost loops, for one wave by itself and with its own idea of "
	             "memory:\n\n| kernel | instructions | vector loads | cycles |\n|---|---:|---:|---:|\n",
	             mca_name);
	for (size_t i = 0; ok && i < p->n_kernels; i++) {
		const struct kernel *k = program_function(r, &p->kernel[i].key, NULL, err);
		ok = k && print_kernel(out, objdump, mca, target, k, &l, err);
	}
	if (r)
		registry_close(r);
	free(l.line);
	return ok;
}
