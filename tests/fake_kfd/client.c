/* tests/fake_kfd/client.c - see client.h. Every line that a mistake changes names the mistake. */
#include "tests/fake_kfd/client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fake_kfd/client_parts.h"

enum { DOORBELLS = 0x2000, ITEMS = 64, GROUPS = 4, N = 100, RING = 4096, LDS = 256, WAIT_MS = 400 };
static struct buffer input, output, arguments, ring, pointers, eop, save, signals, page;
static struct io_create_queue queue;
static uint32_t done_event, fault_event;

/* ---- buffers, queue, events */

/* The register that flushes what the host wrote to VRAM. */
static void flush(void)
{
	struct buffer b = reserve(4096, MEM_MMIO_REMAP | MEM_WRITABLE);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, (off_t)b.offset);
	struct io_free a = { b.handle };

	if (p == MAP_FAILED)
		refused("mmap of registers");
	atomic_thread_fence(memory_order_seq_cst);
	*(_Atomic uint32_t *)p = 1;
	CALL_IN(NR_FREE_MEMORY, &a);
}

static void fill(void)
{
	float *x;

	arguments = get(4096, IS(ARGUMENTS_IN_VRAM) || IS(ARGUMENTS_IN_VRAM_FLUSHED) ? CARD | MEM_PUBLIC | MEM_WRITABLE
	                                                                             : HOST | MEM_WRITABLE);
	input = get(8192, HOST | MEM_WRITABLE);
	if (IS(MEMORY_NOT_CLEARED)) {
		give(&input);
		input = get(8192, CARD | MEM_PUBLIC | MEM_WRITABLE);
	}
	x = (float *)(uintptr_t)input.address;
	for (unsigned i = 0; i < N * GROUPS && !IS(MEMORY_NOT_CLEARED); i++)
		x[i] = (float)(i % 7);
	output = IS(OUTPUT_NOT_MAPPED) ? reserve(4096, HOST | MEM_WRITABLE)
	                               : get(4096, IS(OUTPUT_READ_ONLY) ? HOST : HOST | MEM_WRITABLE);
	if (IS(OUTPUT_NOT_MAPPED))
		map_for_host(&output);
	uint64_t *a = (uint64_t *)(uintptr_t)(arguments.address + (IS(ARGUMENTS_MISALIGNED) ? 8 : 0));
	a[0] = output.address;
	a[1] = a[2] = input.address;
	a[3] = N;
	if (IS(INPUT_UNMAPPED_AGAIN) || IS(NO_FAULT_EVENT))
		unmap(&input);
	if (IS(ARGUMENTS_NOT_MAPPED))
		unmap(&arguments);
	if (IS(ARGUMENTS_IN_VRAM_FLUSHED))
		flush();
}

static void memory_mistakes(void)
{
	if (IS(PUBLIC_ON_SMALL_BAR))
		get(4096, CARD | MEM_PUBLIC | MEM_WRITABLE);
	if (IS(MORE_THAN_THERE_IS))
		get(200 << 20, CARD | MEM_WRITABLE);
	if (IS(HOST_MAPS_HIDDEN) || IS(HOST_READS_HIDDEN)) {
		struct buffer b = get(4096, CARD | MEM_WRITABLE);
		if (IS(HOST_MAPS_HIDDEN))
			map_for_host(&b);
		_exit(*(volatile int *)(uintptr_t)b.address ? WRONG : RIGHT);
	}
	if (IS(ADDRESS_TWICE)) {
		struct buffer b = get(4096, HOST | MEM_WRITABLE);
		struct io_alloc a = {
			.address = b.address, .size = 4096, .gpu_id = gpu_id, .flags = HOST | MEM_WRITABLE
		};
		CALL_BOTH(NR_ALLOC_MEMORY, &a);
		b.handle = a.handle;
		map(&b);
	}
}

static uint32_t create_event(uint32_t type, uint64_t handle, uint32_t *slot)
{
	struct io_create_event a = { .page_offset = handle, .type = type, .auto_reset = 1 };

	CALL_BOTH(NR_CREATE_EVENT, &a);
	*slot = a.slot;
	return a.event_id;
}

static void create_events(void)
{
	uint32_t flags = (IS(EVENT_PAGE_IN_VRAM) ? CARD | MEM_PUBLIC : HOST) | MEM_WRITABLE, slot, unused;

	page = IS(EVENT_PAGE_NOT_MAPPED) ? reserve(32768, flags) : get(IS(EVENT_PAGE_TOO_SMALL) ? 4096 : 32768, flags);
	done_event = create_event(EVENT_SIGNAL, page.handle, &slot);
	if (IS(EVENT_PAGE_FREED))
		give(&page);
	if (IS(EVENT_PAGE_TWICE))
		create_event(EVENT_SIGNAL, page.handle, &slot);
	if (!IS(NO_FAULT_EVENT))
		fault_event = create_event(EVENT_MEMORY, 0, &unused);
	signals = get(4096, (IS(SIGNAL_IN_VRAM) ? CARD | MEM_PUBLIC : HOST) | MEM_WRITABLE);
	struct aql_signal *s = (struct aql_signal *)(uintptr_t)(signals.address + (IS(SIGNAL_MISALIGNED) ? 32 : 0));
	*s = (struct aql_signal){
		.kind = IS(SIGNAL_OF_NO_KIND) ? 0 : 1, .value = 1, .event_id = IS(EVENT_UNKNOWN) ? 9 : done_event
	};
	s->mailbox = IS(MAILBOX_NOT_IN_PAGE) ? signals.address + 2048
	                                     : page.address + 8 * (slot + (IS(MAILBOX_OF_OTHER_EVENT) ? 3 : 0));
	if (IS(SIGNAL_NOT_MAPPED))
		unmap(&signals);
}

static uint64_t up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

static void sizes(uint64_t *control, uint64_t *all, uint64_t *buffer)
{
	bool large = version == 110000 || version == 110001 || version == 110501 || version >= 120000;

	*control = up(units * 32 * 12 + 48, 4096);
	if (version < 110000 && *control > 0x7000)
		*control = 0x7000;
	*all = *control + up(units * ((large ? 0x60000u : 0x40000u) + 0x15000u), 4096);
	*buffer = up(*all + up(units * 32 * 32, 64), 4096);
}

static void fill_queue(uint64_t control, uint64_t all)
{
	queue = (struct io_create_queue){
		.ring = ring.address,
		.write_pointer = pointers.address + QUEUE_WRITE_AT,
		.read_pointer = pointers.address + QUEUE_READ_AT,
		.ring_size = RING,
		.gpu_id = gpu_id,
		.type = QUEUE_AQL,
		.percentage = 100,
		.priority = 7,
		.eop = eop.address,
		.eop_size = 4096,
		.save = save.address,
		.save_size = (uint32_t)all,
		.control_size = (uint32_t)control
	};
	switch (mistake) {
	case M_RING_NO_POWER_OF_2: queue.ring_size = 3072; break;
	case M_RING_SHORTER_THAN_BUFFER: queue.ring_size = 2048; break;
	case M_POINTERS_APART: queue.read_pointer += 64; break;
	case M_EOP_SIZE: queue.eop_size = 8192; break;
	case M_EOP_IN_OTHER_BUFFER: queue.eop = save.address + 4096; break;
	case M_CONTROL_STACK_SIZE: queue.control_size += 4096; break;
	case M_SAVE_AREA_OF_OTHER_CARDS: queue.save_size -= (uint32_t)units * 0x20000; break;
	case M_SAVE_AREA_SIZE: queue.save_size -= 4096; break;
	case M_PRIORITY: queue.priority = 16; break;
	case M_PERCENTAGE: queue.percentage = 101; break;
	case M_QUEUE_OF_OTHER_TYPE: queue.type = QUEUE_COMPUTE; break;
	default: break;
	}
}

/* What the packet processor wants to know. */
static void fill_struct(void)
{
	unsigned char *s = (unsigned char *)(uintptr_t)pointers.address;
	const uint32_t offset = QUEUE_READ_AT, last_unit = (uint32_t)units - 1, properties = QUEUE_POINTERS_64;

	memset(s, 0, 256);
	if (!IS(STRUCT_WITHOUT_READ_OFFSET))
		memcpy(s + QUEUE_READ_OFFSET_AT, &offset, 4);
	if (!IS(STRUCT_WITHOUT_UNITS))
		memcpy(s + QUEUE_MAX_CU_AT, &last_unit, 4);
	if (!IS(STRUCT_WITHOUT_PROPERTIES))
		memcpy(s + QUEUE_PROPERTIES_AT, &properties, 4);
}

static _Atomic uint64_t *create_queue(void)
{
	uint64_t control, all, buffer;
	uint32_t flags = HOST | MEM_WRITABLE | MEM_EXECUTABLE;

	sizes(&control, &all, &buffer);
	ring = get(RING, IS(RING_NOT_EXECUTABLE) ? HOST | MEM_WRITABLE
	                 : IS(RING_CACHED)       ? flags & ~(uint32_t)MEM_COHERENT
	                                         : flags);
	pointers = get(IS(POINTERS_IN_TWO_PAGES) ? 8192 : 4096, HOST | MEM_WRITABLE);
	eop = get(4096, CARD | MEM_WRITABLE);
	save = get(IS(SAVE_AREA_BUFFER) ? all : buffer, HOST | MEM_WRITABLE);
	if (IS(RING_NOT_MAPPED))
		unmap(&ring);
	for (unsigned i = 0; !IS(RING_NOT_MAPPED) && i < RING / 64; i++)
		*(uint16_t *)(uintptr_t)(ring.address + i * 64) = PACKET_INVALID;
	if (!IS(RING_NOT_MAPPED))
		fill_struct();
	fill_queue(control, all);
	call(NR_CREATE_QUEUE, _IOC_READ | _IOC_WRITE, &queue, 88);
	uint64_t in = queue.doorbell_offset & (DOORBELLS - 1);
	if (IS(UNMAP_RING))
		unmap(&ring);
	unsigned char *p = mmap(NULL, IS(DOORBELL_ONE_PAGE) ? 4096 : DOORBELLS, PROT_READ | PROT_WRITE, MAP_SHARED, kfd,
	                        (off_t)(queue.doorbell_offset - (IS(DOORBELL_OFFSET_WHOLE) ? 0 : in)));
	if (p == MAP_FAILED)
		refused("mmap of doorbells");
	return (_Atomic uint64_t *)(void *)(p + in);
}

/* ---- packets */

static void packet_mistakes(struct aql_dispatch *p)
{
	switch (mistake) {
	case M_GRID_IN_WORKGROUPS: p->grid_size[0] = GROUPS; break;
	case M_GROUP_SIZE_0: p->group_size[0] = 0; break;
	case M_GROUP_TOO_LARGE:
		p->group_size[0] = 2048;
		p->grid_size[0] = 4096;
		break;
	case M_NO_DIMENSIONS: p->setup = 0; break;
	case M_SIZES_BEYOND_DIMENSIONS: p->grid_size[1] = 0; break;
	case M_RESERVED_NOT_0: p->reserved1 = 1; break;
	case M_SCRATCH: p->private_size = 64; break;
	case M_LDS_TOO_SMALL: p->lds_size = 0; break;
	case M_ARGUMENTS_MISALIGNED: p->kernarg += 8; break;
	case M_KERNEL_MISALIGNED: p->kernel += 16; break;
	case M_KERNEL_IS_THE_ENTRY: p->kernel = entry; break;
	case M_SIGNAL_MISALIGNED: p->signal += 32; break;
	default: break;
	}
}

/* The body first, then the header; the index; the doorbell. */
static void submit(_Atomic uint64_t *doorbell, uint64_t index, bool signals_it, bool rings)
{
	struct aql_dispatch *at = (struct aql_dispatch *)(uintptr_t)(ring.address + index % (RING / 64) * 64);
	struct aql_dispatch p = { .setup = 1,
		                  .group_size = { ITEMS, 1, 1 },
		                  .grid_size = { ITEMS * GROUPS, 1, 1 },
		                  .lds_size = LDS,
		                  .kernel = descriptor,
		                  .kernarg = arguments.address,
		                  .signal = signals_it ? signals.address : 0 };
	uint16_t header = PACKET_DISPATCH | (IS(NO_BARRIER) ? 0 : 1 << 8) | (IS(NO_ACQUIRE) ? 0 : SCOPE_SYSTEM << 9) |
	                  (IS(NO_RELEASE) ? 0 : SCOPE_SYSTEM << 11);

	packet_mistakes(&p);
	memcpy((unsigned char *)at + 2, (unsigned char *)&p + 2, sizeof p - 2);
	if (IS(PACKET_OF_OTHER_TYPE))
		header = PACKET_VENDOR;
	if (!IS(HEADER_LAST_OF_ALL))
		atomic_store_explicit((_Atomic uint16_t *)&at->header, header, memory_order_release);
	if (!IS(WRITE_INDEX_NOT_ADVANCED))
		*(_Atomic uint64_t *)(uintptr_t)queue.write_pointer = index + 1 + (IS(RING_OVERRUN) ? RING / 64 : 0);
	if (IS(DOORBELL_32_BITS))
		*(_Atomic uint32_t *)doorbell = (uint32_t)index;
	else if (rings && !IS(DOORBELL_NOT_RUNG))
		atomic_store_explicit(doorbell, index + (IS(DOORBELL_COUNTS) ? 1 : 0), memory_order_release);
}

/* The ending, of which a packet's is one: a signal or a fault. */
static enum ending await(void)
{
	const struct aql_signal *s = (const struct aql_signal *)(uintptr_t)signals.address;
	struct io_event_data e[2] = { { .event_id = IS(WAIT_FOR_NO_EVENT) ? 77 : done_event },
		                      { .event_id = fault_event } };
	struct io_wait_events w = {
		.events = (uintptr_t)e, .n = fault_event ? 2 : 1, .timeout = IS(WAIT_FOR_EVER) ? ~0u : WAIT_MS
	};

	CALL_BOTH(NR_WAIT_EVENTS, &w);
	if (w.result == WAIT_TIMEOUT)
		return TIMEOUT;
	if (e[1].memory.address) {
		printf("fault 0x%llx of card %u\n", (unsigned long long)e[1].memory.address, e[1].memory.gpu_id);
		return FAULT;
	}
	return s->value == 0 ? RIGHT : WRONG;
}

static bool sums_are_right(void)
{
	const float *y = (const float *)(uintptr_t)output.address, *x = (const float *)(uintptr_t)input.address;

	for (unsigned g = 0; g < GROUPS; g++) {
		float s = 0;
		for (unsigned i = 0; i < N; i++)
			s += x[g * N + i];
		if (IS(MEMORY_NOT_CLEARED) ? y[g] != 0 : y[g] != s) /* small whole numbers: any order gives the same */
			return false;
	}
	return true;
}

static void again(_Atomic uint64_t *doorbell)
{
	struct aql_signal *s = (struct aql_signal *)(uintptr_t)signals.address;

	if (IS(CODE_CHANGED)) /* s_code_end behind the kernel, so that the results stay */
		*(uint32_t *)(uintptr_t)(code.address + code.size - 4) = 0xbf9f0000;
	s->value = 1;
	memset((void *)(uintptr_t)output.address, 0, 64);
	submit(doorbell, 1, false, false);
	submit(doorbell, 2, true, true);
	if (await() != RIGHT || !sums_are_right())
		exit(WRONG);
}

/* But for the page of events, which is the driver's to free. */
static void end(void)
{
	struct buffer *all[] = { &code, &input, &output, &arguments, &signals, &ring, &pointers, &eop, &save };

	if (!IS(QUEUE_LEFT)) {
		CALL_BOTH(NR_DESTROY_QUEUE, &(struct io_queue_id){ .queue_id = queue.queue_id });
		if (IS(DESTROY_TWICE))
			CALL_BOTH(NR_DESTROY_QUEUE, &(struct io_queue_id){ .queue_id = queue.queue_id });
		for (unsigned i = 0; i < (IS(MEMORY_LEFT) ? 8 : 9); i++)
			give(all[i]);
	}
	close(drm);
	close(kfd);
	exit(RIGHT);
}

_Noreturn void client(enum mistake wanted)
{
	mistake = wanted;
	open_card();
	memory_mistakes();
	load();
	fill();
	create_events();
	_Atomic uint64_t *doorbell = create_queue();
	submit(doorbell, 0, true, true);
	enum ending e = await();
	if (e == TIMEOUT && IS(DOORBELL_NOT_RUNG))
		CALL_BOTH(NR_DESTROY_QUEUE, &(struct io_queue_id){ .queue_id = queue.queue_id });
	if (e != RIGHT)
		_exit((int)e);
	if (!sums_are_right())
		_exit(WRONG);
	again(doorbell);
	end();
	abort();
}
