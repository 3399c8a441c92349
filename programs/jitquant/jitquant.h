/* programs/jitquant/jitquant.h - what the parts of the jitquant program share.
 *
 *   jitquant_main.c     one run: opens, plans, writes or tells
 *   jitquant_options.c  the command line
 *   jitquant_types.c    which type each tensor gets
 *   jitquant_merge.c    adapters that become part of the weights
 *   jitquant_write.c    the file, tensor by tensor
 *
 * stdout carries what was asked for (--dry-run) and nothing else; everything said to a person goes to stderr.
 */
#ifndef PROGRAMS_JITQUANT_H
#define PROGRAMS_JITQUANT_H

#include "loaders/files/gguf.h"
#include "loaders/files/imatrix.h"
#include "programs/common/options.h"

/* Exit status: done; failed; a wrong command line; interrupted. */
enum { QUANT_DONE, QUANT_FAILED, QUANT_USAGE, QUANT_INTERRUPTED = 130 };

struct quant_arguments {
	const char *in, *out, *type, *imatrix, *output_type, *embedding_type;
	struct option_list tensor_types, lora;
	long threads;
	bool pure, dry_run, quiet;
};
extern struct quant_arguments quant;

/* One sentence on stderr. */
int quant_fail(const struct error *e);
int quant_usage(const char *text);
/* What main() runs once the command line is read. */
int quant_run(void);
/* Reads the command line and runs. */
int quant_begin(int argc, char **argv);

struct quant_merge;

/* What becomes of a tensor. */
struct quant_tensor {
	const struct gguf_tensor *from;
	enum dtype to;
	uint64_t bytes;
	const struct imatrix_entry *importance; /* NULL: none */
	struct quant_merge *merge;              /* what is added to it; NULL: nothing */
};

struct quant_plan {
	struct file file;
	struct gguf gguf;
	struct imatrix imatrix;
	struct quant_tensor *tensor; /* as many as gguf has */
	uint32_t file_type;          /* general.file_type */
	uint64_t bytes_before, bytes_after, elements;
	unsigned unfit; /* tensors whose rows are no multiple of their type's block, and which got another type */
};

/* The names of the mixtures, with | between. */
const char *quant_type_names(void);
/* Whether a mixture has so few bits that it is of little use without an importance matrix. */
bool quant_wants_importance(const char *name);
bool quant_is_type(const char *name);
/* Fills tensor[].to and what follows from it; p has the open file, and the importance matrix if any. */
bool quant_choose(struct quant_plan *p, struct error *err);
/* The name of a type as options have it: "q4_k". Returns out. */
const char *quant_type_name(char out[32], enum dtype type);

/* Reads the adapters of --lora into the plan's tensors, whose types are chosen. False: err. */
bool quant_merge_open(struct quant_plan *p, struct error *err);
void quant_merge_close(struct quant_merge *m);
/* Adds what they have to a row; v: room for as many numbers. */
void quant_merge_row(const struct quant_merge *m, uint64_t row, float *x, double *v);

/* Writes the file; stop is asked now and then. */
bool quant_write(const struct quant_plan *p, bool (*stop)(void), struct error *err);

#endif
