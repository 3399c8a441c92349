/* server/http/request_id.c - the name that a request has in its answer. */
#include "server/http/request_id.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void request_id_make(char id[REQUEST_ID])
{
	unsigned char random[12] = { 0 };
	int n = snprintf(id, REQUEST_ID, "req_");

	if (getrandom(random, sizeof random, GRND_NONBLOCK) < 0)
		memcpy(random, &(uintptr_t){ (uintptr_t)id }, sizeof(uintptr_t));
	for (size_t i = 0; i < sizeof random; i++)
		n += snprintf(id + n, (size_t)(REQUEST_ID - n), "%02x", random[i]);
}
