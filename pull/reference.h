/* pull/reference.h - how people name a model of Hugging Face's hub, and which names of files are safe.
 *
 * Owns: what hf.co/OWNER/NAME:QUANT@REVISION and the hub's web addresses mean, and the rule that no name from outside
 * leads out of a folder.
 */
#ifndef PULL_REFERENCE_H
#define PULL_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { REFERENCE_PART = 97, REFERENCE_QUANT = 65, REFERENCE_REVISION = 256, PULL_PATH_MAX = 1024 };

struct reference {
	char owner[REFERENCE_PART], name[REFERENCE_PART];
	char quant[REFERENCE_QUANT];       /* "Q4_K_M"; "": none is named */
	char revision[REFERENCE_REVISION]; /* a branch, a tag or a commit; "main" unless named */
	char file[PULL_PATH_MAX + 1];      /* a file of it; "": none is named */
	bool has_revision;                 /* one is named, if only main */
};

/* OWNER/NAME[/FILE][:QUANT][@REVISION], with hf.co/, huggingface.co/ or their web address before it; endpoint, the
 * address of the hub in use, may stand there as well. False: err says what is wrong with it. */
bool reference_read(struct reference *r, const char *text, const char *endpoint, struct error *err);


/* NULL: a path below a folder that may be written; otherwise why not. */
const char *path_trouble(const char *path);
/* 40 letters and digits of a commit. */
bool is_commit(const char *text);
/* So many hexadecimal digits, in small letters, and nothing behind them. */
bool is_hex(const char *text, size_t n);

#endif
