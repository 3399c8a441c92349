/* grammar/vocabulary.h - the texts of all tokens as a tree, so that what a grammar forbids is looked at once for all
 * tokens that begin with it.
 *
 * Owns: the tree. Immutable once made: any number of threads may walk it.
 */
#ifndef GRAMMAR_VOCABULARY_H
#define GRAMMAR_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { VOCABULARY_DEPTH = 512 /* bytes of a token; longer ones are left out, and so never allowed */ };

/* A node is a byte behind another; nodes stand in the order of a walk that goes to the first child first. */
struct vocabulary_node {
	uint8_t byte;
	uint16_t depth;           /* of the byte in its tokens: 0 for the first */
	uint32_t behind;          /* the next node that is not below this one */
	uint32_t above;           /* the node that this one is below; of a first byte itself */
	uint32_t token, n_tokens; /* that end with this byte: a part of vocabulary.token */
	/* All tokens below go on with characters of this class (easy.h), the narrowest; the last one may be cut off.
	 * Where no character ends with this byte but `into` bytes of one do, the same holds from its first byte on,
	 * also of tokens that end here. */
	uint8_t easy, into;
	uint16_t height; /* characters of the longest of them, counted from there */
};
struct vocabulary {
	uint32_t n_ids; /* ids are 0..n_ids - 1 */
	struct vocabulary_node *node;
	uint32_t n_nodes;
	uint32_t *token; /* in the order of the nodes they end with */
	uint32_t n_tokens;
};

/* The bytes of a token; 0 bytes: it spells nothing and is never allowed. They need last only until the next call. */
typedef const char *vocabulary_piece(void *user, uint32_t id, size_t *n);
/* NULL: no memory. */
struct vocabulary *vocabulary_open(uint32_t n_ids, vocabulary_piece *piece, void *user, struct error *err);
/* The longest token that the text begins with, and its bytes; 0 bytes: there is none. */
uint32_t vocabulary_longest(const struct vocabulary *v, const char *text, size_t n, size_t *bytes);
void vocabulary_close(struct vocabulary *v);

#endif
