/* kernels-templates/kinds/traffic.c - how many bytes a launch is expected to move between memory and the processor.
 *
 * Owns: the count that reports and predictions hold measurements against: every weight once, every cached position that
 * is looked at once, inputs and results once. What caches save or cost beside that is for the measurement to show.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/formats/weight_format.h"

static uint64_t activation_bytes(uint8_t activation, uint64_t width)
{
	uint64_t padded = numerics_pad(width);
	return activation == key_type(DTYPE_Q8_0)  ? padded + padded / 32 * sizeof(struct activation_block)
	       : activation == key_type(DTYPE_F32) ? padded * 4
	                                           : padded * 2;
}

/* One head at one position, keys or values. */
static uint64_t cached_bytes(const struct key *k)
{
	return k->kv ? template_kv_row_bytes(key_dtype(k->kv), k->head_dim) : 0;
}

/* Of one row block's weights. */
static uint64_t block_bytes(const struct key *k)
{
	return weight_block_bytes(key_dtype(k->weight), weight_layout_of(&target_table[k->target]), k->k);
}

/* Of row blocks. */
static uint64_t matmul_blocks(const struct key *k, uint64_t units)
{
	uint64_t all = (k->rows + 31) / 32 * (k->flags & KEY_BY_HEAD ? k->heads : 1),
		 blocks = units * (k->row_blocks ? k->row_blocks : 1);
	return blocks < all ? blocks : all;
}

static uint64_t matmul_weights(const struct key *k, uint64_t units)
{
	if (k->flags & KEY_EXPERTS) /* each unit its own row block */
		return (k->flags & KEY_PAIR ? 2 : 1) * units * block_bytes(k);
	return (k->flags & KEY_PAIR ? 2 : 1) * matmul_blocks(k, units) * block_bytes(k);
}

uint64_t traffic_matmul(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	uint64_t rows = matmul_blocks(k, units) * 32;
	uint64_t out = rows * 4 * (k->flags & (KEY_RESIDUAL | KEY_GATED) ? 2 : 1);

	if (k->flags & KEY_QUANTISED_OUT)
		out += activation_bytes(key_type(DTYPE_Q8_0), rows);
	uint64_t heads = k->flags & KEY_BY_HEAD ? k->heads : 1;
	if (k->flags & KEY_EXPERTS) /* the columns of a slot, or of a group that shares one matrix */
		columns = k->tile_n > 1 ? units / ((k->rows + 31) / 32) * k->tile_n : units / ((k->rows + 31) / 32);
	if (k->flags & KEY_NORM_IN)
		return matmul_weights(k, units) + columns * (numerics_pad(k->k) * 4 + out) + numerics_pad(k->k) * 4;
	return matmul_weights(k, units) + columns * (heads * activation_bytes(k->activation, k->k) + out);
}

/* Columns see one position more each, or all of the launch's; those of a tile share what they see. */
static uint64_t attention_cache(const struct key *k, uint64_t position, uint64_t columns)
{
	uint64_t tile = k->tile_n > 1 ? k->tile_n : 1, seen = 0;

	for (uint64_t c = 0; c < columns; c += tile)
		seen += k->flags & KEY_BOTH ? columns : position + (c + tile < columns ? c + tile : columns);
	return seen * (k->flags & KEY_LATENT ? 1 : 2 * k->kv_heads) * cached_bytes(k);
}

struct template_reads reads_matmul(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return (struct template_reads){ .weights = matmul_weights(k, units) };
}

uint64_t traffic_interleave(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	const uint64_t blocks = units * (k->tile_n ? k->tile_n : 1);

	return blocks * ((k->activation == key_type(DTYPE_Q8_0) ? activation_bytes(k->activation, 32) : 32 * 4) +
	                 activation_bytes(k->activation, 32));
}

uint64_t traffic_norm(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * ((k->flags & KEY_RESIDUAL ? 12 : 8) * numerics_pad(k->k) +
	                (k->flags & KEY_QUANTISED_OUT ? activation_bytes(key_type(DTYPE_Q8_0), k->k) : 0)) +
	       (k->flags & KEY_BIAS ? 8 : 4) * numerics_pad(k->k);
}

uint64_t traffic_quantise(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * (32 * 4 + 32 + sizeof(struct activation_block));
}

uint64_t traffic_scale(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * 128 * (k->flags & (KEY_RESIDUAL | KEY_PAIR) ? 3 : 2);
}

uint64_t traffic_layer_inputs(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * (8 * (uint64_t)k->k + 4 * numerics_pad(k->k)) + 4 * numerics_pad(k->k);
}

uint64_t traffic_route(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * (numerics_pad(k->rows) * 4 + 2 * ROUTE_MAX * 4);
}

uint64_t traffic_dispatch(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return columns * 2 * ROUTE_MAX * 4 + k->rows * sizeof(struct route_group);
}

uint64_t traffic_scatter(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * (1 + k->heads) * activation_bytes(k->activation, k->k);
}

uint64_t traffic_combine(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * 128 * (k->heads + (k->flags & KEY_RESIDUAL ? 2 : 1));
}

uint64_t traffic_rope(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * (k->head_dim + (k->flags & KEY_LATENT ? k->k : 0)) * 8;
}

uint64_t traffic_kv_store(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return columns * k->kv_heads * (k->flags & KEY_LATENT ? 1 : 2) * (4 * k->head_dim + cached_bytes(k));
}

/* What attention in parts leaves of the chunks of a context, of all columns of a unit. */
static uint64_t tile_columns(const struct key *k) { return k->tile_n > 1 ? k->tile_n : 1; }
static uint64_t records(const struct key *k, uint64_t position)
{
	uint64_t n = tile_columns(k);

	return ((position + n - 1) / NUMERICS_CHUNK + 1) * n * k->heads * template_attention_record(k->head_dim);
}

uint64_t traffic_attention(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	uint64_t out = k->flags & KEY_LATENT ? k->k : k->head_dim;
	return attention_cache(k, position, columns) + columns * 4 * k->heads * (k->head_dim + out) +
	       (k->flags & KEY_ROTATES ? traffic_kv_store(k, units, position, columns) : 0) -
	       (k->row_blocks ? columns * k->kv_heads * 2 * cached_bytes(k) : 0) + /* it does not store */
	       (k->rows ? records(k, position) : 0);
}

uint64_t traffic_merge(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return records(k, position) + tile_columns(k) * 4 * k->heads * k->head_dim;
}

struct template_reads reads_attention(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return (struct template_reads){ .cache = attention_cache(k, position, columns) };
}

/* The state is read and written once, whatever the columns. */
uint64_t traffic_conv(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * 128 *
	       (columns * (k->flags & KEY_GATED ? 4 : 2) + k->rows + 2 * (k->rows - 1) + (k->flags & KEY_BIAS ? 1 : 0));
}

uint64_t traffic_delta(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	const uint64_t keys = (uint64_t)k->kv_heads * k->head_dim, rates = k->flags & KEY_OF_ALL ? keys : k->heads;

	return units * 128 * 2 * (k->head_dim + columns) + columns * 4 * (2 * keys + k->heads + rates);
}

uint64_t traffic_scan(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * 128 * 2 * (k->head_dim + columns) +
	       columns * (8 * (uint64_t)k->kv_heads * k->head_dim + 4 * (uint64_t)k->heads);
}

uint64_t traffic_channel(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * 128 * (3 * (uint64_t)k->rows + 3 * columns + 2) + columns * 8 * numerics_pad(k->rows);
}

uint64_t traffic_gate(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * 128 * 3;
}

uint64_t traffic_embed(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return units * (block_bytes(k) / 32 + 4 * numerics_pad(k->k));
}

/* What data decide is not counted: the matrices of the adapters. */
uint64_t traffic_adapt(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return columns * 4 * (numerics_pad(k->k) + numerics_pad(k->rows));
}

struct template_reads reads_embed(const struct key *k, uint64_t units, uint64_t position, uint64_t columns)
{
	return (struct template_reads){ .weights = units * (block_bytes(k) / 32) };
}
