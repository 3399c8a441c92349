/* programs/jitrun/model_layers.c - the layers of a model in ollama's store: template, system message, parameters. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "loaders/files/file.h"
#include "base/json_read.h"
#include "programs/common/model_search.h"

enum { MANIFEST_MAX = 1 << 20 };

/* ROOT/manifests/..., where ROOT/blobs/ has the layers. 0: it is in no store. */
static size_t root_of(const char *manifest)
{
	static const char folder[] = "/manifests/";
	size_t n = 0;

	for (const char *at = manifest; (at = strstr(at, folder)); at++)
		n = (size_t)(at - manifest);
	return n;
}

static bool is_digest(const char *d)
{
	return strncmp(d, "sha256:", 7) == 0 && strlen(d) == 71 && strspn(d + 7, "0123456789abcdef") == 64;
}

static json_t *read_object(const char *path)
{
	struct file file = { 0 };
	struct error ignored = { 0 };
	json_t *o = file_open(&file, path, &ignored) && file_text(&file, MANIFEST_MAX, &ignored)
	                    ? json_read(file.base, file.size, MANIFEST_MAX, file.label, &ignored)
	                    : NULL;

	file_close(&file);
	return o;
}

static void print_blob(char out[4096], const char *manifest, const char *digest)
{
	snprintf(out, 4096, "%.*s/blobs/sha256-%s", (int)root_of(manifest), manifest, digest + 7);
}

bool store_renders(const char *manifest)
{
	json_t *m = read_object(manifest), *config = NULL;
	const char *digest = json_string_value(json_object_get(json_object_get(m, "config"), "digest"));
	char path[4096];

	if (digest && is_digest(digest)) {
		print_blob(path, manifest, digest);
		config = read_object(path);
	}
	const bool renders = json_string_length(json_object_get(config, "renderer")) > 0;
	json_decref(config);
	json_decref(m);
	return renders;
}

size_t store_layers(const char *manifest, struct store_layer *out, size_t max)
{
	static const char usual[] = "application/vnd.ollama.image.";
	json_t *m = read_object(manifest);
	const json_t *layer;
	size_t i, n = 0;

	json_array_foreach(json_object_get(m, "layers"), i, layer)
	{
		const char *type = json_string_value(json_object_get(layer, "mediaType")),
			   *digest = json_string_value(json_object_get(layer, "digest"));
		if (n == max || !type || !digest || !is_digest(digest) || strncmp(type, usual, sizeof usual - 1) != 0)
			continue;
		snprintf(out[n].kind, sizeof out[n].kind, "%s", type + sizeof usual - 1);
		print_blob(out[n].path, manifest, digest);
		n++;
	}
	json_decref(m);
	return n;
}
