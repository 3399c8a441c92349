/* tests/fake_kfd/wrong.c - a card that computes wrongly: one bit of what a packet wrote is turned round. */
#include <stdlib.h>
#include <string.h>

#include "tests/fake_kfd/fake.h"

/* Neither the weights of large models, which would take long, nor code and the page that launches are counted in: a
 * card that is wrong there says so itself. */
enum { LOOKED_AT = 1 << 22 };

static bool is_looked_at(const struct bo *b)
{
	return (b->flags & (MEM_VRAM | MEM_EXECUTABLE)) == MEM_VRAM && b->size > PAGE && b->size <= LOOKED_AT;
}

uint8_t *wrong_before(const struct card *c)
{
	size_t total = 0;

	if (!fake.inject.wrong || fake.packets != fake.inject.wrong)
		return NULL;
	for (const struct bo *b = c->bos; b; b = b->next)
		total += is_looked_at(b) ? b->size : 0;
	uint8_t *copy = malloc(total + 1), *at = copy;
	for (const struct bo *b = c->bos; copy && b; b = b->next)
		if (is_looked_at(b)) {
			memcpy(at, (const void *)(uintptr_t)b->address, b->size);
			at += b->size;
		}
	return copy;
}

/* The next packet has its turn where this one wrote nothing there. */
void wrong_after(const struct card *c, uint8_t *copy)
{
	const uint8_t *at = copy;

	for (const struct bo *b = c->bos; copy && b; b = b->next) {
		uint8_t *now = (uint8_t *)(uintptr_t)b->address;
		size_t i = 0;
		if (!is_looked_at(b))
			continue;
		while (i < b->size && now[i] == at[i])
			i++;
		if (i < b->size) {
			now[i] ^= 1;
			fake.inject.wrong = 0;
			break;
		}
		at += b->size;
	}
	if (copy && fake.inject.wrong)
		fake.inject.wrong++;
	free(copy);
}
