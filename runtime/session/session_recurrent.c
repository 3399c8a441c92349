/* runtime/session/session_recurrent.c - see session_recurrent.h. */
#include "runtime/session/session_recurrent.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/device/device.h"
#include "runtime/plan/plan.h"

/* What states may take together, but for the least number of them. */
enum { STATES_BYTES = 256 << 20, ALIGN = 64 };
/* Tokens between two states of a file: computing fewer once more costs less than a state takes there. */
enum { APART = 16 };

void states_measure(struct session_states *t, const struct model_spec *s)
{
	t->bytes = (plan_state_bytes(s) + ALIGN - 1) / ALIGN * ALIGN;
	t->slots = 0;
	if (!t->bytes)
		return;
	uint64_t fit = STATES_BYTES / t->bytes;
	t->slots = fit < STATES_MIN ? STATES_MIN : fit > STATES_MAX ? STATES_MAX : (uint32_t)fit;
}

int states_find(const struct session_states *t, uint64_t max)
{
	int best = -1;

	for (uint32_t i = 0; i < t->slots; i++)
		if (t->used[i] && t->position[i] <= max && (best < 0 || t->position[i] > t->position[best]))
			best = (int)i;
	return best;
}

uint64_t states_position(const struct session_states *t, int state) { return state < 0 ? 0 : t->position[state]; }

uint32_t states_apart(const struct session_states *t, uint64_t max, int state[STATES_MAX])
{
	int from_end[STATES_MAX];
	uint32_t n = 0;

	for (int i; n < STATES_MAX && (i = states_find(t, max)) >= 0 && t->position[i] > 0;) {
		from_end[n++] = i;
		max = t->position[i] > APART ? t->position[i] - APART : 0;
	}
	for (uint32_t i = 0; i < n; i++)
		state[i] = from_end[n - 1 - i];
	return n;
}

void states_forget(struct session_states *t, uint64_t tokens)
{
	for (uint32_t i = 0; i < t->slots; i++)
		t->used[i] = t->used[i] && t->position[i] <= tokens;
}

/* What would be lost with a state: tokens that would have to be computed again, over those who might go back there, who
 * are the fewer the farther that is from the end. */
static double worth(const struct session_states *t, uint32_t state, uint64_t end)
{
	uint64_t at = t->position[state], next = end + 1;
	uint64_t last = at ? states_position(t, states_find(t, at - 1)) : 0;

	for (uint32_t i = 0; i < t->slots; i++)
		if (t->used[i] && t->position[i] > at && t->position[i] < next)
			next = t->position[i];
	double far = (double)(end - at) + 1;
	return (double)(at - last) * (double)(next - at) / (far * far);
}

static bool is_marked(const struct session_states *t, uint32_t state)
{
	for (int i = 0; i < STATES_MARKS; i++)
		if (t->mark[i] && t->position[state] == t->mark[i])
			return true;
	return false;
}

/* A place that is free, or becomes free; `kept`: not that one, nor those at a mark. */
static uint32_t make_room(struct session_states *t, int kept, uint64_t end)
{
	uint32_t min = t->slots;

	for (uint32_t i = 0; i < t->slots; i++)
		if (!t->used[i] && (int)i != kept)
			return i;
	for (uint32_t i = 0; i < t->slots; i++)
		if ((int)i != kept && !is_marked(t, i) && (min == t->slots || worth(t, i, end) < worth(t, min, end)))
			min = i;
	t->used[min] = false;
	return min;
}

static bool clear(const struct session_states *t, struct device *d, uint8_t *state, struct error *err)
{
	if (d->facts.host_reaches) {
		memset(state, 0, t->bytes);
		return true;
	}
	void *zeros = calloc(1, t->bytes);
	bool ok = zeros ? d->upload(d, state, zeros, t->bytes, err)
	                : error_set(err, ERROR_MEMORY, "no memory for %llu bytes of a state",
	                            (unsigned long long)t->bytes);
	free(zeros);
	return ok;
}

bool states_begin(struct session_states *t, struct device *d, uint64_t position, uint8_t **before, uint8_t **behind,
                  struct error *err)
{
	states_forget(t, position);
	int from = states_find(t, position);
	if (from < 0) { /* the text begins */
		from = (int)make_room(t, -1, position);
		if (!clear(t, d, t->base + (uint64_t)from * t->bytes, err))
			return false;
		t->used[from] = true;
		t->position[from] = 0;
	}
	*before = t->base + (uint64_t)from * t->bytes;
	*behind = t->base + make_room(t, from, position) * t->bytes;
	return true;
}

void states_done(struct session_states *t, const uint8_t *behind, uint64_t position)
{
	uint64_t i = (uint64_t)(behind - t->base) / t->bytes;

	t->used[i] = true;
	t->position[i] = position;
}

uint8_t *states_take(struct session_states *t, uint64_t position)
{
	uint8_t *state = t->base + make_room(t, -1, position) * t->bytes;

	states_done(t, state, position);
	return state;
}
