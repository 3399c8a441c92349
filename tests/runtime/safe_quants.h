/* tests/runtime/safe_quants.h - writes small models of quantised safetensors, and the same with their weights as
 * floats.
 *
 * Each matrix is quantised to integers (or FP8 codes), numbers and zero points; its floats are made of these one at a
 * time, by the method's definition, and laid down as the method lays them.
 */
#ifndef TESTS_SAFE_QUANTS_H
#define TESTS_SAFE_QUANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

enum method { MLX, MLX_FLOATS, PACKED, BYTES, FLOAT8, GPTQ, AWQ };
enum wrong {
	RIGHT,
	NOT_A_NUMBER,
	LARGE_SCALE,
	OTHER_ORDER,
	ZERO_OF_7,
	ZERO_OF_15,
	NO_ZEROS,
	SHORT_ZEROS,
	ODD_WORDS,
	MORE_BLOCKS
};

/* What differs between models. */
struct form {
	enum method method;
	unsigned bits;
	uint64_t group, group_rows; /* columns and rows that share a scale; 0: all */
	bool zeros;                 /* zero points of their own */
	enum dtype number;
	const char *scale_name;
	int shift; /* what is taken off stored zero points */
	const char *config;
	enum wrong wrong;
};

/* The two models lie in dir/quants and dir/floats: of a safetensors file's n bytes at p, and its config.json; of a
 * small one. */
void safe_quants_write(const char *dir, const struct form *f, const uint8_t *p, size_t n, const char *config);
void safe_quants_write_tiny(const char *dir, const struct form *f);

/* Below n; the same in every run. */
uint32_t safe_quants_draw(uint32_t n);

#endif
