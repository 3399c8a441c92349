/* tests/runtime/t_cuda_refusals.c - what stands in the way of an NVIDIA card, each as one sentence: no library, one
 * that is too old, no card, a card that is too old, busy or full. The driver's library is opened as always, but stands
 * for what a test says; behind it is the simulated one.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/device/cuda/cuda_simulated.h"
#include "runtime/device/device.h"
#include "include/jitrun.h"
#include "tests/support/shared.h"

/* What is the matter. */
static struct trouble {
	bool no_library;
	const char *lacks; /* a function */
	int init, version, context, capability;
	size_t memory; /* 0: the card's own */
} is;
static unsigned allocations, open_files;
static char library;

void *__wrap_dlopen(const char *name, int flags);
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *file, const char *name);
void *__real_dlsym(void *file, const char *name);
int __wrap_dlclose(void *file);
int __real_dlclose(void *file);
char *__wrap_dlerror(void);

void *__wrap_dlopen(const char *name, int flags)
{
	if (!name || strcmp(name, "libcuda.so.1") != 0)
		return __real_dlopen(name, flags);
	open_files += !is.no_library;
	return is.no_library ? NULL : &library;
}

int __wrap_dlclose(void *file)
{
	open_files -= file == &library;
	return file == &library ? 0 : __real_dlclose(file);
}

char *__wrap_dlerror(void)
{
	static char text[] = "libcuda.so.1: cannot open shared object file: No such file or directory";
	return text;
}

static int init(uint32_t flags) { return is.init ? is.init : cuda_simulated()->init(flags); }

static int driver_version(int *version)
{
	*version = is.version ? is.version : 13000;
	return 0;
}

static int context_retain(void **context, int device)
{
	return is.context ? is.context : cuda_simulated()->context_retain(context, device);
}

static int device_attribute(int *value, int attribute, int device)
{
	if (!is.capability || (attribute != CUDA_MAJOR && attribute != CUDA_MINOR))
		return cuda_simulated()->device_attribute(value, attribute, device);
	*value = attribute == CUDA_MAJOR ? is.capability / 10 : is.capability % 10;
	return 0;
}

static int memory_info(size_t *left, size_t *all)
{
	int result = cuda_simulated()->memory_info(left, all);

	if (is.memory && *left > is.memory)
		*left = is.memory;
	return result;
}

static int memory_alloc(uint64_t *address, size_t bytes)
{
	allocations++;
	return cuda_simulated()->memory_alloc(address, bytes);
}

/* A function of this card's driver. */
static void *find(const char *name)
{
	struct cuda_api api = *cuda_simulated();
	void *found = NULL;

	api.init = init;
	api.driver_version = driver_version;
	api.context_retain = context_retain;
	api.device_attribute = device_attribute;
	api.memory_info = memory_info;
	api.memory_alloc = memory_alloc;
	if (is.lacks && strcmp(name, is.lacks) == 0)
		return NULL;
#define X(member, theirs, arguments, passed) \
	if (strcmp(name, theirs) == 0) \
		memcpy(&found, &api.member, sizeof found);
	CUDA_FUNCTIONS(X)
#undef X
	return found;
}

/* Sanitizers linked into the program ask before they are ready for instrumented code: this passes them on without any.
 */
void *__wrap_dlsym(void *file, const char *name) { return file == &library ? find(name) : __real_dlsym(file, name); }

static void says_all(const char *message, const char *const *says)
{
	for (; *says; says++)
		if (!strstr(message, *says))
			fail_msg("\"%s\" does not say \"%s\"", message, *says);
	assert_null(strchr(message, '\n'));
}

/* The list of devices says the same, of a card or of none. */
static void listed(void *user, const struct device_entry *e)
{
	struct device_entry *found = user;

	if (strncmp(e->name, "cuda:", 5) == 0 && !strchr(e->name, ','))
		*found = *e;
}

/* Cards that are alike are listed together as well, once: number 0 is another one than the others. */
static void listed_together(void *user, const struct device_entry *e)
{
	struct device_entry *found = user;

	if (strncmp(e->name, "cuda:", 5) != 0 || !strchr(e->name, ','))
		return;
	assert_false(*found->name);
	*found = *e;
}

/* Before the library was once opened whole: it is kept then. */
static void test_no_library(void **state)
{
	static const struct {
		struct trouble is;
		const char *says[4];
	} rows[] = {
		{ { .no_library = true }, { "NVIDIA's driver library cannot be opened: libcuda.so.1: cannot open" } },
		{ { .lacks = "cuLaunchKernelEx" },
		  { "libcuda.so.1 has no cuLaunchKernelEx: the NVIDIA driver is too old, one for CUDA 12.0 or "
		    "later" } },
		{ { .init = CUDA_NO_DEVICE }, { "this machine has no NVIDIA card that its driver knows" } },
		{ { .init = 803 }, { "the NVIDIA driver does not start: ", "803" } },
		{ { .version = 11080 },
		  { "the NVIDIA driver is too old: it is for CUDA 11.8, one for 12.0 or later is needed" } },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		struct device_entry found = { 0 };
		is = rows[i].is;
		assert_null(device_open("cuda", NULL, &err));
		assert_int_equal(err.code, ERROR_DEVICE);
		says_all(err.text, rows[i].says);
		device_each(listed, &found);
		assert_false(*found.name);
		assert_int_equal(open_files, 0);
	}
	for (unsigned i = 0; i < sizeof(struct cuda_api) / sizeof(void *); i++) { /* each that is missing */
		static const char *const names[] = {
#define X(member, name, arguments, passed) name,
			CUDA_FUNCTIONS(X)
#undef X
		};
		struct error err = { 0 };
		is = (struct trouble){ .lacks = names[i] };
		assert_null(device_open("cuda", NULL, &err));
		says_all(err.text, (const char *const[]){ names[i], "is too old", NULL });
	}
}

static void test_listed(void **state)
{
	struct device_entry found = { 0 };
	is = (struct trouble){ .capability = 75 };
	device_each(listed, &found);
	says_all(found.why_not.text, (const char *const[]){ "compute capability 7.5", "from 8.0 on", NULL });
	is = (struct trouble){ 0 };
	struct device_entry together = { 0 };
	device_each(listed_together, &together);
	assert_string_equal(together.name, "cuda:1,2,3,4,5,6,7,8");
	assert_string_equal(together.about, "8 of them together (code for sm90x8)");
}

static void test_no_such_card(void **state)
{
	static const struct {
		const char *name;
		struct trouble is;
		const char *says[4];
		int code;
	} rows[] = {
		{ "cuda:9", { 0 }, { "device cuda:9 is unknown: there are 9 NVIDIA cards" }, ERROR_ARGUMENT },
		{ "cuda:1,9", { 0 }, { "device cuda:9 is unknown: there are 9 NVIDIA cards" }, ERROR_ARGUMENT },
		{ "cuda:1,1", { 0 }, { "device \"cuda:1,1\" is unknown; expected ", "NUMBER,NUMBER" }, ERROR_ARGUMENT },
		{ "cuda:1,", { 0 }, { "device \"cuda:1,\" is unknown; expected " }, ERROR_ARGUMENT },
		{ "cuda:,1", { 0 }, { "device \"cuda:,1\" is unknown; expected " }, ERROR_ARGUMENT },
		{ "cuda:0,1,2,3,4,5,6,7,8", { 0 }, { "is unknown; expected cuda:NUMBER" }, ERROR_ARGUMENT },
		{ "cuda:1,2,3",
		  { 0 },
		  { "3 cards like simulated sm90, of compute capability 9.0, cannot compute together: that needs 2, 4 "
		    "or 8 "
		    "of 9.0 or later" },
		  ERROR_DEVICE },
		{ "cuda:1,0",
		  { 0 },
		  { "card 1 is simulated sm90 and card 0 simulated sm80; cards that compute together must be alike" },
		  ERROR_DEVICE },
		{ "cuda:x", { 0 }, { "device \"cuda:x\" is unknown; expected cuda:NUMBER" }, ERROR_ARGUMENT },
		{ "cuda:-1", { 0 }, { "device \"cuda:-1\" is unknown; expected cuda:NUMBER" }, ERROR_ARGUMENT },
		{ "cuda:99999999999999999999", { 0 }, { "is unknown; expected cuda:NUMBER" }, ERROR_ARGUMENT },
		{ "cuda",
		  { .capability = 75 },
		  { "simulated sm80 has compute capability 7.5; cards from 8.0 on are supported" },
		  ERROR_DEVICE },
		{ "cuda:1",
		  { .context = CUDA_DEVICE_UNAVAILABLE },
		  { "simulated sm90 is in use by another program that has it for itself alone (exclusive mode)" },
		  ERROR_DEVICE },
		{ "cuda:1",
		  { .context = CUDA_OUT_OF_MEMORY },
		  { "simulated sm90 has no memory left to begin with: other programs use it" },
		  ERROR_MEMORY },
		{ "cuda:1", { .context = 999 }, { "simulated sm90: opening the card failed: ", "999" }, ERROR_DEVICE },
	};

	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct error err = { 0 };
		is = rows[i].is;
		assert_null(device_open(rows[i].name, NULL, &err));
		assert_int_equal(err.code, rows[i].code);
		says_all(err.text, rows[i].says);
	}
	is = (struct trouble){ 0 };
	struct error err = { 0 };
	assert_null(device_open("cuda", "avx2", &err));
	says_all(err.text, (const char *const[]){ "the device cuda has its card's instruction set", NULL });
}

/* Refused with the numbers before any memory of the card's is asked for. */
static void test_what_does_not_fit(void **state)
{
	char path[1024];
	jit_session_options so = JIT_SESSION_OPTIONS(.context = 4096);
	jit_model_options mo = JIT_MODEL_OPTIONS(.device = "cuda:1", .cache_dir = "", .session = &so);
	jit_error err = { 0 };

	source_path(path, "models/tale-q8_0.gguf");
	allocations = 0;
	is = (struct trouble){ .memory = 4 << 20 };
	assert_null(jit_model_open(path, &mo, &err));
	assert_int_equal(err.code, JIT_ERROR_MEMORY);
	says_all(err.message, (const char *const[]){ "the weights and a context of 4096 tokens need ",
	                                             "of the memory of the device cuda:1", "and 4194304 can be had",
	                                             "the model is too large", NULL });
	is.memory = 9 << 20; /* the weights fit */
	assert_null(jit_model_open(path, &mo, &err));
	says_all(err.message, (const char *const[]){ "and 9437184 can be had", "ask for a smaller context", NULL });
	assert_int_equal(allocations, 0);
	mo.session = NULL; /* nobody said what the session will be like */
	jit_model *m = jit_model_open(path, &mo, &err);
	if (!m)
		fail_msg("%s", err.message);
	err = (jit_error){ 0 };
	assert_null(jit_session_open(m, &so, &err));
	assert_int_equal(err.code, JIT_ERROR_MEMORY);
	says_all(err.message, (const char *const[]){ "MiB", "simulated sm90 has 9.0 MiB free of 1024.0", NULL });
	is.memory = 0;
	jit_session *s = jit_session_open(m, &so, &err);
	assert_non_null(s);
	jit_session_close(s);
	jit_model_close(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_library), cmocka_unit_test(test_listed),
		                            cmocka_unit_test(test_no_such_card),
		                            cmocka_unit_test(test_what_does_not_fit) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
