"""A camera's own log of who opened what, read as a second source."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

from observer.port import SensorError

_SECONDS = 3.0
_MAX_BYTES = 4_194_304


class DeviceLog:
    """Reads ``/sessions`` of a device; numbers, not clocks, say what is new."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._place = parts.netloc
        self._path = f"{parts.path.rstrip('/')}/sessions"

    def streams(self) -> list[int]:
        """Return the numbers of every stream that was opened; raises SensorError."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        try:
            connection = kind(self._place, timeout=_SECONDS)
            try:
                connection.request("GET", self._path)
                response = connection.getresponse()
                body = response.read(_MAX_BYTES)
            finally:
                connection.close()
            if response.status != 200:
                raise SensorError(f"the camera's own log answers {response.status}")
            found = json.loads(body)["sessions"]
            return [int(item["seq"]) for item in found if item["path"] == "/stream"]
        except (OSError, http.client.HTTPException) as error:
            raise SensorError(
                f"the camera's own log cannot be read: {type(error).__name__}"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise SensorError("the camera's own log is no list of sessions") from error
