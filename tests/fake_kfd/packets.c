/* tests/fake_kfd/packets.c - AQL packets: what a card's packet processor reads, and how a completion is told. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/fake_kfd/fake.h"

static bool wrong(const char *what, uint64_t index)
{
	object_to("packet %" PRIu64 ": %s", index, what);
	return false;
}

/* ---- completion */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec) / 10;
}

static bool signal_is_right(struct queue *q, uint64_t address, uint64_t index)
{
	const struct bo *b = memory_at(q->card, address, sizeof(struct aql_signal));

	if (address & 63)
		return wrong("its signal does not lie at a multiple of 64", index);
	if (!b || !(b->flags & MEM_WRITABLE)) {
		wrong("its signal lies where the card cannot write", index);
		event_fault(q->card, address, true, b != NULL, false);
		return false;
	}
	if (!(b->flags & MEM_GTT) || !(b->flags & MEM_COHERENT))
		return wrong("its signal is not coherent GTT memory", index);
	const struct aql_signal *s = (const struct aql_signal *)(uintptr_t)address;
	if (s->kind != 1)
		return wrong("its signal is of no kind that the processor counts down", index);
	if (s->mailbox && !memory_at(q->card, s->mailbox, 8)) {
		wrong("its signal's mailbox lies where the card cannot write", index);
		event_fault(q->card, s->mailbox, true, false, false);
		return false;
	}
	if (s->mailbox && !event_page_has(memory_at(q->card, s->mailbox, 8)))
		wrong("its signal's mailbox is not in the page of events", index);
	return true;
}

static void complete(struct queue *q, uint64_t address, uint64_t start)
{
	struct aql_signal *s = (struct aql_signal *)(uintptr_t)address;
	uint64_t mailbox = s->mailbox;
	uint32_t id = s->event_id;

	(void)q;
	s->start = start;
	s->end = now();
	if (mailbox)
		atomic_store((_Atomic uint64_t *)(uintptr_t)mailbox, id);
	atomic_fetch_sub_explicit((_Atomic int64_t *)&s->value, 1, memory_order_release);
	if (mailbox && fake.packets != fake.inject.lost)
		event_interrupt(id);
}

/* ---- checks of the header */

static bool header_is_right(uint16_t header, uint64_t index, bool first, bool last, bool signals)
{
	unsigned acquire = header >> 9 & 3, release = header >> 11 & 3;

	if (header >> 13)
		return wrong("its header has bits that mean nothing", index);
	if (acquire == 3 || release == 3)
		return wrong("its header names a scope that there is not", index);
	if (acquire < (first ? SCOPE_SYSTEM : SCOPE_AGENT))
		wrong("it does not acquire what the host or the packet before it wrote", index);
	if (release < (last || signals ? SCOPE_SYSTEM : SCOPE_AGENT))
		wrong("it does not release what it wrote to the host or the packet behind it", index);
	if (!first && !(header >> 8 & 1))
		wrong("it does not wait for the packet before it: its barrier bit is 0", index);
	return true;
}

static bool grid_is_right(const struct aql_dispatch *p, uint64_t index)
{
	unsigned dims = p->setup & 3;
	uint64_t items = 1;

	if (!dims || p->setup >> 2)
		return wrong("its setup names no number of dimensions from 1 to 3", index);
	for (unsigned i = 0; i < 3; i++) {
		if (i >= dims && (p->grid_size[i] != 1 || p->group_size[i] != 1))
			return wrong("its sizes beyond its dimensions are not 1", index);
		if (!p->group_size[i] || !p->grid_size[i])
			return wrong("a size of it is 0", index);
		if (p->grid_size[i] % p->group_size[i])
			return wrong("its grid, which is in work items, is no multiple of the workgroup", index);
		items *= p->group_size[i];
	}
	if (items > 1024)
		return wrong("its workgroups have more than 1024 work items", index);
	if (p->reserved0 || p->reserved1)
		return wrong("what is reserved in it is not 0", index);
	if (p->private_size)
		return wrong("it asks for scratch memory, of which the queue has none", index);
	return true;
}

/* ---- what goes wrong on purpose */

static void card_gone(struct card *c)
{
	c->gone = true;
	sysfs_gone(c);
	event_gone();
}

static bool mishap(struct queue *q)
{
	const struct inject *i = &fake.inject;
	uint64_t n = fake.packets;

	if (i->slow_ms)
		nanosleep(&(struct timespec){ i->slow_ms / 1000, (long)(i->slow_ms % 1000) * 1000000 }, NULL);
	if (n == i->fault) {
		event_fault(q->card, 0xdead0000, true, false, false);
		queue_stop(q, "an injected fault");
	} else if (n == i->reset) {
		event_hw_reset(q->card);
		queue_stop(q, "an injected reset");
	} else if (n == i->wedge && !i->wedge_after)
		queue_stop(q, "an injected wedge");
	else if (n == i->unplug) {
		card_gone(q->card);
		queue_stop(q, "the card is gone");
	}
	return q->stopped;
}

/* ---- packets */

static bool barrier(struct queue *q, const struct aql_barrier *p, uint64_t index, unsigned type)
{
	unsigned done = 0, n = 0;

	for (unsigned i = 0; i < 5; i++) {
		if (!p->dependency[i])
			continue;
		if (!memory_at(q->card, p->dependency[i], sizeof(struct aql_signal)))
			return wrong("it waits for a signal that the card cannot read", index);
		n++;
		done += ((const struct aql_signal *)(uintptr_t)p->dependency[i])->value == 0;
	}
	if (type == PACKET_BARRIER_AND ? done < n : n && !done)
		return wrong("it waits for a signal that nothing will set", index);
	return true;
}

bool packet_run(struct queue *q, uint64_t index, bool first, bool last)
{
	const void *at = (const void *)(uintptr_t)(q->ring + index % (q->ring_size / 64) * 64);
	struct aql_dispatch p;
	struct aql_barrier b;
	uint64_t start = now();

	p.header = atomic_load_explicit((const _Atomic uint16_t *)at, memory_order_acquire);
	unsigned type = p.header & 0xff;
	if (type != PACKET_DISPATCH && type != PACKET_BARRIER_AND && type != PACKET_BARRIER_OR)
		return wrong(type == PACKET_INVALID ? "the doorbell names it, and it is not there yet"
		                                    : "it is of a type that the fake does not run",
		             index);
	memcpy(&p, at, sizeof p);
	memcpy(&b, at, sizeof b);
	fake.packets++;
	trace_call((unsigned)fake.packets, "packet", 0);
	if (mishap(q))
		return false;
	if (!header_is_right(p.header, index, first, last, p.signal != 0))
		return false;
	if (p.signal && !signal_is_right(q, p.signal, index))
		return false;
	bool ok = type == PACKET_DISPATCH ? grid_is_right(&p, index) && dispatch_run(q, index, &p, !last && !p.signal)
	                                  : barrier(q, &b, index, type);
	*(uint16_t *)(uintptr_t)at = PACKET_INVALID;
	if (ok && p.signal)
		complete(q, p.signal, start);
	return ok;
}
