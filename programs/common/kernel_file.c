/* programs/common/kernel_file.c - a text of kernels: see kernel_file.h. */
#include "programs/common/kernel_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *kernel_file_read(const char *path, const char *given, size_t *n, struct error *err)
{
	enum { MAX = (1 << 20) + 1 };
	FILE *f = given ? fmemopen((void *)(uintptr_t)given, *n, "rb") : fopen(path, "rb");
	char *text = f ? malloc(MAX + 1) : NULL;

	if (!f) {
		error_set(err, ERROR_IO, "%.300s: %s", path, strerror(errno));
		return NULL;
	}
	*n = text ? fread(text, 1, MAX, f) : 0;
	bool failed = !text || ferror(f);
	if (failed)
		error_set(err, ERROR_IO, "%.300s: cannot be read: %s", path, strerror(errno));
	fclose(f);
	if (failed) {
		free(text);
		return NULL;
	}
	text[*n] = 0;
	return text;
}

static bool is_wrong(const struct kernel_file *f, struct error *err)
{
	jk_print_messages(f->name, f->text, f->n, &f->messages, stderr);
	return error_set(err, ERROR_FORMAT, "%.200s: %zu message%s", f->name, f->messages.n,
	                 f->messages.n == 1 ? "" : "s");
}

bool kernel_file_open(struct kernel_file *f, const char *path, const char *given, size_t n_given, struct error *err)
{
	*f = (struct kernel_file){ .name = path, .n = n_given };
	f->text = kernel_file_read(path, given, &f->n, err);
	f->file = f->text ? jk_parse(path, f->text, f->n, &f->messages) : NULL;
	return f->file || (f->text && is_wrong(f, err));
}

void kernel_file_close(struct kernel_file *f)
{
	jk_file_close(f->file);
	free(f->text);
	*f = (struct kernel_file){ 0 };
}

static bool split(const struct option_list *constants, struct jk_value value[OPTION_LIST_MAX], char *names, size_t cap,
                  struct error *err)
{
	for (int i = 0; i < constants->n; i++) {
		const char *text = constants->value[i], *is = strchr(text, '=');
		const size_t n = is ? (size_t)(is - text) : 0;
		if (!n || !is[1] || strpbrk(text, " ,\t\n") || n >= cap)
			return error_set(err, ERROR_ARGUMENT, "--const %.100s: expected NAME=VALUE", text);
		memcpy(names, text, n);
		names[n] = 0;
		value[i] = (struct jk_value){ names, is + 1 };
		names += n + 1;
		cap -= n + 1;
	}
	return true;
}

struct jk_kernel *kernel_file_bind(struct kernel_file *f, const char *kernel, const struct option_list *constants,
                                   struct error *err)
{
	struct jk_value value[OPTION_LIST_MAX];
	char names[8192];

	if (!split(constants, value, names, sizeof names, err))
		return NULL;
	struct jk_kernel *k = jk_bind(f->file, kernel, value, (size_t)constants->n, &f->messages);
	if (!k)
		is_wrong(f, err);
	return k;
}
