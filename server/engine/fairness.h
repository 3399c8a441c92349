/* server/engine/fairness.h - whose answer is computed next, and whose waits meanwhile.
 *
 * Owns: what one client is, and that it cannot keep others waiting for as long as it likes. Of those that wait, the one
 * goes on whose client has the fewest answers at work; where all places are taken, a client that has two more than that
 * gives up one, which goes on when there is room again. Keys are clients; with one key, or none, connections are.
 */
#ifndef SERVER_FAIRNESS_H
#define SERVER_FAIRNESS_H

#include <stdbool.h>
#include <stdint.h>

/* key 0: it sent none. line: the number of its connection. */
struct client {
	uint64_t key, line;
};

struct choice;

/* By its key, or else by its connection. */
bool fairness_same_client(const struct client *a, const struct client *b);
/* Of a list that waits, where the one that comes next is linked; alone: also those that need the session that is alone.
 * NULL: none may. running: n choices, of which those that are parked are not at work. */
struct choice **fairness_next(struct choice **first, bool alone, struct choice *const *running, unsigned n);
/* Of those that are parked, the one that comes next; NULL: there is none. */
struct choice *fairness_parked(struct choice *const *running, unsigned n);
/* Whether a comes before b, which came later. */
bool fairness_before(const struct choice *a, const struct choice *b, struct choice *const *running, unsigned n);
/* Which of those at work is to be parked for c; c NULL: for any other. NULL: none. */
struct choice *fairness_victim(const struct choice *c, struct choice *const *running, unsigned n);

#endif
