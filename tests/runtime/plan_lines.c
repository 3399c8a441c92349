/* tests/runtime/plan_lines.c - prints the plans of models, a line for each op: its key, units, marks and arguments, as
 * buffer and offset (plan_areas.h); then the plan's kernels, stages, sections and slots that change. Nothing is
 * computed and no tensor is read.
 *
 * Two builds that print the same lines build the same plans: scripts/same_plan.sh compares two builds so.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/runtime/plan_areas.h"

static void print_value(uint64_t v)
{
	uint64_t offset;
	const enum area a = plan_areas_at(v, &offset);

	if (a != AREA_NONE)
		printf(" %s+%" PRIx64, plan_areas_name(a), offset);
	else
		printf(" %" PRIx64, v);
}

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
	printf("\nhanded %" PRIu64 " of %" PRIu64 ", one sequence %d\n", p->dataflow_bytes, p->dataflow_room,
	       p->one_sequence);
}

static bool print_width(struct plan_areas *a, uint32_t tokens, struct error *err)
{
	for (unsigned way = 0; way < AREA_WAYS; way++) {
		struct plan_cache kv;
		const char *name;
		struct plan p;
		if (!plan_areas_build(a, &p, way, tokens, &name, &kv, err))
			return false;
		if (!name)
			continue;
		printf("plan %s, %s, %u tokens\n", a->target->name, name, tokens);
		print_plan(&p);
		plan_free(&p);
	}
	return true;
}

static bool print_model(const char *path, struct error *err)
{
	struct plan_areas a;
	bool ok = plan_areas_open(&a, path, err);

	for (unsigned t = 0; ok && t < AREA_TARGETS; t++) {
		ok = plan_areas_for(&a, target_find(area_targets[t]), err);
		for (unsigned w = 0; ok && w < AREA_WIDTHS; w++)
			ok = print_width(&a, area_widths[w], err);
	}
	plan_areas_close(&a);
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
