/* tests/kernels/attention_check.h - caches and queries for the tests of attention. */
#ifndef TESTS_KERNELS_ATTENTION_CHECK_H
#define TESTS_KERNELS_ATTENTION_CHECK_H

#include "tests/kernels/plain_attention.h"

struct shape {
	unsigned kv_heads, group, dims;
	enum dtype type; /* of the cache */
};

struct scene {
	struct shape s;
	unsigned heads, width, padded;
	unsigned tile;                    /* columns that a unit does, 0: one */
	struct plain_cache cache, octets; /* the same numbers, where there are targets that lay them out by octets */
	uint64_t filled;                  /* positions from here on hold NaN bytes */
	uint64_t seed;
	uint32_t period;       /* windows begin at its multiples; 0: they end at their columns */
	float cap;             /* of scores; 0: none */
	float *sinks, *slopes; /* of heads, or NULL */
};

/* Queries of `columns` columns at pos0 on, and what plain loops make of them. */
struct work {
	unsigned columns;
	uint64_t pos0, window;
	float *q, *want;
	bool both; /* columns see `pos0` positions beyond themselves, as far as there are columns */
	const float *bias;
	uint64_t reach;
};

void open_scene(struct scene *c, struct shape s, uint64_t capacity);
void close_scene(struct scene *c);
void drop_slopes(struct scene *c); /* for columns that see both sides, whose scores have no slopes */
void store_cache(const struct scene *c, unsigned head, uint64_t position, const float *key, const float *value);
void fill_columns(struct scene *c, uint64_t end);
/* Without what plain loops make of them, which expect_work does: that takes long. */
void make_work(struct work *w, struct scene *c, unsigned columns, uint64_t pos0, uint64_t window);
void expect_work(const struct work *w, const struct scene *c);
void drop_work(struct work *w);
/* A cache of its own with the same bytes; whether two of the same shape have the same bytes. */
struct plain_cache clone_cache(const struct plain_cache *c);
void drop_cache(struct plain_cache *c);
bool same_caches(const struct plain_cache *a, const struct plain_cache *b);
/* What columns see both sides of; as make_work() otherwise, of positions 0 and following. */
void make_work_both(struct work *w, struct scene *c, unsigned columns, uint64_t ahead, uint64_t window);
struct key scene_key(const struct scene *c, bool window);

/* The tests of the other files of the program: the number that failed. */
int attention_code_tests(void);
int attention_parts_tests(void);
int attention_rotates_tests(void);

#endif
