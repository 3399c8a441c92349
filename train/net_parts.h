/* train/net_parts.h - what the files of struct net share. */
#ifndef TRAIN_NET_PARTS_H
#define TRAIN_NET_PARTS_H

#include "train/net.h"

/* Tokens whose logits are computed at a time: at least so many, and more where all logits have no more numbers. */
enum { NET_HEAD_ROWS = 64, NET_LOGITS = 1 << 22 };
/* Numbers of the head's matrix that are used at a time. */
enum { NET_CHUNK = 1 << 23 };
#define NET_NO_DROPOUT UINT64_MAX
#define NET_DROPOUT_SEED 0x6A09E667F3BCC909

/* net_open.c: the tensors that are trained, and where each input of each layer is. net_graphs.c: the executables. */
bool net_bind_all(struct net *n, struct error *err);
bool net_draw_all(struct net *n, struct error *err);
static inline bool net_head_is_packed(const struct net *n)
{
	return !n->o.full && head_tensor_of(n->m)->type != DTYPE_F32;
}

#endif
