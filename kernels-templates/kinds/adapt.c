/* kernels-templates/kinds/adapt.c - low-rank adapters: what is added to the product of a matrix for each token's own.
 *
 * Owns: KEY_ADAPT_DOWN and KEY_ADAPT_UP, which are numerics.h rule 19. Which adapters a tile of columns has, of what
 * rank and type, is data: one kernel does all of them. The loops over a tile's adapters have their numbers of
 * iterations from tables, and each type of numbers has a loop of its own.
 */
#include "kernels-templates/emit/build.h"
#include "kernels-templates/emit/math.h"

enum { SMALL_FILE = 16, TILE_BYTES = sizeof(struct adapt_tile), SET_BYTES = sizeof(struct adapt_set) };
enum { FACT_SHIFT = 4, OF_BYTES = 8, OF_AT = offsetof(struct adapt_set, of) };
_Static_assert(sizeof(struct adapt_fact) == 1 << FACT_SHIFT, "facts are found by a shift");

static const int64_t type_bytes[ADAPT_TYPES] = { [ADAPT_F32] = 4, [ADAPT_F16] = 2, [ADAPT_BF16] = 2 };

/* W elements, from number `at` behind p on. */
static ir_f load(struct ir *b, enum adapt_type type, ir_a p, int64_t at)
{
	const int32_t disp = (int32_t)(at * type_bytes[type]);

	if (type == ADAPT_F32)
		return ir_fload(b, p, disp, 0);
	return type == ADAPT_F16 ? ir_fload_h(b, p, disp) : ir_fbits(b, ir_ishl(b, ir_iload_u16(b, p, disp), 16));
}

/* ---- a tile, and the adapters of its set */

struct tile {
	struct ir *b;
	const struct key *key;
	ir_a arg, set, in, out; /* in, out: of the first column */
	ir_s first, columns, expert;
};

static bool of_experts(const struct tile *t) { return t->key->flags & KEY_EXPERTS; }
static int64_t out_bytes(const struct key *key)
{
	return (int64_t)numerics_pad(key->rows) * (key->flags & KEY_SCALED ? 8 : 4);
}

static struct tile find_tile(struct ir *b, const struct key *key, ir_a arg, ir_s number)
{
	struct tile t = { .b = b, .key = key, .arg = arg };
	ir_a at = ir_aadd(b, ir_aload(b, arg, ADAPT_TILES * 8), ir_smuli(b, number, TILE_BYTES));
	ir_s first = ir_sload32(b, at, offsetof(struct adapt_tile, first)),
	     set = ir_sload32(b, at, offsetof(struct adapt_tile, set));

	t.first = first;
	t.columns = ir_sload32(b, at, offsetof(struct adapt_tile, columns));
	t.set = ir_aadd(b, ir_aload(b, arg, ADAPT_SET * 8), ir_smuli(b, set, SET_BYTES));
	t.in = ir_aadd(b, ir_aload(b, arg, ADAPT_IN * 8), ir_smuli(b, first, (int64_t)numerics_pad(key->k) * 4));
	t.out = ir_aadd(b, ir_aload(b, arg, ADAPT_OUT * 8), ir_smuli(b, first, out_bytes(key)));
	return t;
}

/* With experts, begins a loop over the slots of the tile's columns, each of which is a column by itself: its input and
 * output, and which expert's matrices it has. Returns whether end_slots() is due. */
static bool each_slot(struct tile *t)
{
	struct ir *b = t->b;
	const struct key *key = t->key;

	if (!of_experts(t))
		return false;
	ir_s column = ir_loop(b, t->columns), slot = ir_loop(b, ir_sconst(b, key->heads));
	ir_s token = ir_sadd(b, t->first, column);
	ir_s at = ir_sadd(b, ir_smuli(b, token, ROUTE_MAX * 4), ir_sshli(b, slot, 2));
	ir_s position = key->flags & KEY_SORTED
	                        ? ir_sload32(b, ir_aadd(b, ir_aload(b, t->arg, ADAPT_POSITIONS * 8), at), 0)
	                        : ir_sadd(b, ir_smuli(b, token, key->heads), slot);

	t->expert = ir_sload32(b, ir_aadd(b, ir_aload(b, t->arg, ADAPT_CHOSEN * 8), at), 0);
	t->in = ir_aadd(b, ir_aload(b, t->arg, ADAPT_IN * 8),
	                ir_smuli(b, key->kv_heads == 1 ? position : token, (int64_t)numerics_pad(key->k) * 4));
	t->out = ir_aadd(b, ir_aload(b, t->arg, ADAPT_OUT * 8), ir_smuli(b, position, out_bytes(key)));
	t->columns = ir_sconst(b, 1);
	return true;
}

static void end_slots(struct ir *b)
{
	ir_endloop(b);
	ir_endloop(b);
}

struct adapter {
	ir_a matrix;
	ir_s rank, type, extras;
	ir_f user, scale; /* the user's; that times the adapter's own */
};

/* Begins a loop over the adapters of the tile's set. */
static struct adapter each_adapter(const struct tile *t)
{
	struct ir *b = t->b;
	ir_s i = ir_loop(b, ir_sload32(b, t->set, offsetof(struct adapt_set, n)));
	ir_a of = ir_aadd(b, t->set, ir_smuli(b, i, OF_BYTES));
	ir_s number = ir_sload32(b, of, OF_AT);
	ir_a fact = ir_aadd(b, ir_aload(b, t->arg, ADAPT_FACTS * 8), ir_sshli(b, number, FACT_SHIFT)),
	     entry = ir_aadd(b, ir_aload(b, t->arg, ADAPT_TABLE * 8), ir_sshli(b, number, 3));
	struct adapter a = { .matrix = ir_aadd(b, ir_aload(b, entry, 0), ir_sload64(b, t->arg, ADAPT_MATRIX * 8)),
		             .rank = ir_sload32(b, fact, offsetof(struct adapt_fact, rank)),
		             .type = ir_sload32(b, fact, offsetof(struct adapt_fact, type)),
		             .extras = ir_sload32(b, fact, offsetof(struct adapt_fact, extras)) };

	ir_f own = ir_fbcast(b, fact, offsetof(struct adapt_fact, scale));
	a.user = ir_fbcast(b, of, OF_AT + 4);
	a.scale = ir_fmul(b, a.user, own);
	return a;
}

/* ---- down */

struct down {
	const struct tile *t;
	uint32_t kp;
	int64_t out_bytes;      /* of a column */
	unsigned rows, columns; /* that are done at once */
	enum adapt_type type;
	ir_a matrix, in, out; /* of the rows and columns that are done now */
	ir_f scale;
};

/* Four rows, from d->matrix on, in n columns. */
static void dot_rows(const struct down *d, unsigned n, unsigned first)
{
	enum { MAX = ADAPT_RANKS * 4 * MATH_MAX_PARTS };
	struct ir *b = d->t->b;
	const unsigned parts = math_parts(b), rows = d->rows;
	ir_f sum[MAX];
	ir_a w = ir_var_a(b, ir_aaddi(b, d->matrix, first * (int64_t)d->kp * type_bytes[d->type])),
	     x = ir_var_a(b, d->in);

	for (unsigned i = 0; i < rows * n * parts; i++)
		sum[i] = ir_var_f(b, ir_fconst(b, 0.0f));
	ir_loop(b, ir_sconst(b, d->kp / 32));
	for (unsigned v = 0; v < parts; v++) {
		ir_f in[4];
		for (unsigned c = 0; c < n; c++)
			in[c] = ir_fload(b, x, (int32_t)(c * d->kp * 4 + v * b->lanes * 4), 0);
		for (unsigned r = 0; r < rows; r++) {
			ir_f weight = load(b, d->type, w, (int64_t)r * d->kp + v * b->lanes);
			for (unsigned c = 0; c < n; c++) {
				ir_f to = sum[(r * n + c) * parts + v];
				ir_set_f(b, to, ir_ffma(b, weight, in[c], to));
			}
		}
	}
	ir_set_a(b, w, ir_aaddi(b, w, 32 * type_bytes[d->type]));
	ir_set_a(b, x, ir_aaddi(b, x, 128));
	ir_endloop(b);
	for (unsigned r = 0; r < rows; r++)
		for (unsigned c = 0; c < n; c++) {
			ir_f whole = math_lane_sum(b, &sum[(r * n + c) * parts]);
			ir_fstore1(b, d->out, ir_fmul(b, whole, d->scale),
			           (int32_t)(c * d->out_bytes + (first + r) * 4));
		}
}

/* A loop over so many times n columns. */
static void dot_columns(const struct down *d, ir_s times, unsigned n)
{
	struct ir *b = d->t->b;

	ir_loop(b, times);
	for (unsigned first = 0; first < ADAPT_RANKS; first += d->rows)
		dot_rows(d, n, first);
	ir_set_a(b, d->in, ir_aaddi(b, d->in, (int64_t)n * d->kp * 4));
	ir_set_a(b, d->out, ir_aaddi(b, d->out, n * d->out_bytes));
	ir_endloop(b);
}

/* Of an adapter's groups of four ranks those from number `part` on that are the part's; at: where the first rank goes.
 */
static void project(struct down *d, const struct adapter *a, ir_s part, ir_s at)
{
	struct ir *b = d->t->b;
	ir_s left = ir_saddi(b, ir_ssub(b, ir_sshri(b, a->rank, 2), part), ADAPT_PARTS - 1),
	     iteration = ir_loop(b, ir_sdivi(b, left, ADAPT_PARTS)),
	     row = ir_sshli(b, ir_sadd(b, ir_smuli(b, iteration, ADAPT_PARTS), part), 2);

	ir_s in_matrix = of_experts(d->t) ? ir_sadd(b, row, ir_smul(b, d->t->expert, a->rank)) : row;
	d->matrix = ir_aadd(b, a->matrix, ir_smuli(b, in_matrix, (int64_t)d->kp * type_bytes[d->type]));
	d->scale = a->scale;
	d->in = ir_var_a(b, d->t->in);
	d->out = ir_var_a(b, ir_aadd(b, d->t->out, ir_sshli(b, ir_sadd(b, at, row), 2)));
	ir_s several = ir_sdivi(b, d->t->columns, d->columns);
	dot_columns(d, several, d->columns);
	if (d->columns > 1)
		dot_columns(d, ir_ssub(b, d->t->columns, ir_smuli(b, several, d->columns)), 1);
	ir_endloop(b);
}

static const char *refuse(const struct key *key, uint32_t ranks, uint32_t flags)
{
	if (!key->k || !key->rows || key->k > 1u << 22 || key->rows > 1u << 22)
		return "rows and k are 1 to 4194304";
	if (key->flags & KEY_EXPERTS && (!key->heads || key->heads > ROUTE_MAX || key->flags & KEY_SCALED))
		return "of experts a token has some slots, and no factors";
	flags |= key->flags & KEY_EXPERTS ? KEY_EXPERTS | KEY_SORTED : 0;
	return ranks % ADAPT_RANKS || key->flags & ~flags ? "ranks are multiples of 4, and there is one flag at most"
	                                                  : NULL;
}

bool adapt_down_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *why = refuse(key, key->rows, 0);
	const bool small_file = target->vector_regs <= SMALL_FILE;

	if (why)
		return build_refuse(key, err, why);
	struct down d = { .kp = (uint32_t)numerics_pad(key->k),
		          .out_bytes = (int64_t)numerics_pad(key->rows) * 4,
		          .rows = small_file ? 2 : ADAPT_RANKS,
		          .columns = small_file          ? 1
		                     : math_parts(b) > 1 ? 2
		                                         : 4 };
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_s unit = ir_sadd(b, begin, ir_loop(b, ir_ssub(b, ir_end(b), begin)));
	ir_s number = ir_sdivi(b, unit, ADAPT_PARTS), part = ir_ssub(b, unit, ir_smuli(b, number, ADAPT_PARTS));
	struct tile t = find_tile(b, key, arg, number);
	const bool slots = each_slot(&t);
	ir_s at = ir_var_s(b, ir_sconst(b, 0));

	d.t = &t;
	const struct adapter a = each_adapter(&t);
	for (int type = 0; type < ADAPT_TYPES; type++) {
		d.type = (enum adapt_type)type;
		ir_if(b, ir_seq(b, a.type, ir_sconst(b, type)));
		project(&d, &a, part, at);
		ir_endif(b);
	}
	ir_set_s(b, at, ir_sadd(b, at, a.rank));
	ir_endloop(b);
	if (slots)
		end_slots(b);
	ir_endloop(b);
	return true;
}

/* ---- up */

struct up {
	const struct tile *t;
	ir_s block;
	int64_t in_bytes, out_bytes; /* of a column */
	uint32_t rows;
	ir_a in, out; /* of the columns that are done now */
};

/* Adds the products of an adapter's ranks, of one type, to the sums of n columns, each of so many vectors of rows, from
 * the first on. in: a variable. */
static void add_ranks(const struct up *u, const struct adapter *a, enum adapt_type type, unsigned n, unsigned first,
                      unsigned parts, ir_a in, ir_f sum[])
{
	struct ir *b = u->t->b;
	const int64_t blocks = (int64_t)numerics_pad(u->rows) / 32;
	ir_s block = of_experts(u->t) ? ir_sadd(b, ir_smuli(b, u->t->expert, blocks), u->block) : u->block;
	ir_s before = ir_smul(b, block, a->rank);
	ir_a w = ir_var_a(b, ir_aadd(b, a->matrix, ir_smuli(b, before, 32 * type_bytes[type])));

	ir_loop(b, ir_sshri(b, a->rank, 2));
	for (unsigned j = 0; j < ADAPT_RANKS; j++) {
		ir_f weight[MATH_MAX_PARTS];
		for (unsigned v = 0; v < parts; v++)
			weight[v] = load(b, type, w, j * 32 + (first + v) * b->lanes);
		for (unsigned c = 0; c < n; c++) {
			ir_f factor = ir_fbcast(b, in, (int64_t)(c * u->in_bytes + j * 4));
			for (unsigned v = 0; v < parts; v++) {
				ir_f to = sum[c * parts + v];
				ir_set_f(b, to, ir_ffma(b, weight[v], factor, to));
			}
		}
	}
	ir_set_a(b, w, ir_aaddi(b, w, ADAPT_RANKS * 32 * type_bytes[type]));
	ir_set_a(b, in, ir_aaddi(b, in, ADAPT_RANKS * 4));
	ir_endloop(b);
}

/* A loop over so many times n columns. */
static void add_columns(const struct up *u, ir_s times, unsigned n)
{
	struct ir *b = u->t->b;
	const unsigned parts = math_parts(b);
	ir_f sum[ADAPT_TILE * MATH_MAX_PARTS];

	ir_loop(b, times);
	for (unsigned i = 0; i < n * parts; i++)
		sum[i] = ir_var_f(b, ir_fconst(b, -0.0f));
	ir_a in = ir_var_a(b, u->in);
	const struct adapter a = each_adapter(u->t);
	for (int type = 0; type < ADAPT_TYPES; type++) {
		ir_if(b, ir_seq(b, a.type, ir_sconst(b, type)));
		add_ranks(u, &a, (enum adapt_type)type, n, 0, parts, in, sum);
		ir_endif(b);
	}
	ir_endloop(b);
	for (unsigned i = 0; i < n * parts; i++)
		ir_fstore(b, u->out, sum[i], (int32_t)(i / parts * u->out_bytes + i % parts * b->lanes * 4), 0);
	ir_set_a(b, u->in, ir_aaddi(b, u->in, n * u->in_bytes));
	ir_set_a(b, u->out, ir_aaddi(b, u->out, n * u->out_bytes));
	ir_endloop(b);
}

/* ---- up, with factors of products */

/* Of a vector of rows in one column. */
struct scaled {
	ir_f sum, factor, own; /* variables; own: the adapter's chain */
	ir_a extras;           /* the adapter's, of these rows */
};

static ir_f extra(struct ir *b, const struct scaled *s, unsigned which)
{
	return ir_fload(b, s->extras, (int32_t)(which * 128), 0);
}

/* The factor that a row's magnitude comes to, of its product and of what is added to it. */
static void weigh(struct ir *b, const struct adapter *a, const struct scaled *s)
{
	ir_f more = ir_ffma(b, a->user, extra(b, s, ADAPT_NORM_SQUARE), extra(b, s, ADAPT_NORM_BY));
	ir_f norm = ir_fsqrt(b, ir_ffma(b, a->user, more, extra(b, s, ADAPT_NORM)));
	ir_f by = ir_fdiv(b, extra(b, s, ADAPT_MAGNITUDE), norm);

	ir_set_f(b, s->factor, ir_fadd(b, s->factor, ir_fsub(b, by, ir_fconst(b, 1.0f))));
	ir_set_f(b, s->own, ir_ffma(b, s->own, by, s->sum));
}

static ir_c has_extra(struct ir *b, const struct adapter *a, unsigned bit)
{
	return ir_seq(b, ir_sandi(b, a->extras, bit), ir_sconst(b, bit));
}

/* An adapter with magnitudes has a chain of its own; another one goes on with that of those before it. */
static void add_adapter(const struct up *u, const struct adapter *a, struct scaled *s, unsigned part, ir_a in)
{
	struct ir *b = u->t->b;
	const int64_t block = ADAPT_EXTRAS * 128;
	ir_s elements = ir_smuli(b, a->rank, (int64_t)numerics_pad(u->rows));

	ir_set_f(b, s->own, s->sum);
	ir_if(b, has_extra(b, a, ADAPT_DORA));
	ir_set_f(b, s->own, ir_fconst(b, -0.0f));
	ir_endif(b);
	for (int type = 0; type < ADAPT_TYPES; type++) {
		ir_if(b, ir_seq(b, a->type, ir_sconst(b, type)));
		add_ranks(u, a, (enum adapt_type)type, 1, part, 1, in, &s->own);
		ir_a behind = ir_aadd(b, a->matrix, ir_smuli(b, elements, type_bytes[type]));
		ir_set_a(b, s->extras,
		         ir_aaddi(b, ir_aadd(b, behind, ir_smuli(b, u->block, block)), part * b->lanes * 4));
		ir_endif(b);
	}
	ir_if(b, has_extra(b, a, ADAPT_BIAS));
	ir_set_f(b, s->own, ir_ffma(b, extra(b, s, ADAPT_BIASES), a->scale, s->own));
	ir_endif(b);
	ir_if(b, has_extra(b, a, ADAPT_DORA));
	weigh(b, a, s);
	ir_endif(b);
	ir_set_f(b, s->sum, s->own);
}

/* One column after the other, and of each one vector of rows after the other: few have such adapters. */
static void add_scaled(const struct up *u)
{
	struct ir *b = u->t->b;

	ir_loop(b, u->t->columns);
	for (unsigned v = 0; v < math_parts(b); v++) {
		struct scaled s = { .sum = ir_var_f(b, ir_fconst(b, -0.0f)),
			            .factor = ir_var_f(b, ir_fconst(b, 1.0f)),
			            .own = ir_var_f(b, ir_fconst(b, -0.0f)),
			            .extras = ir_var_a(b, u->in) };
		ir_a in = ir_var_a(b, u->in);
		const struct adapter a = each_adapter(u->t);
		add_adapter(u, &a, &s, v, in);
		ir_endloop(b);
		ir_fstore(b, u->out, s.factor, (int32_t)(v * b->lanes * 4), 0);
		ir_fstore(b, u->out, s.sum, (int32_t)(v * b->lanes * 4 + 128), 0);
	}
	ir_set_a(b, u->in, ir_aaddi(b, u->in, u->in_bytes));
	ir_set_a(b, u->out, ir_aaddi(b, u->out, u->out_bytes));
	ir_endloop(b);
}

bool adapt_up_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *why = refuse(key, key->k, KEY_SCALED);
	const uint32_t blocks = (uint32_t)numerics_pad(key->rows) / 32;
	const unsigned columns = target->vector_regs <= SMALL_FILE ? 2 : ADAPT_TILE;

	if (why)
		return build_refuse(key, err, why);
	const bool scaled = key->flags & KEY_SCALED;
	struct up u = { .in_bytes = (int64_t)numerics_pad(key->k) * 4,
		        .out_bytes = (int64_t)numerics_pad(key->rows) * (scaled ? 8 : 4),
		        .rows = key->rows };
	ir_a arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_s unit = ir_sadd(b, begin, ir_loop(b, ir_ssub(b, ir_end(b), begin)));
	ir_s number = ir_sdivi(b, unit, blocks);
	struct tile t = find_tile(b, key, arg, number);

	u.t = &t;
	u.block = ir_ssub(b, unit, ir_smuli(b, number, blocks));
	const bool slots = each_slot(&t);
	u.in = ir_var_a(b, t.in);
	u.out = ir_var_a(b, ir_aadd(b, t.out, ir_sshli(b, u.block, scaled ? 8 : 7)));
	if (scaled) {
		add_scaled(&u);
	} else if (slots) {
		add_columns(&u, t.columns, 1);
		end_slots(b);
	} else {
		ir_s several = ir_sdivi(b, t.columns, columns);
		add_columns(&u, several, columns);
		add_columns(&u, ir_ssub(b, t.columns, ir_smuli(b, several, columns)), 1);
	}
	ir_endloop(b);
	return true;
}
