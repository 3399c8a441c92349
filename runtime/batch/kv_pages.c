#include "runtime/batch/kv_pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "runtime/session/session_memory.h"

/* Small pages come several at a time. */
enum { SLAB_BYTES = 1 << 20, SLAB_PAGES_MAX = 64, BUCKETS_FIRST = 256 };

void kv_pages_open(struct kv_pages *p, struct device *d, uint64_t page_bytes, uint64_t budget)
{
	*p = (struct kv_pages){ .device = d, .page_bytes = page_bytes, .budget = budget };
}

/* ---- slabs */

static void close_slab(struct kv_pages *p, struct kv_slab *s)
{
	p->slab[s->number] = p->slab[--p->slabs];
	p->slab[s->number]->number = s->number;
	if (s->base)
		p->device->release(p->device, s->base, s->bytes);
	free(s);
}

void kv_pages_close(struct kv_pages *p)
{
	while (p->slabs)
		close_slab(p, p->slab[p->slabs - 1]);
	free(p->slab);
	free(p->bucket);
	*p = (struct kv_pages){ 0 };
}

static uint32_t pages_of_slab(const struct kv_pages *p)
{
	uint64_t n = p->page_bytes ? SLAB_BYTES / p->page_bytes : SLAB_PAGES_MAX;

	return n < 1 ? 1 : n > SLAB_PAGES_MAX ? SLAB_PAGES_MAX : (uint32_t)n;
}

/* n pages at once. */
static struct kv_slab *open_slab(struct kv_pages *p, uint32_t n, struct error *err)
{
	void *all = p->slab;
	bool ok = array_grow(&all, &p->slab_capacity, p->slabs + 1, sizeof *p->slab);
	struct kv_slab *s = ok ? calloc(1, sizeof *s + n * sizeof *s->page) : NULL;

	p->slab = all;
	if (!s) {
		error_set(err, ERROR_MEMORY, "no memory for the list of pages of the KV cache");
		return NULL;
	}
	s->bytes = n * p->page_bytes + SESSION_PAGE_SLACK;
	if (p->page_bytes && !(s->base = p->device->alloc(p->device, s->bytes, DEVICE_CACHE, err))) {
		free(s);
		return NULL;
	}
	for (uint32_t i = n; i-- > 0; s->free = &s->page[i]) {
		s->page[i].at = s->base ? s->base + i * p->page_bytes : NULL;
		s->page[i].slab = s;
		s->page[i].next = s->free;
	}
	s->number = p->slabs;
	p->slab[p->slabs++] = s;
	return s;
}

static struct kv_slab *slab_with_room(struct kv_pages *p, struct error *err)
{
	for (size_t i = p->slabs; i-- > 0;)
		if (p->slab[i]->free)
			return p->slab[i];
	/* Where there is no room for many at once, there may be for fewer. */
	for (uint32_t n = pages_of_slab(p); n > 1; n /= 2) {
		struct error ignored = { 0 };
		struct kv_slab *s = open_slab(p, n, &ignored);
		if (s || ignored.code != ERROR_MEMORY)
			return s ? s : open_slab(p, n, err);
	}
	return open_slab(p, 1, err);
}

/* ---- holders */

struct kv_page *kv_pages_take(struct kv_pages *p, struct error *err)
{
	if (p->used + p->page_bytes > p->budget)
		return NULL;
	struct kv_slab *s = slab_with_room(p, err);
	if (!s)
		return NULL;
	struct kv_page *page = s->free;
	s->free = page->next;
	s->used++;
	p->used += p->page_bytes;
	p->held++;
	page->holders = 1;
	page->remembering = 0;
	page->number = 0;
	return page;
}

/* What a page counts as, before and after its holders change. */
static void count(struct kv_pages *p, const struct kv_page *page, size_t one)
{
	p->remembered += page->holders && page->holders == page->remembering ? one : 0;
	p->shared += page->holders > 1 ? one : 0;
}

static void change(struct kv_pages *p, struct kv_page *page, enum kv_hold how, uint32_t by)
{
	count(p, page, (size_t)-1);
	page->holders += by;
	page->remembering += how == KV_REMEMBERS ? by : 0;
	count(p, page, 1);
}

void kv_pages_hold(struct kv_pages *p, struct kv_page *page, enum kv_hold how) { change(p, page, how, 1); }

void kv_pages_drop(struct kv_pages *p, struct kv_page *page, enum kv_hold how)
{
	struct kv_slab *s = page->slab;

	change(p, page, how, (uint32_t)-1);
	if (page->holders)
		return;
	kv_pages_hide(p, page);
	page->next = s->free;
	s->free = page;
	p->used -= p->page_bytes;
	p->held--;
	if (--s->used == 0)
		close_slab(p, s);
}

bool kv_pages_reserve(struct kv_pages *p, uint64_t bytes)
{
	if (p->used + bytes > p->budget)
		return false;
	p->used += bytes;
	return true;
}

void kv_pages_give_back(struct kv_pages *p, uint64_t bytes) { p->used -= bytes; }

uint64_t kv_pages_available(const struct kv_pages *p, uint64_t reserved)
{
	uint64_t room = p->budget + p->remembered * p->page_bytes + reserved;

	return room > p->used ? room - p->used : 0;
}

/* ---- published pages */

static size_t bucket_of(const struct kv_pages *p, uint64_t parent, const int32_t *ids)
{
	uint64_t h = parent * 0x9e3779b97f4a7c15u + 1;

	for (unsigned i = 0; i < NUMERICS_CHUNK; i++) {
		h = (h ^ (uint32_t)ids[i]) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	return h & (p->buckets - 1);
}

struct kv_page *kv_pages_find(const struct kv_pages *p, uint64_t parent, const int32_t *ids)
{
	struct kv_page *page = p->buckets ? p->bucket[bucket_of(p, parent, ids)] : NULL;

	while (page && (page->parent != parent || memcmp(page->ids, ids, sizeof page->ids) != 0))
		page = page->next;
	return page;
}

static void put(struct kv_pages *p, struct kv_page *page)
{
	struct kv_page **at = &p->bucket[bucket_of(p, page->parent, page->ids)];

	page->next = *at;
	*at = page;
}

/* As many buckets as pages. False: there are none, and nothing is found. */
static bool make_buckets(struct kv_pages *p)
{
	if (p->published < p->buckets)
		return true;
	size_t n = p->buckets;
	struct kv_page **old = p->bucket, **more = calloc(n ? 2 * n : BUCKETS_FIRST, sizeof *more);
	if (!more)
		return n > 0;
	p->bucket = more;
	p->buckets = n ? 2 * n : BUCKETS_FIRST;
	for (size_t i = 0; i < n; i++)
		for (struct kv_page *page = old[i], *next; page; page = next) {
			next = page->next;
			put(p, page);
		}
	free(old);
	return true;
}

struct kv_page *kv_pages_publish(struct kv_pages *p, struct kv_page *page, uint64_t parent, const int32_t *ids)
{
	struct kv_page *like = kv_pages_find(p, parent, ids);

	if (like || page->number || !make_buckets(p))
		return like ? like : page;
	page->number = ++p->last_number;
	page->parent = parent;
	memcpy(page->ids, ids, sizeof page->ids);
	put(p, page);
	p->published++;
	return page;
}

void kv_pages_hide(struct kv_pages *p, struct kv_page *page)
{
	if (!page->number)
		return;
	struct kv_page **at = &p->bucket[bucket_of(p, page->parent, page->ids)];
	while (*at != page)
		at = &(*at)->next;
	*at = page->next;
	page->number = 0;
	p->published--;
}
