/* tests/grammar/large_vocabulary.h - a vocabulary of the size that models have: what a mask costs shows only there.
 *
 * 150 000 tokens that differ: all bytes, pairs of bytes, numbers, words with and without a space and a capital, JSON's
 * own characters in all orders, runs of white space, letters of many scripts, halves of characters.
 */
#ifndef TESTS_GRAMMAR_LARGE_VOCABULARY_H
#define TESTS_GRAMMAR_LARGE_VOCABULARY_H

#include "grammar/vocabulary.h"

enum { LARGE_TOKENS = 150000 };

/* Made once, and never given back. */
const struct vocabulary *large_vocabulary(void);
const char *large_token(uint32_t id, size_t *n);

#endif
