"""Who may define what the sink of a real world enforces: its own user, and nobody else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from retire.bundle import FILES, load_bundle, read_files
from retire.cli.remote import packed
from sink.approvals import Approval, no_approvals, render_approvals
from tests.integration.commands import PANEL, REPOSITORY, SCRIPT, retire
from tests.integration.real_house import RealHouse, sink_command
from tests.integration.servers import make_token
from tests.integration.users import (
    SERVICE,
    SINK,
    as_user,
    own_folder,
    public_folder,
    python_for_everybody,
)
from tests.unit.homeassistant import small_house

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

DOOR = PANEL / "ACC_L01"
NOW = "2026-05-04T18:00:00Z"


def write_approvals(path: Path, *bundles: Path) -> None:
    """Approve bundles in a file that this user alone can write."""
    approvals = no_approvals()
    for bundle in bundles:
        loaded = load_bundle(bundle)
        target = loaded.contract.action.target
        approvals = approvals.with_approval(
            Approval(
                contract=loaded.digests.contract,
                bindings={target: target},
                approved_by="operator-1",
                approved_at=NOW,
            )
        )
    path.write_bytes(render_approvals(approvals))
    path.chmod(0o600)


def hostile_bundle(folder: Path) -> Path:
    """A sound bundle that unlocks the same door while the alarm is armed, too."""
    made = folder / "ACC_X01"
    shutil.copytree(DOOR, made)
    for name in FILES:
        path = made / name
        path.write_text(path.read_text().replace("ACC_L01", "ACC_X01"))
    contract = made / "contract.yaml"
    text = contract.read_text()
    assert 'one_of: ["disarmed"]' in text
    contract.write_text(text.replace('one_of: ["disarmed"]', 'one_of: ["disarmed", "armed_home"]'))
    return made


def state_of(path: Path) -> tuple[Any, ...]:
    found = path.stat()
    return (path.read_bytes(), found.st_ino, found.st_mtime_ns, found.st_mode, found.st_uid)


@contextmanager
def service_of(folder: Path, python: str, user: dict[str, Any]) -> Iterator[httpx.Client]:
    """A real ``retire serve``; gives a client with every scope."""
    database = f"sqlite:///{folder / 'service.sqlite'}"
    token = make_token(database, "read certify admin")
    for path in folder.glob("service.sqlite*"):
        if user:
            os.chown(path, user["user"], user["group"])
    code = "import sys; from retire.cli.main import run; sys.exit(run())"
    command = [python, "-c", code, "serve", "--data", str(folder / "data"), "--port", "0"]
    command += ["--bundles", str(PANEL), "--database", database]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "RETIRE_HOME": str(folder / "home"), "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        **user,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "listening on " in line
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=line.split()[-1], headers=headers, timeout=120) as client:
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def attack_by_calls(client: httpx.Client, hostile: Path) -> None:
    """Do everything with a bundle that the service offers; all of it is granted, in stub worlds."""
    archive = packed(read_files(hostile))
    registered = client.post("/bundles", files={"archive": ("b.tar.gz", archive)})
    assert registered.status_code == 201, registered.text
    fields = {"deployment": "plain", "placement": "B4", "repetitions": "1"}
    candidate = (hostile / "SKILL.md").read_bytes()
    for given in ({"bundle": (None, "ACC_X01")}, {"archive": ("b.tar.gz", archive)}):
        answer = client.post(
            "/certify",
            data=fields,
            files={**given, "candidate": ("SKILL.md", candidate)},  # type: ignore[dict-item]
            headers={"Prefer": "wait=20"},
        )
        assert answer.status_code in {200, 202}, answer.text
    for extra in ("approvals", "approve", "real_world", "contract", "world", "bindings"):
        answer = client.post(
            "/certify", json={"bundle": "ACC_X01", "reduce": True, **fields, extra: True}
        )
        assert answer.status_code == 422, answer.text
    for method in ("GET", "POST", "PUT", "DELETE"):
        for path in ("/approvals", "/approve", "/bundles/ACC_X01/approve"):
            assert client.request(method, path).status_code in {404, 405}
    assert "approv" not in client.get("/openapi.json").text.lower()


def crafted(message: dict[str, Any], approved: str, contract_text: str) -> list[dict[str, Any]]:
    """Messages that ask for the unapproved contract in every way there might be."""
    other = message["contract"]
    return [
        message,
        {**message, "approved": True, "approvals": [{"contract": other}]},
        {**message, "real_world": False, "mode": "stub", "world": "stub", "binding": "exact"},
        {**message, "contract_text": contract_text, "bundle": "ACC_L01"},
        {**message, "contract": approved},
        {**message, "contract": f"{approved} {other}"},
        {**message, "contract": [approved, other]},
        {**message, "op": "approve"},
        {**message, "op": "load", "bundles": ["/"]},
        {**message, "op": "reload", "approvals": "/dev/stdin"},
    ]


def denied_in_every_way(house: RealHouse, bundle: Path, attempt: str) -> None:
    message = house.freeze(bundle, attempt)
    approved = load_bundle(DOOR).digests.contract
    text = (bundle / "contract.yaml").read_text()
    for tried in crafted(message, approved, text):
        reply = house.propose(tried)
        assert reply.get("decision") == "deny" or "error" in reply, (tried, reply)
        assert reply.get("act") is None
    assert "not approved" in house.propose(message)["detail"]


@pytest.mark.parametrize("users", ["one user", "two users"])
def test_no_client_of_the_service_defines_what_a_real_sink_enforces(users: str) -> None:
    two = users == "two users"
    python = python_for_everybody() if two else sys.executable
    sink_user, service_user = (as_user(SINK), as_user(SERVICE)) if two else ({}, {})
    place = public_folder()
    own = own_folder(place, "sink", SINK if two else os.geteuid(), 0o755)
    served = own_folder(place, "service", SERVICE if two else os.geteuid(), 0o755)
    approvals = own / "approvals.yaml"
    write_approvals(approvals, DOOR)
    if two:
        os.chown(approvals, SINK, SINK)
    before = state_of(approvals)
    hostile = hostile_bundle(place)
    with service_of(served, python, service_user) as client:
        attack_by_calls(client, hostile)
        if two:
            nobody_else_writes(python, approvals)
    assert state_of(approvals) == before
    # Suppose that what was uploaded even came to stand among the sink's bundles.
    uploaded = place / "uploaded"
    shutil.copytree(served / "data" / "bundles" / "ACC_X01", uploaded)
    for path in (uploaded, *uploaded.iterdir()):
        path.chmod(0o755)
    assert load_bundle(uploaded).digests.contract == load_bundle(hostile).digests.contract
    with RealHouse(place, approvals, [DOOR, uploaded], python, sink_user) as house:
        denied_in_every_way(house, uploaded, "cd" * 16)
        assert house.journal() == []
    # The same episode under the approved contract is an effect: the attack would be seen.
    with RealHouse(place, approvals, [DOOR], python, sink_user) as house:
        reply = house.propose(house.freeze(DOOR))
        assert (reply["decision"], reply["act"]["status"]) == ("allow", "done")
        assert len(house.journal()) == 1
    assert state_of(approvals) == before


def nobody_else_writes(python: str, approvals: Path) -> None:
    """What the service's user can do with the file: nothing."""
    code = (
        "import os, sys; path = sys.argv[1]; failed = 0\n"
        "tries = [lambda: open(path, 'a'), lambda: os.rename(path, path + '.old'),\n"
        "  lambda: os.unlink(path), lambda: os.chmod(path, 0o666), lambda: open(path),\n"
        "  lambda: os.symlink('/dev/null', path + '.new'), lambda: os.link(path, '/tmp/linked')]\n"
        "for each in tries:\n"
        "    try: each()\n"
        "    except PermissionError: failed += 1\n"
        "print(failed, len(tries))"
    )
    done = subprocess.run(
        [python, "-c", code, str(approvals)],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
        **as_user(SERVICE),
    )
    failed, tried = done.stdout.split()
    assert failed == tried


def test_a_bundle_that_changes_under_a_running_sink_gains_nothing(tmp_path: Path) -> None:
    own = own_folder(tmp_path, "sink", os.geteuid())
    approvals = own / "approvals.yaml"
    bundle = tmp_path / "ACC_L01"
    shutil.copytree(DOOR, bundle)
    write_approvals(approvals, bundle)
    contract = bundle / "contract.yaml"
    with RealHouse(tmp_path, approvals, [bundle]) as house:
        message = house.freeze(bundle)
        contract.write_text(contract.read_text().replace('["disarmed"]', '["disarmed", "off"]'))
        changed = load_bundle(bundle).digests.contract
        reply = house.propose({**message, "contract": changed})
        assert "not approved" in reply["detail"]
        # What it approves later it learns at its next start only.
        write_approvals(approvals, bundle)
        assert "not approved" in house.propose({**message, "contract": changed})["detail"]
    write_approvals(approvals, DOOR)
    with RealHouse(tmp_path, approvals, [bundle]) as house:
        reply = house.propose(house.freeze(bundle, "ef" * 16))
        assert reply["decision"] == "deny"
        assert house.journal() == []


# -- starting --------------------------------------------------------------------------------------


def start(folder: Path, *more: str, python: str = sys.executable, **user: Any) -> tuple[int, str]:
    """Start a sink that must refuse; returns its exit code and words."""
    one, two = socket.socketpair()
    life, held = os.pipe()
    try:
        with one, two:
            done = subprocess.run(
                [*sink_command(python, folder, [DOOR], two.fileno(), life), *more],
                cwd=REPOSITORY,
                pass_fds=[two.fileno(), life],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                **user,
            )
    finally:
        os.close(life)
        os.close(held)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("missing", "no approvals file"),
        ("link", "symbolic link"),
        ("group", "others may write"),
        ("others", "others may write"),
        ("folder", "folder can be changed"),
        ("form", "approvals.yaml:1"),
        ("unbound", "without an entity for lock.front_door"),
    ],
)
def test_a_real_sink_does_not_start_on_such_a_file(tmp_path: Path, fault: str, said: str) -> None:
    own = own_folder(tmp_path, "sink", os.geteuid())
    path = own / "approvals.yaml"
    write_approvals(path, DOOR)
    match fault:
        case "missing":
            path.unlink()
        case "link":
            path.rename(own / "kept.yaml")
            path.symlink_to(own / "kept.yaml")
        case "group":
            path.chmod(0o660)
        case "others":
            path.chmod(0o602)
        case "folder":
            own.chmod(0o777)
        case "form":
            path.write_text("schema: retire.approvals/v9\n")
        case "unbound":
            path.write_text(path.read_text().replace("lock.front_door:", "lock.side_door:"))
    code, told = start(tmp_path, "--real-world", "--approvals", str(path))
    assert code == 2
    assert said in told
    assert not (own / "socket").exists()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("link", "symbolic link"),
        ("others", "others may write"),
        ("folder", "folder can be changed"),
        ("form", "house.json: schema"),
        ("none", "websocket"),
    ],
)
def test_a_real_sink_does_not_start_on_such_a_house_file(
    tmp_path: Path, fault: str, said: str
) -> None:
    """Without a fault it goes on to the house, which is not there."""
    own = own_folder(tmp_path, "sink", os.geteuid())
    write_approvals(own / "approvals.yaml", DOOR)
    token = own / "token"
    token.write_text("t0ken")
    token.chmod(0o600)
    (tmp_path / "house").mkdir(mode=0o700)
    path = tmp_path / "house" / "house.json"
    described = small_house.described()
    if fault == "form":
        described["schema"] = "retire.house/v9"
    path.write_text(json.dumps(described))
    path.chmod(0o602 if fault == "others" else 0o600)
    if fault == "folder":
        path.parent.chmod(0o777)
    if fault == "link":
        path.rename(path.with_name("kept.json"))
        path.symlink_to(path.with_name("kept.json"))
    code, told = start(
        tmp_path, "--real-world", "--approvals", str(own / "approvals.yaml"),
        "--home-assistant", "http://127.0.0.1:9", "--token-file", str(token), "--house", str(path),
    )  # fmt: skip
    assert code == 2
    assert said in told


@pytest.mark.parametrize("given", [("--real-world",), ("--approvals", "approvals.yaml")])
def test_real_world_and_approvals_go_together(tmp_path: Path, given: tuple[str, ...]) -> None:
    code, told = start(tmp_path, *given)
    assert code == 2
    assert "given together" in told


def test_a_real_sink_does_not_start_on_another_user_s_file() -> None:
    python = python_for_everybody()
    place = public_folder()
    own = own_folder(place, "sink", SINK)
    path = own / "approvals.yaml"
    write_approvals(path, DOOR)
    for owner in (0, SERVICE):
        os.chown(path, owner, owner)
        path.chmod(0o644)
        code, told = start(
            place, "--real-world", "--approvals", str(path), python=python, **as_user(SINK)
        )
        assert code == 2
        assert f"belongs to user {owner}" in told
    theirs = own_folder(place, "theirs", SERVICE, 0o755)
    moved = theirs / path.name
    path.rename(moved)
    os.chown(moved, SINK, SINK)
    code, told = start(
        place, "--real-world", "--approvals", str(moved), python=python, **as_user(SINK)
    )
    assert code == 2
    assert f"folder belongs to user {SERVICE}" in told


# -- retire approve --------------------------------------------------------------------------------


def approve(*arguments: str | Path, typed: str = "") -> tuple[int, str]:
    """Run the command with something typed; returns exit code and everything it said."""
    done = subprocess.run(
        [str(SCRIPT), "approve", *map(str, arguments)],
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, " ".join((done.stdout + " " + done.stderr).split())


def digits(bundle: Path) -> str:
    return load_bundle(bundle).digests.contract.removeprefix("sha256:")[:12] + "\n"


def test_what_is_approved_by_hand_is_what_a_real_sink_enforces(tmp_path: Path) -> None:
    own = own_folder(tmp_path, "sink", os.geteuid())
    path = own / "approvals.yaml"
    code, said = approve(DOOR, "--file", path, "--by", "operator-1", typed=digits(DOOR))
    assert code == 0, said
    contract = load_bundle(DOOR).digests.contract
    for told in (
        contract,
        "lock.unlock",
        "lock.front_door",
        "alarm_panel",
        "disarmed",
        "person.r1",
    ):
        assert told in said
    assert path.stat().st_mode & 0o777 == 0o600
    assert [item.name for item in own.iterdir()] == [path.name]
    with RealHouse(tmp_path, path, [DOOR]) as house:
        assert house.propose(house.freeze(DOOR))["decision"] == "allow"
    assert contract in approve("--list", "--file", path)[1]
    assert approve("--revoke", contract, "--file", path)[0] == 0
    assert "nothing is approved" in approve("--list", "--file", path)[1]
    with RealHouse(tmp_path, path, [DOOR]) as house:
        reply = house.propose(house.freeze(DOOR, "cd" * 16))
        assert "not approved" in reply["detail"]


@pytest.mark.parametrize("typed", ["", "y\n", "yes\n", "sha256:\n", "0" * 12 + "\n"])
def test_without_the_digits_nothing_is_written(tmp_path: Path, typed: str) -> None:
    path = own_folder(tmp_path, "own", os.geteuid()) / "approvals.yaml"
    code, said = approve(DOOR, "--file", path, "--by", "operator-1", typed=typed)
    assert code == 2
    assert "nothing was approved" in said
    assert list(path.parent.iterdir()) == []


def test_approvals_of_several_bundles_stand_side_by_side(tmp_path: Path) -> None:
    path = own_folder(tmp_path, "own", os.geteuid()) / "approvals.yaml"
    camera = PANEL / "PRV_L01"
    bound = ("--bind", "camera.living_room=camera.wall_unit")
    assert approve(DOOR, "--file", path, "--by", "a", typed=digits(DOOR))[0] == 0
    code, said = approve(camera, "--file", path, "--by", "b", *bound, typed=digits(camera))
    assert code == 0
    assert "camera.wall_unit" in said
    code, said = approve(DOOR, "--file", path, "--by", "c", typed=digits(DOOR))
    assert code == 0
    assert "by a" in said
    listed = approve("--list", "--file", path)[1]
    assert "by a" not in listed
    assert "by b" in listed
    assert "by c" in listed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((DOOR, "--by", "a"), "--file"),
        (("--file", "FILE"), "one of BUNDLE"),
        ((DOOR, "--list", "--file", "FILE"), "one of BUNDLE"),
        ((DOOR, "--file", "FILE"), "--by"),
        ((DOOR, "--file", "FILE", "--by", "a b@c"), "opaque id"),
        ((DOOR, "--file", "FILE", "--by", "a", "--bind", "lock.side_door=lock.x"), "binds nothing"),
        ((DOOR, "--file", "FILE", "--by", "a", "--bind", "lock.front_door=all"), "literal"),
        (("nowhere", "--file", "FILE", "--by", "a"), "cannot be read"),
        (("--list", "--file", "FILE"), "no approvals file"),
        (("--revoke", "sha256:00", "--file", "FILE"), "not approved"),
    ],
)
def test_bad_input_says_how_to_mend_it(
    tmp_path: Path, arguments: tuple[str | Path, ...], said: str
) -> None:
    path = own_folder(tmp_path, "own", os.geteuid()) / "approvals.yaml"
    given = [path if item == "FILE" else item for item in arguments]
    code, told = approve(*given)
    assert code == 2
    assert said in told
    assert list(path.parent.iterdir()) == []


def test_a_file_that_others_may_write_is_not_built_upon(tmp_path: Path) -> None:
    path = own_folder(tmp_path, "own", os.geteuid()) / "approvals.yaml"
    write_approvals(path)
    path.chmod(0o666)
    code, said = approve(DOOR, "--file", path, "--by", "a", typed=digits(DOOR))
    assert code == 2
    assert "others may write" in said


def test_text_of_a_bundle_cannot_move_the_screen(tmp_path: Path) -> None:
    """Whoever wrote the contract must not be able to hide a line from whoever approves it."""
    bundle = tmp_path / "ACC_L01"
    shutil.copytree(DOOR, bundle)
    path = bundle / "contract.yaml"
    hidden = json.dumps("disarmed\x1b[2K\x1b[1A\u202eoff\nlets nobody do anything")
    path.write_text(path.read_text().replace('["disarmed"]', f"[{hidden}]"))
    file = own_folder(tmp_path, "own", os.geteuid()) / "approvals.yaml"
    done = retire("approve", bundle, "--file", file, "--by", "a")
    assert done.code == 2
    assert not set(done.out) & {"\x1b", "\u202e"}
    assert not any(line.startswith("lets nobody") for line in done.out.splitlines())
