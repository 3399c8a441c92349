/* runtime/device/cuda/cuda.c - an NVIDIA card as a device: opening, and which cards there are. See cuda.h. */
#include "runtime/device/cuda/cuda.h"

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

bool cuda_alive(struct device *device, struct error *err)
{
	struct cuda *d = cuda_of(device);

	pthread_mutex_lock(&d->lock);
	const struct error dead = d->dead;
	pthread_mutex_unlock(&d->lock);
	return !dead.code || error_set(err, ERROR_DEVICE, "%s", dead.text);
}

bool cuda_enter_card(struct cuda *d, unsigned card, struct error *err)
{
	int result = d->api->context_set(d->card[card].context);

	return !result || cuda_failed(d, result, "using the card", err);
}

bool cuda_enter(struct cuda *d, struct error *err) { return cuda_enter_card(d, 0, err); }

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
 * cards have not. */
enum { SHARED_90 = 227 << 10 };
static const struct target *target_of(uint32_t capability, int shared)
{
	return capability >= 90 && shared >= SHARED_90 ? target_find("sm90")
	       : capability >= 80                      ? target_find("sm80")
	                                               : NULL;
}

/* The same of so many such cards together; NULL: they do not compute together. */
static const struct target *target_together(const struct target *t, unsigned cards)
{
	char name[16];

	if (!t || cards < 2)
		return t;
	snprintf(name, sizeof name, "%sx%u", t->name, cards);
	return target_find(name);
}

/* What predictions want to know; without it they say so. */
enum { LANES_OF_UNIT = 128 };
#define LINK_BYTES 25e9 /* PCIe 4.0 x16, as copies reach it */

static void read_speeds(struct cuda *d, unsigned which)
{
	const struct cuda_api *api = d->api;
	struct device_facts *f = &d->device.facts;
	int clock = 0, memory_clock = 0, width = 0;

	if (api->device_attribute(&clock, CUDA_CLOCK, d->card[which].number) ||
	    api->device_attribute(&memory_clock, CUDA_MEMORY_CLOCK, d->card[which].number) ||
	    api->device_attribute(&width, CUDA_MEMORY_WIDTH, d->card[which].number))
		return;
	f->bandwidth = 2 * 1e3 * memory_clock * (width / 8.0);
	f->arithmetic = 2 * 1e3 * clock * LANES_OF_UNIT * d->units;
	f->link = LINK_BYTES;
}

/* Of a card; which: of the device's. */
static bool read_facts(struct cuda *d, unsigned which, int ordinal, struct error *err)
{
	const struct cuda_api *api = d->api;
	int n = 0, major = 0, minor = 0, units = 0, shared = 0, cache = 0, driver = 0;
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
		result = api->device_attribute(&shared, CUDA_SHARED_MAX, d->card[which].number);
	if (!result)
		result = api->device_attribute(&cache, CUDA_CACHE, d->card[which].number);
	if (!result)
		result = api->device_memory(&bytes, d->card[which].number);
	if (!result)
		result = api->driver_version(&driver);
	d->capability = (uint32_t)(10 * major + minor);
	d->units = (uint32_t)units;
	d->driver = (uint32_t)driver;
	d->bytes = bytes;
	d->cache = cache > 0 ? (uint64_t)cache : 0;
	d->device.facts.target = target_together(target_of(d->capability, shared), d->cards);
	if (!result)
		read_speeds(d, which);
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

static bool are_alike(const struct cuda *a, const struct cuda *b)
{
	return strcmp(a->name, b->name) == 0 && a->units == b->units && a->capability == b->capability;
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
		if (!are_alike(&other, d))
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
	d->device = (struct device){ .facts = { .clock = DEVICE_CLOCK_CARD, .keeps_code = true, .overlaps = true },
		                     .stream = cuda_stream,
		                     .ready = cuda_ready,
		                     .close = close_card };
	cuda_set_memory(d);
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
static unsigned read_numbers(const char *text, int ordinal[CUDA_CARDS_MAX])
{
	unsigned n = 0;

	ordinal[0] = 0;
	for (const char *at = text; *text && n < CUDA_CARDS_MAX; at++) {
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
	int ordinal[CUDA_CARDS_MAX];
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

/* As many cards like this one as may be together, unless one before it is like it. */
static void visit_together(const struct cuda_api *api, int first, int n, device_visit_fn visit, void *user)
{
	struct cuda d = { .api = api, .cards = 1 }, other = d;
	int alike[CUDA_CARDS_MAX] = { first };
	unsigned many = 1, cards = CUDA_CARDS_MAX;

	if (!read_facts(&d, 0, first, NULL))
		return;
	for (int i = 0; i < n && many < CUDA_CARDS_MAX; i++) {
		if (i == first || !read_facts(&other, 0, i, NULL) || !are_alike(&d, &other))
			continue;
		if (i < first)
			return;
		alike[many++] = i;
	}
	while (cards > many)
		cards /= 2;
	const struct target *t = target_together(d.device.facts.target, cards);
	if (!t || cards < 2)
		return;
	struct device_entry e = { .name = "cuda:" };
	for (unsigned i = 0, at = 5; i < cards; i++)
		at += (unsigned)snprintf(e.name + at, sizeof e.name - at, i ? ",%d" : "%d", alike[i]);
	snprintf(e.about, sizeof e.about, "%u of them together (code for %s)", cards, t->name);
	visit(user, &e);
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
	for (int i = 0; i < n; i++)
		visit_together(api, i, n, visit, user);
}

const struct device_driver device_cuda = { .name = "cuda", .has_several = true, .open = open_named, .each = each_card };
