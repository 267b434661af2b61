#!/usr/bin/env python3
"""Stands in for chatgpt.com in tests: its pages, its session and its answers, its limits and its failures.

    standin.py [--certificate FILE --key FILE]

Listens on a free port of this machine and prints it, and with a certificate on a second one. `POST /__control` merges JSON into its world, `GET /__counts` tells
what was asked of it. Everything else must come from within a page of its own, as a browser marks it: other requests are
refused and counted. All people, words and ids are made up.
"""

import argparse
import base64
import json
import os
import secrets
import ssl
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BASE = 1_770_000_000  # moments of conversations count from here

# Microseconds that the program under test is ahead of this machine.
SHIFT = int(os.environ.get("ANNALS_TEST_CLOCK", "0")) / 1e6

LOCK = threading.Lock()
COUNTS = Counter()
DETAILS = Counter()
SERVED = Counter()
WORLD = {
    "login": "auto",  # auto: the page logs in by itself; manual: it waits; the owner's hand is not here
    "conversations": 12,
    "archived": 2,
    "projects": {"g-p-aurora": 2},
    "project_list": "sidebar",  # or older: only the address before it answers
    "cursors": "text",  # of projects: or number, or object, which nobody knows
    "changed": {},  # number of a conversation: how often it was changed
    "regenerated": [],  # numbers of conversations whose answer was made again
    "shape": "tree",  # or pages: the tree addresses are gone
    "batch": True,
    "bucket": None,  # {"capacity": 200, "per_minute": 1}
    "challenge": False,
    "challenge_after": None,  # so many answers are given first
    "torn": [],  # numbers of conversations that lack a message for good
    "drop": [], "truncate": [], "slow": [], "broken": [], "garbage": [], "missing": [],
    "slow_seconds": 8,
    "memories": [{"id": "mem-1", "content": "Prefers tea."}, {"id": "mem-2", "content": "Has a dog called Rex."}],
    "memories_fail": None,  # status, `partial` or `drift`
    "hidden": [],  # numbers of conversations that lists leave out
    "files_fail": {},  # number of a conversation: what asking for the bytes of its file answers
    "user": "user-ada",
    "account": "account-1",
    "list_fail_at": None,  # offset from which lists answer 500
    "odd": {},  # address below /backend-api, with or without its query: {"status", "type", "body", "times", "location", "after", "cut"}
    "times": {},  # number of a conversation: what lists say of its update time
    "order": None,  # numbers of conversations as the plain list has them
    "offline": False,  # connections are cut
    "refresh": None,  # the page loads itself anew, or goes elsewhere, after so many seconds
    "token_life": 3600,
    "delay_ms": 0,
}
SECRETS = {
    "session": "cookie-" + secrets.token_hex(24),
    "device": "device-" + secrets.token_hex(16),
    "token": "", "expires": 0, "logged_in": False,
}
BUCKET = {"tokens": None, "at": 0.0}


def now():
    """What time it is for the program under test."""
    return time.time() + SHIFT


def encode(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def fresh_token():
    SECRETS["expires"] = now() + WORLD["token_life"]
    payload = {"exp": int(SECRETS["expires"]), "https://api.openai.com/profile": {"email": "ada@example.com"}}
    SECRETS["token"] = f'{encode({"alg": "RS256"})}.{encode(payload)}.{secrets.token_urlsafe(32)}'


def session():
    if not SECRETS["token"] or SECRETS["expires"] < now() and WORLD.get("renews", True):
        fresh_token()
    return {"user": {"id": WORLD["user"], "email": "ada@example.com", "name": "Ada"},
            "expires": "2030-01-01T00:00:00.000Z", "account": {"id": WORLD["account"], "planType": "plus"},
            "accessToken": SECRETS["token"], "authProvider": "password"}


def number_of(conversation):
    """The number in a name; names that are not ours have none that anybody has."""
    found = conversation.rsplit("-", 1)[-1]
    return int(found) if found.isdigit() else -1


def name_of(number):
    return f"00000000-0000-4000-8000-{number:012d}"


def updated(number):
    return BASE + number * 60 + 100_000 * WORLD["changed"].get(str(number), 0) + 0.25


def iso(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{round(moment % 1 * 1e6):06d}Z"


def message(number, part, role, text):
    return {"id": f"{number}-{part}", "author": {"role": role, "name": None, "metadata": {}},
            "create_time": BASE + number * 60 + ord(part[0]) / 1000, "update_time": None,
            "content": {"content_type": "text", "parts": [text]}, "status": "finished_successfully",
            "end_turn": True, "weight": 1.0, "metadata": {"model_slug": "gpt-5"} if role == "assistant" else {},
            "recipient": "all", "channel": None}


def tree(number):
    changed = WORLD["changed"].get(str(number), 0)
    nodes = {"root": {"id": "root", "message": None, "parent": None, "children": [f"{number}-q"]}}
    parent = "root"

    def add(part, role, text, below):
        name = f"{number}-{part}"
        said = message(number, part, role, text)
        nodes[name] = {"id": name, "message": said, "parent": below, "children": []}
        if name not in nodes[below]["children"]:
            nodes[below]["children"].append(name)
        return name

    parent = add("q", "user", f"Question {number} about lighthouses", parent)
    if number % 4 == 1:
        nodes[parent]["message"]["metadata"]["attachments"] = [
            {"id": f"file-{number:024d}", "name": f"chart {number}.txt", "mime_type": "text/plain", "size": 12}]
    question = parent
    parent = add("a", "assistant", f"Answer {number}: they guide ships.", question)
    if number in WORLD["regenerated"]:
        parent = add("z", "assistant", f"Answer {number} made again: they warn ships.", question)
    for turn in range(changed):
        parent = add(f"r{turn}", "user", f"More on {number}, part {turn}", parent)
        parent = add(f"s{turn}", "assistant", f"More answers to {number}, part {turn}", parent)
    return {"title": f"Lighthouse {number}", "create_time": BASE + number * 60.0, "update_time": updated(number),
            "mapping": nodes, "current_node": parent, "conversation_id": name_of(number), "id": name_of(number),
            "is_archived": place_of(number) == "archived", "default_model_slug": "gpt-5",
            "gizmo_id": place_of(number) if place_of(number).startswith("g-p-") else None}


def branch(number):
    whole = tree(number)
    at, line = whole["current_node"], []
    while whole["mapping"][at]["message"]:
        line.append(whole["mapping"][at]["message"])
        at = whole["mapping"][at]["parent"]
    return whole, line[::-1]


def place_of(number):
    """Plain conversations have the lowest numbers, then archived ones, then those of projects."""
    if number < WORLD["conversations"]:
        return "plain"
    rest = number - WORLD["conversations"]
    if rest < WORLD["archived"]:
        return "archived"
    rest -= WORLD["archived"]
    for project, count in WORLD["projects"].items():
        if rest < count:
            return project
        rest -= count
    return "nowhere"


def of_place(place):
    total = WORLD["conversations"] + WORLD["archived"] + sum(WORLD["projects"].values())
    if place == "plain":
        numbers = range(WORLD["conversations"])
    elif place == "archived":
        numbers = range(WORLD["conversations"], WORLD["conversations"] + WORLD["archived"])
    else:
        numbers = (number for number in range(total) if place_of(number) == place)
    return sorted((number for number in numbers if number not in WORLD["hidden"]), key=updated, reverse=True)


def listed(number):
    return {"id": name_of(number), "title": f"Lighthouse {number}", "create_time": iso(BASE + number * 60.0),
            "update_time": WORLD["times"].get(str(number), iso(updated(number))), "is_archived": place_of(number) == "archived", "gizmo_id": None}


def take_token():
    """Whether the bucket has one more; without a bucket, always."""
    limits = WORLD["bucket"]
    if limits is None:
        return True
    moment = now()
    if BUCKET["tokens"] is None:
        BUCKET.update(tokens=limits["capacity"], at=moment)
    gained = (moment - BUCKET["at"]) / 60 * limits["per_minute"]
    BUCKET.update(tokens=min(limits["capacity"], BUCKET["tokens"] + gained), at=moment)
    if BUCKET["tokens"] < 1:
        return False
    BUCKET["tokens"] -= 1
    return True


CHALLENGE = '<!doctype html><title>Just a moment...</title><script src="/cdn-cgi/challenge-platform/x.js"></script>'


class Page(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 20

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.serve("GET", None)

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        self.serve("POST", self.rfile.read(length))

    def serve(self, method, body):
        parts = urlsplit(self.path)
        path, query = parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()}
        if path == "/__control":
            return self.control(body)
        if path == "/__counts":
            with LOCK:
                told = {"by_path": dict(COUNTS), "details": dict(DETAILS), "served": dict(SERVED), "secrets": SECRETS}
            return self.json(told)
        if WORLD["offline"]:
            self.close_connection = True
            self.connection.close()
            return None
        cookies = dict(part.split("=", 1) for part in (self.headers.get("cookie") or "").split("; ") if "=" in part)
        inside = cookies.get("session") == SECRETS["session"] and SECRETS["logged_in"]
        if path == "/":
            return self.front(inside)
        if path == "/login" and method == "POST":
            SECRETS["logged_in"] = True
            return self.send(303, b"", "text/plain", [
                ("location", "/"),
                ("set-cookie", f'session={SECRETS["session"]}; Path=/; HttpOnly; Max-Age=999999; SameSite=Lax'),
                ("set-cookie", f'oai-did={SECRETS["device"]}; Path=/; Max-Age=999999; SameSite=Lax')])
        if path.startswith("/api/") or path.startswith("/backend-api/") or path.startswith("/public-api/"):
            from_page = (self.headers.get("sec-fetch-site") == "same-origin"
                         and self.headers.get("sec-fetch-mode") == "cors" and "Chrome" in (self.headers.get("user-agent") or ""))
            if not from_page:
                with LOCK:
                    COUNTS["outside"] += 1
                return self.json({"detail": "not from a page"}, 403)
        if path == "/api/auth/session":
            with LOCK:
                COUNTS["session"] += 1
                return self.json(session() if inside else {})
        if path.startswith("/signed/"):
            return self.send(200, b"bytes of " + path[8:].encode(), "text/plain")
        if path.startswith("/backend-api/"):
            return self.backend(method, path[len("/backend-api"):], query, body, inside)
        return self.json({"detail": "Not Found"}, 404)

    def front(self, inside):
        if not inside:
            script = "setTimeout(() => document.forms[0].submit(), 200)" if WORLD["login"] == "auto" else ""
            text = f'<!doctype html><title>Log in</title><form action="/login" method="post"><button>Log in</button></form><script>{script}</script>'
            return self.send(200, text.encode(), "text/html")
        with LOCK:
            boot = {"authStatus": "logged_in", "session": session()}
        text = ('<!doctype html><title>ChatGPT</title><script id="client-bootstrap" type="application/json">'
                f"{json.dumps(boot)}</script>")
        headers = [("content-security-policy", "script-src 'self'")]
        if WORLD["refresh"]:
            headers.append(("refresh", WORLD["refresh"]))
        return self.send(200, text.encode(), "text/html", headers)

    def backend(self, method, path, query, body, inside):
        time.sleep(WORLD["delay_ms"] / 1000)
        with LOCK:
            kind = path.split("/")[1] + ("/*" if path.count("/") > 1 else "")
            COUNTS[f"{method} {kind}"] += 1
            bearer = self.headers.get("authorization")
            alive = SECRETS["expires"] > now()
            if not inside or bearer != "Bearer " + SECRETS["token"] or not alive:
                COUNTS["unauthorised"] += 1
                return self.json({"detail": {"code": "token_expired"}}, 401)
            if self.headers.get("oai-device-id") != SECRETS["device"]:
                return self.json({"detail": "no device"}, 400)
            left = WORLD["challenge_after"]
            if left is not None:
                WORLD["challenge_after"] = left - 1
            if WORLD["challenge"] or left is not None and left <= 0:
                COUNTS["challenged"] += 1
                return self.send(403, CHALLENGE.encode(), "text/html", [("cf-mitigated", "challenge")])
        odd = WORLD["odd"].get(self.path[len("/backend-api"):]) or WORLD["odd"].get(path)
        if odd:
            return self.odd(odd)
        return self.answer(method, path, query, body)

    def answer(self, method, path, query, body):
        if path == "/conversations":
            return self.list(query)
        if path == "/conversations/batch" and method == "POST":
            return self.batch(json.loads(body)["conversation_ids"])
        if path.startswith("/conversation/"):
            return self.detail(path.split("/")[2], "tree", query)
        if path.startswith("/conversations/"):
            return self.detail(path.split("/")[2], "pages", query)
        if path.startswith("/gizmos/g-p-") and path.endswith("/conversations"):
            return self.project(path.split("/")[2], query)
        if path.startswith("/files/download/"):
            name = path.split("/")[3]
            fails = WORLD["files_fail"].get(str(number_of(name)))
            if fails:
                return self.json({"detail": "no such file"}, fails)
            return self.json({"status": "success", "download_url": "/signed/" + name, "file_name": name + ".txt"})
        return self.side(path, query)

    def odd(self, told):
        body = (told.get("body", "") * told.get("times", 1)).encode()
        if told.get("cut"):
            # The connection ends before the answer does.
            self.close_connection = True
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999999\r\n\r\n" + body)
            return None
        names = {"location": "location", "after": "retry-after"}
        headers = [(names[name], str(told[name])) for name in names if name in told]
        return self.send(told.get("status", 200), body, told.get("type", "application/json"), headers)

    def list(self, query):
        offset, limit = int(query.get("offset", 0)), int(query.get("limit", 28))
        if limit > 100:
            return self.json({"detail": "limit"}, 422)
        if WORLD["list_fail_at"] is not None and offset >= WORLD["list_fail_at"]:
            return self.json({"detail": "internal"}, 500)
        numbers = of_place("archived" if query.get("is_archived") == "true" else "plain")
        if WORLD["order"] and query.get("is_archived") != "true":
            numbers = WORLD["order"]
        page = [listed(number) for number in numbers[offset:offset + limit]]
        return self.json({"items": page, "total": None, "limit": limit, "offset": offset,
                          "has_missing_conversations": False})

    def project(self, project, query):
        offset, limit = int(query.get("cursor", 0)), 2
        numbers = of_place(project)
        page = [listed(number) for number in numbers[offset:offset + limit]]
        more = offset + limit < len(numbers)
        place = offset + limit
        cursors = {"text": str(place), "number": place, "object": {"next": place}}
        return self.json({"items": page, "cursor": cursors[WORLD["cursors"]] if more else None})

    def batch(self, names):
        if not WORLD["batch"] or WORLD["shape"] != "tree":
            return self.json({"detail": "Not Found"}, 404)
        if len(names) > 10:
            return self.json({"detail": "too many"}, 422)
        answer = []
        for name in names:
            number = number_of(name)
            if number < 0 or number in WORLD["drop"] or number in WORLD["missing"] or number in WORLD["broken"]:
                continue
            whole = tree(number)
            if number in WORLD["truncate"] or number in WORLD["torn"]:
                del whole["mapping"][f"{number}-q"]
            with LOCK:
                SERVED[name] += 1
            answer.append(whole)
        return self.json(answer)

    def detail(self, name, shape, query):
        number = number_of(name)
        with LOCK:
            DETAILS[name] += 1
            if not take_token():
                COUNTS["refused"] += 1
                return self.json({"detail": "Too many requests in 1 minute. Try again later."}, 429)
        if shape != WORLD["shape"] or number < 0 or number in WORLD["missing"]:
            return self.json({"detail": {"code": "conversation_not_found"}}, 404)
        if number in WORLD["slow"]:
            time.sleep(WORLD["slow_seconds"])
        if number in WORLD["broken"]:
            return self.json({"detail": "internal"}, 500)
        if number in WORLD["garbage"]:
            return self.send(200, b"{\"title\": \"cut of", "application/json")
        with LOCK:
            SERVED[name] += 1
        if shape == "tree":
            whole = tree(number)
            if number in WORLD["torn"]:
                del whole["mapping"][f"{number}-q"]
            return self.json(whole)
        whole, line = branch(number)
        turns = 2 * int(query.get("num_turns", 10))
        end = int(query["before"]) if "before" in query else len(line)
        start = max(0, end - turns)
        page = {"messages": line[start:end],
                "page_info": {"has_previous_page": start > 0, "start_cursor": str(start) if start else None}}
        if "before" not in query:
            page = {name: value for name, value in whole.items() if name not in ("mapping", "id", "conversation_id")} | page
        return self.json(page)

    def side(self, path, query):
        fails = WORLD["memories_fail"]
        if path == "/memories":
            if isinstance(fails, int):
                return self.json({"detail": "internal"}, fails)
            if fails == "partial":
                return self.send(200, b"{\"memories\": [{\"id\": \"mem-1\"", "application/json")
            if fails == "drift":
                return self.json({"items": []})
            memories = [memory | {"created_timestamp": BASE, "updated_at": iso(BASE), "status": "warm"}
                        for memory in WORLD["memories"]]
            return self.json({"memories": memories, "memory_num_tokens": 10 * len(memories), "memory_max_tokens": 2000})
        if path == "/gizmos/snorlax/sidebar" and WORLD["project_list"] == "sidebar" \
                or path == "/gizmos/bootstrap/projects" and WORLD["project_list"] == "older":
            items = [{"gizmo": {"gizmo": {"id": project, "display": {"name": "Aurora"}, "instructions": "Speak of light."},
                                "files": [{"file_id": "file-1", "name": "chart.pdf"}]},
                      "conversations": {"items": [], "cursor": None}} for project in WORLD["projects"]]
            return self.json({"items": items, "cursor": None})
        if path == "/gizmos/mine":
            return self.json({"detail": "Not Found"}, 404)
        if path == "/gizmos/discovery/mine":
            return self.json({"list": {"items": [{"resource": {"gizmo": {"id": "g-keeper", "display": {"name": "Keeper"}}}}],
                                       "cursor": None}})
        if path == "/gizmos/g-keeper":
            return self.json({"gizmo": {"id": "g-keeper", "display": {"name": "Keeper", "description": "Keeps the light"},
                                        "instructions": "You keep the light.", "author": {"display_name": "Ada"},
                                        "share_recipient": "link", "created_at": iso(BASE), "updated_at": iso(BASE + 60)},
                              "tools": [{"id": "t1", "type": "browser"}], "files": []})
        sides = {
            "/user_system_messages": {"object": "user_system_message_detail", "enabled": True,
                                      "about_user_message": "I sail.", "about_model_message": "Be brief."},
            "/me": {"id": "user-ada", "email": "ada@example.com", "name": "Ada"},
            "/accounts/check/v4-2023-04-27": {
                "accounts": {"default": {"account": {"account_id": "account-1", "plan_type": "plus",
                                                     "structure": "personal", "name": None}}},
                "account_ordering": ["default"]},
            "/models": {"models": [{"slug": "gpt-5", "title": "GPT-5", "max_tokens": 196608, "reasoning_type": "auto"}],
                        "categories": [{"category": "gpt_5", "subscription_level": "plus", "default_model": "gpt-5"}]},
            "/settings/user": {"settings": {"training_allowed": False}},
            "/settings/data_controls": {"training_allowed": False, "retention_days": 30},
            "/settings/beta_features": {"canvas": True},
        }
        if path == "/shared_conversations":
            # Paging that never ends is a known failure: the same page again and again.
            return self.json({"items": [{"id": "share-1", "conversation_id": name_of(0), "title": "Lighthouse 0",
                                         "create_time": iso(BASE), "highlighted_message_id": "0-a"}],
                              "total": 2, "limit": 100, "offset": int(query.get("offset", 0))})
        if path in sides:
            return self.json(sides[path])
        return self.json({"detail": "Not Found"}, 404)

    def control(self, body):
        with LOCK:
            asked = json.loads(body or b"{}")
            deeds = {deed: asked.pop(deed, False) for deed in ("expire", "log_out", "new_token", "forget_counts")}
            WORLD.update(asked)
            if deeds["expire"]:
                SECRETS["expires"] = 0
            if deeds["log_out"]:
                SECRETS.update(logged_in=False, token="")
            if deeds["new_token"]:
                fresh_token()
            if "bucket" in asked:
                BUCKET["tokens"] = None
            if deeds["forget_counts"]:
                for counter in (COUNTS, DETAILS, SERVED):
                    counter.clear()
        return self.json({})

    def json(self, value, status=200):
        return self.send(status, json.dumps(value).encode(), "application/json")

    def send(self, status, body, kind, headers=()):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def main(page=Page):
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--certificate")
    arguments.add_argument("--key")
    chosen = arguments.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), page)
    server.daemon_threads = True
    ports = [server.server_address[1]]
    if chosen.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chosen.certificate, chosen.key)
        secure = ThreadingHTTPServer(("127.0.0.1", 0), page)
        secure.daemon_threads = True
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        ports.append(secure.server_address[1])
        threading.Thread(target=secure.serve_forever, daemon=True).start()
    print(*ports, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
