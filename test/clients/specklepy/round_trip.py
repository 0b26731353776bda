"""Sends a building by specklepy's ServerTransport, or receives a root, as its documentation has it. Runs with the current and with older versions.

Environment: URL, TOKEN and PROJECT say where; ACTION is "send" or "receive"; ELEMENTS is how many the building has; ROOT is what to receive;
OBJECTS is a file that gets the objects as the transport had them, one line "<id> TAB <json>" each. Prints one line of JSON.
"""

import json
import math
import os
import warnings
from importlib.metadata import version

warnings.simplefilter("ignore")

from specklepy.api import operations  # noqa: E402
from specklepy.objects.base import Base  # noqa: E402
from specklepy.objects.geometry import Mesh  # noqa: E402
from specklepy.transports.memory import MemoryTransport  # noqa: E402
from specklepy.transports.server import ServerTransport  # noqa: E402

ELEMENTS_PER_LEVEL = 250
SHAPES = 40
NOT_COMPARED = {"id", "totalChildrenCount", "applicationId", "renderMaterial"}


class Level(Base, speckle_type="Building.Level", detachable={"elements"}):
    name: str = ""
    elements: list = None


class Element(Base, speckle_type="Building.Element", detachable={"displayValue", "definition"}):
    name: str = ""
    parameters: dict = None
    displayValue: list = None
    definition: Base = None


def building(elements: int) -> Base:
    definitions = [definition(number) for number in range(SHAPES)]
    levels = []
    for start in range(0, elements, ELEMENTS_PER_LEVEL):
        level = Level()
        level.name = f"Level {len(levels)} \u2013 \u00fc \U0001f600"
        level.elements = [element(n, definitions[n % SHAPES]) for n in range(start, min(elements, start + ELEMENTS_PER_LEVEL))]
        levels.append(level)
    root = Base()
    root["name"] = "Building"
    root["@levels"] = levels
    root["@(500)heights"] = [math.sin(n) * 1e6 for n in range(1_750)]
    root["@terrain"] = mesh(12_000, 0.5)
    return root


def element(number: int, shared: Base) -> Base:
    made = Element()
    made.name = f"Wall {number} a\u2028b\u2029c\u0085d \u0000 \\ \" \t end"
    made.parameters = {"Area": number * 0.1, "Mark": None, "Fire": number % 2 == 0, "Tags": ["a", "b", number], "Deep": {"Phase": {"Built": number}}}
    made.displayValue = [mesh(24, number)]
    made.definition = shared
    made["@notes"] = [note(number)]
    return made


def definition(number: int) -> Base:
    made = Base()
    made["name"] = f"Type {number}"
    made["@mesh"] = mesh(200, number + 0.25)
    return made


def note(number: int) -> Base:
    made = Base()
    made["text"] = f"note {number} " + "lorem ipsum " * (number % 20)
    return made


def mesh(vertices: int, seed: float) -> Mesh:
    numbers = [round(math.sin(seed + n) * 100, 6) for n in range(3 * vertices)]
    faces = [index for n in range(vertices - 2) for index in (3, n, n + 1, n + 2)]
    return Mesh(vertices=numbers, faces=faces, units="m")


def plain(value):
    """A value without what sending adds to it."""
    if isinstance(value, Base):
        members = {name: plain(getattr(value, name, None)) for name in value.get_serializable_attributes() if name not in NOT_COMPARED}
        return {name: member for name, member in members.items() if member not in (None, [])}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value


def remote() -> ServerTransport:
    return ServerTransport(stream_id=os.environ["PROJECT"], token=os.environ["TOKEN"], url=os.environ["URL"])


def write(transport: MemoryTransport) -> int:
    with open(os.environ["OBJECTS"], "w", encoding="utf-8", newline="") as file:
        file.writelines(f"{id}\t{text}\n" for id, text in transport.objects.items())
    return len(transport.objects)


def send() -> dict:
    held = MemoryTransport()
    root = operations.send(building(int(os.environ["ELEMENTS"])), [remote(), held], use_default_cache=False)
    return {"root": root, "objects": write(held)}


def receive() -> dict:
    held = MemoryTransport()
    value = operations.receive(os.environ["ROOT"], remote(), held)
    elements = os.environ.get("ELEMENTS")
    same = elements is not None and plain(value) == plain(building(int(elements)))
    return {"root": value.id, "objects": write(held), "same": same}


done = send() if os.environ["ACTION"] == "send" else receive()
print(json.dumps({"version": version("specklepy"), **done}))
