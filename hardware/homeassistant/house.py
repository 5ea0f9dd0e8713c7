"""The house file: which entity is which device of a bundle, and how it is moved and read.

It is data for three programs that share nothing else: the sink's actuator (services), the
observer's sensor (reports and events) and the world (records). Nothing in it comes from a model
or from a message.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator

from hardware.homeassistant.reading import Usable, is_entity, text_of, usable
from hardware.strict import Strict, fault_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hardware.homeassistant.reading import EntityState

_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"
_TARGETS = frozenset({"entity_id", "device_id", "area_id", "floor_id", "label_id"})
"""What says where a call goes; no parameter may."""
_Model = TypeVar("_Model", bound=BaseModel)
Number = Annotated[str, Field(pattern=_DECIMAL)]


class HouseError(Exception):
    """A house or instance file cannot be used; the message names the file and the place."""


class Parameter(Strict):
    """How one parameter of a service is sent, and what it may be.

    ``key`` is its name in Home Assistant. A number's bounds, step and unit are decimal text; a
    value outside of them is refused here, because Home Assistant may accept it.
    """

    key: str
    kind: Literal["number", "integer", "text", "boolean"]
    required: bool = True
    minimum: Number | None = None
    maximum: Number | None = None
    step: Number | None = None
    unit: str | None = None
    choices: tuple[str, ...] = Field(default=(), strict=False)


class HouseService(Strict):
    """A service of a bundle as Home Assistant's service of the entity's own domain."""

    service: str
    parameters: dict[str, Parameter] = Field(default_factory=dict)


class Variable(Strict):
    """Where a variable of a device is read.

    ``attribute`` of the controlling entity shows it (None: its state does), in Home Assistant's
    ``words`` where these differ from the device's; ``report`` is the entity in which the device
    itself reports it, whoever moved it.
    """

    attribute: str | None = None
    words: dict[str, str] = Field(default_factory=dict)
    report: str

    def shown(self, controlling: EntityState) -> str:
        """Return what the controlling entity shows, in the device's words."""
        if self.attribute is None:
            found = text_of(controlling.state)
        else:
            found = text_of(controlling.attributes.get(self.attribute))
        return self.words.get(found, found)


class HouseDevice(Strict):
    """A device of a bundle."""

    entity: str
    services: dict[str, HouseService]
    variables: dict[str, Variable] = Field(default_factory=dict)
    link: str | None = None
    """An entity that reports regularly, for a device that has no variables."""
    events: str | None = None
    """The event entity in which the device tells what happened."""

    def reports(self) -> tuple[str, ...]:
        """Return the entities in which the device reports regularly."""
        found = tuple(variable.report for variable in self.variables.values())
        return found or ((self.link,) if self.link else ())

    def entities(self) -> tuple[str, ...]:
        """Return every entity of the device."""
        return (self.entity, *self.reports(), *((self.events,) if self.events else ()))

    def fault_in(self, states: Mapping[str, EntityState]) -> str:
        """Return why states do not say how the device stands; empty where they do.

        A report or the controlling entity cannot be read, or they say different things.
        """
        for entity in self.reports():
            if (found := usable(states.get(entity))) is not Usable.YES:
                return f"{entity} is {found}"
        controlling = states.get(self.entity)
        if controlling is None or usable(controlling) not in {Usable.YES, Usable.UNKNOWN}:
            return f"{self.entity} is {usable(controlling)}"
        for name, variable in self.variables.items():
            shown, reported = variable.shown(controlling), text_of(states[variable.report].state)
            if shown != reported:
                return f"{name} is shown as {shown} and reported as {reported}"
        return ""


class House(Strict):
    """One Home Assistant instance as a house of bundles."""

    schema_: Literal["retire.house/v1"] = Field(alias="schema")
    bench: bool
    """Whether nothing real is behind it; only then may anything act without the sink."""
    temperature_unit: str
    """The unit that this instance must be configured with, as it writes it."""
    episode: str
    report_seconds: float = Field(gt=0)
    """Every device that is watched reports at least this often; longer is silence."""
    devices: dict[str, HouseDevice]
    bundle_devices: dict[str, tuple[str, ...]] = Field(strict=False)
    """The devices of each bundle, by bundle id."""
    records: dict[str, dict[str, str]]
    """The entity of each record of a snapshot, by bundle id and ``section/name``."""

    def device_of(self, target: str) -> HouseDevice | None:
        """Return the device that a contract calls so, or whose own entity it is."""
        if target in self.devices:
            return self.devices[target]
        return next((item for item in self.devices.values() if item.entity == target), None)

    def device_with(self, entity: str) -> HouseDevice | None:
        """Return the device whose own entity it is, whatever a contract calls it."""
        return next((item for item in self.devices.values() if item.entity == entity), None)

    @model_validator(mode="after")
    def _one_meaning_each(self) -> House:
        """Refuse a file in which one name could mean two devices."""
        owners: dict[str, str] = {}
        for key, device in self.devices.items():
            if device.entity in owners:
                raise ValueError(f"{key}: {device.entity} is also {owners[device.entity]}")
            owners[device.entity] = key
        for key in self.devices:
            if owners.get(key, key) != key:
                raise ValueError(f"{key} is the name of one device and the entity of another")
        return self

    @model_validator(mode="after")
    def _services_as_named(self) -> House:
        """Where something real is behind it, what was approved is what is sent."""
        for key, device in self.devices.items():
            for name, service in device.services.items():
                if not self.bench and service.service != name:
                    raise ValueError(
                        f"{key}: {name} is sent as {service.service}; only a bench may do so"
                    )
                for item in service.parameters.values():
                    if item.key in _TARGETS:
                        raise ValueError(f"{key}: a parameter of {name} is sent as {item.key}")
        return self

    @model_validator(mode="after")
    def _literal_ids(self) -> House:
        for key, device in self.devices.items():
            for entity in device.entities():
                if not is_entity(entity):
                    raise ValueError(f"{key}: {entity!r} is not one literal entity id")
            own = device.entity.partition(".")[0]
            for name, service in device.services.items():
                if service.service.partition(".")[0] != own:
                    raise ValueError(f"{key}: {name} is sent to another domain than {own}")
        return self


def load_house(path: Path) -> House:
    """Read a house file.

    Raises:
        HouseError: It cannot be read or has another form.
    """
    return _load(path, House)


def parse_house(data: bytes, where: str) -> House:
    """Read the bytes of a house file.

    Raises:
        HouseError: They have another form.
    """
    return _parse(data, where, House)


class Tokens(Strict):
    """Files that hold one long-lived token each, for one program each."""

    world: str
    sink: str
    observer: str


class Instance(Strict):
    """A Home Assistant that a run may use; holds paths of tokens, never a token."""

    schema_: Literal["retire.homeassistant/v1"] = Field(alias="schema")
    url: str = Field(pattern=r"^https?://[^\s/]+$")
    house: str
    tokens: Tokens
    settle_milliseconds: int = Field(default=100, ge=0, le=60_000)
    """How long after an attempt a late effect is still waited for."""


def load_instance(path: Path) -> Instance:
    """Read an instance file; paths in it are taken from its own folder.

    Raises:
        HouseError: It cannot be read or has another form.
    """
    found = _load(path, Instance)
    folder = path.resolve().parent
    tokens = {name: str(folder / value) for name, value in found.tokens.model_dump().items()}
    return found.model_copy(update={"house": str(folder / found.house), "tokens": Tokens(**tokens)})


def _load(path: Path, model: type[_Model]) -> _Model:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HouseError(f"{path} cannot be read: {error.strerror}") from error
    return _parse(data, str(path), model)


def _parse(data: bytes, where: str, model: type[_Model]) -> _Model:
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise HouseError(f"{where}: {fault_of(error, 'the file')}") from error


def decimal_of(text: str | None) -> Decimal | None:
    """Return the number of a bound, or None where there is none."""
    return None if text is None else Decimal(text)
