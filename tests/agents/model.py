"""A scripted model on 127.0.0.1 that uses the tools of annals: it searches, reads the session it found, and cites it.

Speaks the two protocols that the clients of tests/agents/clients speak: Anthropic messages and OpenAI responses, both
streamed. Every answer depends on what the tools returned: a citation in the last one shows that both calls worked.
"""
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CITATION = re.compile(r"annals://session/[A-Za-z0-9%._~-]+#[0-9a-f]+")
WORDS = "sprocket torque"
SEARCH, READ = "search_history", "read_session"


class Model:
    """The server, and what was asked of it."""

    def __init__(self):
        self.requests = []
        self.offered = set()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

            def do_GET(self):
                self.send_error(404)

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                path = self.path.split("?")[0]
                if path.endswith("/count_tokens"):
                    return self.reply_json({"input_tokens": len(body) // 4})
                try:
                    request = json.loads(body)
                except ValueError:
                    return self.send_error(400)
                model.requests.append((path, request))
                if path.endswith("/v1/messages"):
                    return self.stream(anthropic(model, request))
                if path.endswith("/responses"):
                    return self.stream(openai(model, request))
                return self.send_error(404)

            def reply_json(self, value):
                data = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def stream(self, events):
                if isinstance(events, dict):
                    return self.reply_json(events)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for event in events:
                    self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                self.close_connection = True

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def plan(results):
    """The next step, from the texts that tools returned so far: a tool with its arguments, or the last words."""
    cited = [CITATION.search(text) for text in results]
    if not results:
        return SEARCH, {"query": WORDS, "project": "*"}
    if len(results) == 1:
        if not cited[0]:
            return None, "The search found nothing: " + results[0][:500]
        return READ, {"session": cited[0].group(0), "view": "prompts"}
    found = re.search(r"(\d+ newton metres)", results[1])
    return None, f"Last time we used {found.group(1) if found else 'an unknown torque'}; see {cited[0].group(0) if cited[0] else 'nothing'}."


def anthropic(model, request):
    tools = [tool.get("name", "") for tool in request.get("tools") or []]
    model.offered.update(tools)
    results = []
    for message in request.get("messages") or []:
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                inner = block.get("content")
                parts = inner if isinstance(inner, list) else [{"text": inner}]
                text = "\n".join(str(part.get("text") or "") for part in parts)
                results.append(text)
    own = [text for text in results if "past sessions" in text or "error: " in text]
    prefix = "mcp__annals__"
    if not tools:
        block = {"type": "text", "text": "annals"}
    elif prefix + SEARCH not in tools and "ToolSearch" in tools and not any(prefix in text for text in results):
        # Tools that are not described to the model yet are looked up by name.
        names = ",".join(prefix + name for name in (SEARCH, READ))
        block = {"type": "tool_use", "name": "ToolSearch", "input": {"query": "select:" + names}}
    else:
        tool, value = plan(own)
        block = {"type": "tool_use", "name": prefix + tool, "input": value} if tool else {"type": "text", "text": value}
    usage = {"input_tokens": 10, "output_tokens": 10}
    start = {"id": f"msg_{len(model.requests)}", "type": "message", "role": "assistant", "model": request.get("model"),
             "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
    if block["type"] == "tool_use":
        block["id"] = f"toolu_{len(model.requests)}"
    if not request.get("stream"):
        return dict(start, content=[block], stop_reason=stop)
    if block["type"] == "tool_use":
        opening = dict(block, input={})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        opening = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": opening},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def openai(model, request):
    offered = {}

    def add(tool, namespace=None):
        if tool.get("type") == "namespace":
            for inner in tool.get("tools") or []:
                add(inner, tool.get("name"))
        else:
            offered[tool.get("name") or tool.get("type")] = namespace

    for tool in request.get("tools") or []:
        add(tool)
    results = []
    for item in request.get("input") or []:
        if item.get("type") in ("additional_tools", "tool_search_output"):
            for tool in item.get("tools") or []:
                add(tool)
        if item.get("type") in ("function_call_output", "custom_tool_call_output"):
            output = item.get("output")
            results.append(output if isinstance(output, str) else json.dumps(output))
    model.offered.update(offered)
    identity = f"{len(model.requests):08x}"

    def named(name):
        return next((full for full in (f"mcp__annals__{name}", name) if full in offered), None)

    tool, value = plan([text for text in results if "past sessions" in text or "error: " in text])
    call_id = f"call_{identity}"
    if tool is None:
        content = [{"type": "output_text", "text": value, "annotations": []}]
        item = {"type": "message", "id": f"msg_{identity}", "role": "assistant", "status": "completed", "content": content}
    elif named(tool) is None and "tool_search" in offered and "tool_search_output" not in str(request.get("input")):
        item = {"type": "tool_search_call", "id": f"ts_{identity}", "call_id": call_id, "status": "completed",
                "execution": "client", "arguments": {"query": "annals search history read session", "limit": 8}}
    else:
        full = named(tool) or f"mcp__annals__{tool}"
        item = {"type": "function_call", "id": f"fc_{identity}", "call_id": call_id, "name": full,
                "arguments": json.dumps(value), "status": "completed"}
        if offered.get(full):
            item["namespace"] = offered[full]
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20}
    response = {"id": f"resp_{identity}", "object": "response", "status": "in_progress", "model": request.get("model"), "output": []}
    return [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": dict(item, content=[]) if "content" in item else item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": dict(response, status="completed", output=[item], usage=usage)},
    ]
