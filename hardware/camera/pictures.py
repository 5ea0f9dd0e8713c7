"""The pictures of the stand-in camera: drawn, different for each number, showing nobody."""

from __future__ import annotations

import io
from functools import lru_cache

from PIL import Image, ImageDraw

SIZE = (320, 240)
"""Width and height in pixels."""


@lru_cache(maxsize=64)
def picture(number: int) -> bytes:
    """Return the JPEG with this number: a dot on a circle, and the number itself."""
    width, height = SIZE
    image = Image.new("RGB", SIZE, (36, 52 + number % 64, 78))
    draw = ImageDraw.Draw(image)
    for x in range(0, width, 40):
        draw.line((x, 0, x, height), fill=(60, 84, 110))
    place = (number * 17) % (width - 40)
    draw.ellipse((place, 90, place + 40, 130), fill=(230, 160, 40))
    draw.text((12, 12), f"picture {number}", fill=(240, 240, 240))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=80)
    return out.getvalue()


@lru_cache(maxsize=1)
def placeholder() -> bytes:
    """Return the fixed picture that stands in for a missing view."""
    image = Image.new("RGB", SIZE, (128, 128, 128))
    ImageDraw.Draw(image).text((110, 112), "no picture", fill=(20, 20, 20))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=80)
    return out.getvalue()


PAGE = b"<!doctype html><title>Not found</title><h1>404</h1>"
"""What a confused device sends in place of a picture."""
