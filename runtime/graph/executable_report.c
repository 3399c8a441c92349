/* runtime/graph/executable_report.c - what an executable says of itself. */
#include <inttypes.h>

#include "runtime/graph/executable_state.h"

void executable_get_report(const struct executable *x, struct executable_report *out)
{
	*out = (struct executable_report){
		.kernels = x->p.kernels,
		.hosted = x->p.groups - x->p.kernels,
		.generated = x->generated,
		.code_ns = x->code_ns,
		.arena_bytes = x->memory_bytes,
		.constant_bytes = x->constant_bytes,
		.value_bytes = x->arena.all_bytes + x->memory_bytes - x->arena.bytes,
		.last_ns = x->last_ns
	};
	for (uint32_t i = 0; i < x->p.groups; i++) {
		struct executable_report body;
		if (!x->step[i].loop)
			continue;
		executable_get_report(looping_body(x->step[i].loop), &body);
		out->kernels += body.kernels - 1;
		out->hosted += body.hosted;
		out->generated += body.generated;
		out->arena_bytes += body.arena_bytes;
		out->constant_bytes += body.constant_bytes;
		out->value_bytes += body.value_bytes;
	}
}

static void print_kernels(const struct step *step, FILE *out)
{
	jit_kernel_report r = JIT_KERNEL_REPORT(), other = JIT_KERNEL_REPORT();
	uint64_t before = 0;

	if (jit_kernel_get_report(step->main.kernel, &r, NULL) != JIT_OK)
		return;
	for (unsigned k = 0; k < step->source.n_prepared; k++)
		if (step->prepare[k].kernel && jit_kernel_get_report(step->prepare[k].kernel, &other, NULL) == JIT_OK) {
			before += other.last_ns;
			r.code_bytes += other.code_bytes;
		}
	fprintf(out, "%s, %" PRIu64 " bytes of code, %" PRIu64 " units, %s; last run %.3f ms",
	        r.runs == JIT_RUNS_NATIVE ? "native" : "interpreted", r.code_bytes, r.units, r.key,
	        (double)(r.last_ns + before) / 1e6);
	if (before)
		fprintf(out, ", %.3f ms of it to lay out operands", (double)before / 1e6);
	fputc('\n', out);
}

static void print_operations(const struct executable *x, const struct group *group, FILE *out)
{
	fputs(group->scores ? "attention" : tensor_ops[x->g.node[group->product].op].name, out);
	if (group->product != group->node)
		fprintf(out, " and %s", tensor_ops[x->g.node[group->node].op].name);
	fputs(group->rows ? " by rows" : "", out);
}

void executable_print(const struct executable *x, FILE *out, bool text)
{
	for (uint32_t i = 0; i < x->p.groups; i++) {
		const struct step *step = &x->step[i];
		const struct tensor_node *n = &x->g.node[step->group->node];
		const struct tensor_value_info *v = &x->g.value[n->first];
		char shape[SHAPE_TEXT_MAX];
		print_operations(x, step->group, out);
		fprintf(out, " %s: ", shape_text(v->type, &v->shape, shape));
		if (step->loop) {
			fprintf(out, "a loop, in each iteration:\n");
			executable_print(looping_body(step->loop), out, text);
			fprintf(out, "end of the loop\n");
		} else if (step->group->host)
			fprintf(out, "interpreted on the host: the operation has no kernel yet\n");
		else if (!step->main.kernel)
			fprintf(out, "no elements\n");
		else
			print_kernels(step, out);
		for (unsigned k = 0; text && k < step->source.n_prepared; k++)
			fputs(step->source.prepared[k].text, out);
		if (text && step->source.text.p)
			fputs(step->source.text.p, out);
	}
}
