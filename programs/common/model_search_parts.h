/* programs/common/model_search_parts.h - what the files of the search for models share. */
#ifndef PROGRAMS_MODEL_SEARCH_PARTS_H
#define PROGRAMS_MODEL_SEARCH_PARTS_H

#include <sys/types.h>

#include "programs/common/model_search.h"

/* malloc'ed. NULL: no memory. */
char *search_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Takes over its texts, of which all but the name may be NULL. False: no memory. */
bool search_add(struct model_search *s, struct found_model p);
void search_free_found(struct found_model *p);
/* The names in a folder but for hidden ones, in order; *names NULL: there is no such folder, or a note says why it
 * cannot be read. False: no memory. */
bool search_list(struct model_search *s, const char *dir, char ***names, size_t *n);
void search_free_list(char **list, size_t n);
/* The type of what is at a path; 0: there is nothing. */
mode_t search_kind(const char *path);
/* model_store.c: ollama's store in a folder. False: no memory. */
bool search_store(struct model_search *s, const char *source, const char *root);

#endif
