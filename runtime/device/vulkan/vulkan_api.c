/* runtime/device/vulkan/vulkan_api.c - finds Vulkan's loader and starts an instance. See vulkan_api.h. */
#include "runtime/device/vulkan/vulkan_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SONAME "libvulkan.so.1"

const char *vulkan_result_text(int result)
{
	switch (result) {
	case VULKAN_TIMEOUT: return "it did not end in time";
	case VULKAN_NO_HOST_MEMORY: return "out of the host's memory";
	case VULKAN_NO_DEVICE_MEMORY: return "out of the device's memory";
	case VULKAN_INITIALIZATION_FAILED: return "the initialisation failed";
	case VULKAN_DEVICE_LOST: return "the device was lost";
	case VULKAN_MEMORY_MAP_FAILED: return "memory could not be mapped";
	case VULKAN_LAYER_NOT_PRESENT: return "a layer is missing";
	case VULKAN_EXTENSION_NOT_PRESENT: return "an extension is missing";
	case VULKAN_FEATURE_NOT_PRESENT: return "a feature is missing";
	case VULKAN_TOO_MANY_OBJECTS: return "more of them are not possible";
	case VULKAN_INCOMPATIBLE_DRIVER: return "there is no driver of Vulkan";
	default: return "an error that has no name here";
	}
}

static struct vulkan_library library;
static struct error why_not;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *find_function(void *instance, const char *name) { return library.find(instance, name); }

/* Which function a name stands for: function pointers are copied as bytes, as dlsym() gives them. */
static bool find_all(const char *const names[], size_t n, void *table, void *instance, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		void *p = find_function(instance, names[i]);
		if (!p)
			return error_set(err, ERROR_DEVICE, "%s has no %s: Vulkan 1.3 is needed", SONAME, names[i]);
		memcpy((char *)table + i * sizeof p, &p, sizeof p);
	}
	return true;
}

#define NAME(member, name, result, arguments) name,

static bool make_instance(struct error *err)
{
	static const char *const names[] = { VULKAN_INSTANCE_FUNCTIONS(NAME) };
	const struct vulkan_application_info application = {
		.type = VULKAN_APPLICATION_INFO, .name = "jitrun", .api_version = VULKAN_API_1_3
	};
	const struct vulkan_instance_info info = { .type = VULKAN_INSTANCE_INFO, .application = &application };
	int (*create)(const struct vulkan_instance_info *, const void *, void **);
	void *p = find_function(NULL, "vkCreateInstance");

	if (!p)
		return error_set(err, ERROR_DEVICE, "%s has no vkCreateInstance", SONAME);
	memcpy(&create, &p, sizeof p);
	const int result = create(&info, NULL, &library.instance);
	if (result)
		return error_set(err, ERROR_DEVICE, "Vulkan does not start: %s (%d)", vulkan_result_text(result),
		                 result);
	return find_all(names, sizeof names / sizeof *names, &library.api, library.instance, err);
}

static void start(void)
{
	void *file = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	void *find = file ? dlsym(file, "vkGetInstanceProcAddr") : NULL;

	if (!find) {
		error_set(&why_not, ERROR_DEVICE, "%s, Vulkan's loader, is not there: %.200s", SONAME,
		          file ? "it has no vkGetInstanceProcAddr" : dlerror());
		return;
	}
	memcpy(&library.find, &find, sizeof find);
	make_instance(&why_not);
}

const struct vulkan_library *vulkan_library(struct error *err)
{
	pthread_once(&once, start);
	if (!why_not.code)
		return &library;
	error_set(err, why_not.code, "%s", why_not.text);
	return NULL;
}

bool vulkan_find_functions(struct vulkan_device_api *api, const struct vulkan_library *l, struct error *err)
{
	static const char *const names[] = { VULKAN_DEVICE_FUNCTIONS(NAME) };

	return find_all(names, sizeof names / sizeof *names, api, l->instance, err);
}
