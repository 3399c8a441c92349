/* runtime/model/adapter_rows.c - an embedding that an adapter has whole (modules_to_save): its rows, in the type that
 * they have in the file (adapter_open.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "jit/store/record.h"
#include "runtime/model/adapter_open.h"
#include "runtime/model/adapter_piece.h"

enum { AT_ONCE = 64 /* rows */ };

static void put(uint8_t *to, enum dtype type, uint64_t i, float x)
{
	const uint16_t half = type == DTYPE_F16 ? number_to_half(x) : number_to_bf16(x);

	if (type == DTYPE_F32)
		memcpy(to + 4 * i, &x, 4);
	else
		memcpy(to + 2 * i, &half, 2);
}

static float get(const uint8_t *from, enum dtype type, uint64_t i)
{
	uint16_t half;
	float x;

	if (type == DTYPE_F32) {
		memcpy(&x, from + 4 * i, 4);
		return x;
	}
	memcpy(&half, from + 2 * i, 2);
	return type == DTYPE_F16 ? number_from_half(half) : number_from_bf16(half);
}

bool adapter_rows_open(jit_adapter *a, const struct adapter_file *f, const struct adapter_part *p, struct error *err)
{
	const enum dtype type = f->whole[p->pair].t.type;
	const size_t row = p->cols * dtype_table[type].bytes;
	float *some = malloc(AT_ONCE * p->cols * sizeof *some);
	bool ok = some && (a->rows.row = malloc(p->rows * row));

	if (!ok)
		error_set(err, ERROR_MEMORY, "no memory for the embedding of an adapter");
	for (uint64_t at = 0, n; ok && at < p->rows; at += n) {
		n = p->rows - at < AT_ONCE ? p->rows - at : AT_ONCE;
		ok = adapter_read_whole(f, p, at, n, some, err);
		for (uint64_t i = 0; ok && i < n * p->cols; i++)
			put(a->rows.row, type, at * p->cols + i, some[i]);
	}
	free(some);
	if (!ok)
		return false;
	a->whole |= ADAPTER_WHOLE_ROWS;
	a->rows.type = type;
	a->rows.tokens = (uint32_t)p->rows;
	a->rows.width = (uint32_t)p->cols;
	a->key = record_checksum(a->rows.row, p->rows * row, a->key);
	return true;
}

bool adapter_rows_get(const jit_adapter *a, int32_t id, float *out)
{
	if (!a->rows.row || id < 0 || (uint32_t)id >= a->rows.tokens)
		return false;
	for (uint32_t i = 0; i < a->rows.width; i++)
		out[i] = get(a->rows.row, a->rows.type, (uint64_t)id * a->rows.width + i);
	return true;
}
