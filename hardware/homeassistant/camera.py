"""A local Home Assistant with one camera in it, and the instance file of a camera bench.

The camera comes by the integration ``mjpeg``, as a network camera does: Home Assistant opens the
camera's stream for whoever asks for the entity's.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING

from hardware.homeassistant.configure import Written, store, write_basis, write_private

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

ENTITY = "camera.stand_in_camera"
"""The camera's entity; Home Assistant makes it of the title."""
_TITLE = "Stand-in camera"

_INSTANCE = """\
schema: retire.camera_bench/v1
url: {url}
entity: {entity}
sink_token: {sink}
observer_token: {observer}
approvals: approvals.yaml
bench: true
device: {device}
"""


def write_camera(state: Path, camera: str, port: int, now: datetime) -> Written:
    """Write a configuration with one camera from nothing; an old one is replaced.

    Nobody gets an administrator's token: acting programs and observer have a user each.

    Args:
        state: The folder of the bench; others cannot read it.
        camera: Address of the camera; it offers ``/stream`` and ``/still``.
        port: Port on the loopback address.
        now: When the tokens are issued.

    Raises:
        OSError: It cannot be written.
    """
    written = write_basis(state, port, now, ("sink", "observer"))
    store(written.folder, "core.config_entries", {"entries": [_entry(camera)]}, 1)
    return written


def write_bench(state: Path, url: str, camera: str, written: Written) -> Path:
    """Write the instance file that ``retire bench camera`` reads; returns its path.

    Raises:
        OSError: It cannot be written.
    """
    text = _INSTANCE.format(
        url=json.dumps(url),
        entity=ENTITY,
        device=json.dumps(camera),
        **{name: path.name for name, path in written.tokens.items()},
    )
    return write_private(state / "instance.yaml", text)


def _entry(camera: str) -> dict[str, object]:
    return {
        "entry_id": uuid.uuid4().hex,
        "version": 1,
        "minor_version": 1,
        "domain": "mjpeg",
        "title": _TITLE,
        "data": {},
        "options": {
            "authentication": "basic",
            "mjpeg_url": f"{camera}/stream",
            "still_image_url": f"{camera}/still",
            "username": "",
            "password": "",
            "verify_ssl": True,
        },
        "pref_disable_new_entities": False,
        "pref_disable_polling": False,
        "source": "user",
        "unique_id": None,
        "disabled_by": None,
    }
