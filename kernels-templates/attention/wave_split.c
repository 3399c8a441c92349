/* kernels-templates/attention/wave_split.c - attention with the context in parts, for groups of waves.
 *
 * Owns: who does what in a group that has some chunks of a head. A chunk is a team's: each of its waves does the scores
 * of a block of positions, then the softmax of some rows, then the values of some vectors of dimensions. What is left
 * of each chunk and row is a record in memory (docs/kernel-templates.md), which KEY_MERGE reads: merging goes on in the
 * order of the chunks, so how a context is cut changes no bit. Of several columns a unit may have a few: those that it
 * does not have are other units', which go through the same chunks.
 *
 * An editor keeps this: the waves of all teams meet all barriers equally often. Rounds alternate between two buffers
 * for scores, so that a wave that is ahead does not write where others still read.
 */
#include "kernels-templates/attention/attention_wave.h"

enum {
	TEAM = BLOCKS, /* the most waves of one: so many have a block each */
	BUFFERS = 2,
	MANY_KEYS = 4, /* of local bytes, which need fewer loads under way: as spread.many */
	MANY_VALUES = 2
};

struct split {
	struct spread *t;
	unsigned parts, team, teams;
	ir_s which, member; /* of the teams; of its waves */
	ir_a shared, records;
	bool copies; /* a wave has what it reads copied ahead */
	struct attention_ahead ahead;
};

/* The rest of a division by a power of two. */
static ir_s rest_of(struct ir *b, ir_s n, unsigned of) { return ir_sandi(b, n, (int64_t)of - 1); }

/* Of n things, those that this member of its team does: number member + *index * team. Opens a loop over them. */
static ir_s each_of(const struct split *s, ir_s n, ir_s *index)
{
	struct ir *b = s->t->b;
	ir_s mine = ir_sshri(b, ir_ssub(b, ir_saddi(b, n, s->team - 1), s->member), (unsigned)__builtin_ctz(s->team));

	*index = ir_loop(b, mine);
	return ir_sadd(b, ir_smuli(b, *index, s->team), s->member);
}

static ir_a record_at(const struct split *s, ir_s chunk, ir_s row)
{
	const struct spread *t = s->t;
	struct ir *b = t->b;
	const unsigned rows = t->all * t->group;
	ir_s number = ir_sadd(b, ir_smuli(b, ir_sadd(b, ir_smuli(b, chunk, t->kv_heads), t->head), rows), row);

	if (t->apart)
		number = ir_sadd(b, number, ir_smuli(b, t->first_column, t->group));
	return ir_aadd(b, s->records, ir_smuli(b, number, template_attention_record(t->out_dims)));
}

static ir_a page_of(const struct split *s, ir_s chunk, unsigned slot)
{
	const struct spread *t = s->t;
	struct ir *b = t->b;
	ir_a pages = ir_aload(b, t->arg, ATTENTION_PAGES * 8),
	     page = ir_aload(b, ir_aadd(b, pages, ir_sshli(b, chunk, 3)), 0);

	page = ir_aadd(b, page, ir_smuli(b, t->head, CHUNK * t->row_bytes));
	return ir_aadd(b, page, ir_sload64(b, t->arg, (int32_t)(slot * 8)));
}

/* A vector of all dimensions, whose values lie there as `one` says. */
static void do_vector(const struct split *s, struct spread *one, ir_s chunk, ir_a buffer, ir_s vector, ir_a values)
{
	struct ir *b = one->b;
	ir_a record = record_at(s, chunk, one->first_row);

	one->own = buffer;
	one->o = ir_aadd(b, record, ir_smuli(b, vector, LANES * 4));
	one->o_step = template_attention_record(one->out_dims);
	one->vectors = 1;
	one->one_vector = true;
	attention_wave_value_chunk(one, values, ir_sshli(b, chunk, 7));
}

/* ---- copies: a member has one block of keys, and every vector of values that it does */

static void ask_keys(const struct split *s, ir_s chunk)
{
	struct ir *b = s->t->b;
	ir_s block = ir_smuli(b, s->member, LANES * s->t->row_bytes);

	attention_ahead_ask_keys(&s->ahead, ir_aadd(b, page_of(s, chunk, ATTENTION_KEYS), block));
}

static void ask_values(const struct split *s, ir_s chunk)
{
	struct ir *b = s->t->b;
	ir_a values = page_of(s, chunk, ATTENTION_VALUES);
	ir_s number = { 0 }, vector = each_of(s, ir_sconst(b, s->t->vectors), &number);

	attention_ahead_ask_vector(&s->ahead, number, ir_aadd(b, values, ir_smuli(b, vector, LANES_BYTES)));
	ir_endloop(b);
}

/* Opens a loop that has an iteration where this team has that chunk. */
static void begin_if_there(const struct split *s, ir_s chunk, ir_s to)
{
	struct ir *b = s->t->b;

	ir_loop(b, ir_smin(b, ir_ssub(b, to, chunk), ir_sconst(b, 1)));
}

static void score_copied(const struct split *s, ir_s chunk, ir_a buffer)
{
	struct spread one = *s->t;
	struct ir *b = one.b;

	ir_copied(b, 0);
	ir_s begin = ir_sadd(b, ir_sshli(b, chunk, 7), ir_sshli(b, s->member, 5));
	ir_s column = attention_ahead_each(&s->ahead, begin, LANES);
	attention_ahead_put_key(&s->ahead, column, s->ahead.keys);
	ir_endloop(b);
	one.own = ir_aadd(b, buffer, ir_smuli(b, s->member, LANES * 4));
	one.many = MANY_KEYS;
	attention_wave_score_chunk(&one, s->ahead.keys);
}

static void value_copied(const struct split *s, ir_s chunk, ir_a buffer)
{
	struct spread one = *s->t;
	struct ir *b = one.b;
	ir_s number = { 0 }, vector = each_of(s, ir_sconst(b, one.vectors), &number);
	ir_a values = attention_ahead_vector(&s->ahead, number);

	one.row_bytes = LANES_BYTES / OCTET;
	one.many = MANY_VALUES;
	one.ahead = &s->ahead;
	one.old = ir_smax(b, ir_ssub(b, s->ahead.pos0, ir_sshli(b, chunk, 7)), ir_sconst(b, 0));
	one.vector = vector;
	do_vector(s, &one, chunk, buffer, vector, values);
	ir_endloop(b);
}

/* ---- a chunk */

static void score_blocks(const struct split *s, ir_s chunk, ir_a buffer)
{
	const struct spread *t = s->t;
	struct spread one = *t;
	struct ir *b = t->b;
	if (s->copies) {
		score_copied(s, chunk, buffer);
		return;
	}
	ir_a keys = page_of(s, chunk, ATTENTION_KEYS);
	ir_s index, block = each_of(s, ir_sconst(b, BLOCKS), &index);

	one.own = ir_aadd(b, buffer, ir_smuli(b, block, LANES * 4));
	attention_wave_score_chunk(&one, ir_aadd(b, keys, ir_smuli(b, block, LANES * t->row_bytes)));
	ir_endloop(b);
}

static void softmax_rows(const struct split *s, ir_s chunk, ir_a buffer)
{
	struct spread one = *s->t;
	struct ir *b = one.b;
	ir_s index, row = each_of(s, one.partial ? one.live : ir_sconst(b, one.tile), &index);

	one.own = buffer;
	ir_s start = ir_sshli(b, chunk, 7);
	ir_a record = record_at(s, chunk, ir_sadd(b, one.first_row, row));
	attention_wave_softmax_row(&one, row, start, ir_aaddi(b, record, one.vectors * LANES * 4));
	ir_endloop(b);
}

static void value_vectors(const struct split *s, ir_s chunk, ir_a buffer)
{
	struct spread one = *s->t;
	struct ir *b = one.b;
	if (s->copies) {
		value_copied(s, chunk, buffer);
		return;
	}
	ir_s index, vector = each_of(s, ir_sconst(b, one.vectors), &index);
	ir_a values = page_of(s, chunk, ATTENTION_VALUES);

	if (one.int8)
		one.scale_step = ir_smuli(b, vector, 4 - LANES);
	values = ir_aadd(b, values,
	                 ir_smuli(b, vector, one.octets ? (int64_t)LANES_BYTES : (int64_t)(LANES * one.element)));
	do_vector(s, &one, chunk, buffer, vector, values);
	ir_endloop(b);
}

/* Chunks from..to - 1, a team one after the other. */
static void do_chunks(const struct split *s, ir_s from, ir_s to)
{
	const struct spread *t = s->t;
	struct ir *b = t->b;
	ir_s rounds = ir_sshri(b, ir_saddi(b, ir_ssub(b, to, from), s->teams - 1), (unsigned)__builtin_ctz(s->teams)),
	     round = ir_loop(b, rounds);
	ir_s chunk = ir_sadd(b, ir_sadd(b, from, ir_smuli(b, round, s->teams)), s->which);
	ir_s left = ir_ssub(b, to, chunk), some = ir_smin(b, left, ir_sconst(b, 1));
	ir_s of_buffer = ir_sadd(b, ir_smuli(b, rest_of(b, round, BUFFERS), s->teams), s->which);
	ir_a buffer = ir_aadd(b, s->shared, ir_smuli(b, of_buffer, t->tile * t->slot));

	ir_loop(b, some);
	score_blocks(s, chunk, buffer);
	ir_endloop(b);
	ir_barrier(b);
	ir_s next = ir_saddi(b, chunk, s->teams);
	if (s->copies) {
		begin_if_there(s, next, to);
		ask_keys(s, next);
		ir_endloop(b);
	}
	ir_loop(b, some);
	softmax_rows(s, chunk, buffer);
	ir_endloop(b);
	ir_barrier(b);
	ir_loop(b, some);
	value_vectors(s, chunk, buffer);
	ir_endloop(b);
	if (s->copies) {
		begin_if_there(s, next, to);
		ask_values(s, next);
		ir_endloop(b);
	}
	ir_endloop(b);
	ir_barrier(b);
}

/* ---- a unit */

/* Which part of the context it is, returned; sets head, column and position. */
static ir_s find_unit(const struct split *s, ir_s unit)
{
	struct spread *t = s->t;
	struct ir *b = t->b;

	t->position = ir_sload64(b, t->arg, ATTENTION_POS0 * 8);
	if (!t->apart) {
		struct heads_unit u = heads_unit(b, unit, t->kv_heads);
		t->head = u.head;
		return u.column;
	}
	/* Parts lie side by side: most of a short context are empty, and a group has neighbouring units. */
	struct heads_unit u = heads_unit(b, ir_sshri(b, unit, (unsigned)__builtin_ctz(s->parts)), t->kv_heads);
	t->head = u.head;
	t->first_column = ir_smuli(b, u.column, t->columns);
	t->position = ir_sadd(b, t->position, t->first_column);
	if (t->partial)
		t->live = ir_smin(b, ir_smuli(b, ir_ssub(b, ir_sconst(b, t->all), t->first_column), t->group),
		                  ir_sconst(b, t->rows));
	return rest_of(b, unit, s->parts);
}

/* Columns that the unit sees, 0 .. end - 1. */
static ir_s columns_end(const struct split *s)
{
	struct spread *t = s->t;
	struct ir *b = t->b;

	if (!t->apart)
		return ir_sconst(b, t->columns);
	ir_s end = ir_saddi(b, t->first_column, t->columns);
	return t->partial ? ir_smin(b, end, ir_sconst(b, t->all)) : end;
}

/* Which of them lie in its chunks; of one column, if any: it is in the last part. */
static void find_new(struct split *s, ir_s from, ir_s to, ir_s part)
{
	struct spread *t = s->t;
	struct ir *b = t->b;
	ir_s none = ir_sconst(b, 0);

	s->ahead.pos0 = t->apart ? ir_ssub(b, t->position, t->first_column) : t->position;
	if (t->all == 1) {
		s->ahead.first = none;
		s->ahead.count = ir_sdivi(b, ir_saddi(b, part, 1), s->parts);
		return;
	}
	ir_s end = ir_smin(b, ir_ssub(b, ir_sshli(b, to, 7), s->ahead.pos0), columns_end(s));
	s->ahead.first = ir_smax(b, ir_ssub(b, ir_sshli(b, from, 7), s->ahead.pos0), none);
	s->ahead.count = ir_smax(b, ir_ssub(b, end, s->ahead.first), none);
}

static void do_copied(struct split *s, ir_s from, ir_s to, ir_s part)
{
	struct ir *b = s->t->b;
	ir_s mine = ir_sadd(b, from, s->which);

	begin_if_there(s, from, to); /* a part without chunks has nothing to do */
	begin_if_there(s, mine, to);
	ask_keys(s, mine);
	ask_values(s, mine);
	ir_endloop(b);
	find_new(s, from, to, part);
	attention_wave_rotate_ahead(&s->ahead);
	attention_wave_value_ahead(&s->ahead);
	s->t->first_row = ir_sconst(b, 0);
	do_chunks(s, from, to);
	if (!s->t->apart)
		attention_wave_store_ahead(&s->ahead);
	ir_endloop(b);
}

static void do_loaded(struct split *s, ir_s from, ir_s to, ir_s part)
{
	struct spread *t = s->t;
	struct ir *b = t->b;

	if (t->rotates) { /* a part without chunks has nothing to rotate for; the last one never is such */
		begin_if_there(s, from, to);
		if (t->columns > 1)
			attention_wave_rotate_columns(t, from, to);
		else
			attention_wave_rotate(t, ir_sdivi(b, ir_saddi(b, part, 1), s->parts));
		ir_endloop(b);
	}
	ir_s tile = t->tiles > 1 ? ir_loop(b, ir_sconst(b, t->tiles)) : ir_sconst(b, 0);
	t->first_row = t->tiles > 1 ? ir_smuli(b, tile, t->tile) : tile;
	do_chunks(s, from, to);
	if (t->tiles > 1)
		ir_endloop(b);
}

static void do_unit(struct split *s, ir_s unit)
{
	struct spread *t = s->t;
	struct ir *b = t->b;
	unsigned shift = (unsigned)__builtin_ctz(s->parts);
	ir_s part = find_unit(s, unit), first = ir_sconst(b, 0);
	ir_s last = t->partial ? ir_sadd(b, t->position, ir_ssub(b, columns_end(s), ir_saddi(b, t->first_column, 1)))
	                       : ir_saddi(b, t->position, t->columns - 1);
	ir_s chunks = ir_saddi(b, ir_sshri(b, last, 7), 1);

	if (t->window) {
		ir_s lowest = attention_wave_lowest(t, t->position);
		first = ir_sshri(b, ir_smax(b, lowest, ir_sconst(b, 0)), 7);
		chunks = ir_ssub(b, chunks, first);
	}
	ir_s from = ir_sadd(b, first, ir_sshri(b, ir_smul(b, part, chunks), shift)),
	     to = ir_sadd(b, first, ir_sshri(b, ir_smul(b, ir_saddi(b, part, 1), chunks), shift));
	(s->copies ? do_copied : do_loaded)(s, from, to, part);
}

static void plan_split(struct split *s, struct spread *t, unsigned parts)
{
	*s = (struct split){ .t = t, .parts = parts, .team = t->waves < TEAM ? t->waves : TEAM };
	s->teams = t->waves / s->team;
	s->ahead = (struct attention_ahead){ .t = t, .vectors = (t->vectors + s->team - 1) / s->team };
}

static uint32_t buffer_bytes(const struct split *s) { return BUFFERS * s->teams * s->t->tile * SCORE_BYTES; }

bool attention_wave_split_copies(struct spread *t, const struct target *target, uint32_t beside)
{
	struct split s;

	plan_split(&s, t, 1);
	return s.team == BLOCKS && attention_ahead_plan(&s.ahead, target, beside + buffer_bytes(&s));
}

void attention_wave_split_build(struct spread *t, const struct target *target, unsigned parts)
{
	struct ir *b = t->b;
	struct split s;

	plan_split(&s, t, parts);
	t->gives = t->kv.key && t->kv.key->flags & KEY_AWAITED;
	while (t->rows % t->tile) /* no row is in two tiles */
		t->tile--;
	t->tiles = t->rows / t->tile;
	t->slot = SCORE_BYTES;
	t->blocks = 1;
	t->many = t->tile <= 4 ? t->many : t->many / 2;
	s.copies = t->rotates && attention_wave_split_copies(t, target, b->shared_bytes);
	s.shared = ir_shared(b, buffer_bytes(&s));
	if (s.copies)
		attention_ahead_begin(&s.ahead);
	s.records = ir_aload(b, t->arg, ATTENTION_OUT * 8);
	t->wave = ir_wave(b);
	s.which = ir_sshri(b, t->wave, (unsigned)__builtin_ctz(s.team));
	s.member = rest_of(b, t->wave, s.team);
	ir_s begin = ir_begin(b), i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	do_unit(&s, ir_sadd(b, begin, i));
	ir_endloop(b);
}
