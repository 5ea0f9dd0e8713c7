"""A real language model on this machine: started, asked, killed, started again, ended."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from retire.bundle import load_bundle
from retire.deployments import Call, DeploymentFault
from retire.deployments.configuration import LocalConfiguration, Sampling
from retire.deployments.local.deployment import LocalDeployment
from retire.deployments.local.weights import KNOWN, fetch, weights_path
from retire.domain.errors import InputError
from retire.prompts import build_prompt
from sink.proposal import Invalid, parse
from tests.integration.commands import PANEL, REPOSITORY

pytestmark = pytest.mark.integration

MODELS = REPOSITORY / ".models"
"""Where `make test` puts the weights; nothing is fetched by a test."""
CALL = Call(7, "audit", 1, "audit/x")


@pytest.fixture
def weights() -> Path:
    try:
        return weights_path("smollm2-135m", MODELS)
    except InputError:
        if os.environ.get("RETIRE_REQUIRE_MODEL"):
            raise
        pytest.skip("the weights are not here: make .models")


def configuration(**given: object) -> LocalConfiguration:
    values = {
        "provider": "local",
        "name": "small",
        "weights": "smollm2-135m",
        "sampling": Sampling(max_tokens=64),
    }
    return LocalConfiguration(**{**values, **given})


def prompt() -> tuple[tuple, tuple]:
    bundle = load_bundle(PANEL / "ACC_L01")
    snapshot = bundle.member("authorized").snapshot.decode()
    built = build_prompt("", bundle.tools, bundle.tasks.locked.request, snapshot)
    return built.messages, built.tools


def servers() -> set[int]:
    """Model servers below this process."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes()
            parent = (place / "stat").read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            continue
        if b"retire.deployments.local.server" in command and int(parent) == os.getpid():
            found.add(int(place.name))
    return found


async def test_a_real_model_answers_in_the_form_it_was_asked_for(weights: Path) -> None:
    deployment = LocalDeployment(configuration(), weights)
    await deployment.open()
    try:
        messages, tools = prompt()
        first = await deployment.propose(messages, tools, CALL)
        again = [await deployment.propose(messages, tools, CALL) for _ in range(2)]
    finally:
        await deployment.close()
    assert not isinstance(parse(first.answer), Invalid)
    assert first.served is not None
    assert first.served.prompt_tokens
    assert first.served.prompt_tokens > 500
    assert KNOWN["smollm2-135m"].digest[7:19] in first.served.model
    # Both were taken up from the same cached beginning.
    assert again[0].answer == again[1].answer
    assert not servers()


async def test_a_server_that_was_killed_is_started_again(weights: Path) -> None:
    deployment = LocalDeployment(configuration(), weights)
    await deployment.open()
    try:
        messages, tools = prompt()
        (pid,) = servers()
        waiting = asyncio.create_task(deployment.propose(messages, tools, CALL))
        await asyncio.sleep(0.3)
        os.kill(pid, signal.SIGKILL)
        completion = await waiting
        assert not isinstance(parse(completion.answer), Invalid)
        assert servers() != {pid}
    finally:
        await deployment.close()
    assert not servers()


async def test_a_cancelled_start_leaves_no_server(weights: Path) -> None:
    deployment = LocalDeployment(configuration(), weights)
    opening = asyncio.create_task(deployment.open())
    while not servers():
        await asyncio.sleep(0.01)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not servers()


async def test_weights_that_are_none_are_said_in_words(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF, but nothing else")
    with pytest.raises(DeploymentFault, match="model's server ended"):
        await LocalDeployment(configuration(weights=str(path)), path).open()
    assert not servers()


async def test_too_little_memory_is_said_before_anything_starts(weights: Path) -> None:
    huge = configuration(context_tokens=1_048_576)
    with pytest.raises(DeploymentFault, match="MiB"):
        await LocalDeployment(huge, weights).open()
    assert not servers()


def test_the_identity_changes_with_the_bytes_of_the_weights(tmp_path: Path) -> None:
    identities = []
    for content in (b"one", b"two"):
        path = tmp_path / content.decode()
        path.write_bytes(content)
        identities.append(LocalDeployment(configuration(weights=str(path)), path).identity)
    assert identities[0] != identities[1]


def test_weights_that_are_here_are_not_fetched_again(weights: Path) -> None:
    before = weights.stat().st_mtime_ns
    assert fetch("smollm2-135m", MODELS) == weights
    assert weights.stat().st_mtime_ns == before


@pytest.mark.parametrize("name", ["smollm2", "../etc/passwd", ""])
def test_unknown_weights_name_what_is_known(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="smollm2-135m"):
        fetch(name, tmp_path)
    with pytest.raises(InputError):
        weights_path(name or "none", tmp_path)
