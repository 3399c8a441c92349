/* programs/jitquant/jitquant_main.c - the jitquant program: makes smaller models.
 *
 * Owns: one run, from the open file to the summary.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "programs/common/allocator.h"
#include "programs/jitquant/jitquant.h"
#include "programs/common/output.h"
#include "runtime/host/system.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) { interrupted = 1; }

static bool is_interrupted(void) { return interrupted; }

int quant_fail(const struct error *e)
{
	fprintf(stderr, "jitquant: %s.\n", e->text);
	return QUANT_FAILED;
}

int quant_usage(const char *text)
{
	fprintf(stderr, "jitquant: %s\nTry 'jitquant --help'.\n", text);
	return QUANT_USAGE;
}

/* ---- reading */

static bool is_gguf(const char *path, struct error *err)
{
	const char *dot = strrchr(path, '.');
	struct stat st;
	char label[200];

	file_label(label, path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: is a directory, and jitquant reads GGUF files; llama.cpp's convert_hf_to_gguf.py "
		                 "makes one",
		                 label);
	if (dot && (strcmp(dot, ".safetensors") == 0 || strcmp(dot, ".jkm") == 0))
		return error_set(err, ERROR_UNSUPPORTED, "%s: is no GGUF file, and jitquant reads no others", label);
	return true;
}

static bool is_whole(const struct gguf *g, struct error *err)
{
	struct gguf_str type;
	uint64_t count = 1;
	bool found;

	if (!gguf_u64(g, "split.count", &count, &found, err) || !gguf_string(g, "general.type", &type, &found, err))
		return false;
	if (count > 1)
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: is one of %" PRIu64 " parts of a model, and jitquant reads models of one file; "
		                 "llama-gguf-split --merge joins them",
		                 g->path, count);
	if (found && type.n == 7 && memcmp(type.p, "imatrix", 7) == 0)
		return error_set(err, ERROR_FORMAT, "%s: is an importance matrix, expected a model", g->path);
	return true;
}

/* The output may not be the input by another name: it would replace what is being read. */
static bool is_another(const struct quant_plan *p, struct error *err)
{
	struct stat st;

	if (!quant.out || quant.dry_run || stat(quant.out, &st))
		return true;
	if (st.st_dev == p->file.device && st.st_ino == p->file.inode)
		return error_set(err, ERROR_ARGUMENT,
		                 "%s: is the file to read and the file to write; give another to write", p->file.label);
	return S_ISREG(st.st_mode) ||
	       error_set(err, ERROR_ARGUMENT, "%s: is there already and no regular file", quant.out);
}

static bool can_write(struct error *err)
{
	const char *why;

	return !quant.out || quant.dry_run || output_can_write(quant.out, &why) ||
	       error_set(err, ERROR_IO, "%s: cannot be written: %s", quant.out, why);
}

static bool open_plan(struct quant_plan *p, struct error *err)
{
	return is_gguf(quant.in, err) && file_open(&p->file, quant.in, err) &&
	       gguf_open(&p->gguf, &p->file, false, err) && is_whole(&p->gguf, err) && is_another(p, err) &&
	       can_write(err) && (!quant.imatrix || imatrix_read(&p->imatrix, quant.imatrix, err)) &&
	       quant_choose(p, err) && quant_merge_open(p, err);
}

static void close_plan(struct quant_plan *p)
{
	for (uint64_t i = 0; p->tensor && i < p->gguf.n_tensors; i++)
		quant_merge_close(p->tensor[i].merge);
	free(p->tensor);
	imatrix_free(&p->imatrix);
	gguf_free(&p->gguf);
	file_close(&p->file);
}

/* ---- telling */

static double bits_per_weight(const struct quant_plan *p)
{
	return p->elements ? 8.0 * (double)p->bytes_after / (double)p->elements : 0;
}

static void print_plan(const struct quant_plan *p)
{
	char from[32], to[32], name[200];

	for (uint64_t i = 0; i < p->gguf.n_tensors; i++) {
		const struct quant_tensor *t = &p->tensor[i];
		printf("%-6s %-6s %14" PRIu64 " %14" PRIu64 "  %s\n", quant_type_name(from, t->from->type),
		       t->to == t->from->type ? "" : quant_type_name(to, t->to), t->from->bytes, t->bytes,
		       error_quote(name, sizeof name, t->from->name.p, t->from->name.n));
	}
	printf("%-6s %-6s %14" PRIu64 " %14" PRIu64 "  all tensors, %.2f bits per weight\n", "", "", p->bytes_before,
	       p->bytes_after, bits_per_weight(p));
}

static void say_notes(const struct quant_plan *p)
{
	unsigned without = 0, changed = 0;

	for (uint64_t i = 0; i < p->gguf.n_tensors; i++) {
		changed += p->tensor[i].to != p->tensor[i].from->type;
		without += p->tensor[i].to != p->tensor[i].from->type && !p->tensor[i].importance;
	}
	if (p->unfit)
		fprintf(stderr, "jitquant: %u tensors got another type, because their rows do not fit the blocks.\n",
		        p->unfit);
	if (!p->imatrix.n && quant_wants_importance(quant.type))
		fprintf(stderr,
		        "jitquant: %s has so few bits that it is of little use without an importance matrix "
		        "(--imatrix).\n",
		        quant.type);
	if (p->imatrix.n && without)
		fprintf(stderr, "jitquant: the importance matrix has nothing of %u of the %u tensors that change.\n",
		        without, changed);
}

static void say_done(const struct quant_plan *p, double seconds)
{
	char label[200];

	file_label(label, quant.out);
	fprintf(stderr, "%s: %.1f MiB of weights became %.1f MiB, %.2f bits per weight; %.1f s\n", label,
	        (double)p->bytes_before / 0x1p20, (double)p->bytes_after / 0x1p20, bits_per_weight(p), seconds);
}

/* ---- one run */

int quant_run(void)
{
	struct sigaction on_int = { .sa_handler = on_interrupt };
	double start = system_seconds();
	struct quant_plan p = { 0 };
	struct error e = { 0 };

	if (!quant_is_type(quant.type)) {
		char text[600], quoted[80];
		snprintf(text, sizeof text, "--type is %s, expected one of %s",
		         error_quote(quoted, sizeof quoted, quant.type, strlen(quant.type)), quant_type_names());
		return quant_usage(text);
	}
	sigaction(SIGINT, &on_int, NULL);
	sigaction(SIGTERM, &on_int, NULL);
	bool ok = open_plan(&p, &e);
	if (ok && quant.dry_run)
		print_plan(&p);
	else if (ok)
		ok = quant_write(&p, is_interrupted, &e);
	if (ok && !quant.quiet)
		say_notes(&p);
	if (ok && !quant.quiet && !quant.dry_run)
		say_done(&p, system_seconds() - start);
	close_plan(&p);
	if (interrupted && !ok)
		return QUANT_INTERRUPTED;
	return ok ? QUANT_DONE : quant_fail(&e);
}

int main(int argc, char **argv)
{
	output_begin();
	allocator_begin();
	system_file_limit_is_error();
	return output_end("jitquant", quant_begin(argc, argv), QUANT_FAILED);
}
