#!/usr/bin/env python3
"""Gradients of graphs beside PyTorch's, in f64.

beside_torch.py FILE: as t_transforms writes it. For each graph its text, then lines "@in NAME TYPE[DIMS] NUMBERS",
"@ct OUTPUT NUMBERS" and "@grad NAME NUMBERS". The operations are computed here again with PyTorch, which derives
them by itself. A second argument has it say what PyTorch refuses. Exit status: 0, all agree; 1, not; 77, there is no PyTorch.
"""
import re
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(77)

TYPES = {"f64": torch.float64, "f32": torch.float32, "i64": torch.int64, "i32": torch.int32, "u8": torch.uint8,
         "i8": torch.int8, "bool": torch.bool}


class CannotCompute(Exception):
    """PyTorch refuses what the graph asks for, such as a convolution without elements."""


def tensor(kind, numbers):
    name, dims = re.fullmatch(r"(\w+)\[([\d,]*)\]", kind).groups()
    shape = [int(d) for d in dims.split(",")] if dims else []
    dtype = TYPES[name]
    convert = float if dtype.is_floating_point else int
    return torch.tensor([convert(x) for x in numbers], dtype=dtype).reshape(shape)


def dequantise(w, format):
    """Blocks of Q8_0: a scale, and 32 signed bytes."""
    assert format == "Q8_0"
    block = w.reshape(-1, 34)
    scale = block[:, :2].contiguous().view(torch.float16).to(torch.float32)
    return (scale * block[:, 2:].contiguous().view(torch.int8)).reshape(*w.shape[:-1], w.shape[-1] // 34 * 32)


def clamped(index, size):
    """Indices that may be used, and which of them are in range."""
    index = index.to(torch.int64)
    return index.clamp(0, max(size - 1, 0)), (index >= 0) & (index < size)


def strides(shape):
    out = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        out[i] = out[i + 1] * shape[i + 1]
    return out


def pad(x, number, low, high, interior=None):
    interior = interior or [0] * x.dim()
    inside, out = torch.ones([1] * x.dim(), dtype=torch.bool), x
    shape = []
    for d in range(x.dim()):
        n = x.shape[d]
        size = n + max(n - 1, 0) * interior[d] + low[d] + high[d]
        shape.append(size)
        at = torch.arange(size) - low[d]
        step = interior[d] + 1
        fits = (at >= 0) & (at % step == 0) & (torch.div(at, step, rounding_mode="floor") < n)
        view = [-1 if k == d else 1 for k in range(x.dim())]
        inside = inside & fits.reshape(view)
        if x.numel():
            index = torch.div(at, step, rounding_mode="floor").clamp(0, n - 1)
            out = out.index_select(d, index)
    if not x.numel():
        return number.expand(shape)
    return torch.where(inside, out, number.expand(shape))


def positions(x, at, batch):
    """Rows of x without its first dimensions, and which positions are in range."""
    length, lead = at.shape[-1], list(at.shape[:-1])
    step = strides(x.shape[:batch + length])
    row, good = torch.zeros(lead, dtype=torch.int64), torch.ones(lead, dtype=torch.bool)
    for b in range(batch):
        view = [-1 if k == b else 1 for k in range(len(lead))]
        row = row + torch.arange(x.shape[b]).reshape(view) * step[b]
    for k in range(length):
        index, fits = clamped(at[..., k], x.shape[batch + k])
        row, good = row + index * step[batch + k], good & fits
    return row, good, list(x.shape[batch + length:])


def gather_nd(x, at, batch=0):
    row, good, rest = positions(x, at, batch)
    if x.numel() == 0:
        return torch.zeros(list(row.shape) + rest, dtype=x.dtype)
    out = x.reshape([-1] + rest)[row.reshape(-1)].reshape(list(row.shape) + rest)
    return torch.where(good.reshape(list(row.shape) + [1] * len(rest)), out, torch.zeros((), dtype=x.dtype))


def put(x, linear, updates, mode):
    return x.reshape(-1).index_put((linear,), updates, accumulate=mode == "add").reshape(x.shape)


def scatter_nd(x, at, updates, mode="set"):
    row, good, rest = positions(x, at, 0)
    inner = 1
    for r in rest:
        inner *= r
    linear = row.reshape(-1, 1) * inner + torch.arange(inner).reshape(1, -1)
    keep = good.reshape(-1, 1).expand(linear.shape)
    return put(x, linear[keep], updates.reshape(linear.shape)[keep], mode)


def scatter_along(x, at, updates, axis, mode="set"):
    step = strides(x.shape)
    index, good = clamped(at, x.shape[axis])
    linear = index * step[axis]
    for d in range(x.dim()):
        if d != axis:
            linear = linear + torch.arange(at.shape[d]).reshape([-1 if k == d else 1 for k in range(x.dim())]) * step[d]
    return put(x, linear[good], updates[good], mode)


def take(x, at, axis):
    shape = list(x.shape[:axis]) + list(at.shape) + list(x.shape[axis + 1:])
    if x.numel() == 0:
        return torch.zeros(shape, dtype=x.dtype)
    index, good = clamped(at.reshape(-1), x.shape[axis])
    view = [-1 if k == axis else 1 for k in range(x.dim())]
    return torch.where(good.reshape(view), x.index_select(axis, index), torch.zeros((), dtype=x.dtype)).reshape(shape)


def take_along(x, at, axis):
    if x.numel() == 0:
        return torch.zeros(at.shape, dtype=x.dtype)
    index, good = clamped(at, x.shape[axis])
    return torch.where(good, torch.gather(x, axis, index), torch.zeros((), dtype=x.dtype))


def along(function, neutral):
    def scan(x, axis, reverse=0, exclusive=0):
        x = x.flip(axis) if reverse else x
        y = function(x, axis)
        if exclusive and x.shape[axis]:
            first = torch.full_like(x.narrow(axis, 0, 1), neutral)
            y = torch.cat([first, y.narrow(axis, 0, x.shape[axis] - 1)], axis)
        return y.flip(axis) if reverse else y
    return scan


def reduced(function):
    def reduce(x, axes):
        for a in sorted(axes, reverse=True):
            x = function(x, a)
        return x
    return reduce


def most(function, neutral):
    """amax and amin share among equal ones, as they are told all dimensions at once."""
    def reduce(x, axes):
        if not all(x.shape[a] for a in axes):
            return torch.full([x.shape[d] for d in range(x.dim()) if d not in axes], neutral, dtype=x.dtype)
        return function(x, axes) if axes else x
    return reduce


def arg(function):
    def found(x, axis, last=0):
        return x.shape[axis] - 1 - function(x.flip(axis), axis) if last else function(x, axis)
    return found


def sort(*x, axis, descending=0):
    values, order = torch.sort(x[0], dim=axis, descending=bool(descending), stable=True)
    return (values,) + tuple(torch.gather(t, axis, order) for t in x[1:])


def dot(x, y, left, right, left_batch=(), right_batch=()):
    a, b, free = [None] * x.dim(), [None] * y.dim(), iter("abcdefghijklmnopqrstuvwxyz")
    front = ""
    for i, k in zip(left_batch, right_batch):
        a[i] = b[k] = next(free)
        front += a[i]
    for i, k in zip(left, right):
        a[i] = b[k] = next(free)
    own = ""
    for side in (a, b):
        for i, letter in enumerate(side):
            if letter is None:
                side[i] = next(free)
                own += side[i]
    return torch.einsum("%s,%s->%s%s" % ("".join(a), "".join(b), front, own), x, y)


def windows(x, value, low, high, input_dilation=None):
    n = x.dim() - 2
    zero = [0, 0]
    gaps = zero + [i - 1 for i in (input_dilation or [1] * n)]
    return pad(x, torch.tensor(value, dtype=x.dtype), zero + (low or [0] * n), zero + (high or [0] * n), gaps)


def empty(x, channels, window, padded, strides, dilation, value):
    """What PyTorch refuses: results without elements, and those of padding alone; None: it computes them."""
    count = []
    for n, k, step, apart in zip(padded.shape[2:], window, strides, dilation):
        room = n - ((k - 1) * apart + 1 if k else 0)
        count.append(room // step + 1 if room >= 0 else 0)
    out = torch.full([x.shape[0], channels] + count, value, dtype=x.dtype)
    return out if not out.numel() or not x.numel() else None


def conv(x, w, strides=None, low=None, high=None, dilation=None, input_dilation=None, groups=1):
    n = x.dim() - 2
    strides, dilation = strides or [1] * n, dilation or [1] * n
    padded = windows(x, 0.0, low, high, input_dilation)
    out = empty(x, w.shape[0], w.shape[2:], padded, strides, dilation, 0.0)
    if out is not None:
        return out
    if n > 3 or not w.numel():
        raise CannotCompute("conv")
    return [F.conv1d, F.conv2d, F.conv3d][n - 1](padded, w, stride=strides, dilation=dilation, groups=groups)


def window_max(x, window, strides=None, low=None, high=None, dilation=None):
    n = x.dim() - 2
    strides, dilation = strides or [1] * n, dilation or [1] * n
    padded = windows(x, -float("inf"), low, high)
    out = empty(x, x.shape[1], window, padded, strides, dilation, -float("inf"))
    if out is not None:
        return out
    if n > 3:
        raise CannotCompute("window_max")
    return [F.max_pool1d, F.max_pool2d, F.max_pool3d][n - 1](padded, window, stride=strides, dilation=dilation)


def window_sum(x, window, strides=None, low=None, high=None, dilation=None):
    return conv(x, torch.ones([x.shape[1], 1] + window, dtype=x.dtype), strides, low, high, dilation,
                groups=max(x.shape[1], 1))


def broadcast(x, shape, axes):
    view = [1] * len(shape)
    for i, a in enumerate(axes):
        view[a] = x.shape[i]
    return x.reshape(view).expand(shape)


def iota(type, shape, axis):
    at = torch.arange(shape[axis], dtype=TYPES[type])
    return at.reshape([-1 if k == axis else 1 for k in range(len(shape))]).expand(shape)


def slices(x, start, limit, strides=None):
    for d in range(x.dim()):
        x = x.index_select(d, torch.arange(start[d], limit[d], strides[d] if strides else 1))
    return x


def convert(x, type):
    return x.to(TYPES[type])


def scan(*operands, body, carried=0, stacked=0, length=None, reverse=0):
    """A loop over the body, a graph as text."""
    lines = body.split("\n")
    names = [line.split()[1] for line in lines if line.startswith("input ")]
    outputs = [line.split()[1] for line in lines if line.startswith("output ")]
    state, xs, shared = operands[:carried], operands[carried:carried + stacked], operands[carried + stacked:]
    iterations = range(xs[0].shape[0] if xs else length)
    slices_of = {}
    for i in reversed(iterations) if reverse else iterations:
        values = dict(zip(names, (*state, *(x[i] for x in xs), *shared)))
        for line in lines:
            if " = " in line:
                run(line, values)
        state = [values[name] for name in outputs[:carried]]
        slices_of[i] = [values[name] for name in outputs[carried:]]
    if not slices_of:
        raise CannotCompute("there are no iterations")
    return *state, *(torch.stack([slices_of[i][k] for i in iterations]) for k in range(len(outputs) - carried))


OPS = {
    "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "sin": torch.sin, "cos": torch.cos, "tanh": torch.tanh, "erf": torch.erf,
    "logistic": torch.sigmoid, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc,
    "not": torch.bitwise_not, "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "rem": torch.fmod, "max": torch.maximum, "min": torch.minimum, "pow": torch.pow, "fma": lambda a, b, c: a * b + c,
    "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor,
    "shift_left": torch.bitwise_left_shift, "shift_right": torch.bitwise_right_shift, "eq": torch.eq, "ne": torch.ne,
    "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge, "select": torch.where, "convert": convert,
    "iota": iota, "broadcast": broadcast, "reshape": lambda x, shape: x.reshape(shape),
    "transpose": lambda x, axes: x.permute(axes), "slice": slices, "pad": pad,
    "concatenate": lambda *x, axis: torch.cat(x, axis), "reverse": lambda x, axes: x.flip(axes), "take": take,
    "take_along": take_along, "gather_nd": gather_nd, "scatter_nd": scatter_nd, "scatter_along": scatter_along,
    "reduce_sum": reduced(torch.sum), "reduce_product": reduced(torch.prod),
    "reduce_max": most(torch.amax, -float("inf")),
    "reduce_min": most(torch.amin, float("inf")), "reduce_any": reduced(torch.any), "reduce_all": reduced(torch.all),
    "argmax": arg(torch.argmax), "argmin": arg(torch.argmin), "cumsum": along(torch.cumsum, 0),
    "cumprod": along(torch.cumprod, 1), "sort": sort, "dot": dot, "conv": conv, "window_max": window_max,
    "window_sum": window_sum, "dequantise": dequantise, "scan": scan, "solve": torch.linalg.solve,
}


def attribute(text):
    name, value = text.split("=", 1)
    if value[0] == '"':
        escapes = {"n": "\n", "t": "\t"}
        return name, re.sub(r"\\(.)", lambda m: escapes.get(m[1], m[1]), value[1:-1], flags=re.S)
    if value[0] == "[":
        return name, [int(x) for x in value[1:-1].split(",")] if value != "[]" else []
    return name, int(value) if value.lstrip("-").isdigit() else value


def run(line, values):
    names, rest = line.split(" = ", 1)
    op, *words = re.findall(r'(?:[^\s"#]|"(?:[^"\\]|\\.)*")+|#.*', rest)
    if words and words[-1].startswith("#"):
        words.pop()
    if op == "constant":
        values[names] = tensor(words[0], words[1:])
        return
    operands = [values[w] for w in words if "=" not in w]
    out = OPS[op](*operands, **dict(attribute(w) for w in words if "=" in w))
    for name, value in zip(names.split(", "), out if isinstance(out, tuple) else (out,)):
        values[name] = value


def check(lines):
    """The greatest difference of a gradient, relative to the greatest of its elements or 1; and how many are not 0."""
    values, inputs, outputs, total, worst, moving = {}, {}, {}, 0, 0, 0
    for line in lines:
        if line.startswith("@in "):
            _, name, kind, *numbers = line.split()
            inputs[name] = tensor(kind, numbers)
            if inputs[name].dtype == torch.float64:
                inputs[name].requires_grad_(True)
            values[name] = inputs[name]
    for line in lines:
        if " = " in line and line[0] != "@":
            run(line, values)
        elif line.startswith("output "):
            _, value, _, name = line.split()
            outputs[name] = values[value]
        elif line.startswith("@ct "):
            _, name, *numbers = line.split()
            ct = torch.tensor([float(x) for x in numbers], dtype=torch.float64).reshape(outputs[name].shape)
            total = total + (outputs[name] * ct).sum()
    wanted = [t for t in inputs.values() if t.requires_grad]
    flows = torch.is_tensor(total) and total.requires_grad
    found = torch.autograd.grad(total, wanted, allow_unused=True) if flows else [None] * len(wanted)
    theirs = {n: g for n, g in zip([n for n, t in inputs.items() if t.requires_grad], found)}
    for line in lines:
        if line.startswith("@grad "):
            _, name, *numbers = line.split()
            ours = torch.tensor([float(x) for x in numbers], dtype=torch.float64)
            other = torch.zeros_like(ours) if theirs[name] is None else theirs[name].reshape(-1)
            if ours.numel():
                difference = (ours - other).abs().max().item() / max(1, other.abs().max().item())
                worst = difference if difference != difference else max(worst, difference)
                moving += int((other != 0).sum())
    return worst, moving


def main():
    graphs, agree, refused, failed, moving, most_of_all = [], 0, 0, 0, 0, 0
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            if line.startswith("=== "):
                graphs.append((line[4:].strip(), []))
            else:
                graphs[-1][1].append(line.rstrip("\n"))
    for name, lines in graphs:
        try:
            worst, more = check(lines)
        except (CannotCompute, RuntimeError) as e:
            refused += 1
            if len(sys.argv) > 2:
                print("%s: PyTorch refuses: %s" % (name, e))
            continue
        moving += more
        if worst <= 1e-9:
            agree += 1
            most_of_all = max(worst, most_of_all)
        else:
            failed += 1
            print("%s: differs by %g\n%s" % (name, worst, "\n".join(lines)))
    print("# PyTorch %s: %d graphs agree, at most %.1e apart, %d elements not 0; it refuses %d; %d differ" %
          (torch.__version__, agree, most_of_all, moving, refused, failed))
    sys.exit(1 if failed or agree < 50 * refused else 0)


main()
