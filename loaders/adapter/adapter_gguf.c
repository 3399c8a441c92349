/* loaders/adapter/adapter_gguf.c - adapters in GGUF files: general.type "adapter", and pairs NAME.weight.lora_a and
 * .lora_b (adapter.h).
 *
 * The scale is adapter.lora.alpha / rank; an alpha of 0 is 1. Pairs of norms' weights, which converters leave there,
 * are passed over; so are tables of rotary factors.
 */
#include "loaders/adapter/adapter.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool str_is(const struct gguf_str *s, const char *word)
{
	return s->n == strlen(word) && memcmp(s->p, word, s->n) == 0;
}

/* The text of a key must be this. */
static bool check_key(const struct adapter_file *f, const char *key, const char *want, struct error *err)
{
	char shown[80];
	struct gguf_str s;
	bool found;

	if (!gguf_string(&f->gguf, key, &s, &found, err))
		return false;
	if (!found)
		return error_set(err, ERROR_FORMAT, "%s: %s is missing, expected \"%s\": this is no adapter",
		                 f->weights.label, key, want);
	if (!str_is(&s, want))
		return error_set(err, ERROR_UNSUPPORTED, "%s: %s is \"%s\", expected \"%s\"", f->weights.label, key,
		                 error_quote(shown, sizeof shown, s.p, s.n), want);
	return true;
}

/* Keys under "adapter." that nobody knows are refused. */
static bool check_keys(const struct adapter_file *f, struct error *err)
{
	static const char *const known[] = { "adapter.type", "adapter.lora.alpha", "adapter.alora.invocation_tokens",
		                             "adapter.lora.task_name", "adapter.lora.prompt_prefix" };
	static const char begin[] = "adapter.";
	char shown[80];

	for (uint64_t i = 0; i < f->gguf.n_kv; i++) {
		const struct gguf_str *key = &f->gguf.kv[i].key;
		bool is_known = key->n < sizeof begin - 1 || memcmp(key->p, begin, sizeof begin - 1) != 0;
		for (size_t j = 0; j < sizeof known / sizeof *known; j++)
			is_known |= str_is(key, known[j]);
		if (!is_known)
			return error_set(err, ERROR_UNSUPPORTED, "%s: the key %s is not known", f->weights.label,
			                 error_quote(shown, sizeof shown, key->p, key->n));
	}
	return true;
}

static bool read_invocation(struct adapter_file *f, struct error *err)
{
	static const char key[] = "adapter.alora.invocation_tokens";
	const struct gguf_kv *kv = gguf_find(&f->gguf, key);

	if (!kv)
		return true;
	if (kv->type != GGUF_ARRAY || kv->item == GGUF_STRING || kv->item == GGUF_ARRAY || kv->item == GGUF_F32 ||
	    kv->item == GGUF_F64 || kv->count < 1 || kv->count > ADAPTER_MAX_INVOCATION)
		return error_set(err, ERROR_FORMAT, "%s: %s is not an array of 1 to %d token numbers", f->weights.label,
		                 key, ADAPTER_MAX_INVOCATION);
	if (!(f->invocation = malloc(kv->count * sizeof *f->invocation)))
		return error_set(err, ERROR_MEMORY, "no memory for %s", key);
	for (uint64_t i = 0; i < kv->count; i++) {
		const int64_t id = gguf_item_int(kv, i);
		if (id < 0 || id > INT32_MAX)
			return error_set(err, ERROR_FORMAT, "%s: %s has %" PRId64 ", expected token numbers",
			                 f->weights.label, key, id);
		f->invocation[i] = (int32_t)id;
	}
	f->n_invocation = kv->count;
	return true;
}

/* Whether a name ends so; *n: without that. */
static bool strip(const struct gguf_str *name, const char *end, size_t *n)
{
	const size_t m = strlen(end);

	if (name->n <= m || memcmp(name->p + name->n - m, end, m) != 0)
		return false;
	*n = name->n - m;
	return true;
}

static bool is_passed_over(const struct gguf_str *name)
{
	size_t n;

	return strip(name, "_norm.weight.lora_a", &n) || strip(name, "_norm.weight.lora_b", &n) ||
	       str_is(name, "rope_freqs.weight") || str_is(name, "rope_factors_long.weight") ||
	       str_is(name, "rope_factors_short.weight");
}

static bool take_tensor(struct adapter_file *f, const struct gguf_tensor *g, struct error *err)
{
	char shown[120];
	size_t n;
	const bool a = strip(&g->name, ".weight.lora_a", &n), known = a || strip(&g->name, ".weight.lora_b", &n);

	if (is_passed_over(&g->name))
		return true;
	error_quote(shown, sizeof shown, g->name.p, g->name.n);
	if (!known)
		return error_set(
			err, ERROR_UNSUPPORTED,
			"%s: tensor %s is not known, expected names that end in .weight.lora_a or .weight.lora_b",
			f->weights.label, shown);
	if (g->ne[3] != 1 || g->ne[2] > UINT32_MAX)
		return error_set(err, ERROR_FORMAT,
		                 "%s: tensor %s has four dimensions, expected two, or three of experts",
		                 f->weights.label, shown);
	struct adapter_pair *pair = adapter_pair_of(f, g->name.p, n, err);
	struct adapter_tensor t = { .name = strdup(shown),
		                    .type = g->type,
		                    .rows = g->ne[1],
		                    .cols = g->ne[0],
		                    .offset = g->offset,
		                    .experts = g->ne[2] > 1 ? (uint32_t)g->ne[2] : 0 };
	if (!pair || !t.name) {
		free((char *)(uintptr_t)t.name);
		return pair && error_set(err, ERROR_MEMORY, "no memory for the list of an adapter's tensors");
	}
	pair->embeds = strcmp(pair->path, "token_embd") == 0;
	if (adapter_take(f, a ? &pair->a : &pair->b, &t, err))
		return true;
	free((char *)(uintptr_t)t.name);
	return false;
}

bool adapter_open_gguf(struct adapter_file *f, const char *path, const struct model *m, struct error *err)
{
	const char *arch = model_gguf_name(m);
	double alpha = 0;
	bool found;

	if (!file_open(&f->weights, path, err) || !gguf_open(&f->gguf, &f->weights, false, err))
		return false;
	if (!check_key(f, "general.type", "adapter", err) || !check_key(f, "adapter.type", "lora", err) ||
	    (arch && !check_key(f, "general.architecture", arch, err)) || !check_keys(f, err) ||
	    !read_invocation(f, err) || !gguf_f64(&f->gguf, "adapter.lora.alpha", &alpha, &found, err))
		return false;
	if (!(fabs(alpha) <= 1e6))
		return error_set(err, ERROR_FORMAT, "%s: adapter.lora.alpha is %g, expected at most 1000000",
		                 f->weights.label, alpha);
	for (uint64_t i = 0; i < f->gguf.n_tensors; i++)
		if (!take_tensor(f, &f->gguf.tensor[i], err))
			return false;
	for (size_t i = 0; i < f->n_pairs; i++)
		if (alpha != 0 && f->pair[i].b.cols)
			f->pair[i].scale = alpha / (double)f->pair[i].b.cols;
	return true;
}
