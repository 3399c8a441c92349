/* jit/store/driver_code.c - the keys of code that a card's driver made. See driver_code.h. */
#include "jit/store/driver_code.h"

#include <stdio.h>

#include "jit/backend.h"

enum { CAPABILITY_BITS = 8, VERSION_BITS = 16, BY_BITS = CAPABILITY_BITS + VERSION_BITS };

struct key driver_code_key(const struct key *text, struct driver_code by)
{
	struct key key = *text;

	key.codegen = ~text->codegen >> BY_BITS << BY_BITS |
	              (uint64_t)(by.capability & ((1u << CAPABILITY_BITS) - 1)) << VERSION_BITS |
	              (by.version & ((1u << VERSION_BITS) - 1));
	return key;
}

bool driver_code_is(const struct key *key, struct driver_code *by)
{
	bool is = key->target > TARGET_NONE && key->target < TARGET_COUNT &&
	          target_table[key->target].backend == &backend_ptx &&
	          key->codegen >> BY_BITS == ~key_codegen(key->target) >> BY_BITS;

	if (is && by)
		*by = (struct driver_code){
			.capability = (uint32_t)(key->codegen >> VERSION_BITS) & ((1u << CAPABILITY_BITS) - 1),
			.version = (uint32_t)key->codegen & ((1u << VERSION_BITS) - 1)
		};
	return is;
}

char *driver_code_text(struct driver_code by, char out[DRIVER_CODE_TEXT_MAX])
{
	snprintf(out, DRIVER_CODE_TEXT_MAX, "compute capability %u.%u, CUDA %u.%u", by.capability / 10,
	         by.capability % 10, by.version / 1000, by.version % 1000 / 10);
	return out;
}

bool driver_code_is_by(const struct key *key, const struct driver_linker *l)
{
	struct driver_code by;

	return l && driver_code_is(key, &by) && l->by.capability == by.capability && l->by.version == by.version;
}

size_t driver_code_count(const struct key *key, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += driver_code_is(&key[i], NULL);
	return count;
}

size_t driver_code_drop(struct key *key, size_t n)
{
	size_t left = 0;

	for (size_t i = 0; i < n; i++)
		if (!driver_code_is(&key[i], NULL))
			key[left++] = key[i];
	return left;
}

bool driver_code_make(const struct driver_linker *l, const struct key *key, compile_build_fn build, struct object *out,
                      struct error *err)
{
	char text[DRIVER_CODE_TEXT_MAX];
	struct driver_code by = { 0 };
	struct key source = *key;
	struct object o;

	*out = (struct object){ 0 };
	source.codegen = key_codegen(key->target);
	driver_code_is(key, &by);
	if (!driver_code_is_by(key, l))
		return error_set(err, ERROR_UNSUPPORTED,
		                 "it was made by a card's driver (%s), which alone can make it again (jitwarm "
		                 "--device)",
		                 driver_code_text(by, text));
	if (!compile_key(&o, &source, build, NULL, NULL, err))
		return false;
	bool ok = l->link(l->user, &source, &o, out, err);
	object_free(&o);
	return ok;
}
