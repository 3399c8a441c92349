/* jit/key.h - the shape key: the whole identity of a kernel.
 *
 * Owns: the struct and its text form, "matmul.q8_0.aq8_0.1024x3072.c4.resid.avx2". A key is zero-filled before its
 * fields are set and compared whole with memcmp; the hash only indexes. Two equal keys always name the same bytes.
 */
#ifndef JIT_KEY_H
#define JIT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

/*     id, text */
#define KEY_KINDS(X) \
	X(MATMUL, "matmul") \
	X(NORM, "norm") \
	X(ROPE, "rope") \
	X(ATTENTION, "attention") \
	X(QUANTISE, "quantise") \
	X(EMBED, "embed") \
	X(KV_STORE, "kvstore") \
	X(INTERLEAVE, "interleave") \
	X(SCALE, "scale") \
	X(CONV, "conv") \
	X(DELTA, "delta") \
	X(GATE, "gate") \
	X(ROUTE, "route") \
	X(DISPATCH, "dispatch") \
	X(SCATTER, "scatter") \
	X(COMBINE, "combine") \
	X(LAYER_INPUTS, "layerin") \
	X(SCAN, "scan") \
	X(MERGE, "merge") \
	X(PROGRAM, "program") /* several kernels in one launch: jit/program_key.h */ \
	X(USER, "user")       /* a user's kernel: key_user() */ \
	X(ADAPT_DOWN, "adaptdown") \
	X(ADAPT_UP, "adaptup") \
	X(CHANNEL, "channel")
enum key_kind {
	KEY_NONE,
#define X(id, text) KEY_##id,
	KEY_KINDS(X)
#undef X
		KEY_KIND_COUNT
};

/* Bits of key.flags; text in parentheses. Of matmuls, three fields of the word: which epilogue, where the input comes
 * from, which engine. Their readers ask for kernels-templates/matmul/recipe.h. */
enum key_flags {
	/* Epilogues. */
	KEY_BIAS = 1,           /* (bias) add a vector per row */
	KEY_RESIDUAL = 2,       /* (resid) add into the destination */
	KEY_PAIR = 4,           /* (pair) two weight matrices: act(first) * second */
	KEY_QUANTISED_OUT = 8,  /* (q8out) also writes the result as int8 blocks */
	KEY_BIAS2 = 1 << 6,     /* (bias2) bias of the second matrix of a pair */
	KEY_GATED = 1 << 7,     /* (gated) the result becomes act(old destination) * result */
	KEY_GREATEST = 1 << 23, /* (greatest) the greatest result of each 32 is kept, too; of routes: shares are those
	                           among experts that are near the greatest */
	KEY_ADDED = 1 << 4,     /* (added) of matmuls: numbers of each column and row are added before the bias */
	KEY_SCALED = 1 << 18,   /* (scaled) with ADDED: each product is multiplied by a number first; of other kinds,
	                           weights of a sum, each times a number of what it weighs; of the delta rule,
	                           corrections twice as large */
	KEY_EPILOGUE = KEY_BIAS | KEY_RESIDUAL | KEY_PAIR | KEY_QUANTISED_OUT | KEY_BIAS2 | KEY_GATED | KEY_GREATEST |
	               KEY_ADDED | KEY_SCALED,
	/* Where inputs, and with experts weights, come from. */
	KEY_CENTRED = 1 << 14, /* (mean) a norm that subtracts the mean */
	KEY_NORM_IN = 1 << 19, /* (normin) the norm of its input is made inside */
	KEY_AWAITED = 1 << 21, /* (awaited) what it reads of others of its launch is awaited word by word, and what it
	                          leaves for them given */
	KEY_EXPERTS = 1 << 24, /* (experts) weights chosen by data */
	KEY_BY_HEAD = 1 << 25, /* (byhead) a matrix for each head, times its own part of the input */
	KEY_SOURCE = KEY_CENTRED | KEY_NORM_IN | KEY_AWAITED | KEY_EXPERTS | KEY_BY_HEAD,
	/* Engines, beside the usual one. */
	KEY_WIDE = 1 << 8, /* (wide) many tokens, whose activations are interleaved */
	KEY_MMA = 1 << 10, /* (mma) by products of matrices */
	KEY_ENGINE = KEY_WIDE | KEY_MMA,
	/* Of other kinds; the first bit is KEY_ADDED of matmuls. */
	KEY_QK_NORM = 1 << 4,     /* (qknorm) RMS norm per head before rotation */
	KEY_WINDOW = 1 << 5,      /* (win) sliding window */
	KEY_UNSIGNED = 1 << 9,    /* (uns) int8 come out as unsigned bytes, 128 larger */
	KEY_BOTH = 1 << 11,       /* (both) attention to what is behind a token, too */
	KEY_CAP = 1 << 12,        /* (cap) bounded by a tanh */
	KEY_NORM_LAST = 1 << 13,  /* (last) with QK_NORM: behind the rotation */
	KEY_VALUE_NORM = 1 << 15, /* (vnorm) RMS norm per head of values, without weights */
	KEY_SINKS = 1 << 16,      /* (sinks) the softmax of each head has one more term, without a value */
	KEY_SHARE_EPS = 1 << 17,  /* (shareeps) with NORMED: 1e-6 is added to the sum that is divided by */
	KEY_TILED = 1 << 20,      /* (tiled) heads of values take those of keys round-robin */
	KEY_ROTATES = 1 << 22,    /* (rotates) attention that rotates, and stores a position's key and value */
	KEY_LATENT = 1 << 26,     /* (latent) keys are a latent vector and a rotated part; values the former */
	KEY_SIGMOID = 1 << 27,    /* (logistic) weights of a sum by the logistic function */
	KEY_NORMED = 1 << 28,     /* (normed) weights of a sum add up to 1 */
	KEY_OF_ALL = 1 << 29, /* (ofall) a softmax over all experts, not over the chosen ones; of the delta rule, each
	                         element of a key forgets by a number of its own */
	KEY_SORTED = 1 << 30  /* (sorted) columns lie expert by expert; of the delta rule, queries, keys and values
	                         lie apart */
};

/* The activation function of a feed-forward layer: id, text */
#define KEY_ACTS(X) \
	X(SILU, "silu") \
	X(GELU, "gelu") \
	X(RELU2, "relu2") \
	X(SIGMOID, "sigmoid") \
	X(SWIGLU_OAI, "swiglu_oai") X(GELU_ERF, "gelu_erf") X(RELU, "relu") X(SOFTPLUS, "softplus")
enum key_act {
	ACT_NONE,
#define X(id, text) ACT_##id,
	KEY_ACTS(X)
#undef X
		KEY_ACT_COUNT
};

enum key_numerics { NUMERICS_EXACT, NUMERICS_BOUNDED };

struct key {
	uint8_t kind;       /* enum key_kind */
	uint8_t target;     /* enum target_id */
	uint8_t weight;     /* key_type() of the weights, 0: none */
	uint8_t activation; /* key_type() of the input: F32, or Q8_0 for int8 blocks of 32 with f32 scales; 0: none */
	uint8_t kv;         /* key_type() of the KV cache */
	uint8_t numerics;   /* enum key_numerics */
	uint8_t row_blocks; /* blocks of 32 rows in one work unit; interleave: tokens of a panel; attention: a unit's */
	uint8_t act;        /* enum key_act, of what KEY_PAIR and KEY_GATED do; without them, of the result */
	uint32_t rows, k;   /* outputs and inputs (norm: hidden in k) */
	uint32_t tile_n;    /* tokens that one call of the inner tile computes */
	uint32_t head_dim, heads, kv_heads;
	uint32_t flags;
	uint32_t schedule; /* which way of doing the same computation, a hexadecimal digit a choice
	                      (kernels-templates/matmul/matmul_schedule.h); 0: the usual one */
	uint64_t codegen;  /* code-generator id */
};
/* How a type stands in a key, where 0 is none; and back, of a field that is not 0. */
static inline uint8_t key_type(enum dtype type) { return (uint8_t)(type + 1); }
static inline enum dtype key_dtype(uint8_t field) { return (enum dtype)(field - 1); }

_Static_assert(sizeof(struct key) == 48, "a key has no padding: it is compared and stored as bytes");

/* The code-generator ids, one for each backend: one changes when and only when the bytes that backend generates can
 * change. */
extern const uint64_t key_codegen_x86, key_codegen_rdna, key_codegen_ptx, key_codegen_spirv;
/* The same of the language of users' kernels, which is in their identities (key_user). */
extern const uint64_t key_codegen_language;
/* That of a target's backend; 0 for what is no target. */
uint64_t key_codegen(unsigned target);
/* "silu"; "" for none. */
const char *key_act_name(unsigned act);

/* Indexes tables, and names and slots in stored files too: another function is another RECORD_VERSION
 * (jit/store/record.h). */
uint64_t key_hash(const struct key *k);
bool key_equal(const struct key *a, const struct key *b);
/* Text form without the code-generator id; returns out. KEY_TEXT_MAX bytes always suffice.
 *
 *   kind [weight] [aACTIVATION] [kvCACHE] [ROWSxK | rROWS | kK] [cTILE_N] [bROW_BLOCKS] [dHEAD_DIM] [hHEADS]
 *   [gKV_HEADS] [sSCHEDULE, hexadecimal] [ACT] [flags...] [bounded] [target]
 *
 * in this order, joined by dots; a field that is 0 is left out. */
enum { KEY_TEXT_MAX = 384 };
char *key_text(const struct key *k, char *out, size_t cap);
/* The key of a user's kernel for a target of this program: what the kernel is, its identity says, a hash of everything
 * that decides its IR. It is in the fields from rows to kv_heads, and in the text form as hexadecimal digits behind the
 * kind. */
enum { KEY_USER_BYTES = 24 };
/* That identity: of the hash of what decides the IR, and of the language that makes it, so that a kernel of another
 * version's is another one. */
void key_user_id(uint8_t out[KEY_USER_BYTES], const uint8_t *hash);
void key_user(struct key *out, const uint8_t id[KEY_USER_BYTES], unsigned target);
/* Whether both are the same user's kernel, for any target. */
bool key_same_user(const struct key *a, const struct key *b);
/* How far apart two keys are, for finding the nearest: 0 when equal, less when fewer and lesser fields differ; the kind
 * of kernel outweighs all others. */
unsigned key_distance(const struct key *a, const struct key *b);
/* The nearest of a list, a first one among equals. NULL: the list is empty. */
const struct key *key_nearest(const struct key *want, const struct key *list, size_t n);
/* What about `have` is not as in `want`, field by field: "tile_n is 4, not 5, target is avx2, not avx512". Empty when
 * equal. Returns out; KEY_DIFFERENCES_MAX bytes always suffice. */
enum { KEY_DIFFERENCES_MAX = 1024 };
char *key_differences(const struct key *want, const struct key *have, char *out, size_t cap);
/* Reads the text form back (codegen set to this program's for the target). Only what key_text() writes is taken. False:
 * not a key. */
bool key_parse(struct key *k, const char *text);

#endif
