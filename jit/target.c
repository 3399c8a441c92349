/* jit/target.c - the table of targets, and which of them this machine runs.
 *
 * Owns: cpuid, xgetbv and the permission to use tiles, asked for nowhere else. Never decides by a CPU's name. To add a
 * target: a row here and an enum value in target.h; a feature no row needed before is a row of the table of features.
 */
#include "jit/target.h"

#include <cpuid.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Features, least first: the first that is missing is the one a refusal names. */
enum leaf { LEAF_1_ECX, LEAF_7_EBX, LEAF_7_ECX, LEAF_7_EDX, LEAF_7_1_EAX };
/* clang-format off */
#define FEATURES(X) \
	X(AVX, LEAF_1_ECX, 28, "AVX") \
	X(AVX2, LEAF_7_EBX, 5, "AVX2") \
	X(FMA, LEAF_1_ECX, 12, "FMA") \
	X(F16C, LEAF_1_ECX, 29, "F16C") \
	X(AVX_VNNI, LEAF_7_1_EAX, 4, "AVX-VNNI") \
	X(AVX512F, LEAF_7_EBX, 16, "AVX512F") \
	X(AVX512DQ, LEAF_7_EBX, 17, "AVX512DQ") \
	X(AVX512BW, LEAF_7_EBX, 30, "AVX512BW") \
	X(AVX512VL, LEAF_7_EBX, 31, "AVX512VL") \
	X(AVX512_VNNI, LEAF_7_ECX, 11, "AVX512_VNNI") \
	X(AMX_TILE, LEAF_7_EDX, 24, "AMX-TILE") \
	X(AMX_INT8, LEAF_7_EDX, 25, "AMX-INT8") \
	X(AVX512_BF16, LEAF_7_1_EAX, 5, "AVX512_BF16")
/* clang-format on */
enum feature {
#define X(id, ...) FEATURE_##id,
	FEATURES(X)
#undef X
		FEATURE_COUNT
};
static const struct {
	uint8_t leaf, bit;
	const char *name;
} features[FEATURE_COUNT] = {
#define X(id, leaf, bit, name) { leaf, bit, name },
	FEATURES(X)
#undef X
};

#define HAS(id) (1u << FEATURE_##id)
#define NEEDS_AVX2 (HAS(AVX) | HAS(AVX2) | HAS(FMA) | HAS(F16C))
#define NEEDS_AVX512 (NEEDS_AVX2 | HAS(AVX512F) | HAS(AVX512DQ) | HAS(AVX512BW) | HAS(AVX512VL))
#define NEEDS_AVX512_VNNI (NEEDS_AVX512 | HAS(AVX512_VNNI))
#define NEEDS_AVX512_BF16 (NEEDS_AVX512_VNNI | HAS(AVX512_BF16))

/* Processors with tiles read memory faster when the second cache level is asked as well
 * (docs/performance/lessons/prefetch.md). */
#define X86_TARGET(id_, name_, lanes_, regs, masks, vnni, dot2, tiles, needs_) \
	[id_] = { .id = id_, \
		  .name = name_, \
		  .backend = &backend_x86, \
		  .lanes = lanes_, \
		  .vector_regs = regs, \
		  .mask_regs = masks, \
		  .has_vnni = vnni, \
		  .has_bsel = (masks) > 0, \
		  .has_dot2 = dot2, \
		  .has_tiles = tiles, \
		  .prefetch_to_l2 = tiles, \
		  .needs = needs_, \
		  .cards = 1, \
		  .waves = 1 }
/* Wave32; masks lie in scalar registers. RDNA2 has no dot product of unsigned with signed bytes, and no products of
 * matrices. */
#define RDNA_TARGET(n, later, file, granule) \
	[TARGET_GFX##n] = { \
		.id = TARGET_GFX##n, \
		.name = "gfx" #n, \
		.backend = &backend_rdna, \
		.lanes = 32, \
		.vector_regs = 256, \
		.has_vnni = later, \
		.has_dot4 = true, \
		.has_bsel = true, \
		.has_mma = later, \
		.waves = 8, \
		.lane_bytes = 16, \
		.vector_file = file, \
		.vector_granule = granule, \
		.cards = 1 \
	}
#define RDNA2_TARGET(n) RDNA_TARGET(n, false, 1024, 16)
#define RDNA3_SMALL_TARGET(n) RDNA_TARGET(n, true, 1024, 16)
#define RDNA3_LARGE_TARGET(n) RDNA_TARGET(n, true, 1536, 24)

/* Compute capabilities, of which later cards run the text of earlier ones; dp4a takes bytes of either sign. Eight warps
 * of 32 lanes have the 64 Ki registers of a multiprocessor between them. */
#define PTX_TARGET(id_, name_, cards_, shared_kib, kib) \
	[id_] = { .id = id_, \
		  .name = name_, \
		  .backend = &backend_ptx, \
		  .lanes = 32, \
		  .vector_regs = 255, \
		  .has_vnni = true, \
		  .has_dot4 = true, \
		  .has_bsel = true, \
		  .has_mma = true, \
		  .local_operands = true, \
		  .has_parts = true, \
		  .waves = 8, \
		  .lane_bytes = 16, \
		  .shared_bytes = (shared_kib) << 10, \
		  .block_bytes = (kib) << 10, \
		  .cards = cards_ }
#define SM90_TARGET(id, name, cards) PTX_TARGET(id, name, cards, 152, 219)

/* Modules that drivers of Vulkan compile, for subgroups of so many lanes: registers and units are the driver's affair.
 * Those of 8 and 16 lanes have the forms of CPUs' kernels, that of 32 those of cards. */
#define SPIRV_TARGET(n, waves_, bytes) \
	[TARGET_SPIRV##n] = { \
		.id = TARGET_SPIRV##n, \
		.name = "spirv" #n, \
		.backend = &backend_spirv, \
		.lanes = n, \
		.vector_regs = (bytes) ? 256 : 32, \
		.mask_regs = (bytes) ? 0 : 7, \
		.has_vnni = true, \
		.has_dot4 = true, \
		.waves = waves_, \
		.lane_bytes = bytes, \
		.cards = 1 \
	}

/* k0 says "no mask" where a mask is asked for, which leaves seven. */
const struct target target_table[TARGET_COUNT] = {
	[TARGET_NONE] = { .id = TARGET_NONE, .name = "none" },
	X86_TARGET(TARGET_AVX2, "avx2", 8, 16, 0, false, false, false, NEEDS_AVX2),
	X86_TARGET(TARGET_AVX2_VNNI, "avx2vnni", 8, 16, 0, true, false, false, NEEDS_AVX2 | HAS(AVX_VNNI)),
	X86_TARGET(TARGET_AVX512, "avx512", 16, 32, 7, false, false, false, NEEDS_AVX512),
	X86_TARGET(TARGET_AVX512_VNNI, "avx512vnni", 16, 32, 7, true, false, false, NEEDS_AVX512_VNNI),
	X86_TARGET(TARGET_AVX512_BF16, "avx512bf16", 16, 32, 7, true, true, false, NEEDS_AVX512_BF16),
	X86_TARGET(TARGET_AVX512_AMX, "avx512amx", 16, 32, 7, true, true, true,
	           NEEDS_AVX512_BF16 | HAS(AMX_TILE) | HAS(AMX_INT8)),
	RDNA2_TARGET(1030),
	RDNA2_TARGET(1031),
	RDNA2_TARGET(1032),
	RDNA2_TARGET(1033),
	RDNA2_TARGET(1034),
	RDNA2_TARGET(1035),
	RDNA2_TARGET(1036),
	RDNA3_LARGE_TARGET(1100),
	RDNA3_LARGE_TARGET(1101),
	RDNA3_SMALL_TARGET(1102),
	RDNA3_SMALL_TARGET(1103),
	RDNA3_SMALL_TARGET(1150),
	RDNA3_LARGE_TARGET(1151),
	RDNA3_LARGE_TARGET(1200),
	RDNA3_LARGE_TARGET(1201),
	PTX_TARGET(TARGET_SM80, "sm80", 1, 72, 91),
	SM90_TARGET(TARGET_SM90, "sm90", 1),
	SM90_TARGET(TARGET_SM90X2, "sm90x2", 2),
	SM90_TARGET(TARGET_SM90X4, "sm90x4", 4),
	SM90_TARGET(TARGET_SM90X8, "sm90x8", 8),
	SPIRV_TARGET(8, 1, 0),
	SPIRV_TARGET(16, 1, 0),
	SPIRV_TARGET(32, 8, 16),
};

const struct target *target_find(const char *name)
{
	for (int i = TARGET_NONE + 1; i < TARGET_COUNT; i++)
		if (strcmp(target_table[i].name, name) == 0)
			return &target_table[i];
	return NULL;
}

char *target_list(char *text, size_t size, enum target_set set, const char *prefix, const char *separator)
{
	size_t at = 0;

	*text = 0;
	for (int i = TARGET_NONE + 1; i < TARGET_COUNT && at < size; i++)
		if (set == TARGETS_ALL ||
		    (set == TARGETS_OF_CPUS ? target_table[i].backend->host_runs : target_table[i].backend->simulated))
			at += (size_t)snprintf(text + at, size - at, "%s%s%s", at ? separator : "", prefix,
			                       target_table[i].name);
	return text;
}

/* Linux saves the data of tiles only for processes that asked; others get SIGILL (Documentation/arch/x86/xstate.rst of
 * its sources). What it permits, it permits to the whole process, threads begun before and after, and to what that
 * forks, so asking once is enough, before any thread uses a tile. An error means no: the kernel is older than 5.16, a
 * filter of system calls says so, or a signal stack of the process is too small for a frame with tiles. */
enum {
	REQUEST_PERMISSION = 0x1023 /* ARCH_REQ_XCOMP_PERM, which older headers lack */,
	TILE_DATA = 18 /* the state component */
};

static bool tile_permission(void) { return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0; }

static const char *missing_feature(const struct target_cpu *cpu, uint32_t needs)
{
	const uint32_t word[] = { cpu->leaf1_ecx, cpu->leaf7_ebx, cpu->leaf7_ecx, cpu->leaf7_edx, cpu->leaf7_1_eax };

	for (unsigned i = 0; i < FEATURE_COUNT; i++)
		if (needs >> i & 1 && !(word[features[i].leaf] >> features[i].bit & 1))
			return features[i].name;
	return NULL;
}

bool target_runs(const struct target_cpu *cpu, const struct target *t, struct error *err)
{
	/* Which registers the operating system saves: xmm and ymm; masks, upper halves and upper sixteen of zmm; the
	 * shapes and the data of tiles. */
	const uint64_t state = (t->has_tiles ? 0x60000 : 0) | (t->mask_regs ? 0xe6 : 0x06);

	if (!t->backend || !t->backend->host_runs)
		return error_set(err, ERROR_DEVICE, "target %s is none that a CPU runs", t->name);
	const char *missing = missing_feature(cpu, t->needs);
	if (missing)
		return error_set(err, ERROR_DEVICE, "this CPU has no %s, which code for %s needs", missing, t->name);
	if (!(cpu->leaf1_ecx & bit_OSXSAVE) || (cpu->xcr0 & state) != state)
		return error_set(err, ERROR_DEVICE,
		                 "the operating system does not save the registers that code for %s uses (XCR0 is "
		                 "0x%llx, the bits of 0x%llx must be set)",
		                 t->name, (unsigned long long)cpu->xcr0, (unsigned long long)state);
	if (t->has_tiles && !cpu->tile_permission)
		return error_set(err, ERROR_DEVICE,
		                 "the operating system does not permit this process to use tiles, which code for %s "
		                 "does (arch_prctl(ARCH_REQ_XCOMP_PERM, %d) failed)",
		                 t->name, TILE_DATA);
	return true;
}

const struct target *target_judge(const struct target_cpu *cpu, struct error *err)
{
	for (int i = TARGET_COUNT - 1; i > TARGET_NONE + 1; i--)
		if (target_runs(cpu, &target_table[i], NULL))
			return &target_table[i];
	return target_runs(cpu, &target_table[TARGET_NONE + 1], err) ? &target_table[TARGET_NONE + 1] : NULL;
}

/* Each cpuid is a trap in a virtual machine, and takes some microseconds there. */
static struct target_cpu this_cpu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void read_cpu(void)
{
	struct target_cpu *cpu = &this_cpu;
	unsigned a, b, c, d;

	if (__get_cpuid(1, &a, &b, &c, &d))
		cpu->leaf1_ecx = c;
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
		cpu->leaf7_ebx = b;
		cpu->leaf7_ecx = c;
		cpu->leaf7_edx = d;
		if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
			cpu->leaf7_1_eax = a;
	}
	if (cpu->leaf1_ecx & bit_OSXSAVE) { /* xgetbv faults without it */
		__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
		cpu->xcr0 = (uint64_t)d << 32 | a;
	}
	cpu->tile_permission = !missing_feature(cpu, HAS(AMX_TILE)) && tile_permission();
}

struct target_cpu target_this_cpu(void)
{
	pthread_once(&once, read_cpu);
	return this_cpu;
}

char *target_cpu_name(char *out, size_t size)
{
	unsigned word[12] = { 0 };
	char name[sizeof word + 1] = { 0 };

	for (unsigned i = 0; i < 3; i++)
		__get_cpuid(0x80000002 + i, &word[4 * i], &word[4 * i + 1], &word[4 * i + 2], &word[4 * i + 3]);
	memcpy(name, word, sizeof word);
	size_t begin = strspn(name, " "), end = strlen(name);
	while (end > begin && name[end - 1] == ' ')
		end--;
	snprintf(out, size, "%.*s", (int)(end - begin), name + begin);
	for (char *p = out; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return out;
}

const struct target *target_native(struct error *err)
{
	const struct target_cpu cpu = target_this_cpu();
	return target_judge(&cpu, err);
}
