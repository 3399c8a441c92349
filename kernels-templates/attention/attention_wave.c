/* kernels-templates/attention/attention_wave.c - attention for groups of waves: every wave has a chunk of positions,
 * all merge them.
 *
 * Owns: who does what in a group. What is computed is numerics.h rule 9, as in attention.c. A unit's queries are its
 * rows; as many rows as shared bytes allow are a tile, and a tile takes rounds: each wave takes one of the next chunks
 * and leaves max, sum and o of every row in shared bytes. After a barrier, wave r merges those of row r, in order.
 *
 * A wave's share of the shared bytes holds a row's 128 scores first, then its p, then its o. Queries are broadcasts of
 * neighbouring words from where the rotation left them; keys and values come with a position, or a dimension, in each
 * of 32 lanes. An editor keeps this: both barriers are met by all waves equally often. Keys of positions that are not
 * visible may be read, but are replaced. Values of such positions are read only where a row sees less than others of
 * its tile, and then the row keeps its sums.
 */
#include <math.h>

#include "kernels-templates/attention/attention_wave.h"

static ir_s load_slot(const struct spread *t, unsigned slot) { return ir_sload64(t->b, t->arg, (int32_t)(slot * 8)); }

static ir_s at_least(const struct spread *t, ir_s v, int64_t min) { return ir_smax(t->b, v, ir_sconst(t->b, min)); }
static ir_s at_most(const struct spread *t, ir_s v, int64_t max) { return ir_smin(t->b, v, ir_sconst(t->b, max)); }
static ir_s clamp(const struct spread *t, ir_s v, int64_t min, int64_t max)
{
	return at_most(t, at_least(t, v, min), max);
}

/* ---- rows */

struct row attention_wave_find_row(const struct spread *t, ir_s row)
{
	struct ir *b = t->b;
	struct row r = { .number = row, .position = t->position };

	if (t->tiles > 1)
		r.number = at_most(t, ir_sadd(b, t->first_row, row), t->rows - 1);
	if (t->columns > 1) {
		r.column = t->group == 1 ? r.number : ir_sdivi(b, r.number, t->group);
		r.position = ir_sadd(b, t->position, r.column);
	}
	return r;
}

ir_s attention_wave_row_end(const struct spread *t, const struct row *r, ir_s start)
{
	ir_s seen = ir_saddi(t->b, ir_ssub(t->b, r->position, start), 1);
	if (t->both)
		seen = ir_smin(t->b, seen, ir_ssub(t->b, load_slot(t, ATTENTION_COLUMNS), start));
	return at_most(t, t->columns > 1 ? at_least(t, seen, 0) : seen,
	               CHUNK); /* a single column sees something of each of its chunks */
}

ir_s attention_wave_lowest(const struct spread *t, ir_s position)
{
	struct ir *b = t->b;

	return t->period ? ir_smuli(b, ir_sdivi(b, position, t->period), t->period)
	                 : ir_saddi(b, ir_ssub(b, position, load_slot(t, ATTENTION_SLIDING)), 1);
}

ir_s attention_wave_row_begin(const struct spread *t, const struct row *r, ir_s start)
{
	if (!t->window)
		return ir_sconst(t->b, 0);
	return clamp(t, ir_ssub(t->b, attention_wave_lowest(t, r->position), start), 0, CHUNK);
}

/* Of queries, or results. */
static unsigned column_bytes(const struct spread *t, unsigned dims)
{
	return (unsigned)numerics_pad(t->group * t->kv_heads * dims) * 4;
}

static ir_s within_group(const struct spread *t, const struct row *r)
{
	return t->columns > 1 ? ir_ssub(t->b, r->number, ir_smuli(t->b, r->column, t->group)) : r->number;
}

ir_a attention_wave_row_at(const struct spread *t, unsigned slot, const struct row *r, ir_s column)
{
	struct ir *b = t->b;
	unsigned dims = slot == ATTENTION_OUT ? t->out_dims : t->dims;
	if (slot == ATTENTION_Q && t->rotates)
		return ir_aadd(b, t->queries, ir_smuli(b, r->number, dims * 4));
	ir_s in_group = within_group(t, r);
	ir_a at = ir_aadd(b, ir_aload(b, t->arg, (int32_t)(slot * 8)), ir_smuli(b, column, column_bytes(t, dims)));
	return ir_aadd(b, at, ir_smuli(b, ir_sadd(b, ir_smuli(b, t->head, t->group), in_group), dims * 4));
}

ir_f attention_wave_sink(const struct spread *t, const struct row *r)
{
	struct ir *b = t->b;
	ir_s head = ir_sadd(b, ir_smuli(b, t->head, t->group), within_group(t, r));
	return ir_fbcast(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_SINKS * 8), ir_sshli(b, head, 2)), 0);
}

ir_f attention_wave_slope(const struct spread *t, const struct row *r)
{
	struct ir *b = t->b;
	ir_s head = ir_sadd(b, ir_smuli(b, t->head, t->group), within_group(t, r));
	return ir_fbcast(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_BIAS * 8), ir_sshli(b, head, 2)), 0);
}

ir_a attention_wave_bias(const struct spread *t, const struct row *r, ir_s start)
{
	struct ir *b = t->b;
	ir_s reach = load_slot(t, ATTENTION_REACH), column = attention_wave_launch_column(t, r->position),
	     head = ir_sadd(b, ir_smuli(b, t->head, t->group), within_group(t, r));
	ir_s at = ir_sadd(b, ir_smul(b, head, ir_sshli(b, reach, 1)), ir_sadd(b, reach, ir_ssub(b, start, column)));

	return ir_aadd(b, ir_aload(b, t->arg, ATTENTION_BIAS * 8), ir_sshli(b, at, 2));
}

ir_s attention_wave_chunks_to(const struct spread *t, ir_s position)
{
	struct ir *b = t->b;

	if (t->both)
		position = ir_smin(b, position, ir_saddi(b, load_slot(t, ATTENTION_COLUMNS), -1));
	return ir_saddi(b, ir_sshri(b, position, 7), 1);
}

ir_s attention_wave_launch_column(const struct spread *t, ir_s position)
{
	struct ir *b = t->b;
	ir_s column = ir_ssub(b, position, load_slot(t, ATTENTION_POS0));
	if (t->columns == 1)
		return column;
	return at_least(t, ir_smin(b, column, ir_saddi(b, load_slot(t, ATTENTION_COLUMNS), -1)), 0);
}

/* ---- chunks */

void attention_wave_chunk(const struct spread *t, ir_s chunk)
{
	struct ir *b = t->b;
	ir_a page = ir_aload(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_PAGES * 8), ir_sshli(b, chunk, 3)), 0);
	if (!t->latent)
		page = ir_aadd(b, page, ir_smuli(b, t->head, CHUNK * t->row_bytes));
	ir_s start = ir_sshli(b, chunk, 7);

	attention_wave_score_chunk(t, ir_aadd(b, page, load_slot(t, ATTENTION_KEYS)));
	attention_wave_softmax_rows(t, start);
	if (t->latent)
		attention_wave_latent_chunk(t, ir_aadd(b, page, load_slot(t, ATTENTION_KEYS)), start);
	else
		attention_wave_value_chunk(t, ir_aadd(b, page, load_slot(t, ATTENTION_VALUES)), start);
}

ir_s attention_wave_in_launch(const struct spread *t, ir_s position, unsigned columns)
{
	struct ir *b = t->b;
	ir_s column = ir_ssub(b, position, load_slot(t, ATTENTION_POS0)),
	     left = ir_ssub(b, load_slot(t, ATTENTION_COLUMNS), column);
	return clamp(t, ir_smin(b, ir_saddi(b, column, columns), left), 0, 1);
}

/* The row that this wave merges: its state, and where it goes. */
struct state {
	struct row row;
	ir_a out;
	ir_f max, sum, o[MAX_VECTORS];
};

static void merge_one(const struct spread *t, const struct state *s, ir_s chunk, ir_s from)
{
	struct ir *b = t->b;
	ir_s row = ir_sadd(b, ir_smuli(b, from, t->tile), t->wave);
	ir_a mark = ir_aadd(b, t->marks, ir_smuli(b, row, MARK_BYTES)),
	     o = ir_aadd(b, t->shared, ir_smuli(b, row, t->slot));
	ir_f max = ir_fbcast(b, mark, 0), sum = ir_fbcast(b, mark, 4), new_max = ir_fmax(b, s->max, max);
	ir_f keep = math_exp(b, ir_fsub(b, s->max, new_max)), join = math_exp(b, ir_fsub(b, max, new_max));
	ir_f total = ir_ffma(b, s->sum, keep, ir_fmul(b, sum, join));
	bool some = t->window && t->columns > 1; /* windows may begin in a later chunk for a later column */
	ir_m seen = { 0 };

	if (some) {
		ir_s begin = attention_wave_row_begin(t, &s->row, ir_sshli(b, chunk, 7));
		seen = ir_igt(b, ir_iconst(b, CHUNK), ir_isplat(b, begin));
	}
	ir_set_f(b, s->max, some ? ir_fsel(b, seen, new_max, s->max) : new_max);
	ir_set_f(b, s->sum, some ? ir_fsel(b, seen, total, s->sum) : total);
	for (unsigned i = 0; i < t->vectors; i++) {
		ir_f more = ir_fmul(b, ir_fload(b, o, (int32_t)(i * LANES * 4), 0), join),
		     joined = ir_ffma(b, s->o[i], keep, more);
		ir_set_f(b, s->o[i], some ? ir_fsel(b, seen, joined, s->o[i]) : joined);
	}
}

/* 1 for a wave that has a row, else 0. */
static ir_s has_row(const struct spread *t)
{
	struct ir *b = t->b;
	ir_s of_tile = ir_ssub(b, ir_sconst(b, t->tile), t->wave),
	     of_unit = ir_ssub(b, ir_sconst(b, t->rows), ir_sadd(b, t->first_row, t->wave));
	return clamp(t, t->tiles > 1 ? ir_smin(b, of_tile, of_unit) : of_tile, 0, 1);
}

/* Where a row's int8 blocks go: variables. */
struct blocks {
	ir_a q, s;
};

static struct blocks blocks_of(const struct spread *t, const struct row *r)
{
	struct ir *b = t->b;
	ir_s row = ir_sadd(b, ir_smuli(b, t->head, t->group), r->number), block = ir_smuli(b, row, t->vectors);
	struct blocks to;

	to.q = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_OUTQ * 8), ir_sshli(b, block, 5)));
	to.s = ir_var_a(b, ir_aadd(b, ir_aload(b, t->arg, ATTENTION_OUTS * 8), ir_sshli(b, block, 4)));
	return to;
}

static void leave_block(const struct spread *t, const struct blocks *to, ir_f y)
{
	struct ir *b = t->b;

	quantise_emit_block(b, &y, to->q, 0, to->s, 0);
	ir_set_a(b, to->q, ir_aaddi(b, to->q, LANES));
	ir_set_a(b, to->s, ir_aaddi(b, to->s, sizeof(struct activation_block)));
}

static void store_row(const struct spread *t, const struct state *s)
{
	struct ir *b = t->b;
	ir_s mine = has_row(t);

	if (t->columns > 1) { /* the launch's columns only */
		ir_s column = ir_ssub(b, s->row.position, load_slot(t, ATTENTION_POS0)),
		     left = ir_ssub(b, load_slot(t, ATTENTION_COLUMNS), column);
		mine = clamp(t, ir_smin(b, mine, ir_smin(b, ir_saddi(b, column, 1), left)), 0, 1);
	}
	ir_loop(b, mine);
	ir_a out = ir_var_a(b, s->out);
	struct blocks to = t->quantised ? blocks_of(t, &s->row) : (struct blocks){ 0 };
	ir_loop(b, ir_sconst(b, t->out_dims / LANES));
	ir_f y = ir_fdiv(b, s->o[0], s->sum);
	ir_fstore(b, out, y, 0, 0);
	if (t->quantised)
		leave_block(t, &to, y);
	for (unsigned i = 0; i + 1 < t->vectors; i++)
		ir_set_f(b, s->o[i], s->o[i + 1]);
	ir_set_a(b, out, ir_aaddi(b, out, LANES * 4));
	ir_endloop(b);
	if (t->out_dims % LANES)
		ir_fstore(b, out, ir_fdiv(b, s->o[0], s->sum), 0, t->out_dims % LANES);
	ir_endloop(b);
}

/* Chunks first.. of the cache, `chunks` of them, for the tile of rows from first_row on. */
static void do_tile(struct spread *t, ir_s first, ir_s chunks)
{
	struct ir *b = t->b;
	struct state s = { .row = attention_wave_find_row(t, at_most(t, t->wave, t->tile - 1)) };
	unsigned shift = (unsigned)__builtin_ctz(t->waves);

	s.out = attention_wave_row_at(
		t, ATTENTION_OUT, &s.row,
		attention_wave_launch_column(t, s.row.position)); /* here, where there are other loads to wait for */
	s.max = ir_var_f(b, t->sinks ? attention_wave_sink(t, &s.row) : ir_fconst(b, -INFINITY));
	s.sum = ir_var_f(b, ir_fconst(b, t->sinks ? 1.0f : 0.0f));
	for (unsigned i = 0; i < t->vectors; i++)
		s.o[i] = ir_var_f(b, ir_fconst(b, 0.0f));
	ir_s round = ir_loop(b, ir_sshri(b, ir_saddi(b, chunks, t->waves - 1), shift)),
	     done = ir_sshli(b, round, shift);
	ir_s left = ir_ssub(b, chunks, done);
	ir_loop(b, at_most(t, ir_ssub(b, left, t->wave), 1));
	attention_wave_chunk(t, ir_sadd(b, ir_sadd(b, first, done), t->wave));
	ir_endloop(b);
	ir_barrier(b);
	ir_s from = ir_loop(b, ir_smul(b, has_row(t), at_most(t, left, t->waves)));
	merge_one(t, &s, ir_sadd(b, ir_sadd(b, first, done), from), from);
	ir_endloop(b);
	ir_barrier(b);
	ir_endloop(b);
	store_row(t, &s);
}

/* ---- a unit */

void attention_wave_zero_pads(const struct spread *t, ir_s does)
{
	struct ir *b = t->b;
	unsigned width = t->group * t->kv_heads * t->out_dims;

	if (numerics_pad(width) == width)
		return;
	ir_loop(b, does);
	ir_s column = ir_loop(b, ir_sconst(b, t->columns)),
	     number = ir_sadd(b, ir_ssub(b, t->position, load_slot(t, ATTENTION_POS0)), column);
	ir_s there =
		t->columns == 1
			? ir_sconst(b, 1)
			: clamp(t,
	                        ir_smin(b, ir_saddi(b, number, 1), ir_ssub(b, load_slot(t, ATTENTION_COLUMNS), number)),
	                        0, 1);
	ir_loop(b, there);
	heads_zero_pad(b,
	               ir_aadd(b, ir_aload(b, t->arg, ATTENTION_OUT * 8),
	                       ir_smuli(b, number, column_bytes(t, t->out_dims))),
	               width, t->head, t->kv_heads);
	ir_endloop(b);
	ir_endloop(b);
	ir_endloop(b);
}

static void do_unit(struct spread *t, ir_s unit)
{
	struct ir *b = t->b;
	struct heads_unit u = heads_unit(b, unit, t->kv_heads);
	unsigned shift = (unsigned)__builtin_ctz(t->columns);
	ir_s pos0 = load_slot(t, ATTENTION_POS0), first = ir_sconst(b, 0);

	t->head = u.head;
	t->position = t->columns == 1 ? ir_sadd(b, pos0, u.column)
	                              : ir_sshli(b, ir_sadd(b, ir_sshri(b, pos0, shift), u.column), shift);
	ir_s chunks = attention_wave_chunks_to(t, ir_saddi(b, t->position, t->columns - 1));
	if (t->window) {
		first = ir_sshri(b, at_least(t, attention_wave_lowest(t, t->position), 0), 7);
		chunks = ir_ssub(b, chunks, first);
	}
	if (t->columns > 1) { /* a tile past the last column has none */
		ir_s end = ir_sadd(b, pos0, load_slot(t, ATTENTION_COLUMNS));
		chunks = ir_smul(b, chunks, clamp(t, ir_ssub(b, end, t->position), 0, 1));
	}
	if (t->rotates)
		attention_wave_rotate(t, ir_sconst(b, 1));
	ir_s tile = t->tiles > 1 ? ir_loop(b, ir_sconst(b, t->tiles)) : ir_sconst(b, 0);
	t->first_row = t->tiles > 1 ? ir_smuli(b, tile, t->tile) : tile;
	do_tile(t, first, chunks);
	if (t->tiles > 1)
		ir_endloop(b);
	ir_s first_wave = ir_ssub(b, ir_sconst(b, 1), at_most(t, t->wave, 1));
	attention_wave_zero_pads(t, first_wave);
}

static unsigned slot_bytes(unsigned dims)
{
	unsigned o = (dims + LANES - 1) / LANES * LANES * 4;
	return o > SCORE_BYTES ? o : SCORE_BYTES;
}

static unsigned rows_in(unsigned bytes, unsigned waves, unsigned head_dim)
{
	unsigned max = bytes / (waves * (slot_bytes(head_dim) + MARK_BYTES)),
		 limit = waves < MAX_ROWS ? waves : MAX_ROWS;
	return max < limit ? max : limit;
}

unsigned attention_wave_rows(unsigned waves, unsigned head_dim)
{
	return rows_in(TARGET_SHARED_BYTES, waves, head_dim);
}

/* Of shared bytes, what queries of a unit may take; the rest is for several rows of each wave. */
enum { QUERY_BYTES = 8 << 10 };

static unsigned query_bytes(uint32_t group, uint32_t head_dim) { return (group * head_dim * 4 + 63) / 64 * 64; }

/* Of several columns, with more shared bytes than TARGET_SHARED_BYTES. */
enum { COLUMNS_QUERY_BYTES = 32 << 10, COLUMNS_QUERIES = 128 };

bool template_attention_columns(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim,
                                uint32_t columns)
{
	return target->waves > 1 && target->shared_bytes >= 2 * COLUMNS_QUERY_BYTES &&
	       columns <= TEMPLATE_MAX_QUERIES && columns * (heads / kv_heads) <= COLUMNS_QUERIES &&
	       query_bytes(columns * (heads / kv_heads), head_dim) <= COLUMNS_QUERY_BYTES;
}

bool template_attention_rotates(const struct target *target, uint32_t heads, uint32_t kv_heads, uint32_t head_dim)
{
	return target->waves > 1 && query_bytes(heads / kv_heads, head_dim) <= QUERY_BYTES;
}

/* Four rows share what a wave loads, or as many as a head of keys has; each has 128 sums and then its o in registers.
 */
unsigned attention_wave_columns(const struct target *target, unsigned heads, unsigned kv_heads)
{
	enum { ROWS = 4 };
	unsigned group = heads / kv_heads, n = 1;

	while (n * 2 * group <= ROWS && n * 2 * target->waves <= TEMPLATE_MAX_QUERIES)
		n *= 2;
	return target->has_parts && group <= MAX_ROWS ? target->waves * n : 0;
}

static struct spread spread_of(struct ir *b, const struct key *key, const struct target *target)
{
	struct spread t = {
		.b = b,
		.waves = target->waves,
		.dims = key->head_dim,
		.group = key->heads / key->kv_heads,
		.kv_heads = key->kv_heads,
		.all = key->tile_n ? key->tile_n : 1,
		.apart = key->row_blocks,
		.element = heads_kv_bytes(key),
		.row_bytes = heads_kv_row_bytes(key),
		.int8 = heads_kv_bytes(key) == 1,
		.octets = template_kv_octets(target, key_dtype(key->kv), key->head_dim),
		.window = key->flags & KEY_WINDOW,
		.period = key->flags & KEY_LATENT ? 0 : key->k,
		.cap = key->flags & KEY_CAP,
		.latent = key->flags & KEY_LATENT,
		.sinks = key->flags & KEY_SINKS,
		.both = key->flags & KEY_BOTH,
		.biased = key->flags & KEY_BIAS,
		.rotates = key->flags & KEY_ROTATES,
		.quantised = key->flags & KEY_QUANTISED_OUT
	};

	t.columns = t.apart ? key->row_blocks : t.all;
	t.partial = t.apart && t.all % t.columns;
	t.rows = t.columns * t.group;
	t.tile = t.rows;
	t.tiles = 1;
	t.out_dims = t.latent ? key->k : t.dims;
	t.vectors = (t.out_dims + LANES - 1) / LANES;
	t.slot = slot_bytes(t.out_dims);
	return t;
}

/* Rows share what is loaded, and each takes its time: so many of them are a unit. */
enum { APART_ROWS = 4 };

bool attention_wave_apart(const struct key *key, const struct target *target)
{
	struct spread t = spread_of(NULL, key, target);

	return key->rows && t.waves > 1 && t.columns <= t.all && t.rows <= MAX_ROWS &&
	       attention_wave_split_copies(&t, target, query_bytes(t.rows, t.dims));
}

unsigned template_attention_apart(const struct target *target, const struct key *key)
{
	struct key apart = *key;
	unsigned group = key->heads / key->kv_heads, n = group < APART_ROWS ? APART_ROWS / group : 1;

	apart.rows = 1;
	apart.row_blocks = (uint8_t)n;
	return key->tile_n > n && attention_wave_apart(&apart, target) ? apart.row_blocks : 0;
}

void attention_wave_build(struct ir *b, const struct key *key, const struct target *target)
{
	struct spread t = spread_of(b, key, target);
	unsigned queries = t.rotates ? query_bytes(t.rows, t.dims) : 0;

	unsigned beside = t.columns > 1 ? 0 : queries; /* else there is more room */
	unsigned max = rows_in(TARGET_SHARED_BYTES - beside, t.waves, t.out_dims);
	if (!t.apart) {
		t.tiles = (t.rows + max - 1) / max;
		t.tile = (t.rows + t.tiles - 1) / t.tiles;
	}
	t.arg = ir_arg(b);
	if (t.rotates) {
		t.kv = kv_store_begin(b, key, target);
		t.queries = ir_shared(b, queries);
	}
	t.blocks = BLOCKS;
	t.many = 1;
	if (key->rows) {
		/* Where registers decide how many waves live at once, fewer loads are under way. */
		t.many = target->vector_file ? MANY / 2 : MANY;
		attention_wave_split_build(&t, target, key->rows);
		return;
	}
	if (t.columns > 1 && !t.latent && t.columns == attention_wave_columns(target, key->heads, key->kv_heads)) {
		attention_wave_columns_build(&t);
		return;
	}
	t.shared = ir_shared(b, (int64_t)t.waves * t.tile * t.slot);
	t.marks = ir_shared(b, (int64_t)t.waves * t.tile * MARK_BYTES);
	t.wave = ir_wave(b);
	t.own = t.o = ir_aadd(b, t.shared, ir_smuli(b, t.wave, t.tile * t.slot));
	t.o_step = t.slot;
	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), ir_begin(b)));
	do_unit(&t, ir_sadd(b, ir_begin(b), i));
	ir_endloop(b);
}
