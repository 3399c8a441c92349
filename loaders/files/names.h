/* loaders/files/names.h - finds an item by name in time that no choice of names can spoil.
 *
 * Owns: a sorted order over the items of someone's array. Sorted, not hashed: a hostile file may choose its
 * names freely, and no choice makes a sort or a binary search slow. Never: copies or keeps a name.
 */
#ifndef LOADERS_NAMES_H
#define LOADERS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct name_ref {
	const char *p;
	uint64_t n;
};

typedef struct name_ref names_fn(const void *owner, uint32_t item);

struct names {
	uint32_t *order; /* items in ascending order of name */
	uint32_t count;
	names_fn *name;
	const void *owner; /* must outlive the index and not move */
};

enum { NAMES_NONE = UINT32_MAX };

/* False only when there is no memory. */
bool names_build(struct names *x, const void *owner, uint32_t count, names_fn *name);
void names_free(struct names *x);
uint32_t names_find(const struct names *x, const char *p, uint64_t n);
/* An item whose name another one also has, or NAMES_NONE. */
uint32_t names_duplicate(const struct names *x);

#endif
