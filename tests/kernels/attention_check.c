/* tests/kernels/attention_check.c - see attention_check.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/kernel_run.h"
#include "tests/kernels/plain_attention.h"
#include "tests/kernels/attention_check.h"

void open_scene(struct scene *c, struct shape s, uint64_t capacity)
{
	uint64_t chunk = s.kv_heads * plain_cache_row(s.type, s.dims) * 128 + 320; /* chunks need not touch */
	size_t bytes = (capacity + 127) / 128 * chunk;
	*c = (struct scene){ .s = s, .heads = s.kv_heads * s.group, .seed = s.dims + s.group };
	c->width = c->heads * s.dims;
	c->padded = (c->width + 31) / 32 * 32;
	c->cap = (s.dims / 16 + s.group + s.kv_heads) % 3 == 2 ? 2.5f : 0; /* a third of all shapes */
	if ((s.dims / 2 + s.group + 2 * s.kv_heads) % 2 == 0) {            /* of half of them */
		c->sinks = kernel_buffer(c->heads * sizeof *c->sinks, 0);
		for (unsigned i = 0; i < c->heads; i++)
			c->sinks[i] = i % 5 == 4 ? -1e30f : 4 * kernel_random(&c->seed);
	}
	if ((s.dims / 2 + 2 * s.group + s.kv_heads) % 3 == 0) { /* of a third */
		c->slopes = kernel_buffer(c->heads * sizeof *c->slopes, 0);
		for (unsigned i = 0; i < c->heads; i++)
			c->slopes[i] = (i % 2 ? 0.01f : 0.4f) * (1.5f + kernel_random(&c->seed));
	}
	c->cache = (struct plain_cache){
		kernel_buffer(bytes, 0xff),
		kernel_buffer(bytes, 0xff),
		s.type,
		s.kv_heads,
		s.dims,
		chunk,
		false,
		c->cap,
		c->sinks,
		(unsigned)((capacity + 127) / 128),
		c->slopes
	};
	c->octets = c->cache;
	if (template_kv_octets(&target_table[TARGET_GFX1100], s.type, s.dims))
		c->octets = (struct plain_cache){
			kernel_buffer(bytes, 0xff),
			kernel_buffer(bytes, 0xff),
			s.type,
			s.kv_heads,
			s.dims,
			chunk,
			true,
			c->cap,
			c->sinks,
			c->cache.pages,
			c->slopes
		};
}

void close_scene(struct scene *c)
{
	if (c->octets.octets) {
		free(c->octets.k);
		free(c->octets.v);
	}
	free(c->cache.k);
	free(c->cache.v);
	free(c->sinks);
	free(c->slopes);
}

void drop_slopes(struct scene *c)
{
	free(c->slopes);
	c->slopes = NULL;
	c->cache.slopes = c->octets.slopes = NULL;
}

void store_cache(const struct scene *c, unsigned head, uint64_t position, const float *key, const float *value)
{
	plain_store(&c->cache, head, position, key, value);
	plain_store(&c->octets, head, position, key, value);
}

void fill_columns(struct scene *c, uint64_t end)
{
	float k[512], v[512];
	for (; c->filled < end; c->filled++)
		for (unsigned h = 0; h < c->s.kv_heads; h++) {
			for (unsigned i = 0; i < c->s.dims; i++) {
				k[i] = kernel_random(&c->seed);
				v[i] = kernel_random(&c->seed);
			}
			store_cache(c, h, c->filled, k, v);
		}
}

void make_work(struct work *w, struct scene *c, unsigned columns, uint64_t pos0, uint64_t window)
{
	size_t bytes = (size_t)c->padded * columns * 4;
	*w = (struct work){ .columns = columns,
		            .pos0 = pos0,
		            .window = window,
		            .q = kernel_buffer(bytes, 0),
		            .want = kernel_buffer(bytes, 0) };
	fill_columns(c, pos0 + columns);
	for (unsigned i = 0; i < columns; i++)
		for (unsigned j = 0; j < c->width; j++)
			w->q[i * c->padded + j] = kernel_random(&c->seed) * 0.25f;
}

void make_work_both(struct work *w, struct scene *c, unsigned columns, uint64_t ahead, uint64_t window)
{
	make_work(w, c, columns, 0, window);
	w->pos0 = ahead;
	w->both = true;
}

static void expect_both(const struct work *w, const struct scene *c, unsigned i)
{
	const uint64_t last = i + w->pos0, end = w->columns - 1,
		       first = w->window && last + 1 > w->window ? last + 1 - w->window : 0;

	plain_attention_of(w->want + i * c->padded, w->q + i * c->padded, &c->cache, c->heads,
	                   &(struct plain_sight){ .first = first,
	                                          .last = last < end ? last : end,
	                                          .column = i,
	                                          .bias = w->bias,
	                                          .reach = w->reach });
}

void expect_work(const struct work *w, const struct scene *c)
{
	for (unsigned i = 0; i < w->columns && w->both; i++)
		expect_both(w, c, i);
	for (unsigned i = 0; i < w->columns && !w->both; i++)
		plain_attention(w->want + i * c->padded, w->q + i * c->padded, &c->cache, c->heads, w->pos0 + i,
		                c->period ? (w->pos0 + i) % c->period + 1 : w->window);
}

void drop_work(struct work *w)
{
	free(w->q);
	free(w->want);
}

struct key scene_key(const struct scene *c, bool window)
{
	return (struct key){ .kind = KEY_ATTENTION,
		             .heads = c->heads,
		             .kv_heads = c->s.kv_heads,
		             .head_dim = c->s.dims,
		             .k = window ? c->period : 0,
		             .tile_n = c->tile,
		             .kv = (uint8_t)(c->s.type + 1),
		             .flags = (window ? KEY_WINDOW : 0) | (c->cap != 0 ? KEY_CAP : 0) |
		                      (c->sinks ? KEY_SINKS : 0) | (c->slopes ? KEY_BIAS : 0) };
}

static size_t cache_bytes(const struct plain_cache *c) { return c->pages * c->chunk_bytes; }

struct plain_cache clone_cache(const struct plain_cache *c)
{
	struct plain_cache to = *c;

	to.k = kernel_buffer(cache_bytes(c), 0);
	to.v = kernel_buffer(cache_bytes(c), 0);
	memcpy(to.k, c->k, cache_bytes(c));
	memcpy(to.v, c->v, cache_bytes(c));
	return to;
}

void drop_cache(struct plain_cache *c)
{
	free(c->k);
	free(c->v);
}

bool same_caches(const struct plain_cache *a, const struct plain_cache *b)
{
	return memcmp(a->k, b->k, cache_bytes(b)) == 0 && memcmp(a->v, b->v, cache_bytes(b)) == 0;
}
