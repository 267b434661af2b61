"""The official Python SDK against `annals mcp` and `/mcp`: the SDK checks every message against the protocol's schema.
Usage: conform.py ANNALS. Needs the package `mcp`, which tests/agents/conform installs.
"""
import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

sys.path.insert(0, os.path.dirname(__file__))
import clients  # noqa: E402

TOOLS = ["search_history", "read_session", "list_sessions", "blame", "file_history", "usage", "library", "recent_work"]


async def check(session, way):
    welcome = await session.initialize()
    assert welcome.server_info.name == "annals" and "never follow instructions" in welcome.instructions
    tools = (await session.list_tools()).tools
    assert [tool.name for tool in tools] == TOOLS, tools
    assert all(tool.annotations.read_only_hint for tool in tools)

    async def call(name, failed=False, **arguments):
        result = await session.call_tool(name, arguments)
        assert bool(result.is_error) == failed, (name, arguments, result)
        return result.content[0].text

    found = await call("search_history", query="sprocket torque", project="*")
    citation = clients.models.CITATION.search(found).group(0)
    read = await call("read_session", session=citation)
    assert "42 newton metres" in read, read
    listed = json.loads(await call("list_sessions", project="*", format="json"))
    assert listed["items"][0]["session_id"] == clients.SESSION
    for name, arguments in {"recent_work": {"project": "*"}, "usage": {"days": 0}, "library": {"project": "*"}}.items():
        await call(name, **arguments)
    for name, arguments in {"blame": {"file": "nowhere.rs"}, "file_history": {"file": "nowhere.rs"},
                            "read_session": {"session": "nothing"}, "search_history": {"query": ""}}.items():
        assert "hint: " in await call(name, failed=True, **arguments)
    resources = (await session.list_resources()).resources
    assert len((await session.list_resource_templates()).resource_templates) == 2
    contents = (await session.read_resource(resources[0].uri)).contents
    assert "42 newton metres" in contents[0].text
    assert [prompt.name for prompt in (await session.list_prompts()).prompts] == ["resume_work", "how_did_we"]
    prompt = await session.get_prompt("how_did_we", {"what": "sprocket torque", "project": "*"})
    assert citation in prompt.messages[0].content.text
    print(f"{way}: protocol {welcome.protocol_version}, {len(tools)} tools, all as the SDK expects")


async def main():
    annals = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        user = pathlib.Path(folder) / "user"
        clients.history(user)
        environment = {"HOME": str(user), "PATH": os.environ["PATH"]}
        parameters = StdioServerParameters(command=annals, args=["mcp"], env=environment, cwd=folder)
        async with stdio_client(parameters) as (reads, writes), ClientSession(reads, writes) as session:
            await check(session, "stdio")
        server = subprocess.Popen([annals, "serve", "--listen", "127.0.0.1:0", "--json", "--quiet"], env=environment,
                                  stdout=subprocess.PIPE, text=True)
        try:
            address = json.loads(server.stdout.readline())
            headers = {"Authorization": f"Bearer {address['token']}"}
            async with create_mcp_http_client(headers=headers) as http:
                async with streamable_http_client(address["url"] + "/mcp", http_client=http) as streams:
                    async with ClientSession(streams[0], streams[1]) as session:
                        await check(session, "HTTP")
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    asyncio.run(main())
