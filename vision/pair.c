/* vision/pair.c - the image encoder's file beside a model's, of those pairs that llama.cpp runs. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vision/seer.h"

struct found {
	char *name, *more; /* the first two by name */
	unsigned n;
};

static bool is_pair(const char *name)
{
	const size_t n = strlen(name);

	return n > 5 && strcasecmp(name + n - 5, ".gguf") == 0 && strcasestr(name, "mmproj");
}

static void note(struct found *f, const char *name)
{
	char **to = !f->name || strcmp(name, f->name) < 0 ? &f->name : &f->more;

	if (to == &f->name && f->name) {
		free(f->more);
		f->more = f->name;
	} else {
		free(*to);
	}
	*to = strdup(name);
	f->n++;
}

static bool list(struct found *f, const char *folder, struct error *err)
{
	DIR *d = opendir(folder);

	if (!d)
		return error_set(err, ERROR_IO, "%.200s: the directory cannot be read: %s", folder, strerror(errno));
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		if (is_pair(e->d_name))
			note(f, e->d_name);
	closedir(d);
	return f->n <= 1 ||
	       error_set(err, ERROR_ARGUMENT,
	                 "%.150s: holds %u files for pictures (%.60s, %.60s%s), expected one; --mmproj FILE "
	                 "names it",
	                 folder, f->n, f->name ? f->name : "", f->more ? f->more : "", f->n > 2 ? ", ..." : "");
}

char *seer_find_pair(const char *path, struct error *err)
{
	struct stat st;
	struct found f = { 0 };
	const bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	const char *slash = strrchr(path, '/');
	char *folder = is_folder ? strdup(path)
	               : slash   ? strndup(path, (size_t)(slash - path) + 1)
	                         : strdup("."),
	     *out = NULL;

	if (!folder)
		error_set(err, ERROR_MEMORY, "there is no memory for the name of a file");
	else if (list(&f, folder, err) && f.name && asprintf(&out, "%s/%s", folder, f.name) < 0)
		out = NULL;
	free(f.name);
	free(f.more);
	free(folder);
	return out;
}

bool seer_may_see(const char *path)
{
	static const char *const files[] = { "preprocessor_config.json", "processor_config.json" };
	struct error ignored = { 0 };
	struct stat st;
	char beside[4200];

	for (size_t i = 0; stat(path, &st) == 0 && S_ISDIR(st.st_mode) && i < 2; i++) {
		snprintf(beside, sizeof beside, "%s/%s", path, files[i]);
		if (access(beside, F_OK) == 0)
			return true;
	}
	char *pair = seer_find_pair(path, &ignored);
	const bool has = pair || ignored.code;
	free(pair);
	return has;
}
