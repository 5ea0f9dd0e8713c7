"""One program's access to Home Assistant: the address, its own token, the house."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hardware.homeassistant.house import House, HouseError, load_house

if TYPE_CHECKING:
    import argparse


@dataclass(frozen=True, slots=True)
class Access:
    """What a program needs to reach the house; the token is never shown."""

    url: str
    token: str = field(repr=False)
    house: House


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose Home Assistant as the world."""
    parser.add_argument("--home-assistant", help="address; without it the stub world is used")
    parser.add_argument("--token-file", type=Path, help="this program's own long-lived token")
    parser.add_argument("--house", type=Path, help="house file: devices, services, reports")


def access_of(arguments: argparse.Namespace) -> Access:
    """Read what the options name.

    Raises:
        HouseError: An option is missing, or a file cannot be used; others may read the token.
    """
    if arguments.token_file is None or arguments.house is None:
        raise HouseError("--home-assistant needs --token-file and --house")
    return Access(
        arguments.home_assistant, read_token(arguments.token_file), load_house(arguments.house)
    )


def read_token(path: Path) -> str:
    """Read a token from a file that nobody else may read.

    Raises:
        HouseError: It cannot be read, is open to others, or holds something else.
    """
    try:
        return secret_of(path)
    except ValueError as error:
        raise HouseError(f"{path}: {error}; it takes one token and mode 0600") from error


def secret_of(path: Path) -> str:
    """Return the one secret in a file.

    Raises:
        ValueError: What is wrong with the file, never with a word of it.
    """
    try:
        mode = path.stat().st_mode
        secret = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError("the token file cannot be read") from error
    if stat.S_IMODE(mode) & 0o077:
        raise ValueError(f"others can read the token file (mode {stat.S_IMODE(mode):04o})")
    if not secret or not secret.isprintable() or " " in secret:
        raise ValueError("the token file holds no token")
    return secret
