#include "pull/choose.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARD_TAIL = sizeof "-00001-of-00002" - 1, NAMES_TOLD = 240, SETS_MAX = 64 };

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcasecmp(s + n - m, end) == 0;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool path_is_shard(const char *path, size_t *prefix, unsigned *part, unsigned *of)
{
	const char *dot = strrchr(path, '.');
	int used = 0;

	if (!dot || dot - path <= SHARD_TAIL)
		return false;
	const char *tail = dot - SHARD_TAIL;
	if (strspn(tail + 1, "0123456789") != 5 || sscanf(tail, "-%5u-of-%5u%n", part, of, &used) != 2 ||
	    used != SHARD_TAIL || *part < 1 || *part > *of)
		return false;
	*prefix = (size_t)(tail - path);
	return true;
}

/* What belongs to a model, or helps to make one, and is none. */
static bool is_gguf_model(const char *path)
{
	static const char *const others[] = { "mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-" };
	const char *name = base_name(path);

	if (!ends_with(name, ".gguf"))
		return false;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strstr(name, others[i]))
			return false;
	return true;
}

static bool is_first(const char *path)
{
	size_t prefix;
	unsigned part, of;

	return !path_is_shard(path, &prefix, &part, &of) || part == 1;
}

bool path_has_quant(const char *path, const char *quant)
{
	size_t n = strlen(quant);

	for (const char *at = path; n && strlen(at) >= n; at++)
		if (strncasecmp(at, quant, n) == 0 && strchr(".-/", at[n]) && (at == path || !isalnum((uint8_t)at[-1])))
			return true;
	return false;
}

static struct listing_file *find_quant(const struct listing *l, const char *quant)
{
	for (size_t i = 0; i < l->n; i++)
		if (is_gguf_model(l->file[i].path) && is_first(l->file[i].path) &&
		    (!quant || path_has_quant(l->file[i].path, quant)))
			return &l->file[i];
	return NULL;
}

static struct listing_file *find_file(const struct listing *l, const char *path)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->file[i].path, path) == 0)
			return &l->file[i];
	return NULL;
}

/* Names of files, as many as a sentence holds. */
static void list_names(const struct listing *l, bool gguf, char out[NAMES_TOLD])
{
	size_t n = 0, more = 0;

	out[0] = 0;
	for (size_t i = 0; i < l->n; i++) {
		const char *path = l->file[i].path;
		if (gguf && (!is_gguf_model(path) || !is_first(path)))
			continue;
		if (more || n + strlen(path) + 20 > NAMES_TOLD) {
			more++;
			continue;
		}
		n += (size_t)snprintf(out + n, NAMES_TOLD - n, "%s%s", n ? ", " : "", path);
	}
	if (more)
		snprintf(out + n, NAMES_TOLD - n, " and %zu more", more);
}

/* The parts of the model that the file is one of, itself among them. */
static bool mark_shards(struct listing *l, struct listing_file *one, struct error *err)
{
	size_t prefix, other;
	unsigned part, of, other_part, other_of, want = 1;

	one->chosen = true;
	if (!path_is_shard(one->path, &prefix, &part, &of))
		return true;
	bool *seen = calloc(of + 1, sizeof *seen);
	if (!seen)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %u parts", of);
	for (size_t i = 0; i < l->n; i++) {
		struct listing_file *f = &l->file[i];
		if (path_is_shard(f->path, &other, &other_part, &other_of) && other == prefix && other_of == of &&
		    strncmp(f->path, one->path, prefix) == 0 &&
		    strcasecmp(strrchr(f->path, '.'), strrchr(one->path, '.')) == 0)
			seen[other_part] = f->chosen = true;
	}
	while (want <= of && seen[want])
		want++;
	free(seen);
	return want > of ||
	       error_set(err, ERROR_FORMAT, "\"%.200s\" is one of %u parts, and the hub does not list part %u",
	                 one->path, of, want);
}

/* Folders that two files have in common; -1: the second lies in another one. */
static int shared_folders(const char *model, const char *other)
{
	const char *end = strrchr(other, '/');
	size_t n = end ? (size_t)(end - other) + 1 : 0;
	int depth = 0;

	if (strncmp(model, other, n) != 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		depth += other[i] == '/';
	return depth;
}

/* Q4_0 is 4, BF16 is 16; 0: the name does not say. */
static int bits_of(const char *path)
{
	const char *name = base_name(path);

	for (const char *at = name + strlen(name); at > name; at--)
		if ((at == name || strchr("-.", at[-1])) && strchr("QqIiFfBbMmNnTt", *at)) {
			size_t letters = strspn(at, "QqIiFfBbXxMmPpNnVvTt");
			if (letters && letters <= 5 && isdigit((uint8_t)at[letters]))
				return atoi(at + letters);
		}
	return 0;
}

static void mark_mmproj(struct listing *l, const char *model)
{
	struct listing_file *best = NULL;
	int best_depth = 0, best_far = 0;

	for (size_t i = 0; i < l->n; i++) {
		const char *path = l->file[i].path;
		int depth = ends_with(path, ".gguf") && strstr(path, "mmproj") ? shared_folders(model, path) : -1,
		    far = abs(bits_of(path) - bits_of(model));
		if (depth < 0 || (best && (depth < best_depth || (depth == best_depth && far >= best_far))))
			continue;
		best = &l->file[i];
		best_depth = depth;
		best_far = far;
	}
	if (best)
		best->chosen = true;
}

/* Of a layer behind pooling: "2_Dense/config.json" and its weights. */
static bool is_of_dense_layer(const char *path)
{
	const char *slash = strchr(path, '/'), *dense = strstr(path, "_Dense/");

	return dense && slash == dense + strlen("_Dense") &&
	       (strcmp(slash, "/config.json") == 0 || strcmp(slash, "/model.safetensors") == 0);
}

/* In a folder of safetensors, what is read beside the weights. */
static bool is_beside(const char *path)
{
	static const char *const names[] = { "tokenizer.model", "merges.txt", "vocab.txt", "1_Pooling/config.json" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(path, names[i]) == 0)
			return true;
	return is_of_dense_layer(path) ||
	       (!strchr(path, '/') && (ends_with(path, ".json") || ends_with(path, ".jinja")));
}

static bool is_model_weights(const char *path)
{
	return !strchr(path, '/') && strncmp(path, "model", 5) == 0 && ends_with(path, ".safetensors");
}

static bool choose_folder(struct listing *l, struct error *err)
{
	size_t weights = 0, named = 0, sets = 0;

	for (size_t i = 0; i < l->n; i++)
		named += is_model_weights(l->file[i].path);
	for (size_t i = 0; i < l->n; i++) {
		struct listing_file *f = &l->file[i];
		bool tensors = !strchr(f->path, '/') && ends_with(f->path, ".safetensors") &&
		               (!named || is_model_weights(f->path));
		weights += tensors;
		if (tensors && !f->chosen && ++sets > SETS_MAX)
			return error_set(err, ERROR_FORMAT, "it has more than %d models in safetensors", SETS_MAX);
		if (tensors && !f->chosen && !mark_shards(l, f, err))
			return false;
		f->chosen |= is_beside(f->path);
	}
	if (!weights)
		return error_set(err, ERROR_UNSUPPORTED, "it has neither GGUF nor safetensors files");
	if (!find_file(l, "config.json"))
		return error_set(err, ERROR_UNSUPPORTED, "it has safetensors files and no config.json");
	return true;
}

static struct listing_file *choose_gguf(const struct listing *l, const struct reference *r, struct error *err)
{
	struct listing_file *f = *r->quant && ends_with(r->quant, ".gguf") ? find_file(l, r->quant)
	                         : *r->quant                               ? find_quant(l, r->quant)
	                                                                   : find_quant(l, "Q4_K_M");
	char names[NAMES_TOLD];

	if (!f && !*r->quant)
		f = find_quant(l, "Q8_0");
	if (!f && !*r->quant)
		f = find_quant(l, NULL);
	if (f)
		return f;
	list_names(l, true, names);
	error_set(err, ERROR_ARGUMENT, "it has no \"%s\"; there are: %s", r->quant, names);
	return NULL;
}

bool choose_files(struct listing *l, const struct reference *r, bool mmproj, const struct listing_file **model,
                  struct error *err)
{
	struct listing_file *f = NULL;
	char names[NAMES_TOLD];

	*model = NULL;
	if (*r->file) {
		f = find_file(l, r->file);
		list_names(l, ends_with(r->file, ".gguf"), names);
		if (!f)
			return error_set(err, ERROR_ARGUMENT, "it has no file \"%.150s\"; there are: %s", r->file,
			                 *names ? names : "no GGUF files");
	} else if (find_quant(l, NULL)) {
		if (!(f = choose_gguf(l, r, err)))
			return false;
	} else if (*r->quant) {
		return error_set(err, ERROR_ARGUMENT, "it has no \"%s\", as it has no GGUF files", r->quant);
	} else {
		return choose_folder(l, err);
	}
	*model = f;
	if (!mark_shards(l, f, err))
		return false;
	if (mmproj && is_gguf_model(f->path))
		mark_mmproj(l, f->path);
	return true;
}
