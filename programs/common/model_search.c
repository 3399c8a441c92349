#include "programs/common/model_search.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "loaders/files/file.h"
#include "base/json_read.h"
#include "programs/common/model_names.h"

enum { DEEPEST = 5, FOLDERS_MAX = 100000, FOUND_MAX = 100000, MANIFEST_MAX = 1 << 20 };

/* ---- lists of texts */

static char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text(const char *format, ...)
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

static void free_found(struct found_model *p)
{
	free(p->name);
	free(p->path);
	free(p->trouble);
	free(p->manifest);
	free(p->projector);
}

/* Takes over its texts, of which all but the name may be NULL. */
static bool add(struct model_search *s, struct found_model p)
{
	bool full = s->n == FOUND_MAX;

	if (p.name && !full && array_grow((void **)&s->found, &s->room, s->n + 1, sizeof *s->found)) {
		p.order = (unsigned)s->n_searched;
		s->found[s->n++] = p;
		return true;
	}
	full = full && p.name;
	free_found(&p);
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
static bool list_folder(struct model_search *s, const char *dir, char ***names, size_t *n)
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
		       note(s, text("%s cannot be looked into: %s",
		                    error_quote(quoted, sizeof quoted, dir, strlen(dir)), strerror(errno)));
	for (struct dirent *e; ok && (e = readdir(d));)
		if (*e->d_name != '.')
			ok = keep(names, n, &room, strdup(e->d_name));
	closedir(d);
	return ok;
}

static void free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

/* 0: there is nothing. */
static mode_t kind_of(const char *path)
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
	char *first = text("%s/%.*s-00001%s", dir, (int)(n - m), name, name + n - m + strlen("-00001"));
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
	return add(t->search,
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
	char *path = text("%s/%s", dir, entry), *full = text("%s%s%s", name, *name ? "/" : "", entry);
	bool ok = path && full;

	if (ok && kind_of(path) == S_IFDIR)
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
	bool ok = list_folder(t->search, dir, &names, &n);

	for (size_t i = 0; i < n; i++) {
		weights += ends_with(names[i], ".safetensors");
		config += strcmp(names[i], "config.json") == 0;
	}
	if (ok && weights && config)
		ok = add_file(t, strdup(*name ? name : dir), strdup(dir));
	for (size_t i = 0; ok && i < n; i++)
		ok = see_entry(&here, dir, name, names[i], depth);
	free_list(names, n);
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
	char *path = text("%s/%s/refs/main", root, entry), revision[80] = "";
	FILE *f = path && kind_of(path) == S_IFREG ? fopen(path, "re") : NULL;

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
	char *name = strdup(entry + sizeof prefix - 1), *dir = text("%s/%s/snapshots", root, entry), **revision = NULL;
	char *newest = read_main(root, entry), *dashes = name ? strstr(name, "--") : NULL;
	size_t n = 0;
	bool ok = name && newest && dir && list_folder(s, dir, &revision, &n),
	     known = ok && has_name(revision, n, newest);

	if (dashes) { /* OWNER--NAME into OWNER/NAME */
		*dashes = '/';
		memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
	}
	for (size_t i = 0; ok && i < n; i++) {
		char *path = text("%s/%s", dir, revision[i]),
		     *full = n == 1 ? text("%s", name) : text("%s@%.8s", name, revision[i]);
		const struct tree t = {
			.search = s, .source = source, .old_revision = known && strcmp(revision[i], newest) != 0
		};
		ok = path && full && walk(&t, path, full, DEEPEST);
		free(path);
		free(full);
	}
	free_list(revision, n);
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
	bool ok = list_folder(s, root, &names, &n);

	for (size_t i = 0; ok && i < n; i++) {
		if (strncmp(names[i], "models--", 8) == 0)
			ok = see_repository(s, source, root, names[i]);
		else if (flat)
			ok = see_entry(&t, root, "", names[i], DEEPEST);
	}
	free_list(names, n);
	return ok;
}

/* ---- ollama: manifests/REGISTRY/OWNER/MODEL/TAG says which of blobs/ it is */

static bool is_digest(const char *d)
{
	return d && strncmp(d, "sha256:", 7) == 0 && strlen(d) == 71 && strspn(d + 7, "0123456789abcdef") == 64;
}

/* The blob of the layer of that kind; NULL: there is none. */
static const char *find_layer(const json_t *manifest, const char *kind)
{
	const json_t *layer;
	size_t i;

	json_array_foreach(json_object_get(manifest, "layers"), i, layer)
	{
		const char *type = json_string_value(json_object_get(layer, "mediaType"));
		if (type && strcmp(type, kind) == 0)
			return json_string_value(json_object_get(layer, "digest"));
	}
	return NULL;
}

/* malloc'ed. NULL: no memory, or no digest. */
static char *blob_of(const char *root, const char *digest)
{
	return is_digest(digest) ? text("%s/blobs/sha256-%s", root, digest + 7) : NULL;
}

static bool see_manifest(struct model_search *s, const char *root, const char *path, char *name)
{
	struct file file = { 0 };
	struct error err = { 0 };
	json_t *m = file_open(&file, path, &err) && file_text(&file, MANIFEST_MAX, &err)
	                    ? json_read(file.base, file.size, MANIFEST_MAX, file.label, &err)
	                    : NULL;
	const char *digest = find_layer(m, "application/vnd.ollama.image.model"),
		   *sight = find_layer(m, "application/vnd.ollama.image.projector");
	const bool adapter = find_layer(m, "application/vnd.ollama.image.adapter") != NULL, good = is_digest(digest),
		   odd = sight && !is_digest(sight);
	char *blob = blob_of(root, digest), *projector = blob_of(root, sight);
	char *trouble = !m        ? strdup(err.text)
	                : !good   ? text("its manifest names no model by a sha256 digest")
	                : odd     ? text("its manifest names an image encoder without a sha256 digest")
	                : adapter ? text("it has an adapter (LoRA), which jitrun would leave out")
	                          : NULL;
	const bool memory = (blob || !good) && (projector || !sight || odd) &&
	                    (trouble || (m && good && !odd && !adapter)) && err.code != ERROR_MEMORY;

	json_decref(m);
	file_close(&file);
	struct found_model p = { .source = "ollama",
		                 .name = name,
		                 .path = blob,
		                 .trouble = trouble,
		                 .manifest = strdup(path),
		                 .projector = projector };
	if (memory && p.manifest)
		return add(s, p);
	free_found(&p);
	return false;
}

/* "registry.ollama.ai/library/qwen3/0.6b" as people know it: "qwen3:0.6b". */
static char *manifest_name(const char *below)
{
	static const char *const usual[] = { "registry.ollama.ai/", "library/" };

	for (size_t i = 0; i < 2; i++)
		below += strncmp(below, usual[i], strlen(usual[i])) == 0 ? strlen(usual[i]) : 0;
	char *name = strdup(below), *slash = name ? strrchr(name, '/') : NULL;
	if (slash)
		*slash = ':';
	return name;
}

/* So many folders above the manifests. */
static bool walk_manifests(struct model_search *s, const char *root, const char *below, unsigned levels)
{
	char *dir = text("%s/manifests%s%s", root, *below ? "/" : "", below), **names = NULL;
	size_t n = 0;
	bool ok = dir && list_folder(s, dir, &names, &n);

	for (size_t i = 0; ok && i < n; i++) {
		char *next = text("%s%s%s", below, *below ? "/" : "", names[i]), *path = text("%s/%s", dir, names[i]);
		ok = next && path &&
		     (levels ? walk_manifests(s, root, next, levels - 1)
		             : kind_of(path) == S_IFDIR || see_manifest(s, root, path, manifest_name(next)));
		free(next);
		free(path);
	}
	free_list(names, n);
	free(dir);
	return ok;
}

static bool walk_ollama(struct model_search *s, const char *source, const char *root)
{
	return walk_manifests(s, root, "", 3);
}

/* Two tags of a model may have different ones. */
static char *projector_of(const struct model_search *s, const char *blob, struct error *err)
{
	const char *one = NULL;

	for (size_t i = 0; i < s->n; i++) {
		const struct found_model *p = &s->found[i];
		const char *digest = p->path ? strrchr(p->path, '/') : NULL;
		if (!p->projector || !digest || strcmp(digest, blob) != 0)
			continue;
		if (one && strcmp(one, p->projector) != 0) {
			error_set(err, ERROR_ARGUMENT,
			          "ollama's store has several image encoders for this model (%.80s, %.80s), expected "
			          "one; --mmproj FILE names it",
			          strrchr(one, '/') + 1, strrchr(p->projector, '/') + 1);
			return NULL;
		}
		one = p->projector;
	}
	char *out = one ? strdup(one) : NULL;
	if (one && !out)
		error_set(err, ERROR_MEMORY, "no memory for the name of a file");
	return out;
}

char *model_search_projector(const char *model, struct error *err)
{
	static const char blobs[] = "/blobs";
	const char *blob = strrchr(model, '/');
	const size_t n = blob ? (size_t)(blob - model) : 0;
	struct model_search s = { 0 };
	char *out = NULL;

	if (n < strlen(blobs) || strncmp(blob - strlen(blobs), blobs, strlen(blobs)) != 0 ||
	    strncmp(blob, "/sha256-", 8) != 0)
		return NULL;
	char *root = text("%.*s", (int)(n - strlen(blobs)), model);
	if (root && walk_ollama(&s, "ollama", *root ? root : "/"))
		out = projector_of(&s, blob, err);
	else
		error_set(err, ERROR_MEMORY, "no memory for a list of %zu models", s.n);
	free(root);
	model_search_free(&s);
	return out;
}

/* ---- where they are */

/* A folder is the value of a variable, with more behind it. */
static const struct root {
	const char *source, *variable, *behind;
	bool (*walk)(struct model_search *s, const char *source, const char *root);
} roots[] = {
	{ "ollama", "OLLAMA_MODELS", "", walk_ollama },
	{ "ollama", "HOME", "/.ollama/models", walk_ollama },
	{ "ollama", NULL, "/usr/share/ollama/.ollama/models", walk_ollama },
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
	char *path = text("%s%s", value, r->behind);
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
		free_found(&s->found[i]);
	free(s->found);
	free_list(s->note, s->n_notes);
	free_list(s->searched, s->n_searched);
}
