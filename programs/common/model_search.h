/* programs/common/model_search.h - the models that other programs have put on this machine.
 *
 * Owns: where ollama, Hugging Face's libraries, llama.cpp and LM Studio keep models, and what their folders look like.
 * Names of files and manifests are anybody's: a broken one is an entry with a reason, or is passed over, and links are
 * followed no deeper than folders are. Nothing is written.
 */
#ifndef PROGRAMS_MODEL_SEARCH_H
#define PROGRAMS_MODEL_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct found_model {
	const char *source; /* "ollama" */
	char *name, *path;  /* path: as jitrun takes it; NULL: there is none, and trouble says why */
	char *trouble;      /* NULL, or why it cannot be used as it is */
	char *manifest;     /* of ollama: the file that names its layers; else NULL */
	char *projector;    /* of ollama: the file of its image encoder; NULL: it has none */
	unsigned order;     /* of the folder it was found in */
	bool old_revision;  /* of Hugging Face: other snapshots are newer, or refs/main names another */
};

struct model_search {
	struct found_model *found; /* by source, then by name */
	size_t n, room;
	char **note; /* what could not be looked at, in sentences; and the folders that were */
	size_t n_notes, notes_room;
	char **searched;
	size_t n_searched, searched_room;
	size_t folders; /* read so far */
};

/* False: err, no memory. model_search_free() is due in any case. */
bool model_search_all(struct model_search *s, struct error *err);
/* The same of Hugging Face's cache alone, which jitpull fetches into. */
bool model_search_hub(struct model_search *s, struct error *err);
/* The same of one folder and those in it: GGUF files, those of several parts once, packed models, and folders of
 * safetensors. Names are paths from there. */
bool model_search_folder(struct model_search *s, const char *folder, struct error *err);
void model_search_free(struct model_search *s);
/* The file of the image encoder that ollama's store has beside a model, which is one of its blobs:
 * STORE/blobs/sha256-X. The caller frees it. NULL with err unset: the model has no image encoder; else err says why. */
char *model_search_projector(const char *model, struct error *err);

/* A layer of a model in ollama's store: "system" or "params", and the file that holds it. */
struct store_layer {
	char kind[32], path[4096];
};
/* Those of a manifest, at most so many; those whose digest is none are left out. Returns how many. */
size_t store_layers(const char *manifest, struct store_layer *out, size_t max);
/* Whether the model's configuration there names a renderer: ollama then writes its prompts by code of its own, and the
 * template layer is none of the model's. */
bool store_renders(const char *manifest);

#endif
