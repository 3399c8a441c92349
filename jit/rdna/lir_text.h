/* jit/rdna/lir_text.h - the attributes of machine instructions in text, for printing and parsing. */
#ifndef JIT_RDNA_LIR_TEXT_H
#define JIT_RDNA_LIR_TEXT_H

#include "jit/rdna/live.h"

static const struct {
	const char *name;
	uint16_t reg;
	uint8_t n;
} specials[] = {
	{ "vcc", RDNA_VCC_LO, 2 },   { "vcc_lo", RDNA_VCC_LO, 1 },   { "vcc_hi", RDNA_VCC_HI, 1 },
	{ "null", RDNA_NULL, 1 },    { "null:2", RDNA_NULL, 2 },     { "m0", RDNA_M0, 1 },
	{ "exec", RDNA_EXEC_LO, 2 }, { "exec_lo", RDNA_EXEC_LO, 1 }, { "exec_hi", RDNA_EXEC_HI, 1 },
	{ "scc", RDNA_SCC, 1 },
};
enum { SPECIALS = sizeof specials / sizeof *specials };

/* Attributes that are one number, and where they lie. */
enum attribute {
	A_OFFSET,
	A_OFFSET1,
	A_EXEC,
	A_CACHE,
	A_SCOPE,
	A_TH,
	A_OMOD,
	A_DPP16,
	A_DPP8,
	A_ROW_MASK,
	A_BANK_MASK,
	A_MEMORY,
	A_IR,
	A_COUNT
};
static const char *const attribute_names[A_COUNT] = {
	"offset", "offset1", "exec",     "cache",     "scope",  "th", "omod",
	"dpp16",  "dpp8",    "row_mask", "bank_mask", "memory", "ir",
};
static const char *const memory_names[] = { "none", "global", "lds", "const" };

/* --- lir_text.c */

void rdna_set_attribute(struct rdna_lir_ins *i, enum attribute a, uint32_t v);
bool rdna_may_have_saddr(unsigned op);

#endif
