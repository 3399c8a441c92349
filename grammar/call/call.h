/* grammar/call/call.h - calls of functions in the forms that chat templates teach.
 *
 * Owns: a machine (machine.h) that reads such a call, and gives what it reads as JSON to the machine of a schema: so
 * whatever a schema says holds for arguments, however these are written. A call that is JSON is read by that machine
 * itself. The text of such a grammar is a JSON object:
 *
 *   schema
 *                 of {"name": NAME, "arguments": {...}}, the call as JSON; that of arguments (or parameters) is a
 *                 document by itself, as SCHEMA_DOCUMENT has it with "first"
 *   values
 *                 how arguments are written: "plain", where texts stand as they are and all else is JSON; "python";
 *                 "braces", with keys that have no quotes and texts between <|"|>; "json": all arguments are one object
 *   behind_name
 *                 what stands behind the name, with which a call begins
 *   first_key, next_key, behind_key, behind_value
 *                 what stands before the first argument's key, before the others, behind a key, behind a value
 *   behind_text_key
 *                 instead of behind_key, before a value that is a text; what is behind behind_key is none
 *   cdata         true: texts can also stand between <![CDATA[ and ]]>
 *   end           what ends the call
 *   loose         true: the line ends in all these may be left out
 *   gaps          an array of at most 4 texts, one of which may stand between the name and behind_name;
 *                 "gap_goes_on": "words" or "number" may follow it
 *   begun         instead of all these: the call is JSON, whatever the schema says it is, and this of it stands there
 *                 already
 *   openings      the text is free until it opens a call, and behind that again (call_free.h). An array of objects:
 *                 "text" opens a call; "first": true only where the text begins; "loose": true white space may stand
 *                 between the parts of its JSON; "then" must follow, whose line ends may be left out; "begun" is what
 *                 of the call stands there then
 *   close         with openings: what must close the call, unless the text ends with it
 *   spelled       with openings: an array of other texts that control tokens of the call may be part of
 *
 * What is left out is the empty text. A plain value is JSON where that is right by the schema, or Python's word for
 * such a value, else a text; an argument that can be nothing but a text is one (call_wants_text).
 */
#ifndef GRAMMAR_CALL_H
#define GRAMMAR_CALL_H

#include "grammar/machine/machine.h"

/* how: as machine_to_write_schema() has it. */
struct machine *machine_of_call(const char *text, size_t n, unsigned how, struct error *err);
/* Whether a state of a schema's machine, before a value, takes texts and nothing else. */
bool call_wants_text(struct machine *m, uint32_t state);
/* All that stands around names and values, each behind a line's end: what of it is a token of its own has no other
 * spelling. malloc'ed; NULL: no memory, or it is no such grammar. */
char *call_marks(const char *text, size_t n);

#endif
