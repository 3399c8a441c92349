/* runtime/ranks/mpi_module.c - see mpi_module.h. The only file that includes mpi.h. */
#include "runtime/ranks/mpi_module.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request is kept in 64 bits");

static MPI_Comm world;
static int begun, began_mpi, is_failed;

static int begin(unsigned *rank, unsigned *size, char *host)
{
	char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
	int r = MPI_SUCCESS, given = 0, provided = 0, number = 0, length = 0, n = 0;

	if (!begun) {
		MPI_Initialized(&given);
		if (!given && (r = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided)) != MPI_SUCCESS)
			return r;
		began_mpi = !given;
		begun = 1;
		MPI_Query_thread(&provided);
		if (provided < MPI_THREAD_SERIALIZED)
			return MPI_ERR_OTHER;
		if ((r = MPI_Comm_dup(MPI_COMM_WORLD, &world)) != MPI_SUCCESS)
			return r;
		MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
	}
	if ((r = MPI_Comm_rank(world, &number)) != MPI_SUCCESS || (r = MPI_Comm_size(world, &n)) != MPI_SUCCESS ||
	    (r = MPI_Get_processor_name(name, &length)) != MPI_SUCCESS)
		return r;
	*rank = (unsigned)number;
	*size = (unsigned)n;
	snprintf(host, MPI_MODULE_HOST, "%.*s", MPI_MODULE_HOST - 1, name);
	return 0;
}

static void keep(uint64_t *to, MPI_Request r)
{
	*to = 0;
	memcpy(to, &r, sizeof r);
}

static int send(unsigned to, int tag, const void *bytes, int n, uint64_t *request)
{
	MPI_Request r = MPI_REQUEST_NULL;
	const int result = MPI_Isend(bytes, n, MPI_BYTE, (int)to, tag, world, &r);

	keep(request, r);
	return result == MPI_SUCCESS ? 0 : result;
}

static int receive(unsigned from, int tag, void *bytes, int n, uint64_t *request)
{
	MPI_Request r = MPI_REQUEST_NULL;
	const int result = MPI_Irecv(bytes, n, MPI_BYTE, (int)from, tag, world, &r);

	keep(request, r);
	return result == MPI_SUCCESS ? 0 : result;
}

static int test(uint64_t *request, int *done)
{
	MPI_Request r;

	memcpy(&r, request, sizeof r);
	const int result = MPI_Test(&r, done, MPI_STATUS_IGNORE);
	keep(request, r);
	return result == MPI_SUCCESS ? 0 : result;
}

static void end(int failed) { is_failed |= failed; }

static void text(int result, char *out, size_t size)
{
	char message[MPI_MAX_ERROR_STRING + 1] = "";
	int n = 0;

	if (MPI_Error_string(result, message, &n) != MPI_SUCCESS)
		message[0] = 0;
	snprintf(out, size, "%s", message);
}

/* MPI can begin and end once in a process, so it ends with the process. */
__attribute__((destructor)) static void finish(void)
{
	int over = 0;

	if (!began_mpi)
		return;
	MPI_Finalized(&over);
	if (over)
		return;
	if (is_failed) {
#ifdef MPICH_VERSION
		MPI_Abort(MPI_COMM_WORLD, 1); /* its launcher gives back 0 where a stopped process is left */
#endif
		return;
	}
	MPI_Comm_free(&world);
	MPI_Finalize();
}

const struct mpi_module jitrun_mpi_module = { MPI_MODULE_VERSION, begin, send, receive, test, end, text };
