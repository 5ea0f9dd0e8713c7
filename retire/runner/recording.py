"""The cassette of a run: written from what its database holds of every server's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retire.deployments.cassette import Recorded, pack
from retire.domain.cell import Sample
from retire.domain.evidence import Evidence
from retire.runner.folder import write_whole
from retire.runner.reducing import DEVELOPMENT
from sink.proposal import RawAnswer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from retire.deployments import Deployment
    from retire.runner.folder import RunFolder
    from retire.store import RunStore, ServedAnswer


def write_cassette(
    folder: RunFolder, store: RunStore, deployments: Mapping[str, Deployment]
) -> None:
    """Write the cassette of a run's live deployments; none is written where there are none.

    An answer is in the database before anything follows from it, so a run that was cut, and
    however often, leaves a whole recording.
    """
    live = {name: item.identity for name, item in deployments.items() if is_live(item)}
    if live:
        recorded = _recorded(store.served(), live)
        write_whole(folder.cassette, pack(live, recorded))


def is_live(deployment: Deployment) -> bool:
    """Return whether a deployment's answers are worth recording."""
    return deployment.evidence is Evidence.LIVE_MODEL


def _recorded(answers: Iterator[ServedAnswer], live: Mapping[str, object]) -> Iterator[Recorded]:
    for item in answers:
        sample, deployment, *rest = item.cell.split("/")
        if deployment in live:
            yield Recorded(
                deployment=deployment,
                request=item.request,
                sample=sample if sample == DEVELOPMENT else str(Sample(sample)),
                repetition=1 if sample == DEVELOPMENT else int(rest[-1]),
                place=item.cell,
                answer=RawAnswer.model_validate_json(item.answer),
                served=item.served,
            )
