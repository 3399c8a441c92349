#include "tests/faults/run.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/faults/control.h"

enum {
	MAX_CALLS = 6,
	NOT_POSSIBLE = 77,
	ERR_MAX = 4096,
	SECONDS = 30,
	SECONDS_OF_FULL = 600 /* beside others, for an hour */,
	CANNOT_RUN = 126,
	LOWEST = 10 /* descriptors */
};

const char *const fault_names[FAULT_CALLS] = {
	"malloc", "mmap",  "mprotect", "madvise", "open",     "read",   "write", "fsync",
	"rename", "close", "stat",     "lseek",   "truncate", "unlink", "mkdir", "getdents",
	"lock",   "memfd", "thread",   "socket",  "epoll",    "recv",   "send"
};

/* Numbers of system calls, with 1 added: 0 ends a row. */
#define CALL(NAME) (SYS_##NAME + 1)
static const uint16_t calls[FAULT_CALLS][MAX_CALLS] = {
	[FAULT_MMAP] = { CALL(mmap), CALL(mremap) },
	[FAULT_MPROTECT] = { CALL(mprotect) },
	[FAULT_MADVISE] = { CALL(madvise) },
	[FAULT_OPEN] = { CALL(open), CALL(openat) },
	[FAULT_READ] = { CALL(read), CALL(pread64), CALL(readv) },
	[FAULT_WRITE] = { CALL(write), CALL(pwrite64), CALL(writev) },
	[FAULT_SYNC] = { CALL(fsync), CALL(fdatasync) },
	[FAULT_RENAME] = { CALL(rename), CALL(renameat), CALL(renameat2) },
	[FAULT_CLOSE] = { CALL(close) },
	[FAULT_STAT] = { CALL(stat), CALL(fstat), CALL(lstat), CALL(newfstatat), CALL(statx) },
	[FAULT_SEEK] = { CALL(lseek) },
	[FAULT_TRUNCATE] = { CALL(ftruncate), CALL(fallocate) },
	[FAULT_UNLINK] = { CALL(unlink), CALL(unlinkat) },
	[FAULT_MKDIR] = { CALL(mkdir), CALL(mkdirat) },
	[FAULT_LIST] = { CALL(getdents64) },
	[FAULT_LOCK] = { CALL(flock), CALL(fcntl) },
	[FAULT_MEMFD] = { CALL(memfd_create) },
	[FAULT_THREAD] = { CALL(clone), CALL(clone3) },
	[FAULT_SOCKET] = { CALL(socket), CALL(accept), CALL(accept4), CALL(eventfd2), CALL(epoll_create1) },
	[FAULT_WATCH] = { CALL(epoll_ctl) },
	[FAULT_RECEIVE] = { CALL(recvfrom), CALL(recvmsg) },
	[FAULT_SEND] = { CALL(sendto), CALL(sendmsg) },
};

bool fault_mallocs;
static struct faults_control *control;
static int control_fd = -1;
static char preload[4096], fd_text[16];

/* ---- the child */

static bool watch(enum fault_call call)
{
	struct sock_filter f[8 + FAULT_CALLS * MAX_CALLS];
	unsigned short n = 0;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int c = 0; c < FAULT_CALLS; c++)
		for (int i = 0; (call == FAULT_CALLS || (int)call == c) && i < MAX_CALLS && calls[c][i]; i++) {
			f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[c][i] - 1u, 0, 1);
			f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
		}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &(struct sock_fprog){ n, f }, 0, 0) == 0;
}

static void become(const char *const *argv, const struct given *given, const struct fault *f, int out, int err)
{
	int in = open(given->input ? given->input : "/dev/null", O_RDONLY | O_CLOEXEC);

	if (in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0 ||
	    (given->asks && !ask_begin(given->asks, 1)))
		_exit(NOT_POSSIBLE);
	if (fault_mallocs && f && (!f->at || f->call == FAULT_MALLOC)) {
		setenv("LD_PRELOAD", preload, 1);
		setenv(FAULTS_FD, fd_text, 1);
	}
	if (f && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(NOT_POSSIBLE);
	if (f)
		raise(SIGSTOP);
	if (f && !watch(f->at ? f->call : FAULT_CALLS))
		_exit(NOT_POSSIBLE);
	execv(argv[0], (char **)(uintptr_t)argv);
	_exit(CANNOT_RUN);
}

/* ---- the tracer */

static volatile sig_atomic_t late;
static void on_alarm(int signal)
{
	(void)signal;
	late = 1;
}

static void limit_time(int seconds)
{
	struct sigaction a = { .sa_handler = on_alarm }; /* no SA_RESTART: waitpid() returns */
	struct itimerval t = { .it_value = { .tv_sec = seconds } };

	late = 0;
	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
}

/* Where the program's own code begins: behind the loader's work and all that libraries do before. */
static uintptr_t entry_of(pid_t pid)
{
	char path[64];
	Elf64_auxv_t v = { 0 };
	uintptr_t entry = 0;

	snprintf(path, sizeof path, "/proc/%d/auxv", pid);
	FILE *f = fopen(path, "rb");
	while (f && !entry && fread(&v, sizeof v, 1, f) == 1)
		if (v.a_type == AT_ENTRY)
			entry = v.a_un.a_val;
	if (f)
		fclose(f);
	return entry;
}

struct watched {
	pid_t pid;
	const struct fault *f;
	struct outcome *o;
	uintptr_t entry;
	long first_word;
	bool begun;
};

enum { TRAP = 0xcc };

static void set_trap(struct watched *w)
{
	w->entry = entry_of(w->pid);
	w->first_word = ptrace(PTRACE_PEEKTEXT, w->pid, w->entry, NULL);
	ptrace(PTRACE_POKETEXT, w->pid, w->entry, (w->first_word & ~0xffl) | TRAP);
}

static void begin_program(struct watched *w, struct user_regs_struct *r)
{
	ptrace(PTRACE_POKETEXT, w->pid, w->entry, w->first_word);
	r->rip = w->entry;
	ptrace(PTRACE_SETREGS, w->pid, NULL, r);
	w->begun = true;
	atomic_store(&control->begun, true);
}

static int call_of(unsigned long long number)
{
	for (int c = 0; c < FAULT_CALLS; c++)
		for (int i = 0; i < MAX_CALLS && calls[c][i]; i++)
			if (calls[c][i] - 1u == number)
				return c;
	return FAULT_CALLS;
}

/* What threads signal each other with: writing there cannot fail. */
static bool is_event(pid_t pid, unsigned long long fd)
{
	char path[64], name[64];

	snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, (int)fd);
	ssize_t n = readlink(path, name, sizeof name - 1);
	name[n > 0 ? n : 0] = 0;
	return strcmp(name, "anon_inode:[eventfd]") == 0;
}

/* A thread stands before a call: counts it, and has it fail when it is the one. */
static void meet(struct watched *w, pid_t pid)
{
	struct user_regs_struct r;

	if (!w->begun || ptrace(PTRACE_GETREGS, pid, NULL, &r))
		return;
	int c = call_of(r.orig_rax);
	if (c == FAULT_CALLS || (c == FAULT_WRITE && r.rdi == STDERR_FILENO) || /* what it says must be heard */
	    (c == FAULT_WATCH && r.rsi != EPOLL_CTL_ADD) ||
	    ((c == FAULT_WRITE || c == FAULT_READ) && is_event(pid, r.rdi)))
		return;
	unsigned n = ++w->o->count[c];
	if (!w->f->at || c != (int)w->f->call || (w->f->later ? n < w->f->at : n != w->f->at))
		return;
	if (w->f->error) {
		r.orig_rax = (unsigned long long)-1;
		r.rax = (unsigned long long)-w->f->error;
	} else if (r.rdx > 1 && (r.orig_rax == SYS_read || r.orig_rax == SYS_write || r.orig_rax == SYS_pread64 ||
	                         r.orig_rax == SYS_pwrite64)) {
		r.rdx = (r.rdx + 1) / 2;
	}
	ptrace(PTRACE_SETREGS, pid, NULL, &r);
}

/* Whether an address lies in a mapping of a file with that in its name. */
static bool is_of(pid_t pid, const char *file, unsigned long long address)
{
	char path[64], line[1024];
	bool found = false;

	snprintf(path, sizeof path, "/proc/%d/maps", pid);
	FILE *f = fopen(path, "rb");
	while (f && !found && fgets(line, sizeof line, f)) {
		unsigned long long first, behind;
		found = sscanf(line, "%llx-%llx", &first, &behind) == 2 && address >= first && address < behind &&
		        strstr(line, file);
	}
	if (f)
		fclose(f);
	return found;
}

/* A thread stands where it crashed: there, or where a function without a frame of its own returns to. */
static bool stands_in(pid_t pid, const char *file)
{
	struct user_regs_struct r;

	return ptrace(PTRACE_GETREGS, pid, NULL, &r) == 0 &&
	       (is_of(pid, file, r.rip) ||
	        is_of(pid, file, (unsigned long long)ptrace(PTRACE_PEEKDATA, pid, r.rsp, NULL)));
}

/* What a stop was for; the signal that the thread is to get. */
static int stopped(struct watched *w, pid_t pid, int status)
{
	int signal = WSTOPSIG(status), event = status >> 16;
	struct user_regs_struct r;

	if (event == PTRACE_EVENT_SECCOMP)
		meet(w, pid);
	else if (event == PTRACE_EVENT_EXEC && !w->entry)
		set_trap(w);
	if (event || signal == SIGSTOP) /* SIGSTOP: a new thread's first stop */
		return 0;
	if (signal == SIGTRAP && !w->begun && pid == w->pid && ptrace(PTRACE_GETREGS, pid, NULL, &r) == 0 &&
	    r.rip == w->entry + 1) {
		begin_program(w, &r);
		return 0;
	}
	w->o->in_driver |= signal == SIGSEGV && (stands_in(pid, "/libcuda.so") || stands_in(pid, "/libvulkan"));
	return signal;
}

static void follow(struct watched *w)
{
	int status = 0;

	for (;;) {
		pid_t pid = waitpid(w->f ? -1 : w->pid, &status, __WALL);
		if (pid < 0 && errno == EINTR && late) {
			w->o->hung = true;
			late = 0;
			kill(w->pid, SIGKILL);
		} else if (pid < 0 && errno != EINTR) {
			return;
		} else if (pid > 0 && WIFSTOPPED(status)) {
			int signal = stopped(w, pid, status);
			ptrace(PTRACE_CONT, pid, NULL, (long)signal);
		} else if (pid == w->pid && (WIFEXITED(status) || WIFSIGNALED(status))) {
			w->o->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
			w->o->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
			return;
		} else if (pid > 0 && WIFSIGNALED(status)) {
			w->o->child_signal = WTERMSIG(status);
		}
	}
}

static char *bytes_of(int fd, size_t max, size_t *n)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *p;

	*n = size < 0 ? 0 : (size_t)size < max ? (size_t)size : max;
	p = calloc(1, *n + 1);
	if (!p || pread(fd, p, *n, 0) != (ssize_t)*n)
		abort();
	close(fd);
	return p;
}

void fault_run(const char *const *argv, const struct given *given, const struct fault *f, struct outcome *o)
{
	static const struct given nothing;
	const char *full = getenv("JITRUN_TEST_FULL");
	struct watched w = { .f = f, .o = o };
	int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC), status;

	memset(o, 0, sizeof *o);
	*control = (struct faults_control){ .at = f && f->call == FAULT_MALLOC ? f->at : 0, .later = f && f->later };
	fflush(NULL);
	w.pid = fork();
	if (w.pid < 0)
		abort();
	if (w.pid == 0)
		become(argv, given ? given : &nothing, f, out, err);
	if (f && waitpid(w.pid, &status, 0) == w.pid && WIFSTOPPED(status)) {
		ptrace(PTRACE_SETOPTIONS, w.pid, NULL,
		       PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
		               PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
		ptrace(PTRACE_CONT, w.pid, NULL, 0l);
	}
	limit_time(full && *full && *full != '0' ? SECONDS_OF_FULL : SECONDS);
	follow(&w);
	limit_time(0);
	o->pid = w.pid;
	o->count[FAULT_MALLOC] = atomic_load(&control->count);
	o->out = bytes_of(out, (size_t)1 << 30, &o->n_out);
	o->err = bytes_of(err, ERR_MAX, &o->n_err);
}

void fault_free(struct outcome *o)
{
	free(o->out);
	free(o->err);
}

/* ---- what there is to do it with */

bool fault_begin(void)
{
	static const char *const nothing[] = { "/bin/true", NULL };
	struct outcome o;

	/* A program that is run inherits it, above what it expects to be something else. */
	int low = memfd_create("faults", 0);
	control_fd = fcntl(low, F_DUPFD, LOWEST);
	close(low);
	if (control_fd < 0 || ftruncate(control_fd, sizeof *control) ||
	    (control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, control_fd, 0)) == MAP_FAILED)
		abort();
	snprintf(fd_text, sizeof fd_text, "%d", control_fd);
	char *here = getcwd(NULL, 0);
	snprintf(preload, sizeof preload, "%s/tests/faults/.libs/preload.so", here ? here : ".");
	free(here);
	fault_run(nothing, NULL, &(struct fault){ .call = FAULT_CLOSE }, &o);
	bool works = o.status == 0 && o.signal == 0 && !o.hung;
	fault_free(&o);
	if (!works) {
		printf("# skipped: no process may be traced here\n");
		return false;
	}
	fault_mallocs = access(preload, R_OK) == 0;
	if (!fault_mallocs)
		printf("# without allocations that fail: %s is not there\n", preload);
	return true;
}
