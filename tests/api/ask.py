"""Serves an archive of all fixtures and lets schemathesis ask it; exits with what schemathesis says."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import urllib.request

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "missing_required_header",
    "ignored_auth",
]
# Left out, and why:
# positive_data_acceptance: a cursor is text to the document, and only one that a list gave is accepted; the same holds
#   for names of sources in `source`, and `session_id` needs `source`.
# use_after_free, ensure_resource_availability: nothing can be made or deleted over HTTP.
# object_level_authorization: needs a second user; tests/it/http/members.rs has five.

FIXTURES = pathlib.Path("crates/annals-sources/src").glob("*/fixtures/*/home")


def main(target):
    work = pathlib.Path(tempfile.mkdtemp(prefix="annals-api-"))
    try:
        return ask_all(target, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def ask_all(target, work):
    user = work / "user"
    annals = [str(target / "debug" / "annals"), "--home", str(work / "archive")]
    environment = {"HOME": str(user), "TZ": "UTC"}
    sources = []
    for fixture in sorted(FIXTURES):
        source = fixture.parts[-4]
        if source not in sources:
            sources.append(source)
        shutil.copytree(fixture, home_of(annals, environment, user, source), dirs_exist_ok=True)
    subprocess.run([*annals, "sync", "--quiet"], env=environment, check=True)
    # The log of some thousand requests is of no use here.
    arguments = ["serve", "--listen", "127.0.0.1:0", "--json", "--no-sync", "--quiet"]
    server = subprocess.Popen([*annals, *arguments], env=environment, stdout=subprocess.PIPE, text=True)
    try:
        address = json.loads(server.stdout.readline())
        document = work / "openapi.json"
        document.write_text(json.dumps(with_examples(address, sources)))
        status = schemathesis(target, work, document, address)
        if server.poll() is not None:
            print(f"tests/api/run: the server ended with {server.returncode}", file=sys.stderr)
            return 1
        return status
    finally:
        server.terminate()
        server.wait(timeout=20)


def home_of(annals, environment, user, source):
    """The folder where the source's client has its home, as the manifest says."""
    user.mkdir(exist_ok=True)
    printed = subprocess.run([*annals, "manifest", source, "--json"], env=environment, check=True, stdout=subprocess.PIPE)
    return user / json.loads(printed.stdout)["default_homes"][0].removeprefix("~/")


def with_examples(address, sources):
    """The document, with ids of sessions, streams and records that are there: else all of them would be 404."""

    def get(path):
        request = urllib.request.Request(address["url"] + path)
        request.add_header("Authorization", "Bearer " + address["token"])
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    document = get("/openapi.json")
    for path, item in document["paths"].items():
        source = next((name for name in sources if f"/{get_route(get, name)}/" in path), sources[0])
        stream = get(f"/api/v1/sources/{source}/manifest")["streams"][0]["name"]
        session = get(f"/api/v1/agent-sessions/{source}/sessions")["sessions"][0]["session_id"]
        values = {"source": source, "stream": stream, "session_id": session, "key": session, "name": "mine"}
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path":
                    parameter["example"] = values[parameter["name"]]
    return document


def get_route(get, source):
    return get(f"/api/v1/sources/{source}/manifest")["route"]


def schemathesis(target, work, document, address):
    # Run in the folder that is thrown away: whatever it leaves behind goes with it.
    command = [sys.executable, "-m", "schemathesis.cli", "run", str(document), "--url", address["url"]]
    command += ["--header", "Authorization: Bearer " + address["token"]]
    command += ["--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing", "--mode", "all"]
    command += ["--max-examples", "25", "--seed", "20261115", "--generation-database", "none"]
    command += ["--continue-on-failure", "--request-timeout", "20", "--no-color"]
    environment = {**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(target / "api-hypothesis")}
    try:
        return subprocess.run(command, cwd=work, env=environment, timeout=180).returncode
    except subprocess.TimeoutExpired:
        print("tests/api/run: schemathesis did not end within three minutes", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
