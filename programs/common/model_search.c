#include "programs/common/model_search.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "programs/common/model_names.h"
#include "programs/common/model_search_parts.h"

enum { DEEPEST = 5, FOLDERS_MAX = 100000, FOUND_MAX = 100000 };

/* ---- lists of texts */

char *search_text(const char *format, ...)
{
	char *out = NULL;
	va_list ap;

	va_start(ap, format);
	if (vasprintf(&out, format, ap) < 0)
		out = NULL;
	va_end(ap);
	return out;
}

/* Takes over the text. False: no memory, for it or for the list. */
static bool keep(char ***list, size_t *n, size_t *room, char *one)
{
	if (!one || !array_grow((void **)list, room, *n + 1, sizeof **list)) {
		free(one);
		return false;
	}
	(*list)[(*n)++] = one;
	return true;
}

static bool note(struct model_search *s, char *sentence)
{
	return keep(&s->note, &s->n_notes, &s->notes_room, sentence);
}

void search_free_found(struct found_model *p)
{
	free(p->name);
	free(p->path);
	free(p->trouble);
	free(p->manifest);
	free(p->projector);
}

/* Takes over its texts, of which all but the name may be NULL. */
bool search_add(struct model_search *s, struct found_model p)
{
	bool full = s->n == FOUND_MAX;

	if (p.name && !full && array_grow((void **)&s->found, &s->room, s->n + 1, sizeof *s->found)) {
		p.order = (unsigned)s->n_searched;
		s->found[s->n++] = p;
		return true;
	}
	full = full && p.name;
	search_free_found(&p);
	return full;
}

/* ---- folders */

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcasecmp(s + n - m, end) == 0; /* large letters are small ones on some systems */
}

/* The names in a folder but for hidden ones, in order; *names NULL: there is no such folder, or a note says why it
 * cannot be read. False: no memory. */
bool search_list(struct model_search *s, const char *dir, char ***names, size_t *n)
{
	char quoted[512];
	size_t room = 0;
	DIR *d = s->folders < FOLDERS_MAX ? opendir(dir) : NULL;
	bool ok = true;

	*names = NULL;
	*n = 0;
	if (s->folders++ >= FOLDERS_MAX)
		return true;
	if (!d)
		return errno == ENOENT || errno == ENOTDIR ||
		       note(s, search_text("%s cannot be looked into: %s",
		                           error_quote(quoted, sizeof quoted, dir, strlen(dir)), strerror(errno)));
	for (struct dirent *e; ok && (e = readdir(d));)
		if (*e->d_name != '.')
			ok = keep(names, n, &room, strdup(e->d_name));
	closedir(d);
	return ok;
}

void search_free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

/* 0: there is nothing. */
mode_t search_kind(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

/* "...-00002-of-00003.gguf": a part that the first one stands for, where that is there. */
static bool is_later_part(const char *dir, const char *name)
{
	size_t n = strlen(name), m = strlen("-00002-of-00003.gguf");
	unsigned part, of;
	int used = 0;

	if (n <= m || sscanf(name + n - m, "-%5u-of-%5u%n", &part, &of, &used) != 2 ||
	    used != (int)(m - strlen(".gguf")) || part == 1)
		return false;
	char *first = search_text("%s/%.*s-00001%s", dir, (int)(n - m), name, name + n - m + strlen("-00001"));
	bool yes = first && access(first, F_OK) == 0;
	free(first);
	return yes;
}

/* Of a folder of models and those in it, one that is being walked through. */
struct tree {
	struct model_search *search;
	const char *source;
	bool old_revision;
	const struct tree *above; /* NULL: none */
	dev_t device;
	ino_t inode;
};

/* Takes over name and path. */
static bool add_file(const struct tree *t, char *name, char *path)
{
	return search_add(t->search,
	                  (struct found_model){
				  .source = t->source, .name = name, .path = path, .old_revision = t->old_revision });
}

static bool walk(const struct tree *t, const char *dir, const char *name, unsigned depth);

/* A link may lead to a folder that it lies in. */
static bool is_above(const struct tree *t, const struct stat *st)
{
	for (; t; t = t->above)
		if (t->device == st->st_dev && t->inode == st->st_ino)
			return true;
	return false;
}

static bool see_entry(const struct tree *t, const char *dir, const char *name, const char *entry, unsigned depth)
{
	char *path = search_text("%s/%s", dir, entry), *full = search_text("%s%s%s", name, *name ? "/" : "", entry);
	bool ok = path && full;

	if (ok && search_kind(path) == S_IFDIR)
		ok = depth == 0 || walk(t, path, full, depth - 1);
	else if (ok && (ends_with(entry, ".gguf") || ends_with(entry, ".jkm")) && !is_later_part(dir, entry) &&
	         strncmp(entry, "mmproj", 6) != 0)
		return add_file(t, full, path);
	free(path);
	free(full);
	return ok;
}

/* name: of what was gone through on the way, for people. */
static bool walk(const struct tree *t, const char *dir, const char *name, unsigned depth)
{
	char **names;
	struct stat st = { 0 };
	size_t n, weights = 0, config = 0;

	if (stat(dir, &st) == 0 && is_above(t, &st))
		return true;
	const struct tree here = { t->search, t->source, t->old_revision, t, st.st_dev, st.st_ino };
	bool ok = search_list(t->search, dir, &names, &n);

	for (size_t i = 0; i < n; i++) {
		weights += ends_with(names[i], ".safetensors");
		config += strcmp(names[i], "config.json") == 0;
	}
	if (ok && weights && config)
		ok = add_file(t, strdup(*name ? name : dir), strdup(dir));
	for (size_t i = 0; ok && i < n; i++)
		ok = see_entry(&here, dir, name, names[i], depth);
	search_free_list(names, n);
	return ok;
}

static bool walk_plain(struct model_search *s, const char *source, const char *root)
{
	return walk(&(struct tree){ .search = s, .source = source }, root, "", DEEPEST);
}

/* ---- Hugging Face: models--OWNER--NAME/snapshots/REVISION/, files are links; refs/main has the newest revision */

/* malloc'ed; "": none is named. NULL: no memory. */
static char *read_main(const char *root, const char *entry)
{
	char *path = search_text("%s/%s/refs/main", root, entry), revision[80] = "";
	FILE *f = path && search_kind(path) == S_IFREG ? fopen(path, "re") : NULL;

	if (f) {
		size_t n = fread(revision, 1, sizeof revision - 1, f);
		revision[n] = 0;
		revision[strcspn(revision, " \t\r\n")] = 0;
		fclose(f);
	}
	bool ok = path != NULL;
	free(path);
	return ok ? strdup(revision) : NULL;
}

static bool has_name(char **list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

static bool see_repository(struct model_search *s, const char *source, const char *root, const char *entry)
{
	static const char prefix[] = "models--";
	char *name = strdup(entry + sizeof prefix - 1), *dir = search_text("%s/%s/snapshots", root, entry),
	     **revision = NULL;
	char *newest = read_main(root, entry), *dashes = name ? strstr(name, "--") : NULL;
	size_t n = 0;
	bool ok = name && newest && dir && search_list(s, dir, &revision, &n),
	     known = ok && has_name(revision, n, newest);

	if (dashes) { /* OWNER--NAME into OWNER/NAME */
		*dashes = '/';
		memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
	}
	for (size_t i = 0; ok && i < n; i++) {
		char *path = search_text("%s/%s", dir, revision[i]),
		     *full = n == 1 ? search_text("%s", name) : search_text("%s@%.8s", name, revision[i]);
		const struct tree t = {
			.search = s, .source = source, .old_revision = known && strcmp(revision[i], newest) != 0
		};
		ok = path && full && walk(&t, path, full, DEEPEST);
		free(path);
		free(full);
	}
	search_free_list(revision, n);
	free(dir);
	free(name);
	free(newest);
	return ok;
}

/* Hugging Face's layout; in llama.cpp's own cache, files beside each other as well. */
static bool walk_hub(struct model_search *s, const char *source, const char *root)
{
	const struct tree t = { .search = s, .source = source };
	const bool flat = strcmp(source, "llama.cpp") == 0;
	char **names;
	size_t n;
	bool ok = search_list(s, root, &names, &n);

	for (size_t i = 0; ok && i < n; i++) {
		if (strncmp(names[i], "models--", 8) == 0)
			ok = see_repository(s, source, root, names[i]);
		else if (flat)
			ok = see_entry(&t, root, "", names[i], DEEPEST);
	}
	search_free_list(names, n);
	return ok;
}

/* ---- where they are */

/* A folder is the value of a variable, with more behind it. */
static const struct root {
	const char *source, *variable, *behind;
	bool (*walk)(struct model_search *s, const char *source, const char *root);
} roots[] = {
	{ "ollama", "OLLAMA_MODELS", "", search_store },
	{ "ollama", "HOME", "/.ollama/models", search_store },
	{ "ollama", NULL, "/usr/share/ollama/.ollama/models", search_store },
	{ "Hugging Face", "HF_HUB_CACHE", "", walk_hub },
	{ "Hugging Face", "HUGGINGFACE_HUB_CACHE", "", walk_hub },
	{ "Hugging Face", "HF_HOME", "/hub", walk_hub },
	{ "Hugging Face", "XDG_CACHE_HOME", "/huggingface/hub", walk_hub },
	{ "Hugging Face", "HOME", "/.cache/huggingface/hub", walk_hub },
	{ "llama.cpp", "LLAMA_CACHE", "", walk_hub },
	{ "llama.cpp", "XDG_CACHE_HOME", "/llama.cpp", walk_hub },
	{ "llama.cpp", "HOME", "/.cache/llama.cpp", walk_hub },
	{ "LM Studio", "HOME", "/.lmstudio/models", walk_plain },
	{ "LM Studio", "HOME", "/.cache/lm-studio/models", walk_plain },
};
enum { ROOTS = sizeof roots / sizeof *roots };

/* Folders that were walked through, under whatever name. */
struct seen {
	struct {
		dev_t device;
		ino_t inode;
	} one[ROOTS];
	size_t n;
};

static bool is_new(struct seen *seen, const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return true; /* looking into it says why */
	for (size_t i = 0; i < seen->n; i++)
		if (seen->one[i].device == st.st_dev && seen->one[i].inode == st.st_ino)
			return false;
	seen->one[seen->n].device = st.st_dev;
	seen->one[seen->n++].inode = st.st_ino;
	return true;
}

static bool search_root(struct model_search *s, const struct root *r, struct seen *seen)
{
	const char *value = r->variable ? getenv(r->variable) : "";

	if (!value || (r->variable && *value != '/'))
		return true;
	char *path = search_text("%s%s", value, r->behind);
	if (!path || !keep(&s->searched, &s->n_searched, &s->searched_room, path))
		return false;
	return !is_new(seen, path) || r->walk(s, r->source, path);
}

static int by_source(const void *a, const void *b)
{
	const struct found_model *x = a, *y = b;
	int c = strcmp(x->source, y->source);

	return c ? c : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
	const struct found_model *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	c = c ? c : strcmp(x->source, y->source);
	c = c ? c : (x->order > y->order) - (x->order < y->order);
	return c ? c : strcmp(x->path ? x->path : "", y->path ? y->path : "");
}

static bool make_unique(struct model_search *s)
{
	bool ok = true;

	qsort(s->found, s->n, sizeof *s->found, by_name);
	for (size_t i = 0, n; ok && i < s->n; i += n) {
		for (n = 1; i + n < s->n && strcmp(s->found[i].name, s->found[i + n].name) == 0;)
			n++;
		ok = model_names_unique(s->found + i, n);
	}
	qsort(s->found, s->n, sizeof *s->found, by_source);
	return ok;
}

/* source NULL: of all. */
static bool search(struct model_search *s, const char *source, struct error *err)
{
	struct seen seen = { .n = 0 };
	bool ok = true;

	*s = (struct model_search){ 0 };
	for (size_t i = 0; ok && i < ROOTS; i++)
		ok = (source && strcmp(roots[i].source, source) != 0) || search_root(s, &roots[i], &seen);
	if (!ok || (s->n && !make_unique(s)))
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu models", s->n);
	return true;
}

bool model_search_all(struct model_search *s, struct error *err) { return search(s, NULL, err); }
bool model_search_hub(struct model_search *s, struct error *err) { return search(s, "Hugging Face", err); }

bool model_search_folder(struct model_search *s, const char *folder, struct error *err)
{
	*s = (struct model_search){ 0 };
	return walk_plain(s, "folder", folder) ||
	       error_set(err, ERROR_MEMORY, "no memory for a list of %zu models", s->n);
}

void model_search_free(struct model_search *s)
{
	for (size_t i = 0; i < s->n; i++)
		search_free_found(&s->found[i]);
	free(s->found);
	search_free_list(s->note, s->n_notes);
	search_free_list(s->searched, s->n_searched);
}
