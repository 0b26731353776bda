"""What OpenAPI cannot say of a request, so that Schemathesis sends what it takes for valid as a client would."""

import gzip
import json

import schemathesis


@schemathesis.serializer("application/gzip")
def gzip_json(ctx, value):
    """A body of this type is JSON, compressed (OpenAPI has no word for what is inside)."""
    return value if isinstance(value, bytes) else gzip.compress(json.dumps(value).encode())


@schemathesis.hook
def before_call(ctx, case, kwargs):
    """A document can describe the header Content-Encoding and the body, and not that they belong together: bodies here have no coding."""
    for name in [name for name in case.headers or {} if name.lower() == "content-encoding"]:
        del case.headers[name]
