/* grammar/regex/regex.h - regular expressions as ECMA-262 writes them, which is what JSON Schema asks for.
 *
 * Owns: their syntax. Read are alternatives, groups, classes, the escapes \d \w \s \t \n \v \f \r \0 \cX \xHH \uHHHH
 * \u{H} \p{category}, the edges ^ and $, and repetitions. Greedy and lazy ones describe the same texts. What no
 * automaton can do (back references) and what is not done (looking around, \b) is refused by name.
 */
#ifndef GRAMMAR_REGEX_H
#define GRAMMAR_REGEX_H

#include "grammar/regex/automaton.h"

/* Adds the expression to a tree; *node is its root. False: err says what stands where. */
bool regex_read(struct expression *x, const char *text, size_t n, uint32_t *node, struct error *err);
/* Its automaton, of whole texts or of texts that contain one. */
struct automaton *regex_automaton(const char *text, size_t n, bool anywhere, struct error *err);

#endif
