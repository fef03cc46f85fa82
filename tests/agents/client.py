"""Uses a gateway with FastMCP's client: lists, searches, describes, calls, and runs a program of five calls."""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

PROGRAM = """
const [pet, sales, page] = await Promise.all([
    ops.shop.showPet({ petId: 7 }),
    ops.time.get_current_time({ timezone: "UTC" }),
    ops.contacts.listContacts({}),
]);
const there = await ops.time.convert_time({ source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" });
const again = await ops.shop.showPet({ petId: 8 });
return { pet: typeof pet.name, again: typeof again.name, time: typeof sales, page: typeof page, there: JSON.stringify(there) };
"""


def text(result):
    """The texts of a result; they hold no secret."""
    said = "\n".join(block.text for block in result.content)
    assert "s3cr3t-of" not in said, said
    return said


async def main(ops, config):
    def server(*more):
        arguments = ["serve", "--config", config, *more]
        return Client(StdioTransport(command=ops, args=arguments, env=dict(os.environ), keep_alive=False))

    async with server("--tools", "search") as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert sorted(tools) == ["call", "describe", "search"], tools
        found = text(await client.call_tool("search", {"query": "what time is it in Tokyo"}))
        assert found.startswith("time."), found
        described = text(await client.call_tool("describe", {"id": "shop.showPet"}))
        assert "petId: number" in described, described
        called = json.loads(text(await client.call_tool("call", {"id": "shop.showPet", "input": {"petId": 7}})))
        assert isinstance(called["name"], str), called
        wrong = await client.call_tool("call", {"id": "shop.showPets", "input": {}}, raise_on_error=False)
        assert wrong.is_error and "shop.showPet" in text(wrong), wrong
    async with server("--tools", "code") as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert sorted(tools) == ["describe", "execute", "search"], tools
        done = json.loads(text(await client.call_tool("execute", {"code": PROGRAM})))
        assert (done["pet"], done["again"]) == ("string", "string"), done
        assert "Tokyo" in done["there"], done
    print("listed, searched, described, called, and ran a program of five calls")


asyncio.run(main(*sys.argv[1:]))
