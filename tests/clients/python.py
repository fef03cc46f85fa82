"""Calls the forty operations with the client that openapi-generator makes from our document: `python.py URL TOKEN [--prism]`.

Each operation must return what it got. `UNABLE` lists those that this client cannot call, with the reasons. With `--prism`, the
URL is that of Prism as a proxy, which refuses requests and responses that violate the document; `UNREAD` lists the operations
whose requests Prism cannot pass on.
"""

import base64
import sys

import varied_client
from varied_client import models

UNABLE = {
    "cookies": "it sends no cookies",
    "events": "it waits for the end of a stream and gives its text",
    "path_label": "it knows no style of a path but the simple one",
    "path_matrix": "it knows no style of a path but the simple one",
    "path_object": "it writes an object in a path as the text of a Python dictionary",
}

UNREAD = {
    "query_space": "it takes the spaces of a list for a part of its one item",
    "query_deep": "it takes the numbers in an object of a query for text",
    "parts": "it takes the JSON of a part for text",
    "bytes": "it takes bytes for UTF-8",
}

url, token = sys.argv[1:3]
is_prism = sys.argv[3:] == ["--prism"]
configuration = varied_client.Configuration(host=url, access_token=token)
api = varied_client.DefaultApi(varied_client.ApiClient(configuration))
person = models.Person(name="Ann", level="high", nick="A")
point = models.Point(x=1, y=-2)


def plain(value):
    """A value as JSON."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return plain(value.to_dict()) if hasattr(value, "to_dict") else value


def by_id(name, value):
    request = getattr(models, f"{name.title()}Request").from_dict({"value": value})
    return name, lambda: getattr(api, name)(request), value


ann, at = plain(person), {"x": 1, "y": -2}
tree = {"name": "a", "children": [{"name": "b"}]}
calls = [
    by_id("text", "café au lait"),
    by_id("whole", -9007199254740991),
    by_id("number", 2.75),
    by_id("truth", False),
    by_id("nothing", "x"),
    by_id("choice", "in between"),
    by_id("list", [3, 1, 2]),
    by_id("map", {"a/b": [1.5]}),
    by_id("record", {"name": "Ann", "level": "low", "nick": "A"}),
    by_id("nested", tree),
    by_id("union", {"kind": "square", "side": 2.5}),
    by_id("either", ["a", ""]),
    by_id("both", {"a": "x", "b": True}),
    ("moment", lambda: api.moment(models.MomentRequest.from_dict({"value": "2026-11-23T10:00:00Z"})).isoformat(), "2026-11-23T10:00:00+00:00"),
    ("path_text", lambda: api.path_text("a b/ü%"), {"id": "a b/ü%"}),
    ("path_list", lambda: api.path_list([3, 4]), {"ids": [3, 4]}),
    ("query_form", lambda: api.query_form("a&b=c", 7, ["x", "y z"]), {"q": "a&b=c", "limit": 7, "tags": ["x", "y z"]}),
    ("query_comma", lambda: api.query_comma([1, 2]), {"ids": [1, 2]}),
    ("query_space", lambda: api.query_space([1, 2]), {"ids": [1, 2]}),
    ("query_pipe", lambda: api.query_pipe([1, 2]), {"ids": [1, 2]}),
    ("query_deep", lambda: api.query_deep(point), {"point": at}),
    ("query_json", lambda: api.query_json(point), {"point": at}),
    ("path_label", lambda: api.path_label([3, 4]), {"ids": [3, 4]}),
    ("path_matrix", lambda: api.path_matrix(point), {"point": at}),
    ("path_object", lambda: api.path_object(point), {"point": at}),
    ("cookies", lambda: api.cookies(42), {"session": 42}),
    by_id("anything", {"x": [1, {"y": None}, "z"]}),
    ("events", lambda: api.events(models.EventsRequest.from_dict({"items": [tree]})), [tree]),
    ("headers", lambda: api.headers("t-1", [5, 6]), {"x-trace": "t-1", "x-ids": [5, 6]}),
    ("json", lambda: api.call_json(person), ann),
    ("patch", lambda: api.patch({"a": "1"}), {"a": "1"}),
    ("plain", lambda: api.plain("line\nand ü"), "line\nand ü"),
    ("form", lambda: api.form("a&b", ["x", "y"], 3), {"name": "a&b", "tags": ["x", "y"], "age": 3}),
    ("parts", lambda: api.parts("a", ("f", b"\0\xff"), person), {"name": "a", "file": base64.b64encode(b"\0\xff").decode(), "about": ann}),
    ("put_person", lambda: api.put_person(7, person), {"id": 7, "body": ann}),
    ("bytes", lambda: list(api.bytes(b"\0\xff")), [0, 255]),
    ("said", lambda: api.said("so"), "so"),
    ("silence", lambda: api.silence(person), None),
    ("created", lambda: api.created(models.CreatedRequest(7)), 7),
    ("rest", lambda: api.rest(1, models.RestRequest(a="x", b=True)), {"id": 1, "a": "x", "b": True}),
]

excused = UNREAD if is_prism else UNABLE
named = {name for name, _, _ in calls}
if is_prism:
    # A wrong label ends Prism itself.
    calls = [call for call in calls if call[0] not in UNABLE]
wrong = done = 0
for name, call, expected in calls:
    try:
        given = plain(call())
    except Exception as error:  # Whatever it is, it is a fault of one of the two.
        given = f"{type(error).__name__}: {str(error)[:400]}"
    if name in excused and given == expected:
        wrong += 1
        print(f"{name}: it works, so it needs no excuse")
    elif name not in excused and given != expected:
        wrong += 1
        print(f"{name}: {given!r} instead of {expected!r}")
    done += given == expected
operations = {name for name in dir(api) if f"{name}_with_http_info" in dir(api) and not name.endswith("_by_get")}
forgotten = operations - {name if hasattr(api, name) else f"call_{name}" for name in named}
if forgotten:
    wrong += 1
    print(f"not called: {sorted(forgotten)}")
unknown = (UNABLE.keys() | UNREAD.keys()) - named
if unknown:
    wrong += 1
    print(f"excused, but not called: {sorted(unknown)}")
print(f"{done} of {len(calls)} operations gave back what they got, {len(excused)} cannot")
sys.exit(1 if wrong else 0)
