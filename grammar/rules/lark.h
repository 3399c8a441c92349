/* grammar/rules/lark.h - grammars as Lark writes them, read into an expression for each rule.
 *
 * Owns: their syntax, and what it means here. A text is one of the rule "start": its terminals one behind another, and
 * what %ignore names before, between and behind them, in all ways to cut it, as Lark's Earley parser has them with the
 * lexer "dynamic_complete". Priorities, aliases, `?`, `!` and `_` before names, and maybe_placeholders change no text.
 * Regular expressions are Python's; where one of its repetitions takes as few as possible, so is it here. What no stack
 * can follow or nothing here knows is refused by name.
 */
#ifndef GRAMMAR_LARK_H
#define GRAMMAR_LARK_H

#include "grammar/rules/gbnf.h"

/* False: err says what stands in which line and column. */
bool lark_read(struct gbnf *g, const char *text, size_t n, struct error *err);

#endif
