/* programs/common/allocator.h - how the programs set up their allocator. A library leaves that to the program it is
 * part of. */
#ifndef RUNTIME_ALLOCATOR_H
#define RUNTIME_ALLOCATOR_H

/* The first thing that main() does. */
void allocator_begin(void);
/* What was freed goes back to the system, as far as it lies in whole pages. From any thread. */
void allocator_give_back(void);

#endif
