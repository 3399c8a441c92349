/* jit/rdna/program.h - kernels' functions and the driver that calls them, linked into one AMD code object.
 *
 * Owns: the driver, which is the only kernel a device launches: it walks over commands that lie in memory as data,
 * calls each command's function for this wave's share of the units, and holds every workgroup back between commands
 * that depend on each other. One launch for an operation, for a layer or for a token differ in the range of commands
 * alone. Never knows what a function computes.
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
	                                 workgroups in workgroup i mod workgroups */
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
	uint32_t reserved; /* 0 */
};

/* The kernel's arguments. */
struct rdna_program_args {
	uint64_t commands;   /* address of struct rdna_command[] */
	uint32_t first, end; /* commands first .. end - 1 */
	uint64_t arrivals;   /* address of a 32-bit counter, 0 before the launch and of no one else's use */
	uint32_t workgroups;
	uint32_t reserved;
};

enum { RDNA_PROGRAM_LDS = TARGET_UNIT_LDS /* that a workgroup can have */ };
/* Of LDS, that a workgroup needs for a function. */
uint32_t rdna_program_lds(const struct object *function);

/* Links n functions (all of the target). offset[i]: where function i is, from the kernel's entry. *bytes is malloc'ed:
 * an ELF code object with the one kernel "jitrun". Equal requests give equal bytes. */
bool rdna_program_make(uint8_t **bytes, size_t *size, const struct target *target,
                       const struct object *const functions[], size_t n, uint64_t offset[], struct error *err);

#endif
