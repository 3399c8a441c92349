/* jit/target.c - the table of targets, and which of them this machine runs.
 *
 * Owns: cpuid and xgetbv, asked nowhere else. Never decides by a CPU's name. To add a target: a row here, an enum value in
 * target.h, and a line in target_judge() that says what it needs.
 */
#include "jit/target.h"

#include <cpuid.h>
#include <string.h>

const struct target target_table[TARGET_COUNT] = {
	[TARGET_NONE] = { TARGET_NONE, "none", BACKEND_NONE, 0, 0 },
	[TARGET_AVX2] = { TARGET_AVX2, "avx2", BACKEND_X86, 8, 16 },
};

const struct target *target_find(const char *name)
{
	for (int i = TARGET_NONE + 1; i < TARGET_COUNT; i++)
		if (strcmp(target_table[i].name, name) == 0)
			return &target_table[i];
	return NULL;
}

bool target_runs(const struct target *native, const struct target *t)
{
	return native && t->backend != BACKEND_NONE && t->backend == native->backend && t->id <= native->id;
}

const struct target *target_judge(const struct target_cpu *cpu, struct error *err)
{
	const char *missing = NULL;

	if (!(cpu->leaf1_ecx & bit_AVX) || !(cpu->leaf7_ebx & bit_AVX2))
		missing = "AVX2";
	else if (!(cpu->leaf1_ecx & bit_FMA))
		missing = "FMA";
	else if (!(cpu->leaf1_ecx & bit_F16C))
		missing = "F16C";
	if (missing) {
		error_set(err, ERROR_DEVICE, "this CPU has no %s; the generated code needs AVX2, FMA and F16C", missing);
		return NULL;
	}
	if (!(cpu->leaf1_ecx & bit_OSXSAVE) || (cpu->xcr0 & 6) != 6) {
		error_set(err, ERROR_DEVICE, "the operating system does not save the AVX registers (XCR0 is 0x%llx, bits 1 and 2 must be set)",
		          (unsigned long long)cpu->xcr0);
		return NULL;
	}
	return &target_table[TARGET_AVX2];
}

const struct target *target_native(struct error *err)
{
	struct target_cpu cpu = { 0 };
	unsigned a, b, c, d;

	if (__get_cpuid(1, &a, &b, &c, &d))
		cpu.leaf1_ecx = c;
	if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
		cpu.leaf7_ebx = b;
	if (cpu.leaf1_ecx & bit_OSXSAVE) {       /* xgetbv faults without it */
		__asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
		cpu.xcr0 = (uint64_t)d << 32 | a;
	}
	return target_judge(&cpu, err);
}
