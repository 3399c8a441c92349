/* tests/fake_kfd/child.h - see child.c. */
#ifndef FAKE_KFD_CHILD_H
#define FAKE_KFD_CHILD_H

/* argv: the program, "run", the device, the model, passes ("31": of three tokens and of one; "g": of 16), how to
 * launch ("0:3": and in how many workgroups), and "once", "twice", "beside" another model that is open at the same
 * time, or "beside:amd:1" one on another device. Returns the exit status. */
int child_main(char **argv);

#endif
