/* runtime/model_sampling.c - jit_model_sampling_defaults: how tokens are chosen where nobody says how.
 *
 * Owns: which of a model's own numbers are taken, and what stands for those that its files do not name.
 */
#include <limits.h>

#include "runtime/model.h"
#include "runtime/model_notes.h"
#include "runtime/sized.h"

/* Of a model that names none of these, for text that is neither dull nor wild. */
static const struct {
	float temperature, top_p, min_p;
	int top_k;
} usual = { .temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f };

static bool gives(const struct model_sampling *s, enum model_sampling_field f) { return s->given >> f & 1; }

static float value_of(const struct model_sampling *s, enum model_sampling_field f, float otherwise)
{
	return gives(s, f) ? (float)s->value[f] : otherwise;
}

/* Which tokens are left to choose from, and how evenly: the makers of a model chose these together. What they do not
 * name is off, but for top_k, which few of the others do without and which keeps them fast. */
static void set_choice(jit_sampling *out, const struct model_sampling *s)
{
	bool own = gives(s, SAMPLING_TEMPERATURE) || gives(s, SAMPLING_TOP_K) || gives(s, SAMPLING_TOP_P) ||
	           gives(s, SAMPLING_MIN_P) || gives(s, SAMPLING_TYPICAL_P);

	out->temperature = value_of(s, SAMPLING_TEMPERATURE, own ? 1 : usual.temperature);
	out->top_k = gives(s, SAMPLING_TOP_K) ? (int)s->value[SAMPLING_TOP_K] : usual.top_k;
	out->top_k = out->top_k < 0 ? 0 : out->top_k;
	out->top_p = value_of(s, SAMPLING_TOP_P, own ? 1 : usual.top_p);
	out->min_p = value_of(s, SAMPLING_MIN_P, own ? 0 : usual.min_p);
	out->typical_p = value_of(s, SAMPLING_TYPICAL_P, 1);
}

/* A window of no tokens turns the penalties off; 0 of jit_sampling is the usual window. */
static void set_penalties(jit_sampling *out, const struct model_sampling *s)
{
	int window = gives(s, SAMPLING_REPEAT_WINDOW) ? (int)s->value[SAMPLING_REPEAT_WINDOW] : 64;

	out->repeat_penalty = window ? value_of(s, SAMPLING_REPEAT_PENALTY, 1) : 1;
	out->presence_penalty = window ? value_of(s, SAMPLING_PRESENCE_PENALTY, 0) : 0;
	out->frequency_penalty = window ? value_of(s, SAMPLING_FREQUENCY_PENALTY, 0) : 0;
	out->repeat_window = window < 0 ? INT_MAX : window;
}

static jit_sampling defaults_of(const struct model_sampling *s)
{
	jit_sampling own = JIT_SAMPLING(.samplers = s->samplers);

	set_choice(&own, s);
	set_penalties(&own, s);
	own.xtc_probability = value_of(s, SAMPLING_XTC_PROBABILITY, 0);
	own.xtc_threshold = value_of(s, SAMPLING_XTC_THRESHOLD, 0);
	own.mirostat = (int)value_of(s, SAMPLING_MIROSTAT, 0);
	own.mirostat_tau = value_of(s, SAMPLING_MIROSTAT_TAU, 0);
	own.mirostat_eta = value_of(s, SAMPLING_MIROSTAT_ETA, 0);
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
