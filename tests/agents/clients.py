"""The real clients, with `annals mcp install` done and a scripted model: the model's tool calls search the archive, read
a session, and the client's last words cite it. Usage: clients.py ANNALS CLIENT PROGRAM, where CLIENT is claude or codex.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
import model as models  # noqa: E402

SESSION = "0199a1b2-0000-7000-8000-00000000c0de"
KEY = "sk-made-up-for-a-model-on-loopback"


def history(user):
    """A session of last week, in which something was decided."""
    folder = user / ".codex/sessions/2026/11/08"
    folder.mkdir(parents=True)
    at = "2026-11-08T09:00:0%d.000Z"
    lines = [
        {"timestamp": at % 0, "type": "session_meta", "payload": {
            "id": SESSION, "timestamp": at % 0, "cwd": "/home/ada/engine", "originator": "codex_exec", "cli_version": "0.166.0"}},
        {"timestamp": at % 1, "type": "event_msg", "payload": {
            "type": "user_message", "message": "Which sprocket torque did we settle on?"}},
        {"timestamp": at % 2, "type": "event_msg", "payload": {
            "type": "agent_message", "message": "We settled on a sprocket torque of 42 newton metres."}},
    ]
    file = folder / f"rollout-2026-11-08T09-00-00-{SESSION}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def main():
    annals, client, program = sys.argv[1:4]
    model = models.Model()
    with tempfile.TemporaryDirectory() as folder:
        user = pathlib.Path(folder) / "user"
        project = pathlib.Path(folder) / "engine"
        project.mkdir(parents=True)
        history(user)
        path = f"{os.path.dirname(os.path.realpath(program))}:{os.environ['PATH']}"
        environment = {"HOME": str(user), "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb"}

        def run(*command, **more):
            return subprocess.run(command, env={**environment, **more.pop("env", {})}, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240, cwd=project, check=False)

        if client == "codex":
            (user / ".codex/config.toml").write_text(
                f'model = "gpt-5"\nmodel_provider = "loopback"\napproval_policy = "never"\n\n[model_providers.loopback]\n'
                f'name = "loopback"\nbase_url = "http://127.0.0.1:{model.port}/v1"\nenv_key = "LOOPBACK_KEY"\nwire_api = "responses"\n'
                "request_max_retries = 0\nstream_max_retries = 0\n")
        before = snapshot(user)
        for arguments in (["sync", "--quiet"], ["mcp", "install", client, "--yes"]):
            ran = run(annals, *arguments)
            assert ran.returncode == 0, ran.stderr
        question = "Which sprocket torque did we use last time?"
        if client == "claude":
            ran = run(program, "-p", question, "--allowedTools", "mcp__annals__search_history,mcp__annals__read_session,ToolSearch",
                      env={"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.port}", "IS_SANDBOX": "1",
                           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"})
        else:
            ran = run(program, "exec", "--skip-git-repo-check", question, env={"LOOPBACK_KEY": KEY})
        words = ran.stdout.strip().splitlines()
        assert ran.returncode == 0 and words, f"{client} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}\n{model.offered}"
        wanted = f"Last time we used 42 newton metres; see annals://session/{SESSION}#"
        assert any(line.startswith(wanted) for line in words), f"{ran.stdout}\n{ran.stderr}\noffered: {sorted(model.offered)}"
        citation = models.CITATION.search(ran.stdout).group(0)
        step = citation.split("#")[1]
        shown = run(annals, "show", SESSION, "--at", step)
        assert shown.returncode == 0 and "newton metres" in shown.stdout, shown.stdout + shown.stderr
        # What the client did is history too.
        ran = run(annals, "sync", "--quiet")
        found = run(annals, "search", "newton metres", "--json")
        assert ran.returncode == 0 and len(json.loads(found.stdout)["results"]) >= 2, found.stdout
        ran = run(annals, "mcp", "remove", client, "--yes")
        assert ran.returncode == 0, ran.stderr
        if client == "codex":
            assert snapshot(user)["config"] == before["config"], "the configuration is not what it was"
        print(f"{client}: {len(model.requests)} requests to the model, answered: {words[-1]}")


def snapshot(user):
    file = user / ".codex/config.toml"
    return {"config": file.read_text() if file.exists() else None}


if __name__ == "__main__":
    main()
