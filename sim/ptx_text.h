/* sim/ptx_text.h - what the reader of PTX text hands to what runs it.
 *
 * Constants and special registers are registers, too, that are filled before a warp begins.
 */
#ifndef SIM_PTX_TEXT_H
#define SIM_PTX_TEXT_H

#include "sim/ptx.h"

enum { PTX_LANES = 32, PTX_NAME = 48, PTX_PARAMS = 32, PTX_SOURCES = 10, PTX_SPECIALS = 8, PTX_DEPTH = 8 };
#define PTX_NO_REGISTER UINT32_MAX

/* clang-format off */
#define PTX_OPERATIONS(X) \
	X(FRCP) X(FMIN) X(FMAX) \
	X(FADD) X(FSUB) X(FMUL) X(FFMA) X(FDIV) X(FSQRT) X(FLT) X(FGT) X(FLE) X(F2I) X(I2F) X(WIDEN) X(NARROW) \
	X(MOVE) X(SPLIT) X(SPLIT_64) X(JOIN) X(ADD) X(SUB) X(MUL) X(MAD) X(DIV) X(REM) X(MIN_U) X(MIN_S) X(MAX_S) \
	X(AND) X(OR) X(XOR) X(LOP3) X(SHL) X(SHR_U) X(SHR_S) X(SHF) X(EQ) X(NE) X(GT) X(GE) X(LT) X(LE) X(LT_U) \
	X(GE_U) X(SELECT) X(PERMUTE) X(DOT_SS) X(DOT_US) X(MAD_WIDE_16) X(NOT_P) X(BUTTERFLY) X(FROM_LANE) X(ANY) \
	X(ALL) X(WIDE_S) X(WIDE_U) X(MAD_WIDE_U) X(MIN_S64) X(MAX_S64) X(SHL_64) X(SHR_S64) X(SHR_U64) X(LT_S64) \
	X(LE_S64) X(GE_S64) X(MMA_S8) X(MMA_F16) X(MMA_BF16) X(LOAD_MATRIX) X(PARAM) \
	X(LOAD_32) X(LOAD_U8) X(LOAD_S8) X(LOAD_U16) \
	X(LOAD_64) X(STORE_32) X(STORE_16) X(STORE_8) X(STORE_64) X(ATOM_ADD) X(ATOM_ADD_64) X(ATOM_MIN_S) \
	X(ATOM_MAX_S) X(ATOM_MIN_U) X(ATOM_MAX_U) X(ATOM_AND) X(ATOM_OR) X(ATOM_EXCHANGE) \
	X(ATOM_SWAP) X(PREFETCH) X(PREFETCH_LINE) X(FENCE) X(NAP) X(COPY) X(POLICY) \
	X(FEQ) X(FNEU) X(FROUND) X(FFLOOR) X(FCEIL) X(FTRUNC) X(F2I_CUT) X(F2U_CUT) X(U2F) \
	X(DADD) X(DSUB) X(DMUL) X(DFMA) X(DDIV) X(DSQRT) X(DLT) X(DGT) X(DLE) X(DEQ) X(DNEU) X(DROUND) X(DFLOOR) \
	X(DCEIL) X(DTRUNC) X(DOF_FLOAT) X(DTO_FLOAT) X(DOF_S32) X(DOF_S64) X(DOF_U64) X(DTO_S32) X(DTO_U32) \
	X(DTO_S64) X(DTO_U64) X(SIGNED_64) X(MAX_U) X(MUL_HIGH_S) X(MUL_HIGH_U) X(ONES) X(CLZ) X(LE_U) \
	X(BRANCH) X(SWITCH) X(CALL) X(RETURN) \
	X(EXIT) X(TRAP) X(END) X(BARRIER) X(MEET) X(LET_NEXT) X(WAIT_LAST) \
	X(COPIES_GROUP) X(COPIES_WAIT)
/* clang-format on */
enum ptx_operation {
#define X(name) PTX_DO_##name,
	PTX_OPERATIONS(X)
#undef X
};

/* What an access says about the order of others. */
enum ptx_order_of { PTX_WEAK, PTX_RELAXED, PTX_ACQUIRE, PTX_RELEASE, PTX_ACQUIRE_RELEASE };

struct ptx_step {
	uint8_t operation, n; /* n: words of a vector, 1 without */
	uint8_t order;        /* enum ptx_order_of */
	bool shared;          /* a load or store of shared memory */
	bool is_of_all;       /* its order holds for all cards: scope .sys */
	bool guard_is_not;
	uint32_t guard;                /* the predicate; PTX_NO_REGISTER: none */
	uint32_t d[4], s[PTX_SOURCES]; /* registers; PTX_NO_REGISTER: none */
	uint64_t mask;                 /* of a result: as wide as its register */
	int64_t disp;                  /* of an address in s[0]; a parameter's number; a label's step; a call, a list */
	int64_t second;                /* of an address in s[1] */
	uint32_t line;
};

/* A parameter or a result. reg: where it is within a function; entries have none. */
struct ptx_param {
	char name[PTX_NAME];
	unsigned bytes;
	uint32_t reg;
};

/* An entry, or a function that is called. Its registers begin behind those of its caller: as nothing calls
 * itself, they can be numbered once and for all, and functions that do not call each other share them. */
struct ptx_function {
	char name[PTX_NAME];
	bool is_entry, has_body;
	size_t first, end; /* its steps */
	uint32_t base, n_registers;
	struct ptx_param param[PTX_PARAMS], result[PTX_PARAMS];
	unsigned n_params, n_results;
	unsigned threads; /* of a block, at most; of an entry */
};

struct ptx_call {
	unsigned function, caller, n_args, n_results;
	uint32_t arg[PTX_PARAMS], result[PTX_PARAMS];
	uint32_t line;
};

/* Where brx.idx may go: labels, then steps. */
struct ptx_list {
	char name[PTX_NAME];
	size_t n, capacity;
	int64_t *to;
};

struct ptx_text {
	char *text; /* for sentences */
	struct ptx_function *function;
	size_t n_functions, functions_capacity;
	struct ptx_step *step;
	size_t n_steps, steps_capacity;
	struct ptx_call *call;
	size_t n_calls, calls_capacity;
	struct ptx_list *list;
	size_t n_lists, lists_capacity;
	uint32_t n_registers; /* those of PTX_SPECIALS, of functions, constants */
	uint64_t *constant;   /* the last registers */
	uint32_t n_constants, first_constant;
	bool has_cards; /* it has steps whose order holds for all cards */
	size_t constants_capacity;
};

/* The special registers, which are the first ones. */
enum ptx_special {
	PTX_TID_X,
	PTX_CTAID_X,
	PTX_NCTAID_X,
	PTX_NTID_X,
	PTX_CTAID_Y,
	PTX_NCTAID_Y,
	PTX_LANEID,
	PTX_CTAID_Z
};

/* The entry of that name; NULL, or NULL for a name: the first one. */
const struct ptx_function *ptx_text_entry(const struct ptx_text *t, const char *name);
/* Line n of the text, without blanks at its ends. Returns out. */
char *ptx_text_line(const struct ptx_text *t, uint32_t n, char *out, size_t size);

#endif
