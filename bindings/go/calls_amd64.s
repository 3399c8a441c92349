//go:build linux && amd64

// calls_amd64.s - what runs on threads of the C library: workers, which make the calls, and the functions that C calls
// back.
//
// Go code never runs on these threads, and C code never on Go's, but for the one call of pthread_create in startFirst.
// A slot is where the two meet. The offsets are those of slot and request in calls.go, which TestOffsets compares.

#include "textflag.h"

#define SYS_rt_sigprocmask 14
#define SYS_arch_prctl 158
#define SYS_futex 202
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129
#define ARCH_SET_FS 0x1002
#define ARCH_GET_FS 0x1003
#define SIG_SETMASK 2

// States of a slot, as in calls.go.
#define STATE_CALL 1
#define STATE_DONE 2
#define STATE_CALLBACK 3
#define STATE_ANSWERED 4
#define STATE_QUIT 5
#define STATE_GONE 6

// A slot, behind the register that has its address.
#define slot_state 0
#define slot_answer 4
#define slot_requests 8
#define slot_n 16
#define slot_thread 24
#define slot_kind 32
#define slot_given 40

// A request, likewise.
#define request_function 0
#define request_result 8
#define request_arguments 16
#define request_bytes 80

// Waits as long as the state of the slot in BX is the one in DX; it may come back before.
#define WAIT \
	LEAQ slot_state(BX), DI; \
	MOVL $FUTEX_WAIT_PRIVATE, SI; \
	XORL R10, R10; \
	MOVL $SYS_futex, AX; \
	SYSCALL

// Gives the slot in BX a state, and wakes Go, which waits for one.
#define TELL(state) \
	MOVL  $state, AX; \
	XCHGL AX, slot_state(BX); \
	LEAQ  slot_state(BX), DI; \
	MOVL  $FUTEX_WAKE_PRIVATE, SI; \
	MOVL  $1, DX; \
	MOVL  $SYS_futex, AX; \
	SYSCALL

// void *work(struct slot *s): the start routine of a worker.
TEXT ·work(SB), NOSPLIT|NOFRAME, $0-0
	PUSHQ BX
	PUSHQ BP
	PUSHQ R12
	PUSHQ R13
	PUSHQ R14
	PUSHQ R15
	SUBQ  $24, SP // the 7th and 8th argument; 16 divides SP at each call
	MOVQ  DI, BX

again:
	MOVL slot_state(BX), DX
	CMPL DX, $STATE_CALL
	JEQ  calls
	CMPL DX, $STATE_QUIT
	JEQ  quit
	WAIT
	JMP  again

calls:
	MOVQ slot_requests(BX), R12
	MOVQ slot_n(BX), R13

next:
	TESTQ R13, R13
	JEQ   done
	MOVQ  (request_arguments+48)(R12), AX
	MOVQ  AX, 0(SP)
	MOVQ  (request_arguments+56)(R12), AX
	MOVQ  AX, 8(SP)
	MOVQ  (request_arguments+0)(R12), DI
	MOVQ  (request_arguments+8)(R12), SI
	MOVQ  (request_arguments+16)(R12), DX
	MOVQ  (request_arguments+24)(R12), CX
	MOVQ  (request_arguments+32)(R12), R8
	MOVQ  (request_arguments+40)(R12), R9
	MOVQ  request_function(R12), R11
	XORL  AX, AX
	CALL  R11
	MOVQ  AX, request_result(R12)
	ADDQ  $request_bytes, R12
	DECQ  R13
	JMP   next

done:
	TELL(STATE_DONE)
	JMP  again

quit:
	MOVL $STATE_GONE, AX
	XCHGL AX, slot_state(BX)
	ADDQ $24, SP
	POPQ R15
	POPQ R14
	POPQ R13
	POPQ R12
	POPQ BP
	POPQ BX
	XORL AX, AX
	RET

// int progressCalled(void *user, uint64_t done, uint64_t total)
TEXT ·progressCalled(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $1, AX
	JMP  called<>(SB)

// int logitsCalled(void *user, float *logits, size_t n_logits, const int32_t *ids, size_t n_ids)
TEXT ·logitsCalled(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $2, AX
	JMP  called<>(SB)

// int promptCalled(void *user, size_t computed, size_t length)
TEXT ·promptCalled(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $3, AX
	JMP  called<>(SB)

// Hands callback number AX to Go and returns its answer. `user` is a *hookCell, and what that points to first has the
// address of the slot.
TEXT called<>(SB), NOSPLIT|NOFRAME, $0-0
	PUSHQ BX
	MOVQ  0(DI), BX
	MOVQ  0(BX), BX
	MOVQ  AX, slot_kind(BX)
	MOVQ  DI, (slot_given+0)(BX)
	MOVQ  SI, (slot_given+8)(BX)
	MOVQ  DX, (slot_given+16)(BX)
	MOVQ  CX, (slot_given+24)(BX)
	MOVQ  R8, (slot_given+32)(BX)
	TELL(STATE_CALLBACK)

wait:
	MOVL slot_state(BX), DX
	CMPL DX, $STATE_ANSWERED
	JEQ  answered
	WAIT
	JMP  wait

answered:
	MOVL slot_answer(BX), AX
	POPQ BX
	RET

// func threadPointer() uintptr: FS of this thread.
TEXT ·threadPointer(SB), NOSPLIT, $8-8
	MOVQ $ARCH_GET_FS, DI
	LEAQ 0(SP), SI
	MOVL $SYS_arch_prctl, AX
	SYSCALL
	MOVQ 0(SP), AX
	MOVQ AX, ret+0(FP)
	RET

// func startFirst(b *first): pthread_create on a stack and, unless fs is 0, with the thread pointer that b has, while
// no signal comes. BX and R12 to R15 are the caller's to C.
TEXT ·startFirst(SB), NOSPLIT, $0-8
	MOVQ b+0(FP), BX
	MOVL $SIG_SETMASK, DI
	LEAQ 0(BX), SI
	LEAQ 8(BX), DX
	MOVL $8, R10
	MOVL $SYS_rt_sigprocmask, AX
	SYSCALL
	MOVQ 16(BX), SI
	TESTQ SI, SI
	JEQ   create
	MOVL  $ARCH_SET_FS, DI
	MOVL  $SYS_arch_prctl, AX
	SYSCALL

create:
	MOVQ    SP, R12
	MOVQ    32(BX), SP
	MOVQ    40(BX), CX
	LEAQ    slot_thread(CX), DI
	XORL    SI, SI
	LEAQ    ·work(SB), DX
	MOVQ    56(BX), AX
	CALL    AX
	MOVQ    R12, SP
	MOVL    AX, 48(BX)
	MOVQ    16(BX), SI
	TESTQ   SI, SI
	JEQ     created
	MOVQ    24(BX), SI
	MOVL    $ARCH_SET_FS, DI
	MOVL    $SYS_arch_prctl, AX
	SYSCALL

created:
	MOVL $SIG_SETMASK, DI
	LEAQ 8(BX), SI
	XORL DX, DX
	MOVL $8, R10
	MOVL $SYS_rt_sigprocmask, AX
	SYSCALL
	RET

// Addresses, for requests.

// func addressOfWork() uintptr
TEXT ·addressOfWork(SB), NOSPLIT, $0-8
	LEAQ ·work(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func addressOfCallback(kind int) uintptr
TEXT ·addressOfCallback(SB), NOSPLIT, $0-16
	MOVQ kind+0(FP), CX
	LEAQ ·progressCalled(SB), AX
	CMPQ CX, $1
	JEQ  found
	LEAQ ·logitsCalled(SB), AX
	CMPQ CX, $2
	JEQ  found
	LEAQ ·promptCalled(SB), AX

found:
	MOVQ AX, ret+8(FP)
	RET
