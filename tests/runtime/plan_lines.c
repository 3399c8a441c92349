/* tests/runtime/plan_lines.c - prints the plans of models, a line for each op: its key, units, arguments and marks,
 * then the plan's stages, sections and slots that change. Nothing is computed and no tensor is read.
 *
 * Buffers have made-up addresses, each far from the next, so that an argument reads as a buffer and an offset into it.
 * Two builds that print the same lines build the same plans: scripts/same_plan.sh compares two builds so. What is
 * printed of an op is what devices read of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/plan/plan.h"

enum { AREA_BITS = 40, CONTEXT = 4096, WIDTHS = 4, TARGETS = 8 };

/* The areas: buffers of a pass in the order of PLAN_BUFFERS, then the others. */
enum area {
	AREA_NONE,
#define X(type, name, width, memory) AREA_##name,
	PLAN_BUFFERS(X)
#undef X
		AREA_LOGITS,
	AREA_GREATEST,
	AREA_RECORDS,
	AREA_HANDED,
	AREA_WEIGHTS,
	AREA_VECTORS,
	AREA_COUNT
};
static const char *const area_name[AREA_COUNT] = {
#define X(type, name, width, memory) [AREA_##name] = #name,
	PLAN_BUFFERS(X)
#undef X
		[AREA_LOGITS] = "logits",
	[AREA_GREATEST] = "greatest",
	[AREA_RECORDS] = "records",
	[AREA_HANDED] = "handed",
	[AREA_WEIGHTS] = "weights",
	[AREA_VECTORS] = "vectors",
};

static void *area(enum area a) { return (void *)(uintptr_t)((uint64_t)a << AREA_BITS); }

static void print_value(uint64_t v)
{
	const uint64_t a = v >> AREA_BITS;

	if (a > AREA_NONE && a < AREA_COUNT)
		printf(" %s+%" PRIx64, area_name[a], (uint64_t)(v & ((1ull << AREA_BITS) - 1)));
	else
		printf(" %" PRIx64, v);
}

/* ---- a model without numbers, and a session's memory */

struct outline {
	struct model model;
	struct weights weights;
	struct plan_cache kv;
};

static struct plan_buffers buffers_for(const struct model_spec *s, uint32_t tokens)
{
	const uint32_t handed = plan_handed_tokens(s, CONTEXT, tokens);
	struct plan_buffers b = {
		.tokens = tokens,
		.logits = area(AREA_LOGITS),
		.logit_tokens = tokens,
		.greatest = area(AREA_GREATEST),
		.records = area(AREA_RECORDS),
		.record_tokens = plan_record_tokens(s, CONTEXT, tokens),
		.context = CONTEXT,
		.handed = area(AREA_HANDED),
		.handed_room = plan_handed_bytes(s, CONTEXT, handed)
	};

#define X(type, name, width, memory) b.name = area(AREA_##name);
	PLAN_BUFFERS(X)
#undef X
	return b;
}

/* Pages of their own for layers with a window, where there are some of both. */
static struct plan_cache cache_for(const struct model_spec *s, enum dtype type)
{
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

static bool place_weights(struct outline *o, const struct target *t, struct error *err)
{
	const struct model_spec *s = &o->model.spec;
	struct weights_entry *e = calloc((size_t)s->layers * MATRIX_SLOTS + WEIGHTS_OUTSIDE, sizeof *e);
	bool ok = e && weights_allocate(&o->weights, s, err);

	if (ok) {
		const size_t n = weights_list(e, s, &o->weights);
		weights_place(e, n, weight_layout_of(t));
		weights_point(&o->weights, s, e, n, area(AREA_WEIGHTS));
		weights_point_vectors(&o->weights, s, area(AREA_VECTORS));
	}
	free(e);
	return ok;
}

/* ---- a plan */

static void print_op(const struct plan *p, size_t i)
{
	const struct plan_op *op = &p->op[i];
	char text[KEY_TEXT_MAX];

	printf("%zu %s %" PRId64 "..%" PRId64 " cost %u%s%s%s%s", i,
	       key_text(&p->kernel[op->kernel].key, text, sizeof text), op->begin, op->end, op->unit_cost,
	       op->barrier ? " barrier" : "", op->awaits ? " awaits" : "", op->uneven ? " uneven" : "",
	       op->serial ? " serial" : "");
	if (op->fused_units)
		printf(" fused %u", op->fused_units);
	printf(" :");
	for (uint32_t a = 0; a < op->n_args; a++)
		print_value(op->arg[a]);
	printf("\n");
}

/* Kernels that no op has are those that others of the same session will have. */
static void print_plan(const struct plan *p)
{
	char text[KEY_TEXT_MAX];

	for (size_t i = 0; i < p->n_ops; i++)
		print_op(p, i);
	printf("kernels %zu", p->n_kernels);
	for (size_t i = 0; i < p->n_kernels; i++)
		printf(" %s", key_text(&p->kernel[i].key, text, sizeof text));
	printf("\nstages");
	for (size_t i = 0; i <= p->n_stages; i++)
		printf(" %u", p->stage[i]);
	printf("\nsections");
	for (size_t i = 0; i <= p->n_sections; i++)
		printf(" %u", p->section[i]);
	printf("\nchanging");
	for (size_t i = 0; i < p->n_changing; i++) {
		const struct plan_changing *c = &p->changing[i];
		printf(" %zu:%d:%u:%" PRIx64, (size_t)(c->slot - p->args), (int)c->what, c->sequence, c->offset);
	}
	printf("\nhanded %" PRIu64 " of %" PRIu64 ", one sequence %d\n", p->handed_bytes, p->handed_room,
	       p->one_sequence);
}

/* ---- the plans that are printed */

static const uint32_t widths[WIDTHS] = { 1, 4, 16, 64 };
static const char *const targets[TARGETS] = { "avx2",    "avx512vnni", "avx512amx", "gfx1030",
	                                      "gfx1101", "gfx1201",    "sm80",      "sm90x2" };

static const struct way {
	const char *name;
	enum dtype kv;
	enum plan_logits logits;
	struct plan_options o;
} ways[] = {
	{ "usual", DTYPE_F16, PLAN_LAST_LOGITS, { 0 } },
	{ "all logits, general", DTYPE_F16, PLAN_ALL_LOGITS, { .general = true } },
	{ "floats", DTYPE_F32, PLAN_ALL_NORMED, { .f32_activations = true } },
	{ "bounded floats, in parts",
	  DTYPE_Q8_0,
	  PLAN_LAST_LOGITS,
	  { .f32_activations = true, .bounded = true, .context = PLAN_PARTS } },
	{ "bounded, parts to come", DTYPE_F16, PLAN_NO_LOGITS, { .bounded = true, .context = PLAN_PARTS_TO_COME } },
	{ "handed over", DTYPE_F16, PLAN_LAST_LOGITS, { .handed = true, .context = PLAN_PARTS } },
};

static bool print_way(struct outline *o, const struct way *way, const struct target *t, uint32_t tokens,
                      struct error *err)
{
	const struct model_spec *s = &o->model.spec;
	const struct plan_buffers buffers = buffers_for(s, tokens);
	const struct plan_cache kv = cache_for(s, way->kv);
	struct plan_options opt = way->o;
	struct plan p;

	if (way->logits == PLAN_ALL_LOGITS && tokens > PLAN_ALL_LOGITS_MOST)
		return true;
	opt.target = t;
	printf("plan %s, %s, %u tokens\n", t->name, way->name, tokens);
	if (!plan_build(&p, s, &o->weights, &buffers, &kv, tokens, way->logits, &opt, err))
		return false;
	print_plan(&p);
	plan_free(&p);
	return true;
}

/* Of several sequences: one of several tokens, then one token each. */
static bool print_joint(struct outline *o, const struct target *t, uint32_t tokens, struct error *err)
{
	const struct plan_span span[] = { { 0, tokens - 2, 1 }, { tokens - 2, 1, 1 }, { tokens - 1, 1, 0 } };
	const struct model_spec *s = &o->model.spec;
	const struct plan_buffers buffers = buffers_for(s, tokens);
	const struct plan_cache kv = cache_for(s, DTYPE_F16);
	const struct plan_options opt = { .target = t, .context = PLAN_PARTS_TO_COME };
	struct plan p;

	if (tokens < 4)
		return true;
	printf("plan %s, joint, %u tokens\n", t->name, tokens);
	if (!plan_build_joint(&p, s, &o->weights, &buffers, &kv, span, 3, &opt, err))
		return false;
	print_plan(&p);
	plan_free(&p);
	return true;
}

static bool print_model(const char *path, struct error *err)
{
	struct outline o = { 0 };
	bool ok = model_open(&o.model, path, MODEL_HEADER_ONLY | MODEL_NO_TOKENIZER, err);

	for (unsigned t = 0; ok && t < TARGETS; t++) {
		const struct target *target = target_find(targets[t]);
		ok = place_weights(&o, target, err);
		for (unsigned w = 0; ok && w < WIDTHS; w++) {
			for (unsigned i = 0; ok && i < sizeof ways / sizeof *ways; i++)
				ok = print_way(&o, &ways[i], target, widths[w], err);
			ok = ok && print_joint(&o, target, widths[w], err);
		}
		weights_close(&o.weights);
	}
	model_close(&o.model);
	return ok;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct error err = { 0 };
		printf("model %s\n", argv[i]);
		if (!print_model(argv[i], &err)) {
			fprintf(stderr, "plan_lines: %s\n", err.text[0] ? err.text : "no memory");
			return 1;
		}
	}
	return 0;
}
