/* runtime/session/session_recurrent.h - the states that a session keeps of layers without keys and values: after how
 * many tokens each is, where it lies, and which one makes room.
 *
 * A pass goes on from the state behind the tokens before it, and writes its own to another place, so that the one it
 * began with stays. A session that goes back to a token finds the last state before it, and computes the tokens in
 * between once more. States are kept the more densely the nearer the end they are: going back n tokens costs about n at
 * most.
 *
 * Owns: that a state which is found belongs to the session's first tokens. Nobody else writes `used` or `position`.
 */
#ifndef RUNTIME_SESSION_RECURRENT_H
#define RUNTIME_SESSION_RECURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct device;
struct model_spec;

/* STATES_MARKS: places in the text whose states stay, so that others can go on from there. */
enum { STATES_MIN = 4, STATES_MAX = 16, STATES_MARKS = 2 };

struct session_states {
	uint64_t bytes; /* of one; 0: the model has no such layers */
	uint32_t slots;
	uint8_t *base; /* one after the other */
	uint64_t position[STATES_MAX];
	bool used[STATES_MAX];
	uint64_t mark[STATES_MARKS]; /* 0: none */
};

/* Sizes alone: as many as are small together, but a few in any case. */
void states_measure(struct session_states *t, const struct model_spec *s);
/* The state behind the most tokens, but no more than `max`: its number, or -1, which is that behind none. */
int states_find(const struct session_states *t, uint64_t max);
/* How many tokens that is behind. */
uint64_t states_position(const struct session_states *t, int state);
/* Those worth a place in a file, by position: the last one behind at most `max` tokens, and before it those that are
 * far enough from the next. Their numbers; how many they are. */
uint32_t states_apart(const struct session_states *t, uint64_t max, int state[STATES_MAX]);
/* Those behind more tokens belong to another text from now on. */
void states_forget(struct session_states *t, uint64_t tokens);
/* For a pass from `position` on, where there is a state or the text begins: that state, and the place of the one that
 * the pass leaves, which states_done() makes known when it has. False: err. */
bool states_begin(struct session_states *t, struct device *d, uint64_t position, uint8_t **before, uint8_t **behind,
                  struct error *err);
void states_done(struct session_states *t, const uint8_t *behind, uint64_t position);
/* A place for the state behind so many tokens, which the caller fills; it counts at once. */
uint8_t *states_take(struct session_states *t, uint64_t position);

#endif
