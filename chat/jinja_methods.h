/* chat/jinja_methods.h - the numbers of methods, which the table and those who do them share. */
#ifndef CHAT_JINJA_METHODS_H
#define CHAT_JINJA_METHODS_H

/* clang-format off */
#define STRING_METHODS(X) \
	X(capitalize) X(center) X(count) X(endswith) X(find) X(format) \
	X(index) X(isalnum) X(isalpha) X(isascii) X(isdecimal) X(isdigit) \
	X(islower) X(isnumeric) X(isspace) X(isupper) X(join) X(ljust) \
	X(lower) X(lstrip) X(partition) X(removeprefix) X(removesuffix) X(replace) \
	X(rfind) X(rindex) X(rjust) X(rpartition) X(rsplit) X(rstrip) \
	X(split) X(splitlines) X(startswith) X(strip) X(swapcase) X(title) \
	X(upper) X(zfill)
/* clang-format on */

enum {
#define X(name) STRING_##name,
	STRING_METHODS(X)
#undef X
		STRING_COUNT
};

enum {
	METHOD_items,
	METHOD_keys,
	METHOD_values,
	METHOD_get,
	METHOD_copy,
	METHOD_count,
	METHOD_index,
	METHOD_is_integer,
	METHOD_append, /* of lists that the template made, where that is allowed */
	METHOD_pop
};

#endif
