/* runtime/device/cuda/cuda_memory.c - the memory of NVIDIA cards, and what the host shares. See cuda.h.
 *
 * Weights, activations and the KV cache are the cards'; what the host shares lies in its own memory, where the cards
 * reach it.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/cuda.h"

static struct cuda *cuda_of(struct device *d) { return (struct cuda *)d; }

static const char *const memory_names[] = {
	[DEVICE_WEIGHTS] = "the packed weights", [DEVICE_VECTORS] = "norms and biases",
	[DEVICE_CACHE] = "the KV cache",         [DEVICE_BUFFERS] = "the activations of a session",
	[DEVICE_SHARED] = "ids and logits",      [DEVICE_ARRAYS] = "the arrays of a kernel"
};

static void *alloc_shared(struct cuda *d, size_t bytes, struct error *err)
{
	struct cuda_region *r = calloc(1, sizeof *r);

	if (!r) {
		error_set(err, ERROR_MEMORY, "no memory for a card's list of its own");
		return NULL;
	}
	int result = d->api->host_alloc(&r->p, bytes, CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED);
	if (result) {
		cuda_failed(d, result, "allocating memory that the host shares", err);
		free(r);
		return NULL;
	}
	memset(r->p, 0, bytes);
	r->bytes = bytes;
	pthread_mutex_lock(&d->lock);
	r->next = d->shared;
	d->shared = r;
	pthread_mutex_unlock(&d->lock);
	return r->p;
}

static void note_unsettled(struct cuda *d)
{
	pthread_mutex_lock(&d->lock);
	d->unsettled = true;
	pthread_mutex_unlock(&d->lock);
}

int cuda_finish_copies(struct cuda *d)
{
	int first = 0;

	for (unsigned card = d->cards; card-- > 0;) {
		int result = d->api->context_set(d->card[card].context);
		if (!result)
			result = d->api->stream_wait(NULL);
		first = first ? first : result;
	}
	return first;
}

/* Under the lock, so that nobody goes on while another waits for both. */
int cuda_settle(struct cuda *d)
{
	pthread_mutex_lock(&d->lock);
	int result = d->unsettled ? cuda_finish_copies(d) : 0;
	d->unsettled = d->unsettled && result;
	pthread_mutex_unlock(&d->lock);
	return result;
}

/* Of the card that has the least. */
static int memory_left(struct cuda *d, size_t *left, size_t *all)
{
	int result = 0;

	*left = SIZE_MAX;
	for (unsigned i = d->cards; i-- > 0 && !result;) {
		size_t mine = 0;
		result = d->api->context_set(d->card[i].context);
		if (!result)
			result = d->api->memory_info(&mine, all);
		*left = mine < *left ? mine : *left;
	}
	return result;
}

static void give_memory_back(struct cuda *d, uint64_t address)
{
	if (d->cards > 1)
		cuda_cards_release(d, address);
	else
		d->api->memory_free(address);
}

static int take_memory(struct cuda *d, size_t bytes, const struct cut_share *share, size_t n, uint64_t *address)
{
	if (d->cards > 1)
		return cuda_cards_alloc(d, bytes, share, n, address);
	int result = d->api->memory_alloc(address, bytes);
	if (!result && (result = d->api->set_bytes(*address, 0, bytes)))
		give_memory_back(d, *address);
	return result;
}

/* needed: of bytes, what a card must have. */
static void *alloc_on_card(struct cuda *d, size_t bytes, uint64_t needed, const struct cut_share *share, size_t n,
                           enum device_memory what, struct error *err)
{
	size_t left = 0, all = 0;
	uint64_t address = 0;
	int result = memory_left(d, &left, &all);

	if (result) {
		cuda_failed(d, result, "asking for free memory", err);
		return NULL;
	}
	if (needed <= left) {
		result = take_memory(d, bytes, share, n, &address);
		note_unsettled(d);
	}
	if (needed > left || result == CUDA_OUT_OF_MEMORY)
		error_set(err, ERROR_MEMORY, "%s need%s %.1f MiB, and %s has %.1f MiB free of %.1f", memory_names[what],
		          what == DEVICE_CACHE ? "s" : "", (double)needed / 0x1p20, d->name, (double)left / 0x1p20,
		          (double)all / 0x1p20);
	else if (result)
		cuda_failed(d, result, "allocating memory", err);
	else
		return (void *)(uintptr_t)address;
	return NULL;
}

static void *cuda_alloc(struct device *device, size_t bytes, enum device_memory what, struct error *err)
{
	struct cuda *d = cuda_of(device);

	if (!cuda_enter(d, err))
		return NULL;
	return what == DEVICE_SHARED ? alloc_shared(d, bytes, err) : alloc_on_card(d, bytes, bytes, NULL, 0, what, err);
}

static uint64_t cuda_share_bytes(struct device *device, size_t bytes, const struct cut_share *share, size_t n)
{
	return cuda_cards_bytes(cuda_of(device), bytes, share, n);
}

static void *cuda_alloc_shares(struct device *device, size_t bytes, const struct cut_share *share, size_t n,
                               struct error *err)
{
	struct cuda *d = cuda_of(device);

	return alloc_on_card(d, bytes, cuda_cards_bytes(d, bytes, share, n), share, n, DEVICE_WEIGHTS, err);
}

static bool cuda_available(struct device *device, uint64_t *bytes)
{
	struct cuda *d = cuda_of(device);
	size_t left = 0, all = 0;

	if (memory_left(d, &left, &all))
		return false;
	*bytes = left;
	return true;
}

size_t cuda_shared_bytes(struct cuda *d, const void *p)
{
	size_t bytes = 0;

	pthread_mutex_lock(&d->lock);
	for (const struct cuda_region *r = d->shared; r && !bytes; r = r->next)
		if ((uintptr_t)p - (uintptr_t)r->p < r->bytes)
			bytes = r->bytes - (size_t)((uintptr_t)p - (uintptr_t)r->p);
	pthread_mutex_unlock(&d->lock);
	return bytes;
}

/* Takes it out of the list of what the host shares. False: it was not there. */
static bool was_shared(struct cuda *d, const void *p)
{
	struct cuda_region *gone = NULL;

	pthread_mutex_lock(&d->lock);
	for (struct cuda_region **at = &d->shared; *at && !gone; at = gone ? at : &(*at)->next)
		if ((*at)->p == p) {
			gone = *at;
			*at = gone->next;
		}
	pthread_mutex_unlock(&d->lock);
	free(gone);
	return gone != NULL;
}

static void cuda_release(struct device *device, void *p, size_t bytes)
{
	struct cuda *d = cuda_of(device);

	if (!p)
		return;
	cuda_enter(d, NULL); /* and if not: what can be given back is */
	if (was_shared(d, p))
		d->api->host_free(p);
	else
		give_memory_back(d, (uint64_t)(uintptr_t)p);
}

static bool cuda_upload(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	struct cuda *d = cuda_of(device);
	const uint64_t address = (uint64_t)(uintptr_t)to;

	if (!bytes)
		return true;
	if (!cuda_enter(d, err))
		return false;
	int result = d->cards > 1 ? cuda_cards_copy_to(d, address, from, bytes) : d->api->copy_to(address, from, bytes);
	note_unsettled(d);
	return !result || cuda_failed(d, result, "copying to the card", err);
}

static bool cuda_upload_addresses(struct device *device, void *to, uint8_t *const from[], size_t n, struct error *err)
{
	struct cuda *d = cuda_of(device);
	uint64_t *there = malloc(n * sizeof *there);
	bool ok = there || error_set(err, ERROR_MEMORY, "no memory for a table of %zu addresses", n);

	for (unsigned i = d->cards; ok && i-- > 0;) {
		for (size_t k = 0; k < n; k++)
			there[k] = cuda_on_card(d, i, (uint64_t)(uintptr_t)from[k]);
		ok = cuda_enter_card(d, i, err);
		int result =
			ok ? d->api->copy_to(cuda_on_card(d, i, (uint64_t)(uintptr_t)to), there, n * sizeof *there) : 0;
		ok = ok && (!result || cuda_failed(d, result, "copying to the card", err));
		note_unsettled(d);
	}
	free(there);
	return ok;
}

static bool cuda_read(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	struct cuda *d = cuda_of(device);
	const uint64_t address = (uint64_t)(uintptr_t)from;

	if (!bytes)
		return true;
	if (!cuda_enter(d, err))
		return false;
	int result = d->cards > 1 ? cuda_cards_copy_from(d, to, address, bytes) : d->api->copy_from(to, address, bytes);
	return !result || cuda_failed(d, result, "copying from the card", err);
}

void cuda_set_memory(struct cuda *d)
{
	d->device.alloc = cuda_alloc;
	d->device.release = cuda_release;
	d->device.upload = cuda_upload;
	d->device.read = cuda_read;
	d->device.available = cuda_available;
	d->device.alive = cuda_alive;
	if (d->cards == 1)
		return;
	d->device.alloc_shares = cuda_alloc_shares;
	d->device.share_bytes = cuda_share_bytes;
	d->device.upload_addresses = cuda_upload_addresses;
}
