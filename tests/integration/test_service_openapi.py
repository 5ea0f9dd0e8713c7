"""Whatever the document allows, and much that it forbids: no 5xx, no undocumented answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from retire.service.documenting import CERTIFICATE, RUN
from retire.service.settings import ServiceSettings
from tests.unit.service.fake_keeper import FakeKeeper, House
from tests.unit.service.living import living

if TYPE_CHECKING:
    from retire.certify.envelope import SignedEnvelope
    from retire.service.port import RunRow, Submission

pytestmark = pytest.mark.integration

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "ignored_auth",
    "unsupported_method",
)


class QuickKeeper(FakeKeeper):
    """Runs end at once, and the run that the document's examples name is there."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.start("t-admin")
        self.finish("r1")
        named = {"id": RUN, "certificate": CERTIFICATE}
        self.rows[RUN] = self.rows["r1"].model_copy(update=named)
        self.told[RUN] = self.told["r1"]

    async def submit(
        self, submission: Submission, owner: str, idempotency_key: str | None
    ) -> tuple[RunRow, bool]:
        run, new = await super().submit(submission, owner, idempotency_key)
        self.finish(run.id)
        return self.rows[run.id], new

    async def certificate(self, certificate: str, owner: str | None) -> SignedEnvelope:
        wanted = f"k-{RUN}" if certificate == CERTIFICATE else certificate
        return await super().certificate(wanted, owner)


def test_no_generated_call_gets_an_undocumented_answer(tmp_path: Path) -> None:
    settings = ServiceSettings(burst=10**6, rate_per_second=10**6, longest_wait=1, body_time=2)
    house = House(settings, keeper=QuickKeeper())
    with living(house) as address:
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")),
                "run",
                f"{address}/openapi.json",
                "--header",
                f"Authorization: Bearer {house.secrets['admin']}",
                "--checks",
                ",".join(CHECKS),
                "--phases",
                "examples,coverage,fuzzing",
                "--max-examples",
                "10",
                "--seed",
                "20260105",
                "--workers",
                "2",
                "--no-color",
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Operations:       16 selected" in done.stdout
