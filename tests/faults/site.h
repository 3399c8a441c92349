/* tests/faults/site.h - the folder in which t_faults runs programs: its models, packs and caches, the words of a
 * scene's command as arguments, and the state that each run begins with. */
#ifndef TESTS_FAULTS_SITE_H
#define TESTS_FAULTS_SITE_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/faults/scenes.h"

enum { ARGUMENTS = 32 };

struct command {
	char text[1024], word[ARGUMENTS][1200];
	const char *argv[ARGUMENTS + 1];
};

extern char base[64];          /* the folder */
extern char safetensors[1024]; /* the model %s, when it is there */

int make_models(void **unused);
int remove_models(void **unused);

void path_in(char out[1200], const char *name);
void split(struct command *c, const char *command);
void remove_all_in(const char *path);
/* As it is before every run of the scene. */
void prepare(const struct scene *s);
/* Whether that is the file which the scene is about to write. */
bool is_as_before(const char *p, size_t n);

#endif
