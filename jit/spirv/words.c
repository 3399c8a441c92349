/* jit/spirv/words.c - the writer of SPIR-V: words of instructions, types and constants that are each declared once.
 *
 * Rule for editors: sums, differences and products of floats are decorated as not to be contracted, here, so that no
 * row can forget it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "jit/spirv/spirv.h"

void spirv_free(struct spirv_writer *w)
{
	free(w->decorations.word);
	free(w->globals.word);
	free(w->functions.word);
	free(w->variables.word);
	free(w->body.word);
	free(w->constant);
}

void spirv_put_words(struct spirv_writer *w, struct spirv_words *to, enum spv_op op, const uint32_t *word, size_t n)
{
	if (w->no_memory || !array_grow((void **)&to->word, &to->capacity, to->n + n + 1, sizeof *to->word)) {
		w->no_memory = true;
		return;
	}
	to->word[to->n++] = (uint32_t)(n + 1) << 16 | op;
	if (n)
		memcpy(to->word + to->n, word, n * sizeof *word);
	to->n += n;
	w->instructions++;
}

static void forbid_contraction(struct spirv_writer *w, enum spv_op op, uint32_t id)
{
	if (op == SPV_FAdd || op == SPV_FSub || op == SPV_FMul)
		SPIRV_PUT(w, &w->decorations, Decorate, id, SPV_DECORATION_NoContraction);
}

enum { OPERANDS_MAX = 12 };

uint32_t spirv_make_value(struct spirv_writer *w, enum spirv_type type, enum spv_op op, const uint32_t *operand,
                          size_t n)
{
	uint32_t word[OPERANDS_MAX] = { spirv_type(w, type), spirv_id(w) };

	if (n)
		memcpy(word + 2, operand, n * sizeof *operand);
	spirv_put_words(w, w->code, op, word, n + 2);
	forbid_contraction(w, op, word[1]);
	return word[1];
}

uint32_t spirv_glsl(struct spirv_writer *w, enum spirv_type type, enum spv_glsl op, const uint32_t *operand, size_t n)
{
	uint32_t word[OPERANDS_MAX] = { w->glsl, op };

	memcpy(word + 2, operand, n * sizeof *operand);
	const uint32_t id = spirv_make_value(w, type, SPV_ExtInst, word, n + 2);
	if (op == GLSL_Fma)
		SPIRV_PUT(w, &w->decorations, Decorate, id, SPV_DECORATION_NoContraction);
	return id;
}

uint32_t spirv_type(struct spirv_writer *w, enum spirv_type type)
{
	static const struct {
		uint8_t op, n;
		uint32_t word[2];
	} types[SPIRV_TYPES] = {
		[SPIRV_VOID] = { SPV_TypeVoid, 0, { 0 } },   [SPIRV_BOOL] = { SPV_TypeBool, 0, { 0 } },
		[SPIRV_U8] = { SPV_TypeInt, 2, { 8 } },      [SPIRV_U16] = { SPV_TypeInt, 2, { 16 } },
		[SPIRV_U32] = { SPV_TypeInt, 2, { 32 } },    [SPIRV_U64] = { SPV_TypeInt, 2, { 64 } },
		[SPIRV_F32] = { SPV_TypeFloat, 1, { 32 } },  [SPIRV_F64] = { SPV_TypeFloat, 1, { 64 } },
		[SPIRV_PAIR] = { SPV_TypeVector, 2, { 2 } }, [SPIRV_TRIPLE] = { SPV_TypeVector, 2, { 3 } }
	};

	if (w->type[type])
		return w->type[type];
	const bool vector = types[type].op == SPV_TypeVector;
	const uint32_t of = vector ? spirv_type(w, SPIRV_U32) : types[type].word[0], id = w->type[type] = spirv_id(w),
		       word[3] = { id, of, vector ? types[type].word[0] : types[type].word[1] };
	spirv_put_words(w, &w->globals, (enum spv_op)types[type].op, word, types[type].n + 1u);
	return id;
}

uint32_t spirv_pointer(struct spirv_writer *w, enum spirv_type to, bool memory)
{
	if (!w->pointer[to][memory]) {
		const uint32_t type = spirv_type(w, to);
		w->pointer[to][memory] = spirv_id(w);
		SPIRV_PUT(w, &w->globals, TypePointer, w->pointer[to][memory],
		          memory ? SPV_CLASS_PhysicalStorageBuffer : SPV_CLASS_Function, type);
	}
	return w->pointer[to][memory];
}

static void declare_constant(struct spirv_writer *w, enum spirv_type type, uint64_t bits, uint32_t id)
{
	const uint32_t of = spirv_type(w, type), low = (uint32_t)bits, high = (uint32_t)(bits >> 32);

	if (type == SPIRV_BOOL && bits)
		SPIRV_PUT(w, &w->globals, ConstantTrue, of, id);
	else if (type == SPIRV_BOOL)
		SPIRV_PUT(w, &w->globals, ConstantFalse, of, id);
	else if (type == SPIRV_U64 || type == SPIRV_F64)
		SPIRV_PUT(w, &w->globals, Constant, of, id, low, high);
	else
		SPIRV_PUT(w, &w->globals, Constant, of, id, low);
}

uint32_t spirv_constant(struct spirv_writer *w, enum spirv_type type, uint64_t bits)
{
	for (size_t k = w->n_constants; k-- > 0;)
		if (w->constant[k].bits == bits && w->constant[k].type == type)
			return w->constant[k].id;
	if (!array_grow((void **)&w->constant, &w->constants_capacity, w->n_constants + 1, sizeof *w->constant)) {
		w->no_memory = true;
		return 1;
	}
	const uint32_t id = spirv_id(w);
	w->constant[w->n_constants++] = (struct spirv_constant){ .bits = bits, .id = id, .type = (uint8_t)type };
	declare_constant(w, type, bits, id);
	return id;
}

uint32_t spirv_choice(struct spirv_writer *w, enum spirv_choice choice)
{
	if (!w->choice[choice]) {
		const uint32_t type = spirv_type(w, SPIRV_BOOL);
		w->choice[choice] = spirv_id(w);
		SPIRV_PUT(w, &w->globals, SpecConstantTrue, type, w->choice[choice]);
		SPIRV_PUT(w, &w->decorations, Decorate, w->choice[choice], SPV_DECORATION_SpecId, choice);
	}
	return w->choice[choice];
}
