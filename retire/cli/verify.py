"""``retire verify`` and ``retire keys``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retire.cli.console import say
from retire.cli.deploying import DeploymentsOption, chosen_catalog
from retire.cli.inputs import many
from retire.domain.errors import InputError, RetireError
from retire.runner.folder import read_bytes
from retire.runner.purging import refuse_purged
from retire.settings import read_settings

if TYPE_CHECKING:
    from retire.verify.check import Verification


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(verify)
    app.command()(keys)


def verify(
    path: Annotated[
        Path, typer.Argument(help="A certificate in a run's folder, or the run's folder.")
    ],
    trust: Annotated[Path | None, typer.Option(help="File of trusted public keys.")] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Bundles as they stand now: says whether a certificate is stale."),
    ] = None,
    accept_evidence: Annotated[list[str] | None, typer.Option(help="As for certify.")] = None,
    deployments: DeploymentsOption = None,
) -> None:
    """Check certificates: signatures, digests, records, prompts, roots, gates."""
    from retire.certify.envelope import open_certificate, read_envelope
    from retire.cli.certify import exit_code
    from retire.store.keys import read_trusted
    from retire.wiring import RunVerifier, run_of

    refuse_purged(path)
    certificates = sorted((path / "certificates").glob("*.json")) if path.is_dir() else [path]
    if not certificates:
        raise InputError("no certificate here", where=str(path), mend="Name a run's folder")
    trusted = read_trusted(trust) if trust is not None else None
    catalog = chosen_catalog(deployments, read_settings(), asks=False)
    root = path if path.is_dir() else run_of(path)
    if not path.is_dir():
        # Before its run is looked for: a file that is none lies in none.
        open_certificate(read_envelope(read_bytes(path), str(path)), str(path))
    run = RunVerifier(root, catalog, trusted, against or [])
    worst = 0
    for certificate in certificates:
        try:
            result = run.verify_file(certificate)
        except RetireError as error:
            if len(certificates) == 1:
                raise
            say(f"{certificate}: BROKEN; {error}")
            worst = _worse(worst, error.exit_code)
            continue
        _explain(certificate, result)
        code = 1
        if result.intact and not result.stale and _signers_accepted(result, trusted):
            code = exit_code(result.verdict, result.evidence, accept_evidence)
        worst = _worse(worst, code)
    raise typer.Exit(worst)


def _signers_accepted(result: Verification, trusted: tuple[str, ...] | None) -> bool:
    return trusted is None or not result.unknown_signers


def _worse(left: int, right: int) -> int:
    order = (0, 4, 3, 2, 1)  # from what may ship to what is wrong
    return max(left, right, key=order.index)


def _explain(path: Path, result: Verification) -> None:
    if not result.intact:
        state = f"BROKEN, {many(len(result.problems), 'problem')}"
    elif result.stale:
        state = "intact, but stale"
    elif result.unknown_signers:
        state = "intact, signers unknown"
    else:
        state = "intact, signers trusted"
    say(f"{path}: {state}; verdict {result.verdict}")
    for problem in result.problems[:20]:
        say(f"  problem: {problem}")
    if len(result.problems) > 20:
        say(f"  and {len(result.problems) - 20} more")
    for reason in result.stale:
        say(f"  stale: {reason}")
    for signer in result.unknown_signers:
        say(f"  unknown: {signer}")
    if result.intact:
        say("  checked: " + "; ".join(result.checked))


def keys(
    run: Annotated[
        Path | None, typer.Option(help="Also print the keys of a run's sink and observer.")
    ] = None,
) -> None:
    """Print public keys, in the form that --trust reads."""
    from retire.store.keys import certifier_key, public_hex
    from retire.verify.run import SealedRun

    settings = read_settings()
    say("# certifier of this machine")
    say(public_hex(certifier_key(settings.home)))
    if run is None:
        return
    for name, head in SealedRun(run).records.heads.items():
        say(f"# {name}")
        say(head.key)
