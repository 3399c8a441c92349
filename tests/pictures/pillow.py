#!/usr/bin/python3
"""pillow.py FOLDER [--few] - pictures in every format and mode that Pillow writes or reads, and what Pillow makes of
them: FOLDER/list has a line for each file with width, height and the FNV-1a hash of its pixels as RGB.
pillow.py --small prints small ones of them as tests/pictures/small_pictures.h.

The judge is Image.open(), ImageOps.exif_transpose() and convert('RGB'). Grey of sixteen bits is judged by its upper
bytes instead, as Pillow cuts it off at 255."""
import io
import itertools
import os
import random
import struct
import sys
import zlib

from PIL import Image, ImageOps


def fnv(data):
    h = 0xcbf29ce484222325
    for byte in data:
        h = ((h ^ byte) * 0x100000001b3) & 0xffffffffffffffff
    return h


def noise(mode, width, height, seed, smooth=False):
    bands = {'1': 1, 'L': 1, 'P': 1, 'LA': 2, 'RGB': 3, 'RGBA': 4, 'CMYK': 4, 'YCbCr': 3}[mode]
    draw = random.Random(seed)
    if smooth:
        data = bytes((x * 255 // width + y * (band + 1) * 37 // height + draw.randrange(9)) & 255
                     for y in range(height) for x in range(width) for band in range(bands))
    else:
        data = draw.randbytes(width * height * bands)
    if mode == '1':
        return Image.frombytes('L', (width, height), data).convert('1')
    image = Image.frombytes(mode if mode != 'P' else 'L', (width, height), data)
    if mode == 'P':
        image = Image.frombytes('P', (width, height), data)
        image.putpalette(draw.randbytes(768))
    return image


def saved(image, form, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


# ---- PNG by hand: all kinds, with and without Adam7
def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))


def png(width, height, depth, kind, draw, interlaced=False, trns=False, exif=None, late=False):
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    bits = depth * channels
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    if not interlaced:
        passes = [(0, 0, 1, 1)]
    lines = b''
    for x, y, dx, dy in passes:
        w, h = -(-(width - x) // dx), -(-(height - y) // dy)
        if w > 0 and h > 0:
            for _ in range(h):
                row = bytearray(draw.randbytes((w * bits + 7) // 8))
                lines += bytes([draw.randrange(5)]) + row
    out = b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, depth, kind, 0, 0,
                                                            int(interlaced)))
    if exif and not late:
        out += chunk(b'eXIf', exif)
    if kind == 3:
        out += chunk(b'PLTE', draw.randbytes(3 << depth))
    if trns:
        out += chunk(b'tRNS', draw.randbytes({0: 2, 2: 6, 3: 1 << depth}[kind]))
    body = zlib.compress(lines)
    cut = draw.randrange(len(body) + 1)
    out += chunk(b'IDAT', body[:cut]) + chunk(b'IDAT', body[cut:])
    if exif and late:
        out += chunk(b'eXIf', exif)
    return out + chunk(b'IEND', b'')


def exif_of(orientation, order='<', kind=3):
    head = b'II*\0' if order == '<' else b'MM\0*'
    value = struct.pack(order + ('HH' if kind == 3 else 'I'), *((orientation, 0) if kind == 3 else (orientation,)))
    tags = struct.pack(order + 'HHI', 0x100, 3, 1) + struct.pack(order + 'HH', 7, 0)
    tags += struct.pack(order + 'HHI', 0x112, kind, 1) + value
    return head + struct.pack(order + 'IH', 8, 2) + tags + struct.pack(order + 'I', 0)


# ---- BMP by hand
def bmp(width, height, bits, draw, compression=0, masks=(), core=False, down=False, header=40):
    stride = (width * bits + 31) // 32 * 4
    colors = 1 << bits if bits <= 8 else 0
    entry = 3 if core else 4
    palette = draw.randbytes(entry * colors)
    if compression in (1, 2):
        body = runs(width, height, bits, draw)
    else:
        body = b''.join(draw.randbytes(stride) for _ in range(height))
    tail = b''.join(struct.pack('<I', m) for m in masks)
    if core:
        info = struct.pack('<IHHHH', 12, width, height, 1, bits)
    else:
        info = struct.pack('<IiiHHIIiiII', header, width, -height if down else height, 1, bits, compression, len(body),
                           0, 0, colors, 0)
        info += tail + b'\0' * (header - 40 - len(tail)) if header > 40 else tail
    at = 14 + len(info) + len(palette)
    return b'BM' + struct.pack('<IHHI', at + len(body), 0, 0, at) + info + palette + body


def runs(width, height, bits, draw):
    out = b''
    for _ in range(height):
        x = 0
        while x < width:
            n = min(draw.randrange(1, 9), width - x)
            # Pillow's reader loses the last index of an odd number of four bits.
            if n >= 3 and draw.randrange(2) and (bits == 8 or n % 2 == 0):
                body = draw.randbytes(n if bits == 8 else (n + 1) // 2)
                out += bytes([0, n]) + body + b'\0' * (len(body) % 2)
            else:
                out += bytes([n]) + draw.randbytes(1)
            x += n
        out += b'\0\0'
    return out + b'\0\1'


# ---- what is tried
def pngs(sizes):
    kinds = [(d, 0) for d in (1, 2, 4, 8, 16)] + [(d, 3) for d in (1, 2, 4, 8)] + [(d, k) for k in (2, 4, 6)
                                                                                   for d in (8, 16)]
    for number, ((w, h), (depth, kind), adam) in enumerate(itertools.product(sizes, kinds, (False, True))):
        draw = random.Random(number)
        yield f'png-{depth}-{kind}-{w}x{h}-{int(adam)}', png(w, h, depth, kind, draw, adam,
                                                           trns=kind in (0, 2, 3) and number % 3 == 0)
    for orientation in range(10):
        for late in (False, True):
            yield f'png-exif-{orientation}-{int(late)}', png(5, 3, 8, 2, random.Random(orientation),
                                                            exif=exif_of(orientation, '<>'[late]), late=late)


def jpegs(sizes):
    for number, (w, h) in enumerate(sizes):
        for mode in ('L', 'RGB', 'CMYK'):
            for quality, sampling, progressive in ((75, 2, False), (95, 0, True), (30, 1, False), (100, 0, False)):
                image = noise(mode, w, h, number, smooth=quality != 30)
                yield (f'jpeg-{mode}-{w}x{h}-{quality}-{sampling}-{int(progressive)}',
                       saved(image, 'JPEG', quality=quality, subsampling=sampling, progressive=progressive,
                             optimize=number % 2 == 1))
    for orientation in range(10):
        for order, kind in (('<', 3), ('>', 3), ('>', 4)):
            yield (f'jpeg-exif-{orientation}-{ord(order)}-{kind}',
                   saved(noise('RGB', 19, 11, 3, True), 'JPEG', exif=b'Exif\0\0' + exif_of(orientation, order, kind)))
    rgb = saved(noise('RGB', 24, 17, 5, True), 'JPEG', quality=90)
    # Adobe's marker with transform 0 says that the three components are red, green and blue already.
    yield 'jpeg-adobe-rgb', rgb[:2] + b'\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\0' + rgb[20:]
    cmyk = saved(noise('CMYK', 24, 17, 6, True), 'JPEG', quality=90)
    adobe = cmyk.index(b'Adobe')
    yield 'jpeg-ycck', cmyk[:adobe + 11] + b'\2' + cmyk[adobe + 12:]
    yield 'jpeg-tail', rgb + b'what follows is no part of it'


def webps(sizes):
    for number, (w, h) in enumerate(sizes):
        for mode in ('RGB', 'RGBA'):
            for options in ({'lossless': True}, {'quality': 80}, {'quality': 10, 'method': 0},
                            {'lossless': True, 'exact': True, 'quality': 100}):
                name = '-'.join(f'{k}{int(v)}' for k, v in options.items())
                yield f'webp-{mode}-{w}x{h}-{name}', saved(noise(mode, w, h, number, number % 2 == 1), 'WEBP', **options)
    for orientation in range(10):
        yield f'webp-exif-{orientation}', saved(noise('RGB', 9, 7, 1), 'WEBP', lossless=True,
                                                exif=exif_of(orientation, '>'))
    frames = [noise('RGBA', 31, 23, k) for k in range(3)]
    yield 'webp-frames', saved(frames[0], 'WEBP', save_all=True, append_images=frames[1:], lossless=True)


def gifs(sizes):
    for number, (w, h) in enumerate(sizes):
        for mode in ('1', 'L', 'P', 'RGB'):
            for options in ({}, {'interlace': 0}, {'transparency': 3}):
                name = ''.join(options)
                yield f'gif-{mode}-{w}x{h}-{name}', saved(noise(mode, w, h, number), 'GIF', **options)
    frames = [noise('P', 20, 18, k) for k in range(3)]
    yield 'gif-frames', saved(frames[0], 'GIF', save_all=True, append_images=frames[1:])
    # A picture that is smaller than its canvas, and one that leaves it; with and without a transparent index.
    for transparent in (False, True):
        one = saved(noise('P', 20, 18, 9), 'GIF', **({'transparency': 7} if transparent else {}))
        at = one.index(b'\x2c\0\0\0\0\x14\0\x12\0')
        for name, canvas, left, top in (('within', (33, 40), 5, 9), ('beyond', (21, 19), 11, 30)):
            yield (f'gif-{name}-{int(transparent)}', one[:6] + struct.pack('<HH', *canvas) + one[10:at] +
                   struct.pack('<BHH', 0x2c, left, top) + one[at + 5:])
    grey = saved(noise('L', 7, 5, 2), 'GIF')
    palette = 3 << (grey[10] & 7) + 1
    yield 'gif-grey', grey[:10] + b'\0' + grey[11:13] + grey[13 + palette:]
    # A palette that ends before the indices do.
    yield 'gif-short', grey[:10] + b'\x80' + grey[11:19] + grey[13 + palette:]


def bmps(sizes):
    for number, (w, h) in enumerate(sizes):
        for mode in ('1', 'L', 'P', 'RGB', 'RGBA'):
            yield f'bmp-{mode}-{w}x{h}', saved(noise(mode, w, h, number), 'BMP')
        draw = random.Random(number)
        for bits in (1, 4, 8, 24):
            yield f'bmp-core-{bits}-{w}x{h}', bmp(w, h, bits, draw, core=True)
        for bits in (1, 4, 8, 16, 24, 32):
            yield f'bmp-{bits}bit-{w}x{h}', bmp(w, h, bits, draw, down=number % 2 == 1)
        for bits, masks in ((16, (0xf800, 0x7e0, 0x1f)), (16, (0x7c00, 0x3e0, 0x1f)), (32, (0xff0000, 0xff00, 0xff)),
                            (32, (0xff000000, 0xff0000, 0xff00))):
            yield f'bmp-masks-{bits}-{masks[0]}-{w}x{h}', bmp(w, h, bits, draw, 3, masks)
        yield f'bmp-v5-{w}x{h}', bmp(w, h, 32, draw, 3, (0xff, 0xff00, 0xff0000, 0xff000000), header=124)
        yield f'bmp-rle8-{w}x{h}', bmp(w, h, 8, draw, 1)
        yield f'bmp-rle4-{w}x{h}', bmp(w, h, 4, draw, 2)


def judge(name, data):
    image = Image.open(io.BytesIO(data))
    if image.mode == 'I':
        values = image.getdata()
        image = Image.frombytes('L', image.size, bytes(v >> 8 for v in values))
    else:
        image.load()
        image = ImageOps.exif_transpose(image)
    return image.convert('RGB')


def all_pictures(sizes):
    for each in (pngs, jpegs, webps, gifs, bmps):
        yield from each(sizes)


def print_small():
    chosen = ('png-8-3-7x5-1', 'png-16-6-7x5-0', 'png-1-0-7x5-0', 'png-exif-6-0', 'png-exif-3-1', 'jpeg-L-7x5-75-2-0',
              'jpeg-RGB-7x5-95-0-1', 'jpeg-CMYK-7x5-75-2-0', 'jpeg-exif-8-62-3', 'webp-RGBA-7x5-lossless1',
              'webp-RGB-7x5-quality80', 'webp-exif-5', 'gif-P-7x5-transparency', 'gif-1-7x5-', 'gif-grey',
              'bmp-1-7x5', 'bmp-rle8-7x5', 'bmp-rle4-7x5', 'bmp-16bit-7x5', 'bmp-v5-7x5')
    found = dict(all_pictures([(7, 5)]))
    print('/* tests/pictures/small_pictures.h - small pictures and the FNV-1a hash of what Pillow 9.4 makes of them;\n'
          ' * tests/pictures/pillow.py --small writes it. */')
    print('#ifndef TESTS_SMALL_PICTURES_H\n#define TESTS_SMALL_PICTURES_H\n\n#include <stddef.h>\n#include <stdint.h>\n')
    rows = []
    for k, name in enumerate(chosen):
        data = found[name]
        if name.startswith('jpeg') or len(data) > 700:
            pass
        print(f'static const uint8_t small_picture_{k}[] = {{')
        for at in range(0, len(data), 24):
            print('\t' + ', '.join(str(b) for b in data[at:at + 24]) + ',')
        print('};')
        image = judge(name, data)
        rows.append(f'\t{{ "{name}", small_picture_{k}, sizeof small_picture_{k}, {image.width}, {image.height}, '
                    f'0x{fnv(image.tobytes()):016x} }},')
    print('\nstatic const struct small_picture {\n\tconst char *name;\n\tconst uint8_t *bytes;\n\tsize_t n;\n'
          '\tuint32_t width, height;\n\tuint64_t hash;\n} small_pictures[] = {')
    print('\n'.join(rows))
    print('};\nenum { SMALL_PICTURES = sizeof small_pictures / sizeof *small_pictures };\n\n#endif')


def main():
    if sys.argv[1] == '--small':
        print_small()
        return
    folder = sys.argv[1]
    sizes = [(1, 1), (7, 5), (17, 31)]
    if '--few' not in sys.argv:
        sizes += [(2, 3), (1, 13), (64, 64), (101, 53), (13, 1), (16, 16)]
    seen = set()
    with open(os.path.join(folder, 'list'), 'w', encoding='ascii') as out:
        for name, data in all_pictures(sizes):
            assert name not in seen, name
            seen.add(name)
            image = judge(name, data)
            with open(os.path.join(folder, name), 'wb') as f:
                f.write(data)
            out.write(f'{name} {image.width} {image.height} {fnv(image.tobytes()):016x}\n')


main()
