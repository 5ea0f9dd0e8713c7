"""What is proposed against: the panel's bundles and one household, under every member."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retire.bundle import load_bundle
from sink.contract import Contract, Snapshot, load_contract, read_snapshot
from tests import houses
from tests.faults import reference, rig

if TYPE_CHECKING:
    from collections.abc import Mapping

PANEL = Path(__file__).resolve().parents[2] / "bundles" / "panel"


@dataclass(frozen=True)
class Case:
    """One contract under one snapshot, as the sink reads both and as the reference does."""

    name: str
    contract: Contract
    contract_digest: str
    data: Mapping[str, Any]
    snapshot: Snapshot
    snapshot_bytes: bytes
    plain: Mapping[str, Any]
    template: str = ""
    patch: str | None = None

    @property
    def right(self) -> dict[str, Any]:
        """The arguments that the contract allows."""
        action = self.data["action"]
        return {"target": action["target"], **action["canonical"]}

    @property
    def tool(self) -> str:
        return str(self.data["action"]["tool"])

    @property
    def others(self) -> list[str]:
        """Texts of the contract that are offered beside the right ones."""
        tools = [str(tool["tool"]) for tool in self.data.get("other_tools", ())]
        return [*tools, *self.data["action"]["targets"]]


def _case(name: str, contract: bytes, snapshot: bytes, **fields: Any) -> Case:
    return Case(
        name=name,
        contract=load_contract(contract, name),
        contract_digest=reference.sha256(contract),
        data=reference.read_contract(contract),
        snapshot=read_snapshot(snapshot),
        snapshot_bytes=snapshot,
        plain=reference.plain_json(snapshot),
        **fields,
    )


def household_cases() -> list[Case]:
    """The tests' own household: whole, and with each predicate false."""
    flips = houses.tasks_data()["locked"]["counterfactuals"]
    changes = [(), *(((flip["path"], flip["value"]),) for flip in flips)]
    return [
        _case("household", rig.CONTRACT_BYTES, rig.snapshot_bytes(change)) for change in changes
    ]


def panel_cases() -> list[Case]:
    """Each bundle of the panel under each member of its locked template."""
    cases: list[Case] = []
    for folder in sorted(PANEL.iterdir()):
        bundle = load_bundle(folder)
        contract = (folder / "contract.yaml").read_bytes()
        template = bundle.digests.template
        cases += [
            _case(folder.name, contract, member.snapshot, template=template, patch=member.path)
            for member in bundle.members
        ]
    return cases
