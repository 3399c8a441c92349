#include "runtime/device/amd/amd.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How often a workgroup looks at a barrier in a second, at the least and at the most; of a trial. */
#define POLLS_A_SECOND 500e3
enum { TRIAL_POLLS = 1 << 15, TRIAL_COMMANDS = 2 };

struct amd_stream {
	struct card_stream card;
	struct rdna_command *trial; /* two without units and a barrier between them */
};

struct loaded {
	struct amd_code code;
	struct amd_kernel kernel;
};

static struct amd *amd_of(const struct card_stream *c) { return (struct amd *)c->stream.device; }

/* For predictions. */
enum { LANES_OF_UNIT = 64 };
#define LINK_BYTES 25e9 /* PCIe 4.0 x16, as copies reach it */

/* ---- what card.h asks of a driver */

static void begin_stream(struct card_stream *c) { pthread_mutex_lock(&amd_of(c)->lock); }
static void end_stream(struct card_stream *c) { pthread_mutex_unlock(&amd_of(c)->lock); }

/* Blocks that the host writes live in its own memory; their buffers are found again by their addresses. */
static void *map_block(struct card_stream *c, size_t bytes, const char *name, struct error *err)
{
	struct amd *d = amd_of(c);
	struct amd_region *r = calloc(1, sizeof *r);

	if (!r) {
		error_set(err, ERROR_MEMORY, "no memory for a card's list of its own");
		return NULL;
	}
	r->name = name;
	if (!amd_is_alive(d, err) || !amd_host_memory(d, &r->buffer, bytes, 0, name, err)) {
		free(r);
		return NULL;
	}
	r->next = d->regions;
	d->regions = r;
	return r->buffer.address;
}

static void unmap_block(struct card_stream *c, void *p, size_t bytes)
{
	struct amd *d = amd_of(c);

	for (struct amd_region **at = &d->regions; *at; at = &(*at)->next)
		if ((*at)->buffer.address == p) {
			struct amd_region *gone = *at;
			*at = gone->next;
			amd_free(d, &gone->buffer);
			free(gone);
			return;
		}
}

static bool load_code(struct card_stream *c, struct card_plan *p, struct error *err)
{
	struct amd *d = amd_of(c);
	struct loaded *l = calloc(1, sizeof *l);

	if (!l)
		return error_set(err, ERROR_MEMORY, "no memory for a plan of %s", c->driver->name);
	p->code = l;
	bool ok = amd_code_load(d, &l->code, p->program.bytes, p->program.size, err) &&
	          amd_code_find(&l->code, p->program.bytes, p->program.size, RDNA_PROGRAM_KERNEL, &l->kernel, err);
	p->vgprs = l->kernel.vgprs;
	p->lds = l->kernel.lds;
	return ok;
}

static void unload_code(struct card_stream *c, struct card_plan *p)
{
	struct amd *d = amd_of(c);
	struct loaded *l = p->code;

	amd_code_unload(d, &l->code);
	free(l);
}

/* ---- launching */

/* The counters of arrivals lie in the card's memory; a copy moves to the host what a launch left there. */
static bool launch(struct amd *d, const struct card_plan *p, const struct rdna_program_args *args,
                   const struct amd_launch *l, struct error *err)
{
	const struct loaded *code = p->code;

	if (!amd_is_alive(d, err) || !amd_flush(d, err) || !amd_lock_take(d, l->stream->stream.cancel, err))
		return false;
	*(struct rdna_program_args *)amd_queue_kernarg(d) = *args;
	amd_queue_put(d, &code->kernel, args->workgroups, d->card.integrated);
	if (!d->card.integrated)
		amd_put_copy(d, (uint64_t)(uintptr_t)d->mirror.address, (uint64_t)(uintptr_t)d->sync.address,
		             sizeof(struct rdna_program_sync), true);
	bool ok = amd_wait(d, l, err);
	amd_lock_give(d);
	return ok;
}

static struct rdna_program_sync left_by(const struct amd *d)
{
	return *(const struct rdna_program_sync *)(d->card.integrated ? d->sync.address : d->mirror.address);
}

/* After a launch that was given up. */
static bool start_anew(struct amd *d, struct card_stream *c, struct error *err)
{
	static const struct rdna_program_sync nothing;

	d->arrivals = c->arrivals = 0;
	return amd_write(d, d->sync.address, &nothing, sizeof nothing, err);
}

static uint32_t polls_within(double seconds)
{
	double polls = seconds * POLLS_A_SECOND;

	return polls < UINT32_MAX ? (uint32_t)polls : UINT32_MAX;
}

static bool dispatch(struct card_stream *c, const struct card_plan *p, size_t first, size_t end, struct error *err)
{
	struct amd *d = amd_of(c);
	struct amd_launch l = { .stream = c, .plan = p, .first = first, .end = end };

	for (size_t i = first; i < end; i++)
		l.seconds += p->seconds[i];
	c->arrivals = d->arrivals;
	struct rdna_program_args args = card_launch_args(c, p, first, end);
	args.sync = (uint64_t)(uintptr_t)d->sync.address;
	args.polls = polls_within(amd_deadline(d, l.seconds));
	if (!launch(d, p, &args, &l, err))
		return false;
	const struct rdna_program_sync left = left_by(d);
	bool ok = card_check_sync(c, p, first, end, &left, err);
	d->arrivals = c->arrivals;
	if (!ok)
		start_anew(d, c, err);
	return ok;
}

/* All workgroups meet at one barrier. False and no err: not all of them came. */
static bool try(struct amd *d, struct card_stream *c, const struct card_plan *p, struct error *err)
{
	const struct amd_launch l = {
		.stream = c, .plan = p, .first = p->program.n_commands, .end = p->program.n_commands + 1
	};
	const struct rdna_program_args args = {
		.commands = (uint64_t)(uintptr_t)((struct amd_stream *)c)->trial,
		.end = TRIAL_COMMANDS,
		.sync = (uint64_t)(uintptr_t)d->sync.address,
		.workgroups = p->program.workgroups,
		.polls = TRIAL_POLLS,
		.arrivals = d->arrivals
	};

	if (!launch(d, p, &args, &l, err))
		return false;
	const struct rdna_program_sync left = left_by(d);
	if (left.left)
		return start_anew(d, c, err) && false;
	d->arrivals = left.arrivals;
	return true;
}

/* What the topology says is room may be less, where another queue has a part of the card: then half of it is tried. */
static bool find_workgroups(struct card_stream *c, struct card_plan *p, struct error *err)
{
	struct amd *d = amd_of(c);
	uint32_t n = p->program.workgroups;
	struct error why = { 0 };

	c->arrivals = d->arrivals;
	while (!try(d, c, p, &why)) {
		if (why.code)
			return error_set(err, why.code, "%s", why.text);
		if (c->workgroups || n == 1)
			return error_set(err, ERROR_DEVICE,
			                 "%u workgroup%s do not run at once on %s; the launch that tried it was given "
			                 "up after %d looks",
			                 n, n == 1 ? "" : "s", d->card.name, TRIAL_POLLS);
		n /= 2;
		card_partition(p, n);
	}
	return true;
}

static double predict(const struct card_stream *c, const struct card_plan *p, size_t op)
{
	return amd_predict(&amd_of(c)->card, p->plan, op);
}

static const struct card_driver real = {
	.begin = begin_stream,
	.end = end_stream,
	.map = map_block,
	.unmap = unmap_block,
	.load = load_code,
	.unload = unload_code,
	.ready = find_workgroups,
	.dispatch = dispatch,
	.predict = predict,
	.name = "the card"
};

/* ---- streams */

static void count(const struct stream *s, struct stream_counters *out)
{
	const struct card_counters *c = &((const struct card_stream *)s)->counters;

	*out = (struct stream_counters){ .launches = c->launches, .barriers = c->barriers };
}

static void close_stream(struct stream *s)
{
	struct amd_stream *c = (struct amd_stream *)s;

	card_forget(&c->card);
	begin_stream(&c->card);
	if (c->trial)
		unmap_block(&c->card, c->trial, TRIAL_COMMANDS * sizeof *c->trial);
	end_stream(&c->card);
	free(c);
}

static struct stream *open_stream(struct device *device, const struct stream_options *o, struct error *err)
{
	struct amd *d = (struct amd *)device;
	struct amd_stream *c = calloc(1, sizeof *c);

	if (!c) {
		error_set(err, ERROR_MEMORY, "no memory for a session on %s", d->card.name);
		return NULL;
	}
	c->card = (struct card_stream){
		.stream = { .device = device,
		            .prepare = card_prepare,
		            .forget = card_forget_plan,
		            .run = card_run,
		            .count = count,
		            .close = close_stream },
		.driver = &real,
		.registry = o->registry,
		.launch = o->launch,
		.units = d->card.units,
		.workgroups = o->workgroups
	};
	begin_stream(&c->card);
	c->trial = map_block(&c->card, TRIAL_COMMANDS * sizeof *c->trial, "the commands of a trial", err);
	for (unsigned i = 0; c->trial && i < TRIAL_COMMANDS; i++)
		c->trial[i].flags = RDNA_COMMAND_BARRIER;
	end_stream(&c->card);
	if (c->trial)
		return &c->card.stream;
	close_stream(&c->card.stream);
	return NULL;
}

/* ---- the device */

/* What stays of a card that does not answer is the driver's to clear away, when the process ends. */
void amd_close_card(struct device *device)
{
	struct amd *d = (struct amd *)device;

	if (!d->silent) {
		amd_memory_close(d);
		amd_queue_close(d);
	}
	amd_lock_close(d);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* Kernels are made for what target.h says of all cards. */
static bool check_facts(const struct amd_card *c, struct error *err)
{
	if (c->units && c->simds_per_unit == TARGET_UNIT_SIMDS && c->waves_per_simd >= TARGET_SIMD_WAVES &&
	    c->lds_bytes >= TARGET_UNIT_LDS)
		return true;
	return error_set(err, ERROR_UNSUPPORTED,
	                 "%s has %u compute units with %u SIMDs of %u waves and %u bytes of LDS, expected %d SIMDs, at "
	                 "least %d waves and %d bytes",
	                 c->name, c->units, c->simds_per_unit, c->waves_per_simd, c->lds_bytes, TARGET_UNIT_SIMDS,
	                 TARGET_SIMD_WAVES, TARGET_UNIT_LDS);
}


static bool find_card(struct amd_card *out, const char *which, struct error *err)
{
	struct amd_topology *t = malloc(sizeof *t);
	const struct amd_card *c = NULL;

	if (!t)
		return error_set(err, ERROR_MEMORY, "no memory for a list of cards");
	if (amd_topology_read(t, err) && (c = amd_topology_find(t, which, err)))
		*out = *c;
	free(t);
	return c != NULL;
}

bool amd_open_queue(struct amd *d, const char *which, struct error *err)
{
	d->lock_file = d->queue_file = -1;
	pthread_mutex_init(&d->lock, NULL);
	return find_card(&d->card, which, err) && check_facts(&d->card, err) && device_patience(1, &d->patience, err) &&
	       kfd_open_card(&d->card, &d->kfd, err) && amd_lock_open(d, err) && amd_queue_open(d, err);
}

static struct device *open_card(const char *which, const char *isa, struct error *err)
{
	struct amd *d = NULL;

	if (isa) {
		error_set(err, ERROR_ARGUMENT, "isa \"%.32s\": the device amd has its card's instruction set", isa);
		return NULL;
	}
	if (!(d = calloc(1, sizeof *d))) {
		error_set(err, ERROR_MEMORY, "no memory for a card");
		return NULL;
	}
	if (amd_open_queue(d, which, err) && amd_memory_open(d, err)) {
		d->device = (struct device){
			.facts = { .target = d->card.target,
			           .host_reaches = d->in_place,
			           .bandwidth = (double)d->card.bandwidth,
			           .arithmetic = 2e6 * d->card.clock_mhz * LANES_OF_UNIT * d->card.units,
			           .link = d->card.integrated ? 0 : LINK_BYTES,
			           .memory_by = d->kfd.thunk->name,
			           .queues_by = d->kfd.library_queues ? d->kfd.thunk->name : kfd_by_ioctls.name },
			.alloc = amd_alloc,
			.release = amd_release,
			.upload = amd_upload,
			.read = amd_read,
			.available = amd_available,
			.alive = amd_alive,
			.stream = open_stream,
			.close = amd_close_card
		};
		return &d->device;
	}
	amd_close_card(&d->device);
	return NULL;
}

static void each_card(device_visit_fn visit, void *user)
{
	struct amd_topology *t = malloc(sizeof *t);
	struct error err = { 0 };

	if (t && amd_topology_read(t, &err))
		for (size_t i = 0; i < t->n; i++) {
			const struct amd_card *c = &t->card[i];
			struct device_entry e = { .why_not = c->why_not };
			snprintf(e.name, sizeof e.name, "amd:%zu", i);
			snprintf(e.about, sizeof e.about,
			         "%s (%s), %u compute units, %.1f GiB; never run on a card yet, only on a fake driver",
			         c->name, c->target ? c->target->name : "no target", c->units,
			         (double)c->vram_bytes / 0x1p30);
			visit(user, &e);
		}
	free(t);
}

const struct device_driver device_amd = { .name = "amd", .has_several = true, .open = open_card, .each = each_card };
