/* programs/jitquant/jitquant_types.c - which type each tensor gets: the mixtures by the names that users know, the
 * overrides, and what is left as it is.
 *
 * A mixture has a base type, and rules that give some tensors of some layers another one. The rules are those of
 * llama.cpp, so that a file of the same name has the same types wherever it was made.
 */
#include <ctype.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "programs/jitquant/jitquant.h"
#include "quantise/quantise.h"

enum sort {
	SORT_OTHER,
	SORT_EMBEDDING,
	SORT_OUTPUT,
	SORT_VALUE,
	SORT_KEY,
	SORT_QUERY,
	SORT_ATTENTION_OUTPUT,
	SORT_DOWN
};

/* In which layers a rule holds, of n. */
enum where {
	NOWHERE,
	EVERYWHERE,
	FIRST_TWO,
	FIRST_FOUR,
	FIRST_SIXTEENTH,
	FIRST_EIGHTH,
	SENSITIVE,         /* the first eighth, the last eighth, and every third between */
	SHARED_HEADS,      /* all, where four heads of queries or more share one of keys */
	SHARED_OR_EXPERTS, /* the same, and where there are four experts or more */
	NO_IMPORTANCE,     /* all, without an importance matrix */
	WITH_IMPORTANCE,   /* the first eighth, with an importance matrix */
	WITHOUT_IMPORTANCE /* the same without one */
};

/* Types of the output and embedding matrices; F32: as usual. */
struct mixture_ends {
	enum dtype output, embedding;
	bool low_bits;
};

enum { MAX_RULES = 7 };
struct rule {
	enum sort sort;
	enum where where;
	enum dtype to;
};
struct mixture_rules {
	const char *name;
	uint32_t file_type;
	enum dtype base;
	bool better_experts; /* of eight experts: attn_output gets Q5_K */
	struct mixture_ends ends;
	enum dtype instead;
	struct rule rule[MAX_RULES]; /* the first that holds counts */
};

/* clang-format off */
static const struct mixture_rules mixtures[] = {
#define USUAL_ENDS ENDS(F32, F32, false)
#define ENDS(output, embedding, low_bits) { DTYPE_##output, DTYPE_##embedding, low_bits }
#define MIXTURE(name, number, main, experts, ends, instead, made, ...) \
	{ #name, number, DTYPE_##main, experts, ends, DTYPE_##instead, { __VA_ARGS__ } },
#define NAMED(name, number)
#include "base/mixtures.def"
#undef NAMED
#undef MIXTURE
#undef ENDS
#undef USUAL_ENDS
};
enum { N_MIXTURES = sizeof mixtures / sizeof *mixtures };

/* Other names of the same. */
static const struct { const char *name, *is; } synonyms[] = {
	{ "q3_k", "q3_k_m" }, { "q4_k", "q4_k_m" }, { "q5_k", "q5_k_m" }, { "mxfp4_moe", "mxfp4" },
};
/* clang-format on */

const char *quant_type_names(void)
{
	static char names[400];
	size_t at = 0;

	for (int i = 0; i < N_MIXTURES && !names[sizeof names - 1]; i++)
		at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? "|" : "", mixtures[i].name);
	return names;
}

static const struct mixture_rules *find_mixture(const char *name)
{
	for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
		if (strcasecmp(name, synonyms[i].name) == 0)
			name = synonyms[i].is;
	for (int i = 0; i < N_MIXTURES; i++)
		if (strcasecmp(name, mixtures[i].name) == 0)
			return &mixtures[i];
	return NULL;
}

bool quant_wants_importance(const char *name) { return find_mixture(name)->ends.low_bits; }

bool quant_is_type(const char *name) { return find_mixture(name) != NULL; }

const char *quant_type_name(char out[32], enum dtype type)
{
	unsigned n = 0;

	for (const char *p = dtype_table[type].name; *p && n < 31; p++)
		out[n++] = (char)tolower(*p);
	out[n] = 0;
	return out;
}

/* One type, of a tensor. */
static bool find_type(const char *name, enum dtype *out, const char *option, struct error *err)
{
	char other[32], quoted[80];

	for (int t = 0; t < DTYPE_COUNT; t++)
		if (quantise_supported((enum dtype)t) && strcasecmp(name, quant_type_name(other, (enum dtype)t)) == 0) {
			*out = (enum dtype)t;
			return true;
		}
	return error_set(err, ERROR_ARGUMENT, "--%s: %s is no type that tensors can be given, such as q4_k or f16",
	                 option, error_quote(quoted, sizeof quoted, name, strlen(name)));
}

/* ---- what a tensor is */

struct choosing {
	const struct gguf *g;
	const struct mixture_rules *mix;
	uint64_t layers, experts, heads_of_one; /* heads of queries to one of keys */
	bool tied, importance;
	enum dtype output, embedding;
	bool has_output, has_embedding;
	uint64_t values, value; /* tensors of that sort: all, and before this one */
};

static bool ends_with(const struct gguf_str *s, const char *end)
{
	size_t n = strlen(end);

	return s->n >= n && memcmp(s->p + s->n - n, end, n) == 0;
}

static bool contains(const struct gguf_str *s, const char *part) { return memmem(s->p, s->n, part, strlen(part)); }

static bool is(const struct gguf_str *s, const char *name)
{
	return s->n == strlen(name) && memcmp(s->p, name, s->n) == 0;
}

static enum sort sort_of(const struct gguf_str *name)
{
	if (is(name, "output.weight"))
		return SORT_OUTPUT;
	if (is(name, "token_embd.weight") || is(name, "per_layer_token_embd.weight"))
		return SORT_EMBEDDING;
	if (contains(name, "attn_v.weight") || contains(name, "attn_qkv.weight") || contains(name, "attn_kv_b.weight"))
		return SORT_VALUE;
	if (contains(name, "attn_k.weight"))
		return SORT_KEY;
	if (contains(name, "attn_output.weight"))
		return SORT_ATTENTION_OUTPUT;
	if (contains(name, "attn_q.weight"))
		return SORT_QUERY;
	return contains(name, "ffn_down") ? SORT_DOWN : SORT_OTHER;
}

/* Vectors, norms, routers and small filters stay as they are: they are little, and much depends on them. */
static bool may_change(const struct gguf_tensor *t)
{
	static const char *const kept[] = {
		"_norm.weight",  "ffn_gate_inp", "altup",      "laurel",         "per_layer_model_proj",
		"position_embd", "token_types",  "ssm_conv1d", "shortconv.conv", "attn_rel_b",
		"time_mix",      "indexer",      ".rel_pos",   ".patch_embd"
	};

	if (t->n_dims < 2 || (t->ne[1] == 1 && t->ne[2] == 1 && t->ne[3] == 1) || !ends_with(&t->name, "weight"))
		return false;
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		if (contains(&t->name, kept[i]))
			return false;
	return true;
}

static uint64_t layer_of(const struct gguf_str *name)
{
	uint64_t layer = 0;

	for (uint64_t i = 4; name->n > 4 && memcmp(name->p, "blk.", 4) == 0 && i < name->n; i++) {
		if (name->p[i] < '0' || name->p[i] > '9')
			break;
		layer = layer * 10 + (uint64_t)(name->p[i] - '0');
		if (layer > UINT32_MAX)
			return UINT32_MAX;
	}
	return layer;
}

static bool holds(const struct choosing *c, enum where where, uint64_t layer, uint64_t n)
{
	switch (where) {
	case NOWHERE: return false;
	case EVERYWHERE: return true;
	case FIRST_TWO: return layer < 2;
	case FIRST_FOUR: return layer < 4;
	case FIRST_SIXTEENTH: return layer < n / 16;
	case FIRST_EIGHTH: return layer < n / 8;
	case SENSITIVE: return layer < n / 8 || layer >= 7 * n / 8 || (layer - n / 8) % 3 == 2;
	case SHARED_HEADS: return c->heads_of_one >= 4;
	case SHARED_OR_EXPERTS: return c->heads_of_one >= 4 || c->experts >= 4;
	case NO_IMPORTANCE: return !c->importance;
	case WITH_IMPORTANCE: return c->importance && layer < n / 8;
	case WITHOUT_IMPORTANCE: return !c->importance && layer < n / 8;
	}
	return false;
}

/* ---- the choice */

static enum dtype of_output(const struct choosing *c, const struct gguf_tensor *t)
{
	enum dtype base = c->mix->base;

	if (c->has_output)
		return c->output;
	if (base == DTYPE_MXFP4 || t->ne[0] % dtype_table[base].block)
		return DTYPE_Q8_0;
	if (c->mix->ends.output != DTYPE_F32)
		return c->mix->ends.output;
	return base == DTYPE_Q8_0 ? base : DTYPE_Q6_K;
}

static enum dtype by_rules(const struct choosing *c, const struct gguf_tensor *t, enum sort sort)
{
	const struct mixture_rules *mix = c->mix;
	bool value = sort == SORT_VALUE;
	uint64_t layer = value ? c->value : layer_of(&t->name), n = value ? c->values : c->layers;

	if (sort == SORT_OUTPUT || (sort == SORT_EMBEDDING && c->tied))
		return of_output(c, t);
	if (mix->base == DTYPE_MXFP4) /* for experts alone */
		return t->n_dims > 2 && t->ne[2] > 1 ? DTYPE_MXFP4 : DTYPE_Q8_0;
	const struct mixture_ends own = mix->ends;
	if (sort == SORT_EMBEDDING && own.embedding != DTYPE_F32)
		return own.embedding;
	if (c->experts == 8 && own.low_bits && sort == SORT_KEY)
		return DTYPE_Q4_K;
	if (c->experts == 8 && !own.low_bits && (value || sort == SORT_KEY))
		return DTYPE_Q8_0;
	if (c->experts == 8 && sort == SORT_ATTENTION_OUTPUT)
		return mix->better_experts ? DTYPE_Q5_K : mix->base;
	for (int i = 0; i < MAX_RULES; i++)
		if (mix->rule[i].sort == sort && holds(c, mix->rule[i].where, layer, n))
			return mix->rule[i].to;
	return mix->base;
}

/* A type of smaller blocks, for rows that are no multiple of the one wanted. */
static enum dtype fitting(enum dtype type, uint64_t columns)
{
	for (int i = 0; columns % dtype_table[type].block && i < N_MIXTURES; i++)
		if (mixtures[i].base == type && mixtures[i].instead) {
			type = mixtures[i].instead;
			break;
		}
	return columns % dtype_table[type].block ? DTYPE_F16 : type;
}

/* Whether a pattern names the tensor: with * ? [ of a shell as a whole, otherwise as a part of it. */
static bool matches(const char *pattern, size_t n, const struct gguf_str *name)
{
	char p[256], text[80];

	if (n >= sizeof p || name->n >= sizeof text)
		return false;
	snprintf(p, sizeof p, "%.*s", (int)n, pattern);
	snprintf(text, sizeof text, "%.*s", (int)name->n, name->p);
	return strpbrk(p, "*?[") ? fnmatch(p, text, 0) == 0 : strstr(text, p) != NULL;
}

static bool given_type(const struct gguf_tensor *t, enum dtype *to, bool *given, struct error *err)
{
	for (int i = 0; i < quant.tensor_types.n && !*given; i++) {
		const char *text = quant.tensor_types.value[i], *equals = strrchr(text, '=');
		char quoted[120];
		if (!equals || equals == text)
			return error_set(err, ERROR_ARGUMENT, "--tensor-type %s: expected PATTERN=TYPE",
			                 error_quote(quoted, sizeof quoted, text, strlen(text)));
		if (!find_type(equals + 1, to, "tensor-type", err))
			return false;
		*given = matches(text, (size_t)(equals - text), &t->name);
	}
	return true;
}

static bool choose_one(struct choosing *c, const struct gguf_tensor *t, enum dtype *to, struct error *err)
{
	enum sort sort = sort_of(&t->name);
	bool given = false;
	enum dtype type = c->mix->base;

	if (!given_type(t, &type, &given, err))
		return false;
	if (!given && sort == SORT_EMBEDDING && c->has_embedding)
		type = c->embedding;
	else if (!given && sort == SORT_OUTPUT && c->has_output)
		type = c->output;
	else if (!given && !quant.pure && !quantise_readable(c->mix->base))
		type = by_rules(c, t, sort);
	c->value += sort == SORT_VALUE;
	*to = type;
	return true;
}

static bool read_sizes(struct choosing *c, struct error *err)
{
	struct gguf_str arch = { "", 0 };
	uint64_t heads = 0, kv = 0;
	char key[128];
	bool found;

	if (!gguf_string(c->g, "general.architecture", &arch, &found, err))
		return false;
	const struct {
		const char *name;
		uint64_t *to;
	} sizes[] = { { "block_count", &c->layers },
		      { "expert_count", &c->experts },
		      { "attention.head_count", &heads },
		      { "attention.head_count_kv", &kv } };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		snprintf(key, sizeof key, "%.*s.%s", arch.n < 64 ? (int)arch.n : 64, arch.p, sizes[i].name);
		const struct gguf_kv *kv_found = gguf_find(c->g, key);
		if (kv_found && kv_found->type == GGUF_ARRAY) { /* a value for each layer: the first one's */
			bool number = kv_found->item != GGUF_STRING && kv_found->item != GGUF_ARRAY;
			*sizes[i].to = kv_found->count && number ? (uint64_t)gguf_item_int(kv_found, 0) : 0;
		} else if (!gguf_u64(c->g, key, sizes[i].to, &found, err)) {
			return false;
		}
	}
	c->heads_of_one = kv ? heads / kv : 1;
	return true;
}

static int by_layer(const void *a, const void *b, void *context)
{
	const struct gguf *g = context;
	const struct gguf_str *x = &g->tensor[*(const uint32_t *)a].name, *y = &g->tensor[*(const uint32_t *)b].name;
	uint64_t lx = layer_of(x), ly = layer_of(y);
	int order;

	if (lx != ly)
		return lx < ly ? -1 : 1;
	order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
	return order ? order : (x->n > y->n) - (x->n < y->n);
}

static bool open_choice(struct choosing *c, const struct quant_plan *p, struct error *err)
{
	*c = (struct choosing){ .g = &p->gguf, .mix = find_mixture(quant.type), .importance = p->imatrix.n > 0 };
	c->has_output = quant.output_type != NULL;
	c->has_embedding = quant.embedding_type != NULL;
	c->tied = !gguf_find_tensor(c->g, "output.weight");
	for (uint64_t i = 0; i < c->g->n_tensors; i++)
		c->values += sort_of(&c->g->tensor[i].name) == SORT_VALUE;
	return read_sizes(c, err) && (!c->has_output || find_type(quant.output_type, &c->output, "output-type", err)) &&
	       (!c->has_embedding || find_type(quant.embedding_type, &c->embedding, "token-embedding-type", err));
}

/* The type, the bytes and the importances of one. */
static bool settle(struct choosing *c, struct quant_plan *p, uint32_t i, struct error *err)
{
	const struct gguf_tensor *t = &p->gguf.tensor[i];
	struct quant_tensor *q = &p->tensor[i];
	char name[100];

	*q = (struct quant_tensor){ .from = t, .to = t->type, .bytes = t->bytes };
	if (may_change(t)) {
		if (!choose_one(c, t, &q->to, err))
			return false;
		enum dtype fit = fitting(q->to, t->ne[0]);
		p->unfit += fit != q->to;
		q->to = fit;
	}
	if (q->to != t->type && !quantise_readable(t->type))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "%s: tensor %s is %s, which is not made %s: only F32, F16 and BF16 are quantised; "
		                 "--tensor-type can leave it as it is",
		                 p->gguf.path, error_quote(name, sizeof name, t->name.p, t->name.n),
		                 dtype_table[t->type].name, dtype_table[q->to].name);
	const uint64_t rows = t->bytes ? t->bytes / dtype_row_bytes(t->type, t->ne[0]) : 0;
	q->bytes = rows * dtype_row_bytes(q->to, t->ne[0]);
	if (q->to != t->type)
		q->importance = imatrix_find(&p->imatrix, t->name.p, t->name.n);
	if (q->importance &&
	    (q->importance->columns != t->ne[0] || (q->importance->rows != 1 && q->importance->rows != t->ne[2])))
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s has %" PRIu64 " columns in %" PRIu64
		                 " matrices, but the importance matrix has %" PRIu64 " in %" PRIu64
		                 ": is it of another model?",
		                 p->gguf.path, error_quote(name, sizeof name, t->name.p, t->name.n), t->ne[0], t->ne[2],
		                 q->importance->columns, q->importance->rows);
	p->bytes_before += t->bytes;
	p->bytes_after += q->bytes;
	p->elements += rows * t->ne[0];
	return true;
}

bool quant_choose(struct quant_plan *p, struct error *err)
{
	uint64_t n = p->gguf.n_tensors;
	uint32_t *order = malloc((n ? n : 1) * sizeof *order);
	struct choosing c;
	bool ok = order && (p->tensor = calloc(n ? n : 1, sizeof *p->tensor));

	if (!ok)
		error_set(err, ERROR_MEMORY, "%s: no memory to plan %" PRIu64 " tensors", p->gguf.path, n);
	ok = ok && open_choice(&c, p, err);
	for (uint32_t i = 0; ok && i < n; i++)
		order[i] = i;
	if (ok)
		qsort_r(order, n, sizeof *order, by_layer, &p->gguf);
	for (uint32_t i = 0; ok && i < n; i++)
		ok = settle(&c, p, order[i], err);
	if (ok)
		p->file_type = c.mix->file_type;
	free(order);
	return ok;
}
