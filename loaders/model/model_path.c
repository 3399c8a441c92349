/* loaders/model/model_path.c - which files a path means: a .gguf file, and the other parts where its keys say that it
 * is one of several, a .safetensors file, a directory with either.
 *
 * Never: reads more than a file's first bytes, guesses between several models in one directory. A name alone makes
 * no file a part: files are renamed, and parts are joined.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loaders/files/file_kind.h"
#include "loaders/model/model_load.h"

enum { MAX_PARTS = 4096 };

static const char index_name[] = "model.safetensors.index.json", single_name[] = "model.safetensors";

static bool no_memory(struct error *err) { return error_set(err, ERROR_MEMORY, "no memory for the name of a file"); }

char *model_join(const char *dir, const char *name, struct error *err)
{
	char *out = NULL;

	if (asprintf(&out, "%s%s", dir, name) >= 0)
		return out;
	no_memory(err);
	return NULL;
}

bool model_exists(const char *dir, const char *name)
{
	struct stat st;
	char *path = model_join(dir, name, NULL);
	bool yes = path && stat(path, &st) == 0;

	free(path);
	return yes;
}

void model_paths_free(struct model_paths *p)
{
	for (uint32_t i = 0; i < p->n_parts; i++)
		free(p->part[i]);
	free(p->part);
	free(p->dir);
	memset(p, 0, sizeof *p);
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

/* As systems that do not tell large letters from small ones write it. */
static bool has_extension(const char *s, const char *extension)
{
	size_t n = strlen(s), m = strlen(extension);

	return n >= m && strcasecmp(s + n - m, extension) == 0;
}

/* "<stem>-00002-of-00003<extension>" -> 2, 3 and the length of the stem. */
static bool split_name(const char *path, const char *extension, uint32_t *part, uint32_t *count, size_t *stem)
{
	size_t n = strlen(path), m = strlen("-00001-of-00001") + strlen(extension);

	if (n < m || !has_extension(path, extension))
		return false;
	const char *s = path + n - m;
	static const char pattern[] = "-ddddd-of-ddddd";
	for (size_t i = 0; i < sizeof pattern - 1; i++)
		if (pattern[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != pattern[i])
			return false;
	*part = (uint32_t)strtoul(s + 1, NULL, 10);
	*count = (uint32_t)strtoul(s + 10, NULL, 10);
	*stem = n - m;
	return true;
}

static bool add_part(struct model_paths *out, char *path, struct error *err)
{
	if (!path)
		return no_memory(err);
	out->part[out->n_parts++] = path;
	return true;
}

static bool locate_gguf(struct model_paths *out, const char *path, struct error *err)
{
	out->format = MODEL_GGUF;
	out->part = calloc(1, sizeof *out->part);
	return out->part ? add_part(out, strdup(path), err) : no_memory(err);
}

/* The names of the second part and those behind it. */
static bool add_later_parts(struct model_paths *out, uint32_t count, size_t stem, struct error *err)
{
	const char *first = out->part[0];
	const char *extension = first + strlen(first) - strlen(".gguf");
	char **part = realloc(out->part, count * sizeof *part), *name = NULL;

	if (!part)
		return no_memory(err);
	out->part = part;
	for (uint32_t i = 2; i <= count; i++)
		if (asprintf(&name, "%.*s-%05" PRIu32 "-of-%05" PRIu32 "%s", (int)stem, first, i, count, extension) <
		            0 ||
		    !add_part(out, name, err))
			return no_memory(err);
	return true;
}

bool model_locate_parts(struct model_paths *out, const struct gguf *first, struct error *err)
{
	uint64_t no = 0, count = 0;
	uint32_t part, of;
	size_t stem;
	bool found;

	if (!gguf_u64(first, "split.count", &count, &found, err) || !gguf_u64(first, "split.no", &no, &found, err))
		return false;
	if (count <= 1)
		return true;
	if (count > MAX_PARTS)
		return error_set(err, ERROR_FORMAT, "%s: key split.count is %" PRIu64 ", expected 0 to %d", first->path,
		                 count, MAX_PARTS);
	if (no != 0)
		return error_set(err, ERROR_ARGUMENT,
		                 "%s: is part %" PRIu64 " of %" PRIu64 " of a split model, expected its first part",
		                 first->path, no + 1, count);
	if (!split_name(out->part[0], ".gguf", &part, &of, &stem) || part != 1 || of != count)
		return error_set(err, ERROR_FORMAT,
		                 "%s: is part 1 of %" PRIu64
		                 " of a split model by its key split.count, expected a name "
		                 "that ends in -00001-of-%05" PRIu64 ".gguf, which leads to the other parts",
		                 first->path, count, count);
	return add_later_parts(out, of, stem, err);
}

static bool locate_safetensors(struct model_paths *out, const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/');
	uint32_t part, count;
	size_t stem;

	out->format = MODEL_HF;
	out->dir = strndup(path, slash ? (size_t)(slash + 1 - path) : 0);
	if (!out->dir)
		return no_memory(err);
	/* one shard stands for all of them */
	out->sharded = split_name(path, ".safetensors", &part, &count, &stem) && model_exists(out->dir, index_name);
	if (out->sharded)
		return true;
	out->part = calloc(1, sizeof *out->part);
	return out->part ? add_part(out, strdup(path), err) : no_memory(err);
}

/* What a directory holds: how many of each, and one of them; of GGUF models the first few by name. */
enum { NAMED = 4 };
struct listing {
	unsigned gguf, safetensors, other;
	char *gguf_name[NAMED], *one_safetensors, *one_other; /* other: weights that jitrun does not read */
};

static void note(unsigned *count, char **one, const char *name)
{
	if (++*count == 1)
		*one = strdup(name);
}

/* The order of a directory is the file system's: here it is that of the names. */
static void note_gguf(struct listing *l, const char *name)
{
	char *more = strdup(name);

	l->gguf++;
	for (size_t i = 0; i < NAMED && more; i++)
		if (!l->gguf_name[i] || strcmp(more, l->gguf_name[i]) < 0) {
			char *next = l->gguf_name[i];
			l->gguf_name[i] = more;
			more = next;
		}
	free(more);
}

static bool refuse_several(const char *label, const struct listing *l, struct error *err)
{
	char names[300] = "";
	size_t at = 0;

	for (size_t i = 0; i < NAMED && l->gguf_name[i] && at < sizeof names; i++)
		at += (size_t)snprintf(names + at, sizeof names - at, "%s%.60s", i ? ", " : "", l->gguf_name[i]);
	return error_set(err, ERROR_ARGUMENT, "%.150s: holds %u GGUF models (%s%s), expected one; name the file", label,
	                 l->gguf, names, l->gguf > NAMED ? ", ..." : "");
}

/* A part that another file in the directory leads to. */
static bool is_later_part(const char *dir, const char *name)
{
	uint32_t part, count;
	size_t stem;
	char first[300];

	if (!split_name(name, ".gguf", &part, &count, &stem) || part == 1)
		return false;
	snprintf(first, sizeof first, "%.*s-00001%s", (int)stem, name, name + stem + strlen("-00001"));
	return model_exists(dir, first);
}

static bool list(struct listing *l, const char *dir, struct error *err)
{
	char label[200];
	DIR *d = opendir(dir);

	if (!d) {
		file_label(label, dir);
		return error_set(err, ERROR_IO, "%s: the directory cannot be read: %s", label, strerror(errno));
	}
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (has_extension(e->d_name, ".gguf")) {
			if (!is_later_part(dir, e->d_name) && !strcasestr(e->d_name, "mmproj")) /* vision/pair.c */
				note_gguf(l, e->d_name);
		} else if (has_extension(e->d_name, ".safetensors"))
			note(&l->safetensors, &l->one_safetensors, e->d_name);
		else if (ends_with(e->d_name, ".bin") || ends_with(e->d_name, ".pth") || ends_with(e->d_name, ".pt") ||
		         ends_with(e->d_name, ".onnx"))
			note(&l->other, &l->one_other, e->d_name);
	}
	closedir(d);
	return true;
}

static bool locate_in(struct model_paths *out, const char *dir, const char *name, bool gguf, struct error *err)
{
	char *path = model_join(dir, name, err);
	bool ok = path && (gguf ? locate_gguf(out, path, err) : locate_safetensors(out, path, err));

	free(path);
	return ok;
}

static bool choose(struct model_paths *out, const char *dir, const struct listing *l, struct error *err)
{
	char label[200];

	file_label(label, dir);
	/* The order of transformers: an index may be left over beside the whole model. */
	if (model_exists(dir, single_name))
		return locate_in(out, dir, single_name, false, err);
	if (model_exists(dir, index_name)) {
		out->format = MODEL_HF;
		out->sharded = true;
		out->dir = strdup(dir);
		return out->dir || no_memory(err);
	}
	if (l->gguf == 1 && l->gguf_name[0])
		return locate_in(out, dir, l->gguf_name[0], true, err);
	if (l->gguf > 1)
		return refuse_several(label, l, err);
	if (l->safetensors == 1 && l->one_safetensors)
		return locate_in(out, dir, l->one_safetensors, false, err);
	if (l->safetensors > 1)
		return error_set(err, ERROR_ARGUMENT, "%s: holds %u .safetensors files and neither %s nor %s", label,
		                 l->safetensors, single_name, index_name);
	return error_set(err, ERROR_ARGUMENT, "%s: holds no model, expected a .gguf or .safetensors file%s%.80s%s",
	                 label, l->one_other ? " (there is " : "", l->one_other ? l->one_other : "",
	                 l->one_other ? ")" : "");
}

static bool locate_directory(struct model_paths *out, const char *path, struct error *err)
{
	struct listing l = { 0 };
	char *dir = model_join(path, ends_with(path, "/") ? "" : "/", err);
	bool ok = dir && list(&l, dir, err) && choose(out, dir, &l, err);

	for (size_t i = 0; i < NAMED; i++)
		free(l.gguf_name[i]);
	free(l.one_safetensors);
	free(l.one_other);
	free(dir);
	return ok;
}

/* An adapter is part of what transformers loads from its directory: with the model there, or with another that it
 * names. */
static bool no_adapter(const char *dir, const char *label, struct error *err)
{
	return !model_exists(dir, "adapter_config.json") ||
	       error_set(err, ERROR_UNSUPPORTED,
	                 "%s: holds an adapter (LoRA, adapter_config.json), which changes a model; jitrun runs models "
	                 "without adapters",
	                 label);
}

/* A file of another name: its first bytes decide. */
static bool locate_unnamed(struct model_paths *out, const char *path, struct error *err)
{
	struct error why = { 0 };
	struct file f;
	char magic[4] = "";

	if (!file_open(&f, path, err))
		return false;
	bool ok = f.size < sizeof magic || file_read(&f, 0, sizeof magic, magic, err);
	bool gguf = ok && memcmp(magic, "GGUF", 4) == 0;
	if (ok && !gguf) {
		ok = error_set(&why, ERROR_FORMAT, "%s: is neither a GGUF file nor named .safetensors", f.label);
		file_say_kind(&f, &why);
		error_set(err, why.code, "%s", why.text);
	}
	file_close(&f);
	return ok && locate_gguf(out, path, err);
}

bool model_locate(struct model_paths *out, const char *path, struct error *err)
{
	struct stat st;
	char label[200];

	memset(out, 0, sizeof *out);
	file_label(label, path);
	bool ok;
	if (stat(path, &st) != 0)
		ok = error_set(err, ERROR_IO, "%s: cannot be opened: %s", label, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		ok = locate_directory(out, path, err);
	else if (has_extension(path, ".gguf"))
		ok = locate_gguf(out, path, err);
	else if (has_extension(path, ".safetensors"))
		ok = locate_safetensors(out, path, err);
	else
		ok = locate_unnamed(out, path, err);
	ok = ok && (out->format == MODEL_GGUF || no_adapter(out->dir, label, err));
	if (!ok)
		model_paths_free(out);
	return ok;
}
