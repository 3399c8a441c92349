/* runtime/device/cuda/cuda_api.c - finds NVIDIA's driver library. See cuda_api.h. */
#include "runtime/device/cuda/cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SONAME "libcuda.so.1"

static bool find_functions(struct cuda_api *api, void *file, struct error *err)
{
	static const char *const names[] = {
#define X(member, name, arguments, passed) name,
		CUDA_FUNCTIONS(X)
#undef X
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		void *p = dlsym(file, names[i]);
		if (!p)
			return error_set(err, ERROR_DEVICE,
			                 "%s has no %s: the NVIDIA driver is too old, one for CUDA %d.%d or later is "
			                 "needed",
			                 SONAME, names[i], CUDA_MIN_DRIVER / 1000, CUDA_MIN_DRIVER % 1000 / 10);
		memcpy((char *)api + i * sizeof p, &p, sizeof p);
	}
	return true;
}

char *cuda_result_text(const struct cuda_api *api, int result, char *out, size_t size)
{
	const char *name = NULL, *text = NULL;

	if (api->error_name(result, &name) || !name)
		name = "unknown";
	if (api->error_text(result, &text) || !text)
		text = "error";
	snprintf(out, size, "%s (%s, %d)", text, name, result);
	return out;
}

static bool start(const struct cuda_api *api, struct error *err)
{
	char text[200];
	int version = 0, result = api->init(0);

	if (result == CUDA_NO_DEVICE)
		return error_set(err, ERROR_DEVICE, "this machine has no NVIDIA card that its driver knows");
	if (result)
		return error_set(err, ERROR_DEVICE, "the NVIDIA driver does not start: %s",
		                 cuda_result_text(api, result, text, sizeof text));
	if (api->driver_version(&version) || version < CUDA_MIN_DRIVER)
		return error_set(err, ERROR_DEVICE,
		                 "the NVIDIA driver is too old: it is for CUDA %d.%d, one for %d.%d or later is needed",
		                 version / 1000, version % 1000 / 10, CUDA_MIN_DRIVER / 1000,
		                 CUDA_MIN_DRIVER % 1000 / 10);
	return true;
}

/* What is made for a card is kept in our own cache; the driver must not keep it as well. */
static void keep_nothing_twice(void) { setenv("CUDA_CACHE_DISABLE", "1", 0); }

const struct cuda_api *cuda_library(struct error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct cuda_api api;
	static bool ready;
	bool ok;

	pthread_mutex_lock(&lock);
	if (!ready) {
		keep_nothing_twice();
		void *file = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
		if (!file)
			error_set(err, ERROR_DEVICE, "NVIDIA's driver library cannot be opened: %s", dlerror());
		ready = file && find_functions(&api, file, err) && start(&api, err);
		if (file && !ready)
			dlclose(file);
	}
	ok = ready;
	pthread_mutex_unlock(&lock);
	return ok ? &api : NULL;
}
