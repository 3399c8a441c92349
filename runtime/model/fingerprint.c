/* runtime/model/fingerprint.c - see fingerprint.h. */
#include "runtime/model/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "jit/store/record.h"
#include "runtime/ranks/ranks.h"

enum { BLOCK = FINGERPRINT_BLOCK };

struct reading {
	struct device *device;
	const uint8_t *from;
	uint64_t bytes;
	uint64_t *sum; /* of each block */
	_Atomic uint64_t next;
	atomic_flag failed; /* the first who fails writes err */
	struct error err;
};

static uint64_t blocks_in(uint64_t bytes) { return (bytes + BLOCK - 1) / BLOCK; }
static uint64_t blocks_of(const struct reading *r) { return blocks_in(r->bytes); }

static void read_failed(struct reading *r, const struct error *why)
{
	if (!atomic_flag_test_and_set(&r->failed))
		r->err = *why;
}

static void read_some(void *user, int worker, int workers)
{
	struct reading *r = user;
	bool in_place = r->device->facts.host_reaches;
	uint8_t *copy = in_place ? NULL : malloc(BLOCK);
	struct error err = { 0 };

	(void)worker, (void)workers;
	if (!in_place && !copy && !error_set(&err, ERROR_MEMORY, "no memory for %d bytes of weights", BLOCK))
		read_failed(r, &err);
	for (uint64_t i; err.code == ERROR_NONE && (i = atomic_fetch_add(&r->next, 1)) < blocks_of(r);) {
		uint64_t at = i * BLOCK, n = r->bytes - at < BLOCK ? r->bytes - at : BLOCK;
		if (in_place || r->device->read(r->device, copy, r->from + at, n, &err))
			r->sum[i] = record_checksum(in_place ? r->from + at : copy, n, i);
		else
			read_failed(r, &err);
	}
	free(copy);
}

/* Of memory of the device: the checksum of its blocks' checksums. */
static bool sum_memory(struct device *d, struct pool *pool, const void *from, uint64_t bytes, uint64_t *sum,
                       struct error *err)
{
	struct reading r = { .device = d, .from = from, .bytes = bytes, .failed = ATOMIC_FLAG_INIT };

	if (!(r.sum = calloc(blocks_of(&r) + 1, sizeof *r.sum)))
		return error_set(err, ERROR_MEMORY, "no memory for %llu checksums", (unsigned long long)blocks_of(&r));
	pool_run(pool, read_some, &r);
	*sum = record_checksum(r.sum, blocks_of(&r) * sizeof *r.sum, *sum);
	free(r.sum);
	return r.err.code == ERROR_NONE || error_set(err, r.err.code, "%s", r.err.text);
}

/* Those of 0 that are given, for their values alone look as if there were none. */
static uint64_t sum_zeros(const struct model_spec *s, uint64_t sum)
{
	const struct model_scale scales[] = { s->attention_scale, s->embed_scale, s->residual_scale, s->logit_scale,
		                              s->logit_cap,       s->score_cap,   s->router_scale };

	for (uint32_t i = 0; i < sizeof scales / sizeof *scales; i++)
		if (scales[i].given && scales[i].value == 0)
			sum = record_checksum(&i, sizeof i, sum);
	return sum;
}

static uint64_t sum_experts(const struct model_spec *s, uint64_t sum)
{
	const uint32_t experts[] = { s->experts,        s->experts_used,  s->expert_ffn,  s->shared_ffn,
		                     s->router_sigmoid, s->router_normed, s->dense_layers };
	sum = record_checksum(experts, sizeof experts, sum);
	sum = record_checksum(&s->router_scale.value, sizeof s->router_scale.value, sum);
	if (s->shared_scale.given)
		sum = record_checksum(&s->shared_scale.value, sizeof s->shared_scale.value, sum);
	if (s->expert_groups)
		sum = record_checksum((const uint32_t[]){ s->expert_groups, s->expert_groups_used }, 8, sum);
	if (s->router_near != 0)
		sum = record_checksum(&s->router_near, sizeof s->router_near, sum);
	if (s->router_share_eps)
		sum = record_checksum(&s->router_share_eps, sizeof s->router_share_eps, sum);
	return sum;
}

/* What Llama 4 has beyond others, where there is any of it. */
static uint64_t sum_chunks(const struct model_spec *s, uint64_t sum)
{
	const uint32_t all[] = { s->window_chunks, s->query_scale_still, s->query_scale_offset, s->experts_scaled };

	return all[0] || all[1] || all[3] ? record_checksum(all, sizeof all, sum) : sum;
}

/* What differs between layers. */
static uint64_t sum_layers(const struct model_spec *s, uint64_t sum)
{
	if (s->layer_heads)
		sum = record_checksum(s->layer_heads, s->layers * sizeof *s->layer_heads, sum);
	if (s->layer_sizes)
		sum = record_checksum(s->layer_sizes, s->layers * sizeof *s->layer_sizes, sum);
	return sum;
}

/* The numbers of a model beside its weights. */
static uint64_t sum_spec(const jit_model *m, uint64_t sum)
{
	const struct model_spec *s = &m->file.spec;
	const uint32_t numbers[] = { (uint32_t)s->form, s->layers, s->hidden,         s->ffn, s->heads, s->kv_heads,
		                     s->head_dim,       s->vocab,  s->sliding_window, s->tied };
	const float reals[] = {
		s->norm_eps,          s->attention_scale.value, s->embed_scale.value, s->residual_scale.value,
		s->logit_scale.value, s->logit_cap.value,       s->score_cap.value,   (float)s->query_scale
	};
	const uint32_t more[] = { s->norms_rotated, (uint32_t)s->act, s->query_scale_length, s->centred, s->parallel };

	sum = record_checksum(numbers, sizeof numbers, sum);
	sum = record_checksum(reals, sizeof reals, sum);
	sum = sum_zeros(s, record_checksum(more, sizeof more, sum));
	if (s->latent.rank)
		sum = record_checksum(&s->latent, sizeof s->latent, sum);
	if (s->encodes) {
		const uint32_t encoder[] = { s->positions_from, s->token_types, s->buckets };
		sum = record_checksum(encoder, sizeof encoder, sum);
		sum = record_checksum(&s->alibi, sizeof s->alibi, sum);
	} else if (s->alibi != 0)
		sum = record_checksum(&s->alibi, sizeof s->alibi, sum);
	if (s->attends_beside || s->scan_norm)
		sum = record_checksum((const uint32_t[]){ s->attends_beside, s->scan_norm }, 8, sum);
#define X(name) \
	if (s->factors.name != 0) \
		sum = record_checksum(&s->factors.name, sizeof s->factors.name, sum);
	MODEL_FACTORS(X)
#undef X
	sum = sum_chunks(s, sum);
	if (s->head_weights)
		sum = record_checksum(&s->head_weights, sizeof s->head_weights, sum);
	if (s->head_eps != 0)
		sum = record_checksum(&s->head_eps, sizeof s->head_eps, sum);
	if (s->layer_rotation)
		sum = record_checksum(s->layer_rotation, s->layers, sum);
	if (s->layer_mixer) {
		const struct model_recurrent *r = &s->recurrent;
#define X(type, name) r->name,
		const uint32_t sizes[] = { MODEL_RECURRENT(X) };
#undef X
		sum = record_checksum(s->layer_mixer, s->layers, sum);
		sum = record_checksum(sizes, sizeof sizes, sum);
#define X(type, name) \
	if (r->name != 0) \
		sum = record_checksum(&r->name, sizeof r->name, sum);
		MODEL_RECURRENT_MORE(X)
#undef X
	}
	sum = sum_layers(s, sum);
	sum = s->experts ? sum_experts(s, sum) : sum;
	for (uint32_t layer = 0; layer < s->layers; layer++) {
		uint32_t types[MATRIX_SLOTS + 1] = { plan_layer_slides(s, layer) };
		for (int i = 0; i < MATRIX_SLOTS; i++)
			types[i + 1] = (uint32_t)m->weights.layer[layer].matrix[i].type;
		sum = record_checksum(types, sizeof types, sum);
	}
	return sum;
}

/* The layers behind pooling: their weights are in no arena. */
static uint64_t sum_dense(const struct model *m, uint64_t sum)
{
	for (uint32_t i = 0; i < m->n_dense; i++) {
		const struct model_dense *d = &m->dense[i];
		const uint32_t numbers[] = { d->in, d->out, (uint32_t)d->act, d->biased };
		sum = record_checksum(numbers, sizeof numbers, sum);
		sum = record_checksum(d->weight, (size_t)d->in * d->out * sizeof *d->weight, sum);
		if (d->biased)
			sum = record_checksum(d->bias, d->out * sizeof *d->bias, sum);
	}
	return sum;
}

/* Of the weights, as several ranks have them together. */
static bool sum_ranks(const jit_model *m, uint64_t *sum, struct error *err)
{
	const uint64_t matrices = blocks_in(m->weights.packed_bytes), vectors = blocks_in(m->weights.vectors_bytes);
	uint64_t *all = NULL;

	ranks_begin(m->ranks);
	const bool ok = ranks_tell(m->ranks, &(struct ranks_command){ .what = RANKS_FINGERPRINT }, NULL, err) &&
	                fingerprint_blocks(m, &all, err);
	ranks_end(m->ranks);
	if (ok) {
		*sum = record_checksum(all, matrices * sizeof *all, *sum);
		*sum = record_checksum(all + matrices, vectors * sizeof *all, *sum);
	}
	free(all);
	return ok;
}

bool model_fingerprint_follow(const jit_model *m, struct error *err)
{
	uint64_t *none;

	return fingerprint_blocks(m, &none, err);
}

bool model_fingerprint(jit_model *m, struct pool *pool, uint64_t *out, struct error *err)
{
	const struct weights *w = &m->weights;
	uint64_t sum = sum_spec(m, weight_layout_of(m->target));

	*out = atomic_load(&m->fingerprint);
	if (*out)
		return true;
	/* Of a packed model each rank has all. */
	if (m->ranks && !m->packed ? !sum_ranks(m, &sum, err)
	                           : !sum_memory(w->device, pool, w->arena, w->packed_bytes, &sum, err) ||
	                                     !sum_memory(w->device, pool, w->vectors, w->vectors_bytes, &sum, err))
		return false;
	sum = sum_dense(&m->file, sum);
	*out = sum ? sum : 1;
	atomic_store(&m->fingerprint, *out);
	return true;
}
