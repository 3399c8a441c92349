/* programs/common/model_store.c - models in ollama's store: what its manifests name. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_read.h"
#include "loaders/files/file.h"
#include "programs/common/model_search_parts.h"

enum { MANIFEST_MAX = 1 << 20 };

/* manifests/REGISTRY/OWNER/MODEL/TAG says which of blobs/ it is. */

static bool is_digest(const char *d)
{
	return d && strncmp(d, "sha256:", 7) == 0 && strlen(d) == 71 && strspn(d + 7, "0123456789abcdef") == 64;
}

/* The digest of the blob of the layer of that kind; NULL: the manifest has no such layer. */
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
	return is_digest(digest) ? search_text("%s/blobs/sha256-%s", root, digest + 7) : NULL;
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
	                : !good   ? search_text("its manifest names no model by a sha256 digest")
	                : odd     ? search_text("its manifest names an image encoder without a sha256 digest")
	                : adapter ? search_text("it has an adapter (LoRA), which jitrun would leave out")
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
		return search_add(s, p);
	search_free_found(&p);
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
	char *dir = search_text("%s/manifests%s%s", root, *below ? "/" : "", below), **names = NULL;
	size_t n = 0;
	bool ok = dir && search_list(s, dir, &names, &n);

	for (size_t i = 0; ok && i < n; i++) {
		char *next = search_text("%s%s%s", below, *below ? "/" : "", names[i]),
		     *path = search_text("%s/%s", dir, names[i]);
		ok = next && path &&
		     (levels ? walk_manifests(s, root, next, levels - 1)
		             : search_kind(path) == S_IFDIR || see_manifest(s, root, path, manifest_name(next)));
		free(next);
		free(path);
	}
	search_free_list(names, n);
	free(dir);
	return ok;
}

bool search_store(struct model_search *s, const char *source, const char *root)
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
	char *root = search_text("%.*s", (int)(n - strlen(blobs)), model);
	if (root && search_store(&s, "ollama", *root ? root : "/"))
		out = projector_of(&s, blob, err);
	else
		error_set(err, ERROR_MEMORY, "no memory for a list of %zu models", s.n);
	free(root);
	model_search_free(&s);
	return out;
}
