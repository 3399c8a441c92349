/* programs/jitrun/doctor_report.c - jitrun doctor --report: the trials in their order, the file, and the lines for
 * people. */
#include "programs/jitrun/doctor_report.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "jit/key.h"
#include "jit/target.h"
#include "programs/common/facts.h"
#include "programs/jitrun/jitrun_doctor.h"
#include "programs/jitrun/jitrun_parts.h"
#include "programs/common/output.h"
#include "programs/synth/synth.h"
#include "programs/common/version.h"
#include "runtime/device/amd/amd_topology.h"

enum { PROMPT = 24, CHOSEN = 8 };

void report_line(const char *name, const char *format, ...)
{
	char text[FACTS_QUOTED];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	facts_row(stdout, name, "%s.", text);
	fflush(stdout);
}

bool report_stop(struct report *r, const char *during, const struct error *why)
{
	r->stopped = true;
	error_set(&r->stop, why->code ? why->code : ERROR_DEVICE, "while %s: %s", during, why->text);
	return false;
}

bool report_stop_public(struct report *r, const char *during, const jit_error *why)
{
	struct error e = { 0 };

	error_set(&e, ERROR_DEVICE, "%s", why->message);
	return report_stop(r, during, &e);
}

bool report_is_quick(void) { return getenv("JITRUN_REPORT_QUICK") != NULL; }

/* ---- models without a file */

static bool write_model(struct trial_model *t, char *path, size_t size, const char *shape, const char *mixture,
                        struct error *err)
{
	struct model_shape s;

	t->fd = shape_parse(&s, shape, err) ? synth_temporary(path, size, err) : -1;
	return t->fd >= 0 && synth_write(t->fd, "a model for trials", &s, mixture_find(mixture), NULL, NULL, err);
}

bool trial_open(struct trial_model *t, const char *shape, const char *mixture, const char *device, const char *isa,
                jit_error *err)
{
	struct error e = { 0 };
	char path[128];

	*t = (struct trial_model){ .fd = -1 };
	if (write_model(t, path, sizeof path, shape, mixture, &e))
		return (t->model = jit_model_open(
				path,
				&JIT_MODEL_OPTIONS(.device = device, .isa = isa, .cache_dir = "", .tune = JIT_TUNE_OFF),
				err)) != NULL;
	*err = (jit_error){ .code = JIT_ERROR_IO };
	snprintf(err->message, sizeof err->message, "%s", e.text);
	return false;
}

void trial_close(struct trial_model *t)
{
	jit_model_close(t->model);
	if (t->fd >= 0)
		close(t->fd);
	*t = (struct trial_model){ .fd = -1 };
}

#define LAUNCH "JITRUN_CUDA_LAUNCH"

char *trial_launch_graphs(void)
{
	const char *usual = getenv(LAUNCH);
	char *copy = usual ? strdup(usual) : NULL;

	setenv(LAUNCH, "graph", 1);
	return copy;
}

void trial_launch(char *usual)
{
	if (usual)
		setenv(LAUNCH, usual, 1);
	else
		unsetenv(LAUNCH);
	free(usual);
}

jit_session *trial_session(struct trial_model *t, int kv, jit_error *err)
{
	return jit_session_open(
		t->model, &JIT_SESSION_OPTIONS(.context = TRIAL_CONTEXT, .kv = kv, .speculate = JIT_SPECULATE_OFF),
		err);
}

/* ---- the machine */

/* "6.8.0" of "6.8.0-somebody's": what people name their kernels is theirs. */
static json_t *kernel_version(void)
{
	struct utsname u;

	return uname(&u) == 0 ? json_stringn(u.release, strspn(u.release, "0123456789.")) : json_null();
}

static void tell_machine(struct report *r)
{
	const struct target *native = target_native(NULL);
	char cpu[64], codegen[32];

	snprintf(codegen, sizeof codegen, "%016llx", (unsigned long long)key_codegen_rdna);
	json_object_set_new(r->object, "jitrun", json_string(jit_version()));
	json_object_set_new(r->object, "commit", json_string(version_commit));
	json_object_set_new(r->object, "code_generator", json_string(codegen));
	json_object_set_new(r->object, "device", json_string(r->device));
	json_object_set_new(r->object, "kernel", kernel_version());
	json_object_set_new(r->object, "processor", output_string(target_cpu_name(cpu, sizeof cpu)));
	json_object_set_new(r->object, "processor_target", native ? json_string(native->name) : json_null());
}

static json_t *card_member(const struct amd_card *c)
{
	return json_pack("{s:o, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:b, s:i, s:i}", "name",
	                 output_string(c->name), "target", c->target ? c->target->name : "", "gfx_version",
	                 (int)c->gfx_version, "units", (int)c->units, "simds_per_unit", (int)c->simds_per_unit,
	                 "waves_per_simd", (int)c->waves_per_simd, "lds_bytes", (int)c->lds_bytes, "clock_mhz",
	                 (int)c->clock_mhz, "vram_bytes", (json_int_t)c->vram_bytes, "visible_bytes",
	                 (json_int_t)c->visible_bytes, "bandwidth", (json_int_t)c->bandwidth, "integrated",
	                 c->integrated, "cwsr_bytes", (int)c->cwsr_bytes, "ctl_stack_bytes", (int)c->ctl_stack_bytes);
}

/* Which card it is, where it is one. */
static bool tell_card(struct report *r)
{
	static struct amd_topology t;
	struct error err = { 0 };
	size_t n = strcspn(r->device, ":");

	if (n != 3 || strncmp(r->device, "amd", 3) != 0) {
		report_line("device", "%s", r->device);
		return true;
	}
	const struct amd_card *c =
		amd_topology_read(&t, &err) ? amd_topology_find(&t, r->device[n] ? r->device + n + 1 : "", &err) : NULL;
	if (!c)
		return report_stop(r, "looking for the card", &err);
	char size[FACTS_SIZE];
	json_object_set_new(r->object, "card", card_member(c));
	json_object_set_new(r->object, "drivers", report_card_drivers(c));
	r->bandwidth = c->bandwidth;
	r->units = c->units;
	report_line("device", "%s, %s, %u compute units, %s of memory", c->name, c->target->name, c->units,
	            facts_size(size, c->vram_bytes));
	return true;
}

/* ---- whole models */

/* The logits after a prompt and after each token that is chosen from the CPU's. */
static bool follow(jit_session *device, jit_session *cpu, size_t vocab, unsigned *wrong, jit_error *err)
{
	int32_t ids[PROMPT], id = 0;

	for (int i = 0; i < PROMPT; i++)
		ids[i] = (i * 53 + 7) % (int32_t)vocab;
	if (jit_session_feed(device, ids, PROMPT, err) != JIT_OK || jit_session_feed(cpu, ids, PROMPT, err) != JIT_OK)
		return false;
	for (int i = 0;; i++) {
		const float *a = jit_session_logits(device, err), *b = a ? jit_session_logits(cpu, err) : NULL;
		if (!b)
			return false;
		*wrong += memcmp(a, b, vocab * sizeof *a) != 0;
		if (i == CHOSEN)
			return true;
		for (size_t t = 0; t < vocab; t++)
			id = b[t] > b[id] ? (int32_t)t : id;
		if (jit_session_feed(device, &id, 1, err) != JIT_OK || jit_session_feed(cpu, &id, 1, err) != JIT_OK)
			return false;
	}
}

bool report_logits(struct report *r, const char *member, const char *shape, const char *mixture)
{
	struct trial_model a, b = { .fd = -1 };
	jit_error err = { 0 };
	unsigned wrong = 0;
	bool ok = trial_open(&a, shape, mixture, r->device, NULL, &err) &&
	          trial_open(&b, shape, mixture, "cpu", NULL, &err);
	jit_session *x = ok ? trial_session(&a, JIT_KV_F16, &err) : NULL,
		    *y = x ? trial_session(&b, JIT_KV_F16, &err) : NULL;

	ok = y && follow(x, y, 1024, &wrong, &err);
	jit_session_close(x);
	jit_session_close(y);
	trial_close(&a);
	trial_close(&b);
	json_object_set_new(r->object, member,
	                    json_pack("{s:b, s:i, s:i}", "done", ok, "logits", CHOSEN + 1, "differ", (int)wrong));
	if (!ok)
		return report_stop_public(r, "a whole model ran", &err);
	rung_tried(r, CHOSEN + 1, wrong);
	if (wrong)
		report_line(member, "the logits of %u of %d tokens are not the CPU's", wrong, CHOSEN + 1);
	else
		report_line(member, "the logits of all %d tokens are the CPU's", CHOSEN + 1);
	return true;
}

bool report_model(struct report *r)
{
	return report_logits(r, "model",
	                     "arch=llama,hidden=512,layers=4,heads=8,kv_heads=2,head_dim=64,ffn=1024,vocab=1024",
	                     "q4_k_m");
}

/* ---- all of it */

static const char *guide(const char *device)
{
	return strstr(device, "cuda") || strstr(device, ":sm") ? "docs/nvidia.md" : "docs/amd.md";
}

static void say_end(struct report *r, const char *path)
{
	if (r->stopped) {
		report_line("stopped", "%s", r->stop.text);
		if (r->began)
			report_line("what to do",
			            "send the file as it is; end other programs that use the card; if it does not "
			            "answer any more, restart the machine, and go on with --from; %s has more",
			            guide(r->device));
		else
			report_line("what to do", "%s says how a card is set up", guide(r->device));
	}
	ladder_verdict(r);
	char quoted[1024];
	printf("%-*s%s\n", FACTS_NAME, "file", error_quote(quoted, sizeof quoted, path, strlen(path)));
}

int doctor_report(const char *device, const char *path, unsigned from)
{
	struct report r = { .device = device, .object = json_object(), .path = path };
	struct error err = { 0 };

	if (!ladder_open(&r, from, &err) || !report_write(&r, &err)) { /* better known now than after the trials */
		json_decref(r.object);
		return jitrun_fail_with(&err);
	}
	tell_machine(&r);
	r.began = tell_card(&r);
	bool ok = !r.began || ladder_climb(&r, from, &err);
	json_object_set_new(r.object, "stopped", r.stopped ? json_string(r.stop.text) : json_null());
	json_object_set_new(r.object, "differences", json_integer((json_int_t)r.differences));
	if (ok)
		say_end(&r, path);
	ok = ok && report_write(&r, &err);
	const bool lost = r.stopped || ladder_has(&r, "did not come back"), differs = ladder_has(&r, "differs");
	json_decref(r.object);
	return !ok ? jitrun_fail_with(&err) : lost ? 1 : differs ? EXIT_NO : 0;
}
