/* tests/server/lora_server.h - a server with eight adapters, what it answers with them, and what is compared. What
 * fails here fails the test. */
#ifndef TESTS_LORA_SERVER_H
#define TESTS_LORA_SERVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/server/client.h"

enum { LORA_ADAPTERS = 8, LORA_TOKENS = 12 };

extern char lora_dir[];                 /* of --lora-dir and --slot-save, with the adapters as f0 to f7 */
extern char lora_of[LORA_ADAPTERS][64]; /* their paths */
extern struct child lora_server;        /* with all of them as a0 to a7 */

/* A server's arguments: the adapters with their names, then these up to a NULL. */
const char *const *lora_arguments(const char *const *more);
int lora_begin(void **state);
int lora_end(void **state);

/* What must have the same bits: the tokens, and how likely each was. Takes o over; free() it. */
char *lora_bits(json_t *o);
/* Of /completion; more: further fields. */
void lora_body(char out[600], const char *prompt, const char *more);
char *lora_ask(const struct child *c, const char *prompt, const char *more);
/* These free both. */
void lora_same(char *a, char *b, const char *what);
void lora_other(char *a, char *b, const char *what);
void lora_refused(const char *path, const char *body, int status, const char *words);
/* The number behind the beginning of a line of /metrics. */
double lora_metric(const char *line);
json_t *lora_listed(const struct child *c);

/* lora_invoked.c */
void test_lora_invoked(void **state);

/* lora_lists.c */
void test_lora_weights(void **state);
void test_lora_models(void **state);
void test_lora_refused(void **state);
void test_lora_options(void **state);

#endif
