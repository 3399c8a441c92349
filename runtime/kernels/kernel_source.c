/* runtime/kernels/kernel_source.c - a text in the kernel language as a kernel that is open: jit_kernel_open().
 *
 * Owns: what of the options is handed to the language, the sentences that come back, and the identity in a kernel's
 * key.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jit/ir/ir.h"
#include "language/jk.h"
#include "runtime/kernels/compute.h"
#include "runtime/model/model.h"
#include "runtime/model/options.h"
#include "runtime/model/sized.h"

enum { SOURCE_MAX = 1 << 20, CONSTANTS_MAX = 64, CONSTANTS_BYTES = 4096 };

/* ---- the text */

/* malloc'ed, 0 behind its *n bytes. NULL: err. */
static char *read_source(const char *path, size_t *n, struct error *err)
{
	FILE *f = fopen(path, "rb");
	char *text = f ? malloc(SOURCE_MAX + 2) : NULL;

	if (!f)
		error_set(err, ERROR_IO, "%.300s: %s", path, strerror(errno));
	else if (!text)
		error_set(err, ERROR_MEMORY, "no memory for the text of %.300s", path);
	if (text) {
		*n = fread(text, 1, SOURCE_MAX + 1, f);
		text[*n] = 0;
		if (ferror(f)) {
			error_set(err, ERROR_IO, "%.300s: cannot be read: %s", path, strerror(errno));
		} else if (*n > SOURCE_MAX) {
			error_set(err, ERROR_FORMAT, "%.300s: the text has more than %d bytes", path, SOURCE_MAX);
		} else {
			fclose(f);
			return text;
		}
		free(text);
	}
	if (f)
		fclose(f);
	return NULL;
}

/* ---- "n=1000 scale=0.5" */

struct constants {
	char text[CONSTANTS_BYTES];
	struct jk_value value[CONSTANTS_MAX];
	char number[CONSTANTS_MAX][24]; /* of those that are left to tuning */
	size_t n;
};

static bool read_constants(struct constants *c, const char *text, struct error *err)
{
	c->n = 0;
	if (!text)
		return true;
	if (strlen(text) >= sizeof c->text)
		return error_set(err, ERROR_ARGUMENT, "constants: more than %zu bytes", sizeof c->text - 1);
	strcpy(c->text, text);
	for (char *save, *word = strtok_r(c->text, " ,\t\n", &save); word; word = strtok_r(NULL, " ,\t\n", &save)) {
		char *is = strchr(word, '=');
		if (!is || is == word || !is[1])
			return error_set(err, ERROR_ARGUMENT, "constants: \"%.64s\", expected name=value", word);
		if (c->n == CONSTANTS_MAX)
			return error_set(err, ERROR_ARGUMENT, "constants: more than %d values", CONSTANTS_MAX);
		*is = 0;
		for (size_t i = 0; i < c->n; i++)
			if (strcmp(c->value[i].name, word) == 0)
				return error_set(err, ERROR_ARGUMENT, "constants: %.64s has two values", word);
		c->value[c->n++] = (struct jk_value){ word, is + 1 };
	}
	return true;
}

/* Whether one of the first n is of that name. */
static bool is_given(const struct constants *c, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(c->value[i].name, name) == 0)
			return true;
	return false;
}

/* ---- constants that the text leaves to tuning */

static bool is_open(const struct constants *c, size_t n, const struct jk_constant *is)
{
	return is->tuned && is->choices && !is_given(c, n, is->name);
}

/* How many combinations there are of what the caller leaves open; at least 1. */
static size_t count_variants(const struct jk_file *f, const struct constants *given)
{
	size_t n = 1;

	for (size_t i = 0; i < jk_constants(f); i++)
		if (is_open(given, given->n, jk_constant(f, i)) &&
		    n * jk_constant(f, i)->choices <= SOURCE_VARIANTS_MAX)
			n *= jk_constant(f, i)->choices;
	return n;
}

/* Combination number `variant` as constants, which are added to those given; the text of it goes to out. What there are
 * too many of has its first choice. */
static bool add_variant(const struct jk_file *f, struct constants *c, size_t variant, char *out, size_t cap,
                        struct error *err)
{
	const size_t given = c->n;
	size_t at = 0, n = 1;

	out[0] = 0;
	for (size_t i = 0; i < jk_constants(f); i++) {
		const struct jk_constant *is = jk_constant(f, i);
		size_t choice = 0;
		if (!is_open(c, given, is))
			continue;
		if (n * is->choices <= SOURCE_VARIANTS_MAX) {
			n *= is->choices;
			choice = variant % is->choices;
			variant /= is->choices;
		}
		if (c->n == CONSTANTS_MAX)
			return error_set(err, ERROR_ARGUMENT, "constants: more than %d values", CONSTANTS_MAX);
		snprintf(c->number[c->n], sizeof c->number[c->n], "%lld", (long long)is->choice[choice]);
		const int k = snprintf(out + at, cap - at, "%s%s=%s", at ? " " : "", is->name, c->number[c->n]);
		if (k < 0 || at + (size_t)k >= cap)
			return error_set(err, ERROR_ARGUMENT, "constants: too many are left to tuning");
		c->value[c->n] = (struct jk_value){ is->name, c->number[c->n] };
		c->n++;
		at += (size_t)k;
	}
	return true;
}

/* ---- messages */

/* All of them for the caller, as far as there is room; the first one for err. Nothing is cut within a character. */
static void report(const jit_kernel_options *o, const char *name, const char *text, size_t n,
                   const struct jk_messages *messages, struct error *err)
{
	const struct jk_message *first = &messages->message[0];
	char *all = NULL;
	size_t size = 0;
	FILE *out = o->messages && o->n_messages ? open_memstream(&all, &size) : NULL;

	if (out) {
		jk_print_messages(name, text, n, messages, out);
		fclose(out);
	}
	if (all) {
		size = size < o->n_messages ? size : o->n_messages - 1;
		while (size > 0 && ((uint8_t)all[size] & 0xc0) == 0x80)
			size--;
		memcpy(o->messages, all, size);
		o->messages[size] = 0;
		free(all);
	}
	if (messages->n && first->line)
		error_set(err, ERROR_FORMAT, "%.80s:%u:%u: %s", name, first->line, first->column, first->text);
	else
		error_set(err, ERROR_FORMAT, "%.80s: %s", name, messages->n ? first->text : "no kernel, and no reason");
}

/* ---- the kernel */

/* The language makes the IR from its beginning. */
static bool build(const void *user, struct ir *ir, const struct target *target, struct error *err)
{
	const struct source_kernel *s = user;
	struct ir made;

	/* the interpreter judges what is made for machines, so it runs the kernel as it was written */
	if (!(s->interpreted
	              ? jk_build_lanes(&made, s->bound, target->lanes, target->waves ? target->waves : 1, s->check, err)
	              : jk_build(&made, s->bound, target, s->check, err)))
		return false;
	ir_free(ir);
	*ir = made;
	return true;
}

static bool fault(const void *user, const uint64_t words[4], char *out, size_t cap)
{
	return jk_fault_text(((const struct source_kernel *)user)->bound, words, out, cap);
}

static void take_parameters(jit_parameter *out, const struct jk_kernel *k)
{
	static const int type[] = {
		[JK_BOOL] = JIT_TYPE_BOOL, [JK_F32] = JIT_TYPE_F32, [JK_F64] = JIT_TYPE_F64, [JK_I32] = JIT_TYPE_I32,
		[JK_U32] = JIT_TYPE_U32,   [JK_I64] = JIT_TYPE_I64, [JK_U64] = JIT_TYPE_U64, [JK_F16] = JIT_TYPE_F16,
		[JK_BF16] = JIT_TYPE_BF16, [JK_I8] = JIT_TYPE_I8,   [JK_U8] = JIT_TYPE_U8,   [JK_I16] = JIT_TYPE_I16,
		[JK_U16] = JIT_TYPE_U16
	};
	static const int access[] = {
		[JK_SCALAR] = JIT_SCALAR, [JK_IN] = JIT_IN, [JK_OUT] = JIT_OUT, [JK_INOUT] = JIT_INOUT
	};

	for (size_t i = 0; i < jk_parameters(k); i++) {
		const struct jk_parameter *p = jk_parameter(k, i);
		out[i] = (jit_parameter){ .size = sizeof *out,
			                  .name = p->name,
			                  .type = type[p->type],
			                  .access = access[p->access],
			                  .dims = (int)p->dims,
			                  .elements = p->elements,
			                  .bytes = p->bytes };
		for (unsigned d = 0; d < p->dims; d++)
			out[i].extent[d] = p->extent[d];
	}
}

/* The name of the kernel that was bound. */
static const char *name_of(const struct jk_file *f, const char *requested)
{
	for (size_t i = 0; i < jk_kernels(f); i++)
		if (!requested || strcmp(jk_kernel_name(f, i), requested) == 0)
			return jk_kernel_name(f, i);
	return requested;
}

void kernel_source_close(struct source_kernel *s)
{
	if (!s)
		return;
	jk_kernel_close(s->bound);
	jk_file_close(s->file);
	free(s->parameter);
	free(s->constants);
	free(s->kernel);
	free(s);
}


static jit_kernel *open_bound(jit_compute *c, struct source_kernel *s, struct error *err)
{
	s->interpreted = c->device->facts.interprets;
	struct kernel_description is = {
		.name = name_of(s->file, s->kernel),
		.build = build,
		.fault = s->check ? fault : NULL,
		.user = s,
		.parameters = jk_parameters(s->bound),
		.units = s->interpreted ? jk_units(s->bound) : jk_units_on(s->bound, c->device->facts.target),
		.bytes_read = jk_bytes_read(s->bound),
		.bytes_written = jk_bytes_written(s->bound),
		.operations = jk_operations(s->bound)
	};

	free(s->parameter);
	if (!(s->parameter = calloc(is.parameters + 1, sizeof *s->parameter))) {
		error_set(err, ERROR_MEMORY, "no memory for a kernel's parameters");
		return NULL;
	}
	take_parameters(s->parameter, s->bound);
	key_user_id(is.id, jk_id(s->bound, s->check));
	is.parameter = s->parameter;
	jit_kernel *k = kernel_open(c, &is, err);
	if (k)
		k->source_text = s;
	return k;
}

/* The text with all its constants, those left open as in combination number `variant`. The texts of the constants must
 * live until this returns alone. False: err. */
static bool bind(struct source_kernel *s, const jit_kernel_options *o, const char *text, size_t n, size_t variant,
                 struct error *err)
{
	const char *name = o->path ? o->path : "kernel";
	struct constants *given = calloc(1, sizeof *given);
	struct jk_messages *messages = calloc(1, sizeof *messages);

	jk_kernel_close(s->bound);
	s->bound = NULL;
	if (!given || !messages) {
		error_set(err, ERROR_MEMORY, "no memory for a kernel's messages");
	} else if (read_constants(given, o->constants, err)) {
		if (!s->file)
			s->file = jk_parse(name, text, n, messages);
		if (s->file)
			s->variants = count_variants(s->file, given);
		if (s->file && !add_variant(s->file, given, variant, s->tuned, sizeof s->tuned, err))
			goto end;
		if (s->file)
			s->bound = jk_bind(s->file, o->kernel, given->value, given->n, messages);
		if (!s->bound)
			report(o, name, text, n, messages, err);
	}
end:
	free(given);
	free(messages);
	return s->bound != NULL;
}

/* The combination that was found the fastest here; 0: none was, or there is one alone. */
static size_t kept_variant(jit_compute *c, struct source_kernel *s)
{
	uint8_t id[KEY_USER_BYTES];
	struct tune_result r;

	key_user_id(id, jk_id(s->bound, s->check));
	key_user(&s->tuning, id, c->device->facts.target->id);
	return s->variants > 1 && tune_find(c->tune, &s->tuning, &r) && r.key.schedule < s->variants
	               ? r.key.schedule
	               : 0;
}

/* A kept combination whose code a sealed cache lacks is no reason to fail where the first one is there. */
static jit_kernel *open_fastest(jit_compute *c, struct source_kernel *s, const jit_kernel_options *o, const char *text,
                                size_t n, struct error *err)
{
	const size_t kept = kept_variant(c, s);
	struct error why = { 0 };
	jit_kernel *k = NULL;

	if (kept && bind(s, o, text, n, kept, err)) {
		if ((k = open_bound(c, s, &why)))
			return k;
		if (!c->sealed) {
			error_set(err, why.code, "%s", why.text);
			return NULL;
		}
	}
	if ((!kept || bind(s, o, text, n, 0, err)) && (k = open_bound(c, s, err)))
		s->tuned[0] = 0;
	return k;
}

static bool keep_options(struct source_kernel *s, const jit_kernel_options *o, struct error *err)
{
	s->check = o->check != 0;
	s->kernel = o->kernel ? strdup(o->kernel) : NULL;
	s->constants = strdup(o->constants ? o->constants : "");
	return ((!o->kernel || s->kernel) && s->constants) || error_set(err, ERROR_MEMORY, "no memory for a kernel");
}

jit_kernel *kernel_source_open(jit_compute *c, const jit_kernel_options *o, size_t variant, struct error *err)
{
	struct source_kernel *s = calloc(1, sizeof *s);
	size_t n = o->source ? o->n ? o->n : strlen(o->source) : 0;
	char *file = NULL;
	const char *text = o->source;
	jit_kernel *k = NULL;

	if (!s)
		error_set(err, ERROR_MEMORY, "no memory for a kernel");
	else if (!o->source && !o->path)
		error_set(err, ERROR_ARGUMENT, "neither a source nor a path was given");
	else if ((text || (text = file = read_source(o->path, &n, err))) && keep_options(s, o, err) &&
	         bind(s, o, text, n, variant == SOURCE_FASTEST ? 0 : variant, err))
		k = variant == SOURCE_FASTEST ? open_fastest(c, s, o, text, n, err) : open_bound(c, s, err);
	free(file);
	if (!k)
		kernel_source_close(s);
	return k;
}

jit_kernel *jit_kernel_open(jit_compute *c, const jit_kernel_options *options, jit_error *err)
{
	struct error e = { 0 };
	jit_kernel_options own;
	jit_kernel *k = NULL;

	if (NEEDED(c, &e) && NEEDED(options, &e) && options_kernel(&own, options, &e)) {
		if (own.messages && own.n_messages)
			own.messages[0] = 0;
		k = kernel_source_open(c, &own, SOURCE_FASTEST, &e);
	}
	model_report(err, &e);
	return k;
}
