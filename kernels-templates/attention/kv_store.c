/* kernels-templates/attention/kv_store.c - keys (optional norm, rotation) and values into the cache.
 *
 * Owns: KEY_KV_STORE, the writing side of the cache's layout: keys with the position in the lane, values with the
 * dimension in it (docs/kernel-templates.md). Writes the elements of its own positions and nothing else: another
 * column's kernel may write beside it.
 */
#include "kernels-templates/attention/kv_store.h"

struct kv_out {
	ir_a at;
	unsigned element;
};

enum { OCTET_DIMS = 8, OCTET_BYTES = 16, LANES_BYTES = 32 * OCTET_BYTES };

/* Element i of a key lies 32 elements behind element i - 1. */
static void key_sink(struct ir *b, void *context, ir_f v, unsigned i, unsigned n)
{
	const struct kv_out *out = context;
	unsigned stride = 32 * out->element;
	if (out->element == 1)
		ir_fstore(b, out->at, v, (int32_t)(i * 4), n);
	else if (out->element == 2)
		ir_fstore_hs(b, out->at, v, (int32_t)(i * stride), n, stride);
	else
		ir_fstore_s(b, out->at, v, (int32_t)(i * stride), n, stride);
}

/* By octets: eight dimensions lie side by side. Lanes 8, 16 and 24 come down to lane 0 by exchanges. */
static void key_octets_sink(struct ir *b, void *context, ir_f v, unsigned i, unsigned n)
{
	const struct kv_out *out = context;
	for (unsigned at = 0; at < n; at += OCTET_DIMS) {
		ir_f first = at & 16 ? ir_fxor(b, v, 16) : v;
		ir_fstore_h(b, out->at, at & 8 ? ir_fxor(b, first, 8) : first,
		            (int32_t)((i + at) / OCTET_DIMS * LANES_BYTES), OCTET_DIMS);
	}
}

/* Numbers on their way into the cache: f32, to be multiplied where they are normed. */
struct value {
	ir_a at;
	bool normed, awaited;
	ir_f scale;
};

static ir_f load_lanes(struct ir *b, const struct value *x, int32_t disp, unsigned n)
{
	return x->awaited ? ir_fawait(b, x->at, disp, n) : ir_fload(b, x->at, disp, n);
}

static ir_f scaled(struct ir *b, const struct value *x, ir_f v) { return x->normed ? ir_fmul(b, v, x->scale) : v; }

/* By octets a value is loaded before anything of its key is stored, which loads cannot pass. */
static void load_value(struct ir *b, const struct value *x, unsigned dims, ir_f out[])
{
	for (unsigned i = 0; i < dims; i += 32)
		out[i / 32] = scaled(b, x, load_lanes(b, x, (int32_t)(i * 4), 0));
}

static void store_value_octets(struct ir *b, const ir_f v[], ir_a to, unsigned dims)
{
	for (unsigned i = 0; i < dims; i += 32)
		ir_fstore_hs(b, to, v[i / 32], (int32_t)(i / 32 * LANES_BYTES), 0, OCTET_BYTES);
}

static void store_value(struct ir *b, const struct value *x, ir_a to, unsigned dims, unsigned element)
{
	for (unsigned i = 0; i < dims; i += b->lanes) {
		unsigned n = dims - i < b->lanes ? dims - i : b->lanes;
		ir_f v = scaled(b, x, load_lanes(b, x, (int32_t)(i * 4), n));
		if (element == 2)
			ir_fstore_h(b, to, v, (int32_t)(i * 2), n);
		else
			ir_fstore(b, to, v, (int32_t)(i * 4), n);
	}
}

/* One head's f32 at x become int8: of the block of dimensions `first` ... the scale goes to `scale` behind `to`, words
 * of four to `words` ..., `stride` apart. */
struct int8_target {
	ir_a to;
	int32_t scale, words;
	unsigned stride;
};

static void store_int8(struct ir *b, const struct value *x, unsigned dims, unsigned first, ir_a scratch,
                       const struct int8_target *p)
{
	unsigned left = dims - first < 32 ? dims - first : 32, words = (left + 3) / 4;
	ir_f in[MATH_MAX_PARTS];
	ir_i q[MATH_MAX_PARTS];

	for (unsigned v = 0; v < math_parts(b); v++) {
		unsigned at = v * b->lanes, n = left > at ? left - at : 0;
		in[v] = n ? scaled(b, x, load_lanes(b, x, (int32_t)((first + at) * 4), n < b->lanes ? n : 0))
		          : ir_fconst(b, 0.0f);
	}
	ir_fstore1(b, p->to, quantise_emit(b, in, q), p->scale);
	for (unsigned v = 0; v < math_parts(b); v++)
		ir_istore_8(b, scratch, q[v], (int32_t)(v * b->lanes));
	ir_fstore_s(b, p->to, ir_fload(b, scratch, 0, words), p->words, words, p->stride);
}

static void store_key_int8(struct ir *b, ir_a x, unsigned dims, ir_a scratch, ir_a to)
{
	enum { LANES = 32 * 4, BLOCK = LANES + 8 * LANES };
	for (unsigned i = 0; i < dims; i += 32) {
		int32_t at = (int32_t)(i / 32 * BLOCK);
		store_int8(b, &(struct value){ .at = x }, dims, i, scratch,
		           &(struct int8_target){ to, at, at + LANES, LANES });
	}
}

static void store_value_int8(struct ir *b, const struct value *x, unsigned dims, ir_a scratch, ir_a to)
{
	for (unsigned i = 0; i < dims; i += 32)
		store_int8(b, x, dims, i, scratch,
		           &(struct int8_target){ to, (int32_t)(i / 8), (int32_t)((dims + 31) / 32 * 4 + i), 4 });
}

static ir_a page_of(struct ir *b, const struct kv_store *s, ir_s position)
{
	ir_s entry = ir_sshli(b, ir_sshri(b, position, 7), 3);

	return ir_aload(b, ir_aadd(b, ir_aload(b, s->arg, KV_STORE_PAGES * 8), entry), 0);
}

/* The number of a position of a head in its page. */
static ir_s row_of(struct ir *b, ir_s head, ir_s position)
{
	ir_s first = ir_smuli(b, head, NUMERICS_CHUNK);

	return ir_sadd(b, first, ir_sandi(b, position, NUMERICS_CHUNK - 1));
}

void kv_store_emit_key(struct ir *b, const struct kv_store *s, const struct heads_rotation *r, ir_a keys, ir_s head,
                       ir_s position)
{
	struct kv_out out = { .element = s->element };
	ir_s lane = ir_sandi(b, position, 31);
	ir_s block = ir_smuli(b, ir_ssub(b, row_of(b, head, position), lane), s->row_bytes);
	ir_s in_block = ir_smuli(b, lane, s->octets ? OCTET_BYTES : s->int8 ? 4 : s->element);
	ir_a to = ir_aadd(b, keys, ir_sadd(b, block, in_block));

	out.at = s->int8 ? ir_aaddi(b, s->scratch, 64) : to;
	heads_rotate(b, r, s->octets ? key_octets_sink : key_sink, &out);
	if (s->int8)
		store_key_int8(b, out.at, r->dims, s->scratch, to);
}

static ir_a value_at(struct ir *b, const struct kv_store *s, ir_a values, ir_s head, ir_s position)
{
	ir_s row = row_of(b, head, position);

	if (!s->octets)
		return ir_aadd(b, values, ir_smuli(b, row, s->row_bytes));
	ir_s in_octet = ir_sandi(b, position, OCTET_DIMS - 1);
	ir_s octet = ir_smuli(b, ir_ssub(b, row, in_octet), s->row_bytes);
	return ir_aadd(b, values, ir_sadd(b, octet, ir_sshli(b, in_octet, 1)));
}

static void store_value_of(struct ir *b, const struct kv_store *s, const struct value *x, const ir_f octets[], ir_a to)
{
	uint32_t dims = s->key->head_dim;

	if (s->octets)
		store_value_octets(b, octets, to, dims);
	else if (s->int8)
		store_value_int8(b, x, dims, s->scratch, to);
	else
		store_value(b, x, to, dims, s->element);
}

void kv_store_emit_value(struct ir *b, const struct kv_store *s, ir_a from, ir_f eps, ir_a values, ir_s head,
                         ir_s position)
{
	struct value x = {
		.at = from, .normed = s->key->flags & KEY_VALUE_NORM, .awaited = s->key->flags & KEY_AWAITED
	};
	ir_f octets[HEADS_MAX_DIM / 32];

	if (x.normed)
		x.scale = heads_scale_of(b, x.awaited, x.at, s->key->head_dim, eps);
	if (s->octets)
		load_value(b, &x, s->key->head_dim, octets);
	store_value_of(b, s, &x, octets, value_at(b, s, values, head, position));
}

/* One head's key and value of one column. */
static void store_column(struct ir *b, const struct kv_store *s, struct heads_unit u)
{
	uint32_t dims = s->key->head_dim;
	struct heads_rotation r = {
		.dims = dims, .normed = s->key->flags & KEY_QK_NORM, .last = s->key->flags & KEY_NORM_LAST
	};
	ir_s position = ir_sadd(b, ir_sload64(b, s->arg, KV_STORE_POS0 * 8), u.column);
	ir_a page = page_of(b, s, position);
	ir_s angles = ir_smuli(b, u.column, dims / 2 * 4);

	r.x = heads_at(b, ir_aload(b, s->arg, KV_STORE_K * 8), u, s->column_bytes, dims * 4);
	r.cos = ir_aadd(b, ir_aload(b, s->arg, KV_STORE_COS * 8), angles);
	r.sin = ir_aadd(b, ir_aload(b, s->arg, KV_STORE_SIN * 8), angles);
	if (r.normed) {
		r.norm = ir_aload(b, s->arg, KV_STORE_NORM * 8);
		r.eps = ir_fbcast(b, s->arg, KV_STORE_EPS * 8);
	}
	ir_f value[HEADS_MAX_DIM / 32];
	struct value x = { .normed = s->key->flags & KEY_VALUE_NORM };
	if (s->octets || x.normed)
		x.at = heads_at(b, ir_aload(b, s->arg, KV_STORE_V * 8), u, s->column_bytes, dims * 4);
	if (x.normed)
		x.scale = heads_scale(b, x.at, dims, ir_fbcast(b, s->arg, KV_STORE_EPS * 8));
	if (s->octets)
		load_value(b, &x, dims, value);
	ir_a keys = ir_aadd(b, page, ir_sload64(b, s->arg, KV_STORE_KEYS * 8));
	kv_store_emit_key(b, s, &r, keys, u.head, position);
	if (!s->octets && !x.normed)
		x.at = heads_at(b, ir_aload(b, s->arg, KV_STORE_V * 8), u, s->column_bytes, dims * 4);
	ir_a values = ir_aadd(b, page, ir_sload64(b, s->arg, KV_STORE_VALUES * 8));
	store_value_of(b, s, &x, value, value_at(b, s, values, u.head, position));
}

/* A latent vector behind its norm, which leaves `to` behind it: 32 dimensions at a time. */
static void store_latent(struct ir *b, const struct kv_store *s, const struct heads_rotation *norm, ir_a to)
{
	enum { LANES = 32 * 4, BLOCK = LANES + 8 * LANES };
	ir_f scale = heads_scale(b, norm->x, norm->dims, norm->eps);
	ir_a x = ir_var_a(b, norm->x), weight = ir_var_a(b, norm->norm),
	     own = s->int8 ? ir_aaddi(b, s->scratch, 64) : to;
	struct kv_out out = { .at = to, .element = s->element };
	unsigned step = s->octets ? 32 / OCTET_DIMS * LANES_BYTES : s->int8 ? BLOCK : 32 * 32 * s->element;

	ir_loop(b, ir_sconst(b, norm->dims / 32));
	for (unsigned v = 0; v < math_parts(b); v++) {
		int32_t at = (int32_t)(v * b->lanes * 4);
		ir_f y = ir_fmul(b, ir_fmul(b, ir_fload(b, x, at, 0), scale), ir_fload(b, weight, at, 0));
		if (s->int8)
			ir_fstore(b, own, y, at, 0);
		else
			(s->octets ? key_octets_sink : key_sink)(b, &out, y, v * b->lanes, b->lanes);
	}
	if (s->int8)
		store_int8(b, &(struct value){ .at = own }, 32, 0, s->scratch,
		           &(struct int8_target){ to, 0, LANES, LANES });
	ir_set_a(b, x, ir_aaddi(b, x, 128));
	ir_set_a(b, weight, ir_aaddi(b, weight, 128));
	ir_set_a(b, to, ir_aaddi(b, to, step));
	ir_endloop(b);
}

/* One column's latent vector and what rotates behind it (KEY_LATENT). */
static void store_latent_column(struct ir *b, const struct kv_store *s, ir_s column)
{
	uint32_t latent = s->key->k, dims = s->key->head_dim - latent;
	ir_s position = ir_sadd(b, ir_sload64(b, s->arg, KV_STORE_POS0 * 8), column), lane = ir_sandi(b, position, 31);
	ir_s block = ir_ssub(b, ir_sandi(b, position, NUMERICS_CHUNK - 1), lane);
	unsigned lane_bytes = s->octets ? OCTET_BYTES : s->int8 ? 4 : s->element;
	ir_s row = ir_sadd(b, ir_smuli(b, block, s->row_bytes), ir_smuli(b, lane, lane_bytes));
	ir_a keys = ir_aadd(b, page_of(b, s, position), ir_sload64(b, s->arg, KV_STORE_KEYS * 8));
	ir_a to = ir_var_a(b, ir_aadd(b, keys, row));
	struct heads_rotation r = { .dims = latent, .normed = true };
	ir_s angles = ir_smuli(b, column, (dims / 2 + 1) * 4);

	r.x = ir_aadd(b, ir_aload(b, s->arg, KV_STORE_K * 8), ir_smuli(b, column, s->column_bytes));
	r.norm = ir_aload(b, s->arg, KV_STORE_NORM * 8);
	r.eps = ir_fbcast(b, s->arg, KV_STORE_EPS * 8);
	store_latent(b, s, &r, to);
	struct kv_out out = { .at = s->int8 ? ir_aaddi(b, s->scratch, 64) : to, .element = s->element };
	r = (struct heads_rotation){ .dims = dims, .x = ir_aaddi(b, r.x, latent * 4) };
	r.cos = ir_aadd(b, ir_aload(b, s->arg, KV_STORE_COS * 8), angles);
	r.sin = ir_aadd(b, ir_aload(b, s->arg, KV_STORE_SIN * 8), angles);
	heads_rotate(b, &r, s->octets ? key_octets_sink : key_sink, &out);
	if (s->int8)
		store_key_int8(b, out.at, dims, s->scratch, to);
}

static const char *kv_store_refusal(const struct key *key)
{
	if (!(key->flags & KEY_LATENT))
		return heads_refusal(key->kv_heads, key->head_dim);
	if (key->kv_heads != 1 || key->flags != KEY_LATENT)
		return "there is one latent vector for all heads";
	return heads_latent_refusal(key->k, key->head_dim > key->k ? key->head_dim - key->k : 0);
}

struct kv_store kv_store_begin(struct ir *b, const struct key *key, const struct target *target)
{
	struct kv_store s = { .key = key, .element = heads_kv_bytes(key), .row_bytes = heads_kv_row_bytes(key) };

	s.int8 = s.element == 1;
	s.octets = template_kv_octets(target, key_dtype(key->kv), key->head_dim);
	if (s.int8)
		s.scratch = ir_local(b, 64 + (key->head_dim + b->lanes) * 4);
	return s;
}

bool kv_store_build(struct ir *b, const struct key *key, const struct target *target, struct error *err)
{
	const char *refusal = kv_store_refusal(key);
	unsigned columns = template_kv_store_tokens(target);

	if (refusal)
		return build_refuse(key, err, refusal);
	if (!heads_kv_bytes(key))
		return build_refuse(key, err, "the cache must be F16, F32 or Q8_0");
	struct kv_store s = kv_store_begin(b, key, target);
	s.column_bytes = (uint32_t)numerics_pad((uint64_t)key->kv_heads * key->head_dim) * 4;
	s.arg = ir_arg(b);
	ir_s begin = ir_begin(b);
	ir_s i = ir_loop(b, ir_ssub(b, ir_end(b), begin));
	struct heads_unit u = heads_unit(b, ir_sadd(b, begin, i), key->kv_heads);
	if (columns > 1) {
		u.column = ir_smuli(b, u.column, columns);
		ir_s left = ir_ssub(b, ir_sload64(b, s.arg, KV_STORE_COLUMNS * 8), u.column);
		u.column = ir_sadd(b, u.column, ir_loop(b, ir_smin(b, left, ir_sconst(b, columns))));
	}
	if (key->flags & KEY_LATENT)
		store_latent_column(b, &s, u.column);
	else
		store_column(b, &s, u);
	if (columns > 1)
		ir_endloop(b);
	ir_endloop(b);
	return true;
}
