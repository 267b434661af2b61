#!/usr/bin/env python3
"""A second stand-in for chatgpt.com: the same account as other programs describe it, with other shapes wherever they disagree.

    standin_wild.py

Pages, session and checks are those of standin.py. `shapes` in its world says what each point looks like; the first of each
row below is what it is without being told. What nobody knows is called `unknown`. All people, words and ids are made up.
"""

import json
import sys

sys.dont_write_bytecode = True  # the clone stays as it is

import standin  # noqa: E402
from standin import BASE, COUNTS, LOCK, SERVED, WORLD, Page, iso, name_of  # noqa: E402

SHAPES = {
    "list": "array",  # conversations, items, unknown
    "list_cap": 25,  # the most conversations in a page, whatever is asked for; nothing says so
    "list_most": 28,  # more is 422
    "project_cursor": "number",  # text, next_cursor, has_more, unknown
    "project_most": 5,  # projects in a page
    "memories": "items",  # memories, pages, unknown
    "gpt": "config",  # flat, bare (the detail has less than the listing)
    "share": "share_id",  # id
    "nameless": True,  # one item without an id wherever that ends nothing
    "batch_most": 4,
    "turns_most": 20,
    "detail": "tree",  # pages
    "link": "bearer",  # signed, redirect, url
    "textdocs": "array",  # textdocs, unknown
    "rest": "there",  # gone, unknown: everything that few programs ask for
}
WORLD["shapes"] = {}
CONVERSATIONS, PROJECTS = 36, 7
CANVAS, SANDBOX = 3, 4  # numbers of conversations with a document and with files made by code


def shape(name):
    return WORLD["shapes"].get(name, SHAPES[name])


def project_of(number):
    """Conversations behind the plain ones: two in each project."""
    return f"g-p-{(number - CONVERSATIONS) // 2}" if number >= CONVERSATIONS else None


def tree(number):
    whole = standin.tree(number)
    question, answer = whole["mapping"][f"{number}-q"], whole["mapping"][f"{number}-a"]
    whole["gizmo_id"] = project_of(number)
    question["message"]["metadata"].pop("attachments", None)
    if number == CANVAS:
        answer["message"]["metadata"]["canvas"] = {"textdoc_id": "doc-1", "textdoc_type": "document"}
    if number == SANDBOX:
        answer["message"]["content"]["parts"] = ["Done: [the log](sandbox:/mnt/data/the log.csv)"]
        result = standin.message(number, "t", "tool", "")
        result["author"]["name"] = "python"
        result["content"] = {"content_type": "execution_output", "text": "drawn"}
        result["metadata"]["aggregate_result"] = {"status": "success", "messages": [
            {"message_type": "image", "image_url": "file-service://file-" + "d" * 24, "width": 640, "height": 480}]}
        screen = standin.message(number, "u", "tool", "")
        screen["content"] = {"content_type": "computer_output", "computer_id": "c", "state": {"title": "Harbour"},
                             "screenshot": {"asset_pointer": "sediment://file_" + "e" * 24, "width": 800, "height": 600}}
        nodes, below = whole["mapping"], f"{number}-a"
        for part, said in (("t", result), ("u", screen)):
            nodes[f"{number}-{part}"] = {"id": f"{number}-{part}", "message": said, "parent": below, "children": []}
            nodes[below]["children"].append(f"{number}-{part}")
            below = f"{number}-{part}"
        whole["current_node"] = below
    return whole


def line(whole):
    at, messages = whole["current_node"], []
    while whole["mapping"][at]["message"]:
        messages.append(whole["mapping"][at]["message"])
        at = whole["mapping"][at]["parent"]
    return messages[::-1]


def listed(number):
    item = {"id": name_of(number), "title": f"Lighthouse {number}", "updated_at": iso(standin.updated(number))}
    return {"conversation": item} if number % 3 == 0 else item | {"update_time": standin.updated(number)}


def wrapped(kind, items, more=()):
    if kind == "array":
        return items
    return {{"unknown": "rows"}.get(kind, kind): items, **dict(more)}


def gpt(number, whole):
    inner = {"id": f"g-{number}", "display": {"name": f"Keeper {number}", "description": "Keeps the light"}}
    files = [{"file_id": "file-" + "9" * 24, "name": "tides.pdf", "size": 5}]
    if shape("gpt") == "bare" and whole:
        return {"gizmo": {"id": f"g-{number}", "display": {"name": f"Keeper {number}"}}}
    if shape("gpt") == "bare":
        return {"gizmo": inner | {"instructions": "You keep the light."}, "files": files}
    if shape("gpt") == "config" and whole:
        return {"gizmo": inner | {"config": {"instructions": "You keep the light.", "tools": [{"type": "browser"}]}},
                "files": files}
    return {"info": inner | {"instructions": "You keep the light.", "tools": [{"type": "browser"}], "files": files}}


class Wild(Page):
    def serve(self, method, body):
        # Bytes that need what the page sends, and others that must not have it.
        if self.path.startswith("/content/"):
            bearer = self.headers.get("authorization") == "Bearer " + standin.SECRETS["token"]
            if self.path.startswith("/content/away/"):
                return self.send(302, b"", "text/plain", [("location", "/content/open/" + self.path[14:])])
            if self.path.startswith("/content/open/") and bearer:
                with LOCK:
                    COUNTS["bearer given away"] += 1
            if self.path.startswith("/content/bearer/") and not bearer:
                return self.json({"detail": "no bearer"}, 401)
            return self.send(200, b"bytes of " + self.path.rsplit("/", 1)[-1].encode(), "application/octet-stream")
        return super().serve(method, body)

    def answer(self, method, path, query, body):
        parts = path.strip("/").split("/")
        if path == "/conversations":
            return self.list(query)
        if path == "/conversations/batch":
            return self.batch(json.loads(body)["conversation_ids"])
        if parts[0] in ("conversation", "conversations"):
            return self.conversation(parts, query)
        if parts[0] == "gizmos" and parts[-1] == "conversations":
            return self.project(parts[1], query)
        if parts[0] == "files" and parts[1:2] == ["download"]:
            return self.link(parts[2])
        if parts[0] == "files" and len(parts) == 2 and parts[1].startswith("file"):
            return self.json({"id": parts[1], "name": f"{parts[1][:9]}.bin", "size": 7, "mime_type": "image/png",
                              "creation_time": iso(BASE), "state": "ready"})
        return self.surface(path, query, body)

    def list(self, query):
        offset, limit = int(query.get("offset", 0)), int(query.get("limit", 28))
        if limit > shape("list_most"):
            return self.json({"detail": [{"loc": ["query", "limit"], "msg": "less"}]}, 422)
        if query.get("is_archived") == "true":
            return self.json(wrapped("items", [], [("limit", limit), ("offset", offset)]))
        items = [listed(number) for number in sorted(range(CONVERSATIONS), key=standin.updated, reverse=True)]
        if shape("nameless"):
            items.insert(3, {"title": "no id"})
        page = items[offset:offset + min(limit, shape("list_cap"))]
        if not page and shape("list") != "items":
            return self.json({"items": []})
        return self.json(wrapped(shape("list"), page, [("total", -(-CONVERSATIONS // 25))]))

    def project(self, project, query):
        start = int(query.get("cursor") or 0)
        numbers = [number for number in range(CONVERSATIONS, CONVERSATIONS + 2 * PROJECTS) if project_of(number) == project]
        page = [listed(number) for number in numbers[start:start + 1]]
        return self.paged({"items": page}, start + 1, start + 1 < len(numbers))

    def paged(self, answer, place, more):
        kind = shape("project_cursor")
        places = {"text": {"cursor": str(place)}, "number": {"cursor": place}, "next_cursor": {"next_cursor": str(place)},
                  "has_more": {"has_more": True}, "unknown": {"cursor": {"at": place}}}
        return self.json(answer | (places[kind] if more else {"cursor": None}))

    def batch(self, names):
        if shape("detail") != "tree":
            return self.json({"detail": "Not Found"}, 404)
        if len(names) > shape("batch_most"):
            return self.json({"detail": "too many"}, 422)
        with LOCK:
            SERVED.update(names)
        return self.json({"conversations": [tree(standin.number_of(name)) for name in names]})

    def conversation(self, parts, query):
        number = standin.number_of(parts[1])
        if parts[2:] == ["textdocs"]:
            document = {"id": "doc-1", "title": "Log", "textdoc_type": "document", "content": "As it stands.", "version": 4}
            documents = [document] if number == CANVAS else []
            return self.json(wrapped(shape("textdocs"), documents))
        if parts[2:] == ["interpreter", "download"]:
            return self.link("sandbox" if query["sandbox_path"] == "/mnt/data/the log.csv" else "nothing")
        is_paged = parts[0] == "conversations"
        if is_paged != (shape("detail") == "pages"):
            return self.json({"detail": {"code": "conversation_not_found"}}, 404)
        whole = tree(number)
        if not is_paged:
            return self.json(whole)
        if int(query.get("num_turns", 10)) > shape("turns_most"):
            return self.json({"detail": "num_turns"}, 422)
        page = {"messages": line(whole), "page_info": {"has_previous_page": False}}
        return self.json({name: value for name, value in whole.items() if name != "mapping"} | page)

    def link(self, name):
        kind = shape("link")
        place = {"bearer": "bearer/", "redirect": "away/"}.get(kind, "open/")
        answer = {"download_url": f"/content/{place}{name}"}
        if kind == "url":
            answer = {"url": answer["download_url"]}
        return self.json(answer if kind in ("url", "bearer") else answer | {"status": "success"})

    def surface(self, path, query, body):
        if path == "/memories":
            return self.memories(query)
        if path == "/gizmos/mine":
            item = gpt(1, False)
            return self.json({"cuts": [item if "info" in item else {"info": item}], "cursor": ""})
        if path == "/gizmos/g-1":
            return self.json(gpt(1, True))
        if path == "/gizmos/snorlax/sidebar":
            start = int(query.get("cursor") or 0)
            names = [f"g-p-{number}" for number in range(PROJECTS)][start:start + shape("project_most")]
            items = [{"resource": {"gizmo": {"id": name, "display": {"name": name}, "instructions": f"Rules of {name}", "updated_at": iso(BASE - 60),
                                             "files": [{"id": "file-" + name[-1] * 24, "name": "chart.pdf"}]}}} for name in names]
            return self.paged({"items": items}, start + shape("project_most"), start + shape("project_most") < PROJECTS)
        if path == "/shared_conversations":
            start = int(query["offset"])
            items = [{shape("share"): f"share-{number}", "conversation_id": name_of(number)} for number in range(3)]
            return self.json({"items": items[start:start + 2]})
        known = {"/me": {"id": "user-ada", "email": "ada@example.com"},
                 "/settings/user": {"settings": {"training_allowed": True}},
                 "/user_system_messages": {"enabled": True, "about_user_message": "I sail."},
                 "/models": {"models": [{"slug": "gpt-5"}]}}
        if path in known:
            return self.json(known[path])
        return self.rest(path, query, body)

    def memories(self, query):
        memories = [{"id": f"mem-{number}", "content": f"Memory {number}"} for number in range(4)]
        kind = shape("memories")
        if kind == "pages":
            start = int(query.get("cursor") or 0)
            more = start + 2 < len(memories)
            return self.json({"memories": memories[start:start + 2], "cursor": start + 2 if more else None})
        return self.json(wrapped(kind, memories))

    def rest(self, path, query, body):
        if shape("rest") == "gone":
            return self.json({"detail": "Not Found"}, 404)
        states = {"scheduled": ["auto-1"], "paused": [], "finished": ["auto-2"]}
        image = {"id": "image-1", "asset_pointer": "sediment://file_" + "c" * 24, "title": "A lighthouse", "width": 1024,
                 "height": 1024, "conversation_id": name_of(1), "message_id": "1-a", "created_at": BASE,
                 "url": f"https://example.com/{standin.secrets.token_hex(8)}?sig=x"}
        library = {"file_id": "file-" + "b" * 24, "file_name": "log.txt", "mime_type": "text/plain", "file_size_bytes": 9,
                   "origination_thread_id": name_of(2), "origination_message_id": "2-q", "created_at": iso(BASE)}
        task = {"id": "task-1", "title": "Fix the lamp", "created_at": BASE, "updated_at": BASE, "archived": False}
        answers = {
            "/automations": {"items": [{"id": name, "title": name, "prompt": "Tell the tide", "is_enabled": True}
                                       for name in states.get(query.get("filter"), [])], "cursor": None},
            "/tasks": {"tasks": [{"task_id": "research-1", "title": "Tides", "status": "done"}], "cursor": None},
            "/pins": [{"item_type": "conversation", "item": {"id": name_of(5), "title": "Lighthouse 5"}},
                      {"item_type": "project", "item": {"gizmo": {"id": "g-p-1", "display": {"name": "g-p-1"}}}}],
            "/calpico/chatgpt/rooms/summary": {"rooms": [{"room": {"id": "room-1", "name": "Crew", "members": []}}]},
            "/calpico/chatgpt/rooms/room-1/messages": {"items": [{"id": "m1", "text": "Ahoy"}], "prev_cursor": None},
            "/wham/tasks/list": {"items": [task], "cursor": None},
            "/wham/tasks/task-1": {"task": task | {"status": "completed"}, "current_user_turn": {"id": "turn-1"}},
            "/files/library": {"items": [library], "cursor": None},
            "/my/recent/image_gen": {"items": [image], "cursor": None},
        }
        if shape("rest") == "unknown":
            return self.json({"rows": [1]})
        if path == "/memories/about_you/summary/stream":
            stream = 'event: delta\ndata: {"delta": "Sails "}\n\ndata: {"delta": "and draws."}\n\ndata: [DONE]\n\n'
            return self.send(200, stream.encode(), "text/event-stream")
        if path in answers:
            return self.json(answers[path])
        return self.json({"detail": "Not Found"}, 404)


if __name__ == "__main__":
    standin.main(Wild)
