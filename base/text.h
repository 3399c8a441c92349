/* base/text.h - text that nobody has checked, as bytes.
 *
 * Owns: what is valid UTF-8, what a file in another coding begins with, which characters control a terminal, and which
 * make a line look different from what it is.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character that the bytes begin with: how many they are, 1 to 4; 0: no character begins like this. */
unsigned text_char(const void *bytes, size_t n, uint32_t *code);
/* A character's bytes of UTF-8; returns how many. */
unsigned text_spell(uint32_t code, uint8_t out[4]);
/* C0, DEL and C1: terminals obey them. */
bool text_is_control(uint32_t code);
/* Those; the separators of lines and paragraphs; and the marks and brackets that turn the direction of writing. None
 * has a place inside a sentence. */
bool text_misleads(uint32_t code);

/* What the bytes of a text file say of how they spell characters: NULL is UTF-8, whose mark is *mark bytes long, which
 * are no part of the text. "UTF-16" and "UTF-32" have a mark, or zeros beside their first letters. */
const char *text_coding(const void *bytes, size_t n, size_t *mark);

#endif
