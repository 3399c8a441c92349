/* tests/runtime/mlx_layout.h - small models as MLX's converter lays them out. */
#ifndef TESTS_RUNTIME_MLX_LAYOUT_H
#define TESTS_RUNTIME_MLX_LAYOUT_H

#include "tests/runtime/remade.h"

/* The tensors of `o` under MLX's names, in its order, and what it computes of some. */
void mlx_layout(const struct original *o, struct st_writer *w);

#endif
