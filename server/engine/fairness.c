/* server/engine/fairness.c - whose answer is computed next, and whose waits meanwhile. */
#include "server/engine/fairness.h"

#include <stddef.h>

#include "server/engine/choice.h"

/* Answers at work: of a client's key, and of its connection with that key. */
struct load {
	unsigned key, line;
};

bool fairness_same_client(const struct client *a, const struct client *b)
{
	return a->key == b->key && (a->key || a->line == b->line);
}

static bool is_same(const struct client *a, const struct client *b) { return a->key == b->key && a->line == b->line; }

static struct load load_of(const struct client *c, struct choice *const *running, unsigned n)
{
	struct load l = { 0 };

	for (unsigned i = 0; i < n; i++) {
		const struct client *other = &running[i]->task->client;
		if (running[i]->parked || other->key != c->key)
			continue;
		l.key++;
		l.line += other->line == c->line;
	}
	return l;
}

static bool is_less(struct load a, struct load b) { return a.key != b.key ? a.key < b.key : a.line < b.line; }

bool fairness_before(const struct choice *a, const struct choice *b, struct choice *const *running, unsigned n)
{
	return !is_less(load_of(&b->task->client, running, n), load_of(&a->task->client, running, n));
}

struct choice **fairness_next(struct choice **first, bool alone, struct choice *const *running, unsigned n)
{
	struct choice **best = NULL;
	struct load min = { 0 };

	for (struct choice **at = first; *at; at = &(*at)->next) {
		if ((!alone && choice_is_alone(*at)) || choice_waits(*at))
			continue;
		/* of one client, the one that came first */
		if (best && is_same(&(*at)->task->client, &(*best)->task->client))
			continue;
		struct load l = load_of(&(*at)->task->client, running, n);
		if (!best || is_less(l, min)) {
			best = at;
			min = l;
		}
	}
	return best;
}

struct choice *fairness_parked(struct choice *const *running, unsigned n)
{
	struct choice *best = NULL;

	for (unsigned i = 0; i < n; i++)
		if (running[i]->parked && (!best || !fairness_before(best, running[i], running, n)))
			best = running[i];
	return best;
}

/* Who has begun and can wait in the middle of an answer. */
static bool can_wait(const struct choice *c)
{
	return c->outcome == CHOICE_RUNNING && !c->parked && c->session && !c->task->action && !choice_is_alone(c);
}

/* Whether c's client has so few that one of the other's answers makes room. */
static bool yields(const struct choice *other, const struct choice *c, struct choice *const *running, unsigned n)
{
	struct load mine, theirs;

	if (!c)
		return true;
	mine = load_of(&c->task->client, running, n);
	theirs = load_of(&other->task->client, running, n);
	if (c->task->client.key != other->task->client.key)
		return theirs.key > mine.key + 1;
	return theirs.line > mine.line + 1;
}

/* The last one of the client that has the most, and rather one whose prompt is computed. */
struct choice *fairness_victim(const struct choice *c, struct choice *const *running, unsigned n)
{
	struct choice *best = NULL;

	for (unsigned i = 0; i < n; i++) {
		struct choice *other = running[i];
		if (!can_wait(other) || !yields(other, c, running, n))
			continue;
		bool more = best && !fairness_before(other, best, running, n);
		bool less = best && !fairness_before(best, other, running, n);
		if (!best || more || (!less && (other->first > 0 || best->first <= 0)))
			best = other;
	}
	return best;
}
