#include "runtime/device/program.h"

#include <stdlib.h>
#include <string.h>

static bool uses_lds(const struct object *o) { return o->frame_bytes || o->shared_bytes; }

/* A wave that is ahead must not write where others still read: between two uses of LDS all waves of the workgroup
 * meet. */
static void keep_lds_apart(struct rdna_command *command, const struct plan *p, const struct object *const object[])
{
	bool used = false; /* by a later command, before everyone meets anyway */

	for (size_t i = p->n_ops; i-- > 0;) {
		if (command[i].flags & RDNA_COMMAND_BARRIER)
			used = false;
		if (!uses_lds(object[p->op[i].kernel]))
			continue;
		command[i].flags |= used ? RDNA_COMMAND_WORKGROUP_BARRIER : 0;
		used = true;
	}
}

static void fill_commands(struct program *out, const struct plan *p, const uint64_t *args,
                          const struct object *const object[])
{
	for (size_t i = 0; i < p->n_ops; i++) {
		const struct plan_op *l = &p->op[i];
		out->command[i] = (struct rdna_command){
			.function = out->offset[l->kernel],
			.arg = (uint64_t)(uintptr_t)(args + (l->arg - p->args)),
			.begin = l->begin,
			.flags = (l->barrier ? RDNA_COMMAND_BARRIER : 0) |
			         (object[l->kernel]->cooperative ? RDNA_COMMAND_COOPERATIVE : 0)
		};
		out->of_op[i] = i;
	}
	out->of_op[p->n_ops] = out->n_commands = p->n_ops;
	keep_lds_apart(out->command, p, object);
}

/* Where part k of n of an op's units begins. */
static int64_t part_begin(const struct plan_op *l, uint64_t k, uint64_t n)
{
	uint64_t units = (uint64_t)(l->end - l->begin);

	return l->begin + (int64_t)(units / n * k + (k < units % n ? k : units % n));
}

/* Ops of a stage go on where the one before has ended, so that small ones find workgroups with nothing else to do. */
void program_partition(struct program *program, const struct plan *p, uint32_t workgroups)
{
	uint32_t next = 0;

	program->workgroups = workgroups;
	for (size_t i = 0; i < p->n_ops; i++) {
		size_t first = program->of_op[i], n = program->of_op[i + 1] - first;
		for (size_t k = 0; k < n; k++) {
			struct rdna_command *command = &program->command[first + k];
			uint64_t shares = (uint64_t)workgroups *
			                  (command->flags & RDNA_COMMAND_COOPERATIVE ? 1 : RDNA_PROGRAM_WAVES);
			command->begin = part_begin(&p->op[i], k, n);
			uint64_t units = (uint64_t)(part_begin(&p->op[i], k + 1, n) - command->begin);
			command->per = (uint32_t)(units / shares);
			command->rest = (uint32_t)(units % shares);
			command->first = next;
			next = (next + command->rest) % workgroups;
		}
		next = p->op[i].barrier ? 0 : next;
	}
}

bool program_split(struct program *program, const struct plan *p, const uint32_t *parts)
{
	struct rdna_command *command, *to;
	size_t n = 0;

	for (size_t i = 0; i < p->n_ops; i++)
		n += parts[i];
	if (!(command = calloc(n + 1, sizeof *command)))
		return false;
	to = command;
	for (size_t i = 0; i < p->n_ops; i++) {
		program->of_op[i] = (size_t)(to - command);
		for (uint32_t k = 0; k < parts[i]; k++)
			*to++ = program->command[i];
	}
	program->of_op[p->n_ops] = program->n_commands = n;
	free(program->command);
	program->command = command;
	return true;
}

const struct kernel *program_function(struct registry *r, const struct key *key, enum kernel_source *from,
                                      struct error *err)
{
	const struct kernel *k = registry_get(r, key, from, err);
	char text[KEY_TEXT_MAX];

	if (!k)
		return NULL;
	uint32_t lds = rdna_program_lds(&k->object);
	if (lds <= RDNA_PROGRAM_LDS)
		return k;
	error_set(err, ERROR_DEVICE, "kernel %s needs %u bytes of LDS for a workgroup, which has at most %d",
	          key_text(key, text, sizeof text), lds, RDNA_PROGRAM_LDS);
	return NULL;
}

bool program_make(struct program *out, const struct plan *p, const uint64_t *args, struct registry *r,
                  const struct target *target, struct error *err)
{
	const struct object **object = calloc(p->n_kernels, sizeof *object);
	bool ok = true;

	*out = (struct program){ .offset = calloc(p->n_kernels, sizeof *out->offset),
		                 .command = calloc(p->n_ops + 1, sizeof *out->command),
		                 .of_op = calloc(p->n_ops + 1, sizeof *out->of_op) };
	if (!object || !out->offset || !out->command || !out->of_op)
		ok = error_set(err, ERROR_MEMORY, "no memory for a program of %zu commands", p->n_ops);
	for (size_t i = 0; ok && i < p->n_kernels; i++) {
		const struct kernel *k = program_function(r, &p->kernel[i].key, NULL, err);
		ok = k != NULL;
		object[i] = k ? &k->object : NULL;
	}
	ok = ok && target->backend->link(&out->bytes, &out->size, target, object, p->n_kernels, out->offset, err);
	if (ok)
		fill_commands(out, p, args, object);
	else
		program_free(out);
	free(object);
	return ok;
}

void program_free(struct program *p)
{
	free(p->bytes);
	free(p->offset);
	free(p->command);
	free(p->of_op);
	*p = (struct program){ 0 };
}

size_t program_barriers(const struct program *p, size_t first, size_t end)
{
	size_t n = 0;

	for (size_t i = first; i + 1 < end; i++)
		n += p->command[i].flags & RDNA_COMMAND_BARRIER;
	return n;
}
