/* jit/rdna/program.h - kernels' functions and the driver that calls them, linked into one AMD code object.
 *
 * Owns: the driver, which is the only kernel a device launches. It walks over commands that lie in memory as data, and
 * calls each command's function for this wave's share of the units. Between commands that depend on each other it holds
 * every workgroup back. Launches for an operation, a layer or a token differ in the range of commands alone. Never
 * knows what a function computes.
 *
 * All workgroups of a launch must be resident at once (RDNA_COMMAND_BARRIER waits for them all): the caller takes their
 * number from the device (backend_rdna.resident).
 */
#ifndef JIT_RDNA_PROGRAM_H
#define JIT_RDNA_PROGRAM_H

#include "jit/compile.h"

#define RDNA_PROGRAM_KERNEL "jitrun"
enum {
	RDNA_PROGRAM_WAVES = 8 /* in a workgroup: target->waves */,
	RDNA_PROGRAM_MAX_COMMANDS = (1 << 24) - 1 /* of a launch */,
	RDNA_PROGRAM_MAX_WORKGROUPS = 65535
};

/* What comes next, as the driver reads it. A wave without units does not call the function. */
enum {
	RDNA_COMMAND_BARRIER = 1,     /* nobody goes on before all have finished this command */
	RDNA_COMMAND_COOPERATIVE = 2, /* shares go to workgroups, not to waves; share i of waves is that of wave i /
	                                 workgroups in workgroup (first + i) mod workgroups */
	RDNA_COMMAND_WORKGROUP_BARRIER = 4 /* no wave goes on before all of its workgroup have finished this command:
	                                      this one and one to come before a barrier use LDS */
};
struct rdna_command {
	uint64_t function; /* its offset from the kernel's entry, which rdna_program_make gave */
	uint64_t arg;      /* address of the argument slots */
	int64_t begin; /* share i (of a workgroup or a wave) begins at begin + i * per + min(i, rest), and has one more
	                  unit when i < rest */
	uint32_t per, rest;
	uint32_t flags;
	uint32_t first; /* the workgroup that has share 0: below their number */
};

/* Where the workgroups of a launch meet: memory of the card that the host can read, aligned to 16 bytes. All 0 before
 * the first launch and after one that was given up; else it is the launches' alone. */
struct rdna_program_sync {
	uint32_t arrivals; /* of workgroups at barriers: counts on from launch to launch, modulo 2^32 */
	/* Left by the first workgroup that gives up: */
	uint32_t left; /* commands of the launch behind the one whose barrier did not complete; 0: nobody gave up */
	uint32_t workgroup; /* which workgroup it was */
	uint32_t missing;   /* workgroups that had not come when it looked last */
};

/* The kernel's arguments, aligned to 16 bytes. A workgroup looks `polls` times at one barrier whether all have come, an
 * L2 round trip and 64 cycles apart. Then it gives up: it leaves word in *sync and waits at no barrier of this launch
 * any more, and nor does any other workgroup that finds the word. So the launch ends, and what it computed is void. */
struct rdna_program_args {
	uint64_t commands;   /* address of struct rdna_command[] */
	uint32_t first, end; /* commands first .. end - 1 */
	uint64_t sync;       /* address of struct rdna_program_sync, which no other launch uses at the same time */
	uint32_t workgroups;
	uint32_t polls;    /* at least 1 */
	uint32_t arrivals; /* what sync->arrivals shows before the launch. After it, it shows workgroups times the
	                      barriers inside more: a command's own barrier counts unless it is the launch's last */
	uint32_t reserved; /* 0 */
};

enum { RDNA_PROGRAM_LDS = TARGET_UNIT_LDS /* that a workgroup can have */ };
/* Of LDS, that a workgroup needs for a function. */
uint32_t rdna_program_lds(const struct object *function);

/* Links n functions (all of the target). offset[i]: where function i is, from the kernel's entry. *bytes is malloc'ed:
 * an ELF code object with the one kernel "jitrun". Equal requests give equal bytes. */
bool rdna_program_make(uint8_t **bytes, size_t *size, const struct target *target,
                       const struct object *const functions[], size_t n, uint64_t offset[], struct error *err);

#endif
