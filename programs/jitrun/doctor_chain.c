/* programs/jitrun/doctor_chain.c - jitrun doctor --report: many launches as one program, with a barrier behind each.
 * See doctor_report.h.
 *
 * What a launch reads, other workgroups have just written: a barrier that is left too early and a cache that keeps old
 * data both give other numbers than a plain loop does.
 */
#include <stdlib.h>
#include <string.h>

#include "programs/common/output.h"
#include "programs/jitrun/doctor_report.h"
#include "runtime/host/system.h"
#include "runtime/kernels/compute.h"

struct chain {
	uint32_t n; /* elements: a power of two */
	jit_compute *c;
	jit_kernel *k;
	jit_buffer *buffer[2];
	jit_launch *launch[2];
	struct plan plan; /* both, in turns */
	bool prepared;
	uint32_t *host[2], *found;
};

/* An element comes from another workgroup's, by a load of vectors, and two by loads that are the same for all. */
static void turn(uint32_t *y, const uint32_t *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		y[i] = (x[(i * 77 + 4099) & (n - 1)] + x[0] + x[n / 2]) * 5 + i;
}

static const char turn_source[] =
	"const i64 n;\n"
	"kernel turn(in u32 x[n], out u32 y[n]) over (i in n) {\n"
	"	y[i] = (x[(i * 77 + 4099) & (n - 1)] + x[0] + x[n / 2]) * 5 + u32(i);\n"
	"}\n";

static bool public_error(struct error *err, const jit_error *e)
{
	return error_set(err, ERROR_DEVICE, "%s", e->message);
}

/* workgroups: 0: as the device likes. */
static bool choose_workgroups(jit_compute *c, uint32_t workgroups, struct error *err)
{
	const struct stream_options o = { .registry = c->registry, .workgroups = workgroups };

	if (!workgroups)
		return true;
	struct stream *s = c->device->stream(c->device, &o, err);
	if (!s)
		return false;
	c->stream->close(c->stream);
	s->cancel = &c->cancel;
	c->stream = s;
	return true;
}

static void close_chain(struct chain *c)
{
	if (c->prepared && c->c->stream->forget)
		c->c->stream->forget(c->c->stream, &c->plan);
	free(c->plan.kernel);
	free(c->plan.op);
	free(c->plan.args);
	free(c->plan.stage);
	free(c->plan.took);
	for (int i = 0; i < 2; i++) {
		jit_launch_close(c->launch[i]);
		jit_buffer_close(c->buffer[i]);
		free(c->host[i]);
	}
	free(c->found);
	jit_kernel_close(c->k);
	jit_compute_close(c->c);
}

static const char *kernel_name(const void *chain, size_t kernel) { return ((const struct chain *)chain)->k->is.name; }

/* The launches' ops, in turns. */
static bool make_plan(struct chain *c, uint32_t rounds, struct error *err)
{
	const size_t each = c->launch[0]->plan.plan.n_ops, n = 2 * each * rounds;
	struct plan *p = &c->plan;

	if (!launch_has_arguments(c->launch[0], err) || !launch_has_arguments(c->launch[1], err))
		return false;
	*p = (struct plan){ .tokens = 1, .n_kernels = 1, .n_ops = n, .n_stages = n, .n_args = n * LAUNCH_ARGS_MAX };
	p->kernel = calloc(1, sizeof *p->kernel);
	p->op = calloc(n, sizeof *p->op);
	p->args = calloc(p->n_args, sizeof *p->args);
	p->stage = calloc(n + 1, sizeof *p->stage);
	p->took = calloc(n, sizeof *p->took);
	if (!p->kernel || !p->op || !p->args || !p->stage || !p->took)
		return error_set(err, ERROR_MEMORY, "no memory for a trial of barriers");
	p->kernel[0].key = c->k->key;
	for (size_t i = 0; i < n; i++) {
		const jit_launch *l = c->launch[i / each % 2];
		p->op[i] = l->plan.plan.op[i % each];
		p->op[i].arg = p->args + i * LAUNCH_ARGS_MAX;
		memcpy(p->op[i].arg, l->plan.arg, l->plan.shape.args * sizeof *l->plan.arg);
		p->stage[i] = (uint32_t)i;
	}
	p->stage[n] = (uint32_t)n;
	c->prepared = compute_prepare(c->c, p, kernel_name, c, err);
	return c->prepared;
}

static bool open_chain(struct chain *c, const char *device, uint32_t n, uint32_t rounds, uint32_t workgroups,
                       struct error *err)
{
	const uint64_t bytes = n * sizeof(uint32_t);
	jit_error e = { 0 };
	char constants[32];

	*c = (struct chain){ .n = n, .c = rung_compute(device, &e) };
	snprintf(constants, sizeof constants, "n=%u", n);
	if (!c->c || !(c->k = rung_kernel(c->c, turn_source, constants, &e)))
		return public_error(err, &e);
	if (!choose_workgroups(c->c, workgroups, err))
		return false;
	c->found = malloc(bytes);
	for (int i = 0; i < 2; i++)
		if (!(c->host[i] = calloc(1, bytes)) || !c->found)
			return error_set(err, ERROR_MEMORY, "no memory for a trial of barriers");
	for (uint32_t i = 0; i < n; i++)
		c->host[0][i] = i * 2654435761u;
	for (int i = 0; i < 2; i++)
		if (!(c->buffer[i] = jit_buffer_open(c->c, bytes, &e)) ||
		    jit_buffer_write(c->buffer[i], 0, c->host[i], bytes, &e) != JIT_OK)
			return public_error(err, &e);
	for (int i = 0; i < 2; i++)
		if (!(c->launch[i] = jit_launch_open(c->k, &e)) ||
		    jit_launch_set_buffer(c->launch[i], 0, c->buffer[i], 0, &e) != JIT_OK ||
		    jit_launch_set_buffer(c->launch[i], 1, c->buffer[!i], 0, &e) != JIT_OK)
			return public_error(err, &e);
	return make_plan(c, rounds, err);
}

/* The rounds once more, here and there. */
static bool run_chain(struct chain *c, uint32_t rounds, double *seconds, bool *same, struct error *err)
{
	const double start = system_seconds();
	jit_error e = { 0 };

	if (!c->c->stream->run(c->c->stream, &c->plan, c->c->pool, err))
		return false;
	*seconds = system_seconds() - start;
	for (uint32_t i = 0; i < rounds; i++) {
		turn(c->host[1], c->host[0], c->n);
		turn(c->host[0], c->host[1], c->n);
	}
	*same = true;
	for (int i = 0; i < 2; i++) {
		if (jit_buffer_read(c->buffer[i], 0, c->found, c->n * sizeof *c->found, &e) != JIT_OK)
			return public_error(err, &e);
		*same &= memcmp(c->found, c->host[i], c->n * sizeof *c->found) == 0;
	}
	return true;
}

/* Until there were so many barriers, or they took that long: a device that is simulated would take hours. */
#define LONGEST 10.0

static bool try_chain(struct report *r, json_t *list, uint32_t n, uint32_t barriers, uint32_t workgroups,
                      struct error *err)
{
	const uint32_t rounds = barriers < 1000 ? barriers / 2 : 500;
	double min = 0, sum = 0;
	uint64_t done = 0, tries = 0, wrong = 0;
	struct chain c;
	bool ok = open_chain(&c, r->device, n, rounds, workgroups, err);

	while (ok && done < barriers && sum < LONGEST) {
		double seconds = 0;
		bool same = true;
		ok = run_chain(&c, rounds, &seconds, &same, err);
		done += 2 * (uint64_t)rounds;
		sum += seconds;
		tries++;
		wrong += ok && !same;
		min = tries == 1 || seconds < min ? seconds : min;
		if (!same) /* the next begins with what is right */
			ok = ok && jit_buffer_write(c.buffer[0], 0, c.host[0], n * sizeof(uint32_t), NULL) == JIT_OK;
	}
	close_chain(&c);
	json_array_append_new(
		list, json_pack("{s:i, s:i, s:I, s:I, s:I, s:o, s:b}", "workgroups", (int)workgroups, "elements",
	                        (int)n, "barriers", (json_int_t)done, "tries", (json_int_t)tries, "wrong",
	                        (json_int_t)wrong, "barrier_seconds", output_real(min / (2 * rounds)), "done", ok));
	rung_tried(r, tries, wrong);
	return ok;
}

static json_t *list_member(struct report *r, const char *name)
{
	json_t *list = json_array();

	json_object_set_new(r->object, name, list);
	return list;
}

/* Several workgroups at a time are asked for of cards of AMD, real and simulated; 0 stands for all. */
bool rung_barrier(struct report *r)
{
	enum { SMALL = 2048 };
	const bool cut = r->units || strncmp(r->device, "sim:gfx", 7) == 0;
	const uint32_t barriers = report_is_quick() ? 20 : 10000, several[] = { 2, r->units > 2 ? r->units : 4, 0 };
	json_t *list = list_member(r, "barriers");
	struct error err = { 0 };

	for (size_t i = cut ? 0 : 2; i < 3; i++)
		if (!try_chain(r, list, SMALL, barriers, several[i], &err))
			return report_stop(r, "workgroups met at barriers", &err);
	return true;
}

bool rung_stale(struct report *r)
{
	static const uint32_t sizes[] = { 1 << 12, 1 << 16, 1 << 20 };
	const size_t n = report_is_quick() ? 1 : 3;
	json_t *list = list_member(r, "stale_data");
	struct error err = { 0 };

	for (size_t i = 0; i < n; i++)
		if (!try_chain(r, list, sizes[i], report_is_quick() ? 10 : 2000 >> 2 * i, 0, &err))
			return report_stop(r, "workgroups read what others wrote", &err);
	return true;
}
