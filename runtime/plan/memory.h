/* runtime/plan/memory.h - what memory on a device is for, which decides who reaches it.
 *
 * Owns: the enum, which plans say of their buffers and devices are asked for (runtime/device/device.h).
 */
#ifndef RUNTIME_PLAN_MEMORY_H
#define RUNTIME_PLAN_MEMORY_H

enum device_memory {
	DEVICE_WEIGHTS,
	DEVICE_VECTORS, /* written by upload() before the first plan runs; kernels read them. VECTORS: norms and biases
	                 */
	DEVICE_CACHE,
	DEVICE_BUFFERS, /* KV cache, activations: kernels alone */
	DEVICE_SHARED,  /* ids, angles, logits: the host writes and reads them in place, between runs */
	DEVICE_ARRAYS   /* of users' kernels, which read and write them */
};

#endif
