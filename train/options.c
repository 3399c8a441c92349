/* train/options.c - what callers of jitrun_train.h ask for, checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/sized.h"
#include "train/train.h"

/* The matrices that adapters may be for, and what they are called. */
static const struct {
	enum tensor_slot slot;
	const char *name;
} matrices[] = {
	{ SLOT_q, "q_proj" },
	{ SLOT_k, "k_proj" },
	{ SLOT_v, "v_proj" },
	{ SLOT_o, "o_proj" },
	{ SLOT_gate, "gate_proj" },
	{ SLOT_up, "up_proj" },
	{ SLOT_down, "down_proj" },
	/* of the delta rule */
	{ SLOT_delta_qkv, "in_proj_qkv" },
	{ SLOT_delta_z, "in_proj_z" },
	{ SLOT_delta_out, "out_proj" },
	/* of the selective scan; in_proj: of both */
	{ SLOT_scan_z, "in_proj" },
	{ SLOT_channel_x, "in_proj" },
	{ SLOT_channel_dt, "x_proj" },
	{ SLOT_channel_steps, "dt_proj" },
	{ SLOT_scan_out, "out_proj" },
	{ SLOT_channel_out, "out_proj" },
	/* what several of them are in one tensor */
	{ SLOT_q, "qkv_proj" },
	{ SLOT_gate, "gate_up_proj" },
	{ SLOT_delta_qkv, "in_proj_qkvz" }
};
enum { MATRICES = sizeof matrices / sizeof *matrices };

/* Whether the model's file calls the slot's module so: "c_attn" of "h.0.attn.c_attn.weight". */
static bool is_called(const struct model *m, enum tensor_slot slot, const char *name, size_t n)
{
	for (uint32_t l = 0; l < m->spec.layers; l++) {
		const struct model_tensor *t = train_tensor_of(m, l, slot);
		const char *end = t ? strrchr(t->name, '.') : NULL, *begin = end;
		while (begin && begin > t->name && begin[-1] != '.')
			begin--;
		if (end && (size_t)(end - begin) == n && memcmp(begin, name, n) == 0)
			return true;
	}
	return false;
}

/* Whether the name is known: several kinds of layers may have a matrix of it. */
static bool turn_on(const struct model *m, struct layer_adapters *a, const char *name, size_t n)
{
	bool any = false;

	for (size_t i = 0; i < MATRICES; i++)
		if ((strlen(matrices[i].name) == n && memcmp(matrices[i].name, name, n) == 0) ||
		    is_called(m, matrices[i].slot, name, n))
			a->on[matrices[i].slot] = any = true;
	return any;
}

bool train_targets(const struct model *m, const char *list, struct layer_adapters *a, struct error *err)
{
	bool any = false;

	for (size_t i = 0; !list && i < MATRICES; i++)
		a->on[matrices[i].slot] = any = true;
	while (list && *list) {
		const size_t n = strcspn(list, " ,\t\n");
		const bool known = turn_on(m, a, list, n);
		if (n && !known)
			return error_set(
				err, ERROR_ARGUMENT,
				"targets: %.*s, expected q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
				"down_proj, in_proj_qkv, in_proj_z, in_proj, x_proj, dt_proj or out_proj, or "
				"qkv_proj, gate_up_proj or in_proj_qkvz where they lie in one tensor, or what the "
				"model's files call them",
				(int)(n < 64 ? n : 64), list);
		any |= known;
		list += n + (list[n] != 0);
	}
	return any || error_set(err, ERROR_ARGUMENT, "targets: there are none, expected names as q_proj");
}

static bool whole(const char *name, int value, int min, int max, struct error *err)
{
	return (value >= min && value <= max) ||
	       error_set(err, ERROR_ARGUMENT, "%s: %d is not an integer in %d..%d", name, value, min, max);
}

/* 0 stands for what is usual. */
static bool real(const char *name, float value, double min, double max, struct error *err)
{
	return value == 0 || (value >= (float)min && value <= (float)max) ||
	       error_set(err, ERROR_ARGUMENT, "%s: %.9g is not a number in %g..%g", name, (double)value, min, max);
}

static bool check(const jit_train_options *o, struct error *err)
{
	return whole("threads", o->threads, 0, 1024, err) &&
	       (o->context == 0 || whole("context", o->context, 2, 1 << 17, err)) &&
	       whole("rank", o->rank, 0, 4096, err) &&
	       whole("schedule", o->schedule, JIT_TRAIN_CONSTANT, JIT_TRAIN_LINEAR, err) &&
	       whole("warmup", o->warmup, 0, 1 << 30, err) && whole("steps", o->steps, 0, 1 << 30, err) &&
	       real("alpha", o->alpha, 1e-6, 1e6, err) && real("rate", o->rate, 1e-12, 1, err) &&
	       real("least_rate", o->least_rate, 0, 1, err) && real("weight_decay", o->weight_decay, 0, 1000, err) &&
	       real("beta1", o->beta1, 1e-6, 0.9999, err) && real("beta2", o->beta2, 1e-6, 0.99999, err) &&
	       real("epsilon", o->epsilon, 1e-30, 1, err) && real("clip", o->clip, 0, 1e12, err) &&
	       real("dropout", o->dropout, 0, 0.99, err) && whole("reserved", o->reserved, 0, 0, err);
}

bool train_options(jit_train_options *own, const jit_train_options *from, struct error *err)
{
	if (!SIZED_READ(jit_train_options, own, from, err) || !check(own, err))
		return false;
	if (!own->model)
		return error_set(err, ERROR_ARGUMENT, "model is NULL, expected the path of one");
	own->context = own->context ? own->context : 512;
	own->rank = own->rank ? own->rank : 16;
	own->alpha = own->alpha != 0 ? own->alpha : 2 * (float)own->rank;
	own->rate = own->rate != 0 ? own->rate : own->full ? 1e-5f : 1e-4f;
	own->beta1 = own->beta1 != 0 ? own->beta1 : 0.9f;
	own->beta2 = own->beta2 != 0 ? own->beta2 : 0.999f;
	own->epsilon = own->epsilon != 0 ? own->epsilon : 1e-8f;
	return true;
}

double train_decimal(float x)
{
	char text[32];

	snprintf(text, sizeof text, "%.7g", (double)x);
	return strtod(text, NULL);
}
