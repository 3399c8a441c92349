/* server/engine/slot_files.c - how many files clients may save, and how large. */
#include "server/engine/slot_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char ending[] = ".new";
/* Several models may save at a time, and what one of them counts must still be so when it puts its file there. */
static pthread_mutex_t folder = PTHREAD_MUTEX_INITIALIZER;

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *slot_files_beside(const char *path)
{
	size_t n = strlen(path) + sizeof ending + 1;
	const char *name = name_of(path);
	char *beside = malloc(n);

	if (beside)
		snprintf(beside, n, "%.*s.%s%s", (int)(name - path), path, name, ending);
	return beside;
}

/* Neither the file nor what is written beside it. */
static bool is_another(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strcmp(entry, name) != 0 &&
	       !(entry[0] == '.' && strncmp(entry + 1, name, n) == 0 && strcmp(entry + 1 + n, ending) == 0);
}

/* The regular files beside one. False: the folder cannot be read. */
static bool count_others(const char *path, long *files, uint64_t *bytes)
{
	const char *name = name_of(path);
	char *of = strndup(path, (size_t)(name - path));
	DIR *d = of ? opendir(name == path ? "." : of) : NULL;
	struct dirent *entry;
	struct stat st;

	*files = 0;
	*bytes = 0;
	free(of);
	if (!d)
		return false;
	while ((entry = readdir(d))) {
		if (!is_another(entry->d_name, name) || fstatat(dirfd(d), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode))
			continue;
		++*files;
		*bytes += (uint64_t)st.st_size;
	}
	closedir(d);
	return true;
}

bool slot_files_fit(const char *path, uint64_t bytes, const struct slot_limits *l, char why[SLOT_FILES_WHY])
{
	long files;
	uint64_t others;

	if (!l->files && !l->bytes)
		return true;
	if (!count_others(path, &files, &others)) {
		snprintf(why, SLOT_FILES_WHY, "The folder of saved slots cannot be read: %s.", strerror(errno));
		return false;
	}
	if (l->files && files + 1 > l->files) {
		snprintf(
			why, SLOT_FILES_WHY,
			"There are %ld files of saved slots already, and %ld may be there (--slot-files); save under a "
			"name that is there, or have one removed.",
			files, l->files);
		return false;
	}
	if (l->bytes && (others >= l->bytes || bytes > l->bytes - others)) {
		snprintf(why, SLOT_FILES_WHY,
		         "The files of saved slots have %llu bytes, this one %s%llu, and all may have %llu "
		         "(--slot-files-mib); have one removed.",
		         (unsigned long long)others, bytes ? "" : "more than ", (unsigned long long)bytes,
		         (unsigned long long)l->bytes);
		return false;
	}
	return true;
}

bool slot_files_put(const char *written, const char *path, const struct slot_limits *l, char why[SLOT_FILES_WHY])
{
	struct stat st;

	pthread_mutex_lock(&folder);
	bool ok = stat(written, &st) == 0;
	if (!ok)
		snprintf(why, SLOT_FILES_WHY, "The file of the slot cannot be looked at: %s.", strerror(errno));
	ok = ok && slot_files_fit(path, (uint64_t)st.st_size, l, why);
	if (ok && rename(written, path)) {
		snprintf(why, SLOT_FILES_WHY, "The file of the slot cannot be put in its place: %s.", strerror(errno));
		ok = false;
	}
	if (!ok)
		unlink(written);
	pthread_mutex_unlock(&folder);
	return ok;
}
