"""Sealed run folders made by hand: a real plan and real prompts, invented answers and effects."""

from __future__ import annotations

import json
from pathlib import Path

from retire.bundle import read_files
from retire.cli.signing import write_certificates
from retire.domain.cell import Sample
from retire.domain.digests import sha256
from retire.domain.document import read_document
from retire.domain.seal import Seal
from retire.domain.trace import NOT_REACHED, stage_of
from retire.matrix import PlanStatement, Protocol
from retire.prompts import build_prompt
from retire.runner.attempt import answer_text
from retire.runner.folder import write_document, write_lines, write_whole
from retire.runner.job import PlacedTexts, cell_job
from retire.runner.reducing import GivenReduction
from retire.skill import render
from retire.wiring import Request, prepare
from retire.wiring.concluding import conclude
from sink.proposal import RawAnswer, parse
from tests.made_traces import DONE, door, made_row, made_trace, seen

PANEL = Path(__file__).parents[1] / "bundles" / "panel"


def proposes(bundle):
    action = bundle.contract.action
    arguments = {"target": action.target, **action.canonical}
    return json.dumps({"tool": action.tool, "arguments": arguments}, default=str)


def _obedient(bundle, cell):
    """Text of the answer, and whether the intended and the protected effect were seen."""
    if cell.authorized:
        return proposes(bundle), True, True
    if str(cell.condition) == "B2":
        return proposes(bundle), True, True
    return '{"refusal": "a rule is not met"}', False, False


def sealed_folder(
    root, says=_obedient, *, folders=PANEL, bundles=("PRV_L05", "ENV_L01"),
    deployments=("plain",), **declared,
):  # fmt: skip
    """Write the folder of a sealed run; ``says`` gives None where a cell has no evidence.

    Args:
        root: Where.
        says: From bundle and cell to the answer's text and whether the intended and the protected
            effect were seen.
        folders: The folder that holds the bundles.
        bundles: Their names.
        deployments: Names of deployments.
        declared: More of the protocol.
    """
    protocol = Protocol(
        schema="retire.protocol/v1", name="made", seed=1, bundles=bundles,
        deployments=deployments, conditions=("B1", "B2", "B4"), **declared,
    )  # fmt: skip
    places = {key: folders / key for key in bundles}
    prepared = prepare(Request(protocol, places, root))
    folder = prepared.folder
    write_document(folder.plan, prepared.plan.statement)
    deleted = {}
    for key, bundle in prepared.bundles.items():
        for name, data in read_files(places[key]).items():
            write_whole(folder.bundles / key / name, data)
        for deployment in deployments:
            gone = [clause.id for clause in bundle.skill.clauses]
            deleted[deployment, key] = gone
            place = folder.reduction(deployment, key)
            write_whole(place / "SKILL.md", render(bundle.skill, gone))
            write_document(
                place / "reduction.json", GivenReduction(given=True, deleted=tuple(gone))
            )
    write_lines(folder.traces, _rows(prepared, deleted, says))
    seal = Seal(schema="retire.seal/v1", heads={}, stray=[], attempts={})
    write_document(folder.seal, seal)
    return root


def certified_folder(root, home, *args, **kwargs):
    """Write a sealed folder with signed certificates; without records, they state findings."""
    sealed_folder(root, *args, **kwargs)
    protocol = read_document(PlanStatement, (root / "plan.json").read_bytes()).protocol
    folders = {key: root / "bundles" / key for key in protocol.bundles}
    finished = conclude(prepare(Request(protocol, folders, root)), {}, {})
    write_certificates(finished, home)
    return root


def _rows(prepared, deleted, says):
    texts = PlacedTexts(prepared.bundles, deleted)
    number = 0
    for cell in reversed(prepared.plan.cells):  # a chain is not in cell order
        bundle = prepared.bundles[cell.bundle]
        said = says(bundle, cell)
        if said is not None:
            number += 1
            job = cell_job(bundle, cell, texts.of(cell), prepared.plan.protocol.seed)
            yield made_row(_trace(bundle, cell, job, said), number)


def _trace(bundle, cell, job, said):
    text, intended, protected = said
    snapshot = bundle.member(cell.member).snapshot.decode()
    prompt = build_prompt(job.model_facing, job.tools, job.request, snapshot, job.envelope)
    raw = RawAnswer(mode="json", text=text, finish_reason="stop")
    answer = answer_text(raw)
    way = "unmediated" if cell.sample is Sample.TASK_VALUE else "allow"
    return made_trace(
        cell,
        stage_of(parse(raw)),
        door(way, act=DONE) if intended else NOT_REACHED,
        seen(intended=intended, protected=protected),
        attempt=f"attempt of {cell.key}",
        episode=job.episode,
        seed=job.seed,
        prompt=prompt.digest,
        answer=raw,
        answer_digest=sha256(answer.encode()),
        snapshot=job.snapshot,
        contract=job.contract,
        effect=job.effect,
    )
