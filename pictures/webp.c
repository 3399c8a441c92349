/* pictures/webp.c - WebP by libwebp and libwebpdemux.
 *
 * Owns: which frame of a file is taken, and where it lies on the canvas, which is black around it.
 */
#include "pictures/decode.h"

#ifdef HAVE_LIBWEBP

#include <webp/decode.h>
#include <webp/demux.h>

static void take_orientation(struct decoding *d, const WebPDemuxer *demux)
{
	WebPChunkIterator chunk;
	if (!WebPDemuxGetChunk(demux, "EXIF", 1, &chunk))
		return;
	d->orientation = exif_orientation(chunk.chunk.bytes, chunk.chunk.size);
	WebPDemuxReleaseChunkIterator(&chunk);
}

static bool read_frame(struct decoding *d, const WebPIterator *frame)
{
	struct picture *p = &d->picture;
	if (frame->x_offset < 0 || frame->y_offset < 0 || frame->width <= 0 || frame->height <= 0 ||
	    (uint32_t)frame->x_offset + (uint32_t)frame->width > p->width ||
	    (uint32_t)frame->y_offset + (uint32_t)frame->height > p->height)
		return decode_refuse(d, ERROR_FORMAT, "has a frame of %d x %d pixels at (%d, %d), beyond its %u x %u",
		                     frame->width, frame->height, frame->x_offset, frame->y_offset, p->width,
		                     p->height);
	size_t stride = (size_t)p->width * 3, at = (size_t)frame->y_offset * stride + (size_t)frame->x_offset * 3;
	if (!WebPDecodeRGBInto(frame->fragment.bytes, frame->fragment.size, p->rgb + at, stride * p->height - at,
	                       (int)stride))
		return decode_refuse(d, ERROR_FORMAT, "is damaged where its pixels are");
	return true;
}

bool decode_webp(struct decoding *d)
{
	WebPData data = { d->bytes, d->n };
	WebPIterator frame;
	WebPDemuxer *demux = WebPDemux(&data);
	if (!demux)
		return decode_refuse(d, ERROR_FORMAT, "has %zu bytes, and is damaged or ends early", d->n);
	bool ok = decode_size(d, WebPDemuxGetI(demux, WEBP_FF_CANVAS_WIDTH),
	                      WebPDemuxGetI(demux, WEBP_FF_CANVAS_HEIGHT), true);
	if (ok && !WebPDemuxGetFrame(demux, 1, &frame)) {
		ok = decode_refuse(d, ERROR_FORMAT, "has no picture");
	} else if (ok) {
		ok = read_frame(d, &frame);
		WebPDemuxReleaseIterator(&frame);
	}
	take_orientation(d, demux);
	WebPDemuxDelete(demux);
	return ok;
}

#endif
