/* tests/kernels/matmul_check.h - matrices for the tests of matmul, run by a kernel and by plain C. */
#ifndef TESTS_KERNELS_MATMUL_CHECK_H
#define TESTS_KERNELS_MATMUL_CHECK_H

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_quants.h"

struct problem {
	struct key key;
	uint32_t tiles;
	uint32_t missing; /* columns that the last one lacks; what lies behind them stays as it was */
	float spoil;      /* not 0: the bias of a row in the middle */
	int halves; /* not 0: inputs are odd numbers of halves of int8 steps of about 2 to this power, the largest 127
	             */
	int power;  /* inputs are about 2 to this power */
};

/* Everything a launch touches, twice where it is written: `got` by the kernel, `expected` by the plain loop. */
struct data {
	uint8_t *rows[2], *packed[2];  /* packed: by layout */
	float *x, *bias[2], *added[2]; /* added: as got.out lies */
	float *stream, *norm, epsilon; /* KEY_NORM_IN: what x is the norm of, and by which weights */
	struct activation_block *s;
	int8_t *q;
	struct {
		float *out;
		struct activation_block *outs;
		int8_t *outq;
		float *greatest;
	} got, expected;
	uint64_t out_n, columns;
	const float *from; /* KEY_AWAITED: what a product is added to */
	uint32_t round;    /* flags that int8 inputs are turned with */
};

struct mix {
	enum dtype weight, activation;
};
/* Every type of weights with each kind of inputs that it is multiplied with; main() makes the list. */
extern struct mix mixes[2 * DTYPE_COUNT + 1];
extern unsigned n_mixes;
/* BF16 by BF16 in pairs, behind these. */
static inline unsigned mix_of_dot2(void) { return n_mixes; }
void make_mixes(void);

/* Every flag combination that matmul takes. */
static const uint32_t flag_sets[] = {
	0,
	KEY_BIAS,
	KEY_RESIDUAL,
	KEY_BIAS | KEY_RESIDUAL,
	KEY_QUANTISED_OUT,
	KEY_BIAS | KEY_QUANTISED_OUT,
	KEY_RESIDUAL | KEY_QUANTISED_OUT,
	KEY_BIAS | KEY_RESIDUAL | KEY_QUANTISED_OUT,
	KEY_GATED | KEY_BIAS,
	KEY_GATED | KEY_QUANTISED_OUT,
	KEY_ADDED | KEY_BIAS | KEY_RESIDUAL,
	KEY_ADDED | KEY_GATED | KEY_QUANTISED_OUT,
	KEY_ADDED | KEY_SCALED | KEY_BIAS | KEY_RESIDUAL,
	KEY_PAIR,
	KEY_PAIR | KEY_BIAS,
	KEY_PAIR | KEY_BIAS2,
	KEY_PAIR | KEY_BIAS | KEY_BIAS2,
	KEY_PAIR | KEY_QUANTISED_OUT,
	KEY_PAIR | KEY_BIAS | KEY_QUANTISED_OUT,
	KEY_PAIR | KEY_BIAS2 | KEY_QUANTISED_OUT,
	KEY_PAIR | KEY_BIAS | KEY_BIAS2 | KEY_QUANTISED_OUT,
	KEY_ADDED | KEY_PAIR,
	KEY_ADDED | KEY_PAIR | KEY_BIAS | KEY_BIAS2 | KEY_QUANTISED_OUT,
	KEY_ADDED | KEY_SCALED | KEY_PAIR | KEY_BIAS2,
};
enum {
	FLAG_SETS = sizeof flag_sets / sizeof flag_sets[0],
	ONE_MATRIX = 13 /* the sets before the first with a pair */
};

uint32_t draw_number(uint32_t n);
/* Numbers to be added; with KEY_SCALED in row blocks of 32 factors and 32 numbers, without pads. */
float *make_added(uint64_t columns, const struct key *key);
/* Random rows of any format: halves stay finite, block scales are small. */
uint8_t *make_rows(const struct key *key);
/* Into every `stride`-th block of dst from `first` on. */
void pack_rows(const struct key *key, enum weight_layout layout, const uint8_t *rows, uint8_t *dst, unsigned first,
               unsigned stride);
/* [columns][pad(n)] with +0 pads. */
float *make_columns(uint64_t columns, uint32_t n);
void make_data(struct data *d, const struct problem *p);
void free_data(struct data *d);
/* The launch in two calls, cut at a random unit. */
void launch(const struct kernel_way *way, const struct kernel *k, struct data *d, const struct problem *p);
void same_output(const char *what, const struct kernel_way *way, const struct problem *p, const void *got,
                 const void *expected, uint64_t n);
/* CPUs have wide tiles where there are more than eight columns, others have none. */
bool takes_way(const struct target *target, const struct key *key);
/* One way; old: what out held before. */
void check_way(const struct kernel_way *way, const struct problem *p, struct data *d, const float *old);
float *expect_data(struct data *d, const struct problem *p);
/* Gates have an activation function; what is not added may have one. */
void set_flags(struct key *key, uint32_t flags);
struct problem problem(unsigned mix, uint32_t rows, uint32_t k, uint32_t columns, uint32_t tiles, unsigned row_blocks,
                       uint32_t flags);

/* The same with row blocks side by side, in one of the ways in turn; the last tile may lack columns. */
struct problem side_by_side(const struct problem *p);

/* The tests of the other files of the program: the number that failed. */
int matmul_schedule_tests(void);
int matmul_dot2_tests(void);

#endif
