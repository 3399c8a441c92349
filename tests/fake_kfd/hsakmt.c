/* tests/fake_kfd/hsakmt.c - a client that nobody here wrote: AMD's own library for /dev/kfd, where it is installed.
 *
 * Opened by name, with declarations of the few functions and fields that are used here.
 */
#include "tests/fake_kfd/client.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, NODE = 1 };
enum { FLAG_NON_PAGED = 1 << 0, FLAG_HOST = 1 << 6, FLAG_NO_SUBSTITUTE = 1 << 7, FLAG_EXECUTE = 1 << 12 };
enum { QUEUE_IS_AQL = 21, PRIORITY_NORMAL = 0 };
struct hsa_queue_resource {
	uint64_t id;
	void *doorbell, *write, *read, *error;
};
struct hsa_event_descriptor {
	int type;
	uint32_t node;
	void *user;
	uint32_t more[8];
};

static void *library;

static void *function(const char *name)
{
	void *f = dlsym(library, name);

	if (!f)
		exit(NOT_MADE);
	return f;
}

static void check(int result, const char *name)
{
	if (!result)
		return;
	printf("%d %s\n", result, name);
	exit(REFUSED);
}
#define CALL(name, types, ...) \
	do { \
		int(*f) types; \
		void *found = function(#name); \
		memcpy(&f, &found, sizeof f); \
		check(f(__VA_ARGS__), #name); \
	} while (0)

static void *allocate(uint32_t node, uint64_t bytes, uint32_t flags)
{
	void *p = NULL;
	uint64_t other;

	CALL(hsaKmtAllocMemory, (uint32_t, uint64_t, uint32_t, void **), node, bytes, flags, &p);
	CALL(hsaKmtMapMemoryToGPU, (void *, uint64_t, uint64_t *), p, bytes, &other);
	memset(p, 0, bytes);
	return p;
}

_Noreturn void hsakmt_client(void)
{
	const uint32_t host = FLAG_HOST | FLAG_EXECUTE | FLAG_NO_SUBSTITUTE;
	char system[256];
	struct hsa_queue_resource q = { 0 };
	struct hsa_event_descriptor d = { .type = 0, .node = NODE };
	void *event = NULL;

	library = dlopen("libhsakmt.so.1", RTLD_NOW);
	if (!library)
		exit(NOT_MADE);
	CALL(hsaKmtOpenKFD, (void));
	CALL(hsaKmtAcquireSystemProperties, (void *), system);
	unsigned char *ring = allocate(0, PAGE, host), *pointers = allocate(0, PAGE, host),
		      *vram = allocate(NODE, 2 * PAGE, FLAG_HOST | FLAG_NON_PAGED | FLAG_NO_SUBSTITUTE);
	CALL(hsaKmtCreateEvent, (struct hsa_event_descriptor *, int, int, void **), &d, 1, 0, &event);
	q.write = pointers + 0x38;
	q.read = pointers + 0x80;
	CALL(hsaKmtCreateQueue, (uint32_t, int, uint32_t, int, void *, uint64_t, void *, struct hsa_queue_resource *),
	     NODE, QUEUE_IS_AQL, 100, PRIORITY_NORMAL, ring, PAGE, NULL, &q);
	CALL(hsaKmtDestroyQueue, (uint64_t), q.id);
	CALL(hsaKmtDestroyEvent, (void *), event);
	CALL(hsaKmtUnmapMemoryToGPU, (void *), vram);
	CALL(hsaKmtFreeMemory, (void *, uint64_t), vram, 2 * PAGE);
	CALL(hsaKmtCloseKFD, (void));
	exit(RIGHT);
}
