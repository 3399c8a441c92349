/* runtime/device/cuda.c - an NVIDIA card as a device: opening, memory, and which cards there are. See cuda.h. */
#include "runtime/device/cuda.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cuda *cuda_of(struct device *d) { return (struct cuda *)d; }

/* ---- what goes wrong */

bool cuda_failed(struct cuda *d, int result, const char *what, struct error *err)
{
	char text[200];

	if (result == CUDA_GIVEN_UP)
		return cuda_is_alive(d, err);
	return error_set(err, result == CUDA_OUT_OF_MEMORY ? ERROR_MEMORY : ERROR_DEVICE, "%s: %s failed: %s", d->name,
	                 what, cuda_result_text(d->api, result, text, sizeof text));
}

bool cuda_died(struct cuda *d, int result, const char *what, struct error *err)
{
	pthread_mutex_lock(&d->lock);
	if (result == CUDA_GIVEN_UP) {
		error_set(&d->dead, ERROR_DEVICE, "%s has worked on %s for %.1f seconds; the card is not used any more",
		          d->name, what, d->patience);
		d->api = cuda_nothing();
	} else {
		cuda_failed(d, result, what, &d->dead);
	}
	pthread_mutex_unlock(&d->lock);
	return cuda_failed(d, result, what, err);
}

bool cuda_is_alive(struct cuda *d, struct error *err)
{
	pthread_mutex_lock(&d->lock);
	const struct error dead = d->dead;
	pthread_mutex_unlock(&d->lock);
	return !dead.code || error_set(err, dead.code, "%s%s", dead.text,
	                               d->api == cuda_nothing() ? "" : "; nothing was tried after that");
}

bool cuda_enter_card(struct cuda *d, unsigned card, struct error *err)
{
	int result = d->api->context_set(d->card[card].context);

	return !result || cuda_failed(d, result, "using the card", err);
}

bool cuda_enter(struct cuda *d, struct error *err) { return cuda_enter_card(d, 0, err); }

/* ---- memory: weights, activations and the KV cache are the card's; what the host shares lies in its own memory, where
 * the card reaches it */

static const char *const memory_names[] = {
	[DEVICE_WEIGHTS] = "the packed weights",
	[DEVICE_VECTORS] = "norms and biases",
	[DEVICE_CACHE] = "the KV cache",
	[DEVICE_BUFFERS] = "the activations of a session",
	[DEVICE_SHARED] = "ids and logits"
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

static int take_memory(struct cuda *d, size_t bytes, uint64_t *address)
{
	if (d->cards > 1)
		return cuda_cards_alloc(d, bytes, address);
	int result = d->api->memory_alloc(address, bytes);
	return result ? result : d->api->set_bytes(*address, 0, bytes);
}

static void give_memory_back(struct cuda *d, uint64_t address)
{
	if (d->cards > 1)
		cuda_cards_release(d, address);
	else
		d->api->memory_free(address);
}

static void *cuda_alloc(struct device *device, size_t bytes, enum device_memory what, struct error *err)
{
	struct cuda *d = cuda_of(device);
	size_t left = 0, all = 0;
	uint64_t address = 0;

	if (!cuda_enter(d, err))
		return NULL;
	if (what == DEVICE_SHARED)
		return alloc_shared(d, bytes, err);
	int result = memory_left(d, &left, &all);
	if (result) {
		cuda_failed(d, result, "asking for free memory", err);
		return NULL;
	}
	if (bytes <= left)
		result = take_memory(d, bytes, &address);
	if (bytes > left || result == CUDA_OUT_OF_MEMORY) {
		error_set(err, ERROR_MEMORY, "%s need%s %.1f MiB, and %s has %.1f MiB free of %.1f", memory_names[what],
		          what == DEVICE_CACHE ? "s" : "", (double)bytes / 0x1p20, d->name, (double)left / 0x1p20,
		          (double)all / 0x1p20);
		return NULL;
	}
	if (!result)
		return (void *)(uintptr_t)address;
	if (address && d->cards == 1)
		give_memory_back(d, address);
	cuda_failed(d, result, "allocating memory", err);
	return NULL;
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

	for (unsigned i = d->cards; bytes && i-- > 0;) {
		if (!cuda_enter_card(d, i, err))
			return false;
		int result = d->api->copy_to(cuda_on_card(d, i, (uint64_t)(uintptr_t)to), from, bytes);
		if (result)
			return cuda_failed(d, result, "copying to the card", err);
	}
	return true;
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
	}
	free(there);
	return ok;
}

static bool cuda_read(struct device *device, void *to, const void *from, size_t bytes, struct error *err)
{
	struct cuda *d = cuda_of(device);

	if (!bytes)
		return true;
	if (!cuda_enter(d, err))
		return false;
	int result = d->api->copy_from(to, (uint64_t)(uintptr_t)from, bytes);
	return !result || cuda_failed(d, result, "copying from the card", err);
}

/* ---- opening and closing */

static void close_card(struct device *device)
{
	struct cuda *d = cuda_of(device);

	if (d->card[0].context) {
		cuda_enter(d, NULL);
		cuda_forget_kernels(d);
		cuda_cards_close(d);
	}
	for (unsigned i = 0; i < d->cards; i++)
		if (d->card[i].context)
			d->api->context_release(d->card[i].number);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* The best target whose text the card's driver takes; blocks of sm90's have so much shared memory, which some later
 * cards have not. Of several cards, the one of so many. */
enum { SHARED_90 = 227 << 10 };
static const struct target *target_of(uint32_t capability, int shared, unsigned cards)
{
	const struct target *t = capability >= 90 && shared >= SHARED_90 ? target_find("sm90")
	                         : capability >= 80                      ? target_find("sm80")
	                                                                 : NULL;
	char name[16];

	if (!t || cards < 2)
		return t;
	snprintf(name, sizeof name, "%sx%u", t->name, cards);
	return target_find(name);
}

/* Of a card; which: of the device's. */
static bool read_facts(struct cuda *d, unsigned which, int ordinal, struct error *err)
{
	const struct cuda_api *api = d->api;
	int n = 0, major = 0, minor = 0, units = 0, shared = 0, driver = 0;
	size_t bytes = 0;

	snprintf(d->name, sizeof d->name, "NVIDIA card %d", ordinal);
	int result = api->device_count(&n);
	if (result)
		return cuda_failed(d, result, "counting the cards", err);
	if (ordinal >= n)
		return error_set(err, ERROR_ARGUMENT, "device cuda:%d is unknown: there are %d NVIDIA cards", ordinal,
		                 n);
	result = api->device_get(&d->card[which].number, ordinal);
	if (!result)
		result = api->device_name(d->name, sizeof d->name, d->card[which].number);
	d->name[sizeof d->name - 1] = 0;
	if (!result)
		result = api->device_attribute(&major, CUDA_MAJOR, d->card[which].number);
	if (!result)
		result = api->device_attribute(&minor, CUDA_MINOR, d->card[which].number);
	if (!result)
		result = api->device_attribute(&units, CUDA_UNITS, d->card[which].number);
	if (!result)
		result = api->device_attribute(&shared, CUDA_SHARED_MOST, d->card[which].number);
	if (!result)
		result = api->device_memory(&bytes, d->card[which].number);
	if (!result)
		result = api->driver_version(&driver);
	d->capability = (uint32_t)(10 * major + minor);
	d->units = (uint32_t)units;
	d->driver = (uint32_t)driver;
	d->bytes = bytes;
	d->device.facts.target = target_of(d->capability, shared, d->cards);
	return !result || cuda_failed(d, result, "asking what the card is", err);
}

static bool open_context(struct cuda *d, unsigned which, struct error *err)
{
	if (!d->device.facts.target && d->cards > 1)
		return error_set(
			err, ERROR_DEVICE,
			"%u cards like %s, of compute capability %u.%u, cannot compute together: that needs 2, 4 "
			"or 8 of 9.0 or later",
			d->cards, d->name, d->capability / 10, d->capability % 10);
	if (!d->device.facts.target)
		return error_set(err, ERROR_DEVICE, "%s has compute capability %u.%u; cards from 8.0 on are supported",
		                 d->name, d->capability / 10, d->capability % 10);
	struct cuda_card *c = &d->card[which];
	int result = d->api->context_retain(&c->context, c->number);
	if (!result)
		return cuda_enter_card(d, which, err);
	c->context = NULL;
	if (result == CUDA_DEVICE_UNAVAILABLE)
		return error_set(err, ERROR_DEVICE,
		                 "%s is in use by another program that has it for itself alone (exclusive mode)",
		                 d->name);
	if (result == CUDA_OUT_OF_MEMORY)
		return error_set(err, ERROR_MEMORY, "%s has no memory left to begin with: other programs use it",
		                 d->name);
	return cuda_failed(d, result, "opening the card", err);
}

/* No pass takes that long; how long one takes is not predicted. */
#define USUAL_PATIENCE 10.0

/* Where the user does not say. */
static const char usual_launch[] = "beside";

static bool read_launch(enum cuda_launch *out, struct error *err)
{
	static const char *const names[] = {
		[CUDA_GRAPH] = "graph", [CUDA_BY_OP] = "op", [CUDA_BESIDE] = "beside", [CUDA_ONE] = "one"
	};
	const char *how = getenv("JITRUN_CUDA_LAUNCH");
	size_t i = 0;

	how = how && *how ? how : usual_launch;
	while (i < sizeof names / sizeof *names && strcmp(how, names[i]) != 0)
		i++;
	*out = (enum cuda_launch)i;
	return i < sizeof names / sizeof *names ||
	       error_set(err, ERROR_ARGUMENT, "JITRUN_CUDA_LAUNCH is \"%.32s\", expected graph, op, beside or one",
	                 how);
}

/* All cards, which must be alike. */
static bool open_all(struct cuda *d, const int ordinal[], struct error *err)
{
	struct cuda other = { .api = d->api, .cards = 1 };

	if (!read_facts(d, 0, ordinal[0], err) || !open_context(d, 0, err))
		return false;
	for (unsigned i = 1; i < d->cards; i++) {
		if (!read_facts(&other, 0, ordinal[i], err))
			return false;
		if (strcmp(other.name, d->name) != 0 || other.units != d->units || other.capability != d->capability)
			return error_set(err, ERROR_DEVICE,
			                 "card %d is %s and card %d %s; cards that compute together must be alike",
			                 ordinal[0], d->name, ordinal[i], other.name);
		d->card[i].number = other.card[0].number;
		if (!open_context(d, i, err))
			return false;
	}
	return d->cards == 1 || (cuda_enter(d, err) && cuda_cards_open(d, err));
}

struct device *cuda_open(const struct cuda_api *api, int ordinal, struct error *err)
{
	return cuda_open_cards(api, &ordinal, 1, err);
}

struct device *cuda_open_cards(const struct cuda_api *api, const int ordinal[], unsigned n, struct error *err)
{
	struct cuda *d = calloc(1, sizeof *d);

	if (!d) {
		error_set(err, ERROR_MEMORY, "no memory for a card");
		return NULL;
	}
	d->api = api;
	d->cards = n;
	d->device = (struct device){
		.facts = { .clock = DEVICE_CLOCK_CARD, .keeps_code = true, .overlaps = true },
		.alloc = cuda_alloc,
		.release = cuda_release,
		.upload = cuda_upload,
		.upload_addresses = cuda_upload_addresses,
		.read = cuda_read,
		.stream = cuda_stream,
		.available = cuda_available,
		.ready = cuda_ready,
		.close = close_card
	};
	pthread_mutex_init(&d->lock, NULL);
	if (device_patience(USUAL_PATIENCE, &d->patience, err) && read_launch(&d->launch, err) &&
	    open_all(d, ordinal, err)) {
		d->linker = (struct driver_linker){ .by = { d->capability, d->driver }, .link = cuda_link, .user = d };
		d->device.linker = &d->linker;
		d->device.facts.awaits = d->capability >= 90 && (d->launch == CUDA_BESIDE || d->launch == CUDA_ONE);
		return &d->device;
	}
	close_card(&d->device);
	return NULL;
}

/* "", "1", "0,1": none twice. Returns how many there are; 0: it is something else. */
static unsigned read_numbers(const char *text, int ordinal[CUDA_CARDS_MOST])
{
	unsigned n = 0;

	ordinal[0] = 0;
	for (const char *at = text; *text && n < CUDA_CARDS_MOST; at++) {
		char *end;
		long number = strtol(at, &end, 10);
		if (*at < '0' || *at > '9' || number >= 1024 || (*end && *end != ','))
			return 0;
		for (unsigned i = 0; i < n; i++)
			if (ordinal[i] == number)
				return 0;
		ordinal[n++] = (int)number;
		if (!*end)
			return n;
		at = end;
	}
	return *text ? 0 : 1;
}

static struct device *open_named(const char *which, const char *isa, struct error *err)
{
	int ordinal[CUDA_CARDS_MOST];
	const unsigned n = read_numbers(which, ordinal);

	if (isa)
		error_set(err, ERROR_ARGUMENT, "isa \"%.32s\": the device cuda has its card's instruction set", isa);
	else if (!n)
		error_set(err, ERROR_ARGUMENT,
		          "device \"cuda:%.24s\" is unknown; expected cuda:NUMBER, or cuda:NUMBER,NUMBER for several "
		          "cards together",
		          which);
	const struct cuda_api *api = isa || !n ? NULL : cuda_library(err);
	return api ? cuda_open_cards(api, ordinal, n, err) : NULL;
}

static void each_card(device_visit_fn visit, void *user)
{
	struct error err = { 0 };
	const struct cuda_api *api = cuda_library(&err);
	int n = 0;

	for (int i = 0; api && !api->device_count(&n) && i < n; i++) {
		struct cuda d = { .api = api, .cards = 1 };
		struct device_entry e = { 0 };
		snprintf(e.name, sizeof e.name, "cuda:%d", i);
		if (read_facts(&d, 0, i, &e.why_not)) {
			const struct target *t = d.device.facts.target;
			snprintf(e.about, sizeof e.about, "%s (code for %s), %u multiprocessors, %.1f GiB", d.name,
			         t ? t->name : "no target", d.units, (double)d.bytes / 0x1p30);
			if (!t)
				error_set(&e.why_not, ERROR_DEVICE,
				          "it has compute capability %u.%u; cards from 8.0 on are supported",
				          d.capability / 10, d.capability % 10);
		}
		visit(user, &e);
	}
}

const struct device_driver device_cuda = { .name = "cuda", .has_several = true, .open = open_named, .each = each_card };
