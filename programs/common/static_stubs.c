/* programs/common/static_stubs.c - what programs that are linked statically do without: libraries that are opened at
 * run time, such as drivers of graphics cards.
 *
 * A static program that opened a library would need the very C library it was linked with, so it says that it opens
 * none.
 */
#include <dlfcn.h>
#include <stddef.h>

static const char no_libraries[] = "this program is linked statically and opens no libraries";

void *dlopen(const char *file, int mode)
{
	(void)file, (void)mode;
	return NULL;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	(void)handle, (void)name;
	return NULL;
}

int dlclose(void *handle)
{
	(void)handle;
	return -1;
}

int dladdr(const void *address, Dl_info *info)
{
	(void)address, (void)info;
	return 0;
}

char *dlerror(void)
{
	static char text[sizeof no_libraries];

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = no_libraries[i];
	return text;
}
