/* loaders/model_index.c - model.safetensors.index.json: which shard holds which tensor.
 *
 * The index is scanned in place, once for the shards' names and once more, when they are parsed, to see that each
 * tensor lies where the index says. Rule: a shard's name is the name of a file in the same directory, never a path.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/json_scan.h"
#include "loaders/model_load.h"

enum { MAX_SHARDS = 4096, MAX_INDEX = 1 << 25, MAX_FILE_NAME = 255 };

struct visit {
	struct model_paths *paths;                /* first scan */
	const struct model_file *file;            /* second scan */
	const struct model_paths *known;
	const char *label;
	uint32_t last;                            /* the shard of the entry before: mostly the same again */
	struct error *err;
};

typedef bool visit_fn(struct visit *v, const char *tensor, uint64_t n, const char *shard);

static bool shard_name(struct visit *v, const struct json_scan_text *t, char out[MAX_FILE_NAME + 1])
{
	char text[100];
	uint64_t n = t->n <= MAX_FILE_NAME ? json_scan_unescape(t, out) : 0;

	out[n] = 0;
	if (n == 0 || memchr(out, '/', n) || memchr(out, 0, n) || strcmp(out, "..") == 0 || strcmp(out, ".") == 0)
		return error_set(v->err, ERROR_FORMAT, "%s: names the shard \"%s\", expected the name of a file in the same directory", v->label,
			error_quote(text, sizeof text, t->p, t->n));
	return true;
}

static bool bad_json(struct visit *v, const struct json_scan *j)
{
	return error_set(v->err, ERROR_FORMAT, "%s: is not valid at byte %" PRIu64 ": %s", v->label, j->at, j->problem ? j->problem : "unknown structure");
}

static bool scan_entry(struct visit *v, struct json_scan *j, visit_fn *visit)
{
	struct json_scan_text name, file;
	char shard[MAX_FILE_NAME + 1];

	if (!json_scan_member(j, &name) || !json_scan_string(j, &file))
		return bad_json(v, j);
	if (!shard_name(v, &file, shard))
		return false;
	if (!name.escaped)
		return visit(v, name.p, name.n, shard);
	char *plain = malloc(name.n);
	if (!plain)
		return error_set(v->err, ERROR_MEMORY, "%s: no memory for a tensor's name", v->label);
	bool ok = visit(v, plain, json_scan_unescape(&name, plain), shard);
	free(plain);
	return ok;
}

static bool scan(struct visit *v, const struct mapped *index, visit_fn *visit)
{
	struct json_scan j = json_scan_of(index->base, index->size);
	struct json_scan_text key;
	bool seen = false;

	for (bool more = json_scan_open(&j, '{', '}'); more; more = json_scan_more(&j, '}')) {
		if (!json_scan_member(&j, &key))
			return bad_json(v, &j);
		if (!json_scan_is(&key, "weight_map")) {
			if (!json_scan_skip(&j))
				return bad_json(v, &j);
			continue;
		}
		if (seen)
			return error_set(v->err, ERROR_FORMAT, "%s: has weight_map more than once", v->label);
		seen = true;
		for (bool entry = json_scan_open(&j, '{', '}'); entry; entry = json_scan_more(&j, '}'))
			if (!scan_entry(v, &j, visit))
				return false;
	}
	if (!json_scan_finish(&j))
		return bad_json(v, &j);
	return seen || error_set(v->err, ERROR_FORMAT, "%s: has no weight_map", v->label);
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

static bool collect(struct visit *v, const char *tensor, uint64_t n, const char *shard)
{
	struct model_paths *p = v->paths;
	char text[100];

	if (find_shard(v, p, shard) != UINT32_MAX)
		return true;
	error_quote(text, sizeof text, shard, strlen(shard));
	if (p->n_parts == MAX_SHARDS)
		return error_set(v->err, ERROR_FORMAT, "%s: names more than %d shards", v->label, MAX_SHARDS);
	if (!model_exists(p->dir, shard))     /* so that the files bound the list, not the index */
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

static bool compare(struct visit *v, const char *tensor, uint64_t n, const char *shard)
{
	char text[100];
	uint32_t part = find_shard(v, v->known, shard), i = names_find(&v->file->names, tensor, n);

	if (i != NAMES_NONE && v->file->entry[i].part == part)
		return true;
	return error_set(v->err, ERROR_FORMAT, "%s: tensor %s is not in %s, where the index says it is", v->label, error_quote(text, sizeof text, tensor, n), shard);
}

bool model_read_index(struct model_paths *out, const struct mapped *index, struct error *err)
{
	struct visit v = { .paths = out, .label = index->label, .err = err };

	if (index->size > MAX_INDEX)
		return error_set(err, ERROR_FORMAT, "%s: has %" PRIu64 " bytes, expected at most %d for an index", index->label, index->size, MAX_INDEX);
	if (!scan(&v, index, collect))
		return false;
	return out->n_parts || error_set(err, ERROR_FORMAT, "%s: the weight_map is empty", index->label);
}

bool model_check_index(const struct model_file *f, const struct model_paths *paths, const struct mapped *index, struct error *err)
{
	struct visit v = { .file = f, .known = paths, .label = index->label, .err = err };

	return scan(&v, index, compare);
}
