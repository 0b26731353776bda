"""What OpenAPI cannot say of a request, so that Schemathesis sends what it takes for valid as a client would."""

import gzip
import json
import struct
import zlib

import schemathesis


@schemathesis.serializer("application/gzip")
def gzip_json(ctx, value):
    """A body of this type is JSON, compressed (OpenAPI has no word for what is inside)."""
    return value if isinstance(value, bytes) else gzip.compress(json.dumps(value).encode())


@schemathesis.serializer("application/vnd.stowage.blocks")
def ready_block(ctx, value):
    """A body of this type is a list of objects as lines, in one block; anything else is sent as it is."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, list) or not all(isinstance(one, dict) and isinstance(one.get("id"), str) for one in value):
        return json.dumps(value).encode()
    raw = "".join(f"{one['id']}\t{json.dumps(one)}\n" for one in value).encode()
    compressor = zlib.compressobj(wbits=-15)
    stored = compressor.compress(raw) + compressor.flush(zlib.Z_FULL_FLUSH)
    header = struct.pack("<4I", len(stored), len(raw), len(value), zlib.crc32(raw))
    return b"STOWBLKS" + struct.pack("<I", 1) + header + stored + struct.pack("<4I", 0, 1, len(value), 0)


@schemathesis.hook
def before_load_schema(ctx, raw_schema):
    """The document says in words that a server may answer 431 before it knows the request: a hundred long ids in a query are more than it reads of a head."""
    methods = ("get", "head", "post", "put", "patch", "delete", "options")
    too_large = {
        "description": "The headers are too large.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    for path in raw_schema["paths"].values():
        for method in [method for method in methods if method in path]:
            answer = {"description": too_large["description"]} if method == "head" else too_large
            path[method]["responses"].setdefault("431", answer)


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """A document can describe the header Content-Encoding and the body, and not that they belong together: bodies here have no coding."""
    for name in [name for name in case.headers or {} if name.lower() == "content-encoding"]:
        del case.headers[name]
