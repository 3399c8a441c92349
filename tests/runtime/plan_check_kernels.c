/* tests/runtime/plan_check_kernels.c - what each kernel of a plan reads and writes, and whether that is there. */
#include <inttypes.h>
#include <string.h>

#include "kernels-templates/matmul/recipe.h"
#include "tests/runtime/plan_memory.h"
#include "tests/runtime/plan_checker.h"
#include "tests/support/widths.h"

/* ---- what is touched */

static void check_read(struct checker *c, const struct access *a)
{
	const struct segment *s = NULL;
	char want[PLAN_CONTENT_TEXT], found[PLAN_CONTENT_TEXT];

	if (plan_memory_holds(&c->memory, a->begin, a->end, &a->content, &s))
		return;
	plan_complain(c, "reads %s and finds %s%s", plan_content_text(&a->content, want),
	              s ? plan_content_text(&s->content, found) : "nothing",
	              s && s->content.origin != a->content.origin ? ", of other tokens" : "");
}

void touch(struct checker *c, bool write, uint64_t at, uint64_t bytes, struct content content)
{
	struct access a = { at, at + bytes, content, write, c->launch, c->group };

	if (c->accesses == ACCESSES_MAX)
		plan_complain(c, "a phase touches more than expected");
	if (!plan_memory_inside(&c->memory, at, at + bytes))
		plan_complain(c, "0x%" PRIx64 " and the %" PRIu64 " bytes from there on lie outside of every buffer",
		              at, bytes);
	if (!write && !c->wrong)
		check_read(c, &a);
	if (!c->wrong)
		c->access[c->accesses++] = a;
}

/* `tokens` tokens that begin at `at`, the first of which is token `first` of the pass. */
struct content columns_at(uint32_t value, uint32_t of, uint32_t form, uint64_t stride, uint64_t at, uint64_t first)
{
	return (struct content){
		.value = value, .of = of, .form = form, .stride = stride, .origin = at - first * stride
	};
}

void read_plain(struct checker *c, uint32_t value, uint32_t of, uint32_t form, uint64_t stride, uint64_t at,
                uint64_t first, uint64_t tokens)
{
	touch(c, false, at, tokens * stride, columns_at(value, of, form, stride, at, first));
}

struct found find(struct checker *c, uint64_t at, enum form form)
{
	const struct segment *s = plan_memory_at(&c->memory, at);
	struct found f = { .content = { .stride = 1 } };

	if (!s || s->content.form != form || !s->content.stride || (at - s->content.origin) % s->content.stride) {
		plan_complain(c, "its input is not %s, or does not begin with a token", plan_form_name(form));
		return f;
	}
	f.content = s->content;
	f.token = (at - s->content.origin) / s->content.stride;
	return f;
}

uint32_t layer_of(struct checker *c, uint64_t at, uint32_t value)
{
	struct found f = find(c, at, PLAIN_FLOATS);

	plan_require(c, f.content.value == value, "input");
	return f.content.of < PLAN_LAYERS ? f.content.of : 0;
}

/* ---- what the kernels do: docs/kernel-templates.md */

/* A product's part in the model. out: where it lies; in a list NULL, where that is the graph's. old: what of its
 * destination it reads. act: where no epilogue says that there is one.
 */
struct product {
	const struct weights_matrix *w, *w2;
	const float *bias, *bias2, *out;
	enum value in, old, value;
	uint32_t in_of, old_of, of, epilogue, act;
};

static bool is_gated(const struct weights_matrix *gate, const struct weights_matrix *up)
{
	return weights_gate_up_interleaved(gate->type, up->type);
}

/* Added to the stream; or, where a norm or a scale comes first, `alone`. */
static struct product added(const struct plan_space *s, const struct weights_matrix *w, const float *bias,
                            const float *norm, enum value in, uint32_t i, struct state before, struct state behind,
                            enum value alone)
{

	if (norm || s->spec.residual_scale.given)
		return (struct product){ w, NULL, bias, NULL, NULL, in, NOTHING, alone, i, 0, i, 0, 0 };
	return (struct product){ w, NULL,      bias,      NULL,         NULL, in, before.value, behind.value,
		                 i, before.of, behind.of, KEY_RESIDUAL, 0 };
}

static struct product mixed(const struct plan_space *s, const struct weights_matrix *w, const float *bias, uint32_t i)
{
	const float *norm = s->layer[i].attn_post_norm;

	return added(s, w, bias, norm, ATTENDED, i, (struct state){ STREAM, 2 * i },
	             (struct state){ STREAM, 2 * i + 1 }, MIXER_RESULT);
}

static bool pick(const struct plan_space *s, const struct product list[], size_t n, uint64_t w, struct product *out)
{
	for (size_t m = 0; m < n; m++)
		if (list[m].w->packed && plan_address(list[m].w->packed) == w && list[m].value != NOTHING) {
			*out = list[m];
			out->out = out->out ? out->out : plan_space_product(s, list[m].w);
			return true;
		}
	return false;
}

static bool product_of_mixer(const struct plan_space *s, uint32_t i, uint64_t w, struct product *out)
{
	const struct weights_layer *l = &s->layer[i];
	const enum value queries = l->q_row_norm ? BARE_QUERIES : QUERIES, keys = l->k_row_norm ? BARE_KEYS : KEYS;
	const struct product list[] = {
		{ &l->q, NULL, l->q_bias, NULL, NULL, ATTENTION_INPUT, NOTHING, queries, i, 0, i, 0, 0 },
		{ &l->k, NULL, l->k_bias, NULL, NULL, ATTENTION_INPUT, NOTHING, keys, i, 0, i, 0, 0 },
		{ &l->v, NULL, l->v_bias, NULL, NULL, ATTENTION_INPUT, NOTHING, VALUES, i, 0, i, 0, 0 },
		{ &l->q_gate, NULL, l->q_gate_bias, NULL, NULL, ATTENTION_INPUT, NOTHING, GATE_OF_QUERIES, i, 0, i, 0,
		  0 },
		mixed(s, &l->o, l->o_bias, i),
		{ &l->q_a, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, LOW_QUERIES, i, 0, i, 0, 0 },
		{ &l->q_b, NULL, NULL, NULL, NULL, LOW_INPUT, NOTHING, QUERIES, i, 0, i, 0, 0 },
		{ &l->kv_a, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, KEYS, i, 0, i, 0, 0 },
		{ &l->delta_qkv, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, MIX_INPUT, i, 0, i, 0, 0 },
		{ &l->delta_z, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, MIX_GATE, i, 0, i, 0, 0 },
		{ &l->delta_a, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, RATE_A, i, 0, i, 0, 0 },
		{ &l->delta_b, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, RATE_B, i, 0, i, 0, 0 },
		mixed(s, &l->delta_out, NULL, i),
		{ &l->conv_b, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, MIX_INPUT, i, 0, i, 0, 0 },
		{ &l->conv_c, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, MIX_GATE, i, 0, i, 0, 0 },
		{ &l->conv_x, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, MIX_FACTOR, i, 0, i, 0, 0 },
		mixed(s, &l->conv_out, NULL, i),
		{ &l->scan_xbc, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, MIX_INPUT, i, 0, i, 0, 0 },
		{ &l->scan_z, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, MIX_GATE, i, 0, i, 0, 0 },
		{ &l->scan_dt, NULL, NULL, NULL, NULL, ATTENTION_INPUT, NOTHING, RATE_A, i, 0, i, 0, 0 },
		mixed(s, &l->scan_out, NULL, i)
	};

	return pick(s, list, sizeof list / sizeof *list, w, out);
}

static bool product_behind(const struct plan_space *s, uint32_t i, uint64_t w, struct product *out)
{
	const struct weights_layer *l = &s->layer[i];
	const struct state half = { STREAM, 2 * i + 1 }, end = behind_ffn(s, i), bare = { STREAM_BARE, i },
			   of_shared = { STREAM_HALF, i };
	/* gate and up in one, where there are both: no launch is up's alone then */
	const bool one = is_gated(&l->gate, &l->up), one_shared = is_gated(&l->shared_gate, &l->shared_up),
		   beside = s->spec.experts_beside, apart = l->shared_router.packed;
	const enum value routed = beside ? ROUTER_INPUT : FFN_INPUT, gate = one ? GATED : GATE_ALONE,
			 shared = one_shared ? GATED : GATE_ALONE;
	const struct product alone = { &l->down, NULL, l->down_bias, NULL, NULL, GATED, NOTHING, DENSE_RESULT, i, 0, i,
		                       0,        0 },
			     shared_alone = { &l->shared_down, NULL, NULL, NULL, NULL, GATED, NOTHING,
		                              SHARED_RESULT,   i,    0,    i,    0,    0 };
	const struct product list[] = {
		{ &l->gate, one ? &l->up : NULL, l->gate_bias, one ? l->up_bias : NULL, NULL, FFN_INPUT, NOTHING, gate,
		  i, 0, i, one ? KEY_PAIR : 0, 0 },
		{ &l->up, NULL, l->up_bias, NULL, NULL, FFN_INPUT, GATE_ALONE, one ? NOTHING : GATED, i, i, i,
		  KEY_GATED, 0 },
		beside ? alone : added(s, &l->down, l->down_bias, l->ffn_post_norm, GATED, i, half, end, FFN_RESULT),
		{ &l->router, NULL, l->logit_bias, NULL, NULL, routed, NOTHING, ROUTED, i, 0, i, 0, 0 },
		{ &l->shared_router, NULL, NULL, NULL, NULL, FFN_INPUT, NOTHING, SHARED_LOGIT, i, 0, i, 0, 0 },
		{ &l->shared_gate, one_shared ? &l->shared_up : NULL, NULL, NULL, NULL, FFN_INPUT, NOTHING, shared, i,
		  0, i, one_shared ? KEY_PAIR : 0, 0 },
		{ &l->shared_up, NULL, NULL, NULL, NULL, FFN_INPUT, GATE_ALONE, one_shared ? NOTHING : GATED, i, i, i,
		  KEY_GATED, 0 },
		apart ? shared_alone : added(s, &l->shared_down, NULL, NULL, GATED, i, of_shared, end, FFN_RESULT),
		{ &l->input_gate, NULL, NULL, NULL, NULL, STREAM_BARE, NOTHING, INPUT_GATE, i, 0, i, 0, act_of(s) },
		added(s, &l->input_out, NULL, l->input_post_norm, INPUT_GATED, i, bare, behind_input(s, i),
		      INPUT_RESULT)
	};

	return pick(s, list, sizeof list / sizeof *list, w, out);
}

static bool find_product(const struct plan_space *s, uint64_t w, struct product *out)
{
	const struct weights *all = &s->weights;
	const enum value logits = s->spec.logit_scale.given ? LOGITS_UNSCALED
	                          : s->spec.logit_cap.given ? LOGITS_UNBOUNDED
	                                                    : LOGITS;
	const struct product list[] = {
		{ &all->lm_head, NULL, NULL, NULL, s->buffers.logits, OUTPUT_INPUT, NOTHING, logits, 0, 0, 0, 0, 0 },
		{ &all->input_proj, NULL, NULL, NULL, NULL, STREAM, NOTHING, INPUT_PRODUCT, 0, 0, 0, 0, 0 }
	};

	for (uint32_t i = 0; i < PLAN_LAYERS; i++)
		if (product_of_mixer(s, i, w, out) || product_behind(s, i, w, out))
			return true;
	return pick(s, list, sizeof list / sizeof *list, w, out);
}

/* What a target's templates say of inputs; asking takes them long. */
static struct content interleaved_for(const struct target *t, enum dtype weight, enum dtype act, uint32_t tokens)
{
	static struct content known[TARGET_COUNT][DTYPE_COUNT][3][TEMPLATE_MAX_WIDE + 1];
	struct content *k = &known[t->id][weight][act == DTYPE_Q8_0 ? 1 : act == DTYPE_BF16 ? 2 : 0][tokens];

	if (!k->width)
		*k = (struct content){ .width = tokens,
			               .panel = widths_panel(t, weight, act, tokens),
			               .flags = widths_interleave(t, weight, act, tokens) };
	return *k;
}

void plan_check_tiles(struct checker *c, const struct key *k, const uint64_t *arg)
{
	const uint64_t room = arg[MATMUL_TILES] * k->tile_n, columns = arg[MATMUL_COLUMNS];

	plan_require(c, columns <= room && room - columns < k->tile_n && columns >= k->tile_n, "tiles");
	plan_require(c, columns == room || matmul_recipe(k, c->opt->target).short_last, "tiles that are full");
}

/* Which kernels a matmul may use for these weights and with these options. */
static void check_matmul_key(struct checker *c, const struct key *k, const struct product *m, enum dtype act,
                             bool narrowed)
{
	const struct plan_options *o = c->opt;
	uint32_t epilogue = m->epilogue | (m->bias ? KEY_BIAS : 0) | (m->bias2 ? KEY_BIAS2 : 0),
		 allowed = m->value == GATED ? KEY_QUANTISED_OUT : 0;
	bool mma = k->flags & KEY_MMA, wide = k->flags & KEY_WIDE, inside = k->flags & KEY_NORM_IN;

	const bool staged = k->tile_n > 1 && o->target->shared_bytes > TARGET_SHARED_BYTES;
	const uint64_t max = !staged ? 4096 : k->activation == DTYPE_Q8_0 + 1 ? 4096 : 16384;

	epilogue |= k->flags & KEY_NORM_IN && c->s->spec.centred ? KEY_CENTRED : 0;
	plan_require(c, !inside || (o->target->waves > 1 && !mma && !wide && k->tile_n * numerics_pad(k->k) <= max),
	             "place of the norm");
	plan_require(c, k->weight == m->w->type + 1 && k->rows == m->w->rows && k->k == m->w->k && k->row_blocks == 1,
	             "format or sizes");
	if (m->w == &c->s->weights.lm_head && o->target->waves > 1 && c->s->spec.vocab % 32 == 0 &&
	    !c->s->spec.logit_scale.given && !c->s->spec.logit_cap.given)
		epilogue |= KEY_GREATEST;
	plan_require(c, (k->flags & ~(allowed | KEY_WIDE | KEY_MMA | KEY_NORM_IN)) == epilogue, "epilogue");
	plan_require(c, k->act == (m->epilogue & (KEY_PAIR | KEY_GATED) ? act_of(c->s) : m->act),
	             "activation function");
	plan_require(c, k->activation == (narrowed ? m->w->type : act) + 1, "format of activations");
	plan_require(c, k->numerics == (narrowed ? NUMERICS_BOUNDED : NUMERICS_EXACT), "numerics");
	plan_require(c, !narrowed || mma || (o->bounded && widths_dot2(o->target, m->w->type)), "pairs");
	plan_require(c, !mma || widths_mma(o->target, m->w->type, act, o->bounded && c->p->logits != PLAN_ALL_LOGITS),
	             "products of matrices");
	plan_require(c,
	             !mma || k->tile_n == TEMPLATE_MMA_MIN || k->tile_n == widths_mma_narrow_n(m->w->k, m->epilogue) ||
	                     (k->tile_n >= TEMPLATE_MMA_SHARED &&
	                      k->tile_n <= widths_mma_tile_n(o->target, m->w->type, m->w->rows, m->w->k, m->epilogue)),
	             "tokens of matrices");
	plan_require(c, !wide || (!mma && widths_has_wide(o->target, m->w->type)), "kind of tiles");
	plan_require(c, mma || (k->tile_n >= 1 && k->tile_n <= (wide ? TEMPLATE_MAX_WIDE : widths_plain(o->target))),
	             "tokens");
	plan_require(c, !o->general || (!mma && !wide && k->tile_n == 1), "kernel for a pass of general ones");
}

static void read_product_input(struct checker *c, const struct key *k, const struct product *m, enum dtype act,
                               bool narrowed, const uint64_t *arg, uint64_t first)
{
	/* words of pairs lie the same way in a wide tile of one column and in a narrow one */
	const bool wide = k->flags & KEY_WIDE && !(narrowed && k->tile_n == 1), int8 = act == DTYPE_Q8_0;
	struct content like = wide ? interleaved_for(c->opt->target, m->w->type, narrowed ? m->w->type : act, k->tile_n)
	                           : (struct content){ 0 };

	if (narrowed)
		like.flags = m->w->type;
	like.value = m->in;
	like.of = m->in_of;
	like.phase = wide ? (uint32_t)(first % k->tile_n) : 0;
	touches(c, MATMUL_X, false, like, first, 0);
	plan_require(c, int8 == (arg[MATMUL_XS] != 0), "scales");
	if (int8)
		touches(c, MATMUL_XS, false, like, first, 0);
}

/* The stream, whose norm the kernel makes itself: of the layer, and before what the value says. */
static void read_stream(struct checker *c, const struct product *m, const uint64_t *arg, uint64_t first)
{
	const struct weights_layer *l = &c->s->layer[m->in_of];
	const float *norm = m->in == ATTENTION_INPUT ? l->attn_norm
	                    : m->in == FFN_INPUT     ? l->ffn_norm
	                    : m->in == OUTPUT_INPUT  ? c->s->weights.final_norm
	                                             : NULL;
	uint32_t state = m->in == OUTPUT_INPUT ? 2 * PLAN_LAYERS : 2 * m->in_of + (m->in == FFN_INPUT);

	plan_require(c, norm && arg[MATMUL_NORM] == plan_address(norm) && arg[MATMUL_XS] == 0, "norm inside");
	plan_require(c, arg[MATMUL_EPS] == plan_bits_of(c->s->spec.norm_eps), "epsilon");
	reads(c, MATMUL_X, STREAM, state, first);
}

uint32_t logit_rows(const struct plan *p)
{
	return p->logits == PLAN_ALL_LOGITS ? p->tokens : p->logits == PLAN_LAST_LOGITS;
}

static void do_matmul(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	struct product m;

	if (!find_product(c->s, arg[MATMUL_W], &m)) {
		plan_complain(c, "multiplies by no matrix of the model");
		return;
	}
	enum dtype act = c->opt->f32_activations ? DTYPE_F32 : weight_default_activation(m.w->type);
	/* all tokens where there are pairs; else what products of matrices take */
	bool narrowed = act == DTYPE_F32 &&
	                (k->flags & KEY_MMA ||
	                 (c->opt->bounded && !(k->flags & KEY_BY_HEAD) && widths_dot2(c->opt->target, m.w->type)));
	uint64_t rp = numerics_pad(m.w->rows), tokens = arg[MATMUL_COLUMNS], at = arg[MATMUL_OUT] - plan_address(m.out);
	uint64_t row = at / (rp * 4),
		 first = row + (m.w == &c->s->weights.lm_head ? c->p->tokens - logit_rows(c->p) : 0);

	check_matmul_key(c, k, &m, act, narrowed);
	plan_require(c, begin == 0 && end == (int64_t)(rp / 32), "units");
	plan_check_tiles(c, k, arg);
	plan_require(c, tokens > 0 && at % (rp * 4) == 0 && first + tokens <= c->p->tokens, "tokens of results");
	plan_require(c,
	             arg[MATMUL_BIAS] == plan_address(m.bias) && arg[MATMUL_BIAS2] == plan_address(m.bias2) &&
	                     arg[MATMUL_W2] == (m.w2 ? plan_address(m.w2->packed) : 0),
	             "bias or second matrix");
	plan_require(c,
	             !(k->flags & KEY_GREATEST) ||
	                     arg[MATMUL_GREATEST] == plan_address(c->s->buffers.greatest) + row * (rp / 32) * 4,
	             "memory of the greatest");
	if (c->wrong)
		return;
	if (k->flags & KEY_NORM_IN)
		read_stream(c, &m, arg, first);
	else
		read_product_input(c, k, &m, act, narrowed, arg, first);
	if (m.old)
		reads(c, MATMUL_OUT, m.old, m.old_of, first);
	writes(c, MATMUL_OUT, m.value, m.of, first);
	if (k->flags & KEY_QUANTISED_OUT) {
		writes(c, MATMUL_OUTQ, m.value, m.of, first);
		writes(c, MATMUL_OUTS, m.value, m.of, first);
	}
	if (k->flags & KEY_GREATEST) /* beside the logits, whose memory was looked at */
		judged(c, MATMUL_GREATEST);
}

static void do_interleave(struct checker *c, const struct key *k, const uint64_t *arg, int64_t begin, int64_t end)
{
	bool int8 = k->activation == DTYPE_Q8_0 + 1, rounds = k->numerics == NUMERICS_BOUNDED,
	     dot2 = rounds && c->opt->target->has_dot2, narrow = rounds && !dot2, alone = dot2 && k->tile_n == 1;
	struct found in = find(c, arg[INTERLEAVE_X], int8 ? PLAIN_BYTES : PLAIN_FLOATS);
	uint64_t kp = in.content.stride / (int8 ? 1 : 4),
		 tokens = kp ? (uint64_t)end / (kp / 32 ? kp / 32 : 1) * (narrow ? 1 : k->tile_n) : 0;
	struct content out = in.content;

	plan_require(c,
	             narrow ? !k->k && !k->tile_n && !k->row_blocks && !k->flags &&
	                              (k->activation == DTYPE_F16 + 1 || k->activation == DTYPE_BF16 + 1)
	                    : kp == numerics_pad(k->k),
	             "length");
	plan_require(c, begin == 0 && tokens > 0 && tokens * (kp / 32) == (uint64_t)end * (narrow ? 1 : k->tile_n),
	             "units");
	plan_require(c,
	             narrow || (k->tile_n <= TEMPLATE_MAX_WIDE && k->row_blocks > 0 &&
	                        (int8 || k->activation == (dot2 ? DTYPE_BF16 : DTYPE_F32) + 1)),
	             "tiles");
	if (c->wrong)
		return;
	reads_wide(c, INTERLEAVE_X, in.content.value, in.content.of, in.token, in.content.stride);
	out.flags = rounds ? k->activation - 1u : k->flags;
	out.width = narrow || alone ? 0 : k->tile_n;
	out.panel = narrow || alone ? 0 : k->row_blocks;
	out.phase = narrow || alone ? 0 : (uint32_t)(in.token % k->tile_n);
	touches(c, INTERLEAVE_OUT, true, out, in.token, rounds ? kp * 2 : in.content.stride);
	if (!int8)
		return;
	reads_wide(c, INTERLEAVE_XS, in.content.value, in.content.of, in.token, kp / 2);
	touches(c, INTERLEAVE_OUTS, true, out, in.token, kp / 2);
}

static void do_quantise(struct checker *c, const uint64_t *arg, int64_t begin, int64_t end)
{
	struct found in = find(c, arg[QUANTISE_X], PLAIN_FLOATS);
	uint64_t kp = in.content.stride / 4, tokens = kp ? (uint64_t)end * 32 / kp : 0;

	plan_require(c, begin == 0 && tokens > 0 && tokens * kp == (uint64_t)end * 32, "units");
	reads_wide(c, QUANTISE_X, in.content.value, in.content.of, in.token, kp * 4);
	writes_wide(c, QUANTISE_OUTQ, in.content.value, in.content.of, in.token, kp);
	writes_wide(c, QUANTISE_OUTS, in.content.value, in.content.of, in.token, kp / 2);
}

void do_units(struct checker *c, uint32_t launch, uint32_t group, int64_t begin, int64_t end)
{
	const struct plan_op *l = &c->p->op[launch];
	const struct key *k = &c->p->kernel[l->kernel].key;
	const bool latent = c->s->spec.latent.rank;

	c->launch = launch;
	c->group = group;
	begin_slots(c, l, begin, end);
	plan_require(c, k->target == c->opt->target->id && k->codegen == key_codegen(k->target), "target");
	switch (k->kind) {
	case KEY_MATMUL:
		(k->flags & KEY_EXPERTS   ? do_chosen
		 : k->flags & KEY_BY_HEAD ? do_by_head
		                          : do_matmul)(c, k, l->arg, begin, end);
		break;
	case KEY_ROUTE: do_route(c, k, l->arg, begin, end); break;
	case KEY_DISPATCH: do_dispatch(c, k, l->arg, begin, end); break;
	case KEY_SCATTER: do_scatter(c, k, l->arg, begin, end); break;
	case KEY_COMBINE: do_combine(c, k, l->arg, begin, end); break;
	case KEY_INTERLEAVE: do_interleave(c, k, l->arg, begin, end); break;
	case KEY_NORM: do_norm(c, k, l->arg, begin, end); break;
	case KEY_QUANTISE: do_quantise(c, l->arg, begin, end); break;
	case KEY_EMBED: do_embed(c, k, l->arg, begin, end); break;
	case KEY_ROPE: (latent ? do_latent_rope : do_rope)(c, k, l->arg, begin, end); break;
	case KEY_KV_STORE: (latent ? do_latent_store : do_kv_store)(c, k, l->arg, begin, end); break;
	case KEY_ATTENTION: (latent ? do_latent_attention : do_attention)(c, k, l->arg, begin, end); break;
	case KEY_MERGE: do_merge(c, k, l->arg, begin, end); break;
	case KEY_CONV: do_convolve(c, k, l->arg, begin, end); break;
	case KEY_DELTA: do_delta(c, k, l->arg, begin, end); break;
	case KEY_SCAN: do_scan(c, k, l->arg, begin, end); break;
	case KEY_SCALE: do_scale(c, k, l->arg, begin, end); break;
	case KEY_LAYER_INPUTS: do_layer_inputs(c, k, l->arg, begin, end); break;
	case KEY_GATE: do_gate(c, k, l->arg, begin, end); break;
	default: plan_complain(c, "no kernel of a forward pass");
	}
	end_slots(c);
}
