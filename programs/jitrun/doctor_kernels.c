/* programs/jitrun/doctor_kernels.c - jitrun doctor --report: every kernel of small models, beside the CPU's.
 *
 * A pass is run step by step on both. A step is an op, or a few where the plans of the two differ: what rearranges its
 * inputs for wide kernels belongs to the op behind it, and what fills the KV cache, whose layout is each target's own,
 * to the attention that reads it. A norm that one plan makes inside a product belongs to the product on the other side
 * too. Before each step both have the same activations, so that a difference is the step's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jit/key.h"
#include "programs/jitrun/doctor_report.h"
#include "runtime/model/model.h"
#include "runtime/session/session_state.h"

/* Hidden sizes that are no powers of two, heads that share keys, several blocks of rows. */
#define SHAPE "arch=qwen3,hidden=256,layers=2,heads=4,kv_heads=2,head_dim=64,ffn=512,vocab=320,tied=1"

/* Where a pass begins, and with how many tokens. */
static const struct pass {
	uint32_t before, tokens;
} passes[] = { { 0, 1 }, { 37, 1 }, { 37, 4 }, { 0, 8 }, { 37, 16 }, { 5, 24 } };

enum { STEPS_MAX = 256, TEXT = 200 };

struct side {
	struct trial_model trial;
	jit_session *session;
	struct plan *plan;
	size_t begin[STEPS_MAX + 1], n; /* of steps: their first ops */
	struct plan part[STEPS_MAX];    /* kept until the session is closed */
	size_t n_parts;
};

struct comparison {
	struct report *report;
	const char *mixture, *kv;
	struct side card, cpu;
	uint8_t *read; /* what the device's buffer holds */
	json_t *differ;
	uint64_t steps, kernels, passes;
	struct error err;
};

/* ---- steps */

/* KEY_NONE: behind the last op. */
static enum key_kind kind_of(const struct plan *p, size_t op)
{
	return op < p->n_ops ? p->kernel[p->op[op].kernel].key.kind : KEY_NONE;
}

/* From i, the first op with a result that both sides may have. */
static size_t skip_arranging(const struct plan *p, size_t i)
{
	while (kind_of(p, i) == KEY_INTERLEAVE || kind_of(p, i) == KEY_KV_STORE)
		i++;
	return i;
}

/* What one plan does in an op of its own, and another inside the op that reads the result. */
static bool may_be_inside(enum key_kind kind) { return kind == KEY_NORM || kind == KEY_QUANTISE || kind == KEY_ROPE; }

static bool norms_inside(const struct plan *p, size_t op)
{
	return p->kernel[p->op[op].kernel].key.flags & KEY_NORM_IN;
}

/* Behind the op i or, by_kind, behind all of its kind that follow it, with no norm between them, be it in an op of its
 * own or not; and behind what merges the parts of attention. */
static size_t end_of_step(const struct plan *p, size_t i, bool by_kind)
{
	enum key_kind kind = kind_of(p, i++);

	while (by_kind && i < p->n_ops) {
		size_t next = i;
		while (kind_of(p, next) == KEY_INTERLEAVE)
			next++;
		if (kind_of(p, next) != kind || (norms_inside(p, next) && !norms_inside(p, i - 1)))
			break;
		i = next + 1;
	}
	while (kind_of(p, i) == KEY_MERGE)
		i++;
	return i;
}

static bool leaves_blocks(const struct plan *p, size_t op)
{
	return p->kernel[p->op[op].kernel].key.flags & KEY_QUANTISED_OUT;
}

/* A step that ends in front of i leaves int8 blocks in the other plan, whose step ends in front of j: an op that makes
 * them here belongs to it. */
static size_t end_with_blocks(const struct plan *p, size_t i, const struct plan *other, size_t j)
{
	bool here = kind_of(p, i) == KEY_QUANTISE && !leaves_blocks(p, i - 1) && leaves_blocks(other, j - 1);

	return here ? i + 1 : i;
}

/* Cuts both plans into steps that end with ops of the same kind, or with the int8 blocks of their results. */
static bool cut(struct side *a, struct side *b, bool by_kind)
{
	size_t i = 0, j = 0;

	for (a->n = 0; (i < a->plan->n_ops || j < b->plan->n_ops) && a->n < STEPS_MAX; a->n++) {
		a->begin[a->n] = i;
		b->begin[a->n] = j;
		i = skip_arranging(a->plan, i);
		j = skip_arranging(b->plan, j);
		while (kind_of(a->plan, i) != kind_of(b->plan, j)) {
			if (may_be_inside(kind_of(b->plan, j)))
				j = skip_arranging(b->plan, j + 1);
			else if (may_be_inside(kind_of(a->plan, i)))
				i = skip_arranging(a->plan, i + 1);
			else
				return false;
		}
		if (kind_of(a->plan, i) == KEY_NONE)
			return false;
		i = end_of_step(a->plan, i, by_kind);
		j = end_of_step(b->plan, j, by_kind);
		const size_t end = i;
		i = end_with_blocks(a->plan, i, b->plan, j);
		j = end_with_blocks(b->plan, j, a->plan, end);
	}
	b->n = a->n;
	a->begin[a->n] = i;
	b->begin[a->n] = j;
	return i == a->plan->n_ops && j == b->plan->n_ops;
}

/* A step as a plan of its own, with a barrier behind each op. */
static bool make_part(struct side *s, size_t step, struct plan **out, struct error *err)
{
	size_t first = s->begin[step], n = s->begin[step + 1] - first;
	struct plan *p = &s->part[s->n_parts];

	*p = *s->plan;
	p->op = malloc(n * sizeof *p->op);
	p->stage = malloc((n + 1) * sizeof *p->stage);
	p->section = malloc(2 * sizeof *p->section);
	s->n_parts++;
	if (!p->op || !p->stage || !p->section)
		return error_set(err, ERROR_MEMORY, "no memory for a step of %zu ops", n);
	for (size_t i = 0; i < n; i++) {
		p->op[i] = s->plan->op[first + i];
		p->op[i].barrier = true;
		p->op[i].fused_units = 0;
		p->stage[i] = (uint32_t)i;
	}
	p->stage[n] = p->section[1] = (uint32_t)n;
	p->section[0] = 0;
	p->n_ops = p->n_stages = n;
	p->n_sections = 1;
	p->prepared = NULL;
	*out = p;
	return true;
}

static bool run_step(struct side *s, size_t step, struct error *err)
{
	struct stream *stream = s->session->engine->stream;
	struct plan *p = NULL;

	return make_part(s, step, &p, err) && session_prepare(s->session, p, err) &&
	       stream->run(stream, p, s->session->engine->pool, err);
}

/* ---- comparing */

static void name_step(const struct side *s, size_t step, char *out, size_t cap)
{
	char text[KEY_TEXT_MAX], last[KEY_TEXT_MAX] = "";
	size_t at = 0;

	*out = 0;
	for (size_t i = s->begin[step]; i < s->begin[step + 1] && at < cap; i++) {
		key_text(&s->plan->kernel[s->plan->op[i].kernel].key, text, sizeof text);
		if (strcmp(text, last) != 0)
			at += (size_t)snprintf(out + at, cap - at, "%s%s", *last ? " or " : "", text);
		memcpy(last, text, sizeof last);
	}
}

/* The element in words: floats and integers as bits. */
static uint64_t element(const uint8_t *p, size_t size)
{
	uint64_t v = 0;

	memcpy(&v, p, size < sizeof v ? size : sizeof v);
	return v;
}

static void differs(struct comparison *c, const struct pass *pass, size_t step, const char *buffer, size_t index,
                    uint64_t found, uint64_t expected)
{
	char name[4 * KEY_TEXT_MAX];

	name_step(&c->card, step, name, sizeof name);
	if (!c->report->differences++)
		report_line("differs", "%s: element %zu of %s is 0x%" PRIx64 ", expected 0x%" PRIx64, name, index,
		            buffer, found, expected);
	json_array_append_new(c->differ,
	                      json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "kernel", name, "weights",
	                                c->mixture, "kv", c->kv, "buffer", buffer, "position", (json_int_t)pass->before,
	                                "tokens", (json_int_t)pass->tokens, "element", (json_int_t)index, "found",
	                                (json_int_t)found, "expected", (json_int_t)expected));
}

/* One buffer after a step; where it differs the device gets the CPU's. */
static bool compare_buffer(struct comparison *c, const struct pass *pass, size_t step, const char *name, void *card,
                           const void *cpu, size_t size, uint64_t bytes, bool shared)
{
	struct device *d = c->card.trial.model->device;
	const uint8_t *want = cpu, *found = c->read;

	if (shared)
		found = card;
	else if (!d->read(d, c->read, card, bytes, &c->err))
		return false;
	if (memcmp(found, want, bytes) == 0)
		return true;
	size_t i = 0;
	while (memcmp(found + i * size, want + i * size, size) == 0)
		i++;
	differs(c, pass, step, name, i, element(found + i * size, size), element(want + i * size, size));
	if (shared)
		memcpy(card, cpu, bytes);
	return shared || d->upload(d, card, cpu, bytes, &c->err);
}

/* What kernels write that has the same layout everywhere. A choice of experts has no forms but such. */
static bool is_common(enum plan_form form) { return form < FORM_INTERLEAVED; }

static size_t element_bytes(enum plan_form form)
{
	return form == FORM_INT8     ? sizeof(int8_t)
	       : form == FORM_SCALES ? sizeof(struct activation_block)
	                             : sizeof(float);
}

/* Whether an op of the step is handed a part of the buffer: what is made inside another op does not get into memory. */
static bool receives(const struct side *s, size_t step, const void *buffer, uint64_t bytes)
{
	for (size_t i = s->begin[step]; i < s->begin[step + 1]; i++)
		for (uint32_t k = 0; k < s->plan->op[i].n_args; k++)
			if (s->plan->op[i].arg[k] - (uint64_t)(uintptr_t)buffer < bytes)
				return true;
	return false;
}

/* A value in one form. */
static bool compare_value(struct comparison *c, const struct pass *pass, size_t step, graph_ref v, enum plan_form form)
{
	static const char *const forms[] = { [FORM_FLOATS] = "floats", [FORM_INT8] = "int8", [FORM_SCALES] = "scales" };
	const struct plan_buffers *a = &c->card.session->engine->memory.buf, *b = &c->cpu.session->engine->memory.buf;
	const uint64_t bytes = a->layout->room[v][form] / a->layout->tokens * pass->tokens;
	char name[TEXT];

	if (!bytes) /* and it has no place */
		return true;
	uint8_t *at = a->values + a->layout->at[v][form];
	if (!receives(&c->card, step, at, bytes))
		return true;
	snprintf(name, sizeof name, "value %u (%s)", v, forms[form]);
	return compare_buffer(c, pass, step, name, at, b->values + b->layout->at[v][form], element_bytes(form), bytes,
	                      false);
}

static bool compare_step(struct comparison *c, const struct pass *pass, size_t step)
{
	const struct plan_buffers *a = &c->card.session->engine->memory.buf, *b = &c->cpu.session->engine->memory.buf;
	const struct model_spec *s = &c->cpu.trial.model->file.spec;

	for (graph_ref v = 1; v < a->layout->n_values; v++)
		for (unsigned form = 0; is_common((enum plan_form)form); form++)
			if (a->layout->same[v] == v && !compare_value(c, pass, step, v, (enum plan_form)form))
				return false;
	return step + 1 < c->card.n || compare_buffer(c, pass, step, "logits", a->logits, b->logits, sizeof(float),
	                                              s->vocab * sizeof(float), true);
}

/* The device's activations become the CPU's. */
static bool level(struct comparison *c)
{
	struct device *d = c->card.trial.model->device;
	const struct plan_buffers *a = &c->card.session->engine->memory.buf, *b = &c->cpu.session->engine->memory.buf;

	for (graph_ref v = 1; v < a->layout->n_values; v++)
		for (unsigned form = 0; is_common((enum plan_form)form); form++) {
			const uint64_t bytes = a->layout->room[v][form];
			if (bytes && a->layout->same[v] == v &&
			    !d->upload(d, a->values + a->layout->at[v][form], b->values + b->layout->at[v][form], bytes,
			               &c->err))
				return false;
		}
	memcpy(a->logits, b->logits, c->cpu.trial.model->file.spec.vocab * sizeof(float));
	return true;
}

/* ---- passes */

/* Computes what is before the pass, and the pass as a whole, so that its inputs are in place. */
static bool begin_pass(struct side *s, const struct pass *pass, struct error *err)
{
	int32_t ids[TRIAL_CONTEXT];
	jit_error e = { 0 };
	double ignored;

	for (int i = 0; i < TRIAL_CONTEXT; i++)
		ids[i] = (i * 37 + 11) % 320;
	if (jit_session_rewind(s->session, 0, &e) != JIT_OK ||
	    (pass->before && jit_session_feed(s->session, ids, pass->before, &e) != JIT_OK))
		return error_set(err, ERROR_DEVICE, "%s", e.message);
	session_rest(s->session);
	return session_compute_pass(s->session, ids + pass->before, pass->tokens, PLAN_LAST_LOGITS, PROFILE_PROMPT,
	                            &ignored, err) &&
	       (s->plan = engine_find_plan(s->session->engine, pass->tokens, 0, PLAN_LAST_LOGITS, PROFILE_PROMPT, err));
}

static void drop_parts(struct side *s)
{
	for (size_t i = 0; i < s->n_parts; i++) {
		free(s->part[i].op);
		free(s->part[i].stage);
		free(s->part[i].section);
	}
	s->n_parts = 0;
}

static void close_side(struct side *s)
{
	jit_session_close(s->session);
	trial_close(&s->trial);
	drop_parts(s);
}

static bool open_side(struct side *s, const char *mixture, const char *device, const char *isa, int kv,
                      struct error *err)
{
	jit_error e = { 0 };

	*s = (struct side){ .trial.fd = -1 };
	if (!trial_open(&s->trial, SHAPE, mixture, device, isa, &e))
		return error_set(err, ERROR_DEVICE, "%s", e.message);
	s->trial.model->values_apart = true;
	return (s->session = trial_session(&s->trial, kv, &e)) || error_set(err, ERROR_DEVICE, "%s", e.message);
}

static bool compare_pass(struct comparison *c, const struct pass *pass)
{
	if (!begin_pass(&c->card, pass, &c->err) || !begin_pass(&c->cpu, pass, &c->err))
		return false;
	c->kernels += c->card.plan->n_kernels;
	if (!cut(&c->card, &c->cpu, false) && !cut(&c->card, &c->cpu, true))
		return error_set(&c->err, ERROR_UNSUPPORTED, "the plans of a pass over %u tokens cannot be compared",
		                 pass->tokens);
	bool ok = level(c);
	for (size_t i = 0; ok && i < c->card.n; i++, c->steps++)
		ok = run_step(&c->cpu, i, &c->err) && run_step(&c->card, i, &c->err) && compare_step(c, pass, i);
	return ok;
}

static bool compare_model(struct comparison *c, const char *mixture, int kv)
{
	size_t n = report_is_quick() ? 2 : sizeof passes / sizeof *passes;
	bool ok = true;

	c->mixture = mixture;
	c->kv = kv == JIT_KV_Q8_0 ? "q8_0" : "f16";
	for (size_t i = 0; ok && i < n; i++) {
		ok = open_side(&c->card, mixture, c->report->device, NULL, kv, &c->err) &&
		     open_side(&c->cpu, mixture, "cpu", "avx2", kv, &c->err) && compare_pass(c, &passes[i]);
		close_side(&c->card);
		close_side(&c->cpu);
		c->passes++;
	}
	return ok;
}

bool report_kernels(struct report *r)
{
	static const struct {
		const char *mixture;
		int kv;
	} models[] = { { "q8_0", JIT_KV_F16 }, { "q4_k_m", JIT_KV_Q8_0 }, { "bf16", JIT_KV_F16 } };
	static struct comparison c;
	unsigned before = r->differences;
	size_t n = report_is_quick() ? 1 : sizeof models / sizeof *models;
	bool ok;
	char *usual = trial_launch_graphs();

	c = (struct comparison){ .report = r, .read = malloc(1 << 24), .differ = json_array() };
	c.card.trial.fd = c.cpu.trial.fd = -1;
	ok = c.read || error_set(&c.err, ERROR_MEMORY, "no memory to compare kernels");
	for (size_t i = 0; ok && i < n; i++)
		ok = compare_model(&c, models[i].mixture, models[i].kv);
	if (ok)
		report_line("kernels", "%" PRIu64 " steps of %" PRIu64 " passes, %u differ from the CPU", c.steps,
		            c.passes, r->differences - before);
	json_object_set_new(r->object, "kernels",
	                    json_pack("{s:b, s:I, s:I, s:O}", "done", ok, "steps", (json_int_t)c.steps, "kernels",
	                              (json_int_t)c.kernels, "differ", c.differ));
	json_decref(c.differ);
	free(c.read);
	trial_launch(usual);
	return ok || report_stop(r, "kernels were compared", &c.err);
}
