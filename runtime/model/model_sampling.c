/* runtime/model/model_sampling.c - jit_model_sampling_defaults: how tokens are chosen where nobody says how.
 *
 * Owns: which of a model's own numbers are taken, and what stands for those that its files do not name.
 */
#include <limits.h>

#include "runtime/model/model.h"
#include "runtime/model/model_notes.h"
#include "runtime/sampling/sampling.h"
#include "runtime/model/sized.h"

/* Of a model that names none of these, for text that is neither dull nor wild. */
static const struct {
	float temperature, top_p, min_p;
	int top_k;
} usual = { .temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f };

static bool gives(const struct model_sampling *s, enum sampling_field f) { return s->given >> f & 1; }

static float value_of(const struct model_sampling *s, enum sampling_field f, float otherwise)
{
	return gives(s, f) ? (float)s->value[f] : otherwise;
}

/* Which tokens are left to choose from, and how evenly: the makers of a model chose these together. What they do not
 * name is off, but for top_k, which few of the others do without and which keeps them fast. */
static void set_choice(jit_sampling *out, const struct model_sampling *s)
{
	bool own = gives(s, SAMPLING_temperature) || gives(s, SAMPLING_top_k) || gives(s, SAMPLING_top_p) ||
	           gives(s, SAMPLING_min_p) || gives(s, SAMPLING_typical_p);

	out->temperature = value_of(s, SAMPLING_temperature, own ? 1 : usual.temperature);
	out->top_k = gives(s, SAMPLING_top_k) ? (int)s->value[SAMPLING_top_k] : usual.top_k;
	out->top_k = out->top_k < 0 ? 0 : out->top_k;
	out->top_p = value_of(s, SAMPLING_top_p, own ? 1 : usual.top_p);
	out->min_p = value_of(s, SAMPLING_min_p, own ? 0 : usual.min_p);
	out->typical_p = value_of(s, SAMPLING_typical_p, 1);
}

/* A window of no tokens turns the penalties off; 0 of jit_sampling is the usual window. */
static void set_penalties(jit_sampling *out, const struct model_sampling *s)
{
	int window = gives(s, SAMPLING_repeat_window) ? (int)s->value[SAMPLING_repeat_window] : 64;

	out->repeat_penalty = window ? value_of(s, SAMPLING_repeat_penalty, 1) : 1;
	out->presence_penalty = window ? value_of(s, SAMPLING_presence_penalty, 0) : 0;
	out->frequency_penalty = window ? value_of(s, SAMPLING_frequency_penalty, 0) : 0;
	out->repeat_window = window < 0 ? INT_MAX : window;
}

static jit_sampling defaults_of(const struct model_sampling *s)
{
	jit_sampling own = JIT_SAMPLING(.samplers = s->samplers);

	for (int i = 0; i < SAMPLING_FIELDS; i++)
		if (gives(s, (enum sampling_field)i))
			sampling_put(&own, (enum sampling_field)i, s->value[i]);
	set_choice(&own, s);
	set_penalties(&own, s);
	return own;
}

int jit_model_sampling_defaults(const jit_model *m, jit_sampling *out, jit_error *err)
{
	struct error e = { 0 };

	if (NEEDED(m, &e)) {
		const jit_sampling own = defaults_of(&m->file.sampling);
		SIZED_WRITE(jit_sampling, out, &own, &e);
	}
	return model_report(err, &e);
}

const char *model_sampling_not_done(const jit_model *m) { return m->file.sampling.not_done; }
