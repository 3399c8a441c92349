/* programs/common/preset.h - what is kept with a model: a system message, how tokens are chosen, the context, a
 * template.
 *
 * Owns: the files that say it, and what their words are called here. Such a file is MODEL.preset beside the model, in
 * lines "name = value", in JSON, or in the words of ollama's Modelfile; or the layers of a model in ollama's store.
 * What is not known is refused by its name, and what cannot change a text is passed over. A command line wins over a
 * preset, and a preset over what the model's own files say.
 */
#ifndef PROGRAMS_PRESET_H
#define PROGRAMS_PRESET_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "programs/common/model_names.h"

enum { PRESET_SETTINGS = 64, PRESET_NAME = 64, PRESET_BYTES = 1 << 20 /* of a file, at most */ };

struct preset {
	char *path;          /* of the file; NULL: there is no preset */
	char *from;          /* the model, where the file names one */
	char *system;        /* NULL: none */
	json_t *messages;    /* with which a conversation begins, behind the system message; NULL: none */
	char *template;      /* the text of a chat template; NULL: none */
	bool other_template; /* its store has one, and ollama itself writes prompts by code of its own instead */
	struct {
		char *name, *value; /* of an option, as on a command line */
	} set[PRESET_SETTINGS];
	unsigned n_set;
};

/* Of a model at a path, with ollama's manifest or NULL. No preset is none of its failures. False: err; preset_free() is
 * due in any case. */
bool preset_find(struct preset *p, const char *model, const char *manifest, struct error *err);
/* Whether a file is one by its name, and names a model: a Modelfile, or a .preset. */
bool preset_is(const char *path);
bool preset_read(struct preset *p, const char *path, struct error *err);
/* The preset of what a command line named. Where that is a preset itself, the model that it names takes its place. */
bool preset_open(struct preset *p, struct model_named *m, struct error *err);
void preset_free(struct preset *p);
/* One thing more, as a file in JSON has it; p->path is what sentences begin with. False: err. */
bool preset_say(struct preset *p, const char *key, const json_t *v, struct error *err);
/* What a name of a file is called here: in small letters, with dashes. */
void preset_name(char out[PRESET_NAME], const char *key);

#endif
