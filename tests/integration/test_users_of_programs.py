"""Programs under users of their own: what each can reach, and what the certificate says of it."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from retire.bundle import load_bundle
from tests.integration.commands import (
    PANEL,
    PROTOCOL,
    REPOSITORY,
    certify,
    retire,
    small_certificate,
    small_matrix,
)
from tests.integration.launchers import CAPABILITIES, USERS, Launcher, a_launcher, gone, modes_below
from tests.integration.users import (
    DIRECT,
    OBSERVER,
    SERVICE,
    SINK,
    WORLD,
    as_user,
    own_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

EVERYBODY_ELSE = 61099
FILES = ("contract.yaml", "effect.yaml", "tasks.yaml", "world.yaml")
DOOR = PANEL / "ACC_L01"
STATE = "ab" * 16
ATTEMPT = "cd" * 16


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    with a_launcher() as made:
        yield made


def predicate_of(run: Path) -> dict[str, Any]:
    return predicate_in(run / "certificates" / "plain-B4.json")


def predicate_in(certificate: Path) -> dict[str, Any]:
    envelope = json.loads(certificate.read_bytes())
    predicate: dict[str, Any] = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    return predicate


# -- the certificate ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certified(launcher: Launcher) -> Path:
    run = launcher.work / "certified"
    done = launcher.certify(run, "--launcher", launcher.socket)
    assert done.code == 4, done.said
    return run


def test_a_run_of_several_users_says_so_and_verifies(launcher: Launcher, certified: Path) -> None:
    predicate = predicate_of(certified)
    assert predicate["separation"] == "users"
    assert predicate["verdict"] == "pass"
    assert not any("as one user" in line for line in predicate["trust"])
    verified = launcher.retire("verify", certified / "certificates" / "plain-B4.json")
    assert verified.code == 4, verified.said
    assert "intact" in verified.said


def test_its_outcomes_are_those_of_one_user(certified: Path) -> None:
    alone, _ = small_certificate()
    one, several = predicate_of(alone), predicate_of(certified)
    assert one["separation"] == "same_user"
    assert one["outcome_root"] == several["outcome_root"]


def test_root_as_the_runner_claims_nothing(tmp_path: Path) -> None:
    assert certify(tmp_path / "run").code == 4
    assert predicate_of(tmp_path / "run")["separation"] == "same_user"


def test_a_separation_that_the_seal_does_not_bear_out_is_found(certified: Path) -> None:
    seal = certified / "seal.json"
    kept = seal.read_bytes()
    sealed = json.loads(kept)
    for users in ({}, {**sealed["passes"][0], "sink-exact": OBSERVER}):
        seal.write_text(json.dumps({**sealed, "passes": [*sealed["passes"], users]}))
        verified = retire("verify", certified / "certificates" / "plain-B4.json")
        assert verified.code == 1, verified.said
        assert "separation" in verified.said
    seal.write_text(json.dumps({**sealed, "passes": [{"runner": "61002"}]}))
    damaged = retire("verify", certified / "certificates" / "plain-B4.json")
    assert damaged.code == 1, damaged.said
    assert "seal.json" in damaged.said
    seal.write_bytes(kept)


def test_a_seal_without_users_means_one_user(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert certify(run).code == 4
    sealed = json.loads((run / "seal.json").read_bytes())
    del sealed["passes"]
    (run / "seal.json").write_text(json.dumps(sealed))
    verified = retire("verify", run / "certificates" / "plain-B4.json")
    assert verified.code == 4, verified.said


def test_a_run_goes_on_as_it_was_begun(launcher: Launcher, certified: Path) -> None:
    """Its sinks and observer have keys and records that the other way of starting has not."""
    (certified / "seal.json").rename(certified / "sealed.json")
    without = launcher.certify(certified)
    assert without.code == 2, without.said
    assert "--launcher" in without.said
    (certified / "sealed.json").rename(certified / "seal.json")

    begun = launcher.work / "begun-without"
    assert launcher.certify(begun).code == 4
    assert predicate_of(begun)["separation"] == "same_user"
    (begun / "seal.json").unlink()
    changed = launcher.certify(begun, "--launcher", launcher.socket)
    assert changed.code == 2, changed.said
    assert "begun without a launcher" in changed.said


def test_a_run_is_resumed_with_the_same_keys(launcher: Launcher, certified: Path) -> None:
    before = predicate_of(certified)
    (certified / "seal.json").unlink()
    again = launcher.certify(certified, "--launcher", launcher.socket)
    assert again.code == 4, again.said
    after = predicate_of(certified)
    assert after["separation"] == "users"
    assert after["outcome_root"] == before["outcome_root"]
    assert {name: head["key"] for name, head in after["heads"].items()} == {
        name: head["key"] for name, head in before["heads"].items()
    }
    verified = launcher.retire("verify", certified / "certificates" / "plain-B4.json")
    assert verified.code == 4, verified.said


def test_a_run_that_lost_a_program_is_resumed(launcher: Launcher) -> None:
    protocol = launcher.place / "small.yaml"
    protocol.write_text(PROTOCOL)
    protocol.chmod(0o644)
    run = launcher.work / "matrix"
    words = ["matrix", "--protocol", protocol, "--bundles", PANEL, "--out", run]
    words += ["--concurrency", "1", "--launcher", launcher.socket]
    with subprocess.Popen(
        launcher.command(*words),
        env=launcher.environment(),
        cwd=launcher.work,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **as_user(SERVICE),
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if re.search(r"running cells: [1-9]", line):
                break
        state = (run / "processes").readlink().name
        (observer,) = [pid for pid in running_as(OBSERVER) if state in arguments_of(pid)]
        os.kill(observer, 9)
        _, said = process.communicate()
        assert process.returncode == 3, said
    assert not (run / "seal.json").exists()
    again = launcher.retire(*words)
    assert again.code == 0, again.said
    undisturbed, _ = small_matrix()
    for path in (run / "certificates").iterdir():
        resumed, other = predicate_in(path), predicate_in(undisturbed / "certificates" / path.name)
        assert resumed["separation"] == "users"
        assert resumed["findings"] == []
        assert resumed["outcome_root"] == other["outcome_root"]


def running_as(user: int) -> list[int]:
    return [
        int(path.name)
        for path in Path("/proc").iterdir()
        if path.name.isdecimal() and path.stat().st_uid == user
    ]


def arguments_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


# -- what each user can reach ------------------------------------------------------------------

HOLDER = """
import json, socket, sys
end = socket.socket(socket.AF_UNIX)
end.connect(sys.argv[1])
end.sendall(sys.argv[2].encode() + b"\\n")
line = end.makefile().readline()
print(line, end="", flush=True)
if "sockets" in line:
    reset = json.dumps({"op": "reset", "id": 1, **json.loads(sys.argv[3])}).encode()
    with socket.socket(socket.AF_UNIX) as world:
        world.connect(json.loads(line)["sockets"]["world"])
        world.sendall(len(reset).to_bytes(4, "big") + reset)
        world.recv(65536)
    print("reset", flush=True)
    sys.stdin.read()
"""


def request_for(name: str, **other: Any) -> dict[str, Any]:
    files = {name: (DOOR / name).read_text() for name in FILES}
    return {
        "schema": "retire.launch/v1",
        "state": name,
        "settle_milliseconds": 2,
        "bundles": {"ACC_L01": files},
        **other,
    }


@contextmanager
def held(
    launcher: Launcher, request: dict[str, Any], user: int = SERVICE
) -> Iterator[tuple[dict[str, Any], subprocess.Popen[str]]]:
    """A connection that stays, from a process of the runner's user, with one frozen episode."""
    reset = {
        "attempt": ATTEMPT,
        "template": load_bundle(DOOR).digests.template,
        "task": "locked",
        "patch": None,
        "episode": "sha256:" + "1" * 64,
    }
    given = [str(launcher.socket), json.dumps(request), json.dumps(reset)]
    holder = subprocess.Popen(
        [launcher.python, "-c", HOLDER, *given],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **as_user(user),
    )
    try:
        assert holder.stdout is not None
        told = json.loads(holder.stdout.readline() or "{}")
        if "sockets" in told:
            assert holder.stdout.readline() == "reset\n"
        yield told, holder
    finally:
        holder.communicate()
    if "pids" in told:
        assert gone(list(told["pids"].values()))


@pytest.fixture(scope="module")
def running(launcher: Launcher) -> Iterator[dict[str, Any]]:
    with held(launcher, request_for(STATE)) as (told, _):
        assert "error" not in told, told
        yield told


TRIES = """
import json, os, sys
for what, path in json.loads(sys.argv[1]):
    try:
        if what == "list":
            os.listdir(path)
        elif what == "make":
            open(os.path.join(path, "made"), "xb")
        elif what == "kill":
            os.kill(int(path), 0)
        else:
            open(path, {"read": "rb", "write": "r+b"}[what])
        print("can", what, path)
    except PermissionError:
        pass
"""


def denied(launcher: Launcher, user: int, tries: list[tuple[str, str | Path]]) -> None:
    given = json.dumps([(what, str(path)) for what, path in tries])
    assert launcher.try_as(user, TRIES, given) == ""


def test_the_runner_can_neither_sign_nor_act(launcher: Launcher, running: dict[str, Any]) -> None:
    state = launcher.state / STATE
    programs = ("sink-canonical", "sink-exact", "direct", "observer")
    tries: list[tuple[str, str | Path]] = [("list", state / "world"), ("make", state)]
    tries += [("read", state / "world" / "world.sqlite"), ("make", state / "bundles")]
    for name in programs:
        tries += [("read", state / name / "key"), ("write", state / name / "key")]
        tries += [("write", state / name / "record.jsonl"), ("make", state / name)]
    for pid in running["pids"].values():
        # The act face is a descriptor of the programs; to copy it is to act.
        tries += [("list", f"/proc/{pid}/fd"), ("read", f"/proc/{pid}/mem"), ("kill", str(pid))]
    denied(launcher, SERVICE, tries)
    for name in programs:
        assert (state / name / "key").stat().st_mode & 0o777 == 0o600


ACTS = """
import json, socket, sys
for path in json.loads(sys.argv[1]):
    for message in json.loads(sys.argv[2]):
        with socket.socket(socket.AF_UNIX) as end:
            try:
                end.connect(path)
            except PermissionError:
                continue
            data = json.dumps({"id": 1, **message}).encode()
            end.sendall(len(data).to_bytes(4, "big") + data)
            size = int.from_bytes(end.recv(4), "big")
            print(json.dumps(["reached", path, json.loads(end.recv(size))]))
"""


def reached(
    launcher: Launcher, user: int, running: dict[str, Any], messages: list[dict[str, Any]]
) -> list[Any]:
    paths = json.dumps(list(running["sockets"].values()))
    printed = launcher.try_as(user, ACTS, paths, json.dumps(messages))
    return [json.loads(line)[1:] for line in printed.splitlines()]


def test_no_socket_acts_for_the_runner(launcher: Launcher, running: dict[str, Any]) -> None:
    act = {"attempt": ATTEMPT, "service": "lock.unlock", "target": "lock.front_door"}
    messages = [{"op": "act", **act, "parameters": {}}, {"op": "frozen", "attempt": ATTEMPT}]
    answers = reached(launcher, SERVICE, running, messages)
    assert len(answers) == len(running["sockets"]) * len(messages)
    assert all("error" in answer for _, answer in answers), answers


@pytest.mark.parametrize("user", [OBSERVER, WORLD, DIRECT, SINK, EVERYBODY_ELSE])
def test_nobody_but_the_runner_can_propose_observe_or_reset(
    launcher: Launcher, running: dict[str, Any], user: int
) -> None:
    assert reached(launcher, SERVICE, running, [{"op": "hello"}])
    # A user reaches the sockets of its own program and no other.
    others = {name: path for name, path in running["sockets"].items() if owner(name) != user}
    assert len(others) >= 3
    assert reached(launcher, user, {"sockets": others}, [{"op": "hello"}]) == []


def owner(program: str) -> int:
    users = dict(part.split("=") for part in USERS.split(","))
    return int(users[program.partition("-")[0]])


def test_programs_cannot_read_each_other(launcher: Launcher, running: dict[str, Any]) -> None:
    del running
    state = launcher.state / STATE
    for user in (OBSERVER, WORLD, DIRECT, SINK, EVERYBODY_ELSE):
        tries: list[tuple[str, str | Path]] = [("make", state)]
        for name in ("world", "sink-canonical", "direct", "observer"):
            if owner(name) == user:
                continue
            tries += [("make", state / name)]
            if name != "world":
                tries += [("list", state / name), ("read", state / name / "key")]
                tries += [("read", state / name / "record.jsonl")]
            elif user != OBSERVER:
                tries += [("list", state / name), ("read", state / name / "world.sqlite")]
        denied(launcher, user, tries)


# -- ground truth ------------------------------------------------------------------------------

WRITES = """
import os, sys
from pathlib import Path
os.umask(0o007)
from counterfactuals.devices import Change
from hardware.world.store import WorldStore
store = WorldStore(Path(sys.argv[1]))
body = {"target": "lock.front_door", "kind": "change", "variable": "state",
        "before": "locked", "after": "unlocked"}
print("open", flush=True)
for line in sys.stdin:
    for number in range(int(line)):
        store.add_journal("ab" * 16, [Change(body)])
    print("written", flush=True)
"""
READS = """
import sys
from pathlib import Path
from hardware.sense.stub import StubWorldSensor
sensor = StubWorldSensor(Path(sys.argv[1]))
for line in sys.stdin:
    seq, entries = 0, 0
    while page := sensor.journal_after(seq, 5000):
        seq, entries = page[-1].seq, entries + len(page)
    print(entries, flush=True)
"""
CHANGES = """
import sqlite3, sys
for way in ("?mode=rw", "?mode=rwc", ""):
    for statement in ("DELETE FROM journal", "PRAGMA wal_checkpoint(TRUNCATE)",
                      "PRAGMA journal_mode=DELETE", "INSERT INTO snapshots VALUES ('a', 'b')"):
        try:
            with sqlite3.connect("file:" + sys.argv[1] + way, uri=True) as connection:
                print("did", statement, connection.execute(statement).fetchall())
        except sqlite3.Error:
            pass
"""


class Talker:
    """A process of a user that answers a line with a line."""

    def __init__(self, launcher: Launcher, user: int, code: str, path: Path) -> None:
        self.process = subprocess.Popen(
            [launcher.python, "-c", code, str(path)],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **as_user(user),
        )

    def say(self, line: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.hear()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_the_observer_reads_everything_that_another_user_writes(launcher: Launcher) -> None:
    """Also behind a checkpoint of the log, and after the world was killed and came back."""
    folder = launcher.place / "ground"
    folder.mkdir()
    os.chown(folder, WORLD, OBSERVER)
    folder.chmod(0o2750)
    path = folder / "world.sqlite"
    world = Talker(launcher, WORLD, WRITES, path)
    assert world.hear() == "open"
    observer = Talker(launcher, OBSERVER, READS, path)
    written = 0
    try:
        for count in (1, 1, 1500, 1, 3000, 2):
            assert world.say(str(count)) == "written"
            written += count
            assert observer.say("") == str(written)
        world.kill()
        assert observer.say("") == str(written)
        world = Talker(launcher, WORLD, WRITES, path)
        assert world.hear() == "open"
        assert world.say("7") == "written"
        assert observer.say("") == str(written + 7)
        names = ("world.sqlite", "world.sqlite-wal")
        before = {name: (folder / name).read_bytes() for name in names}
        assert launcher.try_as(OBSERVER, CHANGES, path).count("did") == 0
        assert {name: (folder / name).read_bytes() for name in before} == before
        denied(
            launcher,
            OBSERVER,
            [("make", folder), *(("write", file) for file in folder.iterdir())],
        )
        assert observer.say("") == str(written + 7)
    finally:
        world.kill()
        observer.kill()


# -- the connection ----------------------------------------------------------------------------


def test_the_end_of_the_connection_ends_all_programs(launcher: Launcher) -> None:
    with held(launcher, request_for("1" * 32)) as (told, holder):
        pids = list(told["pids"].values())
        folders = {Path(path).parents[1] for path in told["sockets"].values()}
        assert not any(Path(f"/proc/{pid}").stat().st_uid in {0, SERVICE} for pid in pids)
        holder.kill()
        assert gone(pids)
    assert not any(folder.exists() for folder in folders)


@pytest.mark.parametrize("name", ["world", "observer"])
def test_the_end_of_a_program_ends_the_others(launcher: Launcher, name: str) -> None:
    with held(launcher, request_for("2" * 32)) as (told, _):
        os.kill(told["pids"][name], 9)
        assert gone(list(told["pids"].values()))


def test_a_connection_of_another_user_is_refused(launcher: Launcher) -> None:
    refused = launcher.certify(launcher.place / "of-root", "--launcher", launcher.socket, user=0)
    assert refused.code == 3, refused.said
    assert "user 0 may not start programs here" in refused.said
    with_others = launcher.try_as(
        OBSERVER,
        "import socket,sys\nprint(socket.socket(socket.AF_UNIX).connect_ex(sys.argv[1]))",
        launcher.socket,
    )
    assert with_others == "13"


@pytest.mark.parametrize(
    "change",
    [
        {"state": "../" * 10 + "a"},
        {"state": "3" * 31},
        {"bundles": {}},
        {"bundles": {"..": dict.fromkeys(FILES, "")}},
        {"bundles": {"A/B": dict.fromkeys(FILES, "")}},
        {"bundles": {"A": {"contract.yaml": ""}}},
        {"bundles": {"A": {**dict.fromkeys(FILES[:3], ""), "../../x": ""}}},
        {"bundles": {"A": "/etc"}},
        {"settle_milliseconds": "2"},
        {"users": USERS},
        {"schema": "retire.launch/v2"},
    ],
)
def test_a_request_of_another_form_starts_nothing(
    launcher: Launcher, change: dict[str, Any]
) -> None:
    before = modes_below(launcher.state)
    with held(launcher, request_for("3" * 32, **change)) as (told, _):
        assert "no request" in told["error"]
    assert modes_below(launcher.state) == before


def test_a_state_keeps_its_bundles_and_its_users(launcher: Launcher) -> None:
    with held(launcher, request_for("4" * 32)) as (told, _):
        assert "sockets" in told
    files = {name: (PANEL / "PRV_L01" / name).read_text() for name in FILES}
    with held(launcher, request_for("4" * 32, bundles={"ACC_L01": files})) as (told, _):
        assert "begun with other bundles" in told["error"]
    os.chown(launcher.state / ("4" * 32) / "observer", SINK, -1)
    with held(launcher, request_for("4" * 32)) as (told, _):
        assert "begun with other users" in told["error"]


def test_a_missing_launcher_is_told(launcher: Launcher) -> None:
    done = launcher.certify(launcher.work / "x", "--launcher", launcher.work / "nowhere")
    assert done.code == 3, done.said
    assert "the launcher cannot be reached" in done.said


# -- how it is started -------------------------------------------------------------------------


def started(launcher: Launcher, *words: str | Path, user: int = 0) -> str:
    """What the launcher says when it ends at once."""
    done = subprocess.run(
        [launcher.python, "-m", *map(str, words)],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        **(as_user(user) if user else {}),
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"users": "world=1"}, "give world=NAME"),
        ({"users": USERS.replace(str(DIRECT), str(SINK))}, "the same user"),
        ({"users": USERS.replace(str(DIRECT), "0")}, "no program may be root"),
        ({"users": USERS.replace(str(DIRECT), "nobody-here")}, "no user 'nobody-here'"),
        ({"group": str(SINK)}, "must be none of them"),
        ({"group": "nobody-here"}, "no group 'nobody-here'"),
        ({"runner": str(SINK)}, "the runner must be neither"),
        ({"runner": "0"}, "the runner must be neither"),
    ],
)
def test_users_that_would_not_be_apart_are_refused(
    launcher: Launcher, other: dict[str, str], words: str
) -> None:
    options = launcher.options(**other)
    assert words in started(launcher, "hardware.launch_service", *options)


def test_a_place_that_others_can_change_is_refused(launcher: Launcher) -> None:
    options = ["--bundles", DOOR, "--users", USERS, "--group", str(SERVICE)]
    inside = launcher.work / "state"
    said = started(launcher, "hardware.launch", "--state", inside, *options)
    assert "can be changed by others than root" in said
    link = launcher.place / "link"
    link.symlink_to(launcher.state)
    said = started(launcher, "hardware.launch", "--state", link / "state", *options)
    assert "is not a folder" in said


def test_only_root_starts_programs_as_others(launcher: Launcher) -> None:
    options = ["--state", launcher.work / "s", "--bundles", DOOR, "--group", str(SERVICE)]
    said = started(launcher, "hardware.launch", *options, "--users", USERS, user=SERVICE)
    assert "--users needs root" in said


def test_root_starts_the_programs_without_a_service(launcher: Launcher) -> None:
    options = ["--state", str(launcher.state / "own"), "--bundles", str(DOOR)]
    options += ["--users", USERS, "--group", str(SERVICE)]
    process = subprocess.Popen(
        [launcher.python, "-m", "hardware.launch", *options],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    for name, pid in told["pids"].items():
        assert Path(f"/proc/{pid}").stat().st_uid == owner(name)
    process.communicate()
    assert gone(list(told["pids"].values()))


# -- the service -------------------------------------------------------------------------------


@contextmanager
def service(launcher: Launcher) -> Iterator[httpx.Client]:
    """A real ``retire serve`` of the runner's user that asks the launcher."""
    folder = own_folder(launcher.place, "service", SERVICE)
    token = launcher.retire("token", "new", "--scope", "admin", "--data", folder / "data").out
    options = ["--data", str(folder / "data"), "--port", "0", "--bundles", str(PANEL)]
    process = subprocess.Popen(
        launcher.command("serve", *options, "--launcher", launcher.socket),
        cwd=folder,
        env=launcher.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        **as_user(SERVICE),
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "listening on " in line
        headers = {"Authorization": f"Bearer {token.split()[1]}"}
        with httpx.Client(base_url=line.split()[-1], headers=headers, timeout=120) as client:
            yield client
    finally:
        process.terminate()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()


def test_the_service_certifies_through_the_launcher_and_purges_there(launcher: Launcher) -> None:
    before = set(launcher.state.iterdir())
    with service(launcher) as client:
        asked = {"bundle": "PRV_L01", "reduce": True, "deployment": "plain", "placement": "B4"}
        reply = client.post(
            "/certify", json={**asked, "repetitions": 1}, headers={"Prefer": "wait=60"}
        )
        assert reply.status_code == 200, reply.text
        run = reply.json()
        assert run["state"] == "complete", run
        envelope = client.get(f"/certificates/{run['certificate']}").json()
        predicate = json.loads(base64.b64decode(envelope["payload"]))["predicate"]
        assert predicate["separation"] == "users"
        verified = client.post("/verify", json=envelope).json()
        assert verified["intact"], verified
        (state,) = set(launcher.state.iterdir()) - before
        data = launcher.place / "service" / "data"
        # Nobody but the launcher can remove it: the command has to be told where that is.
        unable = launcher.retire("purge", run["id"], "--data", data)
        assert unable.code == 3, unable.said
        assert "--launcher" in unable.said
        assert (state / "observer" / "record.jsonl").exists()
        assert client.post(f"/runs/{run['id']}/purge").status_code == 200
    assert set(launcher.state.iterdir()) == before
    assert not (data / "runs" / run["id"]).exists()


def test_a_state_in_use_is_not_removed(launcher: Launcher) -> None:
    with held(launcher, request_for("5" * 32)) as (told, _):
        assert "sockets" in told
        removal = {"schema": "retire.launch-removal/v1", "state": "5" * 32}
        with held(launcher, removal) as (refused, _):
            assert "still holds this state" in refused["error"]
    assert (launcher.state / ("5" * 32) / "world" / "world.sqlite").exists()


def test_the_units_name_what_was_tried_here() -> None:
    units = REPOSITORY / "deploy" / "systemd"
    launch = (units / "retire-launch@.service").read_text()
    taken = (units / "retire-launch.socket").read_text()
    assert found_in(launch, r"^CapabilityBoundingSet=(.*)$")[0].lower().split() == [
        f"cap_{name}" for name in CAPABILITIES
    ]
    users = r"(?:world|sink|direct|observer|group|runner)[= ](retire\S*?)[, \n]"
    known = found_in((units / "retire.sysusers.conf").read_text(), r"^u (\S+) ")
    assert set(found_in(launch, users)) == set(known)
    (path,) = found_in(taken, r"^ListenStream=(.*)$")
    assert f"--launcher {path}\n" in (units / "retire-service.service").read_text()


def found_in(text: str, pattern: str) -> list[str]:
    return re.findall(pattern, text, re.MULTILINE)
