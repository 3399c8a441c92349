/* tests/runtime/plan_areas.c - see plan_areas.h. */
#include "tests/runtime/plan_areas.h"

#include <stdlib.h>
#include <string.h>

static void *area_of(enum area a) { return (void *)(uintptr_t)((uint64_t)a << AREA_BITS); }

enum area plan_areas_at(uint64_t address, uint64_t *offset)
{
	const uint64_t a = address >> AREA_BITS;

	*offset = address & (((uint64_t)1 << AREA_BITS) - 1);
	return a < AREA_COUNT ? (enum area)a : AREA_NONE;
}

const char *plan_areas_name(enum area area)
{
	static const char *const name[AREA_COUNT] = {
		[AREA_NONE] = "nowhere",      [AREA_IDS] = "ids",         [AREA_COS] = "cos",
		[AREA_SIN] = "sin",           [AREA_VALUES] = "values",   [AREA_LOGITS] = "logits",
		[AREA_GREATEST] = "greatest", [AREA_RECORDS] = "records", [AREA_DATAFLOW] = "dataflow",
		[AREA_WEIGHTS] = "weights",   [AREA_VECTORS] = "vectors",
	};
	return name[area];
}

/* ---- a model without numbers, and a session's memory */

bool plan_areas_open(struct plan_areas *a, const char *path, struct error *err)
{
	memset(a, 0, sizeof *a);
	return model_open(&a->model, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err);
}

void plan_areas_close(struct plan_areas *a)
{
	plan_layout_close(&a->layout);
	weights_close(&a->weights);
	model_close(&a->model);
}

bool plan_areas_for(struct plan_areas *a, const struct target *target, struct error *err)
{
	const struct model_spec *s = &a->model.spec;
	struct weights_entry *e = calloc((size_t)s->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE, sizeof *e);

	weights_close(&a->weights);
	a->target = target;
	bool ok = e && weights_allocate(&a->weights, s, err);
	if (ok) {
		const size_t n = weights_list(e, s, &a->weights);
		a->weights_bytes = weights_lay(e, n, weight_layout_of(target));
		weights_point(&a->weights, s, e, n, area_of(AREA_WEIGHTS));
		a->vectors_bytes = weights_point_vectors(&a->weights, s, area_of(AREA_VECTORS)) * sizeof(float);
	}
	free(e);
	return ok;
}

struct plan_buffers plan_areas_buffers(const struct plan_areas *a, uint32_t tokens)
{
	const struct model_spec *s = &a->model.spec;
	const uint32_t dataflow = plan_dataflow_tokens(s, AREA_CONTEXT, tokens);

	return (struct plan_buffers){
		.tokens = tokens,
		.ids = area_of(AREA_IDS),
		.cos = area_of(AREA_COS),
		.sin = area_of(AREA_SIN),
		.values = area_of(AREA_VALUES),
		.layout = &a->layout,
		.logits = area_of(AREA_LOGITS),
		.logit_tokens = tokens,
		.greatest = area_of(AREA_GREATEST),
		.records = area_of(AREA_RECORDS),
		.record_tokens = plan_record_tokens(s, AREA_CONTEXT, tokens),
		.context = AREA_CONTEXT,
		.dataflow = area_of(AREA_DATAFLOW),
		.dataflow_room = plan_dataflow_bytes(s, AREA_CONTEXT, dataflow)
	};
}

struct plan_cache plan_areas_cache(const struct plan_areas *a, enum dtype type)
{
	const struct model_spec *s = &a->model.spec;
	struct plan_cache kv = { .type = type };
	uint64_t whole = 0, sliding = 0;

	for (uint32_t i = 0; i < s->layers; i++)
		*(plan_layer_slides(s, i) ? &sliding : &whole) += plan_cache_bytes(type, s, i);
	kv.page_bytes = whole + sliding;
	if (whole && sliding) {
		kv.page_bytes = whole;
		kv.window_page_bytes = sliding;
	}
	return kv;
}

uint64_t plan_areas_bytes(const struct plan_areas *a, enum area area, uint32_t tokens)
{
	const struct model_spec *s = &a->model.spec;
	const struct plan_buffers b = plan_areas_buffers(a, tokens);

	switch (area) {
	case AREA_IDS: return plan_ids_bytes(tokens);
	case AREA_COS:
	case AREA_SIN: return plan_angles_bytes(s, tokens);
	case AREA_VALUES: return a->layout.bytes;
	case AREA_LOGITS: return tokens * numerics_pad(s->vocab) * sizeof(float);
	case AREA_GREATEST: return tokens * numerics_pad(s->vocab) / 32 * sizeof(float);
	case AREA_RECORDS: return b.record_tokens * plan_record_bytes(s, AREA_CONTEXT);
	case AREA_DATAFLOW: return b.dataflow_room;
	case AREA_WEIGHTS: return a->weights_bytes;
	case AREA_VECTORS: return a->vectors_bytes;
	default: return 0;
	}
}

uint64_t plan_areas_room(const struct plan_areas *a, uint64_t offset)
{
	for (graph_ref v = 1; v < a->layout.n_values; v++)
		for (unsigned form = 0; form < PLAN_FORMS; form++) {
			const uint64_t at = a->layout.at[v][form], room = a->layout.room[v][form];
			if (at != PLAN_NOWHERE && offset >= at && offset - at < room)
				return room - (offset - at);
		}
	return 0;
}

/* ---- plans */

const uint32_t area_widths[AREA_WIDTHS] = { 1, 4, 16, 64 };
const char *const area_targets[AREA_TARGETS] = { "avx2",    "avx512vnni", "avx512amx", "gfx1030",
	                                         "gfx1101", "gfx1201",    "sm80",      "sm90x2" };

static const struct way {
	const char *name;
	enum dtype kv;
	enum plan_logits logits;
	struct plan_options o;
} ways[AREA_WAYS] = {
	{ "usual", DTYPE_F16, PLAN_LAST_LOGITS, { 0 } },
	{ "all logits, general", DTYPE_F16, PLAN_ALL_LOGITS, { .general = true } },
	{ "floats", DTYPE_F32, PLAN_ALL_NORMED, { .f32_activations = true } },
	{ "bounded floats, in parts",
	  DTYPE_Q8_0,
	  PLAN_LAST_LOGITS,
	  { .f32_activations = true, .bounded = true, .context = PLAN_PARTS } },
	{ "bounded, parts to come", DTYPE_F16, PLAN_NO_LOGITS, { .bounded = true, .context = PLAN_PARTS_TO_COME } },
	{ "dataflow", DTYPE_F16, PLAN_LAST_LOGITS, { .dataflow = true, .context = PLAN_PARTS } },
	{ "joint", DTYPE_F16, PLAN_ALL_LOGITS, { .context = PLAN_PARTS_TO_COME } }
};

bool plan_areas_build(struct plan_areas *a, struct plan *p, unsigned way, uint32_t tokens, const char **name,
                      struct plan_cache *kv, struct error *err)
{
	/* one sequence of several tokens, then one token each */
	const struct plan_span span[] = { { 0, tokens - 2, 1 }, { tokens - 2, 1, 1 }, { tokens - 1, 1, 0 } };
	const bool joint = way == AREA_WAYS - 1;
	const struct way *w = &ways[way];
	const struct plan_layout_options layout = {
		.tokens = tokens, .f32_activations = w->o.f32_activations, .apart = a->apart
	};
	struct plan_options opt = w->o;

	opt.target = a->target;
	*kv = plan_areas_cache(a, w->kv);
	*name = w->name;
	if (joint ? tokens < 4 : w->logits == PLAN_ALL_LOGITS && tokens > PLAN_ALL_LOGITS_MAX) {
		*name = NULL;
		return true;
	}
	plan_layout_close(&a->layout);
	if (!plan_layout_open(&a->layout, &a->model.spec, &a->weights, &layout, err))
		return false;
	const struct plan_buffers buffers = plan_areas_buffers(a, tokens);
	return joint ? plan_build_joint(p, &a->model.spec, &a->weights, &buffers, kv, span, 3, false, &opt, err)
	             : plan_build(p, &a->model.spec, &a->weights, &buffers, kv, tokens, w->logits, &opt, err);
}
