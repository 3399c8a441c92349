/* kernels-templates/kinds/signature_spans.h - where the bytes of one work unit lie: the functions that the rows of
 * signature.def name where a layout takes more than an expression.
 *
 * Each says what the comments of signature.def say in words, and takes nothing from the builders: a row
 * that is wrong differs from what kernels do (tests/kernels/t_signature.c). signature.c alone includes this.
 */
#ifndef KERNELS_SIGNATURE_SPANS_H
#define KERNELS_SIGNATURE_SPANS_H

#include "kernels-templates/emit/heads.h"
#include "kernels-templates/signature.h"

enum { SLOTS_BYTES = ROUTE_MAX * 4 };

struct spans {
	struct kernel_span s[KERNEL_SPANS];
};

static inline struct spans one(uint64_t at, uint64_t bytes, uint64_t count, uint64_t stride)
{
	return (struct spans){ .s = { { at, bytes, count, stride } } };
}

static inline uint64_t pad32(uint64_t n) { return numerics_pad(n); }
/* Bytes of a padded row of f32. */
static inline uint64_t row(uint64_t n) { return numerics_pad(n) * 4; }
static inline bool has(const struct key *k, uint32_t flag) { return k->flags & flag; }
static inline bool is_int8(const struct key *k) { return k->activation == key_type(DTYPE_Q8_0); }
static inline const struct target *target_of(const struct key *k) { return &target_table[k->target]; }

/* ---- matmuls */

static inline uint64_t row_blocks(const struct key *k) { return pad32(k->rows) / 32; }

/* The unit's row blocks: number `first` of all heads', `n` of them. With EXPERTS, of its slot or group, `in` that. */
struct part {
	uint64_t first, n, in;
};
static inline struct part part_of(const struct key *k, uint64_t u)
{
	const uint64_t blocks = row_blocks(k), all = blocks * (has(k, KEY_BY_HEAD) ? k->heads : 1),
		       each = k->row_blocks ? k->row_blocks : 1, first = u * each;

	if (has(k, KEY_EXPERTS))
		return (struct part){ u % blocks, 1, u / blocks };
	return (struct part){ first, first >= all ? 0 : all - first < each ? all - first : each, 0 };
}

static inline uint64_t block_bytes(const struct key *k)
{
	return k->weight ? weight_block_bytes(key_dtype(k->weight), weight_layout_of(target_of(k)), k->k) : 0;
}

static inline struct spans weights(const struct key *k, uint64_t u)
{
	const struct part p = part_of(k, u);
	const uint64_t block = block_bytes(k), matrices = has(k, KEY_PAIR) ? 2 : 1, step = block * matrices;

	if (has(k, KEY_EXPERTS))
		return one(p.first * step, block, 0, row_blocks(k) * step);
	return matrices == 1 ? one(p.first * step, p.n * step, 1, 0) : one(p.first * step, block, p.n, step);
}

static inline uint64_t packed_bytes(const struct key *k) { return row_blocks(k) * block_bytes(k); }

/* Of activations as they are. */
static inline uint8_t activation_type(const struct key *k)
{
	return is_int8(k) ? KERNEL_INT8 : k->activation == key_type(DTYPE_F32) ? KERNEL_F32 : KERNEL_HALF;
}

static inline unsigned input_bytes(const struct key *k)
{
	return has(k, KEY_NORM_IN) ? 4 : kernel_type_bytes((enum kernel_type)activation_type(k));
}

/* element: bytes; 0: the scales and sums of int8 blocks. */
static inline struct spans input(const struct key *k, const uint64_t *a, uint64_t u, unsigned element)
{
	const uint64_t column = element ? pad32(k->k) * element : pad32(k->k) / 2, n = a[MATMUL_COLUMNS];

	if (has(k, KEY_EXPERTS))
		return k->tile_n > 1 ? one(0, column, 0, column)
		                     : one(part_of(k, u).in / k->kv_heads * column, column, 1, column);
	if (has(k, KEY_BY_HEAD))
		return one(u / row_blocks(k) * column, column, n, k->heads * column);
	return has(k, KEY_WIDE) ? one(0, n * column, 1, column) : one(0, column, n, column);
}

static inline struct spans output(const struct key *k, const uint64_t *a, uint64_t u, unsigned element)
{
	const uint64_t block = element ? 32 * element : 16, column = row_blocks(k) * block;
	const struct part p = part_of(k, u);

	if (has(k, KEY_EXPERTS))
		return k->tile_n > 1 ? one(p.first * block, block, 0, column)
		                     : one(p.in * column + p.first * block, block, 1, column);
	if (has(k, KEY_BY_HEAD)) {
		const uint64_t head = u / row_blocks(k), first = u % row_blocks(k) * 32, left = k->rows - first;
		return one((head * k->head_dim + first) * 4, (left < 32 ? left : 32) * 4, a[MATMUL_COLUMNS],
		           row((uint64_t)k->heads * k->head_dim));
	}
	return one(p.first * block, p.n * block, a[MATMUL_COLUMNS], column);
}

static inline struct spans bias(const struct key *k, uint64_t u)
{
	const struct part p = part_of(k, u);

	return has(k, KEY_EXPERTS) ? one(p.first * 128, 128, 0, row(k->rows)) : one(p.first * 128, p.n * 128, 1, 0);
}

static inline struct spans routes(const struct key *k, uint64_t u)
{
	const uint64_t in = part_of(k, u).in;

	if (k->tile_n > 1)
		return one(in * sizeof(struct route_group), sizeof(struct route_group), 1, 0);
	return one(in / k->heads * SLOTS_BYTES + in % k->heads * 4, 4, 1, SLOTS_BYTES);
}

/* ---- activations laid out anew */

static inline bool is_narrow(const struct key *k) { return k->numerics == NUMERICS_BOUNDED && !target_of(k)->has_dot2; }

/* block: bytes of a column's 32 k's. */
static inline struct spans columns_of_tile(const struct key *k, uint64_t u, uint64_t block)
{
	const uint64_t blocks = pad32(k->k) / 32;

	if (is_narrow(k))
		return one(u * block, block, 1, 0);
	return one((u / blocks * k->tile_n * blocks + u % blocks) * block, block, k->tile_n, blocks * block);
}

/* A tile's whole panels, then the one that has fewer columns. */
static inline struct spans panels(const struct key *k, uint64_t u, uint64_t block)
{
	if (is_narrow(k))
		return one(u * block, block, 1, 0);
	const uint64_t blocks = pad32(k->k) / 32, panel = k->row_blocks, whole = k->tile_n / panel,
		       rest = k->tile_n % panel, tile = u / blocks * k->tile_n * blocks * block, number = u % blocks;
	struct spans s = one(tile + number * panel * block, panel * block, whole, blocks * panel * block);

	if (rest)
		s.s[1] = (struct kernel_span){ tile + whole * panel * blocks * block + number * rest * block,
			                       rest * block, 1, 0 };
	return s;
}

/* ---- norms, experts, inputs of layers */

static inline struct spans norm_column(const struct key *k, uint64_t u)
{
	const uint64_t column = k->heads ? k->k * 4ull : row(k->k);

	return one(u * column, column, 1, column);
}

static inline struct spans norm_weight(const struct key *k, uint64_t u)
{
	if (!k->heads)
		return one(0, row(k->k), 1, 0);
	return one(k->kv_heads ? 0 : u % k->heads * k->k * 4, k->k * 4ull, 1, 0);
}

/* Bytes of a column of activations, without its scales. */
static inline uint64_t activation(const struct key *k) { return is_int8(k) ? pad32(k->k) : row(k->k); }

static inline struct spans slots_in(const struct key *k, uint64_t u)
{
	const uint64_t blocks = pad32(k->k) / 32, block = u % blocks * 128;

	if (has(k, KEY_SORTED))
		return one(block, 128, 0, row(k->k));
	return one(u / blocks * k->heads * row(k->k) + block, 128, k->heads, row(k->k));
}

static inline struct spans slots_of(const struct key *k, uint64_t u)
{
	return one(u / (pad32(k->k) / 32) * SLOTS_BYTES, k->heads * 4, 1, SLOTS_BYTES);
}

static inline struct spans share_in(const struct key *k, uint64_t u)
{
	const uint64_t column = row((uint64_t)k->rows * k->k);

	return one(u / k->rows * column + u % k->rows * k->k * 4, k->k * 4ull, 1, column);
}

/* ---- heads */

static inline uint64_t group(const struct key *k) { return k->heads / k->kv_heads; }

static inline struct spans rope_in(const struct key *k, uint64_t u)
{
	const uint64_t each = k->head_dim + (has(k, KEY_LATENT) ? k->k : 0), column = row(k->heads * each);

	return one(u / k->heads * column + u % k->heads * each * 4, each * 4, 1, column);
}

/* The number of the head that a unit of KEY_GATE is of. */
static inline struct spans gate_of_head(const struct key *k, uint64_t u)
{
	const uint64_t each = k->head_dim / 32, token = k->heads * each;

	return one(u / token * row(k->heads) + u % token / each * 4, 4, 1, row(k->heads));
}

/* What `n` of `heads` heads leave of a column, from number `first` on; the last one writes the pad. */
static inline uint64_t heads_bytes(uint64_t heads, uint64_t dims, uint64_t first, uint64_t n)
{
	return first + n == heads ? row(heads * dims) - first * dims * 4 : n * dims * 4;
}

static inline struct spans rope_out(const struct key *k, uint64_t u)
{
	const uint64_t head = u % k->heads, dims = k->head_dim + (has(k, KEY_LATENT) ? k->rows : 0),
		       column = row(k->heads * dims), at = u / k->heads * column + head * dims * 4;

	return has(k, KEY_LATENT) ? one(at + k->rows * 4, k->head_dim * 4, 1, column)
	                          : one(at, heads_bytes(k->heads, dims, head, 1), 1, column);
}

/* rest: with the pair of what does not rotate. */
static inline struct spans rope_angles(const struct key *k, uint64_t u, bool rest)
{
	const uint64_t pairs = k->head_dim / 2, latent = has(k, KEY_LATENT);

	return one(u / k->heads * (pairs + latent) * 4, (pairs + (latent && rest)) * 4, 1, (pairs + latent) * 4);
}

/* Columns from number `first` on, `n` of them. */
struct columns {
	uint64_t first, n;
};

static inline struct columns stored_columns(const struct key *k, const uint64_t *a, uint64_t u)
{
	const uint64_t each = template_kv_store_tokens(target_of(k)), first = u / k->kv_heads * each,
		       all = a[KV_STORE_COLUMNS];

	if (each == 1)
		return (struct columns){ first, 1 };
	return (struct columns){ first, first >= all ? 0 : all - first < each ? all - first : each };
}

static inline struct spans stored_head(const struct key *k, const uint64_t *a, uint64_t u)
{
	const struct columns c = stored_columns(k, a, u);
	const uint64_t column = row((uint64_t)k->kv_heads * k->head_dim), head = u % k->kv_heads;

	return one(c.first * column + head * k->head_dim * 4, k->head_dim * 4, c.n, column);
}

static inline struct spans stored_angles(const struct key *k, const uint64_t *a, uint64_t u)
{
	const struct columns c = stored_columns(k, a, u);
	const uint64_t latent = has(k, KEY_LATENT), pairs = (k->head_dim - (latent ? k->k : 0)) / 2,
		       column = (pairs + latent) * 4;

	return one(c.first * column, pairs * 4, c.n, column);
}

static inline struct spans stored_pages(const struct key *k, const uint64_t *a, uint64_t u)
{
	const struct columns c = stored_columns(k, a, u);
	const uint64_t first = (a[KV_STORE_POS0] + c.first) / NUMERICS_CHUNK,
		       last = c.n ? (a[KV_STORE_POS0] + c.first + c.n - 1) / NUMERICS_CHUNK : first;

	return one(first * 8, c.n ? (last - first + 1) * 8 : 0, 1, 0);
}

/* A head's keys or values in a page. */
static inline struct spans head_of_page(const struct key *k, uint64_t head)
{
	const uint64_t bytes = k->kv ? template_kv_row_bytes(key_dtype(k->kv), k->head_dim) * NUMERICS_CHUNK : 0;

	return one(has(k, KEY_LATENT) ? 0 : head * bytes, bytes, 1, 0);
}

/* ---- attention */

static inline uint64_t together(const struct key *k) { return k->tile_n > 1 ? k->tile_n : 1; }

static inline uint64_t attention_head(const struct key *k, uint64_t u)
{
	return k->row_blocks ? u / k->rows % k->kv_heads : u % k->kv_heads;
}

/* Later tiles take longer, and some kernels begin with them. */
static inline bool last_tile_first(const struct key *k)
{
	return !has(k, KEY_LATENT) && !k->rows && k->tile_n > 1 &&
	       k->tile_n == attention_wave_columns(target_of(k), k->heads, k->kv_heads);
}

static inline struct columns attention_columns(const struct key *k, const uint64_t *a, uint64_t u)
{
	const uint64_t n = together(k);

	if (k->row_blocks) {
		const uint64_t first = u / k->rows / k->kv_heads * k->row_blocks;
		return (struct columns){ first, n - first < k->row_blocks ? n - first : k->row_blocks };
	}
	if (k->rows)
		return (struct columns){ 0, n };
	if (n == 1)
		return (struct columns){ u / k->kv_heads, 1 };
	const uint64_t begin = a[ATTENTION_POS0], end = begin + a[ATTENTION_COLUMNS], number = u / k->kv_heads,
		       first = begin / n, last = end ? (end - 1) / n : 0;
	if (last_tile_first(k) && number > last)
		return (struct columns){ 0, 0 };
	const uint64_t base = (last_tile_first(k) ? last - number : first + number) * n,
		       from = base > begin ? base : begin, to = base + n < end ? base + n : end;
	return (struct columns){ from - begin, to > from ? to - from : 0 };
}

/* Chunks up to the unit's last column. */
static inline uint64_t chunks_seen(const struct key *k, const uint64_t *a, uint64_t u)
{
	const struct columns c = attention_columns(k, a, u);

	uint64_t last = a[ATTENTION_POS0] + c.first + c.n - 1;

	if (has(k, KEY_BOTH) && last >= a[ATTENTION_COLUMNS])
		last = a[ATTENTION_COLUMNS] - 1;
	return c.n ? last / NUMERICS_CHUNK + 1 : 0;
}

static inline struct spans queries(const struct key *k, const uint64_t *a, uint64_t u, uint64_t dims)
{
	const struct columns c = attention_columns(k, a, u);
	const uint64_t column = row(k->heads * dims), head = attention_head(k, u) * group(k);

	return one(c.first * column + head * dims * 4, group(k) * dims * 4, c.n, column);
}

/* A number of each head, or by distances of the unit's columns from all positions of the chunks that they see. */
static inline struct spans biases(const struct key *k, const uint64_t *a, uint64_t u)
{
	if (!has(k, KEY_BOTH))
		return one(attention_head(k, u) * group(k) * 4, group(k) * 4, 1, 0);
	const struct columns c = attention_columns(k, a, u);
	const uint64_t reach = a[ATTENTION_REACH], behind = c.n ? c.first + c.n - 1 : 0;

	return one((attention_head(k, u) * group(k) * 2 * reach + reach - behind) * 4,
	           c.n ? (chunks_seen(k, a, u) * NUMERICS_CHUNK + behind - c.first) * 4 : 0, group(k), reach * 8);
}

static inline struct spans records(const struct key *k, const uint64_t *a, uint64_t u)
{
	const struct columns c = attention_columns(k, a, u);
	const uint64_t record = template_attention_record(k->head_dim), rows = together(k) * group(k),
		       at = (attention_head(k, u) * rows + c.first * group(k)) * record;

	return one(at, c.n * group(k) * record, chunks_seen(k, a, u), k->kv_heads * rows * record);
}

static inline struct spans attended(const struct key *k, const uint64_t *a, uint64_t u)
{
	if (k->rows)
		return records(k, a, u);
	const uint64_t dims = has(k, KEY_LATENT) ? k->k : k->head_dim;
	struct spans s = queries(k, a, u, dims);

	s.s[0].bytes = heads_bytes(k->heads, dims, attention_head(k, u) * group(k), group(k));
	return s;
}

static inline struct spans attended_blocks(const struct key *k, uint64_t u, uint64_t block)
{
	const uint64_t n = group(k) * k->head_dim / 32;

	return one(u * n * block, n * block, 1, k->kv_heads * n * block);
}

/* New keys and values: a unit of some of the columns goes through the chunks of those before it, too. */
static inline struct columns new_columns(const struct key *k, const uint64_t *a, uint64_t u)
{
	const struct columns c = attention_columns(k, a, u);

	return k->row_blocks ? (struct columns){ 0, c.first + c.n } : c;
}

static inline struct spans new_heads(const struct key *k, const uint64_t *a, uint64_t u)
{
	const struct columns c = new_columns(k, a, u);
	const uint64_t column = row((uint64_t)k->kv_heads * k->head_dim);

	return one(c.first * column + attention_head(k, u) * k->head_dim * 4, k->head_dim * 4, c.n, column);
}

static inline struct spans new_angles(const struct key *k, const uint64_t *a, uint64_t u)
{
	const struct columns c = new_columns(k, a, u);

	return one(c.first * k->head_dim * 2, k->head_dim * 2, c.n, k->head_dim * 2);
}

/* ---- merging */

static inline uint64_t merge_row(const struct key *k, uint64_t u) { return u / template_merge_units(k->head_dim); }
static inline uint64_t merge_head(const struct key *k, uint64_t u) { return merge_row(k, u) % k->heads; }
static inline uint64_t merge_column(const struct key *k, uint64_t u) { return merge_row(k, u) / k->heads; }

static inline struct spans merged(const struct key *k, uint64_t u)
{
	const uint64_t units = template_merge_units(k->head_dim), head = merge_head(k, u),
		       column = row((uint64_t)k->heads * k->head_dim),
		       at = merge_column(k, u) * column + head * k->head_dim * 4;

	return units > 1 ? one(at + u % units * 128, 128, 1, column)
	                 : one(at, heads_bytes(k->heads, k->head_dim, head, 1), 1, column);
}

/* Heads are whole blocks, and each is a unit. */
static inline struct spans merged_block(const struct key *k, uint64_t u, uint64_t block)
{
	return one(u * block, block, 1, (uint64_t)k->heads * template_merge_units(k->head_dim) * block);
}

/* A part of o, and the maximum and sum, in each chunk. */
static inline struct spans merged_records(const struct key *k, const uint64_t *a, uint64_t u)
{
	const uint64_t units = template_merge_units(k->head_dim), record = template_attention_record(k->head_dim),
		       head = merge_head(k, u), column = merge_column(k, u), of = together(k) > 1 ? group(k) : 1,
		       number = together(k) > 1 ? (head / of * together(k) + column) * of + head % of : head,
		       chunks = (a[MERGE_POS0] + column) / NUMERICS_CHUNK + 1, step = together(k) * k->heads * record;
	struct spans s = one(number * record + u % units * 128, units > 1 ? 128 : record - 32, chunks, step);

	s.s[1] = (struct kernel_span){ number * record + record - 32, 8, chunks, step };
	return s;
}

/* ---- layers with a state */

static inline uint64_t value_head(const struct key *k, uint64_t u) { return u / template_value_blocks(k->rows); }

static inline struct kernel_span values(const struct key *k, uint64_t columns, uint64_t u, uint64_t before,
                                        uint64_t column)
{
	const uint64_t first = u % template_value_blocks(k->rows) * 32, left = k->rows - first;

	return (struct kernel_span){ before + (value_head(k, u) * k->rows + first) * 4, (left < 32 ? left : 32) * 4,
		                     columns, column };
}

static inline struct spans mixed(const struct key *k, uint64_t columns, uint64_t u)
{
	return (struct spans){ .s = { values(k, columns, u, 0, (uint64_t)k->heads * k->rows * 4) } };
}

static inline struct spans rate(const struct key *k, uint64_t columns, uint64_t u)
{
	return one(value_head(k, u) * 4, 4, columns, row(k->heads));
}

/* Queries or keys, where they lie apart. */
static inline struct spans delta_keys(const struct key *k, const uint64_t *a, uint64_t u)
{
	const uint64_t head = value_head(k, u), of = has(k, KEY_TILED) ? head % k->kv_heads : head / group(k);

	return one(of * k->head_dim * 4, k->head_dim * 4, a[DELTA_COLUMNS], (uint64_t)k->kv_heads * k->head_dim * 4);
}

static inline struct spans delta_input(const struct key *k, const uint64_t *a, uint64_t u)
{
	if (has(k, KEY_SORTED))
		return delta_keys(k, a, u);
	const uint64_t n = a[DELTA_COLUMNS], head = value_head(k, u), bytes = k->head_dim * 4,
		       all = k->kv_heads * bytes, column = 2 * all + (uint64_t)k->heads * k->rows * 4,
		       of = has(k, KEY_TILED) ? head % k->kv_heads : head / group(k);

	return (struct spans){ .s = { { of * bytes, bytes, n, column },
		                      { all + of * bytes, bytes, n, column },
		                      values(k, n, u, 2 * all, column) } };
}

static inline struct spans scan_input(const struct key *k, const uint64_t *a, uint64_t u)
{
	const uint64_t n = a[SCAN_COLUMNS], of = value_head(k, u) / group(k), bytes = k->head_dim * 4,
		       all = (uint64_t)k->heads * k->rows * 4, column = all + 2 * k->kv_heads * bytes;

	return (struct spans){ .s = { values(k, n, u, 0, column),
		                      { all + of * bytes, bytes, n, column },
		                      { all + (k->kv_heads + of) * bytes, bytes, n, column } } };
}

#endif
