/* loaders/model/model_index.c - model.safetensors.index.json: which files are the shards of a model.
 *
 * The index is walked for the shards' names alone. Where a tensor lies, the shards say themselves: an index may name
 * tensors that were left out, and whether one is missing is seen when all are bound. Rule: a shard's name is the name
 * of a file in the same directory, never a path.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "loaders/model/model_load.h"

enum { MAX_SHARDS = 4096, MAX_FILE_NAME = 255 };

struct visit {
	struct model_paths *paths;
	const char *label;
	uint32_t last; /* the shard of the entry before: mostly the same again */
	struct error *err;
};

typedef bool visit_fn(struct visit *v, const char *tensor, const char *shard);

static bool check_shard(struct visit *v, const char *tensor, const json_t *shard)
{
	char text[100], key[100];
	const char *name = json_string_value(shard);
	size_t n = json_string_length(shard);

	if (!json_is_text(shard))
		return error_set(v->err, ERROR_FORMAT,
		                 "%s: weight_map gives tensor %s %s, expected a string that names its file", v->label,
		                 error_quote(key, sizeof key, tensor, strlen(tensor)), json_kind(shard));
	if (n == 0 || n > MAX_FILE_NAME || memchr(name, '/', n) || memchr(name, 0, n) || strcmp(name, "..") == 0 ||
	    strcmp(name, ".") == 0)
		return error_set(v->err, ERROR_FORMAT,
		                 "%s: names the shard \"%s\", expected the name of a file in the same directory",
		                 v->label, error_quote(text, sizeof text, name, n));
	return true;
}

static bool walk_map(struct visit *v, json_t *root, visit_fn *visit)
{
	json_t *map = json_object_get(root, "weight_map"), *shard;
	const char *tensor;

	if (!json_is_object(root))
		return error_set(v->err, ERROR_FORMAT, "%s: its content is %s, expected an object", v->label,
		                 json_kind(root));
	if (!map)
		return error_set(v->err, ERROR_FORMAT, "%s: has no weight_map", v->label);
	if (!json_is_object(map))
		return error_set(v->err, ERROR_FORMAT, "%s: weight_map is %s, expected an object", v->label,
		                 json_kind(map));
	json_object_foreach(map, tensor, shard) if (!check_shard(v, tensor, shard) ||
	                                            !visit(v, tensor, json_string_value(shard))) return false;
	return true;
}

static bool walk(struct visit *v, const struct file *index, visit_fn *visit)
{
	json_t *root = json_read(index->base, index->size, JSON_MAX_INDEX, index->label, v->err);
	bool ok = root && walk_map(v, root, visit);

	json_decref(root);
	return ok;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static uint32_t find_shard(struct visit *v, const struct model_paths *p, const char *shard)
{
	if (v->last < p->n_parts && strcmp(base_name(p->part[v->last]), shard) == 0)
		return v->last;
	for (uint32_t i = 0; i < p->n_parts; i++)
		if (strcmp(base_name(p->part[i]), shard) == 0)
			return v->last = i;
	return UINT32_MAX;
}

static bool collect(struct visit *v, const char *tensor, const char *shard)
{
	struct model_paths *p = v->paths;
	char text[100];

	if (find_shard(v, p, shard) != UINT32_MAX)
		return true;
	error_quote(text, sizeof text, shard, strlen(shard));
	if (p->n_parts == MAX_SHARDS)
		return error_set(v->err, ERROR_FORMAT, "%s: names more than %d shards", v->label, MAX_SHARDS);
	if (!model_exists(p->dir, shard)) /* so that the files bound the list, not the index */
		return error_set(v->err, ERROR_IO, "%s: names the shard %s, which does not exist", v->label, text);
	char *path = model_join(p->dir, shard, v->err);
	char **part = realloc(p->part, (p->n_parts + 1) * sizeof *part);
	if (part)
		p->part = part;
	if (!path || !part) {
		free(path);
		return error_set(v->err, ERROR_MEMORY, "%s: no memory for the shard %s", v->label, text);
	}
	p->part[p->n_parts++] = path;
	return true;
}

bool model_read_index(struct model_paths *out, const struct file *index, struct error *err)
{
	struct visit v = { .paths = out, .label = index->label, .err = err };

	if (!walk(&v, index, collect))
		return false;
	return out->n_parts || error_set(err, ERROR_FORMAT, "%s: the weight_map is empty", index->label);
}
