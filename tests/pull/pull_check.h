/* tests/pull/pull_check.h - runs jitpull against the hub of the test, and looks at the cache afterwards. */
#ifndef TESTS_PULL_CHECK_H
#define TESTS_PULL_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* behind them */
#include <cmocka.h>

#include "tests/pull/fake_hub.h"

enum { BIG = 200000, SAID = 1 << 16, GGUF_FILES = 10 };

extern char root[64], big[BIG];   /* a folder of the test; bytes of its files */
extern char out[SAID], err[SAID]; /* what jitpull said */
extern const char *vars;          /* more of its environment */
extern const struct fake_file gguf[GGUF_FILES];
#define SET(files) fake_hub_set(files, sizeof files / sizeof *files)
#define SNAPSHOT "models--o--n/snapshots/" FAKE_COMMIT "/"

void read_into(char *to, const char *name);
/* Runs a command line of the shell; its exit status. */
int shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Runs jitpull with these arguments; its exit status. */
int pull(const char *arguments);
void clear(void);
bool is_there(const char *below);
/* Whether a file of the snapshot has these bytes, and is a link to the blob of that name. */
bool holds(const struct fake_file *f);
/* Nothing but the cache was made. */
bool nothing_else(void);

/* ---- hostile_tests.c */

void test_damaged(void **state);
void test_statuses(void **state);
void test_final_statuses(void **state);
void test_hostile_listing(void **state);
void test_endless(void **state);
void test_hostile_bytes(void **state);

/* ---- remove_tests.c */

void test_remove(void **state);
void test_remove_refused(void **state);
void test_run(void **state);

#endif
