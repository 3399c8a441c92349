/* programs/common/kernel_file.h - a text of kernels (language/jk.h) that programs look at without running it. */
#ifndef PROGRAMS_COMMON_KERNEL_FILE_H
#define PROGRAMS_COMMON_KERNEL_FILE_H

#include "language/jk.h"
#include "programs/common/options.h"

struct kernel_file {
	const char *name; /* borrowed */
	char *text;
	size_t n;
	struct jk_messages messages;
	struct jk_file *file;
};

/* A file's text, or the one that is given, of *n bytes; malloc'ed, with a 0 behind. NULL: err. */
char *kernel_file_read(const char *path, const char *given, size_t *n, struct error *err);
/* Reads and parses. What is wrong with it is printed on stderr, and err has how much that is. */
bool kernel_file_open(struct kernel_file *f, const char *path, const char *given, size_t n_given, struct error *err);
void kernel_file_close(struct kernel_file *f); /* of zeros, too */
/* One of its kernels with constants NAME=VALUE. NULL: err, in the same way. */
struct jk_kernel *kernel_file_bind(struct kernel_file *f, const char *kernel, const struct option_list *constants,
                                   struct error *err);

#endif
