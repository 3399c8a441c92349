/* jit/spirv/pipeline.c - the SPIR-V pipeline: IR -> words.
 *
 * Owns: the order of it, the entry and its shares, and the module around it all. What a row of ops.def becomes is
 * flow.c's, math.c's, integer.c's, wide.c's and memory.c's.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "jit/spirv/spirv.h"

static void label(struct spirv_emitter *e, uint32_t id) { SPIRV_PUT(&e->w, e->w.code, Label, id); }
static void branch(struct spirv_emitter *e, uint32_t to) { SPIRV_PUT(&e->w, e->w.code, Branch, to); }

static void branch_on(struct spirv_emitter *e, uint32_t condition, uint32_t then, uint32_t otherwise)
{
	SPIRV_PUT(&e->w, e->w.code, BranchConditional, condition, then, otherwise);
}

/* --- the entry */

#define U32(op, ...) SPIRV_VALUE(&e->w, SPIRV_U32, op, __VA_ARGS__)
#define U64(op, ...) SPIRV_VALUE(&e->w, SPIRV_U64, op, __VA_ARGS__)
#define BOOL(op, ...) SPIRV_VALUE(&e->w, SPIRV_BOOL, op, __VA_ARGS__)

/* Global variables of the entry: what the launch says, and where this invocation is. */
enum { PUSHED, GROUP_AT, GROUPS_OF, SUBGROUP_AT, LANE_AT, ENTRY_VARIABLES };

struct entry {
	uint32_t variable[ENTRY_VARIABLES], member[6]; /* member: pointers to types of those pushed */
};

static uint32_t builtin(struct spirv_emitter *e, enum spirv_type type, uint32_t number)
{
	struct spirv_writer *w = &e->w;
	const uint32_t of = spirv_type(w, type), pointer = spirv_id(w), id = spirv_id(w);

	SPIRV_PUT(w, &w->globals, TypePointer, pointer, SPV_CLASS_Input, of);
	SPIRV_PUT(w, &w->globals, Variable, pointer, id, SPV_CLASS_Input);
	SPIRV_PUT(w, &w->decorations, Decorate, id, SPV_DECORATION_BuiltIn, number);
	return id;
}

/* The members of struct spirv_launch, as they lie. */
static const struct {
	uint8_t type;
	uint32_t offset;
} members[] = {
	{ SPIRV_U64, offsetof(struct spirv_launch, arg) },     { SPIRV_U64, offsetof(struct spirv_launch, begin) },
	{ SPIRV_U64, offsetof(struct spirv_launch, scratch) }, { SPIRV_U64, offsetof(struct spirv_launch, cut) },
	{ SPIRV_U32, offsetof(struct spirv_launch, per) },     { SPIRV_U32, offsetof(struct spirv_launch, rest) }
};
enum { ARG, BEGIN, SCRATCH, CUT, PER, REST, MEMBERS };

static void declare_entry(struct spirv_emitter *e, struct entry *n)
{
	struct spirv_writer *w = &e->w;
	const uint32_t wide = spirv_type(w, SPIRV_U64), word = spirv_type(w, SPIRV_U32), type = spirv_id(w),
		       pointer = spirv_id(w), to_wide = spirv_id(w), to_word = spirv_id(w);

	SPIRV_PUT(w, &w->globals, TypeStruct, type, wide, wide, wide, wide, word, word);
	SPIRV_PUT(w, &w->decorations, Decorate, type, SPV_DECORATION_Block);
	for (uint32_t k = 0; k < MEMBERS; k++) {
		SPIRV_PUT(w, &w->decorations, MemberDecorate, type, k, SPV_DECORATION_Offset, members[k].offset);
		n->member[k] = members[k].type == SPIRV_U64 ? to_wide : to_word;
	}
	SPIRV_PUT(w, &w->globals, TypePointer, pointer, SPV_CLASS_PushConstant, type);
	SPIRV_PUT(w, &w->globals, TypePointer, to_wide, SPV_CLASS_PushConstant, wide);
	SPIRV_PUT(w, &w->globals, TypePointer, to_word, SPV_CLASS_PushConstant, word);
	n->variable[PUSHED] = spirv_id(w);
	SPIRV_PUT(w, &w->globals, Variable, pointer, n->variable[PUSHED], SPV_CLASS_PushConstant);
	n->variable[GROUP_AT] = builtin(e, SPIRV_TRIPLE, SPV_BUILTIN_WorkgroupId);
	n->variable[GROUPS_OF] = builtin(e, SPIRV_TRIPLE, SPV_BUILTIN_NumWorkgroups);
	n->variable[SUBGROUP_AT] = builtin(e, SPIRV_U32, SPV_BUILTIN_SubgroupId);
	n->variable[LANE_AT] = builtin(e, SPIRV_U32, SPV_BUILTIN_SubgroupLocalInvocationId);
}

static uint32_t pushed(struct spirv_emitter *e, const struct entry *n, uint32_t number)
{
	struct spirv_writer *w = &e->w;
	const uint32_t at = spirv_u32(w, number), id = spirv_id(w);

	SPIRV_PUT(w, w->code, AccessChain, n->member[number], id, n->variable[PUSHED], at);
	return SPIRV_VALUE(w, (enum spirv_type)members[number].type, Load, id);
}

static uint32_t first_of(struct spirv_emitter *e, uint32_t variable)
{
	return U32(CompositeExtract, SPIRV_VALUE(&e->w, SPIRV_TRIPLE, Load, variable), 0);
}

/* This wave's share, or this workgroup's (launch.h). Returns whether it has none. */
static uint32_t find_share(struct spirv_emitter *e, const struct entry *n)
{
	const uint32_t groups = first_of(e, n->variable[GROUPS_OF]), per = pushed(e, n, PER), rest = pushed(e, n, REST),
		       number = e->ir->cooperative ? e->group : U32(IAdd, U32(IMul, e->wave, groups), e->group),
		       wide = U64(UConvert, number), before = U64(IMul, wide, U64(UConvert, per)),
		       has_more = BOOL(ULessThan, number, rest), more = U32(Select, has_more, number, rest),
		       first = U64(IAdd, before, U64(UConvert, more)),
		       units = U32(IAdd, per, U32(Select, has_more, spirv_u32(&e->w, 1), spirv_u32(&e->w, 0)));

	e->begin = U64(IAdd, pushed(e, n, BEGIN), first);
	e->end = U64(IAdd, e->begin, U64(UConvert, units));
	return BOOL(IEqual, units, spirv_u32(&e->w, 0));
}

static void leave_when(struct spirv_emitter *e, uint32_t done)
{
	struct spirv_writer *w = &e->w;
	const uint32_t leaves = spirv_id(w), goes_on = spirv_id(w);

	SPIRV_PUT(w, w->code, SelectionMerge, goes_on, 0);
	branch_on(e, done, leaves, goes_on);
	label(e, leaves);
	spirv_put_words(w, w->code, SPV_Return, NULL, 0);
	label(e, goes_on);
}

/* Shared bytes, then each wave's locals. */
static void find_scratch(struct spirv_emitter *e, const struct entry *n)
{
	const struct ir *ir = e->ir;
	const uint64_t shared = ((uint64_t)ir->shared_bytes + 63) / 64 * 64,
		       all = spirv_scratch_bytes(ir->local_bytes, ir->shared_bytes, ir->waves);

	if (!all)
		return;
	const uint32_t group = U64(UConvert, e->group), wave = U64(UConvert, e->wave);
	e->shared = U64(IAdd, pushed(e, n, SCRATCH), U64(IMul, group, spirv_u64(&e->w, all)));
	e->locals = U64(IAdd, U64(IAdd, e->shared, spirv_u64(&e->w, shared)),
	                U64(IMul, wave, spirv_u64(&e->w, (ir->local_bytes + 63) / 64 * 64)));
}

static void enter(struct spirv_emitter *e, const struct entry *n)
{
	e->lane = U32(Load, n->variable[LANE_AT]);
	e->lane64 = U64(UConvert, e->lane);
	e->wave = U32(Load, n->variable[SUBGROUP_AT]);
	e->group = first_of(e, n->variable[GROUP_AT]);
	e->arg = pushed(e, n, ARG);
	e->cut = pushed(e, n, CUT);
	if (e->iterations)
		SPIRV_PUT(&e->w, e->w.code, Store, e->iterations, spirv_u32(&e->w, 0));
	leave_when(e, find_share(e, n));
	find_scratch(e, n);
}

static uint32_t address_in(struct spirv_emitter *e, uint32_t base, uint32_t *taken, int64_t bytes)
{
	const uint32_t at = *taken;

	*taken += ir_local_size(bytes);
	return at ? U64(IAdd, base, spirv_u64(&e->w, at)) : base;
}

static bool facts_of_call(struct spirv_emitter *e, const struct ir_ins *i)
{
	switch (ir_row(i)) {
	case IR_arg: spirv_set(e, i->dst, e->arg); return true;
	case IR_begin: spirv_set(e, i->dst, e->begin); return true;
	case IR_end: spirv_set(e, i->dst, e->end); return true;
	case IR_wave: spirv_set(e, i->dst, U64(UConvert, e->wave)); return true;
	case IR_ilane: spirv_set(e, i->dst, e->lane); return true;
	case IR_local: spirv_set(e, i->dst, address_in(e, e->locals, &e->local_bytes, i->imm)); return true;
	case IR_shared: spirv_set(e, i->dst, address_in(e, e->shared, &e->shared_bytes, i->imm)); return true;
	default: return false;
	}
}

/* More iterations than a driver may do, where it is one that leaves loops early: what was computed may be wrong. */
static void tell_cut(struct spirv_emitter *e)
{
	struct spirv_writer *w = &e->w;
	const uint32_t tells = spirv_id(w), behind = spirv_id(w);

	if (!e->iterations)
		return;
	const uint32_t n = U32(Load, e->iterations), many = BOOL(UGreaterThan, n, spirv_u32(w, SPIRV_ITERATIONS)),
		       counts = BOOL(LogicalNot, spirv_choice(w, SPIRV_LOOPS)), both = BOOL(LogicalAnd, many, counts),
		       pointer = spirv_id(w), type = spirv_pointer(w, SPIRV_U32, true);
	SPIRV_PUT(w, w->code, SelectionMerge, behind, 0);
	branch_on(e, both, tells, behind);
	label(e, tells);
	SPIRV_PUT(w, w->code, ConvertUToPtr, type, pointer, e->cut);
	SPIRV_PUT(w, w->code, Store, pointer, spirv_u32(w, 1), SPV_ACCESS_Aligned, 4);
	branch(e, behind);
	label(e, behind);
}

static bool write_rows(struct spirv_emitter *e, struct error *err)
{
	for (size_t k = 0; k < e->ir->n_ins; k++) {
		const struct ir_ins *i = &e->ir->ins[k];
		if (!spirv_flow(e, i, &k) && !facts_of_call(e, i) && !spirv_memory(e, i) && !spirv_integer(e, i) &&
		    !spirv_wide(e, i) && !spirv_math(e, i))
			return error_set(err, ERROR_UNSUPPORTED, "the operation %s has no SPIR-V",
			                 ir_facts_of(i)->name);
	}
	tell_cut(e);
	spirv_put_words(&e->w, e->w.code, SPV_Return, NULL, 0);
	return true;
}

/* --- the module */

static void append(struct spirv_writer *w, struct spirv_words *to, const struct spirv_words *from)
{
	if (!from->n || w->no_memory)
		return;
	if (!array_grow((void **)&to->word, &to->capacity, to->n + from->n, sizeof *to->word)) {
		w->no_memory = true;
		return;
	}
	memcpy(to->word + to->n, from->word, from->n * sizeof *from->word);
	to->n += from->n;
}

/* An instruction of numbers, a text, and more numbers. */
static void put_text(struct spirv_writer *w, struct spirv_words *to, enum spv_op op, const uint32_t *word, size_t n,
                     const char *text, const uint32_t *more, size_t m)
{
	uint32_t all[24] = { 0 };
	const size_t bytes = strlen(text) + 1, words = (bytes + 3) / 4;

	if (n)
		memcpy(all, word, n * sizeof *word);
	memcpy(all + n, text, bytes);
	if (m)
		memcpy(all + n + words, more, m * sizeof *more);
	spirv_put_words(w, to, op, all, n + words + m);
}

static void put_capabilities(struct spirv_writer *w, struct spirv_words *to)
{
	static const uint32_t always[] = {
		SPV_CAP_Shader,
		SPV_CAP_Int64,
		SPV_CAP_Float64,
		SPV_CAP_GroupNonUniform,
		SPV_CAP_GroupNonUniformVote,
		SPV_CAP_GroupNonUniformShuffle,
		SPV_CAP_StorageBuffer8BitAccess,
		SPV_CAP_StorageBuffer16BitAccess,
		SPV_CAP_DenormPreserve,
		SPV_CAP_SignedZeroInfNanPreserve,
		SPV_CAP_RoundingModeRTE,
		SPV_CAP_VulkanMemoryModel,
		SPV_CAP_PhysicalStorageBufferAddresses,
		SPV_CAP_DotProduct,
		SPV_CAP_DotProductInput4x8BitPacked
	};

	for (size_t k = 0; k < sizeof always / sizeof *always; k++)
		SPIRV_PUT(w, to, Capability, always[k]);
	if (w->atomics64)
		SPIRV_PUT(w, to, Capability, SPV_CAP_Int64Atomics);
	put_text(w, to, SPV_Extension, NULL, 0, "SPV_KHR_integer_dot_product", NULL, 0);
}

static void put_modes(struct spirv_writer *w, struct spirv_words *to, uint32_t entry, uint32_t invocations)
{
	static const uint32_t modes[] = { SPV_MODE_DenormPreserve, SPV_MODE_SignedZeroInfNanPreserve,
		                          SPV_MODE_RoundingModeRTE };

	SPIRV_PUT(w, to, ExecutionMode, entry, SPV_MODE_LocalSize, invocations, 1, 1);
	for (unsigned k = 0; k < sizeof modes / sizeof *modes; k++)
		for (uint32_t bits = 32; bits <= 64; bits += 32)
			SPIRV_PUT(w, to, ExecutionMode, entry, modes[k], bits);
}

/* The sections of a module in their order; main: the function's first instructions. */
static void put_module(struct spirv_emitter *e, struct spirv_words *to, const struct entry *n, uint32_t entry,
                       const struct spirv_words *main)
{
	struct spirv_writer *w = &e->w;

	put_capabilities(w, to);
	put_text(w, to, SPV_ExtInstImport, &w->glsl, 1, "GLSL.std.450", NULL, 0);
	SPIRV_PUT(w, to, MemoryModel, SPV_ADDRESSING_PhysicalStorageBuffer64, SPV_MEMORY_Vulkan);
	put_text(w, to, SPV_EntryPoint, (const uint32_t[]){ SPV_EXECUTION_GLCompute, entry }, 2, SPIRV_ENTRY,
	         n->variable, ENTRY_VARIABLES);
	put_modes(w, to, entry, e->ir->lanes * e->ir->waves);
	append(w, to, &w->decorations);
	append(w, to, &w->globals);
	append(w, to, &w->functions);
	append(w, to, main);
	append(w, to, &w->variables);
	append(w, to, &w->body);
	spirv_put_words(w, to, SPV_FunctionEnd, NULL, 0);
	if (!w->no_memory)
		to->word[3] = w->ids + 1;
}

static bool take_words(struct object *out, struct spirv_emitter *e, struct spirv_words *to, struct error *err)
{
	if (e->w.no_memory) {
		free(to->word);
		return error_set(err, ERROR_MEMORY, "no memory for the words of a kernel");
	}
	out->code = (uint8_t *)to->word;
	out->code_bytes = out->pool_offset = (uint32_t)(to->n * sizeof *to->word);
	out->frame_bytes = e->ir->local_bytes;
	out->shared_bytes = e->ir->shared_bytes;
	out->cooperative = e->ir->cooperative;
	return true;
}

static void declare_variables(struct spirv_emitter *e)
{
	for (uint32_t r = 1; r < e->ir->n_regs; r++)
		if (e->ir->is_var[r])
			e->value[r] = spirv_variable(e, spirv_type_of(e, (uint16_t)r));
	for (size_t k = 0; k < e->ir->n_ins && !e->iterations; k++)
		if (e->ir->ins[k].op == IR_loop)
			e->iterations = spirv_variable(e, SPIRV_U32);
}

static bool write_module(struct object *out, struct spirv_emitter *e, struct error *err)
{
	static const uint32_t header[SPV_HEADER_WORDS] = { SPV_MAGIC, SPV_VERSION };
	struct spirv_writer *w = &e->w;
	struct spirv_words all = { 0 }, main = { 0 };
	const struct spirv_words begins = { .word = (uint32_t *)(uintptr_t)header, .n = SPV_HEADER_WORDS };
	struct entry n;

	w->code = &w->body;
	w->glsl = spirv_id(w);
	const uint32_t entry = spirv_id(w), function = spirv_id(w), none = spirv_type(w, SPIRV_VOID);
	SPIRV_PUT(w, &w->globals, TypeFunction, function, none);
	SPIRV_PUT(w, &main, Function, none, entry, 0, function);
	SPIRV_PUT(w, &main, Label, spirv_id(w));
	declare_entry(e, &n);
	declare_variables(e);
	enter(e, &n);
	bool ok = write_rows(e, err);
	if (ok) {
		append(w, &all, &begins);
		put_module(e, &all, &n, entry, &main);
		ok = take_words(out, e, &all, err);
	}
	free(main.word);
	return ok;
}

static void dump(FILE *to, const char *title, const struct object *o)
{
	const uint32_t *word = (const uint32_t *)(const void *)o->code;

	fprintf(to, "; %s\n", title);
	for (uint32_t k = 0; k < o->code_bytes / sizeof *word; k++)
		fprintf(to, "%s0x%08" PRIx32 "%s", k % 8 ? " " : "", word[k],
		        k % 8 == 7 || k + 1 == o->code_bytes / sizeof *word ? "\n" : "");
}

static bool compile(struct object *out, const struct compile_job *j, struct compile_stats *stats, struct error *err)
{
	struct spirv_emitter *e = calloc(1, sizeof *e);
	bool ok = e != NULL;

	if (ok) {
		e->ir = j->ir;
		e->value = calloc(j->ir->n_regs + 1, sizeof *e->value);
		ok = e->value && spirv_find_frame(e);
	}
	ok = ok ? write_module(out, e, err) : error_set(err, ERROR_MEMORY, "no memory for the words of a kernel");
	if (ok && stats)
		*stats = (struct compile_stats){ .ir_instructions = (uint32_t)j->ir->n_ins,
			                         .machine_instructions = e->w.instructions };
	if (ok && j->options->dump_asm)
		dump(j->options->dump_asm, j->title, out);
	if (e) {
		spirv_free(&e->w);
		free(e->value);
		free(e->in_frame);
	}
	free(e);
	return ok;
}

const struct backend backend_spirv = { .name = "spirv", .codegen = &key_codegen_spirv, .compile = compile };
