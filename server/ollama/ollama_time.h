/* server/ollama/ollama_time.h - times and durations as Go's libraries write them. */
#ifndef SERVER_OLLAMA_TIME_H
#define SERVER_OLLAMA_TIME_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/request/refusal.h"

enum { OLLAMA_TIME = 40 };
/* "2026-11-28T23:04:49.123456Z" */
void ollama_time(char out[OLLAMA_TIME], int64_t seconds, long nanoseconds);
void ollama_now(char out[OLLAMA_TIME]);
/* Nanoseconds, as ollama's API has durations. */
json_t *ollama_nanoseconds(double seconds);
/* Seconds as a number or a text, or a duration such as "1h30m". False: refused. */
bool ollama_duration(const json_t *v, const char *name, double *seconds, struct refusal *r);

#endif
