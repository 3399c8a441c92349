/* runtime/device/amd/amd_queue.c - a queue of AQL packets: its buffers, and writing packets into it. See amd.h.
 *
 * The driver knows the sizes of the buffers to the byte and refuses others. A queue that has stopped is never
 * destroyed: the driver would wait for a card that does not answer.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/device/amd/amd.h"

enum {
	PAGE = 4096,
	RING_BYTES = AMD_QUEUE_PACKETS * AQL_PACKET_BYTES,
	KERNARG_BYTES = 64, /* of each packet */
	WAVES_OF_UNIT = 32,
	/* Of each compute unit in the save area, beside vector registers: scalar ones, LDS, hardware's. */
	SAVED_SGPRS = 0x4000,
	SAVED_LDS = 0x10000,
	SAVED_HARDWARE = 0x1000
};

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

uint32_t amd_vgpr_bytes(uint32_t version)
{
	static const uint32_t large[] = { 110000, 110001, 110501, 120000, 120001 };

	for (size_t i = 0; i < sizeof large / sizeof *large; i++)
		if (version == large[i])
			return AMD_VGPR_LARGE;
	return AMD_VGPR_SMALL;
}

struct amd_queue_sizes amd_queue_sizes(uint32_t version, uint32_t units, uint32_t vgpr_bytes)
{
	struct amd_queue_sizes s;
	uint64_t waves = (uint64_t)units * WAVES_OF_UNIT;

	s.ctl_stack = round_up(40 + waves * 12 + 8, PAGE);
	if (version / 10000 == 10 && s.ctl_stack > 0x7000) /* gfx10 has no more */
		s.ctl_stack = 0x7000;
	s.cwsr =
		s.ctl_stack + round_up((uint64_t)units * (vgpr_bytes + SAVED_SGPRS + SAVED_LDS + SAVED_HARDWARE), PAGE);
	s.save_area = round_up(s.cwsr + round_up(waves * 32, 64), PAGE);
	return s;
}

/* ---- opening */

static bool open_buffers(struct amd *d, struct error *err)
{
	const uint32_t shared = KFD_MEMORY_GTT | KFD_MEMORY_COHERENT | KFD_MEMORY_UNCACHED | KFD_MEMORY_WRITABLE |
	                        KFD_MEMORY_NO_SUBSTITUTE;
	struct amd_queue *q = &d->queue;

	return kfd_alloc(&d->kfd, &q->ring, RING_BYTES, shared | KFD_MEMORY_EXECUTABLE, true, "a queue's ring", err) &&
	       kfd_alloc(&d->kfd, &q->pointers, PAGE, shared, true, "a queue's pointers", err) &&
	       kfd_alloc(&d->kfd, &q->signal_page, PAGE, shared, true, "a queue's signal", err) &&
	       kfd_alloc(&d->kfd, &q->kernargs, AMD_QUEUE_PACKETS * KERNARG_BYTES, shared, true,
	                 "the arguments of launches", err) &&
	       kfd_event_make(&d->kfd, &q->completed, KFD_EVENT_SIGNAL, err) &&
	       kfd_event_make(&d->kfd, &q->fault, KFD_EVENT_MEMORY, err) &&
	       kfd_event_make(&d->kfd, &q->exception, KFD_EVENT_HW_EXCEPTION, err);
}

static void fill_shared(struct amd *d)
{
	struct amd_queue *q = &d->queue;
	struct aql_dispatch *packet = q->ring.address;

	memset(q->ring.address, 0, RING_BYTES);
	for (unsigned i = 0; i < AMD_QUEUE_PACKETS; i++)
		packet[i].header = AQL_TYPE_INVALID;
	memset(q->pointers.address, 0, PAGE);
	memset(q->signal_page.address, 0, PAGE);
	q->shared = q->pointers.address;
	q->signal = q->signal_page.address;
	q->shared->base = (uint64_t)(uintptr_t)q->ring.address;
	q->shared->packets = AMD_QUEUE_PACKETS;
	q->shared->max_cu_id = d->card.units - 1;
	q->shared->max_wave_id = d->card.waves_per_simd * d->card.simds_per_unit - 1;
	q->shared->read_dispatch_id_offset = offsetof(struct aql_queue, read_dispatch_id);
	q->shared->properties = AQL_QUEUE_PTR64 | AQL_QUEUE_PROFILING;
	q->signal->kind = AQL_SIGNAL_USER;
	if (!q->completed.mailbox)
		return;
	q->signal->mailbox = (uint64_t)(uintptr_t)q->completed.mailbox;
	q->signal->event_id = q->completed.trigger;
}

static int create(struct amd *d, const struct amd_queue_sizes *s, struct kfd_create_queue *a, struct error *err)
{
	struct amd_queue *q = &d->queue;

	if (!kfd_alloc(&d->kfd, &q->save_area, s->save_area,
	               KFD_MEMORY_VRAM | KFD_MEMORY_WRITABLE | KFD_MEMORY_EXECUTABLE | KFD_MEMORY_NO_SUBSTITUTE, false,
	               "what a queue saves when it is taken off the card", err))
		return ENOMEM;
	*a = (struct kfd_create_queue){
		.ring_address = (uint64_t)(uintptr_t)q->ring.address,
		.write_pointer_address = (uint64_t)(uintptr_t)&q->shared->write_dispatch_id,
		.read_pointer_address = (uint64_t)(uintptr_t)&q->shared->read_dispatch_id,
		.ring_bytes = RING_BYTES,
		.gpu_id = d->card.gpu_id,
		.queue_type = KFD_QUEUE_COMPUTE_AQL,
		.percentage = KFD_QUEUE_FULL_PERCENTAGE,
		.priority = KFD_QUEUE_PRIORITY_NORMAL,
		.eop_address = (uint64_t)(uintptr_t)q->eop.address,
		.eop_bytes = KFD_EOP_BYTES,
		.cwsr_address = (uint64_t)(uintptr_t)q->save_area.address,
		.cwsr_bytes = (uint32_t)s->cwsr,
		.ctl_stack_bytes = (uint32_t)s->ctl_stack
	};
	int e = kfd_call(KFD_CREATE_QUEUE, a);
	if (e)
		kfd_free(&d->kfd, &q->save_area);
	return e;
}

static int create_by_library(struct amd *d)
{
	struct amd_queue *q = &d->queue;

	return d->kfd.thunk->queue_make(&d->kfd, &q->made, q->ring.address, RING_BYTES, &q->shared->write_dispatch_id,
	                                &q->shared->read_dispatch_id);
}

/* What the driver tells of its sizes is right; else our reckoning; else with the other size of the registers, which
 * drivers reckon differently for one target. */
static int create_one_of(struct amd *d, struct kfd_create_queue *a, struct error *err)
{
	const struct amd_card *c = &d->card;
	uint32_t vgprs = amd_vgpr_bytes(c->gfx_version);
	struct amd_queue_sizes s = amd_queue_sizes(c->gfx_version, c->units, vgprs);
	bool told = c->cwsr_bytes && c->ctl_stack_bytes;

	if (told) {
		s.save_area = round_up(c->cwsr_bytes + (s.save_area - s.cwsr), PAGE);
		s.cwsr = c->cwsr_bytes;
		s.ctl_stack = c->ctl_stack_bytes;
	}
	int e = create(d, &s, a, err);
	if (e != EINVAL || told)
		return e;
	s = amd_queue_sizes(c->gfx_version, c->units, AMD_VGPR_SMALL + AMD_VGPR_LARGE - vgprs);
	return create(d, &s, a, err);
}

static bool map_doorbell(struct amd *d, uint64_t offset, struct error *err)
{
	const uint64_t inside = KFD_DOORBELL_BYTES - 1;
	void *p = mmap(NULL, KFD_DOORBELL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, kfd_file(),
	               (off_t)(offset & ~inside));

	if (p == MAP_FAILED)
		return error_set(err, ERROR_DEVICE, "the card's doorbells cannot be mapped: %s", strerror(errno));
	d->queue.doorbells = p;
	d->queue.doorbell = (volatile uint64_t *)(void *)((uint8_t *)p + (offset & inside));
	return true;
}

static bool open_by_ioctls(struct amd *d, struct error *err)
{
	struct kfd_create_queue a = { 0 };
	struct amd_queue *q = &d->queue;

	if (!kfd_alloc(&d->kfd, &q->eop, KFD_EOP_BYTES,
	               KFD_MEMORY_VRAM | KFD_MEMORY_WRITABLE | KFD_MEMORY_EXECUTABLE | KFD_MEMORY_NO_SUBSTITUTE, false,
	               "a queue's end-of-pipe buffer", err))
		return false;
	int e = create_one_of(d, &a, err);
	if (e)
		return error_set(err, ERROR_DEVICE,
		                 "the driver makes no queue on %s: %s (save area 0x%x, control stack 0x%x)",
		                 d->card.name, strerror(e), a.cwsr_bytes, a.ctl_stack_bytes);
	q->id = a.queue_id;
	q->exists = true;
	return map_doorbell(d, a.doorbell_offset, err);
}

bool amd_queue_open(struct amd *d, struct error *err)
{
	if (!open_buffers(d, err))
		return false;
	fill_shared(d);
	if (!d->kfd.library_queues)
		return open_by_ioctls(d, err);
	int e = create_by_library(d);
	d->queue.doorbell = d->queue.made.doorbell;
	uint64_t available = 0;
	return !e || (kfd_available(&d->kfd, &available, NULL), false) ||
	       error_set(err, ERROR_DEVICE,
	                 "libhsakmt makes no queue on %s: %s; %llu bytes of the memory of the card are free",
	                 d->card.name, strerror(e), (unsigned long long)available);
}

static int destroy(struct amd *d)
{
	struct amd_queue *q = &d->queue;

	if (q->made.library)
		return d->kfd.thunk->queue_destroy(&q->made);
	return q->exists ? kfd_call(KFD_DESTROY_QUEUE, &(struct kfd_destroy_queue){ .queue_id = q->id }) : 0;
}

void amd_queue_close(struct amd *d)
{
	struct amd_queue *q = &d->queue;

	int e = destroy(d);

	/* one that did not answer is gone all the same; any other that is still there goes on using its buffers */
	d->silent = e && e != ETIME && e != EIO;
	if (d->silent)
		return;
	if (q->doorbells)
		munmap(q->doorbells, KFD_DOORBELL_BYTES);
	kfd_event_destroy(&d->kfd, &q->completed);
	kfd_event_destroy(&d->kfd, &q->fault);
	kfd_event_destroy(&d->kfd, &q->exception);
	kfd_free(&d->kfd, &q->save_area);
	kfd_free(&d->kfd, &q->eop);
	kfd_free(&d->kfd, &q->kernargs);
	kfd_free(&d->kfd, &q->signal_page);
	kfd_free(&d->kfd, &q->pointers);
	kfd_free(&d->kfd, &q->ring);
	*q = (struct amd_queue){ 0 };
}

/* ---- packets */

void *amd_queue_kernarg(struct amd *d)
{
	return (uint8_t *)d->queue.kernargs.address + d->queue.written % AMD_QUEUE_PACKETS * KERNARG_BYTES;
}

void amd_queue_put(struct amd *d, const struct amd_kernel *k, uint32_t workgroups, bool last)
{
	struct amd_queue *q = &d->queue;
	struct aql_dispatch *packet = (struct aql_dispatch *)q->ring.address + q->written % AMD_QUEUE_PACKETS;
	const uint16_t items = (uint16_t)((k->waves ? k->waves : RDNA_PROGRAM_WAVES) * 32);
	struct aql_dispatch p = { .setup = 1,
		                  .workgroup = { items, 1, 1 },
		                  .grid = { workgroups * items, 1, 1 },
		                  .group_bytes = k->lds,
		                  .kernel_object = k->descriptor,
		                  .kernarg = (uint64_t)(uintptr_t)amd_queue_kernarg(d),
		                  .completion_signal = last ? (uint64_t)(uintptr_t)q->signal : 0 };
	const uint32_t head = AQL_TYPE_DISPATCH | AQL_BARRIER | AQL_ACQUIRE_SYSTEM | AQL_RELEASE_SYSTEM | 1u << 16;

	if (last)
		q->signal->value = 1;
	memcpy((uint8_t *)packet + 4, (uint8_t *)&p + 4, sizeof p - 4);
	atomic_store_explicit((_Atomic uint32_t *)(void *)packet, head, memory_order_release);
	q->written++;
	if (!last)
		return;
	atomic_store_explicit((_Atomic uint64_t *)(void *)&q->shared->write_dispatch_id, q->written,
	                      memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	*q->doorbell = q->written - 1;
}
