/* programs/jitk/jitk_look.c - a kernel without a run: what is wrong with it, how it finds memory, its IR and machine
 * code, and where it is native. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jit/compile.h"
#include "jit/store/safefile.h"
#include "programs/common/device_auto.h"
#include "programs/common/kernel_file.h"
#include "programs/jitk/jitk.h"

/* ---- a text and one of its kernels */

struct look {
	struct kernel_file in;
	struct jk_kernel *kernel;
};

static void look_close(struct look *l)
{
	if (!l)
		return;
	jk_kernel_close(l->kernel);
	kernel_file_close(&l->in);
	free(l);
}

static bool bind(struct look *l, const char *kernel, struct error *err)
{
	jk_kernel_close(l->kernel);
	l->kernel = kernel_file_bind(&l->in, kernel, &jitk.constants, err);
	return l->kernel;
}

/* NULL: an error was printed. */
static struct look *look_open(int *status)
{
	struct look *l = calloc(1, sizeof *l);
	struct error e = { 0 };

	if (!l)
		error_set(&e, ERROR_MEMORY, "no memory for a file of kernels");
	else if (kernel_file_open(&l->in, jitk.file, jitk.text, jitk.text_bytes, &e))
		return l;
	look_close(l);
	*status = jitk_fail(e.text);
	return NULL;
}

/* ---- check */

static void print_uses(const struct jk_kernel *k)
{
	for (size_t i = 0; i < jk_uses(k); i++) {
		const struct jk_use *u = jk_use(k, i);
		char stride[32] = "";
		static const char *const pattern[] = { [JK_UNIFORM] = "uniform",
			                               [JK_CONTIGUOUS] = "contiguous",
			                               [JK_STRIDED] = "strided",
			                               [JK_GATHER] = "gather" };
		if (u->pattern == JK_STRIDED)
			snprintf(stride, sizeof stride, " %" PRId64, u->stride);
		printf("%s:%u:%u: %s %s: %s%s%s\n", jitk.file, u->line, u->column, u->write ? "writes" : "reads",
		       u->array, u->write && u->pattern == JK_GATHER ? "scatter" : pattern[u->pattern], stride,
		       u->checked ? ", compared with the extents" : "");
	}
	for (size_t i = 0; i < jk_locals(k); i++) {
		const struct jk_local *v = jk_local(k, i);
		printf("%s:%u:%u: %s: %s, %s\n", jitk.file, v->line, v->column, v->name,
		       v->uniform ? "uniform" : "per lane", v->where);
	}
}

/* Every kernel of the file, or the one that was asked for. */
static int each_kernel(void (*visit)(const struct look *l, const char *name))
{
	struct error e = { 0 };
	int status;
	struct look *l = look_open(&status);

	if (!l)
		return status;
	for (size_t i = 0; e.code == ERROR_NONE && i < jk_kernels(l->in.file); i++) {
		const char *name = jk_kernel_name(l->in.file, i);
		if ((!jitk.kernel || strcmp(jitk.kernel, name) == 0) && bind(l, name, &e))
			visit(l, name);
	}
	if (e.code == ERROR_NONE && jitk.kernel && !l->kernel)
		bind(l, jitk.kernel, &e); /* which says that the file has no such kernel */
	look_close(l);
	return e.code == ERROR_NONE ? JITK_DONE : jitk_fail(e.text);
}

static void check_kernel(const struct look *l, const char *name)
{
	if (jitk.quiet)
		return;
	printf("kernel %s: %" PRIu64 " work units, reads %" PRIu64 " bytes, writes %" PRIu64 ", %" PRIu64
	       " operations\n",
	       name, jk_units(l->kernel), jk_bytes_read(l->kernel), jk_bytes_written(l->kernel),
	       jk_operations(l->kernel));
	print_uses(l->kernel);
}

int jitk_check(void) { return each_kernel(check_kernel); }

/* ---- IR and machine code */

static const struct target *wanted_target(struct error *err)
{
	const char *name = jitk.isa;
	const struct target *t;
	char names[TARGET_LIST_MAX];

	if (!name && jitk.device && strncmp(jitk.device, "sim:", 4) == 0)
		name = jitk.device + 4;
	if (!name)
		return target_native(err);
	if (!(t = target_find(name)))
		error_set(err, ERROR_ARGUMENT, "target %.32s is unknown; known: %s", name,
		          target_list(names, sizeof names, TARGETS_ALL, "", ", "));
	return t;
}

static int look_at(bool (*print)(const struct look *, const struct target *, struct error *))
{
	struct error e = { 0 };
	int status;
	struct look *l = look_open(&status);
	const struct target *t = l ? wanted_target(&e) : NULL;

	if (!l)
		return status;
	if (t && bind(l, jitk.kernel, &e))
		print(l, t, &e);
	look_close(l);
	return e.code == ERROR_NONE ? JITK_DONE : jitk_fail(e.text);
}

static bool print_ir(const struct look *l, const struct target *t, struct error *err)
{
	struct ir ir;

	if (!jk_build(&ir, l->kernel, t, jitk.check, err))
		return false;
	ir_print(&ir, stdout);
	ir_free(&ir);
	return true;
}

/* The same bytes as a run generates, whose dump this is. */
static bool compile(const struct look *l, const struct target *t, FILE *dump, struct object *out,
                    struct compile_stats *s, struct error *err)
{
	const struct compile_options o = { .dump_asm = dump };
	struct ir ir;

	if (!jk_build(&ir, l->kernel, t, jitk.check, err))
		return false;
	bool ok = compile_ir(out, &ir, t, &o, s, err);
	ir_free(&ir);
	return ok;
}

static bool print_code(const struct look *l, const struct target *t, struct error *err)
{
	struct object o = { 0 };
	struct compile_stats s;
	const bool text = strncmp(t->name, "sm", 2) == 0;

	if (!compile(l, t, text ? NULL : stdout, &o, &s, err))
		return false;
	if (text)
		fwrite(o.code, 1, o.code_bytes, stdout);
	object_free(&o);
	return true;
}

int jitk_emit_ir(void) { return look_at(print_ir); }

/* ---- files that a card's driver loads */

static bool write_file(const char *path, const uint8_t *bytes, size_t n, struct error *err)
{
	FILE *f = safefile_stream(path);
	bool ok = f && fwrite(bytes, 1, n, f) == n;

	ok = (!f || fclose(f) == 0) && ok;
	return ok || error_set(err, ERROR_IO, "%.400s: could not be written whole: %s", path, strerror(errno));
}

/* KERNEL.TARGET.co, which has jitrun's driver and the kernel, or KERNEL.TARGET.ptx. */
static bool write_object(const struct look *l, const struct target *t, struct error *err)
{
	const struct object *one[1];
	struct object o = { 0 };
	struct compile_stats s;
	char path[4096];
	uint8_t *linked = NULL;
	uint64_t offset;

	if (t->backend->host_runs)
		return error_set(err, ERROR_ARGUMENT,
		                 "--dump-objects: target %s is no card; give one with --isa, such as gfx1100 or sm90",
		                 t->name);
	if (mkdir(jitk.dump_objects, 0777) != 0 && errno != EEXIST)
		return error_set(err, ERROR_IO, "%.400s: the directory could not be made: %s", jitk.dump_objects,
		                 strerror(errno));
	const size_t length = (size_t)snprintf(path, sizeof path, "%s/%s.%s.%s", jitk.dump_objects,
	                                       jitk.kernel ? jitk.kernel : jk_kernel_name(l->in.file, 0), t->name,
	                                       t->backend->link ? "co" : "ptx");
	if (length >= sizeof path)
		return error_set(err, ERROR_ARGUMENT, "--dump-objects: the path has %zu bytes, expected at most %zu",
		                 length, sizeof path - 1);
	if (!compile(l, t, NULL, &o, &s, err))
		return false;
	size_t n = o.code_bytes;
	one[0] = &o;
	bool ok = (!t->backend->link || t->backend->link(&linked, &n, t, one, 1, &offset, err)) &&
	          write_file(path, linked ? linked : o.code, n, err);
	if (ok && !jitk.quiet)
		fprintf(stderr, "jitk: %s, %zu bytes\n", path, n);
	free(linked);
	object_free(&o);
	return ok;
}

int jitk_disassemble(void) { return look_at(jitk.dump_objects ? write_object : print_code); }

/* ---- the dispatch report */

static void report_target(const struct look *l, const struct target *t, const char *name)
{
	struct target_cpu cpu = target_this_cpu();
	struct compile_stats s = { 0 };
	struct object o = { 0 };
	struct error e = { 0 };

	if (!compile(l, t, NULL, &o, &s, &e)) {
		printf("%-14s %-14s refused: %s\n", name, t->name, e.text);
		return;
	}
	printf("%-14s %-14s %s: %u bytes, %u instructions", name, t->name,
	       !t->backend->host_runs       ? "native on such a card"
	       : target_runs(&cpu, t, NULL) ? "native"
	                                    : "native, not on this CPU",
	       o.code_bytes, s.machine_instructions);
	const unsigned registers = s.vector_regs_used ? s.vector_regs_used : o.vector_regs;
	if (registers) /* of PTX only the driver knows */
		printf(", %u vector registers, %u spills", registers, s.spills);
	putchar('\n');
	object_free(&o);
}

static void report_kernel(const struct look *l, const char *name)
{
	for (int t = TARGET_NONE + 1; t < TARGET_COUNT; t++)
		if (target_table[t].cards <= 1)
			report_target(l, &target_table[t], name);
}

int jitk_report(void) { return each_kernel(report_kernel); }

/* ---- --device auto */

/* Arrays that are read go to a card, and those that are written come back. */
static jit_work work_of(const struct jk_kernel *k)
{
	jit_work w = JIT_WORK(.bytes = jk_bytes_read(k) + jk_bytes_written(k), .operations = jk_operations(k));

	for (size_t i = 0; i < jk_parameters(k); i++) {
		const struct jk_parameter *p = jk_parameter(k, i);
		w.memory += p->access == JK_SCALAR ? 0 : p->bytes;
		w.copied += p->access == JK_SCALAR ? 0 : p->access == JK_IN ? p->bytes : 2 * p->bytes;
	}
	return w;
}

bool jitk_choose_device(int *status)
{
	static char device[DEVICE_AUTO_MAX];
	struct error e = { 0 };
	jit_error err = { 0 };
	bool ok = false;

	if (!device_is_auto(jitk.device))
		return true;
	struct look *l = look_open(status);
	if (!l)
		return false;
	if (!bind(l, jitk.kernel, &e)) {
		*status = jitk_fail(e.text);
	} else {
		const jit_work w = work_of(l->kernel);
		ok = device_auto_choose(&w, "a launch", jitk.quiet, device, &err);
		*status = ok ? JITK_DONE : jitk_fail_error(&err);
	}
	jitk.device = device;
	look_close(l);
	return ok;
}
