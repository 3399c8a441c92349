/* tests/fake_kfd/client_parts.h - what the client has of the card, and how it gets memory. */
#ifndef FAKE_KFD_CLIENT_PARTS_H
#define FAKE_KFD_CLIENT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "tests/fake_kfd/abi.h"
#include "tests/fake_kfd/client.h"

extern enum mistake mistake;
#define IS(name) (mistake == M_##name)

struct buffer {
	uint64_t address, size, handle, offset;
	uint32_t flags;
};
enum { HOST = MEM_GTT | MEM_COHERENT | MEM_UNCACHED | MEM_NO_SUBSTITUTE, CARD = MEM_VRAM | MEM_NO_SUBSTITUTE };

extern int kfd, drm;
extern uint32_t gpu_id, version;
extern uint64_t units, descriptor, entry;
extern struct buffer code;

_Noreturn void refused(const char *what);
void call(unsigned number, unsigned direction, void *argument, size_t size);
#define CALL_IN(number, argument) call(number, _IOC_WRITE, argument, sizeof *(argument))
#define CALL_BOTH(number, argument) call(number, _IOC_READ | _IOC_WRITE, argument, sizeof *(argument))

void open_card(void);
struct buffer reserve(uint64_t size, uint32_t flags);
void map(const struct buffer *b);
void unmap(const struct buffer *b);
void map_for_host(const struct buffer *b);
struct buffer get(uint64_t size, uint32_t flags);
void give(const struct buffer *b);
void load(void);

#endif
