/* kernels-templates/kinds/norm.c - norms of whole columns, alone or followed by their int8 blocks.
 *
 * Owns: KEY_NORM, and the norm that a group of waves makes for itself before it reads the result. The pads of a column
 * come out +0 whatever the scale, so that the int8 blocks behind it are exact.
 *
 * Where waves come in groups, every wave makes the sum of squares for itself, which is one chain a lane, and they share
 * the blocks to be scaled; loads are asked for many at a time, since a column is short and nothing else hides their
 * latency.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

enum { AT_ONCE = 16, SCALED_AT_ONCE = 4 };

struct norm {
	struct ir *b;
	uint32_t k, blocks;                    /* blocks of 32, the last one perhaps partly pad */
	bool quantised, adds, centred, biased; /* adds: the result, to what is there; centred: less the mean */
	bool blocks_alone;                     /* quantised: nobody reads the floats */
	bool packed;                           /* columns lie without pads between them, whose lanes are others' then */
	unsigned waves;                        /* of a group; 1: each does columns of its own */
	unsigned at_once;                      /* blocks whose loads of the sum are side by side */
	ir_a x, weight, bias, out, outq, outs; /* this column's */
	ir_f mean;                             /* and its mean, where it is centred */
};

static int32_t part_bytes(const struct ir *b, unsigned v) { return (int32_t)(v * b->lanes * 4); }

static void add_squares(const struct norm *t, ir_a x, ir_f part[], unsigned blocks)
{
	struct ir *b = t->b;
	unsigned parts = math_parts(b);
	ir_f e[AT_ONCE * MATH_MAX_PARTS];

	for (unsigned i = 0; i < blocks; i++)
		for (unsigned v = 0; v < parts; v++) {
			e[i * parts + v] = ir_fload(b, x, (int32_t)(i * 128) + part_bytes(b, v), 0);
			if (t->at_once == 1)
				ir_set_f(b, part[v], ir_ffma(b, e[v], e[v], part[v]));
		}
	for (unsigned i = 0; t->at_once > 1 && i < blocks * parts; i++)
		ir_set_f(b, part[i % parts], ir_ffma(b, e[i], e[i], part[i % parts]));
}

/* Of the last, short block of a packed column, which no other lanes of memory belong to. */
static ir_f load_last(const struct norm *t, ir_a x, int32_t bytes, unsigned v)
{
	struct ir *b = t->b;
	int n = (int)(t->k % 32) - (int)(v * b->lanes);

	return n <= 0 ? ir_fconst(b, 0.0f)
	              : ir_fload(b, x, bytes + part_bytes(b, v), n < (int)b->lanes ? (unsigned)n : 0);
}

static void add_last_squares(const struct norm *t, ir_a x, ir_f part[], unsigned before)
{
	for (unsigned v = 0; v < math_parts(t->b); v++) {
		ir_f e = load_last(t, x, (int32_t)(before * 128), v);
		ir_set_f(t->b, part[v], ir_ffma(t->b, e, e, part[v]));
	}
}

/* Pads are +0 and leave the partials alone. */
static ir_f sum_of_squares(const struct norm *t)
{
	struct ir *b = t->b;
	unsigned parts = math_parts(b);
	ir_f part[MATH_MAX_PARTS];
	ir_a x = ir_var_a(b, t->x);

	for (unsigned v = 0; v < parts; v++)
		part[v] = ir_var_f(b, ir_fconst(b, 0.0f));
	if (t->blocks >= t->at_once) {
		ir_loop(b, ir_sconst(b, t->blocks / t->at_once));
		add_squares(t, x, part, t->at_once);
		ir_set_a(b, x, ir_aaddi(b, x, t->at_once * 128));
		ir_endloop(b);
	}
	add_squares(t, x, part, t->blocks % t->at_once);
	if (t->packed)
		add_last_squares(t, x, part, t->blocks % t->at_once);
	return math_lane_sum(b, part);
}

/* Lanes from n on become +0. */
static ir_f keep_lanes(struct ir *b, ir_f v, int n)
{
	if (n >= (int)b->lanes)
		return v;
	if (n <= 0)
		return ir_fconst(b, 0.0f);
	return ir_fsel(b, ir_igt(b, ir_iconst(b, n), ir_ilane(b)), v, ir_fconst(b, 0.0f));
}

/* What of a block is scaled. */
static ir_f less_mean(const struct norm *t, ir_f x) { return t->centred ? ir_fsub(t->b, x, t->mean) : x; }

/* ---- centred: the mean, then the squares of what is left */

/* `blocks` blocks from x on, of the last of which `left` elements are real: their sum, or that of their squares. */
static void add_blocks(const struct norm *t, bool squares, ir_a x, ir_f part[], unsigned blocks, uint32_t left)
{
	struct ir *b = t->b;
	unsigned parts = math_parts(b);

	for (unsigned i = 0; i < blocks; i++)
		for (unsigned v = 0; v < parts; v++) {
			ir_f e = ir_fload(b, x, (int32_t)(i * 128) + part_bytes(b, v), 0);
			int real = i + 1 == blocks ? (int)left - (int)(v * b->lanes) : (int)b->lanes;
			if (squares)
				e = keep_lanes(b, less_mean(t, e), real);
			ir_set_f(b, part[v], squares ? ir_ffma(b, e, e, part[v]) : ir_fadd(b, part[v], e));
		}
}

static ir_f sum_of_blocks(const struct norm *t, bool squares)
{
	struct ir *b = t->b;
	unsigned iterations = t->k / 32 / t->at_once;
	ir_f part[MATH_MAX_PARTS];
	ir_a x = ir_var_a(b, t->x);

	for (unsigned v = 0; v < math_parts(b); v++)
		part[v] = ir_var_f(b, ir_fconst(b, 0.0f));
	if (iterations) {
		ir_loop(b, ir_sconst(b, iterations));
		add_blocks(t, squares, x, part, t->at_once, 32);
		ir_set_a(b, x, ir_aaddi(b, x, t->at_once * 128));
		ir_endloop(b);
	}
	add_blocks(t, squares, x, part, t->blocks - iterations * t->at_once, t->k % 32 ? t->k % 32 : 32);
	return math_lane_sum(b, part);
}

/* The same of a packed column, whose last, short block is read apart. */
static ir_f sum_of_packed(const struct norm *t, bool squares)
{
	struct ir *b = t->b;
	ir_f part[MATH_MAX_PARTS];
	ir_a x = ir_var_a(b, t->x);

	for (unsigned v = 0; v < math_parts(b); v++)
		part[v] = ir_var_f(b, ir_fconst(b, 0.0f));
	ir_loop(b, ir_sconst(b, t->blocks));
	add_blocks(t, squares, x, part, 1, 32);
	ir_set_a(b, x, ir_aaddi(b, x, 128));
	ir_endloop(b);
	for (unsigned v = 0; v < math_parts(b) && t->k % 32; v++) {
		ir_f e = load_last(t, x, 0, v);
		if (squares)
			e = keep_lanes(b, less_mean(t, e), (int)(t->k % 32) - (int)(v * b->lanes));
		ir_set_f(b, part[v], squares ? ir_ffma(b, e, e, part[v]) : ir_fadd(b, part[v], e));
	}
	return math_lane_sum(b, part);
}

/* Finds the mean, too, where one is wanted. */
static ir_f column_scale(struct norm *t, ir_f eps)
{
	ir_f (*const sum)(const struct norm *, bool) = t->packed ? sum_of_packed : sum_of_blocks;

	if (t->centred)
		t->mean = ir_fdiv(t->b, sum(t, false), ir_fconst(t->b, (float)t->k));
	return math_rms_scale(t->b, t->centred ? sum(t, true) : sum_of_squares(t), t->k, eps);
}

/* ... and what becomes of it: times its weight, with its bias. */
static ir_f weigh(const struct norm *t, ir_f scaled, ir_f weight, ir_f bias)
{
	return t->biased ? ir_ffma(t->b, scaled, weight, bias) : ir_fmul(t->b, scaled, weight);
}

static ir_f load_bias(const struct norm *t, ir_a bias, int32_t bytes)
{
	return t->biased ? ir_fload(t->b, bias, bytes, 0) : (ir_f){ 0 };
}

/* ---- one column, by one that does it alone */

/* One block, of which `left` elements are real. */
static void scale_block(const struct norm *t, ir_f scale, const struct norm *at, uint32_t left)
{
	struct ir *b = t->b;
	unsigned parts = math_parts(b);
	ir_f y[MATH_MAX_PARTS];

	for (unsigned v = 0; v < parts; v++) {
		ir_f e = ir_fmul(b, less_mean(t, ir_fload(b, at->x, part_bytes(b, v), 0)), scale);
		ir_f weight = ir_fload(b, at->weight, part_bytes(b, v), 0);
		y[v] = keep_lanes(b, weigh(t, e, weight, load_bias(t, at->bias, part_bytes(b, v))),
		                  (int)left - (int)(v * b->lanes));
		if (t->adds)
			y[v] = ir_fadd(b, ir_fload(b, at->out, part_bytes(b, v), 0), y[v]);
		if (!t->blocks_alone)
			ir_fstore(b, at->out, y[v], part_bytes(b, v), 0);
	}
	if (t->quantised)
		quantise_emit_block(b, y, at->outq, 0, at->outs, 0);
}

static void scale_last(const struct norm *t, ir_f scale, ir_a x, ir_a weight, ir_a out)
{
	struct ir *b = t->b;

	for (unsigned v = 0; v < math_parts(b); v++) {
		int n = (int)(t->k % 32) - (int)(v * b->lanes);
		ir_f y = ir_fmul(b, ir_fmul(b, less_mean(t, load_last(t, x, 0, v)), scale), load_last(t, weight, 0, v));
		if (n > 0)
			ir_fstore(b, out, y, part_bytes(b, v), n < (int)b->lanes ? (unsigned)n : 0);
	}
}

static void scale_column(const struct norm *t, ir_f scale)
{
	struct ir *b = t->b;
	struct norm at = *t;

	at.x = ir_var_a(b, t->x);
	at.weight = ir_var_a(b, t->weight);
	if (t->biased)
		at.bias = ir_var_a(b, t->bias);
	at.out = ir_var_a(b, t->out);
	if (t->quantised) {
		at.outq = ir_var_a(b, t->outq);
		at.outs = ir_var_a(b, t->outs);
	}
	ir_loop(b, ir_sconst(b, t->k / 32));
	scale_block(t, scale, &at, 32);
	ir_set_a(b, at.x, ir_aaddi(b, at.x, 128));
	ir_set_a(b, at.weight, ir_aaddi(b, at.weight, 128));
	if (t->biased)
		ir_set_a(b, at.bias, ir_aaddi(b, at.bias, 128));
	ir_set_a(b, at.out, ir_aaddi(b, at.out, 128));
	if (t->quantised) {
		ir_set_a(b, at.outq, ir_aaddi(b, at.outq, 32));
		ir_set_a(b, at.outs, ir_aaddi(b, at.outs, sizeof(struct activation_block)));
	}
	ir_endloop(b);
	if (t->packed)
		scale_last(t, scale, at.x, at.weight, at.out);
	else if (t->k % 32)
		scale_block(t, scale, &at, t->k % 32);
}

/* ---- groups of waves */

/* y: scaled blocks, a group's waves apart. Writes the first and moves on to the next. */
static void store_next(const struct norm *t, const struct norm *at, const ir_f y[SCALED_AT_ONCE])
{
	struct ir *b = t->b;
	int64_t step = t->waves;

	if (!t->blocks_alone) {
		ir_fstore(b, at->out, t->adds ? ir_fadd(b, ir_fload(b, at->out, 0, 0), y[0]) : y[0], 0, 0);
		ir_set_a(b, at->out, ir_aaddi(b, at->out, step * 128));
	}
	if (t->quantised) {
		quantise_emit_block(b, y, at->outq, 0, at->outs, 0);
		ir_set_a(b, at->outq, ir_aaddi(b, at->outq, step * 32));
		ir_set_a(b, at->outs, ir_aaddi(b, at->outs, step * (int64_t)sizeof(struct activation_block)));
	}
	for (unsigned i = 0; i + 1 < SCALED_AT_ONCE; i++)
		ir_set_f(b, y[i], y[i + 1]);
}

/* The next SCALED_AT_ONCE of this wave's blocks, of which there are `left`, or never fewer than these (all). */
struct apart {
	ir_s left;
	bool all;
	ir_f x[SCALED_AT_ONCE], weight[SCALED_AT_ONCE], bias[SCALED_AT_ONCE];
};

static void load_apart(const struct norm *t, const struct norm *at, struct apart *p)
{
	struct ir *b = t->b;
	int64_t step = t->waves * 128;

	for (unsigned i = 0; i < SCALED_AT_ONCE; i++) {
		/* What is past the last one is the last one again. */
		ir_s ahead = p->all ? ir_sconst(b, i * step)
		                    : ir_smuli(b, ir_smin(b, ir_sconst(b, i), ir_saddi(b, p->left, -1)), step);
		p->x[i] = ir_fload(b, ir_aadd(b, at->x, ahead), 0, 0);
		p->weight[i] = ir_fload(b, ir_aadd(b, at->weight, ahead), 0, 0);
		if (t->biased)
			p->bias[i] = ir_fload(b, ir_aadd(b, at->bias, ahead), 0, 0);
	}
}

/* Scales what is loaded side by side, and writes it one after the other. */
static void scale_apart(const struct norm *t, ir_f scale, const struct norm *at, const struct apart *p)
{
	struct ir *b = t->b;
	ir_f y[SCALED_AT_ONCE];

	for (unsigned i = 0; i < SCALED_AT_ONCE; i++)
		y[i] = ir_var_f(b, weigh(t, ir_fmul(b, less_mean(t, p->x[i]), scale), p->weight[i], p->bias[i]));
	ir_s max = ir_sconst(b, SCALED_AT_ONCE), n = p->all ? max : ir_smin(b, p->left, max),
	     bytes = ir_smuli(b, n, t->waves * 128);
	ir_loop(b, n);
	store_next(t, at, y);
	ir_endloop(b);
	ir_set_a(b, at->x, ir_aadd(b, at->x, bytes));
	ir_set_a(b, at->weight, ir_aadd(b, at->weight, bytes));
	if (t->biased)
		ir_set_a(b, at->bias, ir_aadd(b, at->bias, bytes));
}

/* The column's blocks from number `block` on: variables. */
static struct norm column_at(const struct norm *t, ir_s block)
{
	struct ir *b = t->b;
	struct norm at = *t;

	at.x = ir_var_a(b, ir_aadd(b, t->x, ir_sshli(b, block, 7)));
	at.weight = ir_var_a(b, ir_aadd(b, t->weight, ir_sshli(b, block, 7)));
	if (t->biased)
		at.bias = ir_var_a(b, ir_aadd(b, t->bias, ir_sshli(b, block, 7)));
	if (!t->blocks_alone)
		at.out = ir_var_a(b, ir_aadd(b, t->out, ir_sshli(b, block, 7)));
	if (t->quantised) {
		at.outq = ir_var_a(b, ir_aadd(b, t->outq, ir_sshli(b, block, 5)));
		at.outs = ir_var_a(b, ir_aadd(b, t->outs, ir_sshli(b, block, 4)));
	}
	return at;
}

static void share_column(struct norm *t, ir_f eps)
{
	struct ir *b = t->b;
	uint32_t whole = t->k / 32;
	ir_s wave = ir_wave(b);
	struct norm at = column_at(t, wave);
	struct apart p = { .all = whole % (t->waves * SCALED_AT_ONCE) == 0 };
	bool one_iteration = whole == t->waves * SCALED_AT_ONCE;
	ir_s mine = p.all ? ir_sconst(b, whole / t->waves)
	                  : ir_sdivi(b, ir_ssub(b, ir_sconst(b, whole + t->waves - 1), wave), t->waves);

	if (one_iteration) /* what the sum loads is to be waited for in any case */
		load_apart(t, &at, &p);
	ir_f scale = column_scale(t, eps);
	ir_s iteration = ir_loop(b, ir_sdivi(b, ir_saddi(b, mine, SCALED_AT_ONCE - 1), SCALED_AT_ONCE));
	p.left = ir_ssub(b, mine, ir_smuli(b, iteration, SCALED_AT_ONCE));
	if (!one_iteration)
		load_apart(t, &at, &p);
	scale_apart(t, scale, &at, &p);
	ir_endloop(b);
	if (t->k % 32) {
		/* The wave whose iteration it is does the last, short block. */
		ir_s other = ir_saddi(b, wave, -(int64_t)(whole % t->waves));
		ir_loop(b, ir_ssub(b, ir_sconst(b, 1), ir_smin(b, ir_smul(b, other, other), ir_sconst(b, 1))));
		scale_block(t, scale, &at, t->k % 32);
		ir_endloop(b);
	}
}

struct norm_scale norm_emit_scale(struct ir *b, const struct norm_columns *n)
{
	struct norm t = { .b = b,
		          .k = n->k,
		          .blocks = (uint32_t)numerics_pad(n->k) / 32,
		          .centred = n->centred,
		          .waves = n->waves,
		          .at_once = AT_ONCE,
		          .x = n->x };
	ir_f by = column_scale(&t, n->eps);

	return (struct norm_scale){ by, t.mean, n->centred };
}

void norm_emit_columns(struct ir *b, const struct norm_columns *n)
{
	uint32_t blocks = (uint32_t)numerics_pad(n->k) / 32;
	ir_s column = ir_sconst(b, 0);

	if (n->columns > 1)
		column = ir_loop(b, ir_sconst(b, n->columns));
	ir_s bytes = ir_smuli(b, column, blocks * 128);
	struct norm t = { .b = b,
		          .k = n->k,
		          .blocks = blocks,
		          .quantised = n->quantised,
		          .blocks_alone = n->quantised,
		          .centred = n->centred,
		          .waves = n->waves,
		          .at_once = AT_ONCE,
		          .x = ir_aadd(b, n->x, bytes),
		          .weight = n->weight };

	if (n->quantised) {
		t.outq = ir_aadd(b, n->out, ir_smuli(b, column, blocks * 32));
		t.outs = ir_aadd(b, n->outs, ir_smuli(b, column, blocks * sizeof(struct activation_block)));
	} else {
		t.out = ir_aadd(b, n->out, bytes);
	}
	share_column(&t, n->eps);
	if (n->columns > 1)
		ir_endloop(b);
}

/* Of the column's position among those that make a token. */
static ir_a group_weight(const struct norm *t, ir_a weight, ir_s column, uint32_t groups)
{
	struct ir *b = t->b;
	ir_s group = ir_ssub(b, column, ir_smuli(b, ir_sdivi(b, column, groups), groups));

	return ir_aadd(b, weight, ir_smuli(b, group, (int64_t)t->k * 4));
}

/* Groups whose width is no multiple of 32: each wave does its own. */
static void build_packed(struct ir *b, const struct key *key)
{
	struct norm t = { .b = b, .k = key->k, .blocks = key->k / 32, .packed = true, .waves = 1, .at_once = 1 };
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b), i = ir_loop(b, ir_ssub(b, ir_end(b), begin)), column = ir_sadd(b, begin, i);
	ir_s bytes = ir_smuli(b, column, (int64_t)key->k * 4);

	t.weight = ir_aload(b, arg, NORM_WEIGHT * 8);
	t.centred = key->flags & KEY_CENTRED;
	if (!key->kv_heads)
		t.weight = group_weight(&t, t.weight, column, key->heads);
	t.x = ir_aadd(b, ir_aload(b, arg, NORM_X * 8), bytes);
	t.out = ir_aadd(b, ir_aload(b, arg, NORM_OUT * 8), bytes);
	scale_column(&t, column_scale(&t, ir_fbcast(b, arg, NORM_EPS * 8)));
	ir_endloop(b);
}

/* NULL, or which flags do not go together. */
static const char *refusal_of(const struct key *key, const struct target *target)
{
	if (key->flags & KEY_RESIDUAL && key->flags & KEY_QUANTISED_OUT)
		return "these flags do not go together";
	if (key->flags & KEY_BIAS && (key->heads || !(key->flags & KEY_CENTRED) || key->flags & KEY_AWAITED))
		return "biases are those of a norm that subtracts the mean and awaits nothing";
	return norm_refuse_awaited(key, target);
}

bool norm_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	if (key->k == 0 || key->k > 1u << 24)
		return build_refuse(key, err, "the width of a norm must lie in 1..16777216");
	if ((key->heads && key->k % 16) || (key->heads ? key->kv_heads > 1 : key->kv_heads != 0))
		return build_refuse(key, err,
		                    "norms of groups have a width that is a multiple of 16, and weights of their own "
		                    "or the same");
	if (key->heads && (key->k % 32 || key->kv_heads)) {
		if (key->k > 1u << 20 || key->flags & ~(uint32_t)KEY_CENTRED)
			return build_refuse(key, err, "these flags do not go with norms of groups of such a width");
		build_packed(b, key);
		return true;
	}
	const char *why = refusal_of(key, target);
	if (why)
		return build_refuse(key, err, why);
	if (key->flags & KEY_AWAITED) {
		norm_awaited_build(b, key, target);
		return true;
	}
	struct norm t = { .b = b,
		          .k = key->k,
		          .blocks = (uint32_t)numerics_pad(key->k) / 32,
		          .quantised = key->flags & KEY_QUANTISED_OUT,
		          .adds = key->flags & KEY_RESIDUAL,
		          .centred = key->flags & KEY_CENTRED,
		          .biased = key->flags & KEY_BIAS,
		          .waves = target->waves ? target->waves : 1,
		          .at_once = target->waves > 1 ? AT_ONCE : 1 };
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);

	if (!key->heads)
		t.weight = ir_aload(b, arg, NORM_WEIGHT * 8);
	if (t.biased)
		t.bias = ir_aload(b, arg, NORM_BIAS * 8);
	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	ir_s column = ir_sadd(b, begin, i);
	ir_s first = ir_smuli(b, column, t.blocks);
	ir_s bytes = ir_sshli(b, first, 7);
	if (key->heads)
		t.weight = group_weight(&t, ir_aload(b, arg, NORM_WEIGHT * 8), column, key->heads);
	t.x = ir_aadd(b, ir_aload(b, arg, NORM_X * 8), bytes);
	ir_f eps = ir_fbcast(b, arg, NORM_EPS * 8);
	ir_f scale = { 0 };
	if (t.waves == 1)
		scale = column_scale(&t, eps);
	t.out = ir_aadd(b, ir_aload(b, arg, NORM_OUT * 8), bytes);
	if (t.quantised) {
		t.outq = ir_aadd(b, ir_aload(b, arg, NORM_OUTQ * 8), ir_sshli(b, first, 5));
		t.outs = ir_aadd(b, ir_aload(b, arg, NORM_OUTS * 8), ir_sshli(b, first, 4));
	}
	if (t.waves > 1)
		share_column(&t, eps);
	else
		scale_column(&t, scale);
	ir_endloop(b);
	return true;
}
