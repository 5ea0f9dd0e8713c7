"""From an operator's file and recordings to the catalog of deployments; reads files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from retire.bundle.loading import read_file
from retire.deployments.cassette import unpack
from retire.deployments.configuration import LocalConfiguration, load_deployments
from retire.deployments.local.deployment import LocalDeployment
from retire.deployments.local.weights import weights_path
from retire.deployments.openai_endpoint import OpenAIDeployment
from retire.deployments.registry import EMBEDDED
from retire.domain.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from retire.deployments.cassette import Cassette
    from retire.deployments.configuration import OpenAIConfiguration
    from retire.deployments.port import Deployment
    from retire.deployments.registry import Catalog

REPLAY = "replay:"
"""What a deployment's name begins with when the rest is the path of a cassette."""


def catalog_of(
    file: Path | None, models: Path, secret: Callable[[str], str | None] | None
) -> Catalog:
    """Return the embedded deployments and those of a file.

    Args:
        file: A ``deployments.yaml``; None for the embedded ones alone.
        models: The folder of fetched weights.
        secret: Returns the value of an environment variable, or None. Without it no key is
            looked up: what is known of a deployment can be read, and it cannot be asked.

    Raises:
        InputError: The file cannot be read or used.
    """
    if file is None:
        return EMBEDDED
    configured = load_deployments(read_file(file), str(file)).by_name
    return EMBEDDED.extended(
        {name: partial(_configured, item, models, secret) for name, item in configured.items()},
        configured,
    )


def _configured(
    item: OpenAIConfiguration | LocalConfiguration,
    models: Path,
    secret: Callable[[str], str | None] | None,
) -> Deployment:
    if isinstance(item, LocalConfiguration):
        return LocalDeployment(item, weights_path(item.weights, models))
    if item.key_variable is None or secret is None:
        return OpenAIDeployment(item)
    key = secret(item.key_variable)
    if not key:
        raise InputError(
            f"the environment variable {item.key_variable} is not set",
            where=f"deployment {item.name}",
            mend="Set it to the endpoint's key, or remove key_variable",
        )
    return OpenAIDeployment(item, key)


def read_cassette(path: Path) -> Cassette:
    """Read a recording.

    Raises:
        InputError: It cannot be read, or is no cassette.
    """
    return unpack(read_file(path), str(path))
