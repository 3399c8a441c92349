#include "runtime/model/sized.h"

#include <stdint.h>
#include <string.h>

#include "include/jitrun.h"

static bool check_size(size_t size, const char *type, struct error *err)
{
	if (!size)
		return error_set(err, ERROR_ARGUMENT, "%s.size is 0; expected sizeof(%s)", type, type);
	if (size > SIZED_MAX || size % SIZED_STEP)
		return error_set(err, ERROR_ARGUMENT, "%s.size is %zu; expected a multiple of %d, at most %d", type,
		                 size, SIZED_STEP, SIZED_MAX);
	return true;
}

bool needed(const void *p, const char *function, const char *parameter, struct error *err)
{
	return p || error_set(err, ERROR_ARGUMENT, "%s: %s is NULL; expected an address", function, parameter);
}

bool sized_read(void *own, size_t own_size, const void *from, const char *type, struct error *err)
{
	const uint8_t *bytes = from;
	size_t size = own_size;

	memset(own, 0, own_size);
	if (from)
		memcpy(&size, from, sizeof size);
	if (!check_size(size, type, err))
		return false;
	for (size_t i = own_size; i < size; i++)
		if (bytes[i])
			return error_set(err, ERROR_ARGUMENT,
			                 "%s: byte %zu is %u, but jitrun " JITRUN_VERSION
			                 " knows %zu bytes; expected 0 beyond them",
			                 type, i, bytes[i], own_size);
	if (from)
		memcpy(own, from, size < own_size ? size : own_size);
	memcpy(own, &own_size, sizeof own_size);
	return true;
}

bool sized_write(void *to, const void *own, size_t own_size, const char *type, struct error *err)
{
	size_t size;

	if (!to)
		return error_set(err, ERROR_ARGUMENT, "there is no %s to fill; expected an address", type);
	memcpy(&size, to, sizeof size);
	if (!check_size(size, type, err))
		return false;
	memcpy((uint8_t *)to + sizeof size, (const uint8_t *)own + sizeof size,
	       (size < own_size ? size : own_size) - sizeof size);
	if (size > own_size)
		memset((uint8_t *)to + own_size, 0, size - own_size);
	return true;
}
