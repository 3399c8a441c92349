/* runtime/device/amd/amd_memory.c - memory of a card, and what is copied to and from it. See amd.h.
 *
 * The host reaches all of it where the BAR is large, or the card has no memory of its own. There it writes in place,
 * and makes sure before the next launch that the card sees it. Else copies go through a buffer in the host's memory,
 * many at a time, and a kernel carries them over. What a launch wrote into VRAM is always read that way: reading it in
 * place would be slow, and may see what was there before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jit/rdna/copy.h"
#include "runtime/device/amd/amd.h"
#include "runtime/host/system.h"

enum { STAGING_BYTES = 16 << 20, ROOM_FOR_CODE = 16 << 20, COPY_GROUPS_A_UNIT = 4, MAX_VECTORS = RDNA_COPY_MAX };
#define COPY_BYTES_A_SECOND 1e9

static struct amd *amd_of(struct device *d) { return (struct amd *)d; }

/* ---- packets that copy */

static void put_part(struct amd *d, uint64_t to, uint64_t from, uint64_t n, bool vectors, bool last)
{
	uint64_t groups = (n + RDNA_COPY_ITEMS - 1) / RDNA_COPY_ITEMS, max = d->card.units * COPY_GROUPS_A_UNIT;
	struct rdna_copy_args *a = amd_queue_kernarg(d);

	groups = groups < max ? groups : max;
	*a = (struct rdna_copy_args){ to, from, (uint32_t)n, (uint32_t)groups * RDNA_COPY_ITEMS };
	amd_queue_put(d, vectors ? &d->copy_vectors : &d->copy_bytes, (uint32_t)groups, last);
}

/* At most 2^27 vectors of 16 bytes; what is not aligned goes byte by byte, in a packet more. */
void amd_put_copy(struct amd *d, uint64_t to, uint64_t from, uint64_t bytes, bool last)
{
	bool aligned = !((to | from) & 15);
	uint64_t max = aligned ? bytes & ~UINT64_C(15) : 0;

	if (max)
		put_part(d, to, from, max / 16, true, last && max == bytes);
	if (max < bytes)
		put_part(d, to + max, from + max, bytes - max, false, last);
}

static bool run_copies(struct amd *d, uint64_t bytes, struct error *err)
{
	const struct amd_launch l = { .seconds = (double)bytes / COPY_BYTES_A_SECOND };

	return amd_wait(d, &l, err);
}

/* What waits in the staging buffer goes where it belongs. */
static bool send(struct amd *d, struct error *err)
{
	struct amd_staging *s = &d->staging;

	if (!s->n)
		return true;
	if (!amd_is_alive(d, err) || !amd_lock_take(d, NULL, err))
		return false;
	for (size_t i = 0; i < s->n; i++)
		amd_put_copy(d, s->waiting[i].to, s->waiting[i].from, s->waiting[i].bytes, i + 1 == s->n);
	bool ok = run_copies(d, s->used, err);
	amd_lock_give(d);
	s->n = s->used = 0;
	return ok;
}

/* Into the staging buffer, at an address that is aligned as its target is. */
static bool stage(struct amd *d, uint64_t to, const uint8_t *from, size_t bytes, struct error *err)
{
	struct amd_staging *s = &d->staging;

	while (bytes) {
		size_t at = (s->used + 15) / 16 * 16 + to % 16;
		size_t head = to % 16 ? 16 - to % 16 : 0;
		if (s->n == AMD_COPIES || at >= STAGING_BYTES) {
			if (!send(d, err))
				return false;
			continue;
		}
		size_t room = STAGING_BYTES - at, n = head && head < bytes ? head : bytes < room ? bytes : room;
		memcpy((uint8_t *)s->buffer.address + at, from, n);
		s->waiting[s->n++] = (struct amd_copy){ to, (uint64_t)(uintptr_t)s->buffer.address + at, n };
		s->used = at + n;
		to += n;
		from += n;
		bytes -= n;
	}
	return true;
}

void amd_free(struct amd *d, struct kfd_buffer *b)
{
	if (d->dead.code)
		d->staging.n = d->staging.used = 0;
	send(d, NULL);
	if (!d->silent)
		kfd_free(&d->kfd, b);
}

bool amd_write(struct amd *d, void *to, const void *from, size_t bytes, struct error *err)
{
	if (!d->in_place)
		return stage(d, (uint64_t)(uintptr_t)to, from, bytes, err);
	memcpy(to, from, bytes);
	return true;
}

bool amd_flush(struct amd *d, struct error *err)
{
	volatile uint32_t *flush = d->flush.address;

	if (flush) {
		__sync_synchronize();
		flush[0] = 1;
		(void)flush[0]; /* a read flushes the write */
	}
	return send(d, err);
}

/* ---- buffers */

/* A card's memory holds what others left there. Zeroes come from the host once, then from what is zero already. */
static bool clear(struct amd *d, const struct kfd_buffer *b, struct error *err)
{
	uint64_t at = (uint64_t)(uintptr_t)b->address, done = b->bytes < STAGING_BYTES ? b->bytes : STAGING_BYTES;

	if (!amd_flush(d, err) || !amd_is_alive(d, err) || !amd_lock_take(d, NULL, err))
		return false;
	memset(d->staging.buffer.address, 0, done);
	amd_put_copy(d, at, (uint64_t)(uintptr_t)d->staging.buffer.address, done, done == b->bytes);
	while (done < b->bytes) {
		uint64_t max = done < MAX_VECTORS * UINT64_C(16) ? done : MAX_VECTORS * UINT64_C(16),
			 n = b->bytes - done < max ? b->bytes - done : max;
		amd_put_copy(d, at + done, at, n, done + n == b->bytes);
		done += n;
	}
	bool ok = run_copies(d, b->bytes, err);
	amd_lock_give(d);
	return ok;
}

/* Asked for first, so that what does not fit is refused with its size. */
static bool available_bytes(struct amd *d, uint64_t *bytes, struct error *err)
{
	if (!d->card.integrated)
		return kfd_available(&d->kfd, bytes, err);
	*bytes = system_available_memory();
	return true;
}

/* The programs of passes are made when they are wanted, and some room is kept for them. */
bool amd_available(struct device *device, uint64_t *bytes)
{
	if (!available_bytes(amd_of(device), bytes, NULL))
		return false;
	*bytes -= *bytes < ROOM_FOR_CODE ? *bytes : ROOM_FOR_CODE;
	return true;
}

static bool fits(struct amd *d, size_t bytes, const char *what, struct error *err)
{
	uint64_t available;

	if (!available_bytes(d, &available, err))
		return false;
	return bytes <= available ||
	       error_set(err, ERROR_MEMORY, "%s: %zu bytes of the memory of %s are needed and %llu are free", what,
	                 bytes, d->card.name, (unsigned long long)available);
}

bool amd_vram(struct amd *d, struct kfd_buffer *out, size_t bytes, uint32_t more_flags, const char *what,
              struct error *err)
{
	const uint32_t flags = KFD_MEMORY_WRITABLE | KFD_MEMORY_NO_SUBSTITUTE | more_flags;

	if (!amd_is_alive(d, err) || !fits(d, bytes, what, err))
		return false;
	if (d->card.integrated)
		return kfd_alloc(&d->kfd, out, bytes, flags | KFD_MEMORY_GTT, true, what, err) &&
		       memset(out->address, 0, out->bytes);
	return kfd_alloc(&d->kfd, out, bytes, flags | KFD_MEMORY_VRAM | (d->in_place ? KFD_MEMORY_PUBLIC : 0),
	                 d->in_place, what, err) &&
	       clear(d, out, err);
}

bool amd_host_memory(struct amd *d, struct kfd_buffer *out, size_t bytes, uint32_t more_flags, const char *what,
                     struct error *err)
{
	return kfd_alloc(&d->kfd, out, bytes,
	                 KFD_MEMORY_GTT | KFD_MEMORY_WRITABLE | KFD_MEMORY_NO_SUBSTITUTE | more_flags, true, what,
	                 err) &&
	       memset(out->address, 0, out->bytes);
}

const struct amd_region *amd_region_near(const struct amd *d, uint64_t address, bool *inside)
{
	const struct amd_region *best = NULL;
	uint64_t min = UINT64_MAX;

	for (const struct amd_region *r = d->regions; r; r = r->next) {
		uint64_t from = (uint64_t)(uintptr_t)r->buffer.address, to = from + r->buffer.bytes,
			 away = address < from  ? from - address
		                : address >= to ? address - to + 1
		                                : 0;
		if (away < min) {
			min = away;
			best = r;
		}
	}
	*inside = min == 0;
	return best;
}

/* ---- what device.h asks */

static void *alloc_region(struct amd *d, size_t bytes, enum device_memory what, struct error *err)
{
	static const char *const names[] = {
		[DEVICE_WEIGHTS] = "the weights",   [DEVICE_VECTORS] = "norms and biases",
		[DEVICE_CACHE] = "the KV cache",    [DEVICE_BUFFERS] = "the activations",
		[DEVICE_SHARED] = "ids and logits", [DEVICE_ARRAYS] = "the arrays of a kernel"
	};
	struct amd_region *r = calloc(1, sizeof *r);

	if (!r) {
		error_set(err, ERROR_MEMORY, "no memory for a card's list of its own");
		return NULL;
	}
	r->name = names[what];
	bool ok = what == DEVICE_SHARED ? amd_host_memory(d, &r->buffer, bytes, 0, r->name, err)
	                                : amd_vram(d, &r->buffer, bytes, 0, r->name, err);
	if (!ok) {
		amd_free(d, &r->buffer);
		free(r);
		return NULL;
	}
	r->next = d->regions;
	d->regions = r;
	return r->buffer.address;
}

void *amd_alloc(struct device *device, size_t bytes, enum device_memory what, struct error *err)
{
	struct amd *d = amd_of(device);

	pthread_mutex_lock(&d->lock);
	void *p = alloc_region(d, bytes, what, err);
	pthread_mutex_unlock(&d->lock);
	return p;
}

void amd_release(struct device *device, void *p, size_t bytes)
{
	struct amd *d = amd_of(device);

	pthread_mutex_lock(&d->lock);
	for (struct amd_region **at = &d->regions; p && *at; at = &(*at)->next)
		if ((*at)->buffer.address == p) {
			struct amd_region *gone = *at;
			*at = gone->next;
			amd_free(d, &gone->buffer);
			free(gone);
			break;
		}
	pthread_mutex_unlock(&d->lock);
}

bool amd_upload(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	struct amd *d = amd_of(device);

	if (d->in_place) {
		memcpy(to, from, bytes);
		return true;
	}
	pthread_mutex_lock(&d->lock);
	bool ok = amd_is_alive(d, err) && amd_write(d, to, from, bytes, err);
	pthread_mutex_unlock(&d->lock);
	return ok;
}

/* As much at a time as the staging buffer holds, placed there so that both are aligned alike. */
static bool fetch(struct amd *d, uint8_t *to, uint64_t from, size_t bytes, struct error *err)
{
	bool ok = amd_flush(d, err) && amd_is_alive(d, err) && amd_lock_take(d, NULL, err);

	if (!ok)
		return false;
	while (ok && bytes) {
		uint8_t *there = (uint8_t *)d->staging.buffer.address + from % 16;
		size_t head = from % 16 ? 16 - from % 16 : STAGING_BYTES - 16, n = bytes < head ? bytes : head;
		amd_put_copy(d, (uint64_t)(uintptr_t)there, from, n, true);
		if ((ok = run_copies(d, n, err)))
			memcpy(to, there, n);
		to += n;
		from += n;
		bytes -= n;
	}
	amd_lock_give(d);
	return ok;
}

bool amd_read(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	struct amd *d = amd_of(device);

	pthread_mutex_lock(&d->lock);
	bool ok = fetch(d, to, (uint64_t)(uintptr_t)from, bytes, err);
	pthread_mutex_unlock(&d->lock);
	return ok;
}

/* ---- opening and closing */

/* Writes into VRAM in place need the registers that flush them; where the driver does not hand them out, copies do. */
static void find_flush(struct amd *d)
{
	const struct amd_card *c = &d->card;

	if (c->integrated) {
		d->in_place = true;
		return;
	}
	d->in_place =
		c->visible_bytes >= c->vram_bytes && c->vram_bytes &&
		kfd_alloc(&d->kfd, &d->flush, 4096, KFD_MEMORY_MMIO_REMAP | KFD_MEMORY_WRITABLE | KFD_MEMORY_COHERENT,
	                  true, "the registers that flush", NULL);
}

static bool load_copies(struct amd *d, struct error *err)
{
	uint8_t *elf = NULL;
	size_t size;
	bool ok = rdna_copy_make(&elf, &size, d->card.target, err);

	ok = ok && amd_code_load(d, &d->copy_code, elf, size, err) &&
	     amd_code_find(&d->copy_code, elf, size, RDNA_COPY_VECTORS, &d->copy_vectors, err) &&
	     amd_code_find(&d->copy_code, elf, size, RDNA_COPY_BYTES, &d->copy_bytes, err);
	free(elf);
	return ok;
}

bool amd_memory_open(struct amd *d, struct error *err)
{
	find_flush(d);
	return amd_host_memory(d, &d->staging.buffer, STAGING_BYTES, 0, "copies on their way", err) &&
	       load_copies(d, err) && amd_vram(d, &d->sync, 4096, 0, "the counter of arrivals", err) &&
	       amd_host_memory(d, &d->mirror, 4096, 0, "what launches leave", err);
}

void amd_memory_close(struct amd *d)
{
	amd_free(d, &d->mirror);
	amd_free(d, &d->sync);
	amd_code_unload(d, &d->copy_code);
	amd_free(d, &d->staging.buffer);
	amd_free(d, &d->flush);
}
