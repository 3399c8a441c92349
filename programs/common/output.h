/* programs/common/output.h - what the programs put on standard output: everything, or a sentence that says what was
 * lost, and no control characters on a terminal.
 *
 * Owns: the check at a program's end, generated text on a terminal, how wide that is, and numbers in JSON.
 */
#ifndef RUNTIME_OUTPUT_H
#define RUNTIME_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* First in main: the numbers of standard streams that are closed are taken, so that no file opened later gets one and
 * is written to in its place. */
void output_begin(void);
/* Whether all that was printed so far was written; if not, *why says why. Said once: afterwards output_end says nothing
 * more. */
bool output_written(const char **why);
/* JSON that found no memory so far was not for standard output, and its caller knows. */
void output_memory_told(void);
/* Last in main: closes standard output. Returns the exit status: `status`, or `failed` with a sentence on stderr where
 * output was lost and nobody said so. */
int output_end(const char *program, int status, int failed);

/* Writes text, which may be cut anywhere but inside a character. On a terminal each control character but newline and
 * tab, and each byte that is no character, is shown as U+FFFD; elsewhere bytes are written as they are. False: it could
 * not be written. */
bool output_text(FILE *out, const char *text, size_t n, bool terminal);
/* Whether a terminal is shown a character as it is, and what it is shown otherwise. */
bool output_is_plain(uint32_t code);
#define OUTPUT_SHOWN "\xef\xbf\xbd"
enum { OUTPUT_SHOWN_CODE = 0xfffd };

/* Whether a file can be written there, without changing it, so that nobody computes for nothing. False: *why. */
bool output_can_write(const char *path, const char **why);
/* Whether its directory lets a file be made there and renamed to it. False: errno. */
bool output_can_replace(const char *path);

/* A line of a list, with its newline. On a terminal it goes on in further lines, as wide as the terminal and indented,
 * cut between words where that is possible; elsewhere it stays whole, for programs that read it. */
void output_line(FILE *out, const char *line, int indent);
/* Whole lines, each the same way. */
void output_lines(FILE *out, int indent, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* As much of a text's first line as there is room for behind `indent` columns, with a newline; dots say that it goes
 * on.
 */
void output_beginning(FILE *out, const char *text, size_t n, int indent);

/* Columns of a line: $COLUMNS, else the terminal's that `out` is, else 80; 40 at least. */
int output_columns(FILE *out);
/* The same of a terminal however narrow; 0: nothing says it. */
int output_known_columns(FILE *out);

/* A JSON number; null when it is not finite, for which JSON has no word. */
json_t *output_real(double value);
/* A JSON string; of bytes that are no UTF-8, which JSON has no word for either, as sentences show them. */
json_t *output_string(const char *bytes);
json_t *output_string_n(const char *bytes, size_t n);
/* How JSON is printed: on a terminal in ASCII. */
size_t output_json_flags(FILE *out);

#endif
