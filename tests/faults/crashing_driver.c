/* tests/faults/crashing_driver.c - for t_faults: stands in for NVIDIA's driver library. It has all functions that are
 * looked for, and crashes in each. */
#include "runtime/device/cuda/cuda_api.h"

/* clang-format off */
#define X(member, name, arguments, passed) \
	__asm__(".globl " name "\n.type " name ", @function\n" name ":\n" \
	        "\txorl %eax, %eax\n\tmovl (%rax), %eax\n\tret\n");
CUDA_FUNCTIONS(X)
#undef X
