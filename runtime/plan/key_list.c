#include "runtime/plan/key_list.h"

#include <stdlib.h>
#include <string.h>

#include "jit/backend.h"
#include "jit/program_key.h"
#include "jit/store/tune.h"
#include "runtime/speculate/speculate.h"

/* A set of keys, open addressing; slots hold 1 + an index into key. */
struct key_set {
	struct key *key;
	uint32_t *slot;
	size_t n, capacity;
};

static bool set_grow(struct key_set *s)
{
	size_t want = s->capacity ? 2 * s->capacity : 256;
	struct key *key = realloc(s->key, want / 2 * sizeof *key);
	uint32_t *slot = calloc(want, sizeof *slot);

	if (key)
		s->key = key;
	if (!key || !slot) {
		free(slot);
		return false;
	}
	free(s->slot);
	s->slot = slot;
	s->capacity = want;
	for (size_t i = 0; i < s->n; i++) {
		size_t at = key_hash(&key[i]) & (want - 1);
		while (slot[at])
			at = (at + 1) & (want - 1);
		slot[at] = (uint32_t)i + 1;
	}
	return true;
}

static bool set_add(struct key_set *s, const struct key *key)
{
	if (s->n == s->capacity / 2 && !set_grow(s))
		return false;
	size_t at = key_hash(key) & (s->capacity - 1);
	for (; s->slot[at]; at = (at + 1) & (s->capacity - 1))
		if (key_equal(&s->key[s->slot[at] - 1], key))
			return true;
	s->key[s->n] = *key;
	s->slot[at] = (uint32_t)++s->n;
	return true;
}

/* ---- layers that are alike need the same kernels: one of each kind is planned */

struct layer_kind {
	enum dtype type[MATRIX_SLOTS];
	bool matrix[MATRIX_SLOTS], vector[VECTOR_SLOTS], sliding;
	struct model_sizes sizes;
	uint32_t heads;
	uint8_t mixer;
};

static struct layer_kind kind_of(const struct model_spec *s, uint32_t layer)
{
	const struct model_layer *l = &s->layer[layer];
	struct layer_kind kind;

	for (int i = 0; i < MATRIX_SLOTS; i++) {
		kind.type[i] = l->matrix[i].type;
		kind.matrix[i] = l->matrix[i].bytes != 0;
	}
	for (int i = 0; i < VECTOR_SLOTS; i++)
		kind.vector[i] = l->vector[i].bytes != 0;
	kind.mixer = (uint8_t)model_layer_mixer(s, layer);
	kind.sliding = s->layer_is_sliding && s->layer_is_sliding[layer];
	kind.sizes = model_sizes_of(s, layer);
	kind.heads = model_heads_of(s, layer);
	kind.sizes.kv_layer = 0; /* has no part in a key */
	return kind;
}

static bool same_kind(const struct layer_kind *a, const struct layer_kind *b)
{
	return memcmp(a->type, b->type, sizeof a->type) == 0 && memcmp(a->matrix, b->matrix, sizeof a->matrix) == 0 &&
	       memcmp(a->vector, b->vector, sizeof a->vector) == 0 &&
	       memcmp(&a->sizes, &b->sizes, sizeof a->sizes) == 0 && a->sliding == b->sliding && a->mixer == b->mixer &&
	       a->heads == b->heads;
}

/* A model of one layer of each kind. */
struct key_list_passes {
	struct model_spec spec;
	struct model_layer *layer;
	uint8_t *sliding, *mixer;
	struct model_sizes *sizes;
	uint32_t *heads;
	struct weights weights;
};

static void sample_free(struct key_list_passes *m)
{
	weights_close(&m->weights);
	free(m->layer);
	free(m->sliding);
	free(m->sizes);
	free(m->heads);
	free(m->mixer);
}

static bool sample_make(struct key_list_passes *m, const struct model_spec *spec, struct error *err)
{
	uint32_t n = 0;

	*m = (struct key_list_passes){ .spec = *spec,
		                       .layer = calloc(spec->layers, sizeof *m->layer),
		                       .sliding = calloc(spec->layers, 1),
		                       .mixer = calloc(spec->layers, 1),
		                       .sizes = calloc(spec->layers, sizeof *m->sizes),
		                       .heads = calloc(spec->layers, sizeof *m->heads) };
	struct layer_kind *seen = calloc(spec->layers, sizeof *seen);
	bool ok = m->layer && m->sliding && m->mixer && m->sizes && m->heads && seen
	                  ? true
	                  : error_set(err, ERROR_MEMORY, "no memory to tell %u layers apart", spec->layers);
	for (uint32_t i = 0; ok && i < spec->layers; i++) {
		const struct layer_kind kind = kind_of(spec, i);
		uint32_t j = 0;
		while (j < n && !same_kind(&seen[j], &kind))
			j++;
		if (j < n)
			continue;
		seen[n] = kind;
		m->layer[n] = spec->layer[i];
		m->sizes[n] = kind.sizes;
		m->heads[n] = kind.heads;
		m->mixer[n] = kind.mixer;
		m->sliding[n++] = kind.sliding;
	}
	free(seen);
	m->spec.layers = n;
	m->spec.layer = m->layer;
	m->spec.layer_mixer = spec->layer_mixer ? m->mixer : NULL;
	m->spec.layer_is_sliding = spec->layer_is_sliding ? m->sliding : NULL;
	m->spec.layer_sizes = spec->layer_sizes ? m->sizes : NULL;
	m->spec.layer_heads = spec->layer_heads ? m->heads : NULL;
	ok = ok && weights_describe(&m->weights, &m->spec, err);
	if (!ok)
		sample_free(m);
	return ok;
}

/* ---- the plans */

/* Those that a session may try in passing. */
static bool add_schedules(struct key_set *set, struct key key)
{
	uint32_t schedule[TEMPLATE_SCHEDULES_MAX];
	unsigned n = template_schedules(&key, schedule);
	bool ok = true;

	for (unsigned i = 0; ok && i < n; i++) {
		key.schedule = schedule[i];
		ok = set_add(set, &key);
	}
	return ok;
}

/* Attention that awaits, or of one token, has the context in fewer parts when there are several sequences
 * (plan_attention.c). */
static bool add_parts(struct key_set *set, struct error *err)
{
	for (size_t i = 0, n = set->n; i < n; i++) {
		struct key less = set->key[i];
		if (less.kind != KEY_ATTENTION || (less.tile_n > 1 && !(less.flags & KEY_AWAITED)))
			continue;
		while (less.rows > 1) {
			less.rows /= 2;
			if (!set_add(set, &less))
				return error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", set->n);
		}
	}
	return true;
}

/* Of a plan, which is given back. schedules: also those that have no result in opt->tune. */
static bool add_kernels(struct key_set *set, struct plan *p, const struct plan_options *opt, bool schedules,
                        struct error *err)
{
	bool ok = true;

	for (size_t i = 0; ok && i < p->n_kernels; i++) {
		bool all = schedules && !(opt->tune && tune_known(opt->tune, &p->kernel[i].key));
		ok = (all ? add_schedules(set, p->kernel[i].key) : set_add(set, &p->kernel[i].key)) ||
		     error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", set->n);
	}
	plan_free(p);
	return ok;
}

static bool add_plan(struct key_set *set, const struct key_list_passes *m, enum dtype kv, uint32_t tokens,
                     enum plan_logits logits, const struct plan_options *opt, bool schedules, struct error *err)
{
	struct plan p;

	return plan_outline(&p, &m->spec, &m->weights, kv, tokens, logits, opt, err) &&
	       add_kernels(set, &p, opt, schedules, err);
}

/* Two sequences that have a token each. */
static bool add_pair(struct key_set *set, const struct key_list_passes *m, enum dtype kv,
                     const struct plan_options *opt, bool schedules, struct error *err)
{
	struct plan p;

	return plan_outline_pair(&p, &m->spec, &m->weights, kv, opt, err) && add_kernels(set, &p, opt, schedules, err);
}

static bool add_passes(struct key_set *set, const struct key_list_passes *m, enum dtype kv, uint32_t tokens,
                       const struct plan_options *opt, bool schedules, struct error *err);

/* Passes of several tokens that would be dataflow passes, or have their context in parts, but for how long the context
 * is, or how the tokens are distributed to sequences. */
static bool add_plain_passes(struct key_set *set, const struct key_list_passes *m, enum dtype kv, uint32_t tokens,
                             const struct plan_options *opt, bool schedules, struct error *err)
{
	const uint32_t small = tokens < PLAN_DATAFLOW_MAX ? tokens : PLAN_DATAFLOW_MAX;
	struct plan_options plain = *opt;

	plain.dataflow = false;
	if (opt->dataflow)
		return add_passes(set, m, kv, small, &plain, schedules, err);
	plain.context = PLAN_WHOLE;
	return (opt->context == PLAN_WHOLE || add_passes(set, m, kv, small, &plain, schedules, err)) &&
	       add_pair(set, m, kv, &plain, schedules, err);
}

/* Of texts that are encoded: their passes give all rows, behind the final norm. */
static bool add_encodings(struct key_set *set, const struct key_list_passes *m, enum dtype kv, uint32_t tokens,
                          const struct plan_options *opt, bool schedules, struct error *err)
{
	struct plan_widths seen = { 0 };

	for (uint32_t n = 1; n <= tokens; n++)
		if (plan_has_new_widths(&seen, &m->spec, &m->weights, n, opt) &&
		    !add_plan(set, m, kv, n, PLAN_ALL_NORMED, opt, schedules, err))
			return false;
	return true;
}

/* Every pass that a session makes: of any width without logits or with the last ones, and narrow ones with all. */
static bool add_passes(struct key_set *set, const struct key_list_passes *m, enum dtype kv, uint32_t tokens,
                       const struct plan_options *opt, bool schedules, struct error *err)
{
	struct plan_widths seen = { 0 };

	if (m->spec.encodes)
		return add_encodings(set, m, kv, tokens, opt, schedules, err);
	for (uint32_t n = 1; n <= tokens; n++)
		if ((plan_has_new_widths(&seen, &m->spec, &m->weights, n, opt) &&
		     !add_plan(set, m, kv, n, PLAN_LAST_LOGITS, opt, schedules, err)) ||
		    (n <= PLAN_ALL_LOGITS_MAX && !add_plan(set, m, kv, n, PLAN_ALL_LOGITS, opt, schedules, err)))
			return false;
	return !opt->target->lane_bytes || tokens < 2 ||
	       (add_parts(set, err) && add_plain_passes(set, m, kv, tokens, opt, schedules, err));
}

struct key_list_passes *key_list_passes_open(const struct model_spec *spec, struct error *err)
{
	struct key_list_passes *m = malloc(sizeof *m);

	if (!m)
		error_set(err, ERROR_MEMORY, "no memory for the outline of a model");
	if (m && sample_make(m, spec, err))
		return m;
	free(m);
	return NULL;
}

void key_list_passes_close(struct key_list_passes *m)
{
	if (m)
		sample_free(m);
	free(m);
}

bool key_list_of_pass(const struct key_list_passes *m, enum dtype kv, uint32_t tokens, enum plan_logits logits,
                      const struct plan_options *opt, bool schedules, struct key **keys, size_t *n, struct error *err)
{
	struct key_set set = { 0 };
	bool ok = add_plan(&set, m, kv, tokens, logits, opt, schedules, err);

	free(set.slot);
	if (!ok)
		free(set.key);
	*keys = ok ? set.key : NULL;
	*n = ok ? set.n : 0;
	return ok;
}

struct named_key {
	struct key key;
	char text[KEY_TEXT_MAX];
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct named_key *)a)->text, ((const struct named_key *)b)->text);
}

static bool sort_keys(struct key_set *set, struct error *err)
{
	struct named_key *named = malloc(set->n * sizeof *named);

	if (!named)
		return error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", set->n);
	for (size_t i = 0; i < set->n; i++) {
		named[i].key = set->key[i];
		key_text(&named[i].key, named[i].text, sizeof named[i].text);
	}
	qsort(named, set->n, sizeof *named, by_text);
	for (size_t i = 0; i < set->n; i++)
		set->key[i] = named[i].key;
	free(named);
	return true;
}

/* In the order of the bits KEY_LIST_KV_*. */
static const enum dtype kv_types[] = { DTYPE_F16, DTYPE_F32, DTYPE_Q8_0 };
enum { KV_TYPES = sizeof kv_types / sizeof *kv_types };

unsigned key_list_kv(enum dtype type)
{
	for (unsigned i = 0; i < KV_TYPES; i++)
		if (kv_types[i] == type)
			return 1u << i;
	return 0;
}

static unsigned first_kv(unsigned set)
{
	unsigned first = 0;

	while (!(set >> first & 1))
		first++;
	return first;
}

/* The keys from the given one on that have a KV cache of the first type in the set `kv`, once more with the others. Of
 * the type such a plan's keys take nothing but its name (tests/runtime/t_warm.c holds them to that), so no plan is
 * built again. */
static bool add_other_kv(struct key_set *set, size_t from, unsigned kv, struct error *err)
{
	unsigned first = first_kv(kv);

	for (size_t i = from, n = set->n; i < n; i++) {
		struct key key = set->key[i];
		if (key.kv != key_type(kv_types[first]))
			continue;
		for (unsigned t = first + 1; t < KV_TYPES; t++) {
			key.kv = key_type(kv_types[t]);
			if (kv >> t & 1 && !set_add(set, &key))
				return error_set(err, ERROR_MEMORY, "no memory for a list of %zu kernels", set->n);
		}
	}
	return true;
}

/* Of the widest pass: draft tokens do not depend on how long prompts are, and texts that are encoded are whole. */
static uint32_t max_tokens(const struct model_spec *spec, const struct key_list_options *opt)
{
	const uint32_t context = spec->context_train < PLAN_ENCODED_MAX ? spec->context_train : PLAN_ENCODED_MAX,
		       min = !spec->encodes               ? SPECULATE_MAX
	                     : context > PLAN_ENCODED_MIN ? context
	                                                  : PLAN_ENCODED_MIN,
		       wanted = opt->tokens ? opt->tokens : PLAN_TOKENS_MAX;

	return wanted > min ? wanted : min;
}

bool key_list_kernels(const struct model_spec *spec, const struct key_list_options *opt, struct key **keys, size_t *n,
                      struct error *err)
{
	const uint32_t tokens = max_tokens(spec, opt);
	struct key_set set = { 0 };
	struct tune *tune = opt->tune && tune_any(opt->tune) ? opt->tune : NULL;
	struct key_list_passes m;
	const unsigned kv = !spec->encodes ? opt->kv : opt->kv & KEY_LIST_KV_ANY ? KEY_LIST_KV_F32 : 0;
	bool ok;

	if (!sample_make(&m, spec, err))
		return false;
	ok = true;
	for (unsigned way = 0; ok && way < 4; way++) {
		unsigned f32 = way & 1, bounded = way >> 1;
		struct plan_options po = { .target = opt->target,
			                   .f32_activations = f32,
			                   .bounded = bounded,
			                   .context = PLAN_PARTS_TO_COME,
			                   .dataflow = opt->dataflow };
		struct plan_options tuned = po;
		tuned.tune = tune;
		if (!((opt->numerics ? opt->numerics : KEY_LIST_EXACT) >> bounded & 1))
			continue;
		if (!(opt->activations >> f32 & 1) || !(kv & KEY_LIST_KV_ANY))
			continue;
		/* Where attention of several tokens copies ahead, its units and parts depend on the type. */
		const bool alike = !opt->target->block_bytes;
		size_t from = set.n;
		for (unsigned t = first_kv(kv); ok && t < KV_TYPES; t = alike ? KV_TYPES : t + 1)
			ok = !(kv >> t & 1) ||
			     (add_passes(&set, &m, kv_types[t], tokens, &po, !opt->usual, err) &&
			      (!tune || add_passes(&set, &m, kv_types[t], tokens, &tuned, false, err)));
		ok = ok && (!alike || add_other_kv(&set, from, kv, err));
	}
	sample_free(&m);
	ok = ok && sort_keys(&set, err);
	free(set.slot);
	if (!ok)
		free(set.key);
	*keys = ok ? set.key : NULL;
	*n = ok ? set.n : 0;
	return ok;
}

/* ---- programs */

static bool add_program(struct key_set *set, const struct key_list_passes *m, enum dtype kv,
                        const struct plan_options *opt, struct error *err)
{
	struct key_set kernels = { 0 };
	struct key program;
	bool ok = add_plan(&kernels, m, kv, 1, PLAN_LAST_LOGITS, opt, false, err) &&
	          (kernels.n > PROGRAM_KERNELS_MAX ||
	           (program_key(&program, kernels.key, kernels.n, err) &&
	            (set_add(set, &program) || error_set(err, ERROR_MEMORY, "no memory for a list of programs"))));

	free(kernels.key);
	free(kernels.slot);
	return ok;
}

bool key_list_programs(const struct model_spec *spec, const struct key_list_options *opt, struct key **keys, size_t *n,
                       struct error *err)
{
	struct key_set set = { 0 };
	struct key_list_passes m;
	bool ok = true;

	*keys = NULL;
	*n = 0;
	if (!opt->target->backend || !opt->target->backend->program || spec->encodes)
		return true;
	if (!sample_make(&m, spec, err))
		return false;
	for (unsigned way = 0; ok && way < 4 * KV_TYPES; way++) {
		unsigned f32 = way & 1, bounded = way >> 1 & 1, kv = way >> 2;
		const struct plan_options po = { .target = opt->target,
			                         .dataflow = opt->dataflow,
			                         .f32_activations = f32,
			                         .bounded = bounded,
			                         .context = spec->latent.rank ? PLAN_WHOLE : PLAN_PARTS };
		if ((opt->numerics ? opt->numerics : KEY_LIST_EXACT) >> bounded & 1 && opt->activations >> f32 & 1 &&
		    opt->kv >> kv & 1)
			ok = add_program(&set, &m, kv_types[kv], &po, err);
	}
	sample_free(&m);
	free(set.slot);
	if (!ok)
		free(set.key);
	*keys = ok ? set.key : NULL;
	*n = ok ? set.n : 0;
	return ok;
}
