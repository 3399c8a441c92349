/* tests/fake_kfd/queues.c - queues: created as strictly as the driver creates them, and the thread that watches their
 * doorbells.
 *
 * A doorbell is the index of the last packet that may run. It begins as all ones, so that its first ring, 0, is seen.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/fake_kfd/fake.h"

enum { EOP_BYTES = 4096, RING_MIN = 1024, LOOK_NS = 20000, LOOK_MAX_NS = 500000 };
static const uint64_t NEVER = ~0ull;
static pthread_t thread;
static bool thread_runs;

/* ---- creating */

static int refuse_numbers(const struct io_create_queue *a)
{
	if (a->type != QUEUE_AQL)
		object_to("CREATE_QUEUE: type %u, and the fake runs AQL (2) alone", a->type);
	else if (a->percentage > 100 || a->priority > 15)
		object_to("CREATE_QUEUE: %u %% and priority %u, expected at most 100 and 15", a->percentage,
		          a->priority);
	else if (!a->percentage)
		object_to("CREATE_QUEUE: with 0 %% of the card nothing runs");
	else if (!a->ring_size || (a->ring_size & (a->ring_size - 1)) || a->ring_size < RING_MIN)
		object_to("CREATE_QUEUE: the ring has %u bytes, expected a power of two from %u on", a->ring_size,
		          RING_MIN);
	else
		return 0;
	return EINVAL;
}

/* A buffer that the driver looks up by its first page, and that has exactly that size. */
static int whole(struct card *c, uint64_t address, uint64_t size, const char *what, struct bo **out)
{
	struct bo *b = memory_at(c, address, 1);

	if (!b)
		object_to("CREATE_QUEUE: the %s at 0x%" PRIx64 " is in no buffer that the card has mapped", what,
		          address);
	else if (address / PAGE * PAGE != b->address || b->size != size)
		object_to("CREATE_QUEUE: the %s must be a buffer of its own of %" PRIu64 " bytes, and 0x%" PRIx64
		          " is byte %" PRIu64 " of %" PRIu64,
		          what, size, address, address - b->address, b->size);
	else {
		*out = b;
		return 0;
	}
	return EINVAL;
}

static int find_buffers(struct card *c, const struct io_create_queue *a, struct queue *q)
{
	int error = whole(c, a->write_pointer, PAGE, "write pointer", &q->bo[0]);

	if (!error)
		error = whole(c, a->read_pointer, PAGE, "read pointer", &q->bo[1]);
	if (!error)
		error = whole(c, a->ring, a->ring_size, "ring", &q->bo[2]);
	if (!error && (a->ring & (PAGE - 1))) {
		object_to("CREATE_QUEUE: the ring begins at 0x%" PRIx64 ", inside a page", a->ring);
		error = EINVAL;
	}
	if (!error && a->eop_size != EOP_BYTES) {
		object_to("CREATE_QUEUE: the end-of-pipe buffer has %" PRIu64 " bytes, expected %u", a->eop_size,
		          EOP_BYTES);
		error = EINVAL;
	}
	if (!error)
		error = whole(c, a->eop, EOP_BYTES, "end-of-pipe buffer", &q->bo[3]);
	if (!error && (a->control_size != c->control_size || a->save_size != c->save_size) &&
	    a->save_size == c->other_save_size)
		error = EINVAL; /* what another version of the driver asks for: who is refused may try both */
	if (!error && (a->control_size != c->control_size || a->save_size != c->save_size)) {
		object_to("CREATE_QUEUE: control stack 0x%x and save area 0x%x, expected 0x%" PRIx64 " and 0x%" PRIx64,
		          a->control_size, a->save_size, c->control_size, c->save_size);
		error = EINVAL;
	}
	if (!error)
		error = whole(c, a->save, c->save_total, "save area", &q->bo[4]);
	return error;
}

/* What the driver does not look at, and the card trips over. */
static void look_at_buffers(const struct io_create_queue *a, const struct queue *q)
{
	static const char *const names[] = { "write pointer", "read pointer", "ring", "end-of-pipe buffer",
		                             "save area" };

	for (unsigned i = 0; i < 5; i++) {
		if (!(q->bo[i]->flags & MEM_WRITABLE))
			object_to("CREATE_QUEUE: the card cannot write the %s", names[i]);
		if (i < 3 && !(q->bo[i]->flags & (MEM_GTT | MEM_USERPTR)))
			object_to("CREATE_QUEUE: the %s is not GTT memory: what the host writes there, the card sees "
			          "late",
			          names[i]);
		if (i < 3 && !(q->bo[i]->flags & MEM_COHERENT))
			object_to("CREATE_QUEUE: the %s is not coherent memory", names[i]);
	}
	if (!(q->bo[2]->flags & MEM_EXECUTABLE))
		object_to("CREATE_QUEUE: the ring is not executable");
	if (a->write_pointer % 64 != QUEUE_WRITE_AT ||
	    a->read_pointer != a->write_pointer - QUEUE_WRITE_AT + QUEUE_READ_AT)
		object_to("CREATE_QUEUE: write and read pointer are not those of one queue's struct");
	if (*(const uint64_t *)(uintptr_t)a->write_pointer || *(const uint64_t *)(uintptr_t)a->read_pointer)
		object_to("CREATE_QUEUE: write and read pointer do not begin as 0");
}

static void *work(void *unused);

static int start_thread(void)
{
	if (thread_runs)
		return 0;
	if (pthread_create(&thread, NULL, work, NULL) != 0)
		return ENOMEM;
	pthread_detach(thread);
	thread_runs = true;
	return 0;
}

static int map_doorbells(struct card *c)
{
	if (c->doorbells)
		return 0;
	void *p = mmap(NULL, DOORBELLS + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, c->memory, 0);
	if (p == MAP_FAILED)
		return ENOMEM;
	c->doorbells = p;
	memset(p, 0xff, DOORBELLS);
	return 0;
}

static struct queue *find(uint32_t id)
{
	for (unsigned i = 0; i < fake.n_cards; i++)
		if (id < QUEUES_MAX && fake.card[i].queue[id].used)
			return &fake.card[i].queue[id];
	return NULL;
}

int queue_create(struct io_create_queue *a)
{
	struct card *c = card_by_id(a->gpu_id);
	struct queue q = { .used = true, .ring_size = a->ring_size, .ring = a->ring, .card = c };
	int error = refuse_numbers(a);
	uint32_t id = 0;

	if (error)
		return error;
	if (!c || !c->acquired) {
		object_to("CREATE_QUEUE: %s", c ? "before ACQUIRE_VM" : "there is no such card");
		return c ? ESRCH : EINVAL;
	}
	while (id < QUEUES_MAX && find(id)) /* of the process, whatever card */
		id++;
	if (id == QUEUES_MAX)
		return ENOSPC;
	error = find_buffers(c, a, &q);
	if (!error)
		error = map_doorbells(c);
	if (!error)
		error = start_thread();
	if (error)
		return error;
	look_at_buffers(a, &q);
	q.id = id;
	q.write_at = a->write_pointer;
	q.read_at = a->read_pointer;
	q.doorbell = (_Atomic uint64_t *)(void *)(c->doorbells + 0x800 + id * 8);
	atomic_store(q.doorbell, NEVER);
	q.seen = NEVER;
	for (unsigned i = 0; i < 5; i++)
		q.bo[i]->queues++;
	c->queue[id] = q;
	a->queue_id = id;
	a->doorbell_offset = MMAP_DOORBELL | MMAP_GPU(c->gpu_id) | (0x800 + id * 8);
	return 0;
}

/* ---- destroying */

static void pause_ms(unsigned ms) { nanosleep(&(struct timespec){ ms / 1000, (long)(ms % 1000) * 1000000 }, NULL); }

int queue_destroy(const struct io_queue_id *a)
{
	pthread_mutex_lock(&fake.lock);
	struct queue *q = find(a->queue_id);
	bool stopped = q && q->stopped && !q->evicted && !q->card->gone;
	pthread_mutex_unlock(&fake.lock);
	if (!q) {
		object_to("DESTROY_QUEUE: there is no queue %u", a->queue_id);
		return EINVAL;
	}
	if (stopped)
		pause_ms(fake.inject.destroy_ms); /* the scheduler of a stuck card does not answer */
	pthread_mutex_lock(&fake.lock);
	uint64_t written = *(const uint64_t *)(uintptr_t)q->write_at;
	if (!q->stopped && q->read < written && !q->card->gone)
		object_to("DESTROY_QUEUE: packets %" PRIu64 " to %" PRIu64 " were written and did not run", q->read,
		          written - 1);
	for (unsigned i = 0; i < 5; i++)
		q->bo[i]->queues--;
	*q = (struct queue){ .used = false };
	pthread_mutex_unlock(&fake.lock);
	return stopped ? ETIME : 0;
}

void queue_stop(struct queue *q, const char *why)
{
	q->stopped = true;
	q->why = why;
}

void queues_left(void)
{
	for (unsigned i = 0; i < fake.n_cards; i++)
		for (unsigned k = 0; k < QUEUES_MAX; k++)
			if (fake.card[i].queue[k].used && !fake.card[i].queue[k].stopped && !fake.card[i].gone)
				object_to("the program ended and left a queue");
}

/* ---- running */

/* What the packet processor's firmware reads of the queue's struct, which begins before the write index. */
static void look_at_struct(const struct queue *q)
{
	const uint8_t *s = (const uint8_t *)(uintptr_t)(q->write_at - QUEUE_WRITE_AT);
	uint32_t offset, units, properties;

	memcpy(&offset, s + QUEUE_READ_OFFSET_AT, 4);
	memcpy(&units, s + QUEUE_MAX_CU_AT, 4);
	memcpy(&properties, s + QUEUE_PROPERTIES_AT, 4);
	if (offset != q->read_at - (q->write_at - QUEUE_WRITE_AT))
		object_to("the queue's struct says that its read index is at byte %u of it", offset);
	if (units != q->card->cus - 1)
		object_to("the queue's struct names %u as the last compute unit, expected %u", units, q->card->cus - 1);
	if (!(properties & QUEUE_POINTERS_64))
		object_to("the queue's struct does not say that pointers have 64 bits");
}

static bool ring_is_right(struct queue *q, uint64_t ring)
{
	uint64_t written = *(const _Atomic uint64_t *)(uintptr_t)q->write_at, packets = q->ring_size / 64;

	if (q->seen == NEVER)
		look_at_struct(q);
	if (q->seen != NEVER && ring < q->seen)
		object_to("the doorbell went back from %" PRIu64 " to %" PRIu64, q->seen, ring);
	else if (ring >= written)
		object_to("the doorbell names packet %" PRIu64 " (0x%" PRIx64 "), and %" PRIu64 " are written", ring,
		          ring, written);
	else if (written - q->read > packets)
		object_to("%" PRIu64 " packets are written into a ring of %" PRIu64, written - q->read, packets);
	else
		return true;
	return false;
}

/* True: it had something to do. */
static bool answer(struct queue *q)
{
	uint64_t ring = atomic_load_explicit(q->doorbell, memory_order_acquire), first = q->read;

	if (q->stopped || ring == q->seen)
		return false;
	if (!ring_is_right(q, ring)) {
		queue_stop(q, "its doorbell");
		return true;
	}
	q->seen = ring;
	while (!q->stopped && q->read <= ring) {
		bool going = packet_run(q, q->read, q->read == first, q->read == ring);
		if (!going && !q->stopped)
			queue_stop(q, "a packet");
		if (!going && q->card->reached)
			memory_reach(q->card, false);
		if (!going)
			break;
		q->read++;
		atomic_store_explicit((_Atomic uint64_t *)(uintptr_t)q->read_at, q->read, memory_order_release);
	}
	return true;
}

static void *work(void *unused)
{
	long pause = LOOK_NS;

	(void)unused;
	for (;;) {
		bool worked = false;
		pthread_mutex_lock(&fake.lock);
		for (unsigned i = 0; i < fake.n_cards; i++)
			for (unsigned k = 0; k < QUEUES_MAX; k++)
				if (fake.card[i].queue[k].used && !fake.card[i].gone)
					worked |= answer(&fake.card[i].queue[k]);
		pthread_mutex_unlock(&fake.lock);
		pause = worked ? LOOK_NS : pause < LOOK_MAX_NS ? pause + pause / 8 : pause;
		nanosleep(&(struct timespec){ 0, pause }, NULL);
	}
	return NULL;
}
