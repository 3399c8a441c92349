/* sim/wave.h - the simulator's insides: decoded instructions, waves, workgroups, the device.
 *
 * Owns: the structures every file of this room shares, and which file does what. Nothing outside sim/ includes it.
 *   op.c       the table of instructions, made from the .def files      decode_*.c  words to struct sim_inst
 *   lanes_*.c  lane kernels of valu.def and vcmp.def                     exec_*.c    what an instruction does to a wave
 *   memory.c   regions, loads and stores, when they complete             hazard.c    padding that the hardware needs
 *   wave.c     the run loop, undefined registers, missing waits
 *   race.c     unordered accesses of workgroups                          object.c    code objects
 *   caches.c   which caches of a workgroup are fresh                     dispatch.c  launch state, scheduler, barriers
 */
#ifndef SIM_WAVE_H
#define SIM_WAVE_H

#include "sim/sim.h"

enum { LANES = 32 };
enum { REG_VCC = 106, REG_TTMP = 108, REG_EXEC = 126, REG_SCC = 128, REG_VGPR = 256, REG_COUNT = 512 };

enum sim_format {
	FMT_SOP1,
	FMT_SOP2,
	FMT_SOPC,
	FMT_SOPK,
	FMT_SOPP,
	FMT_SMEM,
	FMT_VOP1,
	FMT_VOP2,
	FMT_VOPC,
	FMT_VOP3,
	FMT_VOP3P,
	FMT_VOPD,
	FMT_DS,
	FMT_FLAT,
	FMT_MUBUF,
	FMT_GLOBAL,
	FMT_COUNT
};

enum sim_op_id {
	OP_NONE,
#define VALU(fmt, name, ...) OP_V_##name,
#include "sim/valu.def"
#define VCMP(name, ...) OP_CMP_##name, OP_CMPX_##name,
#include "sim/vcmp.def"
#define SALU(fmt, name, ...) OP_S_##name,
#include "sim/salu.def"
#define SPEC(fmt, name, ...) OP_X_##name,
#include "sim/special.def"
#define MEM(fmt, name, ...) OP_M_##name,
#include "sim/mem.def"
	OP_COUNT
};

struct sim_wave;
struct sim_inst;
typedef void (*sim_lane_fn)(uint32_t *restrict d, const uint32_t *a, const uint32_t *b, const uint32_t *c,
                            uint32_t par);
typedef void (*sim_exec_fn)(struct sim_wave *w, const struct sim_inst *in);

/* What the table knows of an instruction. types: D A B C as in valu.def; flags: the letters of the row. */
struct sim_op {
	const char *name;
	uint8_t format;
	char types[4];
	const char *flags;
	int16_t code[3]; /* gfx10, gfx11, gfx12; -1: lacks it */
	uint8_t class;
	uint8_t kind, size, words; /* memory: enum mem_kind, bytes of an element, registers of data */
	sim_exec_fn exec;          /* by hand; NULL for lane kernels */
};
extern const struct sim_op sim_ops[OP_COUNT];
/* ALSO rows: the same operation in another format. */
struct sim_also {
	uint16_t op;
	uint8_t format;
	int16_t code[3];
};
extern const struct sim_also sim_also[];
extern const unsigned sim_n_also;

enum mem_kind {
	MK_LOAD,
	MK_STORE,
	MK_ATOMIC,
	MK_LOAD2,
	MK_STORE2,
	MK_PERMUTE,
	MK_BPERMUTE,
	MK_SWIZZLE,
	MK_CACHE,
	MK_XCHG2
};

enum { SRC_NONE, SRC_VGPR, SRC_SGPR, SRC_CONST, SRC_SPECIAL };
enum { MOD_NEG = 1, MOD_ABS = 2, MOD_LO_HI = 4, MOD_HI_HI = 8, MOD_NEG_HI = 16, MOD_SEXT = 32 };
struct sim_src {
	uint8_t kind, mods, words, sdwa; /* sdwa: 0 none, else 1 + selector */
	char type;
	uint16_t reg;
	uint32_t lo, hi; /* constants */
};

enum { DPP_NONE, DPP_8, DPP_16, SDWA };
struct sim_use {
	uint16_t reg;
	uint8_t n, any;
}; /* any: lanes outside EXEC matter, the instruction looks itself */
struct sim_inst {
	sim_exec_fn fn; /* NULL: not decoded yet */
	sim_lane_fn lane;
	const struct sim_op *op;
	struct sim_inst *other; /* VOPD: the Y half */
	uint32_t index;         /* word of the code this begins at */
	int32_t imm;
	uint32_t dpp_select;    /* DPP8: 24 bits; DPP16: control */
	uint16_t id, dst, sdst; /* registers: SGPRs from 0, VGPRs from REG_VGPR */
	uint16_t par;
	uint8_t words, class, dpp, row_mask, bank_mask, bound_ctrl, fetch_inactive;
	uint8_t clamp, omod, dst_hi, dst_sel, dst_unused, saddr, slow, glc, reach, rtn, n_use, n_def, vmax;
	char dtype;
	struct sim_src src[3];
	struct sim_use use[6], def[3];
	uint8_t hazard, n_vuse, n_suse, vuse[28], suse[10]; /* single registers that must be defined; VGPRs from 0 */
};

/* reach of a memory instruction: the first place where it looks, or as far as it invalidates. */
enum { REACH_L0, REACH_GL1, REACH_L2 };

/* An outstanding memory operation. */
enum { SPACE_MEMORY, SPACE_LDS, SPACE_SCRATCH };
enum { COUNT_LOAD, COUNT_STORE, COUNT_LDS, COUNT_SMEM, COUNT_KINDS };
struct sim_access {
	const struct sim_inst *in;
	uint32_t exec;
	bool retired;         /* effect done, still counted */
	uint8_t space;        /* SPACE_* */
	uint64_t seq, issued; /* order among the wave's accesses; vector instructions of the wave at issue */
	uint64_t lo, hi;      /* address range */
	uint64_t addr[LANES]; /* LDS: byte offsets; [0] only for SMEM */
	uint64_t addr2[LANES];
	uint32_t data[8][LANES];
};
struct sim_queue {
	struct sim_access *item;
	unsigned head, n, cap;
}; /* a ring */

enum { WAVE_RUN, WAVE_BARRIER, WAVE_DONE };
struct sim_hazard {
	struct {
		uint16_t reg;
		uint8_t n;
		bool live;
		uint64_t valu, trans;
	} trans[2];
	uint64_t valu, n_trans;
	bool active; /* some rule is armed: every instruction must be looked at */
	bool cmpx;
	uint8_t float_atomic; /* wait states left before s_denorm_mode may come */
	uint16_t wmma_dst;
	uint8_t wmma_n;
	uint8_t sgpr_read[132]; /* gfx12: read by VALU */
	uint8_t sgpr_late[132]; /* gfx12: then written; 1 by SALU, 2 by VALU */
	uint16_t clause_left;
	uint8_t clause_class;
};
struct sim_wave {
	uint32_t s[132]; /* SGPR space; REG_SCC too */
	uint8_t sdef[132];
	uint8_t pend[REG_COUNT]; /* outstanding loads into a register */
	uint8_t pend_kind[REG_COUNT];
	uint32_t *v;    /* vgprs x LANES */
	uint32_t *vdef; /* lanes written, per register */
	unsigned n_vgprs;
	uint32_t pc; /* word index */
	uint32_t mode;
	uint8_t state;
	bool stop;       /* leave the run loop: barrier, sleep, end, trap */
	bool slow_float; /* MODE asks for more than RNE with denormals */
	bool signalled;  /* at the workgroup's barrier, not yet past it */
	uint32_t phase;  /* the barrier's phase when it signalled */
	unsigned n_pending;
	struct sim_queue q[COUNT_KINDS];
	uint64_t seq, vector_seq;
	uint32_t *pending_clocks; /* caches.c: of invalidations that were not waited for; it stays with the place */
	uint64_t gl1_seq;
	bool gl1_pending;
	struct sim_hazard hz;
	struct sim_group *group;
	unsigned id;
	uint8_t *scratch;
	uint32_t scratch_stride;
	struct sim_run *run;
	unsigned slot; /* place in the list of runnable waves */
};
struct sim_group {
	uint32_t id[3], linear;
	unsigned n_waves, n_live, n_barrier;
	uint32_t phase;
	uint8_t *lds;
	uint32_t lds_size;
	uint32_t *lds_def;
	uint32_t lds_undefined; /* bit per dword written; how many are not */
	struct sim_wave *waves;
	uint32_t *clock;                       /* race.c: vector clock */
	uint32_t *l0, *gl1, *settled, *scalar; /* caches.c: its value at the last invalidation that counts */
	uint32_t slot;
	bool used;
};

/* Loops over lanes that are compiled twice, like the lane kernels. */
struct sim_span {
	uint64_t lo, hi, bits;
}; /* least and greatest address of the active lanes, and all their bits */
struct sim_kit {
	uint32_t (*pack)(const uint32_t *m); /* 32 words, all ones or zero, to a mask */
	struct sim_span (*span)(uint64_t base, const uint32_t *v, bool pairs, uint32_t exec,
	                        uint64_t *addr); /* base + v, 32 or 64 bits each */
};
extern const struct sim_kit sim_kit_base, sim_kit_avx2;
struct sim_region {
	uint64_t base, size;
	char name[48];
	bool writable;
	uint8_t tally;
};
struct sim_device {
	char target[16];
	uint8_t gen, sub;  /* gen 0 gfx10, 1 gfx11, 2 gfx12; sub 5: gfx115x */
	uint8_t min_sgprs; /* user and system registers that a wave must start with */
	uint32_t mach;
	uint16_t table[FMT_COUNT][1024];
	uint16_t vopd[2][32];
	struct sim_region *regions;
	unsigned n_regions, cap_regions;
	const sim_lane_fn *lanes;
	const struct sim_kit *kit;
};
struct sim_object {
	struct sim_device *dev;
	uint8_t *image;
	uint64_t image_size;      /* loaded segments, relative to address 0 of the file */
	uint64_t text, text_size; /* offset of the executable segment in the image */
	struct sim_inst *code;    /* one per word of text */
	struct sim_inst *halves;
	unsigned n_halves, cap_halves;
	struct sim_kernel *kernels;
	unsigned n_kernels;
	char *names;
	bool borrowed; /* the image */
};

/* One dispatch. */
struct sim_run {
	struct sim_device *dev;
	struct sim_object *object;
	const struct sim_kernel *kernel;
	struct sim_inst *code;
	uint32_t n_code;
	const uint32_t *words;
	struct sim_options opt;
	struct sim_counters c;
	struct error *err;
	bool trapped;
	bool slow_checks;
	const struct sim_inst *now; /* for trap messages */
	uint64_t rng;
	uint64_t steps, progress;
	uint32_t groups[3], group_size[3];
	struct sim_group *resident;
	unsigned n_resident;
	struct sim_wave **runnable;
	unsigned n_runnable;
	uint64_t next_group, n_groups, live_groups;
	struct sim_region *last_region;
	uint8_t *kernarg;
	uint8_t packet[64];
	struct sim_race *race;
};

#define SHARED_APERTURE 0x0001000000000000ull
#define PRIVATE_APERTURE 0x0002000000000000ull
#define POISON 0xdeadbeefu

/* dispatch.c */
void sim_trap(struct sim_wave *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline uint64_t sim_random(struct sim_run *r)
{
	uint64_t x = r->rng;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (r->rng = x) * 0x2545f4914f6cdd1dull >> 16;
}
void sim_wave_end(struct sim_wave *w);
void sim_barrier_signal(struct sim_wave *w);
void sim_barrier_wait(struct sim_wave *w);

/* wave.c: runs up to budget instructions. */
void sim_run_wave(struct sim_wave *w, unsigned budget);

/* decode.c: false leaves in->fn at the undecodable handler. why: what was wrong, or NULL. */
bool sim_decode(const struct sim_device *dev, const uint32_t *words, unsigned n, struct sim_inst *in,
                struct sim_inst *half, const char **why);
void sim_tables(struct sim_device *dev);
void sim_undecodable(struct sim_wave *w, const struct sim_inst *in);

/* the parts of the decoder */
struct decode {
	const struct sim_device *dev;
	const uint32_t *w;
	unsigned n;
	struct sim_inst *in, *half;
	const char *why;
	unsigned words; /* without a literal */
	bool literal;
	uint32_t literal_value;
};
bool decode_fail(struct decode *d, const char *why);
bool decode_src(struct decode *d, unsigned enc, char type, struct sim_src *out);
bool decode_sdst(struct decode *d, unsigned enc, unsigned n, uint16_t *out);
void decode_use(struct decode *d, unsigned reg, unsigned n, bool any);
void decode_def(struct decode *d, unsigned reg, unsigned n);
void decode_use_src(struct decode *d, const struct sim_src *s);
bool decode_literal(struct decode *d);
bool decode_op(struct decode *d, unsigned format, unsigned code);
unsigned type_words(char t);
bool decode_scalar(struct decode *d); /* SOP*, SMEM */
bool decode_vector(struct decode *d); /* VOP*, VOPD */
bool decode_memory(struct decode *d); /* DS, FLAT, GLOBAL, SCRATCH, cache */

/* lanes_*.c */
extern const sim_lane_fn sim_lanes_base[OP_COUNT], sim_lanes_avx2[OP_COUNT];
bool sim_have_avx2(void);

/* exec_*.c */
void exec_valu(struct sim_wave *w, const struct sim_inst *in);
void exec_valu_plain(struct sim_wave *w, const struct sim_inst *in); /* one word, no modifiers */
void exec_cmp(struct sim_wave *w, const struct sim_inst *in);
void exec_vopd(struct sim_wave *w, const struct sim_inst *in);
void exec_flat(struct sim_wave *w, const struct sim_inst *in);
void exec_lds(struct sim_wave *w, const struct sim_inst *in);
void exec_smem(struct sim_wave *w, const struct sim_inst *in);
void exec_cache(struct sim_wave *w, const struct sim_inst *in);
void exec_prefetch_inst(struct sim_wave *w, const struct sim_inst *in);
uint64_t sim_atomic(const struct sim_inst *in, uint64_t old, uint64_t data, uint64_t compare, bool *write);
#define SALU(fmt, name, ...) void exec_s_##name(struct sim_wave *w, const struct sim_inst *in);
#include "sim/salu.def"
#define SPEC(fmt, name, g10, g11, g12, D, A, B, C, class, fn) void fn(struct sim_wave *w, const struct sim_inst *in);
#include "sim/special.def"
const uint32_t *sim_fetch(struct sim_wave *w, const struct sim_src *s, uint32_t *tmp);
uint32_t sim_scalar(const struct sim_wave *w, const struct sim_src *s);
uint64_t sim_scalar64(const struct sim_wave *w, const struct sim_src *s);
static inline uint32_t *sim_vgpr(struct sim_wave *w, unsigned reg) { return w->v + (size_t)(reg - REG_VGPR) * LANES; }
void sim_write_masked(uint32_t *dst, const uint32_t *src, uint32_t mask);
void sim_set_sgpr(struct sim_wave *w, unsigned reg, uint32_t v);
void sim_mode_changed(struct sim_wave *w);

/* memory.c */
uint8_t *sim_address(struct sim_wave *w, uint64_t addr, uint64_t size, bool write);         /* NULL: trapped */
struct sim_access *sim_issue(struct sim_wave *w, unsigned kind, const struct sim_inst *in); /* NULL: trapped */
void sim_issued(struct sim_wave *w, unsigned kind, struct sim_access *a);
void sim_wait(struct sim_wave *w, unsigned kind, unsigned left);
void sim_wait_lgkm(struct sim_wave *w, unsigned left);
void sim_retire_random(struct sim_wave *w);
void sim_retire_all(struct sim_wave *w);
void sim_access_do(struct sim_wave *w, unsigned kind, struct sim_access *a); /* exec_memory.c */
void sim_queue_free(struct sim_wave *w);

/* hazard.c */
void sim_hazards(struct sim_wave *w, const struct sim_inst *in);

/* race.c */
bool sim_race_open(struct sim_run *r); /* false: out of memory */
void sim_race_close(struct sim_run *r);
void sim_race_write(struct sim_wave *w, uint64_t addr, uint64_t size);
/* reach: one of an instruction, or REACH_SCALAR */
enum { REACH_SCALAR = REACH_L2 + 1 };
void sim_race_read(struct sim_wave *w, uint64_t addr, uint64_t size, unsigned reach);
void sim_race_atomic(struct sim_wave *w, uint64_t addr, unsigned reach);

/* caches.c */
bool sim_caches_group(struct sim_group *g, uint64_t groups); /* a group begins; false: out of memory */
/* seq: of the access that is this invalidation, or of the next one where it is none */
void sim_caches_invalidate(struct sim_wave *w, const struct sim_inst *in, uint64_t seq);
void sim_caches_retired(struct sim_wave *w, unsigned kind, const struct sim_access *a);

#endif
