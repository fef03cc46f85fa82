"""Takes part in the call protocol over WebSocket, by its documentation alone: peer.py URL.

Calls the test operations of the hub, printing a word for each thing that went well, and serves `py.greet`, `py.ticks`
and `py.stop` until it is told to stop.
"""

import asyncio
import itertools
import json
import sys
import time

import websockets

WINDOW = 64


def spec(name, kind, properties):
    return {
        "name": name, "namespace": "py", "version": "1.0.0", "type": kind, "description": "",
        "inputSchema": {"type": "object", "properties": properties}, "outputSchema": {},
        "accessControl": {"requiredScopes": []},
    }


class Peer:
    def __init__(self, socket):
        self.socket = socket
        self.ids = (f"py-{n}" for n in itertools.count())
        self.waiting = {}  # the queue of each request of ours
        self.running = {}  # the task of each request of theirs
        self.credits = {}
        self.stopped = []
        self.done = asyncio.Event()

    async def send(self, kind, payload):
        frame = {"type": kind, "payload": payload}
        if "requestId" in payload:
            frame["id"] = payload["requestId"]
        await self.socket.send(json.dumps(frame))

    async def read(self):
        async for message in self.socket:
            frame = json.loads(message)
            kind, payload = frame["type"], frame["payload"]
            request_id = payload.get("requestId")
            if kind == "call.requested":
                self.credits[request_id] = asyncio.Semaphore(WINDOW)
                self.running[request_id] = asyncio.create_task(self.serve(payload))
                # It begins before another message is read, so that it notices if that aborts it.
                await asyncio.sleep(0)
            elif kind == "call.aborted" and request_id in self.running:
                self.running[request_id].cancel()
            elif kind == "link.credit" and request_id in self.credits:
                for _ in range(payload["items"]):
                    self.credits[request_id].release()
            elif request_id in self.waiting:
                await self.waiting[request_id].put(frame)

    # The caller's side.

    async def request(self, operation, payload, **more):
        request_id = next(self.ids)
        self.waiting[request_id] = asyncio.Queue()
        await self.send("call.requested", {"requestId": request_id, "operationId": operation, "input": payload, **more})
        return request_id

    async def call(self, operation, payload):
        request_id = await self.request(operation, payload, deadline=int(time.time() * 1000) + 60_000)
        return await self.waiting[request_id].get()

    # The worker's side.

    async def serve(self, request):
        request_id, operation, payload = request["requestId"], request["operationId"], request["input"]
        try:
            if operation == "py.greet":
                if payload["name"] == "slowly":
                    await asyncio.sleep(600)
                if not payload["name"]:
                    error = {"code": "NO_NAME", "message": "say who you are"}
                    return await self.send("call.error", {"requestId": request_id, **error})
                await self.respond(request, "hello, " + payload["name"])
            elif operation == "py.ticks":
                for n in range(payload["to"]):
                    await self.credits[request_id].acquire()
                    await self.respond(request, n)
                await self.send("call.completed", {"requestId": request_id})
            elif operation == "py.stop":
                await self.respond(request, {"stopped": self.stopped})
                self.done.set()
        except asyncio.CancelledError:
            self.stopped.append(operation)
        finally:
            del self.running[request_id], self.credits[request_id]

    async def respond(self, request, data):
        meta = {"source": "local", "operationId": request["operationId"], "timestamp": int(time.time() * 1000)}
        await self.send("call.responded", {"requestId": request["requestId"], "output": {"data": data, "meta": meta}})


async def calls(peer):
    answer = await peer.call("test.add", {"a": 40, "b": 2})
    assert answer["type"] == "call.responded" and answer["payload"]["output"]["data"] == 42, answer
    print("call", flush=True)

    answer = await peer.call("test.fail", {"code": "OUT_OF_STOCK", "message": "no pets left"})
    assert answer["type"] == "call.error" and answer["payload"]["code"] == "OUT_OF_STOCK", answer
    assert answer["payload"]["details"] == {"left": 0}, answer
    print("error", flush=True)

    request_id = await peer.request("test.count", {"to": 300})
    for n in range(300):
        item = await peer.waiting[request_id].get()
        assert item["payload"]["output"]["data"] == n, item
        if n % 32 == 31:
            await peer.send("link.credit", {"requestId": request_id, "items": 32})
    end = await peer.waiting[request_id].get()
    assert end["type"] == "call.completed", end
    print("subscription", flush=True)

    request_id = await peer.request("test.wait", {"key": "python", "milliseconds": 600_000})
    await peer.send("call.aborted", {"requestId": request_id})
    assert peer.waiting[request_id].empty()
    print("abort", flush=True)

    answer = await peer.call("test.lost", {})
    assert answer["payload"]["code"] == "OPERATION_NOT_FOUND", answer
    print("unknown", flush=True)


async def main(url):
    async with websockets.connect(url) as socket:
        peer = Peer(socket)
        add = [
            spec("greet", "query", {"name": {"type": "string"}}),
            spec("ticks", "subscription", {"to": {"type": "integer"}}),
            spec("stop", "mutation", {}),
        ]
        await peer.send("link.announce", {"add": add})
        reading = asyncio.create_task(peer.read())
        await calls(peer)
        await peer.done.wait()
        await asyncio.sleep(0.1)
        reading.cancel()


asyncio.run(main(sys.argv[1]))
