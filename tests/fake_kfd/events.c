/* tests/fake_kfd/events.c - events: created, waited for, signalled by interrupts and faults.
 *
 * Owns the page of slots into which a card writes an event's number before it interrupts. A lock of its own: a program
 * waits here while packets run.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "tests/fake_kfd/fake.h"

enum { OTHERS_MAX = 64, SIGNALS_MAX = EVENTS_MAX };
static const uint64_t UNSIGNALLED = ~0ull;

struct event {
	bool used, auto_reset, signalled;
	uint32_t type;
	uint64_t age;
	struct io_event_data data;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct event signal[SIGNALS_MAX], other[OTHERS_MAX];
	_Atomic uint64_t *slots;
	const struct bo *page;
	unsigned waiting;
	bool gone;
} e = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static struct event *find(uint32_t id)
{
	struct event *v = id < SIGNALS_MAX                                ? &e.signal[id]
	                  : id - (uint32_t)EVENT_FIRST_OTHER < OTHERS_MAX ? &e.other[id - EVENT_FIRST_OTHER]
	                                                                  : NULL;

	return v && v->used ? v : NULL;
}

bool event_page_has(const struct bo *b) { return b && b == e.page; }

static int set_page(uint64_t handle)
{
	struct card *c = card_by_id((uint32_t)(handle >> 32));
	struct bo *b = c ? memory_by_handle(c, handle) : NULL;

	if (e.slots || !b) {
		object_to(e.slots ? "CREATE_EVENT: the page of events is set already"
		                  : "CREATE_EVENT: the page of events has handle 0x%llx, which is none",
		          (unsigned long long)handle);
		return EINVAL;
	}
	if (!(b->flags & MEM_GTT) || !b->mapped || b->size < EVENTS_MAX * 8) {
		object_to("CREATE_EVENT: the page of events must be GTT memory, mapped, of %u bytes", EVENTS_MAX * 8);
		return EINVAL;
	}
	if (!(b->flags & MEM_UNCACHED))
		object_to("CREATE_EVENT: the page of events is cached memory");
	e.page = b;
	e.slots = (_Atomic uint64_t *)(uintptr_t)b->address;
	memset((void *)(uintptr_t)b->address, 0xff, EVENTS_MAX * 8);
	return 0;
}

int event_create(struct io_create_event *a)
{
	int error = 0;

	pthread_mutex_lock(&e.lock);
	bool signal = a->type == EVENT_SIGNAL || a->type == EVENT_DEBUG;
	if (a->page_offset)
		error = set_page(a->page_offset);
	struct event *list = signal ? e.signal : e.other;
	uint32_t n = signal ? SIGNALS_MAX : OTHERS_MAX, i = signal ? 1 : 0;
	while (!error && i < n && list[i].used)
		i++;
	if (!error && i == n)
		error = ENOSPC;
	if (!error) {
		list[i] = (struct event){ .used = true, .auto_reset = a->auto_reset != 0, .type = a->type, .age = 1 };
		a->event_id = a->trigger_data = signal ? i : i + EVENT_FIRST_OTHER;
		a->page_offset = signal ? MMAP_EVENTS : 0;
		if (signal)
			a->slot = i;
		if (signal && e.slots)
			e.slots[i] = UNSIGNALLED;
	}
	pthread_mutex_unlock(&e.lock);
	return error;
}

int event_destroy(const struct io_event_id *a)
{
	pthread_mutex_lock(&e.lock);
	struct event *v = find(a->event_id);
	if (v)
		v->used = false;
	pthread_cond_broadcast(&e.changed);
	pthread_mutex_unlock(&e.lock);
	if (!v)
		object_to("DESTROY_EVENT: there is no event %u", a->event_id);
	return v ? 0 : EINVAL;
}

static void signal_event(struct event *v)
{
	v->signalled = true;
	v->age++;
	pthread_cond_broadcast(&e.changed);
}

static int change(uint32_t id, bool to)
{
	pthread_mutex_lock(&e.lock);
	struct event *v = find(id);
	int error = v && v->type == EVENT_SIGNAL ? 0 : EINVAL;
	if (!error && to)
		signal_event(v);
	else if (!error)
		v->signalled = false;
	pthread_mutex_unlock(&e.lock);
	if (error)
		object_to("%s_EVENT: event %u is no signal", to ? "SET" : "RESET", id);
	return error;
}

int event_set(const struct io_event_id *a) { return change(a->event_id, true); }
int event_reset(const struct io_event_id *a) { return change(a->event_id, false); }

/* ---- waiting */

static struct timespec deadline(uint32_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000;
	}
	return t;
}

/* How many are signalled; they are then taken: an event that resets itself is seen once. */
static unsigned ready(struct io_event_data *list, uint32_t n, bool all)
{
	unsigned done = 0;

	for (uint32_t i = 0; i < n; i++) {
		const struct event *v = find(list[i].event_id);
		done += v && (v->signalled || (fake.minor >= 14 && v->type == EVENT_SIGNAL && list[i].last_age &&
		                               list[i].last_age != v->age));
	}
	if (!done || (all && done < n))
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		struct event *v = find(list[i].event_id);
		if (!v)
			continue;
		if (v->signalled && v->type == EVENT_MEMORY)
			list[i].memory = v->data.memory;
		else if (v->signalled && v->type == EVENT_HW_EXCEPTION)
			list[i].exception = v->data.exception;
		else if (v->type == EVENT_SIGNAL && fake.minor >= 14 && list[i].last_age)
			list[i].last_age = v->age;
		if (v->signalled && v->auto_reset)
			v->signalled = false;
	}
	return done;
}

int event_wait(struct io_wait_events *a)
{
	struct io_event_data *list = (struct io_event_data *)(uintptr_t)a->events;
	struct timespec until = deadline(a->timeout == ~0u ? 1000000000 : a->timeout);
	int error = 0;

	a->result = WAIT_FAIL;
	if (!list)
		return EFAULT;
	if (!a->n)
		object_to("WAIT_EVENTS: there is nothing to wait for");
	if (a->timeout == ~0u)
		object_to("WAIT_EVENTS: it waits for ever: a card that is stuck would never let it go");
	pthread_mutex_lock(&e.lock);
	for (uint32_t i = 0; !error && i < a->n; i++)
		if (!find(list[i].event_id)) {
			object_to("WAIT_EVENTS: there is no event %u", list[i].event_id);
			error = EINVAL;
		}
	bool late = a->timeout == 0;
	while (!error) {
		for (uint32_t i = 0; i < a->n; i++)
			if (!find(list[i].event_id))
				error = EIO; /* destroyed meanwhile */
		if (e.gone)
			error = ENODEV;
		a->result = ready(list, a->n, a->all != 0) ? WAIT_COMPLETE : WAIT_TIMEOUT;
		if (error || a->result == WAIT_COMPLETE || late)
			break;
		late = pthread_cond_timedwait(&e.changed, &e.lock, &until) == ETIMEDOUT;
	}
	pthread_mutex_unlock(&e.lock);
	if (error)
		a->result = WAIT_FAIL;
	return error;
}

/* ---- from the card */

void event_interrupt(uint32_t id)
{
	pthread_mutex_lock(&e.lock);
	struct event *v = find(id);
	if (!v || id >= SIGNALS_MAX)
		object_to("a signal interrupts with event %u, which there is not", id);
	else if (!e.slots || e.slots[id] == UNSIGNALLED)
		object_to("a signal interrupts with event %u, but its mailbox is not that event's slot: the driver "
		          "finds nothing",
		          id);
	else {
		e.slots[id] = UNSIGNALLED;
		signal_event(v);
	}
	pthread_mutex_unlock(&e.lock);
}

static void tell(uint32_t type, const struct io_event_data *data)
{
	bool heard = false;

	pthread_mutex_lock(&e.lock);
	for (unsigned i = 0; i < OTHERS_MAX; i++)
		if (e.other[i].used && e.other[i].type == type) {
			e.other[i].data = *data;
			signal_event(&e.other[i]);
			heard = true;
		}
	pthread_mutex_unlock(&e.lock);
	if (!heard)
		object_to("%s happened, and no event of the program is there to hear of it",
		          type == EVENT_MEMORY ? "a memory fault" : "a reset");
}

void event_fault(struct card *c, uint64_t address, bool write, bool present, bool execute)
{
	for (unsigned i = 0; i < QUEUES_MAX; i++)
		c->queue[i].stopped = c->queue[i].evicted = c->queue[i].used;
	tell(EVENT_MEMORY, &(struct io_event_data){ .memory = { .not_present = !present,
	                                                        .read_only = present && write,
	                                                        .no_execute = execute,
	                                                        .address = address & ~(uint64_t)(PAGE - 1),
	                                                        .gpu_id = c->gpu_id } });
}

void event_hw_reset(const struct card *c)
{
	tell(EVENT_HW_EXCEPTION, &(struct io_event_data){ .exception = { .memory_lost = 1, .gpu_id = c->gpu_id } });
}

void event_gone(void)
{
	pthread_mutex_lock(&e.lock);
	e.gone = true;
	pthread_cond_broadcast(&e.changed);
	pthread_mutex_unlock(&e.lock);
}
