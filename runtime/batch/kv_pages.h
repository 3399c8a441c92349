/* runtime/batch/kv_pages.h - the pages of the KV cache that the sequences of a batch have, some of them several.
 *
 * Owns: how much memory all of them may take, who has a page, and the index of full pages by their tokens. A page is
 * 128 positions of one sequence, as NUMERICS_CHUNK is. It has holders: those that use it, and those that only remember
 * it, so that it can be had when memory is wanted. A full page whose tokens are known is published: it is then found by
 * the page before it and its tokens, which are compared whole, and nobody writes it any more. Only who is the one
 * holder of a page that is not published writes it. A pool is of one model and one type of cache, so that neither is
 * part of what is compared.
 */
#ifndef RUNTIME_KV_PAGES_H
#define RUNTIME_KV_PAGES_H

#include "kernels-templates/numerics.h"
#include "runtime/device/device.h"

struct kv_slab;

struct kv_page {
	uint8_t *at;
	uint32_t holders, remembering; /* remembering: of the holders */
	uint64_t number, parent; /* number: of a published page, never given twice; parent: of first pages 0, or the key
	                            of the adapters they were computed with, which is no number */
	int32_t ids[NUMERICS_CHUNK];
	struct kv_page *next; /* of the same bucket, or of those that are free */
	struct kv_slab *slab;
};

/* Memory of some neighbouring pages, which is given back when none of them is held. */
struct kv_slab {
	uint8_t *base;
	size_t bytes, number;
	uint32_t used;
	struct kv_page *free;
	struct kv_page page[];
};

struct kv_pages {
	struct device *device;
	uint64_t page_bytes, budget, used; /* used: by pages that are held, and reserved */
	size_t held, remembered, shared;   /* pages; those that are only remembered; those with several holders */
	struct kv_slab **slab;
	size_t slabs, slab_capacity;
	struct kv_page **bucket;
	size_t buckets, published;
	uint64_t last_number;
};

enum kv_hold { KV_USES, KV_REMEMBERS };

void kv_pages_open(struct kv_pages *p, struct device *d, uint64_t page_bytes, uint64_t budget);
/* When nobody holds any. */
void kv_pages_close(struct kv_pages *p);

/* A page with one holder, which uses it. NULL: err, or with err->code 0 there is no room. */
struct kv_page *kv_pages_take(struct kv_pages *p, struct error *err);
/* One holder more, and one less, by which a page may become free. */
void kv_pages_hold(struct kv_pages *p, struct kv_page *page, enum kv_hold how);
void kv_pages_drop(struct kv_pages *p, struct kv_page *page, enum kv_hold how);
/* Bytes that count as well; false: there is no room. */
bool kv_pages_reserve(struct kv_pages *p, uint64_t bytes);
void kv_pages_give_back(struct kv_pages *p, uint64_t bytes);
/* What may be had in all when everything that is only remembered goes; reserved: bytes that go with it. */
uint64_t kv_pages_available(const struct kv_pages *p, uint64_t reserved);

/* The published page of these tokens behind another one (0: first). NULL: there is none. */
struct kv_page *kv_pages_find(const struct kv_pages *p, uint64_t parent, const int32_t *ids);
/* Makes a full page known. There may be one like it, which is returned; else it is the page itself. */
struct kv_page *kv_pages_publish(struct kv_pages *p, struct kv_page *page, uint64_t parent, const int32_t *ids);
/* What is written to: nobody finds it any more, nor what is behind it. */
void kv_pages_hide(struct kv_pages *p, struct kv_page *page);

#endif
