/* programs/jitrun/line_complete.c - what Tab makes of a line. See line_complete.h. */
#include "programs/jitrun/line_complete.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "programs/common/output.h"

enum { LISTED_MAX = 100 };

/* What may follow: how often there is something, and as much as all have in common. */
struct found {
	char *same; /* malloc'ed; NULL: nothing was found, or there is no memory */
	size_t n;
	bool list; /* it is printed, too */
};

static void take(struct found *f, const char *text, size_t n)
{
	if (f->list && f->n < LISTED_MAX) {
		output_text(stdout, text, n - (n && text[n - 1] == ' '), true);
		fputs("  ", stdout);
	}
	if (f->n++ == 0) {
		f->same = strndup(text, n);
		return;
	}
	size_t k = 0;
	while (f->same && k < n && f->same[k] && f->same[k] == text[k])
		k++;
	while (f->same && k && ((unsigned char)f->same[k] & 0xc0) == 0x80) /* not within a character */
		k--;
	if (f->same)
		f->same[k] = 0;
}

/* ---- words of commands */

/* Of a command what is typed as it is: a word in capitals stands for something else. */
static size_t literal(const char *command) { return strcspn(command, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"); }

/* Each next word once, as commands with the same beginning stand together. */
static void find_words(struct found *f, const char *const *commands, const char *typed)
{
	const size_t n = strlen(typed);
	const char *word = strrchr(typed, ' ') ? strrchr(typed, ' ') + 1 : typed, *last = NULL;
	size_t last_n = 0;

	for (const char *const *c = commands; *c; c++) {
		if (literal(*c) <= n || strncmp(*c, typed, n) != 0)
			continue;
		const char *from = *c + (word - typed);
		size_t k = (size_t)(*c + n - from) + strcspn(*c + n, " ");
		k += from[k] == ' ';
		if (last && last_n == k && strncmp(last, from, k) == 0)
			continue;
		last = from;
		last_n = k;
		take(f, from, k);
	}
}

/* ---- names of files */

static bool is_directory(const char *dir, const char *name)
{
	char *path = NULL;
	struct stat st;
	bool yes = asprintf(&path, "%s/%s", dir, name) >= 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode);

	free(path);
	return yes;
}

/* The directory of a path, in which ~ is the user's own. malloc'ed. */
static char *directory_of(const char *path, size_t n)
{
	const char *home = getenv("HOME");
	char *out = NULL;
	int k = n == 0 ? asprintf(&out, ".")
	        : home && *path == '~' && (n == 1 || path[1] == '/')
	                ? asprintf(&out, "%s%.*s", home, (int)n - 1, path + 1)
	                : asprintf(&out, "%.*s", (int)n, path);

	return k < 0 ? NULL : out;
}

static void find_files(struct found *f, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *in = directory_of(path, (size_t)(name - path));
	DIR *d = in ? opendir(in) : NULL;
	const size_t n = strlen(name);

	for (struct dirent *e; d && (e = readdir(d));) {
		char *whole = NULL;
		if (strncmp(e->d_name, name, n) != 0 || (*e->d_name == '.' && *name != '.') ||
		    strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		int k = asprintf(&whole, "%s%s", e->d_name, is_directory(in, e->d_name) ? "/" : " ");
		if (k >= 0)
			take(f, whole, (size_t)k);
		free(k < 0 ? NULL : whole);
	}
	if (d)
		closedir(d);
	free(in);
}

/* ---- both */

/* What of the line is the name of a file; NULL: nothing. */
static const char *file_of(const char *const *commands, const char *typed)
{
	for (const char *const *c = commands; *c; c++) {
		const size_t n = literal(*c);
		if (strcmp(*c + n, "FILE") == 0 && strncmp(*c, typed, n) == 0)
			return typed + n + strspn(typed + n, " ");
	}
	return NULL;
}

static void find(struct found *f, const char *const *commands, const char *typed, const char *file)
{
	if (file)
		find_files(f, file);
	else
		find_words(f, commands, typed);
}

char *line_complete(const char *const *commands, const char *typed, bool *listed)
{
	const char *file = file_of(commands, typed), *name = file ? file : typed;
	struct found f = { 0 }, all = { .list = true };

	*listed = false;
	if (*typed != '/')
		return NULL;
	find(&f, commands, typed, file);
	if (!f.n)
		return file || !strchr(typed, ' ') ? strdup("") : NULL;
	for (const char *at; (at = strpbrk(name, file ? "/" : " "));)
		name = at + 1;
	const size_t have = strlen(name);
	if (f.n > 1 && f.same && strlen(f.same) == have) {
		putchar('\n');
		find(&all, commands, typed, file);
		fputs(all.n > LISTED_MAX ? "...\n" : "\n", stdout);
		fflush(stdout);
		free(all.same);
		*listed = true;
	}
	char *more = f.same ? strdup(f.same + have) : NULL;
	free(f.same);
	return more;
}
