/* runtime/model/adapter_rows.c - an embedding that an adapter has whole (modules_to_save): its rows, in the type that
 * they have in the file (adapter_open.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/floats.h"
#include "jit/store/record.h"
#include "runtime/model/adapter_open.h"
#include "runtime/model/adapter_update.h"

enum { AT_ONCE = 64 /* rows */ };

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
		if (ok)
			floats_write(a->rows.row + at * row, type, some, n * p->cols);
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
	floats_read(out, a->rows.row + (uint64_t)id * a->rows.width * dtype_table[a->rows.type].bytes, a->rows.type,
	            a->rows.width);
	return true;
}
