"""Small pictures and streams for the tests of the camera chain."""

from __future__ import annotations

import hashlib
import io

from PIL import Image

from hardware.sense.mjpeg import MultipartReader

CONTENT_TYPE = "multipart/x-mixed-replace; boundary=cam7"


def jpeg(shade=0, *, progressive=False, size=(24, 16)):
    """A whole picture; another shade gives other bytes."""
    image = Image.new("RGB", size, (shade * 37 % 256, shade * 53 % 256, 200))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=70, progressive=progressive)
    return out.getvalue()


def part(body, *, delimiter=b"--cam7", length="own", kind=b"image/jpeg", header=b"Content-Type"):
    announced = len(body) if length == "own" else length
    counted = b"" if announced is None else b"Content-Length: %d\r\n" % announced
    return (
        delimiter + b"\r\n" + header + b": " + kind + b"\r\n" + counted + b"\r\n" + body + b"\r\n"
    )


def read(content_type, *chunks):
    reader = MultipartReader(content_type)
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return events + reader.close(), reader.variant


def sha(data):
    return hashlib.sha256(data).hexdigest()
