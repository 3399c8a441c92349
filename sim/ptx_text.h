/* sim/ptx_text.h - what the reader of PTX text hands to what runs it.
 *
 * Constants and special registers are registers, too, that are filled before a warp begins.
 */
#ifndef SIM_PTX_TEXT_H
#define SIM_PTX_TEXT_H

#include "sim/ptx.h"

enum { PTX_LANES = 32, PTX_NAME = 48, PTX_PARAMS = 8, PTX_SOURCES = 10 };
#define PTX_NO_REGISTER UINT32_MAX

/* clang-format off */
#define PTX_OPERATIONS(X) \
	X(FADD) X(FSUB) X(FMUL) X(FFMA) X(FDIV) X(FSQRT) X(FLT) X(FGT) X(FLE) X(F2I) X(I2F) X(WIDEN) X(NARROW) \
	X(MOVE) X(SPLIT) X(ADD) X(SUB) X(MUL) X(MAD) X(DIV) X(MIN_U) X(MIN_S) X(MAX_S) X(AND) X(OR) X(XOR) X(LOP3) \
	X(SHL) X(SHR_U) X(SHR_S) X(SHF) X(EQ) X(GT) X(LT_U) X(SELECT) X(PERMUTE) X(DOT_SS) X(DOT_US) \
	X(MAD_WIDE_16) X(NOT_P) X(ANY) X(BUTTERFLY) X(FROM_LANE) X(WIDE_S) X(WIDE_U) X(MIN_S64) X(MAX_S64) X(SHL_64) \
	X(SHR_S64) X(LT_S64) X(GE_S64) X(MMA_S8) X(MMA_F16) X(MMA_BF16) X(PARAM) X(LOAD_32) X(LOAD_U8) X(LOAD_S8) \
	X(LOAD_U16) X(LOAD_64) \
	X(STORE_32) X(STORE_16) X(STORE_8) X(PREFETCH) X(BRANCH) X(RETURN) X(BARRIER) X(MEET) X(LET_NEXT) X(WAIT_LAST)
/* clang-format on */
enum ptx_operation {
#define X(name) PTX_DO_##name,
	PTX_OPERATIONS(X)
#undef X
};

struct ptx_step {
	uint8_t operation, n; /* n: words of a vector, 1 without */
	bool shared;          /* a load or store of shared memory */
	bool guard_is_not;
	uint32_t guard;                /* the predicate; PTX_NO_REGISTER: none */
	uint32_t d[4], s[PTX_SOURCES]; /* registers; PTX_NO_REGISTER: none */
	uint64_t mask;                 /* of a result: as wide as its register */
	int64_t disp;                  /* of an address in s[0]; a parameter's number; a label's step */
	uint32_t line;
};

struct ptx_text {
	char *text; /* for sentences */
	char entry[PTX_NAME];
	struct ptx_step *step;
	size_t n_steps, steps_capacity;
	uint32_t n_registers;
	uint64_t *constant; /* the last registers */
	uint32_t n_constants, first_constant;
	size_t constants_capacity;
	uint32_t special[6]; /* %tid.x, %ctaid.x, %nctaid.x, %ntid.x, %ctaid.y, %nctaid.y */
	struct {
		char name[PTX_NAME];
		unsigned bytes;
	} param[PTX_PARAMS];
	unsigned n_params, threads; /* of a block, at most */
};

/* Line n of the text, without blanks at its ends. Returns out. */
char *ptx_text_line(const struct ptx_text *t, uint32_t n, char *out, size_t size);

#endif
