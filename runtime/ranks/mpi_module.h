/* runtime/ranks/mpi_module.h - what is used of MPI, as functions of a shared object of its own, so that neither the
 * library nor a program is linked with MPI. There is a module for each MPI that configure found, since types and
 * numbers differ between them.
 *
 * Owns: the table. A module knows nothing of jitrun, and never waits.
 */
#ifndef RUNTIME_MPI_MODULE_H
#define RUNTIME_MPI_MODULE_H

#include <stddef.h>
#include <stdint.h>

enum { MPI_MODULE_VERSION = 1, MPI_MODULE_HOST = 64 };

/* Functions return 0, or what MPI returns, of which text() is a sentence. Calls must not overlap. */
struct mpi_module {
	int version;
	/* Once for each process; again, it says the same. host: a text of MPI_MODULE_HOST bytes. */
	int (*begin)(unsigned *rank, unsigned *size, char *host);
	/* A request is in *request until test() says that it is done, and the bytes stay as they are. */
	int (*send)(unsigned to, int tag, const void *bytes, int n, uint64_t *request);
	int (*receive)(unsigned from, int tag, void *bytes, int n, uint64_t *request);
	int (*test)(uint64_t *request, int *done);
	/* failed: the process ends without a word to the others, so that mpirun ends them, too. */
	void (*end)(int failed);
	void (*text)(int result, char *out, size_t size);
};
/* The symbol of a module. */
#define MPI_MODULE_NAME "jitrun_mpi_module"
extern const struct mpi_module jitrun_mpi_module;

#endif
